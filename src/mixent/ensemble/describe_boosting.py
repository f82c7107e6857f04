"""Descriptions of boosted classifiers: text, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from mixent.base.describe import class_facts, classes_table, document
from mixent.base.document import Bullets, Content, Document, Figure, Number, Section, Table, canvas
from mixent.base.style import color, legend, tidy
from mixent.base.text import class_name, count
from mixent.data.labels import as_labels, labelled_rows
from mixent.ensemble.boosting import BaseBoosting
from mixent.ensemble.describe import kind_of
from mixent.ensemble.weightboost import WeightBoostClassifier

LISTED = 12  # stages or classes in a table
TABLES = 4  # classes with a table of stages
Stages = Sequence[Mapping[str, Any]]
Boosting = tuple[Any, Sequence[Any], Any, Any, Any, str | None]


def describe_boosting(model: BaseBoosting) -> Document:
    """The stages: their errors, votes and the bound on the training error."""
    runs = [_run_facts(run) for run in _runs(model)]
    base = kind_of(_runs(model)[0][1][0])
    facts = {
        "classes": class_facts(model.classes_, model.class_prior_),
        "base": base,
        "max_stages": int(model.n_estimators),
        "boosting": runs,
    }
    each = "" if len(runs) == 1 else ", one class against all others"
    lead = f"Boosting of {base}{each}: each stage is trained with more weight on the errors of the previous stages."
    content: list[Content] = [Bullets([_run_text(run, model.n_estimators) for run in runs[:LISTED]])]
    content += [_stages_table(run) for run in runs[:TABLES]]
    content += [_stages_figure(runs[0]["stages"])] if len(runs) == 1 else []
    classes = classes_table(model.classes_, model.class_prior_)
    return document(model, lead, [Section("Stages", content)], facts=facts, classes=classes, schema=model.schema_)


def _runs(model: BaseBoosting) -> list[Boosting]:
    """(class or None, stages, votes, errors, bound, reason of an early stop) of each ensemble."""
    if isinstance(model, WeightBoostClassifier) and len(model.binary_boostings_) > 1:
        return [
            (label, run.estimators, run.alphas, run.errors, run.bound, run.stopped)
            for label, run in zip(model.classes_.tolist(), model.binary_boostings_)
        ]
    of: Any = model
    return [(None, of.estimators_, of.alphas_, of.errors_, of.bound_, of.stopped_)]


def _run_facts(run: Boosting) -> dict[str, Any]:
    label, _, alphas, errors, bound, stopped = run
    stages = [
        {"error": float(e), "vote": float(a), "bound": float(b) if np.isfinite(b) else None}
        for e, a, b in zip(errors, alphas, bound)
    ]
    return {"class": label, "stages": stages, "stopped": stopped}


def _run_text(run: Mapping[str, Any], most: int) -> str:
    whose = "" if run["class"] is None else f"{class_name(run['class'])} against the others: "
    bound = run["stages"][-1]["bound"]
    text = f"{whose}{count(len(run['stages']), 'stage')} of at most {most}; the training error "
    text += "has no bound after a restart" if bound is None else f"is at most {100 * min(bound, 1):.3g} %"
    return text + (f"; stopped early: {run['stopped']}." if run["stopped"] else ".")


def _stages_table(run: Mapping[str, Any]) -> Table:
    rows: list[list[Any]] = [
        [
            m + 1,
            Number(f"{100 * stage['error']:.1f}"),
            Number(f"{stage['vote']:.3f}"),
            None if stage["bound"] is None else Number(f"{100 * stage['bound']:.1f}"),
        ]
        for m, stage in enumerate(run["stages"][:LISTED])
    ]
    n, whose = len(run["stages"]), "" if run["class"] is None else f", {class_name(run['class'])} against the others"
    some = f" (the first {LISTED} of {n})" if n > LISTED else ""
    caption = (
        f"Stages{some}{whose}: weighted training error, weight of the vote, and bound on the training error so far"
    )
    return Table(caption, ["stage", "weighted error (%)", "vote", "bound (%)"], rows)


def boosting_on_rows(model: BaseBoosting, X: Any, y: Any) -> list[Content]:
    """A figure of the error on labelled rows after each stage."""
    labels = None if y is None else as_labels(y)
    if labels is None or not labelled_rows(labels).any():
        return []
    known = np.flatnonzero(labelled_rows(labels))
    truth = labels[known].astype(str)
    staged = model.staged_predict(_safe_indexing(X, known))
    errors = [float(np.mean(predicted.astype(str) != truth)) for predicted in staged]
    runs = _runs(model)
    stages = _run_facts(runs[0])["stages"] if len(runs) == 1 else []
    first, last = (f"{100 * error:.1f} %" for error in (errors[0], errors[-1]))
    alt = f"Error by stage: from {first} to {last} on these rows."
    caption = f"Error on these rows after each stage: {first} after the first, {last} after the last."
    return [Figure(lambda: _draw(stages, errors), alt, caption)]


def _stages_figure(stages: Stages) -> Figure:
    alt = f"Weighted training error of {count(len(stages), 'stage')}, and the bound on the training error."
    caption = "Weighted training error of each stage, and the bound on the training error of the ensemble."
    return Figure(lambda: _draw(stages, ()), alt, caption)


def _draw(stages: Stages, errors: Sequence[float]) -> Any:
    """Draw the weighted error and the bound of each stage, and the error on some rows after it; either may be empty."""
    figure = canvas(6.4, 3.4)
    ax, x = figure.subplots(), np.arange(1, max(len(stages), len(errors)) + 1)
    if errors:
        ax.plot(x, 100 * np.array(errors), color=color(0), lw=1.8, marker="o", ms=3, label="ensemble, these rows")
    if stages:
        bound = 100 * np.minimum(np.array([stage["bound"] for stage in stages], dtype=float), 1.0)
        ax.plot(x, bound, color=color(1), lw=1.4, ls=(0, (5, 2)), label="bound on the training error")
        weighted = 100 * np.array([stage["error"] for stage in stages])
        ax.plot(x, weighted, color=color(2), lw=0, marker="^", ms=4, label="single stage, weighted training error")
    ax.set(xlabel="Number of stages", ylabel="Error (%)", ylim=(0, None))
    ax.xaxis.get_major_locator().set_params(integer=True)
    tidy(ax)
    legend(ax, 3)
    return figure
