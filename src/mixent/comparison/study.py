"""`mixent.compare`: compare many methods on one table."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from mixent.base.folds import assign_folds
from mixent.base.params import check_choice, check_count, check_flag, check_positive, check_workers
from mixent.base.recipes import Setting, Shape
from mixent.base.text import count
from mixent.comparison.baselines import FREQUENCIES
from mixent.comparison.candidates import Candidate, candidates
from mixent.comparison.data_problems import leaks, table_problems
from mixent.comparison.estimate import CHOSEN_BY, chosen_estimate
from mixent.comparison.given import given_candidate, read_methods
from mixent.comparison.live import watching
from mixent.comparison.recommendation import recommend
from mixent.comparison.result import Comparison
from mixent.comparison.shape import read_table, shape_of
from mixent.evaluate.cross_validation import fit_rows, gathered, score_fold
from mixent.evaluate.halving import Halving, samples_of
from mixent.evaluate.journal import Journal, fingerprint, settings_of
from mixent.evaluate.race import Race
from mixent.evaluate.records import CrossValidation
from mixent.evaluate.runner import Method, Quiet, Runner, Split, splits_of
from mixent.evaluate.samples import Samples, features_and_groups, features_and_labels, read_samples
from mixent.evaluate.workers import Ended, limited


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
    limit: float | str | None = "auto",
    n_jobs: int | None = None,
    random_state: int = 0,
    sample_weight: Any = None,
    groups: Any = None,
    categorical: Any = "auto",
    journal: Any = None,
    progress: Any = False,
    refit: bool = True,
) -> Comparison:
    """Compare the methods that suit a table by nested cross-validation, and recommend one.

    Every method chooses its hyperparameters within each training fold, so every score is computed on rows that were
    used neither for fitting nor for choosing hyperparameters; all methods use the same folds. A method that is clearly
    behind after two folds is not run in the others. The method with the
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
        neighbors of scikit-learn, and the class frequencies ("most frequent class").
    folds : int, default=5
        Number of folds of the outer cross-validation.
    repeats : int, default=1
        Number of repetitions of the outer cross-validation with other folds.
    metric : {"log_loss", "error", "balanced_error", "brier", "auc"}, default="log_loss"
        The score on which the recommendation is based. "auc" is the area under the ROC curve, the mean over the classes
        of each against the rest where there are more than two; no method is stopped early by it.
    budget : float, optional
        Time in seconds. Every method is first tried on one fold of a sample of the rows, the promising ones on more
        rows and folds, as far as the time allows; fits that run longer are ended. The methods are compared on the
        largest stage that they have in common.
    limit : float, "auto" or None, default="auto"
        Seconds that a method may take for one fold without a budget; one that takes longer is ended and left out.
        "auto": ten times the median of the methods, at least 60 s; no limit with ``n_jobs=1``, which runs everything
        in this process.
    n_jobs : int, optional
        Number of processes; None uses all cores. The scores do not depend on it.
    random_state : int, default=0
        Seed of the folds and of every method.
    sample_weight : (n,) array, optional
        Weights for fitting and scoring.
    groups : (n,) values, or the name of a column of X, optional
        Rows of the same value, such as several of one patient, are in the same fold. A column is not used as a feature.
        Searches of hyperparameters within a training fold do not keep groups together.
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
    began = time.monotonic()
    budget = None if budget is None else check_positive("budget", budget)
    limit = limit if limit is None or limit == "auto" else check_positive("limit", limit)
    folds, repeats = check_count("folds", folds), check_count("repeats", repeats)
    baselines, refit = check_flag("baselines", baselines), check_flag("refit", refit)
    workers = check_workers(n_jobs)
    X, y = features_and_labels(X, y)
    X, groups = features_and_groups(X, groups)
    table = read_table(X, categorical)
    samples = read_samples(table, y, sample_weight, groups)
    _check_classes(samples)
    shape = shape_of(table, samples.labels, weighted=samples.weight is not None)
    tried, skipped = _tried(methods, shape, categorical, random_state, baselines)
    dealt: dict[str, Any] = {"folds": folds, "repeats": repeats, "random_state": random_state}
    fold_of = assign_folds(samples.labels, **dealt, groups=samples.groups)
    mark = fingerprint(samples, fold_of)
    race = Race(samples.codes, samples.weights(np.arange(samples.n_rows)), metric)
    problems = table_problems(table, samples.labels, categorical)
    with watching(progress, problems) as watch:
        finished = Journal.open(journal, "compare", mark)
        within = _within(race, budget, began, None if limit == "auto" and workers == 1 else limit)
        splits = _splits(samples, fold_of, budget, random_state)
        runner = _runner(tried, samples, splits, journal=finished, n_jobs=workers, watch=watch, **within)
        cv = gathered(runner, samples, fold_of, random_state)
        _check_some_finished(cv, runner, metric)
        conclusion = _conclusion(cv, tried, metric, samples if refit else None, runner, leaks(problems))
    options = {**dealt, "metric": metric, "budget": budget, "limit": limit}
    options |= {"methods": _recorded(methods), "baselines": baselines, "categorical": categorical}
    return Comparison(
        cv=cv,
        candidates=tried,
        skipped=skipped | {name: why for name, why in runner.dropped.items() if name not in cv.ranking(metric)},
        shape=shape,
        problems=problems,
        metric=metric,
        fingerprint=mark,
        data=(X, cv.y, samples.weight),
        options=options,
        trials=_trials(runner),
        **conclusion,
    )


def _runner(candidates: Mapping[str, Candidate], samples: Samples, splits: list[Split], **options: Any) -> Runner:
    """A runner of all methods."""
    methods = {
        name: Method(c.estimator, settings_of(c.estimator), c.cost, c.growth, always=c.kind == FREQUENCIES.kind)
        for name, c in candidates.items()
    }
    return Runner(methods, Quiet(partial(score_fold, samples)), splits, give_up=True, **options)


def _within(race: Race, budget: float | None, began: float, limit: Any) -> dict[str, Any]:
    """The policy and the limit of the runner: all folds, or what fits into the budget."""
    if budget is None:
        return {"policy": race, "limit": limit}
    return {"policy": Halving(race, began + budget), "limit": np.inf}


def _splits(samples: Samples, folds: np.ndarray, budget: float | None, seed: int) -> list[Split]:
    """The folds and, within a budget, samples of the first one."""
    splits = splits_of(folds)
    return splits if budget is None else [*splits, *samples_of(splits[0], samples.codes, np.random.default_rng(seed))]


def _trials(runner: Runner) -> list[dict[str, Any]]:
    """Records that are not on the common stage."""
    stage = set(runner.stage)
    return [done[split].record for done in runner.outcomes.values() for split in done if split not in stage]


def _conclusion(
    cv: CrossValidation,
    tried: Mapping[str, Candidate],
    metric: str,
    samples: Samples | None,
    runner: Runner,
    leaking: list[str],
) -> dict[str, Any]:
    """The recommendation with its estimate, and the recommended method fitted to the samples, if they are given."""
    estimate = chosen_estimate(cv, cv.ranking(metric), metric)
    begun = [name for name, done in runner.outcomes.items() if done]
    recommendation = recommend(cv, tried, metric, estimate, begun)
    winner, failure = None, ""
    if samples is not None:
        runner.refitted = recommendation.method
        runner.watch(runner)
        winner, failure = _refitted(recommendation.method, samples, runner)
    recommendation = recommendation.with_points(
        _caveats([n for n in runner.late if n not in cv.ranking(metric)], failure, leaking)
    )
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
    stopped = [f"{count(len(late), 'method')} did not finish for lack of time."] if late else []
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


def _refitted(name: str, samples: Samples, runner: Runner) -> tuple[Any, str]:
    """The method fitted to all rows, or the reason why the fit failed: the comparison must not be lost.

    Within a budget, a fit that takes too long is ended, and the method is fitted to the largest sample it was tried on.
    """
    model, every = runner.methods[name].model, np.arange(samples.n_rows)
    try:
        if runner.end == np.inf:
            return _fitted(samples, every, model), ""
        fold = runner.seconds(name)
        fitted = limited(partial(_fitted, samples, every), model, max(runner.end - time.monotonic(), 3 + 2 * fold))
        if not isinstance(fitted, Ended):
            return fitted, ""
        rows = runner.splits[max(runner.outcomes[name], key=lambda s: len(runner.splits[s].train))].train
        note = f"Fitted to {len(rows)} of {len(every)} rows: a fit to all was {fitted.reason}."
        return _fitted(samples, rows, model), note
    except Exception as error:
        return None, f"It could not be fitted to all rows: {type(error).__name__}: {error}"


def _fitted(samples: Samples, rows: np.ndarray, estimator: Any, _: Any = None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the warnings of the folds are in the records
        return fit_rows(estimator, samples, rows)[0]


def _recorded(methods: Any) -> str | list[str]:
    if isinstance(methods, str):
        return methods
    names_only = not isinstance(methods, Mapping) and all(isinstance(method, str) for method in methods)
    return list(methods) if names_only else "own"
