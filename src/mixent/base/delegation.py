"""Handing rows and weights to another estimator, of any library, and reading its probabilities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import has_fit_parameter

from mixent.base.capabilities import tags_of
from mixent.core.arrays import Array
from mixent.data import Table


def reads_tables(estimator: Any) -> bool:
    """Whether `fit` and the methods of a fitted estimator take a `mixent.data.Table` that has been read already."""
    tags = tags_of(estimator)
    return tags is not None and tags.reads_tables


def features_for(estimator: Any, X: Any) -> Any:
    """The rows as an estimator takes them: of a Table, itself or the user's rows behind it."""
    return X.given if isinstance(X, Table) and not reads_tables(estimator) else X


def check_classifier(name: str, value: Any) -> None:
    """Refuse what is not an estimator, or is the class of one.

    Parameters
    ----------
    name : str
        Of the argument, for the message.
    value : what the user gave
    """
    if isinstance(value, type) or not callable(getattr(value, "fit", None)):
        what = f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
        raise TypeError(f"{name} must be a classifier, not fitted; got {what}")


def by_class_name(estimators: Iterable[Any]) -> dict[str, Any]:
    """Estimators by the names of their classes; the second one of a class `A` is called "A 2"."""
    named: dict[str, Any] = {}
    counts: Counter[str] = Counter()
    for estimator in estimators:
        name = type(estimator).__name__
        counts[name] += 1
        named[name if counts[name] == 1 else f"{name} {counts[name]}"] = estimator
    return named


def has_classes(value: Any) -> bool:
    """Whether a value is a classifier by scikit-learn's tags; without tags it is not."""
    return hasattr(value, "__sklearn_tags__") and is_classifier(value)


def check_provides(model: Any, names: Iterable[str], advice: str) -> None:
    """Refuse an estimator without a method or fitted attribute that is needed.

    Parameters
    ----------
    model : estimator of any library
    names : methods or attributes
    advice : str
        What to do instead.
    """
    for name in names:
        if not hasattr(model, name):
            raise TypeError(f"{type(model).__name__} has no {name}; {advice}")


def has_stages(estimator: Any) -> bool:
    """Whether a boosted classifier, once fitted, gives its probabilities after every stage."""
    return hasattr(estimator, "staged_predict_proba")


def weight_argument(estimator: Any) -> str | None:
    """Name under which `fit` takes weights; None if it takes none. A pipeline hands them to its last step."""
    steps = getattr(estimator, "steps", None)
    if steps:
        inner = weight_argument(steps[-1][1])
        return None if inner is None else f"{steps[-1][0]}__{inner}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def weight_arguments(estimator: Any, weight: Array | None) -> dict[str, Array]:
    """What to add to the arguments of `fit`: nothing without weights, or where it takes none."""
    name = None if weight is None else weight_argument(estimator)
    return {} if name is None or weight is None else {name: weight}


def aligned(proba: Array, labels: np.ndarray, classes: np.ndarray) -> Array:
    """Probabilities of `labels`, (n, V), as columns in the order of `classes`, among which the labels are.

    Classes that are not a label get 0; a row with NaN, which is not an answer, becomes NaN throughout.
    """
    if len(labels) == len(classes) and (labels == classes).all():
        return proba
    column = {label: j for j, label in enumerate(classes.tolist())}
    out = np.zeros((len(proba), len(classes)))
    out[:, [column[label] for label in labels.tolist()]] = proba
    out[np.isnan(proba).any(axis=1)] = np.nan
    return out


def aligned_proba(model: Any, X: Any, classes: np.ndarray, *, decisions: bool = False) -> np.ndarray:
    """Probabilities of a fitted classifier, (n, C) in the order of `classes`; 0 for classes it has not seen.

    Parameters
    ----------
    model : fitted classifier
    X : table of n rows, or Table
    classes : (C,) array
    decisions : bool
        Whether the labels of a classifier without predict_proba count as certain; otherwise that is an error.
    """
    X, classes = features_for(model, X), np.asarray(classes)
    if hasattr(model, "predict_proba"):
        return aligned(np.asarray(model.predict_proba(X), dtype=float), np.asarray(model.classes_), classes)
    if not decisions:
        raise TypeError(f"{type(model).__name__} has no predict_proba; wrap it in sklearn's CalibratedClassifierCV")
    return np.eye(len(classes))[places(model.predict(X), classes)]


def places(values: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """(n,) position of each label among the sorted classes."""
    return np.searchsorted(classes, np.asarray(values).astype(classes.dtype, copy=False))
