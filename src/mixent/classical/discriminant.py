"""The kernel Fisher discriminant as ridge regression on class indicators, with exact leave-one-out predictions.

    minimize  sum_n w_n |Y_n - b - f(x_n)|^2 + lam |f|^2        Y_n: one-hot class of row n, f in the kernel's space

In coordinates scaled by s = sqrt(w), with P the projection that removes the mean, the fit is a linear smoother

    s f = H s Y,    H = s s'/|s|^2 + U diag(e / (e + lam)) U',    P (s K s') P = U diag(e) U'

so one eigendecomposition gives the fit for every lam. If the weight u of a row of weight w is left out, the prediction
of the row from the remaining rows is

    (f_n - (u/w) H_nn Y_n) / (1 - (u/w) H_nn).

Fisher's directions (Mika et al. 1999; for more than two classes Hastie, Buja and Tibshirani 1995) are the combinations
`f t` with

    Y' H Y t = a2 Y' W Y t,

which maximize the variance between classes over the variance within classes plus lam |f|^2 / N (N: the total weight).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular

from mixent.base.kernels import CUT
from mixent.core.arrays import Array, log_sum_exp
from mixent.show import Short

REGULARIZATION = 1e-12  # of the scatter of the indicators, which may be singular with uncertain labels
CENTERED = 1e-13  # share of the squared norms of rows that is left by rounding when their mean is subtracted
MIN_RESIDUAL = 1e-10  # lower bound of 1 - H_nn, which vanishes for a row that no other row predicts


@dataclass(frozen=True)
class Smoother:
    """Ridge regression for all values of lam, from one eigendecomposition."""

    sqrt_weight: Array  # (n,)
    U: Array  # (n, r)
    values: Array  # (r,) e
    basis: Array | None  # (r, r) eigenvectors of the features' scatter; None: U is from the kernel matrix

    @classmethod
    def of_kernel(cls, K: Array, weight: Array) -> Smoother:
        """From the kernel matrix of the rows."""
        sqrt_weight = np.sqrt(weight)
        direction = sqrt_weight / np.sqrt(weight.sum())
        scaled = sqrt_weight[:, None] * K * sqrt_weight
        power = float(np.trace(scaled))
        side = scaled @ direction
        scaled -= np.outer(side, direction) + np.outer(direction, side)
        # the mean direction gets an eigenvalue far below all others, so that it does not mix with the eigenvectors of
        # the smallest eigenvalues, by which the coefficients are divided
        trace = float(np.trace(scaled) + direction @ side)
        scaled += np.outer(direction, direction) * (float(direction @ side) - max(trace, 1e-300))
        values, U = eigh(scaled, overwrite_a=True)
        keep = values > _smallest(values, power)
        return cls(sqrt_weight, U[:, keep], values[keep], None)

    @classmethod
    def of_features(cls, Z: Array, weight: Array) -> Smoother:
        """From features whose inner products are the kernel."""
        sqrt_weight = np.sqrt(weight)
        D = sqrt_weight[:, None] * (Z - weight @ Z / weight.sum())
        values, vectors = eigh(D.T @ D)
        keep = values > _smallest(values, float(weight @ (Z**2).sum(axis=1)))
        return cls(sqrt_weight, D @ vectors[:, keep] / np.sqrt(values[keep]), values[keep], vectors[:, keep])

    @property
    def trace(self) -> float:
        """Sum of the squared distances of the rows from their mean, in the kernel's space."""
        return float(self.values.sum())

    def centered(self, target: Array) -> Array:
        """(n, C) minus the weighted mean, scaled by the square root of the weights."""
        scaled = self.sqrt_weight[:, None] * target
        mean = self.sqrt_weight @ scaled / (self.sqrt_weight @ self.sqrt_weight)
        return scaled - self.sqrt_weight[:, None] * mean

    def leave_one_out(self, target: Array, lam: float, left_out: Array) -> tuple[Array, Array]:
        """Fitted values (n, C), and leave-one-out predictions when `left_out` (n,) of each row's weight is removed."""
        shrink = self.values / (self.values + lam)
        total = self.sqrt_weight @ self.sqrt_weight
        mean = self.sqrt_weight**2 @ target / total
        fit = mean + (self.U * shrink) @ (self.U.T @ self.centered(target)) / self.sqrt_weight[:, None]
        leverage = self.sqrt_weight**2 / total + self.U**2 @ shrink
        own = (left_out / self.sqrt_weight**2 * leverage)[:, None]
        return fit, (fit - own * target) / np.maximum(1.0 - own, MIN_RESIDUAL)

    def coefficients(self, target: Array, lam: float) -> Array:
        """(n, C) coefficients of the kernel with each row, or (r, C) of the features, without the intercept."""
        inner = self.U.T @ self.centered(target)
        if self.basis is not None:
            return self.basis @ (np.sqrt(self.values)[:, None] * inner / (self.values + lam)[:, None])
        return self.sqrt_weight[:, None] * (self.U @ (inner / (self.values + lam)[:, None]))


def _smallest(values: Array, power: float) -> float:
    """Eigenvalue below which there are only rounding errors, of the eigenvectors or of the subtraction of the mean."""
    return max(CUT * float(values[-1]), CENTERED * power, 1e-300)


def directions(target: Array, fit: Array, weight: Array) -> Array:
    """(C, C-1) Fisher's directions t as combinations of the class scores, strongest first, with t' Y'WY t = 1."""
    share = weight / weight.sum()
    within = (target * share[:, None]).T @ target  # scatter of the indicators; diagonal if labels are certain
    mean = share @ target
    within += REGULARIZATION * np.diag(mean)
    between = (target * share[:, None]).T @ (fit - mean)
    trivial = np.outer(mean, mean)  # equal scores of all classes: eigenvalue -1, below all others
    vectors = eigh(0.5 * (between + between.T) - trivial, within)[1][:, :0:-1]
    strongest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None], axis=0)
    last = np.where(np.abs(vectors[-1]) > 1e-9 * np.abs(strongest[0]), vectors[-1], strongest[0])
    return vectors * np.sign(last)  # the sign is arbitrary: make the coefficient of the last class positive


@dataclass(frozen=True, repr=False)
class ClassGaussians(Short):
    """Gaussian densities of the classes with a common covariance."""

    means: Array  # (C, q)
    cov: Array  # (q, q)

    @classmethod
    def of(cls, scores: Array, counts: Array, floor: Array) -> ClassGaussians:
        """From scores (n, q) and counts (n, C); `floor` (q, q) is the scatter of one additional row."""
        mass = counts.sum(axis=0)
        means = counts.T @ scores / mass[:, None]
        scatter = floor.copy()
        for c, mean in enumerate(means):
            residual = scores - mean
            scatter += (residual * counts[:, c, None]).T @ residual
        return cls(means, scatter / (mass.sum() + 1.0))

    def scaled(self, factor: Array) -> ClassGaussians:
        """The Gaussians of the scores multiplied by `factor` (q,)."""
        return ClassGaussians(self.means * factor, self.cov * factor * factor[:, None])

    def log_density(self, scores: Array) -> Array:
        """(n, C) log-density, up to a constant that is the same for all classes."""
        root = cholesky(self.cov, lower=True)
        means = solve_triangular(root, self.means.T, lower=True)  # (q, C)
        whitened = solve_triangular(root, scores.T, lower=True)  # (q, n)
        return whitened.T @ means - 0.5 * (means**2).sum(axis=0)


def log_proba(log_density: Array, prior: Array, n_rows: float) -> Array:
    """(n, C) log class probabilities by Bayes' rule, mixed with a share 1 / (n + 2) of the class prior.

    The share bounds the loss of a row that resembles no training row.
    """
    joint = log_density + np.log(prior)
    share = 1.0 / (n_rows + 2.0)
    log_posterior = joint - log_sum_exp(joint, axis=1)[:, None]
    return np.logaddexp(log_posterior + np.log1p(-share), np.log(prior * share))
