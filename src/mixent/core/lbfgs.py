"""Maximization by L-BFGS, for objectives whose update converges slowly or is not guaranteed to increase them.

The statistics of a pass give the gradient as well as the update (Fisher's identity), so a problem only needs a `Chart`:
unconstrained coordinates of its parameters. Passes, history, observers and statuses are those of `run`.
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

# line searches in succession with little gain that the boundary of the domain cut short: the objective increases
# towards the boundary
MAX_CUT = 2
NO_ASCENT = (
    "no step along the search direction increases the objective as much as its gradient predicts; the best parameters "
    "are kept; if columns are collinear, use a prior"
)


class Chart(Protocol[P]):
    """A coordinate chart: parameters as unconstrained vectors."""

    def vector(self, params: P) -> Array:
        """Return the coordinates of these parameters (of the nearest ones within the chart)."""

    def params(self, vector: Array) -> P:
        """Return the parameters at these coordinates; raise OutsideDomainError where they are not computable."""

    def gradient(self, params: P, total: Any) -> Array:
        """Return the gradient of the problem's objective in these coordinates, from the statistics at `params`."""


def run_lbfgs(
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
    """Maximize the objective by L-BFGS (Liu & Nocedal 1989) until an iteration gains less than `stop.tol` per row.

    Every evaluation is a pass and an entry of the history; the iterates of L-BFGS are the accepted ones, and are passed
    to observers. The start is the chart's representation of `params`. `run(resume=result.last)` continues with EM.
    """
    with executor or Threads() as workers:
        return _LbfgsLoop(problem, source, chart, stop, workers, observers, memory).maximize(params)


@dataclass(frozen=True)
class _Point(Generic[P, S]):
    """Parameters with their objective and gradient."""

    vector: Array
    params: P
    total: S
    objective: float
    slope: Array  # gradient of the objective


@dataclass(frozen=True)
class _Trial:
    """A trial point of the line search."""

    predicted: float  # the gain predicted by the gradient at the start of the line
    gain: float
    outside: str  # why the objective is undefined; empty where it is defined


class _Finished(Exception):  # noqa: N818  (not an error: it ends scipy's loop)
    def __init__(self, status: Status) -> None:
        self.status = status


class _LbfgsLoop(_Loop[P, R, S]):
    """The driver's loop with steps of L-BFGS instead of updates."""

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
        self.trials: list[_Trial] = []  # along the current line
        self.n_cut = 0  # line searches in succession cut short by the boundary of the domain

    def maximize(self, params: P) -> Run[P]:
        try:
            return self._result(self._search(params))
        except _Finished as finished:
            return self._result(finished.status)

    def _search(self, params: P) -> Status:
        vector = self._start(params)
        slope = self.chart.gradient(self.params, self.total)
        if not np.isfinite(slope).all():
            self.message = f"the gradient at the start is not finite; {Status.NOT_FINITE.value}"
            return Status.NOT_FINITE
        self.current = self.last_trial = _Point(vector, self.params, self.total, self.objective, slope)
        self._next_line(gain=float("inf"))
        # the rules of this class end the run; those of scipy, at zero, only where no gain is possible
        limits = {"maxcor": self.n_pairs, "ftol": 0.0, "gtol": 0.0, "maxiter": 10**9, "maxfun": 10**9}
        minimize(self._value, vector, jac=True, method="L-BFGS-B", callback=self._accept, options=limits)
        return self._judge_line()

    def _start(self, params: P) -> Array:
        """Do the first pass and return the coordinates of the start."""
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
            raise _Finished(status)
        return vector

    def _value(self, vector: Array) -> tuple[float, Array]:
        """Return minus the objective per unit of weight, which scipy minimizes, and its gradient."""
        if np.array_equal(vector, self.current.vector):
            return -self.current.objective / self.weight, -self.current.slope / self.weight
        if self.n_pass >= self.stop.max_passes:
            raise _Finished(Status.MAX_PASSES)
        predicted = float(self.current.slope @ (vector - self.current.vector))
        point, objective, note = self._point(vector)
        self._record(objective, objective - self.objective, "line", False, note)
        outside = "" if point is not None else note or "the objective is not finite"
        self.trials.append(_Trial(predicted, objective - self.objective, outside))
        if point is None:
            # as far below the start as the gradient predicted above it, with slope zero: the cubic interpolation of the
            # line search then takes a ninth of the step. Infinity would give NaN, and a huge number a step of zero.
            return (abs(predicted) - self.objective) / self.weight, np.zeros_like(vector)
        self.last_trial = point
        return -objective / self.weight, -point.slope / self.weight

    def _point(self, vector: Array) -> tuple[_Point[P, S] | None, float, str]:
        """Evaluate a point in one pass: the point (None outside the domain), its objective, the reason."""
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
        """Accept the last trial point as the new iterate."""
        if np.array_equal(vector, self.current.vector):
            raise _Finished(self._judge_line())
        gain = self.last_trial.objective - self.objective
        if gain < -rounding(self.objective, self.weight):
            raise _Finished(Status.DECREASED)
        self.trace[-1] = replace(self.trace[-1], accepted=True)
        self.current = self.last_trial
        self.params, self.total, self.objective = self.current.params, self.current.total, self.current.objective
        halted = self._observe()
        if halted is not None:
            raise _Finished(halted)
        self._next_line(gain)

    def _next_line(self, gain: float) -> None:
        """Finish if a stopping rule holds, else begin a new line search."""
        if self._certified():
            raise _Finished(Status.CONVERGED)
        if gain > self.stop.tol * self.weight:
            self.n_cut = 0
        elif not self._outside_reason():
            raise _Finished(Status.CONVERGED)
        else:  # a small gain along a line that the boundary of the domain cut short does not indicate an optimum
            self.n_cut += 1
            if self.n_cut == MAX_CUT:
                raise _Finished(self._domain_edge())
        self.trials = []
        self._mark()

    def _outside_reason(self) -> str:
        """Return why the current line left the domain; empty when it did not."""
        return next((trial.outside for trial in reversed(self.trials) if trial.outside), "")

    def _domain_edge(self) -> Status:
        if not self.trace[-1].note:  # otherwise the result's message begins with it
            self.message = f"{self._outside_reason()}; {Status.NOT_FINITE.value}"
        return Status.NOT_FINITE

    def _judge_line(self) -> Status:
        """Return the status after a line search without gain: converged, or the gradient's prediction failed."""
        noise = rounding(self.objective, self.weight)
        clear = [trial for trial in self.trials if trial.predicted > 100 * noise]
        nearest = min(clear, key=lambda trial: trial.predicted, default=None)
        small = max(self.stop.tol * self.weight, 10 * noise)
        if nearest is None:
            return Status.CONVERGED
        if nearest.outside:
            beyond = max(trial.predicted for trial in clear if trial.outside)
            return self._domain_edge() if beyond > small else Status.CONVERGED
        if self._outside_reason() and nearest.gain >= 0.5 * nearest.predicted:  # as predicted up to the boundary
            return self._domain_edge()
        # the maximum of the parabola through both points is lower than `small`
        if nearest.predicted**2 <= 4 * small * (nearest.predicted - nearest.gain):
            return Status.CONVERGED
        self.message = NO_ASCENT
        return Status.DECREASED
