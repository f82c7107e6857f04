"""Helpers that all estimators share: the warning of a run, threads, the temperature."""

import warnings

import numpy as np
import pytest

from mixent import GaussianMixture
from mixent.base.convergence import warn_unconverged
from mixent.base.executors import choose_executor
from mixent.core.executors import Serial, Threads

X = np.random.default_rng(0).normal(size=(40, 2))


@pytest.fixture(scope="module")
def run():
    return GaussianMixture(2, random_state=0).fit(X).run_


def test_a_run_that_converged_without_repairs_warns_of_nothing(run):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_unconverged(run, "Model")


def test_threads_only_where_there_is_work():
    assert isinstance(choose_executor(None, 1000, 10), Serial) and isinstance(choose_executor(1, 10**6, 10), Serial)
    assert isinstance(choose_executor(2, 10**6, 10), Threads)
    with pytest.raises(ValueError, match="n_jobs"):
        choose_executor(0, 10, 10)
