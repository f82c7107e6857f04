"""A first look at a text table: what pandas would guess or pad in silence is named or refused here."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

from mixent.data.text_encoding import open_text
from mixent.data.text_format import TextFormat, declares_separator
from mixent.data.values import listed

TITLE = "delete the lines above the header, which must be the first line"


@dataclass(frozen=True)
class Layout:
    """Where the columns of a text table are.

    Attributes
    ----------
    names : list of str
        The names of the columns, stripped and unique.
    places : list of int
        Their places in the file.
    n_above : int
        Lines above the header.
    notes : list of str
        What was named or left out.
    """

    names: list[str]
    places: list[int]
    n_above: int
    notes: list[str]


def scan_text(path: Path, form: TextFormat) -> Layout:
    """Check that a file is text in rows as long as its header, and find its columns.

    Parameters
    ----------
    path : Path
    form : TextFormat

    Returns
    -------
    Layout
    """
    with open_text(path, form.encoding) as lines:
        first = next(lines, "")
        n_declared = int(declares_separator(first) is not None)
        rows = csv.reader(lines if n_declared else chain([first], lines), delimiter=form.sep, skipinitialspace=True)
        try:
            header, n_blank = _header(path, rows)
            unnamed = [place for place, name in enumerate(header) if not name]
            filled = _check_rows(path, rows, len(header), unnamed)
        except csv.Error as error:
            raise ValueError(
                f"{path}: not a readable table ({error}, line {rows.line_num}); is it a text file?"
            ) from error
    names, places, notes = named_columns(path, header, filled)
    return Layout(names, places, n_declared + n_blank, notes)


def named_columns(path: Path, header: Sequence[str], filled: set[int]) -> tuple[list[str], list[int], list[str]]:
    """Names of the columns to read, unique, their places, and notes on names that were made up.

    Columns without name and values are left out, and so is a first one without name: it numbers or names the rows.

    Parameters
    ----------
    path : Path
        For messages.
    header : sequence of str
        The names, "" where there is none.
    filled : set of int
        Places of columns without a name that hold values.
    """
    given = [name for name in header if name]
    if 2 * len(given) < len(given) + len(filled):
        raise ValueError(f"{path}: the first line names {len(given)} of {len(given) + len(filled)} columns; {TITLE}")
    if all(is_number(name) for name in given):
        raise ValueError(f"{path}: the first line holds only numbers; a header line with column names is needed")
    places = [place for place, name in enumerate(header) if name or (place and place in filled)]
    given = [header[place] or f"column {place + 1}" for place in places]
    notes = ["the first column has no name: it is taken for names of the rows and left out"] if 0 in filled else []
    called = [name for name, place in zip(given, places) if not header[place]]
    notes += [f"columns without a name are called {listed(called)}"] if called else []
    names = _unique(given)
    renamed = [name for name, old in zip(names, given) if name != old]
    if renamed:
        notes.append(f"repeated column names: the later columns are called {listed(renamed)}")
    return names, places, notes


def _unique(names: Sequence[str]) -> list[str]:
    """The names, with .1, .2 after repeated ones as pandas has it."""
    taken, unique = set(names), list[str]()
    for place, name in enumerate(names):
        if name in names[:place]:
            name = next(new for k in count(1) if (new := f"{name}.{k}") not in taken)
            taken.add(name)
        unique.append(name)
    return unique


def _header(path: Path, rows: Any) -> tuple[list[str], int]:
    """The names in the first line that is not blank, and the lines above it."""
    n_above, names = 0, list[str]()
    for row in rows:
        if any(cell.strip() for cell in row):
            names = [name.strip() for name in row]
            break
        n_above = rows.line_num
    if not names:
        raise ValueError(f"{path}: the file is empty; a table needs a header line and rows")
    return names, n_above


def _check_rows(path: Path, rows: Any, n_columns: int, unnamed: Sequence[int]) -> set[int]:
    """Refuse rows of another length; returns the places of columns without a name that hold values."""
    filled = set[int]()
    is_first = True
    for row in rows:
        if not row or (len(row) == 1 and not row[0].strip()):
            continue
        if len(row) != n_columns and not (len(row) > n_columns and not any(c.strip() for c in row[n_columns:])):
            raise _other_length(path, rows.line_num, len(row), n_columns, is_first)
        filled |= {place for place in unnamed if row[place].strip()}
        is_first = False
    return filled


def _other_length(path: Path, line: int, n_values: int, n_columns: int, is_first: bool) -> ValueError:
    size = f"{path}: line {line} has {n_values} values, the header has {n_columns}"
    if is_first and n_columns == 1:
        return ValueError(f"{size}; {TITLE}, or give the separator (--sep)")
    return ValueError(f"{size}; fix the line (text that holds the separator must be quoted)")


def is_number(text: str) -> bool:
    """Whether a text can be read as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
