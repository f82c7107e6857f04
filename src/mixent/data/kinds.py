"""Find the kind of a column from its values."""

from __future__ import annotations

import numpy as np

from mixent.data.encode import to_floats
from mixent.data.schema import Column
from mixent.data.values import Raw, families, first, is_missing, missing_mask, number, refuse

WHOLE_LIMIT = 2.0**53  # above it, a float no longer distinguishes neighboring integers
NUMERIC_TEXT_LIMIT = 50  # more distinct numbers-as-text than this is a measurement, not a category
STRAY_WORDS = 0.1  # up to this share of other words among them is dirt
PROBE_ROWS = 1000  # most columns are decided by their first rows


def type_column(raw: Raw, as_category: bool) -> Column:
    """Find the kind of a column from its values.

    Parameters
    ----------
    raw : Raw
    as_category : bool
        Whether the user asked for this column to be categorical.

    Returns
    -------
    Column
    """
    if raw.values.dtype.kind == "b":
        return Column(raw.name, "boolean", (False, True))
    if raw.values.dtype.kind == "f":
        return _type_floats(raw, as_category or raw.declared)
    return _type_objects(raw, as_category)


def check_present(name: str, values: np.ndarray) -> None:
    """Refuse a column of floats without values."""
    if np.isnan(values[:PROBE_ROWS]).all() and np.isnan(values).all():
        raise no_values(name, len(values))


def no_values(name: str, n_rows: int) -> ValueError:
    """What is wrong with a column without values."""
    return ValueError(f"column {name!r} has no values: all {n_rows} rows are missing; drop the column")


def _type_floats(raw: Raw, discrete: bool) -> Column:
    check_present(raw.name, raw.values)
    if discrete and np.isinf(raw.values).any():
        row = int(np.argmax(np.isinf(raw.values)))
        raise ValueError(
            f"column {raw.name!r}, row {row} holds {raw.values[row]}, which is no category; leave it empty"
        )
    if discrete:
        return Column(raw.name, "categorical", _number_categories(raw.values))
    whole = _whole(raw.values) if raw.integer else _whole_or_missing(raw.values)
    return Column(raw.name, "integer" if whole else "continuous")


def _type_objects(raw: Raw, as_category: bool) -> Column:
    present = raw.values[~missing_mask(raw.values)]
    types = families(present)
    refuse(raw, types)
    if types == {"boolean"}:
        return Column(raw.name, "boolean", (False, True))
    if types == {"text"}:
        return _type_text(raw.name, set(present), as_category or raw.declared)
    if "text" in types:
        raise ValueError(_mixture(raw))
    floats = Raw(raw.name, to_floats(raw), integer=types == {"whole"}, declared=raw.declared)
    return _type_floats(floats, as_category or raw.declared)


def _type_text(name: str, distinct: set[str], wanted: bool) -> Column:
    if not wanted:
        _check_words(name, distinct)
    return Column(name, "categorical", tuple(sorted(str(text) for text in distinct)))


def _check_words(name: str, distinct: set[str]) -> None:
    """Refuse a measurement that came as text, whole or because of a few stray words."""
    words = sorted(text for text in distinct if number(text) is None)
    n_numbers = len(distinct) - len(words)
    if n_numbers <= NUMERIC_TEXT_LIMIT or len(words) > STRAY_WORDS * len(distinct):
        return
    stray = f" and a few words, such as {words[0]!r}" if words else ""
    raise ValueError(
        f"column {name!r} holds {n_numbers} different numbers written as text{stray}; convert it to numbers "
        f"(e.g. pandas.to_numeric; leave other cells empty), or list it in categorical= if they are codes"
    )


def _mixture(raw: Raw) -> str:
    row, text = first(raw.values, "text")
    other_row, other = next((i, v) for i, v in enumerate(raw.values) if not is_missing(v) and not isinstance(v, str))
    return (
        f"column {raw.name!r} mixes text ({text!r} in row {row}) and numbers ({other!r} in row {other_row}); "
        f"make it all text or all numbers"
    )


def _number_categories(values: np.ndarray) -> tuple[int, ...] | tuple[float, ...]:
    distinct = np.unique(values[~np.isnan(values)])
    if np.all(distinct == np.rint(distinct)) and np.all(np.abs(distinct) <= WHOLE_LIMIT):
        return tuple(int(v) for v in distinct)
    return tuple(float(v) for v in distinct)


def _whole_or_missing(values: np.ndarray) -> bool:
    """Whether these were integers before a gap made them floats; without a gap, floats were meant."""
    return _whole(values[:PROBE_ROWS]) and bool(np.isnan(values).any()) and _whole(values)


def _whole(values: np.ndarray) -> bool:
    present = values[~np.isnan(values)]
    with np.errstate(invalid="ignore"):
        return bool(np.all(present == np.rint(present)) and np.all(np.abs(present) <= WHOLE_LIMIT))
