"""Gaussians with Normal-Wishart distributions over their parameters (001, section 3.1.1).

A distribution over (mean, covariance) has natural parameters T = (N, sum w x, sum w x x^T): the number, the sum and
the second moments of rows with mean m and scatter S = sum w x x^T - N m m^T. Up to a multiple of N its log-partition
function (16) is

    A(T) = - d/2 log N - N/2 log det S + sum_j log Gamma((N + 1 - j) / 2),    N > d - 1,  S positive definite.

All computations use the coordinates z = L^-1 (x - m), S = L L^T, of the distribution itself, where the mean is 0 and
the scatter is the identity. There the gradient and the Hessian H of A are nearly diagonal, and columns far from zero
lose no precision. In vectors, T has the entries (N, z_i, z_i^2, sqrt2 z_i z_j for i < j). The inner product
of the gradient of A with these features of a row is the row's expected log-density.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import gammaln, polygamma, psi

from mixent.core.arrays import Array
from mixent.core.driver import OutsideDomainError
from mixent.core.linalg import solve_positive
from mixent.med.margins import MarginPrior
from mixent.med.problem import (
    PROXIMAL,
    LocalProblem,
    MarginStats,
    MedProblem,
    Rows,
    imbalance_penalty,
    linearized_margins,
    margin_stats,
)
from mixent.show import Short


@dataclass(frozen=True, repr=False)
class NormalWishart(Short):
    """N(mean; m, V / N) IW(V; S, N)."""

    rows: float  # N
    mean: Array  # (d,) m
    root: Array  # (d, d) L, lower: S = L L^T

    @property
    def d(self) -> int:
        return len(self.mean)

    @cached_property
    def log_det(self) -> float:
        """log det L, half of log det S."""
        return float(np.log(np.diagonal(self.root)).sum())

    def whiten(self, X: Array) -> Array:
        """(n, d) the rows in coordinates z."""
        return solve_triangular(self.root, (X - self.mean).T, lower=True).T

    @cached_property
    def constant(self) -> float:
        """E log p(x | mean, V) at x = m: the constant of equation 19."""
        d, N = self.d, self.rows
        digamma = psi(0.5 * (N + 1 - np.arange(1, d + 1))).sum()
        return float(-0.5 * d * np.log(np.pi) - self.log_det + 0.5 * digamma - 0.5 * d / N)

    def expected_log_prob(self, X: Array) -> Array:
        """(n,) E log p(x | mean, V), equation 19."""
        return self.constant - 0.5 * self.rows * (self.whiten(X) ** 2).sum(axis=1)

    def predictive_log_prob(self, X: Array) -> Array:
        """(n,) log E p(x | mean, V): Student's t with N + 1 - d degrees of freedom."""
        d, N = self.d, self.rows
        degrees_of_freedom = N + 1 - d
        # the ratio of the partition functions with and without x, where S' = S + N / (N + 1) (x - m)(x - m)^T
        log_growth = np.log1p(N / (N + 1) * (self.whiten(X) ** 2).sum(axis=1))
        ratio = gammaln(0.5 * (N + 1)) - gammaln(0.5 * degrees_of_freedom) - 0.5 * d * np.log(np.pi)
        return ratio - 0.5 * d * np.log((N + 1) / N) - self.log_det - 0.5 * (N + 1) * log_growth

    def features(self, X: Array) -> Array:
        """(n, m) features of rows, m = (d + 1)(d + 2) / 2."""
        Z = self.whiten(X)
        i, j = np.triu_indices(self.d, 1)
        return np.concatenate([np.ones((len(Z), 1)), Z, Z**2, np.sqrt(2.0) * Z[:, i] * Z[:, j]], axis=1)

    def natural_parameters_in(self, other: NormalWishart) -> Array:
        """(m,) natural parameters of this distribution, in the coordinates of `other`."""
        shift = solve_triangular(other.root, self.mean - other.mean, lower=True)
        root = solve_triangular(other.root, self.root, lower=True)
        square = root @ root.T + self.rows * np.outer(shift, shift)
        i, j = np.triu_indices(self.d, 1)
        return np.concatenate([[self.rows], self.rows * shift, np.diagonal(square), np.sqrt(2.0) * square[i, j]])

    def with_natural_parameters(self, T: Array) -> NormalWishart:
        """The distribution with these natural parameters, given in the coordinates of this one."""
        d, N = self.d, float(T[0])
        if not d - 1 < N < np.inf:
            raise OutsideDomainError(
                f"a class would have a total weight of {N:.3g}; {d} columns need more than {d - 1}"
            )
        mean = T[1 : d + 1] / N
        S = np.diag(T[d + 1 : 2 * d + 1])
        i, j = np.triu_indices(d, 1)
        S[i, j] = S[j, i] = T[2 * d + 1 :] / np.sqrt(2.0)
        try:
            root = cholesky(S - N * np.outer(mean, mean), lower=True)
        except (LinAlgError, ValueError) as error:
            raise OutsideDomainError("the scatter of a class would not be positive definite") from error
        return NormalWishart(N, self.mean + self.root @ mean, self.root @ root)

    def log_partition(self, origin: NormalWishart) -> float:
        """A(T) in the coordinates of `origin`."""
        j = np.arange(1, self.d + 1)
        log_det = 2.0 * (self.log_det - origin.log_det)
        gamma = float(gammaln(0.5 * (self.rows + 1 - j)).sum())
        return -0.5 * self.d * float(np.log(self.rows)) - 0.5 * self.rows * log_det + gamma

    @cached_property
    def gradient(self) -> Array:
        """(m,) gradient of A, in these coordinates: the coefficients of the expected log-density."""
        d, N = self.d, self.rows
        out = np.zeros((d + 1) * (d + 2) // 2)
        out[0] = 0.5 * psi(0.5 * (N + 1 - np.arange(1, d + 1))).sum() - 0.5 * d / N
        out[d + 1 : 2 * d + 1] = -0.5 * N
        return out

    @cached_property
    def hessian_inverse(self) -> Array:
        """(m, m) H^-1, in these coordinates."""
        d, N = self.d, self.rows
        h = 0.5 * d / N**2 + 0.25 * polygamma(1, 0.5 * (N + 1 - np.arange(1, d + 1))).sum()
        schur = h - 0.5 * d / N  # Schur complement of the squares, for N
        width = (d + 1) * (d + 2) // 2
        out = np.diag(np.r_[1.0 / schur, np.ones(d), np.full(width - d - 1, 2.0 / N)])
        squares = np.arange(d + 1, 2 * d + 1)
        out[0, squares] = out[squares, 0] = 1.0 / (schur * N)
        out[np.ix_(squares, squares)] += 1.0 / (schur * N**2)
        return out

    def divergence(self, prior: NormalWishart) -> float:
        """Relative entropy to the prior, in nats."""
        difference = self.natural_parameters_in(self) - prior.natural_parameters_in(self)
        return float(difference @ self.gradient) - self.log_partition(self) + prior.log_partition(self)


def class_posterior(
    X: Array, weight: Array, k: float, mean: Array, cov: Array, spread: Array | float = 0.0
) -> NormalWishart:
    """The posterior of the prior (k, mean, cov) given these rows, which is the prior of discrimination (16, corrected).

    N = k + sum w,  m = (k mean + sum w x) / N,  S = k cov + sum w x x^T + k mean mean^T - N m m^T.

    `spread` (d,) is the variance of the rows of all classes together.
    """
    N = k + float(weight.sum())
    m = (k * mean + weight @ X) / N
    centered = X - m
    shift = mean - m
    S = k * cov + (centered * weight[:, None]).T @ centered + k * np.outer(shift, shift)
    d = X.shape[1]
    if not d - 1 < N:
        raise OutsideDomainError(f"has a total weight of {N:.3g}; {d} columns need more than {d - 1}")
    scale = np.sqrt(np.maximum(np.diagonal(S), 1e-300))
    dependent = "has columns that are constant or depend on each other"
    if (scale**2 <= 1e-12 * N * spread).any():  # nothing but rounding errors about a constant
        raise OutsideDomainError(dependent)
    try:
        root = cholesky(S / np.outer(scale, scale), lower=True)
    except LinAlgError as error:
        raise OutsideDomainError(dependent) from error
    if np.diagonal(root).min() < 1e-7:
        raise OutsideDomainError(dependent)
    return NormalWishart(N, m, scale[:, None] * root)


@dataclass(frozen=True, repr=False)
class ClassNormalWisharts(Short):
    """The distributions over the Gaussians of all classes, and the mean of the bias."""

    classes: tuple[NormalWishart, ...]
    bias: Array  # (C - 1,) coefficients of the contrasts


@dataclass(frozen=True)
class GaussianProblem(MedProblem[ClassNormalWisharts]):
    """The dual of equation 18:  max  - sum_s D(P_s || P0_s) - |b - b0|^2 / (2 bias_variance) - sum w loss."""

    newton_steps = 6  # margins in nats are large, and their losses nearly have kinks

    outputs: Array  # (pairs, C)
    margin: MarginPrior
    bias_variance: float  # inf: flat prior
    prior: ClassNormalWisharts
    contrast: Array  # (C, C - 1)

    def scores(self, params: ClassNormalWisharts, X: Array) -> Array:
        log_prob = np.column_stack([gaussian.expected_log_prob(X) for gaussian in params.classes])
        return log_prob + self.contrast @ params.bias

    def prepare(self, params: ClassNormalWisharts) -> ClassNormalWisharts:
        return params

    def stats(self, ready: ClassNormalWisharts, block: Rows) -> MarginStats:  # type: ignore[override]
        features = [gaussian.features(block.X) for gaussian in ready.classes]
        return margin_stats(block, self.scores(ready, block.X), features, self.outputs, self.margin)

    def divergence(self, params: ClassNormalWisharts) -> float:
        shift = params.bias - self.prior.bias
        parts = [gaussian.divergence(prior) for gaussian, prior in zip(params.classes, self.prior.classes)]
        return sum(parts) + 0.5 * float(shift @ shift) / self.bias_variance

    def update(self, params: ClassNormalWisharts, total: MarginStats, step: float) -> ClassNormalWisharts:
        """The Newton step, in mean parameters:  (H^-1 + B) d_eta = r,  d_T = H^-1 d_eta."""
        J = self._jacobian(params)
        Q, g = self._divergence_derivatives(params, total.weight)
        gradient = J.T @ np.concatenate(total.gradient)
        return self.step(params, step * solve_positive(Q + J.T @ total.curvature @ J, gradient - g))

    def _jacobian(self, params: ClassNormalWisharts) -> Array:
        """(M, M + C - 1) derivative of the coefficients of the scores in the mean parameters and the bias."""
        C, G = self.contrast.shape
        width = len(params.classes[0].gradient)
        jacobian = np.zeros((C * width, C * width + G))
        jacobian[:, : C * width] = np.eye(C * width)
        jacobian[::width, C * width :] = self.contrast
        return jacobian

    def _divergence_derivatives(self, params: ClassNormalWisharts, weight: float) -> tuple[Array, Array]:
        """Hessian and gradient of D in the mean parameters and the bias."""
        C, G = self.contrast.shape
        width = len(params.classes[0].gradient)
        Q = np.zeros((C * width + G, C * width + G))
        for s, gaussian in enumerate(params.classes):
            block = slice(s * width, (s + 1) * width)
            Q[block, block] = gaussian.hessian_inverse
        bias = np.arange(C * width, C * width + G)
        Q[bias, bias] = 1.0 / self.bias_variance + PROXIMAL * weight
        gradients = [
            gaussian.natural_parameters_in(gaussian) - prior.natural_parameters_in(gaussian)
            for gaussian, prior in zip(params.classes, self.prior.classes)
        ]
        return Q, np.concatenate([*gradients, (params.bias - self.prior.bias) / self.bias_variance])

    def local(self, params: ClassNormalWisharts, rows: Rows) -> LocalProblem:
        features = [gaussian.features(rows.X) for gaussian in params.classes]
        A, m, weight = linearized_margins(rows, self.scores(params, rows.X), features, self.outputs)
        Q, g = self._divergence_derivatives(params, float(rows.weight.sum()))
        return LocalProblem(Q, g, A @ self._jacobian(params), m, weight)

    def step(self, params: ClassNormalWisharts, v: Array) -> ClassNormalWisharts:
        """The parameters after a step v, halved until it stays in the domain (the objective is -inf at its border)."""
        C = len(params.classes)
        class_steps = v[: -self.contrast.shape[1]].reshape(C, -1)
        while True:
            try:
                classes = tuple(
                    gaussian.with_natural_parameters(
                        gaussian.natural_parameters_in(gaussian) + gaussian.hessian_inverse @ class_step
                    )
                    for gaussian, class_step in zip(params.classes, class_steps)
                )
                return ClassNormalWisharts(classes, params.bias + v[class_steps.size :])
            except OutsideDomainError:
                v = 0.5 * v
                class_steps = 0.5 * class_steps

    def _bias_gradient(self, total: MarginStats) -> Array:
        return np.array([gradient[0] for gradient in total.gradient]) @ self.contrast

    def dual(self, params: ClassNormalWisharts, total: MarginStats) -> float | None:
        slope = self._bias_gradient(total)
        value = total.potential
        if np.isfinite(self.bias_variance):
            value -= 0.5 * self.bias_variance * float(slope @ slope) + float(slope @ self.prior.bias)
        else:
            value -= imbalance_penalty(slope, params.bias)
        try:
            for frame, prior, gradient in zip(params.classes, self.prior.classes, total.gradient):
                tilted = frame.with_natural_parameters(prior.natural_parameters_in(frame) + gradient)
                value -= tilted.log_partition(frame) - prior.log_partition(frame)
                value += float(gradient[0]) * frame.log_det  # the Jacobian of the coordinates, once per row
        except OutsideDomainError:
            return None
        return value
