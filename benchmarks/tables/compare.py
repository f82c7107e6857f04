"""Means, and differences between methods on the same folds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

UNIT = {"error": 100.0, "criterion_2": 100.0, "criterion_3": 100.0}  # in %; log-loss in nats, all else as it is
METRICS = ("error", "log_loss", "brier")


def values(records: list[dict], metric: str) -> np.ndarray:
    """The metric in the folds that worked and have it, in the table's unit."""
    return _unit(metric) * np.array([r[metric] for r in records if not r["failed"] and r.get(metric) is not None])


def mean_sd(records: list[dict], metric: str) -> tuple[float, float, int]:
    """Mean and sd over folds, and their number; NaN where there are too few."""
    result = values(records, metric)
    mean = float(result.mean()) if len(result) else float("nan")
    return mean, float(result.std(ddof=1)) if len(result) > 1 else float("nan"), len(result)


@dataclass(frozen=True)
class Difference:
    """Mean of a - b, its standard error, and the degrees of freedom behind that."""

    mean: float
    se: float
    df: int

    @property
    def worse(self) -> bool:
        """Whether a is worse (larger) than b beyond noise: one-sided, 5 %."""
        if not np.isfinite(self.se):
            return False
        return self.mean > self.se * stdtrit(self.df, 0.95) and self.mean > 1e-12

    @property
    def p_value(self) -> float:
        """Of the two-sided t-test; 1 where both are always the same."""
        if self.se == 0 and self.mean == 0:
            return 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(2 * stdtr(self.df, -np.abs(np.divide(self.mean, self.se))))

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ± {self.se:.3f}"


def difference(a: list[dict], b: list[dict], metric: str, *, corrected: bool = True) -> Difference:
    """Paired over the folds both have; over the test rows where there is one split only.

    Folds share training rows, so the variance has the factor 1/J + n_test/n_train of Nadeau and Bengio (2003), or 1/J
    where it is not to be `corrected`. With one split the standard error is over the test rows, given the training rows.
    """
    pairs = _pairs(a, b)
    if len(pairs) == 1 and "rows" in pairs[0][0]:
        gap = _unit(metric) * np.subtract(*(np.array(r["rows"][metric]) for r in pairs[0]))
        factor = 1 / len(gap)
    else:
        gap = _unit(metric) * np.array([pair[metric] - two[metric] for pair, two in pairs])
        overlap = float(np.mean([pair["n_test"] / pair["n_train"] for pair, _ in pairs] or [0]))
        factor = 1 / max(1, len(gap)) + overlap * corrected
    if len(gap) < 2:
        return Difference(float(gap.mean()) if len(gap) else float("nan"), float("nan"), 0)
    return Difference(float(gap.mean()), float(np.sqrt(factor * gap.var(ddof=1))), len(gap) - 1)


def _unit(metric: str) -> float:
    return UNIT.get(metric, 1.0)


def _pairs(a: list[dict], b: list[dict]) -> list[tuple[dict, dict]]:
    other = {(r["repeat"], r["fold"]): r for r in b if not r["failed"]}
    return [(r, other[r["repeat"], r["fold"]]) for r in a if not r["failed"] and (r["repeat"], r["fold"]) in other]
