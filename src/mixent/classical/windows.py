"""Parzen windows: the density of a class as a sum of one kernel for each of its rows.

    p_c(x) = sum_n r_nc prod_j K_j(x_j | x_nj) / sum_n r_nc,        r_nc  how often row n stands in class c

    numbers      K(x | x') = N(x; x', h^2), in units of the column's scale
    categories   K(x | x') = (1, if x = x', else exp(-1/h^2)) / (1 + (k-1) exp(-1/h^2))

The second is the kernel of Aitchison and Aitken (1976) with lambda = (k-1) / (k-1 + exp(1/h^2)): one bit for each of k
categories, at a squared distance of 2 when they differ. So one masked squared distance serves all columns.

A missing value in x removes its factor, which is exact: every factor integrates to one. One in row n puts the column's
pooled density q_j(x_j) in its place, the same for all classes: N(x; mean, variance + h^2), or the pooled shares of the
categories under the same kernel. So p_c stays a density, and a missing value of a training row is no evidence for a
class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.core.arrays import Array, log_sum_exp, safe_log
from mixent.core.executors import Executor
from mixent.data import Table

CELLS = 1 << 20  # of a block of kernel values: 8 MB
FARTHEST = 1e100  # in units of a column's scale; its square is still a number
LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class Encoded:
    """Rows as kernels see them."""

    E: Array  # (n, width) numbers, then bits; 0 where a value is missing
    seen: Array  # (n, p) 1 where a column has a value, else 0

    def take(self, rows: slice | np.ndarray) -> Encoded:
        return Encoded(self.E[rows], self.seen[rows])


@dataclass(frozen=True)
class Columns:
    """Scales, and the pooled densities that replace missing values of training rows. Constant columns are left out."""

    varies: np.ndarray  # positions among the continuous columns
    center: Array  # (d,) of those
    scale: Array  # (d,) in which the bandwidth is counted
    variance: Array  # (d,) in units of scale
    sizes: tuple[int, ...]  # categories of each categorical column
    shares: tuple[Array, ...]  # of those categories

    @classmethod
    def of(cls, table: Table, weight: Array, standardize: bool) -> Columns:
        """Learned from these rows, whatever their classes."""
        seen = ~np.isnan(table.X)
        mass = np.maximum(weight @ seen, 1e-300)
        center = weight @ np.where(seen, table.X, 0.0) / mass
        spread = np.sqrt(weight @ np.where(seen, (table.X - center) ** 2, 0.0) / mass)
        varies = np.flatnonzero(spread > 1e-12 * (np.abs(center) + 1e-300))
        center, spread = center[varies], spread[varies]
        scale = spread if standardize else np.ones_like(spread)
        shares = []
        for place, size in enumerate(table.schema.sizes):
            assert table.codes is not None
            code = table.codes[:, place]
            counts = np.bincount(code[code >= 0], weight[code >= 0], size) + 1.0 / size
            shares.append(counts / counts.sum())
        return cls(varies, center, scale, (spread / scale) ** 2, table.schema.sizes, tuple(shares))

    def __call__(self, table: Table) -> Encoded:
        X = table.X[:, self.varies]
        parts, seen = [np.clip((X - self.center) / self.scale, -FARTHEST, FARTHEST)], [~np.isnan(X)]
        for place, size in enumerate(self.sizes):
            assert table.codes is not None
            code = table.codes[:, place, None]
            parts.append((code == np.arange(size)).astype(float))  # a missing value has no bit
            seen.append(code >= 0)
        E = np.concatenate(parts, axis=1)
        return Encoded(np.where(np.isnan(E), 0.0, E), np.concatenate(seen, axis=1).astype(float))

    @property
    def owner(self) -> np.ndarray:
        """(width,) the column to which each encoded one belongs."""
        d = len(self.varies)
        return np.repeat(np.arange(d + len(self.sizes)), [1] * d + list(self.sizes))

    def log_norms(self, h: float) -> Array:
        """(p,) log of what the kernels of the columns are divided by."""
        sizes = np.array(self.sizes, dtype=float)
        numbers = np.full(len(self.varies), np.log(h) + 0.5 * LOG_2PI)
        return np.concatenate([numbers, np.log1p((sizes - 1) * np.exp(-1 / h**2))])

    def log_pooled(self, rows: Encoded, h: float) -> Array:
        """(n, p) log q_j(x_j); 0 where x is missing."""
        d = len(self.varies)
        variance = self.variance + h**2
        parts = [-0.5 * (rows.E[:, :d] ** 2 / variance + np.log(variance) + LOG_2PI)]
        start = d
        for size, shares in zip(self.sizes, self.shares):
            other = np.exp(-1 / h**2)
            pooled = (other + (1 - other) * shares) / (1 + (size - 1) * other)
            parts.append((rows.E[:, start : start + size] @ np.log(pooled))[:, None])
            start += size
        return np.concatenate(parts, axis=1) * rows.seen

    def log_units(self, rows: Encoded) -> Array:
        """(n,) from densities in units of the scales to those in the user's own."""
        return -rows.seen[:, : len(self.varies)] @ np.log(self.scale)


@dataclass(frozen=True)
class Own:
    """Where the rows to be scored stand among the windows, if they are the training rows themselves."""

    place: np.ndarray  # (n, C) position among the windows of the class, -1: not there
    log_rest: Array  # (n, C) log of what is left of the row's count when one is left out

    def take(self, rows: slice) -> Own:
        return Own(self.place[rows], self.log_rest[rows])


@dataclass(frozen=True)
class Windows:
    """The windows of every class, one class after the other."""

    columns: Columns
    rows: Encoded  # of all windows
    log_count: Array  # (m,)
    starts: np.ndarray  # (C + 1,)

    @classmethod
    def of(cls, columns: Columns, rows: Encoded, counts: Array) -> Windows:
        """From rows and how often each stands in every class, (n, C)."""
        label, at = np.nonzero(counts.T > 0)
        starts = np.searchsorted(label, np.arange(counts.shape[1] + 1))
        return cls(columns, rows.take(at), np.log(counts[at, label]), starts)

    @staticmethod
    def own(counts: Array, left_out: Array) -> Own:
        """Each training row among the windows made of `counts`."""
        there = counts > 0
        place = np.where(there, np.cumsum(there, axis=0) - 1, -1)
        share = counts / counts.sum(axis=1, keepdims=True)
        return Own(place, safe_log(_rest(counts, left_out[:, None] * share)))

    @property
    def n_classes(self) -> int:
        return len(self.starts) - 1

    @property
    def mass(self) -> Array:
        """(C,) rows of each class."""
        count = np.exp(self.log_count)
        return np.array([count[a:b].sum() for a, b in zip(self.starts[:-1], self.starts[1:])])

    def log_sums(self, rows: Encoded, bandwidths: Array, executor: Executor, own: Own | None = None) -> Array:
        """(G, n, C) log of the sums over the windows of each class, not yet divided by its rows.

        `bandwidths` (G, C) are those of the classes, G times over; with `own` each row is left out of its own sums.
        """
        most = int(np.diff(self.starts).max())
        step = max(1, CELLS // most)
        cuts = _Cuts(slice(a, a + step) for a in range(0, len(rows.E), step))

        def block(cut: Any) -> Array:
            return self._block(rows.take(cut), bandwidths, None if own is None else own.take(cut))

        found = executor.map(block, cuts)  # type: ignore[arg-type]
        return np.concatenate(found, axis=1)

    def _block(self, rows: Encoded, bandwidths: Array, own: Own | None) -> Array:
        out = np.empty((len(bandwidths), len(rows.E), self.n_classes))
        for c, (a, b) in enumerate(zip(self.starts[:-1], self.starts[1:])):
            windows = self.rows.take(slice(a, b))
            far = squared_distances(rows, windows, self.columns.owner)
            gappy = np.flatnonzero((windows.seen == 0).any(axis=0))
            for g, h in enumerate(bandwidths[:, c]):
                log_kernel = far * (-0.5 / h**2)
                log_kernel += self.log_count[a:b]
                factor, inner = self._constants(rows, float(h), gappy)
                if len(gappy):
                    log_kernel += inner @ windows.seen[:, gappy].T
                if own is not None:
                    _leave_out(log_kernel, own.place[:, c], own.log_rest[:, c], self.log_count[a:b])
                out[g, :, c] = log_sum_exp(log_kernel, axis=1) + factor
        return out

    def _constants(self, rows: Encoded, h: float, gappy: np.ndarray) -> tuple[Array, Array]:
        """Factors of the query rows alone (n,), and those (n, gappy) that count where a window has a value."""
        norms = self.columns.log_norms(h)
        if not len(gappy):
            return -rows.seen @ norms, np.empty((0, 0))
        pooled = self.columns.log_pooled(rows, h)[:, gappy]
        inner = -rows.seen[:, gappy] * norms[gappy] - pooled
        norms[gappy] = 0.0
        return pooled.sum(axis=1) - rows.seen @ norms, inner


class _Cuts(list):
    """To an executor, blocks."""


def squared_distances(rows: Encoded, windows: Encoded, owner: np.ndarray) -> Array:
    """(n, m) over the columns in which both have a value."""
    squares, others = rows.E**2, windows.E**2
    if rows.seen.all() and windows.seen.all():
        out = (-2.0 * rows.E) @ windows.E.T
        out += squares.sum(axis=1)[:, None]
        out += others.sum(axis=1)
    else:
        left = np.concatenate([squares, rows.seen[:, owner], -2.0 * rows.E], axis=1)
        right = np.concatenate([windows.seen[:, owner], others, windows.E], axis=1)
        out = left @ right.T
    return np.maximum(out, 0.0, out=out)  # rounding of equal rows


def _leave_out(log_kernel: Array, place: np.ndarray, log_rest: Array, log_count: Array) -> None:
    there = np.flatnonzero(place >= 0)
    at = place[there]
    log_kernel[there, at] += log_rest[there] - log_count[at]


def _rest(counts: Array, out: Array) -> Array:
    """What is left; what is rounding is nothing."""
    rest = counts - out
    return np.where(rest > 1e-12 * counts, rest, 0.0)
