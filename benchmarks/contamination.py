"""Study of dirty tables: scores of default classifiers with bad cells or wrong labels, beside scikit-learn's.

    python -m benchmarks.contamination                      all sets and methods, three folds (15 minutes on one core)
    python -m benchmarks.contamination --quick              two sets, one fold, one level, not clean
    python -m benchmarks.contamination --beside FILE        with the store of the code before a change
    python -m benchmarks.contamination --show               the tables of the store, without a run

The ten sets have numeric columns and at most 846 rows, so that every method takes seconds: two to six classes, 4 to 34
columns, with strong (wine, vehicle) and weak (bupa, pima) classes, and heart_statlog with categories beside numbers.

* Bad cells: 1, 2 or 5 % of the numeric cells of the whole table, training and test rows, become gross errors: the mean
  of the column plus or minus 10 to 100 standard deviations, uniformly distributed. A dirty table has them everywhere.
* Wrong labels: 1, 2 or 5 % of the training rows of each fold get another class at random. Test labels stay as they are.

Folds and contamination are the same for all methods, and a higher level has all errors of a lower one. Methods are
those of `mixent.compare`. Stores are described in `stored_folds`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.stored_folds import Key, Record, Stores, Trial, failures, parser_of, run, stores_of
from benchmarks.tables.data import Dataset, load
from benchmarks.tables.markdown import table_lines
from mixent.base.folds import stratified_folds
from mixent.evaluate.runner import splits_of

NUMERIC = ("iris", "wine", "crabs", "new_thyroid", "glass", "bupa", "vehicle", "ionosphere", "pima")
SETS = (*NUMERIC, "heart_statlog")
OWN = ("mixture", "maximum entropy", "linear MED", "shared mixture")
METHODS = (*OWN, "logistic regression", "random forest", "gradient boosting")
LEVELS, FOLDS = (0, 1, 2, 5), 3
CLEAN = ("clean", 0)
QUICK_SETS, QUICK_LEVELS = ("iris", "crabs"), (5,)
QUICK_METHODS = tuple(name for name in METHODS if name != "shared mixture")
LEAST, MOST = 10.0, 100.0  # standard deviations of a gross error from the mean
DIGITS = {"error": 1, "log_loss": 3}
TITLES = {"error": "Error, %", "log_loss": "Log-loss, nats"}


def bad_cells(data: Dataset, percent: float) -> Any:
    """The table with a share of its numeric cells replaced by gross errors."""
    rng = np.random.default_rng([zlib.crc32(data.name.encode()), 0])
    names = [column for column in data.X.columns if column not in data.discrete]
    X, values = data.X.copy(), data.X[names].to_numpy(dtype=float)
    mean, std = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    rows, columns = np.nonzero(~np.isnan(values) & (std > 0))
    order = rng.permutation(len(rows))
    errors = rng.choice([-1.0, 1.0], len(rows)) * rng.uniform(LEAST, MOST, len(rows))
    chosen = order[: round(percent / 100 * len(rows))]
    i, j = rows[chosen], columns[chosen]
    values[i, j] = mean[j] + errors[chosen] * std[j]
    X[names] = values
    return X


def wrong_labels(data: Dataset, train: np.ndarray, fold: int, percent: float) -> np.ndarray:
    """The labels with a share of those of the training rows replaced by another class."""
    rng = np.random.default_rng([zlib.crc32(data.name.encode()), 1, fold])
    classes, codes = np.unique(data.y, return_inverse=True)
    chosen = rng.permutation(train)
    steps = rng.integers(1, len(classes), len(train))  # to one of the other classes
    n_wrong = round(percent / 100 * len(train))
    codes[chosen[:n_wrong]] = (codes[chosen] + steps)[:n_wrong] % len(classes)
    return classes[codes]


def trials_of(data: Dataset, levels: tuple[int, ...], n_folds: int, fold: int) -> Iterator[Trial]:
    """A fold of a set with every kind of contamination at some levels; level 0 is the clean table."""
    split = splits_of(stratified_folds(data.y, folds=n_folds))[fold]
    place = {"set": data.name, "n_folds": n_folds, "fold": fold}
    for level in levels:
        if level == 0:
            yield Trial(place | {"kind": "clean", "level": 0}, data.X, data.y, split)
            continue
        yield Trial(place | {"kind": "cells", "level": level}, bad_cells(data, level), data.y, split)
        labels = wrong_labels(data, split.train, fold, level)
        yield Trial(place | {"kind": "labels", "level": level}, data.X, labels, split)


def complete(store: dict[Key, Record], method: str, conditions: list[tuple[str, int]]) -> dict[tuple, dict]:
    """By set and fold, the records of a method that has worked in all conditions: condition -> record."""
    by_fold: dict[tuple, dict] = {}
    for record in store.values():
        if record["method"] == method and not record["failed"]:
            place = record["set"], record["n_folds"], record["fold"]
            by_fold.setdefault(place, {})[record["kind"], record["level"]] = record
    return {place: records for place, records in by_fold.items() if set(conditions) <= set(records)}


def table(stores: Stores, metric: str) -> list[str]:
    """Means of a metric by method, code and condition, over the sets' means of folds that all stores have."""
    known = {(r["kind"], r["level"]) for store in stores.values() for r in store.values()}
    conditions = sorted(known, key=lambda c: (c != CLEAN, c))
    heads = ["clean" if c == CLEAN else f"{c[1]} % {c[0]}" for c in conditions]
    rows = []
    for method in dict.fromkeys((*METHODS, *(r["method"] for store in stores.values() for r in store.values()))):
        records_of = {name: complete(store, method, conditions) for name, store in stores.items()}
        common = sorted(set.intersection(*map(set, records_of.values())))
        sets = list(dict.fromkeys(place[0] for place in common))
        for name, records in records_of.items() if common else ():
            means = [_mean(records, common, sets, condition, metric) for condition in conditions]
            cells = [f"{mean:.{DIGITS[metric]}f}" for mean in means]
            rows.append([method, *([name] if len(stores) > 1 else []), *cells, str(len(sets)), str(len(common))])
    code = ["code"] if len(stores) > 1 else []
    return [f"{TITLES[metric]}: mean over the sets", "", *table_lines(["method", *code, *heads, "sets", "folds"], rows)]


def _mean(records: dict, places: list[tuple], sets: list[str], condition: tuple[str, int], metric: str) -> float:
    by_set = [[records[p][condition][metric] for p in places if p[0] == name] for name in sets]
    return (100 if metric == "error" else 1) * float(np.mean([np.mean(values) for values in by_set]))


def main(arguments: list[str] | None = None) -> list[str]:
    """Run what the store does not have; print and return the lines of the tables."""
    parser = parser_of(__doc__.splitlines()[0], "contamination.jsonl")
    parser.add_argument("--quick", action="store_true", help="two sets, one fold, one level")
    asked = parser.parse_args(arguments)
    usual = (QUICK_SETS, QUICK_LEVELS, QUICK_METHODS) if asked.quick else (SETS, LEVELS, METHODS)
    sets, levels, methods = asked.sets or usual[0], usual[1], asked.methods or usual[2]
    n_folds = asked.folds or FOLDS
    for fold in range(1 if asked.quick else n_folds) if not asked.show else ():  # a stopped run has all sets
        for name in sets:
            data = load(name, asked.data, mixed=True)
            run(trials_of(data, levels, n_folds, fold), methods, asked.out)
    stores = stores_of(asked)
    lines = [*table(stores, "error"), *table(stores, "log_loss"), *failures(stores)]
    print("\n".join(lines))
    return lines


if __name__ == "__main__":
    main()
