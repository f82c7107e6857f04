"""The search for a solution, the solution, and what a family of discriminant functions must offer.

Every solver returns a `Solution`: the expected scores, the multipliers, the minimum of the relative entropy, the value
of the dual, and the gap between the two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import Blocks
from mixent.core.driver import Event, Halt, Observer, Run, Status, Stop, run
from mixent.core.executors import Executor, Serial
from mixent.core.observers import Progress
from mixent.med.constraints import PairConstraints
from mixent.med.margins import Fixed, MarginPrior

WINDOW = 50  # passes from whose gains the end of a run is forecast
TOO_SLOW = "the duality gap falls too slowly to be closed within max_iter passes"
REMEDY = "set a smaller C, or check for huge weights"

# The method of multipliers for a fixed margin:
MAX_ROUNDS = 60
SLOW = 0.25  # C grows where a round leaves more than this fraction of the shortfall
FEASIBLE, INFEASIBLE = 1e-10, 1e-4  # relative shortfalls at which it stops, and above which it fails
ROUNDING = 1e-8  # relative shortfall at which it stops if a round does not reduce it much


@dataclass(frozen=True)
class Search:
    """Stopping rule, executor and observers of an optimization."""

    gap: float = 1e-6  # nats per unit of weight
    max_iter: int = 1000
    executor: Executor = field(default_factory=Serial)
    observers: Sequence[Observer] = ()
    label_rounds: int | None = None  # most rounds of label updates; None: as many as the user allows

    @property
    def stop(self) -> Stop:
        return Stop(1e-14, self.max_iter, gap=self.gap)

    def with_progress(self, show: Progress | None) -> Search:
        """The search with an observer that updates the progress bar."""
        if show is None:
            return self

        def update(event: Event) -> None:
            show(event.n_pass, self.max_iter, f"pass {event.n_pass}, objective {event.objective:.6g}")

        return replace(self, observers=(*self.observers, update))

    def run(self, problem: Any, source: Blocks, start: Any) -> Run:
        """Run the driver; it ends early, with the status of `max_iter`, where that will not be enough."""
        forecast = Forecast(problem, self.gap * source.total_weight, self.max_iter)
        out = run(
            problem,
            source,
            start,
            stop=self.stop,
            executor=self.executor,
            observers=(*self.observers, forecast),
        )
        if out.message != TOO_SLOW:
            return out
        return replace(out, status=Status.MAX_PASSES, message=f"{TOO_SLOW}; {REMEDY}")


class Forecast:
    """Observer that stops a run whose gains, if they go on as in the last passes, will not close half of the gap."""

    def __init__(self, problem: Any, goal: float, max_iter: int) -> None:
        self.problem, self.goal, self.max_iter = problem, goal, max_iter
        self.earlier: tuple[int, float] | None = None  # pass and objective

    def __call__(self, event: Event) -> Halt | None:
        if self.earlier is None:
            self.earlier = event.n_pass, event.objective
        n_passes = event.n_pass - self.earlier[0]
        if n_passes < WINDOW:
            return None
        gain_per_pass = (event.objective - self.earlier[1]) / n_passes
        self.earlier = event.n_pass, event.objective
        gap = self.problem.gap(event.params, event.total)
        gap = -event.objective if gap is None else gap  # the dual is zero where all multipliers are
        possible = 0.5 * (gap - self.goal) <= gain_per_pass * (self.max_iter - event.n_pass)
        return None if possible else Halt(TOO_SLOW)


@dataclass(frozen=True)
class Solution:
    """The result of an optimization."""

    run: Run
    state: Any  # the fitted parameters: for predictions, and to start another optimization from
    multipliers: Array  # (n, pairs) or (n, constraints of a row)
    minimum: float  # D(P || P0) + sum w loss, an upper bound on the minimum relative entropy
    dual: float | None  # J(λ), a lower bound on it
    scores: Array  # (n, C) expected discriminant functions at the training rows; only their differences matter

    @property
    def gap(self) -> float | None:
        """Duality gap in nats: an upper bound on the distance from the optimum."""
        return None if self.dual is None else max(self.minimum - self.dual, 0.0)

    @property
    def lower_bound(self) -> float:
        """J(λ), or -inf where it does not exist."""
        return -np.inf if self.dual is None else self.dual


class Discriminant(ABC):
    """A family of discriminant functions with a prior distribution, on given rows."""

    @abstractmethod
    def solve(self, constraints: PairConstraints, margin: MarginPrior, search: Search, start: Any = None) -> Solution:
        """The minimum relative entropy solution for these constraints."""

    @abstractmethod
    def divergence(self, solution: Solution) -> float:
        """D(P(θ) || P0(θ)) at a solution."""


def method_of_multipliers(
    margin: Fixed, required: np.ndarray, solve: Callable[..., Any], C: float, growth: float, max_C: float
) -> tuple[Run, Array, float, Any]:
    """Solve for a fixed margin by the method of multipliers (augmented Lagrangian), with the penalty C^2 / 2.

    `solve(C, lam)` solves with the Gaussian prior N(target + lam / C^2, 1 / C^2) instead. It returns the run, the new
    multipliers (n, P), the margins (n, P) and anything else, of which the last is returned. C grows by `growth` up to
    `max_C`. `required` (n, P) selects the margins that must reach the target.
    """
    lam, shortfall = np.zeros(required.shape), np.inf
    for _ in range(MAX_ROUNDS):
        run, lam, margins, extra = solve(C, lam)
        previous, shortfall = shortfall, float((margin.target - margins)[required].max(initial=0.0))
        if shortfall <= FEASIBLE * abs(margin.target) or run.status is Status.STOPPED:
            break
        if shortfall > SLOW * previous:
            if max_C <= C or shortfall <= ROUNDING * abs(margin.target):
                break
            C *= growth
    if shortfall > INFEASIBLE * abs(margin.target):
        raise ValueError(
            f"no solution satisfies the fixed margin {margin.target:.3g} for every row (largest shortfall "
            f"{shortfall:.3g}): the rows cannot be separated by that margin; set a smaller target, or margin='laplace'"
        )
    return run, lam, C, extra
