"""Constraints and multipliers of a maximum entropy model as a table, and contributions of the features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.base.document import Content, Number, Table
from mixent.base.result import MOST_ROWS, Result
from mixent.core.arrays import Array
from mixent.core.executors import Executor
from mixent.core.stats import Stats
from mixent.data.files import need_pandas
from mixent.maxent.blocks import RowBlocks
from mixent.maxent.layout import Layout
from mixent.maxent.problem import Multipliers


@dataclass(frozen=True, repr=False)
class Constraints(Result):
    """The constraints on P[class, value] of a fitted model: probability in the data, in the model, and multiplier."""

    _title = "Constraints"

    features: tuple[str, ...]  # (S,) the feature of each cell
    values: tuple[str, ...]  # (S,)
    classes: np.ndarray  # (C,)
    truth: Array  # (S, C) P_g
    model: Array  # (S, C) P_m
    multipliers: Array  # (S, C), nats
    strength: dict[str, float]  # feature -> standard deviation over rows of its contribution to the log-odds, nats

    @property
    def residuals(self) -> Array:
        """(S, C) P_m - P_g; zero without a prior."""
        return self.model - self.truth

    def _brief(self) -> str:
        features, largest = len(self.strength), np.abs(self.residuals).max(initial=0.0)
        return f"{self.truth.size} constraints, {features} features, largest residual={largest:.2g}"

    def _content(self) -> list[Content]:
        header = [
            "feature",
            "value",
            *(f"{kind}, {c}" for c in self.classes for kind in ("P truth", "P model", "gamma")),
        ]
        rows: list[list[Any]] = []
        for s, (feature, value) in enumerate(zip(self.features[:MOST_ROWS], self.values)):
            cells = zip(self.truth[s], self.model[s], self.multipliers[s])
            rows.append([feature, value, *(Number(f"{x:.3g}") for cell in cells for x in cell)])
        caption = "Probability of each value with each class in the data and in the model, and multiplier gamma (nats)"
        return [Table(caption, header, rows)]

    def frame(self) -> Any:
        """A pandas DataFrame with a row for every feature, value and class."""
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
    """Weighted sums of squared deviations of the features' contributions to the logits from their means."""

    weight: float
    square: Array  # (terms, C)

    @property
    def strengths(self) -> Array:
        """(terms,) root mean square over pairs of classes."""
        return np.sqrt(2 * self.square.sum(axis=1) / (self.square.shape[1] - 1) / max(self.weight, 1e-300))


def read_constraints(
    layout: Layout, classes: np.ndarray, truth: Array, model: Array, params: Multipliers, strengths: Array
) -> Constraints:
    """The constraints of a fitted model; `truth` and `model` (S, C) are probabilities, `strengths` is (terms,)."""
    features = tuple(term.name for term in layout.terms for _ in term.values)
    values = tuple(str(value) for term in layout.terms for value in term.values)
    strength = dict(zip((term.name for term in layout.terms), strengths.tolist()))
    return Constraints(features, values, classes, truth, model, params.cells, strength)


def mean_logits(layout: Layout, params: Multipliers, cell_means: Array) -> Array:
    """(terms, C) mean contribution of each feature to the logits; `cell_means` (S,) are means over the rows."""
    if not layout.terms:
        return np.empty((0, params.n_classes))
    return np.stack([cell_means[span] @ params.cells[span] for span in layout.spans])


def feature_strengths(layout: Layout, params: Multipliers, mean: Array, source: RowBlocks, executor: Executor) -> Array:
    """(terms,) standard deviation over rows of each feature's contribution to the log-odds.

    With more than two classes, the root mean square over pairs of classes. With contributions a_c to the logits,
    centered over the classes, the mean over pairs of (a_c - a_c')^2 is 2 / (C - 1) sum_c a_c^2.
    """
    if not layout.terms:
        return np.empty(0)

    def scatter(block: Any) -> Scatter:
        return scatter_of(layout.term_logits(params.cells, block), mean, block.weight)

    return executor.total(scatter, source).strengths


def scatter_of(logits: Array, mean: Array, weight: Array) -> Scatter:
    """The scatter of contributions (terms, C, n) about their means (terms, C)."""
    deviation = logits - mean[:, :, None]
    deviation -= deviation.mean(axis=1, keepdims=True)
    return Scatter(float(weight.sum()), deviation**2 @ weight)


def explain_columns(logits: Array, label: np.ndarray, rival: np.ndarray) -> Array:
    """(n, terms) contributions of the features to log p(label | x) / p(rival | x); `label`, `rival` (n,) are codes.

    `logits` (terms, C, n) are the contributions of the features to the logits.
    """
    index = np.arange(logits.shape[2])
    return (logits[:, label, index] - logits[:, rival, index]).T
