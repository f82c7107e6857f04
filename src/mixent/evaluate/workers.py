"""Processes that run one task at a time each and can be ended: what runs too long, or dies, costs only itself."""

from __future__ import annotations

import os
import pickle
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

POLL = 0.1  # seconds between looks at the time of running tasks
THREADS = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "NUMBA")  # libraries with threads of their own
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in THREADS} | {"VECLIB_MAXIMUM_THREADS": "1"}

Function = Callable[[Any, Any], Any]  # (model, data) -> result


class Task(NamedTuple):
    """A call of one of the functions: with the model of this name, and one of the items of data."""

    model: str
    data: int
    function: str = "trial"


@dataclass(frozen=True)
class Ended:
    """A task without a result."""

    reason: str
    seconds: float
    overran: bool  # it was ended at its limit


@dataclass(frozen=True)
class Work:
    """What tasks are made of; every process reads it once."""

    functions: Mapping[str, Function]
    models: Mapping[str, Any]
    data: Sequence[Any]

    def __call__(self, task: Task) -> Any:
        """The result of a task, in this process."""
        return self.functions[task.function](self.models[task.model], self.data[task.data])


Limit = Callable[[Task], float]  # seconds that a task may take; asked again while it runs


def no_limit(task: Task) -> float:
    """Any time."""
    return float("inf")


class Here:
    """Runs tasks one after the other in this process; none can be ended."""

    n_workers = 1

    def __init__(self, work: Work) -> None:
        self.work = work

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def run(self, tasks: Iterator[Task], limit: Limit = no_limit) -> Iterator[tuple[Task, Any]]:
        """Yield each task with its result."""
        for task in tasks:
            yield task, self.work(task)


class Workers:
    """Runs tasks in several processes.

    The processes are started as those of joblib are, so that functions and classes of a script, a notebook or a prompt
    can be used. A process that is ended, or dies, is replaced. Each has one thread for linear algebra.

    Parameters
    ----------
    work : Work
    n_workers : int
    """

    def __init__(self, work: Work, n_workers: int) -> None:
        self.work = work
        self.n_workers = n_workers
        self.refused: dict[str, str] = {}  # models that cannot be sent to a process: why
        self.workers: list[_Worker] = []

    def __enter__(self) -> Workers:
        self.folder = tempfile.TemporaryDirectory(prefix="mixent-")
        self.path = str(Path(self.folder.name) / "work")
        Path(self.path).write_bytes(self._packed())
        self.workers = [_Worker(self.path) for _ in range(self.n_workers)]
        return self

    def __exit__(self, *error: Any) -> None:
        for worker in self.workers:
            worker.end()
        self.folder.cleanup()

    def _packed(self) -> bytes:
        """The work as bytes; a model that cannot be written is left out, and its tasks fail."""
        models = {}
        for name, model in self.work.models.items():
            try:
                models[name] = _dumps(model)
            except Exception as error:
                self.refused[name] = f"it cannot be sent to another process ({error}); use n_jobs=1"
        return _dumps((dict(self.work.functions), models, list(self.work.data)))

    def run(self, tasks: Iterator[Task], limit: Limit = no_limit) -> Iterator[tuple[Task, Any]]:
        """Yield each task with its result, or with how it `Ended`, as they come.

        Parameters
        ----------
        tasks : iterator of Task
            The next is asked for when a process is free.
        limit : callable(task) -> seconds
        """
        more = True
        while True:
            for worker in self.workers:
                while more and worker.task is None:
                    task = next(tasks, None)
                    more = task is not None
                    if task is not None and task.model in self.refused:
                        yield task, Ended(self.refused[task.model], 0.0, overran=False)
                    elif task is not None:
                        worker.begin(task)
            running = [worker for worker in self.workers if worker.task is not None]
            if not running:
                return
            for worker in self._ready(running):
                result = worker.read()
                if result is not None:
                    yield result
            for i, worker in enumerate(self.workers):
                if worker.task is not None and worker.seconds > limit(worker.task):
                    ended = Ended(f"ended after {worker.seconds:.1f} s", worker.seconds, overran=True)
                    task = worker.task
                    self._replace(i)
                    yield task, ended
                elif worker.task is None and not worker.alive:
                    self._replace(i)

    def _ready(self, running: list[_Worker]) -> list[_Worker]:
        from multiprocessing.connection import wait

        ready = wait([worker.connection for worker in running], timeout=POLL)
        return [worker for worker in running if worker.connection in ready]

    def _replace(self, i: int) -> None:
        self.workers[i].end()
        self.workers[i] = _Worker(self.path)


@dataclass
class _Worker:
    """One process, and the task it runs."""

    path: str
    task: Task | None = field(default=None, init=False)
    ready: bool = field(default=False, init=False)  # it has read the work

    def __post_init__(self) -> None:
        from joblib.externals.loky.backend import get_context  # does not import the script again, as "spawn" does

        context = get_context("loky")
        self.connection, far = context.Pipe()
        self.process = context.Process(target=_serve, args=(far, self.path, os.getpid()), env=ONE_THREAD, daemon=True)
        self.process.start()
        far.close()  # so that the end of the process is the end of the connection

    @property
    def alive(self) -> bool:
        return not self.connection.closed

    @property
    def seconds(self) -> float:
        """How long the task has been running, once the process is ready."""
        return time.monotonic() - self.began if self.ready else 0.0

    def begin(self, task: Task) -> None:
        self.task, self.began = task, time.monotonic()
        with suppress(OSError):  # a process that died is noticed when its result is read
            self.connection.send(tuple(task))

    def read(self) -> tuple[Task, Any] | None:
        """The task with its result, or None if the process is ready for it; an exception of the function is raised."""
        task, seconds = self.task, self.seconds
        assert task is not None
        try:
            failed, result = pickle.loads(self.connection.recv_bytes())
        except (EOFError, OSError):
            self.end()
            failed, result = False, Ended(_death(self.process.exitcode), seconds, overran=False)
        if not self.ready and not isinstance(result, Ended):
            self.ready, self.began = True, time.monotonic()
            return None
        self.task = None
        if failed:
            raise result
        return task, result

    def end(self) -> None:
        """End the process and those it has started."""
        if self.connection.closed:
            return
        self.connection.close()
        if hasattr(os, "killpg"):
            for kill in (os.killpg, os.kill):  # it has a group of its own once it runs
                with suppress(OSError):
                    kill(self.process.pid, signal.SIGKILL)
        else:
            self.process.terminate()
        self.process.join()


def limited(function: Function, model: Any, seconds: float) -> Any:
    """The result of ``function(model, None)`` in a process of its own, or how it `Ended`; exceptions are raised."""
    with Workers(Work({"trial": function}, {"model": model}, [None]), 1) as workers:
        [(_, result)] = workers.run(iter([Task("model", 0)]), lambda task: seconds)
    return result


def _death(exitcode: int | None) -> str:
    if exitcode == -9:
        return "its process was killed by the system, most likely because memory ran out"
    if exitcode is not None and exitcode < 0:
        return f"its process died of signal {-exitcode}"
    return f"its process exited with status {exitcode}"


def _serve(connection: Any, path: str, parent: int) -> None:
    """Run the tasks that come until the connection is closed."""
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)  # Ctrl-C reaches the parent alone, which ends this process with all that it has started
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()
    functions, models, data = pickle.loads(Path(path).read_bytes())
    connection.send_bytes(_dumps((False, None)))
    with suppress(EOFError):
        while True:
            task = Task(*connection.recv())
            try:
                answer = False, functions[task.function](pickle.loads(models[task.model]), data[task.data])
            except Exception as error:
                answer = True, error
            connection.send_bytes(_written(answer))


def _dumps(value: Any) -> bytes:
    """Bytes of any object, with the definitions of functions and classes that no module has."""
    from joblib.externals.loky.backend.reduction import dumps

    return bytes(dumps(value))


def _written(answer: tuple[bool, Any]) -> bytes:
    try:
        return _dumps(answer)
    except Exception as error:
        return _dumps((True, RuntimeError(f"the result cannot be sent from its process: {error}; use n_jobs=1")))


def _follow(parent: int) -> None:
    """End this process when its parent is gone."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
