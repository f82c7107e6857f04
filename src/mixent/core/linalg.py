"""Linear systems whose matrix may be nearly singular."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mixent.core.arrays import Array


def solver_of(matrix: Array, ridge: float = 1e-13) -> Callable[[Array], Array]:
    """Return the function right -> matrix^-1 right of a positive definite matrix, which is overwritten.

    The matrix is scaled to a diagonal of ones, since the unknowns may have any units. Then `ridge` is added to the
    diagonal, and increased until the Cholesky factorization succeeds, since the matrix may be nearly singular.
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
    """Return matrix^-1 right; see `solver_of`."""
    return solver_of(matrix, ridge)(right)
