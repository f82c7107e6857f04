"""Comparisons in sentences: which method is better, by how much, and whether that is significant."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.evaluate.scores import SCALES

ROUNDING = 1e-12  # differences below this share of the scores are those of rounding: none
# metric: its name in a sentence, the factor it is shown with, the unit of the value, the unit of a difference
WORDS = {
    "error": ("error", 100.0, " %", " points"),
    "balanced_error": ("balanced error", 100.0, " %", " points"),
    "log_loss": ("log-loss", 1.0, " nats", " nats"),
    "brier": ("Brier score", 1.0, "", ""),
    "calibration": ("calibration error", 1.0, "", ""),
    "auc": ("AUC", 1.0, "", ""),
}


def without_rounding(differences: np.ndarray, *scores: Any) -> np.ndarray:
    """Differences on the grid of `ROUNDING` of the largest score: equal scores of different arithmetic are ties."""
    step = ROUNDING * max((np.abs(s).max(initial=0.0) for s in map(np.asarray, scores)), default=0.0)
    return np.round(differences / step) * step + 0.0 if step > 0 else differences


def p_text(value: float) -> str:
    """A p-value after the letter p: "= 0.31", "= 0.048", "< 0.001"."""
    if value < 0.001:
        return "< 0.001"
    return f"= {value:.{3 if value < 0.1 else 2}f}"


def words_of(metric: str | None) -> tuple[str, float, str, str]:
    return WORDS[metric] if metric else ("score", 1.0, "", "")


def digits_of(values: Any, factor: float) -> int:
    """Decimals that show the largest of the values to two figures and the others to one, if that takes few more."""
    sizes = [abs(factor * v) for v in values if v] or [1.0]
    first, last = (int(1 - np.floor(np.log10(size))) for size in (max(sizes), 10 * min(sizes)))
    return int(np.clip(max(first, min(last, first + 2)), 2, 6))


def better(mean: float, names: tuple[str, str], metric: str | None, scores: tuple[float, float] | None) -> str:
    """Which method is better, and by how much."""
    word, factor, unit, points = words_of(metric)
    if mean == 0:
        return f"{names[0]} and {names[1]} have the same mean {word}."
    first = int(mean > 0)
    text = f"{names[first]} has the lower {word}" if metric else f"{names[first]} is better"
    if scores is None:
        return f"{text}, by {factor * abs(mean):.{digits_of([mean], factor)}f}{points} on average."
    digits = min(digits_of([mean], factor), 4)
    low, high = (f"{factor * scores[i]:.{digits}f}{unit}" for i in (first, 1 - first))
    return f"{text}: {low} against {high}."


def short_score(value: float, metric: str) -> str:
    """A score without its name, and without the unit of log-losses: "0.440", "12.5 %"."""
    _, factor, unit, _ = WORDS[metric]
    return f"{SCALES[metric].text(value)}{unit if factor == 100 else ''}"


def beside(value: float, best: float, name: str, metric: str, where: str) -> str:
    """A score and that of the best method there: "log-loss 0.440; naive Bayes on the same folds 0.218"."""
    own, other = (short_score(v, metric) for v in (value, best))
    return f"{WORDS[metric][0]} {own}; {name} on the same {where} {other}"


def significance(p_value: float, alpha: float = 0.05) -> str:
    """Whether a difference is significant, in words."""
    return f"{'significant' if p_value < alpha else 'not significant'} at the {100 * alpha:g} % level"


def verdict(p_value: float, how: str) -> str:
    """The result of a test in a sentence."""
    return f"{significance(p_value).capitalize()} ({how})."
