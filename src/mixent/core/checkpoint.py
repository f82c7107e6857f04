"""The state of a fit in a file, from which a fit that was interrupted resumes and ends with the same bits.

A fit consists of tasks, such as the candidates of a search, and a task of one or more runs of the optimizer. The file
holds the results of the finished tasks, the results of the finished runs of the current task, and the state of the
current run. A task is recognized by its key, a hash of everything that its result depends on, so the order of the tasks
does not matter.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from mixent.core import serialize
from mixent.core.driver import Event, Observer, Run, Status, Step, run
from mixent.core.serialize import SavedFileError
from mixent.core.starts import Runner, Starts
from mixent.warn import warn

SECONDS = 5.0  # smallest time between two writes
SHARE = 0.05  # largest share of the time that is spent on writing
MAX_BYTES = 16 << 30  # of a checkpoint: it is written by the process of the user
KIND = "checkpoint"
CLASSES: dict[str, type] = {cls.__name__: cls for cls in (Event, Run, Starts, Status, Step)}
T = TypeVar("T")


@dataclass(frozen=True)
class _Packed:
    """A value as bytes, which is read only when it is needed and written again as it is."""

    data: bytes


@dataclass(frozen=True)
class _Current:
    """The current task: its finished runs, and a state of the run after them."""

    key: str
    runs: tuple[Run[Any], ...]
    event: Event[Any] | None


class Checkpoint:
    """A file with the state of a fit; a context in which the fit runs, after which the file is removed.

    The file is written in the beginning, then at most every few seconds, and when the fit is interrupted by Ctrl-C.

    Parameters
    ----------
    path : file name
        If the file exists, the fit resumes from it.
    fingerprint : str
        Of the fit. A file with another one is refused.
    seed : int
        Seed of the fit; `seed` is that of the file if it exists.
    classes : mapping of names to further types that results and states contain
    """

    def __init__(
        self, path: str | os.PathLike[str], fingerprint: str, seed: int, classes: Mapping[str, type] = {}
    ) -> None:
        self.path, self.fingerprint, self.seed = Path(path), fingerprint, seed
        self.classes = {**CLASSES, **classes}
        self._done: dict[str, Any] = {}  # key -> result, packed or not yet
        self._stored: _Current | None = None  # of the file
        self._key: str | None = None  # of the current task
        self._runs: list[Run[Any]] = []
        self._event: tuple[int, Event[Any] | None] = -1, None  # number of the run, and a state to resume it from
        self._due = 0.0
        self._warned = False

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()  # fits in other processes are not recorded

    def __enter__(self) -> Self:
        if self.path.exists():
            self._read()
        try:
            self._write()
        except OSError as error:
            raise ValueError(
                f"cannot write the checkpoint {self.path} ({error.strerror}); pass a file name in an existing folder"
            ) from error
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.path.unlink(missing_ok=True)
        elif issubclass(kind, KeyboardInterrupt):
            with suppress(OSError):
                self._write()

    def task(self, key: str, compute: Callable[[Runner], T]) -> T:
        """Return the stored result of a task, or `compute(run)` with the function by which it runs the optimizer.

        Tasks cannot be nested.
        """
        if key in self._done:
            result: T = self._unpacked(self._done[key])
            return result
        self._key, self._runs, self._event = key, [], (-1, None)
        try:
            result = compute(self._run)
        finally:
            if self._stored is not None and self._stored.key == key:
                self._stored = None
        self._done[key] = result
        self._key = None
        self._write_if_due()
        return result

    def _run(
        self,
        problem: Any,
        source: Any,
        params: Any = None,
        *,
        observers: Sequence[Observer] = (),
        resume: Event[Any] | None = None,
        **options: Any,
    ) -> Run[Any]:
        """Do what `mixent.core.driver.run` does; what the file has of this run is not repeated."""
        number, stored = len(self._runs), self._stored
        if stored is not None and stored.key == self._key and number < len(stored.runs):
            result = stored.runs[number]
        else:
            event = self._stored_event(number)
            if event is not None:
                params, resume = None, event
            keep = _Keep(self, number, event)
            result = run(problem, source, params, observers=[*observers, keep], resume=resume, **options)
        self._runs.append(result)
        return result

    def _stored_event(self, number: int) -> Event[Any] | None:
        """Return the state of this run of the current task in the file, if it has one."""
        stored = self._stored
        if stored is None or stored.key != self._key or number != len(stored.runs):
            return None
        return stored.event

    def _write_if_due(self) -> None:
        if time.perf_counter() < self._due:
            return
        try:
            self._write()
        except OSError as error:  # such as a full disk: the fit continues without a checkpoint
            if not self._warned:
                warn(f"cannot write the checkpoint {self.path} ({error.strerror}); the fit continues without it")
            self._warned = True

    def _write(self) -> None:
        began = time.perf_counter()
        for key, result in self._done.items():
            if not isinstance(result, _Packed):
                self._done[key] = self._packed(result)
        tree = {"seed": self.seed, "done": self._done, "current": self._packed(self._current())}
        about = {"kind": KIND, "fingerprint": self.fingerprint}
        serialize.save(self.path, tree, {}, about, pack=lambda part: part.data)
        now = time.perf_counter()
        self._due = now + max(SECONDS, (now - began) / SHARE)

    def _current(self) -> _Current | None:
        stored = self._stored
        if self._key is None or (stored is not None and stored.key == self._key and len(self._runs) < len(stored.runs)):
            return stored  # the stored runs have not been reached yet
        n_runs, (number, event) = len(self._runs), self._event
        return _Current(self._key, tuple(self._runs), event if number == n_runs else self._stored_event(n_runs))

    def _read(self) -> None:
        try:
            header = serialize.read_header(self.path)
            if header.get("kind") != KIND:
                raise SavedFileError(f"{self.path} is a model")
            if header.get("fingerprint") != self.fingerprint:
                raise ValueError(
                    f"{self.path} is the checkpoint of another fit (other rows, labels, weights or parameters, or "
                    "another version of mixent or numpy); pass another file name, or delete the file to start over"
                )
            tree = serialize.load(self.path, {}, max_bytes=MAX_BYTES, unpack=lambda parts: [*map(_Packed, parts)])
            self.seed, self._done = int(tree["seed"]), dict(tree["done"])
            self._stored = self._unpacked(tree["current"])
        except SavedFileError as error:
            raise ValueError(f"{error}; a checkpoint is expected: pass another file name, or delete the file") from None

    def _packed(self, value: Any) -> _Packed:
        return _Packed(serialize.to_bytes(value, {**self.classes, "_Current": _Current}, shared=(Step,)))

    def _unpacked(self, value: Any) -> Any:
        if not isinstance(value, _Packed):
            return value
        classes = {**self.classes, "_Current": _Current}
        return serialize.from_bytes(value.data, self.path, classes, max_bytes=MAX_BYTES)


class _Keep:
    """Observer that keeps the state before the last one: the run has continued from it, so it was not the end."""

    def __init__(self, checkpoint: Checkpoint, number: int, event: Event[Any] | None) -> None:
        self.checkpoint, self.number, self.last = checkpoint, number, event

    def __call__(self, event: Event[Any]) -> None:
        self.checkpoint._event, self.last = (self.number, self.last), event
        self.checkpoint._write_if_due()
