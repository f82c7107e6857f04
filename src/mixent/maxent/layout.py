"""From a table to the rows of a maximum entropy problem, by the terms fitted in training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mixent.core.arrays import Array
from mixent.maxent.cells import Cells
from mixent.maxent.rows import Rows
from mixent.maxent.terms import Dense, Discrete, Latent, Term
from mixent.tables import Table


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

    @cached_property
    def cells(self) -> Cells:
        return Cells(tuple(len(t.values) for t in self.discrete), sum(len(t.values) for t in self.dense))

    @cached_property
    def spans(self) -> tuple[slice, ...]:
        """Where the cells of each term stand."""
        stops = np.cumsum([len(t.values) for t in self.terms]).tolist()
        return tuple(slice(a, b) for a, b in zip([0, *stops[:-1]], stops))

    def mask(self, n_classes: int) -> Array | None:
        """(S, C) which cells may speak for which class; None: all for all."""
        if not any(isinstance(t, Latent) and t.kind == "class" for t in self.terms):
            return None
        out = np.ones((self.cells.n_cells, n_classes))
        for term, span in zip(self.terms, self.spans):
            if isinstance(term, Latent) and term.kind == "class":
                out[span] = np.equal(np.asarray(term.owner)[:, None], np.arange(n_classes))
        return out

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
