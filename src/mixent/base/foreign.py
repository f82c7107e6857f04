"""Estimators of other libraries: steps, parameters, weights of columns, iterations; explanations of any classifier."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from mixent.base.background import N_BACKGROUND, cell_text, play
from mixent.base.capabilities import is_able
from mixent.base.delegation import aligned_proba
from mixent.base.document import Bullets, Document, Number, Paragraph, Section, Table
from mixent.base.explanation import AGNOSTIC, Explanation, Rivals, shapley_name
from mixent.base.registry import find
from mixent.base.shapley import Games
from mixent.base.text import count
from mixent.data.cells import mixed_frames
from mixent.data.frames import is_frame
from mixent.data.table import n_rows_of

LISTED = 12  # columns
LEAST_VOTES = 1e-6  # a smaller probability counts as this: votes and leaves are 0 where rows are few
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


def explain(model: Any, X: Any, background: Any = None, *, label: Any = None, rival: Any = None) -> Explanation:
    """Contribution of each column to the log-odds of one class against another, for a classifier of any library.

    Of a classifier with `explain`, this is its result. For others, Shapley values: the mean change of the log-odds when
    the value of a column replaces that of a background row, over the background and over orders of the columns; about
    2000 predictions for each row. Probabilities below one in a million count as that.

    Parameters
    ----------
    model : fitted classifier with `predict_proba`
    X : table of n rows
    background : table of the same columns, optional
        Rows for comparison, such as the training rows, of which 50 are used. Required if the model has no `explain`.
    label : class label, optional
        The class to explain (default: the most probable class of each row).
    rival : class label, optional
        The class it is compared with (default: the most probable other class of each row).

    Returns
    -------
    Explanation

    Examples
    --------
    >>> import mixent
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> why = mixent.explain(LogisticRegression(max_iter=500).fit(X, y), X.head(1), X)
    >>> why.names[int(why.parts[0].argmax())], why.method
    ('petal length (cm)', 'model-agnostic (Shapley values)')
    """
    if is_able(model, "explanations"):
        return model.explain(X, label=label, rival=rival)
    if background is None:
        name = type(last_step(model)).__name__
        raise ValueError(f"background is missing: {name} keeps no training rows to compare with; give some of them")
    n = n_rows_of(background)
    some = _safe_indexing(background, np.linspace(0, n - 1, min(N_BACKGROUND, n)).astype(int))
    games = Games.of(n_rows_of(X), n_rows_of(some), np.shape(X)[1])
    rivals = Rivals.of(_log_proba(model, X), model.classes_, label, rival, X)
    mix = mixed_frames(some, X) if is_frame(X) else _mixed_arrays(some, X)
    baseline, parts = play(games, lambda index: _log_proba(model, mix(index)), rivals)
    names = [str(name) for name in getattr(X, "columns", [f"x{j}" for j in range(np.shape(X)[1])])]
    method, values = shapley_name(AGNOSTIC, games.plan.sampled), partial(_texts, X)
    return rivals.explanation(baseline, parts, names, "column", "average row", method, values)


def _log_proba(model: Any, X: Any) -> np.ndarray:
    return np.log(np.maximum(aligned_proba(model, X, model.classes_), LEAST_VOTES))


def _texts(X: Any) -> list[list[str]]:
    return [[cell_text(value) for value in row] for row in np.asarray(X, dtype=object).tolist()]


def _mixed_arrays(background: Any, X: Any) -> Callable[[np.ndarray], np.ndarray]:
    """Origin of each cell -> rows."""
    rows = np.concatenate([np.asarray(background), np.asarray(X)])
    return lambda index: rows[index, np.arange(rows.shape[1])]
