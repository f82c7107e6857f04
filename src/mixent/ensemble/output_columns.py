"""A classifier whose outputs are columns of the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from mixent.base.options import Estimator
from mixent.core.arrays import Array
from mixent.data import missing_mask
from mixent.ensemble.pmfs import PMF, one_hot, pmf

MOST_FRACTIONS = 10  # numbers that are not whole among labels


class OutputColumns(ClassifierMixin, Estimator):
    """A classifier whose outputs are columns of the table: they are read, nothing is trained.

    Parameters
    ----------
    columns : str, int, list or dict
        One column: the label it gave to each row, of any alphabet ("unsure" is a label like others). A list: its
        probabilities of the classes, in the order of the sorted classes. A dict: label -> column of probabilities; one
        class may be left out, whose probability is the rest. A blank is an abstention.

    Attributes
    ----------
    classes_ : (V,) array
        Its labels.

    Examples
    --------
    >>> import numpy as np
    >>> from mixent.ensemble import OutputColumns
    >>> X = np.array([[0.2, 0.8], [0.9, 0.1]])
    >>> OutputColumns([0, 1]).fit(X, ["no", "yes"]).predict(X).tolist()
    ['yes', 'no']
    """

    def __init__(self, columns: Any) -> None:
        self.columns = columns

    def fit(self, X: Any, y: Any) -> Self:
        """Learn which labels there are.

        Parameters
        ----------
        X : table of n rows
        y : (n,) labels

        Returns
        -------
        self
        """
        if self._hard:
            said = _column(X, self.columns)
            present = said[~missing_mask(said)]
            if not len(present):
                raise ValueError(f"column {self.columns!r} is blank in every row; there is nothing to learn from")
            self.classes_ = alphabet(present.tolist())
            self._check_labels()
            return self
        classes = np.unique(y)
        if isinstance(self.columns, Mapping):
            left = [c for c in classes.tolist() if c not in self.columns]
            strange = [c for c in self.columns if c not in classes.tolist()]
            self.classes_ = alphabet([*self.columns, *left] if len(left) == 1 and not strange else self.columns)
            return self
        if len(self.columns) != len(classes):
            raise ValueError(
                f"{len(self.columns)} columns of probabilities {list(self.columns)!r} for {len(classes)} classes; give "
                "one for each class, in sorted order, or a dict label -> column"
            )
        self.classes_ = classes
        return self

    def _check_labels(self) -> None:
        """Numbers of which there are so many are probabilities or scores, and no labels."""
        fractions = [v for v in self.classes_.tolist() if isinstance(v, float) and not v.is_integer()]
        if len(fractions) > MOST_FRACTIONS:
            raise ValueError(
                f"column {self.columns!r} holds {len(self.classes_)} different numbers, such as {fractions[0]:g}: they "
                "are no labels. Name probabilities by a list with a column for each class, in sorted order, or by a "
                "dict label -> column, which may leave out one class"
            )

    @property
    def _hard(self) -> bool:
        return isinstance(self.columns, (str, int, np.integer))

    @property
    def used(self) -> tuple:
        """The columns that are read."""
        if self._hard:
            return (self.columns,)
        return tuple(self.columns.values() if isinstance(self.columns, Mapping) else self.columns)

    def predict_proba(self, X: Any) -> Array:
        """The output for each row.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n, V) array in the order of `classes_`; NaN where the output is missing, or a label never seen before.
        """
        check_is_fitted(self)
        if self._hard:
            return one_hot(_column(X, self.columns), self.classes_)
        named = (
            dict(self.columns) if isinstance(self.columns, Mapping) else dict(zip(self.classes_.tolist(), self.columns))
        )
        order = list(named.values())
        given = {label: _numbers(X, column) for label, column in named.items()}
        rest = 1.0 - sum(given.values())  # of the one class that may be left out
        rest = np.where(np.abs(rest) < PMF, 0.0, rest)
        proba = np.column_stack([given.get(label, rest) for label in self.classes_.tolist()])
        gone, some = np.isnan(proba).all(axis=1), np.isnan(proba).any(axis=1)
        if (some & ~gone).any():
            row = int(np.flatnonzero(some & ~gone)[0])
            raise ValueError(
                f"the probabilities in {list(order)!r} must be blank together; row {row} has {proba[row].tolist()}"
            )
        return pmf(proba, ", ".join(map(str, order)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def predict(self, X: Any) -> np.ndarray:
        """The most probable label of each row.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n,) array; None where the output is missing.
        """
        proba = self.predict_proba(X)
        absent = np.isnan(proba).any(axis=1)
        said = self.classes_[np.where(np.isnan(proba), 0.0, proba).argmax(axis=1)]
        if not absent.any():
            return said
        said = said.astype(object)
        said[absent] = None
        return said


def alphabet(labels: Iterable[Any]) -> np.ndarray:
    """The different labels, sorted; numbers before text where there are both, each as it is."""
    different = set(labels)
    if len({isinstance(label, str) for label in different}) == 1:
        return np.array(sorted(different))
    out = np.empty(len(different), dtype=object)
    out[:] = sorted(different, key=lambda label: (isinstance(label, str), label))
    return out


def _column(X: Any, column: Any) -> np.ndarray:
    try:
        return np.asarray(_safe_indexing(X, column, axis=1), dtype=object)
    except (KeyError, IndexError, ValueError) as error:
        raise ValueError(f"X has no column {column!r}, which an ensemble's outputs should stand in") from error


def _numbers(X: Any, column: Any) -> Array:
    values = _column(X, column)
    try:
        return np.where(missing_mask(values), np.nan, values).astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"column {column!r} must hold probabilities; {error}") from error
