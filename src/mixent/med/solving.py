"""Linear and kernel discriminant functions, and the solvers of their optimization problems.

Every solver returns a `Solution`: the expected scores, the multipliers, the minimum of the relative entropy, the value
of the dual, and the gap between the two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixent.base.kernels import factor
from mixent.core.arrays import Array
from mixent.core.blocks import Blocks
from mixent.core.driver import Observer, Run, Status, Stop, run
from mixent.core.dual import BoxDual
from mixent.core.executors import Executor, Serial
from mixent.med.constraints import PairConstraints, contrasts
from mixent.med.margins import Fixed, Gaussian, MarginPrior
from mixent.med.problem import LinearProblem, MedProblem, Plane, SequentialProblem, balance_multipliers, row_blocks

MAX_LOCAL_ENTRIES = 10**8  # entries of the matrix of a local problem up to which it is formed
LARGE_C = 1e4  # from this bound on the multipliers, two classes are solved in the multipliers
MAX_KERNEL_ROWS = 5000  # most rows for that
FACTOR_ROWS, MAX_SWEEPS = 3000, 200  # up to so many rows, Newton's method takes over after so many sweeps of pairs
# The method of multipliers for a fixed margin:
FIRST_C = 1e3  # first C of the Gaussian prior, for features of norm 1
MAX_GROWTH = 1e5  # of C
MAX_ROUNDS = 60
SLOW = 0.25  # C grows where a round leaves more than this fraction of the shortfall
FEASIBLE, INFEASIBLE = 1e-8, 1e-4  # relative shortfalls at which it stops, and above which it fails


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
            if max_C <= C:
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
    norm = float(np.sqrt((X**2).sum(axis=1).mean())) if isinstance(problem, LinearProblem) else 1.0
    # multipliers grow as the features shrink; features of zero cannot have a margin
    C = FIRST_C * abs(margin.target) / (norm if norm > 1e-100 else 1.0)
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


class LinearDiscriminant(Discriminant):
    """Linear functions f(x) = θ x + b of features, θ ~ N(0, 1)."""

    def __init__(self, X: Array, n_classes: int, bias_variance: float) -> None:
        self.n_classes, self.bias_variance = n_classes, bias_variance
        self.contrast = contrasts(n_classes)
        # a flat bias absorbs any shift of the features; features far from zero would lose precision
        self.center = X.mean(axis=0) if np.isinf(bias_variance) else np.zeros(X.shape[1])
        self.X = X - self.center
        n, d = X.shape
        self.reduced = factor(self.X @ self.X.T) if d > n else self.X  # at most as many features as rows

    def solve(self, constraints: PairConstraints, margin: MarginPrior, search: Search, start: Any = None) -> Solution:
        nearly_hard = LARGE_C <= margin.upper < np.inf and len(self.X) <= MAX_KERNEL_ROWS
        if self.n_classes == 2 and nearly_hard:
            return self._solve_in_multipliers(constraints, margin, search)
        problem = LinearProblem(constraints.differences @ self.contrast, margin, self.bias_variance)
        plane = problem.start(self.reduced.shape[1]) if start is None else start
        run, lam, minimum, dual = _newton(problem, self.reduced, constraints, margin, search, plane, 0)
        scores = problem.scores(run.params, self.reduced) @ self.contrast.T
        return Solution(scores, lam, minimum, dual, run, run.params)

    def _solve_in_multipliers(self, constraints: PairConstraints, margin: MarginPrior, search: Search) -> Solution:
        """For a nearly hard margin, where the loss has almost a kink and only the multipliers are precise."""
        kernel = KernelDiscriminant(self.reduced @ self.reduced.T, self.n_classes, self.bias_variance)
        solution = kernel.solve(constraints, margin, search)
        expansion = solution.state
        return replace(solution, state=Plane(expansion.alpha.T @ self.reduced, expansion.bias))

    def divergence(self, solution: Solution) -> float:
        plane = solution.state
        return 0.5 * float((plane.coef**2).sum() + (plane.bias**2).sum() / self.bias_variance)

    def plane(self, solution: Solution, constraints: PairConstraints) -> Plane:
        """The solution as coefficients of the original features."""
        coef = solution.state.coef
        if self.reduced is not self.X:
            coef = dual_coefficients(solution, constraints, self.contrast).T @ self.X
        return Plane(coef, solution.state.bias - coef @ self.center)


def dual_coefficients(solution: Solution, constraints: PairConstraints, contrast: Array) -> Array:
    """(n, G) coefficients of the rows in the functions:  f_g = sum_t alpha_tg k(x_t, .),  alpha = w λ p e."""
    signed = constraints.weight[:, None] * solution.multipliers * constraints.signs
    return signed @ (constraints.differences @ contrast)


@dataclass(frozen=True)
class KernelExpansion:
    """Functions f_g = sum_t alpha_tg k(x_t, .) + bias_g."""

    alpha: Array  # (n, G)
    bias: Array  # (G,)
    plane: Plane | None = None  # the same functions as Newton's method has them, to start it from


class KernelDiscriminant(Discriminant):
    """Functions f ~ Gaussian process with kernel matrix K.

    Two classes are solved by ascent in pairs of multipliers, more classes by Newton's method on a factor of K.
    """

    def __init__(self, K: Array, n_classes: int, bias_variance: float) -> None:
        self.K, self.contrast, self.bias_variance = K, contrasts(n_classes), bias_variance
        self._linear: LinearDiscriminant | None = None

    def solve(self, constraints: PairConstraints, margin: MarginPrior, search: Search, start: Any = None) -> Solution:
        if constraints.n_classes == 2 and not isinstance(margin, Fixed):
            return self._solve_in_pairs(constraints, margin, search, start)
        return self._solve_by_newton(constraints, margin, search, start)

    def _solve_by_newton(
        self, constraints: PairConstraints, margin: MarginPrior, search: Search, start: Any
    ) -> Solution:
        if self._linear is None:
            self._linear = LinearDiscriminant(factor(self.K), constraints.n_classes, self.bias_variance)
        solution = self._linear.solve(constraints, margin, search, None if start is None else start.plane)
        alpha = dual_coefficients(solution, constraints, self.contrast)
        bias = self._linear.plane(solution, constraints).bias
        return replace(solution, state=KernelExpansion(alpha, bias, plane=solution.state))

    def _solve_in_pairs(
        self, constraints: PairConstraints, margin: MarginPrior, search: Search, start: Any
    ) -> Solution:
        imposed, weight = constraints.imposed[:, 0], constraints.weight
        sign = -constraints.signs[:, 0] * imposed  # f = F_1 - F_0
        flat = bool(np.isinf(self.bias_variance))
        kernel = self.K if flat else self.K + self.bias_variance
        dual = BoxDual(kernel, sign, weight, margin, balanced=flat)
        point = dual.start(None if start is None or start.alpha is None else start.alpha[:, 0])
        newton_may_follow = len(self.K) <= FACTOR_ROWS
        sweeps = min(MAX_SWEEPS, search.max_iter) if newton_may_follow else search.max_iter
        run = replace(search, max_iter=sweeps).run(dual, dual.source(), point)
        if run.status is Status.MAX_PASSES and newton_may_follow and search.max_iter > MAX_SWEEPS:
            return self._solve_by_newton(constraints, margin, search, None)
        end = run.params
        alpha = dual.alpha(end)
        constant = dual.constant(end)
        bias = constant if dual.balanced else self.bias_variance * float(alpha.sum())
        f = end.f + constant
        divergence = 0.5 * float(alpha @ end.f)
        loss = float(weight @ np.where(imposed, margin.loss(sign * f), 0.0))
        constant_loss = weight @ np.where(imposed & (sign == 0), margin.loss(0.0 * f), 0.0)
        lam = np.where(sign != 0, end.lam, 0.0)[:, None]
        expansion = KernelExpansion(alpha[:, None], np.array([bias]))
        scores = f[:, None] * self.contrast.T
        return Solution(scores, lam, divergence + loss, run.objective + float(constant_loss), run, expansion)

    def divergence(self, solution: Solution) -> float:
        alpha, bias = solution.state.alpha, solution.state.bias
        squared_norm = float((alpha * (self.K @ alpha)).sum())
        return 0.5 * (squared_norm + float(bias @ bias) / self.bias_variance)
