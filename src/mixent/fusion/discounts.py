"""Trust weights from the correlation of sources.

The best linear score of sources that are correlated within a class has the weights  t = C^-1 d,  where C is the
covariance of their evidence within a class, in nats, and d the difference of its means between classes. Both are
estimated without labels (see `dependence.dependence`). For independent likelihood ratios d is the variance, so that
t = 1; each of m copies has t = 1 / m.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixent.core.arrays import Array

MAX_TRUST = 3.0  # upper bound on trust weights; above one where a correlated source is below one
RIDGE = 1e-3


@dataclass(frozen=True)
class Pairs:
    """Correlations of pairs of sources within a class, and the standard deviations of their evidence."""

    correlation: Array  # (J, J)
    std: Array  # (J,)

    def part(self, sources: np.ndarray) -> Pairs:
        """Pairs of some of the sources."""
        return Pairs(self.correlation[np.ix_(sources, sources)], self.std[sources])


def discounts(pairs: Pairs) -> Array:
    """(J,) weights t >= 0 of the best linear score."""
    from scipy.optimize import nnls

    matrix = np.clip(pairs.correlation, 0.0, 1.0)
    np.fill_diagonal(matrix, 1.0)
    values, vectors = np.linalg.eigh(matrix)
    matrix = (vectors * np.maximum(values, RIDGE)) @ vectors.T + RIDGE * np.eye(len(matrix))
    scale = np.sqrt(np.diag(matrix))
    root = np.linalg.cholesky(matrix / np.outer(scale, scale))
    weights, _ = nnls(root.T, np.linalg.solve(root, pairs.std))
    return np.minimum(weights / pairs.std, MAX_TRUST)


def effective_number(pairs: Pairs) -> float:
    """Effective number of independent sources: the sum of the discounts for equally good sources."""
    J = len(pairs.std)
    return float(np.clip(discounts(Pairs(pairs.correlation, np.ones(J))).sum(), 1.0, J))
