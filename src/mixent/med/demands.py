"""What is asked of every row: that combinations of expected log-probabilities keep a margin.

For row t and its k-th demand,   E[ sum_s coef_tks F_s(x_t) ] + given_tk  >=  E[g_tk].
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

    coef: Array  # (n, P, S) of each output
    open: np.ndarray  # (n, P) bool: is it asked at all? Its loss counts even where no output can change it
    weight: Array  # (n,)
    given: Array  # (n, P) what is there already

    @property
    def n_rows(self) -> int:
        return len(self.weight)

    @property
    def speaks(self) -> np.ndarray:
        """(n, P) bool: can a multiplier change anything?"""
        return self.open & self.coef.any(axis=2)

    def part(self, rows: Any) -> Demands:
        return Demands(self.coef[rows], self.open[rows], self.weight[rows], self.given[rows])

    @classmethod
    def contests(cls, contests: Contests) -> Demands:
        """A class against another, in every row."""
        coef = contests.signs[:, :, None] * contests.differences
        return cls(coef, contests.open, contests.weight, np.zeros(contests.signs.shape))

    @classmethod
    def alone(cls, weight: Array, given: Array | None = None) -> Demands:
        """A single output, asked to be large."""
        n = len(weight)
        given = np.zeros((n, 1)) if given is None else given[:, None]
        return cls(np.ones((n, 1, 1)), (weight > 0)[:, None], weight, given)
