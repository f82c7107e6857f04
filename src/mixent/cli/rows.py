"""Tables for a fitted model: its columns in its order, codes as it knows them, labels that are its classes."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mixent.cli.console import current_screen
from mixent.cli.data import IDENTIFIERS, NOT_FEATURES, listed, need_columns, read_table, respell, sequence_ids

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from sklearn.base import BaseEstimator

    from mixent.data import Column, Schema


@dataclass(frozen=True)
class Rows:
    """A table as a model reads it."""

    frame: pd.DataFrame  # all of the table
    X: pd.DataFrame | np.ndarray  # the columns of the model, in its order
    used: Collection[str]  # names of the columns that the model reads
    groups: np.ndarray | None = None  # (n,): the sequence each row is a step of
    extra: Sequence[str] = ()  # columns that the table of fit did not have
    about: Mapping[str, list[str]] = field(default_factory=dict)  # columns of that table, by role

    @property
    def more(self) -> dict[str, Any]:
        """Further arguments of the methods of a model of sequences."""
        return {} if self.groups is None else {"groups": self.groups}

    def note_extra(self, known: Iterable[str | None] = ()) -> None:
        """Issue a note on columns that the table of fit did not have, except for the `known` ones."""
        from mixent.data.frames import extra_notes
        from mixent.warn import warn_notes

        known = set(known)
        warn_notes(extra_notes([name for name in self.extra if name not in known]))

    def some(self, numbers: list[int]) -> pd.DataFrame | np.ndarray:
        """The features of some rows."""
        from sklearn.utils import _safe_indexing

        return _safe_indexing(self.X, numbers)

    @property
    def first_steps(self) -> np.ndarray:
        """The first row of each sequence, in the order in which these appear; all rows where rows are not steps."""
        import numpy as np
        import pandas as pd

        numbers = np.arange(len(self.frame)) if self.groups is None else pd.factorize(self.groups)[0]
        return np.unique(numbers, return_index=True)[1]


def reads_steps(fitted: BaseEstimator) -> bool:
    """Whether each row is one step of a sequence for this model."""
    from sklearn.utils.validation import has_fit_parameter

    return has_fit_parameter(fitted, "groups") and not fitted.by_row_


def read_rows(
    fitted: BaseEstimator,
    path: Path,
    model: Path,
    *,
    target: str | None = None,
    absent: str | None = None,
    sequence: str | None = None,
) -> Rows:
    """Read a table for a model; words and codes are read as they were at fit.

    Parameters
    ----------
    fitted : model
    path : the table
    model : the model's file, for messages
    target : column of labels
    absent : column of the model that the table need not have
    sequence : column that names the sequence of each step
    """
    from mixent.base.registry import entry_of

    steps = reads_steps(fitted)
    if steps and sequence is None:
        raise typer.BadParameter(f"--sequence is needed: {model} was fitted to a row for each step of a sequence")
    if not steps and sequence is not None:
        raise typer.BadParameter(f"--sequence is not used: {model} was fitted without it")
    schema, about = entry_of(fitted).columns(fitted), _roles(model)
    codes = {} if schema is None else {c.name: c.categories for c in schema.columns if _words(c)}
    labels = target is not None and isinstance(fitted.classes_.tolist()[0], str)
    frame = read_table(path, [*codes, *([str(target)] if labels else []), *([sequence] if sequence else [])])
    for name in codes.keys() & set(frame.columns):
        respell(frame, name, codes[name])
    need_columns(path, frame.columns, [name for name in (target, sequence) if name is not None])
    groups = None if sequence is None else sequence_ids(frame[sequence], sequence)
    if schema is None:
        return Rows(frame, frame, list(frame.columns), groups, about=about)
    used = [given.name for given in schema.used]
    _hint_at_names(path, used, frame.columns)
    known = {*schema.input_names, *about[NOT_FEATURES], target, sequence}
    extra = [name for name in frame.columns if name not in known]
    return Rows(frame, _columns(schema, frame, path, absent), used, groups, extra, about)


def _roles(model: Path) -> dict[str, list[str]]:
    """Columns of the table of fit by their role, as the command that wrote the file stored them; empty if none did."""
    from mixent.core.serialize import read_header

    header = read_header(model)
    entries = {role: header.get(role) for role in (NOT_FEATURES, IDENTIFIERS)}
    return {role: [str(name) for name in names] if isinstance(names, list) else [] for role, names in entries.items()}


def _words(column: Column) -> bool:
    return column.kind == "categorical" and isinstance(column.categories[0], str)


def _columns(schema: Schema, frame: pd.DataFrame, path: Path, absent: str | None) -> pd.DataFrame | np.ndarray:
    if absent is not None and absent not in frame.columns:
        frame = frame.assign(**{absent: None})
    names = list(schema.input_names)
    used = [given.name for given in schema.used]
    if not schema.named or 2 * sum(name not in frame.columns for name in used) > len(used):
        need_columns(path, frame.columns, used)
    X = frame[[name for name in names if name in frame.columns]]
    return X if schema.named else X.to_numpy(dtype=object if schema.categorical else float, na_value=float("nan"))


def _hint_at_names(path: Path, used: Sequence[str], columns: Sequence[str]) -> None:
    """Point out columns whose names are almost those of columns that are not there."""
    others = [name for name in columns if name not in used]
    for name in used:
        if name not in columns and (close := difflib.get_close_matches(name, others, n=1)):
            current_screen().warn(f"{path} has no column {name!r}, but {close[0]!r}; if that is the same, rename it")


def class_labels(
    frame: pd.DataFrame, path: Path, target: str, classes: Sequence[Hashable], model: Path, hint: str = ""
) -> pd.Series:
    """The column of labels, which must be classes of the model; `hint` is what to do otherwise."""
    from mixent.data import split_target

    need_columns(path, frame.columns, [target])
    y = split_target(frame, target)[1]
    known = set(classes)
    strange = [value for value in dict.fromkeys(y.dropna().tolist()) if str(value).strip() and value not in known]
    if strange:
        raise ValueError(
            f"{path}, column {target!r} (--target): {strange[0]!r} is not a class of {model}; its classes are "
            f"{listed([str(c) for c in classes])}{f'; {hint}' if hint else ''}"
        )
    return y
