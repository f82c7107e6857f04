"""Kernels: options of the estimators that use one, and the functions themselves.

`MEDClassifier("rbf")` and `MEDClassifier(RBF())` are the same, and `kernel__gamma` is a parameter of both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dpstrf
from sklearn.base import clone

from mixent.base.options import Options
from mixent.base.params import check_count, check_number
from mixent.core.arrays import Array
from mixent.core.executors import Executor

CHUNK = 512  # rows of a tile: four of them stay in the cache
CUT = 1e-12  # eigenvalues and pivots below this share of the largest are rounding
TRIED = 500  # rows on which a kernel must prove positive semi-definite
GAMMA_WORDS = ("auto", "scale")


class Kernel(Options, ABC):
    """k(x, x') of encoded rows."""

    short_forms: ClassVar = {}
    n_landmarks: Any = None  # of Nyström features that replace the kernel matrix

    @abstractmethod
    def gram(self, A: Array, B: Array) -> Array:
        """(n, m)."""

    def check(self, words: Sequence[str] = GAMMA_WORDS) -> None:
        """Refuse parameters out of range; `words` are those allowed for gamma."""
        if self.n_landmarks is not None and not (isinstance(self.n_landmarks, str) and self.n_landmarks == "auto"):
            check_count("n_landmarks", self.n_landmarks, "'auto' or None")

    def count_landmarks(self, n_rows: int, auto: int | None) -> int | None:
        """Number of Nyström features, `auto` where the estimator decides; None: the whole kernel matrix."""
        wanted = auto if isinstance(self.n_landmarks, str) else self.n_landmarks
        return None if wanted is None else min(int(wanted), n_rows)

    def resolved(self, Z: Array, weight: Array) -> Self:
        """The same kernel with every parameter a number, found from the training rows where it was a word."""
        return self

    def candidates(self, Z: Array, weight: Array, factors: Sequence[float]) -> list[Self]:
        """The resolved kernel; with gamma="auto", one kernel for each of these multiples of "scale"."""
        resolved: Any = self.resolved(Z, weight)
        if getattr(self, "gamma", None) != "auto":
            return [resolved]
        return [clone(resolved).set_params(gamma=float(factor) * resolved.gamma) for factor in factors]

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

        executor.map(tile, Tiles([(r, c) for i, r in enumerate(cuts) for c in cuts[: i + 1]]))  # type: ignore[arg-type]
        return out


class Tiles(list):
    """To an executor, blocks."""


class Linear(Kernel):
    """x . x'."""

    short_forms: ClassVar = {"linear": {}}

    def gram(self, A: Array, B: Array) -> Array:
        return A @ B.T


class Polynomial(Kernel):
    """(gamma x . x' + coef0) ^ degree.

    Parameters
    ----------
    degree : int
        Degree of the polynomial.
    gamma : "auto", "scale" or float
        Coefficient of the kernel, which multiplies x·x' or in `RBF` the squared distance: "scale" is 1 / (encoded
        columns x the variance of all their entries), and "auto" chooses a multiple of it by cross-validation.
        MEDClassifier chooses one or a tenth, together with C="auto", on at most 1000 labelled rows;
        KernelFisherClassifier from 1/64 to 4, by leave-one-out. Elsewhere "auto" is "scale".
    coef0 : float
        Constant that is added before the power is taken.
    n_landmarks : "auto", int or None
        Nyström features that replace the kernel matrix where there are many rows; "auto": the estimator decides from
        the number of rows; None: never, the whole kernel matrix.
    """

    short_forms: ClassVar = {"poly": {}}

    def __init__(
        self,
        degree: int = 3,
        gamma: str | float = "auto",
        coef0: float = 1.0,
        n_landmarks: str | int | None = "auto",
    ) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.n_landmarks = n_landmarks

    def check(self, words: Sequence[str] = GAMMA_WORDS) -> None:
        super().check()
        check_count("degree", self.degree)
        check_gamma(self.gamma, words)
        if not check_number(self.coef0) or not self.coef0 >= 0:
            raise ValueError(f"coef0 must be a number >= 0, or the kernel would not be positive; got {self.coef0!r}")

    def resolved(self, Z: Array, weight: Array) -> Polynomial:
        return Polynomial(int(self.degree), as_number(self.gamma, Z, weight), float(self.coef0), self.n_landmarks)

    def gram(self, A: Array, B: Array) -> Array:
        gamma: Any = self.gamma
        return (gamma * (A @ B.T) + self.coef0) ** self.degree


class RBF(Kernel):
    """exp(-gamma |x - x'|^2).

    Parameters
    ----------
    gamma, n_landmarks
        See `Polynomial`.
    """

    short_forms: ClassVar = {"rbf": {}}

    def __init__(self, gamma: str | float = "auto", n_landmarks: str | int | None = "auto") -> None:
        self.gamma = gamma
        self.n_landmarks = n_landmarks

    def check(self, words: Sequence[str] = GAMMA_WORDS) -> None:
        super().check()
        check_gamma(self.gamma, words)

    def resolved(self, Z: Array, weight: Array) -> RBF:
        return RBF(as_number(self.gamma, Z, weight), self.n_landmarks)

    def gram(self, A: Array, B: Array) -> Array:
        gamma: Any = self.gamma
        out = (2.0 * gamma * A) @ B.T
        out -= gamma * (A**2).sum(axis=1)[:, None]
        out -= gamma * (B**2).sum(axis=1)
        np.minimum(out, 0.0, out=out)  # rounding of equal rows
        return np.exp(out, out=out)


class KernelFunction(Kernel):
    """A function of two matrices of encoded rows.

    Parameters
    ----------
    function : callable
        (n, d) and (m, d) arrays -> (n, m) array.
    n_landmarks
        See `Polynomial`.
    """

    def __init__(self, function: Callable[[Array, Array], Any], n_landmarks: str | int | None = "auto") -> None:
        self.function = function
        self.n_landmarks = n_landmarks

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


class Precomputed(Kernel):
    """The table is the kernel matrix itself."""

    short_forms: ClassVar = {"precomputed": {}}

    def gram(self, A: Array, B: Array) -> Array:
        raise NotImplementedError("a precomputed kernel is a matrix, not a function of rows")


def read_kernel(name: str, value: Any, kinds: tuple[type[Kernel], ...], also: str = "") -> Kernel:
    """The kernel a parameter stands for: an object, a short form such as "rbf", or a function of two matrices.

    `kinds` are those the estimator takes; `also` names what else it takes.
    """
    if isinstance(value, kinds):
        return value
    forms = {form: kind for kind in kinds for form in kind.short_forms}
    if isinstance(value, str) and value in forms:
        return forms[value]()
    if KernelFunction in kinds and callable(value) and not isinstance(value, type) and not hasattr(value, "transform"):
        return KernelFunction(value)
    allowed = [*map(repr, forms), *(kind.__name__ for kind in kinds if kind._get_param_names())]
    allowed += ["a function of two matrices"] * (KernelFunction in kinds) + [also] * bool(also)
    raise ValueError(f"{name} must be one of {', '.join(allowed)}; got {value!r}")


def check_gamma(gamma: Any, words: Sequence[str]) -> None:
    """A number > 0, or one of the words."""
    if isinstance(gamma, str) and gamma in words:
        return
    if isinstance(gamma, str) or not check_number(gamma) or not 0 < gamma < np.inf:
        allowed = f"{', '.join(map(repr, words))} or a number > 0" if words else "a number > 0"
        raise ValueError(f"gamma must be {allowed}; got {gamma!r}")


def as_number(gamma: Any, Z: Array, weight: Array) -> float:
    """gamma; a word is one over the number of encoded columns times the variance of all entries."""
    if not isinstance(gamma, str):
        return float(gamma)
    share = weight / weight.sum()
    mean = float((share @ Z).mean())
    variance = float((share @ (Z - mean) ** 2).mean())
    return 1.0 / (Z.shape[1] * variance) if variance > 0 else 1.0


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
    """Symmetric, and positive semi-definite on the rows tried; otherwise the dual has no maximum."""
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
