"""Newton's method for small tables, where about six passes reach full precision.

The negative Hessian, sum_t w_t (phi_t phi_t^T) x (diag p_t - p_t p_t^T) + 1/var, is an additive statistic of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixent.core.arrays import Array
from mixent.core.linalg import solve_positive
from mixent.maxent.blocks import Rows
from mixent.maxent.problem import Expected, MaxEntProblem, Multipliers, Ready

MAX_WORK = 2e9  # multiplications of a step


def is_small(n_rows: int, n_cells: int, n_classes: int, max_work: float = MAX_WORK) -> bool:
    """Whether a Newton step takes at most `max_work` multiplications; n_cells includes the class term."""
    width = n_cells * n_classes
    return n_rows * width**2 / 2 + width**3 / 3 <= max_work


@dataclass(frozen=True)
class Curved(Expected):
    """Expected counts, and the curvature of the log-likelihood."""

    curvature: Array  # (C, C, S + 1, S + 1)


@dataclass(frozen=True)
class Newton(MaxEntProblem):
    """theta' = theta + step H^-1 gradient: an ascent direction; the driver shortens a step that is too long."""

    safe_step = 2.0**-20  # a step of this length increases the objective, up to rounding

    def stats(self, ready: Ready, block: Rows) -> Curved:  # type: ignore[override]
        post, log_lik = self._posterior(ready, block)
        phi = np.concatenate([np.ones((1, block.n_rows)), self.cells.dense(block)])
        C, width = len(post), len(phi)
        curvature = np.empty((C, C, width, width))
        for c in range(C):
            weighted = phi * (block.weight * post[c])
            for other in range(c + 1):
                part = (weighted * ((c == other) - post[other])) @ phi.T
                curvature[c, other] = curvature[other, c] = part  # symmetric in the two classes
        return Curved((phi @ (post * block.weight).T)[None], log_lik, curvature)

    def update(self, params: Multipliers, total: Curved, step: float) -> Multipliers:
        slope = self.gradient(params, total)
        move = step * self._direction(total.curvature, slope)
        return Multipliers(params.bias + move[0], params.cells + move[1:])

    def _direction(self, curvature: Array, slope: Array) -> Array:
        """(S + 1, C)."""
        width, C = slope.shape
        matrix = curvature.transpose(2, 0, 3, 1).reshape(width * C, width * C)  # cells first, then classes
        ridge = np.zeros((width, C))
        ridge[1:] = self.precision  # (S, 1): the same for every class
        matrix[np.diag_indices_from(matrix)] += ridge.ravel()
        matrix[:C, :C] += np.trace(matrix[:C, :C]) / C**2  # a common shift of all biases has no effect: make it unique
        free = np.ones((width, C), dtype=bool)
        if self.mask is not None:
            free[1:] = self.mask > 0
        index = np.flatnonzero(free.ravel())
        move = np.zeros(width * C)
        move[index] = solve_positive(
            matrix[np.ix_(index, index)] if len(index) < len(matrix) else matrix, slope.ravel()[index]
        )
        return move.reshape(width, C)
