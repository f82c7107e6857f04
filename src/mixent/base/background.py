"""Contributions of the columns to a prediction: training rows kept with a classifier, and rows mixed with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import CapableTags, able, is_able, yes
from mixent.base.explanation import AGNOSTIC, EXACT, Explanation, Rivals, shapley_name
from mixent.base.shapley import Games
from mixent.base.text import readable, value_text
from mixent.core.arrays import Array
from mixent.data import Schema, Table, read_features
from mixent.data.cells import raw_columns
from mixent.data.export import to_frame
from mixent.show import Short
from mixent.warn import NotesTogether

N_BACKGROUND = 50
CELLS = 1_000_000  # of mixed rows at a time
LEAST = 1e-300  # a smaller probability counts as this


@dataclass(frozen=True, repr=False)
class Background(Short):
    """Training rows with which `explain` compares a row: its average row is their mean."""

    _shown = ("n_rows",)

    X: np.ndarray  # (B, d) as in Table
    codes: np.ndarray | None  # (B, m)
    schema: Schema

    @classmethod
    def of(cls, table: Table, weight: Array | None = None) -> Background:
        """At most 50 rows, at equal distances in cumulative weight, so that sorted classes are all present."""
        mass = np.ones(table.n_rows) if weight is None else weight
        used = np.flatnonzero(mass > 0)
        n = min(N_BACKGROUND, len(used))
        edges = np.cumsum(mass[used])
        rows = used[np.searchsorted(edges, edges[-1] * (np.arange(n) + 0.5) / n)]
        return cls(table.X[rows], None if table.codes is None else table.codes[rows], table.schema)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.X)

    @property
    def table(self) -> Table:
        """The rows as a table."""
        return Table(self.X, self.codes, self.schema)

    def read(self, X: Any) -> Table:
        """New rows, in the columns of the background."""
        names = np.array(self.schema.input_names, dtype=object)
        reader = SimpleNamespace(schema_=self.schema, n_features_in_=len(names))
        if self.schema.named:
            reader.feature_names_in_ = names
        return read_features(reader, X, reset=False)


def mixed(index: np.ndarray, table: Table, background: Background | None = None) -> Table:
    """Rows whose cells come from the background (B rows; none: B = 0) and from a table.

    Parameters
    ----------
    index : (N, columns of the user's table that are used) array of int
        0, ..., B - 1: a row of the background; from B on: a row of the table; -1: missing.
    table : Table of n rows
    background : Background of B rows, in the same columns, or None
    """
    schema, index = table.schema, index[:, table.schema.owners]
    sources: list[Any] = [table] if background is None else [background, table]
    X = _gathered([source.X for source in sources], index[:, list(schema.continuous)], np.nan)
    codes = None
    if table.codes is not None:
        codes = _gathered([source.codes for source in sources], index[:, list(schema.categorical)], -1)
    return Table(X, codes, schema, table.as_category, table.unseen, partial(_as_user_rows, schema, X, codes))


def _gathered(blocks: list[Any], index: np.ndarray, missing: float) -> np.ndarray:
    """The cells of stacked rows; the last row, -1, is missing."""
    last = np.full((1, index.shape[1]), missing, dtype=blocks[-1].dtype)
    return np.vstack([*blocks, last])[index, np.arange(index.shape[1])]


def _as_user_rows(schema: Schema, X: np.ndarray, codes: np.ndarray | None) -> Any:
    """Mixed rows for estimators of other libraries: a DataFrame if the training table had names, else an array."""
    if not schema.named and codes is None:
        return X
    frame = to_frame(schema, X, codes)
    return frame if schema.named else frame.to_numpy(dtype=object)


class ExplainedByColumn:
    """Adds `explain` by column to a classifier that keeps training rows in `background_`."""

    background_: Background | None
    _least_explained = LEAST

    def __sklearn_tags__(self) -> CapableTags:
        return able(super().__sklearn_tags__(), explanations=yes("by column, model-agnostic"))  # type: ignore[misc]

    def _keep_background(self, table: Table, weight: Array | None = None) -> None:
        self.background_ = Background.of(table, weight) if is_able(self, "explanations") else None

    def _explained_log_proba(self, X: Any) -> Array:
        """(n, C) finite log probabilities, the differences of which are explained."""
        return np.maximum(self.predict_log_proba(X), np.log(self._least_explained))  # type: ignore[attr-defined]

    def _column_terms(self, table: Table) -> Array | None:
        """(n, columns, C) terms of the columns, the sum of which gives log probabilities; None if there are none."""
        return None

    @available_if(lambda est: is_able(est, "explanations"))
    def explain(self, X: Any, label: Any = None, rival: Any = None) -> Explanation:
        """Contribution of each column to the log-odds of one class against another.

        Shapley values: the mean change of the log-odds when the value of a column replaces that of a training row,
        over `background_` (at most 50 training rows) and over orders of the columns. All orders if there are few
        columns, else orders drawn with a fixed seed; the log-odds take about 2000 predictions for each row. Where the
        log-odds are a sum of terms of the columns (linear models), these values are the terms minus their means.

        Parameters
        ----------
        X : table of n rows
        label : class label, optional
            The class to explain (default: the most probable class of each row).
        rival : class label, optional
            The class it is compared with (default: the most probable other class of each row).

        Returns
        -------
        Explanation
            The log-odds in nats, their mean over `background_` (the average row), and the contribution of each column
            relative to it, which add up exactly. `method` states how they were computed.
        """
        return explain_table(self, X, label, rival)


def read_explained(model: Any, X: Any, label: Any, rival: Any) -> tuple[Table, Rivals]:
    """The rows to explain in the columns of the background, and the classes that are compared."""
    check_is_fitted(model)
    if model.background_ is None:
        raise ValueError(f"this {type(model).__name__} keeps no training rows: mixent could not read its table")
    with NotesTogether():
        table = model.background_.read(X)
        return table, Rivals.of(model._explained_log_proba(table), model.classes_, label, rival, X)


def explain_table(model: Any, X: Any, label: Any, rival: Any) -> Explanation:
    """The contributions of the columns of a table against the background of a classifier."""
    table, rivals = read_explained(model, X, label, rival)
    log_proba = model._explained_log_proba
    names, values = [given.name for given in table.schema.used], partial(column_values, table)
    terms = model._column_terms(table)
    if terms is not None:
        terms = terms - model._column_terms(model.background_.table).mean(axis=0)
        return explain_terms(terms, log_proba(table), rivals, names, "column", values)
    games = Games.of(table.n_rows, model.background_.n_rows, len(names))
    mix = partial(mixed, table=table, background=model.background_)
    baseline, parts = play(games, lambda index: log_proba(mix(index)), rivals)
    method = shapley_name(AGNOSTIC, games.plan.sampled)
    return rivals.explanation(baseline, parts, names, "column", "average row", method, values)


def explain_terms(
    terms: Array, log_proba: Array, rivals: Rivals, names: Sequence[str], by: str, values: Callable[[], list[list[str]]]
) -> Explanation:
    """The explanation of log probabilities (n, C) that are a sum of terms (n, K, C) relative to the average row."""
    every = np.arange(len(terms))
    parts = terms[every, :, rivals.ours] - terms[every, :, rivals.theirs]
    baseline = rivals.log_odds(log_proba, every) - parts.sum(axis=1)
    return rivals.explanation(baseline, parts, names, by, "average row", EXACT, values)


def play(games: Games, log_proba: Callable[[np.ndarray], Array], rivals: Rivals) -> tuple[Array, Array]:
    """v(none), (n,), and the contributions of the columns, (n, d), to the log-odds.

    Parameters
    ----------
    games : Games
    log_proba : (N, d) origin of each cell -> (N, C)
    rivals : Rivals of the n rows
    """
    n_coalitions, d = games.plan.members.shape
    values = np.empty(len(games))
    step = max(1, CELLS // d)
    for start in range(0, len(values), step):
        flat = np.arange(start, min(start + step, len(values)))
        values[flat] = rivals.log_odds(log_proba(games.stacked(flat)), flat // n_coalitions)
    return games.plan.contributions(values.reshape(games.n_rows, n_coalitions))


def column_values(table: Table) -> list[list[str]]:
    """The values of each row as the user gave them; "missing" where there is none."""
    schema, absent_column = table.schema, [None] * table.n_rows
    columns = [[cell_text(value) for value in raw or absent_column] for raw in raw_columns(table.given, schema)]
    missing = {j: np.isnan(table.X[:, place]) for place, j in enumerate(schema.continuous)}
    missing |= {j: table.column_codes(place) < 0 for place, j in enumerate(schema.categorical)}
    for owner, given in enumerate(schema.used):
        if given.columns[0] in schema.continuous:  # text that is no number, unless it has an indicator
            absent = np.all([missing[j] for j in given.columns], axis=0)
            columns[owner] = ["missing" if none else text for none, text in zip(absent, columns[owner])]
    return [list(row) for row in zip(*columns)]


def cell_text(value: Any) -> str:
    """A value of a table, numbers with six digits; "missing" where there is none."""
    is_number = isinstance(value, float) and value == value
    return readable(value, 6) if is_number else value_text(value)
