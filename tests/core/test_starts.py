import numpy as np
import pytest

from mixent.core.driver import Status, Stop, run
from mixent.core.executors import Serial
from mixent.core.proposals import Squarem
from mixent.core.starts import best_of


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
