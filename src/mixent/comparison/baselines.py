"""Classifiers of scikit-learn that `compare` uses as baselines, on tables with categories and missing values."""

from __future__ import annotations

from typing import Any

from mixent.base.recipes import Recipe, Setting, Shape
from mixent.base.registry import adapter

PAIRS = 10_000  # most rows for methods that compare all pairs of rows
PLATT = 6  # least rows of the smallest class for the folds of Platt scaling


def tuned(setting: Setting, estimator: Any, grid: Any, *, encoding: str = "bits", cv: int | str = 5) -> Any:
    """A classifier of scikit-learn with hyperparameters chosen by cross-validated log-loss.

    Parameters
    ----------
    setting : Setting
    estimator : classifier
    grid : dict or list of dict, parameter -> list of values
    encoding : "bits" or "codes"
        Encoding of categories; see `TunedClassifier`.
    cv : int or "oob"
        Number of folds, or the out-of-bag score.
    """
    options = {"categorical": setting.categorical, "random_state": setting.seed}
    return adapter().cls(estimator, grid, encoding=encoding, cv=cv, **options)


def _logistic(s: Setting) -> Any:
    from sklearn.linear_model import LogisticRegression

    grid = {"C": [0.001, 0.01, 0.1, 1.0, 10.0, 100.0]}
    return tuned(s, LogisticRegression(max_iter=2000), grid, cv=3 if s.long else 5)


def _boosting(s: Setting) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    early = {"early_stopping": True, "validation_fraction": 0.15, "n_iter_no_change": 15}
    leaf = min(20, max(2, s.shape.n_labelled // 20))  # with leaves of 20, few rows would be one leaf
    trees = HistGradientBoostingClassifier(learning_rate=0.05, max_iter=500, min_samples_leaf=leaf, **early)
    return tuned(s, trees, {"max_leaf_nodes": [15] if s.long else [4, 15]}, encoding="codes", cv=3)


def _forest(s: Setting) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    grid: dict[str, list] = {"min_samples_leaf": [1, 4]}
    if not s.long:
        grid = {"min_samples_leaf": [1, 3, 8], "max_features": ["sqrt", 0.5]}
    return tuned(s, RandomForestClassifier(200, n_jobs=1), grid, encoding="codes", cv="oob")


def _svm(s: Setting) -> Any:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.model_selection import StratifiedKFold
    from sklearn.svm import SVC

    widths = [1.0] if s.long else [0.2, 1.0, 4.0]
    grid = {
        "estimator__C": [1.0, 10.0] if s.long else [0.5, 3.0, 20.0],
        "estimator__gamma": [width / s.shape.n_columns for width in widths],
    }
    folds = StratifiedKFold(3, shuffle=True, random_state=s.seed)  # the rows may be sorted
    return tuned(s, CalibratedClassifierCV(SVC(), cv=folds, ensemble=False), grid, cv=3)


def _naive_bayes(s: Setting) -> Any:
    from mixent.comparison.naive_bayes import MixedNaiveBayes

    return tuned(s, MixedNaiveBayes(), {"alpha": [0.1, 1.0, 10.0]}, encoding="codes")


def _neighbors(s: Setting) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    grid: dict[str, list] = {"n_neighbors": [1, 3, 5, 9, 15, 25, 51], "weights": ["uniform", "distance"]}
    return tuned(s, KNeighborsClassifier(algorithm="brute"), grid)


def _frequencies(s: Setting) -> Any:
    from sklearn.dummy import DummyClassifier

    return tuned(s, DummyClassifier(strategy="prior"), None)


def _too_many_pairs(shape: Shape) -> str | None:
    if shape.n_labelled > PAIRS:
        return f"it compares all pairs of rows, and the table has more than {PAIRS} rows"
    return None


def _no_platt(shape: Shape) -> str | None:
    if shape.smallest_class < PLATT:
        return f"a class has fewer than {PLATT} rows, too few for Platt scaling"
    return _too_many_pairs(shape)


def _no_weights(shape: Shape) -> str | None:
    return "it does not support weights" if shape.weighted else _too_many_pairs(shape)


KIND = "scikit-learn"
FREQUENCIES = Recipe("most frequent class", "class frequencies for every row", _frequencies, 0.01, kind="baseline")
BASELINES = (
    FREQUENCIES,
    Recipe("logistic regression", "linear; penalty chosen by cross-validation", _logistic, 0.3, kind=KIND),
    Recipe(
        "gradient boosting",
        "boosted trees; their number chosen by early stopping",
        _boosting,
        0.5,
        kind=KIND,
        growth=0.5,
    ),
    Recipe(
        "random forest",
        "averaged trees; size of the leaves chosen by out-of-bag scores",
        _forest,
        1.0,
        kind=KIND,
        growth=1.0,
    ),
    Recipe("RBF SVM", "support vector machine with Platt scaling", _svm, 0.8, _no_platt, KIND, growth=1.6),
    Recipe("naive Bayes", "columns independent within each class", _naive_bayes, 0.05, kind=KIND),
    Recipe(
        "k nearest neighbors",
        "class frequencies among the neighbors; k chosen by cross-validation",
        _neighbors,
        0.2,
        _no_weights,
        KIND,
        growth=1.2,
    ),
)
