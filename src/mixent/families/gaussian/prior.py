"""The Normal-inverse-Wishart prior as pseudo-rows, for all covariance structures."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixent.core.arrays import Array

LEAST_SHARE = 1e-6  # of the weight of the rows, that the pseudo-rows of a prior have at least
ANCHOR_ROWS = 2.0  # rows that the reference variance counts for in `common_variances`
BISECTIONS = 60


@dataclass(frozen=True)
class Prior:
    """Normal-inverse-Wishart prior of each component, expressed as pseudo-rows.

    log p(m, C) = -1/2 [ rows log|C| + tr(C^-1 (rows cov + mean_rows (m - mean)(m - mean)^T)) ] + const,

    with Lambda = rows cov and nu + d + 2 = rows (improper with few rows or mean_rows = 0, which does not matter for a
    mode). The M-step of every structure is applied to (n_k + rows, W_k + rows cov + the mean term): a covariance is
    shrunk towards `cov` as by `rows` observations. For any rows > 0 the objective is bounded above, unlike the
    likelihood of a Gaussian mixture.
    """

    rows: Array  # (K,) or scalar array
    cov: Array  # (K, d, d), (d, d), or variances (d,); once expanded (K, d, d), or (K, d) for axis-aligned structures
    mean: Array  # (K, d) or (d,), about the family's center
    mean_rows: Array  # (K,) or scalar array

    @classmethod
    def of_covariances(cls, rows: float, cov: Array, weight: float) -> Prior:
        """Return a prior of covariances only, for rows with this total weight.

        It has at least 1e-6 times as many pseudo-rows as the rows weigh: otherwise, a covariance of columns that depend
        on each other would be singular up to rounding errors if there are many rows, or weights are large.
        """
        rows = max(rows, LEAST_SHARE * weight)
        return cls(np.array(rows), cov, np.zeros(cov.shape[-1]), np.array(0.0))

    def expand(self, n_components: int, axis_aligned: bool) -> Prior:
        """Return the prior with one entry per component, in the layout of the structures."""
        d = self.mean.shape[-1]
        cov = self.cov
        full = cov.ndim >= 2
        if axis_aligned and full:
            cov = np.diagonal(cov, axis1=-2, axis2=-1)
        elif not axis_aligned and not full:
            cov = cov[..., None] * np.eye(d)
        shape = (n_components, d) if axis_aligned else (n_components, d, d)
        return Prior(
            np.broadcast_to(self.rows, (n_components,)),
            np.broadcast_to(cov, shape),
            np.broadcast_to(self.mean, (n_components, d)),
            np.broadcast_to(self.mean_rows, (n_components,)),
        )

    def take(self, index: slice | np.ndarray) -> Prior:
        """Return the entries of some components."""
        return Prior(self.rows[index], self.cov[index], self.mean[index], self.mean_rows[index])

    def only(self, live: np.ndarray) -> Prior:
        """Return the prior with pseudo-rows for live components only."""
        return Prior(self.rows * live, self.cov, self.mean, self.mean_rows * live)

    def plus(self, other: Prior) -> Prior:
        """Return the product of two expanded priors, which has the same form.

        The mean terms combine to one about the weighted mean, and add a scatter between the two means.
        """
        rows, mean_rows = self.rows + other.rows, self.mean_rows + other.mean_rows
        share = np.divide(other.mean_rows, mean_rows, out=np.zeros_like(mean_rows), where=mean_rows > 0)[:, None]
        between = other.mean - self.mean
        joint = Prior(rows, self.cov, self.mean + share * between, mean_rows)
        lone = replace(self, mean_rows=np.zeros_like(rows)).scatter(self.mean)
        both = lone + replace(other, mean_rows=np.zeros_like(rows)).scatter(other.mean)
        spread = (self.mean_rows * share[:, 0])[:, None]
        if both.ndim == 2:
            both = both + spread * between**2
        else:
            both = both + spread[:, :, None] * between[:, :, None] * between[:, None, :]
        shape = (-1, *[1] * (both.ndim - 1))
        return replace(joint, cov=both / np.maximum(rows, 1e-300).reshape(shape))

    def times(self, factor: float) -> Prior:
        """Return the prior with its numbers of pseudo-rows multiplied by `factor`."""
        return replace(self, rows=factor * self.rows, mean_rows=factor * self.mean_rows)

    def scatter(self, means: Array) -> Array:
        """Return the scatter of the prior, rows cov + mean_rows (m - mean)(m - mean)^T, in the layout of `cov`."""
        scatter = self.rows.reshape(-1, *[1] * (self.cov.ndim - 1)) * self.cov
        if not self.mean_rows.any():
            return scatter
        difference = means - self.mean
        if self.cov.ndim == 2:
            return scatter + self.mean_rows[:, None] * difference**2
        return scatter + self.mean_rows[:, None, None] * difference[:, :, None] * difference[:, None, :]


def common_variances(rows: float, counts: Array, variances: Array, reference: Array) -> Array:
    """Return the variances s (d,) towards which a prior of `rows` pseudo-rows shrinks those of the components.

    Maximizes in every column the likelihood of s with the variances of the components integrated out (empirical Bayes),

        sum_k [ rows log s - (m_k + rows) log(m_k v_k + rows s) ] + 2 (log s - s / reference),

    where v_k is the variance of component k, estimated from m_k + 1 values. The gradient with respect to log s is -m_k
    for a component with v_k << s, but only +rows for one with v_k >> s: narrow components determine s, and wide ones
    are hardly shrunk. With m_k << rows, s is the mean of the v_k, weighted with m_k. The last term keeps s from
    vanishing if there are few values.

    Parameters
    ----------
    rows : float
        Number of pseudo-rows.
    counts, variances : (K, d) arrays
        m_k and v_k.
    reference : (d,) array
        Variances > 0, for columns in which no component has several values.
    """
    varying = counts * variances > 0
    ratio = np.where(varying, variances / reference, 1.0)
    low = np.minimum(np.log(ratio).min(axis=0), 0.0)
    high = np.maximum(np.log(ratio).max(axis=0), 0.0)
    m = np.where(varying, counts, 0.0)
    for _ in range(BISECTIONS):  # the gradient decreases from low to high
        middle = 0.5 * (low + high)
        s = np.exp(middle)
        gradient = (rows - (m + rows) * s / (m / rows * ratio + s)).sum(axis=0) + ANCHOR_ROWS * (1 - s)
        low, high = np.where(gradient > 0, middle, low), np.where(gradient > 0, high, middle)
    return reference * np.exp(0.5 * (low + high))
