"""Bounded log-loss, and the temperature T in  log p(class) + T log p(x | class)  of least loss on held-out rows.

The loss of a row is  -log [(1 - e) p + e / C],  where p is the probability of its class, C the number of classes and
e = `UNIFORM_SHARE`. It is at most log(C / e), so that a single row, an outlier or one with a wrong label, cannot decide
between models.
"""

from __future__ import annotations

import numpy as np

from mixent.core.arrays import Array

UNIFORM_SHARE = 1e-3  # e, the share of the uniform distribution over the classes
LOWEST, HIGHEST = 0.02, 1.0  # probabilities may be softened, never sharpened
FAR = 1e4  # nats below the largest density: very unlikely, not impossible
GOLDEN = (5**0.5 - 1) / 2
ROUNDS = 20  # of the golden section search; they determine log T up to 0.0003


def log_with_uniform(log_proba: Array, share: float = UNIFORM_SHARE, axis: int = -1) -> Array:
    """Return log [(1 - e) p + e / C], for log probabilities along an axis of C classes."""
    return np.log((1 - share) * np.exp(log_proba) + share / log_proba.shape[axis])


def row_losses(density: Array, prior: Array, temperature: float | Array, target: Array) -> Array:
    """Return the bounded loss of each row, (..., n), with p(c | x) from  log p(class) + T log p(x | class).

    An uncertain label is a likelihood here as in training: p is  sum_c l_c p(c | x).

    Parameters
    ----------
    density : (..., n, C) array
        log p(x | class).
    prior : array
        log p(class), of a shape that fits `density`.
    temperature : float or array of a shape that fits `density`
    target : (n, C) array
        Label likelihoods l.
    """
    return _losses(_relative(density), prior, temperature, target)


def _losses(relative: Array, prior: Array, temperature: float | Array, target: Array) -> Array:
    joint = prior + temperature * relative
    joint -= joint.max(axis=-1, keepdims=True)
    np.exp(joint, out=joint)
    joint /= joint.sum(axis=-1, keepdims=True)
    share = np.einsum("...c,...c->...", joint, target)
    return -np.log((1 - UNIFORM_SHARE) * share + UNIFORM_SHARE * target.mean(axis=-1))


def _relative(density: Array) -> Array:
    """Return log densities relative to the largest of their row, which are finite."""
    top = density.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    return np.clip(np.nan_to_num(density - top, nan=-FAR), -FAR, 0.0)


def fit_temperature(density: Array, prior: Array, target: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Return the T of least loss, this loss, and the loss at T = 1.

    Parameters
    ----------
    density : (..., n, C) array
        log p(x | class), of one or of several models.
    prior : array
        log p(class), of a shape that fits `density`.
    target : (n, C) array
        Label likelihoods.
    weight : (n,) array

    Returns
    -------
    three arrays of shape (...,)
    """
    weight, density = weight / weight.sum(), _relative(density)

    def loss(log_t: Array) -> Array:
        return _losses(density, prior, np.exp(log_t)[..., None, None], target) @ weight

    low = np.full(density.shape[:-2], np.log(LOWEST))
    high = np.full(density.shape[:-2], np.log(HIGHEST))
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = loss(left), loss(right)
    for _ in range(ROUNDS):  # golden section, for all models at once
        shrink = at_left < at_right  # the minimum is below `right`
        low, high = np.where(shrink, low, left), np.where(shrink, right, high)
        other = np.where(shrink, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
        at_other = loss(other)
        left, right = np.where(shrink, other, right), np.where(shrink, left, other)
        at_left, at_right = np.where(shrink, at_other, at_right), np.where(shrink, at_left, at_other)
    ends = np.full(low.shape, np.log(LOWEST)), np.full(low.shape, np.log(HIGHEST))
    tried = np.stack([ends[1], left, right, ends[0]])
    losses = np.stack([loss(ends[1]), at_left, at_right, loss(ends[0])])
    best = losses.argmin(axis=0)[None]
    return np.exp(np.take_along_axis(tried, best, 0))[0], np.take_along_axis(losses, best, 0)[0], losses[0]
