"""Gaussians with Normal-Wishart distributions over their parameters (001, section 3.1.1), as log-partitions.

A distribution over (mean, covariance) is known by natural statistics T = (N, sum w x, sum w x x^T): that many rows
with that mean and scatter S = sum w x x^T - N m m^T. Up to a multiple of N its log-partition (16) is

    A(T) = - d/2 log N - N/2 log det S + sum_j log Gamma((N + 1 - j) / 2),    N > d - 1,  S positive definite.

Everything below is computed in coordinates z = L^-1 (x - m), S = L L^T, of the distribution itself, where the mean is
0 and the scatter 1: there the gradient of A and its Hessian H are all but diagonal, and no offset costs digits.
Vectors of statistics are laid out as (N, z_i, z_i^2, sqrt2 z_i z_j for i < j), so that their inner product with the
same features of a row is the expected log-density.
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
from mixent.med.problem import PROXIMAL, Local, MedProblem, Pull, Rows, pull, spoken, unbalanced


@dataclass(frozen=True)
class NormalWishart:
    """N(mean; m, V / N) IW(V; S, N)."""

    rows: float  # N
    mean: Array  # (d,) m
    root: Array  # (d, d) L, lower: S = L L^T

    @property
    def d(self) -> int:
        return len(self.mean)

    @cached_property
    def log_det(self) -> float:
        """Of L: half that of S."""
        return float(np.log(np.diagonal(self.root)).sum())

    def whiten(self, X: Array) -> Array:
        """(n, d) coordinates z."""
        return solve_triangular(self.root, (X - self.mean).T, lower=True).T

    @cached_property
    def constant(self) -> float:
        """E log p(x | mean, V) at x = m; (19) with its constant."""
        d, N = self.d, self.rows
        digamma = psi(0.5 * (N + 1 - np.arange(1, d + 1))).sum()
        return float(-0.5 * d * np.log(np.pi) - self.log_det + 0.5 * digamma - 0.5 * d / N)

    def expected_log_prob(self, X: Array) -> Array:
        """(n,) E log p(x | mean, V), equation 19."""
        return self.constant - 0.5 * self.rows * (self.whiten(X) ** 2).sum(axis=1)

    def predictive_log_prob(self, X: Array) -> Array:
        """(n,) log E p(x | mean, V): Student's t with N + 1 - d degrees of freedom."""
        d, N = self.d, self.rows
        free = N + 1 - d
        # S' = S + N / (N + 1) (x - m)(x - m)^T, and the ratio of the partition functions with and without x
        far = np.log1p(N / (N + 1) * (self.whiten(X) ** 2).sum(axis=1))
        ratio = gammaln(0.5 * (N + 1)) - gammaln(0.5 * free) - 0.5 * d * np.log(np.pi)
        return ratio - 0.5 * d * np.log((N + 1) / N) - self.log_det - 0.5 * (N + 1) * far

    def features(self, X: Array) -> Array:
        """(n, m) of rows, m = (d + 1)(d + 2) / 2."""
        Z = self.whiten(X)
        i, j = np.triu_indices(self.d, 1)
        return np.concatenate([np.ones((len(Z), 1)), Z, Z**2, np.sqrt(2.0) * Z[:, i] * Z[:, j]], axis=1)

    def seen_from(self, other: NormalWishart) -> Array:
        """(m,) the statistics of this distribution in the coordinates of `other`."""
        shift = solve_triangular(other.root, self.mean - other.mean, lower=True)
        root = solve_triangular(other.root, self.root, lower=True)
        square = root @ root.T + self.rows * np.outer(shift, shift)
        i, j = np.triu_indices(self.d, 1)
        return np.concatenate([[self.rows], self.rows * shift, np.diagonal(square), np.sqrt(2.0) * square[i, j]])

    def at(self, statistics: Array) -> NormalWishart:
        """The distribution with these statistics, which are in the coordinates of this one."""
        d, N = self.d, float(statistics[0])
        if not d - 1 < N < np.inf:
            raise OutsideDomainError(f"a class would count {N:.3g} rows, and {d} columns take more than {d - 1}")
        mean = statistics[1 : d + 1] / N
        S = np.diag(statistics[d + 1 : 2 * d + 1])
        i, j = np.triu_indices(d, 1)
        S[i, j] = S[j, i] = statistics[2 * d + 1 :] / np.sqrt(2.0)
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
        """(m,) of A, here: the expected log-density's coefficients."""
        d, N = self.d, self.rows
        out = np.zeros((d + 1) * (d + 2) // 2)
        out[0] = 0.5 * psi(0.5 * (N + 1 - np.arange(1, d + 1))).sum() - 0.5 * d / N
        out[d + 1 : 2 * d + 1] = -0.5 * N
        return out

    @cached_property
    def metric_inverse(self) -> Array:
        """(m, m) H^-1, here."""
        d, N = self.d, self.rows
        h = 0.5 * d / N**2 + 0.25 * polygamma(1, 0.5 * (N + 1 - np.arange(1, d + 1))).sum()
        left = h - 0.5 * d / N  # of N, once the squares are accounted for
        width = (d + 1) * (d + 2) // 2
        out = np.diag(np.r_[1.0 / left, np.ones(d), np.full(width - d - 1, 2.0 / N)])
        squares = np.arange(d + 1, 2 * d + 1)
        out[0, squares] = out[squares, 0] = 1.0 / (left * N)
        out[np.ix_(squares, squares)] += 1.0 / (left * N**2)
        return out

    def divergence(self, prior: NormalWishart) -> float:
        """Relative entropy from the prior, nats."""
        moved = self.seen_from(self) - prior.seen_from(self)
        return float(moved @ self.gradient) - self.log_partition(self) + prior.log_partition(self)


def class_statistics(
    X: Array, weight: Array, k: float, mean: Array, cov: Array, spread: Array | float = 0.0
) -> NormalWishart:
    """The posterior of the prior (k, mean, cov) and these rows: the prior of discrimination (16, mended).

    `spread` (d,) is the variance of all rows, of any class.

    N = k + sum w,  m = (k mean + sum w x) / N,  S = k cov + sum w x x^T + k mean mean^T - N m m^T.
    """
    N = k + float(weight.sum())
    m = (k * mean + weight @ X) / N
    left = X - m
    away = mean - m
    S = k * cov + (left * weight[:, None]).T @ left + k * np.outer(away, away)
    d = X.shape[1]
    if not d - 1 < N:
        raise OutsideDomainError(f"counts {N:.3g} rows, and {d} columns take more than {d - 1}")
    scale = np.sqrt(np.maximum(np.diagonal(S), 1e-300))
    dependent = "has columns that are constant or depend on each other"
    if (scale**2 <= 1e-12 * N * spread).any():  # rounding about a constant
        raise OutsideDomainError(dependent)
    try:
        root = cholesky(S / np.outer(scale, scale), lower=True)
    except LinAlgError as error:
        raise OutsideDomainError(dependent) from error
    if np.diagonal(root).min() < 1e-7:
        raise OutsideDomainError(dependent)
    return NormalWishart(N, m, scale[:, None] * root)


@dataclass(frozen=True)
class Ensemble:
    """A distribution over the Gaussians of every class, and the mean of the bias."""

    classes: tuple[NormalWishart, ...]
    bias: Array  # (C - 1,) in contrasts


@dataclass(frozen=True)
class GaussianProblem(MedProblem[Ensemble]):
    """Equation 18, through its dual:  max  - sum_s D(P_s || P0_s) - |b - b0|^2 / (2 bias_variance) - sum w loss."""

    newton_steps = 6  # margins in nats are large: their losses soon break

    outputs: Array  # (pairs, C)
    margin: MarginPrior
    bias_variance: float  # inf: flat
    prior: Ensemble
    contrast: Array  # (C, C - 1)

    def scores(self, params: Ensemble, X: Array) -> Array:
        log_prob = np.column_stack([one.expected_log_prob(X) for one in params.classes])
        return log_prob + self.contrast @ params.bias

    def prepare(self, params: Ensemble) -> Ensemble:
        return params

    def stats(self, ready: Ensemble, block: Rows) -> Pull:  # type: ignore[override]
        features = [one.features(block.X) for one in ready.classes]
        return pull(block, self.scores(ready, block.X), features, self.outputs, self.margin)

    def divergence(self, params: Ensemble) -> float:
        away = params.bias - self.prior.bias
        parts = [one.divergence(prior) for one, prior in zip(params.classes, self.prior.classes)]
        return sum(parts) + 0.5 * float(away @ away) / self.bias_variance

    def update(self, params: Ensemble, total: Pull, step: float) -> Ensemble:
        """The Newton step, in mean parameters:  (H^-1 + B) d_eta = r,  d_T = H^-1 d_eta."""
        reach = self._reach(params)
        Q, g = self._held(params, total.weight)
        force = reach.T @ np.concatenate(total.force)
        return self.moved(params, step * solve_positive(Q + reach.T @ total.curvature @ reach, force - g))

    def _reach(self, params: Ensemble) -> Array:
        """(M, M + C - 1) what moves the scores: mean parameters, and the bias."""
        C, G = self.contrast.shape
        width = len(params.classes[0].gradient)
        reach = np.zeros((C * width, C * width + G))
        reach[:, : C * width] = np.eye(C * width)
        reach[::width, C * width :] = self.contrast
        return reach

    def _held(self, params: Ensemble, weight: float) -> tuple[Array, Array]:
        """Curvature and slope of D in mean parameters and bias."""
        C, G = self.contrast.shape
        width = len(params.classes[0].gradient)
        Q = np.zeros((C * width + G, C * width + G))
        for s, one in enumerate(params.classes):
            at = slice(s * width, (s + 1) * width)
            Q[at, at] = one.metric_inverse
        bias = np.arange(C * width, C * width + G)
        Q[bias, bias] = 1.0 / self.bias_variance + PROXIMAL * weight
        away = [one.seen_from(one) - prior.seen_from(one) for one, prior in zip(params.classes, self.prior.classes)]
        return Q, np.concatenate([*away, (params.bias - self.prior.bias) / self.bias_variance])

    def local(self, params: Ensemble, rows: Rows) -> Local:
        features = [one.features(rows.X) for one in params.classes]
        A, m, weight = spoken(rows, self.scores(params, rows.X), features, self.outputs)
        Q, g = self._held(params, float(rows.weight.sum()))
        return Local(Q, g, A @ self._reach(params), m, weight)

    def moved(self, params: Ensemble, move: Array) -> Ensemble:
        """The step, halved until it stays in the domain: the objective falls to -inf at the border."""
        C = len(params.classes)
        moves = move[: -self.contrast.shape[1]].reshape(C, -1)
        while True:
            try:
                classes = tuple(
                    one.at(one.seen_from(one) + one.metric_inverse @ own) for one, own in zip(params.classes, moves)
                )
                return Ensemble(classes, params.bias + move[moves.size :])
            except OutsideDomainError:
                move = 0.5 * move
                moves = 0.5 * moves

    def _drift(self, total: Pull) -> Array:
        return np.array([force[0] for force in total.force]) @ self.contrast

    def dual(self, params: Ensemble, total: Pull) -> float | None:
        drift = self._drift(total)
        value = total.potential
        if np.isfinite(self.bias_variance):
            value -= 0.5 * self.bias_variance * float(drift @ drift) + float(drift @ self.prior.bias)
        else:
            value -= unbalanced(drift, params.bias)
        try:
            for one, prior, force in zip(params.classes, self.prior.classes, total.force):
                value -= one.at(prior.seen_from(one) + force).log_partition(one) - prior.log_partition(one)
                value += float(force[0]) * one.log_det  # coordinates stretch densities, row by row
        except OutsideDomainError:
            return None
        return value
