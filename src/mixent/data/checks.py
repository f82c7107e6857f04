"""Checks on a finished Table: values no model can use, and problems worth reporting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from mixent.data.encode import enumerated
from mixent.data.scan import is_number
from mixent.data.schema import Column, Schema
from mixent.data.table import Table
from mixent.warn import HOW_TO_DROP

TINY = 1e-140  # the square of a millionth of it is still above zero
MANY_CATEGORIES = 50
MOSTLY_MISSING = 0.5
MOSTLY_NUMBERS = 0.8
PROBE_ROWS = 1000  # most columns are decided by their first rows
LOOKS_LIKE = "looks like"  # in messages about columns that identify the rows
MANY_ROWS = 10  # fewer consecutive numbers may well be an accident


def check_spread(table: Table) -> None:
    """Raise on columns that vary, but by less than a variance can express.

    Parameters
    ----------
    table : Table
        As it came to fit a model of variances; at predict any spread will do.
    """
    spread = _spread(table.X[:PROBE_ROWS])
    small = ~(spread >= TINY)
    spread[small] = _spread(table.X[:, small])
    for place in np.flatnonzero((spread > 0) & (spread < TINY))[:1]:
        name = table.schema.columns[table.schema.continuous[place]].name
        raise ValueError(
            f"column {name!r} varies by only {spread[place]:.3g}, too little (squares underflow below {TINY:g}); "
            f"rescale the column or drop it"
        )


def _spread(X: np.ndarray) -> np.ndarray:
    """(d,) the range of each column; NaN without values."""
    return np.asarray(np.fmax.reduce(X, axis=0) - np.fmin.reduce(X, axis=0))


def problems(table: Table, categorical: Collection[str] = ()) -> list[str]:
    """Describe the problems of a table that make a model of it unreliable.

    Parameters
    ----------
    table : Table
    categorical : sequence of str
        Columns the user listed as categorical; that their values look like numbers is then no problem.

    Returns
    -------
    list of str
        One sentence per problem, with the column and the remedy; empty when there is none.
    """
    messages = [
        f"column name {name!r} is used {count} times: rename"
        for name, count in Counter(table.schema.names).items()
        if count > 1
    ]
    for place, j in enumerate(table.schema.continuous):
        values = table.X[:, place]
        messages += _column_problems(table.schema.columns[j], values[~np.isnan(values)], table.n_rows)
        if _is_row_number(table.schema.columns[j], values):
            name = table.schema.columns[j].name
            messages.append(f"column {name!r} {LOOKS_LIKE} a row number; {drop_it(table.schema, name)}")
    for place, j in enumerate(table.schema.categorical):
        values = table.column_codes(place)
        column = table.schema.columns[j]
        odd = [] if column.name in categorical else _odd_words(column)
        messages += _column_problems(column, values[values >= 0], table.n_rows, odd)
    return messages


def constants(table: Table) -> tuple[str, ...]:
    """A sentence that lists the columns of the user's table with one value only; none for a table of one row."""
    if table.n_rows < 2:
        return ()
    values = {j: table.X[:, place] for place, j in enumerate(table.schema.continuous)}
    values |= {j: table.column_codes(place) for place, j in enumerate(table.schema.categorical)}
    names = [repr(given.name) for given in table.schema.used if all(_is_constant(values[j]) for j in given.columns)]
    return (f"constant; kept, but can be dropped: {enumerated(names)}",) if names else ()


def _is_constant(values: np.ndarray) -> bool:
    """Whether floats or codes have one value only, not counting missing ones."""
    for part in (values[:PROBE_ROWS], values):
        present = part[part >= 0] if part.dtype.kind == "i" else part[~np.isnan(part)]
        if len(present) and present.min() < present.max():
            return False
    return len(present) > 0


def few_numbers(table: Table, most: int = 3) -> dict[str, list[int]]:
    """Find columns of numbers that hold only a few whole ones: such as codes do.

    Parameters
    ----------
    table : Table
    most : int
        Most different values.

    Returns
    -------
    dict of column name -> its values
    """
    columns = {}
    for place, j in enumerate(table.schema.continuous):
        values = table.X[:, place]
        present = values[~np.isnan(values)]
        if len(present) < MANY_ROWS or len(np.unique(present[:PROBE_ROWS])) > most:
            continue
        distinct = np.unique(present)
        if 1 < len(distinct) <= most and (distinct == np.rint(distinct)).all():
            columns[table.schema.columns[j].name] = [int(value) for value in distinct]
    return columns


def _column_problems(column: Column, present: np.ndarray, n_rows: int, odd: Sequence[str] = ()) -> list[str]:
    if len(present) == 0:
        return [f"column {column.name!r} has no values: drop it"]
    messages = []
    if len(present) < MOSTLY_MISSING * n_rows:
        messages.append(
            f"column {column.name!r} is {100 * (1 - len(present) / n_rows):.0f} % missing: it will contribute little"
        )
    if odd:
        return [*messages, _mostly_numbers(column, odd)]
    size = len(column.categories)
    if size > MANY_CATEGORIES or size > max(2, n_rows / 2):
        messages.append(
            f"column {column.name!r} has {size} categories in {n_rows} rows: "
            f"group the rare ones, or drop it if it is an identifier"
        )
    return messages


def _odd_words(column: Column) -> list[str]:
    """The values that are no numbers, where most are: one bad cell makes a column of numbers text."""
    if not column.categories or not all(isinstance(value, str) for value in column.categories):
        return []
    odd = [value for value in column.categories if not is_number(value)]
    return odd if len(odd) <= (1 - MOSTLY_NUMBERS) * len(column.categories) + 1e-9 else []


def _mostly_numbers(column: Column, odd: Sequence[str], most: int = 3) -> str:
    size = len(column.categories)
    words = ", ".join(map(repr, odd[:most])) + (", ..." if len(odd) > most else "")
    return (
        f"column {column.name!r} is text because of {words}; {size - len(odd)} of its {size} values are numbers; "
        f"correct them, or list it as categorical"
    )


def _is_row_number(column: Column, values: np.ndarray) -> bool:
    if column.kind != "integer" or len(values) < MANY_ROWS or np.isnan(values).any():
        return False
    return bool((np.diff(np.sort(values)) == 1).all())


def drop_it(schema: Schema, name: str) -> str:
    """What to do about a column that should not be a feature: in Python, or on the command line."""
    return f"drop it with {HOW_TO_DROP.get()(name)}" if schema.named else "drop it"


def flagged(names: Iterable[str], messages: Sequence[str]) -> list[str]:
    """The columns which the messages call a row number or an identifier."""
    return [name for name in names if any(text.startswith(f"column {name!r} {LOOKS_LIKE} ") for text in messages)]
