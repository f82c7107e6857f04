"""The base of boosted classifiers: reading rows, initial weights, staged predictions, the shift of priors."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import LEFT_OUT, able, no, of_bases, yes
from mixent.base.classifier import ProbabilisticClassifier
from mixent.base.params import check_count
from mixent.base.priors import floored
from mixent.base.progress import progress_bar
from mixent.core.arrays import Array
from mixent.data import Labels, Table, categorical_of, read_features, read_labels, read_weights
from mixent.ensemble.base_estimators import HALF, Trainer, read_base

FAINT = 1e-6  # weight of a vote that is no better than chance: it decides, and contributes nothing
NO_ERROR = "stage {} makes no error: no weight is left to move"
NO_BETTER = "stage {} errs on {:.3g} of the weight, at least half: it is left out"
ALONE = "the first stage errs on at least half of the weight: it is used alone"


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
        """Half a row's share of the weight: what stands for an error of 0."""
        return 0.5 / max(self.total, float(len(self.codes)))

    @property
    def shares(self) -> Array:
        """(C,) weight of each class."""
        return np.bincount(self.codes, self.weight, len(self.classes)).astype(float)


def read_rows(X: Table, labels: Labels, weight: Array | None) -> Rows:
    """Leave out rows without a label and rows of weight 0."""
    if labels.codes is None:
        raise ValueError(
            "y holds probabilities of labels, and boosting counts errors; give one label per row, "
            "such as the most probable, with its probability as sample_weight"
        )
    keep = labels.codes >= 0 if weight is None else (labels.codes >= 0) & (weight > 0)
    found, codes = np.unique(labels.codes[keep], return_inverse=True)
    if len(found) < 2:
        raise ValueError(
            f"a classifier needs at least 2 classes; {len(found)} have a row of sample_weight > 0; "
            "give rows of another class some weight"
        )
    if not keep.all():
        X = X.take(np.flatnonzero(keep))
    counts = np.ones(len(codes)) if weight is None else weight[keep]
    total = float(counts.sum())
    return Rows(X, codes, counts / total, total, labels.classes[found])


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
    take: Callable[..., Array],
    fresh: Callable[[int], Array] | None = None,
) -> str | None:
    """Train stage after stage; why that ended early, or None.

    Parameters
    ----------
    trainer : Trainer
    y : (n,) labels
    weight : (n,) array
        Of the first stage; sums to one.
    n_stages : int
    least : float
        The error that counts as none.
    show : callable(number, text) or None
    take : callable(stage, wrong, error, weight)
        Keeps a stage that gets the rows `wrong` (n,) wrong, with a share `error` of the weight, and returns the weights
        of the next.
    fresh : callable(number), optional
        Weights with which the stage of this number begins anew, where boosting would end.
    """
    for number in range(n_stages):
        stage, wrong = trainer.stage(number, y, weight)
        if weight[wrong].sum() >= HALF and number > 0 and fresh is not None:
            weight = fresh(number)
            stage, wrong = trainer.stage(number, y, weight)
        error = float(weight[wrong].sum())
        if show is not None:
            show(number, f"stage {number + 1}, weighted error {error:.3g}")
        if error >= HALF and number > 0:
            return NO_BETTER.format(number + 1, error)
        weight = take(stage, wrong, error, weight)
        if error >= HALF:
            return ALONE
        if error < least:
            if fresh is None:
                return NO_ERROR.format(number + 1)
            weight = fresh(number + 1)
    return None


class BaseBoosting(ProbabilisticClassifier, ABC):
    """A subclass trains its stages (`_boost`) and adds them up (`_staged_joint`)."""

    estimator: Any
    n_estimators: int
    resample: Any
    random_state: Any
    progress: Any
    prior_shift_: Array  # (C,) what adjust_priors adds to log p(class, x)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the stages, one after the other.

        Parameters
        ----------
        X : table of n rows
            Array or DataFrame, handed to the bases as it is; it may have categories and missing values if the base
            takes them.
        y : (n,) labels
            Rows without a label (None, NaN or "") are left out.
        sample_weight : (n,) array, optional
            Where the weights of boosting start. Unless rows are resampled, a weight of 2 is equivalent to repeating the
            row.

        Returns
        -------
        self
        """
        base = read_base(self.estimator)
        n_stages = check_count("n_estimators", self.n_estimators)
        self._check()
        table = read_features(self, X, reset=True, categorical=categorical_of(X))
        rows = read_rows(table, read_labels(y, table.n_rows), read_weights(sample_weight, table.n_rows))
        trainer = Trainer.of(base, rows.X, rows.total, n_stages, self.resample, self.random_state)
        with progress_bar(self.progress, "boosting") as show:
            self._boost(rows, trainer, n_stages, show)
        self.schema_, self.classes_, self.class_prior_ = table.schema, rows.classes, rows.shares
        self.prior_shift_ = np.zeros(len(rows.classes))
        if (first := max(self._first_errors())) >= HALF:
            warnings.warn(
                f"the first {type(base).__name__} errs on {first:.3g} of the training weight, and boosting asks for "
                f"less than half: it is used alone; take a stronger base{self._instead()}",
                stacklevel=2,
            )
        return self

    def _check(self) -> None:
        """Refuse bad options of the subclass."""

    @abstractmethod
    def _boost(self, rows: Rows, trainer: Trainer, n_stages: int, show: Any) -> None:
        """Train the stages and keep them."""

    @abstractmethod
    def _first_errors(self) -> list[float]:
        """Weighted error of the first stage, of each boosting."""

    def _instead(self) -> str:
        """What else a user may do where the first stage errs too often."""
        return ""

    @abstractmethod
    def stage_proba(self, X: Any) -> Array:
        """The output of every stage, (M, n, C)."""

    @abstractmethod
    def _staged_joint(self, X: Table) -> Iterator[Array]:
        """Log p(class, x) up to a constant of the row, (n, C), after every stage; before any shift of priors.

        The array may be written to again for the next stage.
        """

    @abstractmethod
    def _joint(self, X: Table) -> Array:
        """The last of `_staged_joint`."""

    def _read(self, X: Any) -> Table:
        check_is_fitted(self)
        return read_features(self, X, reset=False)

    def _log_joint(self, X: Any) -> Array:
        return self._joint(self._read(X)) + self.prior_shift_

    def decision_function(self, X: Any) -> Array:
        """What decides.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n,) array, half the log odds of the second class, where there are two; else (n, C), the largest of a row wins.
        """
        check_is_fitted(self)
        joint = self._log_joint(X)
        return (joint[:, 1] - joint[:, 0]) / 2 if joint.shape[1] == 2 else joint

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """Probabilities of the classes after every stage.

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
        """Decisions after every stage.

        Parameters
        ----------
        X : table of n rows

        Yields
        ------
        (n,) array of class labels; the last is `predict`.
        """
        for joint in self._staged_joint(self._read(X)):
            yield self.classes_[(joint + self.prior_shift_).argmax(axis=1)]

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
            missing="as the base has it",
            weights=yes("a base that takes none is trained on rows drawn by weight"),
            soft_labels=no("the most probable label, with its probability as weight"),
            absent_labels=LEFT_OUT,
            **of_bases([] if self.estimator is None else [self.estimator]),
        )
