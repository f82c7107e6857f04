"""The parts of an explanation by a maximum entropy model, and their values in each row as short text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.base.background import column_values
from mixent.core.arrays import Array
from mixent.data import Schema, Table
from mixent.maxent.terms import Binned, Coded, Crossed, CrossedDense, Grouped, Probabilistic

MISSING = "missing"


def row_values(terms: Sequence[Any], table: Table, absent: str) -> list[list[str]]:
    """A text for each term in each row; `absent` is the text for a probabilistic feature that is missing."""
    columns = [_values(term, table, absent) for term in terms]
    return [list(row) for row in zip(*columns)] if columns else [[] for _ in range(table.n_rows)]


@dataclass(frozen=True)
class ColumnParts:
    """The parts of an explanation: the terms of a model, those of one column of the user's table together.

    A date, or a column of numbers with frequent words, becomes several columns of the model.
    """

    names: tuple[str, ...]  # (P,)
    of_terms: Array  # (terms, P) 1 where a term belongs to a part
    inputs: tuple[int | None, ...]  # (P,) position among the columns in use of one that has become several; else None

    @classmethod
    def of(cls, terms: Sequence[Any], schema: Schema) -> ColumnParts:
        """The parts of these terms of a table."""
        owners = [_divided_input(term, schema) for term in terms]
        keys = [term.name if i is None else schema.used[i].name for term, i in zip(terms, owners)]
        inputs = dict(zip(keys, owners))
        names = tuple(inputs)
        of_terms = np.array([[float(key == name) for name in names] for key in keys]).reshape(len(keys), len(names))
        return cls(names, of_terms, tuple(inputs.values()))

    def values(self, terms: Sequence[Any], table: Table, absent: str) -> list[list[str]]:
        """A text for each part in each row: of the term, or what the user gave in a column that has become several."""
        of_terms, first = row_values(terms, table, absent), self.of_terms.argmax(axis=0)
        given = column_values(table) if any(i is not None for i in self.inputs) else of_terms
        return [
            [texts[t] if i is None else cells[i] for t, i in zip(first, self.inputs)]
            for texts, cells in zip(of_terms, given)
        ]


def _divided_input(term: Any, schema: Schema) -> int | None:
    """The one column of the user's table that a term is computed from, if it has become several; else None."""
    owners = {int(schema.owners[j]) for j in _columns(term, schema)}
    i = owners.pop() if len(owners) == 1 else None
    return i if i is not None and len(schema.used[i].columns) > 1 else None


def _columns(term: Any, schema: Schema) -> list[int]:
    """The columns of the model that a term is computed from."""
    if isinstance(term, (Crossed, CrossedDense)):
        return _columns(term.first, schema) + _columns(term.second, schema)
    if isinstance(term, Coded):
        return [schema.categorical[term.column]]
    places = term.columns if isinstance(term, (Grouped, Probabilistic)) else (term.column,)
    return [schema.continuous[place] for place in places]


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
