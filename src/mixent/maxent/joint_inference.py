"""Inference from a fitted joint model: one column, two columns, missing values filled together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from mixent.core.arrays import Array, softmax_columns
from mixent.data import Table
from mixent.maxent.joint_problem import Pairwise, Rows, conditionals
from mixent.maxent.joint_terms import Term

CLOSE, ROUNDS = 1e-6, 50  # of mean field: pmfs that move less are at rest


@dataclass(frozen=True)
class RowInference:
    """A model and some rows. Columns are meant by their position; one without cells has one value, of probability 1."""

    params: Pairwise
    shares: Array  # (S,) of the cells of each column in training
    spans: dict[int, slice]  # cells of each column that has some
    rows: Rows

    @cached_property
    def logits(self) -> Array:
        """(S, n) of every cell given all other columns: Gamma is zero within a column, so its own value is ignored."""
        return self.params.pairs @ self.rows.phi + self.params.single[:, None]

    def about(self, j: int, k: int | None = None) -> Array:
        """(r, n) P[F_j | rest], or (r_j, r_k, n) P[F_j, F_k | rest]."""
        return self.one(j) if k is None else self.two(j, k)

    def one(self, j: int) -> Array:
        """(r, n) P[F_j = p | rest]; the shares in training where nothing else is known."""
        span = self.spans.get(j)
        if span is None:
            return np.ones((1, self.rows.n_rows))
        out = self.logits[span].copy()
        softmax_columns(out)
        others = self.rows.present.sum(axis=0) - self.rows.present[list(self.spans).index(j)]
        return np.where(others > 0, out, self.shares[span, None])

    def two(self, j: int, k: int) -> Array:
        """(r_j, r_k, n) P[F_j = p, F_k = q | rest]."""
        if j not in self.spans or k not in self.spans:
            return self.one(j)[:, None] * self.one(k)
        out = self._joint(j, k)
        softmax_columns(out.reshape(-1, self.rows.n_rows))
        return out

    def log_lik(self) -> Array:
        """(n,) sum over the known columns of log P[column | rest]."""
        each = conditionals(self.params, tuple(self.spans.values()), self.rows.phi)[1]
        return (each * self.rows.present).sum(axis=0)

    def best(self, j: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        """(n,), (n,) the cells of the most probable pair."""
        if j not in self.spans or k not in self.spans:
            return self.one(j).argmax(axis=0), self.one(k).argmax(axis=0)
        joint = self._joint(j, k)
        first, second = np.divmod(joint.reshape(-1, self.rows.n_rows).argmax(axis=0), joint.shape[1])
        return first, second

    def count_pairs(self, terms: tuple[Term, ...], table: Table) -> dict[tuple[int, int], tuple[int, int]]:
        """For every two discrete columns, in how many rows their best pair is wrong, and in how many it is known."""
        truth = {j: codes_of(term, table) for j, term in enumerate(terms) if term.discrete}
        found = {}
        for (j, a), (k, b) in combinations(truth.items(), 2):
            first, second = self.best(j, k)
            known = (a >= 0) & (b >= 0)
            wrong = known & ((first != a) | (second != b))
            found[j, k] = int(np.count_nonzero(wrong)), int(np.count_nonzero(known))
        return found

    def _joint(self, j: int, k: int) -> Array:
        """(r_j, r_k, n): b_p + b_q + Gamma(p, q) + contributions of all other columns to p and to q."""
        a, b, phi = self.spans[j], self.spans[k], self.rows.phi
        between = self.params.pairs[a, b]
        first, second = self.logits[a] - between @ phi[b], self.logits[b] - between.T @ phi[a]
        first = first[:, None] + between[:, :, None]
        first += second
        return first

    def fill(self) -> Array:
        """(S, n) cells, those of missing columns as pmfs that agree with each other: mean field.

        The missing columns of a row are predicted from what is known, then one after the other from the pmfs of all
        others, until they rest. Each step minimizes the divergence KL(product of pmfs || model) in one of them, so it
        cannot go in circles. No row waits for another.
        """
        phi, absent = self.rows.phi.copy(), ~self.rows.present
        for m, j in enumerate(self.spans):
            phi[self.spans[j], absent[m]] = self.one(j)[:, absent[m]]
        n_gaps = absent.sum(axis=0)
        live = np.flatnonzero((n_gaps > 1) & (n_gaps < len(absent)))  # a lone gap is filled; nothing known: the shares
        for _ in range(ROUNDS):
            move = np.zeros(len(live))
            for gap, span in zip(absent[:, live], self.spans.values()):
                new = self.params.pairs[span] @ phi[:, live[gap]] + self.params.single[span, None]
                softmax_columns(new)
                move[gap] = np.maximum(move[gap], np.abs(new - phi[span, live[gap]]).max(axis=0))
                phi[span, live[gap]] = new
            live = live[move > CLOSE]
        return phi


@dataclass(frozen=True)
class ColumnScore:
    """How well a column is predicted from all others, over the rows in which it is known."""

    n_rows: int
    error: float | None  # share of wrong values, of a discrete column
    r2: float | None  # share of the variance explained, of a continuous column


def score_column(term: Term, pmf: Array, table: Table) -> ColumnScore:
    """The score of predicted pmfs (r, n)."""
    if term.discrete:
        truth = codes_of(term, table)
        known = truth >= 0
        n = int(known.sum())
        return ColumnScore(n, float((pmf.argmax(axis=0) != truth)[known].mean()) if n else None, None)
    x = table.X[:, term.place]
    known = ~np.isnan(x)
    n = int(known.sum())
    away = (x - np.array(term.values) @ pmf)[known]
    spread = float(((x[known] - x[known].mean()) ** 2).sum()) if n else 0.0
    return ColumnScore(n, None, 1.0 - float(away @ away) / spread if spread > 0 else None)


def codes_of(term: Term, table: Table) -> np.ndarray:
    """(n,) which value a discrete column has, -1 where missing."""
    codes: Any = table.codes
    return codes[:, term.place]
