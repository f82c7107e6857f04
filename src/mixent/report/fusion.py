"""The page of a fusion: its priors, sources and decisions, and new items where there are any."""

from __future__ import annotations

import numpy as np

from mixent.base.describe import describe
from mixent.base.document import Bullets, Section
from mixent.data.labels import labelled_rows
from mixent.report.results import Predictions, result_sections
from mixent.report.rows import predicted
from mixent.report.scores import scored
from mixent.report.sections import Subject, on_rows


def fusion_sections(subject: Subject) -> list[Section]:
    """The sections of the page, without how to reproduce it."""
    document = describe(subject.model)
    first, *rest = document.sections
    notes = [Bullets(list(subject.notes))] if subject.notes else []
    opening = Section(first.title or "Summary", [*first.content, *notes])
    return [opening, *([] if subject.X is None else _items(subject)), *rest]


def _items(subject: Subject) -> list[Section]:
    """Predictions for the items of a table, and where their classes are known the scores."""
    model, classes = subject.model, np.asarray(subject.model.classes_)
    proba = np.asarray(model.predict_proba(subject.X))
    content = [*predicted(classes, proba, "item"), *on_rows(model, subject.X, subject.y)]
    shown = Section("Items of this table", content)
    if subject.y is None:
        return [shown]
    if len(subject.y) != len(proba):
        raise ValueError(f"y must have one class for each of {len(proba)} items; it has {len(subject.y)}")
    known = labelled_rows(subject.y)
    predictions = Predictions(subject.name, subject.y[known], proba[known], classes, rows="items of this table")
    return [shown, Section("Scores", scored(predictions)), *result_sections([predictions])]
