"""Fit times of a default mixture classifier beside gradient boosting of scikit-learn, on 12 tables of ../shared/data.

    python -m benchmarks.fit_time                           all tables, on two idle cores (one minute)
    python -m benchmarks.fit_time --sets wine --rounds 1    some of them

Tables have 178 to 2,310 rows, all columns, and missing values as they are. `MixtureClassifier()` reads the table; for
`HistGradientBoostingClassifier()` categories are encoded as in `mixent.compare`, before the clock starts. Both use the
same number of cores and are fitted alternately, after one fit each that is not timed; the seconds are the medians of
three rounds. Goals: a geometric mean of the ratios of at most 3, and no fit of a mixture above 8 s.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from benchmarks.tables.data import SHARED, Dataset, load
from benchmarks.tables.markdown import table_lines
from mixent import MixtureClassifier, TunedClassifier
from mixent.comparison.shape import read_table

SMALL = ("wine", "sonar", "glass", "heart_cleveland", "ionosphere", "balance_scale")
SETS = (*SMALL, "crx", "breast_w", "pima", "vehicle", "cmc", "segment")
RATIO, LONGEST = 3.0, 8.0  # goals: geometric mean of the ratios, seconds


@dataclass(frozen=True)
class Timing:
    """Median seconds of both fits on one table."""

    name: str
    n_rows: int
    mixture: float
    boosting: float

    @property
    def ratio(self) -> float:
        """Seconds of the mixture over those of boosting."""
        return self.mixture / self.boosting


def fits_of(data: Dataset, jobs: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Functions that fit the mixture and boosting; made with one fit of boosting, which finds the encoding."""
    encoded = TunedClassifier(HistGradientBoostingClassifier(random_state=0), encoding="codes").fit(data.X, data.y)
    Z = encoded.columns_(read_table(data.X, "auto"))
    mixture = MixtureClassifier(random_state=0, n_jobs=jobs)
    return lambda: clone(mixture).fit(data.X, data.y), lambda: clone(encoded.model_).fit(Z, data.y)


def timing(data: Dataset, jobs: int = 2, rounds: int = 3) -> Timing:
    """Median seconds of both, fitted alternately."""
    with warnings.catch_warnings(), threadpool_limits(jobs, user_api="openmp"):
        warnings.simplefilter("ignore")
        fits = fits_of(data, jobs)
        for fit in fits:
            fit()
        seconds = [[_seconds(fit) for fit in fits] for _ in range(rounds)]
    return Timing(data.name, len(data.y), *np.median(seconds, axis=0).tolist())


def _seconds(fit: Callable[[], Any]) -> float:
    began = time.perf_counter()
    fit()
    return time.perf_counter() - began


def lines_of(timings: list[Timing]) -> Iterator[str]:
    """A Markdown table, and the goals."""
    rows = [[t.name, str(t.n_rows), f"{t.mixture:.2f}", f"{t.boosting:.2f}", f"{t.ratio:.1f}"] for t in timings]
    yield from table_lines(["set", "rows", "mixture, s", "boosting, s", "ratio"], rows)
    mean, longest = np.exp(np.mean(np.log([t.ratio for t in timings]))), max(timings, key=lambda t: t.mixture)
    yield f"Geometric mean of the ratios: {mean:.2f} (goal: at most {RATIO:g}), {_verdict(mean <= RATIO)}."
    seconds = f"{longest.mixture:.2f} s on {longest.name} (goal: at most {LONGEST:g} s)"
    yield f"Longest fit of a mixture: {seconds}, {_verdict(longest.mixture <= LONGEST)}."


def _verdict(reached: bool) -> str:
    return "reached" if reached else "missed"


def main(arguments: list[str] | None = None) -> list[Timing]:
    """Time the fits and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2, help="cores of both")
    parser.add_argument("--data", type=Path, default=SHARED, help="the folder with the data sets")
    asked = parser.parse_args(arguments)
    timings = [timing(load(name, asked.data, mixed=True), asked.jobs, asked.rounds) for name in asked.sets]
    print("\n".join(lines_of(timings)))
    return timings


if __name__ == "__main__":
    main()
