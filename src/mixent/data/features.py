"""The door for features: any table in, one Table out."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace

import numpy as np

from mixent.data.checks import check_values
from mixent.data.encode import to_codes, to_floats
from mixent.data.frames import Source, read_source
from mixent.data.kinds import type_column
from mixent.data.schema import Schema
from mixent.data.values import listed


@dataclass(frozen=True)
class Table:
    """Checked, typed rows.

    Parameters
    ----------
    X : ndarray of float64, shape (n, d)
        The columns `schema.continuous`; NaN is missing.
    codes : ndarray of int32, shape (n, m), or None
        The columns `schema.categorical` as positions among their categories; -1 is missing or unseen.
    schema : Schema
    """

    X: np.ndarray  # (n, d)
    codes: np.ndarray | None  # (n, m)
    schema: Schema

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.X.shape[0]

    def take(self, rows: slice | np.ndarray) -> Table:
        """Some of the rows."""
        return Table(self.X[rows], None if self.codes is None else self.codes[rows], self.schema)


def read_features(
    estimator, X, *, reset: bool, categorical="auto", allow_missing: bool = True, new: bool = False
) -> Table:
    """Check X once and turn it into a Table.

    Parameters
    ----------
    estimator : estimator
        With `reset`, gets ``n_features_in_`` and, where all names are text, ``feature_names_in_``.
        Without, X is read with ``estimator.schema_`` and must have the columns seen at fit.
    X : array-like or DataFrame of shape (n, p)
        numpy, nested lists, pandas, polars, pyarrow or anything narwhals knows. NaN, None, NA, null and blank
        text are missing. A float64 array of continuous columns is not copied.
    reset : bool
        True in fit, False everywhere else.
    categorical : "auto" or list of str or int, default "auto"
        "auto": text, bool and declared categories are categorical, numbers are not.
        A list names further columns (by name or position) that are categorical whatever their type.
    allow_missing : bool, default True
        Whether missing values may be present.
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
    source = read_source(estimator, X, reset=reset)
    if reset:
        schema = _type(source, categorical)
    else:
        schema = estimator.schema_
        source = _renamed(source, schema)
    table = Table(_floats(source, schema), _codes(source, schema, new), schema)
    check_values(table, allow_missing, type(estimator).__name__)
    return table


def _type(source: Source, categorical) -> Schema:
    forced = _forced(categorical, [raw.name for raw in source.columns])
    columns = tuple(type_column(raw, j in forced) for j, raw in enumerate(source.columns))
    return Schema(columns, source.named)


def _renamed(source: Source, schema: Schema) -> Source:
    """Call the columns as at fit: an array has no names, and errors must speak of known ones."""
    columns = [replace(raw, name=column.name) for raw, column in zip(source.columns, schema.columns)]
    return replace(source, columns=columns)


def _forced(categorical, names) -> set[int]:
    if isinstance(categorical, str) or not np.iterable(categorical):
        if isinstance(categorical, str) and categorical == "auto":
            return set()
        raise ValueError(f"categorical must be 'auto' or a list of column names or positions; got {categorical!r}")
    return {_position(entry, names) for entry in categorical}


def _position(entry, names) -> int:
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


def _codes(source: Source, schema: Schema, new: bool) -> np.ndarray | None:
    if not schema.categorical:
        return None
    codes = np.empty((source.n_rows, len(schema.categorical)), np.int32)
    for place, j in enumerate(schema.categorical):
        codes[:, place] = to_codes(source.columns[j], schema.columns[j], new)
    return codes
