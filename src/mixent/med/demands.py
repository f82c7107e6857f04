"""What is asked of every row: that combinations of expected log-probabilities keep a margin.

For row t and its k-th demand,   E[ sum_s coef_tks F_s(x_t) ] + given_tk  >=  E[g_tk],

with coef_tk = signs_tk pattern_k + base_t, which is not written out: with many classes it would take much memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.med.contests import Contests


@dataclass(frozen=True)
class Demands:
    """The demands of all rows."""

    signs: Array  # (n, P)
    pattern: Array  # (P, S) what each demand compares
    open: np.ndarray  # (n, P) bool: is it asked at all? Its loss counts even where no output can change it
    weight: Array  # (n,)
    given: Array  # (n, P) what is there already
    base: Array | None = None  # (n, S) what all demands of a row have in common

    @property
    def n_rows(self) -> int:
        return len(self.weight)

    @property
    def speaks(self) -> np.ndarray:
        """(n, P) bool: can a multiplier change anything?"""
        return self.open & (self.signs != 0)

    def part(self, rows: Any) -> Demands:
        base = None if self.base is None else self.base[rows]
        return Demands(self.signs[rows], self.pattern, self.open[rows], self.weight[rows], self.given[rows], base)

    def kept(self, scores: Array) -> Array:
        """(n, P) what outputs (n, S) keep of each demand, beside what is given."""
        out = self.signs * (scores @ self.pattern.T)
        return out if self.base is None else out + (self.base * scores).sum(axis=1)[:, None]

    def pushes(self, pushed: Array) -> Array:
        """(n, S) what weights (n, P) of the demands are worth as weights of the outputs: the transpose of `kept`."""
        out = (pushed * self.signs) @ self.pattern
        return out if self.base is None else out + self.base * pushed.sum(axis=1)[:, None]

    def of(self, rows: np.ndarray, k: np.ndarray) -> Array:
        """(K, S) coefficients of some demands."""
        out = self.signs[rows, k, None] * self.pattern[k]
        return out if self.base is None else out + self.base[rows]

    @property
    def coef(self) -> Array:
        """(n, P, S) of all, written out."""
        rows, k = np.indices(self.signs.shape)
        return self.of(rows.ravel(), k.ravel()).reshape(*self.signs.shape, -1)

    @classmethod
    def contests(cls, contests: Contests) -> Demands:
        """A class against another, in every row."""
        nothing = np.zeros(contests.signs.shape)
        return cls(contests.signs, contests.differences, contests.open, contests.weight, nothing)

    @classmethod
    def rivals(cls, own: Array, rival: np.ndarray, weight: Array, given: Array) -> Demands:
        """A combination of the row's own outputs (n, S) against each rival output, bool (n, S)."""
        return cls(np.ones(own.shape), -np.eye(own.shape[1]), rival, weight, given, own)

    @classmethod
    def none(cls, contests: Contests, n_outputs: int) -> Demands:
        """Nothing is asked of any row."""
        n, P = contests.signs.shape
        zero = np.zeros((n, P))
        return cls(zero, np.zeros((P, n_outputs)), zero > 0, contests.weight, zero)

    @classmethod
    def alone(cls, weight: Array, given: Array | None = None) -> Demands:
        """A single output, asked to be large."""
        ones = np.ones((len(weight), 1))
        given = 0.0 * ones if given is None else given[:, None]
        return cls(ones, np.ones((1, 1)), (weight > 0)[:, None], weight, given)
