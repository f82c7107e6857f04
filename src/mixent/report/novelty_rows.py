"""The report of a novelty detector: the threshold, the scores of the training rows, the most unusual of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixent.base.document import Bullets, Content, Figure, Number, Paragraph, Table, can_draw
from mixent.base.document import canvas as figure
from mixent.base.style import FAINT, INK, colour, tidy
from mixent.base.text import count, readable
from mixent.displays import LikelihoodsDisplay
from mixent.report.structures import describe_structure, parts_of_scores, structure_in_words

LISTED = 15  # rows
NAMED = 3  # columns of each
SAMPLE = 300  # rows that say what is usual


def novelty_content(model: Any, X: Any) -> list[Content]:
    """What the page shows of the rows. For med/describe.py."""
    about = describe_structure(model)
    scores = None if _is_training(model, X) else np.asarray(model.score_samples(X))
    return [
        *_done(model, about, ()),
        *([] if scores is None else _scores_of(model, scores)),
        *_scores(model, about),
        *_unusual(model, X, scores),
        *_counted(model, about),
    ]


def _is_training(model: Any, X: Any) -> bool:
    """Are these the rows it was fitted to? Then their scores are known."""
    if np.shape(X)[0] != len(model.scores_):
        return False
    return bool(np.allclose(model.score_samples(X), model.scores_, rtol=1e-6, atol=1e-6))


def _scores_of(model: Any, scores: np.ndarray) -> list[Content]:
    """Scores of other rows beside those of the training rows."""
    outside, usual = float(np.mean(scores < model.offset_)), float(np.mean(model.scores_ < model.offset_))
    text = (
        f"{100 * outside:.1f}\u00a0% of {count(len(scores), 'row')} lie below the threshold {model.offset_:.4g}, of "
        f"the training rows {100 * usual:.1f}\u00a0%. Median score {np.median(scores):.4g}, of the training rows "
        f"{np.median(model.scores_):.4g}."
    )
    if not can_draw():
        return [Paragraph(text)]
    both = np.concatenate([scores, model.scores_])
    low, high = np.quantile(both[np.isfinite(both)], (0.005, 1.0))
    bins = np.linspace(low, high, 41)
    canvas = figure(6.4, 3.2)
    ax = canvas.subplots()
    for i, (values, label) in enumerate(((scores, "this table"), (model.scores_, "training rows"))):
        share = np.histogram(np.clip(values, bins[0], bins[-1]), bins)[0] / len(values)
        ax.stairs(100 * share, bins, color=colour(i), lw=1.6, fill=i == 0, alpha=0.5 if i == 0 else 1.0, label=label)
    ax.axvline(model.offset_, color=INK, lw=0.9, ls="--", label="threshold")
    ax.set(xlabel="log-probability of the row (nats)", ylabel="share of the rows (%)")
    ax.legend(frameon=False, fontsize="small")
    tidy(ax)
    return [Paragraph(text), Figure(canvas, f"Histogram of scores. {text}", "Rows left of the threshold are outliers.")]


def _done(model: Any, about: dict[str, Any], notes: Sequence[str]) -> list[Content]:
    n, columns = about["scores"]["rows"], len(model.schema_.columns)
    words, *facts = structure_in_words(about, see="")
    text = (
        f"A novelty detector was fitted to {count(n, 'row')} and {count(columns, 'column')}: of all distributions over "
        "a model's parameters under which every row is as probable as its margin, on average, the one of least "
        "relative entropy to the prior. "
    )
    if about["objective"] == "bayes":
        text = f"A Bayesian model was fitted to {count(n, 'row')} and {count(columns, 'column')}. "
    passes = count(model.run_.n_passes, "pass", "passes")
    ended = f"Solving took {passes}; {model.run_.message}."
    found: list[Content] = [Bullets(list(notes))] if notes else []
    return [Paragraph(f"{text}The model: {words}. {ended}"), Bullets([f"{fact}." for fact in facts]), *found]


def _scores(model: Any, about: dict[str, Any]) -> list[Content]:
    if not can_draw():
        return []
    display = LikelihoodsDisplay.from_estimator(model)
    canvas = figure(6.4, 3.6)
    display.plot(canvas.subplots())
    outside, n = about["scores"]["outside"], about["scores"]["rows"]
    alt = f"Log-probabilities of {n} training rows; {outside} lie below the threshold {model.offset_:.4g}."
    caption = (
        "How probable the training rows are. A row left of the threshold is called an outlier. The level set raises "
        "rows below the level, at the price of those above it: its tail is to be shorter than that of the Bayesian fit."
    )
    if about["objective"] == "bayes":
        caption = "How probable the training rows are. A row left of the threshold is called an outlier."
    return [Figure(canvas, alt, caption)]


def unusual_rows(model: Any, X: Any, most: int = LISTED, *, scores: Any = None) -> list[dict[str, Any]]:
    """The rows of lowest score, and how far each column is below what it usually adds.

    Parameters
    ----------
    model : fitted MEDNoveltyDetector
    X : the rows it was fitted to, or those of `scores`
    most : int
    scores : (n,) array, optional
        Of the rows of X; default: those of the training rows.

    Returns
    -------
    list of dict: row, score, outlier, columns (a list of dict: column, value, below; in nats, most first). What a
    column adds is the score less what it would be without the value; usual is its median over the rows.
    """
    from sklearn.utils import _safe_indexing

    scores = model.scores_ if scores is None else scores
    rows = np.argsort(scores, kind="stable")[:most]
    some = np.linspace(0, len(scores) - 1, min(SAMPLE, len(scores))).astype(int)
    usual = np.median(parts_of_scores(model, _safe_indexing(X, some)), axis=0)
    lowest = _safe_indexing(X, rows)
    below = usual - parts_of_scores(model, lowest)
    names, values = [column.name for column in model.schema_.columns], row_values(lowest)
    return [
        {
            "row": int(row),
            "score": float(scores[row]),
            "outlier": bool(scores[row] < model.offset_),
            "columns": [
                {"column": names[j], "value": values[i][j], "below": float(below[i, j])}
                for j in np.argsort(-below[i], kind="stable")
            ],
        }
        for i, row in enumerate(rows)
    ]


def row_values(X: Any) -> list[list[str]]:
    """What each row holds, as short text."""
    return [[_text(value) for value in row] for row in np.asarray(X, dtype=object).tolist()]


def _text(value: Any) -> str:
    if value is None or type(value).__name__ == "NAType" or (isinstance(value, float) and np.isnan(value)):
        return "missing"  # NAType is pandas', and will not be compared
    return readable(value) if isinstance(value, float) else str(value)


def _unusual(model: Any, X: Any, scores: Any) -> list[Content]:
    rows: list = []
    for entry in unusual_rows(model, X, scores=scores):
        loud = [c for c in entry["columns"][:NAMED] if c["below"] > 0]
        told = "; ".join(f"{c['column']} = {c['value']} ({c['below']:.1f})" for c in loud) or "no column by itself"
        rows.append([str(entry["row"]), Number(f"{entry['score']:.2f}"), "yes" if entry["outlier"] else "no", told])
    which = "training rows" if scores is None else "rows of this table"
    caption = (
        f"The {len(rows)} {which} of lowest score, numbered from 0, and the columns that make them so. In "
        "brackets, by how many nats the column lies below what it usually adds to a score: the score less what it "
        "would be if the value were missing"
    )
    return [Table(caption, ["row", "score (nats)", "outlier", "mostly by"], rows)]


def _counted(model: Any, about: dict[str, Any]) -> list[Content]:
    """Multipliers in falling order."""
    if about["objective"] == "bayes" or not can_draw():
        return []
    falling = np.sort(model.multipliers_)[::-1]
    n, held = len(falling), int((falling > 0).sum())
    canvas = figure(6.4, 3.0)
    ax = canvas.subplots()
    place = np.arange(1, n + 1)
    ax.fill_between(place, falling, step="mid", color=colour(0), alpha=0.45, lw=0, zorder=2)
    ax.plot(place, falling, drawstyle="steps-mid", color=colour(0), lw=1.2, zorder=3)
    if np.isfinite(model.margin_.upper):
        ax.axhline(model.margin_.upper, color=INK, lw=0.9, ls="--", label=f"most: C = {model.margin_.upper:.3g}")
        ax.legend(frameon=False, fontsize="small")
    ax.set(xlabel="training rows, by how much they count", ylabel="multiplier: times a row counts", xlim=(0, n + 1))
    ax.set_ylim(bottom=0)
    tidy(ax)
    ax.grid(axis="y", color=FAINT, lw=0.3, alpha=0.5, zorder=0)
    caption = (
        f"How often each row counts; a Bayesian fit counts each once. {held} of {n} rows hold the level set in place, "
        "the others are typical without being asked."
    )
    return [Figure(canvas, f"Multipliers in falling order: {held} of {n} rows count.", caption)]
