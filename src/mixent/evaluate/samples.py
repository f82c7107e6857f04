"""Rows with labels and weights, each read once, from which folds are taken."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from mixent.base.delegation import features_for, reads_tables
from mixent.data import (
    Categorical,
    Labels,
    Table,
    n_rows_of,
    read_features,
    read_labels,
    read_weights,
    split_target,
    take_rows,
)
from mixent.data.frames import is_frame, unwrapped
from mixent.warn import warn_notes


@dataclass(frozen=True)
class Samples:
    """Rows for cross-validation."""

    X: Any  # a Table, or as given
    labels: Labels  # one label per row, or none
    weight: np.ndarray | None  # (n,)
    groups: np.ndarray | None = None  # (n,) number of the group of each row; folds do not split a group

    @property
    def n_rows(self) -> int:
        """Number of rows, with and without a label."""
        return len(self.labels.likelihood)

    @property
    def classes(self) -> np.ndarray:
        """(C,) sorted."""
        return self.labels.classes

    @property
    def codes(self) -> np.ndarray:
        """(n,) positions among the classes; -1 without a label."""
        assert self.labels.codes is not None
        return self.labels.codes

    def features(self, estimator: Any, rows: np.ndarray) -> Any:
        """Some rows, as an estimator takes them."""
        return features_for(estimator, take_rows(self.X, rows))

    def weights(self, rows: np.ndarray) -> np.ndarray:
        """(m,) weights of some rows; 1 where none were given."""
        return np.ones(len(rows)) if self.weight is None else self.weight[rows]


def features_and_labels(X: Any, y: Any) -> tuple[Any, Any]:
    """X and y; a text y is the name of a column of the DataFrame X, which then has the other columns."""
    if not isinstance(y, str):
        return X, y
    frame = unwrapped(X)
    if not is_frame(frame):
        raise ValueError(f"y = {y!r} names a column, so X must be a DataFrame; got {type(X).__name__}; pass the labels")
    return split_target(frame, y)


def features_and_groups(X: Any, groups: Any) -> tuple[Any, Any]:
    """X and groups; text is the name of a column of the DataFrame X, which then has the other columns."""
    if not isinstance(groups, str):
        return X, groups
    frame = unwrapped(X)
    if not is_frame(frame):
        got = type(X).__name__
        raise ValueError(f"groups = {groups!r} names a column, so X must be a DataFrame; got {got}; pass the groups")
    return split_target(frame, groups)


def read_groups(groups: Any, n_rows: int) -> np.ndarray | None:
    """(n,) numbers of the groups, or None without groups; every row needs one."""
    if groups is None:
        return None
    import pandas as pd

    values = np.asarray(groups)
    if values.shape != (n_rows,):
        raise ValueError(f"groups must have one value for each of the {n_rows} rows; its shape is {values.shape}")
    codes = pd.factorize(values)[0]
    if (codes < 0).any():
        row = int(np.argmin(codes))
        raise ValueError(f"every row needs a group; that of row {row} is missing; give it a name of its own")
    return codes


def read_samples(
    X: Any,
    y: Any,
    sample_weight: Any = None,
    groups: Any = None,
    *,
    estimators: Iterable[Any] = (),
    categorical: Categorical = "auto",
) -> Samples:
    """Check rows, labels and weights.

    Parameters
    ----------
    X : array, DataFrame or Table of n rows
    y : (n,) labels, or the name of a column of X
        None, NaN or blank text for a row without one.
    sample_weight : (n,) weights, optional
    groups : (n,) values, or the name of a column of X, optional
        Folds do not split rows of the same value.
    estimators : the methods to be fitted
        X is read here if one of them takes a Table; if it cannot be read, they refuse it one by one.
    categorical : "auto" or list
        See `read_features`.
    """
    X, y = features_and_labels(X, y)
    X, groups = features_and_groups(X, groups)
    n_rows = n_rows_of(X)
    if y is not None and _num_samples(y) != n_rows:
        raise ValueError(f"X has {n_rows} rows, y has {_num_samples(y)}")
    labels = read_labels(y, n_rows)
    if labels.codes is None:
        raise ValueError("y holds probabilities of labels, and scores need one label per row; give the labels")
    weight = read_weights(sample_weight, n_rows)
    if not isinstance(X, Table) and any(reads_tables(estimator) for estimator in estimators):
        with suppress(TypeError, ValueError):
            X = read_features(SimpleNamespace(), X, reset=True, categorical=categorical)
    warn_notes((*(X.notes if isinstance(X, Table) else ()), *labels.notes))
    return Samples(X, labels, weight, read_groups(groups, n_rows))
