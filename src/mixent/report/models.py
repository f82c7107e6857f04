"""Which section tells of which model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mixent.base.document import Bullets, Content, Figure, Number, Paragraph, Table, can_draw
from mixent.evaluate.validate import CrossValidation
from mixent.report.ensembles import ENSEMBLES, ensemble_section
from mixent.report.maxent import maxent_section
from mixent.report.med import med_section
from mixent.report.mixture import mixture_section
from mixent.report.sequences import sequences_section
from mixent.report.structures import OF_MODELS
from mixent.report.trees import structures_section

LISTED = 12  # columns


def held_out_error(cv: CrossValidation, name: str) -> float | None:
    """Error of a method on rows not seen, if it was among those compared."""
    return float(cv.values(name, "error").mean()) if name in cv.ranking() else None


def has_section(model: Any) -> bool:
    """Is there more to tell of it than its name?"""
    return (
        isinstance(model, ENSEMBLES)
        or getattr(model, "run_", None) is not None
        or hasattr(model, "runs_")
        or hasattr(model, "means_")
    )


def model_section(
    name: str, model: Any, X: Any, y: Any, held_out: float | None = None, *, cases: bool = True
) -> tuple[str, list[Content]]:
    """The heading of the section of a model that is the only one, and what stands there.

    `cases`: with examples of rows, of the models that have their own.
    """
    if isinstance(model, ENSEMBLES):
        return "The ensemble", ensemble_section(name, model, X, y, draw=can_draw(), held_out=held_out)
    if hasattr(model, "constraints"):
        return "The maximum entropy model", maxent_section(name, model, X if cases else None, y, draw=can_draw())
    if isinstance(model, OF_MODELS):
        return "The discrimination model", structures_section(name, model, X, y, draw=can_draw())
    if hasattr(model, "runs_"):
        return "The hidden Markov models", sequences_section(name, model, X, y, draw=can_draw())
    if hasattr(model, "multipliers_"):
        return "The discrimination model", med_section(name, model, X, y, draw=can_draw())
    return "The mixture model", mixture_section(name, model, X)


def without_comparison(content: list[Content]) -> list[Content]:
    """A section as it reads on the page of a model alone: nobody said to which rows it was fitted, and nothing stands
    above.
    """
    untold = {
        ", fitted on all rows,": "",
        ", fitted on all rows": "",
        "; the comparison above says what it is on rows not seen": "",
    }

    def plain(text: str) -> str:
        for phrase, instead in untold.items():
            text = text.replace(phrase, instead)
        return text

    out: list[Content] = []
    for part in content:
        if isinstance(part, Paragraph):
            part = replace(part, text=plain(part.text))
        elif isinstance(part, Bullets):
            part = replace(part, items=[plain(text) for text in part.items])
        elif isinstance(part, Figure):
            part = replace(part, caption=plain(part.caption))
        out.append(part)
    return out


def foreign_section(name: str, model: Any) -> list[Content]:
    """Of a model that is not of this library: what it is made of, and what was set."""
    steps = getattr(model, "steps", None) or [("", model)]
    made = " -> ".join(type(step).__name__ for _, step in steps)
    last = steps[-1][1]
    given = {key: value for key, value in last.get_params(deep=False).items() if _differs(last, key, value)}
    told = ", ".join(f"{key}={value!r}" for key, value in given.items()) or "all options as they come"
    told = told if made == name else f"{made}; {told}"
    content: list[Content] = [Paragraph(f"{name}, fitted on all rows: {told}.")]
    return [*content, *_weights_of_columns(model, last)]


def _differs(model: Any, key: str, value: Any) -> bool:
    import inspect

    known = inspect.signature(type(model).__init__).parameters
    default = known[key].default if key in known else inspect.Parameter.empty
    return repr(default) != repr(value)


def _weights_of_columns(model: Any, last: Any) -> list[Content]:
    """Importances or coefficients, the largest first."""
    found = getattr(last, "feature_importances_", None)
    what, header = "share of the splits' gain", "importance"
    if found is None and getattr(last, "coef_", None) is not None and np.ndim(last.coef_) == 2:
        found, what, header = np.abs(last.coef_).max(axis=0), "largest coefficient of any class, without sign", "size"
    if found is None or np.ndim(found) != 1 or not len(found):
        return []
    names = _names_in(model, len(found))
    order = np.argsort(-np.asarray(found), kind="stable")[:LISTED]
    rows: list = [[names[j], Number(f"{found[j]:.3f}")] for j in order]
    some = f"the {len(rows)} largest of {len(found)}" if len(found) > len(rows) else "the largest first"
    return [Table(f"Columns as the model sees them, {some}: {what}", ["column", header], rows)]


def _names_in(model: Any, d: int) -> list[str]:
    try:
        names = model[:-1].get_feature_names_out() if hasattr(model, "steps") and len(model.steps) > 1 else None
    except (AttributeError, ValueError, TypeError):
        names = None
    names = getattr(model, "feature_names_in_", None) if names is None else names
    return [str(n) for n in names] if names is not None and len(names) == d else [f"column {j}" for j in range(d)]
