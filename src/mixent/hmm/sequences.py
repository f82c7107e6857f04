"""Input of sequences: a table with lengths or groups is converted to concatenated sequences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import ArrayBlocks, Block
from mixent.data import Column, Schema, Table
from mixent.data.formats import PLAIN
from mixent.data.schema import FLOAT_KINDS
from mixent.hmm.lattice import Layout
from mixent.mixtures.model import varying_columns

STEP = "value"  # name of the variable if X has a sequence per row
BLOCK_BYTES = 8 << 20  # size of the temporary arrays of a block


@dataclass(frozen=True)
class Sequences:
    """Concatenated sequences."""

    table: Block  # (n_steps, ...) values of each step; X has log-likelihoods if emissions are precomputed
    lengths: np.ndarray  # (n,)
    rows: np.ndarray | None = None  # (n_steps,) row of each step in the table of the user; None: in the same order

    @property
    def n_sequences(self) -> int:
        return len(self.lengths)

    @property
    def starts(self) -> np.ndarray:
        """(n,) index of the first step of each sequence."""
        return np.cumsum(self.lengths) - self.lengths

    @property
    def owner(self) -> np.ndarray:
        """(n_steps,) index of the sequence of each step."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def take(self, index: np.ndarray) -> Sequences:
        """Return some of the sequences."""
        lengths = self.lengths[index]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        steps = np.repeat(self.starts[index], lengths) + within
        return Sequences(replace(self.table.take(steps), rows=None), lengths)

    def with_weights(self, weight: Array | None) -> Block:
        """Return the steps as rows of a block, with the weights of their sequences."""
        return self.table if weight is None else replace(self.table, weight=np.repeat(weight, self.lengths))

    def restored(self, values: Any) -> Any:
        """Return values of the steps in the order of the rows of the user's table."""
        if self.rows is None:
            return values
        out = np.empty_like(values)
        out[self.rows] = values
        return out


def read_lengths(lengths: Any, groups: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the lengths of the sequences, and the rows of their steps (None: in order).

    Parameters
    ----------
    lengths : (n,) array of int, or None
    groups : (n_rows,) array of ids, or None
        Rows with the same id form a sequence, in their order; sequences are in the order of the first row of each id.
    n_rows : int
    """
    if lengths is not None and groups is not None:
        raise ValueError("pass lengths or groups, not both")
    if lengths is None:
        return _grouped(groups, n_rows)
    counts = np.asarray(lengths)
    if counts.ndim != 1 or counts.dtype.kind not in "iuf" or len(counts) == 0 or not np.all(counts == np.floor(counts)):
        raise ValueError(f"lengths must be a list of whole numbers, one per sequence; got {lengths!r}")
    if counts.min() < 1:
        i = int(np.argmax(counts < 1))
        raise ValueError(f"lengths must be >= 1; sequence {i} has {counts[i]:g}")
    if counts.sum() != n_rows:
        raise ValueError(f"lengths must add up to the number of rows of X, {n_rows}; they add up to {counts.sum():g}")
    return counts.astype(np.intp), None


def _grouped(groups: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray | None]:
    ids = np.asarray(groups)
    if ids.shape != (n_rows,):
        raise ValueError(f"groups must have one id per row of X, {n_rows}; got shape {ids.shape}")
    if any(value is None or value != value for value in ids.tolist()):
        raise ValueError("groups must have an id for every row; some ids are missing")
    number: dict[Any, int] = {}
    sequence = np.array([number.setdefault(value, len(number)) for value in ids.tolist()], dtype=np.intp)
    lengths = np.bincount(sequence)
    if (np.diff(sequence) >= 0).all():
        return lengths, None
    return lengths, np.argsort(sequence, kind="stable")


def all_steps(table: Table) -> Table:
    """Return a table with a sequence per row, a column for each step: one without values is missing in all rows."""
    schema = table.schema
    parts = next((given.name for given in schema.inputs if len(given.columns) > 1), None)
    if parts is not None:
        raise ValueError(
            f"with a sequence per row, all columns are steps of one variable, but column {parts!r} holds dates, or "
            "words beside numbers; convert it to numbers, or use a row per step and lengths"
        )
    if not schema.ignored:
        return table
    first, missing = schema.columns[0], np.full(table.n_rows, np.nan)
    numbers = dict(zip(schema.continuous, table.X.T))
    codes = {} if table.codes is None else dict(zip(schema.categorical, table.codes.T))
    steps = []
    for given in schema.inputs:
        column = schema.columns[given.columns[0]] if given.columns else replace(first, name=given.name)
        values = (numbers | codes)[given.columns[0]] if given.columns else missing
        steps.append((given.name, given.format if given.columns else PLAIN, column, values))
    full = Schema.of([(name, form, [column]) for name, form, column, _ in steps], schema.named)
    X = [values for *_, column, values in steps if column.kind in FLOAT_KINDS]
    C = [np.where(np.isnan(values), -1, values) for *_, column, values in steps if column.kind not in FLOAT_KINDS]
    return replace(
        table,
        X=np.column_stack(X) if X else np.empty((table.n_rows, 0)),
        codes=np.column_stack(C).astype(np.int32) if C else None,
        schema=full,
    )


def one_alphabet(table: Table) -> Table:
    """Return a table with a sequence per row whose columns have the same categories."""
    table = all_steps(table)
    schema = table.schema
    if not schema.categorical:
        return table
    if schema.continuous:
        number, category = schema.columns[schema.continuous[0]].name, schema.columns[schema.categorical[0]].name
        raise ValueError(
            f"with a sequence per row, all columns are steps of one variable, but column {number!r} is numeric and "
            f"column {category!r} is categorical; list all columns in categorical, or use a row per step and lengths"
        )
    values = {value for column in schema.columns for value in column.categories}
    kinds = {isinstance(value, str) for value in values}
    if len(kinds) > 1:
        raise ValueError(
            "with a sequence per row, all columns are steps of one variable, but some are text and some are numbers or "
            "booleans; convert all to text"
        )
    alphabet = tuple(sorted(values))
    assert table.codes is not None
    codes = np.full_like(table.codes, -1)
    for j, column in enumerate(schema.columns):
        where = np.array([alphabet.index(value) for value in column.categories], dtype=np.int32)
        observed = table.codes[:, j] >= 0
        codes[observed, j] = where[table.codes[observed, j]]
    kind = "boolean" if all(column.kind == "boolean" for column in schema.columns) else "categorical"
    columns = tuple(Column(column.name, kind, alphabet) for column in schema.columns)
    return Table(table.X, codes, replace(schema, columns=columns))


def step_schema(schema: Schema) -> Schema:
    """Return the schema of the variable if X has a sequence per row."""
    first = schema.columns[0]
    kinds = {column.kind for column in schema.columns}
    kind = first.kind if len(kinds) == 1 else "continuous"
    return Schema((Column(STEP, kind, first.categories),), False)


def from_rows(table: Table) -> Sequences:
    """Return the sequences of a table with a sequence per row and a step per column."""
    n, length = table.n_rows, len(table.schema.columns)
    lengths = np.full(n, length, dtype=np.intp)
    if table.codes is None:
        return Sequences(Block(table.X.reshape(n * length, 1)), lengths)
    return Sequences(Block(np.empty((n * length, 0)), table.codes.reshape(n * length, 1)), lengths)


def from_steps(table: Table, lengths: Any, groups: Any) -> Sequences:
    """Return the sequences of a table with a step per row."""
    counts, rows = read_lengths(lengths, groups, table.n_rows)
    block = Block(table.X, table.codes)
    return Sequences(block if rows is None else replace(block.take(rows), rows=None), counts, rows)


def in_columns(sequences: Sequences, varying: np.ndarray) -> Sequences:
    """Return the sequences with the varying numeric variables."""
    table = sequences.table
    return (
        sequences
        if len(varying) == table.X.shape[1]
        else replace(sequences, table=replace(table, X=np.ascontiguousarray(table.X[:, varying])))
    )


def varying(sequences: Sequences, weight: Array | None) -> tuple[np.ndarray, Array]:
    """Return the numeric variables that vary, and the values of the constant ones (NaN for the others)."""
    weighted = sequences.with_weights(weight)
    return varying_columns(weighted.X, weighted.weight)


@dataclass(frozen=True)
class SequenceBlock:
    """Whole sequences, with the steps of the same time next to each other."""

    index: np.ndarray  # (n,) indices of the sequences
    layout: Layout
    weight: Array  # (n,)
    emitted: tuple[Block, ...]  # blocks of steps by position, with and without missing values; empty steps are left out
    log_emit: Array | None = None  # (S, N) precomputed log-likelihoods by position

    @property
    def n_rows(self) -> int:
        return int(self.layout.lengths.sum())


class SequenceBlocks:
    """Blocks of whole sequences of similar length, for the driver.

    Parameters
    ----------
    sequences : Sequences
    weight : (n,) array or None
        Weight of each sequence.
    width : int
        Size of the temporary arrays per step.
    precomputed : bool
        Whether the table has log-likelihoods of the states.
    block_rows : int, optional
        Approximate number of steps of a block; None: as many as fit the cache.
    """

    def __init__(
        self,
        sequences: Sequences,
        weight: Array | None,
        width: int,
        *,
        precomputed: bool = False,
        block_rows: int | None = None,
    ) -> None:
        self.sequences, self.precomputed = sequences, precomputed
        self.weight = np.ones(sequences.n_sequences) if weight is None else weight
        size = block_rows or int(np.clip(BLOCK_BYTES // (8 * width), 4096, 65536))
        order = np.argsort(-sequences.lengths, kind="stable")
        filled = np.cumsum(sequences.lengths[order]) - 1
        cuts = np.flatnonzero(np.diff(filled // size)) + 1
        self._parts = [self._block(np.sort(index)) for index in np.split(order, cuts)]

    def _block(self, index: np.ndarray) -> SequenceBlock:
        part = self.sequences.take(index)
        layout = Layout(part.lengths)
        table = part.table.take(layout.rows)
        if self.precomputed:
            return SequenceBlock(index, layout, self.weight[index], (), np.ascontiguousarray(table.X.T))
        return SequenceBlock(index, layout, self.weight[index], _emitted(table))

    @property
    def n_rows(self) -> int:
        return int(self.sequences.lengths.sum())

    @property
    def total_weight(self) -> float:
        """Total weight of all steps."""
        return float(self.weight @ self.sequences.lengths)

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, i: int) -> Any:  # the type that the problem reads
        return self._parts[i]


def observed_steps(table: Block) -> np.ndarray:
    """Return which steps have at least one observed value, (n_steps,)."""
    observed = (~np.isnan(table.X)).any(axis=1)
    return np.asarray(observed if table.codes is None else observed | (table.codes >= 0).any(axis=1))


def _emitted(table: Block) -> tuple[Block, ...]:
    """Return the steps with observed values, in blocks with and without missing values; `rows` are positions."""
    observed = observed_steps(table)
    where = None if observed.all() else np.flatnonzero(observed)
    table = replace(table if where is None else table.take(where), rows=None)
    # complete rows in one block: their results are in scratch arrays that a second block would overwrite
    source = ArrayBlocks(table, max(table.n_rows, 1), 2048)
    parts = [source[i] for i in range(len(source))]
    if where is not None:
        parts = [replace(part, rows=where[part.rows]) for part in parts]
    return tuple(parts)
