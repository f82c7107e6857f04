"""Which estimator can do what: the table of all public ones; `python -m mixent.overview` prints its page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mixent.base.capabilities import MARKS, MEANINGS, Can, cells_of
from mixent.base.document import Bullets, Content, Table
from mixent.base.registry import entries
from mixent.base.result import Result

if TYPE_CHECKING:
    import pandas

PAGE = """# What each estimator can do

{about}

{meanings}

{table}
Options may change a cell: `mixent.capabilities(model)` shows those of an estimator with its present options.

```python
import mixent

table = mixent.capabilities()  # this page; print it, or take table.frame()
table["MaxEntClassifier", "explanations"].note  # 'by column'
print(mixent.capabilities(mixent.MEDClassifier("precomputed")))  # a kernel matrix has no missing values
```
"""
ABOUT = """This page is made from the tags of the estimators (`python -m mixent.overview > docs/capabilities.md`), and
each cell has a test in `tests/test_capabilities.py`: "yes" has the effect it claims; "no" is an error that states this,
or a method that is not there, never a wrong answer; "–": not applicable, such as labels for an estimator that takes
none. A number refers to the notes below the table. Where "out-of-core" is "no", `fit` holds all rows in memory;
predictions are made row by row, and so in parts, everywhere."""


@dataclass(frozen=True, repr=False)
class CapabilityTable(Result):
    """Estimators x capabilities.

    Parameters
    ----------
    cells : dict of estimator -> dict of capability -> Can
    """

    _title = "Capabilities"

    cells: dict[str, dict[str, Can]]

    def __getitem__(self, place: tuple[str, str]) -> Can:
        estimator, capability = place
        return self.cells[estimator][capability]

    def __iter__(self) -> Iterator[tuple[str, str, Can]]:
        """(estimator, capability, cell), row by row."""
        return ((row, column, cell) for row, cells in self.cells.items() for column, cell in cells.items())

    @property
    def notes(self) -> list[str]:
        """What stands beside the cells, each once; a cell refers to its place, from 1."""
        return list(dict.fromkeys(cell.note for _, _, cell in self if cell.note))

    def frame(self) -> pandas.DataFrame:
        """A row for each estimator, a column for each capability; cells are text, with their notes."""
        import pandas

        return pandas.DataFrame(
            {MEANINGS[name][0]: {row: str(cells[name]) for row, cells in self.cells.items()} for name in MEANINGS}
        )

    def _brief(self) -> str:
        return f"{len(self.cells)} estimators, {len(MEANINGS)} capabilities"

    def _content(self) -> list[Content]:
        header, *rows = self._short()
        return [Table("", header, rows), Bullets([f"({i + 1}) {note}" for i, note in enumerate(self.notes)])]

    def _short(self) -> list[list[str]]:
        """The table with numbers in place of notes."""
        number = {note: i + 1 for i, note in enumerate(self.notes)}
        rows = [["estimator", *(title for title, _ in MEANINGS.values())]]
        for name, cells in self.cells.items():
            marks = [MARKS[c.able] + (f" ({number[c.note]})" if c.note else "") for c in cells.values()]
            rows.append([name, *marks])
        return rows

    def __str__(self) -> str:
        """Plain text, a line for each capability: there are more estimators than a line is wide."""
        lines = []
        for name, cells in self.cells.items():
            lines += [name, *(f"  {MEANINGS[what][0]:<15} {cell}" for what, cell in cells.items()), ""]
        return "\n".join(lines[:-1])

    def markdown(self) -> str:
        """The table, and its notes below it."""
        head, *body = self._short()
        lines = [head, ["---"] * len(head), *([f"`{name}`", *cells] for name, *cells in body)]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        notes = "\n".join(f"{i + 1}. {note}" for i, note in enumerate(self.notes))
        return f"{table}\n\n{notes}\n" if notes else f"{table}\n"


def capabilities(*estimators: Any) -> CapabilityTable:
    """The capabilities of estimators: missing values, weights, uncertain labels, text beside numbers, and more.

    Parameters
    ----------
    *estimators : estimators of mixent
        Unfitted or fitted; what they can do may depend on their options. None: all public ones, with their defaults.

    Returns
    -------
    CapabilityTable
        `str()`, `frame()` and `markdown()` show it; `table["MEDClassifier", "weights"]` is a cell.

    Examples
    --------
    >>> from mixent import MEDClassifier, capabilities
    >>> capabilities()["MEDClassifier", "missing"].able
    True
    >>> capabilities(MEDClassifier("precomputed"))["MEDClassifier", "missing"].able
    False
    """
    chosen = estimators or public_estimators()
    names = [type(model).__name__ for model in chosen]
    repeated = {name for name in names if names.count(name) > 1}
    titles = [repr(model) if name in repeated else name for name, model in zip(names, chosen)]
    return CapabilityTable({title: cells_of(model) for title, model in zip(titles, chosen)})


def public_estimators() -> list[Any]:
    """One of each registered estimator, with its defaults; those that combine classifiers have two of ours."""
    return [entry.make() for entry in entries() if entry.listed]


def page() -> str:
    """docs/capabilities.md."""
    meanings = "\n".join(f"* **{title}**: {meaning}." for title, meaning in MEANINGS.values())
    return PAGE.format(about=ABOUT, meanings=meanings, table=capabilities().markdown())


if __name__ == "__main__":
    print(page(), end="")
