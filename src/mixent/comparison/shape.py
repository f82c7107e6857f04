"""What a table looks like, as far as that decides which methods to try."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mixent.base.labels import as_labels, classes_of, encode, labelled_rows
from mixent.data import Table, read_features


@dataclass(frozen=True)
class Shape:
    """Sizes of a table."""

    n_rows: int
    n_labelled: int
    n_numbers: int  # columns
    n_categories: int  # columns
    n_bits: int  # numbers, and a bit for each value of each category
    n_classes: int
    smallest_class: int  # rows
    share_missing: float  # of the cells
    weighted: bool

    @property
    def n_columns(self) -> int:
        """Columns of both kinds."""
        return self.n_numbers + self.n_categories

    @property
    def n_contests(self) -> int:
        """Labelled rows times other classes."""
        return self.n_labelled * (self.n_classes - 1)

    @classmethod
    def of(cls, table: Table, y: Any, weight: Any = None) -> Shape:
        """Of a table that has been read."""
        y = as_labels(y)
        known = labelled_rows(y)
        classes = classes_of(y)
        counts = np.bincount(encode(y[known], classes), minlength=len(classes))
        codes = np.zeros((table.n_rows, 0), dtype=int) if table.codes is None else table.codes
        gaps = float(np.isnan(table.X).sum() + (codes < 0).sum())
        return cls(
            n_rows=table.n_rows,
            n_labelled=int(known.sum()),
            n_numbers=table.X.shape[1],
            n_categories=codes.shape[1],
            n_bits=table.X.shape[1] + sum(table.schema.sizes),
            n_classes=len(classes),
            smallest_class=int(counts.min()),
            share_missing=gaps / max(table.n_rows * (table.X.shape[1] + codes.shape[1]), 1),
            weighted=weight is not None,
        )

    def __str__(self) -> str:
        kinds = [
            f"{n} {what}" for n, what in ((self.n_numbers, "of numbers"), (self.n_categories, "of categories")) if n
        ]
        said = f"{self.n_rows} rows, {self.n_columns} columns ({', '.join(kinds)}), {self.n_classes} classes"
        if self.n_labelled < self.n_rows:
            said += f", {self.n_rows - self.n_labelled} rows without a label"
        if self.share_missing:
            said += f", {100 * self.share_missing:.2g} % of the cells missing"
        return said + (", weighted" if self.weighted else "")


class _Reader(BaseEstimator):
    """Stands in for the estimator whose names `read_features` keeps."""


def read_table(X: Any, categorical: Any) -> Table:
    """The table as every method of the library reads it."""
    return read_features(_Reader(), X, reset=True, categorical=categorical)


def fingerprint(table: Table, y: Any, weight: Any, folds: np.ndarray) -> str:
    """Changes with any cell, label, weight or fold."""
    found = hashlib.sha256(json.dumps(table.schema.to_json(), default=str).encode())
    found.update(np.ascontiguousarray(table.X).tobytes())
    found.update(b"" if table.codes is None else np.ascontiguousarray(table.codes).tobytes())
    found.update(json.dumps([str(label) for label in as_labels(y)]).encode())
    found.update(b"" if weight is None else np.asarray(weight, dtype=float).tobytes())
    found.update(np.asarray(folds, dtype=np.int64).tobytes())
    return found.hexdigest()[:16]
