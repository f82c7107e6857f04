"""A folder of tables as the DATA of a command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def tables_in(folder: Path) -> list[Path]:
    """The tables of a folder, sorted by name."""
    from mixent.data.files import ENDINGS

    tables = sorted(path for path in folder.iterdir() if path.name.lower().endswith(ENDINGS))
    if not tables:
        raise FileNotFoundError(f"{folder}: the folder has no table (a file ending in one of {', '.join(ENDINGS)})")
    return tables


def result_name(path: Path) -> str:
    """Name of the results of a table: Parquet for a Parquet file, otherwise CSV."""
    return path.name.split(".")[0] + (".parquet" if path.name.lower().endswith(".parquet") else ".csv")


def prepare_folder(output: Path, tables: Sequence[Path]) -> None:
    """Make the folder of the results; refuse results that would replace a table or each other."""
    if output.exists() and not output.is_dir():
        raise NotADirectoryError(f"cannot write {output}: the results of a folder need a folder; give its name")
    if not output.resolve().parent.is_dir():
        raise FileNotFoundError(f"cannot write {output}: folder {str(output.parent)!r} does not exist; create it first")
    if any(output.resolve() == path.resolve().parent for path in tables):
        raise ValueError(f"cannot write {output}: it is the folder of the tables; give another name")
    names = [result_name(path) for path in tables]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"two tables would have their results in {twice}; rename one of them")
    output.mkdir(exist_ok=True)
