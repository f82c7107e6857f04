"""What a comparison found: scores, tests, what to take and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mixent.base.multiple_tests import adjusted_p_values, holm, homogeneous_groups
from mixent.base.params import check_choice
from mixent.base.recipes import Shape
from mixent.base.style import Short
from mixent.comparison.candidates import Candidate
from mixent.data.labels import encode
from mixent.evaluate.paired import TTest, corrected_t_test
from mixent.evaluate.records import CrossValidation
from mixent.evaluate.scores import METRICS, SMALLEST
from mixent.evaluate.text import WORDS, without_rounding

CHOSEN_BY = ("error", "balanced_error", "log_loss", "brier")
ALPHA = 0.05
BOOTSTRAPS = 500


@dataclass(frozen=True)
class Estimate:
    """What to expect of the method taken, after allowing for its having been chosen as the best of many."""

    value: float
    low: float  # 95 % interval
    high: float
    plain: float  # the lowest mean over all rows of the first repeat, which flatters


@dataclass(frozen=True, repr=False)
class Comparison(Short):
    """Methods compared on one table; `str()` is a short table and the recommendation.

    Attributes
    ----------
    cv : CrossValidation
        Records of every method, repeat and fold, and out-of-fold probabilities. Its methods are those that finished
        all folds within the budget.
    candidates : dict of name to Candidate
        What was tried.
    skipped : dict of name to str
        What was left out, by the shape of the table or the budget, and why.
    shape : Shape
    problems : list of str
        What is odd in the data; see `data_problems`.
    metric : str
        What the recommendation is by.
    recommended : str
        The method with the lowest mean of `metric`.
    reason : str
        Why, and how sure that is.
    estimate : Estimate
        Its score, corrected for the choice.
    winner : estimator or None
        The method taken, fitted to all rows.
    fingerprint : str
        Changes with any cell, label, weight or fold.
    data : tuple
        X, y and sample_weight as given, for the report.
    options : dict
        What `compare` was told: folds, repeats, random_state, metric, budget, methods ("own" for a dict), baselines,
        categorical.
    """

    cv: CrossValidation
    candidates: dict[str, Candidate]
    skipped: dict[str, str]
    shape: Shape
    problems: list[str]
    metric: str
    recommended: str
    reason: str
    estimate: Estimate
    winner: Any = None
    fingerprint: str = ""
    data: tuple = field(default=(), repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)

    def ranking(self, metric: str | None = None) -> list[str]:
        """Methods that worked in every fold, the best first."""
        return self.cv.ranking(check_choice("metric", metric or self.metric, METRICS))

    def summary(self) -> list[dict[str, Any]]:
        """One dict per method: method, kind, and mean and sd over the folds of every score, best first."""
        means: dict[str, dict[str, Any]] = {
            m: {"method": m, "kind": self.candidates[m].kind} for m in [*self.ranking(), *self.cv.methods]
        }
        for entry in self.cv.summary():
            means[entry["method"]] |= {entry["metric"]: entry["mean"], f"{entry['metric']}_sd": entry["sd"]}
        return list(means.values())

    def frame(self) -> Any:
        """`summary` as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.summary()).set_index("method")

    def best(self, *, ours: bool, metric: str | None = None) -> str | None:
        """The best of mixent's families, or of all others; None where none worked."""
        return next((m for m in self.ranking(metric) if self.candidates[m].ours == ours), None)

    def test(self, a: str, b: str, metric: str | None = None) -> TTest:
        """Corrected t test of two methods on the common folds; `str()` says it in words."""
        metric = metric or self.metric
        for name in (a, b):
            if name not in self.ranking(metric):
                raise ValueError(
                    f"{name!r} has no score in every fold; there are {', '.join(map(repr, self.ranking(metric)))}"
                )
        return paired_test(self.cv, a, b, metric)

    def tests(self, metric: str | None = None) -> list[dict[str, Any]]:
        """Every method against the best: method, mean difference, low, high, p_value, adjusted (Holm), told_apart."""
        metric = metric or self.metric
        best, *others = self.ranking(metric)
        found = [self.test(name, best, metric) for name in others]
        adjusted = holm([t.p_value for t in found])
        return [
            {
                "method": name,
                "mean": t.mean,
                "low": t.interval[0],
                "high": t.interval[1],
                "p_value": t.p_value,
                "adjusted": float(p),
                "told_apart": bool(p < ALPHA),
            }
            for name, t, p in zip(others, found, adjusted)
        ]

    def groups(self, metric: str | None = None) -> list[list[str]]:
        """Maximal runs of methods, in order of their mean, of which no pair is told apart (Holm over all pairs)."""
        order = self.ranking(metric)
        adjusted = adjusted_p_values(order, lambda a, b: self.test(a, b, metric).p_value)
        return [[order[i] for i in run] for run in homogeneous_groups(adjusted, ALPHA)]

    def report(self, path: Any, *, title: str | None = None, commands: str = "") -> Path:
        """Write all of it as one HTML file and return its path."""
        from importlib import import_module  # the layer above

        write = import_module("mixent.report").comparison_report
        return write(path, self, title=title or "Comparison of classifiers", commands=commands)

    def __str__(self) -> str:
        ours = [name for name, candidate in self.candidates.items() if candidate.ours and name in self.cv.methods]
        left = [f"Left out: {name}: {why}." for name, why in self.skipped.items()]
        return "\n".join([str(self.cv), "", f"Of mixent: {', '.join(ours) or 'none'}.", *left, "", self.reason])


def paired_test(cv: CrossValidation, a: str, b: str, metric: str) -> TTest:
    """The corrected t test on folds that both saw; its standard error is at least that of rows taken as independent.

    A few folds can agree by chance, and would then call one row in each of them a difference beyond doubt.
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
    """The score of the best of several methods without the flattery of choosing it (Tsamardinos et al. 2018).

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


def shares_loss(cv: CrossValidation, metric: str) -> float:
    """What the shares of the classes score by themselves, on the same rows: any method should beat this."""
    rows = np.flatnonzero(cv.folds[0] >= 0)
    true = encode(cv.y[rows], cv.classes)
    weight = np.ones(len(rows)) if cv.sample_weight is None else cv.sample_weight[rows]
    share = np.bincount(true, weight, len(cv.classes)) / weight.sum()
    if metric == "log_loss":
        return float(-(share * np.log(np.maximum(share, SMALLEST))).sum())
    if metric == "brier":
        return float(1 - (share**2).sum())
    return float(1 - share.max()) if metric == "error" else 1 - 1 / int((share > 0).sum())


def in_words(value: float, metric: str) -> str:
    """A score with its unit."""
    _, factor, unit, _ = WORDS[metric]
    return f"{factor * value:.{1 if factor == 100 else 3}f}{unit}"
