"""The recommendation of a comparison: the method, its expected score, significance, and points to check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixent.base.capabilities import cells_of, is_able
from mixent.base.document import Bullets, Content, Paragraph
from mixent.base.result import Result
from mixent.base.text import count
from mixent.comparison.candidates import Candidate
from mixent.comparison.estimate import ALPHA, Against, Estimate, against_best, frequencies_loss, with_unit
from mixent.data import encode
from mixent.evaluate.records import CrossValidation
from mixent.evaluate.row_losses import score_interval, scored_rows
from mixent.evaluate.scores import HIGHER, as_loss, calibration_of
from mixent.evaluate.text import WORDS, p_text, significance

PERCENT, MANY = 100, 1000  # rows from which the headline is about 100 rows, and from which it has no interval
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
    cv: CrossValidation,
    candidates: Mapping[str, Candidate],
    metric: str,
    estimate: Estimate,
    begun: Iterable[str] = (),
) -> Recommendation:
    """Recommend the method with the lowest mean of a metric (the highest AUC), and compare it with the others.

    The rule is the lowest mean, not the simplest of the methods without a significant difference: in a small table
    hardly any difference is significant, and a method that is not significantly worse can still be much worse. A method
    that is faster or explains its predictions is named if it is also close: not significantly different, and within
    5 % or 0.01 of the lowest mean.

    Parameters
    ----------
    cv : CrossValidation
    candidates : dict of name -> Candidate
    metric : str
    estimate : Estimate
    begun : names of methods that were tried on other rows only
        They count in Holm's adjustment.
    """
    order = cv.ranking(metric)
    best = order[0]
    tests = against_best(cv, best, metric, begun)
    points = [
        _score(cv, order, metric),
        *_expected(estimate, len(order), metric),
        *_warnings(cv, best, metric),
        *_alternatives(cv, candidates, best, [name for name in order if name in tests and tests[name].close]),
        *_best_of_others(candidates, order, metric, tests),
        *_significance(best, tests),
    ]
    return Recommendation(best, headline(cv, best), tuple(points))


def headline(cv: CrossValidation, best: str) -> str:
    """How many rows the recommended method predicts correctly, beside the most frequent class.

    With fewer than 100 rows these are counts, else they are of 100 rows; with fewer than 1000 rows an interval is
    given.
    """
    rows = scored_rows(cv, [best])
    n = len(rows) if len(rows) < PERCENT and cv.sample_weight is None else PERCENT
    low, high = score_interval(cv, best, "error") or (0.0, 1.0)
    interval = f"95 % interval {PERCENT * (1 - high):.0f} to {PERCENT * (1 - low):.0f}"
    note = f" ({interval}{' of 100' if n < PERCENT else f', from {_rows(cv, rows)}'})"
    label, share = _majority(cv, rows)
    right = _shown(1 - float(cv.values(best, "error").mean()), n)
    return (
        f"Recommended: {best}. Right on {right} of {n} rows{note if len(rows) < MANY else ''}; always answering "
        f"{label!r} gets {_shown(share, n)}."
    )


def _shown(share: float, n: int) -> str:
    """A share of n rows, never rounded up to all of them."""
    return f"{min(n * share, n - 0.1):.1f}" if share < 1 and round(n * share) == n else f"{n * share:.0f}"


def _rows(cv: CrossValidation, rows: np.ndarray) -> str:
    groups = "" if cv.groups is None else f" in {count(len(np.unique(cv.groups[rows])), 'group')}"
    return f"{count(len(rows), 'labelled row')}{groups}"


def _majority(cv: CrossValidation, rows: np.ndarray) -> tuple[str, float]:
    """The most frequent class of the scored rows, and its share."""
    weight = None if cv.sample_weight is None else cv.sample_weight[rows]
    shares = np.bincount(encode(cv.y[rows], cv.classes), weight, len(cv.classes))
    return str(cv.classes[shares.argmax()]), float(shares.max() / shares.sum())


def _score(cv: CrossValidation, order: list[str], metric: str) -> str:
    word, score = WORDS[metric][0], {name: float(cv.values(name, metric).mean()) for name in order}
    best, value = order[0], with_unit(score[order[0]], metric)
    rows = f"on {_rows(cv, scored_rows(cv, [best]))}, each predicted by a model that was not fitted to it"
    if len(order) == 1:
        return f"The only method that finished; its {word} is {value} {rows}."
    equal = [name for name in order[1:] if np.isclose(score[name], score[best], rtol=1e-12, atol=0)]
    same = f", the same as {', '.join(equal)}" if equal else ""
    return f"{'Highest' if metric in HIGHER else 'Lowest'} mean {word} of {len(order)} methods: {value}{same} ({rows})."


def _alternatives(cv: CrossValidation, candidates: Mapping[str, Candidate], best: str, close: list[str]) -> list[str]:
    """Which of the methods that are close to the best is faster, and which explains its predictions."""
    points = []
    seconds = {name: float(np.nanmean(cv.values(name, "fit_seconds"))) for name in (best, *close)}
    faster = [n for n in close if QUICK * seconds[n] < seconds[best] and seconds[best] - seconds[n] > SAVED]
    if faster:
        fast = faster[0]  # the best of the faster methods
        points.append(f"Faster and close: {fast} fits in {seconds[fast]:.2g} s, {best} in {seconds[best]:.2g} s.")
    explaining = [name for name in close if explains_columns(candidates[name].estimator)]
    if explaining and not explains_columns(candidates[best].estimator):
        points.append(f"Close, and explains every prediction exactly, column by column: {explaining[0]}.")
    return points


def _best_of_others(
    candidates: Mapping[str, Candidate], order: list[str], metric: str, tests: Mapping[str, Against]
) -> list[str]:
    """The best method outside mixent (or of mixent), and whether the difference is significant."""
    from_mixent = candidates[order[0]].from_mixent
    rival = next((m for m in order if candidates[m].from_mixent != from_mixent), None)
    if rival is None or rival not in tests:
        return []
    test, adjusted = tests[rival]
    word, factor, _, points = WORDS[metric]
    digits = 1 if factor == 100 else 3
    low, high = (f"{factor * end:.{digits}f}" for end in test.interval)
    holms = f" after Holm's adjustment for {count(len(tests), 'test')}" if len(tests) > 1 else ""
    return [
        f"Best method {'outside mixent' if from_mixent else 'of mixent'}: {rival}, {word} "
        f"{'lower' if metric in HIGHER else 'higher'} by "
        f"{factor * test.mean:.{digits}f}{points} (95 % interval {low} to {high}); "
        f"{significance(adjusted)} (paired t test on rows, p {p_text(adjusted)}{holms})."
    ]


def _significance(best: str, tests: Mapping[str, Against]) -> list[str]:
    """From which methods the best differs significantly, or from which it does not: whichever are fewer."""
    if not tests:
        return []
    similar = [name for name, test in tests.items() if test.adjusted >= ALPHA]
    others = [name for name in tests if name not in similar]
    if not similar:
        return ["Significantly better than every other method."]
    if not others:
        return [f"No significant difference from {'any other method' if len(similar) > 1 else similar[0]}."]
    if len(similar) > len(others):
        return [f"Significantly better only than: {', '.join(others)}."]
    return [f"Significantly better than all other methods but: {', '.join(similar)}."]


def explains_columns(estimator: Any) -> bool:
    """Whether the prediction is itself a sum of contributions of the columns, so that `explain` is exact."""
    return is_able(estimator, "explanations") and cells_of(estimator)["explanations"].exact


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
    if as_loss(cv.values(best, metric), metric).mean() >= frequencies:
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
