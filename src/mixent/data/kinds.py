"""Find out how a column is to be read, from its values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mixent.data.dates import PARTS, DateText, infer_dates
from mixent.data.encode import Notes, shown, spelled, to_days, to_floats
from mixent.data.formats import PLAIN, Format, Ignored
from mixent.data.numbers import DASHES, NumberText, infer_numbers
from mixent.data.schema import OTHER, Column
from mixent.data.values import NUMBERS, Raw, families, is_marked, is_missing, refuse, spelled_alike

WHOLE_LIMIT = 2.0**53  # above it, a float no longer distinguishes neighboring integers
PROBE_ROWS = 1000  # most columns are decided by their first rows
RECURRING = 0.01  # share of the rows in which a value must occur to get an indicator
MOST_CATEGORIES = 1000  # beyond, rare ones are pooled
IDENTIFIERS = 0.95  # share of different values that makes text an identifier
MANY_ROWS = 20  # fewer different values may well be an accident
EMPTY = Ignored("empty")


@dataclass(frozen=True)
class Found:
    """How a column is read, and what it becomes."""

    format: Format
    columns: tuple[Column, ...]


def infer(raw: Raw, as_category: bool, notes: Notes) -> Found:
    """Find out how a column is to be read, from its values.

    Parameters
    ----------
    raw : Raw
    as_category : bool
        Whether the user asked for this column to be categorical.
    notes : Notes
        Gets a sentence for everything that is not read as it is.

    Returns
    -------
    Found
    """
    if raw.levels is not None:
        return _infer_objects(raw, as_category or raw.declared, notes)
    if raw.values.dtype.kind == "b":
        return _plain(Column(raw.name, "boolean", (False, True)))
    if is_empty(raw.values):
        return Found(EMPTY, ())
    return (
        _dates(raw, DateText(), raw.values)
        if raw.dates
        else _plain(_type_floats(raw, as_category or raw.declared, notes))
    )


def is_empty(values: np.ndarray) -> bool:
    """Whether a column of floats has no value."""
    return bool(np.isnan(values[:PROBE_ROWS]).all() and np.isnan(values).all())


def _plain(column: Column) -> Found:
    return Found(PLAIN, (column,))


def _type_floats(raw: Raw, discrete: bool, notes: Notes) -> Column:
    if discrete:
        return Column(raw.name, "categorical", _number_categories(raw, notes))
    whole = _whole(raw.values) if raw.integer else _whole_or_missing(raw.values)
    return Column(raw.name, "integer" if whole else "continuous")


def _infer_objects(raw: Raw, discrete: bool, notes: Notes) -> Found:
    assert raw.levels is not None
    absent = is_missing if discrete else is_marked
    present = np.array([not absent(value) for value in raw.levels], bool) & (raw.counts() > 0)
    levels = raw.levels[present]
    types = families(levels)
    refuse(raw, types)
    if not types:
        return Found(EMPTY, ())
    if types == {"boolean"}:
        return _plain(Column(raw.name, "boolean", (False, True)))
    if types <= NUMBERS:
        return _infer_numbers(raw, types, discrete, notes)
    if types == {"date"} and not discrete:
        return _dates(raw, DateText(), to_days(raw, DateText(), Notes()))
    texts, counts = [spelled(value) for value in levels], raw.counts()[present]
    return _categories(raw, texts, counts, True, notes) if discrete else _infer_text(raw, texts, counts, notes)


def _infer_numbers(raw: Raw, types: set[str], discrete: bool, notes: Notes) -> Found:
    """A column of objects that are numbers."""
    values = to_floats(raw, NumberText(), Notes())
    if is_empty(values):
        to_floats(raw, NumberText(), notes)  # infinite ones are worth a note
        return Found(EMPTY, ())
    return _plain(_type_floats(Raw(raw.name, values, integer=types == {"whole"}), discrete, notes))


# --- text -------------------------------------------------------------------------------------------------------------


def _infer_text(raw: Raw, texts: Sequence[str], counts: np.ndarray, notes: Notes) -> Found:
    numbers = [i for i, text in enumerate(texts) if text.strip() not in DASHES]
    form, unclear = infer_numbers([texts[i] for i in numbers], counts[numbers]) if numbers else (None, False)
    if form is not None:
        return _numbers(raw, form, texts, counts, notes)
    dates, unclear_dates = infer_dates([texts[i] for i in numbers], counts[numbers]) if numbers else (None, False)
    if dates is not None:
        notes.add("text is read as dates", f"{raw.name!r} ({dates})")
        return _dates(raw, dates, to_days(raw, dates, Notes()))
    if unclear or unclear_dates:
        what = "numbers whose separator may be a decimal sign or not" if unclear else "dates whose order is unclear"
        remedy = "convert the column to " + ("numbers" if unclear else "dates")
        notes.sentences.append(
            f"column {raw.name!r} holds {what} ({shown(texts)}) and is read as categories; {remedy} to change this"
        )
    return _categories(raw, texts, counts, unclear or unclear_dates, notes)


def _numbers(raw: Raw, form: NumberText, texts: Sequence[str], counts: np.ndarray, notes: Notes) -> Found:
    """Numbers written as text, with an indicator for each frequent value that is no number."""
    odd: dict[str, int] = {}
    for text, n in zip(texts, counts.tolist()):
        if form.read(text) is None and text.strip() not in DASHES:
            odd[text.strip()] = odd.get(text.strip(), 0) + n
    frequent = tuple(sorted(text for text, n in odd.items() if n >= max(2, RECURRING * raw.n_rows)))
    form = NumberText(form.decimal, form.thousands, form.sign, frequent)
    values = to_floats(raw, form, Notes())
    if is_empty(values):
        return Found(EMPTY, ())
    example = next(text for text in texts if form.read(text) is not None)
    beside = f"; {shown(frequent)} in a column of its own" if frequent else ""
    notes.add("text is read as numbers", f"{raw.name!r} ({example!r} is {form.read(example):g}{beside})")
    whole = _whole(values)
    columns = [Column(raw.name, "integer" if whole else "continuous")]
    columns += [Column(f"{raw.name} = {text}", "boolean", (False, True)) for text in frequent]
    return Found(form, tuple(columns))


def _dates(raw: Raw, form: DateText, days: np.ndarray) -> Found:
    if is_empty(days):
        return Found(EMPTY, ())
    kinds = ["integer" if _whole(days) else "continuous", *["continuous"] * (len(PARTS) - 1)]
    return Found(form, tuple(Column(f"{raw.name} ({part})", kind) for part, kind in zip(PARTS, kinds)))


def _categories(raw: Raw, texts: Sequence[str], counts: np.ndarray, wanted: bool, notes: Notes) -> Found:
    """Text as categories; with `wanted`, also if hardly two values are equal."""
    n_rows = int(counts.sum())
    if not wanted and n_rows >= MANY_ROWS and len(set(texts)) >= IDENTIFIERS * n_rows:
        notes.add(
            "text of which hardly two rows are equal, like an identifier, is ignored unless listed in categorical=",
            f"{raw.name!r} (such as {texts[0]!r})",
        )
        return Found(Ignored("identifier"), ())
    _note_spellings(raw.name, texts, notes)
    rows: dict[str, int] = {}
    for text, n in zip(texts, counts.tolist()):
        rows[text] = rows.get(text, 0) + n
    if len(rows) <= MOST_CATEGORIES:
        return _plain(Column(raw.name, "categorical", tuple(sorted(rows))))
    kept = sorted(sorted(rows), key=rows.__getitem__, reverse=True)[: MOST_CATEGORIES - 1]
    _note_pooled(raw.name, len(rows), notes)
    return _plain(Column(raw.name, "categorical", (*sorted(kept), OTHER)))


def _note_pooled(name: str, n: int, notes: Notes) -> None:
    notes.sentences.append(
        f"column {name!r} has {n} categories; the {MOST_CATEGORIES - 1} most frequent are kept, all others "
        f"are {OTHER!r}"
    )


def _note_spellings(name: str, texts: Sequence[str], notes: Notes) -> None:
    """Point out text that differs by case or blanks only."""
    alike = spelled_alike(texts)
    if alike:
        notes.sentences.append(
            f"column {name!r} has spellings that differ by case or blanks only: {alike}. They are kept as different "
            "categories; spell them alike if they mean the same"
        )


# --- numbers ----------------------------------------------------------------------------------------------------------


def _number_categories(raw: Raw, notes: Notes) -> tuple:
    distinct, counts = np.unique(raw.values[~np.isnan(raw.values)], return_counts=True)
    n = len(distinct)
    pooled: tuple = ()
    if n > MOST_CATEGORIES:
        kept = np.sort(np.argsort(-counts, kind="stable")[: MOST_CATEGORIES - 1])
        distinct, pooled = distinct[kept], (OTHER,)
        _note_pooled(raw.name, n, notes)
    if np.all(distinct == np.rint(distinct)) and np.all(np.abs(distinct) <= WHOLE_LIMIT):
        return (*(int(v) for v in distinct), *pooled)
    return (*(float(v) for v in distinct), *pooled)


def _whole_or_missing(values: np.ndarray) -> bool:
    """Whether these were integers before a gap made them floats; without a gap, floats were meant."""
    return _whole(values[:PROBE_ROWS]) and bool(np.isnan(values).any()) and _whole(values)


def _whole(values: np.ndarray) -> bool:
    present = values[~np.isnan(values)]
    with np.errstate(invalid="ignore"):
        return bool(np.all(present == np.rint(present)) and np.all(np.abs(present) <= WHOLE_LIMIT))
