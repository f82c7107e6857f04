"""Calibrated probabilities from expected discriminant functions, fitted to the scores of held-out rows.

    P(c | x) = (1 - e) p(c) + e / C,     p(c) ~ exp(a F_c(x) + o_c),      a > 0 and (affine only) o,

by maximum likelihood with a weak prior on log a and a tight one on the offsets o. The label of a row is a likelihood
l(c), so that the row contributes  -log sum_c l(c) P(c | x);  for a certain label this is the usual log-loss. The lapse
rate e = 1 / (n + 2), for n held-out rows, is an error rate that these rows cannot rule out. So no probability is 0 or
1, even if the scores separate the classes, and the loss of a misclassified row is at most log((n + 2) C), so that a
single outlier does not flatten the probabilities of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from mixent.core.arrays import Array, weighted_quantile
from mixent.show import Short

PRIOR_MEAN, PRIOR_STD = np.log(3.0), 2.0  # of log a, for scores divided by their typical lead
MAX_SCORE = 1e100  # scores are clipped here, to avoid overflow
OFFSET_STD = 0.5  # prior standard deviation of an offset, in nats
MAX_STEPS = 100  # of Newton's method
MIN_CURVATURE = 1e-3  # of the penalized likelihood, in a step of Newton's method
MIN_DECREASE = 1e-13  # relative decrease that a step must predict
LOG_SLOPES = np.linspace(-6.0, 8.0, 29)  # grid of log a, since the likelihood may have several maxima


@dataclass(frozen=True, repr=False)
class Calibration(Short):
    """Map from scores to log-probabilities."""

    slope: float
    offset: Array  # (C,)
    lapse: float = 0.0
    prior_shift: Array | None = None  # (C,) log-ratio of the class priors in use to those of the training rows

    def __call__(self, scores: Array) -> Array:
        """(n, C) log-probabilities, up to a constant for each row."""
        logits = self.slope * self._with_offset(scores)
        if self.lapse > 0:
            p = softmax(logits, axis=1)
            logits = np.log((1.0 - self.lapse) * p + self.lapse / p.shape[1])
        return logits + self._shift

    def without_lapses(self, scores: Array) -> Array:
        """(n, C) log-probabilities with a lapse rate of zero, up to a constant for each row."""
        return self.slope * self._with_offset(scores) + self._shift

    @property
    def _shift(self) -> Array | float:
        return 0.0 if self.prior_shift is None else self.prior_shift

    def decision(self, scores: Array) -> Array:
        """(n, C) values in the units of the scores, the largest of which belongs to the most probable class.

        These are the scores with their offsets, F + o / a; with other class priors, log-probabilities divided by a.
        """
        return self._with_offset(scores) if self.prior_shift is None else self(scores) / self.slope

    @property
    def score_offset(self) -> Array:
        """(C,) offsets in the units of the scores, o / a."""
        return self.offset / self.slope

    def _with_offset(self, scores: Array) -> Array:
        return np.clip(scores, -MAX_SCORE, MAX_SCORE) + self.score_offset


def log_loss(log_prob: Array, likelihood: Array, weight: Array) -> float:
    """Mean of -log sum_c l(c) P(c) over the rows, in nats, for label likelihoods l; see the module."""
    return -float(weight @ np.log((likelihood * np.exp(log_prob)).sum(axis=1))) / float(weight.sum())


def typical_lead(scores: Array, weight: Array) -> float:
    """Median difference between the highest and the second highest score of a row."""
    ascending = np.sort(scores, axis=1)
    lead = weighted_quantile(ascending[:, -1] - ascending[:, -2], weight, 0.5)
    return lead if lead > 0 else float(np.abs(scores).max(initial=0.0)) or 1.0


def fit_calibration(scores: Array, likelihood: Array, weight: Array, *, affine: bool) -> Calibration:
    """Fit a calibration to held-out scores (n, C), label likelihoods (n, C) and weights (n,)."""
    lead = typical_lead(scores, weight)
    problem = CalibrationProblem(np.clip(scores / lead, -MAX_SCORE, MAX_SCORE), likelihood, weight, affine)
    calibration = problem.fit()
    return replace(calibration, slope=calibration.slope / lead)


class CalibrationProblem:
    """Penalized likelihood of the slope and the offsets, for scores divided by their typical lead."""

    def __init__(self, scores: Array, likelihood: Array, weight: Array, affine: bool) -> None:
        self.scores, self.likelihood, self.weight = scores, likelihood, weight
        self.lapse = 1.0 / (float(weight.sum()) + 2.0)
        self.lapsed = self.lapse * likelihood.mean(axis=1)
        self.free = (affine & (weight @ likelihood > 0)).astype(float)  # classes without rows have no offset

    def value(self, v: Array) -> float:
        """Penalized loss of log a and the offsets."""
        _, share = self._shares(v)
        mixed = (1.0 - self.lapse) * share + self.lapsed
        penalty = 0.5 * ((v[0] - PRIOR_MEAN) / PRIOR_STD) ** 2 + 0.5 * float(v[1:] @ v[1:]) / OFFSET_STD**2
        return penalty - float(self.weight @ np.log(mixed))

    def _shares(self, v: Array) -> tuple[Array, Array]:
        """(n, C) probabilities without lapses, and (n,) likelihoods of the labels under them."""
        p = np.exp(v[0]) * self.scores + self.free * v[1:]
        p -= p.max(axis=1, keepdims=True)
        np.exp(p, out=p)
        p /= p.sum(axis=1, keepdims=True)
        return p, np.einsum("nc,nc->n", self.likelihood, p)

    def derivatives(self, v: Array) -> tuple[Array, Array]:
        """Gradient and Hessian matrix of the value.

        With g minus the gradient of the loss of a row with respect to its logits, its Hessian matrix with respect to
        these is  -diag(g) + g p' + p g' + g g'.
        """
        p, share = self._shares(v)
        relative = (1.0 - self.lapse) / ((1.0 - self.lapse) * share + self.lapsed)
        g = (self.likelihood - share[:, None]) * p * relative[:, None]
        z, w, free = np.exp(v[0]) * self.scores, self.weight, self.free
        gz, pz, wg = (g * z).sum(axis=1), (p * z).sum(axis=1), w[:, None] * g
        cross = (wg + w[:, None] * p).T @ g + wg.T @ p
        hessian = np.empty((1 + len(free), 1 + len(free)))
        hessian[1:, 1:] = np.outer(free, free) * (cross - np.diag(wg.sum(axis=0)))
        hessian[0, 1:] = free * ((w * gz) @ (p + g) + (w * pz) @ g - (wg * z).sum(axis=0))
        hessian[1:, 0] = hessian[0, 1:]
        hessian[0, 0] = w @ (gz**2 + 2.0 * gz * pz - gz) - (wg * z**2).sum()
        precision = np.append(1.0 / PRIOR_STD**2, np.full(len(free), 1.0 / OFFSET_STD**2))
        gradient = np.append(-(w @ gz), -free * wg.sum(axis=0)) + precision * (v - np.append(PRIOR_MEAN, 0.0 * free))
        return gradient, hessian + np.diag(precision)

    def fit(self) -> Calibration:
        """The best of the minima that are reached from the local minima of the grid of slopes."""
        starts = np.column_stack([LOG_SLOPES, np.zeros((len(LOG_SLOPES), len(self.free)))])
        at_grid = np.array([self.value(v) for v in starts])
        padded = np.concatenate([[np.inf], at_grid, [np.inf]])
        lowest = (at_grid <= padded[:-2]) & (at_grid < padded[2:])
        best = min((self.descend(v) for v in starts[lowest]), key=self.value)
        return Calibration(float(np.exp(best[0])), self.free * best[1:], self.lapse)

    def descend(self, v: Array) -> Array:
        """A local minimum, by Newton's method with the absolute eigenvalues of the Hessian matrix and halved steps."""
        value = self.value(v)
        for _ in range(MAX_STEPS):
            gradient, hessian = self.derivatives(v)
            curvature, axes = np.linalg.eigh(hessian)
            step = -axes @ ((gradient @ axes) / np.maximum(np.abs(curvature), MIN_CURVATURE))
            step /= max(1.0, np.abs(step).max())  # at most a factor e of the slope
            decrease = -float(gradient @ step)
            trial = v
            while decrease > MIN_DECREASE * (1.0 + abs(value)):
                trial = v + step
                trial_value = self.value(trial)
                if trial_value <= value - 1e-4 * decrease:
                    break
                step, decrease, trial = 0.5 * step, 0.5 * decrease, v
            if trial is v:
                break
            v, value = trial, trial_value
        return v
