"""The recommendation in sentences: what to take, why, how sure that is, and what else would do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mixent.comparison.recipes import Candidate
from mixent.comparison.result import ALPHA, Estimate, in_words, paired_test, shares_loss
from mixent.evaluate.across import holm
from mixent.evaluate.sentences import WORDS, p_text
from mixent.evaluate.validate import CrossValidation

EXPLAINS = ("mixture", "shared mixture", "maximum entropy", "stack")  # have explain(), exact
QUICK = 5.0  # times faster: worth a word
CERTAIN = 0.1  # calibration error from which probabilities are not to be taken at their word


def recommendation(
    cv: CrossValidation, candidates: Mapping[str, Candidate], metric: str, estimate: Estimate
) -> tuple[str, str]:
    """The method to take, and the reason."""
    order = cv.ranking(metric)
    best = order[0]
    word = WORDS[metric][0]
    mean = float(cv.values(best, metric).mean())
    told = [f"Take {best}: of {_methods(order)} it has the lowest {word}, {in_words(mean, metric)}."]
    told += _against_others(cv, candidates, order, metric)
    told += _as_good(cv, order, metric)
    told += _corrected(estimate, len(order), metric)
    told += _doubts(cv, best, metric)
    return best, " ".join(told)


def _methods(order: list[str]) -> str:
    return f"{len(order)} methods" if len(order) > 1 else "the one method that finished"


def _against_others(
    cv: CrossValidation, candidates: Mapping[str, Candidate], order: list[str], metric: str
) -> list[str]:
    """The best of the other camp, and whether the difference can be chance."""
    best = order[0]
    ours = candidates[best].ours
    rival = next((m for m in order if candidates[m].ours != ours), None)
    if rival is None:
        return []
    test = paired_test(cv, rival, best, metric)
    camp = "outside mixent" if ours else "of mixent"
    _, factor, _, points = WORDS[metric]
    digits = 1 if factor == 100 else 3
    said = f"The best {camp} is {rival}, {factor * test.mean:.{digits}f}{points} behind"
    if not np.isfinite(test.p_value) or len(test.differences) < 2:
        return [said + "."]
    low, high = (f"{factor * end:.{digits}f}" for end in test.interval)
    chance = "hardly chance" if test.p_value < ALPHA else "which can be chance"
    return [f"{said} (95 % interval {low} to {high}): {chance} (corrected t test, p {p_text(test.p_value)})."]


def _as_good(cv: CrossValidation, order: list[str], metric: str) -> list[str]:
    """Methods that the folds do not tell from the best, and which of them is quick or explains itself."""
    best, others = order[0], order[1:]
    if not others:
        return []
    adjusted = holm([paired_test(cv, name, best, metric).p_value for name in others])
    like = [name for name, p in zip(others, adjusted) if p >= ALPHA]
    if not like:
        return ["All other methods are told apart from it."]
    told = [f"Not told apart from it (Holm): {', '.join(like)}."]
    seconds = {name: float(cv.values(name, "fit_seconds").mean()) for name in (best, *like)}
    quick = [name for name in like if QUICK * seconds[name] < seconds[best]]
    if quick:
        fast = quick[0]  # the best of the quick ones
        told.append(f"Of these {fast} fits in {seconds[fast]:.2g} s where {best} takes {seconds[best]:.2g} s.")
    plain = [name for name in like if name in EXPLAINS]
    if best not in EXPLAINS and plain:
        told.append(f"Where a decision must be explained column by column, {plain[0]} does so exactly.")
    return told


def _corrected(estimate: Estimate, n: int, metric: str) -> list[str]:
    if n < 2 or not np.isfinite(estimate.low):
        return []
    value, low, high = (in_words(v, metric) for v in (estimate.value, estimate.low, estimate.high))
    low = low.removesuffix(WORDS[metric][2])
    return [
        f"The best of {n} flatters itself: on new rows expect {value} (95 % interval {low} to {high}, choice included)."
    ]


def _doubts(cv: CrossValidation, best: str, metric: str) -> list[str]:
    told, shares = [], shares_loss(cv, metric)
    if cv.values(best, metric).mean() >= shares:
        told.append(
            f"No method does better than the shares of the classes ({in_words(shares, metric)}): these columns do not "
            "tell the class, or there are too few rows."
        )
    off = float(cv.values(best, "calibration").mean())
    if off > CERTAIN and len(cv.y) >= 500:
        told.append(f"Its probabilities are off by {100 * off:.0f} % on average: do not take them at their word.")
    return told


def nothing_worked(failures: Mapping[str, Any]) -> str:
    """For the error."""
    told = "; ".join(f"{name}: {message}" for name, message in failures.items())
    return f"no method worked in every fold. {told}"
