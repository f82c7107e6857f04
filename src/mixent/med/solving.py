"""The search for a solution, the solution, and what a family of discriminant functions must offer.

Every solver returns a `Solution`: the expected scores, the multipliers, the minimum of the relative entropy, the value
of the dual, and the gap between the two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import Blocks
from mixent.core.driver import Observer, Run, Status, Stop, run
from mixent.core.executors import Executor, Serial
from mixent.med.constraints import PairConstraints, contrasts
from mixent.med.gaussians import ClassNormalWisharts, GaussianProblem
from mixent.med.margins import Fixed, Gaussian, MarginPrior
from mixent.med.problem import MedProblem, SequentialProblem, balance_multipliers, row_blocks

MAX_LOCAL_ENTRIES = 10**8  # entries of the matrix of a local problem up to which it is formed
# The method of multipliers for a fixed margin:
FIRST_C = 1e3  # first C of the Gaussian prior, for features of norm 1
MAX_GROWTH = 1e5  # of C
MAX_ROUNDS = 60
SLOW = 0.25  # C grows where a round leaves more than this fraction of the shortfall
FEASIBLE, INFEASIBLE = 1e-10, 1e-4  # relative shortfalls at which it stops, and above which it fails
ROUNDING = 1e-8  # relative shortfall at which it stops if a round does not reduce it much


@dataclass(frozen=True)
class Search:
    """Stopping rule, executor and observers of an optimization."""

    gap: float = 1e-6  # nats per unit of weight
    max_iter: int = 1000
    executor: Executor | None = None
    observers: Sequence[Observer] = ()

    @property
    def stop(self) -> Stop:
        return Stop(1e-14, self.max_iter, gap=self.gap)

    def run(self, problem: Any, source: Blocks, start: Any) -> Run:
        """Run the driver."""
        return run(
            problem,
            source,
            start,
            stop=self.stop,
            executor=self.executor or Serial(),
            observers=self.observers,
        )


@dataclass(frozen=True)
class Solution:
    """The result of an optimization."""

    scores: Array  # (n, C) expected discriminant functions at the training rows; only their differences matter
    multipliers: Array  # (n, pairs)
    minimum: float  # D(P || P0) + sum w loss, an upper bound on the minimum relative entropy
    dual: float | None  # J(λ), a lower bound on it
    run: Run
    state: Any  # the fitted parameters: for predictions, and to start another optimization from

    @property
    def gap(self) -> float | None:
        """Duality gap in nats: an upper bound on the distance from the optimum."""
        return None if self.dual is None else max(self.minimum - self.dual, 0.0)


class Discriminant(ABC):
    """A family of discriminant functions with a prior distribution, on given rows."""

    @abstractmethod
    def solve(self, constraints: PairConstraints, margin: MarginPrior, search: Search, start: Any = None) -> Solution:
        """The minimum relative entropy solution for these constraints."""

    @abstractmethod
    def divergence(self, solution: Solution) -> float:
        """D(P(θ) || P0(θ)) at a solution."""


def _newton(
    problem: MedProblem,
    X: Array,
    constraints: PairConstraints,
    margin: MarginPrior,
    search: Search,
    start: Any,
    width: int,
) -> tuple[Run, Array, float, float | None]:
    """Newton's method: the run, and its multipliers, minimum and dual value."""
    if isinstance(margin, Fixed):
        return _solve_fixed_margin(problem, X, constraints, margin, search, start, width)
    source = row_blocks(X, constraints, width=width)
    run = _run(problem, source, search, start)
    lam = problem.multipliers(run.params, source.rows)
    if constraints.n_classes == 2 and np.isinf(problem.bias_variance):
        lam = balance_multipliers(lam, constraints)
        source = Blocks(replace(source.rows, lam=lam), source.row_bytes)
    total = (search.executor or Serial()).total(lambda block: problem.stats(run.params, block), source)
    return run, lam, -run.objective, problem.dual(run.params, total)


def _run(problem: Any, source: Blocks, search: Search, start: Any) -> Run:
    """Newton steps, then, if they do not converge, exact minima of local problems."""
    first = replace(search, max_iter=min(problem.newton_steps, search.max_iter)).run(problem, source, start)
    if first.status is Status.CONVERGED or first.n_passes >= search.max_iter:
        return first
    if np.count_nonzero(source.rows.signs) * source.rows.X.shape[1] * problem.outputs.shape[1] > MAX_LOCAL_ENTRIES:
        rest = search.run(problem, source, first.params)
        return replace(rest, n_passes=first.n_passes + rest.n_passes)
    precision = float(np.clip(1e-6 * search.gap, 1e-13, 1e-10))
    remaining = replace(search, max_iter=search.max_iter - first.n_passes)
    second = remaining.run(SequentialProblem(problem, source.rows, precision), source, first.params)
    return replace(second, n_passes=first.n_passes + second.n_passes)


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


def _solve_fixed_margin(
    problem: Any, X: Array, constraints: PairConstraints, margin: Fixed, search: Search, start: Any, width: int
) -> tuple[Run, Array, float, float | None]:
    """The solution for a fixed margin: the run, the multipliers, the divergence and the dual value."""
    C = FIRST_C * abs(margin.target)
    required = constraints.imposed & (constraints.signs != 0) & (constraints.weight > 0)[:, None]
    params = start

    def solve(C: float, lam: Array) -> tuple[Run, Array, Array, tuple[Any, Blocks]]:
        nonlocal params
        penalized = replace(problem, margin=Gaussian(C, margin.target))
        source = row_blocks(X, constraints, lam / C**2, width)
        run = _run(penalized, source, search, params)
        params = run.params
        margins = constraints.signs * (penalized.scores(params, X) @ penalized.outputs.T)
        return run, penalized.multipliers(params, source.rows), margins, (penalized, source)

    run, lam, C, (penalized, source) = method_of_multipliers(margin, required, solve, C, 10.0, MAX_GROWTH * C)
    total = (search.executor or Serial()).total(lambda block: penalized.stats(run.params, block), source)
    dual = penalized.dual(run.params, total)
    if dual is not None:  # of the fixed margin: without the terms of the Gaussian prior and its shift
        weighted_lam = constraints.weight[:, None] * lam
        dual += 0.5 * float((weighted_lam * lam).sum()) / C**2 - float((weighted_lam * source.rows.shift).sum())
    return run, lam, penalized.divergence(run.params), dual


class GaussianDiscriminant(Discriminant):
    """Log-ratios of Gaussians with Normal-Wishart distributions."""

    def __init__(self, X: Array, prior: ClassNormalWisharts, bias_variance: float) -> None:
        self.X, self.prior, self.bias_variance = X, prior, bias_variance
        self.contrast = contrasts(len(prior.classes))

    def problem(self, constraints: PairConstraints, margin: MarginPrior) -> GaussianProblem:
        """Equation 18 for these constraints."""
        return GaussianProblem(constraints.differences, margin, self.bias_variance, self.prior, self.contrast)

    def solve(self, constraints: PairConstraints, margin: MarginPrior, search: Search, start: Any = None) -> Solution:
        problem = self.problem(constraints, margin)
        d = self.X.shape[1]
        width = len(self.prior.classes) * (d + 1) * (d + 2) // 2
        start = self.prior if start is None else start
        run, lam, minimum, dual = _newton(problem, self.X, constraints, margin, search, start, width)
        return Solution(problem.scores(run.params, self.X), lam, minimum, dual, run, run.params)

    def divergence(self, solution: Solution) -> float:
        shift = solution.state.bias - self.prior.bias
        parts = [gaussian.divergence(prior) for gaussian, prior in zip(solution.state.classes, self.prior.classes)]
        return sum(parts) + 0.5 * float(shift @ shift) / self.bias_variance
