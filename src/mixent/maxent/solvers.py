"""Solve a maximum entropy problem, by any of several ways to the same optimum."""

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
    longest,
    start,
)

# "auto" is Newton's method on small tables and whitened L-BFGS on others; see `newton` and `_ascend`
SOLVERS = ("auto", "bohning", "iis", "lbfgs")
WIDEST = 3000  # cells; beyond, a Gram matrix takes longer to factorize than the passes it saves
SAMPLED = 8192  # rows whose Gram matrix stands for that of all as a preconditioner, or 16 for each cell
MANY = 8  # times as many rows: their Hessian, too, is worth estimating from a sample
MULTIPLIERS = 2000  # beyond, factorizing the Hessian takes longer than the passes it saves
PRESOLVED = 50  # passes over the sample at most
QUICK = 3e7  # multiplications of a Newton step, up to which it beats many passes that need not end at the last digit
POLISHED = 1e-14  # gain per row of the last step on the class term: its slope is then the square of that step


@dataclass(frozen=True)
class Solved:
    """The optimum, and what certifies it."""

    problem: MaxEntProblem
    run: Run
    gap: float | None  # upper bound of the objective still to be had, per row; None without a prior
    residual: float  # largest |P_m - P_g|
    gain: float | None = None  # lower bound of the same: what the next update would gain at least, per row


@dataclass(frozen=True)
class Sums:
    """What is summed once per table and serves every prior and solver."""

    source: RowBlocks
    truth: Array
    longest: float  # the largest |phi_t|^2
    cells: Cells
    matrices: bool  # may solvers use Gram matrices?
    found: dict[str, Array] = field(default_factory=dict, repr=False)  # counted at first use
    kept: dict[str, Any] = field(default_factory=dict, repr=False)  # the rows in other coordinates, likewise

    @staticmethod
    def of(cells: Cells, rows: Rows, executor: Executor, gram: bool = True) -> Sums:
        """Count the truth. A Gram matrix, where `gram` allows one, is counted when a solver first asks for it."""
        source = RowBlocks(rows.ordered())
        truth = count_truth(cells, source, executor)
        return Sums(source, truth, longest(cells, source, executor), cells, gram and cells.n_cells <= WIDEST)

    def gram(self, executor: Executor) -> Array:
        """Of all rows: with it curvature is bounded."""
        if "gram" not in self.found:
            self.found["gram"] = gram_matrix(self.cells, self.source, executor)
        return self.found["gram"]

    def sampled_gram(self, executor: Executor) -> Array:
        """Of some rows, in proportion: no bound of anything, but the same shape."""
        if "gram" in self.found:
            return self.found["gram"]
        if "sampled" not in self.found:
            self.found["sampled"] = gram_matrix(self.cells, self.sample, executor)
        return self.found["sampled"]

    @cached_property
    def sample(self) -> RowBlocks:
        """Some rows that weigh as much as all: enough for a preconditioner."""
        some = self.source.sample(max(SAMPLED, 16 * self.cells.n_cells))
        if some is self.source:
            return some
        scale = self.source.total_weight / some.total_weight
        return RowBlocks(replace(some.rows, target=scale * some.rows.target, weight=scale * some.rows.weight))

    def spanned(self, variance: Variance, executor: Executor) -> tuple[Sums, Spanned]:
        """The same rows in their own coordinates; priors that differ by a factor share them."""
        relative = np.asarray(variance) / np.max(variance)  # type: ignore[arg-type]
        if "spanned" not in self.kept or not np.allclose(self.kept["spanned"][0], relative, rtol=1e-12, atol=0):
            found = Spanned.of(self.cells, self.source.rows, variance)
            cells, rows = found.turned
            self.kept["spanned"] = relative, (Sums.of(cells, rows, executor), found)
        return self.kept["spanned"][1]

    def row_sums(self, executor: Executor) -> Array:
        """Of the Gram matrix, which need not be counted for this."""
        if "row sums" not in self.found:
            self.found["row sums"] = gram_row_sums(self.cells, self.source, executor)
        return self.found["row sums"]


def total_at(problem: MaxEntProblem, params: Multipliers, source: RowBlocks, executor: Executor) -> Any:
    """The statistics of all rows."""
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
    first: Multipliers | None = None,
    show: Any = None,
) -> Solved:
    """Maximize the penalized likelihood from `first` (default: class shares, nothing known of the features)."""
    observers = [] if show is None else [ShowProgress(show, stop.max_passes)]
    few = solver == "auto" and sums.matrices and is_small(sums.source.n_rows, *sums.truth.shape)
    problem = _problem(cells, sums, variance, "bohning" if few else solver, executor, mask)
    params = start(sums.truth) if first is None else first
    if solver == "auto" and _spans(sums, variance, mask):
        _, params = approach(cells, sums, variance, stop, executor, mask, first)
    if few:
        done = run(_as(Newton, problem), sums.source, params, stop=stop, executor=executor, observers=observers)
    elif solver in ("auto", "lbfgs"):
        done = _ascend(problem, sums, params, stop, executor, observers)
    else:
        bold = SteadySquarem()
        done = run(problem, sums.source, params, stop=stop, executor=executor, observers=observers, propose=bold)
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


def approach(
    cells: Cells,
    sums: Sums,
    variance: Variance,
    stop: Stop,
    executor: Executor,
    mask: Array | None = None,
    first: Multipliers | None = None,
) -> tuple[MaxEntProblem, Multipliers]:
    """As `solve`, for comparing priors: near the optimum in as little time as may be, without a certificate."""
    params = start(sums.truth) if first is None else first
    common = (cells, sums.truth, variance, sums.source.total_weight, mask)
    if _spans(sums, variance, mask):
        inside, spanned = sums.spanned(variance, executor)
        inner = None if first is None else spanned.there(first)
        _, found = approach(inside.cells, inside, float(np.max(variance)), stop, executor, None, inner)  # type: ignore[arg-type]
        return Bohning(*common, longest=sums.longest), spanned.back(found)
    n_cells, n_classes = sums.truth.shape
    if sums.matrices and is_small(sums.source.n_rows, n_cells, n_classes, QUICK):
        newton = Newton(*common, longest=sums.longest)
        return newton, run(newton, sums.source, params, stop=stop, executor=executor).params
    problem = Bohning(*common, longest=sums.longest)
    return problem, _ascend(problem, sums, params, stop, executor, ()).params


def _spans(sums: Sums, variance: Variance, mask: Array | None) -> bool:
    """Are there so many more cells than rows that the rows' own coordinates are the better ones?"""
    n = sums.source.n_rows
    return variance is not None and mask is None and n <= MOST_ROWS and 2 * n <= sums.cells.n_cells


def _problem(
    cells: Cells, sums: Sums, variance: Variance, solver: str, executor: Executor, mask: Array | None
) -> MaxEntProblem:
    common = (cells, sums.truth, variance, sums.source.total_weight, mask)
    if solver == "iis":
        numbers = tuple(np.unique(sums.source.rows.sums).tolist())
        return Scaling(*common, longest=sums.longest, n_features=numbers)
    if solver != "bohning":  # a bound is needed for the certified gain only: one without a matrix will do
        bound = Diagonal.of(sums.row_sums(executor), variance)
        return Bohning(*common, longest=sums.longest, curvature=bound)
    if not sums.matrices:
        raise ValueError(
            f"solver='bohning' needs the Gram matrix of all {cells.n_cells} cells, and at most {WIDEST} are "
            "reasonable; use solver='lbfgs'"
        )
    return Bohning(*common, longest=sums.longest, curvature=Curvature(sums.gram(executor), variance, mask))


def _ascend(
    problem: MaxEntProblem,
    sums: Sums,
    params: Multipliers,
    stop: Stop,
    executor: Executor,
    observers: Sequence[Observer],
) -> Run:
    """Whitened L-BFGS: coordinates in which the curvature is about the identity.

    Why "auto" comes here: beside the fixed bound with SQUAREM it takes a third of the passes where classes overlap and
    a sixth where they hardly do, and needs no Gram matrix of all rows. With many rows the problem is first solved for a
    sample of them; the sample's Hessian there halves the passes once more, or better.
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
        near = run_lbfgs(small, sample, WhiteChart(small, white), params, stop=Stop(1e-3, PRESOLVED), executor=executor)
        if not near.status.failed:
            params = near.params
            rows = sample.rows.part(slice(None, None, 2))  # half of them will do
            rows = replace(rows, weight=2 * rows.weight)
            post = np.exp(problem.log_posterior(params, rows))
            with suppress(np.linalg.LinAlgError):  # beyond single precision: the coordinates above will do
                chart = WhiteChart(problem, Hessian(problem.cells, rows, post, problem.variance))
    return run_lbfgs(problem, sums.source, chart, params, stop=stop, executor=executor, observers=observers)


def _many(sums: Sums) -> bool:
    return sums.source.n_rows >= MANY * sums.sample.n_rows and sums.truth.size <= MULTIPLIERS


def _polish(problem: MaxEntProblem, sums: Sums, done: Run, solver: str, executor: Executor) -> Run:
    """A few passes of Newton's method on the class term: the same history goes on, and never falls.

    L-BFGS compares objectives, which are blind below the root of rounding: on a small table all multipliers take part.
    """
    if done.last is None or done.status.failed:
        return done
    small = solver == "lbfgs" and is_small(sums.source.n_rows, *sums.truth.shape)
    last = replace(done.last, step=1.0, memory=None)
    stop = Stop(POLISHED, done.n_passes + 4)
    more = run(_as(Newton if small else ClassTerm, problem), sums.source, resume=last, stop=stop, executor=executor)
    return replace(more, status=done.status, message=done.message)


def _as(kind: type[MaxEntProblem], problem: MaxEntProblem) -> MaxEntProblem:
    """The same problem with another update."""
    common = (problem.cells, problem.truth, problem.variance, problem.total_weight, problem.mask)
    return kind(*common, longest=problem.longest)
