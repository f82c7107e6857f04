"""Probabilities of the values of a categorical column, by component or by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.base.document import Content, Number, Table
from mixent.base.result import MOST_ROWS, Result
from mixent.base.text import count
from mixent.core.arrays import Array
from mixent.data.files import need_pandas


@dataclass(frozen=True, repr=False, eq=False)
class CategoryProbabilities(Result):
    """Probabilities of the values of a categorical column in each component: an array whose columns have names.

    A value in brackets, such as ``table["red"]``, selects its column; other indices are those of the array.
    `numpy.asarray(table)` returns the array.

    Parameters
    ----------
    values : (K, values) array
        Probabilities; rows sum to 1.
    categories : tuple
        The values of the column, in the order of the columns of the array.
    of : str
        What the rows of the array are about: "component", or "row" for probabilities given the values of a row.
    """

    _title = "Category probabilities"

    values: Array  # (K, values)
    categories: tuple
    of: str = "component"  # what a row of the array is about

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of components and of values."""
        return self.values.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, str):
            return self.values[index]
        if index not in self.categories:
            names = ", ".join(repr(name) for name in self.categories[:20])
            raise KeyError(f"unknown value {index!r}; the values of the column are {names}")
        return self.values[:, self.categories.index(index)]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Array]:
        return iter(self.values)

    def frame(self) -> Any:
        """The probabilities as a pandas DataFrame: a column for each value."""
        pandas = need_pandas("for a table of probabilities")
        return pandas.DataFrame(self.values, columns=list(self.categories)).rename_axis(index=self.of)

    def _brief(self) -> str:
        values = count(len(self.categories), "value")
        return f"{count(len(self), self.of)}, {values}: {', '.join(map(str, self.categories))}"

    def _content(self) -> list[Content]:
        rows: list[list[Any]] = [
            [str(k), *(Number(f"{p:.3f}") for p in row)] for k, row in enumerate(self.values[:MOST_ROWS])
        ]
        return [Table("", [self.of, *map(str, self.categories)], rows)]
