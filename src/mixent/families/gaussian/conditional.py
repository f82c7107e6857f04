"""Distributions of missing values given the observed ones, under Gaussians."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixent.core.arrays import Array


@dataclass(frozen=True)
class ConditionalGaussians:
    """For rows with missing values and K Gaussians, the Gaussians of the missing values given the observed ones.

    Covariances depend on which columns are missing, the pattern, and not on the observed values.
    """

    means: Array  # (n, K, d) conditional means; observed values in the other columns
    pattern: np.ndarray  # (n,) number of the pattern of each row
    columns: tuple[np.ndarray, ...]  # the missing columns of each pattern, (m,)
    covs: tuple[Array, ...]  # (K, m, m) for each pattern

    def variances(self, column: int) -> Array:
        """Return the conditional variances of a column, (n, K); 0 where it is observed."""
        by_pattern = np.zeros((len(self.columns), self.means.shape[1]))
        for p, (columns, covs) in enumerate(zip(self.columns, self.covs)):
            place = np.flatnonzero(columns == column)
            if len(place):
                by_pattern[p] = covs[:, place[0], place[0]]
        return by_pattern[self.pattern]


def condition(means: Array, precisions: Array, X: Array) -> ConditionalGaussians:
    """Return the conditional Gaussians of the rows X (n, d), whose missing values are NaN.

    With precision P and z = x - m, the missing values have covariance (P_mm)^-1 and mean m_m - (P_mm)^-1 P_mo z_o.
    `precisions` are (K, d, d), or (K, d) if all covariances are diagonal.
    """
    missing = np.isnan(X)
    patterns, pattern = np.unique(missing, axis=0, return_inverse=True)
    pattern = pattern.reshape(len(X))  # some versions of numpy return a column
    out = np.broadcast_to(X[:, None, :], (len(X), *means.shape)).copy()
    order, counts = np.argsort(pattern, kind="stable"), np.bincount(pattern, minlength=len(patterns))
    columns, covs = [], []
    for absent, rows in zip(patterns, np.split(order, np.cumsum(counts)[:-1])):
        m, o = np.flatnonzero(absent), np.flatnonzero(~absent)
        mean, cov = _condition_pattern(means, precisions, X[rows][:, o], m, o)
        out[rows[:, None], :, m] = mean.transpose(0, 2, 1)
        columns.append(m)
        covs.append(cov)
    return ConditionalGaussians(out, pattern, tuple(columns), tuple(covs))


def _condition_pattern(
    means: Array, precisions: Array, observed: Array, m: np.ndarray, o: np.ndarray
) -> tuple[Array, Array]:
    """Return the conditional means (rows, K, m) and covariances (K, m, m) of the columns m, given the columns o."""
    if precisions.ndim == 2:
        covs = np.eye(len(m)) / precisions[:, m, None]
        return np.broadcast_to(means[:, m], (len(observed), *means[:, m].shape)), covs
    inverse = np.linalg.inv(np.linalg.cholesky(precisions[:, m[:, None], m]))
    covs = np.swapaxes(inverse, 1, 2) @ inverse
    slopes = covs @ precisions[:, m[:, None], o]  # (K, m, o)
    with np.errstate(over="ignore", invalid="ignore"):
        shift = np.einsum("kmo,nko->nkm", slopes, observed[:, None, :] - means[:, o])
        mean = means[:, m] - shift
    return np.where(np.isfinite(mean), mean, means[:, m]), covs
