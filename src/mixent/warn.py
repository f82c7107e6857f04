"""Warnings that point to a line of the user's code, and notes on the data, which can be made errors."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

OURS = str(Path(__file__).parent)
LIBRARIES = ("sklearn", "joblib")  # they call our estimators for the user
_strict: ContextVar[bool] = ContextVar("strict", default=False)
_pending: ContextVar[list[str] | None] = ContextVar("pending", default=None)


def _in_pandas(name: str) -> str:
    return f"df.drop(columns=[{name!r}])"


HOW_TO_DROP: ContextVar[Callable[[str], str]] = ContextVar("HOW_TO_DROP", default=_in_pandas)  # a column, by its name


class DataWarning(UserWarning):
    """Notes on the data: what was unusual, and what was done about it.

    Parameters
    ----------
    notes : str
        One or several.
    """

    def __init__(self, *notes: str) -> None:
        super().__init__("; ".join(notes))
        self.notes = notes


class NotesError(ValueError):
    """Notes on the data (`args`) that are errors because of ``config_context(strict=True)``."""

    def __str__(self) -> str:
        return f"{'; '.join(self.args)} (an error because of strict=True)"


@contextmanager
def config_context(*, strict: bool = False) -> Iterator[None]:
    """Set options of mixent inside a `with` block.

    Parameters
    ----------
    strict : bool, default=False
        Whether a note on the data (`DataWarning`) is an error (ValueError) instead of a warning.

    Examples
    --------
    >>> import mixent
    >>> with mixent.config_context(strict=True):
    ...     model = mixent.MaxEntClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    """
    if not isinstance(strict, bool):
        raise ValueError(f"strict must be True or False; got {strict!r}")
    token = _strict.set(strict)
    try:
        yield
    finally:
        _strict.reset(token)


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points to the user's line: the first one outside mixent and the libraries that call it."""
    warnings.warn(message, category, stacklevel=_user_level())


def warn_notes(notes: Sequence[str]) -> None:
    """Issue all notes of one call as one `DataWarning`; inside ``config_context(strict=True)`` as a ValueError."""
    if not notes:
        return
    if (pending := _pending.get()) is not None:
        pending += notes
        return
    if _strict.get():
        raise NotesError(*notes)
    warn(DataWarning(*notes))


class NotesTogether:
    """A `with` block of several readings of the same rows: their notes are issued at its end, together and once."""

    def __enter__(self) -> None:
        self._outer = _pending.get()
        _pending.set([] if self._outer is None else self._outer)

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        notes = _pending.get() or []
        _pending.set(self._outer)
        if self._outer is None and kind is None:
            warn_notes(list(dict.fromkeys(notes)))


class Caught:
    """A function for another process: returns its result and its warnings, which would be lost or misplaced there.

    Parameters
    ----------
    function : callable
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.wrapped = function  # not `function`: scikit-learn's `delayed` copies attributes over its own

    def __call__(self, *args: Any) -> tuple[Any, list[tuple[str, type[Warning]]]]:
        """The result, and text and category of every warning."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = self.wrapped(*args)
        return result, [(str(entry.message), entry.category) for entry in caught]


def results_of(outcomes: Iterable[tuple[Any, list[tuple[str, type[Warning]]]]]) -> list[Any]:
    """The results of `Caught` functions; each of their warnings is issued here, once."""
    outcomes = list(outcomes)
    for message, category in dict.fromkeys(entry for _, caught in outcomes for entry in caught):
        warn(message, category)
    return [result for result, _ in outcomes]


def _user_level() -> int:
    """The `stacklevel` with which `warn` points to the user's line."""
    level, frame = 1, sys._getframe(1)  # `warn` itself
    while frame.f_back is not None and _internal(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    return level


def _internal(path: str) -> bool:
    parts = Path(path).parts
    return path.startswith(OURS) or path.startswith("<") or any(name in parts for name in LIBRARIES)
