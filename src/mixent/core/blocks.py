"""Blocks of rows: the unit of work. A source cuts a table into blocks that fit the cache."""

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
    """Some rows of a table. Absent parts are None."""

    X: Array  # (n, d) continuous, NaN = missing
    codes: NDArray[np.int32] | None = None  # (n, m) discrete, -1 = missing
    label: Array | None = None  # (n, C) label likelihoods; all ones = absent
    weight: Array | None = None  # (n,)
    rows: slice | Index | None = None  # where these rows stand in the table; None: all of it
    complete: bool = True  # False: every row of X has gaps
    known: int | None = None  # the class all these rows are known to have; `label` is then not needed
    offset: Array | None = None  # (n, C) log p(class, x) of a part of the model that stays as it is

    @property
    def n_rows(self) -> int:
        return len(self.X)

    @property
    def row_weights(self) -> Array:
        """(n,) weights, ones where none were given."""
        return np.ones(self.n_rows) if self.weight is None else self.weight

    def take(self, rows: slice | Index, *, complete: bool = True, known: int | None = None) -> Block:
        """These rows as a block: views for a slice, copies for an index."""

        def part(values: Any) -> Any:
            return None if values is None else values[rows]

        label = None if known is not None else part(self.label)
        return Block(self.X[rows], part(self.codes), label, part(self.weight), rows, complete, known, part(self.offset))


class BlockSource(Protocol):
    """What the driver reads: a fixed sequence of blocks."""

    @property
    def n_rows(self) -> int: ...
    @property
    def total_weight(self) -> float: ...
    def __len__(self) -> int: ...
    def __getitem__(self, i: int) -> Block: ...


class ArrayBlocks:
    """Blocks of arrays in memory. Complete rows without known classes come as views: nothing is copied.

    Otherwise rows are sorted so that a block holds rows of one known class, all with gaps or none, in order of
    number of gaps and pattern; `Block.rows` says where they belong.

    Parameters
    ----------
    table : Block
        All rows.
    block_rows, gap_rows : int
        Rows per block, for complete rows and for rows with gaps.
    classes : (n,) array of int, optional
        The known class of each row, -1 where unknown.
    """

    def __init__(
        self, table: Block, block_rows: int = 2048, gap_rows: int = 512, classes: NDArray[Any] | None = None
    ) -> None:
        self.table = replace(table, rows=None)
        self._order, self._runs = _sort(table.X, classes)
        self._cut(block_rows, gap_rows)

    def _cut(self, block_rows: int, gap_rows: int) -> None:
        self._spans = []
        for start, stop, complete, known in self._runs:
            size = _even(stop - start, max(1, block_rows if complete else gap_rows))
            self._spans += [(a, min(a + size, stop), complete, known) for a in range(start, stop, size)]

    def reblock(self, block_rows: int, gap_rows: int | None = None) -> ArrayBlocks:
        """The same rows in blocks of another size; costs no pass over the data."""
        other = copy(self)
        other._cut(block_rows, gap_rows or block_rows)
        return other

    @property
    def n_rows(self) -> int:
        return self.table.n_rows

    @property
    def total_weight(self) -> float:
        return float(self.n_rows if self.table.weight is None else self.table.weight.sum())

    @property
    def has_gaps(self) -> bool:
        return any(not complete for _, _, complete, _ in self._runs)

    def __len__(self) -> int:
        return len(self._spans)

    def __getitem__(self, i: int) -> Block:
        start, stop, complete, known = self._spans[i]
        rows = slice(start, stop) if self._order is None else self._order[start:stop]
        return self.table.take(rows, complete=complete, known=known)


_Run = tuple[int, int, bool, int | None]  # start, stop, complete, known class: rows alike, in sorted order


def _sort(X: Array, classes: NDArray[Any] | None) -> tuple[Index | None, list[_Run]]:
    """An order in which rows alike stand together (None: as they are), and the runs of rows alike."""
    with np.errstate(over="ignore", invalid="ignore"):
        has_gaps = bool(np.isnan(X.sum()))  # a sum is NaN when any cell is; far cheaper than a mask
    if len(X) == 0:
        return None, []
    if not has_gaps and classes is None:
        return None, [(0, len(X), True, None)]
    keys: list[NDArray[Any]] = []
    n_gaps = np.zeros(len(X), dtype=np.intp)
    if has_gaps:
        gaps = np.isnan(X)
        n_gaps = gaps.sum(axis=1)
        keys += list(np.packbits(gaps, axis=1).T[::-1])
    known = np.full(len(X), -1) if classes is None else np.asarray(classes)
    order = np.lexsort((*keys, n_gaps, known)).astype(np.intp)
    known, n_gaps = known[order], n_gaps[order]
    change = (np.diff(known) != 0) | (np.diff(n_gaps > 0) != 0)
    edges = [0, *(np.flatnonzero(change) + 1).tolist(), len(X)]
    runs: list[_Run] = [
        (a, b, bool(n_gaps[a] == 0), None if known[a] < 0 else int(known[a])) for a, b in pairwise(edges)
    ]
    return order, runs


def _even(n_rows: int, most: int) -> int:
    """Rows per block when n_rows are cut evenly into blocks of at most `most`, in a number four threads can share."""
    n_blocks = -(-n_rows // most)
    if n_blocks > 1:
        n_blocks = 4 * -(-n_blocks // 4)
    return max(1, -(-n_rows // n_blocks))


@dataclass(frozen=True)
class NumberedRows:
    """Rows by their numbers, for problems that hold all else themselves."""

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
    """A source with all rows in one block, for problems that look at them together."""

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
    """A source of blocks for the driver, of any rows that have `part`, `n_rows` and `weight`."""

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

    def __getitem__(self, i: int) -> Any:  # to the driver a block is whatever its problem reads
        return self.rows.part(slice(i * self.size, min((i + 1) * self.size, self.n_rows)))
