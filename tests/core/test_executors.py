import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.driver import Stop, run
from mixent.core.executors import Serial, Threads, _blas, _pool, _release_control, available_threads

ANY = [Serial, lambda: Threads(1), lambda: Threads(2), lambda: Threads(3)]


def leaves(value):
    """All numbers of nested statistics."""
    if isinstance(value, np.ndarray):
        return [value]
    if hasattr(value, "__dataclass_fields__"):
        return [x for name in value.__dataclass_fields__ for x in leaves(getattr(value, name))]
    return [] if value is None or isinstance(value, str) else [np.array(value)]


@pytest.mark.parametrize("block_rows", [7, 40, 10_000])  # 1000, 100 and 1 blocks and more
@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_the_number_of_threads_changes_no_bit(make_mixture, gaps, block_rows):
    problem, source, params = make_mixture(n=3000, gaps=gaps, block_rows=block_rows)
    ready = problem.prepare(params)
    totals = []
    for executor in ANY:
        with executor() as workers:
            totals.append(leaves(workers.total(lambda block: problem.stats(ready, block), source)))
    for other in totals[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(totals[0], other, strict=True))


def test_a_whole_run_is_the_same_to_the_last_bit(make_mixture):
    problem, source, params = make_mixture(n=1000)
    runs = [run(problem, source, params, stop=Stop(1e-9, 20), executor=make()) for make in ANY]
    for other in runs[1:]:
        assert [s.objective for s in other.trace] == [s.objective for s in runs[0].trace]
        assert all(np.array_equal(a, b) for a, b in zip(leaves(runs[0].params), leaves(other.params)))


@pytest.mark.parametrize("make", ANY)
def test_map_keeps_the_order(make):
    source = ArrayBlocks(Block(np.arange(100.0)[:, None]), 7)
    with make() as workers:
        parts = workers.map(lambda block: block.X[:, 0].copy(), source)
    np.testing.assert_array_equal(np.concatenate(parts), np.arange(100.0))


@pytest.mark.parametrize("make", ANY)
def test_an_error_in_a_block_reaches_the_caller(make):
    source = ArrayBlocks(Block(np.arange(100.0)[:, None]), 7)

    def fail(block):
        raise ArithmeticError("in a block")

    with make() as workers, pytest.raises(ArithmeticError, match="in a block"):
        workers.total(fail, source)


@pytest.mark.parametrize("make", ANY)
def test_no_blocks_is_an_error_that_says_so(make):
    with make() as workers, pytest.raises(ValueError, match="no blocks"):
        workers.total(lambda block: block, ArrayBlocks(Block(np.empty((0, 2)))))


def blas_threads():
    """Threads of the BLAS libraries that have some; other packages may load one that was built without."""
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return [pool["num_threads"] for pool in pools if pool.get("threading_layer") != "disabled"]


@pytest.fixture
def two_blas_threads():
    """BLAS with two threads in the whole process, and no thread that controls this number."""
    libraries = [(lib, lib.get_num_threads()) for lib in _blas()]
    for lib, _ in libraries:
        _release_control(lib)
        lib.set_num_threads(2)
        _release_control(lib)
    assert set(blas_threads()) == {2}
    yield
    for lib, n_threads in libraries:
        _release_control(lib)
        lib.set_num_threads(n_threads)
        _release_control(lib)


def test_blas_is_held_to_one_thread_and_given_back():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        executor = Serial()
        with executor:
            assert set(blas_threads()) == {1}
            with executor:  # a run inside a context
                assert set(blas_threads()) == {1}
            assert set(blas_threads()) == {1}
        assert blas_threads() == before
        with pytest.raises(ZeroDivisionError), executor:
            _ = 1 / 0
        assert blas_threads() == before


def test_threads_work_in_a_forked_child():
    """A child inherits the pool but not its threads; a pool kept across the fork would wait for ever."""
    code = """
    import os, sys, warnings
    import numpy as np
    from mixent.core.blocks import ArrayBlocks, Block
    from mixent.core.executors import Threads

    warnings.simplefilter("ignore")  # newer Pythons warn of any fork beside threads
    source = ArrayBlocks(Block(np.arange(100.0)[:, None]), 7)

    def total():
        with Threads(2) as workers:
            return sum(workers.map(lambda block: block.X.sum(), source))

    first = total()
    child = os.fork()
    if child == 0:
        os._exit(0 if total() == first else 3)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], timeout=30, check=False)
    assert done.returncode == 0


def test_omp_num_threads_is_honoured(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = available_threads()
    assert 1 <= cores <= os.cpu_count()
    for value, expected in [("1", 1), ("100000", cores), ("0", cores), ("", cores), ("many", cores), ("4,2", cores)]:
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert available_threads() == expected
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert Threads().n_threads == 1
    assert Threads(5).n_threads == 5


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.usefixtures("two_blas_threads")
def test_contexts_that_overlap_hold_blas_until_the_last_is_left(order, n_threads):
    """In one thread, or each in its own thread, which goes on living."""
    workers = [ThreadPoolExecutor(1) for _ in range(n_threads)]
    threads = [workers[i % n_threads] for i in range(3)]
    executors = [Serial(), Threads(2), Serial()]
    try:
        with threadpool_limits(2, user_api="blas"):
            before = blas_threads()
            for thread, executor in zip(threads, executors, strict=True):
                thread.submit(executor.__enter__).result()
                assert set(blas_threads()) == {1}
            for i in order:
                assert set(blas_threads()) == {1}
                threads[i].submit(executors[i].__exit__, None, None, None).result()
            assert blas_threads() == before
        with threadpool_limits(1, user_api="blas"):  # other limits of this thread and of others still apply
            assert set(blas_threads()) == {1}
        assert blas_threads() == before

        def limited():
            with threadpool_limits(1, user_api="blas"):
                return blas_threads()

        assert set(threads[0].submit(limited).result()) == {1}
    finally:
        for worker in workers:
            worker.shutdown()


@pytest.mark.usefixtures("two_blas_threads")
def test_the_number_of_blas_threads_returns_after_fits_that_overlap(make_mixture):
    problem, source, params = make_mixture(n=200)

    def fit(n_threads):
        run(problem, source, params, stop=Stop(1e-9, 3), executor=Threads(n_threads))

    before = blas_threads()
    with ThreadPoolExecutor(8) as users:
        for _ in range(4):
            list(users.map(fit, [1, 2] * 10))
            assert blas_threads() == before


class Library:
    """What threadpoolctl knows of a BLAS library."""

    def __init__(self, threading_layer):
        self.threading_layer = threading_layer
        self.state = threading.local() if threading_layer == "openmp" else SimpleNamespace()

    def get_num_threads(self):
        return getattr(self.state, "n_threads", 4)

    def set_num_threads(self, n_threads):
        self.state.n_threads = n_threads


def test_a_limit_of_each_thread_is_held_in_each_thread(monkeypatch):
    """OpenBLAS with OpenMP has a number of threads for each thread that calls it; other libraries one per process."""
    library = Library("openmp")
    monkeypatch.setattr("mixent.core.executors._blas", lambda: [library])
    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        for user in (first, second):
            user.submit(Serial().__enter__).result()
            assert user.submit(library.get_num_threads).result() == 1
        assert library.get_num_threads() == 4
        for user in (first, second):
            user.submit(Serial().__exit__, None, None, None).result()
            assert user.submit(library.get_num_threads).result() == 4


def test_the_threads_of_a_pool_have_their_own_limit(monkeypatch):
    library = Library("openmp")
    monkeypatch.setattr("mixent.core.executors._blas", lambda: [library])
    _pool.cache_clear()
    source = ArrayBlocks(Block(np.arange(100.0)[:, None]), 7)
    try:
        with Threads(3) as workers:
            assert set(workers.map(lambda block: library.get_num_threads(), source)) == {1}
        assert library.get_num_threads() == 4
    finally:
        _pool.cache_clear()
