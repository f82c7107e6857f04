"""The recommendation in sentences: what to take, why, how sure that is, and what else would do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mixent.base.capabilities import cells_of, is_able
from mixent.base.multiple_tests import holm
from mixent.comparison.candidates import Candidate
from mixent.comparison.result import ALPHA, Estimate, in_words, paired_test, shares_loss
from mixent.data.labels import encode
from mixent.evaluate.records import CrossValidation
from mixent.evaluate.scores import calibration_of
from mixent.evaluate.text import WORDS, p_text

QUICK, WORTH = 5.0, 1.0  # times faster, and seconds saved: worth a word
OFF = 0.05  # calibration error from which probabilities are not to be taken at their word
DRAWS = 200


def recommendation(
    cv: CrossValidation, candidates: Mapping[str, Candidate], metric: str, estimate: Estimate
) -> tuple[str, str]:
    """The method to take, and the reason."""
    order = cv.ranking(metric)
    best, others = order[0], order[1:]
    adjusted = dict(zip(others, holm([paired_test(cv, name, best, metric).p_value for name in others])))
    told = [_first(cv, order, metric)]
    told += _against_others(cv, candidates, order, metric, adjusted)
    told += _as_good(cv, candidates, best, [name for name in others if adjusted[name] >= ALPHA], bool(others))
    told += _expected(estimate, len(order), metric)
    told += _doubts(cv, best, metric)
    return best, " ".join(told)


def _first(cv: CrossValidation, order: list[str], metric: str) -> str:
    word, score = WORDS[metric][0], {name: float(cv.values(name, metric).mean()) for name in order}
    best = order[0]
    told = in_words(score[best], metric)
    if len(order) == 1:
        return f"Take {best}, the one method that finished: its {word} is {told}."
    level = [name for name in order[1:] if np.isclose(score[name], score[best], rtol=1e-12, atol=0)]
    if level:
        return (
            f"Take {best}: of {len(order)} methods none has a lower {word} than {told}; {', '.join(level)} equals it."
        )
    return f"Take {best}: of {len(order)} methods it has the lowest {word}, {told}."


def _against_others(
    cv: CrossValidation,
    candidates: Mapping[str, Candidate],
    order: list[str],
    metric: str,
    adjusted: Mapping[str, float],
) -> list[str]:
    """The best of the other camp, and whether the difference can be chance."""
    best = order[0]
    ours = candidates[best].ours
    rival = next((m for m in order if candidates[m].ours != ours), None)
    if rival is None:
        return []
    test = paired_test(cv, rival, best, metric)
    _, factor, _, points = WORDS[metric]
    digits = 1 if factor == 100 else 3
    low, high = (f"{factor * end:.{digits}f}" for end in test.interval)
    chance = "hardly chance" if adjusted[rival] < ALPHA else "which can be chance"
    holms = f" after Holm's adjustment for {len(adjusted)}" if len(adjusted) > 1 else ""
    return [
        f"The best {'outside mixent' if ours else 'of mixent'} is {rival}, {factor * test.mean:.{digits}f}{points} "
        f"behind (95 % interval {low} to {high}): {chance} (corrected t test, p {p_text(adjusted[rival])}{holms})."
    ]


def _as_good(
    cv: CrossValidation, candidates: Mapping[str, Candidate], best: str, like: list[str], others: bool
) -> list[str]:
    """Methods that the folds do not tell from the best, and which of them is quick or explains itself."""
    if not like:
        return ["All other methods are told apart from it."] * others
    told = [f"Not told apart from it: {', '.join(like)}."]
    seconds = {name: float(cv.values(name, "fit_seconds").mean()) for name in (best, *like)}
    quick = [n for n in like if QUICK * seconds[n] < seconds[best] and seconds[best] - seconds[n] > WORTH]
    if quick:
        fast = quick[0]  # the best of the quick ones
        told.append(f"Of these {fast} fits in {seconds[fast]:.2g} s where {best} takes {seconds[best]:.2g} s.")
    plain = [name for name in like if explains_columns(candidates[name].estimator)]
    if plain and not explains_columns(candidates[best].estimator):
        told.append(f"Where a decision must be explained column by column, {plain[0]} does so exactly.")
    return told


def explains_columns(estimator: Any) -> bool:
    """Does `explain` give the part of every column?"""
    return is_able(estimator, "explanations") and "by column" in cells_of(estimator)["explanations"].note


def _expected(estimate: Estimate, n: int, metric: str) -> list[str]:
    if n < 2 or not np.isfinite(estimate.low):
        return []
    value, low, high = (in_words(v, metric) for v in (estimate.value, estimate.low, estimate.high))
    low = low.removesuffix(WORDS[metric][2])
    return [
        f"On new rows expect about {value} (95 % interval {low} to {high}, the choice of the best of {n} included)."
    ]


def _doubts(cv: CrossValidation, best: str, metric: str) -> list[str]:
    told, shares = [], shares_loss(cv, metric)
    if cv.values(best, metric).mean() >= shares:
        told.append(
            f"No method does better than the shares of the classes ({in_words(shares, metric)}): these columns do not "
            "tell the class, or there are too few rows."
        )
    off, usual = miscalibration(cv, best)
    if off > max(OFF, usual):
        told.append(f"Its probabilities are off by {100 * off:.0f} % on average: do not take them at their word.")
    return told


def miscalibration(cv: CrossValidation, method: str) -> tuple[float, float]:
    """Calibration error of all out-of-fold rows, and what perfect probabilities exceed in one sample of forty."""
    rows = np.isfinite(cv.proba[method]).all(axis=1)
    proba, true = cv.proba[method][rows], encode(cv.y[rows], cv.classes)
    weight = np.ones(len(true)) if cv.sample_weight is None else cv.sample_weight[rows]
    rng = np.random.default_rng(0)
    sums = np.cumsum(proba, axis=1)[:, :-1]
    drawn = [(sums < rng.random((len(sums), 1))).sum(axis=1) for _ in range(DRAWS)]
    usual = [calibration_of(labels, proba, weight) for labels in drawn]
    return calibration_of(true, proba, weight), float(np.quantile(usual, 0.975))


def nothing_worked(failures: Mapping[str, Any]) -> str:
    """For the error."""
    told = "; ".join(f"{name}: {message}" for name, message in failures.items())
    return f"no method worked in every fold. {told}"
