"""A primal-dual interior-point method for the local problem of a Newton step, with the exact losses.

    minimize  v^T Q v / 2 + g^T v + sum_k w_k loss(m_k + a_k v)

Where the multipliers may grow large, a loss has almost a kink at the mean of the margin prior, and its quadratic
approximation gives useless steps. Here the multipliers λ and the slacks z = m + a v - u'(λ) are further
unknowns, both positive, and λ z is driven to zero. If the multipliers are bounded,
u'(λ) = regular_mean(λ) - h with (upper - λ) h = 1, and h is a third unknown: a linear approximation of
1 / (upper - λ) would overshoot the bound by far, and a single row would shorten the steps of all others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixent.core.arrays import Array
from mixent.core.linalg import solver_of
from mixent.med.margins import MarginPrior

MAX_ITER = 100  # linear systems solved
TO_BOUNDARY = 0.99  # largest fraction of the way to the boundary that a step may take
SHORT = 0.1  # a step that can take less than this fraction is replaced by a centering step
STALLED = 4  # iterations without progress after which rounding errors are taken to be the limit


@dataclass(frozen=True)
class Iterate:
    """The unknowns at an iteration, or a step of all of them."""

    v: Array  # (p,)
    lam: Array  # (K,)
    z: Array  # (K,)
    h: Array  # (K,)
    distance: Array  # (K,) upper - λ, stored since the difference is inaccurate close to the bound


def local_minimum(
    Q: Array, g: Array, A: Array, m: Array, weight: Array, margin: MarginPrior, precision: float = 1e-13
) -> tuple[Array, Array]:
    """The minimizing step v (p,), and the multipliers (K,), those below their slack as zero.

    Q (p, p) is positive semi-definite, A is (K, p), the weights are positive; `precision` is the relative
    complementarity λ z at the end.
    """
    return _InteriorPoint(Q, g, A, m, weight, margin).minimize(precision)


class _InteriorPoint:
    """The problem and the current iterate."""

    def __init__(self, Q: Array, g: Array, A: Array, m: Array, weight: Array, margin: MarginPrior) -> None:
        self.Q, self.g, self.A, self.m, self.weight, self.margin = Q, g, A, m, weight, margin
        self.relative_weight = weight / weight.sum()
        self.bounded = margin.upper < np.inf
        lam = np.minimum(np.ones(len(m)), 0.5 * margin.upper)
        distance = margin.upper - lam if self.bounded else np.ones(len(m))
        regular, _ = margin.regular_mean(lam)
        h = np.maximum(regular - m, 1.0 / distance) if self.bounded else np.zeros(len(m))
        self.current = Iterate(np.zeros(len(g)), lam, np.maximum(m - regular + h, 1.0), h, distance)

    def minimize(self, precision: float) -> tuple[Array, Array]:
        smallest, n_stalled = np.inf, 0
        for _ in range(MAX_ITER):
            self._compute_residuals()
            lam = self.current.lam
            error = self.error / (1.0 + float(np.abs(self.margins).mean()))
            dual_error = np.abs(self.dual).max() / (1.0 + np.abs(self.g).max() + float(self.weight @ lam))
            if error <= precision and dual_error <= 100 * precision:
                break
            smallest, n_stalled = (error, 0) if error < 0.5 * smallest else (smallest, n_stalled + 1)
            if n_stalled == STALLED and error < 1e-6 * (1.0 + float(lam.mean())):
                break
            self._iterate()
        x = self.current
        return x.v, np.where(x.lam > x.z, x.lam, 0.0)

    def _compute_residuals(self) -> None:
        """The residual of each optimality condition at the current iterate."""
        x = self.current
        regular, self.regular_curvature = self.margin.regular_mean(x.lam)
        self.margins = self.m + self.A @ x.v
        self.dual = self.Q @ x.v + self.g - self.A.T @ (self.weight * x.lam)
        self.slack = self.margins - regular + x.h - x.z
        self.bound = x.distance * x.h - 1.0 if self.bounded else np.zeros(len(x.h))
        self.mu = float(self.relative_weight @ (x.lam * x.z + np.abs(self.bound)))
        self.error = max(self.mu, np.abs(self.slack).max(initial=0.0) * float(x.lam.mean()))

    def _iterate(self) -> None:
        """Mehrotra's predictor-corrector step, or a centering step where that would be short."""
        x = self.current
        self.diagonal = x.z + x.lam * (self.regular_curvature + x.h / x.distance)
        self.solve = solver_of(self.Q + (self.A * (self.weight * x.lam / self.diagonal)[:, None]).T @ self.A)
        # the length of the predictor step determines the centering, and its second-order terms the correction
        predictor = self._direction(0.0, None)
        predicted = self._moved(predictor, min(self._largest_step(predictor), 1.0))
        bound = np.abs(predicted.distance * predicted.h - 1.0) if self.bounded else 0.0
        predicted_mu = float(self.relative_weight @ (predicted.lam * predicted.z + bound))
        step = self._direction(self.mu * min(predicted_mu / max(self.mu, 1e-300), 1.0) ** 3, predictor)
        length = min(TO_BOUNDARY * self._largest_step(step), 1.0)
        if length < SHORT:
            step = self._direction(0.5 * self.mu, None)
            length = min(TO_BOUNDARY * self._largest_step(step), 1.0)
        self.current = self._moved(step, length)

    def _direction(self, mu: float, predictor: Iterate | None) -> Iterate:
        """The Newton step towards  λ z = mu  and  (upper - λ) h = 1 + mu."""
        x = self.current
        complementarity = mu - x.lam * x.z
        bound = mu - self.bound if self.bounded else np.zeros(len(x.h))
        if predictor is not None:
            complementarity = complementarity - predictor.lam * predictor.z
            bound = bound + predictor.lam * predictor.h
        right = (complementarity - x.lam * (self.slack + bound / x.distance)) / self.diagonal
        v = self.solve(self.A.T @ (self.weight * right) - self.dual)
        lam = right - x.lam * (self.A @ v) / self.diagonal
        h = (bound + x.h * lam) / x.distance if self.bounded else np.zeros(len(x.h))
        return Iterate(v, lam, (complementarity - x.z * lam) / x.lam, h, -lam if self.bounded else np.zeros(len(lam)))

    def _moved(self, step: Iterate, length: float) -> Iterate:
        x = self.current
        return Iterate(
            x.v + length * step.v,
            x.lam + length * step.lam,
            x.z + length * step.z,
            x.h + length * step.h,
            x.distance + length * step.distance,
        )

    def _largest_step(self, step: Iterate) -> float:
        """The length at which the first of the positive unknowns becomes zero."""
        x = self.current
        pairs = [(x.lam, step.lam), (x.z, step.z)]
        if self.bounded:
            pairs += [(x.h, step.h), (x.distance, step.distance)]
        with np.errstate(divide="ignore", invalid="ignore"):
            return min(float(np.where(d < 0, -value / d, np.inf).min(initial=np.inf)) for value, d in pairs)
