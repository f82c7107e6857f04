"""How a problem of natural statistics is solved, for every margin prior."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixent.core.arrays import Array
from mixent.core.driver import Event, Halt, Observer, Run
from mixent.med.exponential_family import WRITTEN, ExponentialFamilyProblem, ExponentialFamilySequential, Joint, Push
from mixent.med.margins import Fixed, Gaussian
from mixent.med.problem import evened
from mixent.med.solving import HARDEST, STIFF, Search, approach

NEWTON = 30  # steps before local problems are solved as they are
SOFT, HARDER = 1.0, 3.0  # how a certain margin is approached
LOCAL, ROOM = 2 * WRITTEN, 5 * 10**7  # most demands of such a one, and numbers in their features


@dataclass(frozen=True)
class Found:
    """Where a search ended."""

    run: Run
    joint: Joint
    multipliers: Array  # (n, P)
    minimum: float  # D(P || P0) + sum w loss, from above
    dual: float | None  # from below


def solve(problem: ExponentialFamilyProblem, search: Search, start: Joint | None = None) -> Found:
    """The minimum relative entropy solution."""
    if isinstance(problem.margin, Fixed):
        return _by_multipliers(problem, search, start or problem.prior)
    found = climb(problem, search, start or problem.prior)
    lam = balanced(problem, problem.multipliers(found.params))
    return Found(found, found.params, lam, -found.objective, problem.dual(found.params, push_of(problem, lam)))


def push_of(problem: ExponentialFamilyProblem, lam: Array) -> Push:
    """What the rows do with these multipliers."""
    asked = problem.demands
    silent = np.zeros(lam.shape)
    if not isinstance(problem.margin, Fixed):  # of one that is certain a demand that cannot change says nothing
        silent = np.where(asked.open & ~asked.speaks, problem.margin.loss(asked.given), 0.0)
    return problem.pushed(lam, asked, problem.views, silent)


def balanced(problem: ExponentialFamilyProblem, lam: Array) -> Array:
    """Multipliers that keep the equality of one flat bias."""
    if problem.contrast.shape[1] != 1 or np.isfinite(problem.bias_variance):
        return lam
    pushed = problem.demands.weight[:, None] * lam * problem.demands.kept(np.tile(problem.contrast.T, (len(lam), 1)))
    return lam * evened(pushed)


def climb(problem: ExponentialFamilyProblem, search: Search, start: Joint) -> Run:
    """Newton's steps while they serve, then one local problem after the other where they can be written out."""
    asked = np.count_nonzero(problem.demands.speaks)
    small = asked <= LOCAL and asked * max(len(part.T) for part in problem.prior.parts) <= ROOM
    steps = min(NEWTON, search.max_iter) if small else search.max_iter
    first = replace(search, max_iter=steps).run(problem, problem.source(), start)
    if not small or first.status.ok or first.n_passes >= search.max_iter:
        return first
    precise = float(np.clip(1e-6 * search.gap, 1e-13, 1e-10))
    more = replace(search, max_iter=search.max_iter - first.n_passes)
    second = more.run(ExponentialFamilySequential(problem, precise), problem.source(), first.params)
    return replace(second, n_passes=first.n_passes + second.n_passes)


def _too_far(problem: ExponentialFamilyProblem, farthest: float) -> Observer:
    """Stops where the least relative entropy, bounded from below, would be more than there can be."""

    def look(event: Event) -> Halt | None:
        lam = balanced(problem, problem.multipliers(event.params))
        bound = problem.dual(event.params, push_of(problem, lam))
        return Halt("no distribution is so far from the prior") if bound is not None and bound > farthest else None

    return look


def _by_multipliers(problem: ExponentialFamilyProblem, search: Search, start: Joint) -> Found:
    """A certain margin: softly at first, for where it cannot be kept a stiff beginning takes long."""
    margin, asked, at = problem.margin, problem.demands, start
    assert isinstance(margin, Fixed)
    farthest = sum(part.farthest for part in problem.prior.parts) if np.isinf(problem.bias_variance) else np.inf

    def step(stiff: float, lam: Array) -> tuple[Run, Array, Array, None]:
        nonlocal at
        near = replace(asked, given=asked.given - lam / stiff**2)
        soft = replace(problem, margin=Gaussian(stiff, margin.at), demands=near)
        found = climb(soft, replace(search, observers=(*search.observers, _too_far(soft, farthest))), at)
        at = found.params
        return found, soft.multipliers(at), problem.margins(at), None

    live = asked.speaks & (asked.weight > 0)[:, None]
    found, lam, _, _ = approach(margin, live, step, SOFT, HARDER, HARDEST * STIFF)
    lam = balanced(problem, lam)
    return Found(found, at, lam, problem.divergence(at), problem.dual(at, push_of(problem, lam)))
