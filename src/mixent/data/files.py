"""Tables in files: text (CSV and the like), Excel and Parquet, read by pandas."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from mixent.data.frames import check_names
from mixent.data.scan import Layout, named_columns, scan_text
from mixent.data.text_format import TextFormat, detect_format
from mixent.data.values import MISSING_MARKERS, listed
from mixent.warn import warn_notes

TEXT_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")
ENDINGS = (*TEXT_ENDINGS, ".xlsx", ".parquet")
WHOLE = re.compile(r"\s*[-+]?[0-9]{1,4000}\s*")
COMMA_NUMBER = r"^\s*([-+]?\d*),(\d+(?:[eE][-+]?\d+)?)\s*$"


def read_frame(
    path: str | Path,
    text: Collection[str] = (),
    *,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> Any:
    """Read a table from a file.

    A text file has a header line. How it is written is detected from its content: columns separated by comma,
    semicolon, tab or pipe; decimal points or commas; UTF-8, Latin-1 (cp1252) or, with a byte order mark, UTF-16.
    Columns that are not all numbers are text. Of an Excel file the first sheet is read.

    In every column these are missing values: blank cells, ?, and pandas' markers NA, N/A, n/a, <NA>, #N/A, #N/A N/A,
    #NA, NaN, nan, -NaN, -nan, NULL, null, None, 1.#IND, -1.#IND, 1.#QNAN and -1.#QNAN. A class or category
    must be written otherwise.

    Parameters
    ----------
    path : str or path
        .csv, .tsv, .txt (each also with .gz), .xlsx (openpyxl must be installed) or .parquet (with pyarrow).
    text : sequence of str
        Columns of a text file that hold codes: read as they are written, so that 01234 is not 1234.
    sep : str, optional
        Character between the columns of a text file, or "tab" (default: detected).
    decimal : {".", ","}, optional
        Decimal sign of a text file (default: detected).
    encoding : str, optional
        Encoding of a text file, by Python's name (default: detected).

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
        If openpyxl (for Excel) or pyarrow (for Parquet) is not installed.

    Warns
    -----
    DataWarning
        If columns had no name, or the same name.
    """
    path = Path(path)
    form = text_format(path, sep=sep, decimal=decimal, encoding=encoding)
    pandas = need_pandas(f"to read {path.name}")
    if form is None:
        frame, notes = (_read_parquet if _is_parquet(path) else _read_excel)(pandas, path, text)
    else:
        frame, notes = _read_text(pandas, path, form, text)
    if len(frame) == 0:
        raise ValueError(f"{path}: no rows below the header; a table needs at least one")
    warn_notes(notes)
    return _nullable_integers(frame)


def read_cells(
    path: str | Path, *, sep: str | None = None, decimal: str | None = None, encoding: str | None = None
) -> Any:
    """Read the cells of a text file as they are written: 007, 38.50 and NA stay what they are.

    Parameters
    ----------
    path : str or path
        A file that `read_frame` reads.
    sep, decimal, encoding : str, optional
        As in `read_frame`. A decimal comma becomes a point.

    Returns
    -------
    pandas.DataFrame of text, with the rows and columns of `read_frame`; None for Excel and Parquet, whose cells have
    types.
    """
    path = Path(path)
    form = text_format(path, sep=sep, decimal=decimal, encoding=encoding)
    if form is None:
        return None
    layout = scan_text(path, form)
    pandas = need_pandas(f"to read {path.name}")
    cells = _parse(pandas, path, form, layout, na_filter=False, dtype=str)
    return cells.replace(COMMA_NUMBER, r"\1.\2", regex=True) if form.decimal == "," else cells


def text_format(
    path: str | Path, *, sep: str | None = None, decimal: str | None = None, encoding: str | None = None
) -> TextFormat | None:
    """Detect how a text file is written.

    Parameters
    ----------
    path : str or path
        A file that `read_frame` reads.
    sep, decimal, encoding : str, optional
        What is known, and not to be detected.

    Returns
    -------
    TextFormat, or None for Excel and Parquet.
    """
    path = Path(path)
    ending = ending_of(path, ENDINGS)
    _check_exists(path)
    if ending in TEXT_ENDINGS:
        return detect_format(path, sep, decimal, encoding)
    given = {"sep (--sep)": sep, "decimal (--decimal)": decimal, "encoding (--encoding)": encoding}
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} is only used with text files; {path.name} is none")
    return None


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
        raise ImportError(f"pandas is needed {what}; install it with: pip install pandas") from error
    return pandas


def need_pyarrow(path: Path) -> Any:
    """Import pyarrow, or raise an error that explains how to install it."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            f'pyarrow is needed for {path.name}; install it with: pip install "mixent[parquet]"'
        ) from error
    return pyarrow


def ending_of(path: Path, endings: Sequence[str]) -> str:
    """The ending of a file's name, which must be one of these."""
    name = path.name.lower()
    ending = next((end for end in endings if name.endswith(end)), None)
    if ending is None:
        old = ": save it as .xlsx or CSV" if name.endswith((".xls", ".xlsb", ".ods")) else ""
        raise ValueError(f"{path}: unknown kind of file {path.suffix!r}{old}; use one of {', '.join(endings)}")
    return ending


def _is_parquet(path: Path) -> bool:
    return path.name.lower().endswith(".parquet")


def _check_exists(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give a file")
    if not path.exists():
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        close = difflib.get_close_matches(path.name, siblings, n=1, cutoff=0.8)
        raise FileNotFoundError(f"no such file: {path}" + (f"; did you mean {close[0]!r}?" if close else ""))
    if path.stat().st_size == 0:
        raise ValueError(f"{path}: the file is empty; a table needs a header line and rows")


def _read_text(pandas: Any, path: Path, form: TextFormat, text: Collection[str]) -> tuple[Any, list[str]]:
    layout = scan_text(path, form)
    codes = dict.fromkeys((name for name in layout.names if name in set(text)), str)
    how = {"na_values": list(MISSING_MARKERS), "low_memory": False, "dtype": codes, "decimal": form.decimal}
    return _wide_integers(_parse(pandas, path, form, layout, **how), set(text)), layout.notes


def _parse(pandas: Any, path: Path, form: TextFormat, layout: Layout, **how: Any) -> Any:
    """The columns that the scan found, as pandas reads them."""
    try:
        return pandas.read_csv(
            path,
            sep=form.sep,
            encoding="utf-8-sig" if form.encoding == "utf-8" else form.encoding,
            skiprows=layout.n_above,
            header=0,
            names=layout.names,
            usecols=layout.places,
            index_col=False,
            keep_default_na=False,
            skipinitialspace=True,
            skip_blank_lines=len(layout.names) > 1,  # in a file of one column a blank line is a missing value
            **_every_digit(pandas),
            **how,
        )
    except (ValueError, OverflowError) as error:  # ParserError is a ValueError
        raise ValueError(f"{path}: not a readable table ({error})") from error


def _every_digit(pandas: Any) -> dict[str, str]:
    """Before 3.1, pandas rounds the last digit of a third of all numbers wrongly by default; later it does not."""
    release = tuple(int(part) for part in pandas.__version__.split(".")[:2])
    return {"float_precision": "round_trip"} if release < (3, 1) else {}


def _read_parquet(pandas: Any, path: Path, text: Collection[str]) -> tuple[Any, list[str]]:
    pyarrow = need_pyarrow(path)
    try:
        return pandas.read_parquet(path, engine="pyarrow"), []
    except (pyarrow.ArrowException, ValueError, OSError) as error:
        raise ValueError(f"{path}: not a readable Parquet file ({str(error).splitlines()[0]})") from error


def _read_excel(pandas: Any, path: Path, text: Collection[str]) -> tuple[Any, list[str]]:
    """The first sheet, whose first line that is not blank is the header."""
    if find_spec("openpyxl") is None:
        raise ImportError(f"{path.name} is an Excel file: save it as CSV, or install openpyxl (pip install openpyxl)")
    how = {"header": None, "dtype": object, "keep_default_na": False, "na_values": list(MISSING_MARKERS)}
    try:
        cells = pandas.read_excel(path, engine="openpyxl", **how).dropna(how="all")
    except (BadZipFile, KeyError, ValueError) as error:
        raise ValueError(f"{path}: not a readable Excel file ({error}); save it as CSV") from error
    if not len(cells):
        raise ValueError(f"{path}: the first sheet is empty; a table needs a header line and rows")
    header = ["" if missing else str(name).strip() for name, missing in zip(cells.iloc[0], cells.iloc[0].isna())]
    rows = cells.iloc[1:].reset_index(drop=True)
    filled = {place for place, name in enumerate(header) if not name and rows.iloc[:, place].notna().any()}
    names, places, notes = named_columns(path, header, filled)
    frame = rows.iloc[:, places].set_axis(names, axis=1).infer_objects()
    for name in set(text) & set(names):
        frame[name] = frame[name].map(str, na_action="ignore")
    return frame, notes


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
