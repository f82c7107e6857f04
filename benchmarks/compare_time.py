"""How long `mixent.compare` takes, and whether a short budget gives the answer of a comparison without limits.

    python -m benchmarks.compare_time                       seconds of each shape, against the goals
    python -m benchmarks.compare_time --shapes 150x12       some of them
    python -m benchmarks.compare_time --all-methods         with default mixtures and kernel MED
    python -m benchmarks.compare_time --budget 30           the recommendation within a budget (long; resumable)
    python -m benchmarks.compare_time --measure > FILE      seconds and log-loss of each method on samples and two folds

With a file such as `--measure` prints, tests/golden/budgets.json, a test replays the rule of budgets.

The tables are simulated; `--data FOLDER` adds the CSV files of a folder, whose last column is the class. Run it on idle
cores: the seconds are those of a clock. Comparisons without limits are kept in `--out` and not computed again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import mixent
from mixent.base.folds import assign_folds
from mixent.comparison import candidates
from mixent.comparison.shape import read_table, shape_of
from mixent.data import read_labels
from mixent.evaluate.cross_validation import score_fold
from mixent.evaluate.halving import samples_of
from mixent.evaluate.runner import Method, Quiet, Runner, splits_of
from mixent.evaluate.samples import read_samples

GOALS = {"150x12": 20, "500x10": 30, "1000x12": 45, "5000x20": 180, "20000x12": 180}  # seconds, on two idle cores
GOALS_ALL = {"1000x12": 90}  # the same with all methods
BUDGETED = ("1000x12", "2000x15", "5000x20", "10000x10", "20000x12")
SLOW = ("mixture", "shared mixture", "RBF MED")  # default mixtures and kernel MED
CLOSE, CLOSE_ABSOLUTE = 0.05, 0.01  # share of the log-loss, or nats: what counts as the same answer
LONGEST = 300.0  # seconds of a fit that `--measure` waits for
GRACE = 10.0  # seconds beyond the budget within which a command must end


def simulated(shape: str, seed: int = 0) -> tuple[Any, np.ndarray]:
    """A table of numbers, categories and missing values, with curved class boundaries: "ROWSxCOLUMNS"."""
    import pandas as pd
    from sklearn.datasets import make_classification

    n_rows, n_columns = map(int, shape.split("x"))
    informative = {"n_informative": max(3, n_columns // 2), "n_redundant": 2}
    n_classes = 3 if n_rows == 5000 else 2
    X, y = make_classification(n_rows, n_columns, **informative, n_classes=n_classes, flip_y=0.05, random_state=seed)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(n_columns)])
    for j in range(n_columns // 3):
        frame[f"x{j}"] = pd.cut(frame[f"x{j}"], [-np.inf, -1, 0, 1, np.inf], labels=list("abcd")).astype(str)
    frame.iloc[np.random.default_rng(seed).random(n_rows) < 0.03, n_columns - 1] = np.nan
    return frame, y


def tables(shapes: list[str], folder: Path | None) -> Iterator[tuple[str, Any, Any]]:
    """Name, rows and labels of each table."""
    for shape in shapes:
        yield shape, *simulated(shape)
    if folder is not None:
        import pandas as pd

        for path in sorted(folder.glob("*.csv")):
            frame = pd.read_csv(path)
            yield path.stem, frame.iloc[:, :-1], frame.iloc[:, -1].to_numpy()


def names_without(X: Any, y: Any, left_out: tuple[str, ...]) -> list[str]:
    """The methods that `compare` tries on a table, but for some."""
    table = read_table(X, "auto")
    tried, _ = candidates(shape_of(table, read_labels(y, table.n_rows)))
    return [name for name in tried if name not in left_out]


def timed(X: Any, y: Any, **options: Any) -> tuple[float, Any]:
    """Seconds and result of a comparison."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = mixent.compare(X, y, **options)
    return time.perf_counter() - began, result


def time_line(name: str, X: Any, y: Any, left_out: tuple[str, ...] = SLOW, **options: Any) -> dict[str, Any]:
    """Seconds of one comparison, and the methods that it stopped."""
    seconds, result = timed(X, y, methods=names_without(X, y, left_out), baselines=False, **options)
    fits = {m: round(float(np.nanmean(result.cv.values(m, "fit_seconds"))), 2) for m in result.cv.methods}
    late = [m for m, why in result.skipped.items() if "was ended" in why]
    goal = (GOALS if left_out else GOALS_ALL).get(name)
    return {"table": name, "seconds": round(seconds, 1), "goal": goal, "late": late, "fit_seconds": fits}


def measured(name: str, X: Any, y: Any, jobs: int = 2) -> dict[str, Any]:
    """Training rows, size of the sample, fold, seconds and log-loss of each method on samples and on two folds."""
    table = read_table(X, "auto")
    samples = read_samples(table, y)
    tried, _ = candidates(shape_of(table, samples.labels))
    folds = splits_of(assign_folds(samples.labels, folds=5, repeats=1, random_state=0))
    splits = [*samples_of(folds[0], samples.codes, np.random.default_rng(0)), *folds[:2]]
    methods = {name: Method(candidate.estimator, cost=candidate.cost) for name, candidate in tried.items()}
    runner = Runner(methods, Quiet(partial(score_fold, samples)), splits, n_jobs=jobs, limit=LONGEST, give_up=True)
    runner.run()
    lines = {}
    for method, done in runner.outcomes.items():
        places = [(splits[s], outcome.record) for s, outcome in sorted(done.items())]
        lines[method] = [
            [len(p.train), p.sample, p.fold, round(r["fit_seconds"] + r["predict_seconds"], 3), round(r["log_loss"], 4)]
            for p, r in places
        ]
    return {"table": name, "methods": lines}


def budget_line(name: str, X: Any, y: Any, budget: float, out: Path) -> dict[str, Any]:
    """The log-loss of what a budget recommends beside the best, both in a comparison without limits."""
    kept = out / f"{name}.json"
    if not kept.exists():
        _, free = timed(X, y, limit=None, journal=out / f"{name}.jsonl", refit=False)
        losses = {m: float(np.nanmean(free.cv.values(m, "log_loss"))) for m in free.cv.methods}
        kept.write_text(json.dumps({"losses": losses, "best": free.recommended}))
    free_losses = json.loads(kept.read_text())["losses"]
    seconds, result = timed(X, y, budget=budget)
    best, mine = min(free_losses.values()), free_losses[result.recommended]
    close = mine - best <= max(CLOSE * best, CLOSE_ABSOLUTE)
    line = {"table": name, "seconds": round(seconds, 1), "in_time": seconds <= budget + GRACE, "close": close}
    return {**line, "recommended": result.recommended, "log_loss": round(mine, 4), "best": round(best, 4)}


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    """Run and print a JSON line for each table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", nargs="*", help="ROWSxCOLUMNS")
    parser.add_argument("--data", type=Path, help="a folder of CSV files")
    parser.add_argument("--all-methods", action="store_true")
    parser.add_argument("--budget", type=float, help="seconds")
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/compare_time"))
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args(arguments)
    timing = asked.budget is None and not asked.measure
    shapes = asked.shapes if asked.shapes is not None else list(GOALS if timing else BUDGETED)
    lines = []
    for table in tables(shapes, asked.data):
        if asked.measure:
            line = measured(*table, asked.jobs)
        elif asked.budget is None:
            line = time_line(*table, left_out=() if asked.all_methods else SLOW, n_jobs=asked.jobs)
        else:
            asked.out.mkdir(parents=True, exist_ok=True)
            line = budget_line(*table, asked.budget, asked.out)
        print(json.dumps(line), flush=True)
        lines.append(line)
    return lines


if __name__ == "__main__":
    main()
