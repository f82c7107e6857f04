"""The door for class labels: known, soft or absent, of any type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from mixent.data.frames import check_names, is_frame, unwrapped
from mixent.data.numbers import DASHES
from mixent.data.soft import read_probabilities
from mixent.data.values import MISSING_MARKERS, families, family, listed, missing_mask, spelled_alike
from mixent.show import Short


@dataclass(frozen=True, repr=False)
class Labels(Short):
    """What is known of each row's class, as a likelihood over the classes.

    Parameters
    ----------
    classes : ndarray, shape (C,)
        The original label values, sorted as `numpy.unique` does.
    likelihood : ndarray of float64, shape (n, C)
        One-hot for a known label, probabilities for a soft one, all ones for an absent one.
    codes : ndarray of int32, shape (n,), or None
        Position among the classes, -1 for absent; None when any label is soft.
    notes : tuple of str
        What is unusual in the labels.
    """

    _shown = ("classes", "likelihood")

    classes: np.ndarray  # (C,)
    likelihood: np.ndarray  # (n, C)
    codes: np.ndarray | None  # (n,)
    notes: tuple[str, ...] = ()

    @property
    def known(self) -> np.ndarray:
        """(n,) whether the row has a label, certain or not."""
        return self.likelihood.min(axis=1) < 1.0 if self.codes is None else self.codes >= 0

    @property
    def n_absent(self) -> int:
        """Number of rows without a label."""
        return int((~self.known).sum())

    @property
    def all_hard_and_known(self) -> bool:
        """Whether every row has one certain label."""
        return self.codes is not None and self.n_absent == 0

    def values(self, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Certain labels of some rows, as `fit` takes them; None where a label is absent."""
        assert self.codes is not None
        codes = self.codes[rows]
        if (codes >= 0).all():
            return self.classes[codes]
        return np.array([self.classes[code] if code >= 0 else None for code in codes], dtype=object)


def read_labels(y: Any, n_rows: int, *, classes: Any = None, some: bool = True) -> Labels:
    """Check y once and turn it into label likelihoods.

    Parameters
    ----------
    y : array-like of shape (n,), or array-like or DataFrame of shape (n, C)
        1-D: labels of any type; None, NaN, NA and blank text mean that the label is absent.
        2-D, C >= 2: label probabilities; the columns of a DataFrame are the classes, those of an array
        are 0 to C - 1. A row of NaN or of ones is an absent label.
    n_rows : int
        Rows of X.
    classes : array-like of shape (C,), default None
        The classes, when they are known beforehand; else those found in y.
    some : bool, default True
        Whether at least one row must have a label.

    Returns
    -------
    Labels

    Raises
    ------
    ValueError
        If y is missing, has another length, is continuous, or names fewer than two classes.

    Examples
    --------
    >>> from mixent.data import read_labels
    >>> labels = read_labels(["b", None, "a"], 3)
    >>> labels.classes.tolist(), labels.codes.tolist(), labels.likelihood.tolist()
    (['a', 'b'], [1, -1, 0], [[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    """
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    if issparse(y):
        raise TypeError("Sparse data was passed for y, but dense data is required. Use '.toarray()' to convert it.")
    if classes is not None:
        classes = np.unique(classes)
    columns, values = _open(unwrapped(y))
    if values.ndim == 0:
        raise ValueError(f"y must hold one label per row; got a single {type(y).__name__}")
    if values.ndim > 2 or 0 in values.shape[1:]:
        raise ValueError(
            f"y should be a 1d array of labels, or have a column of probabilities per class; got shape {values.shape}"
        )
    check_consistent_length(range(n_rows), values)
    if values.ndim == 2 and values.shape[1] > 1:
        return _enough(Labels(*read_probabilities(values, columns, classes)), given=classes is not None)
    return _enough(_read_hard(column_or_1d(values, warn=True), classes, some), given=classes is not None)


def rare(labels: Labels, min_rows: float) -> dict:
    """Return the classes with less than `min_rows` labelled rows.

    Parameters
    ----------
    labels : Labels
    min_rows : float

    Returns
    -------
    dict
        Class value to its (for soft labels, expected) number of rows.
    """
    known = labels.likelihood[labels.known]
    rows = known.sum(axis=0)
    return {label_value(c): float(n) for c, n in zip(labels.classes, rows) if n < min_rows}


def as_labels(y: Any) -> np.ndarray:
    """Labels of any container as a one-dimensional array of their own type."""
    values = _open(unwrapped(y))[1]
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"y must hold one label per row; it has shape {values.shape}")
    return values


def labelled_rows(y: Any) -> np.ndarray:
    """Mask of the rows whose label is present: not None, NaN, NA or blank text.

    Parameters
    ----------
    y : (n,) labels

    Returns
    -------
    (n,) array of bool
    """
    y = as_labels(y)
    return ~missing_mask(y if y.dtype.kind in "biuf" else y.astype(object))


def known_labels(y: Any) -> np.ndarray:
    """Labels of the labelled rows, in their natural type."""
    y = as_labels(y)
    known = labelled_rows(y)
    if not known.any():
        raise ValueError("y holds no label: every row is None, NaN or blank")
    return _present(y, ~known)


def classes_of(y: Any) -> np.ndarray:
    """Sorted classes among the labelled rows."""
    return np.unique(known_labels(y))


def encode(y: Any, classes: Sequence | np.ndarray) -> np.ndarray:
    """Position of every label among `classes`; an absent or unknown label is an error that names its row."""
    y, names = as_labels(y), [label_value(value) for value in classes]
    index = {value: i for i, value in enumerate(names)}
    if len(index) != len(names):
        raise ValueError(f"classes must differ from each other; got {names}")
    codes = np.array([index.get(value, -1) for value in y.tolist()], dtype=np.intp)
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        if not labelled_rows(y[row : row + 1])[0]:
            raise ValueError(f"row {row} of y has no label; score labelled rows only (y[labelled_rows(y)])")
        raise ValueError(
            f"row {row} of y has the label {label_value(y[row])!r}, which is not among the classes {names}"
        )
    return codes


def label_value(value: Any) -> Any:
    """A label as a Python value, so that 1, 1.0 and numpy's 1 are one class."""
    return value.item() if isinstance(value, np.generic) else value


def _open(y: Any) -> tuple[list | None, np.ndarray]:
    """Any container as (column names or None, array of 1 or 2 dimensions)."""
    if is_frame(y):
        import narwhals.stable.v1 as nw

        columns = check_names(y)
        frame = nw.from_native(y, eager_only=True)
        lists = [series.to_list() for series in frame.iter_columns()]
        return columns, _tidy(np.array(lists, dtype=object).reshape(len(columns), len(frame)).T)
    if getattr(getattr(y, "dtype", None), "kind", "O") in "biuf" and isinstance(y.dtype, np.dtype):
        return None, np.asarray(y)
    if isinstance(y, (list, tuple)) or type(y).__module__.split(".")[0] in ("pandas", "polars", "pyarrow"):
        values = y.to_pylist() if hasattr(y, "to_pylist") else list(y)
        return None, _tidy(_object_array(values))
    return None, np.asarray(y)


def _object_array(values: Sequence) -> np.ndarray:
    if values and isinstance(values[0], (list, tuple, np.ndarray)):
        return np.array(values, dtype=object)
    return np.fromiter(values, dtype=object, count=len(values))


def _tidy(values: np.ndarray) -> np.ndarray:
    """An object array in its natural type when nothing is missing and one family fits all."""
    types = families(values.ravel())
    if types <= {"whole"} or types <= {"whole", "number"} or types <= {"boolean"} or types <= {"text"}:
        return np.array(values.tolist()) if values.size else values.astype(np.float64)
    return values


def _read_hard(y: np.ndarray, classes: np.ndarray | None, some: bool) -> Labels:
    _check_kind(y)
    absent = missing_mask(y.astype(object) if y.dtype.kind in "UO" else y)
    if absent.all() and not some and classes is not None:
        return Labels(classes, np.ones((len(y), len(classes))), np.full(len(y), -1, np.int32))
    if absent.all():
        raise ValueError(f"every label in y is absent (all {len(y)} rows); label some rows of each class")
    present = _present(y, absent)
    check_classification_targets(present)
    distinct, places = np.unique(present, return_inverse=True)
    codes = np.full(len(y), -1, np.int32)
    notes: tuple[str, ...] = ()
    if classes is None:
        classes, notes = distinct, _notes(distinct, np.bincount(places))
    codes[~absent] = _places_in(classes, distinct)[places]
    likelihood = np.zeros((len(y), len(classes)))
    likelihood[absent] = 1.0
    known = np.flatnonzero(~absent)
    likelihood[known, codes[known]] = 1.0
    return Labels(classes, likelihood, codes, notes)


def _notes(classes: np.ndarray, counts: np.ndarray) -> tuple[str, ...]:
    """What is unusual in the labels: a class of one row, spellings, and what marks absent labels elsewhere."""
    notes = []
    single = classes[counts == 1].tolist()
    if single and len(single) < len(classes):
        what = "class {} has" if len(single) == 1 else "classes {} have"
        notes.append(what.format(listed(single)) + " one row only; kept")
    if classes.dtype.kind == "i" and classes[0] == -1 and classes.tolist() != [-1, 1]:
        notes.append("y holds -1, which is taken as a class; mark rows without a label by None or NaN")
    if classes.dtype.kind == "U":
        alike = spelled_alike(classes.tolist())
        if alike:
            notes.append(
                f"y has spellings that differ by case or blanks only: {alike}. They are kept as different classes; "
                "spell them alike if they mean the same"
            )
        markers = [name for name in classes.tolist() if name.strip() in (*MISSING_MARKERS, *DASHES)]
        if markers and "+" not in classes:  # beside which - is a class
            notes.append(
                f"y holds {listed(markers)}, which looks like a marker of missing values and is taken as a class; mark "
                "rows without a label by None or NaN"
            )
    return tuple(notes)


def _check_kind(y: np.ndarray) -> None:
    if y.dtype.kind == "c":
        raise ValueError("Complex data not supported: y holds complex numbers; give class labels")
    if y.dtype.kind not in "biufUO":
        raise ValueError(f"Unknown label type: y is an array of {y.dtype}; give text, integers or bool")


def _present(y: np.ndarray, absent: np.ndarray) -> np.ndarray:
    """Known labels in their natural type: missing labels turn integers into floats or objects, which is undone here."""
    present = y[~absent]
    if y.dtype.kind == "O":
        types = families(present)
        if not (types == {"text"} or types == {"boolean"} or types <= {"whole", "number"}):
            raise ValueError(_mixed(present, types))
        present = np.array(present.tolist())
        if present.dtype.kind == "O":  # decimals, fractions, integers of more than 64 bits
            raise ValueError(f"Unknown label type: y holds numbers such as {present[0]!r}; give them as text")
    if present.dtype.kind != "f":
        return present
    if np.isinf(present).any():
        row = int(np.flatnonzero(~absent)[np.isinf(present)][0])
        raise ValueError(f"Input y contains infinity: row {row} holds {y[row]}; give a label, or NaN for absent")
    whole = absent.any() and np.all(present == np.rint(present)) and np.all(np.abs(present) < 2.0**53)
    return present.astype(np.int64) if whole else present


def _mixed(present: np.ndarray, types: set[str]) -> str:
    if len(types) == 1:
        return f"Unknown label type: y holds {type(present[0]).__name__} values; give text, integers or bool"
    examples = {family(type(value)): value for value in reversed(present.tolist())}
    shown = ", ".join(repr(value) for value in examples.values())
    return f"Unknown label type: y mixes labels of different types ({shown}); make them all text or all integers"


def _places_in(classes: np.ndarray, values: np.ndarray) -> np.ndarray:
    place = {value: i for i, value in enumerate(classes.tolist())}
    strange = [value for value in values.tolist() if value not in place]
    if strange:
        raise ValueError(f"y holds the label {strange[0]!r}, which is none of the classes [{listed(classes.tolist())}]")
    return np.array([place[value] for value in values.tolist()], np.int32)


def _enough(labels: Labels, given: bool) -> Labels:
    if given:
        return labels
    held = labels.classes[labels.likelihood[labels.known].sum(axis=0) > 0]
    if len(held) < 2:
        raise ValueError(
            f"a classifier needs at least 2 classes; y has {len(held)} class: {label_value(held[0])!r}; "
            f"check the target column, or label rows of another class"
        )
    return labels
