"""The matrix of inner products of the rows, as linear functions and functions of a kernel need it.

It is a product of features, a stored matrix, or computed in tiles; a Newton step needs it for some rows only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from mixent.base.kernels import Kernel, Tiles
from mixent.core.arrays import Array
from mixent.core.executors import Executor

MOST = 0.7  # share of active rows above which the kernel matrix of the active rows is not copied
TILE = 1024  # rows and columns of a kernel matrix computed at once
MIN_SINGLE = 1000  # active rows from which a copy of their matrix is in single precision
MAX_DOUBLE, MAX_SINGLE = 8000, 40_000  # active rows whose kernel matrix is stored in double and in single precision


class Gram(ABC):
    """The matrix K (n, n) of inner products of the rows; the parameters T of functions are the coefficients alpha."""

    n_rows: int

    @property
    @abstractmethod
    def mean_square(self) -> float:
        """Mean of the diagonal."""

    @abstractmethod
    def cost(self, G: int) -> float:
        """Time of the product with a matrix (n, G), in floating-point operations of a Cholesky factorization."""

    @abstractmethod
    def product(self, alpha: Array) -> Array:
        """(n, G) K alpha."""

    def parameters(self, alpha: Array, rows: Any = slice(None)) -> Array:
        """(m, G) parameters of the functions sum_t alpha_tg k(x_t, .) over some rows."""
        out = np.zeros((self.n_rows, alpha.shape[1]))
        out[rows] = alpha
        return out

    def values(self, T: Array) -> Array:
        """(n, G) values of the functions at the rows."""
        return self.product(T)

    def inner(self, T: Array, other: Array, values: Array) -> float:
        """Inner product of two functions in their Hilbert space; `values` are those of the other."""
        return float(np.vdot(T, values))

    @abstractmethod
    def columns(self, chosen: np.ndarray) -> Array:
        """(n, m) some columns of the matrix."""

    @abstractmethod
    def take(self, rows: np.ndarray) -> Gram:
        """The same for some rows."""

    def for_products(self, rows: np.ndarray) -> Gram:
        """The same, perhaps in single precision: enough for the direction of a Newton step."""
        return self.take(rows)

    @abstractmethod
    def to_array(self) -> Array:
        """(n, n)."""


class LinearGram(Gram):
    """X X^T; the parameters are the coefficients of the features."""

    def __init__(self, X: Array) -> None:
        self.X, self.n_rows = X, len(X)

    def cost(self, G: int) -> float:
        return 4.0 * self.X.size * G

    @property
    def mean_square(self) -> float:
        return float(np.einsum("td,td->", self.X, self.X)) / max(self.n_rows, 1)

    def product(self, alpha: Array) -> Array:
        return self.X @ (self.X.T @ alpha)

    def parameters(self, alpha: Array, rows: Any = slice(None)) -> Array:
        return self.X[rows].T @ alpha

    def values(self, T: Array) -> Array:
        return self.X @ T

    def inner(self, T: Array, other: Array, values: Array) -> float:
        return float(np.vdot(T, other))

    def columns(self, chosen: np.ndarray) -> Array:
        return self.X @ self.X[chosen].T

    def take(self, rows: np.ndarray) -> LinearGram:
        return LinearGram(self.X[rows])

    def to_array(self) -> Array:
        return self.X @ self.X.T


class MatrixGram(Gram):
    """Some rows and columns of a kernel matrix (None: all)."""

    def __init__(self, K: Array, rows: np.ndarray | None = None) -> None:
        self.K, self.rows, self.n_rows = K, rows, len(K) if rows is None else len(rows)

    def cost(self, G: int) -> float:
        return (15.0 + 2.0 * G) * self.K.size  # with few columns most of the time goes into reading K

    @property
    def mean_square(self) -> float:
        return float(np.diagonal(self.K).mean())

    def product(self, alpha: Array) -> Array:
        if self.rows is None:
            return np.asarray(self.K @ alpha.astype(self.K.dtype, copy=False), dtype=float)
        spread = np.zeros((len(self.K), alpha.shape[1]))
        spread[self.rows] = alpha
        return (self.K @ spread)[self.rows]

    def columns(self, chosen: np.ndarray) -> Array:
        if self.rows is None:
            return self.K[:, chosen]
        return self.K[np.ix_(self.rows, self.rows[chosen])]

    def take(self, rows: np.ndarray) -> MatrixGram:
        rows = rows if self.rows is None else self.rows[rows]
        if len(rows) >= MOST * len(self.K):
            return MatrixGram(self.K, rows)
        return MatrixGram(self.K[np.ix_(rows, rows)])

    def for_products(self, rows: np.ndarray) -> MatrixGram:
        if not MIN_SINGLE <= len(rows) < MOST * len(self.K):
            return self.take(rows)
        rows = rows if self.rows is None else self.rows[rows]
        K = np.empty((len(rows), len(rows)), dtype=np.float32)
        for i, row in enumerate(rows):
            K[i] = self.K[row, rows]
        return MatrixGram(K)  # type: ignore[arg-type]

    def to_array(self) -> Array:
        return self.K if self.rows is None else self.K[np.ix_(self.rows, self.rows)]


class KernelGram(Gram):
    """A kernel of rows, computed in tiles whenever it is needed: n^2 numbers are never stored."""

    def __init__(self, kernel: Kernel, Z: Array, executor: Executor) -> None:
        self.kernel, self.Z, self.executor, self.n_rows = kernel, Z, executor, len(Z)

    def cost(self, G: int) -> float:
        return 100.0 * self.n_rows**2

    @property
    def mean_square(self) -> float:
        some = self.Z[:: max(1, self.n_rows // TILE)]
        return float(np.diagonal(self.kernel.gram(some, some)).mean())

    def product(self, alpha: Array) -> Array:
        used = np.flatnonzero(alpha.any(axis=1))
        return self.between(self.Z, used, alpha)

    def between(self, rows: Array, used: np.ndarray, alpha: Array) -> Array:
        """(m, G) values at encoded rows of the functions with coefficients alpha, zero except in the rows used."""
        Z, alpha = self.Z[used], alpha[used]
        columns = [slice(a, a + TILE) for a in range(0, len(used), TILE)]

        def values(block: slice) -> Array:
            out = np.zeros((len(rows[block]), alpha.shape[1]))
            for part in columns:
                out += self.kernel.gram(rows[block], Z[part]) @ alpha[part]
            return out

        blocks = Tiles(slice(a, a + TILE) for a in range(0, len(rows), TILE))
        return np.concatenate(self.executor.map(values, blocks))  # type: ignore[arg-type]

    def columns(self, chosen: np.ndarray) -> Array:
        return self.kernel.gram(self.Z, self.Z[chosen])

    def take(self, rows: np.ndarray) -> Gram:
        Z = self.Z[rows]
        if len(rows) <= MAX_DOUBLE:
            return MatrixGram(self.kernel.square(Z, self.executor))
        kind = SingleGram if len(rows) <= MAX_SINGLE else KernelGram
        return kind(self.kernel, Z, self.executor)

    def to_array(self) -> Array:
        return self.kernel.square(self.Z, self.executor)


class SingleGram(KernelGram):
    """The same, stored in single precision: enough for the direction of a Newton step."""

    def __init__(self, kernel: Kernel, Z: Array, executor: Executor) -> None:
        super().__init__(kernel, Z, executor)
        self.K = np.empty((self.n_rows, self.n_rows), dtype=np.float32)
        blocks = Tiles(slice(a, a + TILE) for a in range(0, self.n_rows, TILE))

        def fill(block: slice) -> None:
            for a in range(0, block.stop, TILE):
                part = kernel.gram(Z[block], Z[a : a + TILE])
                self.K[block, a : a + TILE] = part
                self.K[a : a + TILE, block] = part.T

        executor.map(fill, blocks)  # type: ignore[arg-type]

    def product(self, alpha: Array) -> Array:
        return np.asarray(self.K @ alpha.astype(np.float32), dtype=float)
