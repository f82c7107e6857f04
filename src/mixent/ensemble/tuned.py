"""Classifiers of other libraries on any table, their settings chosen by cross-validated log-loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from mixent.base.capabilities import FOREIGN, LEFT_OUT, YES, able, no, of_bases, yes
from mixent.base.classifier import ProbabilisticClassifier
from mixent.base.delegation import aligned_proba, weight_arguments
from mixent.base.folds import label_folds
from mixent.base.params import check_choice, check_folds
from mixent.base.priors import floored
from mixent.base.progress import progress_bar
from mixent.core.arrays import Array
from mixent.data import read_features, read_labels, read_weights
from mixent.ensemble.base_estimators import read_base
from mixent.ensemble.encoding import ENCODINGS, ColumnEncoding

MOST_CODES = 255  # categories of a column that scikit-learn's boosting takes
LEAST = 1e-15  # a probability of 0 counts as this: one impossible row costs 34.5 nats, not all there is


@dataclass(frozen=True)
class Rows:
    """Labelled rows of positive weight, as numbers."""

    Z: Array  # (n, p)
    codes: np.ndarray  # (n,) position among the classes
    weight: Array | None  # (n,)
    n_classes: int

    def take(self, rows: np.ndarray) -> Rows:
        weight = None if self.weight is None else self.weight[rows]
        return Rows(self.Z[rows], self.codes[rows], weight, self.n_classes)


class TunedClassifier(ProbabilisticClassifier):
    """A classifier of another library on tables with categories and missing values, its parameters chosen by log-loss.

    Maximizes over the settings of `grid` the cross-validated sum_n w_n log p(y_n | x_n), all on the same folds; the
    best is fitted to all rows. The choice never falls behind the first setting of the grid. The classifier
    has its own objective.

    Parameters
    ----------
    estimator : classifier, optional
        With `predict_proba`, or its decisions count as certain. Default: scikit-learn's logistic regression.
    grid : dict, list of dict or None
        Settings to try, as in `GridSearchCV`. None: the estimator as it is.
    encoding : "bits" or "codes"
        What the classifier gets. "bits": numbers at mean 0 and variance 1 with missing values at the mean, a
        bit for each category and for missing values. "codes": numbers as they are, then categories as codes, missing
        values as NaN, for trees; `categorical_features` of an estimator that has it is set.
    cv : int, splitter or list of (train, test)
        Folds of the labelled rows, for the grid.
    categorical : "auto" or list
        Columns to treat as categories whatever their type.
    random_state : int, RandomState or None
        For folds, and for an estimator that has one of its own; None leaves the latter as it is.
    progress : bool or callable
        True shows a bar; a callable is called with (done, total, text).

    Attributes
    ----------
    classes_, class_prior_
        Class labels and their share of the training weight.
    model_ : classifier
        Fitted to all rows as numbers; its classes are positions in `classes_`.
    best_params_ : dict
        The setting taken.
    search_ : list of dict
        Settings tried with their log-loss (infinite where a fit failed, with the reason), the best first; empty without
        a grid.
    columns_ : ColumnEncoding
        How rows become numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from mixent import TunedClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> X[0, 0] = float("nan")
    >>> near = TunedClassifier(KNeighborsClassifier(), {"n_neighbors": [1, 5, 15]}, random_state=0).fit(X, y)
    >>> near.best_params_
    {'n_neighbors': 15}
    """

    model_: Any
    columns_: ColumnEncoding
    best_params_: dict
    search_: list

    def __init__(
        self,
        estimator: Any = None,
        grid: Any = None,
        *,
        encoding: str = "bits",
        cv: Any = 5,
        categorical: Any = "auto",
        random_state: Any = None,
        progress: bool | Callable[[int, int, str], None] = False,
    ) -> None:
        self.estimator = estimator
        self.grid = grid
        self.encoding = encoding
        self.cv = cv
        self.categorical = categorical
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the settings and fit.

        Parameters
        ----------
        X : table of n rows
            Array or DataFrame, with categories and missing values.
        y : (n,) labels
            Rows without a label (None, NaN or "") are left out.
        sample_weight : (n,) array, optional
            For an estimator that takes none, an error.

        Returns
        -------
        self
        """
        base, settings = self._base(), _settings(self.grid)
        check_choice("encoding", self.encoding, ENCODINGS)
        check_folds("cv", self.cv)
        table = read_features(self, X, reset=True, categorical=self.categorical)
        weight = read_weights(sample_weight, table.n_rows)
        if weight is not None and not weight_arguments(base, weight):
            raise ValueError(f"{type(base).__name__} takes no sample_weight; leave it out, or choose another estimator")
        codes, keep, classes = _labelled(y, table.n_rows, weight)
        whole = table.take(keep)
        mass = np.ones(len(codes)) if weight is None else weight[keep]
        self.schema_, self.classes_ = table.schema, classes
        self.class_prior_ = np.bincount(codes, mass, len(classes)) / mass.sum()
        self.columns_ = ColumnEncoding.of(self.encoding, whole, mass)
        rows = Rows(self.columns_(whole), codes, None if weight is None else mass, len(classes))
        base = _told(base, self.columns_)
        with progress_bar(self.progress, "settings") as show:
            self.search_ = self._search(base, settings, rows, show)
        self.best_params_ = dict(self.search_[0]["params"]) if self.search_ else dict(settings[0])
        self.model_ = _fit(base, self.best_params_, rows)
        return self

    def _base(self) -> Any:
        if self.estimator is None:
            from sklearn.linear_model import LogisticRegression

            return LogisticRegression(max_iter=1000)
        base = clone(read_base(self.estimator))
        if self.random_state is not None:
            names = [n for n in base.get_params() if n == "random_state" or n.endswith("__random_state")]
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            base.set_params(**dict.fromkeys(names, seed))
        return base

    def _search(self, base: Any, settings: list[dict], rows: Rows, show: Any) -> list[dict]:
        if len(settings) < 2:
            return []
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        folds = label_folds(rows.codes, np.ones(len(rows.codes), dtype=bool), seed, self.cv)
        tried = []
        for done, params in enumerate(settings):
            if show is not None:
                show(done, len(settings), ", ".join(f"{name}={value}" for name, value in params.items()))
            tried.append({"params": params, **_held_out(base, params, rows, folds)})
        tried.sort(key=lambda one: one["log_loss"])
        if not np.isfinite(tried[0]["log_loss"]):
            raise ValueError(f"no setting of the grid could be fitted; the first: {tried[0]['failed']}")
        return tried

    def _log_joint(self, X: Any) -> Array:
        table = read_features(self, X, reset=False)
        proba = _proba(self.model_, self.columns_(table), len(self.classes_))
        return np.log(np.maximum(proba, LEAST)) + getattr(self, "prior_shift_", 0.0)

    def _set_class_prior(self, prior: Array) -> None:
        prior = floored(prior)
        self.prior_shift_ = getattr(self, "prior_shift_", 0.0) + np.log(prior) - np.log(self.class_prior_)
        self.class_prior_ = prior

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return able(
            tags,
            reads_tables=True,
            missing="the mean and a bit, or NaN, as `encoding` has it",
            weights=yes("an estimator that takes none refuses them"),
            soft_labels=no("the most probable label, with its probability as weight"),
            absent_labels=LEFT_OUT,
            mixed=YES,
            saved=FOREIGN if self.estimator is None else of_bases([self.estimator])["saved"],
        )


def _settings(grid: Any) -> list[dict]:
    from sklearn.model_selection import ParameterGrid  # takes long to import

    try:
        return [{}] if grid is None else list(ParameterGrid(grid))
    except (TypeError, ValueError) as error:
        raise ValueError(f"grid must be a dict of option to values to try, or a list of such; {error}") from None


def _labelled(y: Any, n_rows: int, weight: Array | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes of the rows with a label and a weight, their positions, and their classes."""
    labels = read_labels(y, n_rows)
    if labels.codes is None:
        raise ValueError(
            "y holds probabilities of labels, which classifiers of other libraries do not take; give one label per "
            "row, such as the most probable, with its probability as sample_weight"
        )
    keep = np.flatnonzero(labels.codes >= 0 if weight is None else (labels.codes >= 0) & (weight > 0))
    found, codes = np.unique(labels.codes[keep], return_inverse=True)
    if len(found) < 2:
        raise ValueError(
            f"a classifier needs at least 2 classes; {len(found)} {'has' if len(found) == 1 else 'have'} a row of "
            "sample_weight > 0; give rows of another class some weight"
        )
    return codes, keep, labels.classes[found]


def _told(base: Any, columns: ColumnEncoding) -> Any:
    """Trees of scikit-learn like to know which codes are categories, if these are few enough for them."""
    if columns.encoding == "codes" and "categorical_features" in base.get_params():
        few = np.array([False] * len(columns.mean) + [size <= MOST_CODES for size in columns.schema.sizes])
        if few.any():
            return base.set_params(categorical_features=few)
    return base


def _fit(base: Any, params: dict, rows: Rows) -> Any:
    model = clone(base).set_params(**params)
    return model.fit(rows.Z, rows.codes, **weight_arguments(model, rows.weight))


def _held_out(base: Any, params: dict, rows: Rows, folds: list) -> dict:
    """Log-loss of a setting on rows held out, or why it failed."""
    total, mass = 0.0, 0.0
    for train, held in folds:
        part = rows.take(held)
        try:
            model = _fit(base, params, rows.take(train))
            proba = _proba(model, part.Z, rows.n_classes)
        except Exception as error:  # such as more neighbors than rows: another setting may do
            return {"log_loss": float("inf"), "failed": f"{type(error).__name__}: {error}"}
        weight = np.ones(len(held)) if part.weight is None else part.weight
        total -= float(weight @ np.log(np.maximum(proba[np.arange(len(held)), part.codes], LEAST)))
        mass += float(weight.sum())
    return {"log_loss": total / mass, "failed": None}


def _proba(model: Any, Z: Array, n_classes: int) -> Array:
    return aligned_proba(model, Z, np.arange(n_classes), decisions=True)
