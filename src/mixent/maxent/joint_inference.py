"""Inference from a fitted joint model: distributions of one or two columns given the others, and imputation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from mixent.base.result import Result
from mixent.core.arrays import Array, softmax_columns
from mixent.data import Table
from mixent.maxent.joint_problem import Pairwise, Rows, conditionals
from mixent.maxent.joint_terms import Term

TOL, MAX_ROUNDS = 1e-6, 50  # of mean field: largest change of a converged pmf, and number of rounds


@dataclass(frozen=True)
class RowInference:
    """A fitted model and some rows. Columns are given by their position; a constant column has no cells."""

    params: Pairwise
    shares: Array  # (S,) frequency of each cell within its column, in training
    spans: dict[int, slice]  # cells of each column that is not constant
    rows: Rows

    @cached_property
    def logits(self) -> Array:
        """(S, n) logits of every cell given the other columns; a column's own value has no effect on its logits."""
        return self.params.pairs @ self.rows.phi + self.params.single[:, None]

    def conditional(self, j: int, k: int | None = None) -> Array:
        """(r, n) P[F_j | rest], or (r_j, r_k, n) P[F_j, F_k | rest]."""
        return self.single(j) if k is None else self.pair(j, k)

    def single(self, j: int) -> Array:
        """(r, n) P[F_j = p | rest]; the training frequencies if all other columns are missing."""
        span = self.spans.get(j)
        if span is None:
            return np.ones((1, self.rows.n_rows))
        out = self.logits[span].copy()
        softmax_columns(out)
        others = self.rows.present.sum(axis=0) - self.rows.present[list(self.spans).index(j)]
        return np.where(others > 0, out, self.shares[span, None])

    def pair(self, j: int, k: int) -> Array:
        """(r_j, r_k, n) P[F_j = p, F_k = q | rest]."""
        if j not in self.spans or k not in self.spans:
            return self.single(j)[:, None] * self.single(k)
        out = self._pair_logits(j, k)
        softmax_columns(out.reshape(-1, self.rows.n_rows))
        return out

    def log_lik(self) -> Array:
        """(n,) sum over the observed columns of log P[column | rest]."""
        each = conditionals(self.params, tuple(self.spans.values()), self.rows.phi)[1]
        return (each * self.rows.present).sum(axis=0)

    def most_probable_pair(self, j: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        """(n,), (n,) the cells of the most probable pair of values."""
        if j not in self.spans or k not in self.spans:
            return self.single(j).argmax(axis=0), self.single(k).argmax(axis=0)
        logits = self._pair_logits(j, k)
        first, second = np.divmod(logits.reshape(-1, self.rows.n_rows).argmax(axis=0), logits.shape[1])
        return first, second

    def pair_errors(self, terms: tuple[Term, ...], table: Table) -> dict[tuple[int, int], tuple[int, int]]:
        """For every pair of discrete columns, the numbers of rows in which it is mispredicted and observed."""
        truth = {j: codes_of(term, table) for j, term in enumerate(terms) if term.discrete}
        counts = {}
        for (j, a), (k, b) in combinations(truth.items(), 2):
            first, second = self.most_probable_pair(j, k)
            observed = (a >= 0) & (b >= 0)
            wrong = observed & ((first != a) | (second != b))
            counts[j, k] = int(np.count_nonzero(wrong)), int(np.count_nonzero(observed))
        return counts

    def _pair_logits(self, j: int, k: int) -> Array:
        """(r_j, r_k, n): b_p + b_q + Gamma(p, q) + contributions of all other columns to p and to q."""
        a, b, phi = self.spans[j], self.spans[k], self.rows.phi
        between = self.params.pairs[a, b]
        first, second = self.logits[a] - between @ phi[b], self.logits[b] - between.T @ phi[a]
        first = first[:, None] + between[:, :, None]
        first += second
        return first

    def fill(self) -> Array:
        """(S, n) cells in which the missing columns are filled with pmfs, by mean field inference.

        The missing columns of a row are first predicted from the observed ones, then in turn from the pmfs of all
        others until convergence. Each step minimizes KL(product of pmfs || model) in one of the pmfs, so the divergence
        never increases. Rows are independent of each other.
        """
        phi, absent = self.rows.phi.copy(), ~self.rows.present
        for m, j in enumerate(self.spans):
            phi[self.spans[j], absent[m]] = self.single(j)[:, absent[m]]
        n_missing = absent.sum(axis=0)
        # rows with one missing column are done; rows without any observed column keep the training frequencies
        active = np.flatnonzero((n_missing > 1) & (n_missing < len(absent)))
        for _ in range(MAX_ROUNDS):
            change = np.zeros(len(active))
            for missing, span in zip(absent[:, active], self.spans.values()):
                rows = active[missing]
                new = self.params.pairs[span] @ phi[:, rows] + self.params.single[span, None]
                softmax_columns(new)
                change[missing] = np.maximum(change[missing], np.abs(new - phi[span, rows]).max(axis=0))
                phi[span, rows] = new
            active = active[change > TOL]
        return phi


@dataclass(frozen=True, repr=False)
class ColumnScore(Result):
    """How well a column is predicted from all others, over the rows in which it is observed."""

    n_rows: int
    error: float | None  # error rate of a discrete column
    r2: float | None  # share of variance explained of a continuous column


def score_column(term: Term, pmf: Array, table: Table) -> ColumnScore:
    """The score of predicted pmfs (r, n)."""
    if term.discrete:
        truth = codes_of(term, table)
        observed = truth >= 0
        n = int(observed.sum())
        return ColumnScore(n, float((pmf.argmax(axis=0) != truth)[observed].mean()) if n else None, None)
    x = table.X[:, term.column]
    observed = ~np.isnan(x)
    n = int(observed.sum())
    residual = (x - np.array(term.values) @ pmf)[observed]
    total = float(((x[observed] - x[observed].mean()) ** 2).sum()) if n else 0.0
    return ColumnScore(n, None, 1.0 - float(residual @ residual) / total if total > 0 else None)


def codes_of(term: Term, table: Table) -> np.ndarray:
    """(n,) codes of a discrete column; -1 where missing."""
    codes: Any = table.codes
    return codes[:, term.column]
