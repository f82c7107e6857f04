"""The table of a comparison and its shape."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from mixent.base.recipes import Shape
from mixent.data import Categorical, Labels, Table, read_features


def read_table(X: Any, categorical: Categorical) -> Table:
    """The table with typed columns, and notes on what is unusual in it."""
    return read_features(SimpleNamespace(), X, reset=True, categorical=categorical)


def shape_of(table: Table, labels: Labels, *, weighted: bool = False) -> Shape:
    """The shape of a table, on which the choice of methods depends.

    Parameters
    ----------
    table : Table
    labels : Labels
        One label per row, or none for unlabelled rows.
    weighted : bool
        Whether the rows have weights.
    """
    assert labels.codes is not None
    counts = np.bincount(labels.codes[labels.known], minlength=len(labels.classes))
    codes = np.zeros((table.n_rows, 0), dtype=int) if table.codes is None else table.codes
    n_missing = float(np.isnan(table.X).sum() + (codes < 0).sum())
    return Shape(
        n_rows=table.n_rows,
        n_labelled=int(counts.sum()),
        n_numbers=table.X.shape[1],
        n_categories=codes.shape[1],
        n_bits=table.X.shape[1] + sum(table.schema.sizes),
        n_classes=len(labels.classes),
        smallest_class=int(counts.min()),
        share_missing=n_missing / max(table.n_rows * len(table.schema.columns), 1),
        weighted=weighted,
    )
