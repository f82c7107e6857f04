"""Threads where there is enough work for them, the same for every estimator."""

from __future__ import annotations

from mixent.base.params import check_jobs
from mixent.core.executors import Executor, Serial, Threads

SMALL = 120_000  # rows x components below which threads cost more than they gain


def choose_executor(n_jobs: int | None, n_rows: int, n_components: int) -> Executor:
    """Threads when there is work for them.

    Parameters
    ----------
    n_jobs : int or None
        As given by the user; None and -1 take all cores.
    n_rows, n_components : int
        Their product is the work of one pass.
    """
    n_jobs = check_jobs(n_jobs)
    if n_jobs == 1 or n_rows * n_components < SMALL:
        return Serial()
    return Threads(None if n_jobs in (None, -1) else n_jobs)
