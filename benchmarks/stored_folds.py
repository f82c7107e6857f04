"""Scores of methods on common folds, kept as they come, for studies of the code before and after a change.

A store is a file with a JSON line for each set, kind and level of contamination, fold and method. A stopped run
resumes: what the store has is not computed again. Delete the file after a change of the code. Every record has the
seconds of the fit (`fit_seconds`), and the processor seconds of fit and predictions together (`cpu_seconds`). With
`--limit`, what takes more processor seconds is ended and kept as failed, and the method skips the set's other folds.
"""

from __future__ import annotations

import argparse
import json
import signal
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.tables.data import SHARED
from benchmarks.tables.store import code_version, read_lines
from mixent.comparison import candidates
from mixent.comparison.shape import read_table, shape_of
from mixent.core.writing import append_line
from mixent.evaluate.cross_validation import score_fold
from mixent.evaluate.runner import Quiet, Split
from mixent.evaluate.samples import read_samples

Record = dict[str, Any]
Key = tuple[Any, ...]
Stores = dict[str, dict[Key, Record]]  # by name, "before" and "after"
PLACE = ("set", "kind", "level", "n_folds", "fold")
KEPT = ("n_train", "n_test", "error", "log_loss", "brier", "fit_seconds", "failed", "warned")


@dataclass(frozen=True)
class Trial:
    """One fold of one table."""

    place: Record  # set, kind, level, n_folds and fold
    X: Any
    y: np.ndarray  # (n,) labels; those of training rows may be wrong
    split: Split


def key_of(record: Record) -> Key:
    """Set, kind, level, number of folds, fold and method."""
    return tuple(record[field] for field in (*PLACE, "method"))


def load_store(path: Path) -> dict[Key, Record]:
    """The records of a store by their keys; none where there is no file."""
    return {key_of(record): record for record in read_lines(path)}


class TooLongError(Exception):
    """A fit was ended at the limit of its processor seconds."""


def run(trials: Iterable[Trial], methods: Sequence[str], path: Path, limit: float | None = None) -> None:
    """Score every method in every trial that the store does not have, within `limit` processor seconds each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    done = load_store(path)
    if done and not path.read_bytes().endswith(b"\n"):  # the last line of a run that was killed
        append_line(path, "")
    too_long = {(r["set"], r["method"]) for r in done.values() if (r["failed"] or "").startswith(TooLongError.__name__)}
    for trial in trials:
        for method in methods:
            place = trial.place | {"method": method}
            if key_of(place) not in done and (place["set"], method) not in too_long:
                with ended_after(limit):
                    record = place | scored(trial, method)
                append_line(path, json.dumps(record))
                if (record["failed"] or "").startswith(TooLongError.__name__):
                    too_long.add((place["set"], method))


@contextmanager
def ended_after(limit: float | None) -> Iterator[None]:
    """Raise an error within, after so many seconds of the processor, in this process only."""

    def end(*_: Any) -> None:
        raise TooLongError(f"more than {limit:g} processor seconds")

    before = signal.signal(signal.SIGPROF, end) if limit else None
    try:
        signal.setitimer(signal.ITIMER_PROF, limit or 0.0)
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        if limit:
            signal.signal(signal.SIGPROF, before)


def scored(trial: Trial, method: str) -> Record:
    """Scores, seconds and warning of a method of `compare` in one fold, or how it failed; in one thread."""
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # of the table; those of the fit are in the record
        table = read_table(trial.X, "auto")
        samples = read_samples(table, trial.y)
        tried, _ = candidates(shape_of(table, samples.labels), names=[method], baselines=False)
        began = time.process_time()
        record, _ = Quiet(partial(score_fold, samples))(tried[method].estimator, trial.split)
        seconds = time.process_time() - began
    record = {field: record[field] for field in KEPT if field in record and record[field] == record[field]}  # no NaN
    return {**record, "cpu_seconds": round(seconds, 3), "code": code_version()}


def parser_of(description: str, out: str) -> argparse.ArgumentParser:
    """The options that all studies have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--sets", nargs="*", help="default: all of the study")
    parser.add_argument("--methods", nargs="*", help="names of methods of `compare`; default: all of the study")
    parser.add_argument("--folds", type=int, help="number of folds")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="of the processor, for a fit and predictions")
    parser.add_argument("--data", type=Path, default=SHARED, help="the folder with the data sets")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results") / out, help="the store")
    parser.add_argument("--beside", type=Path, metavar="FILE", help="a store of the code before a change")
    parser.add_argument("--show", action="store_true", help="run nothing; print the tables of the store")
    return parser


def stores_of(asked: argparse.Namespace) -> Stores:
    """The records of the store, after those of `--beside`, by a name for the tables."""
    stores = {"after": load_store(asked.out)}
    return stores if asked.beside is None else {"before": load_store(asked.beside)} | stores


def failures(stores: Stores) -> list[str]:
    """A line about every fit that failed."""
    failed = [(name, r) for name, store in stores.items() for r in store.values() if r["failed"]]
    where = "{method} on {set}, {kind} {level} %, fold {fold}: {failed}"
    return [f"* failed ({name}): {where.format(**record)}" for name, record in failed]
