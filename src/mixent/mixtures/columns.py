"""Columns compressed to weighted grids, and the mixture of one column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from mixent.core.arrays import Array, log_sum_exp, safe_log, softmax_columns

MOST = 2048  # grid points of a unit
ROWS_PER_COMPONENT = 5
STARVED = 1e-6  # share of the weight below which a component is none
BATCH = 1 << 17  # numbers in a work array: they stay in the cache
FAR = 1e6  # standard deviations beyond which a row counts as that far out
LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class ColumnMixture:
    """A mixture of one column."""

    weights: Array  # (K,)
    means: Array  # (K,)
    variances: Array  # (K,)

    def log_joint(self, x: Array) -> Array:
        """log p_k + log N(x_n; m_k, v_k), (K, n); finite however far out x is."""
        with np.errstate(over="ignore"):
            away = (x - self.means[:, None]) / np.sqrt(self.variances)[:, None]
        np.clip(away, -1e150, 1e150, out=away)  # its square is still a number
        return (safe_log(self.weights) - 0.5 * (np.log(self.variances) + LOG_2PI))[:, None] - 0.5 * away**2

    def responsibilities(self, x: Array) -> Array:
        """p(k | x_n), (K, n); far out, those of the point as far out at which the components still differ."""
        reach = FAR * float(np.sqrt(self.variances.max()))
        resp = self.log_joint(np.clip(x, self.means.min() - reach, self.means.max() + reach))
        softmax_columns(resp)
        return resp

    def log_density(self, x: Array) -> Array:
        """log p(x_n), (n,)."""
        return log_sum_exp(self.log_joint(x), axis=0)


@dataclass(frozen=True)
class Unit:
    """A column compressed: mean 0, variance 1."""

    x: Array  # (n,) rising
    weight: Array  # (n,)
    spread: Array  # (n,) variance within each bin
    floor: float = 1.0  # of variances
    repeats: float = 1.0  # how much heavier the heaviest distinct value is than the average one
    center: float = 0.0
    scale: float = 1.0  # negative: mirrored

    @property
    def length(self) -> int:
        """Padded: a power of two or one and a half; of this unit alone, so that no other changes how its sums run."""
        n = max(len(self.x), 32)
        size = 1 << (n - 1).bit_length()
        return 3 * size // 4 if n <= 3 * size // 4 else size

    def most_components(self, limit: int) -> int:
        """How many to try; none where a single value (or nothing) leaves no choice."""
        if len(self.x) == 1:
            return 0
        return max(1, min(limit, len(self.x), int(self.weight.sum() / ROWS_PER_COMPONENT)))

    def restore(self, weights: Array, means: Array, variances: Array) -> ColumnMixture:
        """The mixture in the column's own units, starved components left out."""
        alive = weights > STARVED
        weights, means, variances = weights[alive], means[alive], variances[alive]
        values = self.center + self.scale * means
        variances = np.maximum(variances * min(abs(self.scale), 1e140) ** 2, 1e-300)  # a number, and positive
        order = np.argsort(values, kind="stable")
        return ColumnMixture(weights[order] / weights.sum(), values[order], variances[order])


def compress(x: Array, weight: Array | None) -> Unit:
    """Distinct values with their weights, or bins of them."""
    keep = ~np.isnan(x) if weight is None else ~np.isnan(x) & (weight > 0)
    if not keep.any():
        return Unit(np.zeros(1), np.zeros(1), np.zeros(1))
    values, which = np.unique(x[keep], return_inverse=True)
    mass = np.bincount(which, None if weight is None else weight[keep]).astype(float)
    low, size = float(values[0]), float(values[-1] - values[0])
    if size <= 1e-14 * np.abs(values).max():
        # a constant has no scale of its own: one unit in the size of its values
        return Unit(np.zeros(1), mass[:1], np.zeros(1), center=low, scale=1e-6 * max(abs(low), 1.0))
    z = (values - low) / size  # before squares are taken, which may overflow
    share = mass / mass.sum()
    mean = float(share @ z)
    z -= mean
    std = float(np.sqrt(share @ z**2))
    z /= std
    if share @ z**3 < 0:  # the longer tail to the right: a mirrored column has the mirrored mixture
        z, mass, std = -z[::-1], mass[::-1], -std
    # values are rounded to multiples of the gap: at this variance a component on one value is as dense as the cell the
    # value stands for. At gap^2 / 12, the cell's own variance, it is 1.4 times as dense and BIC buys one for each value
    floor = max(float(np.diff(z).min()) ** 2 / (2 * np.pi), 1e-16)
    return Unit(*_binned(z, mass), floor, float(share.max() * len(z)), low + mean * size, std * size)


def _binned(x: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Means, weights and variances of bins, half of them of equal weight and half of equal width."""
    if len(x) <= MOST:
        return x, weight, np.zeros(len(x))
    share = np.cumsum(weight) - 0.5 * weight
    place = 0.5 * share / weight.sum() + 0.5 * (x - x[0]) / (x[-1] - x[0])
    cell = np.minimum((MOST * place).astype(int), MOST - 1)
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    mass = np.add.reduceat(weight, first)
    mean = np.add.reduceat(weight * x, first) / mass
    away = x - np.repeat(mean, np.diff(first, append=len(x)))
    return mean, mass, np.add.reduceat(weight * away**2, first) / mass


def batches(grids: list[Unit], max_components: int) -> Iterator[list[int]]:
    """Units of one length together, as many as the cache holds."""
    lengths = np.array([g.length for g in grids], dtype=int)
    for n in np.unique(lengths):
        index, most = np.flatnonzero(lengths == n).tolist(), max(1, BATCH // (int(n) * max_components))
        yield from (index[a : a + most] for a in range(0, len(index), most))


class ByUnit:
    """A dataclass of arrays whose first axis is the unit."""

    def take(self, index: np.ndarray) -> Self:
        """These units, copied."""
        parts = (getattr(self, f.name) for f in fields(self))  # type: ignore[arg-type]
        return type(self)(*(part[index] if isinstance(part, np.ndarray) else part for part in parts))


@dataclass(frozen=True)
class Grid(ByUnit):
    """Units side by side, padded with weight zero: the driver's source, and its only block."""

    x: Array  # (U, n)
    weight: Array  # (U, n)
    spread: Array | None  # (U, n); None: no bins
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

    def __getitem__(self, i: int) -> Any:  # to the driver a block is whatever its problem reads
        return self
