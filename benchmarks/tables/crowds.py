"""Table "crowds": labels that workers gave to items, each to some; who is worth how much, with and without gold items.

A fifth of the items, drawn at random, are gold: their classes are known to those methods that may use them. All errors
are of the other items that have a class, the same for all methods. Workers of at least ten gold items are calibrated on
them, on top of the belief that anybody is more often right than not; of the others there is that belief alone.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Grid

from benchmarks.tables.compare import mean_sd
from benchmarks.tables.data import NoDataError, manifest
from benchmarks.tables.store import Store, StoreJournal, code_version
from benchmarks.tables.summary import FIELDS
from mixent import Calibration, Fuser
from mixent.evaluate.runner import Method, Runner, Split
from mixent.fusion import LongAnswers, long_answers

SETS = ("bluebird", "cf", "cf_amt", "dog", "face", "ms", "product", "rte", "sentiment", "temp")
QUICK = ("cf", "bluebird")
SPLITS = 5
GOLD = 0.2  # of the items with a class
ENOUGH = 10  # gold items of a worker who is calibrated
MAJORITY, ALONE, WITH_GOLD = "majority", "Dawid-Skene", "Dawid-Skene, gold items given"
CALIBRATED = {"calibrated, ml-product": "ml-product", "calibrated, auto": "auto"}
METHODS = (MAJORITY, ALONE, WITH_GOLD, *CALIBRATED)
SMALLEST = 1e-6


@dataclass(frozen=True)
class Crowd:
    """Answers of the workers, and the classes of the items; None where not known."""

    name: str
    answers: LongAnswers
    truth: np.ndarray  # (n,) of str or None

    @property
    def labels(self) -> list[str]:
        outputs = {v for column in self.answers.values.values() for v in column if v is not None}
        return sorted(outputs | {v for v in self.truth if v is not None})


def read_labels(name: str, folder: Path) -> Any:
    """DataFrame with the columns item, worker, label and class; of two answers to an item, the later one."""
    import pandas as pd

    entry = manifest(folder).get(f"crowd_{name}")
    if entry is None or not (folder / entry["file"]).exists():
        raise NoDataError(f"there is no data set 'crowd_{name}' in {folder}")
    frame = pd.read_csv(folder / entry["file"], dtype=str, keep_default_na=False)
    return frame.drop_duplicates(["item", "worker"], keep="last")


def read_crowd(name: str, folder: Path) -> Crowd:
    frame = read_labels(name, folder)
    answers = long_answers(frame, item="item", source="worker", value="label")
    known = dict(zip(frame["item"], frame["class"]))
    return Crowd(name, answers, np.array([known[item] or None for item in answers.items], dtype=object))


def split_of(crowd: Crowd, number: int) -> Split:
    """One draw of gold items, and the others."""
    there = np.flatnonzero(crowd.truth != None)  # noqa: E711 - of every item
    order = np.random.default_rng(number).permutation(there)
    gold, rest = np.split(order, [round(GOLD * len(there))])
    return Split(number, 0, gold, rest)


def measured(crowd: Crowd, method: str, split: Split) -> tuple[dict[str, Any], None]:
    """The scores of a method, given the labels of the gold items."""
    gold_labels = np.full(len(crowd.truth), None, dtype=object)
    gold_labels[split.train] = crowd.truth[split.train]
    sources, n_calibrated = calibrated(crowd, split.train)
    fuser = _fitted(method, crowd, gold_labels, sources)
    scored = scores(fuser, crowd.truth, split.test)
    return {"failed": None, "n_calibrated": n_calibrated, "taken": fuser.method_, **scored}, None


def _fitted(method: str, crowd: Crowd, text: np.ndarray, sources: dict[str, Calibration]) -> Fuser:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not converged
        if method in CALIBRATED:
            return Fuser(sources, method=CALIBRATED[method]).fit(crowd.answers)
        rule = "majority" if method == MAJORITY else "dawid-skene"
        return Fuser(None, method=rule).fit(crowd.answers, text if method == WITH_GOLD else None)


def calibrated(crowd: Crowd, gold: np.ndarray) -> tuple[dict[str, Calibration], int]:
    """Of every worker, and how many had enough gold items."""
    labels = crowd.labels
    guess = Calibration.guess(labels)
    places = {label: k for k, label in enumerate(labels)}
    result, n_calibrated = {}, 0
    for worker, column in crowd.answers.values.items():
        pairs = [(places[crowd.truth[i]], places[column[i]]) for i in gold.tolist() if column[i] is not None]
        counts = guess.counts.copy()
        if len(pairs) >= ENOUGH:
            np.add.at(counts, tuple(np.array(pairs).T), 1.0)
            n_calibrated += 1
        result[worker] = Calibration.from_counts(counts, labels, smoothing=0.0)
    return result, n_calibrated


def scores(fuser: Fuser, truth: np.ndarray, rows: np.ndarray) -> dict[str, float]:
    place = {label: k for k, label in enumerate(fuser.classes_.tolist())}
    chosen = fuser.posterior_[rows, [place[label] for label in truth[rows]]]
    error = float(np.mean(fuser.labels_[rows] != truth[rows]))
    return {"error": error, "log_loss": float(-np.log(np.clip(chosen, SMALLEST, 1)).mean())}


def crowds(args: argparse.Namespace) -> int:
    """The program: measure what is not done yet, a table of means over the splits, and the records."""
    names, splits = args.sets or (QUICK if args.quick else SETS), args.repeats or (1 if args.quick else SPLITS)
    store = Store("crowds", args.results)
    try:
        results = {name: _one_crowd(name, splits, args, store) for name in names}
    except NoDataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    results = {name: by for name, by in results.items() if any(by.values())}
    console = Console()
    console.print(_grid(results))
    summary = [record for name, by in results.items() for record in _summary(name, by)]
    path = store.write_summary(summary, "crowds" + "-quick" * args.quick)
    console.print(f"{len(summary)} records in {path}", markup=False, highlight=False)
    return 0


def _one_crowd(name: str, splits: int, args: argparse.Namespace, store: Store) -> dict[str, list[dict]]:
    if not args.show:
        store.forget(name, METHODS if "all" in args.redo else args.redo, code_version())
        crowd = read_crowd(name, args.data)
        methods = {method: Method(method) for method in METHODS}
        draws = [split_of(crowd, number) for number in range(splits)]
        Runner(methods, partial(measured, crowd), draws, StoreJournal(store, name)).run()
        if not args.quiet:
            print(f"{name}: {splits} splits", file=sys.stderr, flush=True)
    return stored(store, name, splits)


def stored(store: Store, name: str, splits: int = SPLITS) -> dict[str, list[dict]]:
    """Records of a set by method."""
    records = [r for r in store.load(name).values() if r["repeat"] < splits]
    return {method: [r for r in records if r["method"] == method] for method in METHODS}


def _summary(name: str, by: Mapping[str, list[dict]]) -> Iterator[dict]:
    for method, records in by.items():
        for metric in ("error", "log_loss"):
            mean, sd, n = mean_sd(records, metric)
            values: Any = (name, method, metric, round(mean, 6), round(sd, 6) if n > 1 else None, n, None, None)
            yield dict(zip(FIELDS, values))


def _grid(results: Mapping[str, Mapping[str, list[dict]]]) -> Grid:
    grid = Grid("set", "calibrated workers", *METHODS, "auto took")
    grid.title = f"crowds: error % / log-loss of the items that are not gold, {GOLD:.0%} of which are"
    for name, by in results.items():
        cells = [f"{mean_sd(r, 'error')[0]:.1f} / {mean_sd(r, 'log_loss')[0]:.3f}" for r in by.values()]
        some = [r["n_calibrated"] for r in by[MAJORITY]]
        taken = sorted({r["taken"] for r in by["calibrated, auto"]})
        grid.add_row(name, f"{np.mean(some):.0f}", *cells, ", ".join(taken))
    return grid
