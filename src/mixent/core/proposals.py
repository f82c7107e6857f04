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
        try:
            here, there = problem.pack(params), problem.pack(plain)
        except OutsideDomainError:
            return None, None
        if here is None or there is None or len(here) != len(there):  # a weight has just become zero
            return None, None
        if memory is None:  # first plain step of the pair: remember it
            return None, (here, there - here)
        start, r = memory
        if len(start) != len(here):
            return None, None
        v = (there - here) - r
        size = float(np.linalg.norm(v))
        if size == 0.0:
            return None, None
        stretch = min(float(np.linalg.norm(r)) / size, self.longest)
        if stretch <= 1.0:  # a = -1 is the plain step itself
            return None, None
        return problem.unpack(start + 2 * stretch * r + stretch**2 * v, plain), None


class SteadySquarem:
    """Squared extrapolation whose stretch is held to what has lately been accepted.

    Far from quadratic, the stretch |r| / |v| is often too bold, and each rejected proposal costs a pass. A rejection
    divides the most it may be by four, an accepted proposal that was held multiplies it.
    """

    first, least, longest = 4.0, 1.5, 1e4

    def __call__(self, problem: Problem[Any, Any, Any], memory: Any, params: Any, plain: Any) -> tuple[Any | None, Any]:
        here, there = problem.pack(params), problem.pack(plain)
        most, pair, tried = (self.first, None, None) if memory is None else memory
        if tried is not None:
            accepted = np.array_equal(problem.pack(problem.unpack(tried, params)), here)
            most = min(4 * most, self.longest) if accepted else max(most / 4, self.least)
        if pair is None:  # first plain step of the pair: remember it
            return None, (most, (here, there - here), None)
        start, r = pair
        v = (there - here) - r
        size = float(np.linalg.norm(v))
        stretch = min(float(np.linalg.norm(r)) / size, most) if size > 0 else 0.0
        if stretch <= 1.0:  # the plain step itself
            return None, (most, None, None)
        bold = start + 2 * stretch * r + stretch**2 * v
        return problem.unpack(bold, plain), (most, None, bold)
