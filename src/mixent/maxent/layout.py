"""Conversion of a table to the rows of a maximum entropy problem, with the terms fitted in training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mixent.core.arrays import Array
from mixent.data import Table
from mixent.maxent.blocks import Rows
from mixent.maxent.cells import Cells
from mixent.maxent.curvature import Variance
from mixent.maxent.problem import Multipliers
from mixent.maxent.terms import Crossed, CrossedDense, Dense, Discrete, Hidden, Moments, Term, is_pair, mask_of
from mixent.show import Short

NARROWEST = 0.05  # least range of a cell: the prior of a cell with a smaller range is not widened further


@dataclass(frozen=True, repr=False)
class Layout(Short):
    """The terms of a model, discrete terms first, and the positions of their cells."""

    discrete: tuple[Discrete, ...]
    dense: tuple[Dense, ...]

    @staticmethod
    def of(terms: Sequence[Term]) -> Layout:
        discrete = tuple(t for t in terms if isinstance(t, Discrete))
        return Layout(discrete, tuple(t for t in terms if isinstance(t, Dense)))

    @property
    def terms(self) -> tuple[Term, ...]:
        return (*self.discrete, *self.dense)

    def single_terms(self) -> Iterator[Term]:
        """The single features; a pair of features yields both of its features."""
        for term in self.terms:
            yield from (term.first, term.second) if isinstance(term, Crossed | CrossedDense) else (term,)

    @cached_property
    def cells(self) -> Cells:
        return Cells(tuple(len(t.values) for t in self.discrete), sum(len(t.values) for t in self.dense))

    @cached_property
    def spans(self) -> tuple[slice, ...]:
        """The range of cells of each term."""
        stops = np.cumsum([len(t.values) for t in self.terms]).tolist()
        return tuple(slice(a, b) for a, b in zip([0, *stops[:-1]], stops))

    def widths(self, rows: Rows) -> Array:
        """(S,) range of each cell over the labelled rows: one for a category, less for a hidden component.

        The prior applies to the multiplier times this range, that is, to the change of the log-odds, so it is
        comparable between all kinds of features.
        """
        out = np.ones(self.cells.n_cells)
        first = sum(self.cells.sizes)
        used = rows.dense[:, rows.weight > 0]
        for term, span in zip(self.terms, self.spans):
            if isinstance(term, Dense) and not isinstance(term, Moments):
                cells = used[span.start - first : span.stop - first]
                cells = cells[:, cells.any(axis=0)]  # without missing values, whose cells are zero
                out[span] = np.maximum(np.ptp(cells, axis=1), NARROWEST) if cells.size else 1.0
            if isinstance(term, Hidden):
                out[span.stop - len(term.slopes) : span.stop] = 1.0  # slopes are in units of standard deviations
        return out

    def term_logits(self, multipliers: Array, rows: Rows) -> Array:
        """(terms, C, n) contribution of each term to the logits."""
        C = multipliers.shape[1]
        by_term = np.zeros((len(multipliers), len(self.terms), C))
        for i, span in enumerate(self.spans):
            by_term[span, i] = multipliers[span]
        logits = self.cells.logits(by_term.reshape(len(multipliers), len(self.terms) * C), rows)
        return logits.reshape(len(self.terms), C, rows.n_rows)

    def mask(self, n_classes: int) -> Array | None:
        """(S, C) 1 where a cell has a multiplier for a class, else 0; None if every cell has one for every class."""
        masks = [mask_of(term, n_classes) for term in self.terms]
        if all(mask is None for mask in masks):
            return None
        free = [np.ones((len(term.values), n_classes)) for term in self.terms]
        return np.concatenate([all_free if mask is None else mask for mask, all_free in zip(masks, free)])

    def rows(self, table: Table, target: Array, weight: Array | None) -> Rows:
        """The rows of the problem; `target` (n, C) are their class distributions, zero for an unlabelled row."""
        n = table.n_rows
        present = np.ones(n, dtype=int)  # the class term
        codes = np.empty((n, len(self.discrete)), dtype=np.int32)
        for j, term in enumerate(self.discrete):
            codes[:, j] = term.codes(table)
            present += codes[:, j] >= 0
        parts = [np.empty((0, n))]
        for feature in self.dense:
            part = feature.cells(table)
            parts.append(part)
            present += part.any(axis=0) * feature.n_features
        mass = target.sum(axis=1)
        weight = np.where(mass > 0, 1.0 if weight is None else weight, 0.0)
        normalized = np.divide(target, mass[:, None], out=np.zeros_like(target), where=mass[:, None] > 0)
        weighted = (normalized * weight[:, None]).T.copy()
        return Rows(self.cells.packed(codes), np.concatenate(parts), weighted, weight, present)


def cell_variances(layout: Layout, rows: Rows, variance: float | None, pair_variance: float | None = None) -> Variance:
    """(S,) prior variance of the multipliers of each cell, or None: that of its change of the log-odds over its width.

    `pair_variance` is that of pairs of features (default: the same).
    """
    if variance is None:
        return None
    by_cell = np.full(layout.cells.n_cells, variance)
    for term, span in zip(layout.terms, layout.spans):
        if pair_variance is not None and is_pair(term):
            by_cell[span] = pair_variance
    return by_cell / layout.widths(rows) ** 2


def extend_multipliers(old: Layout, params: Multipliers, new: Layout) -> Multipliers:
    """The multipliers of a model, extended by zeros for the additional terms of another."""
    cells = np.zeros((new.cells.n_cells, params.n_classes))
    spans = {term.name: span for term, span in zip(new.terms, new.spans)}
    for term, span in zip(old.terms, old.spans):
        cells[spans[term.name]] = params.cells[span]
    return Multipliers(params.bias, cells)
