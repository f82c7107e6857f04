"""Constraints and multipliers of a maximum entropy model as a table, and the contributions of columns to each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.core.executors import Executor
from mixent.core.stats import Stats
from mixent.data.files import need_pandas
from mixent.maxent.blocks import RowBlocks, Rows
from mixent.maxent.layout import Layout
from mixent.maxent.problem import Multipliers


@dataclass(frozen=True)
class Constraints:
    """Every constraint P[class, value] of a fitted model: its value in the data, in the model, and its multiplier."""

    features: tuple[str, ...]  # (S,) the feature of each cell
    values: tuple[str, ...]  # (S,)
    classes: np.ndarray  # (C,)
    truth: Array  # (S, C) P_g
    model: Array  # (S, C) P_m
    multipliers: Array  # (S, C), nats
    strength: dict[str, float]  # standard deviation of each feature's part of the log-odds over the rows, nats

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
class Scatter(Stats):
    """Squares of the features' parts of the logits about their means."""

    weight: float
    square: Array  # (terms, C)


def read_constraints(
    layout: Layout, classes: np.ndarray, truth: Array, model: Array, params: Multipliers, strengths: Array
) -> Constraints:
    """Constraints of a fitted model; `truth` and `model` (S, C) are shares, `strengths` (terms,) of the features."""
    features = tuple(term.name for term in layout.terms for _ in term.values)
    values = tuple(str(value) for term in layout.terms for value in term.values)
    strength = dict(zip((term.name for term in layout.terms), strengths.tolist()))
    return Constraints(features, values, classes, truth, model, params.cells, strength)


def usual_parts(layout: Layout, params: Multipliers, shares: Array) -> Array:
    """(terms, C) what each feature adds to the logits on average; `shares` (S,) are the cells' means over the rows."""
    if not layout.terms:
        return np.empty((0, params.n_classes))
    return np.stack([shares[span] @ params.cells[span] for span in layout.spans])


def count_strengths(layout: Layout, params: Multipliers, usual: Array, source: RowBlocks, executor: Executor) -> Array:
    """(terms,) standard deviation over rows of each feature's part of the log-odds, root mean square over class pairs.

    With parts a_c less their mean over classes,  mean over pairs (a_c - a_c')^2 = 2 / (C - 1) sum_c a_c^2.
    """
    if not layout.terms:
        return np.empty(0)

    def scatter(block: Any) -> Scatter:
        off = layout.parts(params.cells, block) - usual[:, :, None]
        off -= off.mean(axis=1, keepdims=True)
        return Scatter(float(block.weight.sum()), off**2 @ block.weight)

    total = executor.total(scatter, source)
    return np.sqrt(2 * total.square.sum(axis=1) / (params.n_classes - 1) / max(total.weight, 1e-300))


def explain_columns(layout: Layout, params: Multipliers, rows: Rows, ours: np.ndarray, rival: np.ndarray) -> Array:
    """(n, terms) the parts of the features in log p(ours | x) / p(rival | x)."""
    parts = layout.parts(params.cells, rows)
    index = np.arange(rows.n_rows)
    return (parts[:, ours, index] - parts[:, rival, index]).T
