"""Wording of comparison, compare."""

import re

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import mixent
from mixent.evaluate.journal import Journal

from ...comparison.conftest import quick
from ...comparison.test_compare import Broken, Few, Slow
from ...evaluate.test_workers import Hangs


def test_no_method_worked_in_every_fold_broken(table):
    with pytest.raises(RuntimeError, match="every method failed in some fold. broken: ValueError: out of luck"):
        mixent.compare(*table, methods={"broken": Broken()}, baselines=False, n_jobs=1, folds=3)


def test_it_could_not_be_fitted_to_all_rows(table):
    comparison = mixent.compare(*table, methods={"naive": Few()}, baselines=False, n_jobs=1, folds=3)
    assert comparison.recommendation.points[-1] == "It could not be fitted to all rows: MemoryError: too many"


def test_a_journal_of_other_data_is_refused(table, tmp_path):
    X, y = table
    path = tmp_path / "j"
    options = {"methods": {"naive": GaussianNB()}, "baselines": False, "n_jobs": 1, "folds": 3, "refit": False}
    mixent.compare(X, y, **options, journal=path)
    other = X.copy()
    other.iloc[0, 0] += 1e-9
    weighted = {"sample_weight": np.arange(1.0, 91.0)}
    changes = (
        (other, y, {}),
        (X, np.roll(y, 1), {}),
        (X, y, {"random_state": 1}),
        (X, y, {"folds": 4}),
        (X, y, weighted),
    )
    for changed in changes:
        with pytest.raises(ValueError, match="is the journal of another comparison"):
            mixent.compare(*changed[:2], **options | changed[2], journal=path)
    path.write_text("something else\n")
    with pytest.raises(ValueError, match="is not a journal of cross-validation; name another file"):
        Journal.open(path, "compare", "")


def test_a_method_that_takes_too_long_is_named(table):
    methods = {"slow": Hangs(), "naive": GaussianNB()}
    comparison = mixent.compare(*table, methods=methods, baselines=False, n_jobs=1, folds=3, limit=1.5)
    assert comparison.recommended == "naive"
    assert re.fullmatch(r"stopped after 0 of 3 folds: a fit was ended after 1\.\d s", comparison.skipped["slow"])
    assert comparison.recommendation.points[-1] == "1 method did not finish for lack of time."
    assert str(comparison).count("slow") == 1 and "Stopped early: slow after 0 of 3 folds: a fit" in str(comparison)


def test_a_method_that_is_clearly_behind_is_named(table):
    result = mixent.compare(*table, methods=quick(), baselines=False, n_jobs=1, folds=4, refit=False)
    reason = "after 2 of 4 folds (log-loss 1.100; naive on the same folds 0.521): clearly behind"
    assert result.skipped == {"shares of classes": f"stopped {reason}"}
    assert result.skipped_notes == [f"Stopped early: shares of classes {reason}."] and "Left out" not in str(result)


def test_not_begun(table):
    methods = {"naive": GaussianNB(), "late": Slow()}
    comparison = mixent.compare(*table, methods=methods, baselines=False, n_jobs=1, folds=3, budget=0.1, refit=False)
    assert comparison.skipped["late"] == "not begun: the time budget was over"
    assert comparison.skipped_notes == ["Left out: late: not begun: the time budget was over."]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "calibration"}, "metric must be one of 'error', 'balanced_error', 'log_loss', 'brier'"),
        (
            {"methods": "mixture"},
            "methods must be 'auto', a list of names and classifiers, or a dict, name",
        ),
        ({"methods": ["magic"]}, "unknown method 'magic'; choose one of 'mixture', "),
        ({"methods": ["mixtur"]}, r"unknown method 'mixtur'; did you mean 'mixture'\? Choose one of 'mixture', "),
        ({"methods": {}, "baselines": False}, "methods is empty; give at least one method, or set baselines=True"),
        (
            {"methods": {"naive Bayes": GaussianNB()}},
            "'naive Bayes' is the name of a baseline; give your method another",
        ),
        ({"budget": 0}, "budget must be"),
        ({"folds": 2.5}, "folds must be a whole number >= 1; got 2.5"),
        ({"repeats": "3"}, "repeats must be a whole number >= 1; got '3'"),
        ({"baselines": "no"}, "baselines must be True or False; got 'no'"),
        (
            {"methods": 3},
            "a list of names and classifiers, or a dict, name -> classifier; got 3",
        ),
        ({"n_jobs": 0}, "n_jobs must be None, -1 or a positive number"),
        ({"random_state": None}, "random_state must be a whole number, which all methods use"),
    ],
)
def test_refused(table, options, message):
    with pytest.raises(ValueError, match=message):
        mixent.compare(*table, **options)


def test_refused_data(table):
    X, y = table
    with pytest.raises(ValueError, match="y = 'u' names a column, so X must be a DataFrame; got ndarray; pass"):
        mixent.compare(X.to_numpy(), "u")
    with pytest.raises(ValueError, match="unknown column 'w'; the columns are 'u', 'v'"):
        mixent.compare(X, "w")
    with pytest.raises(TypeError, match=r"methods\['int'\] must be a classifier, not fitted; got a int"):
        mixent.compare(X, y, methods=[3])
    with pytest.raises(ValueError, match="X has 90 rows, y has 89"):
        mixent.compare(X, y[:-1])
    with pytest.raises(ValueError, match="a classifier needs at least 2 classes; y has 1 class"):
        mixent.compare(X, ["a"] * len(y))
    with pytest.raises(
        TypeError, match=r"methods\['naive'\] must be a classifier, not fitted; got the class GaussianNB"
    ):
        mixent.compare(X, y, methods={"naive": GaussianNB})
    with pytest.raises(ValueError, match="a comparison needs at least 2 classes with rows of weight > 0; got 1"):
        mixent.compare(X, y, sample_weight=(y == "a").astype(float))
    with pytest.raises(TypeError, match=r"methods\['naive'\] must be a classifier, not fitted; got a str"):
        mixent.compare(X, y, methods={"naive": "Bayes"})
