"""Features in words: what a row holds of each, and which say most; for pictures, tables and pages."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mixent.data import Table
from mixent.maxent.contributions import loudest, what_is_said
from mixent.maxent.terms import Binned, Coded, Crossed, CrossedDense, Given, Grouped

MISSING, ABSTAINS = "missing", "abstains"


def case_values(model: Any, X: Any) -> list[list[str]]:
    """What each row of X holds for each feature of a maximum entropy classifier, as short text.

    Parameters
    ----------
    model : fitted MaxEntClassifier or MaxEntStackingClassifier
        Of the latter: what each classifier says, and the cell of the row.
    X : table of n rows

    Returns
    -------
    n lists, in the order of `model.feature_terms_`
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # values never seen: predictions of the same rows say it
        table = model._read(X)
    absent = ABSTAINS if hasattr(model, "base_names_") else MISSING
    columns = [_values(term, table, absent) for term in model.layout_.terms]
    return [list(row) for row in zip(*columns)] if columns else [[] for _ in range(table.n_rows)]


def strongest_features(model: Any, most: int = 8) -> list[dict[str, Any]]:
    """The features that move the log-odds most, and of each where it speaks loudest for a class.

    Parameters
    ----------
    model : fitted MaxEntClassifier
    most : int

    Returns
    -------
    list of dict: feature, strength (nats), loudest (value, or range of values; class; nats it adds, against the average
    row: of two classes to the log-odds, of more to the logit less the classes' mean)
    """
    out = []
    for said in what_is_said(model)[:most]:
        value, c, nats = loudest(said)
        found = {"value": value, "class": model.classes_.tolist()[c], "nats": nats}
        out.append({"feature": said.name, "strength": said.strength, "loudest": found})
    return out


def _values(term: Any, table: Table, absent: str) -> list[str]:
    if isinstance(term, (Crossed, CrossedDense)):
        both = zip(_values(term.first, table, absent), _values(term.second, table, absent))
        return [", ".join(pair) for pair in both]
    if isinstance(term, Coded):
        return [str(term.values[code]) if code >= 0 else MISSING for code in term.codes(table)]
    if isinstance(term, Given):
        return [_pmf(row, term.values, absent) for row in term.cells(table).T]
    if isinstance(term, Grouped):
        return [", ".join(map(_number, row)) for row in table.X[:, list(term.places)]]
    numbers = [_number(x) for x in table.X[:, term.place]]
    if not isinstance(term, Binned):
        return numbers
    bins = term.values
    return [f"{x} ({bins[code]})" if code >= 0 else x for x, code in zip(numbers, term.codes(table))]


def _number(x: float) -> str:
    return MISSING if np.isnan(x) else f"{x:.6g}"


def _pmf(row: np.ndarray, values: tuple, absent: str) -> str:
    """The most probable value, and how probable it is."""
    if not row.any():
        return absent
    best = int(row.argmax())
    return str(values[best]) if row[best] == 1 else f"{values[best]} ({100 * row[best]:.0f} %)"
