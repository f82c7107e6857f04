"""Tables in files: CSV, TSV and Parquet, through pandas when it is there."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mixent.data.frames import check_names
from mixent.data.scan import scan_text
from mixent.data.values import listed, number

MISSING_TOKENS = ("", "NA", "NaN", "nan", "null", "?")
SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
ENDINGS = (*SEPARATORS, ".parquet")
WHOLE = re.compile(r"\s*[-+]?[0-9]{1,4000}\s*")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def read_frame(path: str | Path, text: Collection[str] = ()) -> Any:
    """Read a table from a file.

    Parameters
    ----------
    path : str or path
        .csv, .tsv (either also with .gz) or .parquet. Text is UTF-8 with a header line; the tokens
        "", NA, NaN, nan, null and ? are missing.
    text : sequence of str
        Columns of a CSV or TSV file that hold codes: read as they are written, so that 01234 is not 1234.

    Returns
    -------
    pandas.DataFrame
        Columns of whole numbers with missing values are nullable integers.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If it does not hold a table; the message states where it goes wrong.
    ImportError
        If pandas (or, for Parquet, pyarrow) is not installed.
    """
    path = Path(path)
    ending = _ending(path)
    _check_exists(path)
    pandas = need_pandas(f"to read {path.name}")
    if ending == ".parquet":
        frame = _read_parquet(pandas, path)
    else:
        names, options = _layout(path, SEPARATORS[ending])
        kinds = dict.fromkeys((name for name in names if name in set(text)), str)
        frame = _read_text(pandas, path, options, na_values=list(MISSING_TOKENS), low_memory=False, dtype=kinds)
        frame = _wide_integers(frame, set(text))
    if len(frame) == 0:
        raise ValueError(f"{path}: no rows below the header; a table needs at least one")
    return _nullable_integers(frame)


def read_cells(path: str | Path) -> Any:
    """Read the cells of a CSV or TSV file as they are written: 007, 38.50 and NA stay what they are.

    Parameters
    ----------
    path : str or path
        A file that `read_frame` reads.

    Returns
    -------
    pandas.DataFrame of text, with the rows and columns of `read_frame`; None for Parquet, whose cells have types.
    """
    path = Path(path)
    ending = _ending(path)
    if ending == ".parquet":
        return None
    _, options = _layout(path, SEPARATORS[ending])
    return _read_text(need_pandas(f"to read {path.name}"), path, options, na_filter=False, dtype=str)


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
    ending = _ending(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: folder {str(path.parent)!r} does not exist; create it first")
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder; give a file name")
    pandas = need_pandas(f"to write {path.name}")
    frame = _as_pandas(pandas, frame)
    with _replacing(path) as temporary:
        if ending == ".parquet":
            _need_pyarrow(path)
            frame.to_parquet(temporary, index=False)
            n_quoted = 0
        else:
            compression = "gzip" if ending.endswith(".gz") else None
            inert, n_quoted = _inert(frame, plain)
            inert.to_csv(temporary, sep=SEPARATORS[ending], index=False, compression=compression, lineterminator="\n")
    return n_quoted


def split_target(frame: Any, target: str) -> tuple[Any, Any]:
    """Split a DataFrame into features and the target column.

    Parameters
    ----------
    frame : DataFrame
    target : str
        Name of the target column.

    Returns
    -------
    features : DataFrame of the same library
    y : Series of the same library
    """
    names = check_names(frame)
    if target not in names:
        close = difflib.get_close_matches(str(target), [str(name) for name in names], n=3)
        hint = f"did you mean {', '.join(map(repr, close))}?" if close else f"the columns are {listed(names)}"
        raise ValueError(f"unknown column {target!r}; {hint}")
    if len(names) == 1:
        raise ValueError(f"{target!r} is the only column; features are needed beside the target")
    import narwhals.stable.v1 as nw

    whole = nw.from_native(frame, eager_only=True)
    return whole.drop(target).to_native(), whole[target].to_native()


def need_pandas(what: str) -> Any:
    """Import pandas, or raise an error that explains how to install it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(f'pandas is needed {what}; install it with: pip install "mixent[pandas]"') from error
    return pandas


def _need_pyarrow(path: Path) -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            f'pyarrow is needed for {path.name}; install it with: pip install "mixent[parquet]"'
        ) from error
    return pyarrow


def _as_pandas(pandas: Any, frame: Any) -> Any:
    if isinstance(frame, pandas.DataFrame):
        return frame
    if not hasattr(frame, "to_pandas"):
        raise TypeError(f"only a DataFrame can be written; got a {type(frame).__name__}")
    return frame.to_pandas()


def _ending(path: Path) -> str:
    name = path.name.lower()
    ending = next((end for end in ENDINGS if name.endswith(end)), None)
    if ending is None:
        raise ValueError(f"{path}: unknown kind of file {path.suffix!r}; use one of {', '.join(ENDINGS)}")
    return ending


def _check_exists(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give a file")
    if not path.exists():
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        close = difflib.get_close_matches(path.name, siblings, n=1, cutoff=0.8)
        raise FileNotFoundError(f"no such file: {path}" + (f"; did you mean {close[0]!r}?" if close else ""))
    if path.stat().st_size == 0:
        raise ValueError(f"{path}: the file is empty; a table needs a header line and rows")


def _layout(path: Path, separator: str) -> tuple[list[str], dict[str, Any]]:
    """The column names of a text file, and the options of pandas that find its rows."""
    names, n_blank = scan_text(path, separator)
    return names, {
        "sep": separator,
        "encoding": "utf-8-sig",
        "skiprows": n_blank,
        "header": 0,
        "names": names,  # as the scan read them: stripped and unique
        "index_col": False,
        "keep_default_na": False,
        "skipinitialspace": True,
        "skip_blank_lines": len(names) > 1,  # in a file of one column a blank line is a missing value
    }


def _read_text(pandas: Any, path: Path, options: Mapping[str, Any], **how: Any) -> Any:
    try:
        return pandas.read_csv(path, **options, **_every_digit(pandas), **how)
    except (ValueError, OverflowError) as error:  # ParserError is a ValueError
        raise ValueError(f"{path}: not a readable table ({error})") from error


def _every_digit(pandas: Any) -> dict[str, str]:
    """Before 3.1, pandas rounds the last digit of a third of all numbers wrongly by default; later it does not."""
    release = tuple(int(part) for part in pandas.__version__.split(".")[:2])
    return {"float_precision": "round_trip"} if release < (3, 1) else {}


def _read_parquet(pandas: Any, path: Path) -> Any:
    pyarrow = _need_pyarrow(path)
    try:
        return pandas.read_parquet(path, engine="pyarrow")
    except (pyarrow.ArrowException, ValueError, OSError) as error:
        raise ValueError(f"{path}: not a readable Parquet file ({str(error).splitlines()[0]})") from error


def _wide_integers(frame: Any, text: Collection[str]) -> Any:
    """Whole numbers of which one is beyond 64 bits, which pandas before 3 reads as text."""
    for name in frame.columns[[str(kind) == "object" for kind in frame.dtypes]]:
        cells = frame[name].dropna()
        if name not in text and len(cells) and all(isinstance(c, str) and WHOLE.fullmatch(c) for c in cells):
            numbers = [int(c) if isinstance(c, str) else c for c in frame[name]]
            frame[name] = type(cells)(numbers, index=frame.index, dtype=object)
    return frame


def _nullable_integers(frame: Any) -> Any:
    """Integer columns with missing values, which pandas reads as floats; complete columns of floats are left alone."""
    for name in frame.columns[[str(kind) == "float64" for kind in frame.dtypes]]:
        values = frame[name].to_numpy()
        present = values[~np.isnan(values)]
        incomplete = 0 < len(present) < len(values)
        if incomplete and np.all(np.abs(present) <= 2.0**53) and np.all(present == np.rint(present)):
            frame[name] = frame[name].astype("Int64")
    return frame


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


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
