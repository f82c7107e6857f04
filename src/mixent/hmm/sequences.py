"""The door for sequences: a table with lengths or groups in, steps one after the other out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import ArrayBlocks, Block
from mixent.data import Column, Schema, Table
from mixent.hmm.lattice import Layout
from mixent.mixtures.model import varying_columns

STEP = "value"  # the one variable of sequences that are rows
BLOCK_BYTES = 8 << 20  # of a block's temporaries


@dataclass(frozen=True)
class Sequences:
    """Steps one after the other, sequence by sequence."""

    table: Block  # (n_steps, ...) what is emitted at each step; X are log-likelihoods where emissions are given
    lengths: np.ndarray  # (n,)
    rows: np.ndarray | None = None  # (n_steps,) where the steps stand in the user's table; None: as they are

    @property
    def n_sequences(self) -> int:
        return len(self.lengths)

    @property
    def begins(self) -> np.ndarray:
        """(n,) the first step of each sequence."""
        return np.cumsum(self.lengths) - self.lengths

    @property
    def owner(self) -> np.ndarray:
        """(n_steps,) the sequence each step belongs to."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def take(self, index: np.ndarray) -> Sequences:
        """Some of the sequences."""
        lengths = self.lengths[index]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        steps = np.repeat(self.begins[index], lengths) + within
        return Sequences(replace(self.table.take(steps), rows=None), lengths)

    def with_weights(self, weight: Array | None) -> Block:
        """The steps as rows of a table, each with the weight of its sequence."""
        return self.table if weight is None else replace(self.table, weight=np.repeat(weight, self.lengths))

    def restored(self, values: Any) -> Any:
        """Values of the steps in the order of the user's table."""
        if self.rows is None:
            return values
        out = np.empty_like(values)
        out[self.rows] = values
        return out


def read_lengths(lengths: Any, groups: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Lengths of the sequences, and where their steps stand (None: one after the other).

    Parameters
    ----------
    lengths : (n,) whole numbers, or None
    groups : (n_rows,) an id per row, or None
        Rows of one id are a sequence, in their order; sequences are in the order in which ids appear.
    n_rows : int
    """
    if lengths is not None and groups is not None:
        raise ValueError("give lengths or groups, not both")
    if lengths is None:
        return _grouped(groups, n_rows)
    found = np.asarray(lengths)
    if found.ndim != 1 or found.dtype.kind not in "iuf" or len(found) == 0 or not np.all(found == np.floor(found)):
        raise ValueError(f"lengths must be a list of whole numbers, one per sequence; got {lengths!r}")
    if found.min() < 1:
        i = int(np.argmax(found < 1))
        raise ValueError(f"lengths must be >= 1; sequence {i} has {found[i]:g}")
    if found.sum() != n_rows:
        raise ValueError(f"lengths must add up to the rows of X, {n_rows}; they add up to {found.sum():g}")
    return found.astype(np.intp), None


def _grouped(groups: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray | None]:
    ids = np.asarray(groups)
    if ids.shape != (n_rows,):
        raise ValueError(f"groups must hold one id per row of X, {n_rows}; got shape {ids.shape}")
    if any(value is None or value != value for value in ids.tolist()):
        raise ValueError("groups must name the sequence of every row; some ids are missing")
    place: dict[Any, int] = {}
    member = np.array([place.setdefault(value, len(place)) for value in ids.tolist()], dtype=np.intp)
    lengths = np.bincount(member)
    if (np.diff(member) >= 0).all():
        return lengths, None
    return lengths, np.argsort(member, kind="stable")


def one_alphabet(table: Table) -> Table:
    """A table of sequences that are rows, with one alphabet of all its columns."""
    schema = table.schema
    if not schema.categorical:
        return table
    if schema.continuous:
        number, word = schema.columns[schema.continuous[0]].name, schema.columns[schema.categorical[0]].name
        raise ValueError(
            f"in a sequence per row all columns are steps of one variable, but column {number!r} holds numbers and "
            f"column {word!r} categories; name all columns in categorical=, or give a row per step, and lengths"
        )
    values = {value for column in schema.columns for value in column.categories}
    kinds = {isinstance(value, str) for value in values}
    if len(kinds) > 1:
        raise ValueError(
            "in a sequence per row all columns share one alphabet, but some hold text and some numbers or booleans; "
            "make them all text"
        )
    alphabet = tuple(sorted(values))
    assert table.codes is not None
    codes = np.full_like(table.codes, -1)
    for j, column in enumerate(schema.columns):
        where = np.array([alphabet.index(value) for value in column.categories], dtype=np.int32)
        seen = table.codes[:, j] >= 0
        codes[seen, j] = where[table.codes[seen, j]]
    kind = "boolean" if all(column.kind == "boolean" for column in schema.columns) else "categorical"
    columns = tuple(Column(column.name, kind, alphabet) for column in schema.columns)
    return Table(table.X, codes, Schema(columns, schema.named))


def step_schema(schema: Schema) -> Schema:
    """The one variable of sequences that are rows."""
    first = schema.columns[0]
    kinds = {column.kind for column in schema.columns}
    kind = first.kind if len(kinds) == 1 else "continuous"
    return Schema((Column(STEP, kind, first.categories),), False)


def from_rows(table: Table) -> Sequences:
    """A sequence per row, a step per column."""
    n, length = table.n_rows, len(table.schema.columns)
    lengths = np.full(n, length, dtype=np.intp)
    if table.codes is None:
        return Sequences(Block(table.X.reshape(n * length, 1)), lengths)
    return Sequences(Block(np.empty((n * length, 0)), table.codes.reshape(n * length, 1)), lengths)


def from_steps(table: Table, lengths: Any, groups: Any) -> Sequences:
    """A step per row."""
    found, rows = read_lengths(lengths, groups, table.n_rows)
    block = Block(table.X, table.codes)
    return Sequences(block if rows is None else replace(block.take(rows), rows=None), found, rows)


def in_columns(sequences: Sequences, varying: np.ndarray) -> Sequences:
    """The same sequences in the continuous columns that take part."""
    table = sequences.table
    return (
        sequences
        if len(varying) == table.X.shape[1]
        else replace(sequences, table=replace(table, X=np.ascontiguousarray(table.X[:, varying])))
    )


def varying(sequences: Sequences, weight: Array | None) -> tuple[np.ndarray, Array]:
    """Which continuous variables are not constant, and the values of those that are (NaN for the others)."""
    weighted = sequences.with_weights(weight)
    return varying_columns(weighted.X, weighted.weight)


@dataclass(frozen=True)
class SequenceBlock:
    """Whole sequences, put side by side."""

    index: np.ndarray  # (n,) which sequences these are
    layout: Layout
    weight: Array  # (n,)
    emitted: tuple[Block, ...]  # steps by position, with missing values or without; one wholly missing is in none
    given: Array | None = None  # (S, N) log-likelihoods by position, instead

    @property
    def n_rows(self) -> int:
        return int(self.layout.lengths.sum())


class SequenceBlocks:
    """Blocks of whole sequences for the driver, those of like length together.

    Parameters
    ----------
    sequences : Sequences
    weight : (n,) array or None
        Of each sequence.
    width : int
        Numbers a step needs in memory while it is worked on.
    given : bool
        Whether the table holds log-likelihoods of the states.
    block_rows : int, optional
        About how many steps a block has; None: as many as the cache holds.
    """

    def __init__(
        self,
        sequences: Sequences,
        weight: Array | None,
        width: int,
        *,
        given: bool = False,
        block_rows: int | None = None,
    ) -> None:
        self.sequences, self.given = sequences, given
        self.weight = np.ones(sequences.n_sequences) if weight is None else weight
        most = block_rows or int(np.clip(BLOCK_BYTES // (8 * width), 4096, 65536))
        order = np.argsort(-sequences.lengths, kind="stable")
        filled = np.cumsum(sequences.lengths[order]) - 1
        cuts = np.flatnonzero(np.diff(filled // most)) + 1
        self._parts = [self._block(np.sort(index)) for index in np.split(order, cuts)]

    def _block(self, index: np.ndarray) -> SequenceBlock:
        part = self.sequences.take(index)
        layout = Layout(part.lengths)
        table = part.table.take(layout.rows)
        if self.given:
            return SequenceBlock(index, layout, self.weight[index], (), np.ascontiguousarray(table.X.T))
        return SequenceBlock(index, layout, self.weight[index], _emitted(table))

    @property
    def n_rows(self) -> int:
        return int(self.sequences.lengths.sum())

    @property
    def total_weight(self) -> float:
        """Of all steps."""
        return float(self.weight @ self.sequences.lengths)

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, i: int) -> Any:  # to the driver a block is whatever its problem reads
        return self._parts[i]


def seen_steps(table: Block) -> np.ndarray:
    """(n_steps,) is anything known of what was emitted?"""
    seen = (~np.isnan(table.X)).any(axis=1)
    return np.asarray(seen if table.codes is None else seen | (table.codes >= 0).any(axis=1))


def _emitted(table: Block) -> tuple[Block, ...]:
    """The steps at which something was seen, in blocks with and without missing values; `rows` are positions."""
    seen = seen_steps(table)
    where = None if seen.all() else np.flatnonzero(seen)
    table = replace(table if where is None else table.take(where), rows=None)
    # complete rows in one block: their kernels keep their work in buffers that the next one would take over
    source = ArrayBlocks(table, max(table.n_rows, 1), 2048)
    parts = [source[i] for i in range(len(source))]
    if where is not None:
        parts = [replace(part, rows=where[part.rows]) for part in parts]
    return tuple(parts)
