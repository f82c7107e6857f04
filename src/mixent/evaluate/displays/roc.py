"""ROC curves of several models, or of several classes, in one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.utils.validation import _check_response_method

from mixent.base.delegation import check_provides, has_classes
from mixent.base.displays import Display, computed, draws
from mixent.base.style import FAINT, beside_width, class_style, legend, plain
from mixent.base.text import class_name
from mixent.data import row_weights
from mixent.data.labels import as_labels, classes_of, label_value, labelled_rows
from mixent.show import Short

MOST_INSIDE = 6  # entries of the legend that fit below the curves


@dataclass(repr=False)
class RocCurve(Short):
    """One curve, from (0, 0) to (1, 1): a point for each threshold."""

    fpr: np.ndarray  # false positive rate
    tpr: np.ndarray  # true positive rate
    auc: float  # area under the curve


@dataclass(repr=False)
class RocCurvesDisplay(Display):
    """ROC curves of several models on the same rows, or of each class against the others.

    Draws with `sklearn.metrics.RocCurveDisplay`, which takes one binary problem; this display computes the scores of
    several models, of several classes, and of detectors, and leaves out rows without a label. The score of a classifier
    is the log-odds of the class against all others (with two classes, `decision_function` where there is one), that of
    a detector `score_samples`.
    """

    curves: dict[str, RocCurve]
    pos_label: Any  # the positive class; None where every class has a curve

    @classmethod
    @draws
    def from_estimators(
        cls,
        models: Mapping[str, Any],
        X: Any,
        y: ArrayLike,
        *,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """The curve of each model.

        Parameters
        ----------
        models : dict of name -> fitted classifier or detector
        X : table
            Rows that were not used for fitting.
        y : (n,) labels
            Rows without a label are left out. For a detector: which rows are typical.
        pos_label : label, optional
            The positive class, for a detector that of the typical rows (default: the second of two).
        sample_weight : (n,) array, optional
        """
        if not isinstance(models, Mapping) or not models:
            raise ValueError("models must be a dict of fitted models by name, with one at least")
        pos_label = _positive(y, pos_label)
        scores = {name: _scores(name, est, X, pos_label) for name, est in models.items()}
        return computed(cls.from_predictions, y, scores, pos_label=pos_label, sample_weight=sample_weight)

    @classmethod
    @draws
    def from_predictions(
        cls,
        y: ArrayLike,
        scores: ArrayLike | Mapping[str, ArrayLike],
        *,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """The curve of each vector of scores.

        Parameters
        ----------
        y : (n,) labels
        scores : (n,) array, or dict of name -> (n,) array
            High for the positive class.
        pos_label : label, optional
            The positive class (default: the second of two).
        sample_weight : (n,) array, optional
        """
        labels, pos_label = as_labels(y), _positive(y, pos_label)
        known = labelled_rows(labels)
        positive = np.array([label_value(value) == pos_label for value in labels[known]])
        weight = row_weights(sample_weight, len(labels))[known]
        named = scores if isinstance(scores, Mapping) else {"scores": scores}
        return cls({name: _curve(name, values, known, positive, weight) for name, values in named.items()}, pos_label)

    @classmethod
    @draws
    def from_classes(
        cls,
        y: ArrayLike,
        proba: ArrayLike,
        classes: Sequence[Any] | np.ndarray,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """The curve of each class in `y` against all others.

        Parameters
        ----------
        y : (n,) labels
        proba : (n, C) array
        classes : C labels, in the order of the columns of `proba`
        sample_weight : (n,) array, optional
        """
        labels, proba = as_labels(y), np.asarray(proba, dtype=float)
        if proba.shape != (len(labels), len(classes)):
            raise ValueError(f"proba must have shape {(len(labels), len(classes))}, rows by classes; got {proba.shape}")
        present, curves = _two_or_more(labels), {}
        for c, label in enumerate(classes):
            if label_value(label) in present:
                display = computed(
                    cls.from_predictions, labels, log_odds(proba, c), pos_label=label, sample_weight=sample_weight
                )
                curves[class_name(label)] = display.curves["scores"]
        return cls(curves, None)

    def size(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""
        names = [f"{plain(name, 32)} (AUC = 0.99)" for name in self.curves]
        return 4.9 + (beside_width(names) if len(names) > MOST_INSIDE else 0.0), 4.7

    def _draw(self, ax: Any) -> None:
        from sklearn.metrics import RocCurveDisplay  # takes long to import

        curves, styles = list(self.curves.values()), [class_style(i) | {"alpha": 1.0} for i in range(len(self.curves))]
        display = RocCurveDisplay(
            fpr=[curve.fpr for curve in curves],
            tpr=[curve.tpr for curve in curves],
            roc_auc=[curve.auc for curve in curves],
            name=[plain(name, 32) for name in self.curves],
            pos_label=None if self.pos_label is None else plain(self.pos_label, 24),
        )
        chance = {"color": FAINT, "lw": 0.8, "ls": "-", "zorder": 1, "label": None}
        display.plot(
            ax,
            curve_kwargs=styles if len(styles) > 1 else styles[0],
            plot_chance_level=True,
            chance_level_kw=chance,
            despine=True,
        )
        legend(ax, len(curves), beside=len(curves) > MOST_INSIDE, loc="lower right")


def _two_or_more(y: ArrayLike) -> list[Any]:
    """The labels in y, two at least."""
    classes = [label_value(value) for value in classes_of(y)]
    if len(classes) < 2:
        raise ValueError(f"a ROC curve needs rows of two classes; all labels in y are {classes[0]!r}")
    return classes


def _positive(y: ArrayLike, pos_label: Any) -> Any:
    classes = _two_or_more(y)
    if pos_label is None:
        if len(classes) > 2:
            raise ValueError(f"y has {len(classes)} classes; pos_label must be one of {classes}")
        return classes[-1]
    if label_value(pos_label) not in classes:
        raise ValueError(f"pos_label must be one of the labels in y, {classes}; got {pos_label!r}")
    return label_value(pos_label)


def _scores(name: str, est: Any, X: Any, pos_label: Any) -> np.ndarray:
    """(n,) high for the positive class."""
    if not has_classes(est):
        check_provides(est, ("score_samples",), f"{name!r} is neither a classifier nor a detector with score_samples")
        return np.asarray(est.score_samples(X))
    check_provides(est, ("classes_",), "fit it first")
    labels = [label_value(value) for value in est.classes_]
    if pos_label not in labels:
        raise ValueError(f"{name!r} has no class {pos_label!r}; it was fitted to {labels}")
    c = labels.index(pos_label)
    wanted = ["decision_function"] if len(labels) == 2 else []
    response = _check_response_method(est, [*wanted, "predict_log_proba", "predict_proba"])
    values = np.asarray(response(X))
    if response.__name__ == "decision_function":
        return values * (1.0 if c else -1.0)
    return log_odds(values, c) if response.__name__ == "predict_proba" else _against_others(values, c)


def log_odds(proba: np.ndarray, c: int) -> np.ndarray:
    """(n,) log p(c) / p(not c) of probabilities (n, C): ranks rows whose probabilities round to one."""
    with np.errstate(divide="ignore"):
        return _against_others(np.log(proba), c)


def _against_others(log_proba: np.ndarray, c: int) -> np.ndarray:
    return log_proba[:, c] - logsumexp(np.delete(log_proba, c, axis=1), axis=1)


def _curve(name: str, scores: ArrayLike, known: np.ndarray, positive: np.ndarray, weight: np.ndarray) -> RocCurve:
    from sklearn.metrics import auc, roc_curve  # takes long to import

    values = np.asarray(scores, dtype=float)
    if values.shape != known.shape:
        raise ValueError(f"scores of {name!r} must be one number per row, {len(known)}; got shape {values.shape}")
    values = values[known]
    if np.isnan(values).any():
        row = int(np.flatnonzero(known)[np.argmax(np.isnan(values))])
        raise ValueError(f"scores of {name!r} must be numbers; row {row} has none")
    ranks = np.unique(values, return_inverse=True)[1]  # an impossible row has log-probability -inf
    fpr, tpr, _ = roc_curve(positive, ranks, sample_weight=weight)
    return RocCurve(fpr, tpr, float(auc(fpr, tpr)))
