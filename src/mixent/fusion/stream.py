"""Items that arrive in parts: they are only stored, and a fit to them is computed when a result of it is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mixent.fusion.batch import Batch

MIN_JOINED = 1024  # patterns of waiting parts; fewer are not joined, because every join has a fixed cost


@dataclass
class Items:
    """All items so far as patterns, and parts that are waiting to be joined with them.

    Parts are joined when together they are as large as the rest, so that the time for an item does not grow with the
    number of items.
    """

    base: Batch
    waiting: list[Batch] = field(default_factory=list)
    n_waiting: int = 0

    def add(self, part: Batch) -> None:
        """Add a part; until the next one, it is the last of those waiting."""
        if self.n_waiting >= max(MIN_JOINED, self.base.n_patterns):
            self.base, self.waiting, self.n_waiting = self.base.joined(*self.waiting), [], 0
        self.waiting.append(part)
        self.n_waiting += part.n_patterns

    def joined(self) -> Batch:
        """All items; the last patterns in `pattern_of` are those of the last part."""
        return self.base.joined(*self.waiting)


class Computed:
    """A fitted attribute that a method of the estimator sets, with others, when one of them is read first.

    The method does nothing if the estimator is not fitted.
    """

    def __init__(self, method: str) -> None:
        self.method = method

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is not None:
            getattr(model, self.method)()
        if model is None or self.name not in vars(model):
            raise AttributeError(f"{getattr(owner, '__name__', 'object')!r} object has no attribute {self.name!r}")
        return vars(model)[self.name]
