"""Any table as the plain matrix that other libraries ask for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixent.core.arrays import Array
from mixent.data import Schema, Table

ENCODINGS = ("bits", "codes")


@dataclass(frozen=True)
class ColumnEncoding:
    """How columns become numbers, learned from the training rows (also those that a search of settings holds out).

    "bits": numbers at mean 0 and variance 1, missing ones at the mean; a bit for each category; a bit for each column
    with missing values in training. "codes": numbers as they are, then categories as codes 0, 1, ...; missing values
    and unseen categories are NaN.
    """

    encoding: str
    schema: Schema
    mean: Array  # (d,) of the columns kept as numbers
    scale: Array  # (d,)
    gaps: np.ndarray  # (d + m,) bool: numbers first, then categories

    @classmethod
    def of(cls, encoding: str, table: Table, weight: Array) -> ColumnEncoding:
        """Learn from rows of positive weight."""
        there = ~np.isnan(table.X)
        mass = np.maximum(weight @ there, 1e-300)
        mean = weight @ np.where(there, table.X, 0.0) / mass
        spread = np.sqrt(weight @ np.where(there, table.X - mean, 0.0) ** 2 / mass)
        codes = _codes(table)
        gaps = np.concatenate([~there.all(axis=0), (codes < 0).any(axis=0)])
        return cls(encoding, table.schema, mean, np.where(spread > 0, spread, 1.0), gaps)

    def __call__(self, table: Table) -> Array:
        """(n, p) numbers."""
        codes = _codes(table)
        if self.encoding == "codes":
            return np.hstack([table.X, np.where(codes < 0, np.nan, codes)])
        absent = np.hstack([np.isnan(table.X), codes < 0])[:, self.gaps]
        numbers = np.where(np.isnan(table.X), 0.0, (table.X - self.mean) / self.scale)
        bits = [np.equal.outer(column, np.arange(k)) for column, k in zip(codes.T, self.schema.sizes)]
        return np.hstack([numbers, *bits, absent]).astype(float)

    @property
    def names(self) -> list[str]:
        """(p,) of the encoded columns."""
        schema = self.schema
        columns = [schema.columns[j] for j in (*schema.continuous, *schema.categorical)]
        if self.encoding == "codes":
            return [column.name for column in columns]
        numbers = [column.name for column in columns[: len(self.mean)]]
        bits = [f"{column.name} = {value}" for column in columns[len(self.mean) :] for value in column.categories]
        return [*numbers, *bits, *(f"{column.name} missing" for column, gap in zip(columns, self.gaps) if gap)]

    @property
    def coded(self) -> np.ndarray:
        """(p,) bool: which columns of "codes" are categories."""
        return np.arange(len(self.gaps)) >= len(self.mean)


def _codes(table: Table) -> np.ndarray:
    return np.zeros((table.n_rows, 0), dtype=int) if table.codes is None else table.codes
