"""Distributions over all spanning trees of n vertices (001, sections 3.4 and appendix A).

    P(E) = 1/Z  prod_{uv in E} W_uv,      log Z = log |Q(W)|      (the matrix-tree theorem)

The vertices are numbered in the order in which Prim's algorithm adds them to the heaviest tree, k by an edge of weight
D_k. The coordinates are the differences of a potential between neighbors k - 1 and k in this order, so that an edge
u < v is the interval of the k with u < k <= v. No D_k of this interval is lighter than the edge. In

    Q = sum_uv W_uv c_uv c_uv^T,     Y_uv,k = sqrt(W_uv / D_k)  for u < k <= v,     log Z = sum_k log D_k + log |A|,

with A = Y^T Y, the entries of Y are at most 1, and the eigenvalues of A at least 1 / n^2. The logarithms of the weights
may span thousands of nats, and even the smallest edge marginal is computed to full precision, since nearly equal
numbers are never subtracted. (The determinant or the inverse of Q itself loses all precision beyond some 36 nats.)

Every sum over edges is one over the intervals that contain two given numbers, and every sum over the pairs of numbers
in an interval is one over intervals that grow, so that a product with the Hessian of log Z takes O(n^3).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from mixent.core.arrays import Array
from mixent.core.driver import OutsideDomainError

BATCH = 2**20  # entries of the matrices of edge functions that are computed at once


def declared(value: Any) -> dict[str, Any]:
    """The fields of a dataclass, without its cached properties, which are many times as large."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def n_edges(n: int) -> int:
    """Number of pairs of n vertices."""
    return n * (n - 1) // 2


def n_vertices(edges: int) -> int:
    """Number of vertices that have this many pairs."""
    return round(0.5 + np.sqrt(0.25 + 2 * edges))


@lru_cache(maxsize=32)
def edge_ends(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The vertices u < v (E,) of each edge, row by row."""
    u, v = np.triu_indices(n, 1)
    u.flags.writeable = v.flags.writeable = False
    return u, v


def packed(matrix: Array) -> Array:
    """(E,) the entries u < v of a symmetric (n, n) matrix, row by row."""
    return np.ascontiguousarray(matrix[edge_ends(len(matrix))])


def unpacked(edges: Array, n: int) -> Array:
    """(n, n) symmetric matrix from its entries u < v; zeros on the diagonal."""
    out = np.zeros((n, n))
    u, v = edge_ends(n)
    out[u, v] = out[v, u] = edges
    return out


def heaviest_tree(log_weights: Array) -> tuple[np.ndarray, np.ndarray]:
    """Maximum spanning tree of a symmetric (n, n) matrix by Prim's algorithm.

    Returns the vertices (n,) in the order in which they are added, and the parent (n,) of each; that of the first is
    -1. Of equally heavy edges, the one to the earliest vertex is chosen.
    """
    n = len(log_weights)
    order, parent = np.zeros(n, dtype=np.intp), np.full(n, -1, dtype=np.intp)
    outside = np.ones(n, dtype=bool)
    outside[0] = False
    best, nearest = np.array(log_weights[0], dtype=float), np.zeros(n, dtype=np.intp)
    for step in range(1, n):
        v = int(np.where(outside, best, -np.inf).argmax())
        if not (outside[v] and best[v] > -np.inf):
            raise OutsideDomainError("no tree spans these vertices: too many edges have weight zero")
        order[step], parent[v], outside[v] = v, nearest[v], False
        heavier = log_weights[v] > best
        best, nearest = np.where(heavier, log_weights[v], best), np.where(heavier, v, nearest)
    return order, parent


@lru_cache(maxsize=32)
def _is_above(n: int) -> np.ndarray:
    """(n, n) bool: u < v."""
    return np.asarray(np.arange(n)[:, None] < np.arange(n))


def _exp_difference(a: Array, b: Array, where: np.ndarray) -> Array:
    """exp(a - b) of some entries, and zero elsewhere."""
    return np.exp(np.subtract(a, b, out=np.full(a.shape, -np.inf), where=where))


def _growing(ratio: Array) -> list[Array]:
    """Ratios (n - 1, m) between neighboring rows, and their products over 2, 4, ... rows."""
    out, shift = [ratio], 1
    while 2 * shift <= len(ratio):
        out.append(out[-1][shift:] * out[-1][:-shift])
        shift *= 2
    return out


def _add_earlier(x: Array, ratios: list[Array]) -> None:
    """x_i += r_i x_(i-1), one row (axis -2) after the other, in place; all rows at once, over distances 1, 2, 4, ..."""
    for k, ratio in enumerate(ratios):
        x[..., 2**k :, :] += ratio * x[..., : -(2**k), :]


def _add_later(x: Array, ratios: list[Array]) -> None:
    """x_i += r_(i+1) x_(i+1), from the last row (axis -2) to the first, in place: the transpose of `_add_earlier`."""
    for k, ratio in enumerate(ratios):
        x[..., : -(2**k), :] += ratio * x[..., 2**k :, :]


@dataclass(frozen=True)
class SpanningTrees:
    """The distribution P(E) with these logarithms of the edge weights, for u < v."""

    log_weights: Array  # (E,); -inf for an edge that no tree has

    def __getstate__(self) -> dict[str, Any]:
        return declared(self)

    @cached_property
    def n(self) -> int:
        """Number of vertices."""
        return n_vertices(len(self.log_weights))

    @cached_property
    def _heaviest(self) -> tuple[np.ndarray, np.ndarray]:
        weights = unpacked(self.log_weights, self.n)
        np.fill_diagonal(weights, -np.inf)
        return heaviest_tree(weights)

    @cached_property
    def best(self) -> np.ndarray:
        """(n - 1, 2) edges u < v of the most probable tree."""
        order, parent = self._heaviest
        return np.sort(np.column_stack([order[1:], parent[order[1:]]]), axis=1)

    @cached_property
    def tree_weights(self) -> Array:
        """(n - 1,) logarithms of the weights of the edges of the most probable tree."""
        u, v = self.best.T
        return np.asarray(unpacked(self.log_weights, self.n)[u, v])

    # --- the coordinates ----------------------------------------------------------------------------------------

    @cached_property
    def _edge_at(self) -> np.ndarray:
        """(E,) position of the edge between each pair of vertices u < v in the order of Prim's algorithm."""
        n, (u, v) = self.n, edge_ends(self.n)
        order = self._heaviest[0]
        low, high = np.minimum(order[u], order[v]), np.maximum(order[u], order[v])
        return np.asarray(low * n - low * (low + 1) // 2 + high - low - 1)

    def _matrices(self, F: Array) -> Array:
        """(..., n, n) edge functions (..., E), for u < v in the order of Prim's algorithm."""
        out = np.zeros((*F.shape[:-1], self.n, self.n))
        out[(..., *edge_ends(self.n))] = F[..., self._edge_at]
        return out

    def _edges(self, matrix: Array) -> Array:
        """(E,) an edge function from its matrix (n, n)."""
        out = np.empty(len(self.log_weights))
        out[self._edge_at] = matrix[edge_ends(self.n)]
        return out

    @cached_property
    def _log_lightest(self) -> Array:
        """(n, n) logarithm of the least D_k of the interval of each edge u < v; inf elsewhere."""
        order, parent = self._heaviest
        D = np.full(self.n, np.inf)
        D[1:] = unpacked(self.log_weights, self.n)[order[1:], parent[order[1:]]]
        return np.minimum.accumulate(np.where(_is_above(self.n), D, np.inf), axis=1)

    @cached_property
    def _relative(self) -> Array:
        """(n, n) weight of each edge u < v relative to the lightest of its interval."""
        return _exp_difference(self._matrices(self.log_weights), self._log_lightest, _is_above(self.n))

    @cached_property
    def _ratios(self) -> tuple[list[Array], list[Array], Array]:
        """Ratios of the lightest weights of intervals, which are at most 1.

        The first, for (u, v), are those of the interval to that which begins at u + 1, u in decreasing order; the
        second, for (v, u), those to the interval that ends at v - 1; both as `_growing` has them. The last,
        (n - 1, n - 1) for i <= j, are those of the interval of both to sqrt(D_i D_j).
        """
        log_lightest, above = self._log_lightest, _is_above(self.n)
        first = _exp_difference(log_lightest[:-1], log_lightest[1:], above[1:])
        last = _exp_difference(log_lightest[:, 1:], log_lightest[:, :-1], above[:, :-1])
        both = log_lightest[:-1, 1:]
        log_D = np.diagonal(both)
        pairs = _exp_difference(both, 0.5 * (log_D[:, None] + log_D), above[:-1, 1:])
        return _growing(first[::-1]), _growing(last.T), pairs

    def _sums_over_edges(self, F: Array) -> Array:
        """(..., n - 1, n - 1) Y^T diag(f) Y for edge functions as matrices (..., n, n)."""
        first, last, pairs = self._ratios
        x = np.swapaxes(F * self._relative, -1, -2).copy()
        _add_later(x, last)  # edges that end at v or later
        x = np.swapaxes(x, -1, -2).copy()
        _add_later(x[..., ::-1, :], first)  # edges that begin at u or earlier
        out = x[..., :-1, 1:] * pairs
        return out + np.swapaxes(np.triu(out, 1), -1, -2)

    def _sums_over_pairs(self, N: Array) -> Array:
        """(n, n) y N y^T of each edge u < v, y its row of Y, for a symmetric matrix N (n - 1, n - 1)."""
        first, last, pairs = self._ratios
        x = np.zeros((self.n, self.n))
        x[:-1, 1:] = 2.0 * pairs * N
        x[np.arange(self.n - 1), np.arange(1, self.n)] *= 0.5
        _add_earlier(x[::-1], first)  # pairs of the last of the interval with those after u
        x = x.T.copy()
        _add_earlier(x, last)  # pairs of those up to v
        return x.T * self._relative

    # --- the distribution ---------------------------------------------------------------------------------------

    @cached_property
    def _factor(self) -> Array:
        """Cholesky factor of A."""
        if self.n == 1:  # LAPACK in older versions of SciPy rejects an empty system
            return np.zeros((0, 0))
        return np.asarray(cholesky(self._sums_over_edges(np.ones((self.n, self.n))), lower=True))

    @cached_property
    def log_partition(self) -> float:
        """log Z, in nats."""
        return float(self.tree_weights.sum() + 2.0 * np.log(np.diagonal(self._factor)).sum())

    @cached_property
    def _inverses(self) -> tuple[Array, Array]:
        """The inverses of the factor and of A."""
        if self.n == 1:
            return np.zeros((0, 0)), np.zeros((0, 0))
        inverse = np.asarray(solve_triangular(self._factor, np.eye(self.n - 1), lower=True))
        return inverse, inverse.T @ inverse

    @cached_property
    def mean(self) -> Array:
        """(E,) edge marginals, the probabilities that a tree has each edge: the gradient of log Z."""
        return self._edges(self._sums_over_pairs(self._inverses[1]))

    def hessian_product(self, f: Array) -> Array:
        """(E,) the Hessian of log Z times f: the covariance of each edge with sum_{uv in E} f_uv."""
        inverse = self._inverses[1]
        N = inverse @ self._sums_over_edges(self._matrices(f)) @ inverse
        return np.asarray(self.mean * f - self._edges(self._sums_over_pairs(N)))

    def gram(self, F: Array) -> Array:
        """(K, K) covariances of the edge functions in the rows of F (K, E)."""
        L, size = self._inverses[0], max(1, BATCH // self.n**2)
        batches = [F[a : a + size] for a in range(0, len(F), size)]
        sums = [(L @ self._sums_over_edges(self._matrices(part)) @ L.T).reshape(len(part), -1) for part in batches]
        P = np.concatenate([np.zeros((0, (self.n - 1) ** 2)), *sums])
        return np.asarray((F * self.mean) @ F.T - P @ P.T)

    def average(self, f: Array) -> float:
        """Lemma 5: the expectation of sum_{uv in E} f_uv."""
        return float(self.mean @ f)

    def covariance(self, f: Array, g: Array) -> float:
        """Lemma 4: the covariance of two edge functions."""
        return float(f @ self.hessian_product(g))
