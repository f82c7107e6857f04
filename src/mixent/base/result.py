"""Results that show themselves: one line in a console, text when printed, a document in a notebook, and DataFrames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from importlib.util import find_spec
from numbers import Real
from typing import Any, ClassVar

from mixent.base.document import Content, Document, Paragraph, Section, Table
from mixent.data.files import need_pandas
from mixent.show import LENGTH, Short, short_text

MOST_ROWS = 200  # of a table in a notebook


class Result(Short):
    """A result of a public function, as a dataclass.

    `repr` is one line, `str` the text, and a notebook shows `summary()`. A subclass defines `__str__` or `_content`; if
    it defines neither, its fields are listed.
    """

    _title: ClassVar[str] = ""

    def summary(self) -> Document:
        """The result as a document of text and tables, which can be printed and is shown in a notebook."""
        return Document(self._title or type(self).__name__, [Section("", self._content())])

    def _content(self) -> Sequence[Content]:
        """The blocks of the document."""
        if type(self).__str__ is not Result.__str__:
            return [Paragraph(line) for line in str(self).splitlines() if line.strip()]
        names = [f.name for f in fields(self) if f.repr]  # type: ignore[arg-type]
        return [Table("", ["", "value"], [[name, _cell(getattr(self, name))] for name in names])]

    def __str__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


class Records(list):
    """A list of records (dicts or objects) that is printed, and shown in a notebook, as a table."""

    def frame(self) -> Any:
        """The records as a pandas DataFrame, one row for each."""
        return need_pandas("for a table of records").DataFrame([_row(record) for record in self])

    def __repr__(self) -> str:
        names = ", ".join(_columns(self))
        text = f"Records({len(self)} rows{f': {names}' if names else ''})"
        return text if len(text) <= LENGTH else f"{text[: LENGTH - 4]}...)"

    def __str__(self) -> str:
        return "\n".join(self._content().lines(LENGTH))

    def _repr_html_(self) -> str:
        return Document(f"{len(self)} records", [Section("", [self._content()])])._repr_html_()

    def _content(self) -> Content:
        names = _columns(self)
        if not names:
            return Paragraph("No records.")
        return Table("", names, [[_cell(_row(record).get(name)) for name in names] for record in self])


class RecordsAttribute:
    """A fitted attribute, stored as a plain list and returned as `Records`; lists in a list become `Records` too."""

    def __init__(self, absent: Sequence[Any] | None = None) -> None:
        self.absent = absent  # the records of a model from a file of earlier versions, which has none

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is not None and self.absent is not None and self.name not in vars(model):
            return Records(self.absent)
        if model is None or self.name not in vars(model):
            raise AttributeError(f"{getattr(owner, '__name__', 'object')!r} object has no attribute {self.name!r}")
        records = vars(model)[self.name]
        return [Records(part) for part in records] if records and isinstance(records[0], list) else Records(records)

    def __set__(self, model: Any, records: Iterable[Any]) -> None:
        vars(model)[self.name] = list(records)

    def __delete__(self, model: Any) -> None:
        del vars(model)[self.name]


def as_table(records: Iterable[Any], index: str | None = None) -> Any:
    """A DataFrame if pandas is installed, otherwise `Records`."""
    records = Records(records)
    if find_spec("pandas") is None:
        return records
    return records.frame() if index is None or not records else records.frame().set_index(index)


def _row(record: Any) -> dict[str, Any]:
    """A record as a dict; of an object, the fields that are numbers or text."""
    if isinstance(record, Mapping):
        return dict(record)
    values = {f.name: getattr(record, f.name) for f in fields(record)}
    return {name: value for name, value in values.items() if value is None or isinstance(value, str | Real)}


def _columns(records: Sequence[Any]) -> list[str]:
    return list(dict.fromkeys(str(name) for record in records for name in _row(record)))


def _cell(value: Any) -> Any:
    """A cell of a table: numbers and text unchanged, other values in short form."""
    plain = value is None or isinstance(value, str) or (isinstance(value, Real) and not isinstance(value, bool))
    return value if plain else short_text(value)
