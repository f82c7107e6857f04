"""Tables out: CSV, TSV and Parquet files, written so that a spreadsheet runs nothing in them."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from mixent.core.writing import replacing
from mixent.data.files import ending_of, need_pandas, need_pyarrow
from mixent.data.values import number

SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
ENDINGS = (*SEPARATORS, ".parquet")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def write_frame(frame: Any, path: str | Path, plain: Collection[str] = ()) -> int:
    """Write a table to a file, whole or not at all.

    Text that a spreadsheet would run as a formula (it begins with = + - @ tab or a line break, goes on, and is
    no number) gets a leading single quote in CSV and TSV files.

    Parameters
    ----------
    frame : pandas.DataFrame
        Or any DataFrame with a `to_pandas` method.
    path : str or path
        .csv, .tsv (either also with .gz) or .parquet.
    plain : set of str
        Text to write as it is whatever it begins with.

    Returns
    -------
    int
        How many cells and column names got the quote.
    """
    path = Path(path)
    ending = ending_of(path, ENDINGS)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: folder {str(path.parent)!r} does not exist; create it first")
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder; give a file name")
    pandas = need_pandas(f"to write {path.name}")
    frame = _as_pandas(pandas, frame)
    with replacing(path) as part:
        if ending == ".parquet":
            need_pyarrow(path)
            frame.to_parquet(part, index=False)
            n_quoted = 0
        else:
            compression = "gzip" if ending.endswith(".gz") else None
            inert, n_quoted = _inert(frame, plain)
            quoting = csv.QUOTE_NONNUMERIC if _has_return(inert) else csv.QUOTE_MINIMAL
            sep = SEPARATORS[ending]
            inert.to_csv(part, sep=sep, index=False, compression=compression, lineterminator="\n", quoting=quoting)
    return n_quoted


def _as_pandas(pandas: Any, frame: Any) -> Any:
    if isinstance(frame, pandas.DataFrame):
        return frame
    if not hasattr(frame, "to_pandas"):
        raise TypeError(f"only a DataFrame can be written; got a {type(frame).__name__}")
    return frame.to_pandas()


def _inert(frame: Any, plain: Collection[str]) -> tuple[Any, int]:
    """A copy in which no text can run as a formula, and how many cells that changed."""
    names, n_quoted = _quoted(frame.columns, plain)
    frame = frame.set_axis(names, axis=1)
    for place, kind in enumerate(frame.dtypes):
        if kind.kind not in "biufM":
            values, n = _quoted(frame.iloc[:, place].astype(object), plain)
            if n:
                frame.isetitem(place, np.fromiter(values, dtype=object, count=len(values)))
                n_quoted += n
    return frame, n_quoted


def _quoted(values: Iterable[Any], plain: Collection[str]) -> tuple[list[Any], int]:
    formulas = [_is_formula(value) and value not in plain for value in values]
    return ["'" + value if formula else value for value, formula in zip(values, formulas)], sum(formulas)


def _is_formula(value: Any) -> bool:
    return isinstance(value, str) and len(value) > 1 and value.startswith(FORMULA_STARTS) and number(value) is None


def _has_return(frame: Any) -> bool:
    """Whether a text has a carriage return, which ends a row for readers unless all text is quoted."""
    texts = [frame.iloc[:, place] for place, kind in enumerate(frame.dtypes) if kind.kind not in "biufM"]
    return any("\r" in str(value) for values in (frame.columns, *texts) for value in values)
