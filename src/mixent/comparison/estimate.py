"""Scores of the methods of a comparison: tests of pairs, and the score of the best corrected for selection."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixent.base.params import check_choice
from mixent.data import encode
from mixent.evaluate.paired import TTest, corrected_t_test
from mixent.evaluate.records import CrossValidation
from mixent.evaluate.scores import SMALLEST
from mixent.evaluate.text import WORDS, without_rounding

CHOSEN_BY = ("error", "balanced_error", "log_loss", "brier")
ALPHA = 0.05
BOOTSTRAPS = 500


@dataclass(frozen=True)
class Estimate:
    """The expected score of the recommended method, corrected for its selection as the best of many."""

    value: float
    low: float  # 95 % interval
    high: float
    plain: float  # the lowest mean over all rows of the first repeat, which is optimistic


def paired_test(cv: CrossValidation, a: str, b: str, metric: str) -> TTest:
    """The corrected t test on folds that both saw; its standard error is at least that of rows taken as independent.

    A few folds can agree by chance; one row in each of them would then be called a significant difference.
    """
    first, second = cv.values(a, metric), cv.values(b, metric)
    ratio = float(np.mean([r["n_test"] / r["n_train"] for r in cv.records if r["method"] == a]))
    gap = without_rounding(first - second, first, second)
    scores = (float(first.mean()), float(second.mean()))
    found = corrected_t_test(gap, ratio, names=(a, b), metric=metric, scores=scores)
    least = _row_error(cv, a, b, metric)
    return found if found.std_error >= least else _wider(found, least)


def _row_error(cv: CrossValidation, a: str, b: str, metric: str) -> float:
    """Standard error of the mean difference over rows; 0 where a score is no mean over rows."""
    if metric not in CHOSEN_BY:
        return 0.0
    (first, second), weight = row_losses(cv, [a, b], metric)
    gap = first - second
    share = weight / weight.sum()
    return float(np.sqrt(share**2 @ (gap - share @ gap) ** 2))


def _wider(test: TTest, std_error: float) -> TTest:
    from scipy.special import stdtr, stdtrit

    half = float(stdtrit(test.dof, 0.5 + test.confidence / 2)) * std_error
    p_value = float(2 * stdtr(test.dof, -abs(test.mean) / std_error))
    return replace(test, std_error=std_error, p_value=p_value, interval=(test.mean - half, test.mean + half))


def row_losses(cv: CrossValidation, methods: list[str], metric: str) -> tuple[np.ndarray, np.ndarray]:
    """(m, n) loss of every scored row of the first repeat, and the rows' weights: their weighted mean is the metric."""
    check_choice("metric", metric, CHOSEN_BY)
    rows = np.flatnonzero(np.isfinite(cv.proba[methods[0]]).all(axis=1))
    true = encode(cv.y[rows], cv.classes)
    weight = np.ones(len(rows)) if cv.sample_weight is None else cv.sample_weight[rows]
    if metric == "balanced_error":
        weight = weight / np.maximum(np.bincount(true, weight, len(cv.classes)), 1e-300)[true]
    proba = np.stack([cv.proba[m][rows] for m in methods])  # (m, n, C)
    at = np.arange(len(rows))
    if metric == "log_loss":
        losses = -np.log(np.clip(proba[:, at, true], SMALLEST, 1.0))
    elif metric == "brier":
        losses = ((proba - np.eye(len(cv.classes))[true]) ** 2).sum(axis=2)
    else:
        losses = (proba.argmax(axis=2) != true).astype(float)
    return losses, weight


def chosen_estimate(cv: CrossValidation, methods: list[str], metric: str, seed: int = 0) -> Estimate:
    """The score of the best of several methods, corrected for its selection (Tsamardinos et al. 2018).

    Rows of the out-of-fold predictions are drawn with replacement; the method that is best on the rows drawn is scored
    on those that were not. Mean and quantiles over the draws.
    """
    losses, weight = row_losses(cv, methods, metric)
    plain = float((losses @ weight / weight.sum()).min())
    rng, found = np.random.default_rng(seed), []
    n = len(weight)
    for _ in range(BOOTSTRAPS):
        counts = np.bincount(rng.integers(n, size=n), minlength=n)
        out = weight * (counts == 0)
        if out.sum() > 0:
            best = int(np.argmin(losses @ (weight * counts)))
            found.append(float(losses[best] @ out / out.sum()))
    if not found:
        return Estimate(plain, np.nan, np.nan, plain)
    low, high = np.quantile(found, (0.025, 0.975))
    return Estimate(float(np.mean(found)), float(low), float(high), plain)


def frequencies_loss(cv: CrossValidation, metric: str) -> float:
    """The score of predicting the class frequencies for every row, on the same rows: any method should be better."""
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
