"""Turn one raw column into the floats or category codes of the columns it becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixent.data.dates import DateText, date_parts, days_of
from mixent.data.formats import Format, Ignored
from mixent.data.numbers import DASHES, HUGE, NumberText
from mixent.data.schema import FLOAT_KINDS, OTHER, Column
from mixent.data.values import NUMBERS, Raw, families, family, is_marked, is_missing, number, refuse

FEW = 3  # examples in a note
UNSEEN = -2


@dataclass
class Notes:
    """Notes on the columns of one table."""

    sentences: list[str] = field(default_factory=list)
    grouped: dict[str, list[str]] = field(default_factory=dict)  # what was done -> columns
    huge: dict[str, int] = field(default_factory=dict)  # column -> values that became missing
    unseen: bool = False  # whether a category was not seen at fit

    def add(self, done: str, column: str) -> None:
        """The same was done to a further column."""
        self.grouped.setdefault(done, []).append(column)

    def all(self) -> tuple[str, ...]:
        """All sentences."""
        grouped = dict(self.grouped)
        if self.huge:
            done = f"infinite or huge values (beyond {HUGE:g}) are treated as missing"
            grouped[done] = [f"{name!r} ({n} row{'s' * (n > 1)})" for name, n in self.huge.items()]
        return (*self.sentences, *(f"{done}: {enumerated(columns)}" for done, columns in grouped.items()))

    def lost(self, raw: Raw, what: str, missing: np.ndarray) -> None:
        """Values of some levels have become missing."""
        assert raw.levels is not None
        n = int(raw.counts()[missing].sum())
        if n:
            text = shown(raw.levels[missing].tolist())
            self.sentences.append(
                f"column {raw.name!r} has values that are not {what} ({text}), in {n} of {raw.n_rows} rows; "
                f"they are treated as missing"
            )


def enumerated(columns: Sequence[str], most: int = 5) -> str:
    """Columns, the first ones by name."""
    more = f", ... ({len(columns)} in all)" * (len(columns) > most)
    return f"column{'s' * (len(columns) > 1)} " + ", ".join(columns[:most]) + more


def read_columns(raw: Raw, form: Format, columns: Sequence[Column], notes: Notes, new: bool = False) -> list:
    """The values of the columns that a raw column becomes: (n,) floats or codes each.

    Parameters
    ----------
    raw : Raw
    form : Format
    columns : sequence of Column
    notes : Notes
        Gets a sentence for values that are not what the format and the columns require; they are missing.
    new : bool
        Whether unseen categories are one category more, after the others, and not missing.
    """
    if raw.n_huge:
        notes.huge[raw.name] = raw.n_huge
    if isinstance(form, Ignored):
        return []
    if isinstance(form, DateText):
        return date_parts(to_days(raw, form, notes))[: len(columns)]
    if isinstance(form, NumberText):
        return [to_floats(raw, form, notes), *(_equals(raw, text) for text in form.indicators)]
    (column,) = columns
    return [to_floats(raw, NumberText(), notes) if column.kind in FLOAT_KINDS else to_codes(raw, column, notes, new)]


# --- numbers and dates ------------------------------------------------------------------------------------------------


def to_floats(raw: Raw, form: NumberText, notes: Notes) -> np.ndarray:
    """Return the column as float64 with NaN for missing."""
    if raw.dates:
        raw = Raw(raw.name, np.where(np.isnan(raw.values), -1, 0), np.array(["dates"], object))
    if raw.levels is None:
        return raw.values.astype(np.float64, copy=False)
    _check(raw)
    values = np.fromiter((_float(value, form) for value in raw.levels), np.float64, len(raw.levels))
    huge = np.abs(values) > HUGE
    if huge.any():
        notes.huge[raw.name] = notes.huge.get(raw.name, 0) + int(raw.counts()[huge].sum())
        values[huge] = np.nan
    known = (*DASHES, *form.indicators)
    absent = [is_marked(v) or (isinstance(v, str) and v.strip() in known) for v in raw.levels]
    notes.lost(raw, "numbers", np.isnan(values) & ~huge & ~np.array(absent, bool))
    return raw.spread(values, np.nan)


def to_days(raw: Raw, form: DateText, notes: Notes) -> np.ndarray:
    """Days since 1970-01-01 as float64, with NaN for missing."""
    if raw.levels is None:
        if raw.dates:
            return raw.values
        raw = raw.with_levels()
    _check(raw)
    assert raw.levels is not None
    values = np.full(len(raw.levels), np.nan)
    absent = np.zeros(len(values), bool)
    for i, value in enumerate(raw.levels):
        absent[i] = is_marked(value) or (isinstance(value, str) and value.strip() in DASHES)
        if not absent[i] and family(type(value)) == "date":
            values[i] = days_of(value)
        elif not absent[i] and isinstance(value, str):
            days = form.read(value)
            values[i] = np.nan if days is None else days
    notes.lost(raw, "dates", np.isnan(values) & ~absent)
    return raw.spread(values, np.nan)


def _check(raw: Raw) -> None:
    """Refuse values that no column may have."""
    assert raw.levels is not None
    refuse(raw, families(value for value in raw.levels if not is_missing(value)))


def _float(value: Any, form: NumberText) -> float:
    if is_missing(value):
        return np.nan
    if isinstance(value, str):
        read = form.read(value)
        return np.nan if read is None else read
    if family(type(value)) not in NUMBERS:
        return np.nan
    return as_float(value)


def as_float(value: Any) -> float:
    """A number of any type as a float; infinite beyond its range."""
    try:
        return float(value)
    except OverflowError:  # a Python int beyond 1e308
        return np.inf if value > 0 else -np.inf


def _equals(raw: Raw, text: str) -> np.ndarray:
    """Codes of a boolean column: whether a value is this text; -1 where there is none."""
    raw = raw.with_levels()
    assert raw.levels is not None
    of_levels = [-1 if is_marked(v) else int(isinstance(v, str) and v.strip() == text) for v in raw.levels]
    return raw.spread(np.array(of_levels, np.int32), -1)


# --- categories -------------------------------------------------------------------------------------------------------


def to_codes(raw: Raw, column: Column, notes: Notes, new: bool = False) -> np.ndarray:
    """Position of each value among the column's categories, -1 for missing or unseen.

    Numbers and text that spell the same category are the same (a file read twice may type them
    differently). Unseen categories are treated as missing, with a note that names them; or with `new` they are one
    category more, after the others. Where rare categories have been pooled, they belong to these.
    """
    if raw.values.dtype.kind == "b" and column.kind == "boolean":
        return raw.values.astype(np.int32)
    raw = raw.with_levels()
    assert raw.levels is not None
    _check(raw)
    return raw.spread(_level_codes(raw, column, notes, new), -1)


def recode(codes: np.ndarray, known: Column, column: Column, notes: Notes, new: bool = False) -> np.ndarray:
    """As `to_codes`, of values that are codes among the categories of another column, -1 for missing."""
    if known.categories == column.categories:
        return codes
    levels = np.fromiter(known.categories, object, len(known.categories))
    raw = Raw(column.name, codes, levels)
    return raw.spread(_level_codes(raw, column, notes, new), -1)


def _level_codes(raw: Raw, column: Column, notes: Notes, new: bool) -> np.ndarray:
    """(k,) codes of the levels."""
    assert raw.levels is not None
    place = {value: i for i, value in enumerate(column.categories)}
    codes = np.fromiter((_place(value, column, place) for value in raw.levels), np.int32, len(raw.levels))
    present = raw.counts() > 0
    unseen = (codes == UNSEEN) & present
    if column.pooled:
        codes[codes == UNSEEN] = place[OTHER]
    elif new:
        codes[codes == UNSEEN] = len(column.categories)
    elif unseen.any():
        notes.unseen = True
        n = int(raw.counts()[unseen].sum())
        notes.sentences.append(
            f"column {column.name!r} has values not seen at fit ({shown(raw.levels[unseen].tolist())}), in {n} of "
            f"{raw.n_rows} rows; they are treated as missing"
        )
    codes[codes == UNSEEN] = -1
    return codes


def _place(value: Any, column: Column, place: dict[Any, int]) -> int:
    """Code of a value, also of one that came as another type than at fit: 1 for "1", "true" for True."""
    if value in place:
        return place[value]
    if is_marked(value):
        return -1
    return next((place[other] for other in _spellings(value, column) if other in place), UNSEEN)


def _spellings(value: Any, column: Column) -> tuple[Any, ...]:
    as_text = isinstance(column.categories[0], str)
    kind = family(type(value))
    if kind == "text" and column.kind == "boolean":
        return ({"true": True, "false": False}.get(value.strip().lower()),)
    if kind == "text":  # text at fit too: only the exact word counts
        return () if as_text else (number(value),)
    if not as_text or kind not in NUMBERS:
        return (spelled(value),) if as_text else ()
    if kind == "boolean":
        return (str(value), str(value).lower(), str(value).upper())
    real = as_float(value)
    return (str(real), f"{real:.0f}") if real.is_integer() else (str(real),)


def spelled(value: Any) -> str:
    """A value of a column that mixes text with others, as text."""
    if isinstance(value, str):
        return value
    real = as_float(value) if family(type(value)) in ("whole", "number") else None
    return f"{real:.0f}" if real is not None and real.is_integer() else str(value)


def shown(values: Sequence[Any]) -> str:
    """Some values in quotes."""
    return ", ".join(repr(value) for value in values[:FEW]) + (", ..." if len(values) > FEW else "")
