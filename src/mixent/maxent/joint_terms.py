"""Columns of a table as cells of the joint model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.data import Table
from mixent.maxent.joint_problem import Rows, spans_of
from mixent.mixtures.columns import ColumnMixture
from mixent.mixtures.univariate import fit_columns


@dataclass(frozen=True)
class Category:
    """A discrete column: one cell for each of its values."""

    name: str
    place: int  # among Table.codes
    values: tuple

    discrete = True

    def cells(self, table: Table) -> Array:
        assert table.codes is not None
        return np.equal(table.codes[:, self.place], np.arange(len(self.values))[:, None]).astype(float)


@dataclass(frozen=True)
class Hidden:
    """A continuous column: the hidden component of its mixture, P[M = j | a], as a probabilistic instance."""

    name: str
    place: int  # among Table.X
    mixture: ColumnMixture

    discrete = False

    @property
    def values(self) -> tuple:
        return tuple(self.mixture.means.tolist())

    def cells(self, table: Table) -> Array:
        x = table.X[:, self.place]
        seen = ~np.isnan(x)
        out = np.zeros((len(self.mixture.means), len(x)))
        out[:, seen] = self.mixture.responsibilities(x[seen])
        return out


@dataclass(frozen=True)
class Constant:
    """A column with a single value: it is not informative and has no cell."""

    name: str
    place: int  # among Table.codes if discrete, else among Table.X
    value: Any
    discrete: bool

    @property
    def values(self) -> tuple:
        return (self.value,)


Term = Category | Hidden | Constant


def read_terms(table: Table, weight: Array | None, max_components: int, seed: int) -> tuple[Term, ...]:
    """What stands for each column, in the order of the table."""
    found: dict[int, Term] = {}
    waiting: dict[int, tuple[str, int, Array, Array | None]] = {}
    for place, j in enumerate(table.schema.categorical):
        column = table.schema.columns[j]
        several = len(column.categories) > 1
        found[j] = (
            Category(column.name, place, column.categories)
            if several
            else Constant(column.name, place, column.categories[0], True)
        )
    for place, j in enumerate(table.schema.continuous):
        name, x = table.schema.names[j], table.X[:, place]
        used = ~np.isnan(x) if weight is None else ~np.isnan(x) & (weight > 0)
        low, high = np.min(x[used], initial=np.inf), np.max(x[used], initial=-np.inf)
        if high - low > 1e-15 * max(abs(low), abs(high)):
            waiting[j] = name, place, x[used], None if weight is None else weight[used]
        else:
            found[j] = Constant(name, place, float(low) if used.any() else float("nan"), False)
    mixtures = fit_columns([(x, w) for _, _, x, w in waiting.values()], max_components, seed=seed) if waiting else []
    for (j, (name, place, _, _)), mixture in zip(waiting.items(), mixtures):
        found[j] = Hidden(name, place, _cut(mixture))
    return tuple(found[j] for j in range(len(table.schema.columns)))


PARTS = {1: np.array([-1.0, 0.0, 1.0]), 2: np.array([-0.8, 0.8])}  # means of parts, in standard deviations


def _cut(mixture: ColumnMixture) -> ColumnMixture:
    """One or two components locate a value too coarsely: each is cut into parts that overlap.

    The parts of a component have equal weights, and together its mean and variance.
    """
    at = PARTS.get(len(mixture.means))
    if at is None:
        return mixture
    means = (mixture.means[:, None] + np.sqrt(mixture.variances)[:, None] * at).ravel()
    variances = np.repeat((1.0 - (at**2).mean()) * mixture.variances, len(at))
    order = np.argsort(means, kind="stable")
    return ColumnMixture(np.repeat(mixture.weights / len(at), len(at))[order], means[order], variances[order])


@dataclass(frozen=True)
class Layout:
    """Which columns have cells, and where they stand."""

    terms: tuple[Term, ...]

    @property
    def speaking(self) -> tuple[int, ...]:
        """Positions of the columns that have cells."""
        return tuple(j for j, term in enumerate(self.terms) if not isinstance(term, Constant))

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(self.terms[j].values) for j in self.speaking)

    @property
    def spans(self) -> dict[int, slice]:
        """Cells of each column that has some, by its position."""
        return dict(zip(self.speaking, spans_of(self.sizes)))

    def rows(self, table: Table, weight: Array | None = None) -> Rows:
        n, spans = table.n_rows, self.spans
        phi, present = np.empty((sum(self.sizes), n)), np.empty((len(spans), n), dtype=bool)
        for m, (j, span) in enumerate(spans.items()):
            term = self.terms[j]
            assert not isinstance(term, Constant)
            phi[span] = term.cells(table)
            present[m] = phi[span].any(axis=0)
        return Rows(phi, present, np.ones(n) if weight is None else weight)
