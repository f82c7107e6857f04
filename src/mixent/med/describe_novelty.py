"""Descriptions of fitted novelty detectors and of unusual rows: text, tables, figures and values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import _safe_indexing

from mixent.base.describe import document, optimality
from mixent.base.displays import computed
from mixent.base.document import Bullets, Content, Document, Figure, Number, Paragraph, Section, Table
from mixent.base.text import count, percent, row_texts
from mixent.core.arrays import Array
from mixent.data import TableLike
from mixent.med.displays.likelihoods import LikelihoodsDisplay
from mixent.med.displays.multipliers import MultipliersDisplay
from mixent.med.novelty_models import NoveltyChain, NoveltyMixture, NoveltyTrees

if TYPE_CHECKING:
    from mixent.med.novelty import MEDNoveltyDetector

MOST_ROWS = 15  # unusual rows listed
MOST_COLUMNS = 3  # columns listed for each
SAMPLE = 300  # rows from which the median contribution of a column is computed
SOLUTION = (
    "Of all distributions over the parameters of a density under which every training row attains its required "
    "log-probability in expectation, the one closest to the prior (least relative entropy). {model}."
)
UNUSUAL = (
    "The {n} rows with the lowest scores, numbered from 0, and the columns that lower the score most. In parentheses: "
    "the median contribution of the column minus its contribution in this row, in nats. The contribution of a value is "
    "the score minus the score with the value missing"
)


def describe_novelty(model: MEDNoveltyDetector) -> Document:
    """Describe the density, the threshold and the training rows."""
    kind, text = _density(model)
    facts = {"density": kind, **_facts(model)}
    lead = f"A Bayesian fit, without a level set. {text}."
    rows: list[Content] = [Bullets([f"{line}." for line in _texts(facts)]), _scores_figure(model)]
    if model.margin_ is not None:
        lead = SOLUTION.format(model=text)
        rows.append(_multipliers_figure(model))
    return document(
        model,
        lead,
        [Section("Training rows", rows)],
        facts=facts,
        schema=model.schema_,
        runs=[model.run_],
        certificates=_certificates(model),
    )


def novelty_on_rows(model: MEDNoveltyDetector, X: TableLike, y: ArrayLike | None) -> list[Content]:
    """Compare the scores of these rows with those of the training rows, and list the most unusual rows.

    Parameters
    ----------
    model : fitted detector
    X : table of n rows
    y : ignored
    """
    scores = model.score_samples(X)
    below, below_training = (percent(float(np.mean(values < model.offset_))) for values in (scores, model.scores_))
    text = (
        f"{below} of {count(len(scores), 'row')} are below the threshold {model.offset_:.4g} (training rows: "
        f"{below_training}). Median score {np.median(scores):.4g} nats (training rows: {np.median(model.scores_):.4g})."
    )
    unusual = unusual_rows(model, X, scores=scores)
    return [Paragraph(text), *_compared(model, X, scores), _unusual_table(unusual)]


# --- the model --------------------------------------------------------------------------------------------------------


def _density(model: MEDNoveltyDetector) -> tuple[str, str]:
    """The kind of density, by its name and as text."""
    density, columns = model.model_, count(len(model.schema_.columns), "column")
    if isinstance(density, NoveltyTrees):
        return "tree", f"Average over all dependency trees of {columns}, with Dirichlet tables"
    if isinstance(density, NoveltyChain):
        steps = count(len(model.schema_.columns), "step")
        return "hmm", f"Hidden Markov model with {count(density.n_states, 'state')}; rows are sequences of {steps}"
    assert isinstance(density, NoveltyMixture)
    joint = density.emission.joint and density.emission.d > 0
    columns += " with jointly Gaussian numbers" if joint else ", independent of each other"
    if density.n_components > 1:
        return "mixture", f"Mixture of {count(density.n_components, 'component')} over {columns}"
    return ("gaussian" if joint else "product"), f"Density of {columns}"


def _certificates(model: MEDNoveltyDetector) -> list[str]:
    gap = model.gap_
    if gap is None or not model.hidden_:
        return optimality(gap, "nats")
    return [f"For the hidden values inferred at the end, the objective is at most {gap:.1g} nats from its optimum."]


def _facts(model: MEDNoveltyDetector) -> dict[str, Any]:
    scores, margin = model.scores_, model.margin_
    return {
        "objective": model.objective,
        "level": {"value": float(model.level_), "quantile": model._quantile()},
        "threshold": {"value": float(model.offset_), "contamination": float(model.contamination)},
        "scores": {
            "lowest": float(scores.min()),
            "median": float(np.median(scores)),
            "highest": float(scores.max()),
            "outside": int(np.sum(scores < model.offset_)),
            "rows": len(scores),
        },
        "margin": None if margin is None else type(margin).__name__.lower(),
        "C": None if margin is None else float(model.C),
        "support": {"rows": len(model.support_), "largest": float(model.multipliers_.max(initial=0.0))},
        "relative_entropy": float(model.relative_entropy_),
        "gap": None if model.gap_ is None else float(model.gap_),
    }


def _texts(facts: dict[str, Any]) -> list[str]:
    level, threshold, scores, support = facts["level"], facts["threshold"], facts["scores"], facts["support"]
    rows = count(scores["rows"], "training row")
    texts = []
    if facts["margin"] is not None:
        texts = [
            f"Required log-probability of every row: about {level['value']:.4g} nats, the {level['quantile']:g} "
            f"quantile under the Bayesian fit (margin prior {facts['margin']}, C = {facts['C']:g})",
            f"{support['rows']} of {rows} are support rows, with multipliers up to {support['largest']:.3g}"
            + ("; the others are probable enough" if support["rows"] < scores["rows"] else ""),
        ]
    return [
        *texts,
        f"Threshold: {threshold['value']:.4g} nats, for a share of {threshold['contamination']:g} of new typical rows "
        f"below it (contamination); {scores['outside']} of {rows} are below it",
        f"Training scores from {scores['lowest']:.4g} to {scores['highest']:.4g} nats, median {scores['median']:.4g}",
    ]


# --- figures ----------------------------------------------------------------------------------------------------------


def _scores_figure(model: MEDNoveltyDetector) -> Figure:
    display = computed(LikelihoodsDisplay.from_estimator, model)
    alt = f"Log-probabilities of {len(model.scores_)} training rows; {display.n_outliers} are below the threshold."
    caption = "Log-probabilities of the training rows. Rows below the threshold are outliers."
    if display.others is not None:
        caption += " The level set has a shorter lower tail than the Bayesian fit."
    return Figure(display.picture, alt, caption)


def _multipliers_figure(model: MEDNoveltyDetector) -> Figure:
    display = computed(MultipliersDisplay.from_estimator, model)
    text = f"{len(model.support_)} of {count(len(model.scores_), 'row')} are support rows"
    caption = f"Multipliers: the number of times each row counts (once in a Bayesian fit). {text}."
    return Figure(display.picture, f"Multipliers in decreasing order; {text}.", caption)


def _compared(model: MEDNoveltyDetector, X: TableLike, scores: Array) -> list[Content]:
    """Draw the scores of new rows beside those of the training rows; nothing if these are the training rows."""
    if scores.shape == model.scores_.shape and np.allclose(scores, model.scores_, rtol=1e-6, atol=1e-6):
        return []
    display = computed(LikelihoodsDisplay.from_estimator, model, X)
    alt = f"Log-probabilities of {count(len(scores), 'row')}; {display.n_outliers} are below the threshold."
    return [Figure(display.picture, alt, "Log-probabilities of these rows and of the training rows.")]


# --- unusual rows -----------------------------------------------------------------------------------------------------


def unusual_rows(
    model: MEDNoveltyDetector, X: TableLike, most: int = MOST_ROWS, *, scores: Array | None = None
) -> list[dict[str, Any]]:
    """The rows with the lowest scores, and the columns that lower them most.

    Parameters
    ----------
    model : fitted MEDNoveltyDetector
    X : table of n rows
    most : int
        Maximum number of rows.
    scores : (n,) array, optional
        Scores of the rows, if they were already computed.

    Returns
    -------
    list of dict
        row, score, outlier, and columns: a list of dict with column, value and below, the median contribution of the
        column minus its contribution in this row, in nats, largest first.
    """
    scores = model.score_samples(X) if scores is None else scores
    rows = np.argsort(scores, kind="stable")[:most]
    sample = np.linspace(0, len(scores) - 1, min(SAMPLE, len(scores))).astype(int)
    median = np.median(model.contributions(_safe_indexing(X, sample)), axis=0)
    lowest = _safe_indexing(X, rows)
    below = median - model.contributions(lowest)
    names, values = [column.name for column in model.schema_.columns], row_texts(lowest)
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


def _unusual_table(unusual: list[dict[str, Any]]) -> Table:
    rows: list[Any] = []
    for entry in unusual:
        columns = [c for c in entry["columns"][:MOST_COLUMNS] if c["below"] > 0]
        text = "; ".join(f"{c['column']} = {c['value']} ({c['below']:.1f})" for c in columns) or "no single column"
        rows.append([str(entry["row"]), Number(f"{entry['score']:.2f}"), "yes" if entry["outlier"] else "no", text])
    return Table(UNUSUAL.format(n=len(rows)), ["row", "score (nats)", "outlier", "main reasons"], rows)
