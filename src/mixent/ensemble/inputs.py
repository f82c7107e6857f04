"""The table of a stacking model; each classifier uses some of its columns, and every set of columns is read once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from mixent.base.delegation import reads_tables
from mixent.data import Table, listed, read_features

Columns = tuple[str | int, ...] | None  # None: all columns


@dataclass(frozen=True)
class Inputs:
    """Rows of a table.

    Parameters
    ----------
    X : array or DataFrame
        All columns, as given by the user.
    tables : dict of columns -> Table
        Cache of the sets of columns that have been read.
    rows : (n,) array, optional
        Positions of the rows in X; None: all.
    """

    X: Any
    tables: dict[Columns, Table] = field(default_factory=dict)
    rows: np.ndarray | None = None
    handed_on: bool = False  # it came as a Table; its notes have been shown where it was read

    @property
    def names(self) -> list[Any]:
        """Names of the columns, or their positions."""
        return list(getattr(self.X, "columns", range(self.X.shape[1])))

    def take(self, rows: np.ndarray) -> Inputs:
        """A subset of the rows."""
        tables = {columns: table.take(rows) for columns, table in self.tables.items()}
        return replace(self, tables=tables, rows=rows if self.rows is None else self.rows[rows])

    def given(self, columns: Columns) -> Any:
        """Columns as given by the user."""
        X = self.X if columns is None else _some_columns(self.X, list(columns), self.names)
        return X if self.rows is None else _safe_indexing(X, self.rows)

    def read(self, columns: Columns) -> Table:
        """Columns for `fit`, as a table."""
        return self._read(columns, lambda X: read_features(SimpleNamespace(), X, reset=True))

    def read_by(self, model: Any, columns: Columns) -> Table:
        """Columns for the methods of a fitted estimator with a `schema_`, as a table."""
        return self._read(columns, lambda X: read_features(model, X, reset=False))

    def _read(self, columns: Columns, read: Callable[[Any], Table]) -> Table:
        columns = self._positions(columns)
        if columns not in self.tables:
            self.tables[columns] = read(self.given(columns))
        return self.tables[columns]

    def _positions(self, columns: Columns) -> Columns:
        """Positions of columns given by name or position, as keys of the cache; None if these are all columns."""
        if columns is None:
            return None
        names = self.names
        positions = tuple(names.index(c) if isinstance(c, str) and c in names else c for c in columns)
        return None if positions == tuple(range(len(names))) else positions

    def for_fit(self, model: Any, columns: Columns) -> Any:
        """The X that is passed to `fit` of a classifier."""
        return self.read(columns) if reads_tables(model) else self.given(columns)

    def for_predict(self, model: Any, columns: Columns) -> Any:
        """The X that is passed to the methods of a fitted classifier."""
        if not reads_tables(model):
            return self.given(columns)
        if hasattr(model, "schema_"):
            return self.read_by(model, columns)
        return self.tables.get(self._positions(columns), self.given(columns))  # a stacking model has no schema


def _some_columns(X: Any, columns: Sequence[str | int], names: list[Any]) -> Any:
    try:
        return _safe_indexing(X, columns, axis=1)
    except (KeyError, IndexError, ValueError) as error:
        unknown = [c for c in columns if c not in names]
        if not unknown:
            raise
        raise ValueError(f"inputs: X has no column {unknown[0]!r}; its columns are {listed(names)}") from error
