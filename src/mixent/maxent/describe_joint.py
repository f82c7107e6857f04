"""Descriptions of fitted joint models of all columns: text and tables."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from mixent.base.describe import document
from mixent.base.document import Bullets, Content, Document, Number, Section, Table
from mixent.base.text import count
from mixent.core.arrays import Array
from mixent.core.driver import Status
from mixent.maxent.describe import NO_OPTIMUM, variance_facts, with_status
from mixent.maxent.joint_inference import codes_of
from mixent.maxent.joint_problem import UNBOUNDED
from mixent.maxent.joint_terms import Layout

if TYPE_CHECKING:
    from mixent.data import Table as Rows
    from mixent.maxent.joint import MaxEntJoint
    from mixent.maxent.joint_terms import Term

LISTED = 12  # pairs of columns
MOST = 40  # columns


def describe_joint(model: MaxEntJoint) -> Document:
    """Size and prior of the joint distribution, and the pairs of columns with the strongest interactions."""
    pairs = strongest_pairs(model)
    variance = {name: value for name, value in variance_facts(model, ()).items() if name != "tried"}
    if isinstance(model.prior_variance, str):
        variance["how"] = "held-out rows"
    facts = {
        "n_parameters": int(model.n_parameters_),
        "n_values": len(model.params_.single),
        "prior_variance": variance,
        "strongest": pairs,
    }
    lead = (
        f"The joint distribution of {count(len(model.terms_), 'column')} ({count(facts['n_values'], 'value')}) with "
        "maximum entropy among all that reproduce the training frequencies of every pair of values of two columns. Any "
        "column can be predicted from the others."
    )
    sections = [Section("Prior", [Bullets([_variance_text(variance)])])]
    if pairs:
        rows = [[*entry["columns"], Number(f"{entry['strength']:.3f}")] for entry in pairs]
        caption = "Pairs of columns with the strongest interactions: standard deviation of their multipliers"
        sections.insert(0, Section("Interactions", [Table(caption, ["column", "and column", "nats"], rows)]))
    unbounded = model.run_.message == UNBOUNDED
    run = replace(model.run_, status=Status.MAX_PASSES) if unbounded else model.run_
    description = document(model, lead, sections, facts=facts, schema=model.schema_, runs=[run])
    return with_status(description, NO_OPTIMUM) if unbounded else description


def strongest_pairs(model: MaxEntJoint, max_pairs: int = LISTED) -> list[dict[str, Any]]:
    """The pairs of columns with the strongest interactions."""
    spans, names, shares = Layout(model.terms_).spans, model.schema_.names, model.shares_
    pairs: list[dict[str, Any]] = [
        {"columns": [names[j], names[k]], "strength": _interaction(model.params_.pairs[a, b], shares[a], shares[b])}
        for (j, a), (k, b) in combinations(spans.items(), 2)
    ]
    return sorted(pairs, key=lambda entry: -entry["strength"])[:max_pairs]


def _interaction(multipliers: Array, first: Array, second: Array) -> float:
    """Standard deviation of (r, s) multipliers, weighted by the frequencies, after removing row and column means."""
    rows, columns = multipliers @ second, first @ multipliers
    centered = multipliers - rows[:, None] - columns + first @ rows
    return float(np.sqrt(first @ centered**2 @ second))


def _variance_text(variance: dict[str, Any]) -> str:
    if variance["how"] == "none":
        return "No prior on the multipliers."
    how = "as given" if variance["how"] == "given" else "chosen by the log-loss of held-out rows"
    return f"Prior variance of the multipliers {variance['value']:g}, {how}."


def joint_on_rows(model: MaxEntJoint, X: Any, y: Any) -> list[Content]:
    """How well each column is predicted from all others on these rows, compared with a constant prediction."""
    table = model._read(X)
    scores = model.accuracy_by_column(table)
    rows: list[list[Any]] = []
    for term in model.terms_[:MOST]:
        score = scores.get(term.name)
        if score is not None and score.error is not None:
            rows.append([term.name, _percent(score.error), _percent(_constant_error(term, table)), None])
        elif score is not None and score.r2 is not None:
            rows.append([term.name, None, None, _percent(score.r2)])
    if not rows:
        return []
    caption = (
        "Prediction of each column from all others, on these rows: the error for a categorical column, compared with "
        "always predicting its most frequent value, and the share of variance explained for a numeric column. These "
        "values are optimistic on the training rows"
    )
    return [Table(caption, ["column", "error", "error of a constant", "variance explained"], rows)]


def _percent(share: float) -> Number:
    return Number(f"{100 * share:.1f} %")


def _constant_error(term: Term, table: Rows) -> float:
    codes = codes_of(term, table)
    counts = np.bincount(codes[codes >= 0])
    return 1.0 - float(counts.max() / counts.sum())
