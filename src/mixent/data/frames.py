"""Containers in, raw columns out: DataFrames through narwhals, everything else through scikit-learn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_array

from mixent.data.numbers import HUGE
from mixent.data.table import Table
from mixent.data.values import Raw, listed, refused_type

MOST_DENSE = 4 * 2**30  # bytes of a sparse matrix as an array


@dataclass(frozen=True)
class Source:
    """The columns of one input; `block` is the array itself when it was numeric."""

    columns: list[Raw]
    named: bool
    n_rows: int
    block: np.ndarray | None = None  # (n, d) float64
    given: Any = None  # the table with the columns of fit
    notes: tuple[str, ...] = ()


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
    if issparse(X) and _reads_sparse(estimator):
        X = _dense(X)
    if is_frame(X):
        X, notes = (X, ()) if reset else matched(estimator, X)
        names = check_names(X)
        _check_feature_names(estimator, X, reset=reset)
        return replace(_from_frame(estimator, X, names, reset), given=X, notes=notes)
    array = _as_array(estimator, X)
    _check_feature_names(estimator, array, reset=reset)
    _check_n_features(estimator, array, reset=reset)
    return replace(_from_array(array), given=X if isinstance(X, (np.ndarray, list, tuple)) else array)


def _reads_sparse(estimator: Any) -> bool:
    """Whether its tags allow it; an estimator without tags reads rows for another one."""
    return not hasattr(estimator, "__sklearn_tags__") or estimator.__sklearn_tags__().input_tags.sparse


def _dense(X: Any) -> np.ndarray:
    """A sparse matrix as an array."""
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows and columns; got a sparse array of shape {X.shape}")
    n, d = X.shape
    if 8 * n * d > MOST_DENSE:
        raise ValueError(
            f"X is a sparse matrix of {n} rows and {d} columns, which takes {8 * n * d / 2**30:.1f} GiB as an array; "
            f"at most {MOST_DENSE / 2**30:.0f} GiB are allowed. Reduce the rows, or the columns by "
            "sklearn.decomposition.TruncatedSVD"
        )
    return X.toarray(order="C")


def matched(estimator: Any, X: Any) -> tuple[Any, tuple[str, ...]]:
    """A DataFrame with the columns of fit: those that it lacks are missing values, further ones are left out.

    Where more than half of the columns that the model uses are absent, or the others are in another order, the table is
    left as it is, for scikit-learn's own error.

    Parameters
    ----------
    estimator : fitted estimator
        With ``feature_names_in_``, else there is nothing to compare, and perhaps with ``schema_``.
    X : DataFrame

    Returns
    -------
    DataFrame, and notes on what was done
    """
    names = check_names(X)
    known = list(getattr(estimator, "feature_names_in_", ()))
    if not known or names == known or not all(isinstance(name, str) for name in names):
        return X, ()
    schema = getattr(estimator, "schema_", None)
    unused = () if schema is None else schema.ignored
    used = [name for name in known if name not in unused]
    absent, kept = [name for name in used if name not in names], [name for name in names if name in set(known)]
    if 2 * len(absent) > len(used) or kept != [name for name in known if name in set(kept)]:
        return X, ()
    extra = [name for name in names if name not in set(known)]
    theirs = "its" if len(absent) == 1 else "their"
    notes = [f"X lacks {_columns(absent)} of fit, so that all {theirs} values are missing"] * bool(absent)
    return with_missing_columns(X, known, known, only=True), (*notes, *extra_notes(extra))


def extra_notes(names: Sequence[str]) -> list[str]:
    """A note on columns that the table of fit did not have, if there are any."""
    return [f"X has {_columns(names)} that fit did not have; ignored"] if names else []


def _columns(names: Sequence[str]) -> str:
    return f"the column{'s' * (len(names) > 1)} {listed(names)}"


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


def with_missing_columns(X: Any, names: Collection[str], known: Sequence[str], only: bool = False) -> Any:
    """X with those of the columns `names` that it lacks, all missing, each in its place among the columns `known`.

    With `only`, columns that are not `known` are left out.

    Anything but a DataFrame is returned unchanged: only a DataFrame has names of columns.
    """
    X = unwrapped(X)
    if not is_frame(X):
        return X
    order = [str(name) for name in check_names(X)]
    absent = [name for name in known if name in names and name not in order]
    if only:
        order = [name for name in order if name in known]
    elif not absent:
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
        return _from_floats(name, _float_values(nw, series), integer=dtype.is_integer())
    if dtype == nw.Boolean and series.null_count() == 0:
        return Raw(name, series.to_numpy().astype(bool))
    if dtype in (nw.Categorical, nw.Enum, nw.String):
        return _from_text(series, name, declared=dtype != nw.String)
    if dtype in (nw.Boolean, nw.Object):
        return Raw.of_objects(name, series.to_list())
    if dtype in (nw.Date, nw.Datetime):
        return Raw(name, _days(nw, series), dates=True)
    if dtype == nw.Unknown:  # sparse or complex pandas columns, Null columns
        return _from_unknown(series, name)
    raise ValueError(refused_type(name, f"values of type {dtype}"))


def _from_text(series: Any, name: str, declared: bool) -> Raw:
    """Text or categories by their codes, which the library knows or finds faster than cell by cell."""
    native = series.to_native()
    if hasattr(native, "factorize"):  # pandas
        codes, levels = native.factorize()
    elif hasattr(native, "dictionary_encode"):  # pyarrow
        encoded = native if hasattr(native.type, "index_type") else native.dictionary_encode()
        whole = encoded.combine_chunks()
        codes = whole.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)  # they may be unsigned
        levels = whole.dictionary.to_pylist()
    elif hasattr(native, "replace_strict"):  # polars
        levels = native.drop_nulls().unique(maintain_order=True).cast(str).to_list()
        codes = native.cast(str).replace_strict(levels, range(len(levels)), default=-1).to_numpy() if levels else None
        if codes is None:
            return Raw.of_objects(name, series.to_list(), declared)
    else:
        return Raw.of_objects(name, series.to_list(), declared)
    return Raw(name, codes.astype(np.int32), np.fromiter(levels, object, len(levels)), declared=declared)


def _float_values(nw: Any, series: Any) -> np.ndarray:
    values = series.cast(nw.Float64).to_numpy()
    return values.astype(np.float64, copy=False)


def _days(nw: Any, series: Any) -> np.ndarray:
    """Days since 1970-01-01, in UTC where there is a time zone; NaN for missing."""
    since = series.cast(nw.Datetime("us", getattr(series.dtype, "time_zone", None))).dt.timestamp("us")
    return _float_values(nw, since) / 86400e6


def _from_floats(name: str, values: np.ndarray, integer: bool) -> Raw:
    """A column of floats; infinite and huge values are missing."""
    huge = _huge(values) if len(values) else None
    if huge is None:
        return Raw(name, values, integer=integer)
    return Raw(name, np.where(huge, np.nan, values), integer=integer, n_huge=int(huge.sum()))


def _huge(X: np.ndarray) -> np.ndarray | None:
    """Where values are infinite or huge; None where none is."""
    if X.size and X.min() >= -HUGE and X.max() <= HUGE:  # false where a value is missing
        return None
    # fmax and fmin skip NaN and need no temporary the size of X
    largest = np.fmax(np.fmax.reduce(X, axis=0), -np.fmin.reduce(X, axis=0))
    return np.abs(X) > HUGE if np.any(largest > HUGE) else None


def _from_unknown(series: Any, name: str) -> Raw:
    values = np.asarray(series.to_native())
    if values.dtype.kind in "fiu":
        return _from_floats(name, values.astype(np.float64, copy=False), integer=values.dtype.kind in "iu")
    return Raw(name, values) if values.dtype.kind == "b" else Raw.of_objects(name, values.tolist())


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
        n_huge = np.zeros(len(names), int)
        if kind == "f" and (huge := _huge(block)) is not None:
            block, n_huge = np.where(huge, np.nan, block), huge.sum(axis=0)
        rows = zip(names, block.T, n_huge.tolist())
        columns = [Raw(name, values, integer=kind in "iu", n_huge=n) for name, values, n in rows]
        return Source(columns, False, len(array), block)
    if kind in "bOU":
        columns = [
            Raw(name, array[:, j]) if kind == "b" else Raw.of_objects(name, array[:, j].tolist())
            for j, name in enumerate(names)
        ]
        return Source(columns, False, len(array))
    if kind == "M":
        days = np.where(np.isnat(array), np.nan, array.astype("M8[us]").astype(np.int64) / 86400e6)
        return Source([Raw(name, days[:, j], dates=True) for j, name in enumerate(names)], False, len(array))
    raise ValueError(f"X is an array of type {array.dtype}; give numbers, dates, text or bool")
