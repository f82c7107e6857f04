"""Output of the commands: text, tables, progress bars, warnings and errors, each on its stream."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mixent.base.progress import Bar, Show, bar_on
from mixent.base.text import class_name, count, one_line
from mixent.warn import HOW_TO_DROP, DataWarning, NotesError

MOST_WARNINGS = 8
WIDEST = 100  # columns of text that is wrapped here
NOT_FOR_USERS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ImportWarning, ResourceWarning)


def shown(value: object) -> str:
    """The user's text inside rich markup: harmless whatever it holds."""
    return escape(one_line(value))


def named(label: object) -> str:
    """A class in a sentence, inside rich markup: a label that is a number comes after the word class."""
    return shown(class_name(label))


class Screen:
    """Results go to standard output; progress, warnings and errors to standard error."""

    def __init__(self, quiet: bool, *, to_stderr: bool = False) -> None:
        self.err = Console(stderr=True, emoji=False, highlight=False, quiet=quiet)
        self.out = self.err if to_stderr else Console(emoji=False, highlight=False, quiet=quiet)
        self._warned: dict[str, bool] = {}  # message -> whether it was printed

    @property
    def width(self) -> int:
        """Columns that wrapped text may take."""
        return min(self.out.width, WIDEST)

    def print(self, markup: str = "") -> None:
        """Print a line (or paragraph) of the result; the user's text in it must be `shown`."""
        self.out.print(markup)

    def text(self, text: str) -> None:
        """Print plain text as it is: no markup, no wrapping."""
        self.out.print(text, markup=False, soft_wrap=True)

    def table(self, table: Table) -> None:
        """Print a table."""
        self.out.print(table)

    def wrote(self, path: Path, more: str = "") -> None:
        """Print which file was written."""
        self.print(f"Wrote [bold]{shown(path)}[/]{escape(more)}")

    def warn(self, message: object, most: float = MOST_WARNINGS) -> None:
        """One yellow line; a repeated message is printed once, and those after the eighth are only counted."""
        text = one_line(message)
        if not self._warned.get(text):
            self._warned[text] = sum(self._warned.values()) < most
            if self._warned[text]:
                self.err.print(f"[yellow]Warning: {escape(text)}[/]", soft_wrap=True)

    def warned(self, warning: Warning | str) -> None:
        """A warning of Python; each note on the data has its own line."""
        for message in warning.notes if isinstance(warning, DataWarning) else [warning]:
            self.warn(message)

    def all_of(self, notes: Sequence[str]) -> None:
        """Print all notes that have not been printed: they are errors, which are printed with `--quiet`, too."""
        if self.err.quiet:
            self.err.quiet = False
            self._warned.clear()
        for note in notes:
            self.warn(note, most=float("inf"))

    def close(self) -> None:
        """Print how many warnings were held back."""
        if held := list(self._warned.values()).count(False):
            self.err.print(f"[yellow]{held} more warnings like these[/]")

    @contextmanager
    def progress(self, title: str) -> Iterator[Show]:
        """A bar on the terminal, a line now and then in a pipe; yields the function of (done, total, text)."""
        if self.err.quiet:
            yield Bar.nothing
            return
        with bar_on(self.err, title) as show:
            yield show


_SCREEN: ContextVar[Screen] = ContextVar("_SCREEN")


def current_screen() -> Screen:
    """The screen of the command that runs."""
    return _SCREEN.get()


@contextmanager
def session(*, quiet: bool = False, debug: bool = False, to_stderr: bool = False) -> Iterator[Screen]:
    """The run of a command: Python's warnings as yellow lines, any error as one line and an exit status."""
    screen = Screen(quiet, to_stderr=to_stderr)
    token, dropping = _SCREEN.set(screen), HOW_TO_DROP.set(lambda name: f"--ignore {shlex.quote(name)}")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, category, *rest, **more: (
            None if issubclass(category, NOT_FOR_USERS) else screen.warned(message)
        )
        try:
            yield screen
        except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            _fail("interrupted", 130)
        except Exception as error:
            if debug:
                raise
            if isinstance(error, NotesError):
                screen.all_of(error.args)
            _fail(_message(error), 1)
        finally:
            screen.close()
            HOW_TO_DROP.reset(dropping)
            _SCREEN.reset(token)


def _fail(message: str, status: int) -> None:
    Console(stderr=True, emoji=False, highlight=False).print(f"[bold red]Error:[/] {shown(message)}", soft_wrap=True)
    raise typer.Exit(status) from None


def _message(error: Exception) -> str:
    if isinstance(error, NotesError):
        are = "is an error" if len(error.args) == 1 else "are errors"
        return f"{count(len(error.args), 'note')} above {are} because of --strict; correct the table, or omit --strict"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return "not enough memory for this table; use fewer rows or columns"
    if isinstance(error, ValueError | TypeError | OSError | ImportError | RuntimeError) and str(error):
        return str(error)
    return f"unexpected {type(error).__name__}: {error}; please report it with the output of --debug"


def grid(*headings: str) -> Table:
    """An empty table: the first column is text, the others are numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place == 0 else "right", no_wrap=place > 0)
    return table
