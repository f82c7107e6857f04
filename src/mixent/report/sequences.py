"""The section of a classifier of sequences: the states of each class, what follows them, what they emit."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.base.document import Content, Figure, Number, Paragraph, Table
from mixent.base.document import canvas as figure
from mixent.base.text import class_name, count
from mixent.displays import StatesDisplay
from mixent.report.structures import describe_structure, emission_in_words

MOST_DRAWN = 6  # classes
MOST_STATES = 12


def sequences_section(name: str, model: Any, X: Any, y: Any, *, draw: bool) -> list[Content]:
    """What a fitted `HMMClassifier` found."""
    about = describe_structure(model)
    passes = count(model.n_iter_, "pass", "passes")
    ended = "; ".join(
        f"{class_name(c)}: {run.message}" for c, run in zip(model.classes_, model.runs_) if not run.status.ok
    )
    said = f"{name}, fitted on all rows. {about['words']}. Baum-Welch took at most {passes} for a class"
    content: list[Content] = [Paragraph(said + (f"; did not converge for {ended}." if ended else "."))]
    for chain, one in list(zip(about["chains"], model.models_))[:MOST_DRAWN]:
        content.append(_states(chain))
        if draw and len(chain["states"]) <= MOST_STATES:
            content.append(_drawn(chain, one, X, y))
    more = len(about["chains"]) - MOST_DRAWN
    return [*content, Paragraph(f"... and {more} more classes.")] if more > 0 else content


def _states(chain: dict[str, Any]) -> Table:
    rows: list = []
    for state in chain["states"][:MOST_STATES]:
        numbers = [state["first"], state["share"], state["stays"]]
        cells = [None if value is None else Number(f"{value:.2f}") for value in numbers]
        rows.append([str(state["state"]), *cells, emission_in_words(state["emits"])])
    caption = (
        f"States of {class_name(chain['class'])}: probability to come first, share of the steps, probability to follow "
        "itself, and what it emits (mean ± standard deviation, or the most probable values)"
    )
    return Table(caption, ["state", "first", "share", "stays", "emits"], rows)


def _drawn(chain: dict[str, Any], model: Any, X: Any, y: Any) -> Figure:
    rows = _rows_of(X, y, chain["class"]) if model.by_row_ and X is not None else None
    display = StatesDisplay.from_estimator(model) if rows is None else StatesDisplay.from_estimator(model, rows, 0)
    canvas = figure(7.2 if rows is None else 9.6, 3.0)
    display.plot(canvas.subplots())
    label = class_name(chain["class"])
    caption = f"{label}: transitions from each state (rows) to the next, and what the states emit"
    caption += "" if rows is None else "; right, its first row with the most probable path of states"
    stays = ", ".join(f"{s['state']} {s['stays']:.2f}" for s in chain["states"] if s["stays"] is not None)
    return Figure(canvas, f"States of {label}; they follow themselves with probability {stays}.", caption + ".")


def _rows_of(X: Any, y: Any, label: Any) -> Any:
    """The first row of a class, as a table."""
    from sklearn.utils import _safe_indexing

    found = np.flatnonzero([str(value) == str(label) for value in np.asarray(y, dtype=object).tolist()])
    return _safe_indexing(X, found[:1]) if len(found) else None
