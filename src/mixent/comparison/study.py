"""`mixent.compare`: compare many methods on one table."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from mixent.base.folds import assign_folds
from mixent.base.params import check_choice, check_count, check_flag, check_positive, check_workers
from mixent.base.recipes import Setting, Shape
from mixent.comparison.candidates import Candidate, candidates
from mixent.comparison.data_problems import leaks, table_problems
from mixent.comparison.estimate import CHOSEN_BY, chosen_estimate
from mixent.comparison.given import given_candidate, read_methods
from mixent.comparison.live import watching
from mixent.comparison.recommendation import recommend
from mixent.comparison.result import Comparison
from mixent.comparison.shape import read_table, shape_of
from mixent.evaluate.cross_validation import fit_rows, gathered, score_fold
from mixent.evaluate.journal import Journal, fingerprint, settings_of
from mixent.evaluate.records import CrossValidation
from mixent.evaluate.runner import Method, Quiet, Runner, splits_of
from mixent.evaluate.samples import Samples, features_and_labels, read_samples


def compare(
    X: Any,
    y: Any,
    *,
    methods: Any = "auto",
    baselines: bool = True,
    folds: int = 5,
    repeats: int = 1,
    metric: str = "log_loss",
    budget: float | None = None,
    n_jobs: int | None = None,
    random_state: int = 0,
    sample_weight: Any = None,
    categorical: Any = "auto",
    journal: Any = None,
    progress: Any = False,
    refit: bool = True,
) -> Comparison:
    """Compare the methods that suit a table by nested cross-validation, and recommend one.

    Every method chooses its hyperparameters within each training fold, so every score is computed on rows that were
    used neither for fitting nor for choosing hyperparameters; all methods use the same folds. The method with the
    lowest mean of `metric` is recommended. Its score is corrected for selection by a bootstrap over the out-of-fold
    predictions.

    Parameters
    ----------
    X : array or DataFrame (n, d)
        Categories and missing values need no preparation.
    y : (n,) labels, or the name of a column of X
        Unlabelled rows (None, NaN, "") are always used for training and never scored; methods that cannot use them
        leave them out.
    methods : "auto", list of names and classifiers, or dict of name -> classifier or None, default="auto"
        "auto": all methods of mixent that suit the table (see `candidates`). A name, or None in a dict, selects one of
        them, or a classifier that `mixent models` lists, with its defaults; your own classifiers are added, by the
        names of their classes if they are in a list. On a table with categories or missing values, a classifier of
        scikit-learn that does not support them is given the encoding of `TunedClassifier`; a Pipeline, or a classifier
        of another library, is used as it is.
    baselines : bool, default=True
        Whether to add logistic regression, gradient boosting, random forest, RBF SVM, naive Bayes and k nearest
        neighbors of scikit-learn.
    folds : int, default=5
        Number of folds of the outer cross-validation.
    repeats : int, default=1
        Number of repetitions of the outer cross-validation with other folds.
    metric : {"log_loss", "error", "balanced_error", "brier"}, default="log_loss"
        The score on which the recommendation is based.
    budget : float, optional
        Time in seconds. Methods that would not finish in time are left out, the slowest first, and listed with the
        reason. A fit that has started is not interrupted, so the first fold of every method is always completed.
    n_jobs : int, optional
        Number of processes; None uses all cores. The scores do not depend on it.
    random_state : int, default=0
        Seed of the folds and of every method.
    sample_weight : (n,) array, optional
        Weights for fitting and scoring.
    categorical : "auto" or list, default="auto"
        Columns to treat as categories, whatever their type.
    journal : path, optional
        A file that stores finished folds; the same call with the same file resumes an interrupted run.
    progress : bool or callable(done, total, text), default=False
        True shows a table of intermediate results.
    refit : bool, default=True
        Whether to fit the recommended method to all rows (`winner`).

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixent import compare
    >>> X, y = load_iris(return_X_y=True)
    >>> comparison = compare(X, y, methods=["maximum entropy", "linear MED"], baselines=False, folds=2, n_jobs=1)
    >>> comparison.recommended in comparison.ranking()
    True
    >>> comparison.winner.predict_proba(X[:1]).shape
    (1, 3)
    """
    check_choice("metric", metric, CHOSEN_BY)
    budget = None if budget is None else check_positive("budget", budget)
    folds, repeats = check_count("folds", folds), check_count("repeats", repeats)
    baselines, refit = check_flag("baselines", baselines), check_flag("refit", refit)
    workers = check_workers(n_jobs)
    X, y = features_and_labels(X, y)
    table = read_table(X, categorical)
    samples = read_samples(table, y, sample_weight)
    _check_classes(samples)
    shape = shape_of(table, samples.labels, weighted=samples.weight is not None)
    tried, skipped = _tried(methods, shape, categorical, random_state, baselines)
    fold_of = assign_folds(samples.labels, folds=folds, repeats=repeats, random_state=random_state)
    mark = fingerprint(samples, fold_of)
    with watching(progress) as watch:
        finished = Journal.open(journal, "compare", mark)
        runner = _runner(tried, samples, fold_of, journal=finished, n_jobs=workers, budget=budget, watch=watch)
        cv = gathered(runner, samples, fold_of, random_state)
    _check_some_finished(cv, runner, metric)
    problems = table_problems(table, samples.labels, categorical)
    options = {"folds": folds, "repeats": repeats, "random_state": random_state, "metric": metric, "budget": budget}
    options |= {"methods": _recorded(methods), "baselines": baselines, "categorical": categorical}
    return Comparison(
        cv=cv,
        candidates=tried,
        skipped=skipped | runner.dropped,
        shape=shape,
        problems=problems,
        metric=metric,
        fingerprint=mark,
        data=(X, cv.y, samples.weight),
        options=options,
        **_conclusion(cv, tried, metric, samples if refit else None, list(runner.dropped), leaks(problems)),
    )


def _runner(candidates: Mapping[str, Candidate], samples: Samples, folds: np.ndarray, **options: Any) -> Runner:
    """A runner of the folds of all methods; a method that fails in a fold is stopped, since it cannot be ranked."""
    methods = {name: Method(c.estimator, settings_of(c.estimator), c.cost) for name, c in candidates.items()}
    return Runner(methods, Quiet(partial(score_fold, samples)), splits_of(folds), give_up=True, **options)


def _conclusion(
    cv: CrossValidation,
    tried: Mapping[str, Candidate],
    metric: str,
    samples: Samples | None,
    late: list[str],
    leaking: list[str],
) -> dict[str, Any]:
    """The recommendation with its estimate, and the recommended method fitted to the samples, if they are given."""
    estimate = chosen_estimate(cv, cv.ranking(metric), metric)
    recommendation = recommend(cv, tried, metric, estimate)
    winner, failure = (None, "") if samples is None else _refitted(tried[recommendation.method].estimator, samples)
    recommendation = recommendation.with_points(_caveats(late, failure, leaking))
    return {"recommendation": recommendation, "estimate": estimate, "winner": winner}


def _check_some_finished(cv: CrossValidation, runner: Runner, metric: str) -> None:
    if not cv.ranking(metric):
        reasons = "; ".join(f"{name}: {message}" for name, message in (cv.failures | runner.dropped).items())
        raise RuntimeError(f"every method failed in some fold. {reasons}")


def _check_classes(samples: Samples) -> None:
    """Refuse weights that leave fewer than two classes."""
    codes = samples.codes if samples.weight is None else samples.codes[samples.weight > 0]
    n_classes = len(np.unique(codes[codes >= 0]))
    if n_classes < 2:
        raise ValueError(f"a comparison needs at least 2 classes with rows of weight > 0; got {n_classes}")


def _caveats(late: list[str], failure: str, leaking: list[str]) -> list[str]:
    """Points about methods without enough time, a failed refit, and columns that may leak the class."""
    stopped = [f"Left out for lack of time: {', '.join(late)}."] if late else []
    return [*stopped, *([failure] if failure else []), *(f"Check first: {leak}." for leak in leaking)]


def _tried(
    methods: Any, shape: Shape, categorical: Any, seed: int, baselines: bool
) -> tuple[dict[str, Candidate], dict[str, str]]:
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool):
        raise ValueError(f"random_state must be a whole number, which all methods use as their seed; got {seed!r}")
    names, given = read_methods(methods)
    options = {"categorical": categorical, "random_state": int(seed), "names": names, "baselines": baselines}
    known, skipped = candidates(shape, **options)
    clash = [name for name in given if name in known]
    if clash:
        raise ValueError(f"{clash[0]!r} is the name of a baseline; give your method another name")
    own = {name: given_candidate(name, e, Setting(shape, categorical, int(seed))) for name, e in given.items()}
    if not (own | known):
        raise ValueError("methods is empty; give at least one method, or set baselines=True")
    return own | known, skipped


def _refitted(estimator: Any, samples: Samples) -> tuple[Any, str]:
    """The method fitted to all rows, or the reason why the fit failed: the comparison must not be lost."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the warnings of the folds are in the records
        try:
            return fit_rows(estimator, samples, np.arange(samples.n_rows))[0], ""
        except Exception as error:
            return None, f"It could not be fitted to all rows: {type(error).__name__}: {error}"


def _recorded(methods: Any) -> str | list[str]:
    if isinstance(methods, str):
        return methods
    names_only = not isinstance(methods, Mapping) and all(isinstance(method, str) for method in methods)
    return list(methods) if names_only else "own"
