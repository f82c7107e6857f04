"""The Normal-inverse-Wishart prior as pseudo-rows, for all covariance structures."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixent.core.arrays import Array


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
        difference = means - self.mean
        if self.cov.ndim == 2:
            return self.rows[:, None] * self.cov + self.mean_rows[:, None] * difference**2
        outer = difference[:, :, None] * difference[:, None, :]
        return self.rows[:, None, None] * self.cov + self.mean_rows[:, None, None] * outer
