"""Statistics that add, and a sum whose order never changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Self, TypeVar

import numpy as np


class Stats:
    """Base of every statistics class: a frozen dataclass whose fields add one by one.

    A field is an array, a number, another `Stats`, a tuple of these, or None. A string field is a tag
    (what the numbers are about): both sides must carry the same one.
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
    raise ValueError(f"statistics about {a!r} cannot be added to statistics about {b!r}")


S = TypeVar("S", bound=Stats)


def tree_sum(parts: Iterable[S]) -> S:
    """Sum pairwise in an order fixed by position alone, keeping O(log n) partial sums.

    The order does not depend on who computed the parts or when, so threads change no bit;
    and rounding grows with log n, not n.
    """
    waiting: list[tuple[int, S]] = []  # (height of the subtree, its sum), heights falling
    for part in parts:
        height = 0
        while waiting and waiting[-1][0] == height:
            part = waiting.pop()[1] + part
            height += 1
        waiting.append((height, part))
    if not waiting:
        raise ValueError("nothing to sum: the source has no blocks")
    total = waiting.pop()[1]
    while waiting:
        total = waiting.pop()[1] + total
    return total
