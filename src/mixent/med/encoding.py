"""Encoding of a table as a numeric matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixent.core.arrays import Array
from mixent.data import Schema, Table
from mixent.show import Short

FILLED = "a number is replaced by its mean, with an indicator column"
MAX_RATIO = 1e8  # of standard deviations; beyond it an unscaled kernel depends on one column only


@dataclass(frozen=True, repr=False)
class Encoder(Short):
    """Scaled continuous columns, indicator columns of their missing values, and one-hot encoded categories.

    A missing number is replaced by the mean; a missing category has only zeros.
    """

    center: Array  # (d,)
    scale: Array  # (d,)
    with_missing: np.ndarray  # positions among the continuous columns of those with missing values in the training rows
    sizes: tuple[int, ...]  # number of categories of each categorical column
    names: tuple[str, ...]

    @classmethod
    def of(cls, table: Table, weight: Array, standardize: bool) -> Encoder:
        """The encoder fitted to these rows."""
        X, missing = table.X, np.isnan(table.X)
        mass = np.maximum(weight @ ~missing, 1e-300)
        center = weight @ _filled(X, missing) / mass
        spread = np.sqrt(weight @ _filled((X - center) ** 2, missing) / mass)
        scale = np.where(spread > 1e-12 * (np.abs(center) + 1e-300), spread, 1.0)  # a constant column becomes zero
        if not standardize:
            _check_spread(spread, table.schema)
            center, scale = np.zeros_like(center), np.ones_like(scale)
        with_missing = np.flatnonzero((weight > 0.0).astype(float) @ missing)
        return cls(center, scale, with_missing, table.schema.sizes, _names(table.schema, with_missing))

    def owners(self, schema: Schema) -> np.ndarray:
        """(width,) for each encoded column, the position of the column of the user's table that it comes from."""
        numbers = schema.owners[list(schema.continuous)]
        return np.concatenate(
            [numbers, numbers[self.with_missing], np.repeat(schema.owners[list(schema.categorical)], self.sizes)]
        ).astype(int)

    def __call__(self, table: Table) -> Array:
        """(n, width) the encoded rows."""
        missing = np.isnan(table.X)
        numbers = _filled((table.X - self.center) / self.scale, missing)
        parts = [numbers, missing[:, self.with_missing].astype(float)]
        for j, size in enumerate(self.sizes):
            assert table.codes is not None
            parts.append((table.codes[:, j, None] == np.arange(size)).astype(float))  # a missing code is -1
        return np.concatenate(parts, axis=1)


def _filled(X: Array, missing: np.ndarray) -> Array:
    """Zeros in place of missing values."""
    return np.where(missing, 0.0, X) if missing.any() else X


def _names(schema: Schema, with_missing: np.ndarray) -> tuple[str, ...]:
    numbers = [schema.columns[j].name for j in schema.continuous]
    bits = [f"{schema.columns[j].name} = {value}" for j in schema.categorical for value in schema.columns[j].categories]
    return (*numbers, *(f"{numbers[p]} is missing" for p in with_missing), *bits)


def _check_spread(spread: Array, schema: Schema) -> None:
    positive = spread[spread > 0]
    if len(positive) and positive.max() > MAX_RATIO * positive.min():
        names = [schema.columns[j].name for j in schema.continuous]
        raise ValueError(
            f"column {names[int(spread.argmax())]!r} has a standard deviation of {spread.max():.3g}, column "
            f"{names[int(np.where(spread > 0, spread, np.inf).argmin())]!r} one of {positive.min():.3g}: the kernel "
            f"would depend on the first alone; scale the columns, or set standardize=True"
        )
