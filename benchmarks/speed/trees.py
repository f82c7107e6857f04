"""Distributions over trees beside scikit-learn's classifiers of categories: seconds to fit and to predict, and errors.

All of splice (60 letters, 3190 rows, three classes): whole fits with defaults, choosing `c` and calibrating included,
then the classes of many rows drawn from the same ones. Beside the seconds stand the error and the log-loss of five
stratified folds, the same for everybody: what the time buys.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from benchmarks.speed.records import Record
from benchmarks.tables.data import load
from mixent import MEDTreeClassifier
from mixent.evaluate.scores import log_loss

LETTERS, FOLDS = list("ACGT"), 5
FIT, PREDICT, CPU = "seconds to fit", "seconds to predict", "CPU seconds to fit"
RATIO, RATIO_PREDICT = "times mixent's seconds to fit", "times mixent's seconds to predict"
ERROR, LOG_LOSS = "error %, 5 folds", "log-loss, 5 folds"
LONGEST_FIT, LONGEST_PREDICT = 60.0, 10.0  # seconds
SOURCE = "asked for on two quiet cores"
OURS = "mixent, trees"


@dataclass(frozen=True)
class Setting:
    """Some of the set's rows and columns, and how many rows to predict."""

    rows: int | None  # None: all
    columns: int
    predicted: int
    judged: bool = True


SETTINGS = (Setting(None, 60, 100_000),)
QUICK = (Setting(150, 8, 500, judged=False),)


def methods(n_columns: int) -> dict[str, Callable[[], Any]]:
    def coded(model: Any) -> Any:
        return make_pipeline(
            SimpleImputer(strategy="most_frequent"), OrdinalEncoder(categories=[LETTERS] * n_columns), model
        )

    return {
        OURS: lambda: MEDTreeClassifier(random_state=0),
        "CategoricalNB": lambda: coded(CategoricalNB(min_categories=len(LETTERS))),
        "RandomForest": lambda: make_pipeline(
            OneHotEncoder(handle_unknown="ignore"), RandomForestClassifier(random_state=0)
        ),
        "HistGradientBoosting": lambda: coded(
            HistGradientBoostingClassifier(categorical_features=list(range(n_columns)), random_state=0)
        ),
    }


def trees(folder: Path, settings: tuple[Setting, ...] = SETTINGS, rounds: int = 3) -> Iterator[Record]:
    for setting in settings:
        X, y = read(folder, setting)
        yield from _compare(setting, X, y, rounds)


def read(folder: Path, setting: Setting) -> tuple[Any, np.ndarray]:
    data = load("splice", folder, mixed=True)
    frame = data.X.iloc[:, : setting.columns]
    order = np.random.default_rng(0).permutation(len(frame))[: setting.rows]
    return frame.where(frame.isin(LETTERS), None).iloc[order], data.y[order]


def _compare(setting: Setting, X: Any, y: np.ndarray, rounds: int) -> Iterator[Record]:
    name = f"splice {len(X)}x{X.shape[1]}"
    many = X.iloc[np.random.default_rng(1).integers(len(X), size=setting.predicted)]
    seconds: dict[str, list[tuple[float, float, float]]] = {method: [] for method in methods(X.shape[1])}
    for _ in range(rounds):
        for method, make in methods(X.shape[1]).items():
            seconds[method].append(timed(make(), X, y, many))
    middle = {method: np.median(second, axis=0) for method, second in seconds.items()}
    for method, make in methods(X.shape[1]).items():
        fit, cpu, predict = middle[method]
        judged = setting.judged and method == OURS
        source = SOURCE if judged else None
        yield Record(name, method, FIT, fit, None, rounds, LONGEST_FIT if judged else None, source)
        yield Record(name, method, CPU, cpu, None, rounds)
        yield Record(
            name,
            method,
            f"{PREDICT} {len(many)} rows",
            predict,
            None,
            rounds,
            LONGEST_PREDICT if judged else None,
            source,
        )
        if method != OURS:
            yield Record(name, method, RATIO, fit / middle[OURS][0], None, rounds)
            yield Record(name, method, RATIO_PREDICT, predict / middle[OURS][2], None, rounds)
        error, loss = quality(make, X, y)
        yield Record(name, method, ERROR, error, None, FOLDS)
        yield Record(name, method, LOG_LOSS, loss, None, FOLDS)


def timed(model: Any, X: Any, y: np.ndarray, many: Any) -> tuple[float, float, float]:
    """Seconds to fit, those of the processor, seconds to predict."""
    began, used = time.perf_counter(), time.process_time()
    model.fit(X, y)
    fit, cpu = time.perf_counter() - began, time.process_time() - used
    began = time.perf_counter()
    model.predict(many)
    return fit, cpu, time.perf_counter() - began


def quality(make: Callable[[], Any], X: Any, y: np.ndarray) -> tuple[float, float]:
    """Error in % and log-loss over the folds."""
    classes = np.unique(y)
    proba = np.empty((len(y), len(classes)))
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
        proba[test] = make().fit(X.iloc[train], y[train]).predict_proba(X.iloc[test])
    return 100.0 * float(np.mean(classes[proba.argmax(axis=1)] != y)), float(log_loss(y, proba, classes))
