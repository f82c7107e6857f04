"""From expected discriminant functions to probabilities: scores of rows that were held out, and their labels.

    P(c | x) ~ exp(a F_c(x) + o_c),      a > 0 and (affine only) o by maximum likelihood,

on label distributions that lean a little towards the other classes (Platt's remedy for scores that separate them).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from mixent.core.arrays import Array, log_sum_exp

REACH = 12.0  # of log a


@dataclass(frozen=True)
class Calibration:
    """log P(c | x) = a F_c + o_c - log sum."""

    slope: float
    offset: Array  # (C,)

    def __call__(self, scores: Array) -> Array:
        """(n, C) log-probabilities up to a constant of each row."""
        return self.slope * scores + self.offset


def leaning(target: Array, weight: Array) -> Array:
    """(n, C) label distributions, as if one row more of each class were of another, and one were not."""
    mass = weight @ target  # (C,)
    C = target.shape[1]
    kept = (mass + 1.0) / (mass + 2.0)  # of a row of each class
    others = (1.0 - kept) / (C - 1)
    spread = np.where(np.eye(C, dtype=bool), kept[:, None], others[:, None])  # (C, C)
    return target @ spread


def log_loss(scores: Array, target: Array, weight: Array) -> float:
    """Mean cross-entropy, nats."""
    log_prob = scores - log_sum_exp(scores, axis=1)[:, None]
    return -float(weight @ (target * log_prob).sum(axis=1)) / float(weight.sum())


def fit_calibration(scores: Array, target: Array, weight: Array, *, affine: bool) -> Calibration:
    """By maximum likelihood on held-out rows."""
    target = leaning(target, weight)
    size = float(np.ptp(scores, axis=1).mean()) or 1.0
    scaled = scores / size

    def loss(log_slope: float) -> float:
        return log_loss(np.exp(log_slope) * scaled, target, weight)

    best = minimize_scalar(loss, bounds=(-REACH, REACH), method="bounded", options={"xatol": 1e-8})
    C = scores.shape[1]
    start = float(np.exp(best.x))
    if not affine:
        return Calibration(start / size, np.zeros(C))

    def both(v: Array) -> tuple[float, Array]:
        logits = v[0] * scaled + np.append(v[1:], 0.0)
        log_prob = logits - log_sum_exp(logits, axis=1)[:, None]
        left = (np.exp(log_prob) * target.sum(axis=1, keepdims=True) - target) * weight[:, None] / weight.sum()
        value = -float(weight @ (target * log_prob).sum(axis=1)) / float(weight.sum())
        return value, np.append((left * scaled).sum(), left.sum(axis=0)[:-1])

    bounds = [(1e-6 * start, None), *[(None, None)] * (C - 1)]
    sharp = {"ftol": 1e-14, "gtol": 1e-9, "maxiter": 1000}
    begin = np.append(start, np.zeros(C - 1))
    found = minimize(both, begin, jac=True, method="L-BFGS-B", bounds=bounds, options=sharp)
    offset = np.append(found.x[1:], 0.0)
    return Calibration(float(found.x[0]) / size, offset - offset.mean())
