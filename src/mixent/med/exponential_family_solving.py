"""The solver of problems of exponential families, for every margin prior."""

from __future__ import annotations

from dataclasses import replace

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
from mixent.med.solving import Search, Solution, method_of_multipliers

NEWTON_STEPS = 30  # Newton steps before the local problems are solved exactly
GROWTH, MAX_GROWTH = 3.0, 1e8  # factor by which C grows in the method of multipliers, and in all
MAX_BALANCING, BALANCED = 30, 1e-15  # changes of the multipliers, and the relative imbalance at which they end
MAX_LOCAL, MAX_ENTRIES = 2 * MAX_DIRECT, 5 * 10**7  # constraints of a local problem, and entries of their features


def solve(problem: ExponentialFamilyProblem, search: Search, start: JointDistribution | None = None) -> Solution:
    """The minimum relative entropy solution."""
    if isinstance(problem.margin, Fixed):
        return _solve_fixed_margin(problem, search, start or problem.prior)
    run = maximize(problem, search, start or problem.prior)
    lam = balance_multipliers(problem, problem.multipliers(run.params))
    dual = problem.dual(run.params, stats_at(problem, lam))
    return Solution(run, run.params, lam, -run.objective, dual, problem.training_scores(run.params))


def stats_at(problem: ExponentialFamilyProblem, lam: Array) -> FamilyStats:
    """The statistics of all rows at these multipliers (n, P)."""
    constraints = problem.constraints
    constant_loss = np.zeros(lam.shape)
    if not isinstance(problem.margin, Fixed):  # a fixed margin has no loss
        without_effect = constraints.imposed & ~constraints.effective
        constant_loss = np.where(without_effect, problem.margin.loss(constraints.offset), 0.0)
    return problem.stats_of(lam, constraints, problem.features, constant_loss)


def balance_multipliers(problem: ExponentialFamilyProblem, lam: Array) -> Array:
    """The multipliers, changed slightly to satisfy the equalities of a flat bias.

    The change of each is proportional to its distance from both bounds, so that none crosses a bound.
    """
    if len(problem.prior.bias) == 0 or np.isfinite(problem.bias_variance):
        return lam
    constraints, upper = problem.constraints, problem.margin.upper
    t, k = np.nonzero((lam > 0) & (constraints.weight > 0)[:, None])
    B = constraints.coefficients(t, k) @ problem.contrast  # (K, G)
    weight, values = constraints.weight[t], lam[t, k]
    for _ in range(MAX_BALANCING):
        excess = (weight * values) @ B
        if np.abs(excess).max(initial=0.0) <= BALANCED * float(weight @ values):
            break
        room = values if np.isinf(upper) else values * (1.0 - values / upper)
        relative = B @ np.linalg.lstsq((B * (weight * room)[:, None]).T @ B, excess, rcond=None)[0]
        change = -room * relative / max(1.0, 2.0 * float(np.abs(relative).max(initial=0.0)))
        values = np.minimum(values + change, problem.margin.largest)
    out = np.zeros_like(lam)
    out[t, k] = values
    return out


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


def _solve_fixed_margin(problem: ExponentialFamilyProblem, search: Search, start: JointDistribution) -> Solution:
    """The solution for a fixed margin; it begins with a small C, as a large one is slow if the margin is infeasible."""
    margin, constraints, params = problem.margin, problem.constraints, start
    assert isinstance(margin, Fixed)
    flat = np.isinf(problem.bias_variance)
    max_divergence = sum(part.max_divergence for part in problem.prior.parts) if flat else np.inf

    def solve_penalized(C: float, lam: Array) -> tuple[Run, Array, Array, None]:
        nonlocal params
        shifted = replace(constraints, offset=constraints.offset - lam / C**2)
        penalized = replace(problem, margin=Gaussian(C, margin.target), constraints=shifted)
        beyond = [] if np.isinf(max_divergence) else [_halt_beyond(penalized, max_divergence)]
        run = maximize(penalized, replace(search, observers=(*search.observers, *beyond)), params)
        params = run.params
        return run, penalized.multipliers(params), problem.margins(params), None

    required = constraints.effective & (constraints.weight > 0)[:, None]
    C = problem.first_C
    run, lam, _, _ = method_of_multipliers(margin, required, solve_penalized, C, GROWTH, MAX_GROWTH * C)
    lam = balance_multipliers(problem, lam)
    dual = problem.dual(params, stats_at(problem, lam))
    return Solution(run, params, lam, problem.divergence(params), dual, problem.training_scores(params))
