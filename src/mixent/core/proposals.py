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
