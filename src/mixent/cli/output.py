"""Files out: checked before the work, and tables written so that a spreadsheet runs nothing in them."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Collection, Hashable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixent.base.text import count
from mixent.cli.console import Screen

if TYPE_CHECKING:
    import pandas as pd

STDOUT = Path("-")
PAGE = (".html", ".htm")
CALLS = ("(", "|", "!")  # what text has to hold to call anything, unless it begins with =


def check_output(path: Path | None, inputs: Sequence[Path], endings: Sequence[str] = ()) -> None:
    """Refuse before the work, not after it, what cannot be written."""
    if path is None or path == STDOUT:
        return
    if endings and not path.name.lower().endswith(tuple(endings)):
        raise ValueError(f"{path}: unknown kind of file {path.suffix!r}; use one of {', '.join(endings)}")
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder; give a file name")
    if path.exists() and not path.is_file():  # it would be replaced, not written to
        raise ValueError(f"cannot write {path}: it is a device or a pipe; give a file name")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: folder {str(path.parent)!r} does not exist; create it first")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise PermissionError(f"cannot write {path}: no permission")
    for source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            raise ValueError(f"cannot write {path}: it is an input of this command; give another name")


def check_table_output(path: Path | None, inputs: Sequence[Path], *more: str) -> None:
    """As `check_output`, for a table; `more` are other endings that are allowed."""
    from mixent.data.write import ENDINGS

    check_output(path, inputs, (*ENDINGS, *more))


def write_table(screen: Screen, frame: pd.DataFrame, output: Path, plain: Collection[str] = ()) -> None:
    """Write a table to a file, or to standard output as CSV; text in `plain` stays as it is, formulas are disarmed."""
    from mixent.data import write_frame

    if output != STDOUT:
        n_quoted = write_frame(frame, output, plain)
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table.csv"
            n_quoted = write_frame(frame, path, plain)
            sys.stdout.flush()
            sys.stdout.buffer.write(path.read_bytes())
            sys.stdout.buffer.flush()
    if n_quoted:
        screen.print(f"{count(n_quoted, 'cell')} that a spreadsheet would run as a formula got a leading '")


def write_records(screen: Screen, records: list[dict[str, Any]], output: Path, plain: Collection[str] = ()) -> None:
    """Write flat records as a table, or a JSON list where the name ends so."""
    if output.name.lower().endswith(".json"):
        import json

        from mixent.core.writing import write_text

        write_text(output, json.dumps(records, indent=1) + "\n")
        return
    import pandas as pd

    write_table(screen, pd.DataFrame(records), output, plain)


def harmless(labels: Iterable[Hashable]) -> set[str]:
    """Class labels to be written as they are, even if they begin with + - or @: all that call nothing."""
    names = [str(label) for label in labels]
    return {name for name in names if name[:1] in ("+", "-", "@") and not any(sign in name for sign in CALLS)}
