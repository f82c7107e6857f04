"""The temperature T in  log p(class) + T log p(x | class)  that makes probabilities fit rows held out."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from mixent.core.arrays import Array, log_sum_exp, safe_log

LOWEST, HIGHEST = 0.02, 1.0  # probabilities may be softened, never sharpened
FAR = 1e4  # nats below the largest density: very unlikely, not impossible


def row_losses(density: Array, prior: Array, temperature: float, target: Array) -> Array:
    """-log sum_c p(c | x) l_c of each row, with p(c | x) from  log p(class) + T log p(x | class).

    Log-loss for a known class (l one-hot); an uncertain label is a likelihood here as in training.
    """
    density = np.maximum(density, density.max(axis=1, keepdims=True) - FAR)
    joint = prior + temperature * density
    return log_sum_exp(joint, axis=1) - log_sum_exp(joint + safe_log(target), axis=1)


def fit_temperature(density: Array, prior: Array, target: Array, weight: Array) -> tuple[float, float, float]:
    """T of least log-loss in  log p(class) + T log p(x | class), that log-loss, and the log-loss at T = 1."""
    weight = weight / weight.sum()

    def loss(log_t: float) -> float:
        return float(weight @ row_losses(density, prior, float(np.exp(log_t)), target))

    best = minimize_scalar(loss, bounds=(np.log(LOWEST), np.log(HIGHEST)), method="bounded", options={"xatol": 1e-3})
    raw = loss(0.0)
    return (float(np.exp(best.x)), float(best.fun), raw) if best.fun < raw else (1.0, raw, raw)
