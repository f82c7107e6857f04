"""The two steps of section 4.1, whatever is hidden: Theorem 6 on a problem small enough to see through."""

from types import SimpleNamespace

import numpy as np
import pytest

from mixent.core.driver import Status
from mixent.med.latent import LatentProblem, LatentSolution, alternate_steps
from mixent.med.solving import Search


class Quadratic:
    """min_x over (x - 3)^2 + (x - h)^2 / 2 with h hidden: each step is known, and the limit x = h = 3."""

    def __init__(self):
        self.begun_from = []

    def solve(self, hidden, before):
        self.begun_from.append(before)
        x = (6.0 + hidden) / 3.0
        return SimpleNamespace(x=x, minimum=(x - 3.0) ** 2 + 0.5 * (x - hidden) ** 2)

    def infer(self, solution):
        return solution.x


def go(start=0.0, tol=1e-12, max_iter=100, observers=()):
    game = Quadratic()
    problem = LatentProblem(game.solve, game.infer)
    return game, alternate_steps(problem, start, np.ones(5), Search(1e-6, max_iter, observers=observers), tol)


def test_the_steps_alternate_and_the_relative_entropy_never_rises():
    _, run = go()
    assert run.status is Status.CONVERGED and isinstance(run.params, LatentSolution)
    entropy = np.array([-step.objective for step in run.trace])
    assert (np.diff(entropy) <= 0).all() and all(step.accepted for step in run.trace)
    h, expected = 0.0, []
    for _ in entropy:
        x = (6.0 + h) / 3.0
        expected.append((x - 3.0) ** 2 + 0.5 * (x - h) ** 2)
        h = x
    np.testing.assert_allclose(entropy, expected, rtol=1e-12)
    assert run.params.solution.x == pytest.approx(3.0, abs=1e-4)
    assert run.objective == -run.params.solution.minimum


def test_a_solution_starts_from_the_one_before():
    game, run = go()
    assert game.begun_from[0] is None and all(before is not None for before in game.begun_from[1:])
    assert len(game.begun_from) == len(run.trace)


def test_the_tolerance_is_per_row_and_passes_are_limited():
    loose, tight = go(tol=1e-2)[1], go(tol=1e-10)[1]
    assert loose.n_passes < tight.n_passes
    gains = [step.gain for step in loose.trace[1:]]
    assert gains[-1] <= 5 * 1e-2 and all(gain > 5 * 1e-2 for gain in gains[:-1])
    few = go(max_iter=2)[1]
    assert few.status is Status.MAX_PASSES and few.n_passes == 2


def test_a_step_that_raises_the_relative_entropy_is_refused():
    """Were the theorem broken, the run would report it."""
    game = Quadratic()
    wrong = LatentProblem(game.solve, lambda solution: -10.0 * abs(solution.x) - 10.0)
    run = alternate_steps(wrong, 2.0, np.ones(5), Search(1e-6, 100), 1e-9)
    assert run.status is Status.DECREASED and run.params.hidden == 2.0


def test_observers_are_called_after_every_pass():
    passes = []
    go(observers=(lambda event: passes.append(event.n_pass),))
    assert passes == list(range(len(passes))) and len(passes) > 3
