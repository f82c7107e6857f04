"""The section of a mixture: training, components, search and convergence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mixent.base.document import Content, Figure, Number, Paragraph, Table, can_draw
from mixent.base.document import canvas as figure
from mixent.base.text import class_name, count, readable
from mixent.displays import ComponentsDisplay, ConvergenceDisplay, GrowthDisplay, SelectionDisplay
from mixent.mixtures.options import Conditional, by_likelihood, training_name
from mixent.report.search import search_table

NOTHING = 1e-6  # of its standard deviation: a mean below this is 0
FEW_PASSES = 4  # fewer are told in a sentence, not drawn


def mixture_section(name: str, model: Any, X: Any) -> list[Content]:
    """Training, components, search and convergence of a model."""
    content: list[Content] = []
    n_passes = 0
    if getattr(model, "run_", None) is not None:
        n_passes = max(step.n_pass for step in model.run_.trace)
        said = f"{name}, fitted on all rows, made {count(n_passes, 'pass', 'passes')} over the data"
        said += f"; {model.run_.message}" if getattr(model.run_, "message", "") else ""
        content.append(Paragraph(said + "."))
    trained = not by_likelihood(getattr(model, "training", "likelihood"))
    if trained:
        content.append(
            Paragraph(
                f"It was trained to tell the classes apart ({_objective(model)}), so its components are no "
                "longer a description of the rows, only of what parts the classes."
            )
        )
    table = components_table(model, X)
    content += [table] if table is not None else []
    content += _who_speaks(model) if is_shared(model) and can_draw() else []
    search = getattr(model, "search_", None) or []
    if search and ("log_loss" in search[0] or not can_draw()):
        settings = model._group("search")
        by = settings.criterion
        table = search_table(search, by, nested=settings.nested is not None)
        if trained and not (by == "cv" and is_shared(model)):  # shared components are trained in every fold
            table = replace(
                table, caption=table.caption + ". Scored as fitted by likelihood; the chosen one was then trained"
            )
        content.append(table)
    if not can_draw():
        return content
    if search and "log_loss" not in search[0]:
        content.append(_selection(model))
    if getattr(model, "path_", None):
        content.append(_growth(model))
    if n_passes >= FEW_PASSES:
        canvas = figure(6.4, 3.8)
        ConvergenceDisplay.from_estimator(model).plot(canvas.subplots())
        caption = (
            f"Objective of {name} against passes over the data. It never falls, except where a component is re-seeded."
        )
        content.append(Figure(canvas, f"Objective of {name} by pass.", caption))
    return content


def _objective(model: Any) -> str:
    training = model._group("training")
    blend = f", blend {training.blend:g}" if isinstance(training, Conditional) else ""
    return f"training {training_name(model)}{blend}"


def _selection(model: Any) -> Figure:
    canvas = figure(7.0, 4.0)
    display = SelectionDisplay.from_estimator(model)
    display.plot(canvas.subplots())
    best = "; ".join(
        (f"for {class_name(entry['class'])} " if "class" in entry else "")
        + f"{entry['covariance']}, {entry['n_components']}"
        for entry in display.picks
    )
    name = "-2 x held-out log density" if display.criterion == "cv" else display.criterion.upper().replace("_", " ")
    alt = f"{name} against the number of components; chosen: {best}."
    return Figure(canvas, alt, f"Search for the number of components and the structure: {alt}")


def _growth(model: Any) -> Figure:
    canvas = figure(7.0, 3.8)
    GrowthDisplay.from_estimator(model).plot(canvas.subplots(), quantity="log_likelihood")
    caption = "Components were added one at a time: the log-likelihood per row of the training rows after each."
    return Figure(canvas, "Log-likelihood per row against the number of components.", caption)


def is_shared(model: Any) -> bool:
    """Does any component speak for more than one class?"""
    weights = np.asarray(getattr(model, "weights_", ()))
    return hasattr(model, "class_given_component_") and bool(((weights > 0).sum(axis=0) > 1).any())


def _who_speaks(model: Any) -> list[Content]:
    shares = model.class_given_component_
    n_classes, n_components = shares.shape
    canvas = figure(min(2.4 + 0.6 * n_components, 10), min(1.6 + 0.4 * n_classes, 8))
    ComponentsDisplay.from_estimator(model).plot(canvas.subplots())
    said = [
        f"{k} for {class_name(model.classes_[c])} ({100 * shares[c, k]:.0f}\u00a0%)"
        for k, c in enumerate(shares.argmax(axis=0))
    ]
    caption = (
        "p(class | component): all classes share the components, and each speaks for some more than for others. "
        "Columns sum to 100\u00a0%."
    )
    return [Figure(canvas, "Which component mostly speaks for which class: " + ", ".join(said) + ".", caption)]


def components_table(model: Any, X: Any, longest: int = 30, widest: int = 5) -> Table | None:
    means: Any = getattr(model, "means_", None)
    covs: Any = getattr(model, "covariances_", None)
    if means is None or np.ndim(means) != 2 or 0 in np.shape(means):
        return None
    K, d = np.shape(means)
    names = _column_names(model, X, d)
    weights: Any = getattr(model, "weights_", None)
    owner: Any = getattr(model, "component_class_", None)
    by_class = owner is not None and hasattr(model, "classes_")
    spread = np.sqrt(np.diagonal(covs, axis1=1, axis2=2)) if np.shape(covs) == (K, d, d) else None
    rows = []
    for k in range(min(K, longest)):
        row: list = [str(k)]
        row += [str(model.classes_[owner[k]])] if by_class else []
        if weights is not None and np.shape(weights)[-1] == K:
            share = weights[k] if np.ndim(weights) == 1 else np.sum(weights, axis=0)[k]
            row.append(Number(f"{share:.3f}"))
        for j in range(min(d, widest)):
            sd = "" if spread is None else f" ± {readable(spread[k, j], 3)}"
            mean = 0.0 if spread is not None and abs(means[k][j]) < NOTHING * spread[k, j] else means[k][j]
            row.append(Number(f"{readable(mean)}{sd}"))
        rows.append(row)
    shared = is_shared(model)
    head = (
        ["component"]
        + ["mostly class" if shared else "class"] * by_class
        + ["weight"] * (len(rows[0]) - 1 - by_class - min(d, widest))
    )
    caption = "Components: weight (share of all rows), mean"
    caption += (" ± standard deviation" if spread is not None else "") + " of each numeric column"
    caption += f" (first {widest} of {d} numeric columns)" if d > widest else ""
    likely = _likely_values(model)
    if likely:
        shown = list(likely)[:widest]
        rows = [[*row, *(likely[name][k] for name in shown)] for k, row in enumerate(rows)]
        head_of_rest = [*names[:widest], *shown]
        caption += ", most probable value of each categorical column"
        caption += f" (first {widest} of {len(likely)} categorical columns)" if len(likely) > widest else ""
    else:
        head_of_rest = names[:widest]
    caption += f"; first {longest} of {K} components" if longest < K else ""
    return Table(caption, [*head, *head_of_rest], rows)


def _likely_values(model: Any) -> dict[str, list[str]]:
    """For each categorical column the most probable value in every component, and how probable it is."""
    schema: Any = getattr(model, "schema_", None)
    found = {}
    for name, probs in getattr(model, "category_probabilities_", {}).items():
        values = schema.columns[schema.names.index(name)].categories
        found[str(name)] = [f"{values[p.argmax()]} ({100 * p.max():.0f} %)" for p in np.asarray(probs)]
    return found


def _column_names(model: Any, X: Any, d: int) -> list[str]:
    schema = getattr(model, "schema_", None)
    if schema is not None and len(schema.continuous) == d:  # components have means of the continuous columns only
        return [str(schema.names[j]) for j in schema.continuous]
    names = getattr(X, "columns", None)
    names = getattr(model, "feature_names_in_", None) if names is None else names
    if names is None or len(names) != d:
        return [f"column {j}" for j in range(d)]
    return [str(name) for name in names]
