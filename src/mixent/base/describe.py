"""Blocks that the descriptions of all models share: columns, classes, how the fit ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mixent.base.document import Bullets, Cell, Content, Document, Number, Paragraph, Section, Table
from mixent.base.foreign import describe_foreign
from mixent.base.registry import entry_of, find
from mixent.base.text import count, plain
from mixent.core.driver import Run
from mixent.data import Schema

MOST_CATEGORIES = 10
MOST_RUNS = 12
COLUMNS, CONVERGENCE = "Columns", "Convergence"  # titles of sections


def describe(model: Any) -> Document:
    """The description of any fitted estimator; for one of another library, its parameters.

    Parameters
    ----------
    model : fitted estimator
    """
    entry = find(type(model))
    return describe_foreign(model) if entry is None else entry.describe(model)


def document(
    model: Any,
    lead: str,
    sections: Iterable[Section] = (),
    *,
    facts: Mapping[str, Any] | None = None,
    schema: Schema | None = None,
    classes: Table | None = None,
    runs: Sequence[Run] | Mapping[str, Run] = (),
    inner: Mapping[str, Run] = {},
    certificates: Sequence[str] = (),
) -> Document:
    """The description of a fitted model: what it is, its classes, its own sections, its columns, how the fit ended.

    Parameters
    ----------
    model : fitted estimator
    lead : what it is, in one or two sentences
    sections : what only this kind of model has
    facts : the same as plain values
    schema : of its columns
    classes : table of the classes; see `classes_table`
    runs : of the optimizer, where it has any; by name (such as the class) where each is to be listed
    inner : runs of models inside this one, by name: listed with `runs`, but not part of the objective
    certificates : sentences on how close to the optimum the fit is; see `optimality`
    """
    opening: list[Content] = [Paragraph(lead), *([] if classes is None else [classes])]
    out, known = [Section("", opening), *sections], dict(facts or {})
    if schema is not None:
        out.append(Section(COLUMNS, [columns_table(schema)]))
        known = {"columns": column_facts(schema), **known}
    if runs:
        own = list(runs.values()) if isinstance(runs, Mapping) else runs
        known["run"] = run_facts(own, list(inner.values()))
        listed = {**runs, **inner} if isinstance(runs, Mapping) else runs
        out.append(Section(CONVERGENCE, convergence(listed, certificates)))
    return Document(entry_of(model).title, out, known)


def columns_table(schema: Schema) -> Table:
    """Names, kinds and categories."""
    rows = []
    for column in schema.columns:
        values = [str(value) for value in column.categories[:MOST_CATEGORIES]]
        rows.append([column.name, column.kind, ", ".join(values + ["..."] * (len(column.categories) > len(values)))])
    return Table("", ["column", "kind", "values"], rows)


def column_facts(schema: Schema) -> list[dict[str, Any]]:
    """The columns as plain values."""
    return [{"name": c.name, "kind": c.kind, "categories": [plain(v) for v in c.categories]} for c in schema.columns]


def classes_table(
    classes: Iterable[Any], prior: Iterable[float], more: Mapping[str, Sequence[Cell]] | None = None
) -> Table:
    """A row for each class: its prior, and further columns by their headings."""
    more = more or {}
    rows: list[list[Cell]] = [
        [str(c), Number(f"{p:.3f}"), *(column[i] for column in more.values())]
        for i, (c, p) in enumerate(zip(classes, prior))
    ]
    return Table("", ["class", "prior", *more], rows)


def class_facts(classes: Iterable[Any], prior: Iterable[float]) -> list[dict[str, Any]]:
    """The classes as plain values."""
    return [{"class": plain(c), "prior": float(p)} for c, p in zip(classes, prior)]


def run_facts(runs: Sequence[Run], inner: Sequence[Run] = ()) -> dict[str, Any]:
    """How fitting ended: of all runs the one that ended worst, and the sum of the objectives of `runs`.

    Parameters
    ----------
    runs : of one model, such as those of its classes
    inner : of models inside it, whose objectives are others
    """
    worst = max([*runs, *inner], key=lambda run: (not run.status.ok, run.n_passes))
    return {
        "status": worst.status.name.lower(),
        "ok": worst.status.ok,
        "passes": int(worst.n_passes),
        "objective": float(np.sum([run.objective for run in runs])),
        "message": worst.message,
    }


def run_text(run: Mapping[str, Any]) -> str:
    """How fitting ended, in a sentence."""
    verb = "Stopped" if run["status"] == "stopped" else "Converged" if run["ok"] else "Did not converge"
    message = str(run["message"]).removeprefix("converged: ")
    return f"{verb} after {count(run['passes'], 'pass')}: {message}"


def convergence(runs: Sequence[Run] | Mapping[str, Run], certificates: Sequence[str] = ()) -> list[Content]:
    """How fitting ended, run by run where they have names; repairs on the way; certificates of optimality."""
    named = runs if isinstance(runs, Mapping) else {}
    every: list[Run] = list(named.values()) if named else list(runs)  # type: ignore[arg-type]
    items = [f"{name}: {run_text(run_facts([run]))}" for name, run in named.items()] if len(named) > 1 else []
    if len(items) > MOST_RUNS:
        items[MOST_RUNS:] = [f"and {len(items) - MOST_RUNS} more"]
    items += [note for run in every for note in run.notes]
    items += certificates
    return [Paragraph(run_text(run_facts(every))), *([Bullets(items)] if items else [])]


def optimality(gap: float | None, unit: str = "nats per row") -> list[str]:
    """A certificate: how far the objective can be from its optimum; nothing where that is not known."""
    if gap is None or not np.isfinite(gap):
        return []
    return [f"The objective is at most {gap:.1g} {unit} from its optimum, whatever the starting point."]
