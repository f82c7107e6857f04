"""Text files as lines of text: compression, and the encoding, detected from the bytes."""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")  # bytes of no text in UTF-8 or cp1252
GIVE = "give the encoding (--encoding), or save the file as UTF-8"


@contextmanager
def open_text(path: Path, encoding: str) -> Iterator[Iterator[str]]:
    """Open a text file, compressed or not, and yield its lines without a byte order mark.

    Parameters
    ----------
    path : Path
    encoding : str
    """
    with _open_bytes(path) as file, io.TextIOWrapper(file, encoding=encoding, newline="") as lines:
        try:
            yield _text_only(path, lines)
        except UnicodeError as error:
            raise ValueError(f"{path}: not {encoding} text ({error}); {GIVE}") from error


def detect_encoding(path: Path) -> str:
    """Detect the encoding of a text file.

    It is UTF-16 by its byte order mark, UTF-8 if all of it agrees, else cp1252, which contains the printable
    characters of Latin-1.

    Parameters
    ----------
    path : Path

    Returns
    -------
    {"utf-8", "utf-16", "cp1252"}
    """
    n_utf8, others = 0, []  # lines with characters beyond ASCII: how many are UTF-8, and which are not
    with _open_bytes(path) as file:
        for number, line in enumerate(file, 1):
            if number == 1 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                return "utf-16"
            _check_text(path, line)
            if _is(line, "utf-8"):
                n_utf8 += not line.isascii()
            else:
                others.append(number)
                _check_latin(path, number, line)
    if n_utf8 > len(others) > 0:
        raise ValueError(f"{path}: UTF-8 text, except line {others[0]}; correct the line, or {GIVE}")
    return "cp1252" if others else "utf-8"


@contextmanager
def _open_bytes(path: Path) -> Iterator[IO[bytes]]:
    opener = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opener(path, "rb") as file:
            yield file  # type: ignore[misc]
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: not a whole gzip file ({error}); compress it again") from error


def _text_only(path: Path, lines: Iterator[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if "\0" in line:
            raise _binary(path)
        yield line.removeprefix("\ufeff") if number == 0 else line


def _check_text(path: Path, line: bytes) -> None:
    if b"\0" in line:
        raise _binary(path)


def _check_latin(path: Path, number: int, line: bytes) -> None:
    if CONTROL.search(line):
        raise _binary(path)
    if not _is(line, "cp1252"):
        raise ValueError(f"{path}: line {number} is neither UTF-8 nor Latin-1 (cp1252) text; {GIVE}")


def _binary(path: Path) -> ValueError:
    return ValueError(
        f"{path}: holds binary data, not text; save the table as CSV text (an Excel file: name it .xlsx; UTF-16 "
        "without a byte order mark: give the encoding (--encoding) utf-16-le)"
    )


def _is(line: bytes, encoding: str) -> bool:
    try:
        line.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True
