"""Single values and raw columns: what is missing, what is text or a number, what is refused."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import count
from typing import Any

import numpy as np

FAMILIES = (  # the order matters: bool is an int
    ((bool, np.bool_), "boolean"),
    ((str,), "text"),
    ((int, np.integer), "whole"),
    ((float, np.floating, Decimal, Fraction), "number"),
    ((complex, np.complexfloating), "complex"),
    ((datetime.date, np.datetime64), "date"),
    ((datetime.time, datetime.timedelta, np.timedelta64), "time"),
    ((bytes,), "bytes"),
)
NUMBERS = frozenset(("boolean", "whole", "number"))
MISSING_MARKERS = (  # those of pandas, and ?
    *("", "?", "NA", "N/A", "n/a", "<NA>", "#N/A", "#N/A N/A", "#NA", "NaN", "nan", "-NaN", "-nan"),
    *("NULL", "null", "None", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)


@dataclass(frozen=True)
class Raw:
    """One column as it came: float64 with NaN, bool, or any values, each distinct one kept once."""

    name: str
    values: np.ndarray  # (n,) float64 or bool; with levels, the position of each value among them, -1 for None
    levels: np.ndarray | None = None  # (k,) the distinct values, objects
    integer: bool = False  # as the container declares
    declared: bool = False  # the container's type is categorical
    dates: bool = False  # the floats are days since 1970-01-01
    n_huge: int = 0  # infinite or huge values, which have become NaN

    @classmethod
    def of_objects(cls, name: str, values: Sequence[Any], declared: bool = False) -> Raw:
        """A column of any values."""
        codes, levels = factorized(name, values)
        return cls(name, codes, levels, declared=declared)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.values)

    def with_levels(self) -> Raw:
        """The same column with its distinct values kept once, whatever it was."""
        if self.levels is not None:
            return self
        if self.values.dtype.kind == "b":
            return Raw(self.name, self.values.astype(np.int32), _objects([False, True]))
        distinct, codes = np.unique(self.values, return_inverse=True)
        n = int((~np.isnan(distinct)).sum())  # NaN comes last
        return Raw(self.name, np.where(codes < n, codes, -1).astype(np.int32), _objects(distinct[:n].tolist()))

    def spread(self, of_levels: np.ndarray, absent: Any) -> np.ndarray:
        """(n,) what each row's level has become; `absent` where there is no value."""
        return np.append(of_levels, np.array([absent], of_levels.dtype))[self.values]

    def counts(self) -> np.ndarray:
        """(k,) rows of each level."""
        assert self.levels is not None
        return np.bincount(self.values + 1, minlength=len(self.levels) + 1)[1:]


def factorized(name: str, values: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Positions of values among the distinct ones, -1 for None; and these, in order of appearance."""
    try:
        codes, numbers = _numbered(values)
    except TypeError as error:  # unhashable: a list or a dict in a cell, or a signalling NaN
        present = [None if is_missing(value) else value for value in values]
        if all(map(_hashable, present)):
            return factorized(name, present)
        row, value = next((i, v) for i, v in enumerate(present) if not _hashable(v))
        raise refused_cell(name, row, value) from error
    levels = list(numbers)
    if (0 in numbers or 1 in numbers) and not {bool, np.bool_}.isdisjoint(map(type, values)):  # 1 == True
        codes, pairs = _numbered([(type(value), value) for value in values])
        levels = [value for _, value in pairs]
    place = next((i for i, level in enumerate(levels) if level is None), None)
    if place is not None:
        codes = np.where(codes == place, -1, codes - (codes > place))
        del levels[place]
    return codes.astype(np.int32, copy=False), _objects(levels)


def _numbered(values: Sequence[Any]) -> tuple[np.ndarray, Mapping[Any, int]]:
    """The number of each value, and the values with their numbers, in order of appearance."""
    numbers: defaultdict[Any, int] = defaultdict(count().__next__)
    codes = np.fromiter(map(numbers.__getitem__, values), np.int32, len(values))
    return codes, numbers


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _objects(values: Sequence[Any]) -> np.ndarray:
    return np.fromiter(values, dtype=object, count=len(values))


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
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    return type(value).__name__ in ("NAType", "NaTType")  # pandas, known without importing it


def is_marked(value: Any) -> bool:
    """Return whether a value is missing, or text that pandas takes for missing, such as N/A."""
    return is_missing(value) or (isinstance(value, str) and value.strip() in MISSING_MARKERS)


def missing_mask(values: np.ndarray) -> np.ndarray:
    """Mark the missing entries of an array.

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
    """Raise on families of values no model here takes: complex numbers, times of day, bytes, containers."""
    if "complex" in types:
        raise ValueError(f"Complex data not supported: column {raw.name!r} holds complex numbers; give real numbers")
    if "time" in types:
        raise ValueError(refused_type(raw.name, "times or durations"))
    if "bytes" in types:
        raise ValueError(f"column {raw.name!r} holds bytes; decode it to text first (e.g. .astype(str))")
    if "other" in types:
        assert raw.levels is not None
        _, value = first(raw.levels, "other")
        code = next(i for i, level in enumerate(raw.levels) if level is value)
        raise refused_cell(raw.name, int(np.argmax(raw.values == code)), value)


def refused_cell(name: str, row: int, value: Any) -> TypeError:
    """The error for a cell that is neither text nor a number."""
    return TypeError(
        f"column {name!r}, row {row} holds a {type(value).__name__}; "
        f"argument must be a string or a real number (or bool), not {type(value).__name__!r}: convert the column"
    )


def refused_type(name: str, what: str) -> str:
    """The message that a column's type is not supported, with what is."""
    return (
        f"column {name!r} holds {what}, which are neither numbers, dates nor categories; "
        f"turn it into numbers (e.g. seconds), or drop it"
    )


def first(values: Iterable[Any], wanted: str) -> tuple[int, Any]:
    """Find the first row that holds a value of a family; return row and value."""
    return next((i, v) for i, v in enumerate(values) if not is_missing(v) and family(type(v)) == wanted)


def listed(names: Sequence[Any], most: int = 10) -> str:
    """Names in quotes, not too many, and how many there are in all."""
    text = ", ".join(repr(name) for name in names[:most])
    return text + (f", ... ({len(names)} in all)" if len(names) > most else "")


def spelled_alike(texts: Iterable[str]) -> str:
    """The first texts that differ by case or blanks only, in quotes, and how many more groups there are; "" if none.

    Parameters
    ----------
    texts : iterable of str
    """
    spellings: dict[str, set[str]] = {}
    for text in texts:
        spellings.setdefault(" ".join(text.split()).casefold(), set()).add(text)
    groups = [sorted(group) for group in spellings.values() if len(group) > 1]
    more = f" (and {len(groups) - 1} more)" if len(groups) > 1 else ""
    return listed(groups[0], 5) + more if groups else ""


def number(text: str) -> float | None:
    """Read text as a float, or return None."""
    try:
        return float(text)
    except ValueError:
        return None
