"""Columns of DataFrames with some cells replaced, in the types of their library."""

from __future__ import annotations

from typing import Any

import numpy as np


def filled_column(column: Any, absent: np.ndarray, values: np.ndarray) -> Any:
    """A column with some cells replaced, in its own type where that can hold the values.

    Parameters
    ----------
    column : narwhals Series
    absent : (n,) bool
        The cells to replace.
    values : (absent.sum(),) array
        What they become.

    Returns
    -------
    native Series of the library of `column`
    """
    native = column.to_native()
    if hasattr(native, "iloc"):
        return _filled_pandas(native, absent, values)
    cells = column.to_list()
    for row, value in zip(np.flatnonzero(absent).tolist(), values.tolist()):
        cells[row] = value
    if column.implementation.is_pyarrow():
        return _arrow(cells, native.type)
    return _polars(native, cells)


def number_column(column: Any, values: np.ndarray, *, whole_numbers: bool) -> Any:
    """A column of numbers in the place of one that holds them as text or objects.

    Parameters
    ----------
    column : narwhals Series
    values : (n,) floats, or datetime64
        NaN or NaT is missing.
    whole_numbers : bool
        Whether the column is one of integers.

    Returns
    -------
    native Series of the library of `column`
    """
    native = column.to_native()
    if whole_numbers and values.dtype.kind == "f" and not np.isnan(values).any():
        values = values.astype(np.int64)
    if hasattr(native, "iloc"):
        return type(native)(values, index=native.index, name=native.name)
    return _arrow(values, None) if column.implementation.is_pyarrow() else type(native)(native.name, values)


def _filled_pandas(native: Any, absent: np.ndarray, values: np.ndarray) -> Any:
    dtype = native.dtype
    if hasattr(native, "cat"):  # categories of training rows that this table did not have
        known = set(native.cat.categories)
        new = [value for value in dict.fromkeys(values.tolist()) if value not in known]
        native = native.cat.add_categories(new) if new else native
    elif isinstance(dtype, np.dtype) and dtype.kind == "f":
        values = values.astype(dtype)
    filled = native.copy() if not hasattr(native, "sparse") else native.sparse.to_dense()
    filled.iloc[np.flatnonzero(absent)] = values
    return filled.infer_objects() if dtype == np.dtype(object) else filled


def _polars(native: Any, cells: list) -> Any:
    try:
        return type(native)(native.name, cells, dtype=native.dtype)
    except Exception:  # such as an Enum without the category, whose error depends on the version of polars
        return type(native)(native.name, cells)


def _arrow(cells: Any, type_: Any) -> Any:
    import pyarrow

    return pyarrow.chunked_array([pyarrow.array(cells, type=type_)])
