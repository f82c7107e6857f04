"""From a table to the rows of a maximum entropy problem, by the terms fitted in training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mixent.core.arrays import Array
from mixent.data import Table
from mixent.maxent.blocks import Rows
from mixent.maxent.cells import Cells
from mixent.maxent.terms import Crossed, CrossedDense, Dense, Discrete, Hidden, Moments, Term, mask_of

NARROWEST = 0.05  # range below which a cell contributes next to nothing, however large its multiplier


@dataclass(frozen=True)
class Layout:
    """The terms of a model, discrete ones first, and where their cells stand."""

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
        """The features, those of pairs one by one."""
        for term in self.terms:
            yield from (term.first, term.second) if isinstance(term, Crossed | CrossedDense) else (term,)

    @cached_property
    def cells(self) -> Cells:
        return Cells(tuple(len(t.values) for t in self.discrete), sum(len(t.values) for t in self.dense))

    @cached_property
    def spans(self) -> tuple[slice, ...]:
        """Where the cells of each term stand."""
        stops = np.cumsum([len(t.values) for t in self.terms]).tolist()
        return tuple(slice(a, b) for a, b in zip([0, *stops[:-1]], stops))

    def widths(self, rows: Rows) -> Array:
        """(S,) how far each cell ranges over the rows that count: one for a category, less for a hidden component.

        The prior is on how far a multiplier can move the log-odds, so that it means the same for all kinds of features.
        """
        out = np.ones(self.cells.n_cells)
        first = sum(self.cells.sizes)
        used = rows.dense[:, rows.weight > 0]
        for term, span in zip(self.terms, self.spans):
            if isinstance(term, Dense) and not isinstance(term, Moments):
                cells = used[span.start - first : span.stop - first]
                cells = cells[:, cells.any(axis=0)]  # a missing value is no value of zero
                out[span] = np.maximum(np.ptp(cells, axis=1), NARROWEST) if cells.size else 1.0
            if isinstance(term, Hidden):
                out[span.stop - len(term.slopes) : span.stop] = 1.0  # in standard deviations as it is
        return out

    def parts(self, multipliers: Array, rows: Rows) -> Array:
        """(terms, C, n): what each term adds to the logits."""
        C = multipliers.shape[1]
        apart = np.zeros((len(multipliers), len(self.terms), C))
        for i, span in enumerate(self.spans):
            apart[span, i] = multipliers[span]
        logits = self.cells.logits(apart.reshape(len(multipliers), len(self.terms) * C), rows)
        return logits.reshape(len(self.terms), C, rows.n_rows)

    def mask(self, n_classes: int) -> Array | None:
        """(S, C) which cells have a multiplier for which class; None: all for all."""
        masks = [mask_of(term, n_classes) for term in self.terms]
        if all(mask is None for mask in masks):
            return None
        free = [np.ones((len(term.values), n_classes)) for term in self.terms]
        return np.concatenate([all_free if mask is None else mask for mask, all_free in zip(masks, free)])

    def rows(self, table: Table, target: Array, weight: Array | None) -> Rows:
        """All rows; `target` (n, C) their class distributions, zero without a label."""
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
        known = np.where(mass > 0, 1.0 if weight is None else weight, 0.0)
        scaled = np.divide(target, mass[:, None], out=np.zeros_like(target), where=mass[:, None] > 0)
        return Rows(self.cells.packed(codes), np.concatenate(parts), (scaled * known[:, None]).T.copy(), known, present)
