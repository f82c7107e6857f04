"""The page of a comparison: what to use, what was compared, scores and their differences, the recommended model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from mixent.base.document import Bullets, Content, Paragraph, Section
from mixent.base.text import count
from mixent.comparison.result import Comparison
from mixent.comparison.study import compare
from mixent.data.labels import as_labels, labelled_rows
from mixent.evaluate.records import CrossValidation
from mixent.report.cases import cases_section
from mixent.report.data import classes_table, columns_section, problems_section
from mixent.report.html import write_report
from mixent.report.maps import plane_map
from mixent.report.results import OUT_OF_FOLD, out_of_fold, result_sections
from mixent.report.scores import bounds, differences, methods_table
from mixent.report.sections import model_content, on_rows, reproduce


def comparison_report(
    path: str | PathLike[str],
    comparison: Comparison,
    *,
    title: str = "",
    data_notes: Sequence[str] = (),
    commands: str = "",
) -> Path:
    """Write the report of a comparison as one HTML file and return its path.

    Parameters
    ----------
    path : where to write
    comparison : what `mixent.compare` returned
    title : heading of the page
    data_notes : sentences on the data
    commands : what to type to get this again

    Returns
    -------
    Path
    """
    page = _Page(comparison, tuple(data_notes))
    sections = [*page.opening(), *page.methods(), *page.recommended(), *page.model()]
    data, seed = comparison.fingerprint, comparison.cv.random_state
    sections.append(reproduce(commands, seed, data=data, code=code_of(comparison)))
    return write_report(path, title or f"Comparison of {count(len(comparison.cv.methods), 'method')}", sections)


@dataclass(frozen=True)
class _Page:
    """The sections of one page."""

    comparison: Comparison
    notes: Sequence[str]

    @property
    def cv(self) -> CrossValidation:
        return self.comparison.cv

    @property
    def X(self) -> Any:
        return self.comparison.data[0]

    @property
    def categorical(self) -> Any:
        return self.comparison.options.get("categorical", "auto")

    def opening(self) -> list[Section]:
        advice = self.comparison.recommendation
        problems = problems_section(self.X, list(self.comparison.problems), self.notes, categorical=self.categorical)
        return [
            Section("Recommendation", [Paragraph(advice.headline, lead=True), Bullets(advice.points)]),
            Section("What was compared", _compared(self.cv, np.shape(self.X)[1])),
            Section("Columns", columns_section(self.X, categorical=self.categorical)),
            Section("Data problems", problems),
        ]

    def methods(self) -> list[Section]:
        kinds = {name: candidate.kind for name, candidate in self.comparison.candidates.items()}
        notes = self.comparison.skipped_notes
        table = methods_table(self.cv, kinds, self.comparison.metric)
        return [
            Section("Scores", [table, *([Bullets(notes)] if notes else [])]),
            Section("Significant differences", differences(self.comparison)),
            Section("Observed and expected errors", bounds(self.cv)),
        ]

    def recommended(self) -> list[Section]:
        """The predictions of the recommended method for rows not used for fitting."""
        best, cv = self.comparison.recommended, self.cv
        order = [best, *(name for name in cv.ranking() if name != best)]
        given = self.X, cv.y, cv.proba[best], cv.classes
        plane = plane_map(best, *given, OUT_OF_FOLD, categorical=self.categorical)
        results = result_sections([out_of_fold(cv, name) for name in order], "Errors of the recommended method")
        return [*results, Section("Map of the rows", plane)]

    def model(self) -> list[Section]:
        """The recommended method fitted to all rows."""
        model = self.comparison.winner
        if model is None:
            return []
        y = as_labels(self.comparison.data[1])
        same = [str(c) for c in model.classes_] == [str(c) for c in self.cv.classes]
        proba = self.cv.proba[self.comparison.recommended] if same else None
        text = Paragraph(f"{self.comparison.recommended}, fitted to all rows.")
        return [
            Section("The model", [text, *model_content(model)]),
            Section("The model on these rows", on_rows(model, self.X, y)),
            Section("Explained rows", cases_section(model, self.X, y, proba, categorical=self.categorical)),
        ]


def _compared(cv: CrossValidation, n_columns: int) -> list[Content]:
    known = labelled_rows(cv.y)
    finished = all(np.isfinite(cv.values(method, "log_loss")).all() for method in cv.methods)
    same = (
        "All methods used the same folds"
        if finished
        else "Methods that were stopped early or failed were scored on some of these folds only, the others on all"
    )
    text = (
        f"{count(len(cv.methods), 'method')} on {count(len(cv.y), 'row')} and {count(n_columns, 'column')}, "
        f"{len(cv.classes)} classes, by {cv.design}. {same}, "
        "and every score is of rows not used for fitting."
    )
    if cv.sample_weight is not None:
        text += " Rows are weighted, in fitting and in every score."
    items = []
    labelled_only = list(dict.fromkeys(r["method"] for r in cv.records if r["labelled_only"]))
    if not known.all():
        note = f"{count(int(np.sum(~known)), 'row')} without a label: always in training, never scored"
        items.append(note + (f"; not used by {', '.join(labelled_only)}." if labelled_only else "."))
    items += [f"{method} failed: {message}" for method, message in cv.failures.items()]
    return [Paragraph(text), *([Bullets(items)] if items else []), classes_table(cv.y)]


# --- how to reproduce -----------------------------------------------------------------------------------------------


def code_of(comparison: Comparison) -> str:
    """The call in Python, with those options of `compare` that differ from its defaults."""
    cv = comparison.cv
    options = {"folds": int(cv.folds.max()) + 1, "repeats": len(cv.folds), "random_state": cv.random_state}
    options |= {"metric": comparison.metric, **comparison.options}
    defaults = {name: parameter.default for name, parameter in signature(compare).parameters.items()}
    given = {name: value for name, value in options.items() if name in defaults and not _same(value, defaults[name])}
    own = isinstance(given.get("methods"), str)
    texts = [f"{name}={_literal(value)}" for name, value in given.items() if not (own and name == "methods")]
    texts = ["methods=methods"] * own + texts + ["sample_weight=weight"] * (cv.sample_weight is not None)
    notes = [f"# methods: your own classifiers by name: {', '.join(_own(comparison))}"] * own
    notes += ["# which methods finish within the budget depends on the machine"] * ("budget" in given)
    call = f"comparison = mixent.compare({', '.join(['X', 'y', *texts])})"
    return "\n".join(["import mixent", "", *notes, call, "print(comparison)", 'comparison.report("page.html")'])


def _own(comparison: Comparison) -> list[str]:
    return [_literal(name) for name, candidate in comparison.candidates.items() if candidate.about == "as given"]


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and value == default


def _literal(value: Any) -> str:
    """A value as Python would read it."""
    if np.iterable(value) and not isinstance(value, str):
        return f"[{', '.join(map(_literal, value))}]"
    value = value.item() if isinstance(value, np.generic) else value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
