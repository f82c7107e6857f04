"""Columns as cells of pairwise tables: indicators of categories, soft quantization of numbers, or powers of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import xlogy

from mixent.core.arrays import Array, safe_log
from mixent.data import Table
from mixent.med.families import CellLayout
from mixent.med.spanning_trees import n_edges
from mixent.mixtures.columns import ColumnMixture
from mixent.mixtures.univariate import fit_columns

IGNORED = 1e300  # scale of a constant column, which makes all its values zero
MAX_COMPONENTS = 6  # of the mixture of a column within a class
MAX_POINTS = 128  # bins of a column within a class, which change its mixture's likelihood by some 1e-5 nats a row
MAX_CELLS = 4000  # the size of the pairwise tables is quadratic in their number
MAX_VERTICES = 300  # a step takes time that is cubic in their number


@dataclass(frozen=True)
class CodedColumn:
    """One-hot encoding of a category; all cells are 0 where it is missing."""

    position: int  # among the categorical columns
    size: int

    def cells(self, table: Table) -> Array:
        """(n, size) the cells of each row."""
        assert table.codes is not None
        return (table.codes[:, self.position, None] == np.arange(self.size)).astype(float)


@dataclass(frozen=True)
class SoftColumn:
    """Soft quantization of a number: its cells are the responsibilities of the components of a mixture."""

    position: int  # among the continuous columns
    mixture: ColumnMixture

    @property
    def size(self) -> int:
        return len(self.mixture.weights)

    def cells(self, table: Table) -> Array:
        x = table.X[:, self.position]
        observed = ~np.isnan(x)
        out = np.zeros((len(x), self.size))
        out[observed] = self.mixture.responsibilities(x[observed]).T
        return out

    def log_density(self, table: Table, cells: Array) -> Array:
        """(n,) E log p(x | component) + H(components), the part of the lower bound that no table contains."""
        x = table.X[:, self.position]
        observed = ~np.isnan(x)
        out = np.zeros(len(x))
        p, v = self.mixture.weights, self.mixture.variances
        out[~observed] = -0.5 * p @ np.log(2 * np.pi * np.e * v)  # the average of a missing number
        log_density = self.mixture.log_joint(x[observed]).T - safe_log(self.mixture.weights)
        resp = cells[observed]
        out[observed] = (resp * log_density).sum(axis=1) - xlogy(resp, resp).sum(axis=1)
        return out


@dataclass(frozen=True)
class PowersColumn:
    """Powers of a number: its cells are (1, z, z^2), z standardized; all are 0 where it is missing."""

    position: int
    center: float
    scale: float
    size: int = 3

    def cells(self, table: Table) -> Array:
        x = table.X[:, self.position]
        z = np.nan_to_num((x - self.center) / self.scale)
        return np.column_stack([np.where(np.isnan(x), 0.0, 1.0), z, z**2])


@dataclass(frozen=True)
class TreeColumns:
    """The cells of all columns, in the order of the table."""

    columns: tuple[Any, ...]
    names: tuple[str, ...]
    fill: tuple[Array, ...] | None  # cells of a missing value in each column; None: zeros

    @cached_property
    def layout(self) -> CellLayout:
        return CellLayout(tuple(column.size for column in self.columns))

    @cached_property
    def powers(self) -> np.ndarray:
        """Positions of the columns whose cells are powers."""
        return np.array([v for v, column in enumerate(self.columns) if isinstance(column, PowersColumn)], dtype=np.intp)

    def __call__(self, table: Table) -> Array:
        """(n, R) the cells of each row."""
        parts = [column.cells(table) for column in self.columns]
        if self.fill is not None:
            for part, fill in zip(parts, self.fill):
                part[part.sum(axis=1) == 0] = fill
        return np.concatenate(parts, axis=1)

    @classmethod
    def of(cls, table: Table, member: Array, weight: Array, continuous: str, fill: bool, spare: int = 0) -> TreeColumns:
        """Fitted to these rows, for tables of all pairs; `member` (n, C) is the weight of each row in each class."""
        out = cls.read(table, member, weight, continuous, spare)
        if out.layout.n > MAX_VERTICES:
            raise ValueError(
                f"trees allow at most {MAX_VERTICES} columns; got {out.layout.n}, with {n_edges(out.layout.n)} pairs. "
                f"Select columns"
            )
        if out.layout.n_cells > MAX_CELLS:
            raise ValueError(
                f"pairwise tables allow at most {MAX_CELLS} values over all columns; got {out.layout.n_cells}. "
                f"Merge rare categories, or drop columns"
            )
        return cls(out.columns, out.names, out._shares(table, weight)) if fill else out

    @classmethod
    def read(cls, table: Table, member: Array, weight: Array, continuous: str, spare: int = 0) -> TreeColumns:
        """Fitted to these rows, without a limit on the number of values; the cells of missing values are zeros.

        A category has `spare` more cells than values, for values that do not occur in the training rows.
        """
        schema = table.schema
        numbers = {j: position for position, j in enumerate(schema.continuous)}
        codes = {j: position for position, j in enumerate(schema.categorical)}
        numeric = _powers(table.X, weight) if continuous == "gaussian" else _quantized(table.X, member)
        columns = tuple(
            numeric[numbers[j]] if j in numbers else CodedColumn(codes[j], schema.sizes[codes[j]] + spare)
            for j in range(len(schema.columns))
        )
        return cls(columns, schema.names, None)

    def log_density(self, table: Table, cells: Array) -> Array:
        """(n,) sum of the log-densities of all softly quantized numbers, given their cells (n, R)."""
        out = np.zeros(table.n_rows)
        for start, column in zip(self.layout.starts, self.columns):
            if isinstance(column, SoftColumn):
                out += column.log_density(table, cells[:, start : start + column.size])
        return out

    def _shares(self, table: Table, weight: Array) -> tuple[Array, ...]:
        """Relative frequencies of the values of each column, over all classes."""
        shares = [weight @ column.cells(table) + 1e-9 for column in self.columns]
        return tuple(share / share.sum() for share in shares)


def _powers(X: Array, weight: Array) -> list[PowersColumn]:
    out = []
    for position, x in enumerate(X.T):
        observed = ~np.isnan(x) & (weight > 0)
        x, w = x[observed], weight[observed]
        center = float(np.average(x, weights=w)) if len(x) else 0.0
        scale = float(np.sqrt(np.average((x - center) ** 2, weights=w))) if len(x) else 1.0
        varies = scale > 1e-12 * (abs(center) + 1e-300)
        out.append(PowersColumn(position, center, scale if varies else IGNORED))
    return out


def _quantized(X: Array, member: Array) -> list[SoftColumn]:
    """Each column with the components of one mixture per class, so that differences between classes are preserved."""
    samples: list[tuple[Array, Array | None]] = []
    for x in X.T:
        for weight in member.T:
            used = ~np.isnan(x) & (weight > 0)
            samples.append((x[used], weight[used]))
    mixtures = fit_columns(samples, MAX_COMPONENTS, max_points=MAX_POINTS) if samples else []
    C = member.shape[1]
    return [
        SoftColumn(j, _union(mixtures[j * C : (j + 1) * C], [weight for _, weight in samples[j * C : (j + 1) * C]]))
        for j in range(X.shape[1])
    ]


def _union(mixtures: Sequence[ColumnMixture], weights: Sequence[Array | None]) -> ColumnMixture:
    shares = np.array([0.0 if w is None or not len(w) else float(w.sum()) for w in weights])
    if not shares.any():  # all values are missing
        return ColumnMixture(np.ones(1), np.zeros(1), np.ones(1))
    used = [(m, s) for m, s in zip(mixtures, shares / shares.sum()) if s > 0]
    parts = [np.concatenate(part) for part in zip(*((m.weights * s, m.means, m.variances) for m, s in used))]
    order = np.argsort(parts[1], kind="stable")
    return ColumnMixture(*(part[order] for part in parts))
