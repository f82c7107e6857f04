"""Tables back out: codes to categories, whole numbers to integers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mixent.data.files import need_pandas
from mixent.data.schema import Column, Schema


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
    """Return a table as a pandas DataFrame in the original columns, order and types.

    Parameters
    ----------
    schema : Schema
    X : ndarray, shape (n, d)
        Laid out as `Table.X`; NaN stays missing.
    codes : ndarray of int, shape (n, m), or None
        Laid out as `Table.codes`; -1 stays missing.

    Returns
    -------
    pandas.DataFrame
        Integer columns are int64, or nullable Int64 where values are still missing.
    """
    pandas = need_pandas("to build a DataFrame")
    X = integers_back(schema, X)
    columns = {}
    for place, j in enumerate(schema.continuous):
        columns[j] = _number_series(pandas, schema.columns[j], X[:, place])
    for place, j in enumerate(schema.categorical):
        assert codes is not None
        columns[j] = _category_series(pandas, schema.columns[j], codes[:, place])
    frame = pandas.DataFrame({j: columns[j] for j in range(len(schema.columns))}, index=range(len(X)))
    frame.columns = list(schema.names)
    return frame


def frame_like(X: Any, columns: Mapping[str, np.ndarray]) -> Any:
    """Columns as a DataFrame of the library that `X` comes from.

    Parameters
    ----------
    X : DataFrame
    columns : name -> values
    """
    import narwhals as nw  # no DataFrame library is imported until a DataFrame comes

    return nw.from_dict(dict(columns), backend=nw.from_native(X).implementation).to_native()


def _number_series(pandas: Any, column: Column, values: np.ndarray) -> Any:
    if column.kind == "continuous":
        return pandas.Series(values)
    series = pandas.Series(pandas.array(values, dtype="Float64")).astype("Int64")
    return series if series.hasnans else series.astype("int64")


def _category_series(pandas: Any, column: Column, codes: np.ndarray) -> Any:
    lookup = np.array([*column.categories, None], dtype=object)
    series = pandas.Series(lookup[codes], dtype=object)
    present = series.dropna()
    if len(present) == len(series):
        return series.infer_objects()
    if column.kind == "boolean":
        return series.astype("boolean")
    if all(isinstance(value, int) for value in column.categories):
        return series.astype("Int64")
    return series.infer_objects()
