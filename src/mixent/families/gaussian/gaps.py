"""Rows with missing values: exact log densities and expected moments, all patterns at once.

With precision P = C^-1 and z = x - m, the missing part given the observed one has covariance (P_mm)^-1 and mean
-(P_mm)^-1 P_mo z_o; the density of the observed part is the full quadratic form at that completion, with
log|C_oo| = log|C| + log|P_mm|. A block holds rows with equally many gaps, so P_mm is one stack of small matrices,
inverted once per pattern.
"""

from __future__ import annotations

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import Block
from mixent.core.driver import OutsideDomainError
from mixent.families.gaussian.kernels import LOG_2PI, Moments, Ready


class Gapped:
    """Full covariances."""

    def __init__(self, ready: Ready, block: Block) -> None:
        self.ready = ready
        gaps = np.isnan(block.X)
        self.x = np.where(gaps, 0.0, block.X - ready.centre)
        self.gaps = gaps
        n = len(gaps)
        self.where = np.nonzero(gaps)[1].reshape(n, -1)  # (n, m) columns that are missing
        new = np.ones(n, dtype=bool)
        new[1:] = (self.where[1:] != self.where[:-1]).any(axis=1)
        self.first_row = np.flatnonzero(new)  # of each pattern
        self.pattern = np.cumsum(new) - 1  # (n,)
        self.patterns = self.where[self.first_row]  # (patterns, m)

    def log_prob(self) -> Array:
        ready, K = self.ready, len(self.ready.means)
        n, m = self.where.shape
        d = self.x.shape[1]
        i, j = self.patterns[:, :, None], self.patterns[:, None, :]
        blocks = ready.precisions[:, i, j]  # (K, patterns, m, m)
        try:
            chol = np.linalg.cholesky(blocks)
        except np.linalg.LinAlgError:
            raise OutsideDomainError("a covariance is too nearly singular to fill gaps") from None
        half_log_det = np.log(np.diagonal(chol, axis1=2, axis2=3)).sum(axis=2)  # of P_mm
        self.cond_cov = np.linalg.inv(blocks)
        self.completed = np.empty((K, n, d))
        out = np.empty((K, n))
        at = np.arange(n)[:, None], self.where
        for k in range(K):
            z = self.completed[k]
            np.subtract(self.x, ready.means[k], out=z)
            z[self.gaps] = 0.0
            slope = (z @ ready.precisions[k])[at]  # (n, m): P_mo z_o
            z[at] = -np.matmul(self.cond_cov[k][self.pattern], slope[:, :, None])[:, :, 0]
            y = z @ ready.factors[k].T
            np.einsum("nd,nd->n", y, y, out=out[k])
        out *= -0.5
        out -= (0.5 * (d - m) * LOG_2PI + ready.half_log_det)[:, None]
        out -= half_log_det[:, self.pattern]
        return out

    def moments(self, resp: Array) -> Moments:
        ready, (K, _, d) = self.ready, self.completed.shape
        mass = resp.sum(axis=1)
        pattern_mass = np.add.reduceat(resp, self.first_row, axis=1)  # (K, patterns)
        cell = (self.patterns[:, :, None] * d + self.patterns[:, None, :]).ravel()
        first, second = np.empty((K, d)), np.empty((K, d, d))
        for k in range(K):
            z = self.completed[k]
            weighted = z * resp[k][:, None]
            first[k] = weighted.sum(axis=0)
            spread = self.cond_cov[k] * pattern_mass[k][:, None, None]
            second[k] = weighted.T @ z + np.bincount(cell, spread.ravel(), d * d).reshape(d, d)
        second = 0.5 * (second + np.swapaxes(second, 1, 2))
        about_means = Moments(mass, first, second, "means")
        return about_centre(about_means, ready.means) if ready.quadratic else about_means

    def expected(self, resp: Array) -> Array:
        """E[x | observed part] about the centre, (n, d)."""
        self.log_prob()  # completes each row under each component
        return np.einsum("kn,knd->nd", resp, self.completed + self.ready.means[:, None, :])


class GappedDiagonal:
    """Axis-aligned components: a missing cell simply drops out, and contributes its variance to the moments."""

    def __init__(self, ready: Ready, block: Block) -> None:
        self.ready = ready
        gaps = np.isnan(block.X)
        self.seen = (~gaps).astype(float).T  # (d, n)
        self.x = np.where(gaps, 0.0, block.X - ready.centre).T

    def log_prob(self) -> Array:
        ready = self.ready
        out = np.empty((len(ready.means), self.x.shape[1]))
        log_std = -np.log(ready.factors)
        for k in range(len(out)):
            z = (self.x - ready.means[k][:, None]) * ready.factors[k][:, None] * self.seen
            out[k] = -0.5 * np.einsum("in,in->n", z, z) - (0.5 * LOG_2PI + log_std[k]) @ self.seen
        return out

    def moments(self, resp: Array) -> Moments:
        ready = self.ready
        mass, seen_mass = resp.sum(axis=1), resp @ self.seen.T  # (K,), (K, d)
        first, second = np.empty_like(ready.means), np.empty_like(ready.means)
        for k, r in enumerate(resp):
            z = (self.x - ready.means[k][:, None]) * self.seen
            first[k] = z @ r
            second[k] = (z * z) @ r
        second += (mass[:, None] - seen_mass) * ready.covs
        about_means = Moments(mass, first, second, "means")
        return about_centre(about_means, ready.means) if ready.quadratic else about_means

    def expected(self, resp: Array) -> Array:
        """E[x | observed part] about the centre, (n, d): a missing cell is its component's mean."""
        return np.where(self.seen > 0, self.x, self.ready.means.T @ resp).T


def about_centre(moments: Moments, means: Array) -> Moments:
    """The same moments about the common centre instead of the component means."""
    mass, first = moments.mass, moments.first
    if moments.second.ndim == 2:
        second = moments.second + 2 * first * means + mass[:, None] * means**2
    else:
        cross = first[:, :, None] * means[:, None, :]
        outer = mass[:, None, None] * means[:, :, None] * means[:, None, :]
        second = moments.second + cross + np.swapaxes(cross, 1, 2) + outer
    return Moments(mass, first + mass[:, None] * means, second, "centre")


def about_means(moments: Moments, means: Array) -> Moments:
    """The same moments about the component means instead of the common centre."""
    back = about_centre(Moments(moments.mass, moments.first, moments.second, "means"), -means)
    return Moments(back.mass, back.first, back.second, "means")
