"""Exact log densities and expected moments of rows with missing values, for all patterns at once.

With precision P = C^-1 and z = x - m, the missing part given the observed one has covariance (P_mm)^-1 and mean
-(P_mm)^-1 P_mo z_o; the density of the observed part is the full quadratic form at that completion, with
log|C_oo| = log|C| + log|P_mm|. Rows are sorted by number and pattern of missing values, so P_mm is a stack of small
matrices, inverted once per pattern.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import Block
from mixent.core.driver import OutsideDomainError
from mixent.families.gaussian.kernels import LOG_2PI, Moments, Ready, about_center


class Incomplete:
    """Rows with missing values under full covariances.

    So that every P_mm of a block has the same size, rows with fewer missing values than others get dummy columns:
    always missing, independent of all other columns, with precision one. They do not change the results.
    """

    def __init__(self, ready: Ready, block: Block) -> None:
        self.ready = ready
        missing = np.isnan(block.X)
        self.x = np.where(missing, 0.0, block.X - ready.center)
        self.missing = missing
        self.where = _missing_columns(missing)  # (n, m)
        new = np.ones(len(missing), dtype=bool)
        new[1:] = (self.where[1:] != self.where[:-1]).any(axis=1)
        self.first_row = np.flatnonzero(new)  # of each pattern
        self.pattern = np.cumsum(new) - 1  # (n,)
        self.patterns = self.where[self.first_row]  # (patterns, m)
        self.width = int(max(missing.shape[1], self.where.max(initial=-1) + 1))  # columns and dummies

    def log_prob(self) -> Array:
        ready, (n, d), K = self.ready, self.x.shape, len(self.ready.means)
        half_log_det = self._condition()
        z = np.zeros((K, n, self.width))
        real = z[:, :, :d]
        np.subtract(self.x, ready.means[:, None, :], out=real)
        real *= ~self.missing
        slope = np.zeros((K, n, self.width))
        np.matmul(real, ready.precisions, out=slope[:, :, :d])
        cells = (self.width * np.arange(n)[:, None] + self.where).ravel()
        shape = (K, *self.where.shape)
        products = slope.reshape(K, n * self.width).take(cells, axis=1).reshape(shape)  # (K, n, m): P_mo z_o
        z.reshape(K, n * self.width)[:, cells] = self._conditional(products).reshape(K, len(cells))
        self.completed = real
        y = np.matmul(real, np.swapaxes(ready.factors, 1, 2))
        out = np.einsum("knd,knd->kn", y, y)
        out *= -0.5
        out -= 0.5 * LOG_2PI * (d - self.missing.sum(axis=1))
        self.half_log_det = ready.half_log_det[:, None] + half_log_det[:, self.pattern]  # of the observed columns
        out -= self.half_log_det
        return out

    def log_mode(self) -> Array:
        return -0.5 * LOG_2PI * (~self.missing).sum(axis=1) - self.half_log_det

    def _conditional(self, products: Array) -> Array:
        """Return the conditional means of the missing parts, (K, n, m): -(P_mm)^-1 P_mo z_o."""
        n = products.shape[1]
        if n < 4 * len(self.first_row):  # most patterns occur in one row only
            return -np.matmul(self.cond_cov.take(self.pattern, axis=1), products[..., None])[..., 0]
        out = np.empty_like(products)
        for p, (start, stop) in enumerate(pairwise([*self.first_row.tolist(), n])):
            np.matmul(products[:, start:stop], self.cond_cov[:, p], out=out[:, start:stop])
        return np.negative(out, out=out)

    def _condition(self) -> Array:
        """Set the conditional covariances of the missing parts, (K, patterns, m, m); return half log|P_mm|."""
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

    def moments(self, resp: Array, rows: Array | None = None) -> Moments:
        """Return the moments; `rows` (K, n) are the coefficients of the conditional covariances (default: `resp`)."""
        ready, (K, _, d), D = self.ready, self.completed.shape, self.width
        pattern_mass = np.add.reduceat(resp if rows is None else rows, self.first_row, axis=1)  # (K, patterns)
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
        """Return E[x | observed part] about the center, (n, d)."""
        self.log_prob()  # sets self.completed
        return np.einsum("kn,knd->nd", resp, self.completed + self.ready.means[:, None, :])


class IncompleteDiagonal:
    """Rows with missing values under diagonal covariances.

    A missing value is left out of the density, and adds its variance to the second moments.
    """

    def __init__(self, ready: Ready, block: Block) -> None:
        self.ready = ready
        missing = np.isnan(block.X)
        self.observed = (~missing).astype(float).T  # (d, n)
        self.x = np.where(missing, 0.0, block.X - ready.center).T

    def log_prob(self) -> Array:
        ready = self.ready
        out = np.empty((len(ready.means), self.x.shape[1]))
        log_std = -np.log(ready.factors)
        for k in range(len(out)):
            z = (self.x - ready.means[k][:, None]) * ready.factors[k][:, None] * self.observed
            out[k] = -0.5 * np.einsum("in,in->n", z, z) - (0.5 * LOG_2PI + log_std[k]) @ self.observed
        out -= (ready.half_log_det - log_std.sum(axis=1))[:, None]  # the term of the noise
        return out

    def log_mode(self) -> Array:
        log_std = -np.log(self.ready.factors)
        noise = self.ready.half_log_det - log_std.sum(axis=1)
        return -(0.5 * LOG_2PI + log_std) @ self.observed - noise[:, None]

    def moments(self, resp: Array, rows: Array | None = None) -> Moments:
        """Return the moments; `rows` (K, n) are the coefficients of the conditional variances (default: `resp`)."""
        ready, rows = self.ready, resp if rows is None else rows
        mass, missing_rows = resp.sum(axis=1), rows @ (1.0 - self.observed.T)  # (K,), (K, d)
        first, second = np.empty_like(ready.means), np.empty_like(ready.means)
        for k, r in enumerate(resp):
            z = (self.x - ready.means[k][:, None]) * self.observed
            first[k] = z @ r
            second[k] = (z * z) @ r
        second += missing_rows * ready.covs
        about_means = Moments(mass, first, second, "means")
        return about_center(about_means, ready.means) if ready.quadratic else about_means

    def expected(self, resp: Array) -> Array:
        """Return E[x | observed part] about the center, (n, d): the component mean where a value is missing."""
        return np.where(self.observed > 0, self.x, self.ready.means.T @ resp).T


def _invert(stack: Array) -> Array:
    """Invert positive definite matrices (m, m, ...) in place; return half their log determinants (...).

    Gauss-Jordan elimination of all matrices at once, several times faster than calling LAPACK for each small matrix.
    """
    half_log_det = np.zeros(stack.shape[2:])
    for j in range(len(stack)):
        pivot = stack[j, j].copy()
        if not (pivot > 0).all():
            raise OutsideDomainError("a covariance is too close to singular to impute missing values")
        half_log_det += 0.5 * np.log(pivot)
        column, row = stack[:, j].copy(), stack[j] / pivot
        stack -= column[:, None] * row
        stack[j] = row
        np.divide(column, -pivot, out=stack[:, j])
        stack[j, j] = 1.0 / pivot
    return half_log_det


def _missing_columns(missing: np.ndarray) -> np.ndarray:
    """Return the missing columns of each row, (n, m), padded with dummy columns d, d + 1, ... ."""
    n, d = missing.shape
    count = missing.sum(axis=1)
    largest = int(count.max(initial=0))
    where = np.empty((n, largest), dtype=np.intp)
    real = np.arange(largest) < count[:, None]
    where[real] = np.nonzero(missing)[1]
    where[~real] = (d + np.arange(largest) - count[:, None])[~real]
    return where
