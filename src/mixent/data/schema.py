"""What a table's columns are: names, kinds, categories, formats; learned at fit, kept with the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from mixent.data.formats import PLAIN, Format, Ignored, format_from_json, format_to_json
from mixent.show import Short

FLOAT_KINDS = ("continuous", "integer")  # stored in Table.X
CODE_KINDS = ("categorical", "boolean")  # stored in Table.codes
PLAIN_TYPES = (str, bool, int, float)  # what JSON keeps apart by itself
OTHER = "(other)"  # the last category of a column whose rare categories are pooled


@dataclass(frozen=True)
class Column:
    """One column of a model: its name, its kind, and the values it may take if it is discrete.

    Parameters
    ----------
    name : str
        The column's name; ``"x0"``, ``"x1"``, ... when the data carried none.
    kind : {"continuous", "integer", "boolean", "categorical"}
        "integer" is modeled as a float; imputation and writing give integers back.
    categories : tuple
        The original values in sorted order, then perhaps "(other)"; empty for "continuous" and "integer".
    """

    name: str
    kind: str
    categories: tuple = ()

    @property
    def pooled(self) -> bool:
        """Whether the last category stands for all values that are not among the others."""
        return bool(self.categories) and self.categories[-1] == OTHER


@dataclass(frozen=True)
class Input:
    """One column of the user's table: how it is read, and the columns of the model that it becomes.

    Parameters
    ----------
    name : str
    format : Format
        Plain values, numbers written as text, dates, or a column that is ignored.
    columns : tuple of int
        Positions among the columns of the model: none for an ignored column, several for a date.
    """

    name: str
    format: Format
    columns: tuple[int, ...]


@dataclass(frozen=True, repr=False)
class Schema(Short):
    """The columns of a table, in order.

    Parameters
    ----------
    columns : tuple of Column
        Every column that models see.
    named : bool
        Whether the data carried feature names (scikit-learn's sense: all of them text).
    library : str
        The library of the DataFrame, such as "pandas" or "polars"; "" for an array. Not part of a comparison by ``==``.
    formats : tuple of Input
        Every column of the user's table; empty where these are the columns of the model, as they are. See `inputs`.

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
    formats: tuple[Input, ...] = ()

    def __post_init__(self) -> None:
        if self.formats == _one_to_one(self.columns):
            object.__setattr__(self, "formats", ())
        used = [j for given in self.inputs for j in given.columns]
        if used != list(range(len(self.columns))):
            raise ValueError(f"the inputs of a schema must name its {len(self.columns)} columns in order; got {used}")

    @classmethod
    def of(cls, read: Sequence[tuple[str, Format, Sequence[Column]]], named: bool, library: str = "") -> Schema:
        """The schema of inputs, each with its name, its format and the columns it becomes."""
        columns: list[Column] = []
        inputs = []
        for name, form, become in read:
            inputs.append(Input(name, form, tuple(range(len(columns), len(columns) + len(become)))))
            columns += become
        return cls(tuple(columns), named, library, tuple(inputs))

    def with_columns(self, columns: Sequence[Column | None]) -> Schema:
        """The schema with other columns in place of its own; None for one that has no values.

        An input whose first column has no values is ignored.
        """
        read = []
        for given in self.inputs:
            become = [column for j in given.columns if (column := columns[j]) is not None]
            empty = bool(given.columns) and columns[given.columns[0]] is None
            read.append((given.name, Ignored("empty"), ()) if empty else (given.name, given.format, become))
        return Schema.of(read, self.named, self.library)

    def select(self, positions: Sequence[int]) -> Schema:
        """The schema of some columns of the user's table."""
        chosen = [self.inputs[i] for i in positions]
        read = [(given.name, given.format, [self.columns[j] for j in given.columns]) for given in chosen]
        return Schema.of(read, self.named, self.library)

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        """Every column of the user's table."""
        return self.formats or _one_to_one(self.columns)

    @property
    def one_to_one(self) -> bool:
        """Whether every column of the user's table is one column of the model, read as it is."""
        return not self.formats

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
        """Names of all columns of the model."""
        return tuple(column.name for column in self.columns)

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of all columns of the user's table."""
        return tuple(given.name for given in self.inputs)

    @property
    def used(self) -> tuple[Input, ...]:
        """The columns of the user's table that the model uses."""
        return tuple(given for given in self.inputs if given.columns)

    @property
    def owners(self) -> np.ndarray:
        """(n_columns,) for each column of the model, the position among `used` of the one that it comes from."""
        return np.repeat(np.arange(len(self.used)), [len(given.columns) for given in self.used])

    @property
    def ignored(self) -> tuple[str, ...]:
        """Names of the columns of the user's table that the model does not use."""
        return tuple(given.name for given in self.inputs if not given.columns)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of categories of each categorical column, in the order of ``Table.codes``."""
        return tuple(len(self.columns[j].categories) for j in self.categorical)

    def to_json(self) -> dict:
        """Return the schema in plain JSON types."""
        columns = [{"name": c.name, "kind": c.kind, "categories": list(c.categories)} for c in self.columns]
        plain = {"named": self.named, "library": self.library, "columns": columns}
        if self.one_to_one:
            return plain
        inputs = [
            {"name": given.name, "format": format_to_json(given.format), "columns": list(given.columns)}
            for given in self.inputs
        ]
        return {**plain, "inputs": inputs}

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
            inputs = tuple(_input(entry) for entry in d.get("inputs", ()))
            return cls(columns, _plain(d["named"], bool), _plain(d.get("library", ""), str), inputs)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
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


def _one_to_one(columns: Sequence[Column]) -> tuple[Input, ...]:
    return tuple(Input(column.name, PLAIN, (j,)) for j, column in enumerate(columns))


def _column(entry: Mapping[str, Any]) -> Column:
    kind = entry["kind"]
    if kind not in FLOAT_KINDS + CODE_KINDS:
        raise TypeError(f"unknown column kind {kind!r}")
    categories = tuple(_plain(value, PLAIN_TYPES) for value in _plain(entry["categories"], list))
    if bool(categories) != (kind in CODE_KINDS):
        raise TypeError(f"a {kind} column with {len(categories)} categories")
    return Column(_plain(entry["name"], str), kind, categories)


def _input(entry: Mapping[str, Any]) -> Input:
    columns = tuple(_plain(j, int) for j in _plain(entry["columns"], list))
    return Input(_plain(entry["name"], str), format_from_json(entry["format"]), columns)


def _plain(value: Any, types: type | tuple[type, ...]) -> Any:
    if not isinstance(value, types):
        raise TypeError(f"{value!r} is a {type(value).__name__}")
    return value
