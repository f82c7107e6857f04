"""Array operations: scratch memory, logarithms of sums of exponentials, weighted quantiles."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Scratch(threading.local):
    """Named work arrays, one set per thread, reused for all blocks.

    Allocating arrays of megabytes for every block costs page faults; reused arrays stay in the cache.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}

    def get(self, name: str, shape: tuple[int, ...]) -> Array:
        """Return an uninitialized C-ordered array of this shape, valid until the next call with the same name."""
        size = math.prod(shape)
        flat = self._arrays.get(name)
        if flat is None or flat.size < size:
            flat = self._arrays[name] = np.empty(size)
        return flat[:size].reshape(shape)


scratch = Scratch()


@contextmanager
def long_rows() -> Iterator[None]:
    """Make ufuncs work on the rows of a matrix without copying them.

    With its default buffer size, numpy copies several rows of up to some thousand numbers into a buffer when an operand
    is broadcast or padded, which takes twice as long as the operation itself.
    """
    size = np.setbufsize(512)  # applies to this thread only
    try:
        yield
    finally:
        np.setbufsize(size)


def softmax_columns(log_joint: Array) -> Array:
    """Replace log p(k, x), (K, n), by p(k | x) in place and return log p(x), (n,).

    A column of -inf gives -inf and zeros, not NaN.
    """
    top = log_joint.max(axis=0, initial=-np.inf)  # without components the density is zero
    possible = True if top.min(initial=0.0) > -np.inf else ~np.isneginf(top)
    if possible is not True:
        top = np.where(possible, top, 0.0)
    log_joint -= top
    np.exp(log_joint, out=log_joint)
    mass = log_joint.sum(axis=0)
    log_mass = safe_log(mass)
    np.divide(1.0, mass, out=mass, where=possible)
    log_joint *= mass
    log_mass += top
    return log_mass


def log_sum_exp(values: Array, axis: int) -> Array:
    """Return the logarithm of the sum of exponentials along an axis; -inf for a slice that is empty or all -inf."""
    top = values.max(axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        log_sum: Array = np.log(np.exp(values - top).sum(axis=axis)) + np.squeeze(top, axis=axis)
    return log_sum


def weighted_total(log_lik: Array, weight: Array | None) -> float:
    """Return sum_n w_n l_n; a row of weight zero is excluded, even if its density is zero (l_n = -inf)."""
    if weight is None:
        return float(log_lik.sum())
    return float(np.where(weight > 0, log_lik, 0.0) @ weight)


def safe_log(values: Array) -> Array:
    """Return the logarithm, with log 0 = -inf and no warning (a zero weight masks a row)."""
    with np.errstate(divide="ignore"):
        return np.log(values)


def weighted_quantile(values: Array, weight: Array, share: float) -> float:
    """Return the smallest value with at least this share of the weight at or below it."""
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weight[order])
    position = int(np.searchsorted(cumulative, share * cumulative[-1] * (1.0 - 1e-12)))
    return float(values[order][min(position, len(order) - 1)])
