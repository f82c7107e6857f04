"""Single values and raw columns: what is missing, what is text or a number, what is refused."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

FAMILIES = (  # the order matters: bool is an int
    ((bool, np.bool_), "boolean"),
    ((str,), "text"),
    ((int, np.integer), "whole"),
    ((float, np.floating, Decimal, Fraction), "number"),
    ((complex, np.complexfloating), "complex"),
    ((datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64), "date"),
    ((bytes,), "bytes"),
)


@dataclass(frozen=True)
class Raw:
    """One column as it came: float64 with NaN, bool, or object with any missing marker."""

    name: str
    values: np.ndarray  # (n,)
    integer: bool = False  # as the container declares
    declared: bool = False  # the container's type is categorical


def is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, NaN, NA, NaT or blank text."""
    if value is None:
        return True
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, Decimal):
        return value.is_nan()  # a signalling NaN cannot even be compared
    if isinstance(value, (float, np.floating)):
        return bool(value != value)
    return type(value).__name__ in ("NAType", "NaTType")  # pandas, known without importing it


def missing_mask(values: np.ndarray) -> np.ndarray:
    """Mark the missing entries of a raw column.

    Parameters
    ----------
    values : ndarray, shape (n,)

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(len(values), bool)
    return np.fromiter(map(is_missing, values), bool, len(values))


def families(values: Iterable[Any]) -> set[str]:
    """Name the families of values in an array without missing entries."""
    return {family(kind) for kind in set(map(type, values))}


def family(kind: type) -> str:
    """Name the family of values a Python type belongs to."""
    return next((name for types, name in FAMILIES if issubclass(kind, types)), "other")


def refuse(raw: Raw, types: set[str]) -> None:
    """Raise on families of values no model here takes: complex numbers, dates, bytes, containers."""
    if "complex" in types:
        raise ValueError(f"Complex data not supported: column {raw.name!r} holds complex numbers; give real numbers")
    if "date" in types:
        raise ValueError(refused_type(raw.name, "dates or times"))
    if "bytes" in types:
        raise ValueError(f"column {raw.name!r} holds bytes; decode it to text first (e.g. .astype(str))")
    if "other" in types:
        row, value = first(raw.values, "other")
        raise TypeError(
            f"column {raw.name!r}, row {row} holds a {type(value).__name__}; "
            f"argument must be a string or a real number (or bool), not {type(value).__name__!r}: convert the column"
        )


def refused_type(name: str, what: str) -> str:
    """The message that a column's type is not supported, with what is."""
    return (
        f"column {name!r} holds {what}, which are neither numbers nor categories; "
        f"turn it into numbers (e.g. days since a fixed date), or drop it"
    )


def first(values: Iterable[Any], wanted: str) -> tuple[int, Any]:
    """Find the first row that holds a value of a family; return row and value."""
    return next((i, v) for i, v in enumerate(values) if not is_missing(v) and family(type(v)) == wanted)


def listed(names: Sequence[Any], most: int = 10) -> str:
    """Names in quotes, not too many, and how many there are in all."""
    text = ", ".join(repr(name) for name in names[:most])
    return text + (f", ... ({len(names)} in all)" if len(names) > most else "")


def number(text: str) -> float | None:
    """Read text as a float, or return None."""
    try:
        return float(text)
    except ValueError:
        return None
