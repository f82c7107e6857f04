"""The door for features: any table in, one Table out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from mixent.data.checks import check_magnitude
from mixent.data.encode import recode, to_codes, to_floats
from mixent.data.frames import Source, as_given, library_of, read_source
from mixent.data.kinds import check_present, no_values, type_column
from mixent.data.schema import FLOAT_KINDS, Column, Schema
from mixent.data.table import Table
from mixent.data.values import listed

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
    table = None
    if isinstance(X, Table):
        table = _fitted_anew(estimator, X, categorical) if reset else _recoded(X, estimator.schema_, new)
        X = X.given if table is None else X
    return _read(estimator, X, reset, categorical, new) if table is None else table


def _read(estimator: Any, X: Any, reset: bool, categorical: Any, new: bool) -> Table:
    """The user's table."""
    source = read_source(estimator, X, reset=reset)
    as_category: frozenset[int] = frozenset()
    if reset:
        as_category = _declared_categorical(categorical, [raw.name for raw in source.columns])
        columns = tuple(type_column(raw, j in as_category) for j, raw in enumerate(source.columns))
        schema = Schema(columns, source.named, library_of(X))
    else:
        schema = estimator.schema_
        source = _renamed(source, schema)
    codes, unseen = _codes(source, schema, new)
    table = Table(_floats(source, schema), codes, schema, as_category, unseen, as_given(X))
    check_magnitude(table)
    return table


def categorical_of(X: Any) -> Categorical:
    """The `categorical` that a Table was read with, for estimators without such an option; else "auto"."""
    return X.as_category if isinstance(X, Table) else "auto"


def _fitted_anew(estimator: Any, table: Table, categorical: Any) -> Table | None:
    """The table for `fit`: its categories are those of its rows. None where other columns are to be categorical."""
    schema = table.schema
    if _declared_categorical(categorical, list(schema.names)) != table.as_category:
        return None
    estimator.n_features_in_ = len(schema.columns)
    if schema.named:
        estimator.feature_names_in_ = np.array(schema.names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    for place, j in enumerate(schema.continuous):
        check_present(schema.columns[j].name, table.X[:, place])
    columns = list(schema.columns)
    for place, j in enumerate(schema.categorical):
        columns[j] = _seen_only(columns[j], table.column_codes(place))
    if all(old is column for old, column in zip(schema.columns, columns)):
        return table
    return _recoded(table, replace(schema, columns=tuple(columns)), new=False)


def _seen_only(column: Column, codes: np.ndarray) -> Column:
    counts = np.bincount(codes[codes >= 0], minlength=len(column.categories))
    if not counts.any():
        raise no_values(column.name, len(codes))
    if column.kind == "boolean" or (counts > 0).all():
        return column
    kept = tuple(value for value, n in zip(column.categories, counts) if n)
    return replace(column, categories=kept)


def _recoded(table: Table, schema: Schema, new: bool) -> Table | None:
    """The table in the columns and categories of another schema; None where the user's rows have to be read again."""
    if table.schema is schema and not (table.unseen and new):
        return table
    pairs = list(zip(table.schema.columns, schema.columns))
    same = len(table.schema.columns) == len(schema.columns) and table.schema.named == schema.named
    same = same and all((a.kind in FLOAT_KINDS) == (b.kind in FLOAT_KINDS) for a, b in pairs)
    if not same or (schema.named and table.schema.names != schema.names):
        return None
    if table.unseen and (new or not all(set(b.categories) <= set(a.categories) for a, b in pairs)):
        return None
    if not schema.categorical:
        return replace(table, schema=schema)
    codes, unseen = np.empty((table.n_rows, len(schema.categorical)), np.int32), table.unseen
    for place, j in enumerate(schema.categorical):
        codes[:, place], strange = recode(table.column_codes(place), *pairs[j], new)
        unseen = unseen or strange
    return replace(table, codes=codes, schema=schema, unseen=unseen)


def _renamed(source: Source, schema: Schema) -> Source:
    """Call the columns as at fit: an array has no names, and errors should use the known ones."""
    columns = [replace(raw, name=column.name) for raw, column in zip(source.columns, schema.columns)]
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


def _floats(source: Source, schema: Schema) -> np.ndarray:
    if source.block is not None and not schema.categorical:
        return source.block
    X = np.empty((source.n_rows, len(schema.continuous)))
    for place, j in enumerate(schema.continuous):
        X[:, place] = to_floats(source.columns[j])
    return X


def _codes(source: Source, schema: Schema, new: bool) -> tuple[np.ndarray | None, bool]:
    """Codes, and whether some are -1 for a category that was not seen at fit."""
    if not schema.categorical:
        return None, False
    codes, unseen = np.empty((source.n_rows, len(schema.categorical)), np.int32), False
    for place, j in enumerate(schema.categorical):
        codes[:, place], strange = to_codes(source.columns[j], schema.columns[j], new)
        unseen = unseen or strange
    return codes, unseen
