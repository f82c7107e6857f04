"""What all sections of a report share."""

from __future__ import annotations

from typing import Any


def can_draw() -> bool:
    """Is matplotlib there?"""
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def figure(width: float, height: float) -> Any:
    """An empty figure, inches."""
    from matplotlib.figure import Figure as Canvas  # not pyplot: nothing to close, no window

    return Canvas(figsize=(width, height), layout="constrained")


def count(n: Any, one: str, many: str | None = None) -> str:
    """A number of things."""
    return f"{n} {one}" if n == 1 else f"{n} {many or one + 's'}"
