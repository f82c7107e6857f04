"""Rows in a mixture: how they cluster, the density, the two columns that separate best. For mixtures/describe.py."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from mixent.base.document import Content, Figure, Number, Table, can_draw
from mixent.base.document import canvas as figure
from mixent.base.text import count
from mixent.data.labels import as_labels, encode, labelled_rows
from mixent.displays import RegionsDisplay


def clusters(model: Any, X: Any) -> list[Content]:
    """How many rows each component has, and a map of two columns."""
    proba = np.asarray(model.predict_proba(X))
    found = proba.argmax(axis=1)
    rows: list = [
        [f"component {k}", int((found == k).sum()), Number(f"{100 * proba[:, k].mean():.1f}")]
        for k in range(proba.shape[1])
    ]
    sure = (
        f"{100 * np.mean(proba.max(axis=1) > 0.9):.0f}\u00a0% of the rows belong to one component with probability 0.9"
    )
    content: list[Content] = [Table(f"Rows of each component; {sure}", ["", "rows", "share (%)"], rows)]
    if not can_draw():
        return content
    return [*content, *_density_map(model, X, found)]


def _density_map(model: Any, X: Any, found: np.ndarray) -> list[Content]:
    try:
        pair = (0, 1) if np.shape(X)[1] == 2 else _spread_pair(X, found, model)
        display = RegionsDisplay.from_estimator(model, X, columns=pair)
    except ValueError:
        return []
    canvas = figure(7.2, 4.6)
    display.plot(canvas.subplots())
    first, second = display.names
    text = f"Log density over {first} and {second}"
    text += ", the other columns integrated out" if np.shape(X)[1] > 2 else ""
    return [Figure(canvas, f"Map of the density over {first} and {second}.", f"{text}; ellipses are components.")]


def _spread_pair(X: Any, found: np.ndarray, model: Any) -> tuple[int, int]:
    """The two columns of numbers on which the components' rows differ most."""
    coded = getattr(getattr(model, "schema_", None), "categorical", ())
    columns = {j: v for j, v in number_columns(X, np.arange(len(found))).items() if j not in coded}
    if len(columns) < 2:
        raise ValueError("a map needs two columns of numbers that vary")
    first, second = sorted(sorted(columns, key=lambda j: -between(columns[j], found))[:2])
    return first, second


def pair_map(models: Mapping[str, Any], leader: str | None, X: Any, y: Any) -> list[Content]:
    """Regions over the two columns that tell most, of the leader where it can leave columns out, else of another."""
    order = sorted((n for n in models if hasattr(models[n], "classes_")), key=lambda name: name != leader)
    n_columns = np.shape(X)[1]
    name = next((n for n in order if hasattr(models[n], "marginal") or n_columns == 2), None)
    if name is None or n_columns < 2:
        return []
    try:
        pair = (0, 1) if n_columns == 2 else best_pair(models[name], X, y)
        display = RegionsDisplay.from_estimator(models[name], X, y, columns=pair)
    except ValueError:  # columns that are not numbers: there is no map to draw
        return []
    canvas = figure(6.4, 4.4)
    display.plot(canvas.subplots())
    first, second = display.names
    caption = f"{name}, fitted on all rows: decision regions over {first} and {second}"
    if n_columns > 2:
        others = "the other column is" if n_columns == 3 else f"the other {n_columns - 2} columns are"
        caption += (
            f"; {others} integrated out exactly, so this shows what these two columns "
            "alone can tell. Of the pairs tried, they make the fewest errors on these rows"
        )
    if display.n_outside:
        caption += f". {count(display.n_outside, 'extreme row')} outside the picture"
    return [Figure(canvas, f"Decision regions of {name} over {first} and {second}, with the rows.", caption + ".")]


def best_pair(model: Any, X: Any, y: Any, *, n_columns: int = 6, n_rows: int = 1000) -> tuple[int, int]:
    """The two columns on which the model, all others integrated out, makes the fewest errors on (a sample of) the rows.

    Tried are all pairs of the `n_columns` columns whose class means differ most for their spread.
    """
    y = as_labels(y)
    rows = np.flatnonzero(labelled_rows(y))
    rows = rows[np.linspace(0, len(rows) - 1, min(n_rows, len(rows))).astype(int)]
    coded = getattr(getattr(model, "schema_", None), "categorical", ())
    values = {j: column for j, column in number_columns(X, rows).items() if j not in coded}
    true = encode(y[rows], model.classes_)
    apart = {j: between(column, true) for j, column in values.items()}
    best = sorted(sorted(apart, key=lambda j: -apart[j])[:n_columns])
    if len(best) < 2:
        raise ValueError("a map needs two columns of numbers that vary")

    def errors(pair: tuple[int, int]) -> int:
        guess = model.marginal(pair).predict(_as_frame(X, pair, np.stack([values[j] for j in pair], axis=1)))
        return int(np.sum(encode(guess, model.classes_) != true))

    return min(combinations(best, 2), key=errors)


def number_columns(X: Any, rows: np.ndarray) -> dict[int, np.ndarray]:
    """Columns of numbers that vary, by place."""
    from sklearn.utils import _safe_indexing

    part, found = _safe_indexing(X, rows), {}
    for j in range(np.shape(X)[1]):
        column = np.asarray(_safe_indexing(part, j, axis=1))
        if column.dtype.kind in "iuf" and np.nanstd(column) > 0:
            found[j] = column.astype(float)
    return found


def _as_frame(X: Any, pair: tuple[int, int], values: np.ndarray) -> Any:
    """Two columns as a frame like `X`, under their names, or as the array they are."""
    if not hasattr(X, "columns"):
        return values
    import narwhals as nw

    names, frame = [str(name) for name in X.columns], nw.from_native(X)
    return nw.from_dict({names[j]: values[:, i] for i, j in enumerate(pair)}, backend=frame.implementation).to_native()


def between(column: np.ndarray, true: np.ndarray) -> float:
    """Share of the variance of a column that lies between the classes."""
    seen = np.isfinite(column)
    column, true = column[seen], true[seen]
    count = np.bincount(true)
    mean = np.bincount(true, column) / np.maximum(count, 1)
    return float(np.sum(count * (mean - column.mean()) ** 2) / (np.sum((column - column.mean()) ** 2) or 1))
