"""Scores of the methods of a comparison: paired tests, and the score of the best method corrected for selection."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixent.base.params import check_choice
from mixent.base.result import Result
from mixent.data import encode
from mixent.evaluate.paired import TTest, corrected_t_test
from mixent.evaluate.records import CrossValidation
from mixent.evaluate.scores import SMALLEST
from mixent.evaluate.text import WORDS, without_rounding

CHOSEN_BY = ("error", "balanced_error", "log_loss", "brier")
ALPHA = 0.05
BOOTSTRAPS = 500


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


def paired_test(cv: CrossValidation, a: str, b: str, metric: str) -> TTest:
    """The corrected t test on common folds, with a standard error that is at least that of independent rows.

    The differences of a few folds can agree by chance, so that one row in each would be a significant difference.
    """
    first, second = cv.values(a, metric), cv.values(b, metric)
    ratio = float(np.mean([r["n_test"] / r["n_train"] for r in cv.records if r["method"] == a]))
    difference = without_rounding(first - second, first, second)
    scores = (float(first.mean()), float(second.mean()))
    test = corrected_t_test(difference, ratio, names=(a, b), metric=metric, scores=scores)
    least = _row_std_error(cv, a, b, metric)
    return test if test.std_error >= least else _with_std_error(test, least)


def _row_std_error(cv: CrossValidation, a: str, b: str, metric: str) -> float:
    """Standard error of the mean difference over rows; 0 if the score is not a mean over rows."""
    if metric not in CHOSEN_BY:
        return 0.0
    (first, second), weight = row_losses(cv, [a, b], metric)
    difference = first - second
    share = weight / weight.sum()
    return float(np.sqrt(share**2 @ (difference - share @ difference) ** 2))


def _with_std_error(test: TTest, std_error: float) -> TTest:
    """The test with another standard error."""
    from scipy.special import stdtr, stdtrit

    half = float(stdtrit(test.dof, 0.5 + test.confidence / 2)) * std_error
    p_value = float(2 * stdtr(test.dof, -abs(test.mean) / std_error))
    return replace(test, std_error=std_error, p_value=p_value, interval=(test.mean - half, test.mean + half))


def row_losses(cv: CrossValidation, methods: list[str], metric: str) -> tuple[np.ndarray, np.ndarray]:
    """(m, n) losses of the scored rows of the first repeat, and the weights whose weighted mean is the metric."""
    check_choice("metric", metric, CHOSEN_BY)
    rows = np.flatnonzero(np.isfinite(cv.proba[methods[0]]).all(axis=1))
    true = encode(cv.y[rows], cv.classes)
    weight = np.ones(len(rows)) if cv.sample_weight is None else cv.sample_weight[rows]
    if metric == "balanced_error":
        weight = weight / np.maximum(np.bincount(true, weight, len(cv.classes)), 1e-300)[true]
    proba = np.stack([cv.proba[m][rows] for m in methods])  # (m, n, C)
    index = np.arange(len(rows))
    if metric == "log_loss":
        losses = -np.log(np.clip(proba[:, index, true], SMALLEST, 1.0))
    elif metric == "brier":
        losses = ((proba - np.eye(len(cv.classes))[true]) ** 2).sum(axis=2)
    else:
        losses = (proba.argmax(axis=2) != true).astype(float)
    return losses, weight


def chosen_estimate(cv: CrossValidation, methods: list[str], metric: str, seed: int = 0) -> Estimate:
    """The score of the best of several methods, corrected for selection by a bootstrap (Tsamardinos et al. 2018).

    Rows of the out-of-fold predictions are drawn with replacement; the method that is best on the drawn rows is scored
    on the others. The estimate is the mean over the draws, with quantiles as the interval.
    """
    losses, weight = row_losses(cv, methods, metric)
    plain = float((losses @ weight / weight.sum()).min())
    rng, scores = np.random.default_rng(seed), []
    n = len(weight)
    for _ in range(BOOTSTRAPS):
        counts = np.bincount(rng.integers(n, size=n), minlength=n)
        out = weight * (counts == 0)
        if out.sum() > 0:
            best = int(np.argmin(losses @ (weight * counts)))
            scores.append(float(losses[best] @ out / out.sum()))
    if not scores:
        return Estimate(plain, np.nan, np.nan, plain)
    low, high = np.quantile(scores, (0.025, 0.975))
    return Estimate(float(np.mean(scores)), float(low), float(high), plain)


def frequencies_loss(cv: CrossValidation, metric: str) -> float:
    """The score of always predicting the class frequencies, on the same rows: a baseline for any method."""
    rows = np.flatnonzero(cv.folds[0] >= 0)
    true = encode(cv.y[rows], cv.classes)
    weight = np.ones(len(rows)) if cv.sample_weight is None else cv.sample_weight[rows]
    share = np.bincount(true, weight, len(cv.classes)) / weight.sum()
    if metric == "log_loss":
        return float(-(share * np.log(np.maximum(share, SMALLEST))).sum())
    if metric == "brier":
        return float(1 - (share**2).sum())
    return float(1 - share.max()) if metric == "error" else 1 - 1 / int((share > 0).sum())


def with_unit(value: float, metric: str) -> str:
    """A score with its unit."""
    _, factor, unit, _ = WORDS[metric]
    return f"{factor * value:.{1 if factor == 100 else 3}f}{unit}"
