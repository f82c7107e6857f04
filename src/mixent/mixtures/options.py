"""Checks of constructor options, and the progress bar: the same words for every estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


def check_count(name: str, value: Any, also: str = "") -> int:
    """A whole number >= 1."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 1:
        return int(value)
    extra = f", or {also}" if also else ""
    raise ValueError(f"{name} must be a whole number >= 1{extra}; got {value!r}")


def check_positive(name: str, value: Any, *, zero: bool = False) -> float:
    """A finite number > 0 (>= 0 with zero=True)."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if number and np.isfinite(value) and (value > 0 or (zero and value == 0)):
        return float(value)
    raise ValueError(f"{name} must be a number {'>=' if zero else '>'} 0; got {value!r}")


def check_folds(name: str, value: Any) -> None:
    """A whole number >= 2, a splitter, or splits."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 2:
        return
    if not isinstance(value, (str, bytes)) and (hasattr(value, "split") or np.iterable(value)):
        return
    raise ValueError(f"{name} must be a whole number >= 2, a splitter or a list of splits; got {value!r}")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """One of a few words."""
    if isinstance(value, str) and value in choices:
        return value
    raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")


@contextmanager
def progress_bar(progress: Any, title: str) -> Iterator[Callable[[int, int, str], None] | None]:
    """True: a bar on the terminal; a callable: itself; otherwise None."""
    if callable(progress):
        yield progress
    elif not progress:
        yield None
    else:
        from rich.progress import Progress  # only when a bar is shown

        with Progress(transient=True) as bar:
            task = bar.add_task(title)
            yield lambda done, total, text: bar.update(
                task, completed=done, total=total, description=f"{title}: {text}"
            )
