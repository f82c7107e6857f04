from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from mixent.core.driver import Status, Stop, rounding, run
from mixent.core.executors import Serial
from mixent.core.proposals import Squarem
from mixent.core.starts import REVISIONS, best_of, best_revised


def starts(make_mixture, seeds=range(4)):
    problem, source, _ = make_mixture(seed=0, n=300, truth=5)
    return problem, source, [make_mixture(seed=s, n=300)[2] for s in seeds]


def objectives(result):
    return [s.objective for s in result.trace]


@pytest.mark.parametrize("propose", [None, Squarem()])
def test_every_start_is_kept_and_the_long_run_is_the_best_one_gone_on_with(make_mixture, propose):
    problem, source, params = starts(make_mixture)
    options = {"executor": Serial(), "propose": propose}
    found = best_of(problem, source, params, stop=Stop(1e-8, 200), short_passes=6, **options)
    alone = [run(problem, source, p, stop=Stop(1e-8, 6), **options) for p in params]
    assert [objectives(r) for r in found.short] == [objectives(r) for r in alone]
    assert found.best == int(np.argmax([r.objective for r in alone]))
    whole = run(problem, source, params[found.best], stop=Stop(1e-8, 200), **options)
    assert objectives(found.run) == objectives(whole) and found.run.status is whole.status
    assert np.array_equal(found.run.params.components.gaussian.covs, whole.params.components.gaussian.covs)
    assert found.run.objective >= max(r.objective for r in found.short)


def test_one_start_is_one_run(make_mixture):
    problem, source, params = starts(make_mixture, [1])
    found = best_of(problem, source, params, stop=Stop(1e-6, 100), short_passes=3)
    assert found.short == () and found.best == 0
    assert objectives(found.run) == objectives(run(problem, source, params[0], stop=Stop(1e-6, 100)))


def test_a_start_without_an_objective_never_wins(make_mixture):
    problem, source, params = starts(make_mixture)
    broken = params[0].__class__(params[0].weights * np.nan, params[0].components)
    found = best_of(problem, source, [broken, *params, broken], stop=Stop(1e-6, 50), short_passes=5)
    assert [r.status is Status.NOT_FINITE for r in found.short] == [True] + [False] * 4 + [True]
    assert 1 <= found.best <= 4 and np.isfinite(found.run.objective)
    found = best_of(problem, source, [broken, broken], stop=Stop(1e-6, 50))
    assert found.run.status is Status.NOT_FINITE


def test_short_runs_that_are_long_enough_are_not_repeated(make_mixture):
    problem, source, params = starts(make_mixture)
    found = best_of(problem, source, params, stop=Stop(1e-8, 4), short_passes=20)
    assert found.run is found.short[found.best] and found.run.n_passes == 4


# --- revised problems -------------------------------------------------------------------------------------------------


class Counted(Serial):
    """Counts passes over the rows."""

    def __init__(self):
        super().__init__()
        self.n_passes = 0

    def total(self, stats, source):
        self.n_passes += 1
        return super().total(stats, source)


def stronger(problem, factor):
    """The problem with more pseudo-rows in its prior."""
    gaussian = problem.family.gaussian
    prior = replace(gaussian.prior, rows=factor * gaussian.prior.rows)
    return replace(problem, family=replace(problem.family, gaussian=replace(gaussian, prior=prior)))


def revising(times):
    """A rule that doubles the pseudo-rows this many times."""
    left = [times]

    def revise(problem, result):
        assert result.status is Status.CONVERGED
        left[0] -= 1
        return stronger(problem, 2.0) if left[0] >= 0 else None

    return revise


@pytest.mark.parametrize("n_starts", [1, 3])
@pytest.mark.parametrize("times", [0, 1, 2, 100])
def test_a_revised_problem_continues_the_same_history(make_mixture, times, n_starts):
    problem, source, params = starts(make_mixture, range(n_starts))
    executor, stop = Counted(), Stop(1e-8, 1000)
    last, result = best_revised(problem, source, params, revising(times), stop=stop, executor=executor)
    times = min(times, REVISIONS)
    run_ = result.run
    assert run_.status is Status.CONVERGED and run_.trace[-1].segment == times
    assert (last.family.gaussian.prior.rows == 2.0**times * problem.family.gaussian.prior.rows).all()
    assert [s.kind for s in run_.trace].count("start") == times + 1
    assert [s.n_pass for s in run_.trace if s.kind != "start"] == list(range(1, run_.n_passes + 1))
    accepted = [s for s in run_.trace if s.accepted]
    same = [(a, b) for a, b in pairwise(accepted) if a.segment == b.segment]
    assert all(b.objective >= a.objective - rounding(a.objective, source.total_weight) for a, b in same)
    assert result.n_passes == executor.n_passes
    alone = run(last, source, run_.params, stop=Stop(0.0, 0))  # the value is that of the last problem
    assert alone.objective == pytest.approx(run_.objective, rel=1e-12)


def test_without_a_revision_it_is_the_long_run_from_the_best(make_mixture):
    problem, source, params = starts(make_mixture)
    options = {"stop": Stop(1e-8, 200), "executor": Serial()}
    last, result = best_revised(problem, source, params, lambda *_: None, **options)
    plain = best_of(problem, source, params, **options)
    assert last is problem and objectives(result.run)[-1] == pytest.approx(objectives(plain.run)[-1], rel=1e-9)


def test_no_more_passes_than_the_rule_allows(make_mixture):
    problem, source, params = starts(make_mixture, [0])
    for most in (1, 5, 70):
        _, result = best_revised(problem, source, params, revising(100), stop=Stop(0.0, most))
        assert result.run.status is Status.MAX_PASSES and result.run.n_passes == most
