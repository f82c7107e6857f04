"""Latent variables (001, section 4.1): a lower bound on the log-probability of every row, and two alternating steps.

For any distribution Q_t over the hidden variables h of row t,  log p(x_t) >= E_Q log p(x_t, h) + H(Q_t).  With this
bound in place of the log-probability the margin constraints are linear again. Step 1 finds the minimum relative entropy
solution for given Q. Step 2 finds the Q that maximizes the bounds, which relaxes every constraint, so the relative
entropy never rises (Theorem 6).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.core.blocks import NumberedRows, Whole
from mixent.core.driver import Problem, Run, Stop, run
from mixent.core.executors import Serial
from mixent.core.stats import Stats
from mixent.med.solving import Search, Solution


@dataclass(frozen=True)
class LatentSolution:
    """Distributions of the hidden variables of each row, and the solution for them."""

    hidden: Any
    solution: Solution


@dataclass(frozen=True)
class RowCount(Stats):
    """Total weight of the rows: the updates need no statistics."""

    weight: float


@dataclass(frozen=True)
class LatentProblem(Problem[LatentSolution, LatentSolution, RowCount]):
    """Maximizes minus the relative entropy; one update consists of both steps."""

    solve: Callable[[Any, Solution | None], Solution]  # step 1, started from an earlier solution
    infer: Callable[[Solution], Any]  # step 2

    def start(self, hidden: Any) -> LatentSolution:
        return LatentSolution(hidden, self.solve(hidden, None))

    def prepare(self, params: LatentSolution) -> LatentSolution:
        return params

    def stats(self, ready: LatentSolution, block: NumberedRows) -> RowCount:  # type: ignore[override]
        return RowCount(float(block.weight.sum()))

    def objective(self, params: LatentSolution, total: RowCount) -> float:
        return -params.solution.minimum

    def update(self, params: LatentSolution, total: RowCount, step: float) -> LatentSolution:
        hidden = self.infer(params.solution)
        return LatentSolution(hidden, self.solve(hidden, params.solution))


def alternate_steps(problem: LatentProblem, hidden: Any, weight: np.ndarray, search: Search, tol: float) -> Run:
    """Alternate both steps until the relative entropy converges; the params of the run are a `LatentSolution`."""
    return run(
        problem,
        Whole(weight),
        problem.start(hidden),
        stop=Stop(tol, search.max_iter),
        executor=Serial(),
        observers=search.observers,
    )
