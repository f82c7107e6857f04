"""Classifiers of other libraries for tables with categories and missing values, tuned by cross-validated log-loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import has_fit_parameter

from mixent.base.background import ExplainedByColumn
from mixent.base.bounded_loss import log_with_uniform
from mixent.base.capabilities import FOREIGN, LEFT_OUT, YES, able, no, of_bases, yes
from mixent.base.classifier import ProbabilisticClassifier
from mixent.base.delegation import aligned_proba, weight_arguments
from mixent.base.folds import label_folds
from mixent.base.params import check_choice, check_folds
from mixent.base.priors import floored
from mixent.base.progress import progress_bar
from mixent.base.result import RecordsAttribute
from mixent.core.arrays import Array
from mixent.data import Labels, Table, keep_notes, read_features, read_labels, read_weights
from mixent.ensemble.base_estimators import read_base
from mixent.ensemble.encoding import ENCODINGS, ColumnEncoding

MOST_CODES = 255  # most categories of a column that gradient boosting of scikit-learn supports
LEAST_VOTES = 1e-6  # in explanations: votes and leaves of other libraries are 0 where rows are few
OOB_TREES = 60  # for each setting that is compared by out-of-bag scores
LEAST = 1e-15  # least probability: a row with probability 0 costs 34.5 nats


@dataclass(frozen=True)
class Rows:
    """Encoded labelled rows of positive weight."""

    Z: Array  # (n, p)
    codes: np.ndarray  # (n,) position among the classes
    weight: Array | None  # (n,)
    n_classes: int

    def take(self, rows: np.ndarray) -> Rows:
        weight = None if self.weight is None else self.weight[rows]
        return Rows(self.Z[rows], self.codes[rows], weight, self.n_classes)


class TunedClassifier(ExplainedByColumn, ProbabilisticClassifier):
    """A classifier of another library on encoded tables, with hyperparameters chosen by cross-validated log-loss.

    Tables with categories and missing values are encoded as numbers. Maximizes the cross-validated log-likelihood [1]_

        sum_n w_n log p(y_n | x_n)

    over the settings of `grid`, with the same folds for all; the best setting is fitted to all rows. The
    classifier itself has its own objective. A classifier with `early_stopping=True` that takes validation rows, such as
    gradient boosting of scikit-learn, stops on the rows held out in each fold; the final fit has the mean number of
    iterations.

    Parameters
    ----------
    estimator : classifier, default=None
        Classifier that is fitted to the encoded columns; without `predict_proba`, its predicted labels get probability
        1. None: logistic regression of scikit-learn.
    grid : dict, list of dict or None, default=None
        Settings to try, as in `sklearn.model_selection.GridSearchCV`. None: the classifier as given.
    encoding : {"bits", "codes"}, default="bits"
        "bits": standardized numbers with missing values at the mean, one-hot categories, and an indicator for each
        column with missing values. "codes": unchanged numbers, then categories as codes, missing values as NaN, for
        trees; `categorical_features` is set if the classifier has it.
    cv : int, splitter, list of (train, test) or "oob", default=5
        Cross-validation folds of the labelled rows, for the grid. "oob": the out-of-bag log-loss of a classifier with
        `oob_score`, such as a random forest, which takes one fit of 60 trees for each setting.
    categorical : "auto" or list, default="auto"
        Columns to treat as categories, whatever their type.
    random_state : int, RandomState or None, default=None
        Seed of the folds, and of a classifier that has a `random_state`; None leaves the latter unchanged.
    progress : bool or callable, default=False
        True shows a progress bar; a callable is called with (done, total, text).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    class_prior_ : ndarray of shape (n_classes,)
        Weighted class frequencies of the training rows.
    model_ : classifier
        The classifier fitted to all encoded rows; its classes are positions in `classes_`.
    best_params_ : dict
        The best setting.
    search_ : list of dict
        The settings tried and their log-loss, the best first; the log-loss is infinite if a fit failed, with the
        reason. Empty without a grid.
    columns_ : ColumnEncoding
        The encoding of the columns.
    schema_ : Schema
        Names, types and categories of the columns.
    background_ : Background
        The training rows, at most 50, with which `explain` compares a row.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X had names.
    notes_ : list of str
        What was unusual in the training table, and what was done about it; see the guide to data.

    See Also
    --------
    compare : Compares many classifiers on a table.
    MaxEntStackingClassifier : Combines several classifiers.
    sklearn.model_selection.GridSearchCV : Grid search on numeric arrays.
    sklearn.compose.ColumnTransformer : Encoding of columns with scikit-learn.

    References
    ----------
    .. [1] Hastie, T., Tibshirani, R. and Friedman, J. (2009). The Elements of Statistical Learning. Second edition.
       Springer. Section 7.10.

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
    search_ = RecordsAttribute()
    _least_explained = LEAST_VOTES

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
        """Choose the settings, and fit the classifier to all rows.

        Parameters
        ----------
        X : table of n rows
            Array or DataFrame, which may have categories and missing values.
        y : (n,) labels
            Unlabelled rows (None, NaN or "") are left out.
        sample_weight : (n,) array, optional
            An error is raised if the classifier does not support weights.

        Returns
        -------
        self
        """
        base, settings = self._base(), _settings(self.grid)
        check_choice("encoding", self.encoding, ENCODINGS)
        _check_cv(self.cv, base)
        table = read_features(self, X, reset=True, categorical=self.categorical)
        weight = read_weights(sample_weight, table.n_rows)
        if weight is not None and not weight_arguments(base, weight):
            raise ValueError(
                f"{type(base).__name__} does not support sample_weight; leave it out, or choose another estimator"
            )
        labels = read_labels(y, table.n_rows)
        keep_notes(self, table, labels, quiet=isinstance(X, Table))
        codes, keep, classes = _labelled(labels, weight)
        labelled = table.take(keep)
        mass = np.ones(len(codes)) if weight is None else weight[keep]
        self.schema_, self.classes_ = table.schema, classes
        self.class_prior_ = np.bincount(codes, mass, len(classes)) / mass.sum()
        self._keep_background(labelled, mass)
        self.columns_ = ColumnEncoding.of(self.encoding, labelled, mass)
        rows = Rows(self.columns_(labelled), codes, None if weight is None else mass, len(classes))
        base = _with_categorical_features(base, self.columns_)
        with progress_bar(self.progress, "settings") as show:
            tried = self._search(base, settings, rows, show)
        stopped = [entry.pop("stopped", {}) for entry in tried]
        self.search_ = tried
        self.best_params_ = {**tried[0]["params"], **stopped[0]} if tried else dict(settings[0])
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
        if isinstance(self.cv, str):
            score = partial(_out_of_bag, base, rows=rows)
        else:
            folds = label_folds(rows.codes, np.ones(len(rows.codes), dtype=bool), seed, self.cv)
            score = partial(_cross_validate, base, rows=rows, folds=folds)
        tried = []
        for done, params in enumerate(settings):
            if show is not None:
                show(done, len(settings), ", ".join(f"{name}={value}" for name, value in params.items()))
            tried.append({"params": params, **score(params)})
        tried.sort(key=lambda entry: entry["log_loss"])
        if not np.isfinite(tried[0]["log_loss"]):
            raise ValueError(f"no setting of the grid could be fitted; the first error: {tried[0]['failed']}")
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
            missing="replaced by the mean with an indicator, or by NaN, depending on `encoding`",
            weights=yes("if the classifier supports them"),
            soft_labels=no("use the most probable label, with its probability as weight"),
            absent_labels=LEFT_OUT,
            mixed=YES,
            saved=FOREIGN if self.estimator is None else of_bases([self.estimator])["saved"],
        )


def _check_cv(cv: Any, base: Any) -> None:
    if not isinstance(cv, str) or cv != "oob":
        check_folds("cv", cv, "'oob'")
    elif "oob_score" not in base.get_params():
        name = type(base).__name__
        raise ValueError(f"cv='oob' needs a classifier with the parameter oob_score; {name} has none; give a number")


def _settings(grid: Any) -> list[dict]:
    from sklearn.model_selection import ParameterGrid  # slow to import

    try:
        return [{}] if grid is None else list(ParameterGrid(grid))
    except (TypeError, ValueError) as error:
        raise ValueError(f"grid must be a dict, parameter -> list of values, or a list of dicts; {error}") from None


def _labelled(labels: Labels, weight: Array | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes of the labelled rows of positive weight, their positions, and their classes."""
    if labels.codes is None:
        raise ValueError(
            "y must hold labels, because classifiers of other libraries do not support label probabilities; give one "
            "label per row, for example the most probable, with its probability as sample_weight"
        )
    keep = np.flatnonzero(labels.codes >= 0 if weight is None else (labels.codes >= 0) & (weight > 0))
    present, codes = np.unique(labels.codes[keep], return_inverse=True)
    if len(present) < 2:
        raise ValueError(
            f"a classifier needs rows of at least 2 classes with sample_weight > 0; got {len(present)}; "
            "give rows of another class a positive weight"
        )
    return codes, keep, labels.classes[present]


def _with_categorical_features(base: Any, columns: ColumnEncoding) -> Any:
    """The classifier, with `categorical_features` set to the columns with few enough categories, if it has it."""
    if columns.encoding == "codes" and "categorical_features" in base.get_params():
        few = np.array([False] * len(columns.mean) + [size <= MOST_CODES for size in columns.schema.sizes])
        if few.any():
            return base.set_params(categorical_features=few)
    return base


def _fit(base: Any, params: dict, rows: Rows, held_out: Rows | None = None) -> Any:
    model = clone(base).set_params(**params)
    more = {}
    if held_out is not None and _stops_early(model):
        more = {"X_val": held_out.Z, "y_val": held_out.codes, "sample_weight_val": held_out.weight}
    return model.fit(rows.Z, rows.codes, **weight_arguments(model, rows.weight), **more)


def _stops_early(model: Any) -> bool:
    return getattr(model, "early_stopping", False) is True and has_fit_parameter(model, "X_val")


def _stopped(models: list[Any]) -> dict:
    """Parameters of a fit that does as many iterations as those that stopped early did on average, without the last."""
    if not all(map(_stops_early, models)):
        return {}
    n_iter = [m.n_iter_ - m.n_iter_no_change * (m.n_iter_ < m.max_iter) for m in models]
    return {"stopped": {"max_iter": max(round(float(np.mean(n_iter))), 1), "early_stopping": False}}


def _cross_validate(base: Any, params: dict, rows: Rows, folds: list) -> dict:
    """Cross-validated log-loss of a setting, or why it failed."""
    total, mass, models = 0.0, 0.0, []
    for train, test in folds:
        part = rows.take(test)
        try:
            model = _fit(base, params, rows.take(train), part)
            proba = _proba(model, part.Z, rows.n_classes)
        except Exception as error:  # for example more neighbors than rows; other settings may succeed
            return {"log_loss": float("inf"), "failed": f"{type(error).__name__}: {error}"}
        models.append(model)
        weight = np.ones(len(test)) if part.weight is None else part.weight
        log_proba = log_with_uniform(np.log(np.maximum(proba, LEAST)))
        total -= float(weight @ log_proba[np.arange(len(test)), part.codes])
        mass += float(weight.sum())
    return {"log_loss": total / mass, "failed": None, **_stopped(models)}


def _out_of_bag(base: Any, params: dict, rows: Rows) -> dict:
    """Out-of-bag log-loss of a setting, or why it failed, of at most 60 trees.

    A class without a vote has half a vote: few trees vote out of bag, and the forest has more.
    """
    n_trees = min(base.n_estimators, OOB_TREES)
    try:
        model = _fit(base, {"n_estimators": n_trees, **params, "oob_score": True}, rows)
    except Exception as error:
        return {"log_loss": float("inf"), "failed": f"{type(error).__name__}: {error}"}
    known = np.flatnonzero(np.isfinite(model.oob_decision_function_).all(axis=1))
    n_votes = len(model.estimators_) * np.exp(-1)  # trees whose bootstrap sample lacks a row
    proba = np.maximum(model.oob_decision_function_[known], 0.5 / n_votes)
    weight = np.ones(len(known)) if rows.weight is None else rows.weight[known]
    loss = -np.log(proba[np.arange(len(known)), rows.codes[known]])
    return {"log_loss": float(weight @ loss / weight.sum()), "failed": None}


def _proba(model: Any, Z: Array, n_classes: int) -> Array:
    return aligned_proba(model, Z, np.arange(n_classes), decisions=True)
