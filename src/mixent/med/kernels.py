"""Kernels: what stands in for the inner product of two rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dpstrf

from mixent.base.params import check_count, check_number
from mixent.core.arrays import Array
from mixent.core.executors import Executor

CHUNK = 512  # rows of a tile: four of them stay in the cache
CUT = 1e-12  # eigenvalues and pivots below this share of the largest are rounding
TRIED = 500  # rows on which a kernel must prove positive semi-definite


class Kernel(ABC):
    """k(x, x') of encoded rows."""

    @abstractmethod
    def gram(self, A: Array, B: Array) -> Array:
        """(n, m)."""

    def square(self, A: Array, executor: Executor) -> Array:
        """(n, n) of rows with themselves: tiles below the diagonal, mirrored."""
        n = len(A)
        out = np.empty((n, n))
        cuts = [slice(a, min(a + CHUNK, n)) for a in range(0, n, CHUNK)]

        def tile(at: tuple[slice, slice]) -> None:
            rows, columns = at
            part = self.gram(A[rows], A[columns])
            out[rows, columns] = part
            if rows != columns:
                out[columns, rows] = part.T

        executor.map(tile, _Tiles([(r, c) for i, r in enumerate(cuts) for c in cuts[: i + 1]]))  # type: ignore[arg-type]
        return out


class _Tiles(list):
    """To an executor, blocks."""


@dataclass(frozen=True)
class Linear(Kernel):
    """x . x'."""

    def gram(self, A: Array, B: Array) -> Array:
        return A @ B.T


@dataclass(frozen=True)
class Polynomial(Kernel):
    """(gamma x . x' + coef0) ^ degree."""

    degree: int
    gamma: float
    coef0: float

    def gram(self, A: Array, B: Array) -> Array:
        return (self.gamma * (A @ B.T) + self.coef0) ** self.degree


@dataclass(frozen=True)
class RBF(Kernel):
    """exp(-gamma |x - x'|^2)."""

    gamma: float

    def gram(self, A: Array, B: Array) -> Array:
        out = (2.0 * self.gamma * A) @ B.T
        out -= self.gamma * (A**2).sum(axis=1)[:, None]
        out -= self.gamma * (B**2).sum(axis=1)
        np.minimum(out, 0.0, out=out)  # rounding of equal rows
        return np.exp(out, out=out)


@dataclass(frozen=True)
class Called(Kernel):
    """The user's own function of two matrices of encoded rows."""

    function: Callable[[Array, Array], Any]

    def gram(self, A: Array, B: Array) -> Array:
        out = np.asarray(self.function(A, B), dtype=float)
        if out.shape != (len(A), len(B)) or not np.isfinite(out).all():
            raise ValueError(
                f"the kernel function must give a finite matrix of shape {(len(A), len(B))} for that many rows; "
                f"got shape {out.shape}" + ("" if np.isfinite(out).all() else " with values that are not finite")
            )
        return out

    def square(self, A: Array, executor: Executor) -> Array:
        return self.gram(A, A)


SHAPES = {"degree": (3, ("poly",)), "coef0": (1.0, ("poly",)), "gamma": ("scale", ("poly", "rbf"))}


def check_shape(est: Any) -> None:
    """The options degree, gamma and coef0, and that none stands idle."""
    check_count("degree", est.degree)
    if not check_number(est.coef0) or not est.coef0 >= 0:
        raise ValueError(f"coef0 must be a number >= 0, or the kernel would not be positive; got {est.coef0!r}")
    if not (isinstance(est.gamma, str) and est.gamma == "scale") and not (check_number(est.gamma) and est.gamma > 0):
        raise ValueError(f"gamma must be 'scale' or a number > 0; got {est.gamma!r}")
    for name, (default, serves) in SHAPES.items():
        named = isinstance(est.kernel, str) and est.kernel in serves
        if getattr(est, name) != default and not named:
            raise ValueError(f"{name}={getattr(est, name)!r} has no effect with kernel={est.kernel!r}")


def read_kernel(kernel: Any, degree: int, gamma: Any, coef0: float, Z: Array, weight: Array) -> Kernel:
    """The user's kernel; gamma="scale" is one over the number of encoded columns times the variance of all entries."""
    if callable(kernel):
        return Called(kernel)
    if kernel == "linear":
        return Linear()
    if isinstance(gamma, str):
        share = weight / weight.sum()
        mean = float((share @ Z).mean())
        variance = float((share @ (Z - mean) ** 2).mean())
        gamma = 1.0 / (Z.shape[1] * variance) if variance > 0 else 1.0
    return RBF(float(gamma)) if kernel == "rbf" else Polynomial(int(degree), float(gamma), float(coef0))


@dataclass(frozen=True)
class Nystrom:
    """Features whose inner products are nearly the kernel: exactly on the landmarks."""

    kernel: Kernel
    landmarks: Array  # (m, d)
    root: Array  # (m, r)

    @classmethod
    def of(cls, kernel: Kernel, landmarks: Array) -> Nystrom:
        values, vectors = eigh(kernel.gram(landmarks, landmarks))
        keep = values > CUT * max(float(values[-1]), 1e-300)
        return cls(kernel, landmarks, vectors[:, keep] / np.sqrt(values[keep]))

    def __call__(self, A: Array) -> Array:
        """(n, r)."""
        return self.kernel.gram(A, self.landmarks) @ self.root


def factor(K: Array) -> Array:
    """(n, r) with K = L L^T to rounding: pivoted Cholesky."""
    lower, pivot, rank, _ = dpstrf(K, tol=CUT * max(float(np.diagonal(K).max(initial=0.0)), 1e-300), lower=1)
    out = np.empty((len(K), rank))
    out[pivot - 1] = np.tril(lower)[:, :rank]
    return out


def check_kernel_matrix(K: Array, what: str) -> None:
    """Symmetric, and positive semi-definite on the rows tried; else the dual has no maximum to speak of."""
    size = max(float(np.abs(K).max(initial=0.0)), 1e-300)
    if not np.allclose(K, K.T, rtol=0, atol=1e-8 * size):
        t, s = np.unravel_index(np.abs(K - K.T).argmax(), K.shape)
        raise ValueError(f"{what} must be symmetric; entry [{t}, {s}] is {K[t, s]:.6g}, [{s}, {t}] is {K[s, t]:.6g}")
    some = np.unique(np.linspace(0, len(K) - 1, min(TRIED, len(K))).astype(int))
    part = K[np.ix_(some, some)]
    least = float(eigh(part, eigvals_only=True, subset_by_index=[0, 0])[0])
    if least < -1e-8 * size * len(some):
        raise ValueError(
            f"{what} must be positive semi-definite; on {len(some)} rows its smallest eigenvalue is {least:.3g}. "
            f"Take another kernel, or add {-least:.3g} to its diagonal"
        )
