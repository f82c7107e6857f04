"""Wording of base, convergence."""

import warnings
from dataclasses import replace

import pytest
from sklearn.exceptions import ConvergenceWarning

from mixent import GaussianMixture
from mixent.base.convergence import warn_unconverged
from mixent.base.executors import choose_executor
from mixent.core.driver import Status

from ...base.test_convergence import X


@pytest.fixture(scope="module")
def run():
    return GaussianMixture(2, random_state=0).fit(X).run_


def test_a_run_that_ended_early_and_repairs_are_warned_of(run):
    with pytest.warns(ConvergenceWarning, match="Model did not converge: max_iter was reached"):
        warn_unconverged(replace(run, status=Status.MAX_PASSES, message="max_iter was reached"), "Model")
    step = replace(run.trace[-1], kind="repair")
    repaired = replace(run, trace=tuple(replace(step, note=f"component {k} was re-seeded") for k in range(5)))
    with pytest.warns(ConvergenceWarning, match="component 2 was re-seeded. And 2 more; fewer components may suffice"):
        warn_unconverged(repaired, "Model")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_unconverged(repaired, "Model", searched=True)


def test_a_run_without_a_start_is_refused(run):
    message = "a covariance is not positive definite; check for huge values"
    start = replace(run.trace[0], accepted=False, objective=float("-inf"))
    refused = replace(run, status=Status.NOT_FINITE, message=message, trace=(start,))
    with pytest.raises(ValueError, match=f"Model cannot be fitted to these rows: {message}"):
        warn_unconverged(refused, "Model")


def test_n_jobs_must_be_none_or_a_positive_number():
    with pytest.raises(ValueError, match="n_jobs must be None, -1 or a positive number of threads; got 0"):
        choose_executor(0, 10, 10)
