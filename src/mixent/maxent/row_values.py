"""The value of each feature of a maximum entropy model in each row, as short text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixent.data import Table
from mixent.maxent.terms import Binned, Coded, Crossed, CrossedDense, Grouped, Probabilistic

MISSING = "missing"


def row_values(terms: Sequence[Any], table: Table, absent: str) -> list[list[str]]:
    """A text for each term in each row; `absent` is the text for a probabilistic feature that is missing."""
    columns = [_values(term, table, absent) for term in terms]
    return [list(row) for row in zip(*columns)] if columns else [[] for _ in range(table.n_rows)]


def _values(term: Any, table: Table, absent: str) -> list[str]:
    if isinstance(term, (Crossed, CrossedDense)):
        pairs = zip(_values(term.first, table, absent), _values(term.second, table, absent))
        return [", ".join(pair) for pair in pairs]
    if isinstance(term, Coded):
        return [str(term.values[code]) if code >= 0 else MISSING for code in term.codes(table)]
    if isinstance(term, Probabilistic):
        return [_pmf(row, term.values, absent) for row in term.cells(table).T]
    if isinstance(term, Grouped):
        return [", ".join(map(_number, row)) for row in table.X[:, list(term.columns)]]
    numbers = [_number(x) for x in table.X[:, term.column]]
    if not isinstance(term, Binned):
        return numbers
    bins = term.values
    return [f"{x} ({bins[code]})" if code >= 0 else x for x, code in zip(numbers, term.codes(table))]


def _number(x: float) -> str:
    return MISSING if np.isnan(x) else f"{x:.6g}"


def _pmf(row: np.ndarray, values: tuple, absent: str) -> str:
    """The most probable value and its probability."""
    if not row.any():
        return absent
    best = int(row.argmax())
    return str(values[best]) if row[best] == 1 else f"{values[best]} ({100 * row[best]:.0f} %)"
