"""Tables as Markdown: from cells, or from the grids that the views print on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.table import Table as Grid
from rich.text import Text

NO_BREAK = "\u00a0"


def table_lines(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table; short rows are filled up. Columns of numbers stand to the right."""
    body = [[*row, *[""] * (len(heads) - len(row))] for row in rows]
    marks = ["---:" if all(map(_is_number, column)) else "---" for column in zip(*body)] or ["---"] * len(heads)
    return [_line(map(escaped, heads)), _line(marks), *(_line(map(escaped, row)) for row in body), ""]


def grid_lines(grid: Grid) -> list[str]:
    """A grid of the terminal, less empty columns; its title is a line above. Nothing where it has no rows."""
    if not grid.row_count:
        return []
    columns = [c for c in grid.columns if any(_plain(cell) for cell in c.cells)]
    rows = zip(*([_plain(cell) for cell in c.cells] for c in columns))
    title = [f"*{escaped(_plain(grid.title))}*", ""] if grid.title else []
    return [*title, *table_lines([_plain(c.header) for c in columns], rows)]


def escaped(text: str) -> str:
    """With the signs that Markdown would read as its own; a mean and its error stay on one line."""
    for sign in ("|", "*", "<"):
        text = text.replace(sign, f"\\{sign}")
    return text.replace(" ± ", f"{NO_BREAK}±{NO_BREAK}")


def anchor(title: str) -> str:
    """The address of a heading, as GitHub and MyST make it."""
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


def _is_number(cell: str) -> bool:
    """Or nothing, or a number that is not there."""
    return not cell or cell[0] in "0123456789+-–."


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _plain(cell: Any) -> str:
    return Text.from_markup(cell).plain if isinstance(cell, str) else str(cell or "")
