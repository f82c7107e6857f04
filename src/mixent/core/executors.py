"""Serial and multithreaded computation of blocks, with sums that are identical to the last bit."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import TracebackType
from typing import Protocol, Self, TypeVar

from threadpoolctl import LibController, ThreadpoolController

from mixent.core.arrays import long_rows
from mixent.core.blocks import Block, BlockSource
from mixent.core.stats import Stats, tree_sum

S = TypeVar("S", bound=Stats)
T = TypeVar("T")
A = TypeVar("A")


class Executor(Protocol):
    """Applies a function to every block; a context manager that limits BLAS to one thread."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None: ...
    def total(self, stats: Callable[[Block], S], source: BlockSource) -> S: ...
    def map(self, function: Callable[[Block], T], source: BlockSource) -> list[T]: ...


class _OneBlasThread:
    """Limits BLAS to one thread: with two, a GEMM sums in a different order, and small blocks are slow.

    For most libraries the limit applies to the whole process, so overlapping contexts (nested, or in several threads)
    are counted: the first sets it, the last restores the previous value.
    """

    per_thread = False

    def __init__(self) -> None:
        self._lock, self._count = threading.Lock(), 0
        self._before: list[tuple[LibController, int]] = []

    def hold(self) -> None:
        with self._lock:
            if self._count == 0:
                libraries = [lib for lib in _blas() if _is_per_thread(lib) is self.per_thread]
                self._before = [(lib, lib.get_num_threads()) for lib in libraries]
                for lib in libraries:
                    _release_control(lib)
                    lib.set_num_threads(1)
            self._count += 1

    def release(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0:
                for lib, n_threads in self._before:
                    _release_control(lib)
                    lib.set_num_threads(n_threads)
                    _release_control(lib)


class _OneBlasThreadHere(_OneBlasThread, threading.local):
    """The same for libraries whose limit applies to the calling thread only; one instance per thread."""

    per_thread = True


def _is_per_thread(lib: LibController) -> bool:
    return getattr(lib, "threading_layer", None) == "openmp"


def _release_control(lib: LibController) -> None:
    """Let the calling thread set a limit: threadpoolctl ignores all threads but one, until that one ends."""
    clear = getattr(lib, "clear_controlling_thread", None)  # since threadpoolctl 3.7
    if clear is not None:
        clear(True)  # whichever thread controls the library


_limits = (_OneBlasThread(), _OneBlasThreadHere())


class Serial:
    """Computation in the calling thread."""

    def __enter__(self) -> Self:
        for limit in _limits:
            limit.hold()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for limit in _limits:
            limit.release()

    def total(self, stats: Callable[[Block], S], source: BlockSource) -> S:
        return tree_sum(_sum_span(stats, source, a, b) for a, b in _spans(len(source)))

    def map(self, function: Callable[[Block], T], source: BlockSource) -> list[T]:
        return [_apply(function, source, i) for i in range(len(source))]


class Threads(Serial):
    """Computation in a pool of threads; numpy and BLAS release the interpreter lock, so blocks run in parallel."""

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = n_threads or available_threads()

    def total(self, stats: Callable[[Block], S], source: BlockSource) -> S:
        if self.n_threads == 1 or len(source) == 1:
            return super().total(stats, source)
        spans = list(_spans(len(source)))
        return tree_sum(_map_in_threads(lambda span: _sum_span(stats, source, *span), spans, self.n_threads))

    def map(self, function: Callable[[Block], T], source: BlockSource) -> list[T]:
        if self.n_threads == 1 or len(source) == 1:
            return super().map(function, source)
        return _map_in_threads(lambda i: _apply(function, source, i), range(len(source)), self.n_threads)


def available_threads() -> int:
    """Return the number of cores this process may use, at most OMP_NUM_THREADS (which joblib sets in its workers)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(limit)) if limit.isdigit() and int(limit) > 0 else cores


def _spans(n_blocks: int) -> Iterator[tuple[int, int]]:
    """Return the runs of blocks that are summed together; they depend on the number of blocks only."""
    length = max(1, -(-n_blocks // 64))
    return ((a, min(a + length, n_blocks)) for a in range(0, n_blocks, length))


def _sum_span(stats: Callable[[Block], S], source: BlockSource, start: int, end: int) -> S:
    with long_rows():
        total = stats(source[start])
        for i in range(start + 1, end):
            total = total + stats(source[i])
    return total


def _apply(function: Callable[[Block], T], source: BlockSource, i: int) -> T:
    with long_rows():
        return function(source[i])


def _map_in_threads(function: Callable[[A], T], items: Sequence[A], n_threads: int) -> list[T]:
    """Return the results in the order of the items; the calling thread computes too, which is faster for few items."""
    results: dict[int, T] = {}
    pending = deque(range(len(items)))

    def work() -> None:
        while pending:
            try:
                i = pending.popleft()
            except IndexError:  # another thread took the last item
                return
            results[i] = function(items[i])

    helpers = [_pool(n_threads - 1).submit(work) for _ in range(min(n_threads, len(items)) - 1)]
    try:
        work()
    finally:
        pending.clear()  # after an error no thread starts another item
        for helper in helpers:
            if not helper.cancel():
                helper.result()
    return [results[i] for i in range(len(items))]


@cache
def _blas() -> list[LibController]:
    """Return the loaded BLAS libraries; they are searched once per process."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="mixent", initializer=_limits[1].hold)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked process has the pool but not its threads
