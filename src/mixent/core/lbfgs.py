"""L-BFGS on the same statistics: for objectives whose update is slow, or is not known to ascend.

The statistics of a pass give the gradient as they give the update (Fisher's identity), so a problem needs nothing more
than a `Chart`: coordinates in which every vector is a set of parameters. Passes, history, observers and statuses are
those of `run`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from scipy.optimize import minimize

from mixent.core.arrays import Array
from mixent.core.blocks import BlockSource
from mixent.core.driver import Observer, OutsideDomainError, Problem, Run, Status, Stop, _Loop, rounding
from mixent.core.executors import Executor, Threads
from mixent.core.stats import Stats

P = TypeVar("P")
R = TypeVar("R")
S = TypeVar("S", bound=Stats)

# lines in succession cut short by the domain's edge with hardly a gain: the objective rises towards the edge
CUT = 2
NOT_THERE = (
    "no step along the gradient raises the objective as far as the gradient promises; the best parameters are kept; "
    "if columns are collinear, give a prior"
)


class Chart(Protocol[P]):
    """Parameters as unconstrained vectors."""

    def vector(self, params: P) -> Array:
        """The coordinates of these parameters (of the nearest the chart knows)."""

    def params(self, vector: Array) -> P:
        """The parameters at these coordinates; an OutsideDomainError where numbers fail."""

    def gradient(self, params: P, total: Any) -> Array:
        """Gradient of the problem's objective in these coordinates, from the statistics at `params`."""


def ascend(
    problem: Problem[P, R, S],
    source: BlockSource,
    chart: Chart[P],
    params: P,
    *,
    stop: Stop = Stop(),  # noqa: B008  (frozen)
    executor: Executor | None = None,
    observers: Sequence[Observer] = (),
    memory: int = 10,
) -> Run[P]:
    """Raise the objective by L-BFGS (Liu & Nocedal 1989) until one iteration gains less than `stop.tol` per row.

    Every evaluation is a pass and a line of the history; those L-BFGS moves to are the accepted ones, and observers
    see these. The start is what the chart makes of `params`. `run(resume=result.last)` goes on by EM from the result.
    """
    with executor or Threads() as workers:
        return _Ascent(problem, source, chart, stop, workers, observers, memory).climb(params)


@dataclass(frozen=True)
class _Point(Generic[P, S]):
    """Parameters whose objective and gradient are known."""

    vector: Array
    params: P
    total: S
    objective: float
    slope: Array  # gradient of the objective


@dataclass(frozen=True)
class _Trial:
    """A point the line search has tried in vain, or the one it moves to."""

    promise: float  # what the gradient where the line sets out says of the gain
    gain: float
    outside: str  # why there is no objective; empty where there is one


class _Over(Exception):  # noqa: N818  (no error: it leaves scipy's loop)
    def __init__(self, status: Status) -> None:
        self.status = status


class _Ascent(_Loop[P, R, S]):
    """The driver's state, moved by L-BFGS instead of updates."""

    def __init__(
        self,
        problem: Problem[P, R, S],
        source: BlockSource,
        chart: Chart[P],
        stop: Stop,
        executor: Executor,
        observers: Sequence[Observer],
        n_pairs: int,
    ) -> None:
        super().__init__(problem, source, stop, executor, observers, None)
        self.chart, self.n_pairs = chart, n_pairs
        self.trials: list[_Trial] = []  # along the present line
        self.n_cut = 0  # lines in succession cut short by the edge

    def climb(self, params: P) -> Run[P]:
        try:
            return self._result(self._search(params))
        except _Over as over:
            return self._result(over.status)

    def _search(self, params: P) -> Status:
        vector = self._settle(params)
        slope = self.chart.gradient(self.params, self.total)
        if not np.isfinite(slope).all():
            self.message = f"the gradient at the start is not finite; {Status.NOT_FINITE.value}"
            return Status.NOT_FINITE
        self.at = self.tried = _Point(vector, self.params, self.total, self.objective, slope)
        self._go_on(gain=float("inf"))
        # our own rules end it; scipy's, at zero, only where there is nothing left to gain at all
        limits = {"maxcor": self.n_pairs, "ftol": 0.0, "gtol": 0.0, "maxiter": 10**9, "maxfun": 10**9}
        minimize(self._value, vector, jac=True, method="L-BFGS-B", callback=self._accept, options=limits)
        return self._stuck()

    def _settle(self, params: P) -> Array:
        """Spend the first pass; the coordinates of the start."""
        outside = ""
        try:
            vector = self.chart.vector(params)
            params = self.chart.params(vector)
        except OutsideDomainError as error:
            outside = str(error)
        status = self._begin(params, None)
        if status is None and outside:
            status, self.message = Status.NOT_FINITE, f"{outside}; {Status.NOT_FINITE.value}"
        if status is not None:
            raise _Over(status)
        return vector

    def _value(self, vector: Array) -> tuple[float, Array]:
        """What scipy minimizes: minus the objective per unit of weight, and its gradient."""
        if np.array_equal(vector, self.at.vector):
            return -self.at.objective / self.weight, -self.at.slope / self.weight
        if self.n_pass >= self.stop.max_passes:
            raise _Over(Status.MAX_PASSES)
        promise = float(self.at.slope @ (vector - self.at.vector))
        point, objective, note = self._visit(vector)
        self._record(objective, objective - self.objective, "line", False, note)
        outside = "" if point is not None else note or "the objective is not finite"
        self.trials.append(_Trial(promise, objective - self.objective, outside))
        if point is None:
            # as far below as the gradient promised above, and level: the line search's cubic then takes a ninth of
            # the step. Infinity would give NaN, and a huge number no step at all.
            return (abs(promise) - self.objective) / self.weight, np.zeros_like(vector)
        self.tried = point
        return -objective / self.weight, -point.slope / self.weight

    def _visit(self, vector: Array) -> tuple[_Point[P, S] | None, float, str]:
        """Spend a pass: the point (None outside the domain), its objective, the reason."""
        try:
            params = self.chart.params(vector)
        except OutsideDomainError as error:
            self.n_pass += 1
            return None, float("-inf"), str(error)
        total, objective, note = self._evaluate(params)
        if total is None or not isfinite(objective):
            return None, objective, note
        slope = self.chart.gradient(params, total)
        if not np.isfinite(slope).all():
            return None, objective, "the gradient is not finite"
        return _Point(vector.copy(), params, total, objective, slope), objective, note

    def _accept(self, vector: Array) -> None:
        """L-BFGS has moved to the point tried last."""
        if np.array_equal(vector, self.at.vector):
            raise _Over(self._stuck())
        gain = self.tried.objective - self.objective
        if gain < -rounding(self.objective, self.weight):
            raise _Over(Status.DECREASED)
        self.trace[-1] = replace(self.trace[-1], accepted=True)
        self.at = self.tried
        self.params, self.total, self.objective = self.at.params, self.at.total, self.at.objective
        halted = self._observe()
        if halted is not None:
            raise _Over(halted)
        self._go_on(gain)

    def _go_on(self, gain: float) -> None:
        """Leave if this is the end; else a new line begins."""
        if self._certified():
            raise _Over(Status.CONVERGED)
        if gain > self.stop.tol * self.weight:
            self.n_cut = 0
        elif not self._edge():
            raise _Over(Status.CONVERGED)
        else:  # little gain along a line cut short by the domain's edge is no optimum
            self.n_cut += 1
            if self.n_cut == CUT:
                raise _Over(self._at_the_edge())
        self.trials = []
        self._mark()

    def _edge(self) -> str:
        """Why the domain ended on the present line; empty when the line stayed inside."""
        return next((trial.outside for trial in reversed(self.trials) if trial.outside), "")

    def _at_the_edge(self) -> Status:
        if not self.trace[-1].note:  # else the result's message begins with it anyway
            self.message = f"{self._edge()}; {Status.NOT_FINITE.value}"
        return Status.NOT_FINITE

    def _stuck(self) -> Status:
        """Judge a line along which nothing was found: was there nothing left to gain, or is the promise broken?"""
        blur = rounding(self.objective, self.weight)
        clear = [trial for trial in self.trials if trial.promise > 100 * blur]
        nearest = min(clear, key=lambda trial: trial.promise, default=None)
        small = max(self.stop.tol * self.weight, 10 * blur)
        if nearest is None:
            return Status.CONVERGED
        if nearest.outside:
            beyond = max(trial.promise for trial in clear if trial.outside)
            return self._at_the_edge() if beyond > small else Status.CONVERGED
        if self._edge() and nearest.gain >= 0.5 * nearest.promise:  # it rises as promised, but there is no room
            return self._at_the_edge()
        # the top of the parabola through both points is lower than `small`
        if nearest.promise**2 <= 4 * small * (nearest.promise - nearest.gain):
            return Status.CONVERGED
        self.message = NOT_THERE
        return Status.DECREASED
