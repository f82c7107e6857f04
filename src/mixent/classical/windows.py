"""Parzen windows: the density of a class is a weighted mean of kernels, one at each of its rows.

    p_c(x) = sum_n r_nc prod_j K_j(x_j | x_nj) / sum_n r_nc,        r_nc: weight of row n in class c

    numbers      K(x | x') = N(x; x', h^2), in units of the column's scale
    categories   K(x | x') = (1 if x = x', else exp(-1/h^2)) / (1 + (k-1) exp(-1/h^2))

The second is the kernel of Aitchison and Aitken (1976) with lambda = (k-1) / (k-1 + exp(1/h^2)). With one-hot encoding,
two different categories are at a squared distance of 2, so the same masked squared distance covers all columns.

A missing value in x removes the factor of its column, which is exact because every factor integrates to one. Where the
value of a training row is missing, its factor is the pooled density q_j(x_j) of the column, the same for all classes:
N(x; mean, variance + h^2), or the pooled shares of the categories under the same kernel. Thus p_c remains a density,
and a missing value of a training row is no evidence for any class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.core.arrays import Array, log_sum_exp, safe_log
from mixent.core.executors import Executor
from mixent.data import Table
from mixent.show import Short

BLOCK_CELLS = 1 << 20  # kernel values of a block: 8 MB
MAX_DISTANCE = 1e100  # in units of a column's scale; its square is still finite
LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class Encoded:
    """Encoded rows: standardized numbers and one-hot categories."""

    E: Array  # (n, width) numbers, then one-hot columns; 0 where a value is missing
    observed: Array  # (n, p) 1 where a column has a value, else 0

    def take(self, rows: slice | np.ndarray) -> Encoded:
        """Some of the rows."""
        return Encoded(self.E[rows], self.observed[rows])


@dataclass(frozen=True)
class Columns:
    """Scales of the columns, and the pooled densities that replace missing values of training rows.

    Constant columns are left out.
    """

    varying: np.ndarray  # positions among the continuous columns
    center: Array  # (d,) means of these columns
    scale: Array  # (d,) unit of the bandwidth
    variance: Array  # (d,) in units of scale
    sizes: tuple[int, ...]  # number of categories of each categorical column
    shares: tuple[Array, ...]  # pooled shares of the categories

    @classmethod
    def of(cls, table: Table, weight: Array, standardize: bool) -> Columns:
        """Estimated from all rows, whatever their classes."""
        observed = ~np.isnan(table.X)
        mass = np.maximum(weight @ observed, 1e-300)
        center = weight @ np.where(observed, table.X, 0.0) / mass
        std = np.sqrt(weight @ np.where(observed, (table.X - center) ** 2, 0.0) / mass)
        varying = np.flatnonzero(std > 1e-12 * (np.abs(center) + 1e-300))
        center, std = center[varying], std[varying]
        scale = std if standardize else np.ones_like(std)
        shares = []
        for position, size in enumerate(table.schema.sizes):
            assert table.codes is not None
            code = table.codes[:, position]
            counts = np.bincount(code[code >= 0], weight[code >= 0], size) + 1.0 / size
            shares.append(counts / counts.sum())
        return cls(varying, center, scale, (std / scale) ** 2, table.schema.sizes, tuple(shares))

    def __call__(self, table: Table) -> Encoded:
        """Encode the rows of a table."""
        X = table.X[:, self.varying]
        parts, observed = [np.clip((X - self.center) / self.scale, -MAX_DISTANCE, MAX_DISTANCE)], [~np.isnan(X)]
        for position, size in enumerate(self.sizes):
            assert table.codes is not None
            code = table.codes[:, position, None]
            parts.append((code == np.arange(size)).astype(float))  # all zero where the value is missing
            observed.append(code >= 0)
        E = np.concatenate(parts, axis=1)
        return Encoded(np.where(np.isnan(E), 0.0, E), np.concatenate(observed, axis=1).astype(float))

    @property
    def column_of(self) -> np.ndarray:
        """(width,) the column from which each encoded column was made."""
        d = len(self.varying)
        return np.repeat(np.arange(d + len(self.sizes)), [1] * d + list(self.sizes))

    def log_norms(self, h: float) -> Array:
        """(p,) log of the normalizing constants of the kernels."""
        sizes = np.array(self.sizes, dtype=float)
        numbers = np.full(len(self.varying), np.log(h) + 0.5 * LOG_2PI)
        return np.concatenate([numbers, np.log1p((sizes - 1) * np.exp(-1 / h**2))])

    def log_pooled(self, rows: Encoded, h: float) -> Array:
        """(n, p) log q_j(x_j); 0 where x is missing."""
        d = len(self.varying)
        variance = self.variance + h**2
        parts = [-0.5 * (rows.E[:, :d] ** 2 / variance + np.log(variance) + LOG_2PI)]
        start = d
        for size, shares in zip(self.sizes, self.shares):
            other = np.exp(-1 / h**2)
            pooled = (other + (1 - other) * shares) / (1 + (size - 1) * other)
            parts.append((rows.E[:, start : start + size] @ np.log(pooled))[:, None])
            start += size
        return np.concatenate(parts, axis=1) * rows.observed

    def log_jacobian(self, rows: Encoded) -> Array:
        """(n,) added to a log-density in units of the scales gives that in the units of the columns."""
        return -rows.observed[:, : len(self.varying)] @ np.log(self.scale)


@dataclass(frozen=True)
class OwnWindows:
    """The windows of training rows that are themselves to be scored leave-one-out."""

    position: np.ndarray  # (n, C) position of the row among the windows of the class; -1: not in the class
    log_remaining: Array  # (n, C) log of the row's weight in the class after leaving it out

    def take(self, rows: slice) -> OwnWindows:
        """Some of the rows."""
        return OwnWindows(self.position[rows], self.log_remaining[rows])


@dataclass(frozen=True, repr=False)
class Windows(Short):
    """The windows of all classes, sorted by class."""

    columns: Columns
    rows: Encoded  # centers of all windows
    log_count: Array  # (m,) log weight of each window
    starts: np.ndarray  # (C + 1,) first window of each class

    @classmethod
    def of(cls, columns: Columns, rows: Encoded, counts: Array) -> Windows:
        """From encoded rows and their weights in each class, (n, C)."""
        label, index = np.nonzero(counts.T > 0)
        starts = np.searchsorted(label, np.arange(counts.shape[1] + 1))
        return cls(columns, rows.take(index), np.log(counts[index, label]), starts)

    @staticmethod
    def own_windows(counts: Array, left_out: Array) -> OwnWindows:
        """The windows of the training rows with these `counts`, and their weights after leaving each row out."""
        in_class = counts > 0
        position = np.where(in_class, np.cumsum(in_class, axis=0) - 1, -1)
        share = counts / counts.sum(axis=1, keepdims=True)
        return OwnWindows(position, safe_log(_remaining(counts, left_out[:, None] * share)))

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.starts) - 1

    @property
    def mass(self) -> Array:
        """(C,) total weight of each class."""
        count = np.exp(self.log_count)
        return np.array([count[a:b].sum() for a, b in zip(self.starts[:-1], self.starts[1:])])

    def log_sums(self, rows: Encoded, bandwidths: Array, executor: Executor, own: OwnWindows | None = None) -> Array:
        """(G, n, C) log of the sums over the windows of each class, not yet divided by its weight.

        `bandwidths` (G, C) holds G alternatives; with `own`, each row is left out of its sums.
        """
        largest_class = int(np.diff(self.starts).max())
        step = max(1, BLOCK_CELLS // largest_class)
        slices = _Slices(slice(a, a + step) for a in range(0, len(rows.E), step))

        def block(part: Any) -> Array:
            return self._block(rows.take(part), bandwidths, None if own is None else own.take(part))

        return np.concatenate(executor.map(block, slices), axis=1)  # type: ignore[arg-type]

    def _block(self, rows: Encoded, bandwidths: Array, own: OwnWindows | None) -> Array:
        out = np.empty((len(bandwidths), len(rows.E), self.n_classes))
        for c, (a, b) in enumerate(zip(self.starts[:-1], self.starts[1:])):
            windows = self.rows.take(slice(a, b))
            distances = squared_distances(rows, windows, self.columns.column_of)
            incomplete = np.flatnonzero((windows.observed == 0).any(axis=0))  # columns with missing values in windows
            for g, h in enumerate(bandwidths[:, c]):
                log_kernel = distances * (-0.5 / h**2)
                log_kernel += self.log_count[a:b]
                factor, correction = self._constants(rows, float(h), incomplete)
                if len(incomplete):
                    log_kernel += correction @ windows.observed[:, incomplete].T
                if own is not None:
                    _leave_out(log_kernel, own.position[:, c], own.log_remaining[:, c], self.log_count[a:b])
                out[g, :, c] = log_sum_exp(log_kernel, axis=1) + factor
        return out

    def _constants(self, rows: Encoded, h: float, incomplete: np.ndarray) -> tuple[Array, Array]:
        """Log factors of the query rows (n,), and corrections (n, incomplete) where a window has a value."""
        norms = self.columns.log_norms(h)
        if not len(incomplete):
            return -rows.observed @ norms, np.empty((0, 0))
        pooled = self.columns.log_pooled(rows, h)[:, incomplete]
        correction = -rows.observed[:, incomplete] * norms[incomplete] - pooled
        norms[incomplete] = 0.0
        return pooled.sum(axis=1) - rows.observed @ norms, correction


class _Slices(list):
    """Blocks of rows for an executor."""


def squared_distances(rows: Encoded, windows: Encoded, column_of: np.ndarray) -> Array:
    """(n, m) over the columns in which both have a value."""
    squares, others = rows.E**2, windows.E**2
    if rows.observed.all() and windows.observed.all():
        out = (-2.0 * rows.E) @ windows.E.T
        out += squares.sum(axis=1)[:, None]
        out += others.sum(axis=1)
    else:
        left = np.concatenate([squares, rows.observed[:, column_of], -2.0 * rows.E], axis=1)
        right = np.concatenate([windows.observed[:, column_of], others, windows.E], axis=1)
        out = left @ right.T
    return np.maximum(out, 0.0, out=out)  # rounding may make the distance of equal rows negative


def _leave_out(log_kernel: Array, position: np.ndarray, log_remaining: Array, log_count: Array) -> None:
    """Reduce the weight of each row's own window, in place."""
    row = np.flatnonzero(position >= 0)
    window = position[row]
    log_kernel[row, window] += log_remaining[row] - log_count[window]


def _remaining(counts: Array, left_out: Array) -> Array:
    """The difference, with rounding errors set to zero."""
    difference = counts - left_out
    return np.where(difference > 1e-12 * counts, difference, 0.0)
