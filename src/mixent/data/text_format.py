"""How a text table is written: separator, decimal sign and encoding, detected from its content."""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from mixent.data.text_encoding import detect_encoding, open_text

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}
TYPED = {"tab": "\t", "\\t": "\t"}  # how a tab is typed
ENCODINGS = {"cp1252": "Latin-1 (cp1252)", "utf-16": "UTF-16"}
MOST_LINES = 2000  # from which the separator and the decimal sign are detected
USUAL = 0.5  # share of the lines that must have the usual number of fields
DECLARED = re.compile(r'"?sep=(.)"?\s*')  # a first line that some spreadsheets write
COMMA_NUMBER = re.compile(r"[-+]?(\d+|\d{1,3}(\.\d{3})+),\d+([eE][-+]?\d+)?")
COMMA_GROUPS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+")  # a number, or thousands
POINT_NUMBER = re.compile(r"[-+]?(\d*|\d{1,3}(,\d{3})+)\.\d+([eE][-+]?\d+)?|[-+]?\d{1,3}(,\d{3}){2,}")
POINT_GROUPS = re.compile(r"[-+]?[1-9]\d{0,2}(\.\d{3})+")  # a number, or thousands


@dataclass(frozen=True)
class TextFormat:
    """How a text table is written.

    Attributes
    ----------
    sep : str
        Character between the cells of a row.
    decimal : {".", ","}
        Sign before the decimals of a number.
    encoding : str
        Name that Python has for it.
    """

    sep: str = ","
    decimal: str = "."
    encoding: str = "utf-8"

    def differences(self, sep: str = ",") -> str:
        """List what differs from a plain file: this separator, decimal points, UTF-8.

        Parameters
        ----------
        sep : str, default=","

        Returns
        -------
        str
            "" if nothing does.
        """
        parts = [] if self.sep == sep else [f"{SEPARATORS.get(self.sep, repr(self.sep))}-separated"]
        parts += ["decimal comma"] if self.decimal == "," else []
        parts += [] if self.encoding == "utf-8" else [ENCODINGS.get(self.encoding, self.encoding)]
        return ", ".join(parts)


def detect_format(
    path: Path, sep: str | None = None, decimal: str | None = None, encoding: str | None = None
) -> TextFormat:
    """Detect how a text table is written.

    The separator is the one of comma, semicolon, tab and pipe that splits all of the first lines into the same number
    of fields, at least two; text in quotes is not split. Where it is not a comma, the decimal sign is a comma if there
    are numbers such as 1,5 and none such as 1.5. Numbers such as 1,234 only may be thousands: they are taken for
    decimals in semicolon-separated files, which programs write where the comma is the decimal sign.

    Parameters
    ----------
    path : Path
    sep, decimal, encoding : str, optional
        What is known, and not to be detected.

    Returns
    -------
    TextFormat
    """
    sep = None if sep is None else TYPED.get(sep, sep)
    _check_given(sep, decimal, encoding)
    encoding = encoding or detect_encoding(path)
    if sep is None or decimal is None:
        lines = _first_lines(path, encoding)
        sep = sep or _separator(path, lines)
        decimal = decimal or _decimal(lines, sep)
    if sep == decimal:
        raise ValueError(f"{path}: {sep!r} separates the columns, so it cannot be the decimal sign (--decimal)")
    return TextFormat(sep, decimal, encoding)


def declares_separator(line: str) -> str | None:
    """The separator that a line such as sep=; declares."""
    match = DECLARED.fullmatch(line)
    return None if match is None else match[1]


def _check_given(sep: str | None, decimal: str | None, encoding: str | None) -> None:
    if sep is not None and (len(sep) != 1 or sep in '"\r\n'):
        raise ValueError(f"sep (--sep) must be one character, or tab; got {sep!r}")
    if decimal not in (None, ".", ","):
        raise ValueError(f"decimal (--decimal) must be . or ,; got {decimal!r}")
    try:
        codecs.lookup(encoding or "utf-8")
    except LookupError:
        raise ValueError(f"unknown encoding (--encoding) {encoding!r}; use utf-8, cp1252, utf-16 or another") from None


def _first_lines(path: Path, encoding: str) -> list[str]:
    with open_text(path, encoding) as lines:
        return list(islice(lines, MOST_LINES))


def _separator(path: Path, lines: Sequence[str]) -> str:
    """The separator by which all lines have the same number of fields, else most lines."""
    declared = declares_separator(lines[0]) if lines else None
    if declared is not None:
        return declared
    tables = {sep: list(_rows(lines, sep)) for sep in SEPARATORS}
    equal = [sep for sep, rows in tables.items() if _agree(rows)]
    if "\t" in equal:  # tabs do not occur in text
        return "\t"
    if len(equal) > 1:
        either = " or ".join(map(repr, equal))
        raise ValueError(f"{path}: {either} may separate the columns; give the separator (--sep)")
    return equal[0] if equal else max(tables, key=lambda sep: _usual_share(tables[sep]))


def _agree(rows: Sequence[Sequence[str]]) -> bool:
    """Whether all rows have the fields of the first one, at least two; blank ones at the end do not count."""
    n = _n_fields(rows[0]) if rows else 0
    return n > 1 and all(_n_fields(row) <= n <= len(row) for row in rows)


def _usual_share(rows: Sequence[Sequence[str]]) -> float:
    """Share of the rows with the usual number of fields; 0 where that is one, or not usual."""
    n, often = Counter(map(len, rows)).most_common(1)[0] if rows else (0, 0)
    share = often / max(len(rows), 1)
    return share if n > 1 and share >= USUAL else 0.0


def _rows(lines: Sequence[str], sep: str) -> Iterator[list[str]]:
    """Rows of cells, without blank lines and a row that the end of the sample may cut off."""
    rows = csv.reader(iter(lines), delimiter=sep, skipinitialspace=True)
    try:
        for row in rows:
            cut = rows.line_num == MOST_LINES
            if not cut and (len(row) > 1 or (row and row[0].strip())):
                yield row
    except csv.Error:  # the scan reports it, with its line
        return


def _n_fields(row: Sequence[str]) -> int:
    """Fields without blank ones at the end."""
    return next((n for n in range(len(row), 0, -1) if row[n - 1].strip()), 1)


def _decimal(lines: Sequence[str], sep: str) -> str:
    """A comma where there are numbers with one, and none that contradicts it."""
    if sep == ",":
        return "."
    cells = {cell.strip() for row in islice(_rows(lines, sep), 1, None) for cell in row}
    comma = {cell for cell in cells if COMMA_NUMBER.fullmatch(cell)}
    if any(POINT_NUMBER.fullmatch(cell) and not POINT_GROUPS.fullmatch(cell) for cell in cells):
        return "."
    certain = any(not COMMA_GROUPS.fullmatch(cell) for cell in comma)
    return "," if certain or (comma and sep == ";") else "."
