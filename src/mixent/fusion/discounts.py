"""Trust weights from the correlation of sources.

The best linear score of sources that are correlated within a class has the weights  t = C^-1 d,  C the covariance of
their evidence within a class, in nats, and d its shift between classes. Both are known without labels (see
`dependence.dependence`). For independent likelihood ratios d is the variance, and t = 1; of m copies each has 1 / m.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixent.core.arrays import Array

MOST = 3.0  # trust weight; more than one where a correlated source has less
DOUBT = 1.0  # z of a pair up to which its correlation is taken as zero
RIDGE = 1e-3


@dataclass(frozen=True)
class Pairs:
    """Correlations of pairs of sources within a class, their significance, and the standard deviations."""

    correlation: Array  # (J, J)
    z: Array  # (J, J)
    std: Array  # (J,)

    def part(self, places: np.ndarray) -> Pairs:
        square = np.ix_(places, places)
        return Pairs(self.correlation[square], self.z[square], self.std[places])


def discounts(pairs: Pairs, doubt: float = DOUBT) -> Array:
    """(J,) t >= 0 of the best linear score, from correlations shrunk by their significance."""
    from scipy.optimize import nnls

    z = np.nan_to_num(pairs.z)
    kept = np.where(z > doubt, 1.0 - (doubt / np.maximum(z, doubt)) ** 2, 0.0)
    matrix = np.clip(pairs.correlation, 0.0, 1.0) * kept
    np.fill_diagonal(matrix, 1.0)
    values, vectors = np.linalg.eigh(matrix)
    matrix = (vectors * np.maximum(values, RIDGE)) @ vectors.T + RIDGE * np.eye(len(matrix))
    scale = np.sqrt(np.diag(matrix))
    root = np.linalg.cholesky(matrix / np.outer(scale, scale))
    found, _ = nnls(root.T, np.linalg.solve(root, pairs.std))
    return np.minimum(found / pairs.std, MOST)


def effective_number(pairs: Pairs) -> float:
    """Effective number of independent sources: the sum of the discounts for equally good sources."""
    alike = Pairs(pairs.correlation, pairs.z, np.ones(len(pairs.std)))
    return float(discounts(alike, 2 * DOUBT).sum())  # among many pairs some are above DOUBT by chance
