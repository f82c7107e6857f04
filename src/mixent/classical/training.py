"""The rows of a fit that count: those with a label and a weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.data import Table, check_spread, read_features, read_labels, read_weights
from mixent.med.estimator import read_subset


@dataclass(frozen=True)
class Rows:
    """Rows with a label and a weight; what is left out of each when it is left out."""

    table: Table
    at: np.ndarray  # (m,) their positions in the user's table
    target: Array  # (m, C) label distributions
    weight: Array  # (m,)

    @property
    def counts(self) -> Array:
        """(m, C) how often a row stands in each class."""
        return self.weight[:, None] * self.target

    @property
    def left_out(self) -> Array:
        """(m,) of a row of weight two one stays when one is left out; a weight below one goes as a whole."""
        return np.minimum(self.weight, 1.0)

    @property
    def shares(self) -> Array:
        """(C,) of the classes."""
        mass = self.counts.sum(axis=0)
        return mass / mass.sum()

    @property
    def shares_left(self) -> Array:
        """(m, C) of the classes when one is left out: less of the row's own class."""
        rest = self.counts.sum(axis=0) - self.left_out[:, None] * self.target
        return rest / rest.sum(axis=1, keepdims=True)


def read_rows(est: Any, X: Any, y: Any, sample_weight: Any) -> Rows:
    """Check the arguments of `fit`; `schema_`, `n_rows_` and `classes_` are set."""
    table = read_features(est, X, reset=True, categorical=est.categorical)
    check_spread(table)
    labels = read_labels(y, table.n_rows)
    part = read_subset(labels, read_weights(sample_weight, table.n_rows))
    at = np.flatnonzero(part.labelled & (part.weight > 0))
    est.schema_, est.n_rows_, est.classes_ = table.schema, table.n_rows, labels.classes
    return Rows(table.take(at), at, part.prior[at], part.weight[at])


def spread_out(values: Array, at: np.ndarray, n_rows: int) -> Array:
    """Values of some rows among all; NaN elsewhere."""
    out = np.full((n_rows, *values.shape[1:]), np.nan)
    out[at] = values
    return out
