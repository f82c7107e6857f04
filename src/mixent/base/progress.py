"""Progress of long work: a bar on a terminal, an output that is replaced in a notebook, lines in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from mixent.base.text import one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

Show = Callable[[int, int, str], None]  # called with (done, total, text)
REDRAW = 0.2  # seconds between two states of a notebook's output
LOG = 5.0  # seconds between two lines of a log


@contextmanager
def progress_bar(progress: Any, title: str) -> Iterator[Show | None]:
    """True: progress on standard error or in the notebook; a callable: itself; False: None."""
    import numpy as np  # the command line starts without it

    if not callable(progress) and not isinstance(progress, (bool, np.bool_)):
        raise ValueError(f"progress must be True, False or a function of (done, total, text); got {progress!r}")
    if callable(progress):
        yield progress
    elif not progress:
        yield None
    else:
        from rich.console import Console  # only when progress is shown

        with bar_on(Console(stderr=True), title) as show:
            yield show


@contextmanager
def bar_on(console: Console, title: str) -> Iterator[Show]:
    """The function that shows progress on a console: a bar in a terminal or notebook, lines otherwise."""
    if console.is_jupyter:
        with notebook_output() as update:
            yield lambda done, total, text: update(_html_bar(done, total, f"{title}: {text}"))
    elif console.is_terminal:
        from rich.markup import escape as plain
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            yield Bar(bar, bar.add_task(plain(title), total=None), title)
    else:
        yield Lines(console, title)


@dataclass(frozen=True)
class Bar:
    """Moves a bar on the terminal; in another process, which has no terminal, it does nothing."""

    bar: Progress
    task: TaskID
    title: str

    def __call__(self, done: int, total: int, text: str) -> None:
        from rich.markup import escape as plain

        text = plain(one_line(f"{self.title}: {text}"))
        self.bar.update(self.task, completed=done, total=total, description=text)

    def __reduce__(self) -> Any:
        return getattr, (Bar, "nothing")

    @staticmethod
    def nothing(done: int, total: int, text: str) -> None:
        """No terminal."""


class Lines:
    """Progress as lines of a log, one every few seconds; short work leaves none."""

    def __init__(self, console: Console, title: str, seconds: float = LOG) -> None:
        self.console, self.title, self.seconds = console, title, seconds
        self.last = time.monotonic()

    def __call__(self, done: int, total: int, text: str) -> None:
        if time.monotonic() - self.last >= self.seconds:
            self.last = time.monotonic()
            line = one_line(f"{self.title}: {done} of {total}, {text}")
            self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def __reduce__(self) -> Any:
        return getattr, (Bar, "nothing")


@contextmanager
def notebook_output() -> Iterator[Callable[[str], None]]:
    """An output of a notebook that every call replaces by new HTML; empty in the end. Needs IPython, no widgets."""
    from IPython.display import display

    handle = display({"text/html": "", "text/plain": ""}, raw=True, display_id=True)
    last = -REDRAW

    def update(html: str) -> None:
        nonlocal last
        if time.monotonic() - last >= REDRAW:
            last = time.monotonic()
            handle.update({"text/html": html, "text/plain": ""}, raw=True)

    try:
        yield update
    finally:
        handle.update({"text/html": "", "text/plain": ""}, raw=True)


def _html_bar(done: int, total: int, text: str) -> str:
    return f'<progress value="{done}" max="{total}"></progress> {escape(one_line(text))}'
