"""Additive statistics, and their sum in a fixed order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Self, TypeVar

import numpy as np


class Stats:
    """Base class of statistics: a frozen dataclass that is added field by field.

    A field is an array, a number, another `Stats`, a tuple of these, or None. A string field is a tag that describes
    the other fields: only statistics with the same tag can be added.
    """

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        return type(self)(*(_add(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)))  # type: ignore[arg-type]


def _add(a: Any, b: Any) -> Any:
    if isinstance(a, (np.ndarray, np.number, Stats, float, int)):
        return a + b
    if isinstance(a, tuple):
        return tuple(_add(x, y) for x, y in zip(a, b, strict=True))
    if (a is None and b is None) or (isinstance(a, str) and a == b):  # absent, or the same tag
        return a
    raise ValueError(f"these statistics cannot be added: one is about {a!r}, the other about {b!r}")


S = TypeVar("S", bound=Stats)


def tree_sum(parts: Iterable[S]) -> S:
    """Return the pairwise sum, in an order that depends on the positions only, with O(log n) partial sums.

    The order does not depend on the threads that computed the parts, so the result is identical to the last bit for
    any number of threads; rounding errors grow with log n, not n.
    """
    partial: list[tuple[int, S]] = []  # (height of the subtree, its sum), in order of decreasing height
    for part in parts:
        height = 0
        while partial and partial[-1][0] == height:
            part = partial.pop()[1] + part
            height += 1
        partial.append((height, part))
    if not partial:
        raise ValueError("there is nothing to sum: the source has no blocks")
    total = partial.pop()[1]
    while partial:
        total = partial.pop()[1] + total
    return total
