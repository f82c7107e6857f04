"""Contributions of pairs of features without those of the two features themselves.

A pair contributes f(u, v) = sum_kl u_k v_l gamma_kl to a logit, where u and v are the pmfs of its features, a missing
value being one value more. The additive function a(u) + b(v) with the smallest mean squared difference from it over the
training rows belongs to the two features. What is left, f - a - b, has mean zero together with every value of either
feature: the contribution of a feature includes the mean over its partners. The sum of all contributions is unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from mixent.core.arrays import Array
from mixent.data import Table
from mixent.maxent.layout import Layout
from mixent.maxent.problem import Multipliers
from mixent.maxent.terms import Crossed, CrossedDense, Term, pmf_cells, pmf_values
from mixent.show import Short

Paired = Crossed | CrossedDense
COLLINEAR = 1e-10  # least eigenvalue, relative to the largest, of directions that are determined


@dataclass(frozen=True, repr=False)
class Margins(Short):
    """The additive part of the contribution of a pair; the last value is a missing one. Zero without such a feature."""

    first: Array  # (K + 1, C) of the values of the first feature
    second: Array  # (L + 1, C)


@dataclass(frozen=True)
class PurePair:
    """A pair, its multipliers and its margins, and the positions of the pair and its features among the terms."""

    term: Paired
    gamma: Array  # (K, L, C)
    margins: Margins | None
    place: int
    first: int | None
    second: int | None

    def parts(self, table: Table) -> tuple[Array, Array, Array]:
        """(C, n) each: the contribution of the pair, and what of it belongs to its first and to its second feature."""
        u, v = with_missing(self.term.first, table), with_missing(self.term.second, table)
        whole = self.whole(u, v)
        if self.margins is None:
            return whole, np.zeros_like(whole), np.zeros_like(whole)
        return whole, self.margins.first.T @ u, self.margins.second.T @ v

    def margins_at(self, place: int) -> Iterator[tuple[Term, Array]]:
        """The margins that belong to the term at a position, and the feature whose values they have."""
        if self.margins is not None:
            if self.first == place:
                yield self.term.first, self.margins.first
            if self.second == place:
                yield self.term.second, self.margins.second

    def whole(self, u: Array, v: Array) -> Array:
        """(C, n) the contribution of the pair at the pmfs u (K + 1, n) and v (L + 1, n)."""
        K, L, C = self.gamma.shape
        return np.einsum("lcn,ln->cn", (self.gamma.reshape(K, -1).T @ u[:K]).reshape(L, C, -1), v[:L])


def with_missing(term: Term, table: Table) -> Array:
    """(K + 1, n) the pmf of a feature, with the probability of a missing value."""
    pmf = pmf_cells(term, table)
    return np.concatenate([pmf, 1.0 - pmf.sum(axis=0, keepdims=True)])


def pairs_of(layout: Layout, params: Multipliers, margins: Iterable[Margins] = ()) -> list[PurePair]:
    """The pairs among the terms of a model."""
    place = {term.name: i for i, term in enumerate(layout.terms)}
    stored = iter(margins)
    out = []
    for i, (term, span) in enumerate(zip(layout.terms, layout.spans)):
        if isinstance(term, Paired):
            shape = len(pmf_values(term.first)), len(pmf_values(term.second)), params.n_classes
            gamma = params.cells[span].reshape(shape)
            features = place.get(term.first.name), place.get(term.second.name)
            out.append(PurePair(term, gamma, next(stored, None), i, *features))
    return out


def margins_of(layout: Layout, params: Multipliers, table: Table, weight: Array) -> list[Margins]:
    """The margins of all pairs over the training rows, by least squares."""
    out = []
    for pair in pairs_of(layout, params):
        u, v = with_missing(pair.term.first, table), with_missing(pair.term.second, table)
        both = np.concatenate([u * (pair.first is not None), v * (pair.second is not None)])
        weighted = both * weight
        fitted = _least_squares(weighted @ both.T, weighted @ pair.whole(u, v).T)
        out.append(Margins(fitted[: len(u)], fitted[len(u) :]))
    return out


def _least_squares(gram: Array, moments: Array) -> Array:
    """The shortest solution of the normal equations."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > COLLINEAR * max(float(values[-1]), 1e-300)
    return (vectors[:, kept] / values[kept]) @ (vectors[:, kept].T @ moments)


def pure_logits(pairs: Iterable[PurePair], logits: Array, table: Table) -> Array:
    """(terms, C, n) contributions of the terms with each pair's additive part moved to its features."""
    logits = logits.copy()
    for pair in pairs:
        _, first, second = pair.parts(table)
        for place, part in ((pair.first, first), (pair.second, second)):
            if place is not None:
                logits[place] += part
                logits[pair.place] -= part
    return logits
