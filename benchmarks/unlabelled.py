"""Study of unlabelled rows: MEDClassifier with few labels, with and without unlabelled rows, beside scikit-learn.

    python -m benchmarks.unlabelled                  eight sets, 20 splits (hours on one core; a stopped run resumes)
    python -m benchmarks.unlabelled --splits 5       fewer splits
    python -m benchmarks.unlabelled --quick          two sets, one split, 6 labelled rows per class
    python -m benchmarks.unlabelled --show           the tables of the store, without a run

The labelled rows are 6 or 20 times the number of classes, drawn at random, with at least one of each class. Half of the
other rows, at most 200, are unlabelled training rows, the others are test rows. With "shifted" shares, each class has
the same number of labelled rows, and three quarters of the other rows of all classes but the first are left out.
A store is a file with a JSON line for each split and method; delete it after a change of the code.

The goals: with unlabelled rows, the mean error on each set is at most 1 point and the mean log-loss at most 0.02 above
those of the labelled rows alone. Intervals are 95 % t-intervals of the mean difference over the splits.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.tables.data import SHARED, load
from benchmarks.tables.markdown import table_lines
from benchmarks.tables.store import code_version, read_lines
from mixent import MEDClassifier
from mixent.core.writing import append_line

SETS = ("wine", "breast_w", "iris", "new_thyroid", "heart_statlog", "ionosphere", "sonar", "vehicle")
CONDITIONS = (("random", 6), ("random", 20), ("shifted", 6), ("shifted", 20))  # shares, labelled rows per class
N_SPLITS = 20
MOST_UNLABELLED = 200
KEPT_SHARE = 0.25  # of the rows of all classes but the first, with shifted shares
LEAST = 1e-4  # a probability is at least this large in the log-loss: some of scikit-learn's are 0
MOST_ERROR, MOST_LOSS = 1.0, 0.02  # goals: points and nats above the labelled rows alone
KERNELS = ("linear", "rbf")
PEERS = ("SVM", "self-training", "label spreading")
METHODS = (*(f"{kernel} {rows}" for kernel in KERNELS for rows in ("alone", "with")), *PEERS)
Record = dict[str, Any]


def split_rows(y: np.ndarray, shares: str, per_class: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Labelled, unlabelled and test rows."""
    classes = range(y.max() + 1)
    members = [rng.permutation(np.flatnonzero(y == c)) for c in classes]
    if shares == "shifted":
        labelled = np.concatenate([rows[: min(per_class, len(rows) // 2)] for rows in members])
        others = [rows[min(per_class, len(rows) // 2) :] for rows in members]
        kept = [rows[: len(rows) if c == 0 else max(round(KEPT_SHARE * len(rows)), 1)] for c, rows in enumerate(others)]
        rest = rng.permutation(np.concatenate(kept))
    else:
        first = np.array([rows[0] for rows in members])
        order = rng.permutation(np.setdiff1d(np.arange(len(y)), first))
        n_more = per_class * len(classes) - len(first)
        labelled, rest = np.concatenate([first, order[:n_more]]), order[n_more:]
    n_unlabelled = min(len(rest) // 2, MOST_UNLABELLED)
    return labelled, rest[:n_unlabelled], rest[n_unlabelled:]


def probabilities(method: str, X: np.ndarray, y: np.ndarray, parts: tuple[np.ndarray, ...], seed: int) -> np.ndarray:
    """(n, C) predictions for the test rows."""
    labelled, unlabelled, test = parts
    rows = np.concatenate([labelled, unlabelled])
    kernel, _, training = method.partition(" ")
    if kernel in KERNELS:
        model = MEDClassifier(kernel, random_state=seed)
        if training == "alone":
            return model.fit(X[labelled], y[labelled]).predict_proba(X[test])
        partly = y.astype(object)
        partly[unlabelled] = None
        return model.fit(X[rows], partly[rows]).predict_proba(X[test])
    svm = SVC(probability=True, random_state=seed)
    if method == "SVM":
        return make_pipeline(StandardScaler(), svm).fit(X[labelled], y[labelled]).predict_proba(X[test])
    partly = y.copy()
    partly[unlabelled] = -1
    learner = SelfTrainingClassifier(svm) if method == "self-training" else LabelSpreading(kernel="knn", n_neighbors=7)
    return make_pipeline(StandardScaler(), learner).fit(X[rows], partly[rows]).predict_proba(X[test])


def scored(method: str, X: np.ndarray, y: np.ndarray, parts: tuple[np.ndarray, ...], seed: int) -> Record:
    """Error, log-loss and processor seconds."""
    began = time.process_time()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        p = np.nan_to_num(probabilities(method, X, y, parts, seed), nan=1.0 / (y.max() + 1))
    seconds, truth = time.process_time() - began, y[parts[2]]
    p = np.maximum(p, LEAST)
    loss = log_loss(truth, p / p.sum(axis=1, keepdims=True), labels=np.arange(p.shape[1]))
    error = float(np.mean(p.argmax(axis=1) != truth))
    return {"error": error, "log_loss": float(loss), "cpu_seconds": round(seconds, 3), "code": code_version()}


def key_of(record: Record) -> tuple:
    """Set, shares, labelled rows per class, split and method."""
    return tuple(record[field] for field in ("set", "shares", "per_class", "split", "method"))


def run(sets: tuple[str, ...], conditions: Any, n_splits: int, data: Path, out: Path) -> None:
    """Score every method in every split that the store does not have; a stopped run has all sets."""
    out.parent.mkdir(parents=True, exist_ok=True)
    done = {key_of(record) for record in read_lines(out)}
    for split in range(n_splits):
        for name in sets:
            table = load(name, data)
            y = np.unique(table.y, return_inverse=True)[1]
            for shares, per_class in conditions:
                rng = np.random.default_rng([zlib.crc32(f"{name} {shares}".encode()), per_class, split])
                parts = split_rows(y, shares, per_class, rng)
                for method in METHODS:
                    place = {"set": name, "shares": shares, "per_class": per_class, "split": split, "method": method}
                    if key_of(place) not in done:
                        append_line(out, json.dumps(place | scored(method, table.X, y, parts, split)))


def table(records: list[Record], shares: str, per_class: int) -> list[str]:
    """Error in % and log-loss by set: MED alone, the differences with unlabelled rows, and the peers."""
    here = [r for r in records if (r["shares"], r["per_class"]) == (shares, per_class)]
    rows = []
    for name in dict.fromkeys(r["set"] for r in here):
        of = {method: _by_split(here, name, method) for method in METHODS}
        splits = sorted(set.intersection(*map(set, of.values())))
        if not splits:
            continue
        means = {method: np.mean([of[method][split] for split in splits], axis=0) for method in METHODS}
        cells = [name, str(len(splits))]
        for kernel in KERNELS:
            cells.append(_pair(means[f"{kernel} alone"]))
            changes = np.array([np.subtract(of[f"{kernel} with"][s], of[f"{kernel} alone"][s]) for s in splits])
            cells += [_change(changes[:, 0], 1, MOST_ERROR), _change(changes[:, 1], 3, MOST_LOSS)]
        rows.append([*cells, *(_pair(means[peer]) for peer in PEERS)])
    heads = [head for kernel in KERNELS for head in (f"{kernel} MED alone", "change of error", "of log-loss")]
    title = f"{per_class} labelled rows per class, {shares} shares: error in % / log-loss"
    return [title, "", *table_lines(["set", "splits", *heads, *PEERS], rows)]


def _by_split(records: list[Record], name: str, method: str) -> dict[int, tuple[float, float]]:
    return {
        r["split"]: (100 * r["error"], r["log_loss"]) for r in records if r["set"] == name and r["method"] == method
    }


def _pair(means: np.ndarray) -> str:
    return f"{means[0]:.1f} / {means[1]:.3f}"


def _change(values: np.ndarray, digits: int, most: float) -> str:
    """Mean with half the width of its interval; an exclamation mark above the goal."""
    mean = float(np.mean(values))
    half = float(stats.sem(values) * stats.t.ppf(0.975, len(values) - 1)) if len(values) > 1 else float("nan")
    return f"{mean:+.{digits}f} ± {half:.{digits}f}{' !' if mean > most else ''}"


def main(arguments: list[str] | None = None) -> list[str]:
    """Run what the store does not have; print and return the lines of the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", help="default: all of the study")
    parser.add_argument("--splits", type=int, default=N_SPLITS, help="number of splits")
    parser.add_argument("--data", type=Path, default=SHARED, help="the folder with the data sets")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/unlabelled.jsonl"), help="the store")
    parser.add_argument("--quick", action="store_true", help="two sets, one split, 6 labelled rows per class")
    parser.add_argument("--show", action="store_true", help="run nothing; print the tables of the store")
    asked = parser.parse_args(arguments)
    sets = tuple(asked.sets or (SETS[:2] if asked.quick else SETS))
    conditions = CONDITIONS[:1] if asked.quick else CONDITIONS
    if not asked.show:
        run(sets, conditions, 1 if asked.quick else asked.splits, asked.data, asked.out)
    records = read_lines(asked.out)
    lines = [line for condition in conditions for line in table(records, *condition)]
    print("\n".join(lines))
    return lines


if __name__ == "__main__":
    main()
