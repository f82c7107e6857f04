"""Blocks of rows, the unit of computation. A source divides a table into blocks that fit the cache."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mixent.core.arrays import Array

Index = NDArray[np.intp]
BLOCK_BYTES = 4 << 20  # of a block's arrays


@dataclass(frozen=True)
class Block:
    """Some rows of a table; absent parts are None."""

    X: Array  # (n, d) continuous, NaN = missing
    codes: NDArray[np.int32] | None = None  # (n, m) categorical, -1 = missing
    label: Array | None = None  # (n, C) label likelihoods; all ones = unlabelled
    weight: Array | None = None  # (n,)
    rows: slice | Index | None = None  # positions of these rows in the table; None: all rows
    complete: bool = True  # False: every row of X has missing values
    known: int | None = None  # the known class of all these rows; `label` is then not needed
    offset: Array | None = None  # (n, C) log p(class, x) of the components that are not trained

    @property
    def n_rows(self) -> int:
        return len(self.X)

    @property
    def row_weights(self) -> Array:
        """(n,) weights, by default ones."""
        return np.ones(self.n_rows) if self.weight is None else self.weight

    def take(self, rows: slice | Index, *, complete: bool = True, known: int | None = None) -> Block:
        """Return these rows as a block: views for a slice, copies for an index."""

        def part(values: Any) -> Any:
            return None if values is None else values[rows]

        label = None if known is not None else part(self.label)
        return Block(self.X[rows], part(self.codes), label, part(self.weight), rows, complete, known, part(self.offset))


class BlockSource(Protocol):
    """A fixed sequence of blocks, as the driver reads it."""

    @property
    def n_rows(self) -> int: ...
    @property
    def total_weight(self) -> float: ...
    def __len__(self) -> int: ...
    def __getitem__(self, i: int) -> Block: ...


class ArrayBlocks:
    """Blocks of arrays in memory. Complete rows without known classes are views; nothing is copied.

    Otherwise rows are sorted so that a block contains rows of one known class, either all complete or all with missing
    values, in order of the number and pattern of missing values; `Block.rows` has their positions in the table.

    Parameters
    ----------
    table : Block
        All rows.
    block_rows, incomplete_rows : int
        Number of rows per block, for complete rows and for rows with missing values.
    classes : (n,) array of int, optional
        The known class of each row, -1 where unknown.
    """

    def __init__(
        self, table: Block, block_rows: int = 2048, incomplete_rows: int = 512, classes: NDArray[Any] | None = None
    ) -> None:
        self.table = replace(table, rows=None)
        self._order, self._runs = _sort(table.X, classes)
        self._cut(block_rows, incomplete_rows)

    def _cut(self, block_rows: int, incomplete_rows: int) -> None:
        self._spans = []
        for start, stop, complete, known in self._runs:
            size = _even(stop - start, max(1, block_rows if complete else incomplete_rows))
            self._spans += [(a, min(a + size, stop), complete, known) for a in range(start, stop, size)]

    def reblock(self, block_rows: int, incomplete_rows: int | None = None) -> ArrayBlocks:
        """Return the same rows in blocks of another size, without a pass over the data."""
        other = copy(self)
        other._cut(block_rows, incomplete_rows or block_rows)
        return other

    @property
    def n_rows(self) -> int:
        return self.table.n_rows

    @property
    def total_weight(self) -> float:
        return float(self.n_rows if self.table.weight is None else self.table.weight.sum())

    @property
    def has_missing(self) -> bool:
        return any(not complete for _, _, complete, _ in self._runs)

    def __len__(self) -> int:
        return len(self._spans)

    def __getitem__(self, i: int) -> Block:
        start, stop, complete, known = self._spans[i]
        rows = slice(start, stop) if self._order is None else self._order[start:stop]
        return self.table.take(rows, complete=complete, known=known)


_Run = tuple[int, int, bool, int | None]  # start, stop, complete, known class: similar rows, in sorted order


def _sort(X: Array, classes: NDArray[Any] | None) -> tuple[Index | None, list[_Run]]:
    """Return an order in which similar rows are adjacent (None: the given order), and the runs of similar rows."""
    with np.errstate(over="ignore", invalid="ignore"):
        has_missing = bool(np.isnan(X.sum()))  # the sum is NaN if any value is; much faster than a mask
    if len(X) == 0:
        return None, []
    if not has_missing and classes is None:
        return None, [(0, len(X), True, None)]
    keys: list[NDArray[Any]] = []
    n_missing = np.zeros(len(X), dtype=np.intp)
    if has_missing:
        missing = np.isnan(X)
        n_missing = missing.sum(axis=1)
        keys += list(np.packbits(missing, axis=1).T[::-1])
    known = np.full(len(X), -1) if classes is None else np.asarray(classes)
    order = np.lexsort((*keys, n_missing, known)).astype(np.intp)
    known, n_missing = known[order], n_missing[order]
    change = (np.diff(known) != 0) | (np.diff(n_missing > 0) != 0)
    edges = [0, *(np.flatnonzero(change) + 1).tolist(), len(X)]
    runs: list[_Run] = [
        (a, b, bool(n_missing[a] == 0), None if known[a] < 0 else int(known[a])) for a, b in pairwise(edges)
    ]
    return order, runs


def _even(n_rows: int, limit: int) -> int:
    """Return the block size that divides n_rows evenly into blocks of at most `limit`, in a multiple of four blocks."""
    n_blocks = -(-n_rows // limit)
    if n_blocks > 1:
        n_blocks = 4 * -(-n_blocks // 4)
    return max(1, -(-n_rows // n_blocks))


@dataclass(frozen=True)
class NumberedRows:
    """Row numbers and weights, for problems that store all other data themselves."""

    index: Index
    weight: Array

    @classmethod
    def of(cls, weight: Array) -> NumberedRows:
        return cls(np.arange(len(weight)), weight)

    @property
    def n_rows(self) -> int:
        return len(self.index)

    def part(self, rows: slice) -> NumberedRows:
        return NumberedRows(self.index[rows], self.weight[rows])


class Whole:
    """A source with all rows in one block, for problems whose statistics need all rows."""

    def __init__(self, weight: Array) -> None:
        self.rows = NumberedRows.of(weight)

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows

    @property
    def total_weight(self) -> float:
        return float(self.rows.weight.sum())

    def __len__(self) -> int:
        return 1

    def __getitem__(self, i: int) -> Any:
        return self.rows


class Blocks:
    """A source of blocks of any rows object with `part`, `n_rows` and `weight`."""

    def __init__(self, rows: Any, row_bytes: int, block_bytes: int = BLOCK_BYTES) -> None:
        self.rows, self.row_bytes = rows, row_bytes
        self.size = int(np.clip(block_bytes // max(row_bytes, 1), 256, 32768))

    @property
    def n_rows(self) -> int:
        return int(self.rows.n_rows)

    @property
    def total_weight(self) -> float:
        return float(self.rows.weight.sum())

    def __len__(self) -> int:
        return max(1, -(-self.n_rows // self.size))

    def __getitem__(self, i: int) -> Any:  # the type that the problem reads
        return self.rows.part(slice(i * self.size, min((i + 1) * self.size, self.n_rows)))
