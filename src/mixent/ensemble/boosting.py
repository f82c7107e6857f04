"""Base class of boosted classifiers: initial weights, training of stages, staged predictions, shift of priors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from mixent.base.background import ExplainedByColumn
from mixent.base.capabilities import LEFT_OUT, able, no, of_bases, yes
from mixent.base.classifier import ProbabilisticClassifier
from mixent.base.params import check_count
from mixent.base.priors import floored
from mixent.base.progress import progress_bar
from mixent.core.arrays import Array
from mixent.data import Labels, Table, categorical_of, keep_notes, read_features, read_labels, read_weights
from mixent.ensemble.base_estimators import HALF, Trainer, read_base
from mixent.warn import warn

FAINT = 1e-6  # weight of a vote that is no better than chance: it determines the label, with no confidence
NO_ERROR = "stage {} has no training errors"
NO_BETTER = "stage {} has a weighted error of {:.3g}, at least one half, and was discarded"
ALONE = "the first stage has a weighted error of at least one half and is used alone"


@dataclass(frozen=True)
class Rows:
    """Labelled rows of positive weight."""

    X: Table
    codes: np.ndarray  # (n,) position among the classes
    weight: Array  # (n,) sums to one
    total: float  # sum of the weights as given
    classes: np.ndarray  # (C,)

    @property
    def least_error(self) -> float:
        """The error that replaces an error of 0: half the average weight of a row."""
        return 0.5 / max(self.total, float(len(self.codes)))

    @property
    def shares(self) -> Array:
        """(C,) weighted frequency of each class."""
        return np.bincount(self.codes, self.weight, len(self.classes)).astype(float)


def read_rows(X: Table, labels: Labels, weight: Array | None) -> Rows:
    """The labelled rows of positive weight."""
    if labels.codes is None:
        raise ValueError(
            "boosting requires labels, but y holds label probabilities; give one label per row, for example the most "
            "probable, with its probability as sample_weight"
        )
    keep = labels.codes >= 0 if weight is None else (labels.codes >= 0) & (weight > 0)
    present, codes = np.unique(labels.codes[keep], return_inverse=True)
    if len(present) < 2:
        raise ValueError(
            f"a classifier needs rows of at least 2 classes with sample_weight > 0; got {len(present)}; "
            "give rows of another class a positive weight"
        )
    if not keep.all():
        X = X.take(np.flatnonzero(keep))
    counts = np.ones(len(codes)) if weight is None else weight[keep]
    total = float(counts.sum())
    return Rows(X, codes, counts / total, total, labels.classes[present])


def log_odds(error: float) -> float:
    """ln((1 - e) / e)."""
    return float(np.log1p(-error) - np.log(error))


def run_stages(
    trainer: Trainer,
    y: np.ndarray,
    weight: Array,
    n_stages: int,
    least: float,
    show: Any,
    add: Callable[..., Array],
    restart: Callable[[int], Array] | None = None,
) -> str | None:
    """Train the stages one after the other; return why boosting stopped early, or None.

    Parameters
    ----------
    trainer : Trainer
    y : (n,) labels
    weight : (n,) array
        Weights of the first stage, which sum to one.
    n_stages : int
    least : float
        Errors below this count as zero.
    show : callable(number, text) or None
    add : callable(stage, wrong, error, weight)
        Adds a stage that misclassifies the rows `wrong` (n,), with weighted error `error`, and returns the weights of
        the next stage.
    restart : callable(number), optional
        Returns the weights of this stage where boosting would stop.
    """
    for number in range(n_stages):
        stage, wrong = trainer.stage(number, y, weight)
        if weight[wrong].sum() >= HALF and number > 0 and restart is not None:
            weight = restart(number)
            stage, wrong = trainer.stage(number, y, weight)
        error = float(weight[wrong].sum())
        if show is not None:
            show(number, f"stage {number + 1}, weighted error {error:.3g}")
        if error >= HALF and number > 0:
            return NO_BETTER.format(number + 1, error)
        weight = add(stage, wrong, error, weight)
        if error >= HALF:
            return ALONE
        if error < least:
            if restart is None:
                return NO_ERROR.format(number + 1)
            weight = restart(number + 1)
    return None


class BaseBoosting(ExplainedByColumn, ProbabilisticClassifier, ABC):
    """Base of boosted classifiers; a subclass trains the stages (`_boost`) and sums their votes (`_staged_joint`)."""

    estimator: Any
    n_estimators: int
    resample: Any
    random_state: Any
    progress: Any
    prior_shift_: Array  # (C,) added to log p(class, x) by adjust_priors

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the stages, one after the other.

        Parameters
        ----------
        X : table of n rows
            Array or DataFrame, passed to the base classifiers; it may have categories and missing values if they are
            supported by the base classifier.
        y : (n,) labels
            Unlabelled rows (None, NaN or "") are left out.
        sample_weight : (n,) array, optional
            Initial weights. Without resampling, a weight of 2 is equivalent to repeating the row.

        Returns
        -------
        self
        """
        base = read_base(self.estimator)
        n_stages = check_count("n_estimators", self.n_estimators)
        self._check()
        table = read_features(self, X, reset=True, categorical=categorical_of(X))
        labels = read_labels(y, table.n_rows)
        keep_notes(self, table, labels, quiet=isinstance(X, Table))
        rows = read_rows(table, labels, read_weights(sample_weight, table.n_rows))
        self._keep_background(rows.X, rows.weight)
        trainer = Trainer.of(base, rows.X, rows.total, n_stages, self.resample, self.random_state)
        with progress_bar(self.progress, "boosting") as show:
            self._boost(rows, trainer, n_stages, show)
        self.schema_, self.classes_, self.class_prior_ = table.schema, rows.classes, rows.shares
        self.prior_shift_ = np.zeros(len(rows.classes))
        if (first := max(self._first_errors())) >= HALF:
            warn(
                f"the first {type(base).__name__} has a weighted training error of {first:.3g}, but boosting requires "
                f"less than one half; it is used alone; choose a stronger base classifier{self._alternative()}"
            )
        return self

    def _check(self) -> None:
        """Check the parameters of the subclass."""

    @abstractmethod
    def _boost(self, rows: Rows, trainer: Trainer, n_stages: int, show: Any) -> None:
        """Train and store the stages."""

    @abstractmethod
    def _first_errors(self) -> list[float]:
        """Weighted error of the first stage of each ensemble."""

    def _alternative(self) -> str:
        """Another classifier to recommend if the first stage is too weak."""
        return ""

    @abstractmethod
    def stage_proba(self, X: Any) -> Array:
        """Predictions of every stage, (M, n, C)."""

    @abstractmethod
    def _staged_joint(self, X: Table) -> Iterator[Array]:
        """log p(class, x) up to a constant of the row, (n, C), after every stage, without any shift of priors.

        The next stage may overwrite the array.
        """

    @abstractmethod
    def _joint(self, X: Table) -> Array:
        """The last value of `_staged_joint`."""

    def _read(self, X: Any) -> Table:
        check_is_fitted(self)
        return read_features(self, X, reset=False)

    def _log_joint(self, X: Any) -> Array:
        return self._joint(self._read(X)) + self.prior_shift_

    def decision_function(self, X: Any) -> Array:
        """The decision function.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n,) array with half the log-odds of the second class if there are two; otherwise (n, C), of which the largest
        value in a row determines the class.
        """
        check_is_fitted(self)
        joint = self._log_joint(X)
        return (joint[:, 1] - joint[:, 0]) / 2 if joint.shape[1] == 2 else joint

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """Class probabilities after every stage.

        Parameters
        ----------
        X : table of n rows

        Yields
        ------
        (n, C) array; the last is `predict_proba`.
        """
        for joint in self._staged_joint(self._read(X)):
            yield softmax(joint + self.prior_shift_, axis=1)

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Predicted labels after every stage.

        Parameters
        ----------
        X : table of n rows

        Yields
        ------
        (n,) array of class labels; the last is `predict`.
        """
        for joint in self._staged_joint(self._read(X)):
            yield self.classes_[(joint + self.prior_shift_).argmax(axis=1)]

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """Accuracy after every stage.

        Parameters
        ----------
        X : table of n rows
        y : (n,) labels
        sample_weight : (n,) array, optional

        Yields
        ------
        float; the last is `score`.
        """
        from sklearn.metrics import accuracy_score  # loads much else, hence only when used

        for label in self.staged_predict(X):
            yield float(accuracy_score(y, label, sample_weight=sample_weight))

    def _set_class_prior(self, prior: Array) -> None:
        prior = floored(prior)
        self.prior_shift_ = self.prior_shift_ + np.log(prior) - np.log(self.class_prior_)
        self.class_prior_ = prior

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.estimator is None or get_tags(self.estimator).input_tags.allow_nan
        return able(
            tags,
            reads_tables=True,
            missing="as the base classifier handles them",
            weights=yes("a base classifier without sample_weight is trained on rows drawn by weight"),
            soft_labels=no("use the most probable label, with its probability as weight"),
            absent_labels=LEFT_OUT,
            **of_bases([] if self.estimator is None else [self.estimator]),
        )
