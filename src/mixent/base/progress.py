"""The progress bar that every estimator shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


@contextmanager
def progress_bar(progress: Any, title: str) -> Iterator[Callable[[int, int, str], None] | None]:
    """True: a bar on the terminal; a callable: itself; otherwise None."""
    if not callable(progress) and not isinstance(progress, (bool, np.bool_)):
        raise ValueError(f"progress must be True, False or a function of (done, total, text); got {progress!r}")
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
