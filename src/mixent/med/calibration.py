"""Calibrated probabilities from expected discriminant functions, fitted to the scores of held-out rows.

    P(c | x) = (1 - e) p(c) + e / C,     p(c) ~ exp(a F_c(x) + o_c),      a > 0 and (affine only) o,

by maximum likelihood with a weak prior on log a. The lapse rate e = 1 / (n + 2), for n held-out rows, is an error rate
that these rows cannot rule out. So no probability is 0 or 1, even if the scores separate the classes, and the loss of a
misclassified row is at most log((n + 2) C), so that a single outlier does not flatten the probabilities of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import softmax

from mixent.core.arrays import Array, weighted_quantile
from mixent.show import Short

PRIOR_MEAN, PRIOR_STD = np.log(3.0), 2.0  # of log a, for scores divided by their typical lead
MAX_SCORE = 1e100  # scores are clipped here, to avoid overflow
OFFSET_STD = 5.0  # prior standard deviation of an offset
LOG_SLOPES = np.linspace(-10.0, 10.0, 41)  # grid of log a, since the likelihood may have several maxima


@dataclass(frozen=True, repr=False)
class Calibration(Short):
    """Map from scores to log-probabilities."""

    slope: float
    offset: Array  # (C,)
    lapse: float = 0.0
    prior_shift: Array | None = None  # (C,) log-ratio of the class priors in use to those of the training rows

    def __call__(self, scores: Array) -> Array:
        """(n, C) log-probabilities, up to a constant for each row."""
        logits = self.slope * np.clip(scores, -MAX_SCORE, MAX_SCORE) + self.offset
        if self.lapse > 0:
            p = softmax(logits, axis=1)
            logits = np.log((1.0 - self.lapse) * p + self.lapse / p.shape[1])
        return logits if self.prior_shift is None else logits + self.prior_shift


def log_loss(log_prob: Array, target: Array, weight: Array) -> float:
    """Mean cross-entropy, in nats."""
    return -float(weight @ (target * log_prob).sum(axis=1)) / float(weight.sum())


def typical_lead(scores: Array, weight: Array) -> float:
    """Median difference between the highest and the second highest score of a row."""
    ascending = np.sort(scores, axis=1)
    lead = weighted_quantile(ascending[:, -1] - ascending[:, -2], weight, 0.5)
    return lead if lead > 0 else float(np.abs(scores).max(initial=0.0)) or 1.0


def slope_penalty(log_slope: float) -> float:
    """Negative log-prior of the slope, for scores divided by their typical lead."""
    return 0.5 * ((log_slope - PRIOR_MEAN) / PRIOR_STD) ** 2


def fit_calibration(scores: Array, target: Array, weight: Array, *, affine: bool) -> Calibration:
    """Fit a calibration to held-out scores (n, C), label distributions (n, C) and weights (n,)."""
    lead = typical_lead(scores, weight)
    problem = _CalibrationProblem(np.clip(scores / lead, -MAX_SCORE, MAX_SCORE), target, weight)
    calibration = problem.fit_temperature()
    if affine:
        calibration = problem.fit_affine(calibration)
    return replace(calibration, slope=calibration.slope / lead)


class _CalibrationProblem:
    """Penalized likelihood of the slope and the offsets, for scores divided by their typical lead."""

    def __init__(self, scores: Array, target: Array, weight: Array) -> None:
        self.scores, self.target, self.weight = scores, target, weight
        self.n, self.C = float(weight.sum()), scores.shape[1]
        self.lapse = 1.0 / (self.n + 2.0)
        self.present = (weight @ target > 0).astype(float)  # classes without rows have no offset

    def loss(self, v: Array) -> tuple[float, Array]:
        """Penalized loss per row of log a and the offsets, with its gradient."""
        p = softmax(np.exp(v[0]) * self.scores + self.present * v[1:], axis=1)
        mixed = (1.0 - self.lapse) * p + self.lapse / self.C
        offset_penalty = 0.5 * float(v[1:] @ v[1:]) / OFFSET_STD**2
        penalty = slope_penalty(v[0]) + offset_penalty
        value = log_loss(np.log(mixed), self.target, self.weight) + penalty / self.n
        by_p = -self.target * (1.0 - self.lapse) / mixed * self.weight[:, None] / self.n
        by_logit = p * (by_p - (by_p * p).sum(axis=1, keepdims=True))
        by_slope = np.exp(v[0]) * (by_logit * self.scores).sum() + (v[0] - PRIOR_MEAN) / PRIOR_STD**2 / self.n
        by_offset = self.present * by_logit.sum(axis=0) + v[1:] / OFFSET_STD**2 / self.n
        return value, np.append(by_slope, by_offset)

    def fit_temperature(self) -> Calibration:
        """The best slope of the grid, refined to a root of the derivative."""

        def loss(log_slope: float) -> tuple[float, Array]:
            return self.loss(np.append(log_slope, np.zeros(self.C)))

        best = float(LOG_SLOPES[int(np.argmin([loss(t)[0] for t in LOG_SLOPES]))])
        step = float(LOG_SLOPES[1] - LOG_SLOPES[0])
        low, high = best - step, best + step
        if loss(low)[1][0] < 0 < loss(high)[1][0]:
            best = float(brentq(lambda t: loss(t)[1][0], low, high, xtol=1e-13, rtol=1e-13))
        return Calibration(float(np.exp(best)), np.zeros(self.C), self.lapse)

    def fit_affine(self, initial: Calibration) -> Calibration:
        """Slope and offsets, starting from a slope without offsets."""
        v = np.append(np.log(initial.slope), np.zeros(self.C))
        options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000}
        optimum = minimize(self.loss, v, jac=True, method="L-BFGS-B", options=options).x
        return Calibration(float(np.exp(optimum[0])), self.present * optimum[1:], self.lapse)
