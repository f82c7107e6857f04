"""Features as cells: what a row adds to every class's logit, looked up or multiplied, never as a dense one-hot matrix.

A row is a vector of cells, phi (S,): for a discrete column the indicator of its value, for a probabilistic one a pmf
over its values, all zero where the value is missing. `logits` is phi gamma and `expected` its transpose,
sum_t phi_t p_t: the two products every solver is made of.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mixent.core.arrays import Array
from mixent.maxent.rows import Rows

PACKED = 4096  # joint values of columns looked up together


@dataclass(frozen=True)
class Pack:
    """Neighbouring discrete columns read as one code: one look-up and one count for all of them."""

    columns: tuple[int, ...]
    shape: tuple[int, ...]  # values of each, a missing one included as the last

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(int(np.prod(self.shape[i + 1 :])) for i in range(len(self.shape)))


@dataclass(frozen=True)
class Cells:
    """Which cells there are: those of the discrete columns first, column by column, then the dense ones."""

    sizes: tuple[int, ...]  # values of each discrete column
    n_dense: int = 0  # cells given as numbers: pmfs of probabilistic columns, moments

    @property
    def n_cells(self) -> int:
        return sum(self.sizes) + self.n_dense

    @cached_property
    def starts(self) -> tuple[int, ...]:
        return tuple(int(s) for s in np.cumsum((0, *self.sizes))[:-1])

    @cached_property
    def packs(self) -> tuple[Pack, ...]:
        packs: list[Pack] = []
        columns: list[int] = []
        shape: list[int] = []
        for j, size in enumerate(self.sizes):
            if columns and int(np.prod(shape)) * (size + 1) > PACKED:
                packs.append(Pack(tuple(columns), tuple(shape)))
                columns, shape = [], []
            columns.append(j)
            shape.append(size + 1)
        return (*packs, Pack(tuple(columns), tuple(shape))) if columns else tuple(packs)

    def packed(self, codes: np.ndarray) -> np.ndarray:
        """(packs, n) joint codes; a missing value is one more value."""
        out = np.empty((len(self.packs), len(codes)), dtype=np.intp)
        for row, pack in zip(out, self.packs):
            row[:] = 0
            for j, stride, size in zip(pack.columns, pack.strides, pack.shape):
                column = codes[:, j]
                row += stride * np.where(column < 0, size - 1, column)
        return out

    def logits(self, multipliers: Array, rows: Rows) -> Array:
        """(C, n): sum over the row's cells of their multipliers (S, C)."""
        C = multipliers.shape[1]
        out = np.zeros((C, rows.n_rows))
        if self.sizes:
            for pack, code in zip(self.packs, rows.packed):
                table = self._joint_table(multipliers, pack)
                for c in range(C):
                    out[c] += table[c].take(code)
        if self.n_dense:
            out += multipliers[sum(self.sizes) :].T @ rows.dense
        return out

    def _joint_table(self, multipliers: Array, pack: Pack) -> Array:
        """(C, joint values): sums of the columns' multipliers; nothing for a missing value."""
        table = np.zeros((multipliers.shape[1], *pack.shape))
        for axis, (j, size) in enumerate(zip(pack.columns, pack.shape)):
            part = np.zeros((multipliers.shape[1], size))
            part[:, :-1] = multipliers[self.starts[j] : self.starts[j] + size - 1].T
            table += part.reshape(-1, *[size if a == axis else 1 for a in range(len(pack.shape))])
        return table.reshape(len(table), -1)

    def expected(self, weights: Array, rows: Rows) -> Array:
        """(S, C): sum over rows of cells times weights (C, n)."""
        C = len(weights)
        out = np.empty((self.n_cells, C))
        if self.sizes:
            for pack, code in zip(self.packs, rows.packed):
                size = int(np.prod(pack.shape))
                joint = np.stack([np.bincount(code, weights[c], size) for c in range(C)])
                joint = joint.reshape(C, *pack.shape)
                for axis, j in enumerate(pack.columns):
                    others = tuple(a + 1 for a in range(len(pack.shape)) if a != axis)
                    counts = joint.sum(axis=others)[:, :-1]
                    out[self.starts[j] : self.starts[j] + self.sizes[j]] = counts.T
        if self.n_dense:
            out[sum(self.sizes) :] = rows.dense @ weights.T
        return out

    def dense(self, rows: Rows) -> Array:
        """(S, n): the rows written out, for the Gram matrix of a block."""
        out = np.zeros((self.n_cells, rows.n_rows))
        if self.sizes:
            index = np.arange(rows.n_rows)
            for pack, code in zip(self.packs, rows.packed):
                for j, stride, size in zip(pack.columns, pack.strides, pack.shape):
                    value = code // stride % size
                    seen = value < size - 1
                    out[self.starts[j] + value[seen], index[seen]] = 1.0
        if self.n_dense:
            out[sum(self.sizes) :] = rows.dense
        return out
