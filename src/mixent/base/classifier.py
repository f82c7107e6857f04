"""Probabilities, decisions and prior correction, the same for every classifier."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import YES, able
from mixent.base.document import Content, Number, Table
from mixent.base.options import Estimator
from mixent.base.priors import shifted_priors
from mixent.base.result import MOST_ROWS, Result
from mixent.core.arrays import Array, log_sum_exp
from mixent.data import Origin, known_labels, labelled_rows
from mixent.warn import warn


@dataclass(frozen=True, repr=False)
class Decision(Result):
    """What to do with each row, and what it is expected to cost."""

    _title = "Decisions"

    labels: np.ndarray  # (n,) chosen class, None where rejected
    expected_cost: Array  # (n,)
    rejected: np.ndarray  # (n,) bool
    origin: Origin = field(default=Origin(), compare=False)  # of the rows

    def _brief(self) -> str:
        n, cost = len(self.labels), float(np.mean(self.expected_cost)) if len(self.labels) else float("nan")
        return f"{n} rows, {int(np.sum(self.rejected))} rejected, mean expected cost={cost:.4g}"

    def _content(self) -> list[Content]:
        rows = zip(self.labels.tolist(), self.expected_cost.tolist(), self.rejected.tolist())
        cells: list[list[Any]] = [["rejected" if no else str(label), Number(f"{cost:.4g}")] for label, cost, no in rows]
        return [Table("Decision for each row", ["class", "expected cost"], cells[:MOST_ROWS])]

    def frame(self) -> Any:
        """The decisions as a DataFrame of the library of the rows, with their index: label, expected_cost, rejected."""
        columns = {"label": self.labels, "expected_cost": self.expected_cost, "rejected": self.rejected}
        return self.origin.frame(columns)


class ProbabilisticClassifier(ClassifierMixin, Estimator):
    """Everything that follows from log p(class, x).

    A subclass gives `_log_joint(X) -> (n, C)` and sets `classes_` and `class_prior_` (C,).
    """

    classes_: np.ndarray
    class_prior_: Array

    def __sklearn_tags__(self):
        return able(super().__sklearn_tags__(), shifted_priors=YES, saved=YES)

    def _log_joint(self, X: Any) -> Array:
        raise AttributeError(f"{type(self).__name__} must define _log_joint")

    def predict_log_proba(self, X: Any) -> Array:
        """Log probabilities of the classes, in nats.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n, C) array, columns in the order of `classes_`.
        """
        return self._log_posterior(X)

    def _log_posterior(self, X: Any) -> Array:
        """log p(class | x) of the model, from which `predict_log_proba` may differ by a share of the uniform."""
        joint = self._finite_joint(X)
        return joint - log_sum_exp(joint, axis=1)[:, None]

    def _finite_joint(self, X: Any) -> Array:
        """log p(class, x); a row so far out that no class has a density left falls back on the priors."""
        check_is_fitted(self)
        joint = self._log_joint(X)
        lost = ~np.isfinite(joint.max(axis=1)) | np.isnan(joint).any(axis=1)
        if lost.any():
            joint[lost] = np.log(np.maximum(self.class_prior_, 1e-300))
        return joint

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n, C) array, columns in the order of `classes_`; rows sum to 1.
        """
        proba = np.exp(self.predict_log_proba(X))
        return proba / proba.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n,) array of class labels.
        """
        best = self._finite_joint(X).argmax(axis=1)
        return self.classes_[best]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows whose most probable class is the true one.

        Parameters
        ----------
        X : table of n rows
        y : (n,) array of class labels
            Rows without a label (None, NaN or blank text) are left out.
        sample_weight : (n,) array, optional

        Returns
        -------
        float
        """
        return share_right(y, self.predict(X), sample_weight)

    def decision(self, X: Any, costs: Any = None, *, reject: float | None = None) -> Decision:
        """Choose the class of least expected cost, or none.

        Parameters
        ----------
        X : table of n rows
        costs : (C, C) array, optional
            `costs[i, j]` is the cost of predicting class i when the true class is j, in the order of `classes_`; a
            DataFrame is read by its row and column names. Default: 1 for any error.
        reject : float, optional
            The cost of not deciding. A row whose best class is expected to cost more is rejected.

        Returns
        -------
        Decision
            labels (None where rejected), expected_cost, rejected.
        """
        decision = least_cost(self.predict_proba(X), self.classes_, costs, reject)
        return replace(decision, origin=Origin.of(X))

    def adjust_priors(self, X: Any, *, tol: float = 1e-9, max_iter: int = 5000) -> Self:
        """A copy of this classifier for a batch whose class priors have shifted.

        Estimates the batch's priors from unlabelled rows by EM, assuming that p(x | class) has not changed.

        Parameters
        ----------
        X : table of unlabelled rows
        tol, max_iter
            When EM stops.

        Returns
        -------
        A copy with `class_prior_` of the batch; `prior_run_` states how EM ended.
        """
        if not isinstance(max_iter, Integral) or max_iter < 1:
            raise ValueError(f"max_iter must be a whole number >= 1; got {max_iter!r}")
        if not isinstance(tol, Real) or not 0 <= tol < np.inf:
            raise ValueError(f"tol must be a number >= 0; got {tol!r}")
        log_ratio = self._log_posterior(X) - np.log(np.maximum(self.class_prior_, 1e-300))
        shift = shifted_priors(
            log_ratio, np.full(len(self.classes_), 1 / len(self.classes_)), tol=tol, max_iter=max_iter
        )
        if not shift.status.ok:
            warn(f"adjust_priors did not converge: {shift.message}", ConvergenceWarning)
        other = copy.deepcopy(self)
        other._set_class_prior(shift.params)
        other.prior_run_ = replace(shift, last=None)
        return other

    def _set_class_prior(self, prior: Array) -> None:
        self.class_prior_ = prior


def least_cost(proba: Array, classes: np.ndarray, costs: Any = None, reject: float | None = None) -> Decision:
    """The class of least expected cost for each row, or none; see `ProbabilisticClassifier.decision`."""
    risk = proba @ _read_costs(costs, classes).T  # (n, actions)
    choice, least = risk.argmin(axis=1), risk.min(axis=1)
    labels = classes[choice]
    rejected = np.zeros(len(proba), dtype=bool)
    if reject is not None:
        if not isinstance(reject, Real) or not np.isfinite(reject):
            raise ValueError(f"reject must be a finite cost; got {reject!r}")
        rejected = least > reject
        labels = labels.astype(object)
        labels[rejected] = None
        least = np.minimum(least, reject)
    return Decision(labels, least, rejected)


def share_right(y: Any, predicted: np.ndarray, sample_weight: Any) -> float:
    """Accuracy on the labelled rows; labels of another type are refused, where scikit-learn before 1.9 returns 0."""
    from sklearn.metrics import accuracy_score  # takes long to import

    if np.ndim(y) == 1 and not (known := labelled_rows(y)).all():
        y, predicted = known_labels(y), predicted[known]
        sample_weight = None if sample_weight is None else np.asarray(sample_weight)[known]
    share = float(accuracy_score(y, predicted, sample_weight=sample_weight))
    unique_labels(y, predicted)
    return share


def _read_costs(costs: Any, classes: np.ndarray) -> Array:
    n_classes = len(classes)
    if costs is None:
        return 1.0 - np.eye(n_classes)
    if hasattr(costs, "columns") and hasattr(costs, "index"):
        names = classes.tolist()
        if set(costs.columns) != set(names) or set(costs.index) != set(names):
            raise ValueError(f"the rows and columns of costs must be named by the classes {names}")
        costs = costs.loc[names, names].to_numpy()
    wanted = f"costs must be a {n_classes} x {n_classes} table of numbers, costs[predicted, true]"
    try:
        table = np.asarray(costs)
        if table.dtype.kind not in "biufO":
            raise TypeError(f"it holds {table.dtype}")
        table = table.astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{wanted}; got {costs!r}") from error
    if table.shape != (n_classes, n_classes):
        raise ValueError(f"{wanted}; got shape {table.shape}")
    if not np.isfinite(table).all():
        predicted, true = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(f"costs must be finite numbers; costs[{predicted}, {true}] is {table[predicted, true]}")
    return table
