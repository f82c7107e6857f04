"""The methods of a comparison in a table and on an axis: who leads, how sure that is, who is not told apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mixent.base.document import Bullets, Content, Figure, Number, Paragraph, Table, can_draw
from mixent.base.document import canvas as figure
from mixent.displays import DifferencesDisplay
from mixent.evaluate.bounds import ErrorReport, error_bounds
from mixent.evaluate.paired import corrected_t_test
from mixent.evaluate.scores import score_table
from mixent.evaluate.text import without_rounding
from mixent.evaluate.validate import CrossValidation
from mixent.report.classification import Said, out_of_fold

SHOWN = {  # metric: (heading, factor, decimals)
    "error": ("error (%)", 100, 1),
    "balanced_error": ("balanced error (%)", 100, 1),
    "log_loss": ("log-loss (nats)", 1, 3),
    "brier": ("Brier", 1, 3),
    "calibration": ("calibration (%)", 100, 1),
    "fit_seconds": ("fit (s)", 1, 2),
    "predict_seconds": ("predict (s)", 1, 2),
}
SECONDS = ("fit_seconds", "predict_seconds")
BOUNDS = {  # quantity of an ErrorReport: (heading, factor, decimals)
    "error": ("error (%)", 100, 1),
    "expected_error": ("error it expects (%)", 100, 1),
    "log_loss": ("log-loss (nats)", 1, 3),
    "entropy": ("own entropy (nats)", 1, 3),
    "overconfidence": ("overconfidence (nats)", 1, 3),
}


def methods_table(cv: CrossValidation, kinds: Mapping[str, str] | None = None, metric: str = "log_loss") -> Table:
    """Every method's mean scores with 95 % intervals, the best first; `kinds`: what each is, in a word."""
    ranking = cv.ranking(metric)
    means = {(s["method"], s["metric"]): s["mean"] for s in cv.summary()}
    best = {one: min((means[m, one] for m in ranking), default=None) for one in SHOWN}
    rows = []
    for method in [*ranking, *(m for m in cv.methods if m not in ranking)]:
        cells = [_score(cv, method, one, means[method, one], method in ranking and best[one]) for one in SHOWN]
        rows.append([method, *([kinds.get(method, "")] if kinds else []), *cells])
    caption = (
        "Mean over the folds ± half the 95 % interval, which allows for the training rows that folds share (Nadeau and "
        "Bengio 2003); seconds are means of a fold. Lower is better everywhere; the best of each column is marked"
    )
    return Table(caption, ["method", *(["kind"] if kinds else []), *(h for h, _, _ in SHOWN.values())], rows)


def _score(cv: CrossValidation, method: str, metric: str, mean: float, best: Any) -> Number | None:
    _, factor, digits = SHOWN[metric]
    if not np.isfinite(mean):
        return None
    text, half = f"{factor * mean:.{digits}f}", half_width(cv, method, metric)
    if np.isfinite(half) and metric not in SECONDS:
        text += f" ± {factor * half:.{digits}f}"
    return Number(text, best=best is not False and not without_rounding(mean - best, mean, best))


def half_width(cv: CrossValidation, method: str, metric: str) -> float:
    """Half the 95 % interval of a method's mean score; NaN where one fold worked."""
    values = cv.values(method, metric)
    values = values[np.isfinite(values)]
    if len(values) < 2:
        return float("nan")
    low, high = corrected_t_test(values, fold_ratio(cv)).interval
    return (high - low) / 2


def fold_ratio(cv: CrossValidation) -> float:
    """Test rows for each training row."""
    return float(np.mean([r["n_test"] / r["n_train"] for r in cv.records]))


def leader_in_words(cv: CrossValidation) -> str:
    """Who leads by log-loss, and whether the lead over the runner-up exceeds the noise between folds."""
    ranking = cv.ranking("log_loss")
    if not ranking:
        return "No method worked in every fold, so none leads; see above for the errors."
    first, loss = ranking[0], float(cv.values(ranking[0], "log_loss").mean())
    if len(cv.methods) == 1:
        return f"{first} was the only method run: log-loss {loss:.3f} nats."
    if len(ranking) == 1:
        return f"{first} is the only method that worked in every fold: log-loss {loss:.3f} nats."
    second = ranking[1]
    gap = cv.difference(second, first, "log_loss")
    text = f"{first} has the lowest log-loss ({loss:.3f} nats); {second} follows, {gap['mean']:.3f} nats behind. "
    if not np.isfinite(gap["p_value"]):
        text += "One fold says nothing about noise."
    elif gap["p_value"] < 0.05:
        text += f"The difference exceeds the noise between folds (p {p_text(gap['p_value'])}"
    else:
        text += f"The difference is within the noise between folds (p {p_text(gap['p_value'])}"
    if np.isfinite(gap["p_value"]):
        text += "; paired t-test, corrected for the training rows that folds share)."
    sharp = cv.ranking("error")[0]
    if sharp != first and cv.values(sharp, "error").mean() < cv.values(first, "error").mean():
        text += f" The fewest errors are made by {sharp} ({100 * cv.values(sharp, 'error').mean():.1f}\u00a0%)."
    return text


def p_text(value: float) -> str:
    """`= 0.25`, or `< 0.01`."""
    return f"= {value:.2f}" if value >= 0.01 else "< 0.01"


def told_apart(comparison: Any) -> list[Content]:
    """Diagrams of the methods along the metric of a `Comparison`, log-loss and error; also of a `CrossValidation`."""
    content: list[Content] = []
    for metric in dict.fromkeys((getattr(comparison, "metric", "log_loss"), "log_loss", "error")) if can_draw() else ():
        if len(getattr(comparison, "cv", comparison).ranking(metric)) < 2:
            continue
        display = DifferencesDisplay.from_comparison(comparison, metric=metric)
        canvas = figure(*display.size())
        display.plot(canvas.subplots())
        alone = hasattr(comparison, "candidates")
        content.append(Figure(canvas, _alt(display), _caption(display, alone) if not content else display.in_words()))
    return content


def _alt(display: DifferencesDisplay) -> str:
    factor, digits = display.scale
    told = ", ".join(f"{name} {factor * mean:.{digits}f}" for name, mean in zip(display.names, display.means))
    return f"Methods by mean {display.heading}, best first: {told}. {display.in_words()}"


def _caption(display: DifferencesDisplay, recommended: bool) -> str:
    fewer = " The recommendation tests against the best only, which is fewer tests and may tell more apart."
    return (
        f"{display.in_words()} Small dots are single folds, the large one their mean. Bars on the right join methods "
        f"that no paired test tells apart (every pair on the same folds, corrected for shared training rows, Holm's "
        f"correction over all pairs, {100 * display.alpha:g} %). This is one data set, and its folds are not "
        "independent of each other: a gap between bars says which is better on tables like this one, not in general, "
        "and a bar says that these rows cannot tell, not that methods are equal." + fewer * recommended
    )


def scored(said: Said) -> list[Content]:
    """The scores of one model on labelled rows, and what it expected."""
    found = score_table(said.y, said.proba, said.classes, said.weight)
    rows: list = [
        [heading, Number(f"{factor * found[metric]:.{digits}f}")]
        for metric, (heading, factor, digits) in SHOWN.items()
        if metric not in SECONDS
    ]
    report = error_bounds(said.y, said.proba, said.classes, sample_weight=said.weight)
    table = Table(f"Scores of the labelled {said.rows}; lower is better", ["score", "value"], rows)
    return [table, *bounds_of({said.name: report}, said.rows)]


def bounds(cv: CrossValidation) -> list[Content]:
    """What each method expects of itself beside what happened, on rows not used for fitting."""
    reports = {}
    for method in cv.ranking():
        said = out_of_fold(cv, method)
        reports[method] = error_bounds(said.y, said.proba, cv.classes, sample_weight=said.weight)
    return bounds_of(reports, "rows not used for fitting, all folds together")


def bounds_of(reports: Mapping[str, ErrorReport], rows_are: str) -> list[Content]:
    """Of each method; which rows these are, in words."""
    head = next(iter(reports.values()))
    rows: list = [[method, *(_quantity(report, name) for name in BOUNDS)] for method, report in reports.items()]
    caption = f"Value ± standard error on {head.n_rows} {rows_are}; taken as independent"
    told = [f"{BOUNDS[name][0].split(' (')[0]}: {head.quantities[name].meaning}" for name in BOUNDS]
    told[-1] = told[-1].replace(": ", ": log-loss minus own entropy, ")
    text = (
        "Here p is the truth, q a method's probabilities, J the error of its decisions, H the entropy, and E D the "
        "divergence of q from p. Labels cannot show the Bayes error, the least any classifier could make: log-loss is "
        "H(Y|X), which no method can lower, plus E D, which a better one could."
    )
    table = Table(caption, ["method", *(heading for heading, _, _ in BOUNDS.values())], rows)
    return [table, Paragraph(text), Bullets(told)]


def _quantity(report: ErrorReport, name: str) -> Number:
    _, factor, digits = BOUNDS[name]
    found = report.quantities[name]
    spread = f" ± {factor * found.std_error:.{digits}f}" if np.isfinite(found.std_error) else ""
    return Number(f"{factor * found.value:.{digits}f}{spread}")
