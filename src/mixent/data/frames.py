"""Containers in, raw columns out: DataFrames through narwhals, everything else through scikit-learn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_array

from mixent.data.table import Table
from mixent.data.values import Raw, refused_type


@dataclass(frozen=True)
class Source:
    """The columns of one input; `block` is the array itself when it was numeric."""

    columns: list[Raw]
    named: bool
    n_rows: int
    block: np.ndarray | None = None  # (n, d) float64


def read_source(estimator: Any, X: Any, *, reset: bool) -> Source:
    """Open any container, checking its names and shape as scikit-learn does.

    Parameters
    ----------
    estimator : estimator
        Gets ``n_features_in_`` and ``feature_names_in_`` when `reset`, is checked against them otherwise.
    X : array-like or DataFrame
    reset : bool

    Returns
    -------
    Source
    """
    check_held(X)
    X = unwrapped(X)
    if is_frame(X):
        names = check_names(X)
        _check_feature_names(estimator, X, reset=reset)
        return _from_frame(estimator, X, names, reset)
    array = _as_array(estimator, X)
    _check_feature_names(estimator, array, reset=reset)
    _check_n_features(estimator, array, reset=reset)
    return _from_array(array)


def check_held(X: Any) -> None:
    """Refuse what is no table yet: a file that is to be read, or blocks of rows still to come."""
    if isinstance(X, (str, bytes, PathLike)):
        raise ValueError(f"Expected 2D array or table, got {X!r}; if that is a file: mixent.data.read_frame reads it")
    if hasattr(X, "__next__"):
        raise ValueError(
            f"Expected 2D array or table, got a {type(X).__name__}, whose rows are still to come; join its blocks first"
        )


def unwrapped(X: Any) -> Any:
    """Take the table out of what wraps it: a Table, a narwhals frame, a batch of an Arrow table, a mask."""
    if isinstance(X, Table):
        return X.given
    if isinstance(X, np.ma.MaskedArray):
        return _unmasked(X)
    if type(X).__module__.startswith("pyarrow") and type(X).__name__ == "RecordBatch":
        return _as_table(X)
    return X.to_native() if type(X).__module__.startswith("narwhals") else X


def as_given(X: Any) -> Any:
    """The user's table as other estimators get it: as it came, but with rows that can be indexed."""
    X = unwrapped(X)
    return X if isinstance(X, (np.ndarray, list, tuple)) or is_frame(X) else np.asarray(X)


def _as_table(batch: Any) -> Any:
    import pyarrow

    return pyarrow.Table.from_batches([batch])


def is_frame(X: Any) -> bool:
    """Return whether X is an eager DataFrame of any library, without importing one for an array."""
    if isinstance(X, (np.ndarray, list, tuple)):
        return False
    if hasattr(X, "collect_schema") and not hasattr(X, "shape"):
        raise TypeError(f"the table is a lazy {type(X).__name__}, its rows are not there yet; call .collect() first")
    import narwhals.stable.v1 as nw

    return nw.dependencies.is_into_dataframe(X)


def library_of(X: Any) -> str:
    """The library of a DataFrame, as narwhals calls it ("pandas", "polars", "pyarrow", ...); "" for an array."""
    X = unwrapped(X)
    if not is_frame(X):
        return ""
    import narwhals.stable.v1 as nw

    return nw.from_native(X, eager_only=True).implementation.name.lower()


def check_names(X: Any) -> list:
    """Return a DataFrame's column names, which must be unique and of one level."""
    names = list(X.column_names if type(X).__module__.startswith("pyarrow") else X.columns)
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(
            f"column names must be unique; {repeated[0]!r} names {names.count(repeated[0])} columns; rename"
        )
    if any(isinstance(name, tuple) for name in names):
        raise ValueError(f"columns have several levels of names, such as {names[0]!r}; flatten them to one text each")
    return names


def with_missing_columns(X: Any, names: Collection[str], known: Sequence[str]) -> Any:
    """X with those of the columns `names` that it lacks, all missing, each in its place among the columns `known`.

    Anything but a DataFrame is returned unchanged: only a DataFrame has names of columns.
    """
    X = unwrapped(X)
    if not is_frame(X):
        return X
    order = [str(name) for name in check_names(X)]
    absent = [name for name in known if name in names and name not in order]
    if not absent:
        return X
    import narwhals.stable.v1 as nw

    frame = nw.from_native(X, eager_only=True)
    for name in absent:
        order.insert(known.index(name), name)
    return frame.with_columns(*(nw.lit(None).alias(name) for name in absent)).select(order).to_native()


def _from_frame(estimator: Any, X: Any, names: list, reset: bool) -> Source:
    import narwhals.stable.v1 as nw

    frame = nw.from_native(X, eager_only=True)
    # an array of that shape and no memory, so that empty frames get scikit-learn's own message
    check_array(np.broadcast_to(0.0, frame.shape), ensure_all_finite=False, estimator=estimator)
    _check_n_features(estimator, X, reset=reset)
    columns = [_from_series(nw, series, str(name)) for series, name in zip(frame.iter_columns(), names)]
    return Source(columns, all(isinstance(name, str) for name in names), frame.shape[0])


def _from_series(nw: Any, series: Any, name: str) -> Raw:
    dtype = series.dtype
    if dtype.is_numeric():
        return Raw(name, _float_values(nw, series), integer=dtype.is_integer())
    if dtype == nw.Boolean:
        return Raw(name, series.to_numpy().astype(bool) if series.null_count() == 0 else _objects(series.to_list()))
    if dtype in (nw.Categorical, nw.Enum):
        return Raw(name, _objects(series.to_list()), declared=True)
    if dtype in (nw.String, nw.Object):
        return Raw(name, _objects(series.to_list()))
    if dtype == nw.Unknown:  # sparse or complex pandas columns, Null columns
        return _from_unknown(series, name)
    raise ValueError(refused_type(name, f"values of type {dtype}"))


def _float_values(nw: Any, series: Any) -> np.ndarray:
    values = series.cast(nw.Float64).to_numpy()
    return values.astype(np.float64, copy=False)


def _from_unknown(series: Any, name: str) -> Raw:
    values = np.asarray(series.to_native())
    if values.dtype.kind in "fiu":
        return Raw(name, values.astype(np.float64, copy=False), integer=values.dtype.kind in "iu")
    return Raw(name, values if values.dtype.kind == "b" else _objects(values.tolist()))


def _objects(values: Collection[Any]) -> np.ndarray:
    return np.fromiter(values, dtype=object, count=len(values))


def _as_array(estimator: Any, X: Any) -> np.ndarray:
    if isinstance(X, (list, tuple)):
        X = _from_rows(X)
    return check_array(X, dtype=None, ensure_all_finite=False, estimator=estimator, input_name="X")


def _unmasked(X: Any) -> np.ndarray:
    if X.dtype.kind in "fiu":
        return X.astype(np.float64).filled(np.nan)
    values = X.data.astype(object)
    values[np.ma.getmaskarray(X)] = None
    return values


def _from_rows(rows: Sequence[Any]) -> np.ndarray:
    """Nested lists as an object array: numpy alone would turn [1, "a"] into text and True into 1."""
    lengths = [len(row) if isinstance(row, (list, tuple, np.ndarray)) else -1 for row in rows]
    odd = next((i for i, length in enumerate(lengths) if length != lengths[0]), None)
    if odd is not None:
        raise ValueError(
            f"rows must have equal lengths; row 0 has {max(lengths[0], 1)} values, row {odd} has {max(lengths[odd], 1)}"
        )
    if len(rows) and all(isinstance(row, np.ndarray) for row in rows):
        return np.asarray(rows)
    return np.array(rows, dtype=object)


def _from_array(array: np.ndarray) -> Source:
    names = [f"x{j}" for j in range(array.shape[1])]
    kind = array.dtype.kind
    if kind in "fiu":
        with np.errstate(over="ignore"):
            block = array.astype(np.float64, copy=False)
        columns = [Raw(name, block[:, j], integer=kind in "iu") for j, name in enumerate(names)]
        return Source(columns, False, len(array), block)
    if kind in "bOU":
        values = array if kind == "b" else array.astype(object)
        return Source([Raw(name, values[:, j]) for j, name in enumerate(names)], False, len(array))
    raise ValueError(
        f"X is an array of type {array.dtype}; give numbers, text or bool (dates: days since a fixed date)"
    )
