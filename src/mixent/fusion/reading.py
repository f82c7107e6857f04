"""Validation of user input: names, numbers, and tables with named columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.data import listed, missing_mask
from mixent.ensemble.pmfs import one_hot, pmf
from mixent.warn import warn_notes

MAX_FRACTIONS = 10  # different non-integer numbers among labels


def by_name(answers: Any, symbols: tuple, name: str) -> np.ndarray:
    """Answers as an array; the columns of a DataFrame in the order of the symbols they are named by."""
    columns = getattr(answers, "columns", None)
    if columns is not None and len(getattr(answers, "shape", ())) == 2:
        index = {str(column): k for k, column in enumerate(columns)}
        matches = [str(symbol) for symbol in symbols if str(symbol) in index]
        if matches and (len(matches) < len(symbols) or len(index) > len(symbols)):
            raise ValueError(
                f"the columns of {name!r} must be its symbols {listed(list(symbols))}; got {listed(list(index))}"
            )
        if matches:
            return np.asarray(answers)[:, [index[symbol] for symbol in matches]]
    return answers.to_numpy() if hasattr(answers, "to_numpy") else np.asarray(answers)


def counts_by_name(counts: Any, classes: tuple, symbols: tuple) -> Any:
    """Counts with the rows and columns of a DataFrame in the order of the classes and symbols they are named by."""
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
    distinct = set(values[~missing_mask(values)].tolist())
    fractions = [v for v in distinct if isinstance(v, float) and not v.is_integer()]
    if len(fractions) > MAX_FRACTIONS:
        raise ValueError(
            f"the answers must be labels; got {len(distinct)} different numbers, such as {fractions[0]:g}. Pass "
            "probabilities as a table with a column for each class, and scores to `from_scores`"
        )
    if distinct and not distinct & set(classes) and {str(v) for v in distinct} & {str(c) for c in classes}:
        raise ValueError(
            f"answers and labels must have the same type; got the answer {next(iter(distinct))!r} and the label "
            f"{classes[0]!r}"
        )
    if ordered_integers(distinct, classes):
        warn_notes(
            [
                f"the answers {listed(sorted(distinct))} are whole numbers, of which two or more are no class; they "
                "are counted as labels without an order. If they are scores, use `Calibration.from_scores` with "
                "ordinal=True; if not, pass all possible answers as symbols"
            ]
        )
    return tuple(sorted_labels(distinct | set(classes) if distinct & set(classes) else distinct))


def ordered_integers(answers: Iterable[Any], classes: Iterable[Any]) -> bool:
    """Whether answers are probably scores: three or more different whole numbers, two or more of which are no class."""
    distinct = set(answers)
    whole = all(isinstance(v, (int, float)) and not isinstance(v, bool) and float(v).is_integer() for v in distinct)
    return whole and len(distinct) >= 3 and len(distinct - set(classes)) >= 2


def read_values(answers: np.ndarray, symbols: Any, name: str) -> tuple[tuple, Array]:
    """The symbols, and (n, V) distributions over them; NaN without an answer."""
    if answers.ndim == 2:
        symbols = tuple(symbols)
        if answers.shape[1] != len(symbols):
            raise ValueError(
                f"probabilities must have a column for each of the {len(symbols)} symbols {list(symbols)!r}; "
                f"got {answers.shape[1]} columns"
            )
        return symbols, pmf(answers.astype(float), name)
    answers = answers.astype(object)
    given = answers[~missing_mask(answers)].tolist()
    symbols = tuple(sorted_labels(set(given)) if symbols is None else symbols)
    unknown = [s for s in given if s not in symbols]
    if unknown:
        raise ValueError(f"the answers of {name} must be among the symbols {listed(symbols)}; got {unknown[0]!r}")
    return symbols, one_hot(answers, np.array(symbols, dtype=object))


def read_names(name: str, values: Any) -> tuple:
    """Distinct labels as a tuple of plain Python values."""
    if isinstance(values, (str, bytes)) or not np.iterable(values):
        raise ValueError(f"{name} must be a list of labels; got {values!r}")
    labels = tuple(v.item() if isinstance(v, np.generic) else v for v in values)
    if len(set(labels)) < len(labels):
        raise ValueError(f"{name} must be distinct; got {list(labels)!r}")
    return labels


def read_numbers(name: str, values: Any, shape: tuple[int, ...]) -> Array:
    """Finite numbers as an array of this shape."""
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers of shape {shape}; {error}") from error
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers of shape {shape}; got shape {array.shape}")
    return array


def sorted_labels(labels: set) -> list:
    """Numbers in increasing order, then strings."""
    return sorted(labels, key=lambda label: (isinstance(label, str), label))
