"""Columns as the cells of pairwise tables: categories, soft quantization of numbers, or their powers."""

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

NEVER = 1e300  # scale of a constant column: whatever value comes, it says nothing
COMPONENTS = 6  # most of a column within a class
MOST_CELLS = 4000  # pairwise tables are square in them
MOST_VERTICES = 300  # a tree's edges take as many numbers as vertices, each: a gigabyte and a half


@dataclass(frozen=True)
class CodedColumn:
    """A category's cell is 1, the others 0; all are 0 where it is missing."""

    place: int  # among the categorical columns
    size: int

    def cells(self, table: Table) -> Array:
        """(n, size)."""
        assert table.codes is not None
        return (table.codes[:, self.place, None] == np.arange(self.size)).astype(float)


@dataclass(frozen=True)
class SoftColumn:
    """A number's cells are its probabilities under the components of a mixture: a probabilistic instance."""

    place: int  # among the continuous columns
    mixture: ColumnMixture

    @property
    def size(self) -> int:
        return len(self.mixture.weights)

    def cells(self, table: Table) -> Array:
        x = table.X[:, self.place]
        seen = ~np.isnan(x)
        out = np.zeros((len(x), self.size))
        out[seen] = self.mixture.responsibilities(x[seen]).T
        return out

    def log_density(self, table: Table, cells: Array) -> Array:
        """(n,) E log p(x | component) + H(components), the part of the bound that no table has."""
        x = table.X[:, self.place]
        seen = ~np.isnan(x)
        out = np.zeros(len(x))
        p, v = self.mixture.weights, self.mixture.variances
        out[~seen] = -0.5 * p @ np.log(2 * np.pi * np.e * v)  # what a number has on average
        given = self.mixture.log_joint(x[seen]).T - safe_log(self.mixture.weights)
        own = cells[seen]
        out[seen] = (own * given).sum(axis=1) - xlogy(own, own).sum(axis=1)
        return out


@dataclass(frozen=True)
class PowersColumn:
    """A number's cells are (1, z, z^2), z standardized; all are 0 where it is missing."""

    place: int
    center: float
    scale: float
    size: int = 3

    def cells(self, table: Table) -> Array:
        x = table.X[:, self.place]
        z = np.nan_to_num((x - self.center) / self.scale)
        return np.column_stack([np.where(np.isnan(x), 0.0, 1.0), z, z**2])


@dataclass(frozen=True)
class TreeColumns:
    """All columns, in the table's order."""

    columns: tuple[Any, ...]
    names: tuple[str, ...]
    fill: tuple[Array, ...] | None  # what stands for a gap in each column; None: nothing

    @cached_property
    def layout(self) -> CellLayout:
        return CellLayout(tuple(column.size for column in self.columns))

    @cached_property
    def powers(self) -> np.ndarray:
        """Positions of the columns whose cells are powers."""
        return np.array([v for v, column in enumerate(self.columns) if isinstance(column, PowersColumn)], dtype=np.intp)

    def __call__(self, table: Table) -> Array:
        """(n, R)."""
        parts = [column.cells(table) for column in self.columns]
        if self.fill is not None:
            for part, fill in zip(parts, self.fill):
                part[part.sum(axis=1) == 0] = fill
        return np.concatenate(parts, axis=1)

    @classmethod
    def of(cls, table: Table, member: Array, weight: Array, continuous: str, fill: bool, spare: int = 0) -> TreeColumns:
        """Learned from these rows, for tables of every pair; `member` (n, C) is each row's weight in each class."""
        out = cls.read(table, member, weight, continuous, spare)
        if out.layout.n > MOST_VERTICES:
            raise ValueError(
                f"{out.layout.n} columns have {n_edges(out.layout.n)} pairs, and trees take at most {MOST_VERTICES} "
                f"columns; choose columns"
            )
        if out.layout.n_cells > MOST_CELLS:
            raise ValueError(
                f"the columns have {out.layout.n_cells} values in all, and pairwise tables take at most {MOST_CELLS}; "
                f"join rare categories, or leave columns out"
            )
        return cls(out.columns, out.names, out._shares(table, weight)) if fill else out

    @classmethod
    def read(cls, table: Table, member: Array, weight: Array, continuous: str, spare: int = 0) -> TreeColumns:
        """However many values there are; nothing stands for a gap.

        A category has `spare` cells more than values: where those not seen before are to be told apart.
        """
        schema = table.schema
        numbers = {j: place for place, j in enumerate(schema.continuous)}
        codes = {j: place for place, j in enumerate(schema.categorical)}
        made = _powers(table.X, weight) if continuous == "gaussian" else _softly(table.X, member)
        columns = tuple(
            made[numbers[j]] if j in numbers else CodedColumn(codes[j], schema.sizes[codes[j]] + spare)
            for j in range(len(schema.columns))
        )
        return cls(columns, schema.names, None)

    def log_density(self, table: Table, cells: Array) -> Array:
        """(n,) of the numbers, given their cells (n, R)."""
        out = np.zeros(table.n_rows)
        for start, column in zip(self.layout.starts, self.columns):
            if isinstance(column, SoftColumn):
                out += column.log_density(table, cells[:, start : start + column.size])
        return out

    def _shares(self, table: Table, weight: Array) -> tuple[Array, ...]:
        """How frequent each value is, over all classes."""
        shares = [weight @ column.cells(table) + 1e-9 for column in self.columns]
        return tuple(share / share.sum() for share in shares)


def _powers(X: Array, weight: Array) -> list[PowersColumn]:
    out = []
    for place, x in enumerate(X.T):
        seen = ~np.isnan(x) & (weight > 0)
        x, w = x[seen], weight[seen]
        center = float(np.average(x, weights=w)) if len(x) else 0.0
        scale = float(np.sqrt(np.average((x - center) ** 2, weights=w))) if len(x) else 1.0
        sound = scale > 1e-12 * (abs(center) + 1e-300)
        out.append(PowersColumn(place, center, scale if sound else NEVER))
    return out


def _softly(X: Array, member: Array) -> list[SoftColumn]:
    """The union of each class's own mixture: what tells classes apart is not lost."""
    units: list[tuple[Array, Array | None]] = []
    for x in X.T:
        for own in member.T:
            seen = ~np.isnan(x) & (own > 0)
            units.append((x[seen], own[seen]))
    mixtures = fit_columns(units, COMPONENTS) if units else []
    C = member.shape[1]
    return [
        SoftColumn(place, _union(mixtures[place * C : (place + 1) * C], [u[1] for u in units[place * C :][:C]]))
        for place in range(X.shape[1])
    ]


def _union(mixtures: Sequence[ColumnMixture], weights: Sequence[Array | None]) -> ColumnMixture:
    shares = np.array([0.0 if w is None or not len(w) else float(w.sum()) for w in weights])
    if not shares.any():  # nothing was seen
        return ColumnMixture(np.ones(1), np.zeros(1), np.ones(1))
    some = [(m, s) for m, s in zip(mixtures, shares / shares.sum()) if s > 0]
    parts = [np.concatenate(part) for part in zip(*((m.weights * s, m.means, m.variances) for m, s in some))]
    order = np.argsort(parts[1], kind="stable")
    return ColumnMixture(*(part[order] for part in parts))
