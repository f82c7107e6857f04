"""Wording of cli, bases."""

import pytest

from ...cli.test_bases import FIT


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("stack", "--set", "estimators=mixture,mixture"), "names must be unique"),
        (("stack", "--set", "estimators=mixture"), "estimators must be a list of classifiers"),
        (("adaboost", "--set", "n_estimators=0"), "n_estimators must be a whole number >= 1"),
    ],
)
def test_bases_that_are_refused(fails, options, message):
    assert message in fails(*FIT, *options)


def test_a_model_that_does_not_exist(fails):
    line = fails(*FIT, "adaboost", "--set", "estimator=mixtre", status=2)
    assert "unknown model 'mixtre'; did you mean 'mixture'?" in line


def test_a_word_that_is_neither_a_model_nor_a_column(fails):
    found = fails(*FIT, "stack", "--set", "estimators=mixtur,maxent")
    assert "'mixtur' is neither a model nor an input column of the table; did you mean the model 'mixture'?" in found
    compare = ("compare", *FIT[1:4], "--method", "stack", "--set", "estimators=mixtur,maxent", "--no-baselines")
    assert "'mixtur' is neither a model nor an input column of the table" in fails(*compare)
