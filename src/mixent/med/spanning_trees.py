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
in an interval is one over intervals that grow, so that a product with the Hessian of log Z takes O(n^3). Cumulative
sums give them where the weights are within the range of floating-point numbers: a partial sum has only terms of the
sums that follow, so that none loses precision to a larger one. Where the weights span more, ratios of weights are used.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.linalg import cholesky
from scipy.linalg.lapack import dpotri

from mixent.core.arrays import Array
from mixent.core.driver import OutsideDomainError

NARROW = 300.0  # nats; weights that span less, and their products, are represented as numbers
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
    best, nearest = np.array(log_weights[0], dtype=float), np.zeros(n, dtype=np.intp)
    added = np.zeros(n)  # inf for the vertices of the tree, whose weights become -inf
    added[0], best[0] = np.inf, -np.inf
    for step in range(1, n):
        v = int(best.argmax())
        if best[v] == -np.inf:
            raise OutsideDomainError("no tree spans these vertices: too many edges have weight zero")
        order[step], parent[v] = v, nearest[v]
        added[v], best[v] = np.inf, -np.inf
        weights = log_weights[v] - added
        nearest[weights > best] = v
        np.maximum(best, weights, out=best)
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
        """(n - 1,) log D_k, logarithms of the weights of the edges of the most probable tree."""
        order, parent = self._heaviest
        low, high = np.sort([order[1:], parent[order[1:]]], axis=0)
        return np.asarray(self.log_weights[low * (2 * self.n - low - 3) // 2 + high - 1])

    # --- the coordinates ----------------------------------------------------------------------------------------

    @cached_property
    def _position(self) -> np.ndarray:
        """(E,) position of each edge in an (n, n) matrix, for u < v in the order of Prim's algorithm."""
        rank = np.empty(self.n, dtype=np.intp)
        rank[self._heaviest[0]] = np.arange(self.n)
        u, v = edge_ends(self.n)
        return np.asarray(np.minimum(rank[u], rank[v]) * self.n + np.maximum(rank[u], rank[v]))

    def _matrices(self, F: Array) -> Array:
        """(..., n, n) edge functions (..., E), for u < v in the order of Prim's algorithm."""
        out = np.zeros((*F.shape[:-1], self.n**2))
        out[..., self._position] = F
        return out.reshape(*F.shape[:-1], self.n, self.n)

    def _edges(self, matrix: Array) -> Array:
        """(E,) an edge function from its matrix (n, n)."""
        return np.asarray(matrix.ravel()[self._position])

    @cached_property
    def _scaled(self) -> tuple[Array, Array] | None:
        """(n, n) W_uv of each edge u < v, (n - 1, n - 1) 1 / sqrt(D_i D_j) for i <= j; None if they span too much."""
        log_D = self.tree_weights
        if self.n == 1 or log_D.max() - self.log_weights[self.log_weights > -np.inf].min() > NARROW:
            return None
        inverse_root = np.exp(0.5 * (log_D.max() - log_D))
        return self._matrices(np.exp(self.log_weights - log_D.max())), np.triu(np.outer(inverse_root, inverse_root))

    @cached_property
    def _log_lightest(self) -> Array:
        """(n, n) logarithm of the least D_k of the interval of each edge u < v; inf elsewhere."""
        D = np.append(np.inf, self.tree_weights)
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
        if self._scaled is not None:
            W, pairs = self._scaled
            x = np.cumsum((F * W)[..., ::-1], axis=-1)[..., ::-1]  # edges that end at v or later
            out = np.cumsum(x, axis=-2)[..., :-1, 1:] * pairs  # and begin at u or earlier
        else:
            first, last, pairs = self._ratios
            x = np.swapaxes(F * self._relative, -1, -2).copy()
            _add_later(x, last)
            x = np.swapaxes(x, -1, -2).copy()
            _add_later(x[..., ::-1, :], first)
            out = x[..., :-1, 1:] * pairs
        return out + np.swapaxes(np.triu(out, 1), -1, -2)

    def _sums_over_pairs(self, N: Array) -> Array:
        """(n, n) y N y^T of each edge u < v, y its row of Y, for a symmetric matrix N (n - 1, n - 1)."""
        x = np.zeros((self.n, self.n))
        N = 2.0 * N
        np.einsum("ii->i", N)[:] *= 0.5  # the other pairs occur in two orders
        if self._scaled is not None:
            W, pairs = self._scaled
            x[:-1, 1:] = pairs * N
            x = np.cumsum(x[::-1], axis=0)[::-1]  # pairs of the last of the interval with those after u
            return np.asarray(np.cumsum(x, axis=1) * W)  # pairs of those up to v
        first, last, pairs = self._ratios
        x[:-1, 1:] = pairs * N
        _add_earlier(x[::-1], first)
        x = x.T.copy()
        _add_earlier(x, last)
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
    def _inverse(self) -> Array:
        """(n - 1, n - 1) the inverse of A."""
        if self.n == 1:
            return np.zeros((0, 0))
        lower = np.tril(dpotri(self._factor, lower=1)[0])
        return np.asarray(lower + np.tril(lower, -1).T)

    @cached_property
    def mean(self) -> Array:
        """(E,) edge marginals, the probabilities that a tree has each edge: the gradient of log Z."""
        return np.minimum(self._edges(self._sums_over_pairs(self._inverse)), 1.0)

    def hessian_product(self, f: Array) -> Array:
        """(E,) the Hessian of log Z times f: the covariance of each edge with sum_{uv in E} f_uv."""
        N = self._inverse @ self._sums_over_edges(self._matrices(f)) @ self._inverse
        return np.asarray(self.mean * f - self._edges(self._sums_over_pairs(N)))

    def gram(self, F: Array) -> Array:
        """(K, K) covariances of the edge functions in the rows of F (K, E).

        That of f and g is  sum_uv mean_uv f_uv g_uv - tr(A^-1 Y^T diag(f) Y A^-1 Y^T diag(g) Y).
        """
        size = max(1, BATCH // self.n**2)
        parts = [self._sums_over_edges(self._matrices(F[a : a + size])) @ self._inverse for a in range(0, len(F), size)]
        P = np.concatenate([np.zeros((0, self.n - 1, self.n - 1)), *parts])
        second = P.reshape(len(F), -1) @ np.swapaxes(P, 1, 2).reshape(len(F), -1).T
        return np.asarray((F * self.mean) @ F.T - 0.5 * (second + second.T))

    def average(self, f: Array) -> float:
        """Lemma 5: the expectation of sum_{uv in E} f_uv."""
        return float(self.mean @ f)

    def covariance(self, f: Array, g: Array) -> float:
        """Lemma 4: the covariance of two edge functions."""
        return float(f @ self.hessian_product(g))
