"""Margin constraints of every row (001, equations 5 and 55), between pairs of classes or between any outputs.

With uncertain labels y, q_t(y) the label distribution of row t, the constraint of the pair {a, b} is

    E[ (1[y = a] - 1[y = b]) (F_a(x_t) - F_b(x_t)) - γ_tab ] >= 0,     p_tab = q_t(a) - q_t(b).

For a known label these are the m - 1 constraints of equation 5 (a pair without the label has p = 0 and no effect);
for two classes there is only one, that of equation 55.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import helmert

from mixent.core.arrays import Array


def contrasts(n_classes: int) -> Array:
    """The matrix M (C, C - 1) that turns functions f_g ~ N(0, k) into class scores F_s = sum_g M_sg f_g.

    All differences F_a - F_b are then N(0, k). For two classes F_1 - F_0 = f, the discriminant function of Theorem 2.
    """
    return -np.sqrt(0.5) * helmert(n_classes).T


def pairs(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of classes a < b."""
    return np.triu_indices(n_classes, 1)


@dataclass(frozen=True)
class PairConstraints:
    """The constraints between pairs of classes, for all rows."""

    signs: Array  # (n, pairs) p_tab
    imposed: np.ndarray  # (n, pairs) bool: whether the label can be one of the two classes
    weight: Array  # (n,)
    n_classes: int

    @classmethod
    def of(cls, label_probs: Array, weight: Array, prior: Array | None = None) -> PairConstraints:
        """The constraints for label distributions (n, C); `prior` (n, C) is their prior where labels are uncertain."""
        a, b = pairs(label_probs.shape[1])
        prior = label_probs if prior is None else prior
        imposed = ((prior[:, a] + prior[:, b]) > 0) & (weight > 0)[:, None]  # a row of weight 0 has no constraint
        return cls(label_probs[:, a] - label_probs[:, b], imposed, weight, label_probs.shape[1])

    @cached_property
    def differences(self) -> Array:
        """(pairs, C): 1_a - 1_b."""
        a, b = pairs(self.n_classes)
        eye = np.eye(self.n_classes)
        return eye[a] - eye[b]

    @property
    def n_rows(self) -> int:
        return len(self.weight)

    @property
    def label(self) -> np.ndarray:
        """(n,) the class of each row, where all labels are known."""
        return np.asarray((self.signs @ self.differences).argmax(axis=1))


def multipliers_by_pair(lam: Array, label: np.ndarray) -> Array:
    """(n, pairs) multipliers from those of the class of each row against every other (n, C)."""
    a, b = pairs(lam.shape[1])
    rival = np.where(label[:, None] == a, b, a)
    involved = (label[:, None] == a) | (label[:, None] == b)
    return np.where(involved, np.take_along_axis(lam, rival, axis=1), 0.0)


@dataclass(frozen=True)
class Constraints:
    """Constraints on linear combinations of the outputs F_s of every row.

    Constraint k of row t is   E[ sum_s coef_tks F_s(x_t) ] + offset_tk  >=  E[γ_tk],

    where coef_tk = signs_tk pattern_k + common_t. The array of coefficients is not stored: with many classes it would
    take much memory.
    """

    signs: Array  # (n, P)
    pattern: Array  # (P, S) coefficients of the outputs in each constraint
    imposed: np.ndarray  # (n, P) bool; the loss of an imposed constraint counts even where its coefficients are zero
    weight: Array  # (n,)
    offset: Array  # (n, P) constant part of the margin
    common: Array | None = None  # (n, S) coefficients that all constraints of a row share

    @property
    def n_rows(self) -> int:
        return len(self.weight)

    @cached_property
    def effective(self) -> np.ndarray:
        """(n, P) bool: constraints that are imposed and depend on the outputs; only these have a multiplier."""
        return self.imposed & (self.signs != 0)

    def part(self, rows: np.ndarray | slice) -> Constraints:
        """The constraints of some rows."""
        common = None if self.common is None else self.common[rows]
        return Constraints(
            self.signs[rows], self.pattern, self.imposed[rows], self.weight[rows], self.offset[rows], common
        )

    def margins(self, scores: Array) -> Array:
        """(n, P) left sides of the constraints for outputs (n, S), without the offset."""
        out = self.signs * np.dot(scores, self.pattern.T)  # for one column much faster than @
        return out if self.common is None else out + (self.common * scores).sum(axis=1)[:, None]

    def output_weights(self, multipliers: Array) -> Array:
        """(n, S) weights of the outputs from multipliers (n, P) of the constraints: the transpose of `margins`."""
        out = np.dot(multipliers * self.signs, self.pattern)
        return out if self.common is None else out + self.common * multipliers.sum(axis=1)[:, None]

    def coefficients(self, rows: np.ndarray, k: np.ndarray) -> Array:
        """(K, S) coefficients of the constraints k of some rows."""
        out = self.signs[rows, k, None] * self.pattern[k]
        return out if self.common is None else out + self.common[rows]

    @property
    def coef(self) -> Array:
        """(n, P, S) coefficients of all constraints."""
        rows, k = np.indices(self.signs.shape)
        return self.coefficients(rows.ravel(), k.ravel()).reshape(*self.signs.shape, -1)

    @classmethod
    def between_classes(cls, pairs: PairConstraints) -> Constraints:
        """Constraints between pairs of classes, with one output per class."""
        return cls(pairs.signs, pairs.differences, pairs.imposed, pairs.weight, np.zeros(pairs.signs.shape))

    @classmethod
    def against_rivals(cls, own: Array, rival: np.ndarray, weight: Array, offset: Array) -> Constraints:
        """A combination (n, S) of the outputs of the row's class against each rival output, bool (n, S)."""
        return cls(np.ones(own.shape), -np.eye(own.shape[1]), rival, weight, offset, own)

    @classmethod
    def none(cls, pairs: PairConstraints, n_outputs: int) -> Constraints:
        """No constraint on any row."""
        n, P = pairs.signs.shape
        zero = np.zeros((n, P))
        return cls(zero, np.zeros((P, n_outputs)), zero > 0, pairs.weight, zero)

    @classmethod
    def single_output(cls, weight: Array, offset: Array | None = None) -> Constraints:
        """A lower bound on the only output, for every row."""
        ones = np.ones((len(weight), 1))
        offset = 0.0 * ones if offset is None else offset[:, None]
        return cls(ones, np.ones((1, 1)), (weight > 0)[:, None], weight, offset)
