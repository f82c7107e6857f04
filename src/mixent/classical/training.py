"""The training rows that classical classifiers use: those with a label and a positive weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.data import Table, check_spread, keep_notes, read_features, read_labels, read_weights
from mixent.med.training_sets import read_subset


@dataclass(frozen=True)
class LabelledRows:
    """Rows with a label and a positive weight, and their weights when they are left out."""

    table: Table
    index: np.ndarray  # (m,) positions in the user's table
    target: Array  # (m, C) label distributions
    weight: Array  # (m,)

    @property
    def counts(self) -> Array:
        """(m, C) weight of each row in each class."""
        return self.weight[:, None] * self.target

    @property
    def left_out(self) -> Array:
        """(m,) weight removed when a row is left out: one copy of a repeated row, at most its whole weight."""
        return np.minimum(self.weight, 1.0)

    @property
    def class_shares(self) -> Array:
        """(C,) weighted share of each class."""
        mass = self.counts.sum(axis=0)
        return mass / mass.sum()

    @property
    def loo_class_shares(self) -> Array:
        """(m, C) weighted share of each class without the row."""
        remaining = self.counts.sum(axis=0) - self.left_out[:, None] * self.target
        return remaining / remaining.sum(axis=1, keepdims=True)


def read_labelled_rows(est: Any, X: Any, y: Any, sample_weight: Any) -> LabelledRows:
    """Check the arguments of `fit` and set `schema_`, `n_rows_` and `classes_`."""
    table = read_features(est, X, reset=True, categorical=est.categorical)
    check_spread(table)
    labels = read_labels(y, table.n_rows)
    keep_notes(est, table, labels, quiet=isinstance(X, Table))
    subset = read_subset(labels, read_weights(sample_weight, table.n_rows))
    index = np.flatnonzero(subset.labelled & (subset.weight > 0))
    est.schema_, est.n_rows_, est.classes_ = table.schema, table.n_rows, labels.classes
    return LabelledRows(table.take(index), index, subset.prior[index], subset.weight[index])


def to_all_rows(values: Array, index: np.ndarray, n_rows: int) -> Array:
    """An array over all rows with `values` at the rows `index`, and NaN elsewhere."""
    out = np.full((n_rows, *values.shape[1:]), np.nan)
    out[index] = values
    return out
