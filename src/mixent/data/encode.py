"""Turn one raw column into floats or category codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.data.schema import Column
from mixent.data.values import Raw, families, family, first, is_missing, missing_mask, number, refuse
from mixent.warn import warn


def to_floats(raw: Raw) -> np.ndarray:
    """Return the column as float64 with NaN for missing.

    Raises
    ------
    ValueError
        If a value is text: the column held numbers at fit.
    """
    if raw.values.dtype.kind != "O":
        return raw.values.astype(np.float64, copy=False)
    types = families(raw.values[~missing_mask(raw.values)])
    refuse(raw, types)
    if "text" in types:
        row, value = first(raw.values, "text")
        raise ValueError(
            f"column {raw.name!r} held numbers at fit, but row {row} now holds the text {value!r}; "
            f"convert the column to numbers, or leave such cells empty (missing)"
        )
    return np.fromiter(map(_float, raw.values), np.float64, len(raw.values))


def _float(value: Any) -> float:
    if is_missing(value):
        return np.nan
    try:
        return float(value)
    except OverflowError:  # a Python int beyond 1e308
        return np.inf if value > 0 else -np.inf


def to_codes(raw: Raw, column: Column, new: bool = False) -> tuple[np.ndarray, bool]:
    """Position of each value among the column's categories, -1 for missing or unseen; and whether some are unseen.

    Numbers and text that spell the same category are the same (a file read twice may type them
    differently). Unseen categories are treated as missing, with a warning that names them; or with `new` they are one
    category more, after the others.
    """
    if raw.values.dtype.kind == "b" and column.kind == "boolean":
        return raw.values.astype(np.int32), False
    codes, unseen = _places(raw, column)
    if new:
        codes[unseen] = len(column.categories)
        return codes, False
    _warn_unseen(column, raw.values[unseen], len(codes))
    return codes, len(unseen) > 0


def recode(codes: np.ndarray, known: Column, column: Column, new: bool = False) -> tuple[np.ndarray, bool]:
    """As `to_codes`, of values that are codes among the categories of another column, -1 for missing."""
    if known.categories == column.categories:
        return codes, False
    values = np.fromiter(known.categories, object, len(known.categories))
    places, _ = _places(Raw(column.name, values), column)
    out = np.append(places, np.int32(-1))[codes]
    unseen = np.flatnonzero((codes >= 0) & (out < 0))
    if new:
        out[unseen] = len(column.categories)
        return out, False
    _warn_unseen(column, values[codes[unseen]], len(codes))
    return out, len(unseen) > 0


def _places(raw: Raw, column: Column) -> tuple[np.ndarray, np.ndarray]:
    """Codes, -1 for missing or unseen, and the positions of what is unseen."""
    place = {value: i for i, value in enumerate(column.categories)}
    codes = _lookup(raw, place)
    rows = np.flatnonzero(codes < 0)
    rows = rows[~missing_mask(raw.values[rows])]
    codes[rows] = [_respelt(value, column, place) for value in raw.values[rows]]
    return codes, rows[codes[rows] < 0]


def _lookup(raw: Raw, place: dict[Any, int]) -> np.ndarray:
    try:
        return np.fromiter((place.get(value, -1) for value in raw.values.tolist()), np.int32, len(raw.values))
    except TypeError:  # unhashable: a list or a dict in a cell
        refuse(raw, families(raw.values[~missing_mask(raw.values)]))
        raise


def _respelt(value: Any, column: Column, place: dict[Any, int]) -> int:
    """Code of a value that came as another type than at fit: 1 for "1", "true" for True; else -1."""
    return next((place[other] for other in _spellings(value, column) if other in place), -1)


def _spellings(value: Any, column: Column) -> tuple[Any, ...]:
    as_text = isinstance(column.categories[0], str)
    kind = family(type(value))
    if kind == "text" and column.kind == "boolean":
        return ({"true": True, "false": False}.get(value.strip().lower()),)
    if kind == "text":  # text at fit too: only the exact word counts
        return () if as_text else (number(value),)
    if not as_text or kind not in ("boolean", "whole", "number"):
        return ()
    if kind == "boolean":
        return (str(value), str(value).lower(), str(value).upper())
    real = _float(value)
    return (str(real), f"{real:.0f}") if real.is_integer() else (str(real),)


def _warn_unseen(column: Column, values: np.ndarray, n_rows: int) -> None:
    distinct = list(dict.fromkeys(values.tolist()))
    if not distinct:
        return
    shown = ", ".join(repr(value) for value in distinct[:3]) + (", ..." if len(distinct) > 3 else "")
    warn(
        f"column {column.name!r} has values not seen at fit ({shown}), in {len(values)} of {n_rows} rows; "
        f"they are treated as missing"
    )
