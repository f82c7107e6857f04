"""How many rows of a class are found, at the price of how many others: several models on the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import logsumexp

from mixent.base.style import FAINT, Short, axes_or_new, beside_width, class_style, legend, plain, tidy
from mixent.base.text import class_name
from mixent.data import row_weights
from mixent.data.labels import as_labels, classes_of, label_value, labelled_rows

MOST_INSIDE = 6  # entries of the legend that fit below the curves


@dataclass(repr=False)
class Roc(Short):
    """One curve, from (0, 0) to (1, 1): a point for each threshold."""

    false: np.ndarray  # share of the other rows that score more
    true: np.ndarray  # share of the class's own
    auc: float  # area below: the share of pairs, one row of the class and one other, that are ranked rightly


@dataclass(repr=False)
class RocDisplay(Short):
    """Receiver operating characteristics: rows of one class found, against others taken for it, at every threshold.

    Of classifiers the score is the log-odds of the class against all others (of two classes `decision_function`, where
    there is one); of detectors, and whatever else has no classes, `score_samples`: the typical rows are to be found.
    """

    curves: dict[str, Roc]
    positive: Any  # the class that is to be found; None: each is named by its curve
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    @classmethod
    def from_estimator(cls, est: Any, X: Any, y: Any, *, positive: Any = None, sample_weight: Any = None):
        """Of one fitted model; see `from_estimators`."""
        name = type(est).__name__
        return cls.from_estimators({name: est}, X, y, positive=positive, sample_weight=sample_weight)

    @classmethod
    def from_estimators(
        cls, models: Mapping[str, Any], X: Any, y: Any, *, positive: Any = None, sample_weight: Any = None
    ):
        """Of fitted models on rows they should not have been fitted to.

        Parameters
        ----------
        models : dict
            Fitted classifiers and detectors, by name.
        X : table
        y : (n,) labels
            Rows without one are left out. For a detector: what tells typical rows from others.
        positive : label, optional
            The class to be found, of a detector that of the typical rows; by default the second of two.
        sample_weight : (n,) array, optional
        """
        if not isinstance(models, Mapping) or not models:
            raise ValueError("models must be a dict of fitted models by name, with one at least")
        positive = _wanted(y, positive)
        scores = {name: _scores(name, est, X, positive) for name, est in models.items()}
        return cls.from_predictions(y, scores, positive=positive, sample_weight=sample_weight)

    @classmethod
    def from_predictions(cls, y: Any, scores: Any, *, positive: Any = None, sample_weight: Any = None):
        """Of scores (n,), high for the class `positive`; or of a dict of such scores by name."""
        y, positive = as_labels(y), _wanted(y, positive)
        known = labelled_rows(y)
        hit = np.array([label_value(value) == positive for value in y[known]])
        weight = row_weights(sample_weight, len(y))[known]
        named = scores if isinstance(scores, Mapping) else {"scores": scores}
        return cls({name: _curve(name, one, known, hit, weight) for name, one in named.items()}, positive)

    @classmethod
    def from_classes(cls, y: Any, proba: Any, classes: Any, *, sample_weight: Any = None):
        """Of probabilities (n, C): a curve for each class that y has, against all others."""
        y, proba = as_labels(y), np.asarray(proba, dtype=float)
        if proba.shape != (len(y), len(classes)):
            raise ValueError(f"proba must have shape {(len(y), len(classes))}, rows by classes; got {proba.shape}")
        there, curves = [label_value(value) for value in classes_of(y)], {}
        if len(there) < 2:
            raise ValueError(f"a curve needs rows of two kinds; all labels in y are {there[0]!r}")
        for c, label in enumerate(classes):
            if label_value(label) in there:
                one = cls.from_predictions(y, log_odds(proba, c), positive=label, sample_weight=sample_weight)
                curves[class_name(label)] = one.curves["scores"]
        return cls(curves, None)

    def size(self) -> tuple[float, float]:
        """Inches the picture needs."""
        said = self._said()
        return 4.9 + (beside_width(said) if len(said) > MOST_INSIDE else 0.0), 4.7

    def _said(self) -> list[str]:
        return [f"{plain(name, 32)}, AUC {curve.auc:.3f}" for name, curve in self.curves.items()]

    def plot(self, ax: Any = None):
        """Draw the curves, the area below each in the legend."""
        said = self._said()
        ax = axes_or_new(ax, self.size())
        ax.plot([0, 1], [0, 1], color=FAINT, lw=0.8, zorder=1)
        for i, curve in enumerate(self.curves.values()):
            ax.plot(curve.false, curve.true, label=said[i], zorder=3, **class_style(i))
        called = "the class" if self.positive is None else plain(class_name(self.positive), 24).strip()
        ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
        ax.set(xlabel=f"share of the others taken for {called}", ylabel=f"share of {called} found")
        legend(ax, len(said), beside=len(said) > MOST_INSIDE, loc="lower right")
        tidy(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _wanted(y: Any, positive: Any) -> Any:
    """The label of the class to be found."""
    classes = [label_value(value) for value in classes_of(y)]
    if len(classes) < 2:
        raise ValueError(f"a curve needs rows of two kinds; all labels in y are {classes[0]!r}")
    if positive is None:
        if len(classes) > 2:
            raise ValueError(f"y has {len(classes)} classes; say which is to be found: positive= one of {classes}")
        return classes[-1]
    if label_value(positive) not in classes:
        raise ValueError(f"positive must be one of the labels in y, {classes}; got {positive!r}")
    return label_value(positive)


def _scores(name: str, est: Any, X: Any, positive: Any) -> np.ndarray:
    """(n,) high for the class `positive`."""
    if not hasattr(est, "classes_"):
        if not hasattr(est, "score_samples"):
            raise ValueError(f"{name!r} has neither classes_ nor score_samples; give a fitted classifier or detector")
        return np.asarray(est.score_samples(X))
    classes = [label_value(value) for value in est.classes_]
    if positive not in classes:
        raise ValueError(f"{name!r} does not know the class {positive!r}; it was fitted to {classes}")
    c = classes.index(positive)
    if len(classes) == 2 and hasattr(est, "decision_function"):
        return np.asarray(est.decision_function(X)) * (1.0 if c else -1.0)
    return _log_odds(est, X, c)


def _log_odds(est: Any, X: Any, c: int) -> np.ndarray:
    """(n,) log p(c | x) / p(not c | x): ranks rows apart that are all but certain."""
    with np.errstate(divide="ignore"):
        log_proba = est.predict_log_proba(X) if hasattr(est, "predict_log_proba") else np.log(est.predict_proba(X))
    return _against_others(np.asarray(log_proba), c)


def log_odds(proba: np.ndarray, c: int) -> np.ndarray:
    """(n,) log p(c) / p(not c) of probabilities (n, C)."""
    with np.errstate(divide="ignore"):
        return _against_others(np.log(proba), c)


def _against_others(log_proba: np.ndarray, c: int) -> np.ndarray:
    return log_proba[:, c] - logsumexp(np.delete(log_proba, c, axis=1), axis=1)


def _curve(name: str, scores: Any, known: np.ndarray, hit: np.ndarray, weight: np.ndarray) -> Roc:
    from sklearn.metrics import auc, roc_curve  # takes long to import

    scores = np.asarray(scores, dtype=float)
    if scores.shape != known.shape:
        raise ValueError(f"scores of {name!r} must be one number per row, {len(known)}; got shape {scores.shape}")
    scores = scores[known]
    if np.isnan(scores).any():
        row = int(np.flatnonzero(known)[np.argmax(np.isnan(scores))])
        raise ValueError(f"scores of {name!r} must be numbers; row {row} has none")
    order = np.unique(scores, return_inverse=True)[1]  # ranks: an impossible row has log-probability -inf
    false, true, _ = roc_curve(hit, order, sample_weight=weight)
    return Roc(false, true, float(auc(false, true)))
