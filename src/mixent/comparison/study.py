"""`mixent.compare`: the right methods on one table, in one call."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from mixent.base.delegation import check_classifier
from mixent.base.folds import assign_folds
from mixent.base.params import check_choice, check_count, check_flag, check_positive, check_workers
from mixent.base.recipes import Shape
from mixent.base.registry import find
from mixent.comparison.candidates import Candidate, candidates
from mixent.comparison.data_problems import leaks, table_problems
from mixent.comparison.estimate import CHOSEN_BY, chosen_estimate
from mixent.comparison.live import watching
from mixent.comparison.recommendation import recommend
from mixent.comparison.result import Comparison
from mixent.comparison.shape import read_table, shape_of
from mixent.evaluate.cross_validation import fit_rows, gathered, score_fold
from mixent.evaluate.journal import Journal, fingerprint, settings_of
from mixent.evaluate.records import CrossValidation
from mixent.evaluate.runner import Method, Quiet, Runner, splits_of
from mixent.evaluate.samples import Samples, read_samples


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
    """Try the methods that suit a table and recommend one, with the certainty of that recommendation.

    Nested cross-validation: every method chooses its own settings inside each training part, so every score is on rows
    that neither the fit nor the choice of settings has seen; all methods use the same folds. The method with the lowest
    mean of `metric` is recommended; its score is corrected for this selection by a bootstrap over the out-of-fold
    predictions.

    Parameters
    ----------
    X : array or DataFrame (n, d)
        Categories and missing values need no preparation.
    y : (n,) labels
        Rows without a label (None, NaN, "") are always in training and never scored; methods that cannot use them do
        without.
    methods : "auto", list of names, or dict of name to classifier or None
        "auto": mixent's families and two classical methods that suit the table (see `candidates`). A list takes some
        of them by name. A dict brings your own; None takes the method of that name.
    baselines : bool
        Whether scikit-learn's logistic regression, gradient boosting, random forest, RBF SVM, naive Bayes and k
        nearest neighbors run beside them.
    folds, repeats : int
        Of the outer cross-validation.
    metric : {"log_loss", "error", "balanced_error", "brier"}
        What the recommendation is based on.
    budget : float, optional
        Seconds. Methods that would not finish in time are left out, the longest first, and listed with the reason. A
        fit that has begun is not interrupted, so the first round of folds is always completed.
    n_jobs : int, optional
        Processes; None takes all cores. The result does not depend on it, but for seconds.
    random_state : int
        Of the folds and of every method.
    sample_weight : (n,) weights for fitting and scoring, optional
    categorical : "auto" or list
        Columns to treat as categories whatever their type.
    journal : path, optional
        A file in which finished folds are kept: the same call with the same file resumes a run that was stopped.
    progress : bool or callable(done, total, text)
        True shows a table that fills.
    refit : bool
        Whether to fit the recommended method to all rows (`winner`).

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixent import compare
    >>> X, y = load_iris(return_X_y=True)
    >>> found = compare(X, y, methods=["maximum entropy", "linear MED"], baselines=False, folds=2, n_jobs=1)
    >>> found.recommended in found.ranking()
    True
    >>> found.winner.predict_proba(X[:1]).shape
    (1, 3)
    """
    check_choice("metric", metric, CHOSEN_BY)
    budget = None if budget is None else check_positive("budget", budget)
    folds, repeats = check_count("folds", folds), check_count("repeats", repeats)
    baselines, refit = check_flag("baselines", baselines), check_flag("refit", refit)
    workers = check_workers(n_jobs)
    table = read_table(X, categorical)
    samples = read_samples(table, y, sample_weight)
    _check_classes(samples)
    shape = shape_of(table, samples.labels, weighted=samples.weight is not None)
    tried, skipped = _tried(methods, shape, categorical, random_state, baselines)
    places = assign_folds(samples.labels, folds=folds, repeats=repeats, random_state=random_state)
    mark = fingerprint(samples, places)
    with watching(progress) as watch:
        kept = Journal.open(journal, "compare", mark)
        runner = _runner(tried, samples, places, journal=kept, n_jobs=workers, budget=budget, watch=watch)
        cv = gathered(runner, samples, places, random_state)
    _check_some_finished(cv, runner, metric)
    problems = table_problems(table, samples.labels, categorical)
    options = {"folds": folds, "repeats": repeats, "random_state": random_state, "metric": metric, "budget": budget}
    options |= {"methods": _written(methods), "baselines": baselines, "categorical": categorical}
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
    """Runs the folds of all methods; a method that fails in a fold is given up, since it cannot be ranked."""
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
    """The recommendation with its estimate, and the recommended method fitted to the samples, where these are given."""
    estimate = chosen_estimate(cv, cv.ranking(metric), metric)
    advice = recommend(cv, tried, metric, estimate)
    winner, trouble = (None, "") if samples is None else _refitted(tried[advice.method].estimator, samples)
    recommendation = advice.with_points(_caveats(late, trouble, leaking))
    return {"recommendation": recommendation, "estimate": estimate, "winner": winner}


def _check_some_finished(cv: CrossValidation, runner: Runner, metric: str) -> None:
    if not cv.ranking(metric):
        reasons = "; ".join(f"{name}: {message}" for name, message in (cv.failures | runner.dropped).items())
        raise RuntimeError(f"no method worked in every fold. {reasons}")


def _check_classes(samples: Samples) -> None:
    """Refuse weights that leave fewer than two classes."""
    codes = samples.codes if samples.weight is None else samples.codes[samples.weight > 0]
    n_classes = len(np.unique(codes[codes >= 0]))
    if n_classes < 2:
        raise ValueError(f"a comparison needs at least 2 classes; y has {n_classes} of weight > 0")


def _caveats(late: list[str], trouble: str, leaking: list[str]) -> list[str]:
    """Methods that were stopped, a refit that failed, columns that may hold the answer."""
    stopped = [f"Left out for lack of time: {', '.join(late)}."] if late else []
    return [*stopped, *([trouble] if trouble else []), *(f"Check first: {leak}." for leak in leaking)]


def _tried(
    methods: Any, shape: Shape, categorical: Any, seed: int, baselines: bool
) -> tuple[dict[str, Candidate], dict[str, str]]:
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool):
        raise ValueError(f"random_state must be a whole number, for the methods must all get the same; got {seed!r}")
    names = None if isinstance(methods, str) and methods == "auto" else methods
    if names is not None and not isinstance(methods, list | tuple | Mapping):
        raise ValueError(f"methods must be 'auto', a list of names, or a dict of name to classifier; got {methods!r}")
    given = {n: e for n, e in methods.items() if e is not None} if isinstance(methods, Mapping) else {}
    if isinstance(methods, Mapping):
        names = [name for name in methods if name not in given]
    for name, estimator in given.items():
        check_classifier(f"methods[{name!r}]", estimator)
    made, skipped = candidates(shape, categorical=categorical, random_state=int(seed), names=names, baselines=baselines)
    clash = [name for name in given if name in made]
    if clash:
        raise ValueError(f"{clash[0]!r} is the name of a baseline; give your method another")
    own = {name: Candidate(name, e, _kind(e), "as given") for name, e in given.items()}
    if not (own | made):
        raise ValueError("there is no method to try; name some, or set baselines=True")
    return own | made, skipped


def _kind(estimator: Any) -> str:
    return "given" if find(type(estimator)) is None else "mixent"


def _refitted(estimator: Any, samples: Samples) -> tuple[Any, str]:
    """The method on all rows; where that fails, the comparison should not be lost."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the folds are in the records
        try:
            return fit_rows(estimator, samples, np.arange(samples.n_rows))[0], ""
        except Exception as error:
            return None, f"It could not be fitted to all rows: {type(error).__name__}: {error}"


def _written(methods: Any) -> str | list[str]:
    if isinstance(methods, Mapping):
        return "own"
    return methods if isinstance(methods, str) else list(methods)
