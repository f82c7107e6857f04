"""The arguments `probabilistic`, `groups` and `pairs` of a maximum entropy classifier, checked against the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.data import Schema, Table, listed
from mixent.maxent.features import Training, continuous_names, varies
from mixent.maxent.terms import Probabilistic

RELATED = 0.7  # correlation within classes from which columns share a mixture
LARGEST = 4  # columns of such a group
PMF = 1e-6  # by which given probabilities may miss a sum of one


def read_probabilistic(probabilistic: Any, schema: Schema) -> tuple[Probabilistic, ...]:
    """The features given as pmfs: a dict from the feature's name to the columns that hold its probabilities."""
    if probabilistic is None:
        return ()
    wanted = "probabilistic must be a dict, feature name -> list of at least two columns"
    if not isinstance(probabilistic, dict):
        raise ValueError(f"{wanted}, or None; got {probabilistic!r}")
    out: list[Probabilistic] = []
    for name, columns in probabilistic.items():
        if isinstance(columns, str) or not np.iterable(columns) or len(list(columns)) < 2:
            raise ValueError(f"{wanted}; {name!r} has {columns!r}")
        places = tuple(_place(c, schema, f"probabilistic[{name!r}]") for c in columns)
        twice = set(places) & {p for term in out for p in term.places}
        if twice or len(set(places)) < len(places):
            raise ValueError(f"probabilistic[{name!r}] uses a column twice; a column belongs to one feature")
        if name in schema.names or name in [term.name for term in out]:
            raise ValueError(f"probabilistic names a feature {name!r} as another feature or column is named")
        out.append(Probabilistic(str(name), places, tuple(continuous_names(schema)[p] for p in places)))
    return tuple(out)


def check_pmfs(given: Sequence[Probabilistic], table: Table) -> None:
    """Are the given probabilities such? A row has all of them or none."""
    for term in given:
        P = table.X[:, list(term.places)]
        absent = np.isnan(P).all(axis=1)
        wrong = ~absent & ((P < 0).any(axis=1) | ~(np.abs(P.sum(axis=1) - 1) <= PMF))  # NaN among them is wrong too
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"the probabilities of feature {term.name!r} must be >= 0 and sum to 1, or be missing together; "
                f"row {row} has {np.round(P[row], 6).tolist()}"
            )


def read_groups(groups: Any, rows: Training, given: Sequence[Probabilistic]) -> tuple[tuple[int, ...], ...]:
    """Which continuous columns share a mixture."""
    if groups is None:
        return ()
    if isinstance(groups, str) or not np.iterable(groups):
        if not isinstance(groups, str) or groups != "auto":
            raise ValueError(f"groups must be None, 'auto' or a list of lists of columns; got {groups!r}")
        return related_columns(rows, {p for term in given for p in term.places})
    out: list[tuple[int, ...]] = []
    for group in groups:
        if isinstance(group, str) or not np.iterable(group) or len(list(group)) < 2:
            raise ValueError(f"groups must be a list of lists of at least two columns; got {group!r} among them")
        places = tuple(_place(c, rows.table.schema, "groups") for c in group)
        used = [p for other in out for p in other] + [p for term in given for p in term.places]
        if set(places) & set(used) or len(set(places)) < len(places):
            raise ValueError(f"groups uses a column twice ({list(group)!r}); a column belongs to one feature")
        out.append(places)
    return tuple(out)


def _place(column: Any, schema: Schema, option: str) -> int:
    """Where a continuous column, named or numbered among all columns, stands in Table.X."""
    names = list(schema.names)
    known = column in names if isinstance(column, str) else isinstance(column, (int, np.integer))
    at = names.index(column) if known and isinstance(column, str) else column
    if not known or not 0 <= at < len(names):
        raise ValueError(f"{option} names a column {column!r} that X does not have; columns are {listed(names)}")
    if at not in schema.continuous:
        raise ValueError(f"{option} names the column {names[at]!r}, which is categorical; it needs numbers")
    return schema.continuous.index(int(at))


def related_columns(rows: Training, taken: set[int]) -> tuple[tuple[int, ...], ...]:
    """Groups of continuous columns correlated within the classes, each with each."""
    X, weights = rows.table.X, rows.weights
    free = [p for p in range(X.shape[1]) if p not in taken and varies(X[weights > 0, p])]
    if len(free) < 2:
        return ()
    r = _within_correlation(X[:, free], rows.target * weights[:, None])
    np.fill_diagonal(r, 0.0)
    groups: list[list[int]] = [[j] for j in range(len(free))]
    while len(groups) > 1:  # complete linkage: join the two groups whose least correlation is largest
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
    """Root mean square over the classes of the correlations in each: they may have opposite signs.

    A missing value counts as its class's mean.
    """
    seen = ~np.isnan(X)
    out = np.zeros((X.shape[1], X.shape[1]))
    for weight in by_class.T:
        mass = np.maximum(weight @ seen, 1e-300)
        left = np.where(seen, X - weight @ np.where(seen, X, 0.0) / mass, 0.0)
        cov = (left * weight[:, None]).T @ left
        scale = np.sqrt(np.maximum(np.diagonal(cov), 1e-300))
        out += weight.sum() * (cov / np.outer(scale, scale)) ** 2
    return np.sqrt(out / by_class.sum())


def read_pairs(pairs: Any, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Pairs of features named by the user."""
    if pairs is None or (isinstance(pairs, str) and pairs == "auto"):
        return ()
    wanted = "pairs must be 'auto', None or a list of pairs of feature names"
    if isinstance(pairs, str) or not np.iterable(pairs):
        raise ValueError(f"{wanted}; got {pairs!r}")
    out = []
    for pair in pairs:
        two = [pair] if isinstance(pair, str) or not np.iterable(pair) else list(pair)
        if len(two) != 2 or len(set(two)) != 2:
            raise ValueError(f"{wanted}; got {pair!r} among them")
        strange = [name for name in two if name not in names]
        if strange:
            raise ValueError(f"pairs names a feature {strange[0]!r}; features are {listed(names)}")
        out.append((str(two[0]), str(two[1])))
    if len({frozenset(pair) for pair in out}) < len(out):
        raise ValueError("pairs names the same pair twice")
    clash = [f"{a} & {b}" for a, b in out if f"{a} & {b}" in names]
    if clash:
        raise ValueError(f"the pair {clash[0]!r} would have the name of a column; rename that column")
    return tuple(out)
