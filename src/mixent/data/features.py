"""The door for features: any table in, one Table out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from mixent.data.checks import constants
from mixent.data.encode import Notes, read_columns, recode
from mixent.data.frames import Source, library_of, read_source
from mixent.data.kinds import EMPTY, infer, is_empty
from mixent.data.labels import Labels
from mixent.data.schema import FLOAT_KINDS, Column, Schema
from mixent.data.table import Table
from mixent.data.values import listed
from mixent.warn import warn_notes

Categorical = str | Iterable[str | int]


def read_features(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    categorical: Categorical = "auto",
    new: bool = False,
) -> Table:
    """Check X once and turn it into a Table.

    Parameters
    ----------
    estimator : estimator
        With `reset`, gets ``n_features_in_`` and, where all names are text, ``feature_names_in_``.
        Without, X is read with ``estimator.schema_`` and must have the columns seen at fit.
    X : array-like or DataFrame of shape (n, p), or Table
        numpy, nested lists, pandas, polars, pyarrow or anything narwhals knows. NaN, None, NA, null and blank
        text are missing. A float64 array of continuous columns is not copied.
        A Table has been read already, by this estimator or another: its rows are not read again, and the result is the
        same as that of reading the user's rows (with `reset`, categories are those of the rows at hand).
    reset : bool
        True in fit, False everywhere else.
    categorical : "auto" or list of str or int, default "auto"
        "auto": text, bool and declared categories are categorical, numbers are not.
        A list names further columns (by name or position) that are categorical whatever their type.
    new : bool, default False
        Whether categories not seen at fit are one category more, after the others, and not missing.

    Returns
    -------
    Table
        With notes on what was unusual. Without `reset` they are shown as one `DataWarning` unless X is a Table; in fit,
        `keep_notes` does so.

    Raises
    ------
    ValueError, TypeError
        With the column, the row and the remedy. Rows count from 0.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from mixent.data import read_features
    >>> model = SimpleNamespace()
    >>> table = read_features(model, [[1.5, "a"], [None, "b"], [2.5, "a"]], reset=True)
    >>> table.X.tolist(), table.codes.tolist()
    ([[1.5], [nan], [2.5]], [[0], [1], [0]])
    """
    if not isinstance(X, Table):
        table = _read(estimator, X, reset, categorical, new)
        warn_notes(() if reset else table.notes)
        return table
    known = _fitted_anew(estimator, X, categorical) if reset else _recoded(X, estimator.schema_, new)
    return _read(estimator, X.given, reset, categorical, new) if known is None else known


def _read(estimator: Any, X: Any, reset: bool, categorical: Any, new: bool) -> Table:
    """The user's table."""
    source, notes = read_source(estimator, X, reset=reset), Notes()
    notes.sentences += source.notes
    as_category: frozenset[int] = frozenset()
    if reset:
        as_category = _declared_categorical(categorical, [raw.name for raw in source.columns])
        formats = [infer(raw, j in as_category, notes) for j, raw in enumerate(source.columns)]
        read = [(raw.name, f.format, f.columns) for raw, f in zip(source.columns, formats)]
        schema = Schema.of(read, source.named, library_of(X))
        _check_used(schema, source.n_rows)
    else:
        schema = estimator.schema_
        source = _renamed(source, schema)
    numbers, codes = _filled(source, schema, notes, new)
    sentences = _sentences(notes, schema if reset else None)
    table = Table(numbers, codes, schema, as_category, notes.unseen, source.given, sentences)
    return replace(table, notes=(*sentences, *constants(table))) if reset else table


def keep_notes(estimator: Any, *read: Table | Labels, quiet: bool) -> None:
    """Set ``notes_`` of an estimator in fit, and warn of them.

    Parameters
    ----------
    estimator : estimator
    *read : Table, Labels
        What X and y have become.
    quiet : bool
        Whether not to warn: X was a Table, whose notes were shown where it was read.
    """
    estimator.notes_ = list(dict.fromkeys(note for part in read for note in part.notes))
    warn_notes(() if quiet else estimator.notes_)


def _check_used(schema: Schema, n_rows: int) -> None:
    if not schema.columns:
        raise ValueError(
            f"no column of X can be used: {listed(schema.input_names)} have no values or are identifiers, in "
            f"{n_rows} rows; give other columns, or list identifiers in categorical="
        )


def _sentences(notes: Notes, fitted: Schema | None) -> tuple[str, ...]:
    """All notes on a table; `fitted` is its schema in fit."""
    empty = [] if fitted is None else [repr(given.name) for given in fitted.inputs if given.format == EMPTY]
    for name in empty:
        notes.add("without values, and therefore ignored", name)
    return notes.all()


def categorical_of(X: Any) -> Categorical:
    """The `categorical` that a Table was read with, for estimators without such an option; else "auto"."""
    return X.as_category if isinstance(X, Table) else "auto"


def _fitted_anew(estimator: Any, table: Table, categorical: Any) -> Table | None:
    """The table for `fit`: its columns and categories are those that its rows have.

    None where other columns are to be categorical.
    """
    schema = table.schema
    if _declared_categorical(categorical, list(schema.input_names)) != table.as_category:
        return None
    estimator.n_features_in_ = len(schema.inputs)
    if schema.named:
        estimator.feature_names_in_ = np.array(schema.input_names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    columns: list[Column | None] = list(schema.columns)
    for place, j in enumerate(schema.continuous):
        columns[j] = None if is_empty(table.X[:, place]) else schema.columns[j]
    for place, j in enumerate(schema.categorical):
        columns[j] = _seen_only(schema.columns[j], table.column_codes(place))
    if all(old is column for old, column in zip(schema.columns, columns)):
        return table
    fitted = schema.with_columns(columns)
    _check_used(fitted, table.n_rows)
    new = [i.name for i, old in zip(fitted.inputs, schema.inputs) if i.format == EMPTY != old.format]
    notes = table.notes + tuple(f"column {name!r} has no values in these rows and is ignored" for name in new)
    recoded = _recoded(table, fitted, new=False)
    return None if recoded is None else replace(recoded, notes=notes)


def _seen_only(column: Column, codes: np.ndarray) -> Column | None:
    counts = np.bincount(codes[codes >= 0], minlength=len(column.categories))
    if not counts.any():
        return None
    if column.kind == "boolean" or (counts > 0).all():
        return column
    kept = tuple(value for value, n in zip(column.categories, counts) if n)
    return replace(column, categories=kept)


def _recoded(table: Table, schema: Schema, new: bool) -> Table | None:
    """The table in the columns and categories of another schema; None where the user's rows have to be read again."""
    if table.schema is schema and not (table.unseen and new):
        return table
    kept = _same_columns(table.schema, schema)
    if kept is None:
        return None
    pairs = [(table.schema.columns[i], column) for i, column in zip(kept, schema.columns)]
    if table.unseen and (new or not all(set(b.categories) <= set(a.categories) for a, b in pairs)):
        return None
    places = {i: place for place, i in enumerate(table.schema.continuous)}
    used = [places[kept[j]] for j in schema.continuous]
    numbers = table.X if used == list(range(table.X.shape[1])) else table.X[:, used]
    if not schema.categorical:
        return replace(table, X=numbers, codes=None, schema=schema)
    notes, places = Notes(), {i: place for place, i in enumerate(table.schema.categorical)}
    codes = np.empty((table.n_rows, len(schema.categorical)), np.int32)
    for place, j in enumerate(schema.categorical):
        codes[:, place] = recode(table.column_codes(places[kept[j]]), *pairs[j], notes, new)
    return replace(table, X=numbers, codes=codes, schema=schema, unseen=table.unseen or notes.unseen)


def _same_columns(read: Schema, schema: Schema) -> list[int] | None:
    """For each column of a schema, its position among those of a table that has been read in the same formats."""
    if len(read.inputs) != len(schema.inputs) or read.named != schema.named:
        return None
    if schema.named and read.input_names != schema.input_names:
        return None
    kept: list[int] = []
    for before, after in zip(read.inputs, schema.inputs):
        if not after.columns:
            continue
        known = {read.columns[i].name: i for i in before.columns}
        if before.format != after.format or not all(schema.columns[j].name in known for j in after.columns):
            return None
        kept += [known[schema.columns[j].name] for j in after.columns]
    pairs = zip((read.columns[i].kind for i in kept), (column.kind for column in schema.columns))
    return kept if all((a in FLOAT_KINDS) == (b in FLOAT_KINDS) for a, b in pairs) else None


def _renamed(source: Source, schema: Schema) -> Source:
    """Call the columns as at fit: an array has no names, and errors should use the known ones."""
    columns = [replace(raw, name=given.name) for raw, given in zip(source.columns, schema.inputs)]
    return replace(source, columns=columns)


def _declared_categorical(categorical: Any, names: list[str]) -> frozenset[int]:
    if isinstance(categorical, str) or not np.iterable(categorical):
        if isinstance(categorical, str) and categorical == "auto":
            return frozenset()
        raise ValueError(f"categorical must be 'auto' or a list of column names or positions; got {categorical!r}")
    return frozenset(_position(entry, names) for entry in categorical)


def _position(entry: Any, names: list[str]) -> int:
    if isinstance(entry, str):
        if entry in names:
            return names.index(entry)
        close = difflib.get_close_matches(entry, names, n=3)
        hint = f"did you mean {', '.join(map(repr, close))}?" if close else f"the columns are {listed(names)}"
        raise ValueError(f"categorical names a column {entry!r} that X does not have; {hint}")
    if not isinstance(entry, (int, np.integer)) or isinstance(entry, (bool, np.bool_)):
        raise ValueError(f"categorical must list column names or positions; got {entry!r}")
    if not -len(names) <= entry < len(names):
        raise ValueError(f"categorical names position {entry}, but X has {len(names)} columns (0 to {len(names) - 1})")
    return int(entry) % len(names)


def _filled(source: Source, schema: Schema, notes: Notes, new: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """The numbers and codes of a table."""
    if source.block is not None and schema.one_to_one and not schema.categorical:
        notes.huge |= {raw.name: raw.n_huge for raw in source.columns if raw.n_huge}
        return source.block, None
    numbers = np.empty((source.n_rows, len(schema.continuous)))
    codes = np.empty((source.n_rows, len(schema.categorical)), np.int32)
    place: dict[int, np.ndarray] = {j: numbers[:, i] for i, j in enumerate(schema.continuous)}
    place |= {j: codes[:, i] for i, j in enumerate(schema.categorical)}
    for raw, given in zip(source.columns, schema.inputs):
        columns = [schema.columns[j] for j in given.columns]
        for j, values in zip(given.columns, read_columns(raw, given.format, columns, notes, new)):
            place[j][:] = values
    return numbers, codes if schema.categorical else None
