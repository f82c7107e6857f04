"""The kernel Fisher discriminant as ridge regression on class indicators, with every row left out in closed form.

    minimize  sum_n w_n |Y_n - b - f(x_n)|^2 + lam |f|^2        Y_n: one bit for each class, f in the kernel's space

In coordinates scaled by s = sqrt(w), with P the projection that takes the mean out, the fit is (a smoother)

    s f = H s Y,    H = s s'/|s|^2 + U diag(e / (e + lam)) U',    P (s K s') P = U diag(e) U'

so one decomposition serves every lam. A row of weight w of which u is left out is predicted by the others as

    (f_n - (u/w) H_nn Y_n) / (1 - (u/w) H_nn).

Fisher's directions (Mika et al. 1999; for more classes Hastie, Buja and Tibshirani 1995) are combinations `f t`,

    Y' H Y t = a2 Y' W Y t,

which maximize variance between classes over variance within classes plus lam |f|^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular

from mixent.base.kernels import CUT
from mixent.core.arrays import Array, log_sum_exp

TINY = 1e-12  # of the indicators' scatter, which soft labels may leave without an inverse
LEAST = 1e-10  # of 1 - H_nn: a row that nothing else can predict


@dataclass(frozen=True)
class Smoother:
    """Ridge regression for every lam at once."""

    root: Array  # (n,) sqrt of the weights
    U: Array  # (n, r)
    values: Array  # (r,) e
    basis: Array | None  # (r, r) of features: eigenvectors of their scatter; None: U is of the kernel matrix

    @classmethod
    def of_kernel(cls, K: Array, weight: Array) -> Smoother:
        """From the kernel matrix of the rows."""
        root = np.sqrt(weight)
        direction = root / np.sqrt(weight.sum())
        scaled = root[:, None] * K * root
        side = scaled @ direction
        scaled -= np.outer(side, direction) + np.outer(direction, side)
        # far below all others, lest it mix with the eigenvectors of least value: a coefficient is one over those
        trace = float(np.trace(scaled) + direction @ side)
        scaled += np.outer(direction, direction) * (float(direction @ side) - max(trace, 1e-300))
        values, U = eigh(scaled, overwrite_a=True)
        keep = values > CUT * max(float(values[-1]), 1e-300)
        return cls(root, U[:, keep], values[keep], None)

    @classmethod
    def of_features(cls, Z: Array, weight: Array) -> Smoother:
        """From features whose inner products are the kernel."""
        root = np.sqrt(weight)
        D = root[:, None] * (Z - weight @ Z / weight.sum())
        values, vectors = eigh(D.T @ D)
        keep = values > CUT * max(float(values[-1]), 1e-300)
        return cls(root, D @ vectors[:, keep] / np.sqrt(values[keep]), values[keep], vectors[:, keep])

    @property
    def trace(self) -> float:
        """Sum of the rows' squared distances from their mean, in the kernel's space."""
        return float(self.values.sum())

    def centered(self, target: Array) -> Array:
        """(n, C) scaled by the root of the weights, the mean taken out."""
        scaled = self.root[:, None] * target
        return scaled - self.root[:, None] * (self.root @ scaled / (self.root @ self.root))

    def left_out(self, target: Array, lam: float, out: Array) -> tuple[Array, Array]:
        """Predictions (n, C) of all rows, and of each by the others when `out` (n,) of its weight is left out."""
        shrink = self.values / (self.values + lam)
        mean = self.root**2 @ target / (self.root @ self.root)
        fit = mean + (self.U * shrink) @ (self.U.T @ self.centered(target)) / self.root[:, None]
        leverage = self.root**2 / (self.root @ self.root) + self.U**2 @ shrink
        part = (out / self.root**2 * leverage)[:, None]
        return fit, (fit - part * target) / np.maximum(1.0 - part, LEAST)

    def coefficients(self, target: Array, lam: float) -> Array:
        """(n, C) of the kernel with each row, or (r, C) of the features; without the intercept."""
        inner = self.U.T @ self.centered(target)
        if self.basis is not None:
            return self.basis @ (np.sqrt(self.values)[:, None] * inner / (self.values + lam)[:, None])
        pulls = self.U @ (inner / (self.values + lam)[:, None])
        return self.root[:, None] * pulls


def directions(target: Array, fit: Array, weight: Array) -> Array:
    """(C, C-1) combinations t of the class scores that are Fisher's, the strongest first; t' Y'WY t is one."""
    share = weight / weight.sum()
    within = (target * share[:, None]).T @ target  # of the indicators; diagonal where labels are certain
    mean = share @ target
    within += TINY * np.diag(mean)
    between = (target * share[:, None]).T @ (fit - mean)
    trivial = np.outer(mean, mean)  # the scores of all classes alike: put at -1, below all others
    found = eigh(0.5 * (between + between.T) - trivial, within)[1][:, :0:-1]
    strongest = np.take_along_axis(found, np.abs(found).argmax(axis=0)[None], axis=0)
    last = np.where(np.abs(found[-1]) > 1e-9 * np.abs(strongest[0]), found[-1], strongest[0])
    return found * np.sign(last)  # a sign is free: that of the last class is positive


@dataclass(frozen=True)
class ClassGaussians:
    """A Gaussian for each class, all with one covariance."""

    means: Array  # (C, q)
    cov: Array  # (q, q)

    @classmethod
    def of(cls, scores: Array, counts: Array, floor: Array) -> ClassGaussians:
        """Of scores (n, q) of rows with counts (n, C); `floor` (q, q) is the covariance that one more row brings."""
        mass = counts.sum(axis=0)
        means = counts.T @ scores / mass[:, None]
        scatter = floor.copy()
        for c, mean in enumerate(means):
            gone = scores - mean
            scatter += (gone * counts[:, c, None]).T @ gone
        return cls(means, scatter / (mass.sum() + 1.0))

    def scaled(self, by: Array) -> ClassGaussians:
        """Of scores times `by` (q,)."""
        return ClassGaussians(self.means * by, self.cov * by * by[:, None])

    def log_density(self, scores: Array) -> Array:
        """(n, C), a term that is the same for all classes left out."""
        root = cholesky(self.cov, lower=True)
        means = solve_triangular(root, self.means.T, lower=True)  # (q, C)
        here = solve_triangular(root, scores.T, lower=True)  # (q, n)
        return here.T @ means - 0.5 * (means**2).sum(axis=0)


def log_proba(log_density: Array, prior: Array, n_rows: float) -> Array:
    """(n, C) by Bayes' rule, a share of 1 / (n + 2) spread as the prior: so much may any row be unlike all others."""
    joint = log_density + np.log(prior)
    share = 1.0 / (n_rows + 2.0)
    told = joint - log_sum_exp(joint, axis=1)[:, None]
    return np.logaddexp(told + np.log1p(-share), np.log(prior * share))
