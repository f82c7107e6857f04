"""A first look at a text table: what pandas would guess or pad in silence is an error here."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any


def scan_text(path: Path, separator: str) -> tuple[list[str], int]:
    """Check that a file is UTF-8 text in rows as long as its header.

    Parameters
    ----------
    path : Path
    separator : str

    Returns
    -------
    names : list of str
        The names in the header.
    n_blank : int
        Blank lines before it.
    """
    try:
        with _open(path) as lines:
            rows = csv.reader(_text_only(path, lines), delimiter=separator, skipinitialspace=True)
            names, n_blank = _header(path, rows, separator)
            _check_lengths(path, rows, len(names))
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}: not UTF-8 text (byte {error.object[error.start]:#04x}); save it as UTF-8, or as .parquet"
        ) from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: not a whole gzip file ({error}); compress it again") from error
    except csv.Error as error:
        raise ValueError(f"{path}: not a readable table ({error}, line {rows.line_num}); is it a text file?") from error
    return names, n_blank


def _open(path: Path) -> IO[str]:
    opener = gzip.open if path.name.lower().endswith(".gz") else open
    return opener(path, "rt", encoding="utf-8-sig", newline="")


def _text_only(path: Path, lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if "\0" in line:
            raise ValueError(f"{path}: holds binary data, not text; save the table as UTF-8 text, or as .parquet")
        yield line


def _header(path: Path, rows: Iterable[list[str]], separator: str) -> tuple[list[str], int]:
    n_blank, first = next(((i, row) for i, row in enumerate(rows) if any(cell.strip() for cell in row)), (0, []))
    names = [name.strip() for name in first]
    if not names:
        raise ValueError(f"{path}: the file is empty; a table needs a header line and rows")
    if len(names) == 1 and _other_separator(names[0], separator):
        other = _other_separator(names[0], separator)
        raise ValueError(f"{path}: one column, whose name holds {other!r}; separate the columns by {separator!r}")
    if "" in names:
        raise ValueError(
            f"{path}: column {names.index('') + 1} has no name in the header; name it, or remove it "
            f"(a pandas index: write with index=False)"
        )
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"{path}: the column name {repeated[0]!r} appears {names.count(repeated[0])} times; rename")
    if all(is_number(name) for name in names):
        raise ValueError(f"{path}: the first line holds only numbers; a header line with column names is needed")
    return names, n_blank


def _other_separator(name: str, separator: str) -> str | None:
    return next((other for other in (";", "\t", "|", ",") if other != separator and other in name), None)


def _check_lengths(path: Path, rows: Any, n_columns: int) -> None:
    for row in rows:
        if len(row) == n_columns or (not row or (len(row) == 1 and not row[0].strip())):
            continue
        raise ValueError(
            f"{path}: line {rows.line_num} has {len(row)} values, the header has {n_columns}; "
            f"fix the line (text that holds the separator must be quoted)"
        )


def is_number(text: str) -> bool:
    """Whether a text can be read as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
