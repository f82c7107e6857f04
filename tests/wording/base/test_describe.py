"""Wording of base, describe."""

from dataclasses import replace

import pytest

import mixent as mx
from mixent.base.describe import convergence

from ...base.test_describe import X, Y


@pytest.fixture(scope="module")
def run():
    return mx.MixtureClassifier(1, random_state=0).fit(X, Y).run_


def test_did_not_converge_after_passes(run):
    failed = replace(run, status=type(run.status).MAX_PASSES, n_passes=7, message="raise max_iter")
    text, _items = convergence({"a": run, "b": failed})
    assert text.text == "Did not converge after 7 passes: raise max_iter"
