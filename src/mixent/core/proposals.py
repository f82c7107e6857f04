"""Acceleration by proposals; the driver accepts a proposal only if it increases the objective."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.core.driver import OutsideDomainError, Problem, Proposal


class Squarem:
    """Squared extrapolation (Varadhan and Roland 2008).

    With t0, t1 = M(t0), t2 = M(t1), r = t1 - t0, v = t2 - 2 t1 + t0, it proposes
    t0 - 2 a r + a^2 v with a = -|r| / |v|. Each proposal needs two plain steps, and convergence is judged by the
    gain of a plain step.
    """

    max_length = 1e4  # upper limit of -a

    def __call__(self, problem: Problem[Any, Any, Any], memory: Any, params: Any, plain: Any) -> tuple[Any | None, Any]:
        vector, memory = self._extrapolate(problem, memory, params, plain, self.max_length)
        return None if vector is None else problem.unpack(vector, plain), memory

    def _extrapolate(
        self, problem: Problem[Any, Any, Any], pair: Any, params: Any, plain: Any, max_length: float
    ) -> tuple[Any | None, Any]:
        """Return (proposed vector or None, state of the pair of plain steps)."""
        try:
            current, updated = problem.pack(params), problem.pack(plain)
        except OutsideDomainError:
            return None, None
        if current is None or updated is None or len(current) != len(updated):  # a weight has just become zero
            return None, None
        if pair is None:  # first plain step of the pair: store it
            return None, (current, updated - current)
        start, r = pair
        if len(start) != len(current):
            return None, None
        v = (updated - current) - r
        size = float(np.linalg.norm(v))
        if size == 0.0:
            return None, None
        length = min(float(np.linalg.norm(r)) / size, max_length)  # -a
        if length <= 1.0:  # a = -1 is the plain step itself
            return None, None
        return start + 2 * length * r + length**2 * v, None


class Delayed:
    """Another proposal after a number of plain steps.

    Far from a maximum, an extrapolated step can increase the objective and yet lead to a lower local maximum than plain
    steps do. This is less frequent after some plain steps, but not excluded.

    Parameters
    ----------
    proposal : Proposal
    n_plain : int
        Number of plain steps in the beginning of each segment of the history.
    """

    def __init__(self, proposal: Proposal, n_plain: int) -> None:
        self.proposal, self.n_plain = proposal, n_plain

    def __call__(self, problem: Problem[Any, Any, Any], memory: Any, params: Any, plain: Any) -> tuple[Any | None, Any]:
        n_done, inner = (0, None) if memory is None else memory
        if n_done < self.n_plain:
            return None, (n_done + 1, None)
        proposed, inner = self.proposal(problem, inner, params, plain)
        return proposed, (n_done, inner)


class SteadySquarem(Squarem):
    """Squared extrapolation with an adaptive upper limit of the step length -a.

    Where the objective is far from quadratic, |r| / |v| is often too large, and each rejected proposal costs a pass.
    A rejected proposal divides the limit by four, an accepted one multiplies it by four.
    """

    first_limit, min_limit = 4.0, 1.5

    def __call__(self, problem: Problem[Any, Any, Any], memory: Any, params: Any, plain: Any) -> tuple[Any | None, Any]:
        limit, pair, previous = (self.first_limit, None, None) if memory is None else memory
        if previous is not None:
            accepted = np.array_equal(previous, problem.pack(params))
            limit = min(4 * limit, self.max_length) if accepted else max(limit / 4, self.min_limit)
        vector, pair = self._extrapolate(problem, pair, params, plain, limit)
        if vector is None:
            return None, (limit, pair, None)
        proposed = problem.unpack(vector, plain)
        return proposed, (limit, None, None if proposed is None else problem.pack(proposed))
