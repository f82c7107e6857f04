"""Encoding of tables with categories and missing values as the numeric matrices that other libraries require."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixent.core.arrays import Array
from mixent.data import Schema, Table
from mixent.show import Short

ENCODINGS = ("bits", "codes")


@dataclass(frozen=True, repr=False)
class ColumnEncoding(Short):
    """Encoding of columns as numbers, fitted to all training rows (including those that a grid search holds out).

    "bits": standardized numbers with missing values at the mean, one-hot categories, and an indicator for each column
    with missing values in training. "codes": unchanged numbers, then categories as codes 0, 1, ...; missing values and
    unseen categories are NaN.
    """

    encoding: str
    schema: Schema
    mean: Array  # (d,) of the numeric columns
    scale: Array  # (d,)
    has_missing: np.ndarray  # (d + m,) bool: columns with missing values in training; numeric columns first

    @classmethod
    def of(cls, encoding: str, table: Table, weight: Array) -> ColumnEncoding:
        """Fit to rows of positive weight."""
        observed = ~np.isnan(table.X)
        mass = np.maximum(weight @ observed, 1e-300)
        mean = weight @ np.where(observed, table.X, 0.0) / mass
        std = np.sqrt(weight @ np.where(observed, table.X - mean, 0.0) ** 2 / mass)
        codes = _codes(table)
        has_missing = np.concatenate([~observed.all(axis=0), (codes < 0).any(axis=0)])
        return cls(encoding, table.schema, mean, np.where(std > 0, std, 1.0), has_missing)

    def __call__(self, table: Table) -> Array:
        """(n, p) matrix of numbers."""
        codes = _codes(table)
        if self.encoding == "codes":
            return np.hstack([table.X, np.where(codes < 0, np.nan, codes)])
        absent = np.hstack([np.isnan(table.X), codes < 0])[:, self.has_missing]
        numbers = np.where(np.isnan(table.X), 0.0, (table.X - self.mean) / self.scale)
        bits = [np.equal.outer(column, np.arange(k)) for column, k in zip(codes.T, self.schema.sizes)]
        return np.hstack([numbers, *bits, absent]).astype(float)

    @property
    def names(self) -> list[str]:
        """(p,) names of the encoded columns."""
        schema = self.schema
        columns = [schema.columns[j] for j in (*schema.continuous, *schema.categorical)]
        if self.encoding == "codes":
            return [column.name for column in columns]
        numbers = [column.name for column in columns[: len(self.mean)]]
        bits = [f"{column.name} = {value}" for column in columns[len(self.mean) :] for value in column.categories]
        indicators = (f"{column.name} missing" for column, missing in zip(columns, self.has_missing) if missing)
        return [*numbers, *bits, *indicators]

    @property
    def coded(self) -> np.ndarray:
        """(p,) bool: the columns of "codes" that are categories."""
        return np.arange(len(self.has_missing)) >= len(self.mean)


def _codes(table: Table) -> np.ndarray:
    return np.zeros((table.n_rows, 0), dtype=int) if table.codes is None else table.codes
