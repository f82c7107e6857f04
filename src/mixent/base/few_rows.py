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


def ask(model: Any, rows: Any, **more: Any) -> Iterator[tuple[str, Any]]:
    """The answers of a model to rows, by all of its methods that give numbers.

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


def ask_rows(model: Any) -> Iterator[tuple[str, Any]]:
    """The answers to a few rows of the columns that the model has kept; one of another package may keep none."""
    background = vars(model).get("background_")
    schema = vars(model).get("schema_") if background is None else background.schema
    if schema is not None:
        rows = few_rows(schema, background)
        yield from ask(model, rows if reads_tables(model) else rows.given)


def are_proper(name: str, answers: np.ndarray) -> bool:
    """Whether answers are what a method promises: a distribution for each row, a log-density, or finite numbers.

    Parameters
    ----------
    name : of the method
    answers : array
    """
    if answers.dtype.kind != "f":
        return name == "transform"  # such as the labels that the classifiers of a stack predict
    if name == "score_samples":
        return bool((answers < np.inf).all())
    proper = np.isfinite(answers).all()
    if name == "predict_proba":
        proper &= (answers >= 0).all() and np.allclose(answers.sum(axis=-1), 1.0, rtol=0.0, atol=1e-6)
    return bool(proper)
