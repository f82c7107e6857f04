"""Cross-validation of several classifiers on the same folds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from mixent.base.delegation import aligned_proba, by_class_name, check_classifier, weight_argument, weight_arguments
from mixent.base.folds import assign_folds
from mixent.base.params import check_workers
from mixent.data import labelled_rows
from mixent.evaluate.journal import Journal, fingerprint, settings_of
from mixent.evaluate.records import TIMED, CrossValidation
from mixent.evaluate.runner import Method, Runner, Split, splits_of
from mixent.evaluate.samples import Samples, read_samples
from mixent.evaluate.scores import auc_of, check_proba, scores_of
from mixent.warn import warn

Progress = Callable[[int, int, str], None]
Measure = Callable[[Any, Any, np.ndarray], Mapping[str, Any]]  # (fitted model, test rows, their labels) -> more scores


def cross_validate(
    estimators: Any,
    X: Any,
    y: Any,
    *,
    folds: int = 5,
    repeats: int = 1,
    random_state: Any = 0,
    sample_weight: Any = None,
    groups: Any = None,
    journal: str | Path | None = None,
    n_jobs: int | None = 1,
    progress: Progress | None = None,
) -> CrossValidation:
    """Score classifiers by repeated stratified cross-validation, all on the same folds.

    Parameters
    ----------
    estimators : classifier, list of classifiers, or dict of name to classifier
        Without a name, a classifier is called by the name of its class. Each is cloned for every fold. One that raises
        is recorded as failed, with its message; only if all fail in every fold is that an error.
    X : array or DataFrame (n, d)
    y : (n,) labels, or the name of a column of X
        Rows without a label (None, NaN, blank) are always in training and never scored. An estimator that refuses them
        is fitted on the labelled rows alone.
    folds, repeats : int
        A class with fewer rows than folds is missing from some test folds; a class with one row stays in training
        always and is not scored. Both are warned about.
    random_state : int or RandomState
        Shuffles rows into folds.
    sample_weight : (n,) weights for fitting and scoring, optional
        An estimator that takes none is fitted without, with a warning; the scores are weighted all the same.
    groups : (n,) values, or the name of a column of X, optional
        Rows of the same value, such as several of one patient, are in the same fold. A column is not used as a feature.
        Searches of hyperparameters within a training fold do not keep groups together.
    journal : path, optional
        A file in which finished folds are kept: the same call with the same file resumes a run that was stopped.
    n_jobs : int, optional
        Processes; None or -1: as many as there are cores.
    progress : callable(done, total, text), optional

    Returns
    -------
    CrossValidation
    """
    estimators = _by_name(estimators)
    samples = read_samples(X, y, sample_weight, groups, estimators=estimators.values())
    dealt: dict[str, Any] = {"folds": folds, "repeats": repeats, "random_state": random_state}
    fold_of = assign_folds(samples.labels, **dealt, groups=samples.groups)
    for name, estimator in estimators.items():
        if samples.weight is not None and weight_argument(estimator) is None:
            warn(f"{name} takes no sample_weight: it is fitted without; its scores are weighted")
    runner = Runner(
        {name: Method(estimator, settings_of(estimator) if journal else "") for name, estimator in estimators.items()},
        partial(score_fold, samples),
        splits_of(fold_of),
        Journal.open(journal, "cross_validate", fingerprint(samples, fold_of) if journal else ""),
        n_jobs=check_workers(n_jobs),
        watch=shown(progress, folds, repeats),
    )
    result = gathered(runner, samples, fold_of, random_state)
    result.check_some_worked("in every fold")
    return result


def shown(progress: Progress | None, folds: int, repeats: int) -> Callable[[Runner], None]:
    """Reports every finished fold to `progress`."""

    def watch(runner: Runner) -> None:
        if progress is not None:
            record = None if runner.latest is None else runner.latest.record
            text = "" if record is None else f"{record['method']}, fold {record['fold'] + 1} of {folds}"
            text += f", repeat {record['repeat'] + 1}" if record is not None and repeats > 1 else ""
            progress(runner.n_done, runner.n_total, text)

    return watch


def gathered(runner: Runner, samples: Samples, folds: np.ndarray, random_state: Any) -> CrossValidation:
    """Run, and gather records and out-of-fold probabilities on the splits that methods are compared on."""
    runner.run()
    records, proba = [], {}
    for name in runner.methods:
        done = {split: runner.outcomes[name][split] for split in runner.stage if split in runner.outcomes[name]}
        records += [outcome.record for outcome in done.values()]
        if done:
            proba[name] = np.full((samples.n_rows, len(samples.classes)), np.nan)
        for split, outcome in done.items():
            if outcome.proba is not None:
                proba[name][runner.splits[split].test] = outcome.proba
    tested = np.full(folds.shape, -1)
    for place in (runner.splits[split] for split in runner.stage):
        tested[place.repeat, place.test] = place.fold
    tested = tested[(tested >= 0).any(axis=1)]
    labels = samples.labels.values()
    about = {"sample_weight": samples.weight, "random_state": random_state, "groups": samples.groups}
    folds_of_all = [s for s, split in enumerate(runner.splits) if split.sample is None]
    if set(runner.stage) < set(folds_of_all):
        about["n_planned"] = len(folds_of_all)
    return CrossValidation(records, proba, samples.classes, labels, tested, **about)


def _by_name(estimators: Any) -> Mapping[str, Any]:
    if isinstance(estimators, list | tuple):
        estimators = by_class_name(estimators)
    elif not isinstance(estimators, Mapping):
        check_classifier("estimators, or each of a dict of name to classifier,", estimators)
        return by_class_name([estimators])
    if not estimators:
        raise ValueError("estimators is empty; pass a classifier, or a dict of name to classifier")
    for name, estimator in estimators.items():
        check_classifier(f"estimators[{name!r}]", estimator)
    return estimators


def score_fold(
    samples: Samples, estimator: Any, split: Split, measure: Measure | None = None
) -> tuple[dict[str, Any], np.ndarray | None]:
    """Scores and probabilities of one method in one fold, or how it failed.

    Parameters
    ----------
    samples : Samples
    estimator : classifier
        A clone is fitted.
    split : Split
    measure : callable(model, X, y), optional
        More scores, from the fitted model, the test rows and their labels.
    """
    rows = split.test
    size = {"n_train": int((samples.codes[split.train] >= 0).sum()), "n_test": len(rows)}
    try:
        model, fit_seconds, labelled_only = fit_rows(estimator, samples, split.train)
        began = time.perf_counter()
        proba = aligned_proba(model, samples.features(model, rows), samples.classes)
        predict_seconds = time.perf_counter() - began
        check_proba(proba)
        predicted = samples.codes[rows], proba, samples.weights(rows)
        scores = {**scores_of(*predicted), "auc": auc_of(*predicted)}
        more = {} if measure is None else measure(model, samples.features(model, rows), samples.labels.values(rows))
    except Exception as error:  # the failure of one method must not lose the results of the others
        return {**size, **failure(error), "labelled_only": False}, None
    seconds = {"fit_seconds": fit_seconds, "predict_seconds": predict_seconds}
    return {**size, **scores, **more, **seconds, "labelled_only": labelled_only, "failed": None}, proba


def failure(error: Exception) -> dict[str, Any]:
    """The record of a fold that failed."""
    return {**dict.fromkeys(TIMED, float("nan")), "failed": f"{type(error).__name__}: {error}"}


def fit_rows(estimator: Any, samples: Samples, train: np.ndarray) -> tuple[Any, float, bool]:
    """The fitted clone, its seconds, and whether it had to do without the unlabelled rows."""
    trouble = None
    for rows in _training_sets(samples, train):
        model, began = clone(estimator), time.perf_counter()
        weights = weight_arguments(model, None if samples.weight is None else samples.weight[rows])
        try:
            model.fit(samples.features(model, rows), samples.labels.values(rows), **weights)
            if not labelled_rows(model.classes_).all():
                raise ValueError("absent labels were taken for a class")
        except Exception as error:
            trouble = error
            continue
        return model, time.perf_counter() - began, len(rows) < len(train)
    assert trouble is not None
    raise trouble


def _training_sets(samples: Samples, train: np.ndarray) -> Iterator[np.ndarray]:
    yield train
    known = samples.codes[train] >= 0
    if not known.all():
        yield train[known]
