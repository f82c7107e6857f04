"""Acceleration as proposals: the driver accepts one only if the objective rises."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.core.driver import OutsideDomainError, Problem


class Squarem:
    """Squared extrapolation (Varadhan and Roland 2008).

    With t0, t1 = M(t0), t2 = M(t1), r = t1 - t0, v = t2 - 2 t1 + t0, it proposes
    t0 - 2 a r + a^2 v with a = -|r| / |v|. Two plain steps for each proposal, so every other
    step is plain and convergence is judged on a plain step.
    """

    longest = 1e4  # of -a

    def __call__(self, problem: Problem[Any, Any, Any], memory: Any, params: Any, plain: Any) -> tuple[Any | None, Any]:
        bold, memory = self._extrapolate(problem, memory, params, plain, self.longest)
        return None if bold is None else problem.unpack(bold, plain), memory

    def _extrapolate(
        self, problem: Problem[Any, Any, Any], pair: Any, params: Any, plain: Any, most: float
    ) -> tuple[Any | None, Any]:
        """(vector to be proposed or None, what to remember of the pair of plain steps)."""
        try:
            here, there = problem.pack(params), problem.pack(plain)
        except OutsideDomainError:
            return None, None
        if here is None or there is None or len(here) != len(there):  # a weight has just become zero
            return None, None
        if pair is None:  # first plain step of the pair: remember it
            return None, (here, there - here)
        start, r = pair
        if len(start) != len(here):
            return None, None
        v = (there - here) - r
        size = float(np.linalg.norm(v))
        if size == 0.0:
            return None, None
        stretch = min(float(np.linalg.norm(r)) / size, most)
        if stretch <= 1.0:  # a = -1 is the plain step itself
            return None, None
        return start + 2 * stretch * r + stretch**2 * v, None


class SteadySquarem(Squarem):
    """Squared extrapolation whose stretch is held to what has lately been accepted.

    Far from quadratic, |r| / |v| is often too bold, and each rejected proposal costs a pass. A rejection divides the
    most that -a may be by four, an accepted proposal multiplies it.
    """

    first, least = 4.0, 1.5

    def __call__(self, problem: Problem[Any, Any, Any], memory: Any, params: Any, plain: Any) -> tuple[Any | None, Any]:
        most, pair, tried = (self.first, None, None) if memory is None else memory
        if tried is not None:
            taken = np.array_equal(tried, problem.pack(params))
            most = min(4 * most, self.longest) if taken else max(most / 4, self.least)
        bold, pair = self._extrapolate(problem, pair, params, plain, most)
        if bold is None:
            return None, (most, pair, None)
        proposed = problem.unpack(bold, plain)
        return proposed, (most, None, None if proposed is None else problem.pack(proposed))
