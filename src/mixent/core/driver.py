"""The only loop over passes.

A model gives `statistics` that add over rows, a closed-form `update`, and an `objective` the update provably
does not lower. `run` owns the rest: convergence, the guard against a falling objective, step control, repair,
acceleration, history, observers, stop and resume.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import isfinite
from typing import Any, Generic, Protocol, TypeVar

from mixent.core.blocks import Block, BlockSource
from mixent.core.executors import Executor, Threads
from mixent.core.stats import Stats

P = TypeVar("P")  # parameters: a frozen dataclass of arrays
R = TypeVar("R")  # what `prepare` makes of them once per pass
S = TypeVar("S", bound=Stats)


class OutsideDomainError(ArithmeticError):
    """`prepare` met parameters at which the objective does not exist; the driver rejects the step."""


class Problem(ABC, Generic[P, R, S]):
    """What is maximized, and how one pass raises it."""

    first_step: float = 1.0
    safe_step: float = 1.0  # update is provably monotone for step <= safe_step
    longest_step: float | None = None  # to which steps grow while the objective rises; None: the first

    @abstractmethod
    def prepare(self, params: P) -> R:
        """Do what a pass needs once: factorize, lay out columns."""

    @abstractmethod
    def stats(self, ready: R, block: Block) -> S:
        """Statistics of one block; additive over rows."""

    @abstractmethod
    def objective(self, params: P, total: S) -> float:
        """What the update provably does not lower, prior included."""

    @abstractmethod
    def update(self, params: P, total: S, step: float) -> P:
        """The next parameters in closed form."""

    def gap(self, params: P, total: S) -> float | None:
        """An upper bound of (maximum - objective), where one is known."""
        return None

    def certified_gain(self, params: P, total: S) -> float | None:
        """What the next plain update gains at least, where it is known: a lower bound of (maximum - objective)."""
        return None

    def repair(self, params: P, total: S) -> tuple[P, str] | None:
        """Mend parameters the update has broken, with the reason in words; None when they are sound."""
        return None

    def pack(self, params: P) -> Any:
        """Parameters as a vector in which extrapolation makes sense; None: not to be accelerated."""
        return None

    def unpack(self, vector: Any, like: P) -> P | None:
        """Parameters from such a vector; None when it lies outside the domain."""
        return None


class Status(Enum):
    """How a run ended; the value is the remedy."""

    CONVERGED = "converged: the gain per row fell below tol"
    MAX_PASSES = "max_iter was reached first; raise it, or loosen tol"
    DECREASED = (
        "the objective fell beyond rounding; the best parameters are kept; if columns are collinear, give a prior"
    )
    NOT_FINITE = "the objective is not finite; check for huge values, or give a prior"
    STOPPED = "an observer stopped the run"

    @property
    def failed(self) -> bool:
        """Did the run break off where no optimum is near?"""
        return self in (Status.DECREASED, Status.NOT_FINITE)

    @property
    def ok(self) -> bool:
        """Is the answer to be trusted as an optimum (or as what the observer asked for)?"""
        return self in (Status.CONVERGED, Status.STOPPED)


@dataclass(frozen=True)
class Stop:
    """When to stop: gain per unit of weight on a plain update below `tol`, or `max_passes` passes.

    On a step shortened to some share of the full one, below as large a share of `tol`.
    """

    tol: float = 1e-6
    max_passes: int = 1000
    gap: float | None = None  # stop when the certified gap per unit of weight is below this
    gain: float | None = None  # stop when the next update's certified gain per unit of weight is below this


@dataclass(frozen=True)
class Step:
    """One line of the history: a pass over the data and what became of it."""

    n_pass: int
    objective: float
    gain: float  # against the parameters accepted before; NaN at a start or after a repair
    step: float
    kind: str  # "start", "plain", "proposal", "repair"; "line": a trial of `ascend`
    accepted: bool
    segment: int  # a repair opens a new one; within a segment the objective never falls
    seconds: float  # since the run began
    note: str = ""


@dataclass(frozen=True)
class Event(Generic[P]):
    """The state after an accepted pass: what an observer sees, and all that `run` needs to go on from here."""

    params: P
    objective: float
    n_pass: int
    step: float
    memory: Any  # the proposal's own
    trace: tuple[Step, ...]
    total: Any = None  # None: computed again on resume


@dataclass(frozen=True)
class Halt(Generic[P]):
    """An observer's answer: stop now, and return these parameters (None: the current ones)."""

    reason: str
    params: P | None = None


Observer = Callable[[Event[Any]], Halt[Any] | None]


class Proposal(Protocol):
    """A bolder step than the plain update; the driver takes it only if the objective rises."""

    def __call__(self, problem: Problem[Any, Any, Any], memory: Any, params: Any, plain: Any) -> tuple[Any | None, Any]:
        """(candidate or None, memory) from the accepted params and their plain update."""


@dataclass(frozen=True)
class Run(Generic[P]):
    """What happened: parameters, the objective of exactly these parameters, status, history."""

    params: P
    objective: float
    status: Status
    trace: tuple[Step, ...]
    n_passes: int
    message: str
    last: Event[P] | None = None  # resume from here

    @property
    def notes(self) -> tuple[str, ...]:
        """What repairs did, in words."""
        return tuple(s.note for s in self.trace if s.note and s.kind == "repair")


def run(
    problem: Problem[P, R, S],
    source: BlockSource,
    params: P | None = None,
    *,
    stop: Stop = Stop(),  # noqa: B008  (frozen)
    executor: Executor | None = None,
    observers: Sequence[Observer] = (),
    propose: Proposal | None = None,
    resume: Event[P] | None = None,
) -> Run[P]:
    """Raise the objective until it stands still.

    Give `params` to start, or the `Event` of an earlier run to go on from exactly there. The parameters
    returned are always the last accepted ones, up to rounding those with the highest objective of the last segment,
    and `objective` is theirs.
    """
    with executor or Threads() as workers:
        return _Loop(problem, source, stop, workers, observers, propose).go(params, resume)


class _Loop(Generic[P, R, S]):
    """The accepted state and the moves that change it."""

    def __init__(
        self,
        problem: Problem[P, R, S],
        source: BlockSource,
        stop: Stop,
        executor: Executor,
        observers: Sequence[Observer],
        propose: Proposal | None,
    ) -> None:
        self.problem, self.source, self.stop = problem, source, stop
        self.executor, self.observers, self.propose = executor, observers, propose
        self.weight = source.total_weight
        self.began = time.perf_counter()

    def go(self, params: P | None, resume: Event[P] | None) -> Run[P]:
        status = self._begin(params, resume)
        while status is None:
            status = self._advance()
        return self._result(status)

    def _begin(self, params: P | None, resume: Event[P] | None) -> Status | None:
        self.halt: Halt[P] | None = None
        self.message = ""
        if resume is not None:
            self.params, self.objective, self.memory = resume.params, resume.objective, resume.memory
            self.n_pass, self.step, self.trace = resume.n_pass, resume.step, list(resume.trace)
            self.segment = self.trace[-1].segment
            self.began -= self.trace[-1].seconds
            self.total: S = self._statistics(self.params) if resume.total is None else resume.total
            return None
        if params is None:
            raise ValueError("run needs starting params, or resume=")
        self.params, self.memory = params, None
        self.n_pass, self.segment, self.step, self.trace = 0, 0, self.problem.first_step, []
        self._mark()
        total, self.objective, note = self._evaluate(params)
        self._record(self.objective, float("nan"), "start", isfinite(self.objective), note)
        if total is None or not isfinite(self.objective):
            return Status.NOT_FINITE
        self.total = total
        return self._observe()

    def _mark(self) -> None:
        """Remember where the step now beginning set out: a step cut short is taken again in full on resume."""
        self.mark = self.n_pass, self.step, self.memory, len(self.trace)

    def _advance(self) -> Status | None:
        """One accepted step, or the reason to stop."""
        self._mark()
        if self._certified():
            return Status.CONVERGED
        if self.n_pass >= self.stop.max_passes:
            return Status.MAX_PASSES
        plain = self.problem.update(self.params, self.total, self.step)
        mended = self.problem.repair(plain, self.total)
        if mended is not None:
            return self._take_repaired(*mended)
        if self.propose is not None:
            bold, self.memory = self.propose(self.problem, self.memory, self.params, plain)
            if bold is not None:
                if self._try(bold, "proposal", slack=0.0) is not None:
                    return self._observe()
                if self.n_pass >= self.stop.max_passes:
                    return Status.MAX_PASSES
        return self._take_plain(plain)

    def _certified(self) -> bool:
        """Does the problem itself say that little is left to gain? `message` then says which way."""
        bounds = (("gap", self.stop.gap, self.problem.gap), ("gain", self.stop.gain, self.problem.certified_gain))
        for name, wanted, bound in bounds:
            value = None if wanted is None else bound(self.params, self.total)
            if wanted is None or value is None:
                continue
            # a bound below zero by more than rounding is none: the update has lost its way
            if -rounding(self.objective, self.weight) <= value <= wanted * self.weight:
                self.message = f"the certified {name} per row fell below the one asked for"
                return True
        return False

    def _take_plain(self, plain: P) -> Status | None:
        while True:
            bold = self.step > self.problem.first_step  # which must raise the objective, as a proposal must
            gain = self._try(plain, "plain", 0.0 if bold else rounding(self.objective, self.weight))
            if gain is not None:
                share = self.step / self.problem.first_step  # a short step gains little wherever it is taken
                longest = self.problem.longest_step or self.problem.first_step
                self.step = min(1.5 * self.step, longest)  # a step that had to shrink recovers
                halted = self._observe()
                return Status.CONVERGED if halted is None and gain <= share * self.stop.tol * self.weight else halted
            if self.step <= self.problem.safe_step:
                return Status.DECREASED if isfinite(self.trace[-1].objective) else Status.NOT_FINITE
            if self.n_pass >= self.stop.max_passes:
                return Status.MAX_PASSES
            self.step = max(self.step / 2, self.problem.safe_step)
            plain = self.problem.update(self.params, self.total, self.step)

    def _take_repaired(self, params: P, reason: str) -> Status | None:
        """A repair may lower the objective: it opens a new segment of the history."""
        self.segment += 1
        total, objective, _ = self._evaluate(params)
        self._record(objective, float("nan"), "repair", isfinite(objective), reason)
        if total is None or not isfinite(objective):
            return Status.NOT_FINITE
        self.params, self.total, self.objective, self.memory = params, total, objective, None
        return self._observe()

    def _try(self, params: P, kind: str, slack: float) -> float | None:
        """Evaluate; accept and return the gain unless the objective falls by more than `slack`."""
        total, objective, note = self._evaluate(params)
        gain = objective - self.objective
        accepted = isfinite(objective) and gain >= -slack
        self._record(objective, gain, kind, accepted, note)
        if total is None or not accepted:
            return None
        self.params, self.total, self.objective = params, total, objective
        return gain

    def _evaluate(self, params: P) -> tuple[S | None, float, str]:
        """Spend a pass: statistics and objective, or (None, -inf, the reason) outside the domain."""
        self.n_pass += 1
        try:
            total = self._statistics(params)
            return total, self.problem.objective(params, total), ""
        except OutsideDomainError as error:
            return None, float("-inf"), str(error)

    def _statistics(self, params: P) -> S:
        ready = self.problem.prepare(params)
        return self.executor.total(lambda block: self.problem.stats(ready, block), self.source)

    def _record(self, objective: float, gain: float, kind: str, accepted: bool, note: str = "") -> None:
        seconds = time.perf_counter() - self.began
        self.trace.append(Step(self.n_pass, objective, gain, self.step, kind, accepted, self.segment, seconds, note))

    def _event(self) -> Event[P]:
        return Event(self.params, self.objective, self.n_pass, self.step, self.memory, tuple(self.trace), self.total)

    def _observe(self) -> Status | None:
        for observer in self.observers:
            halt = observer(self._event())
            if halt is not None:
                self.halt = halt
                return Status.STOPPED
        return None

    def _result(self, status: Status) -> Run[P]:
        if self.trace[-1].accepted:
            self._mark()
        n_pass, step, memory, n_trace = self.mark
        # without its total, which can be large and comes back with one pass
        trace = tuple(self.trace[:n_trace])
        last = Event(self.params, self.objective, n_pass, step, memory, trace) if trace else None
        message = self.message or status.value if self.halt is None else self.halt.reason
        if status is Status.NOT_FINITE and self.trace[-1].note:
            message = f"{self.trace[-1].note}; {message}"
        params, objective = self.params, self.objective
        if self.halt is not None and self.halt.params is not None:
            params = self.halt.params
            objective = self.problem.objective(params, self._statistics(params))
        return Run(params, objective, status, tuple(self.trace), self.n_pass, message, last)


def rounding(objective: float, weight: float) -> float:
    """How far the objective may seem to fall by rounding alone."""
    return 1e-11 * weight + 1e-12 * abs(objective)
