"""Tables back out, as they came in: the library, the row labels, the order and the types of the columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.data.dates import DateText, to_dates
from mixent.data.files import need_pandas
from mixent.data.filling import filled_column, number_column
from mixent.data.frames import as_given, is_frame, library_of, unwrapped, with_missing_columns
from mixent.data.schema import CODE_KINDS, Column, Input, Schema
from mixent.data.table import Table
from mixent.data.values import missing_mask


@dataclass(frozen=True)
class Origin:
    """What a result with one row per row of a table keeps of it: the library of the DataFrame and its row labels.

    Parameters
    ----------
    library : str
        "pandas", "polars", "pyarrow", ...; "" for an array.
    index : pandas index or None
        The row labels; only pandas has them.
    """

    library: str = ""
    index: Any = None

    @classmethod
    def of(cls, X: Any) -> Origin:
        """The origin of a table.

        Parameters
        ----------
        X : table of n rows
        """
        given = unwrapped(X)
        return cls(library_of(given), _index(given)) if is_frame(given) else cls()

    def frame(self, columns: Mapping[str, Any]) -> Any:
        """Columns as a DataFrame of the same library, with the same row labels; of pandas if the origin is an array.

        Parameters
        ----------
        columns : name -> (n,) values
        """
        return new_frame(self.library or "pandas", columns, self.index)


def new_frame(library: str, columns: Mapping[str, Any], index: Any = None) -> Any:
    """Columns as a DataFrame.

    Parameters
    ----------
    library : str
        "pandas", "polars", "pyarrow" or another library that narwhals knows.
    columns : name -> (n,) values
    index : pandas index, optional
        The row labels.
    """
    if library == "pandas":
        return need_pandas("to build a DataFrame").DataFrame(dict(columns), index=index)
    import narwhals as nw  # no DataFrame library is imported until a DataFrame comes

    backend: Any = library
    return nw.from_dict({name: _plain(values) for name, values in columns.items()}, backend=backend).to_native()


def integers_back(schema: Schema, X: np.ndarray) -> np.ndarray:
    """Round the integer columns of X (imputation gives fractions), leaving the others.

    Parameters
    ----------
    schema : Schema
    X : ndarray, shape (n, d)
        Laid out as `Table.X`.

    Returns
    -------
    ndarray, shape (n, d)
        A copy.
    """
    X = np.array(X, dtype=np.float64)
    whole = [place for place, j in enumerate(schema.continuous) if schema.columns[j].kind == "integer"]
    X[:, whole] = np.rint(X[:, whole])
    return X


def to_frame(schema: Schema, X: np.ndarray, codes: np.ndarray | None = None) -> Any:
    """Return a table as a DataFrame in the original columns and order.

    Parameters
    ----------
    schema : Schema
        Its `library` is that of the DataFrame (default: pandas).
    X : ndarray, shape (n, d)
        Laid out as `Table.X`; NaN stays missing.
    codes : ndarray of int, shape (n, m), or None
        Laid out as `Table.codes`; -1 stays missing.

    Returns
    -------
    DataFrame
        Integer columns hold integers also where values are still missing (pandas: the nullable Int64).
    """
    library, pandas = schema.library or "pandas", None
    if library == "pandas":
        pandas = need_pandas("to build a DataFrame")
    index = None if pandas is None else range(len(X))
    return new_frame(library, dict(zip(schema.input_names, _columns_back(pandas, schema, X, codes))), index)


def _columns_back(pandas: Any, schema: Schema, X: np.ndarray, codes: np.ndarray | None) -> Iterator[Any]:
    """The columns of the user's table: dates from their days, all missing where the model does not use them."""
    X = integers_back(schema, X)
    for given in schema.inputs:
        if not given.columns:
            yield np.full(len(X), np.nan)
            continue
        column = schema.columns[given.columns[0]]
        place = _place(schema, given)
        if column.kind in CODE_KINDS:
            assert codes is not None
            yield _category_column(pandas, column, codes[:, place])
        elif isinstance(given.format, DateText):
            yield to_dates(X[:, place], whole=column.kind == "integer")
        else:
            yield _number_column(pandas, column, X[:, place])


def _place(schema: Schema, given: Input) -> int:
    """Position of the first column of an input in `Table.X` or `Table.codes`."""
    first = given.columns[0]
    return (schema.continuous if first in schema.continuous else schema.categorical).index(first)


def drawn_rows(schema: Schema, X: np.ndarray, codes: np.ndarray | None = None) -> Any:
    """Rows drawn from a model in the form of its training table: a DataFrame of its library, or an array.

    Parameters
    ----------
    schema : Schema
        Of the training table.
    X, codes
        See `to_frame`.

    Returns
    -------
    DataFrame or ndarray
        An array of objects if there are categories or dates.
    """
    if schema.library:
        return to_frame(schema, X, codes)
    if codes is None and schema.one_to_one:
        return X
    columns = list(_columns_back(None, schema, X, codes))
    if codes is None and not any(isinstance(given.format, DateText) for given in schema.inputs):
        return np.column_stack(columns).astype(np.float64)
    rows = np.empty((len(X), len(columns)), dtype=object)
    for j, values in enumerate(columns):
        rows[:, j] = values
    return rows


def decoded(column: Column, codes: np.ndarray) -> np.ndarray:
    """(n,) objects: the categories of codes, None for -1."""
    categories = np.empty(len(column.categories) + 1, dtype=object)
    categories[:-1] = column.categories
    return categories[codes]


def imputed_like(X: Any, table: Table, numbers: np.ndarray, codes: np.ndarray | None) -> Any:
    """The user's table with its missing cells filled: same library, row labels, columns, order and types.

    Observed cells are unchanged, and so are columns that the model does not have. Numbers that were written as text
    are returned as numbers.

    Parameters
    ----------
    X : table of n rows
        As the user gave it.
    table : Table
        As it was read.
    numbers, codes
        The filled table, laid out as `Table.X` and `Table.codes`.

    Returns
    -------
    DataFrame or ndarray
        For an array, floats, or objects if there are categories.
    """
    given, numbers = as_given(X), integers_back(table.schema, numbers)
    if not is_frame(given):
        return numbers if codes is None and table.schema.one_to_one else _filled_array(given, table, numbers, codes)
    import narwhals.stable.v1 as nw

    schema = table.schema
    used = [name for name in schema.input_names if name not in schema.ignored]
    whole = nw.from_native(with_missing_columns(given, used, used), eager_only=True)
    place_of = {str(name): name for name in whole.columns}
    columns = [
        nw.from_native(column, series_only=True).alias(place_of[name])
        for name, column in _filled_columns(whole, place_of, table, numbers, codes)
    ]
    return whole.with_columns(*columns).to_native()


def _filled_columns(whole: Any, place_of: Mapping[str, Any], table: Table, numbers: np.ndarray, codes: Any) -> Any:
    """Names and native values of the columns that change."""
    schema = table.schema
    for given in schema.inputs:
        if not given.columns:
            continue
        column, place = whole[place_of[given.name]], _place(schema, given)
        kind = schema.columns[given.columns[0]].kind
        if kind in CODE_KINDS:
            absent = (table.column_codes(place) < 0) & (codes[:, place] >= 0)
            if table.unseen and absent.any():  # a category that was not in training is no missing value
                absent &= missing_mask(np.fromiter(column.to_list(), dtype=object, count=len(absent)))
            fill = decoded(schema.columns[given.columns[0]], codes[absent, place])
        else:
            values = numbers[:, place]
            absent, typed = np.isnan(table.X[:, place]) & ~np.isnan(values), column.dtype.is_numeric()
            if isinstance(given.format, DateText):
                typed = column.dtype.is_temporal() and getattr(column.dtype, "time_zone", None) is None
                dated = str(column.dtype) == "Date" if typed else kind == "integer"
                values = to_dates(values, whole=dated)
            if not typed:
                yield given.name, number_column(column, values, whole_numbers=kind == "integer")
                continue
            fill = values[absent].astype(np.int64) if column.dtype.is_integer() else values[absent]
        if absent.any():
            yield given.name, filled_column(column, absent, fill)


def _filled_array(given: Any, table: Table, numbers: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
    rows = np.array(given, dtype=object)
    for i, column in enumerate(table.schema.inputs):
        if not column.columns:
            continue
        place, kind = _place(table.schema, column), table.schema.columns[column.columns[0]].kind
        if kind in CODE_KINDS:
            assert codes is not None
            absent = (table.column_codes(place) < 0) & missing_mask(rows[:, i])
            rows[absent, i] = decoded(table.schema.columns[column.columns[0]], codes[absent, place])
        else:
            absent, fill = np.isnan(table.X[:, place]), numbers[:, place]
            if isinstance(column.format, DateText):
                fill = to_dates(fill, whole=kind == "integer")
            rows[absent, i] = fill[absent]
    numeric = isinstance(given, np.ndarray) and given.dtype.kind in "fiu"
    return rows.astype(np.float64) if numeric else rows


def _index(given: Any) -> Any:
    return given.index if hasattr(given, "iloc") else None


def _plain(values: Any) -> Any:
    """Values as libraries other than pandas take them: text and objects as a list."""
    return values.tolist() if isinstance(values, np.ndarray) and values.dtype.kind in "OU" else values


def _number_column(pandas: Any, column: Column, values: np.ndarray) -> Any:
    if column.kind == "continuous":
        return values
    if not np.isnan(values).any():
        return values.astype(np.int64)
    if pandas is None:
        return [None if np.isnan(value) else int(value) for value in values]
    return pandas.array(values, dtype="Float64").astype("Int64")


def _category_column(pandas: Any, column: Column, codes: np.ndarray) -> Any:
    values = decoded(column, codes)
    if pandas is None:
        return values
    series = pandas.Series(values, dtype=object)
    if (codes >= 0).all():
        return series.infer_objects()
    if column.kind == "boolean":
        return series.astype("boolean")
    if all(isinstance(value, int) for value in column.categories):
        return series.astype("Int64")
    return series.infer_objects()
