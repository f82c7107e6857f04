"""Label probabilities: an (n, C) table of the probability of each class in each row."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.data.values import is_missing

SUM_TOLERANCE = 1e-6


def read_probabilities(
    values: np.ndarray, columns: list | None, classes: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Check a table of label probabilities.

    Parameters
    ----------
    values : ndarray, shape (n, C)
    columns : list or None
        Names of the columns: the classes.
    classes : ndarray, shape (C,), or None
        The classes, when they are known beforehand.

    Returns
    -------
    classes : ndarray, shape (C,)
    likelihood : ndarray, shape (n, C)
    codes : ndarray of int32, shape (n,), or None
    """
    names, order = _classes(values.shape[1], columns, classes)
    likelihood = _numbers(values, names[np.argsort(order)].tolist())[:, order]
    absent = np.isnan(likelihood).all(axis=1) | (likelihood == 1.0).all(axis=1)
    _check_rows(likelihood, absent, names)
    if absent.all():
        raise ValueError(f"every label in y is absent (all {len(absent)} rows); label some rows of each class")
    likelihood[absent] = 1.0
    likelihood[~absent] /= likelihood[~absent].sum(axis=1, keepdims=True)
    return names, likelihood, _codes(likelihood, absent)


def _classes(n_columns: int, columns: list | None, classes: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Sorted classes, and the order that sorts the columns."""
    if columns is None:
        names = np.arange(n_columns) if classes is None else classes
        order = np.arange(len(names))
    else:
        if any(is_missing(name) for name in columns):
            raise ValueError(f"a label column of y has no name ({columns}); name each column by its class")
        if len({isinstance(name, str) for name in columns}) > 1:
            raise ValueError(f"the label columns of y mix text and other names ({columns}); make them all text")
        names, order = np.unique(np.array(columns), return_index=True)
    if len(names) != n_columns or (classes is not None and not np.array_equal(names, classes)):
        known = None if classes is None else classes.tolist()
        raise ValueError(f"y has {n_columns} label columns ({names.tolist()}), but the classes are {known}")
    return names, order


def _numbers(values: np.ndarray, names: list) -> np.ndarray:
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    if values.dtype.kind not in "OU":
        raise ValueError(
            f"y has {values.shape[1]} columns, so it must hold label probabilities; it holds {values.dtype}"
        )
    columns = []
    for j, name in enumerate(names):
        try:
            columns.append([_number(value) for value in values[:, j]])
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"y has {values.shape[1]} columns, so it must hold label probabilities, one column per class; "
                f"column {name!r} does not hold numbers; for plain labels pass one column"
            ) from error
    return np.column_stack(columns)


def _number(value: Any) -> float:
    if isinstance(value, str) and not is_missing(value):
        raise TypeError(f"{value!r} is text")
    return np.nan if is_missing(value) else float(value)


def _check_rows(likelihood: np.ndarray, absent: np.ndarray, names: np.ndarray) -> None:
    sums = likelihood.sum(axis=1)
    faults = (
        (np.isnan(sums), "has some probabilities missing; give all, or none for an absent label"),
        ((likelihood < 0).any(axis=1), "has a negative probability; they must be >= 0"),
        (~(np.abs(sums - 1.0) <= SUM_TOLERANCE), "does not sum to 1; divide each row by its sum"),
    )
    for wrong, what in faults:
        rows = np.flatnonzero(wrong & ~absent)
        if len(rows):
            row = int(rows[0])
            shown = ", ".join(f"{name}: {p:.3g}" for name, p in zip(names.tolist()[:5], likelihood[row]))
            raise ValueError(f"label probabilities in y: row {row} ({shown}) {what}")


def _codes(likelihood: np.ndarray, absent: np.ndarray) -> np.ndarray | None:
    hard = likelihood.max(axis=1) == 1.0
    if not (hard | absent).all():
        return None
    return np.where(absent, -1, likelihood.argmax(axis=1)).astype(np.int32)
