"""Rows without labels: their predictions, how probable they are, which are unusual."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from mixent.base.capabilities import cells_of
from mixent.base.document import Content, Figure, Number, Paragraph, Table, canvas
from mixent.base.style import FAINT, color, tidy
from mixent.base.text import class_name, count, readable, row_texts
from mixent.report.data import category_codes, column_names, read_table, without_empty

UNUSUAL = 8  # rows of lowest density
NAMED = 4  # of their columns
DOUBTFUL = 0.9


def predicted(classes: Any, proba: np.ndarray, what: str = "row") -> list[Content]:
    """How often each class is predicted, and with which probability; `what` a row is called."""
    guess, top = proba.argmax(axis=1), proba.max(axis=1)
    rows: list = []
    for c in np.argsort(-np.bincount(guess, minlength=len(classes)), kind="stable"):
        mine = guess == c
        confidence = Number(f"{top[mine].mean():.3f}") if mine.any() else None
        shares = [Number(f"{100 * value:.1f}") for value in (mine.mean(), proba[:, c].mean())]
        rows.append([class_name(classes[c]), int(mine.sum()), *shares, confidence])
    caption = (
        f"Predictions: {what}s assigned to each class, the mean probability of the class over all {what}s, and the "
        "mean probability of the decisions for it"
    )
    header = ["class", f"{what}s", "share (%)", "mean probability (%)", "confidence"]
    text = f"{count(int((top < DOUBTFUL).sum()), 'decision')} of {len(top)} have a probability below {DOUBTFUL}."
    bins = np.linspace(1 / len(classes), 1, 31)
    figure = Figure(lambda: _histogram(top, "Predicted probability", bins), f"Histogram. {text}", text)
    return [Table(caption, header, rows), figure]


def likelihoods(scores: np.ndarray, note: str = "") -> list[Content]:
    """A histogram of log-likelihoods; `note` on what stands in their place."""
    low, mid, high = (readable(v) for v in (scores.min(), np.median(scores), scores.max()))
    text = f"Log-likelihood (nats): from {low} to {high}, median {mid}." + (f" It is a {note}." if note else "")
    lowest, highest = np.quantile(scores[np.isfinite(scores)], (0.005, 1.0)).tolist()
    bins = np.linspace(lowest, highest, 41)
    draw = Figure(lambda: _histogram(scores, "Log-likelihood (nats)", bins), f"Histogram. {text}")
    return [Paragraph(text), draw]


def _histogram(values: np.ndarray, label: str, bins: np.ndarray) -> Any:
    figure = canvas(6.4, 2.8)
    ax = figure.subplots()
    edges = np.unique(bins)
    ax.hist(np.clip(values, bins[0], bins[-1]), bins=edges if len(edges) > 1 else 10, color=color(0))
    ax.set(xlabel=label, ylabel="Rows")
    ax.grid(axis="y", color=FAINT, lw=0.3, alpha=0.5)
    tidy(ax)
    return figure


def density_note(model: Any) -> str:
    """What `score_samples` returns where that is not the density of a row."""
    return cells_of(model)["density"].note


def unusual(scores: np.ndarray, X: Any) -> list[Content]:
    """The rows of lowest log-likelihood, with those of their values that are furthest from the usual."""
    X, rows = without_empty(X), np.argsort(scores, kind="stable")[:UNUSUAL]
    names, distance = column_names(X), distance_from_usual(X)
    cells: list = []
    for row, values in zip(rows.tolist(), row_texts(_safe_indexing(X, rows))):
        order = np.argsort(-distance[row], kind="stable")[:NAMED]
        listed = "; ".join(f"{names[j]} = {values[j]}" for j in order if distance[row, j] > 0) or "no single value"
        cells.append([str(row), Number(f"{scores[row]:.2f}"), listed])
    caption = (
        f"The {len(cells)} rows of lowest log-likelihood of {len(scores)} (median {readable(np.median(scores))} nats), "
        "numbered from 0, with their least usual values: numbers by standard deviations from the mean, categories by "
        "rarity"
    )
    return [Table(caption, ["row", "log-likelihood (nats)", "least usual values"], cells)]


def distance_from_usual(X: Any) -> np.ndarray:
    """(n, d) how unusual each value is by itself: |z|, or sqrt(-2 log share), which is of the same size."""
    table = read_table(X)
    out = np.zeros(np.shape(X))
    if table is None:
        return out
    for place, j in enumerate(table.schema.continuous):
        values = table.X[:, place]
        sd = float(np.nanstd(values)) if np.isfinite(values).any() else 0.0
        out[:, j] = 0.0 if sd == 0 else np.nan_to_num(np.abs(values - np.nanmean(values)) / sd)
    for codes, j in zip(category_codes(table), table.schema.categorical):
        share = np.bincount(codes[codes >= 0], minlength=1) / max(int((codes >= 0).sum()), 1)
        out[codes >= 0, j] = np.sqrt(-2 * np.log(share[codes[codes >= 0]]))
    return out
