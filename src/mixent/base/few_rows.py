"""A few rows of the columns of a fitted model, with which a loaded file is tried."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from mixent.base.background import Background, _as_user_rows
from mixent.base.delegation import reads_tables
from mixent.data import Schema, Table

LEAST, MOST = 2, 64  # rows
METHODS = ("predict_proba", "score_samples", "transform")


def few_rows(schema: Schema, background: Background | None = None) -> Table:
    """Rows in which every category occurs, unless there are very many; numbers are those of the background, or 0 and 1.

    Parameters
    ----------
    schema : Schema
    background : Background or None
    """
    n = min(max(LEAST, *schema.sizes, LEAST), MOST)
    index = np.arange(n)[:, None]
    X = np.tile(index % 2.0, len(schema.continuous))
    if background is not None and background.n_rows:
        X = background.X[index[:, 0] % background.n_rows]
    codes = (index % np.array(schema.sizes)).astype(np.int32) if schema.sizes else None
    return Table(X, codes, schema, source=partial(_as_user_rows, schema, X, codes))


def predictions(model: Any, rows: Any, **more: Any) -> Iterator[tuple[str, Any]]:
    """The predictions of a model for rows, by all of its methods that return numbers.

    Parameters
    ----------
    model : fitted estimator
    rows : table
    **more : further arguments of the methods, such as lengths
    """
    for name in METHODS:
        method = getattr(model, name, None)
        if method is not None:
            yield name, np.asarray(method(rows, **more))


def few_predictions(model: Any) -> Iterator[tuple[str, Any]]:
    """The predictions for a few rows of the columns of a model; a model of another package may not have stored any."""
    background = vars(model).get("background_")
    schema = vars(model).get("schema_") if background is None else background.schema
    if schema is not None:
        rows = few_rows(schema, background)
        yield from predictions(model, rows if reads_tables(model) else rows.given)


def are_proper(name: str, values: np.ndarray) -> bool:
    """Whether a method returns what it should: a distribution for each row, a log-density, or finite numbers.

    Parameters
    ----------
    name : of the method
    values : array
    """
    if values.dtype.kind != "f":
        return name == "transform"  # such as the labels that the classifiers of a stack predict
    if name == "score_samples":
        return bool((values < np.inf).all())
    if name == "transform":  # NaN where a classifier of a stack abstains
        return not np.isinf(values).any()
    proper = np.isfinite(values).all()
    if name == "predict_proba":
        proper &= (values >= 0).all() and np.allclose(values.sum(axis=-1), 1.0, rtol=0.0, atol=1e-6)
    return bool(proper)
