"""Features of rows in an exponential family: their sums, and the expected log-probabilities of the rows.

A family needs only products of the feature matrix phi (n, M) and of its transpose with vectors, so the matrix need not
be formed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.med.families import CellLayout, Distribution
from mixent.med.spanning_trees import edge_ends, n_edges, packed, unpacked

MAX_ENTRIES = 2**22  # of a matrix of edge features that is formed
FEW_ROWS = 4  # rows of such a matrix computed at once


class RowFeatures(ABC):
    """Features phi (n, M) of rows:  E log p(x_t) = phi_t mean + offset_t."""

    offset: Array  # (n,) the part of the log-probability that does not depend on the parameters

    @property
    def n_rows(self) -> int:
        return len(self.offset)

    @property
    @abstractmethod
    def row_bytes(self) -> int:
        """Memory that the computations take per row."""

    @abstractmethod
    def dot(self, mean: Array) -> Array:
        """(n,) products phi mean."""

    @abstractmethod
    def weighted_sum(self, alpha: Array) -> Array:
        """(M,) sum_t alpha_t phi_t."""

    @abstractmethod
    def take(self, rows: np.ndarray | slice) -> RowFeatures:
        """The features of some rows."""

    @abstractmethod
    def to_array(self) -> Array:
        """(n, M) the feature matrix."""

    def kernel(self, distribution: Distribution) -> Array:
        """(n, n) phi H phi^T, H the Hessian of the log-partition function of a distribution."""
        return distribution.gram(self.to_array())

    def for_products(self) -> RowFeatures:
        """The same features in the form in which many products with few rows are quickest."""
        return self


class FeatureMatrix(RowFeatures):
    """Features stored as a matrix, dense or sparse."""

    def __init__(self, phi: Any, offset: Array | None = None) -> None:
        self.phi = phi
        self.offset = np.zeros(phi.shape[0]) if offset is None else offset

    @property
    def row_bytes(self) -> int:
        return 8 * self.phi.size // max(self.n_rows, 1)

    def dot(self, mean: Array) -> Array:
        return np.asarray(self.phi @ mean)

    def weighted_sum(self, alpha: Array) -> Array:
        return np.asarray(self.phi.T @ alpha)

    def take(self, rows: np.ndarray | slice) -> FeatureMatrix:
        return FeatureMatrix(self.phi[rows], self.offset[rows])

    def to_array(self) -> Array:
        return self.phi if isinstance(self.phi, np.ndarray) else self.phi.toarray()


class EdgeFeatures(RowFeatures):
    """Features of trees with known tables: for edge uv,  w_uv(x) = sum_ij o_u(i) log_ratio_uv(i, j) o_v(j)  (28).

    o_v are the cells of column v: indicators of a category, zeros where it is missing, component probabilities of a
    softly quantized number, or (1, z, z^2) of a number z.
    """

    def __init__(
        self, cells: Array, log_ratios: Array, log_marginals: Array, layout: CellLayout, offset: Array | None = None
    ) -> None:
        """`log_ratios` (R, R), symmetric and zero for two cells of one column, gives w; `log_marginals` (R,) w_0."""
        self.cells, self.log_ratios, self.log_marginals, self.layout = cells, log_ratios, log_marginals, layout
        self.offset = cells @ log_marginals if offset is None else offset

    @property
    def row_bytes(self) -> int:
        return 24 * self.cells.shape[1]

    def dot(self, mean: Array) -> Array:
        weights = self.log_ratios * self.layout.spread_pairs(0.5 * unpacked(mean, self.layout.n))
        return np.asarray(np.einsum("nr,nr->n", self.cells @ weights, self.cells))

    def weighted_sum(self, alpha: Array) -> Array:
        cells = self.cells[alpha != 0]
        counts = (cells.T * alpha[alpha != 0]) @ cells
        return packed(self.layout.by_pair(self.log_ratios * counts))

    def for_products(self) -> RowFeatures:
        if self.n_rows * n_edges(self.layout.n) > MAX_ENTRIES:
            return self
        return FeatureMatrix(self.to_array(), self.offset)

    def take(self, rows: np.ndarray | slice) -> EdgeFeatures:
        return EdgeFeatures(self.cells[rows], self.log_ratios, self.log_marginals, self.layout, self.offset[rows])

    def to_array(self) -> Array:
        u, v = edge_ends(self.layout.n)
        codes = self._codes()
        if codes is not None:
            phi, log_ratios = np.empty((self.n_rows, len(u))), self.log_ratios.ravel()
            first = codes * self.layout.n_cells
            for a in range(0, self.n_rows, FEW_ROWS):  # a few rows at a time, whose positions stay in the cache
                rows = slice(a, a + FEW_ROWS)
                position = first[rows].take(u, axis=1)
                position += codes[rows].take(v, axis=1)
                log_ratios.take(position, out=phi[rows], mode="clip")  # the default mode would use a buffer
            return phi
        starts, out = self.layout.starts, []
        for start, after in pairwise(starts):
            weighted = (self.cells[:, start:after] @ self.log_ratios[start:after, after:]) * self.cells[:, after:]
            out.append(np.add.reduceat(weighted, starts[starts >= after] - after, axis=1))
        return np.concatenate([np.zeros((self.n_rows, 0)), *out], axis=1)

    def _codes(self) -> np.ndarray | None:
        """(n, columns) the cell of each column that is 1, if all others are 0."""
        rows, cells = np.nonzero(self.cells)
        n, columns = self.n_rows, np.repeat(np.arange(self.layout.n), self.layout.sizes)
        if len(cells) != n * self.layout.n or not (self.cells[rows, cells] == 1.0).all():
            return None
        codes = cells.reshape(n, self.layout.n)
        return codes if (columns[codes] == np.arange(self.layout.n)).all() else None


class CountFeatures(RowFeatures):
    """Features of trees with unknown tables: the counts (1, cells)^T (1, cells) of a row (63)."""

    def __init__(self, cells: Array, offset: Array) -> None:
        """`cells` (n, 1 + R) has a first column of ones."""
        self.cells, self.offset = cells, offset

    @classmethod
    def of(cls, cells: Array) -> CountFeatures:
        """The features of rows with these cells (n, R)."""
        return cls(np.concatenate([np.ones((len(cells), 1)), cells], axis=1), np.zeros(len(cells)))

    def add_offset(self, offset: Any) -> CountFeatures:
        """The same features, with a larger offset of the log-probabilities."""
        return CountFeatures(self.cells, self.offset + offset)

    @property
    def row_bytes(self) -> int:
        return 24 * self.cells.shape[1]

    def dot(self, mean: Array) -> Array:
        width = self.cells.shape[1]
        return np.asarray(np.einsum("nr,nr->n", self.cells @ mean.reshape(width, width), self.cells))

    def weighted_sum(self, alpha: Array) -> Array:
        return ((self.cells.T * alpha) @ self.cells).ravel()

    def take(self, rows: np.ndarray | slice) -> CountFeatures:
        return CountFeatures(self.cells[rows], self.offset[rows])

    def to_array(self) -> Array:
        return (self.cells[:, :, None] * self.cells[:, None, :]).reshape(self.n_rows, -1)
