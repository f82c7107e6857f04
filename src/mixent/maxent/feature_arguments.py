"""The arguments `probabilistic`, `groups` and `pairs` of a maximum entropy classifier, checked against the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.data import Schema, Table, listed
from mixent.maxent.features import Training, continuous_names, varies
from mixent.maxent.terms import Probabilistic

RELATED = 0.7  # least correlation within classes of columns that share a mixture
LARGEST = 4  # most columns of such a group
PMF = 1e-6  # tolerance for the sum of given probabilities


def read_probabilistic(probabilistic: Any, schema: Schema) -> tuple[Probabilistic, ...]:
    """The features given as pmfs; `probabilistic` is a dict, feature name -> columns that hold its probabilities."""
    if probabilistic is None:
        return ()
    expected = "probabilistic must be a dict, feature name -> list of at least two columns"
    if not isinstance(probabilistic, dict):
        raise ValueError(f"{expected}, or None; got {probabilistic!r}")
    out: list[Probabilistic] = []
    for name, columns in probabilistic.items():
        if isinstance(columns, str) or not np.iterable(columns) or len(list(columns)) < 2:
            raise ValueError(f"{expected}; {name!r} has {columns!r}")
        positions = tuple(_position(c, schema, f"probabilistic[{name!r}]") for c in columns)
        twice = set(positions) & {p for term in out for p in term.columns}
        if twice or len(set(positions)) < len(positions):
            raise ValueError(f"probabilistic[{name!r}] uses a column twice; a column can belong to one feature only")
        if name in schema.names or name in [term.name for term in out]:
            raise ValueError(f"probabilistic: the name {name!r} is already used by another feature or column")
        out.append(Probabilistic(str(name), positions, tuple(continuous_names(schema)[p] for p in positions)))
    return tuple(out)


def check_pmfs(given: Sequence[Probabilistic], table: Table) -> None:
    """Check that given probabilities are non-negative and sum to one; a row has all of them or none."""
    for term in given:
        P = table.X[:, list(term.columns)]
        absent = np.isnan(P).all(axis=1)
        invalid = ~absent & ((P < 0).any(axis=1) | ~(np.abs(P.sum(axis=1) - 1) <= PMF))  # so is a partly missing row
        if invalid.any():
            row = int(np.flatnonzero(invalid)[0])
            raise ValueError(
                f"the probabilities of feature {term.name!r} must be >= 0 and sum to 1, or be missing together; "
                f"row {row} has {np.round(P[row], 6).tolist()}"
            )


def read_groups(groups: Any, rows: Training, given: Sequence[Probabilistic]) -> tuple[tuple[int, ...], ...]:
    """Groups of continuous columns that share a mixture, as positions in Table.X."""
    if groups is None:
        return ()
    if isinstance(groups, str) or not np.iterable(groups):
        if not isinstance(groups, str) or groups != "auto":
            raise ValueError(f"groups must be None, 'auto' or a list of lists of columns; got {groups!r}")
        return related_columns(rows, {p for term in given for p in term.columns})
    out: list[tuple[int, ...]] = []
    for group in groups:
        if isinstance(group, str) or not np.iterable(group) or len(list(group)) < 2:
            raise ValueError(f"groups must be a list of lists of at least two columns; got the element {group!r}")
        positions = tuple(_position(c, rows.table.schema, "groups") for c in group)
        used = [p for other in out for p in other] + [p for term in given for p in term.columns]
        if set(positions) & set(used) or len(set(positions)) < len(positions):
            raise ValueError(f"groups uses a column twice ({list(group)!r}); a column can belong to one feature only")
        out.append(positions)
    return tuple(out)


def _position(column: Any, schema: Schema, option: str) -> int:
    """Position in Table.X of a continuous column, given by name or by its position among all columns."""
    names = list(schema.names)
    known = column in names if isinstance(column, str) else isinstance(column, (int, np.integer))
    index = names.index(column) if known and isinstance(column, str) else column
    if not known or not 0 <= index < len(names):
        raise ValueError(f"{option}: X has no column {column!r}; its columns are {listed(names)}")
    if index not in schema.continuous:
        raise ValueError(f"{option}: column {names[index]!r} is categorical; a numeric column is required")
    return schema.continuous.index(int(index))


def related_columns(rows: Training, excluded: set[int]) -> tuple[tuple[int, ...], ...]:
    """Groups of continuous columns in which every pair is correlated within the classes, by complete linkage."""
    X, weights = rows.table.X, rows.weights
    free = [p for p in range(X.shape[1]) if p not in excluded and varies(X[weights > 0, p])]
    if len(free) < 2:
        return ()
    r = _within_correlation(X[:, free], rows.target * weights[:, None])
    np.fill_diagonal(r, 0.0)
    groups: list[list[int]] = [[j] for j in range(len(free))]
    while len(groups) > 1:  # join the two groups whose smallest correlation is largest
        best, pair = RELATED, None
        for a in range(len(groups)):
            for b in range(a):
                least = r[np.ix_(groups[a], groups[b])].min()
                if least > best and len(groups[a]) + len(groups[b]) <= LARGEST:
                    best, pair = least, (a, b)
        if pair is None:
            break
        groups[pair[1]] += groups.pop(pair[0])
    return tuple(tuple(free[j] for j in sorted(group)) for group in groups if len(group) > 1)


def _within_correlation(X: Array, by_class: Array) -> Array:
    """Root mean square over the classes of the correlations within each class, which may differ in sign.

    A missing value is replaced by the mean of its class.
    """
    observed = ~np.isnan(X)
    out = np.zeros((X.shape[1], X.shape[1]))
    for weight in by_class.T:
        mass = np.maximum(weight @ observed, 1e-300)
        centered = np.where(observed, X - weight @ np.where(observed, X, 0.0) / mass, 0.0)
        cov = (centered * weight[:, None]).T @ centered
        scale = np.sqrt(np.maximum(np.diagonal(cov), 1e-300))
        out += weight.sum() * (cov / np.outer(scale, scale)) ** 2
    return np.sqrt(out / by_class.sum())


def read_pairs(pairs: Any, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The pairs of features given by the user, checked."""
    if pairs is None or (isinstance(pairs, str) and pairs == "auto"):
        return ()
    expected = "pairs must be 'auto', None or a list of pairs of feature names"
    if isinstance(pairs, str) or not np.iterable(pairs):
        raise ValueError(f"{expected}; got {pairs!r}")
    out = []
    for pair in pairs:
        two = [pair] if isinstance(pair, str) or not np.iterable(pair) else list(pair)
        if len(two) != 2 or len(set(two)) != 2:
            raise ValueError(f"{expected}; got the element {pair!r}")
        unknown = [name for name in two if name not in names]
        if unknown:
            raise ValueError(f"pairs: unknown feature {unknown[0]!r}; the features are {listed(names)}")
        out.append((str(two[0]), str(two[1])))
    if len({frozenset(pair) for pair in out}) < len(out):
        raise ValueError("pairs contains the same pair twice")
    clash = [f"{a} & {b}" for a, b in out if f"{a} & {b}" in names]
    if clash:
        raise ValueError(f"the pair {clash[0]!r} would have the same name as a column; rename that column")
    return tuple(out)
