"""Margin constraints of every row (001, equations 5 and 55): between pairs of classes, or of any outputs.

With uncertain labels y, q_t(y) the label distribution of row t, the constraint of the pair {a, b} is

    E[ (1[y = a] - 1[y = b]) (F_a(x_t) - F_b(x_t)) - g_tab ] >= 0,     p_tab = q_t(a) - q_t(b).

For a known label these are the m - 1 constraints of equation 5 (a pair without the label has p = 0 and no effect),
and for two classes the single one of equation 55.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import helmert

from mixent.core.arrays import Array


def contrasts(n_classes: int) -> Array:
    """(C, C - 1): classes from functions f_g ~ N(0, k) as F_s = sum_g M_sg f_g, differences F_a - F_b ~ N(0, k).

    For two classes F_1 - F_0 = f: the one discriminant function of Theorem 2.
    """
    return -np.sqrt(0.5) * helmert(n_classes).T


def pairs(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """All a < b."""
    return np.triu_indices(n_classes, 1)


@dataclass(frozen=True)
class PairConstraints:
    """The constraints between pairs of classes, of all rows."""

    signs: Array  # (n, pairs) p_tab
    open: np.ndarray  # (n, pairs) bool: could the label be one of the two at all?
    weight: Array  # (n,)
    n_classes: int

    @classmethod
    def of(cls, belief: Array, weight: Array, possible: Array | None = None) -> PairConstraints:
        """From label distributions (n, C); `possible` are those of the prior, where labels are uncertain."""
        a, b = pairs(belief.shape[1])
        prior = belief if possible is None else possible
        open = ((prior[:, a] + prior[:, b]) > 0) & (weight > 0)[:, None]  # a row without weight has no constraint
        return cls(belief[:, a] - belief[:, b], open, weight, belief.shape[1])

    @cached_property
    def differences(self) -> Array:
        """(pairs, C): 1_a - 1_b."""
        a, b = pairs(self.n_classes)
        eye = np.eye(self.n_classes)
        return eye[a] - eye[b]

    @property
    def n_rows(self) -> int:
        return len(self.weight)


@dataclass(frozen=True)
class Constraints:
    """Constraints on combinations of the outputs F_s of every row, in general.

    For row t and its k-th constraint,   E[ sum_s coef_tks F_s(x_t) ] + given_tk  >=  E[g_tk],

    with coef_tk = signs_tk pattern_k + base_t, which is not written out: with many classes it would take much memory.
    """

    signs: Array  # (n, P)
    pattern: Array  # (P, S) what each constraint compares
    open: np.ndarray  # (n, P) bool: does it hold at all? Its loss counts even where no output can change it
    weight: Array  # (n,)
    given: Array  # (n, P) what is there already
    base: Array | None = None  # (n, S) what all constraints of a row have in common

    @property
    def n_rows(self) -> int:
        return len(self.weight)

    @property
    def speaks(self) -> np.ndarray:
        """(n, P) bool: can a multiplier change anything?"""
        return self.open & (self.signs != 0)

    def part(self, rows: Any) -> Constraints:
        base = None if self.base is None else self.base[rows]
        return Constraints(self.signs[rows], self.pattern, self.open[rows], self.weight[rows], self.given[rows], base)

    def kept(self, scores: Array) -> Array:
        """(n, P) left sides of the constraints for outputs (n, S), without what is given."""
        out = self.signs * (scores @ self.pattern.T)
        return out if self.base is None else out + (self.base * scores).sum(axis=1)[:, None]

    def pushes(self, pushed: Array) -> Array:
        """(n, S) weights (n, P) of the constraints as weights of the outputs: the transpose of `kept`."""
        out = (pushed * self.signs) @ self.pattern
        return out if self.base is None else out + self.base * pushed.sum(axis=1)[:, None]

    def of(self, rows: np.ndarray, k: np.ndarray) -> Array:
        """(K, S) coefficients of some constraints."""
        out = self.signs[rows, k, None] * self.pattern[k]
        return out if self.base is None else out + self.base[rows]

    @property
    def coef(self) -> Array:
        """(n, P, S) of all, written out."""
        rows, k = np.indices(self.signs.shape)
        return self.of(rows.ravel(), k.ravel()).reshape(*self.signs.shape, -1)

    @classmethod
    def between_classes(cls, pairs: PairConstraints) -> Constraints:
        """A class against another, in every row."""
        return cls(pairs.signs, pairs.differences, pairs.open, pairs.weight, np.zeros(pairs.signs.shape))

    @classmethod
    def rivals(cls, own: Array, rival: np.ndarray, weight: Array, given: Array) -> Constraints:
        """A combination of the row's own outputs (n, S) against each rival output, bool (n, S)."""
        return cls(np.ones(own.shape), -np.eye(own.shape[1]), rival, weight, given, own)

    @classmethod
    def none(cls, pairs: PairConstraints, n_outputs: int) -> Constraints:
        """No constraint on any row."""
        n, P = pairs.signs.shape
        zero = np.zeros((n, P))
        return cls(zero, np.zeros((P, n_outputs)), zero > 0, pairs.weight, zero)

    @classmethod
    def alone(cls, weight: Array, given: Array | None = None) -> Constraints:
        """A single output, that is to be large."""
        ones = np.ones((len(weight), 1))
        given = 0.0 * ones if given is None else given[:, None]
        return cls(ones, np.ones((1, 1)), (weight > 0)[:, None], weight, given)
