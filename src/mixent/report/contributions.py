"""The contribution of each column to the log-odds of one row, for any classifier.

By the model's own explanation where that is by column or by classifier; by the log-odds without the value where the
model reads missing values; else by replacing the value with those of other rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from mixent.base.capabilities import is_able
from mixent.base.delegation import aligned_proba
from mixent.base.registry import find
from mixent.base.text import row_texts
from mixent.report.data import column_names

MOST_SWAPS = 40  # rows whose values replace a column's
WORK = 4000  # rows to predict for a row explained, about
MOST_COLUMNS = 400
LEAST = 1e-300  # a smaller probability counts as this
LEAST_VOTES = 1e-6  # of votes and leaves of other libraries, which are 0 where rows are few

EXACT = "The contributions are the model's own: with that of the average row they add up to the log-odds."
MISSING = (
    "A contribution is the loss of log-odds if that value alone were missing. Columns overlap, so that contributions "
    "do not add up to the log-odds."
)
SWAPPED = (
    "The model has no explanation of its own. A contribution is the mean loss of log-odds if that value alone is "
    "replaced by those of other rows. Columns overlap, so that contributions do not add up to the log-odds. "
    "Probabilities below one in a million count as that."
)
Part = tuple[str, str, float]  # column, value, nats


def contributions(model: Any, X: Any, row: int, ours: int, rival: int) -> tuple[list[Part], str]:
    """What contributes to the log-odds of one class against another, the largest first, and how it was computed.

    Parameters
    ----------
    model : fitted classifier
    X : table of n rows
    row : int
    ours, rival : places of the classes in `model.classes_`
    """
    parts, method = _own_parts(model, _safe_indexing(X, [row]), ours, rival), EXACT
    if parts is None and not 2 <= np.shape(X)[1] <= MOST_COLUMNS:
        return [], ""
    if parts is None:
        change, method = without_values(model, X, row, ours, rival), MISSING
        if change is None:
            change, method = swapped_values(model, X, row, ours, rival), SWAPPED
        parts = list(zip(column_names(X), row_texts(_safe_indexing(X, [row]))[0], change.tolist()))
    return sorted(parts, key=lambda part: -abs(part[2])), method


def _own_parts(model: Any, row: Any, ours: int, rival: int) -> list[Part] | None:
    """By the model's own explanation; None without row, and where its parts are components, which no column names."""
    if not is_able(model, "explanations"):
        return None
    explanation = model.explain(row, label=model.classes_[ours], rival=model.classes_[rival])
    if explanation.by == "component":
        return None
    parts = [(explanation.baseline_name, "", float(explanation.baseline[0]))]
    return [*parts, *zip(explanation.names, explanation.values()[0], explanation.parts[0].tolist())]


def log_odds(model: Any, X: Any, ours: int, rival: int) -> np.ndarray:
    """(n,) log p(ours) / p(rival)."""
    least = LEAST_VOTES if find(type(model)) is None else LEAST
    log_p = np.log(np.maximum(aligned_proba(model, X, model.classes_), least))
    return np.asarray(log_p[:, ours] - log_p[:, rival])


def without_values(model: Any, X: Any, row: int, ours: int, rival: int) -> np.ndarray | None:
    """(d,) the loss of log-odds without each value; None where the model or the table takes no missing value."""
    if not is_able(model, "missing"):
        return None
    try:
        odds = log_odds(model, _with_missing(_safe_indexing(X, [row]), np.shape(X)[1]), ours, rival)
    except (TypeError, ValueError):
        return None
    return odds[0] - odds[1:]


def _with_missing(row: Any, d: int) -> Any:
    """The row, then a copy for each column that lacks its value."""
    if not hasattr(row, "columns"):
        values = np.asarray(row)
        copies = np.repeat(values.astype(object if values.dtype.kind not in "biuf" else float), d + 1, axis=0)
        copies[np.arange(1, d + 1), np.arange(d)] = np.nan
        return copies
    import narwhals as nw

    frame = nw.from_native(row, eager_only=True)
    columns = {}
    for j, name in enumerate(frame.columns):
        value = frame[name].to_list()[0]
        columns[name] = [None if i == j + 1 else value for i in range(d + 1)]
    return nw.from_dict(columns, backend=frame.implementation).to_native()


def swapped_values(model: Any, X: Any, row: int, ours: int, rival: int) -> np.ndarray:
    """(d,) the log-odds less their mean over other rows' values of each column."""
    n, d = np.shape(X)
    m = int(np.clip(WORK // d, 5, min(MOST_SWAPS, n)))
    others = np.linspace(0, n - 1, m).astype(int)
    odds = log_odds(model, with_values_of(X, row, others), ours, rival)
    return odds[0] - odds[1:].reshape(d, m).mean(axis=1)


def with_values_of(X: Any, row: int, others: np.ndarray) -> Any:
    """The row, then for each column as many copies as there are others, with their values in that column."""
    d, m = np.shape(X)[1], len(others)
    if not hasattr(X, "columns"):
        take = np.full((1 + d * m, d), row)
        for j in range(d):
            take[1 + j * m : 1 + (j + 1) * m, j] = others
        return np.asarray(X)[take, np.arange(d)]
    import narwhals as nw

    frame, places = nw.from_native(X, eager_only=True), others.tolist()
    copies = frame[[row] * m]
    swapped = [copies.with_columns(frame[name][places].alias(name)) for name in frame.columns]
    return nw.concat([frame[[row]], *swapped]).to_native()
