"""Linear algebra on the edge of what floating point allows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mixent.core.arrays import Array


def solver_of(matrix: Array, ridge: float = 1e-13) -> Callable[[Array], Array]:
    """right -> matrix^-1 right for a matrix that should be positive definite; it is overwritten.

    It is brought to a diagonal of ones, for its unknowns may have any units, and as little is added to that as it
    takes: `ridge` at first, for some directions may be free.
    """
    diagonal = np.diagonal(matrix)
    top = float(diagonal.max(initial=0.0)) or 1.0
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, top))
    matrix *= scale[:, None]
    matrix *= scale
    while True:
        matrix[np.diag_indices_from(matrix)] = 1.0 + ridge
        try:
            factor = cho_factor(matrix, lower=True)
            break
        except LinAlgError:
            ridge *= 100

    def solve(right: Array) -> Array:
        units = scale if right.ndim == 1 else scale[:, None]
        return np.asarray(units * cho_solve(factor, units * right))

    return solve


def solve_positive(matrix: Array, right: Array, ridge: float = 1e-13) -> Array:
    """matrix^-1 right, once; see `solver_of`."""
    return solver_of(matrix, ridge)(right)
