"""Features as cells: the products of a one-hot matrix with multipliers, computed without forming the dense matrix.

A row is a vector of cells, phi (S,): for a discrete column the indicator of its value, for a probabilistic column a pmf
over its values; all zero where the value is missing. Every solver consists of two products: `logits` is phi gamma, and
`expected` is the transposed product, sum_t phi_t p_t.

Several adjacent discrete columns (a pack) are coded as one joint value. The one-hot matrix is then a product of two
sparse matrices: rows by joint values (one per pack), and joint values by cells. The second is small; it is applied once
per pass (`table`), or to sums over rows. A row then costs one look-up per pack rather than one per column.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mixent.core.arrays import Array
from mixent.maxent.blocks import Rows

PACKED = 1024  # most joint values of a pack: a table of this size fits in the cache
THIN = 512  # rows per product with a thin matrix
MANY = 40  # columns from which a dense product counts pairs of values, if it has less work than the pairs of columns
PAIR_WORK = 200_000  # multiplications that take as long as a pair of columns
PAIRED = 128  # most joint values of a pack in a Gram matrix: a table of its square fits in the cache


@dataclass(frozen=True)
class Pack:
    """Adjacent discrete columns coded as one joint value: one look-up and one count for all of them."""

    columns: tuple[int, ...]
    shape: tuple[int, ...]  # number of values of each column; the last value stands for a missing value
    start: int  # index of its first joint value among the joint values of all packs

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(int(np.prod(self.shape[i + 1 :])) for i in range(len(self.shape)))

    def values(self, j: int, joint: np.ndarray) -> np.ndarray:
        """The values of column j in these joint codes (counted from `start`); its number of values where missing."""
        axis = self.columns.index(j)
        return joint // self.strides[axis] % self.shape[axis]


@dataclass(frozen=True)
class Cells:
    """The cells of a model: those of the discrete columns first, column by column, then the dense cells."""

    sizes: tuple[int, ...]  # number of values of each discrete column
    n_dense: int = 0  # cells with real values: pmfs of probabilistic columns, moments

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
        """(joint values, discrete cells) sparse indicator of the cells of each joint value; missing has none."""
        joint, cell = [], []
        for pack in self.packs:
            codes = np.arange(pack.size)
            for j in pack.columns:
                value = pack.values(j, codes)
                present = value < self.sizes[j]
                joint.append(pack.start + codes[present])
                cell.append(self.starts[j] + value[present])
        index = (np.concatenate(joint), np.concatenate(cell))
        return csr_array((np.ones(len(index[0])), index), shape=(_end(self.packs), self.n_discrete))

    @cached_property
    def _joint_of(self) -> Any:
        return self._cells_of.T.tocsr()

    def packed(self, codes: np.ndarray) -> np.ndarray:
        """(n, packs) joint codes, numbered through all packs; missing is one more value of each column."""
        out = np.empty((len(codes), len(self.packs)), dtype=np.int32)
        by_column = np.ascontiguousarray(codes.T, dtype=np.int32)
        any_missing = by_column.size > 0 and by_column.min() < 0
        for p, pack in enumerate(self.packs):
            joint = np.full(len(codes), pack.start, dtype=np.int32)
            for j, stride, size in zip(pack.columns, pack.strides, pack.shape):
                column = by_column[j]
                joint += stride * (np.where(column < 0, size - 1, column) if any_missing else column)
            out[:, p] = joint
        return out

    def table(self, multipliers: Array) -> Array:
        """(joint values + dense cells, C) contributions of joint values to the logits, then the dense multipliers."""
        if not self.sizes:
            return multipliers
        return np.concatenate([self._cells_of @ multipliers[: self.n_discrete], multipliers[self.n_discrete :]])

    def logits(self, multipliers: Array, rows: Rows) -> Array:
        """(C, n) sums of the multipliers (S, C) over the cells of each row."""
        return self.table_logits(self.table(multipliers), rows)

    def table_logits(self, table: Array, rows: Rows) -> Array:
        """(C, n) logits, from the contributions that `table` returns."""
        n_joint = len(table) - self.n_dense
        out = table[n_joint:].T @ rows.dense if self.n_dense else None
        if self.sizes:
            discrete = (_incidence(rows.packed, n_joint) @ table[:n_joint]).T
            out = np.ascontiguousarray(discrete) if out is None else np.add(out, discrete, out=out)
        return np.zeros((table.shape[1], rows.n_rows)) if out is None else out

    def expected(self, weights: Array, rows: Rows) -> Array:
        """(S, C) sums over rows of the cells times weights (C, n)."""
        out = np.empty((self.n_cells, len(weights)))
        if self.sizes:
            joint = _incidence(rows.packed, _end(self.packs)).T @ np.ascontiguousarray(weights.T)
            out[: self.n_discrete] = self._joint_of @ joint
        if self.n_dense:
            out[self.n_discrete :] = thin_product(rows.dense, weights)
        return out

    def gram(self, rows: Rows) -> Array:
        """(S + 1, S + 1) weighted Gram matrix sum_t w_t phi_t phi_t^T; the first cell is the constant one."""
        out = np.empty((self.n_cells + 1, self.n_cells + 1))
        weight = rows.weight[None]
        out[0, 0] = weight.sum()
        out[1:, :1] = self.expected(weight, rows)
        hot, dense = slice(1, 1 + self.n_discrete), slice(1 + self.n_discrete, None)
        if self.sizes:
            out[hot, hot] = self._pair_counts(rows)
        if self.n_dense:
            root = rows.dense * np.sqrt(rows.weight)
            out[dense, dense] = root @ root.T  # a product of an array with itself: BLAS computes one triangle only
            if self.sizes:
                weighted = np.ascontiguousarray((rows.dense * rows.weight).T)
                joint = _incidence(rows.packed, _end(self.packs)).T @ weighted
                out[hot, dense] = self._joint_of @ joint
                out[dense, hot] = out[hot, dense].T
        out[:1, 1:] = out[1:, :1].T
        return out

    def _pair_counts(self, rows: Rows) -> Array:
        """(S', S') counts of rows in which two discrete values occur together, computed by pairs of small packs."""
        if len(self.sizes) > MANY and rows.n_rows * self.n_discrete**2 < PAIR_WORK * len(self.sizes) ** 2:
            hot = (_incidence(rows.packed, _end(self.packs)) @ self._cells_of).toarray().T
            return (hot * rows.weight) @ hot.T
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
        """Sum the counts of joint values of two packs to counts of the values of their columns, and store them."""
        n = len(first.shape)
        for u, i in enumerate(first.columns):
            for v, j in enumerate(second.columns):
                others = tuple(axis for axis in range(counts.ndim) if axis not in (u, n + v))
                pair = counts.sum(axis=others)[: self.sizes[i], : self.sizes[j]]
                rows, columns = (slice(self.starts[c], self.starts[c] + self.sizes[c]) for c in (i, j))
                out[rows, columns], out[columns, rows] = pair, pair.T

    def _repacked(self, rows: Rows, packs: tuple[Pack, ...]) -> list[np.ndarray]:
        """Joint codes (n,) of smaller packs, each numbered from zero."""
        pack_of = {j: (p, pack) for p, pack in enumerate(self.packs) for j in pack.columns}
        out = []
        for small in packs:
            joint = np.zeros(rows.n_rows, dtype=np.intp)
            for j, stride in zip(small.columns, small.strides):
                p, pack = pack_of[j]
                joint += stride * pack.values(j, rows.packed[:, p] - pack.start)
            out.append(joint)
        return out

    def dense_sums(self, rows: Rows) -> Array:
        """(n,) sums of the dense cells."""
        return rows.dense.sum(axis=0)

    def dense_squares(self, rows: Rows) -> Array:
        """(n,) sums of the squares of the dense cells."""
        return np.einsum("dn,dn->n", rows.dense, rows.dense)

    def dense(self, rows: Rows) -> Array:
        """(S, n) all cells of the rows as a dense matrix."""
        out = np.zeros((self.n_cells, rows.n_rows))
        if self.sizes:
            out[: self.n_discrete] = (_incidence(rows.packed, _end(self.packs)) @ self._cells_of).toarray().T
        out[self.n_discrete :] = rows.dense
        return out


def _packs(sizes: tuple[int, ...], max_values: int) -> tuple[Pack, ...]:
    """Group adjacent columns into packs of at most `max_values` joint values."""
    packs: list[Pack] = []
    columns: list[int] = []
    shape: list[int] = []
    for j, size in enumerate(sizes):
        if columns and int(np.prod(shape)) * (size + 1) > max_values:
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
    """(n, joint values) sparse indicator of the joint values of each row; the codes are its column indices."""
    n, per_row = packed.shape
    ones, ends = _frame(n, per_row) if packed.size <= 1 << 20 else _frame.__wrapped__(n, per_row)
    return csr_array((ones, np.ascontiguousarray(packed).ravel(), ends), shape=(n, n_joint))


def thin_product(dense: Array, weights: Array) -> Array:
    """dense (D, n) @ weights (C, n)^T, in chunks of rows: twice as fast as one BLAS call with a thin matrix."""
    by_row = np.ascontiguousarray(weights.T)
    out = np.zeros((len(dense), len(weights)))
    for a in range(0, len(by_row), THIN):
        out += dense[:, a : a + THIN] @ by_row[a : a + THIN]
    return out


@lru_cache(maxsize=4)  # blocks have one or two different sizes
def _frame(n: int, per_row: int) -> tuple[Array, np.ndarray]:
    return np.ones(n * per_row), np.arange(0, n * per_row + 1, per_row, dtype=np.int32)
