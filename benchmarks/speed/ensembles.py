"""Combiners of classifiers: minutes of a trial of ten folds beside Table 3.6 of document 004, and beside scikit-learn.

Table 3.6: boosted Gaussian naive Bayes, 100 stages. What stands for a combiner is its own time, from a trained boosting
on: the outputs of the stages on the training rows, learning from that (mixtures of LvME included), the test rows. The
document's must be meant so too, since its SVM is faster than the boosting.

Beside scikit-learn: the same list of bases, each Gaussian naive Bayes of its own draw of the rows, five inner folds, in
`MaxEntStackingClassifier` and in `StackingClassifier` with its default, logistic regression; by turns. The bases are
trained in milliseconds, so that what is compared is the combining: slower ones bring every ratio to one.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import StackingClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB

from benchmarks.speed.records import Record
from benchmarks.tables.data import load
from benchmarks.tables.ensembles import machine, network
from benchmarks.tables.ensembles_combiners import adaboost, flat
from benchmarks.tables.printed import MINUTES as PRINTED
from mixent import MaxEntStackingClassifier

MINUTES, RATIO = "minutes of 10 folds", "times StackingClassifier's"
SOURCE, WANTED = "document 004, table 3.6", "asked for in the same run"
LONGEST = 2.0  # times StackingClassifier's
SIME, LVME, STACKING = "SiME", "LvME", "StackingClassifier"


@dataclass(frozen=True)
class Setting:
    """A set, its rows, the stages of Table 3.6, the numbers of bases beside scikit-learn, and the folds of a trial."""

    name: str
    rows: int | None = None  # None: all
    stages: int = 100
    bases: tuple[int, ...] = (10, 100)
    folds: int = 10
    judged: bool = True

    def read(self, folder: Path) -> tuple[np.ndarray, np.ndarray]:
        data = load(self.name, folder)
        order = np.random.default_rng(0).permutation(len(data.y))[: self.rows]
        return data.X[order], data.y[order]


SETTINGS = (Setting("bupa"), Setting("pima"))
QUICK = (Setting("bupa", 90, 4, (3,), 2, judged=False),)


class DrawnBayes(GaussianNB):
    """Gaussian naive Bayes of as many rows, drawn with replacement by a seed of its own."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.seed = seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> DrawnBayes:
        rows = np.random.default_rng(self.seed).integers(len(y), size=len(y))
        return super().fit(X[rows], y[rows])


def ensembles(folder: Path, settings: tuple[Setting, ...] = SETTINGS, rounds: int = 3) -> Iterator[Record]:
    for setting in settings:
        X, y = setting.read(folder)
        yield from _document(setting, X, y, rounds)
        for n_bases in setting.bases:
            yield from _peer(setting, n_bases, X, y, rounds)


def _document(setting: Setting, X: np.ndarray, y: np.ndarray, rounds: int) -> Iterator[Record]:
    """Table 3.6: seconds by method, each trial of one boosting per fold."""
    name = f"{setting.name} {len(X)}x{X.shape[1]}, {setting.stages} stages"
    results: dict[str, list[float]] = {}
    for _ in range(rounds):
        for method, seconds in _trial(setting, X, y).items():
            results.setdefault(method, []).append(seconds)
    for method, trials in results.items():
        yield Record(name, method, MINUTES, float(np.median(trials)) / 60, None, rounds)
        yield Record(name, f"{method}, printed", MINUTES, PRINTED[setting.name][method], source=SOURCE)


def _trial(setting: Setting, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    total = dict.fromkeys(("AdaBoost", "MLP", "SVM", SIME, LVME), 0.0)
    for train, test in _folds(setting, y):
        part = X[train], y[train], X[test]
        boosting = adaboost(setting.stages)
        total["AdaBoost"] += timed(lambda: boosting.fit(*part[:2]).predict(part[2]))  # noqa: B023 - called at once
        for method, run in _combiners(boosting, *part).items():
            total[method] += timed(run)
    return total


def _combiners(boosting: Any, X: np.ndarray, y: np.ndarray, new: np.ndarray) -> dict[str, Callable[[], Any]]:
    def on_outputs(model: Any) -> Any:
        return model.fit(flat(boosting.stage_proba(X)), y).predict(flat(boosting.stage_proba(new)))

    def stacked(regions: str | None) -> Any:
        model = MaxEntStackingClassifier.from_boosting(boosting, cv="prefit", regions=regions, random_state=0, n_jobs=1)
        return model.fit(X, y).predict(new)

    return {
        "MLP": lambda: on_outputs(network()),
        "SVM": lambda: on_outputs(machine()),
        SIME: lambda: stacked(None),
        LVME: lambda: stacked("union"),
    }


def _peer(setting: Setting, n_bases: int, X: np.ndarray, y: np.ndarray, rounds: int) -> Iterator[Record]:
    name = f"{setting.name} {len(X)}x{X.shape[1]}, {n_bases} bases"
    bases = [(f"base {i + 1}", DrawnBayes(i)) for i in range(n_bases)]
    methods: dict[str, Callable[[], Any]] = {
        SIME: lambda: MaxEntStackingClassifier(bases, cv=5, random_state=0, n_jobs=1),
        LVME: lambda: MaxEntStackingClassifier(bases, cv=5, regions="union", random_state=0, n_jobs=1),
        STACKING: lambda: StackingClassifier(bases, cv=5),
    }
    results: dict[str, list[float]] = {method: [] for method in methods}
    for _ in range(rounds):
        for method, make in methods.items():
            results[method].append(_stacking_trial(setting, make, X, y))
    middle = {method: float(np.median(seconds)) for method, seconds in results.items()}
    for method, seconds in middle.items():
        yield Record(name, method, MINUTES, seconds / 60, None, rounds)
        if method != STACKING:
            judged = setting.judged and method == SIME
            target = (LONGEST, WANTED) if judged else (None, None)
            yield Record(name, method, RATIO, seconds / middle[STACKING], None, rounds, *target)


def _stacking_trial(setting: Setting, make: Callable[[], Any], X: np.ndarray, y: np.ndarray) -> float:
    return sum(timed(lambda: make().fit(X[a], y[a]).predict(X[b])) for a, b in _folds(setting, y))  # noqa: B023


def _folds(setting: Setting, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    return StratifiedKFold(setting.folds, shuffle=True, random_state=0).split(y, y)


def timed(run: Callable[[], Any]) -> float:
    """Seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not converged
        began = time.perf_counter()
        run()
        return time.perf_counter() - began
