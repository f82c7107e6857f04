"""From expected discriminant functions to probabilities: scores of rows that were held out, and their labels.

    P(c | x) = (1 - e) p(c) + e / C,     p(c) ~ exp(a F_c(x) + o_c),      a > 0 and (affine only) o,

by maximum likelihood with a weak prior of log a. The lapse e = 1 / (n + 2), n the rows held out, is what they cannot
exclude: scores that separate the classes make nothing certain, and one row on the wrong side, however far, costs no
more than log((n + 2) C) and does not blur all others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import softmax

from mixent.core.arrays import Array, weighted_quantile

USUAL, SPREAD = np.log(3.0), 2.0  # mean and standard deviation of log a, in units of the usual lead
FAR = 1e100  # scores are cut there: an overflow says no more
OFFSET = 5.0  # standard deviation of an offset, before any row is seen
TRIED = np.linspace(-10.0, 10.0, 41)  # log a: the likelihood may have more than one maximum


@dataclass(frozen=True)
class Calibration:
    """How scores become probabilities."""

    slope: float
    offset: Array  # (C,)
    lapse: float = 0.0
    moved: Array | None = None  # (C,) log-ratio of other class priors to those of the rows it was fitted to

    def __call__(self, scores: Array) -> Array:
        """(n, C) log-probabilities, up to a constant of the row."""
        logits = self.slope * np.clip(scores, -FAR, FAR) + self.offset
        if self.lapse > 0:
            p = softmax(logits, axis=1)
            logits = np.log((1.0 - self.lapse) * p + self.lapse / p.shape[1])
        return logits if self.moved is None else logits + self.moved


def log_loss(log_prob: Array, target: Array, weight: Array) -> float:
    """Mean cross-entropy, nats."""
    return -float(weight @ (target * log_prob).sum(axis=1)) / float(weight.sum())


def usual_lead(scores: Array, weight: Array) -> float:
    """By how much the best class of a row leads: the median."""
    order = np.sort(scores, axis=1)
    lead = weighted_quantile(order[:, -1] - order[:, -2], weight, 0.5)
    return lead if lead > 0 else float(np.abs(scores).max(initial=0.0)) or 1.0


def penalty(log_slope: float) -> float:
    """Minus the log-prior of the slope, in units of the usual lead."""
    return 0.5 * ((log_slope - USUAL) / SPREAD) ** 2


def fit_calibration(scores: Array, target: Array, weight: Array, *, affine: bool) -> Calibration:
    """By maximum likelihood on held-out rows."""
    lead = usual_lead(scores, weight)
    held = _Held(np.clip(scores / lead, -FAR, FAR), target, weight)
    made = held.temperature()
    if affine:
        made = held.affine(made)
    return replace(made, slope=made.slope / lead)


class _Held:
    """Rows held out: scores in units of the usual lead, label distributions, weights."""

    def __init__(self, scores: Array, target: Array, weight: Array) -> None:
        self.scores, self.target, self.weight = scores, target, weight
        self.n, self.C = float(weight.sum()), scores.shape[1]
        self.lapse = 1.0 / (self.n + 2.0)
        self.met = (weight @ target > 0).astype(float)  # a class that no row has gets no offset

    def loss(self, v: Array) -> tuple[float, Array]:
        """Of log a and the offsets, with its gradient."""
        p = softmax(np.exp(v[0]) * self.scores + self.met * v[1:], axis=1)
        mixed = (1.0 - self.lapse) * p + self.lapse / self.C
        held = 0.5 * float(v[1:] @ v[1:]) / OFFSET**2
        value = log_loss(np.log(mixed), self.target, self.weight) + (penalty(v[0]) + held) / self.n
        pull = -self.target * (1.0 - self.lapse) / mixed * self.weight[:, None] / self.n
        logit = p * (pull - (pull * p).sum(axis=1, keepdims=True))
        by_slope = np.exp(v[0]) * (logit * self.scores).sum() + (v[0] - USUAL) / SPREAD**2 / self.n
        return value, np.append(by_slope, self.met * logit.sum(axis=0) + v[1:] / OFFSET**2 / self.n)

    def temperature(self) -> Calibration:
        """The best slope: of those tried, and then where the derivative is zero."""

        def at(log_slope: float) -> tuple[float, Array]:
            return self.loss(np.append(log_slope, np.zeros(self.C)))

        best = float(TRIED[int(np.argmin([at(t)[0] for t in TRIED]))])
        step = float(TRIED[1] - TRIED[0])
        low, high = best - step, best + step
        if at(low)[1][0] < 0 < at(high)[1][0]:
            best = float(brentq(lambda t: at(t)[1][0], low, high, xtol=1e-13, rtol=1e-13))
        return Calibration(float(np.exp(best)), np.zeros(self.C), self.lapse)

    def affine(self, start: Calibration) -> Calibration:
        """Offsets beside the slope."""
        begin = np.append(np.log(start.slope), np.zeros(self.C))
        sharp = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000}
        found = minimize(self.loss, begin, jac=True, method="L-BFGS-B", options=sharp)
        return Calibration(float(np.exp(found.x[0])), self.met * found.x[1:], self.lapse)
