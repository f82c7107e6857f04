"""Typical and unusual rows, each with what contributes to its prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from mixent.base.capabilities import is_able
from mixent.base.delegation import aligned_proba
from mixent.base.document import Bar, Content, Heading, Number, Paragraph, Table
from mixent.base.text import class_name, count
from mixent.data.labels import as_labels, encode, label_value, labelled_rows
from mixent.evaluate.displays.explanation import probability_text
from mixent.evaluate.displays.projection import encoded
from mixent.report.contributions import Part, explanation_of, largest_parts
from mixent.report.data import Categorical, with_categories

MOST_CLASSES = 6  # that get a typical row
MOST_ROWS = 5000  # among which unusual ones are looked for
MOST_PARTS = 8  # columns of a row
SLIGHT = 0.005  # nats: not listed


@dataclass(frozen=True)
class Case:
    """A row, why it is shown, its label, and its prediction."""

    why: str
    row: int
    label: Any  # None: it has none
    predicted: Any
    probability: float


def cases_section(
    model: Any, X: Any, y: Any, proba: np.ndarray | None = None, *, categorical: Categorical = "auto"
) -> list[Content]:
    """Selected rows with what contributes to the prediction of the model.

    Parameters
    ----------
    model : fitted classifier
    X : table of n rows
    y : (n,) labels, or None
    proba : (n, C), optional
        Predictions for rows that were not used for fitting, NaN where there are none; by default those of the model.
    categorical : "auto" or list
        Columns that are categories whatever their type.
    """
    cases = select_cases(model, X, y, proba, categorical=categorical)
    content: list[Content] = []
    method = ""
    for case in cases:
        blocks, method = _described(model, X, case, held_out=proba is not None)
        content += blocks
    intro = "Selected rows (numbered from 0) and what contributes to their predictions."
    intro += f" {method} The contributions add up to the log-odds." if method else ""
    return [Paragraph(intro), *content] if content else []


def select_cases(
    model: Any, X: Any, y: Any, proba: np.ndarray | None = None, *, categorical: Categorical = "auto"
) -> list[Case]:
    """A typical row of each class, the most confident error, the most uncertain row, and that of lowest density."""
    classes = np.asarray(model.classes_)
    n = np.shape(X)[0]
    rows = np.arange(n)[np.linspace(0, n - 1, min(MOST_ROWS, n)).astype(int)]
    given = aligned_proba(model, _safe_indexing(X, rows), classes) if proba is None else np.asarray(proba)[rows]
    labels = np.full(n, None, dtype=object) if y is None else as_labels(y)
    known = labelled_rows(labels)[rows] if y is not None else np.zeros(len(rows), dtype=bool)
    valid = np.isfinite(given).all(axis=1)
    true = np.full(len(rows), -1)
    true[known] = encode(labels[rows[known]], classes)
    guess = np.where(valid, np.nan_to_num(given).argmax(axis=1), -1)
    reasons: dict[int, str] = {}
    typed = with_categories(X, categorical)
    for c, place in _most_typical(typed, rows, true if known.any() else guess, guess, valid, len(classes)):
        reasons.setdefault(place, f"A typical row of {class_name(classes[c])}")
    for why, place in _unusual(model, X, rows, given, known & valid & (guess != true), valid):
        reasons[place] = f"{reasons[place]}; {why[0].lower()}{why[1:]}" if place in reasons else why
    return [
        Case(why, int(rows[i]), labels[rows[i]] if known[i] else None, classes[guess[i]], float(given[i].max()))
        for i, why in reasons.items()
        if valid[i]
    ]


def _most_typical(
    X: Any, rows: np.ndarray, belongs: np.ndarray, guess: np.ndarray, valid: np.ndarray, n_classes: int
) -> list[tuple[int, int]]:
    """(class, place) of the correctly decided row nearest to the center of each of the largest classes."""
    try:
        Z = encoded(X)[0][rows]
    except ValueError:
        return []
    sizes = [int(np.sum(belongs == c)) for c in range(n_classes)]
    largest = sorted(sorted(range(n_classes), key=lambda c: -sizes[c])[:MOST_CLASSES])
    out = []
    for c in largest:
        mine = belongs == c
        right = mine & (guess == c) & valid
        if right.any():
            distance = ((Z - Z[mine].mean(axis=0)) ** 2).sum(axis=1)
            out.append((c, int(np.where(right, distance, np.inf).argmin())))
    return out


def _unusual(
    model: Any, X: Any, rows: np.ndarray, proba: np.ndarray, wrong: np.ndarray, valid: np.ndarray
) -> list[tuple[str, int]]:
    top = np.sort(np.nan_to_num(proba), axis=1)
    out: list[tuple[str, int]] = []
    if wrong.any():
        out.append(("The most confident error", int(np.where(wrong, top[:, -1], -1.0).argmax())))
    if top.shape[1] > 1 and valid.any():
        out.append(("The most uncertain row", int(np.where(valid, top[:, -1] - top[:, -2], np.inf).argmin())))
    if is_able(model, "density"):
        density = np.asarray(model.score_samples(_safe_indexing(X, rows)), dtype=float)
        if density.shape == (len(rows),) and not np.isnan(density).all():
            out.append(("The row of lowest density", int(np.nanargmin(density))))
    return out


def _described(model: Any, X: Any, case: Case, held_out: bool) -> tuple[list[Content], str]:
    """A case as content, and how its contributions were computed."""
    row = _safe_indexing(X, [case.row])
    ours, rival = _rivals(np.asarray(model.classes_), aligned_proba(model, row, model.classes_)[0], case)
    names = [class_name(model.classes_[c]) for c in (ours, rival)]
    text = f"Predicted {class_name(case.predicted)}"
    if case.label is not None:
        right = label_value(case.label) == label_value(case.predicted)
        text += " (correct)" if right else f" (wrong; its label is {class_name(case.label)})"
    text += f", with probability {probability_text(case.probability)}"
    text += ", by a model not fitted to this row." if held_out else "."
    why = explanation_of(model, X, case.row, ours, rival)
    heading = Heading(f"{case.why}: row {case.row}")
    if why is None:
        return [heading, Paragraph(text)], ""
    where = " in the final model" if held_out else ""
    text += f" Log-odds of {names[0]} against {names[1]}{where}: {why.log_odds[0]:+.2f} nats."
    return [heading, Paragraph(text), _table(largest_parts(why), names)], why.about


def _rivals(classes: np.ndarray, proba: np.ndarray, case: Case) -> tuple[int, int]:
    """The predicted class, and the label where it is another, else the most probable other class."""
    names = [label_value(c) for c in classes]
    ours = names.index(label_value(case.predicted))
    if case.label is not None and label_value(case.label) != label_value(case.predicted):
        return ours, names.index(label_value(case.label))
    others = proba.copy()
    others[ours] = -1.0
    return ours, int(others.argmax())


def _table(parts: list[Part], names: list[str]) -> Table:
    shown = ([part for part in parts if abs(part[2]) >= SLIGHT] or parts[:1])[:MOST_PARTS]
    rest, most = len(parts) - len(shown), max(abs(nats) for _, _, nats in shown)
    rows: list = [[column, value, Number(f"{nats:+.2f}"), Bar(nats, most)] for column, value, nats in shown]
    more = f"; {count(rest, 'smaller one')} left out" if rest else ""
    caption = f"Contributions to the log-odds: to the right for {names[0]}, to the left for {names[1]}{more}"
    return Table(caption, ["column", "value", "nats", ""], rows)
