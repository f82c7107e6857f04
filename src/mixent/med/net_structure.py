"""The structure of a Bayes net as a user writes it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np

from mixent.data.values import listed

Parents = tuple[tuple[int, ...], ...]  # of each column, rising
WANTED = "'naive', a list of (parent, child), a function of the column names, or a dict {class: any of these}"


def check_structure(structure: Any) -> None:
    """Refuse what cannot be one, before any column is known."""
    if isinstance(structure, str) and structure != "naive":
        hint = "; for trees that are learned take MEDTreeClassifier" if structure == "tree" else ""
        raise ValueError(f"structure must be {WANTED}; got {structure!r}{hint}")
    if not isinstance(structure, (str, dict)) and not callable(structure) and not np.iterable(structure):
        raise ValueError(f"structure must be {WANTED}; got {structure!r}")


def read_structure(structure: Any, names: Sequence[str], classes: Sequence[Any]) -> tuple[Parents, ...]:
    """The parents of every column, for each class."""
    if not isinstance(structure, dict):
        return (_read_edges(structure, names),) * len(classes)
    for label in structure:
        if label not in classes:
            close = difflib.get_close_matches(str(label), list(map(str, classes)), n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"the classes are {listed(classes)}"
            raise ValueError(f"structure has edges for a class {label!r} that y does not have; {hint}")
    for label in classes:
        if label not in structure:
            raise ValueError(f"structure is a dict without the class {label!r}; give its edges, [] for none")
    return tuple(_read_edges(structure[label], names) for label in classes)


def _read_edges(edges: Any, names: Sequence[str]) -> Parents:
    check_structure(edges)
    if isinstance(edges, dict):
        raise ValueError(f"structure of a class must be 'naive', a list or a function; got {edges!r}")
    if callable(edges):
        edges = edges(list(names))
        if isinstance(edges, str) or not np.iterable(edges):
            raise ValueError(f"structure must return a list of (parent, child); it returned {edges!r}")
    above: list[set[int]] = [set() for _ in names]
    for parent, child in map(_pair, () if isinstance(edges, str) else edges):
        above[_position(child, names)].add(_position(parent, names))
    parents = tuple(tuple(sorted(one)) for one in above)
    cycle = find_cycle(parents)
    if cycle:
        told = " -> ".join(names[v] for v in [*cycle, cycle[0]])
        raise ValueError(f"structure has a cycle, {told}; a column cannot be its own ancestor: drop one of these edges")
    return parents


def _pair(entry: Any) -> tuple[Any, Any]:
    if isinstance(entry, (str, bytes)) or not np.iterable(entry) or len(list(entry)) != 2:
        raise ValueError(f"structure must list pairs (parent, child); got {entry!r}")
    parent, child = entry
    return parent, child


def _position(entry: Any, names: Sequence[str]) -> int:
    """Of a column, named or counted."""
    if isinstance(entry, str):
        if entry in names:
            return list(names).index(entry)
        close = difflib.get_close_matches(entry, names, n=3)
        hint = f"did you mean {', '.join(map(repr, close))}?" if close else f"the columns are {listed(names)}"
        raise ValueError(f"structure names a column {entry!r} that X does not have; {hint}")
    if not isinstance(entry, (int, np.integer)) or isinstance(entry, (bool, np.bool_)):
        raise ValueError(f"structure must name columns by name or position; got {entry!r}")
    if not -len(names) <= entry < len(names):
        raise ValueError(f"structure names position {entry}, but X has {len(names)} columns (0 to {len(names) - 1})")
    return int(entry) % len(names)


def find_cycle(parents: Parents) -> list[int] | None:
    """Columns of which each is a parent of the next, and the last of the first."""
    left = set(range(len(parents)))
    while True:
        free = {v for v in left if left.isdisjoint(parents[v])}
        if not free:
            break
        left -= free
    if not left:
        return None
    walk = [min(left)]  # upwards; every column left has a parent left
    while True:
        above = min(u for u in parents[walk[-1]] if u in left)
        if above in walk:
            return walk[walk.index(above) :][::-1]
        walk.append(above)
