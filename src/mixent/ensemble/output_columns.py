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

MAX_FRACTIONS = 10  # most labels that are not integers


class OutputColumns(ClassifierMixin, Estimator):
    """A classifier whose predictions are columns of the table; nothing is trained.

    It is an element of a stacking model: a classifier that is not available itself, but whose labels or probabilities
    are [1]_. Predictions are read from the table; the maximum entropy model of `MaxEntStackingClassifier` weights them.

    Parameters
    ----------
    columns : str, int, list or dict
        One column: the predicted label of each row; labels need not be classes ("unsure" is a label like any other). A
        list of columns: the probabilities of the classes in sorted order. A dict: label -> column of probabilities; one
        class may be left out, whose probability is the remainder. A missing value is an abstention.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Labels of the classifier.

    See Also
    --------
    MaxEntStackingClassifier : Combines classifiers, some of which may be output columns.
    HMMStackingClassifier : Combines classifiers by hidden Markov models.
    sklearn.frozen.FrozenEstimator : Wrapper of a fitted classifier that is not trained again.

    References
    ----------
    .. [1] Pal, S. (2006). Maximum Entropy and Improved Iterative Scaling for Classification on Mixed Spaces, Ensemble
       Classification and Extensions. PhD thesis, The Pennsylvania State University. Section 3.2.1 (document 004).

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
        """Determine the labels.

        Parameters
        ----------
        X : table of n rows
        y : (n,) labels

        Returns
        -------
        self
        """
        if self._hard:
            labels = _column(X, self.columns)
            present = labels[~missing_mask(labels)]
            if not len(present):
                raise ValueError(f"column {self.columns!r} is missing in every row; leave this classifier out")
            self.classes_ = sorted_labels(present.tolist())
            self._check_labels()
            return self
        classes = np.unique(y)
        if isinstance(self.columns, Mapping):
            omitted = [c for c in classes.tolist() if c not in self.columns]
            unknown = [c for c in self.columns if c not in classes.tolist()]
            complete = len(omitted) == 1 and not unknown
            self.classes_ = sorted_labels([*self.columns, *omitted] if complete else self.columns)
            return self
        if len(self.columns) != len(classes):
            raise ValueError(
                f"columns must hold one column of probabilities for each of {len(classes)} classes, in sorted order; "
                f"got {list(self.columns)!r}; give {len(classes)} columns, or a dict label -> column"
            )
        self.classes_ = classes
        return self

    def _check_labels(self) -> None:
        """Refuse a column with many fractions, which are probabilities or scores rather than labels."""
        fractions = [v for v in self.classes_.tolist() if isinstance(v, float) and not v.is_integer()]
        if len(fractions) > MAX_FRACTIONS:
            raise ValueError(
                f"column {self.columns!r} must hold labels; got {len(self.classes_)} different numbers, such as "
                f"{fractions[0]:g}; give probabilities as a list with one column for each class, in sorted order, or "
                "as a dict label -> column, which may leave out one class"
            )

    @property
    def _hard(self) -> bool:
        return isinstance(self.columns, (str, int, np.integer))

    @property
    def used(self) -> tuple:
        """The columns that hold the predictions."""
        if self._hard:
            return (self.columns,)
        return tuple(self.columns.values() if isinstance(self.columns, Mapping) else self.columns)

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the labels.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n, V) array in the order of `classes_`; NaN where the prediction is missing or an unknown label.
        """
        check_is_fitted(self)
        if self._hard:
            return one_hot(_column(X, self.columns), self.classes_)
        named = (
            dict(self.columns) if isinstance(self.columns, Mapping) else dict(zip(self.classes_.tolist(), self.columns))
        )
        order = list(named.values())
        given = {label: _numbers(X, column) for label, column in named.items()}
        remainder = 1.0 - sum(given.values())  # probability of the class that may be left out
        remainder = np.where(np.abs(remainder) < PMF, 0.0, remainder)
        proba = np.column_stack([given.get(label, remainder) for label in self.classes_.tolist()])
        missing = np.isnan(proba)
        partly_missing = missing.any(axis=1) & ~missing.all(axis=1)
        if partly_missing.any():
            row = int(np.flatnonzero(partly_missing)[0])
            raise ValueError(
                f"the probabilities in {list(order)!r} must be missing together; row {row} has {proba[row].tolist()}"
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
        (n,) array; None where the prediction is missing.
        """
        proba = self.predict_proba(X)
        absent = np.isnan(proba).any(axis=1)
        labels = self.classes_[np.where(np.isnan(proba), 0.0, proba).argmax(axis=1)]
        if not absent.any():
            return labels
        labels = labels.astype(object)
        labels[absent] = None
        return labels


def sorted_labels(labels: Iterable[Any]) -> np.ndarray:
    """The distinct labels, sorted; numbers before text."""
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
        raise ValueError(f"X has no column {column!r}, which should hold the outputs of a classifier") from error


def _numbers(X: Any, column: Any) -> Array:
    values = _column(X, column)
    try:
        return np.where(missing_mask(values), np.nan, values).astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"column {column!r} must hold probabilities; {error}") from error
