"""Compression of columns to weighted grids, and mixtures of single columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from mixent.core.arrays import Array, log_sum_exp, safe_log, softmax_columns

MAX_POINTS = 2048  # grid points of a unit
ROWS_PER_COMPONENT = 5
STARVED = 1e-6  # share of the weight below which a component is removed
BATCH = 1 << 17  # size of a work array that fits the cache
FAR = 1e6  # standard deviations at which values are truncated for responsibilities
LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class ColumnMixture:
    """A Gaussian mixture of a column."""

    weights: Array  # (K,)
    means: Array  # (K,)
    variances: Array  # (K,)

    def log_joint(self, x: Array) -> Array:
        """Return log p_k + log N(x_n; m_k, v_k), (K, n), finite for any x."""
        with np.errstate(over="ignore"):
            z = (x - self.means[:, None]) / np.sqrt(self.variances)[:, None]
        np.clip(z, -1e150, 1e150, out=z)  # so that its square is finite
        return (safe_log(self.weights) - 0.5 * (np.log(self.variances) + LOG_2PI))[:, None] - 0.5 * z**2

    def responsibilities(self, x: Array) -> Array:
        """Return p(k | x_n), (K, n), for x truncated at `FAR` standard deviations, where components still differ."""
        reach = FAR * float(np.sqrt(self.variances.max()))
        resp = self.log_joint(np.clip(x, self.means.min() - reach, self.means.max() + reach))
        softmax_columns(resp)
        return resp

    def log_density(self, x: Array) -> Array:
        """Return log p(x_n), (n,)."""
        return log_sum_exp(self.log_joint(x), axis=0)


@dataclass(frozen=True)
class Unit:
    """A compressed column (within a class), with mean 0 and variance 1."""

    x: Array  # (n,) in increasing order
    weight: Array  # (n,)
    spread: Array  # (n,) variance within each bin
    floor: float = 1.0  # smallest variance
    repeats: float = 1.0  # weight of the most frequent value, relative to the average of the distinct values
    center: float = 0.0
    scale: float = 1.0  # negative if the column is mirrored

    @property
    def length(self) -> int:
        """Padded length: a power of two times 1 or 1.5. It depends on this unit only, hence so do its sums."""
        n = max(len(self.x), 32)
        size = 1 << (n - 1).bit_length()
        return 3 * size // 4 if n <= 3 * size // 4 else size

    def most_components(self, limit: int) -> int:
        """Return the largest number of components to try; 0 for a constant or empty column."""
        if len(self.x) == 1:
            return 0
        return max(1, min(limit, len(self.x), int(self.weight.sum() / ROWS_PER_COMPONENT)))

    def restore(self, weights: Array, means: Array, variances: Array) -> ColumnMixture:
        """Return the mixture in the units of the column, without starved components."""
        alive = weights > STARVED
        weights, means, variances = weights[alive], means[alive], variances[alive]
        values = self.center + self.scale * means
        variances = np.maximum(variances * min(abs(self.scale), 1e140) ** 2, 1e-300)  # finite and positive
        order = np.argsort(values, kind="stable")
        return ColumnMixture(weights[order] / weights.sum(), values[order], variances[order])


def compress(x: Array, weight: Array | None, max_points: int = MAX_POINTS) -> Unit:
    """Return the distinct values with their weights, or bins of them where these are more than `max_points`."""
    used = ~np.isnan(x) if weight is None else ~np.isnan(x) & (weight > 0)
    if not used.any():
        return Unit(np.zeros(1), np.zeros(1), np.zeros(1))
    values, which = np.unique(x[used], return_inverse=True)
    mass = np.bincount(which, None if weight is None else weight[used]).astype(float)
    low, size = float(values[0]), float(values[-1] - values[0])
    if size <= 1e-14 * np.abs(values).max():
        # a constant column has no standard deviation: its scale is relative to its value
        return Unit(np.zeros(1), mass[:1], np.zeros(1), center=low, scale=1e-6 * max(abs(low), 1.0))
    z = (values - low) / size  # before squaring, which may overflow
    share = mass / mass.sum()
    mean = float(share @ z)
    z -= mean
    std = float(np.sqrt(share @ z**2))
    z /= std
    if share @ z**3 < 0:  # mirror to positive skewness, so that a mirrored column gets the mirrored mixture
        z, mass, std = -z[::-1], mass[::-1], -std
    # values are rounded to multiples of the smallest difference: with this variance the density of a component at a
    # single value is that of the rounding interval. With difference^2 / 12, the variance within the interval, the
    # density is 1.4 times as high, and BIC selects a component for each value
    floor = max(float(np.diff(z).min()) ** 2 / (2 * np.pi), 1e-16)
    return Unit(*_binned(z, mass, max_points), floor, float(share.max() * len(z)), low + mean * size, std * size)


def _binned(x: Array, weight: Array, max_points: int) -> tuple[Array, Array, Array]:
    """Return means, weights and variances of bins, whose widths are between those of equal weight and equal width."""
    if len(x) <= max_points:
        return x, weight, np.zeros(len(x))
    share = np.cumsum(weight) - 0.5 * weight
    position = 0.5 * share / weight.sum() + 0.5 * (x - x[0]) / (x[-1] - x[0])
    cell = np.minimum((max_points * position).astype(int), max_points - 1)
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    mass = np.add.reduceat(weight, first)
    mean = np.add.reduceat(weight * x, first) / mass
    deviation = x - np.repeat(mean, np.diff(first, append=len(x)))
    return mean, mass, np.add.reduceat(weight * deviation**2, first) / mass


def batches(grids: list[Unit], max_components: int) -> Iterator[list[int]]:
    """Yield batches of units of equal length that fit the cache."""
    lengths = np.array([g.length for g in grids], dtype=int)
    for n in np.unique(lengths):
        index, size = np.flatnonzero(lengths == n).tolist(), max(1, BATCH // (int(n) * max_components))
        yield from (index[a : a + size] for a in range(0, len(index), size))


class ByUnit:
    """A dataclass of arrays whose first axis is the unit."""

    def take(self, index: np.ndarray) -> Self:
        """Return a copy of these units."""
        parts = (getattr(self, f.name) for f in fields(self))  # type: ignore[arg-type]
        return type(self)(*(part[index] if isinstance(part, np.ndarray) else part for part in parts))


@dataclass(frozen=True)
class Grid(ByUnit):
    """Several units, padded with weight zero: a source of the driver, and its only block."""

    x: Array  # (U, n)
    weight: Array  # (U, n)
    spread: Array | None  # (U, n) variance within bins; None without bins
    floor: Array  # (U,)
    repeats: Array  # (U,)
    total: Array  # (U,) weight of each unit

    @classmethod
    def of(cls, units: list[Unit]) -> Grid:
        n = max(u.length for u in units)
        x = np.stack([np.pad(u.x, (0, n - len(u.x)), "edge") for u in units])
        weight, spread = (
            np.stack([np.pad(part, (0, n - len(part))) for part in parts])
            for parts in ([u.weight for u in units], [u.spread for u in units])
        )
        floor, repeats = np.array([(u.floor, u.repeats) for u in units]).T
        return cls(x, weight, spread if spread.any() else None, floor, repeats, weight.sum(axis=1))

    @property
    def n_rows(self) -> int:
        return self.x.size

    @property
    def total_weight(self) -> float:
        return float(self.total.sum())

    def __len__(self) -> int:
        return 1

    def __getitem__(self, i: int) -> Any:  # the type that the problem reads
        return self
