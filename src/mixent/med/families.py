"""Exponential families of distributions over the parameters or the structure of a model, with natural parameters T.

Each has a convex log-partition function A(T). Its gradient holds the coefficients of the expected log-probability of a
row, E log p(x) = <gradient A(T), phi(x)>, and its Hessian gives the covariance of the log-probabilities of two rows;
the features phi(x) of the rows of a sample add to T. Discrimination and novelty detection need nothing else of a model
(001, Theorem 1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import gammaln, polygamma, psi

from mixent.core.arrays import Array
from mixent.core.driver import OutsideDomainError
from mixent.med.spanning_trees import SpanningTrees, declared, n_vertices, packed, unpacked
from mixent.show import Short


class Distribution(ABC):
    """A member of an exponential family."""

    T: Array  # (M,) natural parameters

    @property
    @abstractmethod
    def log_partition(self) -> float:
        """A(T), up to terms that are linear in T."""

    @property
    @abstractmethod
    def mean(self) -> Array:
        """(M,) mean parameters: the gradient of A."""

    @abstractmethod
    def hessian_product(self, f: Array) -> Array:
        """(M,) the Hessian of A times f."""

    def gram(self, F: Array) -> Array:
        """(K, K) F H F^T, H the Hessian of A, for the rows of F (K, M)."""
        return F @ np.array([self.hessian_product(f) for f in F]).T

    @abstractmethod
    def with_natural_parameters(self, T: Array) -> Distribution:
        """The member with these natural parameters; raises an OutsideDomainError if they are outside the domain."""

    def __getstate__(self) -> dict[str, Any]:
        return declared(self)

    @property
    def max_divergence(self) -> float:
        """Upper bound on the relative entropy of other members to this one, in nats."""
        return float("inf")

    def divergence(self, prior: Distribution) -> float:
        """Relative entropy to the prior, in nats."""
        return float((self.T - prior.T) @ self.mean) - self.log_partition + prior.log_partition


@dataclass(frozen=True)
class TreeDistribution(Distribution):
    """A distribution over tree structures with known tables: T holds the logarithms of the edge weights (30, 31)."""

    T: Array  # (E,)

    @cached_property
    def trees(self) -> SpanningTrees:
        """The distribution over structures."""
        return SpanningTrees(self.T)

    @property
    def log_partition(self) -> float:
        return self.trees.log_partition

    @property
    def mean(self) -> Array:
        return self.trees.mean

    @property
    def max_divergence(self) -> float:
        """The relative entropy of the least probable tree."""
        return self.log_partition + float(SpanningTrees(-self.T).tree_weights.sum())

    def hessian_product(self, f: Array) -> Array:
        return self.trees.hessian_product(f)

    def gram(self, F: Array) -> Array:
        return self.trees.gram(F)

    def with_natural_parameters(self, T: Array) -> TreeDistribution:
        if not np.isfinite(T).all():
            raise OutsideDomainError("the edge weights of a tree are not finite")
        return TreeDistribution(T)


@dataclass(frozen=True)
class SingleTree(Distribution):
    """A single known tree: T is 1 at its edges and does not depend on the rows."""

    T: Array  # (E,)

    @property
    def edges(self) -> np.ndarray:
        """(n - 1, 2) pairs of vertices."""
        return np.argwhere(np.triu(unpacked(self.T, n_vertices(len(self.T)))) > 0)

    @property
    def log_partition(self) -> float:
        return 0.0

    @property
    def mean(self) -> Array:
        return self.T

    def hessian_product(self, f: Array) -> Array:
        return np.zeros_like(f)

    def with_natural_parameters(self, T: Array) -> SingleTree:
        return self


@dataclass(frozen=True)
class Dirichlets(Distribution):
    """A product of independent Dirichlet distributions: T holds the counts, in groups (the rows of a table)."""

    T: Array  # (M,)
    group: np.ndarray  # (M,) number of the distribution of each count, from 0

    def __post_init__(self) -> None:
        if not (self.T > 0).all() or not np.isfinite(self.T).all():
            raise OutsideDomainError("a count is not positive")

    @cached_property
    def totals(self) -> Array:
        """(groups,) sums of the counts."""
        return np.bincount(self.group, self.T).astype(float)

    @cached_property
    def log_partition(self) -> float:
        return float(gammaln(self.T).sum() - gammaln(self.totals).sum())

    @cached_property
    def mean(self) -> Array:
        return np.asarray(psi(self.T) - psi(self.totals)[self.group])

    @cached_property
    def _trigammas(self) -> tuple[Array, Array]:
        return polygamma(1, self.T), polygamma(1, self.totals)

    def hessian_product(self, f: Array) -> Array:
        of_counts, of_totals = self._trigammas
        return of_counts * f - (of_totals * np.bincount(self.group, f))[self.group]

    def gram(self, F: Array) -> Array:
        of_counts, of_totals = self._trigammas
        sums = np.zeros((len(F), len(of_totals)))
        np.add.at(sums.T, self.group, F.T)
        return (F * of_counts) @ F.T - (sums * of_totals) @ sums.T

    def with_natural_parameters(self, T: Array) -> Dirichlets:
        return Dirichlets(T, self.group)

    @property
    def log_predictive(self) -> Array:
        """(M,) logarithms of the expected probabilities, whose sum over tables is the predictive log-probability."""
        return np.log(self.T) - np.log(self.totals)[self.group]


@dataclass(frozen=True)
class CellLayout:
    """The cells (indicator variables) of all columns: those of column v are starts[v] to starts[v] + sizes[v]."""

    sizes: tuple[int, ...]

    @property
    def n(self) -> int:
        return len(self.sizes)

    @property
    def n_cells(self) -> int:
        return sum(self.sizes)

    @cached_property
    def starts(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.intp)

    @cached_property
    def different(self) -> np.ndarray:
        """(R, R) bool: whether two cells belong to different columns."""
        column = np.repeat(np.arange(self.n), self.sizes)
        return np.asarray(column[:, None] != column)

    def by_column(self, cells: Array) -> Array:
        """(n,) sums over the cells (R,) of each column."""
        return np.add.reduceat(cells, self.starts)

    def by_pair(self, cells: Array) -> Array:
        """(n, n) sums over the cells (R, R) of each pair of columns."""
        return np.add.reduceat(np.add.reduceat(cells, self.starts, axis=0), self.starts, axis=1)

    def spread(self, columns: Array) -> Array:
        """(R,) the value of each column (n,), repeated for its cells."""
        return np.repeat(columns, self.sizes)

    def spread_pairs(self, pairs: Array) -> Array:
        """(R, R) the value of each pair of columns (n, n), repeated for its cells."""
        return np.repeat(np.repeat(pairs, self.sizes, axis=0), self.sizes, axis=1)


@dataclass(frozen=True)
class TreeTables(Distribution):
    """A distribution over tree structures and over their tables, Dirichlet given the structure (3.5 and appendix B).

    T is a symmetric (1 + R, 1 + R) matrix of counts as a vector: the number of rows, the counts of every cell (in the
    first row and column), and of every pair of cells of different columns. It is the sum of (1, cells)^T (1, cells)
    over rows; entries for two cells of the same column are not used.

        A = - log Gamma(N) + sum_v sum_i log Gamma(N_v(i)) + log |Q(W)|,
        log W_uv = sum_ij log Gamma(N_uv(i, j)) - sum_i log Gamma(N_u(i)) - sum_j log Gamma(N_v(j)) + log W0_uv,

    where W0 is a factor of the structure alone. With `uniform` as the prior, all trees are equally probable before
    discrimination (the prior of the document); with log W0 = 0 their probabilities follow from the counts of the prior.
    """

    T: Array  # ((1 + R)^2,)
    layout: CellLayout
    structure: Array  # (E,) log W0

    def __post_init__(self) -> None:
        smallest = min(self.table[0].min(), self.pairs[self.layout.different].min(initial=np.inf))
        if not smallest > 0 or not np.isfinite(self.T).all():
            raise OutsideDomainError("a count is not positive")

    @cached_property
    def table(self) -> Array:
        """(1 + R, 1 + R) matrix of counts."""
        width = 1 + self.layout.n_cells
        return self.T.reshape(width, width)

    @property
    def rows(self) -> float:
        """N."""
        return float(self.table[0, 0])

    @property
    def cells(self) -> Array:
        """(R,) N_v(i)."""
        return self.table[0, 1:]

    @property
    def pairs(self) -> Array:
        """(R, R) N_uv(i, j)."""
        return self.table[1:, 1:]

    def _on_pairs(self, function: object) -> Array:
        """(R, R) a function of the counts of pairs; zero for two cells of the same column."""
        out = np.zeros_like(self.pairs)
        different = self.layout.different
        out[different] = function(self.pairs[different])  # type: ignore[operator]
        return out

    def _edge_sums(self, pairs: Array, cells: Array) -> Array:
        """(E,) sum over the cells of a pair of columns, minus the sums over the cells of either column."""
        by_column = self.layout.by_column(cells)
        return packed(self.layout.by_pair(pairs) - by_column[:, None] - by_column)

    @cached_property
    def trees(self) -> SpanningTrees:
        """The distribution over structures, with the tables integrated out."""
        return SpanningTrees(self._evidence + self.structure)

    @cached_property
    def _evidence(self) -> Array:
        return self._edge_sums(self._on_pairs(gammaln), gammaln(self.cells))

    @property
    def uniform(self) -> TreeTables:
        """The same tables with equally probable trees."""
        return TreeTables(self.T, self.layout, -self._evidence)

    @cached_property
    def log_partition(self) -> float:
        return float(-gammaln(self.rows) + gammaln(self.cells).sum()) + self.trees.log_partition

    @cached_property
    def _edges(self) -> Array:
        """(n, n) edge marginals."""
        return unpacked(self.trees.mean, self.layout.n)

    @cached_property
    def _digammas(self) -> tuple[Array, Array]:
        return psi(self.cells), self._on_pairs(psi)

    @cached_property
    def _trigammas(self) -> tuple[Array, Array]:
        return polygamma(1, self.cells), self._on_pairs(lambda x: polygamma(1, x))

    def _as_vector(self, rows: float, cells: Array, pairs: Array) -> Array:
        """A vector like T from coefficients of the counts; those that occur twice in T are halved."""
        out = np.empty_like(self.table)
        out[0, 0] = rows
        out[0, 1:] = out[1:, 0] = 0.5 * cells
        out[1:, 1:] = 0.5 * pairs
        return out.ravel()

    @cached_property
    def mean(self) -> Array:
        digamma, digammas = self._digammas
        cells = digamma * (1.0 - self.layout.spread(self._edges.sum(axis=1)))
        return self._as_vector(-float(psi(self.rows)), cells, digammas * self.layout.spread_pairs(self._edges))

    def hessian_product(self, f: Array) -> Array:
        f = f.reshape(self.table.shape)
        (digamma, digammas), (trigamma, trigammas) = self._digammas, self._trigammas
        edge_changes = unpacked(
            self.trees.hessian_product(self._edge_sums(digammas * f[1:, 1:], digamma * f[0, 1:])), self.layout.n
        )
        spread = self.layout.spread
        cells = trigamma * f[0, 1:] * (1.0 - spread(self._edges.sum(axis=1))) - digamma * spread(
            edge_changes.sum(axis=1)
        )
        pairs = trigammas * f[1:, 1:] * self.layout.spread_pairs(self._edges)
        pairs += digammas * self.layout.spread_pairs(edge_changes)
        return self._as_vector(-float(polygamma(1, self.rows)) * f[0, 0], cells, pairs)

    def gram(self, F: Array) -> Array:
        """For features of rows that are `CountFeatures`."""
        K, width = len(F), len(self.table)
        square = F.reshape(K, width, width)
        (digamma, digammas), (trigamma, trigammas) = self._digammas, self._trigammas
        cells, pairs = square[:, 0, 1:], square[:, 1:, 1:]
        edges = np.array([self._edge_sums(digammas * q, digamma * c) for q, c in zip(pairs, cells)])
        out = self.trees.gram(edges.reshape(K, -1))
        out += (cells * (trigamma * (1.0 - self.layout.spread(self._edges.sum(axis=1))))) @ cells.T
        flat = pairs.reshape(K, -1)
        out += (flat * (0.5 * trigammas * self.layout.spread_pairs(self._edges)).ravel()) @ flat.T
        return out - polygamma(1, self.rows) * np.outer(F[:, 0], F[:, 0])

    def with_natural_parameters(self, T: Array) -> TreeTables:
        return TreeTables(T, self.layout, self.structure)


@dataclass(frozen=True, repr=False)
class Product(Short, Distribution):
    """A product of independent distributions."""

    parts: tuple[Distribution, ...]

    @cached_property
    def T(self) -> Array:  # type: ignore[override]
        return np.concatenate([part.T for part in self.parts])

    @cached_property
    def cuts(self) -> np.ndarray:
        return np.cumsum([len(part.T) for part in self.parts])[:-1]

    @property
    def log_partition(self) -> float:
        return sum(part.log_partition for part in self.parts)

    @cached_property
    def mean(self) -> Array:
        return np.concatenate([part.mean for part in self.parts])

    def hessian_product(self, f: Array) -> Array:
        return np.concatenate([part.hessian_product(block) for part, block in zip(self.parts, np.split(f, self.cuts))])

    def gram(self, F: Array) -> Array:
        grams = [part.gram(block) for part, block in zip(self.parts, np.split(F, self.cuts, axis=1))]
        return np.asarray(np.sum(grams, axis=0))

    def with_natural_parameters(self, T: Array) -> Product:
        return Product(
            tuple(part.with_natural_parameters(block) for part, block in zip(self.parts, np.split(T, self.cuts)))
        )
