"""Rows with missing values: exact log densities and expected moments, all patterns at once.

With precision P = C^-1 and z = x - m, the missing part given the observed one has covariance (P_mm)^-1 and mean
-(P_mm)^-1 P_mo z_o; the density of the observed part is the full quadratic form at that completion, with
log|C_oo| = log|C| + log|P_mm|. Rows come sorted by their number of gaps and their pattern, so P_mm is one stack of
small matrices, inverted once per pattern.
"""

from __future__ import annotations

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import Block
from mixent.core.driver import OutsideDomainError
from mixent.families.gaussian.kernels import LOG_2PI, Moments, Ready, about_centre


class Gapped:
    """Full covariances.

    Rows with fewer gaps than the fullest of the block get dummy columns in their stead: precision one, always missing,
    independent of all others, so they change nothing and every P_mm has one size.
    """

    def __init__(self, ready: Ready, block: Block) -> None:
        self.ready = ready
        gaps = np.isnan(block.X)
        self.x = np.where(gaps, 0.0, block.X - ready.centre)
        self.gaps = gaps
        self.where = _gap_columns(gaps)  # (n, m)
        new = np.ones(len(gaps), dtype=bool)
        new[1:] = (self.where[1:] != self.where[:-1]).any(axis=1)
        self.first_row = np.flatnonzero(new)  # of each pattern
        self.pattern = np.cumsum(new) - 1  # (n,)
        self.patterns = self.where[self.first_row]  # (patterns, m)
        self.width = int(max(gaps.shape[1], self.where.max(initial=-1) + 1))  # columns and dummies

    def log_prob(self) -> Array:
        ready, (n, d), K = self.ready, self.x.shape, len(self.ready.means)
        half_log_det = self._condition()
        z = np.zeros((K, n, self.width))
        real = z[:, :, :d]
        np.subtract(self.x, ready.means[:, None, :], out=real)
        real[:, self.gaps] = 0.0
        slope = np.zeros((K, n, self.width))
        np.matmul(real, ready.precisions, out=slope[:, :, :d])
        at = np.arange(n)[:, None], self.where
        towards = slope[:, at[0], at[1]]  # (K, n, m): P_mo z_o
        z[:, at[0], at[1]] = -np.matmul(self.cond_cov[:, self.pattern], towards[..., None])[..., 0]
        self.completed = real
        y = np.matmul(real, np.swapaxes(ready.factors, 1, 2))
        out = np.einsum("knd,knd->kn", y, y)
        out *= -0.5
        out -= 0.5 * LOG_2PI * (d - self.gaps.sum(axis=1))
        out -= ready.half_log_det[:, None] + half_log_det[:, self.pattern]
        return out

    def _condition(self) -> Array:
        """Conditional covariances (K, patterns, m, m) of the missing parts; half log|P_mm|, (K, patterns)."""
        precisions = self.ready.precisions
        K, d, _ = precisions.shape
        if self.width > d:
            wide = np.zeros((K, self.width, self.width))
            wide[:, range(d, self.width), range(d, self.width)] = 1.0
            wide[:, :d, :d] = precisions
            precisions = wide
        blocks = precisions[:, self.patterns[:, :, None], self.patterns[:, None, :]]
        try:
            chol = np.linalg.cholesky(blocks)
        except np.linalg.LinAlgError:
            raise OutsideDomainError("a covariance is too nearly singular to fill gaps") from None
        self.cond_cov = np.linalg.inv(blocks)
        return np.log(np.diagonal(chol, axis1=2, axis2=3)).sum(axis=2)

    def moments(self, resp: Array) -> Moments:
        ready, (K, _, d), D = self.ready, self.completed.shape, self.width
        pattern_mass = np.add.reduceat(resp, self.first_row, axis=1)  # (K, patterns)
        spread = self.cond_cov * pattern_mass[:, :, None, None]
        cell = self.patterns[:, :, None] * D + self.patterns[:, None, :]
        cell = cell + (D * D * np.arange(K))[:, None, None, None]
        second = np.bincount(cell.ravel(), spread.ravel(), K * D * D).reshape(K, D, D)[:, :d, :d]
        weighted = self.completed * resp[:, :, None]
        second = second + np.matmul(np.swapaxes(weighted, 1, 2), self.completed)
        second = 0.5 * (second + np.swapaxes(second, 1, 2))
        about_means = Moments(resp.sum(axis=1), weighted.sum(axis=1), second, "means")
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
        out -= (ready.half_log_det - log_std.sum(axis=1))[:, None]  # what noise adds
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


def _gap_columns(gaps: np.ndarray) -> np.ndarray:
    """(n, m) columns missing in each row, filled up with dummy columns d, d + 1, ... where a row has fewer gaps."""
    n, d = gaps.shape
    count = gaps.sum(axis=1)
    most = int(count.max(initial=0))
    where = np.empty((n, most), dtype=np.intp)
    real = np.arange(most) < count[:, None]
    where[real] = np.nonzero(gaps)[1]
    where[~real] = (d + np.arange(most) - count[:, None])[~real]
    return where
