"""What an owner hands over, read: names, numbers, tables by the names of their columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.data import listed, missing_mask
from mixent.ensemble.pmfs import one_hot, pmf

MOST_FRACTIONS = 10  # numbers that are not whole among labels


def by_name(said: Any, symbols: tuple, name: str) -> np.ndarray:
    """An array of what was said; the columns of a DataFrame in the order of the symbols they are named by."""
    columns = getattr(said, "columns", None)
    if columns is not None and len(getattr(said, "shape", ())) == 2:
        places = {str(column): k for k, column in enumerate(columns)}
        found = [str(symbol) for symbol in symbols if str(symbol) in places]
        if found and (len(found) < len(symbols) or len(places) > len(symbols)):
            raise ValueError(
                f"the columns of {name!r} must be its symbols {listed(list(symbols))}; got {listed(list(places))}"
            )
        if found:
            return np.asarray(said)[:, [places[symbol] for symbol in found]]
    return said.to_numpy() if hasattr(said, "to_numpy") else np.asarray(said)


def counts_by_name(counts: Any, classes: tuple, symbols: tuple) -> Any:
    """A DataFrame's rows and columns in the order of the classes and symbols they are named by."""
    if not hasattr(counts, "columns"):
        return counts
    table = by_name(counts, symbols, "counts")
    index = [str(label) for label in getattr(counts, "index", ())]
    if set(index) == {str(label) for label in classes}:
        table = table[[index.index(str(label)) for label in classes]]
    return table


def alphabet_of(said: np.ndarray, classes: tuple) -> tuple:
    """The classes and what was said beside them; or only what was said, where nothing of it is a class."""
    values = said.astype(object)
    found = set(values[~missing_mask(values)].tolist())
    fractions = [v for v in found if isinstance(v, float) and not v.is_integer()]
    if len(fractions) > MOST_FRACTIONS:
        raise ValueError(
            f"what was said holds {len(found)} different numbers, such as {fractions[0]:g}: they are no labels. Give "
            "probabilities as a table with a column for each class, scores to `from_scores`"
        )
    if found and not found & set(classes) and {str(v) for v in found} & {str(c) for c in classes}:
        raise ValueError(f"said: {next(iter(found))!r}, and truth: {classes[0]!r}, are labels of different types")
    return tuple(sorted_labels(found | set(classes) if found & set(classes) else found))


def read_values(said: np.ndarray, symbols: Any, name: str) -> tuple[tuple, Array]:
    """The symbols, and (n, V) pmfs over them; NaN where nothing was said."""
    if said.ndim == 2:
        symbols = tuple(symbols)
        if said.shape[1] != len(symbols):
            raise ValueError(f"{said.shape[1]} columns of probabilities for {len(symbols)} symbols {list(symbols)!r}")
        return symbols, pmf(said.astype(float), name)
    said = said.astype(object)
    found = said[~missing_mask(said)].tolist()
    symbols = tuple(sorted_labels(set(found)) if symbols is None else symbols)
    strange = [s for s in found if s not in symbols]
    if strange:
        raise ValueError(f"{name} said {strange[0]!r}, which is none of the symbols {listed(symbols)}")
    return symbols, one_hot(said, np.array(symbols, dtype=object))


def read_names(name: str, values: Any) -> tuple:
    if isinstance(values, (str, bytes)) or not np.iterable(values):
        raise ValueError(f"{name} must be a list of labels; got {values!r}")
    labels = tuple(v.item() if isinstance(v, np.generic) else v for v in values)
    if len(set(labels)) < len(labels):
        raise ValueError(f"{name} must differ; got {list(labels)!r}")
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
