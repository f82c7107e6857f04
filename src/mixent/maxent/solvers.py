"""Solvers of the maximum entropy dual, which all reach the same optimum."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.core.driver import Observer, Run, Stop, run
from mixent.core.executors import Executor
from mixent.core.observers import ShowProgress
from mixent.core.proposals import SteadySquarem
from mixent.maxent.blocks import RowBlocks, Rows
from mixent.maxent.cells import Cells
from mixent.maxent.curvature import Curvature, Diagonal, Hessian, Variance, gram_matrix, gram_row_sums
from mixent.maxent.low_rank import MOST_ROWS, Spanned
from mixent.maxent.newton import Newton, is_small
from mixent.maxent.problem import (
    Bohning,
    ClassTerm,
    Expected,
    MaxEntProblem,
    Multipliers,
    Scaling,
    WhiteChart,
    count_truth,
    max_square,
    start,
)

# "auto" is Newton's method for small tables and preconditioned L-BFGS for others; see `newton` and `_lbfgs`
SOLVERS = ("auto", "bohning", "iis", "lbfgs")
WIDEST = 3000  # most cells for which factorizing a Gram matrix is faster than the passes it saves
SAMPLED = 8192  # rows (or 16 per cell) whose Gram matrix preconditions the problem of all rows
MANY = 8  # from this multiple of the sample on, the sample's Hessian is used as the preconditioner
MULTIPLIERS = 2000  # most multipliers for which factorizing the Hessian is faster than the passes it saves
PRESOLVE_PASSES = 50  # most passes over the sample
QUICK = 3e7  # multiplications up to which a Newton step is faster than L-BFGS at low precision
POLISH_TOL = 1e-14  # gain per row of the last Newton step on the class term


@dataclass(frozen=True)
class Solved:
    """The optimum and its optimality certificates."""

    problem: MaxEntProblem
    run: Run
    gap: float | None  # upper bound on the remaining gain of the objective per row; None without a prior
    residual: float  # largest |P_m - P_g|
    gain: float | None = None  # lower bound on the remaining gain per row: the guaranteed gain of the next update


@dataclass(frozen=True)
class Sums:
    """Sums over the rows that do not depend on the prior or the solver; matrices are computed at first use."""

    source: RowBlocks
    truth: Array
    max_square: float  # the largest |phi_t|^2
    cells: Cells
    matrices: bool  # whether solvers may use Gram matrices
    cache: dict[str, Array] = field(default_factory=dict, repr=False)
    span_cache: dict[str, Any] = field(default_factory=dict, repr=False)  # the rows in coordinates of their span

    @staticmethod
    def of(cells: Cells, rows: Rows, executor: Executor, gram: bool = True) -> Sums:
        """Compute the training counts; `gram` allows solvers to compute a Gram matrix."""
        source = RowBlocks(rows.ordered())
        truth = count_truth(cells, source, executor)
        return Sums(source, truth, max_square(cells, source, executor), cells, gram and cells.n_cells <= WIDEST)

    def gram(self, executor: Executor) -> Array:
        """The Gram matrix of all rows, which bounds the curvature."""
        if "gram" not in self.cache:
            self.cache["gram"] = gram_matrix(self.cells, self.source, executor)
        return self.cache["gram"]

    def sampled_gram(self, executor: Executor) -> Array:
        """An estimate of the Gram matrix from a sample of the rows; it is not a bound."""
        if "gram" in self.cache:
            return self.cache["gram"]
        if "sampled" not in self.cache:
            self.cache["sampled"] = gram_matrix(self.cells, self.sample, executor)
        return self.cache["sampled"]

    @cached_property
    def sample(self) -> RowBlocks:
        """A sample of the rows, reweighted to the total weight: sufficient for a preconditioner."""
        sample = self.source.sample(max(SAMPLED, 16 * self.cells.n_cells))
        if sample is self.source:
            return sample
        scale = self.source.total_weight / sample.total_weight
        return RowBlocks(replace(sample.rows, target=scale * sample.rows.target, weight=scale * sample.rows.weight))

    def spanned(self, variance: Variance, executor: Executor) -> tuple[Sums, Spanned]:
        """The rows in coordinates of their span, the same for all priors that differ by a factor only."""
        relative = np.asarray(variance) / np.max(variance)  # type: ignore[arg-type]
        cached = self.span_cache.get("spanned")
        if cached is None or not np.allclose(cached[0], relative, rtol=1e-12, atol=0):
            spanned = Spanned.of(self.cells, self.source.rows, variance)
            cells, rows = spanned.transformed
            self.span_cache["spanned"] = relative, (Sums.of(cells, rows, executor), spanned)
        return self.span_cache["spanned"][1]

    def row_sums(self, executor: Executor) -> Array:
        """Row sums of the Gram matrix, computed without the matrix."""
        if "row sums" not in self.cache:
            self.cache["row sums"] = gram_row_sums(self.cells, self.source, executor)
        return self.cache["row sums"]


def total_at(problem: MaxEntProblem, params: Multipliers, source: RowBlocks, executor: Executor) -> Any:
    """The statistics of all rows at given multipliers."""
    ready = problem.prepare(params)

    def stats(rows: Any) -> Expected:
        return problem.stats(ready, rows)

    return executor.total(stats, source)


def solve(
    cells: Cells,
    sums: Sums,
    variance: Variance,
    solver: str,
    stop: Stop,
    executor: Executor,
    mask: Array | None = None,
    init: Multipliers | None = None,
    show: Any = None,
) -> Solved:
    """Maximize the penalized likelihood, starting from `init` (default: the class frequencies)."""
    observers = [] if show is None else [ShowProgress(show, stop.max_passes)]
    newton = solver == "auto" and sums.matrices and is_small(sums.source.n_rows, *sums.truth.shape)
    problem = _problem(cells, sums, variance, "bohning" if newton else solver, executor, mask)
    params = start(sums.truth) if init is None else init
    if solver == "auto" and _use_span(sums, variance, mask):
        _, params = approximate(cells, sums, variance, stop, executor, mask, init)
    if newton:
        done = run(_as(Newton, problem), sums.source, params, stop=stop, executor=executor, observers=observers)
    elif solver in ("auto", "lbfgs"):
        done = _lbfgs(problem, sums, params, stop, executor, observers)
    else:
        squarem = SteadySquarem()
        done = run(problem, sums.source, params, stop=stop, executor=executor, observers=observers, propose=squarem)
    done = _polish(problem, sums, done, solver, executor)
    total = total_at(problem, done.params, sums.source, executor)
    gap, gain = problem.gap(done.params, total), problem.certified_gain(done.params, total)
    weight = max(sums.source.total_weight, 1e-300)
    return Solved(
        problem,
        done,
        None if gap is None else gap / weight,
        problem.residual(total),
        None if gain is None else gain / weight,
    )


def approximate(
    cells: Cells,
    sums: Sums,
    variance: Variance,
    stop: Stop,
    executor: Executor,
    mask: Array | None = None,
    init: Multipliers | None = None,
) -> tuple[MaxEntProblem, Multipliers]:
    """An approximate optimum in as little time as possible, without a certificate; used to compare priors."""
    params = start(sums.truth) if init is None else init
    common = (cells, sums.truth, variance, sums.source.total_weight, mask)
    if _use_span(sums, variance, mask):
        reduced, spanned = sums.spanned(variance, executor)
        reduced_init = None if init is None else spanned.to_span(init)
        largest = float(np.max(variance))  # type: ignore[arg-type]
        _, solution = approximate(reduced.cells, reduced, largest, stop, executor, None, reduced_init)
        return Bohning(*common, max_square=sums.max_square), spanned.from_span(solution)
    n_cells, n_classes = sums.truth.shape
    if sums.matrices and is_small(sums.source.n_rows, n_cells, n_classes, QUICK):
        newton = Newton(*common, max_square=sums.max_square)
        return newton, run(newton, sums.source, params, stop=stop, executor=executor).params
    problem = Bohning(*common, max_square=sums.max_square)
    return problem, _lbfgs(problem, sums, params, stop, executor, ()).params


def _use_span(sums: Sums, variance: Variance, mask: Array | None) -> bool:
    """Whether there are so many more cells than rows that coordinates of the span of the rows are faster."""
    n = sums.source.n_rows
    return variance is not None and mask is None and n <= MOST_ROWS and 2 * n <= sums.cells.n_cells


def _problem(
    cells: Cells, sums: Sums, variance: Variance, solver: str, executor: Executor, mask: Array | None
) -> MaxEntProblem:
    common = (cells, sums.truth, variance, sums.source.total_weight, mask)
    if solver == "iis":
        numbers = tuple(np.unique(sums.source.rows.sums).tolist())
        return Scaling(*common, max_square=sums.max_square, n_features=numbers)
    if solver != "bohning":  # a bound is only needed for the certified gain: the diagonal bound is sufficient
        bound = Diagonal.of(sums.row_sums(executor), variance)
        return Bohning(*common, max_square=sums.max_square, curvature=bound)
    if not sums.matrices:
        raise ValueError(
            f"solver='bohning' requires the Gram matrix of the features and supports at most {WIDEST} values of all "
            f"features; got {cells.n_cells}; use solver='lbfgs'"
        )
    curvature = Curvature(sums.gram(executor), variance, mask)
    return Bohning(*common, max_square=sums.max_square, curvature=curvature)


def _lbfgs(
    problem: MaxEntProblem,
    sums: Sums,
    params: Multipliers,
    stop: Stop,
    executor: Executor,
    observers: Sequence[Observer],
) -> Run:
    """Preconditioned L-BFGS, in coordinates in which the curvature is approximately the identity.

    Compared with the fixed bound and SQUAREM, it needs a third of the passes where classes overlap and a sixth where
    they hardly do, and no Gram matrix of all rows. With many rows, the problem is first solved for a sample of the
    rows; the Hessian of the sample at its optimum reduces the number of passes to half or less.
    """
    from mixent.core.lbfgs import run_lbfgs  # imports scipy.optimize

    white: Curvature | Diagonal | Hessian
    if not sums.matrices:
        white = Diagonal.of(sums.row_sums(executor), problem.variance)
    else:
        white = Curvature(sums.sampled_gram(executor), problem.variance, problem.mask)
    chart = WhiteChart(problem, white)
    if sums.matrices and problem.mask is None and _many(sums):
        sample = sums.sample
        small = replace(problem, truth=count_truth(problem.cells, sample, executor))
        presolve = Stop(1e-3, PRESOLVE_PASSES)
        solution = run_lbfgs(small, sample, WhiteChart(small, white), params, stop=presolve, executor=executor)
        if not solution.status.failed:
            params = solution.params
            rows = sample.rows.part(slice(None, None, 2))  # half of the sample is sufficient
            rows = replace(rows, weight=2 * rows.weight)
            post = np.exp(problem.log_posterior(params, rows))
            with suppress(np.linalg.LinAlgError):  # not positive definite in single precision: keep the chart above
                chart = WhiteChart(problem, Hessian(problem.cells, rows, post, problem.variance))
    return run_lbfgs(problem, sums.source, chart, params, stop=stop, executor=executor, observers=observers)


def _many(sums: Sums) -> bool:
    """Whether the Hessian of a sample is worth computing."""
    return sums.source.n_rows >= MANY * sums.sample.n_rows and sums.truth.size <= MULTIPLIERS


def _polish(problem: MaxEntProblem, sums: Sums, done: Run, solver: str, executor: Executor) -> Run:
    """Continue a run with a few passes of Newton's method on the class term.

    L-BFGS compares objectives, which limits the precision of the multipliers to the square root of the rounding error;
    on a small table, Newton's method therefore refines all multipliers.
    """
    if done.last is None or done.status.failed:
        return done
    small = solver == "lbfgs" and is_small(sums.source.n_rows, *sums.truth.shape)
    last = replace(done.last, step=1.0, memory=None)
    stop = Stop(POLISH_TOL, done.n_passes + 4)
    more = run(_as(Newton if small else ClassTerm, problem), sums.source, resume=last, stop=stop, executor=executor)
    return replace(more, status=done.status, message=done.message)


def _as(kind: type[MaxEntProblem], problem: MaxEntProblem) -> MaxEntProblem:
    """The same problem with another update."""
    common = (problem.cells, problem.truth, problem.variance, problem.total_weight, problem.mask)
    return kind(*common, max_square=problem.max_square)
