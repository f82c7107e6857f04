"""Solve a maximum entropy problem by one of three ways to the same optimum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.core.driver import Run, Stop, run
from mixent.core.executors import Executor
from mixent.core.observers import ShowProgress
from mixent.core.proposals import Squarem
from mixent.maxent.cells import Cells
from mixent.maxent.problem import (
    Bohning,
    Curvature,
    Expected,
    MaxEntProblem,
    Multipliers,
    Scaling,
    WhiteChart,
    count_truth,
    gram_matrix,
    start,
)
from mixent.maxent.rows import RowBlocks, Rows

SOLVERS = ("bohning", "iis", "lbfgs")


@dataclass(frozen=True)
class Solved:
    """The optimum, and what certifies it."""

    problem: MaxEntProblem
    run: Run
    gap: float | None  # upper bound of the objective still to be had, per row; None without a prior
    residual: float  # largest |P_m - P_g|


@dataclass(frozen=True)
class Sums:
    """What is summed once per table and serves every prior and solver."""

    source: RowBlocks
    truth: Array
    gram: Array | None

    @staticmethod
    def of(cells: Cells, rows: Rows, executor: Executor, gram: bool) -> Sums:
        source = RowBlocks(rows.ordered())
        truth = count_truth(cells, source, executor)
        return Sums(source, truth, gram_matrix(cells, source, executor) if gram else None)


def total_at(problem: MaxEntProblem, params: Multipliers, source: RowBlocks, executor: Executor) -> Expected:
    """The statistics of all rows."""

    def stats(rows: Any) -> Expected:
        return problem.stats(params, rows)

    return executor.total(stats, source)


def solve(
    cells: Cells,
    sums: Sums,
    variance: float | None,
    solver: str,
    stop: Stop,
    executor: Executor,
    mask: Array | None = None,
    first: Multipliers | None = None,
    show: Any = None,
) -> Solved:
    """Maximise the penalised likelihood from `first` (default: class shares, nothing known of the features)."""
    source, truth = sums.source, sums.truth
    common = (cells, truth, variance, source.total_weight, mask)
    params = start(truth) if first is None else first
    observers = [] if show is None else [ShowProgress(show, stop.max_passes)]
    problem: MaxEntProblem
    if solver == "iis":
        problem = Scaling(*common, n_features=tuple(np.unique(source.rows.sums).tolist()))
        done = run(problem, source, params, stop=stop, executor=executor, observers=observers, propose=Squarem())
    else:
        assert sums.gram is not None
        curvature = Curvature(sums.gram, variance, mask)
        problem = Bohning(*common, curvature=curvature)
        if solver == "bohning":
            done = run(problem, source, params, stop=stop, executor=executor, observers=observers, propose=Squarem())
        else:
            from mixent.core.ascent import ascend  # imports scipy.optimize

            chart = WhiteChart(problem, curvature)
            done = ascend(problem, source, chart, params, stop=stop, executor=executor, observers=observers)
    total = total_at(problem, done.params, source, executor)
    gap = problem.gap(done.params, total)
    per_row = None if gap is None else gap / max(source.total_weight, 1e-300)
    return Solved(problem, done, per_row, problem.residual(total))
