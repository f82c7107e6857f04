"""Several short runs, then one long run from the best of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Generic, TypeVar

from mixent.core.blocks import BlockSource
from mixent.core.driver import Observer, Problem, Proposal, Run, Status, Stop, run
from mixent.core.executors import Executor
from mixent.show import Short

P = TypeVar("P")


@dataclass(frozen=True, repr=False)
class Starts(Short, Generic[P]):
    """The short runs from all starts; `run` is the long run from the best."""

    short: tuple[Run[P], ...]  # empty when there was only one start
    best: int
    run: Run[P]
    more_passes: int = 0  # over the rows, of runs with other objectives, and after the run was resumed

    @property
    def n_passes(self) -> int:
        """Number of passes over the rows of all starts; resuming a short run takes one pass."""
        if not self.short:
            return len(self.run.trace) + self.more_passes
        passes = sum(len(short.trace) for short in self.short) + self.more_passes
        best = self.short[self.best]
        if self.run.trace is not best.trace:
            resumed = [step.n_pass for step in best.trace if step.accepted][-1]
            passes += 1 + self.run.n_passes - resumed
        return passes


def unfinished(run: Run[Any], brief: Stop, stop: Stop) -> bool:
    """Return whether a run that was ended by the rule `brief` has to be resumed until `stop`."""
    limited = run.status is Status.MAX_PASSES and brief.max_passes < stop.max_passes
    return run.last is not None and (limited or (run.status is Status.CONVERGED and brief.tol > stop.tol))


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
) -> Starts[P]:
    """Run each start for a few passes, then continue from the one with the highest objective."""
    starts = list(starts)
    if len(starts) == 1:
        only = run(problem, source, starts[0], stop=stop, executor=executor, observers=observers, propose=propose)
        return Starts((), 0, only)
    brief = Stop(stop.tol, min(short_passes, stop.max_passes), stop.gap)
    short = [run(problem, source, s, stop=brief, executor=executor, propose=propose) for s in starts]
    scores = [r.objective if isfinite(r.objective) else float("-inf") for r in short]
    best = max(range(len(short)), key=scores.__getitem__)
    chosen = short[best]
    if unfinished(chosen, brief, stop):
        chosen = run(
            problem,
            source,
            resume=chosen.last,
            stop=stop,
            executor=executor,
            observers=observers,
            propose=propose,
        )
    return Starts(tuple(short), best, chosen)
