"""Means, and differences between methods on the same folds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

UNIT = {"error": 100.0, "log_loss": 1.0, "brier": 1.0, "fit_seconds": 1.0}  # error in %, log-loss in nats
METRICS = ("error", "log_loss", "brier")


def values(records: list[dict], metric: str) -> np.ndarray:
    """The metric in the folds that worked, in the table's unit."""
    return UNIT[metric] * np.array([r[metric] for r in records if not r["failed"]])


def mean_sd(records: list[dict], metric: str) -> tuple[float, float, int]:
    """Mean and sd over folds, and their number; NaN where there are too few."""
    found = values(records, metric)
    mean = float(found.mean()) if len(found) else float("nan")
    return mean, float(found.std(ddof=1)) if len(found) > 1 else float("nan"), len(found)


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

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ± {self.se:.3f}"


def difference(a: list[dict], b: list[dict], metric: str) -> Difference:
    """Paired over the folds both have; over the test rows where there is one split only.

    Folds share training rows, so the variance has the factor 1/J + n_test/n_train of Nadeau and Bengio (2003). With
    one split the standard error is over the test rows, given the training rows.
    """
    pairs = _pairs(a, b)
    if len(pairs) == 1 and "rows" in pairs[0][0]:
        gap = UNIT[metric] * np.subtract(*(np.array(r["rows"][metric]) for r in pairs[0]))
        factor = 1 / len(gap)
    else:
        gap = UNIT[metric] * np.array([one[metric] - two[metric] for one, two in pairs])
        factor = 1 / max(1, len(gap)) + float(np.mean([one["n_test"] / one["n_train"] for one, _ in pairs] or [0]))
    if len(gap) < 2:
        return Difference(float(gap.mean()) if len(gap) else float("nan"), float("nan"), 0)
    return Difference(float(gap.mean()), float(np.sqrt(factor * gap.var(ddof=1))), len(gap) - 1)


def _pairs(a: list[dict], b: list[dict]) -> list[tuple[dict, dict]]:
    other = {(r["repeat"], r["fold"]): r for r in b if not r["failed"]}
    return [(r, other[r["repeat"], r["fold"]]) for r in a if not r["failed"] and (r["repeat"], r["fold"]) in other]
