"""How well a model of a whole table infers its columns (document 004, Table 2.3). Errors are shares of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class InferenceErrors:
    """The three criteria of general inference, and what they average."""

    target: float  # criterion 1: the target column from all others
    each: float  # criterion 2: mean over the discrete columns, each from all others
    pairs: float  # criterion 3: mean over pairs of discrete columns, both to be right; NaN where there is no pair
    by_column: dict[str, float]
    by_pair: dict[tuple[str, str], float]


def criterion_1(model: Any, X: Any, target: Any = None) -> float:
    """Error of one column predicted from all others.

    Parameters
    ----------
    model : fitted MaxEntJoint
    X : table of n rows
        Rows in which the value to be predicted is missing are left out.
    target : column name or position, optional
        A discrete column; the last one by default.

    Returns
    -------
    float, a share of the rows.
    """
    return _of_target(model, _by_column(model, X), target)


def criterion_2(model: Any, X: Any) -> float:
    """Mean error over the discrete columns, each predicted from all others.

    Parameters
    ----------
    model : fitted MaxEntJoint
    X : table of n rows

    Returns
    -------
    float, a share of the rows.
    """
    return float(np.mean(list(_by_column(model, X).values())))


def criterion_3(model: Any, X: Any) -> float:
    """Mean error over every two discrete columns, predicted together from all others; both must be right.

    Parameters
    ----------
    model : fitted MaxEntJoint
    X : table of n rows

    Returns
    -------
    float, a share of the rows.
    """
    by_pair = model.errors_by_pair(X)
    if not by_pair:
        raise ValueError("criterion 3 needs two discrete columns known in the same rows of X")
    return float(np.mean(list(by_pair.values())))


def inference_errors(model: Any, X: Any, target: Any = None) -> InferenceErrors:
    """All three criteria, with the errors they average.

    Parameters
    ----------
    model : fitted MaxEntJoint
    X : table of n rows
        Rows in which a value to be predicted is missing are left out.
    target : column name or position, optional
        The discrete column of criterion 1; the last one by default.

    Returns
    -------
    InferenceErrors
    """
    by_column, by_pair = _by_column(model, X), model.errors_by_pair(X)
    pairs = float(np.mean(list(by_pair.values()))) if by_pair else float("nan")
    each = float(np.mean(list(by_column.values())))
    return InferenceErrors(_of_target(model, by_column, target), each, pairs, by_column, by_pair)


def _by_column(model: Any, X: Any) -> dict[str, float]:
    scores = model.accuracy_by_column(X)
    found = {name: score.error for name, score in scores.items() if score.error is not None}
    if not found:
        raise ValueError("no discrete column of X holds a value; the criteria are about discrete columns")
    return found


def _of_target(model: Any, by_column: dict[str, float], target: Any) -> float:
    name = model.schema_.names[model._column(target)]
    if name not in by_column:
        raise ValueError(
            f"target {name!r} is not a discrete column with known values in X; name one of {list(by_column)[:20]}"
        )
    return by_column[name]
