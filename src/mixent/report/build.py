"""The report of a comparison: what to take, what was done, who leads, how sure that is, how to do it again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from mixent.base.document import Bullets, Content, Paragraph, Section, can_draw
from mixent.base.labels import as_labels, labelled_rows
from mixent.base.text import count
from mixent.comparison.compare import compare
from mixent.evaluate.validate import CrossValidation
from mixent.report.cases import cases_section
from mixent.report.certificates import certificates
from mixent.report.classification import UNSEEN, calibration, errors, out_of_fold, roc
from mixent.report.common import reproduce
from mixent.report.data import classes_table, columns_section, fingerprint, problems_section
from mixent.report.html import write_report
from mixent.report.maps import pair_map, plane_map
from mixent.report.models import foreign_section, has_section, held_out_error, model_section
from mixent.report.scores import SHOWN, bounds, leader_in_words, methods_table, told_apart


def comparison_report(
    path: Any,
    *,
    title: str = "",
    cv: CrossValidation | None = None,
    comparison: Any = None,
    data_notes: Sequence[str] = (),
    models: Mapping[str, Any] | None = None,
    X: Any = None,
    y: Any = None,
    commands: str = "",
) -> Path:
    """Write the report of a comparison or a cross-validation as one HTML file and return its path.

    Parameters
    ----------
    path : where to write
    title : heading of the page
    cv : what `cross_validate` returned
    comparison : what `mixent.compare` returned
        In place of `cv`. The recommended method comes first, and its fitted model is looked at.
    data_notes : sentences on what was found in the data and done about it
    models : name to estimator fitted on all rows, for the map and the section of each model
        Of a comparison the winner, unless given.
    X, y : the data behind `models`
    commands : what to type to get this again

    Pieces that cannot be made (no matplotlib, no component model, columns that are no numbers) are left out.
    """
    if (cv is None) == (comparison is None):
        raise ValueError("give cv= or comparison=, one of them: what cross_validate or what compare returned")
    if comparison is not None:
        cv = comparison.cv
        models = models or ({} if comparison.winner is None else {comparison.recommended: comparison.winner})
        title = title or f"Comparison of {count(len(cv.methods), 'method')}"
        if X is None and getattr(comparison, "data", None):
            X, y = comparison.data[:2]
    assert cv is not None
    page = _Page(cv, comparison, dict(models or {}), X, cv.y if y is None else as_labels(y), list(data_notes))
    sections = [*page.opening(), *page.of_methods(), *page.of_leader(), *page.of_models()]
    sections.append(Section("How to reproduce", page.reproduce(commands)))
    return write_report(path, title, [section for section in sections if section.content])


class _Page:
    """What all sections of one page look at."""

    def __init__(self, cv: CrossValidation, comparison: Any, models: dict, X: Any, y: Any, notes: list[str]) -> None:
        self.cv, self.comparison, self.models, self.X, self.y, self.notes = cv, comparison, models, X, y, notes
        leader = getattr(comparison, "recommended", None)
        self.leader: str | None = leader if leader in cv.ranking() else next(iter(cv.ranking()), None)
        self.options = dict(getattr(comparison, "options", {}))
        self.categorical = self.options.get("categorical", "auto")

    def opening(self) -> list[Section]:
        done = Section("What was done", _done(self.cv, self.X, self.notes if self.comparison is None else ()))
        columns = [] if self.X is None else columns_section(self.X, categorical=self.categorical)
        if self.comparison is None:
            return [done, Section("The columns", columns)]
        problems = problems_section(self.X, list(self.comparison.problems), self.notes)
        first = Section("Recommendation", recommendation(self.comparison))
        return [first, done, Section("The columns", columns), Section("Problems found", problems)]

    def of_methods(self) -> list[Section]:
        cv, comparison = self.cv, self.comparison
        if comparison is None:
            table: list[Content] = [Paragraph(leader_in_words(cv)), methods_table(cv)]
        else:
            kinds = {
                name: getattr(one, "kind", "mixent" if one.ours else "baseline")
                for name, one in comparison.candidates.items()
            }
            table = [methods_table(cv, kinds, comparison.metric), *_not_tried(comparison)]
        out = [Section("Comparison of methods", table)]
        out.append(Section("Which methods are told apart", told_apart(cv if comparison is None else comparison)))
        return [*out, Section("Errors, made and expected", bounds(cv))] if self.leader is not None else out

    def of_leader(self) -> list[Section]:
        if self.leader is None or not can_draw():
            return []
        order = [self.leader, *(m for m in self.cv.ranking() if m != self.leader)]
        every, first = [out_of_fold(self.cv, name) for name in order], f"{self.leader}"
        what = "leading" if self.comparison is None else "recommended"
        out = [Section("Calibration", calibration(every)), Section("Classes found", roc(every))]
        out.append(Section(f"Errors of the {what} method", errors(every[0])))
        if self.X is not None:
            proba = self.cv.proba[self.leader]
            out.append(Section("Map of two columns", pair_map(self.models, self.leader, self.X, self.y)))
            plane = plane_map(first, self.X, self.cv.y, proba, self.cv.classes, UNSEEN, categorical=self.categorical)
            out.append(Section("Map of the rows", plane))
        return out

    def of_models(self) -> list[Section]:
        out = []
        fitted = {n: m for n, m in self.models.items() if has_section(m) or self.comparison is not None}
        for name, model in fitted.items():
            if has_section(model):
                held_out = held_out_error(self.cv, name)
                only, content = model_section(name, model, self.X, self.y, held_out, cases=self.comparison is None)
            else:
                only, content = "The model", foreign_section(name, model)
            out.append(Section(only if len(fitted) == 1 else f"The model: {name}", content))
        leader = self.leader
        if self.comparison is None or leader is None or leader not in self.models:
            return out
        model = self.models[leader]
        if self.X is not None and hasattr(model, "classes_"):
            proba = _aligned(self.cv, leader, model)
            cases = cases_section(leader, model, self.X, self.y, proba, categorical=self.categorical)
            out.append(Section("Typical and odd rows", cases))
        return [*out, Section("How the fit ended", certificates(leader, model))]

    def reproduce(self, commands: str) -> list[Content]:
        data = getattr(self.comparison, "fingerprint", "") or (None if self.X is None else fingerprint(self.X, self.y))
        return reproduce(commands, self.cv.random_state, data=data, code=_code(self))


def _aligned(cv: CrossValidation, name: str, model: Any) -> np.ndarray | None:
    """Out-of-fold probabilities in the order of the model's classes; None where these are others."""
    if [str(c) for c in model.classes_] != [str(c) for c in cv.classes]:
        return None
    return cv.proba[name]


def recommendation(comparison: Any) -> list[Content]:
    """What to take and why, and what to expect of it."""
    content: list[Content] = [Paragraph(str(comparison.reason), lead=True)]
    estimate, metric = getattr(comparison, "estimate", None), comparison.metric
    if estimate is not None and metric in SHOWN and "new rows" not in str(comparison.reason):  # not told yet
        heading, factor, digits = SHOWN[metric]
        value, low, high = (f"{factor * getattr(estimate, key):.{digits}f}" for key in ("value", "low", "high"))
        name, _, unit = heading.partition(" (")
        unit = unit.rstrip(")").replace("%", "\u00a0%").replace("nats", " nats")
        text = (
            f"To expect of it on new rows: {name} {value}{unit}, 95\u00a0% interval {low} to {high}. This is corrected "
            "for its having been chosen: the best of several looks better than it is."
        )
        content.append(Paragraph(text))
    return content


def _not_tried(comparison: Any) -> list[Content]:
    told = [f"{name}: {why}" for name, why in comparison.skipped.items()]
    return [Paragraph("Not tried, or given up:"), Bullets(told)] if told else []


def _done(cv: CrossValidation, X: Any, notes: Sequence[str]) -> list[Content]:
    known = labelled_rows(cv.y)
    columns = "" if X is None else f" and {count(np.shape(X)[1], 'column')}"
    repeats, folds = len(cv.folds), int(cv.folds.max()) + 1
    text = (
        f"{count(len(cv.methods), 'method')} on a table of {count(len(cv.y), 'row')}{columns}, "
        f"{len(cv.classes)} classes. Each method was fitted and scored in {folds}-fold stratified cross-validation"
        + (f", repeated {repeats} times" if repeats > 1 else "")
        + "; all methods saw the same folds, and every score is on rows the method had not seen."
    )
    if cv.sample_weight is not None:
        text += " Rows are weighted, in fitting and in every score."
    found = list(notes)
    helpless = list(dict.fromkeys(r["method"] for r in cv.records if r["labelled_only"]))
    if not known.all():
        told = f"{count(np.sum(~known), 'row')} without a label: always in training, never scored"
        found.append(told + (f"; left out by {', '.join(helpless)}, which cannot use them." if helpless else "."))
    found += [f"{method} failed: {message}" for method, message in cv.failures.items()]
    return [Paragraph(text), *([Bullets(found)] if found else []), classes_table(cv.y)]


def _code(page: _Page) -> str:
    """What to type in Python; of the options of `compare` those that differ from its defaults."""
    if page.comparison is None:
        return ""
    cv = page.cv
    told = {"folds": int(cv.folds.max()) + 1, "repeats": len(cv.folds), "random_state": cv.random_state}
    told |= {"metric": page.comparison.metric, **page.options}
    usual = {name: one.default for name, one in signature(compare).parameters.items()}
    given = {name: value for name, value in told.items() if name in usual and not _same(value, usual[name])}
    own = isinstance(given.get("methods"), str)
    texts = [f"{name}={_literal(value)}" for name, value in given.items() if not (own and name == "methods")]
    texts = ["methods=methods"] * own + texts + ["sample_weight=weight"] * (cv.sample_weight is not None)
    notes = [f"# methods: the user's own classifiers, given by name: {', '.join(_own(page.comparison))}"] * own
    notes += ["# which methods finish within the budget depends on the machine"] * ("budget" in given)
    call = f"found = mixent.compare({', '.join(['X', 'y', *texts])})"
    return "\n".join(["import mixent", "", *notes, call, "print(found)", 'found.report("page.html")'])


def _own(comparison: Any) -> list[str]:
    return [_literal(name) for name, one in comparison.candidates.items() if getattr(one, "why", "") == "as given"]


def _same(value: Any, usual: Any) -> bool:
    return type(value) is type(usual) and value == usual


def _literal(value: Any) -> str:
    """A value as Python would read it."""
    if np.iterable(value) and not isinstance(value, str):
        return f"[{', '.join(map(_literal, value))}]"
    value = value.item() if isinstance(value, np.generic) else value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
