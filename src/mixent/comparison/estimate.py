"""The score of the best method of a comparison, corrected for its selection, and that of the class frequencies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mixent.base.multiple_tests import holm
from mixent.base.result import Result
from mixent.data import encode
from mixent.evaluate.paired import TTest
from mixent.evaluate.paired_rows import RowTest
from mixent.evaluate.records import CrossValidation
from mixent.evaluate.row_losses import out_of_fold_losses, paired_test, scored_rows
from mixent.evaluate.scores import HIGHER, ROW_LOSSES, SMALLEST
from mixent.evaluate.text import WORDS

CHOSEN_BY = (*ROW_LOSSES, *HIGHER)
ALPHA = 0.05
BOOTSTRAPS = 500
NEAR, NEAR_ABSOLUTE = 0.05, 0.01  # share of the best score, or nats (share of rows): what is close to the best


@dataclass(frozen=True, repr=False)
class Estimate(Result):
    """The expected score of the recommended method, corrected for its selection as the best of many."""

    _title = "Score corrected for selection"
    _shown = ("value", "low", "high")

    value: float
    low: float  # ends of the 95 % interval
    high: float
    plain: float  # the uncorrected, optimistic score: the lowest mean over all rows of the first repeat

    def __str__(self) -> str:
        interval = f"95 % interval {self.low:.4g} to {self.high:.4g}"
        return f"{self.value:.4g} ({interval}); without the correction {self.plain:.4g}"


class Against(NamedTuple):
    """The test of a method against the best one."""

    test: RowTest | TTest
    adjusted: float  # p-value after Holm's adjustment

    @property
    def close(self) -> bool:
        """Whether the method is an alternative: not significantly different, and within 5 % or 0.01 of the best."""
        assert self.test.scores is not None
        return self.adjusted >= ALPHA and self.test.mean <= max(NEAR * self.test.scores[1], NEAR_ABSOLUTE)


def against_best(cv: CrossValidation, best: str, metric: str, begun: Iterable[str] = ()) -> dict[str, Against]:
    """The tests of all other methods against the best, ranked ones first, with Holm's adjustment for their number.

    Methods that were stopped, or failed in some folds, are included: they are tested on the rows that they share with
    the best. One that shares none counts in the adjustment only.

    Parameters
    ----------
    cv : CrossValidation
    best : str
    metric : str
    begun : names of methods that were tried on other rows only
    """
    others = [m for m in dict.fromkeys([*cv.ranking(metric), *cv.methods, *begun]) if m != best]
    tests = {name: paired_test(cv, name, best, metric) if name in cv.methods else None for name in others}
    adjusted = holm([1.0 if test is None else test.p_value for test in tests.values()])
    return {name: Against(test, float(p)) for (name, test), p in zip(tests.items(), adjusted) if test is not None}


def chosen_estimate(cv: CrossValidation, methods: list[str], metric: str, seed: int = 0) -> Estimate:
    """The score of the best of several methods, corrected for selection by a bootstrap (Tsamardinos et al. 2018).

    Rows of the out-of-fold predictions (or groups of rows) are drawn with replacement; the method that is best on the
    drawn rows is scored on the others. The estimate is the mean over the draws, with quantiles as the interval. The AUC
    is not a mean over rows, and is not corrected.
    """
    if metric not in ROW_LOSSES:
        plain = float(cv.values(methods[0], metric).mean())
        return Estimate(plain, np.nan, np.nan, plain)
    losses, weight = out_of_fold_losses(cv, methods, metric)
    plain = float((losses @ weight / weight.sum()).min())
    rng, scores = np.random.default_rng(seed), []
    group = _group_codes(cv, methods)
    n = int(group.max(initial=-1)) + 1
    for _ in range(BOOTSTRAPS):
        counts = np.bincount(rng.integers(n, size=n), minlength=n)[group]
        out = weight * (counts == 0)
        if out.sum() > 0:
            best = int(np.argmin(losses @ (weight * counts)))
            scores.append(float(losses[best] @ out / out.sum()))
    if not scores:
        return Estimate(plain, np.nan, np.nan, plain)
    low, high = np.quantile(scores, (0.025, 0.975))
    return Estimate(float(np.mean(scores)), float(low), float(high), plain)


def _group_codes(cv: CrossValidation, methods: list[str]) -> np.ndarray:
    """The number of the group of every scored row; without groups, of the row."""
    rows = scored_rows(cv, methods)
    return np.arange(len(rows)) if cv.groups is None else np.unique(cv.groups[rows], return_inverse=True)[1]


def frequencies_loss(cv: CrossValidation, metric: str) -> float:
    """The score of always predicting the class frequencies, on the same rows: a baseline for any method."""
    rows = np.flatnonzero(cv.folds[0] >= 0)
    true = encode(cv.y[rows], cv.classes)
    weight = np.ones(len(rows)) if cv.sample_weight is None else cv.sample_weight[rows]
    share = np.bincount(true, weight, len(cv.classes)) / weight.sum()
    if metric in HIGHER:
        return 0.5
    if metric == "log_loss":
        return float(-(share * np.log(np.maximum(share, SMALLEST))).sum())
    if metric == "brier":
        return float(1 - (share**2).sum())
    return float(1 - share.max()) if metric == "error" else 1 - 1 / int((share > 0).sum())


def with_unit(value: float, metric: str) -> str:
    """A score with its unit."""
    _, factor, unit, _ = WORDS[metric]
    return f"{factor * value:.{1 if factor == 100 else 3}f}{unit}"
