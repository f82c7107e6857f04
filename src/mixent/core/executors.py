"""Who computes the blocks. The sum is the same to the last bit whoever does."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from types import TracebackType
from typing import Protocol, Self, TypeVar

from threadpoolctl import ThreadpoolController

from mixent.core.arrays import long_rows
from mixent.core.blocks import Block, BlockSource
from mixent.core.stats import Stats, tree_sum

S = TypeVar("S", bound=Stats)
T = TypeVar("T")
A = TypeVar("A")


class Executor(Protocol):
    """Applies a function to every block; a context while BLAS is held to one thread."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None: ...
    def total(self, stats: Callable[[Block], S], source: BlockSource) -> S: ...
    def map(self, function: Callable[[Block], T], source: BlockSource) -> list[T]: ...


class _OneBlasThread:
    """BLAS held to one thread while anybody needs it so: with two, a GEMM sums in another order, and blocks are slow.

    The limit belongs to the process, so contexts that overlap (nested, or in two threads) are counted: the first sets
    it, the last restores what was there.
    """

    def __init__(self) -> None:
        self._lock, self._count = threading.Lock(), 0
        self._limit: AbstractContextManager[object] | None = None

    def hold(self) -> None:
        with self._lock:
            if self._count == 0:
                self._limit = _controller().limit(limits=1, user_api="blas")
            self._count += 1

    def release(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0 and self._limit is not None:
                self._limit.__exit__(None, None, None)
                self._limit = None


_one_blas_thread = _OneBlasThread()


class Serial:
    """One thread, the caller's own."""

    def __enter__(self) -> Self:
        _one_blas_thread.hold()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        _one_blas_thread.release()

    def total(self, stats: Callable[[Block], S], source: BlockSource) -> S:
        return tree_sum(_sum_span(stats, source, a, b) for a, b in _spans(len(source)))

    def map(self, function: Callable[[Block], T], source: BlockSource) -> list[T]:
        return [_one(function, source, i) for i in range(len(source))]


class Threads(Serial):
    """A pool of threads; numpy and BLAS release the interpreter lock, so blocks run side by side."""

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = n_threads or available_threads()

    def total(self, stats: Callable[[Block], S], source: BlockSource) -> S:
        if self.n_threads == 1 or len(source) == 1:
            return super().total(stats, source)
        spans = list(_spans(len(source)))
        return tree_sum(_share(lambda span: _sum_span(stats, source, *span), spans, self.n_threads))

    def map(self, function: Callable[[Block], T], source: BlockSource) -> list[T]:
        if self.n_threads == 1 or len(source) == 1:
            return super().map(function, source)
        return _share(lambda i: _one(function, source, i), range(len(source)), self.n_threads)


def available_threads() -> int:
    """Cores this process may use, or fewer when OMP_NUM_THREADS says so (as joblib sets it in its workers)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(asked)) if asked.isdigit() and int(asked) > 0 else cores


def _spans(n_blocks: int) -> Iterator[tuple[int, int]]:
    """Runs of blocks summed in one go: a function of the number of blocks alone, never of the threads."""
    length = max(1, -(-n_blocks // 64))
    return ((a, min(a + length, n_blocks)) for a in range(0, n_blocks, length))


def _sum_span(stats: Callable[[Block], S], source: BlockSource, start: int, end: int) -> S:
    with long_rows():
        total = stats(source[start])
        for i in range(start + 1, end):
            total = total + stats(source[i])
    return total


def _one(function: Callable[[Block], T], source: BlockSource, i: int) -> T:
    with long_rows():
        return function(source[i])


def _share(function: Callable[[A], T], items: Sequence[A], n_threads: int) -> list[T]:
    """Results in the order of the items. The caller works too: a short job is not handed over and back."""
    results: dict[int, T] = {}
    waiting = deque(range(len(items)))

    def work() -> None:
        while waiting:
            try:
                i = waiting.popleft()
            except IndexError:  # another thread was faster
                return
            results[i] = function(items[i])

    helpers = [_pool(n_threads - 1).submit(work) for _ in range(min(n_threads, len(items)) - 1)]
    try:
        work()
    finally:
        waiting.clear()  # after an error nobody starts another
        for helper in helpers:
            if not helper.cancel():
                helper.result()
    return [results[i] for i in range(len(items))]


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # scans the loaded libraries: once per process


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="mixent")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked child has the pool but not its threads
