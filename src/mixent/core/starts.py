"""Several short runs, then one long run from the best of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, Generic, TypeVar

from mixent.core.blocks import BlockSource
from mixent.core.driver import Observer, Problem, Proposal, Run, Status, Stop, run
from mixent.core.executors import Executor
from mixent.show import Short

P = TypeVar("P")
Q = TypeVar("Q", bound=Problem[Any, Any, Any])

QUICK = Stop(1e-3, 60)  # for fits that are only compared, or followed by a longer run
Runner = Callable[..., Run[Any]]  # what `run` does, with its parameters
REVISIONS = 5  # largest number of times that a problem is revised


@dataclass(frozen=True, repr=False)
class Starts(Short, Generic[P]):
    """The short runs from all starts; `run` is the long run from the best."""

    short: tuple[Run[P], ...]  # empty when there was only one start
    best: int
    run: Run[P]
    resumed: int = 0  # number of times that a run was resumed, which takes a pass to compute the statistics again

    @property
    def n_passes(self) -> int:
        """Number of passes over the rows of all starts."""
        passes = sum(len(short.trace) for short in self.short) + self.resumed
        shared = 0  # what the history of the long run begins with
        if self.short:
            best = self.short[self.best]
            shared = len(best.trace if self.run.trace is best.trace or best.last is None else best.last.trace)
        return passes + len(self.run.trace) - shared


def best_of(
    problem: Problem[P, Any, Any],
    source: BlockSource,
    starts: Iterable[P],
    *,
    stop: Stop,
    short_passes: int = 20,
    executor: Executor | None = None,
    observers: Sequence[Observer] = (),
    propose: Proposal | None = None,
    runner: Runner = run,
) -> Starts[P]:
    """Run each start for a few passes, then continue from the one with the highest objective."""
    starts = list(starts)
    if len(starts) == 1:
        only = runner(problem, source, starts[0], stop=stop, executor=executor, observers=observers, propose=propose)
        return Starts((), 0, only)
    brief = Stop(stop.tol, min(short_passes, stop.max_passes), stop.gap)
    short = [runner(problem, source, s, stop=brief, executor=executor, propose=propose) for s in starts]
    scores = [r.objective if isfinite(r.objective) else float("-inf") for r in short]
    best = max(range(len(short)), key=scores.__getitem__)
    result = Starts(tuple(short), best, short[best])
    options: dict[str, Any] = {"executor": executor, "observers": observers, "propose": propose}
    return _finished(problem, source, result, brief, stop, runner, **options)


def best_revised(
    problem: Q,
    source: BlockSource,
    starts: Iterable[P],
    revise: Callable[[Q, Run[P]], Q | None],
    *,
    stop: Stop,
    warm: bool = False,
    runner: Runner = run,
    **options: Any,
) -> tuple[Q, Starts[P]]:
    """Maximize an objective that has constants estimated from the solution; return the final problem with the runs.

    After convergence, first to a loose tolerance (unless the start is `warm`) and then to `stop`, `revise` returns the
    problem with constants that suit the solution, or None where they are about the same. Each revision begins a new
    segment of the history.
    """
    brief, left = loose(stop), REVISIONS
    rule = stop if warm else brief
    result = best_of(problem, source, starts, stop=rule, runner=runner, **options)
    while True:
        current = result.run
        other = revise(problem, current) if left and current.status is Status.CONVERGED else None
        if other is not None and current.last is not None:
            problem, left = other, left - 1
            rule = Stop(brief.tol, min(current.n_passes + brief.max_passes, stop.max_passes))
            current = runner(problem, source, resume=current.last.restated(), stop=rule, **options)
            result = replace(result, run=current)
            continue
        finished = _finished(problem, source, result, rule, stop, runner, **options)
        if finished is result:
            return problem, result
        result, rule = finished, stop


def loose(stop: Stop) -> Stop:
    """Return the rule of a run after which the problem is revised: looser, unless it is short anyway."""
    return stop if stop.max_passes <= QUICK.max_passes else Stop(max(stop.tol, QUICK.tol), QUICK.max_passes)


def _finished(
    problem: Problem[P, Any, Any],
    source: BlockSource,
    starts: Starts[P],
    brief: Stop,
    stop: Stop,
    runner: Runner,
    **options: Any,
) -> Starts[P]:
    """Continue the chosen run, which ended by the rule `brief`, until `stop`."""
    chosen = starts.run
    limited = chosen.status is Status.MAX_PASSES and brief.max_passes < stop.max_passes
    converged = chosen.status is Status.CONVERGED and brief.tol > stop.tol
    if chosen.last is None or not (limited or converged):
        return starts
    chosen = runner(problem, source, resume=chosen.last, stop=stop, **options)
    return replace(starts, run=chosen, resumed=starts.resumed + 1)
