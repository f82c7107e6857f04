"""Discriminant functions and how each is solved: linear, with a kernel, Gaussian.

All say the same of a solution: expected scores, multipliers, the minimum, the dual's value and the gap between.
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
from mixent.med.gaussians import Ensemble, GaussianProblem
from mixent.med.margins import Fixed, Gaussian, MarginPrior
from mixent.med.problem import LinearProblem, MedProblem, Plane, Sequential, balanced, row_blocks

MOST_LOCAL = 10**8  # numbers of a local problem, written out
HARD = 1e4  # bound of the multipliers from which two classes are solved in them
SQUARE = 5000  # most rows for that
STIFF = 1e3  # how a margin that is certain is approached: c of the Gaussian prior about it, for features of size 1
FACTOR, SWEEPS = 3000, 200  # rows up to which so many sweeps of pairs are enough before Newton takes over
ROUNDS = 60  # most approaches
HELD = 1e-8  # what may lack of a margin that is certain, relative
SLOW, HARDEST = 0.25, 1e5  # where so much is still lacking it is made stiffer, up to so many times
BROKEN = 1e-4  # what lacks of one that cannot be kept


@dataclass(frozen=True)
class Search:
    """How long to search, who computes, who watches."""

    gap: float = 1e-6  # nats per unit of weight
    max_iter: int = 1000
    executor: Executor | None = None
    observers: Sequence[Observer] = ()

    @property
    def stop(self) -> Stop:
        return Stop(1e-14, self.max_iter, gap=self.gap)

    def run(self, problem: Any, source: Blocks, start: Any) -> Run:
        """One run of the driver."""
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
    """Where a search ended."""

    scores: Array  # (n, C) expected discriminant functions at the training rows; differences count
    multipliers: Array  # (n, pairs)
    minimum: float  # D(P || P0) + sum w loss: the least relative entropy, from above
    dual: float | None  # J(l): from below
    run: Run
    state: Any  # what the next search may start from, and predictions need

    @property
    def gap(self) -> float | None:
        """Nats by which the solution may miss the optimum."""
        return None if self.dual is None else max(self.minimum - self.dual, 0.0)


class Discriminant(ABC):
    """A family of discriminant functions with a prior, on given rows."""

    @abstractmethod
    def solve(self, contests: PairConstraints, margin: MarginPrior, search: Search, start: Any = None) -> Solution:
        """The minimum relative entropy solution for these constraints."""

    @abstractmethod
    def divergence(self, solution: Solution) -> float:
        """D(P(theta) || P0(theta)) at a solution."""


def _newton(
    problem: MedProblem,
    X: Array,
    contests: PairConstraints,
    margin: MarginPrior,
    search: Search,
    start: Any,
    width: int,
) -> tuple[Run, Array, float, float | None]:
    """Run; multipliers, minimum and dual value at its end."""
    if isinstance(margin, Fixed):
        return _by_multipliers(problem, X, contests, margin, search, start, width)
    source = row_blocks(X, contests, width=width)
    found = _run(problem, source, search, start)
    lam = problem.multipliers(found.params, source.rows)
    if contests.n_classes == 2 and np.isinf(problem.bias_variance):
        lam = balanced(lam, contests)
        source = Blocks(replace(source.rows, lam=lam), source.row_bytes)
    total = (search.executor or Serial()).total(lambda block: problem.stats(found.params, block), source)
    return found, lam, -found.objective, problem.dual(found.params, total)


def _run(problem: Any, source: Blocks, search: Search, start: Any) -> Run:
    """Newton's steps while they serve, then one local problem after the other."""
    first = replace(search, max_iter=min(problem.newton_steps, search.max_iter)).run(problem, source, start)
    if first.status is Status.CONVERGED or first.n_passes >= search.max_iter:
        return first
    if np.count_nonzero(source.rows.signs) * source.rows.X.shape[1] * problem.outputs.shape[1] > MOST_LOCAL:
        rest = search.run(problem, source, first.params)
        return replace(rest, n_passes=first.n_passes + rest.n_passes)
    precise = float(np.clip(1e-6 * search.gap, 1e-13, 1e-10))
    more = replace(search, max_iter=search.max_iter - first.n_passes)
    second = more.run(Sequential(problem, source.rows, precise), source, first.params)
    return replace(second, n_passes=first.n_passes + second.n_passes)


def approach(
    margin: Fixed, live: np.ndarray, step: Callable[..., Any], stiff: float, harder: float, hardest: float
) -> tuple[Run, Array, float, Any]:
    """A certain margin by the method of multipliers: a stiff Gaussian about it, moved until no row lacks anything.

    `step(stiff, l)` solves with the Gaussian moved by l / stiff^2 and tells the run, the multipliers (n, P), what is
    kept (n, P), and what else is wanted of the last step; `live` (n, P) says which margins must be kept.
    """
    lam, lacking = np.zeros(live.shape), np.inf
    for _ in range(ROUNDS):
        found, lam, kept, rest = step(stiff, lam)
        before, lacking = lacking, float((margin.at - kept)[live].max(initial=0.0))
        if lacking <= HELD * abs(margin.at) or found.status is Status.STOPPED:
            break
        if lacking > SLOW * before:
            if stiff >= hardest:
                break
            stiff *= harder
    if lacking > BROKEN * abs(margin.at):
        raise ValueError(
            f"no solution keeps the fixed margin {margin.at:.3g} in every row (largest shortfall {lacking:.3g}): "
            f"the rows cannot be separated by that much; set a smaller target, or margin='laplace'"
        )
    return found, lam, stiff, rest


def _by_multipliers(
    problem: Any, X: Array, contests: PairConstraints, margin: Fixed, search: Search, start: Any, width: int
) -> tuple[Run, Array, float, float | None]:
    """A certain margin."""
    size = float(np.sqrt((X**2).sum(axis=1).mean())) if isinstance(problem, LinearProblem) else 1.0
    stiff = STIFF * abs(margin.at) / max(size, 1e-150)  # multipliers grow as the features shrink
    hardest = HARDEST * stiff
    live = contests.open & (contests.signs != 0) & (contests.weight > 0)[:, None]
    at = start

    def step(stiff: float, lam: Array) -> tuple[Run, Array, Array, tuple[Any, Blocks]]:
        nonlocal at
        soft = replace(problem, margin=Gaussian(stiff, margin.at))
        source = row_blocks(X, contests, lam / stiff**2, width)
        found = _run(soft, source, search, at)
        at = found.params
        kept = contests.signs * (soft.scores(at, X) @ soft.outputs.T)
        return found, soft.multipliers(at, source.rows), kept, (soft, source)

    found, lam, stiff, (soft, source) = approach(margin, live, step, stiff, 10.0, hardest)
    total = (search.executor or Serial()).total(lambda block: soft.stats(found.params, block), source)
    dual = soft.dual(found.params, total)
    if dual is not None:  # at l alone, without the stiff prior's part and the shift
        pushed = contests.weight[:, None] * lam
        dual += 0.5 * float((pushed * lam).sum()) / stiff**2 - float((pushed * source.rows.shift).sum())
    return found, lam, soft.divergence(found.params), dual


class LinearDiscriminant(Discriminant):
    """f(x) = theta x + b, theta ~ N(0, 1), on rows of features."""

    def __init__(self, X: Array, n_classes: int, bias_variance: float) -> None:
        self.n_classes, self.bias_variance = n_classes, bias_variance
        self.contrast = contrasts(n_classes)
        # a flat bias takes up any shift of the features; far from zero they would cost it its digits
        self.center = X.mean(axis=0) if np.isinf(bias_variance) else np.zeros(X.shape[1])
        self.X = X - self.center
        n, d = X.shape
        self.narrow = factor(self.X @ self.X.T) if d > n else self.X  # as many features as rows suffice

    def solve(self, contests: PairConstraints, margin: MarginPrior, search: Search, start: Any = None) -> Solution:
        hard = HARD <= margin.upper < np.inf and len(self.X) <= SQUARE
        if self.n_classes == 2 and hard:
            return self._through_the_kernel(contests, margin, search)
        problem = LinearProblem(contests.differences @ self.contrast, margin, self.bias_variance)
        plane = problem.start(self.narrow.shape[1]) if start is None else start
        found, lam, minimum, dual = _newton(problem, self.narrow, contests, margin, search, plane, 0)
        scores = problem.scores(found.params, self.narrow) @ self.contrast.T
        return Solution(scores, lam, minimum, dual, found, found.params)

    def _through_the_kernel(self, contests: PairConstraints, margin: MarginPrior, search: Search) -> Solution:
        """All but a hard margin: the loss is a kink, and the multipliers are what has digits."""
        kernel = KernelDiscriminant(self.narrow @ self.narrow.T, self.n_classes, self.bias_variance)
        found = kernel.solve(contests, margin, search)
        return replace(found, state=Plane(found.state.alpha.T @ self.narrow, found.state.bias))

    def divergence(self, solution: Solution) -> float:
        plane = solution.state
        return 0.5 * float((plane.coef**2).sum() + (plane.bias**2).sum() / self.bias_variance)

    def plane(self, solution: Solution, contests: PairConstraints) -> Plane:
        """The solution in the features themselves."""
        coef = solution.state.coef
        if self.narrow is not self.X:
            coef = row_pulls(solution, contests, self.contrast).T @ self.X
        return Plane(coef, solution.state.bias - coef @ self.center)


def row_pulls(solution: Solution, contests: PairConstraints, contrast: Array) -> Array:
    """(n, G): what each row adds to each function, w l p e."""
    pushed = contests.weight[:, None] * solution.multipliers * contests.signs
    return pushed @ (contests.differences @ contrast)


@dataclass(frozen=True)
class Field:
    """A function in a kernel's space: what the rows pull, and the bias."""

    alpha: Array  # (n, G)
    bias: Array  # (G,)
    plane: Plane | None = None  # where Newton's method may start again


class KernelDiscriminant(Discriminant):
    """f ~ a Gaussian process with this kernel. Two classes: pairs of multipliers; more: Newton on a factor of it."""

    def __init__(self, K: Array, n_classes: int, bias_variance: float) -> None:
        self.K, self.contrast, self.bias_variance = K, contrasts(n_classes), bias_variance
        self._linear: LinearDiscriminant | None = None

    def solve(self, contests: PairConstraints, margin: MarginPrior, search: Search, start: Any = None) -> Solution:
        if contests.n_classes == 2 and not isinstance(margin, Fixed):
            return self._in_pairs(contests, margin, search, start)
        return self._by_newton(contests, margin, search, start)

    def _by_newton(self, contests: PairConstraints, margin: MarginPrior, search: Search, start: Any) -> Solution:
        if self._linear is None:
            self._linear = LinearDiscriminant(factor(self.K), contests.n_classes, self.bias_variance)
        found = self._linear.solve(contests, margin, search, None if start is None else start.plane)
        alpha = row_pulls(found, contests, self.contrast)
        bias = self._linear.plane(found, contests).bias
        return replace(found, state=Field(alpha, bias, plane=found.state))

    def _in_pairs(self, contests: PairConstraints, margin: MarginPrior, search: Search, start: Any) -> Solution:
        pull = -contests.signs[:, 0] * contests.open[:, 0]  # f = F_1 - F_0
        flat = bool(np.isinf(self.bias_variance))
        kernel = self.K if flat else self.K + self.bias_variance
        dual = BoxDual(kernel, pull, contests.weight, margin, balanced=flat)
        point = dual.start(None if start is None or start.alpha is None else start.alpha[:, 0])
        few = len(self.K) <= FACTOR
        found = (replace(search, max_iter=min(SWEEPS, search.max_iter)) if few else search).run(
            dual, dual.source(), point
        )
        if found.status is Status.MAX_PASSES and few and search.max_iter > SWEEPS:
            return self._by_newton(contests, margin, search, None)
        end = found.params
        alpha = dual.alpha(end)
        constant = dual.constant(end)
        bias = constant if dual.balanced else self.bias_variance * float(alpha.sum())
        f = end.f + constant
        energy = 0.5 * float(alpha @ end.f)
        loss = float(contests.weight @ np.where(contests.open[:, 0], margin.loss(pull * f), 0.0))
        silent = contests.weight @ np.where(contests.open[:, 0] & (pull == 0), margin.loss(0.0 * f), 0.0)
        lam = np.where(pull != 0, end.lam, 0.0)[:, None]
        field = Field(alpha[:, None], np.array([bias]))
        scores = f[:, None] * self.contrast.T
        return Solution(scores, lam, energy + loss, found.objective + float(silent), found, field)

    def divergence(self, solution: Solution) -> float:
        field = solution.state
        energy = float((field.alpha * (self.K @ field.alpha)).sum())
        return 0.5 * (energy + float(field.bias @ field.bias) / self.bias_variance)


class GaussianDiscriminant(Discriminant):
    """Log-ratios of Gaussians with Normal-Wishart distributions."""

    def __init__(self, X: Array, prior: Ensemble, bias_variance: float) -> None:
        self.X, self.prior, self.bias_variance = X, prior, bias_variance
        self.contrast = contrasts(len(prior.classes))

    def problem(self, contests: PairConstraints, margin: MarginPrior) -> GaussianProblem:
        """Equation 18 for these constraints."""
        return GaussianProblem(contests.differences, margin, self.bias_variance, self.prior, self.contrast)

    def solve(self, contests: PairConstraints, margin: MarginPrior, search: Search, start: Any = None) -> Solution:
        problem = self.problem(contests, margin)
        d = self.X.shape[1]
        width = len(self.prior.classes) * (d + 1) * (d + 2) // 2
        begin = self.prior if start is None else start
        found, lam, minimum, dual = _newton(problem, self.X, contests, margin, search, begin, width)
        return Solution(problem.scores(found.params, self.X), lam, minimum, dual, found, found.params)

    def divergence(self, solution: Solution) -> float:
        away = solution.state.bias - self.prior.bias
        parts = [one.divergence(prior) for one, prior in zip(solution.state.classes, self.prior.classes)]
        return sum(parts) + 0.5 * float(away @ away) / self.bias_variance
