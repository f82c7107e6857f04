"""Linear algebra on the edge of what floating point allows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mixent.core.arrays import Array


def solver_of(matrix: Array, ridge: float = 1e-13) -> Callable[[Array], Array]:
    """right -> matrix^-1 right for a matrix that should be positive definite; its diagonal is overwritten.

    As little is added to the diagonal as it takes: `ridge` of its mean at first, for some directions may be free.
    """
    ridge *= max(float(np.trace(matrix)) / len(matrix), 1e-300)
    diagonal = np.diagonal(matrix).copy()
    while True:
        matrix[np.diag_indices_from(matrix)] = diagonal + ridge
        try:
            factor = cho_factor(matrix, lower=True)
            return lambda right: np.asarray(cho_solve(factor, right))
        except LinAlgError:
            ridge *= 100


def solve_positive(matrix: Array, right: Array, ridge: float = 1e-13) -> Array:
    """matrix^-1 right, once; see `solver_of`."""
    return solver_of(matrix, ridge)(right)
