"""The description of an estimator of another library: its steps, parameters, weights of columns, iterations."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from mixent.base.document import Bullets, Document, Number, Paragraph, Section, Table
from mixent.base.registry import find
from mixent.base.text import count

LISTED = 12  # columns
# where max_iter bounds an optimizer; of boosting it is the number of trees, all of which are to be made
SOLVED = ("sklearn.linear_model.", "sklearn.svm.", "sklearn.neural_network.")


def describe_foreign(model: Any) -> Document:
    """A fitted estimator that is not registered, such as a pipeline of scikit-learn.

    Parameters
    ----------
    model : fitted estimator
    """
    last = last_step(model)
    steps = [type(step).__name__ for step in steps_of(model)]
    made = [Paragraph(f"Steps: {', '.join(steps)}.")] if len(steps) > 1 else []
    entry = find(type(last))
    if entry is not None:
        inner = entry.describe(last)
        return Document(inner.title, [*([Section("", made)] if made else []), *inner.sections], inner.facts)
    parameters = {key: repr(value) for key, value in changed_parameters(last).items()}
    given = [Bullets([f"{key} = {value}" for key, value in parameters.items()])]
    opening = Section("", [*made, *(given if parameters else [Paragraph("All parameters have their defaults.")])])
    weights, iterations = column_weights(model), iterations_text(last)
    sections = [opening]
    sections += [Section("Weights of the columns", [weights])] if weights is not None else []
    sections += [Section("Convergence", [Paragraph(iterations)])] if iterations else []
    return Document(type(last).__name__, sections, {"steps": steps, "parameters": parameters})


def steps_of(model: Any) -> list[Any]:
    """The steps of a pipeline, or the estimator itself."""
    return [step for _, step in getattr(model, "steps", None) or [("", model)]]


def last_step(model: Any) -> Any:
    """The estimator that predicts: the last step of a pipeline, also of one within another."""
    while (last := steps_of(model)[-1]) is not model:
        model = last
    return model


def changed_parameters(model: Any) -> dict[str, Any]:
    """Parameters that differ from the defaults of the constructor."""
    known = inspect.signature(type(model).__init__).parameters
    return {
        key: value
        for key, value in model.get_params(deep=False).items()
        if key not in known or repr(known[key].default) != repr(value)
    }


def column_weights(model: Any, names: Sequence[str] | None = None) -> Table | None:
    """Importances or coefficients of the columns, the largest first; None where there are none."""
    last = last_step(model)
    weights, what, header = getattr(last, "feature_importances_", None), "share of the gain of all splits", "importance"
    coefficients = getattr(last, "coef_", None)
    if weights is None and coefficients is not None and np.ndim(coefficients) == 2:
        weights, what, header = np.abs(coefficients).max(axis=0), "largest absolute coefficient of any class", "size"
    if weights is None or np.ndim(weights) != 1 or not len(weights):
        return None
    names = _encoded_names(model, len(weights)) if names is None else names
    order = np.argsort(-np.asarray(weights), kind="stable")[:LISTED]
    some = f"the {len(order)} largest of {len(weights)}" if len(weights) > len(order) else "the largest first"
    caption = f"Columns as the last step receives them, {some}: {what}"
    return Table(caption, ["column", header], [[names[j], Number(f"{weights[j]:.3f}")] for j in order])


def _encoded_names(model: Any, d: int) -> Sequence[str]:
    try:
        names = model[:-1].get_feature_names_out() if len(steps_of(model)) > 1 else None
    except (AttributeError, ValueError, TypeError):
        names = None
    names = getattr(model, "feature_names_in_", None) if names is None else names
    return [str(n) for n in names] if names is not None and len(names) == d else [f"column {j}" for j in range(d)]


def iterations_text(model: Any) -> str:
    """How many iterations were made, of how many allowed; blank where that is not known."""
    made, most = getattr(model, "n_iter_", None), getattr(model, "max_iter", None)
    if made is None or not np.size(made):
        return ""
    made = int(np.max(made))
    solved = any(kind.__module__.startswith(SOLVED) for kind in type(model).__mro__)
    if not solved or not isinstance(most, int | float) or most <= 0:
        return f"{count(made, 'iteration')}."
    if made >= most:
        return f"All {most} allowed iterations were made, so that it may not have converged; raise max_iter."
    return f"Stopped by its own rule after {made} of at most {most} iterations."
