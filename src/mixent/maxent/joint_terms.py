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
from mixent.show import Short


@dataclass(frozen=True, repr=False)
class Category(Short):
    """A discrete column: one cell for each of its values."""

    name: str
    column: int  # position in Table.codes
    values: tuple

    discrete = True

    def cells(self, table: Table) -> Array:
        assert table.codes is not None
        return np.equal(table.codes[:, self.column], np.arange(len(self.values))[:, None]).astype(float)


@dataclass(frozen=True, repr=False)
class Hidden(Short):
    """A continuous column: the hidden component of its mixture, P[M = j | a], as a probabilistic instance."""

    name: str
    column: int  # position in Table.X
    mixture: ColumnMixture

    discrete = False

    @property
    def values(self) -> tuple:
        return tuple(self.mixture.means.tolist())

    def cells(self, table: Table) -> Array:
        x = table.X[:, self.column]
        observed = ~np.isnan(x)
        out = np.zeros((len(self.mixture.means), len(x)))
        out[:, observed] = self.mixture.responsibilities(x[observed])
        return out


@dataclass(frozen=True, repr=False)
class Constant(Short):
    """A column with a single value: it is not informative and has no cells."""

    name: str
    column: int  # position in Table.codes if discrete, else in Table.X
    value: Any
    discrete: bool

    @property
    def values(self) -> tuple:
        return (self.value,)


Term = Category | Hidden | Constant


def read_terms(table: Table, weight: Array | None, max_components: int, seed: int) -> tuple[Term, ...]:
    """The term of each column, in the order of the table."""
    terms: dict[int, Term] = {}
    to_fit: dict[int, tuple[str, int, Array, Array | None]] = {}
    for position, j in enumerate(table.schema.categorical):
        column = table.schema.columns[j]
        several = len(column.categories) > 1
        terms[j] = (
            Category(column.name, position, column.categories)
            if several
            else Constant(column.name, position, column.categories[0], True)
        )
    for position, j in enumerate(table.schema.continuous):
        name, x = table.schema.names[j], table.X[:, position]
        used = ~np.isnan(x) if weight is None else ~np.isnan(x) & (weight > 0)
        low, high = np.min(x[used], initial=np.inf), np.max(x[used], initial=-np.inf)
        if high - low > 1e-15 * max(abs(low), abs(high)):
            to_fit[j] = name, position, x[used], None if weight is None else weight[used]
        else:
            terms[j] = Constant(name, position, float(low) if used.any() else float("nan"), False)
    mixtures = fit_columns([(x, w) for _, _, x, w in to_fit.values()], max_components, seed=seed) if to_fit else []
    for (j, (name, position, _, _)), mixture in zip(to_fit.items(), mixtures):
        terms[j] = Hidden(name, position, _split(mixture))
    return tuple(terms[j] for j in range(len(table.schema.columns)))


OFFSETS = {1: np.array([-1.0, 0.0, 1.0]), 2: np.array([-0.8, 0.8])}  # means of the parts, in standard deviations


def _split(mixture: ColumnMixture) -> ColumnMixture:
    """Split the components of a mixture with one or two components, which would represent a value too coarsely.

    The overlapping parts of a component have equal weights and together its mean and variance.
    """
    offsets = OFFSETS.get(len(mixture.means))
    if offsets is None:
        return mixture
    means = (mixture.means[:, None] + np.sqrt(mixture.variances)[:, None] * offsets).ravel()
    variances = np.repeat((1.0 - (offsets**2).mean()) * mixture.variances, len(offsets))
    weights = np.repeat(mixture.weights / len(offsets), len(offsets))
    order = np.argsort(means, kind="stable")
    return ColumnMixture(weights[order], means[order], variances[order])


@dataclass(frozen=True)
class Layout:
    """The terms of the columns, and the positions of their cells."""

    terms: tuple[Term, ...]

    @property
    def varying(self) -> tuple[int, ...]:
        """Positions of the columns that are not constant and thus have cells."""
        return tuple(j for j, term in enumerate(self.terms) if not isinstance(term, Constant))

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(self.terms[j].values) for j in self.varying)

    @property
    def spans(self) -> dict[int, slice]:
        """Cells of each column that is not constant, by the position of the column."""
        return dict(zip(self.varying, spans_of(self.sizes)))

    def rows(self, table: Table, weight: Array | None = None) -> Rows:
        n, spans = table.n_rows, self.spans
        phi, present = np.empty((sum(self.sizes), n)), np.empty((len(spans), n), dtype=bool)
        for m, (j, span) in enumerate(spans.items()):
            term = self.terms[j]
            assert not isinstance(term, Constant)
            phi[span] = term.cells(table)
            present[m] = phi[span].any(axis=0)
        return Rows(phi, present, np.ones(n) if weight is None else weight)
