"""What a maximum entropy model says: its constraints and multipliers as a table, each case as a sum over columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.core.executors import Executor
from mixent.core.stats import Stats
from mixent.maxent.layout import Layout
from mixent.maxent.problem import Multipliers
from mixent.maxent.rows import RowBlocks, Rows
from mixent.tables.files import need_pandas


@dataclass(frozen=True)
class Constraints:
    """Every constraint P[class, value] of a fitted model: what the data say, what the model says, its multiplier."""

    features: tuple[str, ...]  # (S,) the feature of each cell
    values: tuple[str, ...]  # (S,)
    classes: np.ndarray  # (C,)
    truth: Array  # (S, C) P_g
    model: Array  # (S, C) P_m
    multipliers: Array  # (S, C), nats
    strength: dict[str, float]  # how much each feature moves the log-odds over the training rows, nats

    @property
    def residuals(self) -> Array:
        """(S, C) P_m - P_g: what the prior leaves of each constraint; zero without one."""
        return self.model - self.truth

    def frame(self) -> Any:
        """One row for every feature, value and class, as a pandas DataFrame."""
        pandas = need_pandas("for a table of constraints")
        C = len(self.classes)
        return pandas.DataFrame(
            {
                "feature": np.repeat(self.features, C),
                "value": np.repeat(np.array(self.values, dtype=object), C),
                "class": np.tile(self.classes, len(self.features)),
                "P_truth": self.truth.ravel(),
                "P_model": self.model.ravel(),
                "residual": self.residuals.ravel(),
                "multiplier": self.multipliers.ravel(),
            }
        )


@dataclass(frozen=True)
class Parts(Stats):
    """Sums over rows of the features' parts of the logits."""

    weight: float
    first: Array  # (terms, C)
    second: Array  # (terms, C)


@dataclass(frozen=True)
class ColumnExplanation:
    """Why each row is said to be of its class rather than of its strongest rival.

    log_odds = prior + by_column.sum(axis=1), exactly. A missing value has no part.
    """

    label: np.ndarray  # (n,) the class explained
    rival: np.ndarray  # (n,) the class it is compared with
    log_odds: Array  # (n,) log p(label | x) / p(rival | x), nats
    prior: Array  # (n,) the part of the class term
    by_column: Array  # (n, features) the part of each; > 0 speaks for the label
    names: tuple[str, ...]  # of the features


def read_constraints(
    layout: Layout, classes: np.ndarray, truth: Array, model: Array, params: Multipliers, strengths: Array
) -> Constraints:
    """Constraints of a fitted model; `truth` and `model` (S, C) are shares, `strengths` (terms,) of the features."""
    features = tuple(term.name for term in layout.terms for _ in term.values)
    values = tuple(str(value) for term in layout.terms for value in term.values)
    strength = dict(zip((term.name for term in layout.terms), strengths.tolist()))
    return Constraints(features, values, classes, truth, model, params.cells, strength)


def count_strengths(layout: Layout, params: Multipliers, source: RowBlocks, executor: Executor) -> Array:
    """(terms,) standard deviation over rows of each feature's part of the logits, root mean square over classes."""

    def moments(block: Any) -> Parts:
        phi = layout.cells.dense(block)
        parts = np.stack([params.cells[span].T @ phi[span] for span in layout.spans])  # (terms, C, n)
        return Parts(float(block.weight.sum()), parts @ block.weight, (parts**2) @ block.weight)

    if not layout.terms:
        return np.empty(0)
    total = executor.total(moments, source)
    mean = total.first / total.weight
    return np.sqrt(np.maximum(total.second / total.weight - mean**2, 0.0).mean(axis=1))


def explain_columns(layout: Layout, params: Multipliers, rows: Rows, ours: np.ndarray, rival: np.ndarray) -> Array:
    """(n, terms) the parts of the features in log p(ours | x) / p(rival | x)."""
    phi = layout.cells.dense(rows)  # (S, n)
    parts = np.empty((rows.n_rows, len(layout.terms)))
    pairs = np.unique(np.stack([ours, rival]), axis=1).T if len(ours) else np.empty((0, 2), dtype=int)
    for a, b in pairs:
        mine = np.flatnonzero((ours == a) & (rival == b))
        for i, span in enumerate(layout.spans):
            parts[mine, i] = (params.cells[span, a] - params.cells[span, b]) @ phi[span][:, mine]
    return parts
