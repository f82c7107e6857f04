"""Fit and score one method on one fold; go through all that is not done yet."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing

import mixent
from benchmarks.tables.compare import METRICS
from benchmarks.tables.data import Dataset
from benchmarks.tables.store import Key, Store
from benchmarks.tables.table import Setting, Table
from mixent.base.delegation import aligned_proba
from mixent.evaluate.scores import SMALLEST, score_table

Fold = tuple[np.ndarray, np.ndarray]
Say = Callable[[str], None]


def plan(setting: Setting, methods: list[str]) -> list[Key]:
    """All (set, method, folds, repeat, fold), cheap to read in order: one method after the other in each repeat."""
    return [
        (setting.name, method, setting.folds, repeat, fold)
        for repeat in range(setting.repeats if setting.folds > 1 else 1)
        for method in methods
        for fold in range(setting.folds)
    ]


def run_setting(table: Table, setting: Setting, keys: list[Key], data: Dataset, store: Store, say: Say) -> None:
    """Run the planned keys that the store does not hold."""
    done = store.load(setting.name)
    methods = table.methods_of(setting)
    for key in keys:
        if key in done:
            continue
        _, method, n_folds, repeat, fold = key
        train, test = folds_of(setting, data, repeat)[fold]
        record = score_fold(methods[method](data), data, train, test, table, keep_rows=n_folds == 1)
        where = {"table": table.name, "set": setting.name, "method": method}
        store.add(where | {"n_folds": n_folds, "repeat": repeat, "fold": fold, "code": code_version()} | record)
        told = record["failed"] or f"log-loss {record['log_loss']:.3f}, {record['fit_seconds']:.1f} s"
        say(f"{setting.name}, {method}, repeat {repeat + 1}, fold {fold + 1} of {n_folds}: {told}")


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


def score_fold(
    model: Any,
    data: Dataset,
    train: np.ndarray,
    test: np.ndarray,
    table: Table,
    *,
    keep_rows: bool,
) -> dict:
    """Scores, measures, seconds, the first warning, and the failure if there was one."""
    size = {"n_train": len(train), "n_test": len(test)}
    classes = np.unique(data.y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.perf_counter()
        try:
            model.fit(_safe_indexing(data.X, train), data.y[train])
            seconds = time.perf_counter() - began
            proba = aligned_proba(model, _safe_indexing(data.X, test), classes)
            scores = score_table(data.y[test], proba, classes)
            measured = {metric: measure(model) for metric, measure in table.measures.items()}
            for metric, score in {**table.scores, **table.curves}.items():
                measured[metric] = score(model, _safe_indexing(data.X, test), data.y[test])
        except Exception as error:  # one method's trouble must not lose the others' results
            return size | {"failed": " ".join(f"{type(error).__name__}: {error}".split())[:300]}
    told = {"warned": str(caught[0].message)[:200] if caught else None, "failed": None}
    record = size | {m: scores[m] for m in METRICS} | measured | {"fit_seconds": round(seconds, 4)} | told
    return record | ({"rows": dict(_row_losses(proba, classes, data.y[test]))} if keep_rows else {})


def _row_losses(proba: np.ndarray, classes: np.ndarray, y: np.ndarray) -> Iterator[tuple[str, list[float]]]:
    """Losses row by row: with one split they, and not folds, tell what is noise."""
    true = np.searchsorted(classes, y)
    miss = proba - np.eye(len(classes))[true]
    yield "error", (proba.argmax(axis=1) != true).astype(float).tolist()
    yield "log_loss", (-np.log(np.clip(proba[np.arange(len(y)), true], SMALLEST, 1))).round(6).tolist()
    yield "brier", (miss**2).sum(axis=1).round(6).tolist()


@cache
def code_version() -> str:
    """Changes when any source file of mixent does."""
    folder = Path(mixent.__file__).parent
    text = b"".join(path.read_bytes() for path in sorted(folder.rglob("*.py")))
    return hashlib.sha256(text).hexdigest()[:10]
