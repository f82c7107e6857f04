"""The optimization loop that all models share.

A model provides `stats` that are additive over rows, a closed-form `update`, and an `objective` that the update
provably does not decrease. `run` does the rest: convergence, the check that the objective does not decrease, step
size control, repair, acceleration, history, observers, stop and resume.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import isfinite, isnan
from typing import Any, Generic, Protocol, TypeVar

from mixent.core.blocks import Block, BlockSource
from mixent.core.executors import Executor, Threads
from mixent.core.stats import Stats
from mixent.show import Short

EPS = 2.0**-52  # machine precision
P = TypeVar("P")  # parameters: a frozen dataclass of arrays
R = TypeVar("R")  # the result of `prepare`, computed once per pass
S = TypeVar("S", bound=Stats)


class OutsideDomainError(ValueError):
    """The objective is undefined at these parameters; the driver rejects the step."""


class Problem(ABC, Generic[P, R, S]):
    """An objective to maximize, and an update that increases it."""

    first_step: float = 1.0  # initial step size
    safe_step: float = 1.0  # the update provably does not decrease the objective for step <= safe_step
    longest_step: float | None = None  # limit to which the step size grows while the objective increases; None: first

    @abstractmethod
    def prepare(self, params: P) -> R:
        """Compute what depends on the parameters only, once per pass: factorizations, layout of columns."""

    @abstractmethod
    def stats(self, ready: R, block: Block) -> S:
        """Return the statistics of a block of rows; they are additive over rows."""

    @abstractmethod
    def objective(self, params: P, total: S) -> float:
        """Return the objective, log prior included, which the update provably does not decrease."""

    @abstractmethod
    def update(self, params: P, total: S, step: float) -> P:
        """Return the next parameters in closed form."""

    def gap(self, params: P, total: S) -> float | None:
        """Return an upper bound on (maximum - objective), or None if none is available."""
        return None

    def condition(self, params: P) -> float:
        """Return the factor by which the objective amplifies rounding errors of the parameters; see `rounding`."""
        return 1.0

    def certified_gain(self, params: P, total: S) -> float | None:
        """Return a lower bound on the gain of the next plain update, or None if none is available."""
        return None

    def repair(self, params: P, total: S) -> tuple[P, str] | None:
        """Return repaired parameters and the reason when the update gave degenerate ones, else None."""
        return None

    def pack(self, params: P) -> Any:
        """Return the parameters as a vector suited for extrapolation; None: acceleration is not available."""
        return None

    def unpack(self, vector: Any, like: P) -> P | None:
        """Return the parameters of such a vector; None when it lies outside the domain."""
        return None


class Status(Enum):
    """How a run ended; the value is a message with the remedy."""

    CONVERGED = "converged: the gain per row fell below tol"
    MAX_PASSES = "max_iter was reached first; raise it, or loosen tol"
    DECREASED = (
        "the objective decreased by more than rounding error; the best parameters are kept; "
        "if columns are collinear, use a prior"
    )
    NOT_FINITE = "the objective is not finite; check for huge values, or use a prior"
    STOPPED = "an observer stopped the run"

    @property
    def failed(self) -> bool:
        """Whether the run failed before it came near an optimum."""
        return self in (Status.DECREASED, Status.NOT_FINITE)

    @property
    def ok(self) -> bool:
        """Whether the result is an optimum (or what the observer asked for)."""
        return self in (Status.CONVERGED, Status.STOPPED)


@dataclass(frozen=True)
class Stop:
    """Stopping rule: the gain per unit of weight of a plain update is below `tol`, or `max_passes` are done.

    Passes evaluate updates; the evaluation of the start is not counted, so that one pass is one update. For a shortened
    step, `tol` is multiplied by the ratio of its size to the full one.
    """

    tol: float = 1e-6
    max_passes: int = 1000
    gap: float | None = None  # stop when the certified gap per unit of weight is below this value
    gain: float | None = None  # stop when the next update's certified gain per unit of weight is below this value


@dataclass(frozen=True, repr=False)
class Step(Short):
    """An entry of the history: one pass over the data and its result."""

    _shown = ("n_pass", "objective", "gain", "kind")

    n_pass: int
    objective: float
    gain: float  # relative to the previously accepted parameters; NaN at a start or after a repair
    step: float
    kind: str  # "start", "plain", "proposal", "repair"; "line": a trial point of `run_lbfgs`
    accepted: bool
    segment: int  # a repair or another objective begins a new one; within a segment the objective never decreases
    seconds: float  # since the start of the run
    note: str = ""


@dataclass(frozen=True)
class Event(Generic[P]):
    """The state after an accepted pass, passed to observers; `run` can resume from it."""

    params: P
    objective: float
    n_pass: int
    step: float
    memory: Any  # state of the proposal
    trace: tuple[Step, ...]
    total: Any = None  # None: recomputed on resume

    def restated(self) -> Event[P]:
        """Return the state from which another objective is maximized: a new segment of the same history begins."""
        return replace(self, objective=float("nan"), memory=None, total=None)


@dataclass(frozen=True)
class Halt(Generic[P]):
    """Returned by an observer to stop the run with these parameters (None: the current ones)."""

    reason: str
    params: P | None = None


Observer = Callable[[Event[Any]], Halt[Any] | None]


class Proposal(Protocol):
    """An extrapolated step; the driver accepts it only if it increases the objective."""

    def __call__(self, problem: Problem[Any, Any, Any], memory: Any, params: Any, plain: Any) -> tuple[Any | None, Any]:
        """Return (candidate or None, memory), given the accepted parameters and their plain update."""


@dataclass(frozen=True, repr=False)
class Run(Short, Generic[P]):
    """Result of a run: parameters, the objective at these parameters, status, history."""

    _shown = ("status", "n_passes", "objective")

    params: P
    objective: float
    status: Status
    trace: tuple[Step, ...]
    n_passes: int
    message: str
    last: Event[P] | None = None  # state to resume from

    def __str__(self) -> str:
        return f"{self.message} ({self.n_passes} passes, objective {self.objective:.6g})"

    @property
    def objectives(self) -> list[float]:
        """The objective of the accepted parameters after each pass; evaluations of a start are not counted."""
        accepted, values = float("nan"), []
        for step in self.trace:
            accepted = step.objective if step.accepted else accepted
            if step.kind != "start":
                values.append(accepted)
        return values

    @property
    def notes(self) -> tuple[str, ...]:
        """Descriptions of the repairs."""
        return tuple(s.note for s in self.trace if s.note and s.kind == "repair")


def run(
    problem: Problem[P, R, S],
    source: BlockSource,
    params: P | None = None,
    *,
    stop: Stop = Stop(),
    executor: Executor | None = None,
    observers: Sequence[Observer] = (),
    propose: Proposal | None = None,
    resume: Event[P] | None = None,
) -> Run[P]:
    """Maximize the objective until it converges.

    Pass `params` to start, or the `Event` of an earlier run to resume it. The returned parameters are the last
    accepted ones, which have the highest objective of the last segment up to rounding; `objective` is their value.
    """
    with executor or Threads() as workers:
        return _Loop(problem, source, stop, workers, observers, propose).go(params, resume)


class _Loop(Generic[P, R, S]):
    """The state after the last accepted step, and the steps that change it."""

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
            if isnan(resume.objective):
                return self._begin_segment()
            self.total: S = self._statistics(self.params) if resume.total is None else resume.total
            return None
        if params is None:
            raise ValueError("run needs initial parameters: pass params or resume")
        self.params, self.n_pass, self.segment, self.trace = params, 0, -1, []
        return self._begin_segment()

    def _begin_segment(self) -> Status | None:
        """Begin a segment by evaluating the objective, which is no update and not counted as a pass."""
        self.memory, self.step = None, self.problem.first_step
        self.segment += 1
        self.n_pass -= 1
        self._mark()
        total, self.objective, note = self._evaluate(self.params)
        self._record(self.objective, float("nan"), "start", isfinite(self.objective), note)
        if total is None or not isfinite(self.objective):
            return Status.NOT_FINITE
        self.total = total
        return self._observe()

    def _mark(self) -> None:
        """Store the state at the start of this step: an interrupted step is repeated on resume."""
        self.mark = self.n_pass, self.step, self.memory, len(self.trace)

    def _advance(self) -> Status | None:
        """Take one accepted step, or return the reason to stop."""
        self._mark()
        if self._certified():
            return Status.CONVERGED
        if self.n_pass >= self.stop.max_passes:
            return Status.MAX_PASSES
        plain = self.problem.update(self.params, self.total, self.step)
        repaired = self.problem.repair(plain, self.total)
        if repaired is not None:
            return self._take_repaired(*repaired)
        if self.propose is not None:
            candidate, self.memory = self.propose(self.problem, self.memory, self.params, plain)
            if candidate is not None:
                if self._try(candidate, "proposal", exact=True) is not None:
                    return self._observe()
                if self.n_pass >= self.stop.max_passes:
                    return Status.MAX_PASSES
        return self._take_plain(plain)

    def _certified(self) -> bool:
        """Whether a bound of the problem on the remaining gain is below its tolerance; sets `message`."""
        bounds = (("gap", self.stop.gap, self.problem.gap), ("gain", self.stop.gain, self.problem.certified_gain))
        for name, tolerance, bound in bounds:
            value = None if tolerance is None else bound(self.params, self.total)
            if tolerance is None or value is None:
                continue
            # a bound below zero by more than rounding is not valid: the update has diverged
            if -rounding(self.objective, self.weight) <= value <= tolerance * self.weight:
                self.message = f"the certified {name} per row fell below its tolerance"
                return True
        return False

    def _take_plain(self, plain: P) -> Status | None:
        while True:
            extended = self.step > self.problem.first_step  # must increase the objective, like a proposal
            gain = self._try(plain, "plain", exact=extended)
            if gain is not None:
                share = self.step / self.problem.first_step  # a short step has a small gain everywhere
                longest = self.problem.longest_step or self.problem.first_step
                self.step = min(1.5 * self.step, longest)  # a reduced step size grows again
                halted = self._observe()
                return Status.CONVERGED if halted is None and gain <= share * self.stop.tol * self.weight else halted
            if self.step <= self.problem.safe_step:
                return Status.DECREASED if isfinite(self.trace[-1].objective) else Status.NOT_FINITE
            if self.n_pass >= self.stop.max_passes:
                return Status.MAX_PASSES
            self.step = max(self.step / 2, self.problem.safe_step)
            plain = self.problem.update(self.params, self.total, self.step)

    def _take_repaired(self, params: P, reason: str) -> Status | None:
        """Accept repaired parameters; the objective may decrease, so a new segment of the history begins."""
        self.segment += 1
        total, objective, _ = self._evaluate(params)
        self._record(objective, float("nan"), "repair", isfinite(objective), reason)
        if total is None or not isfinite(objective):
            return Status.NOT_FINITE
        self.params, self.total, self.objective, self.memory = params, total, objective, None
        return self._observe()

    def _try(self, params: P, kind: str, *, exact: bool) -> float | None:
        """Evaluate the parameters; accept them and return the gain unless it is negative (by more than rounding)."""
        total, objective, note = self._evaluate(params)
        gain = objective - self.objective
        accepted = isfinite(objective) and (gain >= 0 or (not exact and gain >= -self._slack()))
        self._record(objective, gain, kind, accepted, note)
        if total is None or not accepted:
            return None
        self.params, self.total, self.objective = params, total, objective
        return gain

    def _slack(self) -> float:
        return rounding(self.objective, self.weight, self.problem.condition(self.params))

    def _evaluate(self, params: P) -> tuple[S | None, float, str]:
        """Compute statistics and objective in one pass; (None, -inf, reason) outside the domain."""
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
        # without the statistics, which can be large and are recomputed in one pass
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


def rounding(objective: float, weight: float, condition: float = 1.0) -> float:
    """Return the largest apparent decrease of the objective that rounding explains.

    The objective is a sum over rows, whose terms have errors of the order of the machine precision times their size: at
    most 1e-11 nats per unit of weight, plus 1e-12 of the objective itself. Where parameters are ill-conditioned, their
    own rounding changes the objective by the machine precision times `condition` per unit of weight. (For Gaussians,
    it is the variance of a column divided by its variance given the other columns.) This is the only definition of
    rounding in the library: a plain update that decreases the objective by more is a defect, or the problem is
    degenerate. It is not accepted, and ends the run with the status DECREASED.
    """
    return (1e-11 + EPS * condition) * weight + 1e-12 * abs(objective)
