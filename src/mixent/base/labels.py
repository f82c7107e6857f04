"""Labels of any dtype, some of them absent: which rows are labelled, which classes there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def labelled_rows(y: Any) -> np.ndarray:
    """Mask of the rows whose label is present: not None, not NaN (nor NaT, NA), not blank."""
    y = as_labels(y)
    if y.dtype.kind in "biu":
        return np.ones(len(y), dtype=bool)
    if y.dtype.kind == "f":
        return ~np.isnan(y)
    return np.array([not _absent(value) for value in y], dtype=bool)


def as_labels(y: Any) -> np.ndarray:
    """`y` as a one-dimensional numpy array; lists with None keep it."""
    if isinstance(y, list | tuple) and any(_absent(value) for value in y):
        y = np.array([None if _absent(value) else value for value in y], dtype=object)
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(f"y must hold one label per row; it has shape {y.shape}")
    return y


def plain_dtype(values: np.ndarray) -> np.ndarray:
    """Labels kept as objects, as the numbers or strings they are (scikit-learn refuses numbers in an object array)."""
    if values.dtype.kind != "O":
        return values
    kinds = {type(value) for value in values.tolist()}
    if len(kinds) > 1 and str in kinds:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(f"the labels in y mix text and other types ({names}); write all of them as text")
    return np.array(values.tolist())


def classes_of(y: Any) -> np.ndarray:
    """Sorted classes among the labelled rows."""
    y = as_labels(y)
    present = plain_dtype(y[labelled_rows(y)])
    if not len(present):
        raise ValueError("y holds no label: every row is None, NaN or blank")
    return np.unique(present)


def encode(y: Any, classes: Sequence | np.ndarray) -> np.ndarray:
    """Index of every label in `classes`; an absent or unknown label is an error that names its row."""
    y = as_labels(y)
    index = {key(value): i for i, value in enumerate(classes)}
    if len(index) != len(classes):
        raise ValueError(f"classes must differ from each other; got {list(map(key, classes))}")
    codes = np.array([index.get(key(value), -1) for value in y], dtype=np.intp)
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        if _absent(y[row]):
            raise ValueError(f"row {row} of y has no label; score labelled rows only (y[labelled_rows(y)])")
        raise ValueError(
            f"row {row} of y has the label {key(y[row])!r}, which is not among the classes {list(map(key, classes))}"
        )
    return codes


def key(value: Any) -> Any:
    """A label as a Python value, so that 1, 1.0 and numpy's 1 are one class."""
    return value.item() if isinstance(value, np.generic) else value


def _absent(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, str):
        return not value.strip()
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA: its comparison has no truth value
        return True
