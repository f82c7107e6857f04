"""Rows with missing values: exact log densities and expected moments, all patterns at once.

With precision P = C^-1 and z = x - m, the missing part given the observed one has covariance (P_mm)^-1 and mean
-(P_mm)^-1 P_mo z_o; the density of the observed part is the full quadratic form at that completion, with
log|C_oo| = log|C| + log|P_mm|. Rows come sorted by their number of gaps and their pattern, so P_mm is one stack of
small matrices, inverted once per pattern.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import Block
from mixent.core.driver import OutsideDomainError
from mixent.families.gaussian.kernels import LOG_2PI, Moments, Ready, about_center


class Gapped:
    """Full covariances.

    Rows with fewer gaps than the fullest of the block get dummy columns in their stead: precision one, always missing,
    independent of all others, so they change nothing and every P_mm has one size.
    """

    def __init__(self, ready: Ready, block: Block) -> None:
        self.ready = ready
        gaps = np.isnan(block.X)
        self.x = np.where(gaps, 0.0, block.X - ready.center)
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
        real *= ~self.gaps
        slope = np.zeros((K, n, self.width))
        np.matmul(real, ready.precisions, out=slope[:, :, :d])
        at = (self.width * np.arange(n)[:, None] + self.where).ravel()
        towards = slope.reshape(K, n * self.width).take(at, axis=1).reshape(K, *self.where.shape)  # (K, n, m): P_mo z_o
        z.reshape(K, n * self.width)[:, at] = self._conditional(towards).reshape(K, len(at))
        self.completed = real
        y = np.matmul(real, np.swapaxes(ready.factors, 1, 2))
        out = np.einsum("knd,knd->kn", y, y)
        out *= -0.5
        out -= 0.5 * LOG_2PI * (d - self.gaps.sum(axis=1))
        out -= ready.half_log_det[:, None] + half_log_det[:, self.pattern]
        return out

    def _conditional(self, towards: Array) -> Array:
        """Conditional means (K, n, m) of the missing parts: -(P_mm)^-1 P_mo z_o."""
        n = towards.shape[1]
        if n < 4 * len(self.first_row):  # hardly a pattern has two rows
            return -np.matmul(self.cond_cov.take(self.pattern, axis=1), towards[..., None])[..., 0]
        out = np.empty_like(towards)
        for p, (start, stop) in enumerate(pairwise([*self.first_row.tolist(), n])):
            np.matmul(towards[:, start:stop], self.cond_cov[:, p], out=out[:, start:stop])
        return np.negative(out, out=out)

    def _condition(self) -> Array:
        """Conditional covariances (K, patterns, m, m) of the missing parts; half log|P_mm|, (K, patterns)."""
        precisions = self.ready.precisions
        K, d, _ = precisions.shape
        if self.width > d:
            wide = np.zeros((K, self.width, self.width))
            wide[:, range(d, self.width), range(d, self.width)] = 1.0
            wide[:, :d, :d] = precisions
            precisions = wide
        columns = self.patterns.T  # (m, patterns)
        cell = columns[:, None, :] * self.width + columns  # (m, m, patterns)
        stack = precisions.reshape(K, self.width**2).take(cell, axis=1).transpose(1, 2, 0, 3)  # (m, m, K, patterns)
        stack = np.ascontiguousarray(stack)
        half_log_det = _invert(stack)
        self.cond_cov = np.ascontiguousarray(stack.transpose(2, 3, 0, 1))
        return half_log_det

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
        first = np.matmul(resp[:, None, :], self.completed)[:, 0]
        about_means = Moments(resp.sum(axis=1), first, second, "means")
        return about_center(about_means, ready.means) if ready.quadratic else about_means

    def expected(self, resp: Array) -> Array:
        """E[x | observed part] about the center, (n, d)."""
        self.log_prob()  # completes each row under each component
        return np.einsum("kn,knd->nd", resp, self.completed + self.ready.means[:, None, :])


class GappedDiagonal:
    """Axis-aligned components: a missing cell simply drops out, and contributes its variance to the moments."""

    def __init__(self, ready: Ready, block: Block) -> None:
        self.ready = ready
        gaps = np.isnan(block.X)
        self.seen = (~gaps).astype(float).T  # (d, n)
        self.x = np.where(gaps, 0.0, block.X - ready.center).T

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
        return about_center(about_means, ready.means) if ready.quadratic else about_means

    def expected(self, resp: Array) -> Array:
        """E[x | observed part] about the center, (n, d): a missing cell is its component's mean."""
        return np.where(self.seen > 0, self.x, self.ready.means.T @ resp).T


def _invert(stack: Array) -> Array:
    """Invert positive definite matrices (m, m, ...) in place; return half their log determinants (...).

    Gauss-Jordan, a step for all matrices at once: LAPACK called for each small matrix takes several times as long.
    """
    half_log_det = np.zeros(stack.shape[2:])
    for j in range(len(stack)):
        pivot = stack[j, j].copy()
        if not (pivot > 0).all():
            raise OutsideDomainError("a covariance is too nearly singular to fill missing values")
        half_log_det += 0.5 * np.log(pivot)
        column, row = stack[:, j].copy(), stack[j] / pivot
        stack -= column[:, None] * row
        stack[j] = row
        np.divide(column, -pivot, out=stack[:, j])
        stack[j, j] = 1.0 / pivot
    return half_log_det


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
