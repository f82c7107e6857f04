"""Reading of what users give: names, numbers, tables by the names of their columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.data import listed, missing_mask
from mixent.ensemble.pmfs import one_hot, pmf

MOST_FRACTIONS = 10  # numbers that are not whole among labels


def by_name(answers: Any, symbols: tuple, name: str) -> np.ndarray:
    """Answers as an array; the columns of a DataFrame in the order of the symbols they are named by."""
    columns = getattr(answers, "columns", None)
    if columns is not None and len(getattr(answers, "shape", ())) == 2:
        places = {str(column): k for k, column in enumerate(columns)}
        found = [str(symbol) for symbol in symbols if str(symbol) in places]
        if found and (len(found) < len(symbols) or len(places) > len(symbols)):
            raise ValueError(
                f"the columns of {name!r} must be its symbols {listed(list(symbols))}; got {listed(list(places))}"
            )
        if found:
            return np.asarray(answers)[:, [places[symbol] for symbol in found]]
    return answers.to_numpy() if hasattr(answers, "to_numpy") else np.asarray(answers)


def counts_by_name(counts: Any, classes: tuple, symbols: tuple) -> Any:
    """A DataFrame's rows and columns in the order of the classes and symbols they are named by."""
    if not hasattr(counts, "columns"):
        return counts
    table = by_name(counts, symbols, "counts")
    index = [str(label) for label in getattr(counts, "index", ())]
    if set(index) == {str(label) for label in classes}:
        table = table[[index.index(str(label)) for label in classes]]
    return table


def alphabet_of(answers: np.ndarray, classes: tuple) -> tuple:
    """The classes and all other answers; only the answers where none of them is a class."""
    values = answers.astype(object)
    found = set(values[~missing_mask(values)].tolist())
    fractions = [v for v in found if isinstance(v, float) and not v.is_integer()]
    if len(fractions) > MOST_FRACTIONS:
        raise ValueError(
            f"the answers hold {len(found)} different numbers, such as {fractions[0]:g}, which are not labels. Give "
            "probabilities as a table with a column for each class, and scores to `from_scores`"
        )
    if found and not found & set(classes) and {str(v) for v in found} & {str(c) for c in classes}:
        raise ValueError(
            f"answers such as {next(iter(found))!r} and labels such as {classes[0]!r} have different types"
        )
    return tuple(sorted_labels(found | set(classes) if found & set(classes) else found))


def read_values(answers: np.ndarray, symbols: Any, name: str) -> tuple[tuple, Array]:
    """The symbols, and (n, V) distributions over them; NaN without an answer."""
    if answers.ndim == 2:
        symbols = tuple(symbols)
        if answers.shape[1] != len(symbols):
            raise ValueError(
                f"{answers.shape[1]} columns of probabilities for {len(symbols)} symbols {list(symbols)!r}"
            )
        return symbols, pmf(answers.astype(float), name)
    answers = answers.astype(object)
    found = answers[~missing_mask(answers)].tolist()
    symbols = tuple(sorted_labels(set(found)) if symbols is None else symbols)
    strange = [s for s in found if s not in symbols]
    if strange:
        raise ValueError(f"{name} answered {strange[0]!r}, which is none of the symbols {listed(symbols)}")
    return symbols, one_hot(answers, np.array(symbols, dtype=object))


def read_names(name: str, values: Any) -> tuple:
    if isinstance(values, (str, bytes)) or not np.iterable(values):
        raise ValueError(f"{name} must be a list of labels; got {values!r}")
    labels = tuple(v.item() if isinstance(v, np.generic) else v for v in values)
    if len(set(labels)) < len(labels):
        raise ValueError(f"{name} must be distinct; got {list(labels)!r}")
    return labels


def read_numbers(name: str, values: Any, shape: tuple[int, ...]) -> Array:
    try:
        found = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers of shape {shape}; {error}") from error
    if found.shape != shape or not np.isfinite(found).all():
        raise ValueError(f"{name} must be finite numbers of shape {shape}; got shape {found.shape}")
    return found


def sorted_labels(labels: set) -> list:
    return sorted(labels, key=lambda label: (isinstance(label, str), label))
