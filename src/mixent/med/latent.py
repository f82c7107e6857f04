"""Latent variables (001, section 4.1): a lower bound of every row's log-probability, and two steps.

For any distribution Q_t over what is hidden in row t,  log p(x_t) >= E_Q log p(x_t, h) + H(Q_t).  With the bound in
place of the log-probability the demands are linear again. Step 1 finds the solution of least relative entropy for
given Q, step 2 the Q of the highest bounds, which relaxes every demand: the relative entropy never rises (Theorem 6).
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
from mixent.med.exponential_family_solving import JointSolution
from mixent.med.solving import Search


@dataclass(frozen=True)
class LatentSolution:
    """What is hidden in each row, and the solution for it."""

    hidden: Any
    found: JointSolution


@dataclass(frozen=True)
class Nothing(Stats):
    rows: float


@dataclass(frozen=True)
class LatentProblem(Problem[LatentSolution, LatentSolution, Nothing]):
    """Maximizes minus the relative entropy; one update is both steps."""

    solve: Callable[[Any, JointSolution | None], JointSolution]  # step 1, from an earlier solution
    reveal: Callable[[JointSolution], Any]  # step 2

    def start(self, hidden: Any) -> LatentSolution:
        return LatentSolution(hidden, self.solve(hidden, None))

    def prepare(self, params: LatentSolution) -> LatentSolution:
        return params

    def stats(self, ready: LatentSolution, block: NumberedRows) -> Nothing:  # type: ignore[override]
        return Nothing(float(block.weight.sum()))

    def objective(self, params: LatentSolution, total: Nothing) -> float:
        return -params.found.minimum

    def update(self, params: LatentSolution, total: Nothing, step: float) -> LatentSolution:
        hidden = self.reveal(params.found)
        return LatentSolution(hidden, self.solve(hidden, params.found))


def alternate_steps(problem: LatentProblem, hidden: Any, weight: np.ndarray, search: Search, tol: float) -> Run:
    """Both steps until the relative entropy stands still; the run's params are a `Guess`."""
    return run(
        problem,
        Whole(weight),
        problem.start(hidden),
        stop=Stop(tol, search.max_iter),
        executor=Serial(),
        observers=search.observers,
    )
