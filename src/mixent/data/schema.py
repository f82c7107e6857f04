"""What a table's columns are: names, kinds, categories; learned at fit, kept with the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from mixent.show import Short

FLOAT_KINDS = ("continuous", "integer")  # stored in Table.X
CODE_KINDS = ("categorical", "boolean")  # stored in Table.codes
PLAIN_TYPES = (str, bool, int, float)  # what JSON keeps apart by itself


@dataclass(frozen=True)
class Column:
    """One column: its name, its kind, and the values it may take if it is discrete.

    Parameters
    ----------
    name : str
        The column's name; ``"x0"``, ``"x1"``, ... when the data carried none.
    kind : {"continuous", "integer", "boolean", "categorical"}
        "integer" is modeled as a float; imputation and writing give integers back.
    categories : tuple
        The original values in sorted order; empty for "continuous" and "integer".
    """

    name: str
    kind: str
    categories: tuple = ()


@dataclass(frozen=True, repr=False)
class Schema(Short):
    """The columns of a table, in order.

    Parameters
    ----------
    columns : tuple of Column
        Every column of the input, in its order.
    named : bool
        Whether the data carried feature names (scikit-learn's sense: all of them text).
    library : str
        The library of the DataFrame, such as "pandas" or "polars"; "" for an array. Not part of a comparison by ``==``.

    Examples
    --------
    >>> from mixent.data import Column, Schema
    >>> schema = Schema((Column("size", "continuous"), Column("shape", "categorical", ("oval", "round"))), named=True)
    >>> schema.continuous, schema.categorical, schema.sizes
    ((0,), (1,), (2,))
    >>> Schema.from_json(schema.to_json()) == schema
    True
    """

    _shown = ("names", "named")

    columns: tuple[Column, ...]
    named: bool
    library: str = field(default="", compare=False)

    @cached_property
    def continuous(self) -> tuple[int, ...]:
        """Positions of the columns kept as floats, in the order of ``Table.X``."""
        return tuple(j for j, column in enumerate(self.columns) if column.kind in FLOAT_KINDS)

    @cached_property
    def categorical(self) -> tuple[int, ...]:
        """Positions of the categorical and boolean columns, in the order of ``Table.codes``."""
        return tuple(j for j, column in enumerate(self.columns) if column.kind in CODE_KINDS)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(column.name for column in self.columns)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of categories of each categorical column, in the order of ``Table.codes``."""
        return tuple(len(self.columns[j].categories) for j in self.categorical)

    def to_json(self) -> dict:
        """Return the schema in plain JSON types."""
        columns = [{"name": c.name, "kind": c.kind, "categories": list(c.categories)} for c in self.columns]
        return {"named": self.named, "library": self.library, "columns": columns}

    @classmethod
    def from_json(cls, d: Mapping[str, Any]) -> Schema:
        """Read what `to_json` wrote.

        Raises
        ------
        ValueError
            If the dictionary is not one that `to_json` could have written.
        """
        try:
            columns = tuple(_column(entry) for entry in d["columns"])
            return cls(columns, _plain(d["named"], bool), _plain(d.get("library", ""), str))
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a table schema ({error!r}); the file is damaged or not from mixent") from error


def names_out(schema: Schema) -> np.ndarray:
    """Return the column names as scikit-learn's ``get_feature_names_out`` wants them.

    Parameters
    ----------
    schema : Schema

    Returns
    -------
    ndarray of object, shape (n_columns,)
    """
    return np.array(schema.names, dtype=object)


def _column(entry: Mapping[str, Any]) -> Column:
    kind = entry["kind"]
    if kind not in FLOAT_KINDS + CODE_KINDS:
        raise TypeError(f"unknown column kind {kind!r}")
    categories = tuple(_plain(value, PLAIN_TYPES) for value in _plain(entry["categories"], list))
    if bool(categories) != (kind in CODE_KINDS):
        raise TypeError(f"a {kind} column with {len(categories)} categories")
    return Column(_plain(entry["name"], str), kind, categories)


def _plain(value: Any, types: type | tuple[type, ...]) -> Any:
    if not isinstance(value, types):
        raise TypeError(f"{value!r} is a {type(value).__name__}")
    return value
