"""Fit and score one method on one fold; go through all that is not done yet."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing

from benchmarks.tables.compare import METRICS
from benchmarks.tables.data import Dataset
from benchmarks.tables.store import Key, Store, StoreJournal
from benchmarks.tables.table import Make, Setting, Table
from mixent.base.delegation import aligned_proba
from mixent.evaluate.runner import Method, Quiet, Runner, Split
from mixent.evaluate.scores import SMALLEST, score_table

Fold = tuple[np.ndarray, np.ndarray]
Log = Callable[[str], None]


def plan(setting: Setting, methods: list[str]) -> list[Key]:
    """All (set, method, folds, repeat, fold), cheap to read in order: one method after the other in each repeat."""
    return [
        (setting.name, method, setting.folds, repeat, fold)
        for repeat in range(setting.repeats if setting.folds > 1 else 1)
        for method in methods
        for fold in range(setting.folds)
    ]


def run_setting(table: Table, setting: Setting, methods: list[str], data: Dataset, store: Store, log: Log) -> None:
    """Run the folds of some methods that the store does not hold."""
    makers = table.methods_of(setting)
    Runner(
        {method: Method(makers[method]) for method in methods},
        Quiet(partial(score_fold, table, data, setting.folds == 1)),
        splits_of(setting, data),
        StoreJournal(store, setting.name, setting.folds, log),
    ).run()


def splits_of(setting: Setting, data: Dataset) -> list[Split]:
    """Every fold of every repeat."""
    return [
        Split(repeat, fold, *rows)
        for repeat in range(setting.repeats if setting.folds > 1 else 1)
        for fold, rows in enumerate(folds_of(setting, data, repeat))
    ]


def folds_of(setting: Setting, data: Dataset, repeat: int) -> list[Fold]:
    """(training rows, test rows) of each fold: the same for every method."""
    n_folds, n_train = setting.folds, setting.train_rows
    seeds = range(repeat * n_folds, (repeat + 1) * n_folds)
    if setting.splits is not None:
        return [setting.splits(data, seed) for seed in seeds]
    if n_train is not None:
        orders = [np.random.default_rng(seed).permutation(len(data.y)) for seed in seeds]
        return [(order[:n_train], order[n_train:]) for order in orders]
    if n_folds == 1:
        assert data.split is not None, f"{data.name} comes without a split"
        return [(np.flatnonzero(data.split == "train"), np.flatnonzero(data.split == "test"))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes smaller than the number of folds: zoo, glass
        return list(StratifiedKFold(n_folds, shuffle=True, random_state=repeat).split(data.y, data.y))


def score_fold(table: Table, data: Dataset, keep_rows: bool, make: Make, split: Split) -> tuple[dict[str, Any], None]:
    """Scores, measures and seconds of one method in one fold, or how it failed."""
    size = {"n_train": len(split.train), "n_test": len(split.test)}
    X, y, classes = _safe_indexing(data.X, split.test), data.y[split.test], np.unique(data.y)
    model = make(data)
    began = time.perf_counter()
    try:
        model.fit(_safe_indexing(data.X, split.train), data.y[split.train])
        seconds = round(time.perf_counter() - began, 4)
        proba = aligned_proba(model, X, classes)
        scores = score_table(y, proba, classes)
        measured = {metric: measure(model) for metric, measure in table.measures.items()}
        measured |= {metric: score(model, X, y) for metric, score in {**table.scores, **table.curves}.items()}
    except Exception as error:  # the failure of one method must not lose the results of the others
        return size | {"failed": " ".join(f"{type(error).__name__}: {error}".split())[:300]}, None
    record = size | {metric: scores[metric] for metric in METRICS} | measured | {"fit_seconds": seconds, "failed": None}
    return record | ({"rows": dict(_row_losses(proba, classes, y))} if keep_rows else {}), None


def _row_losses(proba: np.ndarray, classes: np.ndarray, y: np.ndarray) -> Iterator[tuple[str, list[float]]]:
    """Losses row by row: with one split they, and not folds, measure the noise."""
    true = np.searchsorted(classes, y)
    miss = proba - np.eye(len(classes))[true]
    yield "error", (proba.argmax(axis=1) != true).astype(float).tolist()
    yield "log_loss", (-np.log(np.clip(proba[np.arange(len(y)), true], SMALLEST, 1))).round(6).tolist()
    yield "brier", (miss**2).sum(axis=1).round(6).tolist()
