"""The recommendation of a comparison: the method, its expected score, significance, and points to check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixent.base.capabilities import cells_of, is_able
from mixent.base.document import Bullets, Content, Paragraph
from mixent.base.multiple_tests import holm
from mixent.base.result import Result
from mixent.base.text import count
from mixent.comparison.candidates import Candidate
from mixent.comparison.estimate import ALPHA, Estimate, frequencies_loss, paired_test, with_unit
from mixent.data import encode
from mixent.evaluate.records import CrossValidation
from mixent.evaluate.scores import calibration_of
from mixent.evaluate.text import WORDS, p_text, significance

QUICK, SAVED = 5.0, 1.0  # least speed-up and least seconds saved of a faster method that is mentioned
MISCALIBRATED = 0.05  # calibration error from which probabilities are not reliable
DRAWS = 200


@dataclass(frozen=True, repr=False)
class Recommendation(Result):
    """The recommended method, a headline, and points that support it; `str()` has all of them."""

    _title = "Recommendation"
    _shown = ("method", "headline")

    method: str
    headline: str
    points: tuple[str, ...]

    def with_points(self, points: Sequence[str]) -> Recommendation:
        """A copy with additional points."""
        return replace(self, points=(*self.points, *points))

    def _content(self) -> list[Content]:
        return [Paragraph(self.headline, lead=True), Bullets(self.points)]

    def __str__(self) -> str:
        return "\n".join([self.headline, *(f"- {point}" for point in self.points)])


def recommend(
    cv: CrossValidation, candidates: Mapping[str, Candidate], metric: str, estimate: Estimate
) -> Recommendation:
    """Recommend the method with the lowest mean of a metric, and compare it with the others."""
    order = cv.ranking(metric)
    best, others = order[0], order[1:]
    adjusted = dict(zip(others, holm([paired_test(cv, name, best, metric).p_value for name in others])))
    points = [
        _score(cv, order, metric),
        *_best_of_others(cv, candidates, order, metric, adjusted),
        *_alternatives(cv, candidates, best, [name for name in others if adjusted[name] >= ALPHA], bool(others)),
        *_expected(estimate, len(order), metric),
        *_warnings(cv, best, metric),
    ]
    return Recommendation(best, _headline(cv, best), tuple(points))


def _headline(cv: CrossValidation, best: str) -> str:
    accuracy = 100 * (1 - float(cv.values(best, "error").mean()))
    rows = np.flatnonzero(cv.folds[0] >= 0)
    weight = None if cv.sample_weight is None else cv.sample_weight[rows]
    shares = np.bincount(encode(cv.y[rows], cv.classes), weight, len(cv.classes))
    majority = str(cv.classes[shares.argmax()])
    share = 100 * shares.max() / shares.sum()
    return (
        f"Recommended: {best}. Right on {accuracy:.0f} of 100 rows; always predicting {majority!r} is right on "
        f"{share:.0f}."
    )


def _score(cv: CrossValidation, order: list[str], metric: str) -> str:
    word, score = WORDS[metric][0], {name: float(cv.values(name, metric).mean()) for name in order}
    best, value = order[0], with_unit(score[order[0]], metric)
    if len(order) == 1:
        return f"The only method that finished; its {word} is {value}."
    equal = [name for name in order[1:] if np.isclose(score[name], score[best], rtol=1e-12, atol=0)]
    same = f", the same as {', '.join(equal)}" if equal else ""
    return f"Lowest {word} of {len(order)} methods: {value}{same}."


def _best_of_others(
    cv: CrossValidation,
    candidates: Mapping[str, Candidate],
    order: list[str],
    metric: str,
    adjusted: Mapping[str, float],
) -> list[str]:
    """The best method outside mixent (or of mixent), and whether the difference is significant."""
    best = order[0]
    from_mixent = candidates[best].from_mixent
    rival = next((m for m in order if candidates[m].from_mixent != from_mixent), None)
    if rival is None:
        return []
    test = paired_test(cv, rival, best, metric)
    word, factor, _, points = WORDS[metric]
    digits = 1 if factor == 100 else 3
    low, high = (f"{factor * end:.{digits}f}" for end in test.interval)
    holms = f" after Holm's adjustment for {count(len(adjusted), 'test')}" if len(adjusted) > 1 else ""
    return [
        f"Best method {'outside mixent' if from_mixent else 'of mixent'}: {rival}, {word} higher by "
        f"{factor * test.mean:.{digits}f}{points} (95 % interval {low} to {high}); "
        f"{significance(adjusted[rival])} (corrected t test, p {p_text(adjusted[rival])}{holms})."
    ]


def _alternatives(
    cv: CrossValidation, candidates: Mapping[str, Candidate], best: str, similar: list[str], others: bool
) -> list[str]:
    """Methods that do not differ significantly from the best; which of them is faster or explains its predictions."""
    if not similar:
        return ["Significantly better than every other method."] * others
    points = [f"No significant difference from: {', '.join(similar)}."]
    seconds = {name: float(cv.values(name, "fit_seconds").mean()) for name in (best, *similar)}
    faster = [n for n in similar if QUICK * seconds[n] < seconds[best] and seconds[best] - seconds[n] > SAVED]
    if faster:
        fast = faster[0]  # the best of the faster methods
        points.append(f"Faster: {fast} fits in {seconds[fast]:.2g} s, {best} in {seconds[best]:.2g} s.")
    explaining = [name for name in similar if explains_columns(candidates[name].estimator)]
    if explaining and not explains_columns(candidates[best].estimator):
        points.append(f"{explaining[0]} explains every prediction exactly, column by column.")
    return points


def explains_columns(estimator: Any) -> bool:
    """Whether `explain` returns the contribution of every column."""
    return is_able(estimator, "explanations") and "by column" in cells_of(estimator)["explanations"].note


def _expected(estimate: Estimate, n: int, metric: str) -> list[str]:
    if n < 2 or not np.isfinite(estimate.low):
        return []
    value, low, high = (with_unit(v, metric) for v in (estimate.value, estimate.low, estimate.high))
    word, low = WORDS[metric][0], low.removesuffix(WORDS[metric][2])
    interval = f"95 % interval {low} to {high}, corrected for selecting the best of {n}"
    return [f"Expected {word} on new rows: {value} ({interval})."]


def _warnings(cv: CrossValidation, best: str, metric: str) -> list[str]:
    """Points about methods that are not better than the class frequencies, and about miscalibration."""
    points, frequencies = [], frequencies_loss(cv, metric)
    if cv.values(best, metric).mean() >= frequencies:
        points.append(
            f"No method is better than predicting the class frequencies ({with_unit(frequencies, metric)}): these "
            "columns do not predict the class, or there are too few rows."
        )
    error, quantile = miscalibration(cv, best)
    if error > max(MISCALIBRATED, quantile):
        points.append(f"Its probabilities are off by {100 * error:.0f} % on average; do not rely on them.")
    return points


def miscalibration(cv: CrossValidation, method: str) -> tuple[float, float]:
    """Calibration error of the out-of-fold probabilities, and its 97.5 % quantile under perfect calibration."""
    rows = np.isfinite(cv.proba[method]).all(axis=1)
    proba, true = cv.proba[method][rows], encode(cv.y[rows], cv.classes)
    weight = np.ones(len(true)) if cv.sample_weight is None else cv.sample_weight[rows]
    rng = np.random.default_rng(0)
    sums = np.cumsum(proba, axis=1)[:, :-1]
    drawn = [(sums < rng.random((len(sums), 1))).sum(axis=1) for _ in range(DRAWS)]
    errors = [calibration_of(labels, proba, weight) for labels in drawn]
    return calibration_of(true, proba, weight), float(np.quantile(errors, 0.975))
