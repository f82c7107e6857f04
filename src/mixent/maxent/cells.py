"""Features as cells: what a row adds to every class's logit, looked up or multiplied, never as a dense one-hot matrix.

A row is a vector of cells, phi (S,): for a discrete column the indicator of its value, for a probabilistic one a pmf
over its values, all zero where the value is missing. `logits` is phi gamma and `expected` its transpose,
sum_t phi_t p_t: the two products every solver is made of.

Neighboring discrete columns are read as one joint value, so the one-hot matrix is a product of two sparse ones: of the
rows with the joint values they have (one per pack), and of joint values with their cells. The second is small and is
applied once a pass (`table`), or to sums; a row then costs one entry for several columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mixent.core.arrays import Array
from mixent.maxent.blocks import Rows

PACKED = 1024  # joint values of columns looked up together: their table stays in the cache
THIN = 512  # rows of a product with a thin matrix
PAIRED = 128  # joint values of columns counted together in a Gram matrix: their square does


@dataclass(frozen=True)
class Pack:
    """Neighboring discrete columns read as one code: one look-up and one count for all of them."""

    columns: tuple[int, ...]
    shape: tuple[int, ...]  # values of each, a missing one included as the last
    start: int  # of its joint values among those of all packs

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(int(np.prod(self.shape[i + 1 :])) for i in range(len(self.shape)))

    def values(self, j: int, joint: np.ndarray) -> np.ndarray:
        """The values of column j in these joint codes (counted from `start`); its size where missing."""
        place = self.columns.index(j)
        return joint // self.strides[place] % self.shape[place]


@dataclass(frozen=True)
class Cells:
    """Which cells there are: those of the discrete columns first, column by column, then the dense ones."""

    sizes: tuple[int, ...]  # values of each discrete column
    n_dense: int = 0  # cells given as numbers: pmfs of probabilistic columns, moments

    @property
    def n_discrete(self) -> int:
        return sum(self.sizes)

    @property
    def n_cells(self) -> int:
        return self.n_discrete + self.n_dense

    @cached_property
    def starts(self) -> tuple[int, ...]:
        return tuple(int(s) for s in np.cumsum((0, *self.sizes))[:-1])

    @cached_property
    def packs(self) -> tuple[Pack, ...]:
        return _packs(self.sizes, PACKED)

    @cached_property
    def _cells_of(self) -> Any:
        """(joint values, discrete cells): ones where a joint value has a cell; a missing value has none."""
        joint, cell = [], []
        for pack in self.packs:
            codes = np.arange(pack.size)
            for j in pack.columns:
                value = pack.values(j, codes)
                seen = value < self.sizes[j]
                joint.append(pack.start + codes[seen])
                cell.append(self.starts[j] + value[seen])
        index = (np.concatenate(joint), np.concatenate(cell))
        return csr_array((np.ones(len(index[0])), index), shape=(_end(self.packs), self.n_discrete))

    @cached_property
    def _joint_of(self) -> Any:
        return self._cells_of.T.tocsr()

    def packed(self, codes: np.ndarray) -> np.ndarray:
        """(n, packs) joint codes, counted through all packs; a missing value is one more value."""
        out = np.empty((len(codes), len(self.packs)), dtype=np.int32)
        by_column = np.ascontiguousarray(codes.T, dtype=np.int32)
        gaps = by_column.size > 0 and by_column.min() < 0
        for p, pack in enumerate(self.packs):
            joint = np.full(len(codes), pack.start, dtype=np.int32)
            for j, stride, size in zip(pack.columns, pack.strides, pack.shape):
                column = by_column[j]
                joint += stride * (np.where(column < 0, size - 1, column) if gaps else column)
            out[:, p] = joint
        return out

    def table(self, multipliers: Array) -> Array:
        """(joint values + dense cells, C): what a joint value adds to the logits, then the dense multipliers."""
        if not self.sizes:
            return multipliers
        return np.concatenate([self._cells_of @ multipliers[: self.n_discrete], multipliers[self.n_discrete :]])

    def logits(self, multipliers: Array, rows: Rows) -> Array:
        """(C, n): sum over the row's cells of their multipliers (S, C)."""
        return self.looked_up(self.table(multipliers), rows)

    def looked_up(self, table: Array, rows: Rows) -> Array:
        """(C, n): the logits by `table`."""
        n_joint = len(table) - self.n_dense
        out = table[n_joint:].T @ rows.dense if self.n_dense else None
        if self.sizes:
            found = (_incidence(rows.packed, n_joint) @ table[:n_joint]).T
            out = np.ascontiguousarray(found) if out is None else np.add(out, found, out=out)
        return np.zeros((table.shape[1], rows.n_rows)) if out is None else out

    def expected(self, weights: Array, rows: Rows) -> Array:
        """(S, C): sum over rows of cells times weights (C, n)."""
        out = np.empty((self.n_cells, len(weights)))
        if self.sizes:
            joint = _incidence(rows.packed, _end(self.packs)).T @ np.ascontiguousarray(weights.T)
            out[: self.n_discrete] = self._joint_of @ joint
        if self.n_dense:
            out[self.n_discrete :] = thin_product(rows.dense, weights)
        return out

    def gram(self, rows: Rows) -> Array:
        """(S + 1, S + 1): sum_t w_t phi_t phi_t^T, a cell that is always one first."""
        out = np.empty((self.n_cells + 1, self.n_cells + 1))
        weight = rows.weight[None]
        out[0, 0] = weight.sum()
        out[1:, :1] = self.expected(weight, rows)
        hot, dense = slice(1, 1 + self.n_discrete), slice(1 + self.n_discrete, None)
        if self.sizes:
            out[hot, hot] = self._pair_counts(rows)
        if self.n_dense:
            root = rows.dense * np.sqrt(rows.weight)
            out[dense, dense] = root @ root.T  # of one array with itself: BLAS computes a triangle
            if self.sizes:
                weighted = np.ascontiguousarray((rows.dense * rows.weight).T)
                joint = _incidence(rows.packed, _end(self.packs)).T @ weighted
                out[hot, dense] = self._joint_of @ joint
                out[dense, hot] = out[hot, dense].T
        out[:1, 1:] = out[1:, :1].T
        return out

    def _pair_counts(self, rows: Rows) -> Array:
        """(S', S') of the discrete cells: how often each two values meet, counted two small packs at a time."""
        out = np.zeros((self.n_discrete, self.n_discrete))
        packs = _packs(self.sizes, PAIRED)
        codes = self._repacked(rows, packs)
        same = bool((rows.weight == rows.weight[0]).all()) if rows.n_rows else False
        weight = None if same else rows.weight
        for a, first in enumerate(packs):
            single = np.bincount(codes[a], weight, first.size).reshape(first.shape)
            self._spread(out, first, np.diag(single.ravel()).reshape(first.shape * 2), first)
            for b, second in enumerate(packs[:a]):
                pairs = np.bincount(codes[a] * second.size + codes[b], weight, first.size * second.size)
                self._spread(out, first, pairs.reshape(first.shape + second.shape), second)
        return out * rows.weight[0] if same else out

    def _spread(self, out: Array, first: Pack, counts: np.ndarray, second: Pack) -> None:
        """Counts of joint values of two packs, summed to counts of their columns' values."""
        n = len(first.shape)
        for u, i in enumerate(first.columns):
            for v, j in enumerate(second.columns):
                others = tuple(axis for axis in range(counts.ndim) if axis not in (u, n + v))
                pair = counts.sum(axis=others)[: self.sizes[i], : self.sizes[j]]
                rows, columns = (slice(self.starts[c], self.starts[c] + self.sizes[c]) for c in (i, j))
                out[rows, columns], out[columns, rows] = pair, pair.T

    def _repacked(self, rows: Rows, packs: tuple[Pack, ...]) -> list[np.ndarray]:
        """Joint codes (n,) of smaller packs, each counted from zero."""
        owner = {j: (p, pack) for p, pack in enumerate(self.packs) for j in pack.columns}
        out = []
        for small in packs:
            joint = np.zeros(rows.n_rows, dtype=np.intp)
            for j, stride in zip(small.columns, small.strides):
                p, pack = owner[j]
                joint += stride * pack.values(j, rows.packed[:, p] - pack.start)
            out.append(joint)
        return out

    def dense_sums(self, rows: Rows) -> Array:
        """(n,) sums of the dense cells."""
        return rows.dense.sum(axis=0)

    def dense_squares(self, rows: Rows) -> Array:
        """(n,) sums of their squares."""
        return np.einsum("dn,dn->n", rows.dense, rows.dense)

    def dense(self, rows: Rows) -> Array:
        """(S, n): the rows written out."""
        out = np.zeros((self.n_cells, rows.n_rows))
        if self.sizes:
            out[: self.n_discrete] = (_incidence(rows.packed, _end(self.packs)) @ self._cells_of).toarray().T
        out[self.n_discrete :] = rows.dense
        return out


def _packs(sizes: tuple[int, ...], most: int) -> tuple[Pack, ...]:
    """Neighboring columns together, as long as they have at most so many joint values."""
    packs: list[Pack] = []
    columns: list[int] = []
    shape: list[int] = []
    for j, size in enumerate(sizes):
        if columns and int(np.prod(shape)) * (size + 1) > most:
            packs.append(Pack(tuple(columns), tuple(shape), _end(packs)))
            columns, shape = [], []
        columns.append(j)
        shape.append(size + 1)
    if columns:
        packs.append(Pack(tuple(columns), tuple(shape), _end(packs)))
    return tuple(packs)


def _end(packs: Any) -> int:
    return packs[-1].start + packs[-1].size if packs else 0


def _incidence(packed: np.ndarray, n_joint: int) -> Any:
    """(n, joint values): ones where a row has a joint value; the codes themselves are its index."""
    n, per_row = packed.shape
    ones, ends = _frame(n, per_row) if packed.size <= 1 << 20 else _frame.__wrapped__(n, per_row)
    return csr_array((ones, np.ascontiguousarray(packed).ravel(), ends), shape=(n, n_joint))


def thin_product(dense: Array, weights: Array) -> Array:
    """dense (D, n) @ weights (C, n)^T, some rows at a time: BLAS multiplies a large and a thin matrix half as fast."""
    by_row = np.ascontiguousarray(weights.T)
    out = np.zeros((len(dense), len(weights)))
    for a in range(0, len(by_row), THIN):
        out += dense[:, a : a + THIN] @ by_row[a : a + THIN]
    return out


@lru_cache(maxsize=4)  # blocks come in one or two sizes
def _frame(n: int, per_row: int) -> tuple[Array, np.ndarray]:
    return np.ones(n * per_row), np.arange(0, n * per_row + 1, per_row, dtype=np.int32)
