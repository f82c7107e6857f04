"""Reading and checking the structure of a Bayes net."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from mixent.data.values import listed

Parents = tuple[tuple[int, ...], ...]  # positions of the parents of each column, in increasing order
ALLOWED = "'naive', a list of (parent, child), a function of the column names, or a dict {class: any of these}"


def check_structure(structure: Any) -> None:
    """Raise an error if this cannot be a structure; the columns need not be known."""
    if isinstance(structure, str) and structure != "naive":
        hint = "; to learn a tree, use MEDTreeClassifier" if structure == "tree" else ""
        raise ValueError(f"structure must be {ALLOWED}; got {structure!r}{hint}")
    if not isinstance(structure, (str, dict)) and not callable(structure) and not np.iterable(structure):
        raise ValueError(f"structure must be {ALLOWED}; got {structure!r}")


def read_structure(structure: Any, names: Sequence[str], classes: Sequence[Hashable]) -> tuple[Parents, ...]:
    """The parents of every column, for each class."""
    if not isinstance(structure, dict):
        return (_read_edges(structure, names),) * len(classes)
    for label in structure:
        if label not in classes:
            close = difflib.get_close_matches(str(label), list(map(str, classes)), n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"the classes are {listed(classes)}"
            raise ValueError(f"structure has edges for class {label!r}, which y does not contain; {hint}")
    for label in classes:
        if label not in structure:
            raise ValueError(f"structure is a dict without the class {label!r}; add its edges, or [] for none")
    return tuple(_read_edges(structure[label], names) for label in classes)


def _read_edges(edges: Any, names: Sequence[str]) -> Parents:
    check_structure(edges)
    if isinstance(edges, dict):
        raise ValueError(f"structure of a class must be 'naive', a list or a function; got {edges!r}")
    if callable(edges):
        edges = edges(list(names))
        if isinstance(edges, str) or not np.iterable(edges):
            raise ValueError(f"structure must return a list of (parent, child); it returned {edges!r}")
    parent_sets: list[set[int]] = [set() for _ in names]
    for parent, child in map(_pair, () if isinstance(edges, str) else edges):
        parent_sets[_position(child, names)].add(_position(parent, names))
    parents = tuple(tuple(sorted(positions)) for positions in parent_sets)
    cycle = find_cycle(parents)
    if cycle:
        path = " -> ".join(names[v] for v in [*cycle, cycle[0]])
        raise ValueError(f"structure has a cycle, {path}; a column cannot be its own ancestor: drop one of these edges")
    return parents


def _pair(entry: Any) -> tuple[Any, Any]:
    if isinstance(entry, (str, bytes)) or not np.iterable(entry) or len(list(entry)) != 2:
        raise ValueError(f"structure must list pairs (parent, child); got {entry!r}")
    parent, child = entry
    return parent, child


def _position(entry: Any, names: Sequence[str]) -> int:
    """The position of a column given by its name or position."""
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
    """Columns that form a cycle: each is a parent of the next, and the last a parent of the first; None if acyclic."""
    remaining = set(range(len(parents)))
    while True:
        roots = {v for v in remaining if remaining.isdisjoint(parents[v])}
        if not roots:
            break
        remaining -= roots
    if not remaining:
        return None
    path = [min(remaining)]  # from child to parent; every remaining column has a remaining parent
    while True:
        parent = min(u for u in parents[path[-1]] if u in remaining)
        if parent in path:
            return path[path.index(parent) :][::-1]
        path.append(parent)
