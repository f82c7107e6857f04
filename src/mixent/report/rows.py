"""Rows without labels: what is said of them, how probable they are, which are unusual, how they cluster."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.base.document import Content, Figure, Number, Paragraph, Table, can_draw
from mixent.base.document import canvas as figure
from mixent.base.style import FAINT, colour, tidy
from mixent.base.text import class_name, count, readable
from mixent.displays import RegionsDisplay
from mixent.report.data import read_table
from mixent.report.maps import between, number_columns
from mixent.report.novelty import row_values

UNUSUAL = 8  # rows of lowest density
NAMED = 4  # of their columns


def predicted(classes: Any, proba: np.ndarray, what: str = "row") -> list[Content]:
    """How often each class is said, and how sure that is; `what` a row is called."""
    guess, top = proba.argmax(axis=1), proba.max(axis=1)
    rows: list = []
    for c in np.argsort(-np.bincount(guess, minlength=len(classes)), kind="stable"):
        mine = guess == c
        sure = Number(f"{top[mine].mean():.3f}") if mine.any() else None
        share = Number(f"{100 * mine.mean():.1f}")
        rows.append([class_name(classes[c]), int(mine.sum()), share, Number(f"{100 * proba[:, c].mean():.1f}"), sure])
    caption = (
        f"What is said of the {what}s: how many are decided for each class, the mean probability of the class over "
        f"all, and how sure its decisions are on average"
    )
    header = ["class", f"{what}s", "share (%)", "mean probability (%)", "confidence"]
    content: list[Content] = [Table(caption, header, rows)]
    if not can_draw():
        return content
    doubtful = int((top < 0.9).sum())
    text = f"{count(doubtful, 'decision')} of {len(top)} have a probability below 0.9."
    canvas = _histogram(top, "probability of the class said", np.linspace(1 / len(classes), 1, 31))
    return [*content, Figure(canvas, f"Histogram of the largest probability of {len(top)} {what}s. {text}", text)]


def densities(scores: np.ndarray, what: str = "log density") -> list[Content]:
    """A histogram of log densities, or of what is in their place."""
    low, mid, high = (readable(v) for v in (scores.min(), np.median(scores), scores.max()))
    text = f"{what[0].upper()}{what[1:]}, nats: from {low} to {high}, median {mid}."
    if not can_draw():
        return [Paragraph(text)]
    low, high = np.quantile(scores[np.isfinite(scores)], (0.005, 1.0))
    bins = np.linspace(low, high, 41)
    return [Figure(_histogram(scores, f"{what} (nats)", bins), f"Histogram. {text}", text)]


def _histogram(values: np.ndarray, label: str, bins: np.ndarray) -> Any:
    canvas = figure(6.4, 2.8)
    ax = canvas.subplots()
    ax.hist(
        np.clip(values, bins[0], bins[-1]), bins=np.unique(bins) if len(np.unique(bins)) > 1 else 10, color=colour(0)
    )
    ax.set(xlabel=label, ylabel="rows")
    ax.grid(axis="y", color=FAINT, lw=0.3, alpha=0.5)
    tidy(ax)
    return canvas


def unusual(model: Any, X: Any) -> list[Content]:
    """The rows of lowest density, with what they hold."""
    if not hasattr(model, "score_samples"):
        return []
    try:
        scores = np.asarray(model.score_samples(X), dtype=float)
    except (AttributeError, TypeError, ValueError):
        return []
    from sklearn.utils import _safe_indexing

    if scores.shape != (np.shape(X)[0],):
        return []
    rows = np.argsort(scores, kind="stable")[:UNUSUAL]
    names = [str(c) for c in X.columns] if hasattr(X, "columns") else [f"column {j}" for j in range(np.shape(X)[1])]
    off = _from_usual(X)
    told: list = []
    for row, values in zip(rows.tolist(), row_values(_safe_indexing(X, rows))):
        order = np.argsort(-off[row], kind="stable")[:NAMED]
        said = "; ".join(f"{names[j]} = {values[j]}" for j in order if off[row, j] > 0) or "nothing by itself"
        told.append([str(row), Number(f"{scores[row]:.2f}"), said])
    density = "log pseudo-likelihood" if hasattr(model, "terms_") else "log density"
    caption = (
        f"The {len(told)} rows of lowest {density}, numbered from 0, of {len(scores)} (median "
        f"{readable(np.median(scores))} nats), with the values that are furthest from the usual: numbers by standard "
        "deviations from the mean, categories by how rare they are"
    )
    return [Table(caption, ["row", f"{density} (nats)", "holds"], told)]


def _from_usual(X: Any) -> np.ndarray:
    """(n, d) how unusual each value is by itself: |z|, or sqrt(-2 log share), which is of the same size."""
    table = read_table(X)
    out = np.zeros(np.shape(X))
    if table is None:
        return out
    for place, j in enumerate(table.schema.continuous):
        values = table.X[:, place]
        sd = float(np.nanstd(values)) if np.isfinite(values).any() else 0.0
        out[:, j] = 0.0 if sd == 0 else np.nan_to_num(np.abs(values - np.nanmean(values)) / sd)
    for place, j in enumerate(table.schema.categorical):
        codes = table.codes[:, place]
        share = np.bincount(codes[codes >= 0], minlength=1) / max(int((codes >= 0).sum()), 1)
        out[codes >= 0, j] = np.sqrt(-2 * np.log(share[codes[codes >= 0]]))
    return out


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
