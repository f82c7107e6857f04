"""Which class shall win against which, in every row (001, equations 5 and 55).

With labels y in doubt, q_t(y) the label distribution of row t, the constraint of the pair {a, b} is

    E[ (1[y = a] - 1[y = b]) (F_a(x_t) - F_b(x_t)) - g_tab ] >= 0,     p_tab = q_t(a) - q_t(b).

For a known label these are the m - 1 constraints of equation 5 (a pair without the label says nothing, p = 0), and
for two classes the single one of equation 55.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

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
class Contests:
    """The constraints of all rows."""

    signs: Array  # (n, pairs) p_tab
    open: np.ndarray  # (n, pairs) bool: could the label be one of the two at all?
    weight: Array  # (n,)
    n_classes: int

    @classmethod
    def of(cls, belief: Array, weight: Array, possible: Array | None = None) -> Contests:
        """From label distributions (n, C); `possible` are those of the prior, where labels are in doubt."""
        a, b = pairs(belief.shape[1])
        prior = belief if possible is None else possible
        open = ((prior[:, a] + prior[:, b]) > 0) & (weight > 0)[:, None]  # a row without weight says nothing
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
