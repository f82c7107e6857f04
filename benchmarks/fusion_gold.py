"""What labels of some items change for the others: `Fuser` without calibrations on labels of crowds.

    python -m benchmarks.fusion_gold                 ten sets of ../shared/data, 10 draws (a few minutes on one core)
    python -m benchmarks.fusion_gold --sets rte ms   some of them
    python -m benchmarks.fusion_gold --quick         one set, 2 draws of 10 %

In each draw, 5, 10 or 20 % of the items with a known class are labelled, and the accuracy and the log-loss of the other
items are those with these labels minus those without any. Intervals are 95 % t-intervals of the mean over the draws.
The goal: with labels, accuracy is at most half a point lower on each set.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from threadpoolctl import threadpool_limits

from benchmarks.crowd_peers import read_set
from benchmarks.tables.crowds import SETS, SMALLEST
from benchmarks.tables.data import SHARED
from benchmarks.tables.markdown import table_lines
from mixent import Fuser
from mixent.fusion import LongAnswers, long_answers

SHARES = (0.05, 0.1, 0.2)  # of the items, labelled
DRAWS = 10
MOST_LOST = 0.5  # points of accuracy, the goal


def posteriors(answers: LongAnswers, known: pd.Series) -> pd.DataFrame:
    """Posteriors of all items, given the classes of some."""
    y = known.reindex(answers.items)
    fuser = Fuser().fit(answers, None if known.empty else y.where(y.notna(), None).to_numpy(dtype=object))
    return pd.DataFrame(fuser.posterior_, index=answers.items, columns=fuser.classes_)


def scores(proba: pd.DataFrame, truth: pd.Series) -> np.ndarray:
    """Accuracy in % and log-loss in nats."""
    p = proba.reindex(index=truth.index, columns=sorted({*proba.columns, *truth})).fillna(0.0)
    of_class = p.to_numpy()[np.arange(len(p)), p.columns.get_indexer(truth)]
    right = p.columns[p.to_numpy().argmax(axis=1)] == truth
    return np.array([100 * np.mean(right), -np.log(np.clip(of_class, SMALLEST, 1)).mean()])


def changes(frame: pd.DataFrame, truth: pd.Series, share: float, draws: int) -> np.ndarray:
    """(draws, 2) accuracy in points and log-loss in nats with labels of a share of the items, minus without."""
    answers = long_answers(frame, item="task", source="worker", value="label")
    without, out = posteriors(answers, truth.iloc[:0]), []
    for draw in range(draws):
        known = truth.sample(frac=share, random_state=draw)
        others = truth.drop(known.index)
        out.append(scores(posteriors(answers, known), others) - scores(without, others))
    return np.array(out)


def main(arguments: list[str] | None = None) -> list[str]:
    """Measure, and print and return the lines of the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=SETS, help="names without 'crowd_'; default: all")
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--data", type=Path, default=SHARED, help="the folder with the data sets")
    parser.add_argument("--quick", action="store_true", help="one set, 2 draws of 10 %%")
    asked = parser.parse_args(arguments)
    names, shares, draws = (asked.sets[:1], SHARES[1:2], 2) if asked.quick else (asked.sets, SHARES, asked.draws)
    heads = ["set", *(f"{share:.0%} labelled" for share in shares), "lost"]
    lines = table_lines(heads, [])[:2]
    print("change of accuracy in points / of log-loss in nats", "", *lines, sep="\n", flush=True)
    for name in names:
        frame, truth = read_set(name, asked.data)
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            by_share = [changes(frame, truth, share, draws) for share in shares]
        lost = max(-float(values[:, 0].mean()) for values in by_share) > MOST_LOST
        lines.append(table_lines(heads, [[name, *map(_cell, by_share), "yes" if lost else "no"]])[2])
        print(lines[-1], flush=True)
    return lines


def _cell(values: np.ndarray) -> str:
    mean = values.mean(axis=0)
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return " / ".join(f"{m:+.{d}f} ± {h:.{d}f}" for m, h, d in zip(mean, half, (2, 3)))


if __name__ == "__main__":
    main()
