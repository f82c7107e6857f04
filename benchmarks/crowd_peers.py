"""`Fuser` without calibrations beside crowd-kit: accuracy, log-loss and seconds on labels of crowds.

    python -m benchmarks.crowd_peers                  ten sets of ../shared/data, and a simulated one of 90,000 labels
    python -m benchmarks.crowd_peers --sets rte ms    some of them
    python -m benchmarks.crowd_peers --quick          one set, and a simulated one of 300 labels

The methods of crowd-kit are measured if it is installed (`pip install crowd-kit`); ours always are: `auto`, Dawid-Skene
and the shares of the votes. All have the same answers and no class of any item, and are scored on the same items, those
whose class is known (column "scored"). Probabilities are at least 1e-6 in the log-loss. Seconds are those of one fit,
with the reading of the table. Methods of crowd-kit without probabilities have no log-loss, and a dash stands for those
that fail. The means are those of the sets, without the simulated one.
"""

from __future__ import annotations

import argparse
import importlib
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks.tables.crowds import SETS, SMALLEST, read_labels
from benchmarks.tables.data import SHARED
from benchmarks.tables.markdown import table_lines
from mixent import Fuser
from mixent.fusion import long_answers

OURS = ("auto", "dawid-skene", "majority")
PEERS = ("MajorityVote", "Wawa", "DawidSkene", "OneCoinDawidSkene", "GLAD", "MACE", "MMSR")
LARGE = (15_000, 800, 6)  # items, workers, labels of an item
SMALL = (60, 10, 5)
Predict = Callable[[pd.DataFrame], pd.DataFrame]  # columns task, worker, label -> probabilities, a row for each item


def read_set(name: str, folder: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Answers with the columns task, worker and label, and the classes of the items that have one."""
    frame = read_labels(name, folder).rename(columns={"item": "task"})
    truth = frame.drop_duplicates("task").set_index("task")["class"]
    return frame[["task", "worker", "label"]], truth[truth != ""]


def simulated(n_items: int, n_workers: int, n_labels: int) -> tuple[pd.DataFrame, pd.Series]:
    """Labels of four classes by workers who are right in 40 to 90 % of the items."""
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=n_items)
    item = np.repeat(np.arange(n_items), n_labels)
    worker = np.concatenate([rng.choice(n_workers, n_labels, replace=False) for _ in range(n_items)])
    right = rng.random(len(item)) < rng.uniform(0.4, 0.9, n_workers)[worker]
    label = np.where(right, truth[item], (truth[item] + rng.integers(1, 4, len(item))) % 4)
    frame = pd.DataFrame({"task": item.astype(str), "worker": worker.astype(str), "label": label.astype(str)})
    return frame, pd.Series(truth.astype(str), index=np.arange(n_items).astype(str))


def by_fuser(method: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Posteriors of `Fuser`."""
    answers = long_answers(frame, item="task", source="worker", value="label")
    fuser = Fuser(method=method).fit(answers)
    return pd.DataFrame(fuser.posterior_, index=fuser.items_, columns=fuser.classes_)


class PeerError(RuntimeError):
    """A method of crowd-kit failed."""


def by_crowd_kit(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Probabilities of a method of crowd-kit; those of its labels are one where it has no others."""
    aggregation = importlib.import_module("crowdkit.aggregation")
    method: Any = getattr(aggregation, name)()
    try:
        if name == "Wawa":  # its `predict` fails with newer versions of scikit-learn; this is what it computes
            return aggregation.MajorityVote().fit(frame, skills=method.fit(frame).skills_).probas_
        if hasattr(method, "fit_predict_proba"):
            return method.fit_predict_proba(frame)
        return pd.get_dummies(method.fit_predict(frame)).astype(float)
    except (AttributeError, MemoryError, ValueError) as error:  # MMSR: workers without common items, 800 workers
        raise PeerError(str(error)) from error


def methods() -> dict[str, Predict]:
    """All methods that can be measured here."""
    predict: dict[str, Predict] = {f"mixent {name}": partial(by_fuser, name) for name in OURS}
    if importlib.util.find_spec("crowdkit") is not None:
        predict |= {f"crowd-kit {name}": partial(by_crowd_kit, name) for name in PEERS}
    return predict


def scored(predict: Predict, frame: pd.DataFrame, truth: pd.Series) -> tuple[float, float, float]:
    """Accuracy in %, log-loss (NaN without probabilities) and seconds."""
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        try:
            proba = predict(frame)
        except PeerError:
            return np.nan, np.nan, np.nan
        seconds = time.perf_counter() - began
    p = proba.reindex(index=truth.index, columns=sorted({*proba.columns, *truth})).fillna(0.0)
    right = np.mean(p.columns[p.to_numpy().argmax(axis=1)] == truth)
    chosen = p.to_numpy()[np.arange(len(p)), p.columns.get_indexer(truth)]
    is_sure = p.isin([0.0, 1.0]).all(axis=None)
    loss = np.nan if is_sure else float(-np.log(np.clip(chosen, SMALLEST, 1)).mean())
    return 100 * float(right), loss, seconds


Results = Mapping[str, tuple[float, float, float]]  # of the methods, on one set


def header(names: Any) -> list[str]:
    return table_lines(["set", "scored", *names], [])[:2]


def row(name: str, n_scored: str, by: Results) -> str:
    return table_lines(["set"] * (2 + len(by)), [[name, n_scored, *map(_cell, by.values())]])[2]


def means(results: Mapping[str, Results]) -> Results:
    """Means over the sets; NaN for a method that failed on one of them."""
    names = next(iter(results.values()))
    return {name: tuple(np.mean([by[name] for by in results.values()], axis=0)) for name in names}


def _cell(values: Any) -> str:
    accuracy, loss, seconds = values
    if np.isnan(accuracy):
        return "-"
    return f"{accuracy:.1f} / {'-' if np.isnan(loss) else f'{loss:.3f}'} / {seconds:.2f}"


def main(arguments: list[str] | None = None) -> list[str]:
    """Measure, and print and return the lines of the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=SETS, help="names without 'crowd_'; default: all")
    parser.add_argument("--methods", nargs="*", default=list(methods()), help="default: all, as in the header")
    parser.add_argument("--data", type=Path, default=SHARED, help="the folder with the data sets")
    parser.add_argument("--quick", action="store_true", help="one set, and a small simulated one")
    asked = parser.parse_args(arguments)
    names, size = (asked.sets[:1], SMALL) if asked.quick else (asked.sets, LARGE)
    predict = {name: methods()[name] for name in asked.methods}
    lines: list[str] = []

    def show(*more: str) -> None:
        lines.extend(more)
        print(*more, sep="\n", flush=True)

    show("accuracy % / log-loss / seconds", "", *header(predict))
    results = {}
    for name in names:
        frame, truth = read_set(name, asked.data)
        results[name] = {method: scored(of, frame, truth) for method, of in predict.items()}
        show(row(name, f"{len(truth)} of {frame['task'].nunique()}", results[name]))
    if results:
        show(row("mean", "", means(results)))
    frame, truth = simulated(*size)
    show(row("simulated", f"{len(truth)} of {len(truth)}", {m: scored(of, frame, truth) for m, of in predict.items()}))
    return lines


if __name__ == "__main__":
    main()
