"""Distributions over all spanning trees of n vertices (001, sections 3.4 and appendix A).

    P(E) = 1/Z  prod_{uv in E} W_uv,      log Z = log |Q(W)|      (the matrix-tree theorem)

The coordinates are the edges of the heaviest tree instead of the vertices. That tree connects the two vertices of an
edge e by a path c_e in {-1, 0, 1}^(n-1). No edge of the path is lighter than e, so that in

    Q = sum_e W_e c_e c_e^T,     Y_e = c_e sqrt(W_e / W_path),     log Z = sum_tree log W + log |Y^T Y|

the entries of Y are at most 1 and Y^T Y is at least the identity. The logarithms of the weights may span thousands of
nats, and even the smallest edge marginal is computed to full precision, since nearly equal numbers are never
subtracted. (The determinant or the inverse of Q itself loses all precision beyond some 36 nats.)
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from mixent.core.arrays import Array
from mixent.core.driver import OutsideDomainError


def declared(value: Any) -> dict[str, Any]:
    """The fields of a dataclass, without its cached properties, which are many times as large."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def n_edges(n: int) -> int:
    """Number of pairs of n vertices."""
    return n * (n - 1) // 2


def n_vertices(edges: int) -> int:
    """Number of vertices that have this many pairs."""
    return round(0.5 + np.sqrt(0.25 + 2 * edges))


def packed(matrix: Array) -> Array:
    """(E,) the entries u < v of a symmetric (n, n) matrix, row by row."""
    return np.ascontiguousarray(matrix[np.triu_indices(len(matrix), 1)])


def unpacked(edges: Array, n: int) -> Array:
    """(n, n) symmetric matrix from its entries u < v; zeros on the diagonal."""
    out = np.zeros((n, n))
    u, v = np.triu_indices(n, 1)
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

    @cached_property
    def _relative(self) -> Array:
        """Y, (E, n - 1)."""
        order, parent = self._heaviest
        from_root = np.zeros((self.n, self.n - 1))  # the path from the first vertex to each vertex
        for step in range(1, self.n):
            v = order[step]
            from_root[v] = from_root[parent[v]]
            from_root[v, step - 1] = 1.0
        u, v = np.triu_indices(self.n, 1)
        path = from_root[u] - from_root[v]
        log_ratio = np.where(path != 0, self.log_weights[:, None] - self.tree_weights, -np.inf)
        return path * np.exp(0.5 * log_ratio)

    @cached_property
    def _factor(self) -> Array:
        Y = self._relative
        return np.asarray(cholesky(Y.T @ Y, lower=True))

    @cached_property
    def log_partition(self) -> float:
        """log Z, in nats."""
        return float(self.tree_weights.sum() + 2.0 * np.log(np.diagonal(self._factor)).sum())

    @cached_property
    def _flows(self) -> Array:
        """V (E, n - 1), where V V^T is the transfer-current matrix, a projection."""
        if self.n == 1:  # LAPACK in older versions of SciPy rejects an empty system
            return np.zeros((0, 0))
        return np.ascontiguousarray(solve_triangular(self._factor, self._relative.T, lower=True).T)

    @cached_property
    def mean(self) -> Array:
        """(E,) edge marginals, the probabilities that a tree has each edge: the gradient of log Z."""
        return np.asarray((self._flows**2).sum(axis=1))

    def hessian_product(self, f: Array) -> Array:
        """(E,) the Hessian of log Z times f: the covariance of each edge with sum_{uv in E} f_uv."""
        V = self._flows
        return np.asarray(self.mean * f - ((V @ ((V.T * f) @ V)) * V).sum(axis=1))

    def gram(self, F: Array) -> Array:
        """(K, K) covariances of the edge functions in the rows of F (K, E)."""
        V = self._flows
        P = np.array([((V.T * f) @ V).ravel() for f in F]).reshape(len(F), -1)
        return np.asarray((F * self.mean) @ F.T - P @ P.T)

    def average(self, f: Array) -> float:
        """Lemma 5: the expectation of sum_{uv in E} f_uv."""
        return float(self.mean @ f)

    def covariance(self, f: Array, g: Array) -> float:
        """Lemma 4: the covariance of two edge functions."""
        return float(f @ self.hessian_product(g))
