"""Scores: of the methods of a comparison with their significant differences, and of one model on labelled rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mixent.base.displays import computed
from mixent.base.document import Bullets, Content, Figure, Number, Paragraph, Table
from mixent.comparison.result import Comparison
from mixent.displays import MethodScoresDisplay
from mixent.evaluate.bounds import ErrorReport, error_bounds
from mixent.evaluate.records import CrossValidation
from mixent.evaluate.row_losses import best_of, is_constant, score_interval
from mixent.evaluate.scores import METRICS, SCALES, Scale, score_table
from mixent.report.results import Predictions, out_of_fold

BOUNDS = {  # quantities of an ErrorReport
    "error": SCALES["error"],
    "expected_error": Scale("expected error (%)", 100, 1),
    "log_loss": SCALES["log_loss"],
    "entropy": Scale("expected log-loss (nats)", 1, 3),
    "overconfidence": Scale("overconfidence (nats)", 1, 3),
}
MEANINGS = [  # of these quantities
    "Error: share of wrong decisions.",
    "Expected error: what the model's own probabilities predict, the mean of one minus the largest probability; if it "
    "is lower than the error, the model is overconfident.",
    "Log-loss: mean of -log of the probability of the true class.",
    "Expected log-loss: the log-loss that the model's own probabilities predict.",
    "Overconfidence: log-loss minus expected log-loss; positive if the model is overconfident, negative if it is "
    "underconfident.",
]


def methods_table(cv: CrossValidation, kinds: Mapping[str, str] | None = None, metric: str = "log_loss") -> Table:
    """Every method's mean scores with 95 % intervals, the best first; `kinds`: the kind of each method."""
    ranking = cv.ranking(metric)
    means = {(s["method"], s["metric"]): s["mean"] for s in cv.means()}
    best = {m: best_of(cv, m, ranking) for m in SCALES}
    rows, intervals = [], {metric, "log_loss", "error"}  # of the others there is no room
    for method in [*ranking, *(m for m in cv.methods if m not in ranking)]:
        cells = [_score(cv, method, m, means[method, m], method in best[m], m in intervals) for m in SCALES]
        rows.append([cv.label(method), *([kinds.get(method, "")] if kinds else []), *cells])
    caption = (
        "Mean over the folds; for error, log-loss and the metric of the comparison with the 95 % interval of what to "
        "expect on rows like these. The intervals of two methods may overlap although their difference on the same "
        "rows is significant (see below). Seconds are means per fold. Lower is better, but for the AUC; the best "
        "of each column is marked"
    )
    constant = [m for m in ranking if is_constant(cv, m)]
    if constant:
        why = "are not marked: they are calibrated by construction"
        caption += f". Methods with constant probabilities ({', '.join(constant)}) {why}"
    return Table(caption, ["method", *(["kind"] if kinds else []), *(scale.heading for scale in SCALES.values())], rows)


def _score(
    cv: CrossValidation, method: str, metric: str, mean: float, best: bool, with_interval: bool
) -> Number | None:
    if not np.isfinite(mean):
        return None
    scale, interval = SCALES[metric], score_interval(cv, method, metric) if with_interval else None
    text = scale.text(mean)
    if interval is not None:
        text += f" ({scale.text(interval[0])} to {scale.text(interval[1])})"
    return Number(text, best=best)


def differences(comparison: Comparison) -> list[Content]:
    """Diagrams of the methods along the metric of the comparison, log-loss and error."""
    content: list[Content] = []
    for metric in dict.fromkeys((comparison.metric, "log_loss", "error")):
        if len(comparison.cv.ranking(metric)) > 1:
            display = computed(MethodScoresDisplay.from_comparison, comparison, metric=metric)
            caption = display.text() if content else _caption(display)
            content.append(Figure(display.picture, _alt(display), caption))
    return content


def _alt(display: MethodScoresDisplay) -> str:
    listed = ", ".join(f"{name} {display.scale.text(mean)}" for name, mean in zip(display.names, display.means))
    return f"Methods by mean {display.heading}, best first: {listed}. {display.text()}"


def _caption(display: MethodScoresDisplay) -> str:
    return (
        f"{display.text()} Small dots are single folds, the large one their mean. Bars on the right join methods "
        "without a significant difference (paired t tests of all pairs on the same rows, Holm's adjustment, "
        f"{100 * display.alpha:g} %). This is one data set: a significant difference holds for tables like this one, "
        "not in general, and methods joined by a bar are not shown to be equal. The recommendation tests against the "
        "best method only; with fewer tests it may find more differences."
    )


def scored(predictions: Predictions) -> list[Content]:
    """The scores of one model on labelled rows, observed and expected."""
    given = predictions.y, predictions.proba, predictions.classes
    values = score_table(*given, predictions.weight)
    rows: list = [[SCALES[metric].heading, Number(SCALES[metric].text(values[metric]))] for metric in METRICS]
    report = error_bounds(*given, sample_weight=predictions.weight)
    table = Table(f"Scores of the labelled {predictions.rows}; lower is better", ["score", "value"], rows)
    return [table, *bounds_of({predictions.name: report}, predictions.rows)]


def bounds(cv: CrossValidation) -> list[Content]:
    """Observed errors beside those each method expects, on rows not used for fitting."""
    reports = {}
    for method in cv.ranking():
        predictions = out_of_fold(cv, method)
        given = predictions.y, predictions.proba, cv.classes
        reports[method] = error_bounds(*given, sample_weight=predictions.weight)
    return bounds_of(reports, "rows not used for fitting, all folds together")


def bounds_of(reports: Mapping[str, ErrorReport], rows_are: str) -> list[Content]:
    """A table of the reports by method, and what its columns mean; `rows_are`: what the page calls the rows."""
    head = next(iter(reports.values()))
    rows: list = [[method, *(_quantity(report, name) for name in BOUNDS)] for method, report in reports.items()]
    caption = f"Value ± standard error on {head.n_rows} {rows_are}; taken as independent"
    text = (
        "No method can have a log-loss below the entropy of the class given the columns, nor an error below the Bayes "
        "error; the labels alone determine neither of these limits."
    )
    table = Table(caption, ["method", *(scale.heading for scale in BOUNDS.values())], rows)
    return [table, Bullets(MEANINGS), Paragraph(text)]


def _quantity(report: ErrorReport, name: str) -> Number:
    scale, quantity = BOUNDS[name], report.quantities[name]
    spread = f" ± {scale.text(quantity.std_error)}" if np.isfinite(quantity.std_error) else ""
    return Number(f"{scale.text(quantity.value)}{spread}")
