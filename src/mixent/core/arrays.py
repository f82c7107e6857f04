"""Array operations behind which the numpy kernels live: scratch memory, sums of exponentials in place."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Scratch(threading.local):
    """Named work arrays, one set per thread, reused from block to block.

    Fresh megabyte-sized arrays cost page faults at every block; these stay in the cache.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}

    def get(self, name: str, shape: tuple[int, ...]) -> Array:
        """An uninitialized C-ordered array of this shape; valid until the same name is asked for again."""
        size = math.prod(shape)
        flat = self._arrays.get(name)
        if flat is None or flat.size < size:
            flat = self._arrays[name] = np.empty(size)
        return flat[:size].reshape(shape)


scratch = Scratch()


@contextmanager
def long_rows() -> Iterator[None]:
    """Let ufuncs run along the rows of a matrix as they are.

    With its default buffer numpy first copies several rows of up to some thousand numbers together when an operand is
    broadcast or padded, which costs twice the operation itself.
    """
    size = np.setbufsize(512)  # of this thread
    try:
        yield
    finally:
        np.setbufsize(size)


def softmax_columns(log_joint: Array) -> Array:
    """Turn log p(k, x) (K, n) into p(k | x) in place; return log p(x) (n,).

    A column that is -inf throughout gives -inf and zeros, not NaN.
    """
    top = log_joint.max(axis=0, initial=-np.inf)  # without components nothing has any density
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
    """Logarithm of a sum of exponentials along an axis; an empty or all -inf slice gives -inf."""
    top = values.max(axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        log_sum: Array = np.log(np.exp(values - top).sum(axis=axis)) + np.squeeze(top, axis=axis)
    return log_sum


def safe_log(values: Array) -> Array:
    """Logarithm with log 0 = -inf and no warning: a zero weight is a mask."""
    with np.errstate(divide="ignore"):
        return np.log(values)


def weighted_quantile(values: Array, weight: Array, share: float) -> float:
    """Smallest value with at least that share of the weight at or below it."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order])
    at = int(np.searchsorted(reached, share * reached[-1] * (1.0 - 1e-12)))
    return float(values[order][min(at, len(order) - 1)])
