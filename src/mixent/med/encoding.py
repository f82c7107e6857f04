"""From a table to the numbers a kernel sees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixent.core.arrays import Array
from mixent.data import Schema, Table

FILLED = "a number is replaced by its mean, with an indicator column"
FAR = 1e8  # ratio of the columns' spreads beyond which an unscaled kernel sees one column only


@dataclass(frozen=True)
class Encoder:
    """Continuous columns scaled (a gap is the mean, and says so in a column of its own), categories one bit each."""

    center: Array  # (d,)
    scale: Array  # (d,)
    gaps: np.ndarray  # positions among the continuous columns of those that had gaps at fit
    sizes: tuple[int, ...]  # categories of each categorical column
    names: tuple[str, ...]

    @classmethod
    def of(cls, table: Table, weight: Array, standardize: bool) -> Encoder:
        """Learned from these rows."""
        X = table.X
        seen = ~np.isnan(X)
        mass = np.maximum(weight @ seen, 1e-300)
        center = weight @ np.where(seen, X, 0.0) / mass
        spread = np.sqrt(weight @ np.where(seen, (X - center) ** 2, 0.0) / mass)
        scale = np.where(spread > 1e-12 * (np.abs(center) + 1e-300), spread, 1.0)  # a constant column stays zero
        if not standardize:
            _check_spread(spread, table.schema)
            center, scale = np.zeros_like(center), np.ones_like(scale)
        gaps = np.flatnonzero((~seen & (weight > 0)[:, None]).any(axis=0))
        return cls(center, scale, gaps, table.schema.sizes, _names(table.schema, gaps))

    def __call__(self, table: Table) -> Array:
        """(n, width)."""
        missing = np.isnan(table.X)
        parts = [np.where(missing, 0.0, (table.X - self.center) / self.scale), missing[:, self.gaps].astype(float)]
        for place, size in enumerate(self.sizes):
            assert table.codes is not None
            parts.append((table.codes[:, place, None] == np.arange(size)).astype(float))  # a gap has no bit
        return np.concatenate(parts, axis=1)


def _names(schema: Schema, gaps: np.ndarray) -> tuple[str, ...]:
    numbers = [schema.columns[j].name for j in schema.continuous]
    bits = [f"{schema.columns[j].name} = {value}" for j in schema.categorical for value in schema.columns[j].categories]
    return (*numbers, *(f"{numbers[p]} is missing" for p in gaps), *bits)


def _check_spread(spread: Array, schema: Schema) -> None:
    some = spread[spread > 0]
    if len(some) and some.max() > FAR * some.min():
        names = [schema.columns[j].name for j in schema.continuous]
        raise ValueError(
            f"column {names[int(spread.argmax())]!r} varies by {spread.max():.3g}, column "
            f"{names[int(np.where(spread > 0, spread, np.inf).argmin())]!r} by {some.min():.3g}: the kernel "
            f"would depend on the first alone; scale the columns, or set standardize=True"
        )
