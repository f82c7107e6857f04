"""The solver of problems of exponential families, for every margin prior."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixent.core.arrays import Array
from mixent.core.driver import Event, Halt, Observer, Run
from mixent.med.exponential_family import (
    MAX_DIRECT,
    ExponentialFamilyProblem,
    FamilyStats,
    JointDistribution,
    SequentialFamilyProblem,
)
from mixent.med.margins import Fixed, Gaussian
from mixent.med.problem import balancing_factors
from mixent.med.solving import FIRST_C, MAX_GROWTH, Search, method_of_multipliers

NEWTON_STEPS = 30  # Newton steps before the local problems are solved exactly
SMALL_C, GROWTH = 1.0, 3.0  # first C of the method of multipliers, and the factor by which it grows
MAX_LOCAL, MAX_ENTRIES = 2 * MAX_DIRECT, 5 * 10**7  # constraints of a local problem, and entries of their features


@dataclass(frozen=True)
class JointSolution:
    """The result of an optimization."""

    run: Run
    joint: JointDistribution
    multipliers: Array  # (n, P)
    minimum: float  # D(P || P0) + sum w loss, an upper bound on the minimum relative entropy
    dual: float | None  # J(λ), a lower bound on it


def solve(problem: ExponentialFamilyProblem, search: Search, start: JointDistribution | None = None) -> JointSolution:
    """The minimum relative entropy solution."""
    if isinstance(problem.margin, Fixed):
        return _solve_fixed_margin(problem, search, start or problem.prior)
    run = maximize(problem, search, start or problem.prior)
    lam = balance_multipliers(problem, problem.multipliers(run.params))
    dual = problem.dual(run.params, stats_at(problem, lam))
    return JointSolution(run, run.params, lam, -run.objective, dual)


def stats_at(problem: ExponentialFamilyProblem, lam: Array) -> FamilyStats:
    """The statistics of all rows at these multipliers (n, P)."""
    constraints = problem.constraints
    constant_loss = np.zeros(lam.shape)
    if not isinstance(problem.margin, Fixed):  # a fixed margin has no loss
        without_effect = constraints.imposed & ~constraints.effective
        constant_loss = np.where(without_effect, problem.margin.loss(constraints.offset), 0.0)
    return problem.stats_of(lam, constraints, problem.features, constant_loss)


def balance_multipliers(problem: ExponentialFamilyProblem, lam: Array) -> Array:
    """The multipliers, scaled down to satisfy the equality of a single flat bias."""
    if problem.contrast.shape[1] != 1 or np.isfinite(problem.bias_variance):
        return lam
    constraints = problem.constraints
    bias_coef = constraints.margins(np.tile(problem.contrast.T, (len(lam), 1)))
    return lam * balancing_factors(constraints.weight[:, None] * lam * bias_coef)


def maximize(problem: ExponentialFamilyProblem, search: Search, start: JointDistribution) -> Run:
    """Newton steps, then, if they do not converge and the problem is small, exact minima of local problems."""
    n_constraints = np.count_nonzero(problem.constraints.effective)
    n_parameters = max(len(part.T) for part in problem.prior.parts)
    small = not problem.exact and n_constraints <= MAX_LOCAL and n_constraints * n_parameters <= MAX_ENTRIES
    steps = min(NEWTON_STEPS, search.max_iter) if small else search.max_iter
    first = replace(search, max_iter=steps).run(problem, problem.source(), start)
    if not small or first.status.ok or first.n_passes >= search.max_iter:
        return first
    precision = float(np.clip(1e-6 * search.gap, 1e-13, 1e-10))
    remaining = replace(search, max_iter=search.max_iter - first.n_passes)
    second = remaining.run(SequentialFamilyProblem(problem, precision), problem.source(), first.params)
    return replace(second, n_passes=first.n_passes + second.n_passes)


def _halt_beyond(problem: ExponentialFamilyProblem, max_divergence: float) -> Observer:
    """Stops a run when the dual, a lower bound on the minimum relative entropy, exceeds the largest possible value."""

    def observe(event: Event) -> Halt | None:
        lam = balance_multipliers(problem, problem.multipliers(event.params))
        bound = problem.dual(event.params, stats_at(problem, lam))
        infeasible = bound is not None and bound > max_divergence
        return Halt("the margins cannot be satisfied by any distribution") if infeasible else None

    return observe


def _solve_fixed_margin(problem: ExponentialFamilyProblem, search: Search, start: JointDistribution) -> JointSolution:
    """The solution for a fixed margin; it begins with a small C, as a large one is slow if the margin is infeasible."""
    margin, constraints, params = problem.margin, problem.constraints, start
    assert isinstance(margin, Fixed)
    flat = np.isinf(problem.bias_variance)
    max_divergence = sum(part.max_divergence for part in problem.prior.parts) if flat else np.inf

    def solve_penalized(C: float, lam: Array) -> tuple[Run, Array, Array, None]:
        nonlocal params
        shifted = replace(constraints, offset=constraints.offset - lam / C**2)
        penalized = replace(problem, margin=Gaussian(C, margin.target), constraints=shifted)
        observers = (*search.observers, _halt_beyond(penalized, max_divergence))
        run = maximize(penalized, replace(search, observers=observers), params)
        params = run.params
        return run, penalized.multipliers(params), problem.margins(params), None

    required = constraints.effective & (constraints.weight > 0)[:, None]
    max_C = MAX_GROWTH * FIRST_C
    run, lam, _, _ = method_of_multipliers(margin, required, solve_penalized, SMALL_C, GROWTH, max_C)
    lam = balance_multipliers(problem, lam)
    dual = problem.dual(params, stats_at(problem, lam))
    return JointSolution(run, params, lam, problem.divergence(params), dual)
