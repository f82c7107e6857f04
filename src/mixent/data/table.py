"""Tables that have been read: what passes between estimators in place of the user's own table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import _safe_indexing

from mixent.data.schema import Column, Schema
from mixent.show import Short

if TYPE_CHECKING:
    from narwhals.stable.v1.typing import IntoDataFrame

Index = slice | np.ndarray
TableLike: TypeAlias = Union["Table", "IntoDataFrame", ArrayLike]  # what estimators take as X


@dataclass(frozen=True, repr=False)
class Table(Short):
    """Checked, typed rows.

    `read_features` takes a Table as well as a user's table. Cross-validation and ensembles read a table once and hand
    parts of it to the estimators that they fit.

    Parameters
    ----------
    X : ndarray of float64, shape (n, d)
        The columns `schema.continuous`; NaN is missing.
    codes : ndarray of int32, shape (n, m), or None
        The columns `schema.categorical` as positions among their categories; -1 is missing or unseen.
    schema : Schema
    as_category : frozenset of int
        Positions of the columns of the user's table that the option `categorical` named.
    unseen : bool
        Whether some values are -1 because they are not among the categories.
    source : the user's table, or a function that returns it, or the Part of another Table, or None
        See `given`.
    notes : tuple of str
        What was unusual in the table, and what was done about it.
    """

    _shown = ("n_rows", "schema")

    X: np.ndarray  # (n, d)
    codes: np.ndarray | None  # (n, m)
    schema: Schema
    as_category: frozenset[int] = frozenset()
    unseen: bool = False
    source: Any = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of_numbers(cls, X: np.ndarray) -> Table:
        """An array of floats inside the library, as a Table of continuous columns."""
        columns = tuple(Column(f"x{j}", "continuous") for j in range(X.shape[1]))
        return cls(X, None, Schema(columns, named=False), source=X)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.X.shape[0]

    def take(self, rows: Index) -> Table:
        """Some of the rows."""
        codes = None if self.codes is None else self.codes[rows]
        return replace(self, X=self.X[rows], codes=codes, source=Part(self, rows, axis=0))

    def column_codes(self, place: int) -> np.ndarray:
        """(n,) codes of the categorical column at this place among `schema.categorical`."""
        assert self.codes is not None
        return self.codes[:, place]

    @property
    def given(self) -> Any:
        """These rows as the user gave them, for estimators of other libraries."""
        if isinstance(self.source, Part):
            return _safe_indexing(self.source.whole.given, self.source.index, axis=self.source.axis)
        return self.source() if callable(self.source) else self.source


@dataclass(frozen=True)
class Part:
    """Rows (axis 0) or columns (axis 1) of a Table; the user's table is only indexed where it is asked for."""

    whole: Table
    index: Any
    axis: int


def n_rows_of(X: Any) -> int:
    """Number of rows of a user's table or of a Table."""
    from sklearn.utils.validation import _num_samples

    return X.n_rows if isinstance(X, Table) else _num_samples(X)


def take_rows(X: Any, rows: Index) -> Any:
    """Some rows of a user's table or of a Table."""
    return X.take(rows) if isinstance(X, Table) else _safe_indexing(X, rows)
