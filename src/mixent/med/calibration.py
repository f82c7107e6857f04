"""From expected discriminant functions to probabilities: scores of rows that were held out, and their labels.

    P(c | x) = (1 - e) p(c) + e / C,     p(c) ~ exp(a F_c(x) + o_c),      a > 0 and (affine only) o,

by maximum likelihood with a weak prior of log a. The lapse e = 1 / (n + 2), n the rows held out, is what they cannot
exclude: scores that separate the classes make nothing certain, and one row on the wrong side, however far, costs no
more than log((n + 2) C) and does not blur all others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize, minimize_scalar
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
    C, n = scores.shape[1], float(weight.sum())
    lead, lapse = usual_lead(scores, weight), 1.0 / (n + 2.0)
    scaled = np.clip(scores / lead, -FAR, FAR)

    def loss(log_slope: float) -> float:
        made = Calibration(float(np.exp(log_slope)), np.zeros(C), lapse)
        return log_loss(made(scaled), target, weight) + penalty(log_slope) / n

    best = TRIED[int(np.argmin([loss(t) for t in TRIED]))]
    step = TRIED[1] - TRIED[0]
    found = minimize_scalar(loss, bounds=(best - step, best + step), method="bounded", options={"xatol": 1e-9})
    made = Calibration(float(np.exp(found.x)), np.zeros(C), lapse)
    if affine:
        made = _affine(scaled, target, weight, made)
    return replace(made, slope=made.slope / lead)


def _affine(scores: Array, target: Array, weight: Array, start: Calibration) -> Calibration:
    """Offsets beside the slope; none for a class that no row held out has."""
    n, C, lapse = float(weight.sum()), scores.shape[1], start.lapse
    met = (weight @ target > 0).astype(float)

    def loss(v: Array) -> tuple[float, Array]:
        p = softmax(np.exp(v[0]) * scores + met * v[1:], axis=1)
        mixed = (1.0 - lapse) * p + lapse / C
        held = 0.5 * float(v[1:] @ v[1:]) / OFFSET**2
        value = log_loss(np.log(mixed), target, weight) + (penalty(v[0]) + held) / n
        pull = -target * (1.0 - lapse) / mixed * weight[:, None] / n
        logit = p * (pull - (pull * p).sum(axis=1, keepdims=True))
        by_slope = np.exp(v[0]) * (logit * scores).sum() + (v[0] - USUAL) / SPREAD**2 / n
        return value, np.append(by_slope, met * logit.sum(axis=0) + v[1:] / OFFSET**2 / n)

    begin = np.append(np.log(start.slope), np.zeros(C))
    sharp = {"ftol": 1e-14, "gtol": 1e-9, "maxiter": 1000}
    found = minimize(loss, begin, jac=True, method="L-BFGS-B", options=sharp)
    return Calibration(float(np.exp(found.x[0])), met * found.x[1:], lapse)
