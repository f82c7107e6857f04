"""Wording of evaluate, cross validation."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from mixent.evaluate import cross_validate

from ...evaluate.test_cross_validation import Breaks, Spy, X, Y


@pytest.fixture(autouse=True)
def _empty():
    Spy.seen = []


@pytest.mark.parametrize(("what", "got"), [([3], "a int"), (GaussianNB, "the class GaussianNB")])
def test_what_is_no_estimator_is_refused(what, got):
    with pytest.raises(TypeError, match=f"must be a classifier, not fitted; got {got}"):
        cross_validate(what, X, Y)


def test_every_method_failed_in_every_fold_bad():
    with pytest.raises(RuntimeError, match="every method failed in every fold. bad: ZeroDivisionError"):
        cross_validate({"bad": Breaks()}, X, Y)


def test_knn_takes_no_sample_weight():
    weight = 1.0 + np.arange(150) % 3
    with pytest.warns(UserWarning, match="knn takes no sample_weight: it is fitted without"):
        cross_validate({"knn": KNeighborsClassifier()}, X, Y, sample_weight=weight)


def test_progress_counts_up_to_the_total():
    told = []
    cross_validate({"a": GaussianNB(), "b": Spy()}, X, Y, folds=3, repeats=2, progress=lambda *a: told.append(a))
    assert [t[0] for t in told] == list(range(13)) and {t[1] for t in told} == {12}
    assert told[1][2] == "a, fold 1 of 3, repeat 1" and told[-1][2] == "b, fold 3 of 3, repeat 2"


@pytest.mark.filterwarnings("ignore:class .* one row:mixent.DataWarning")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"estimators": {}}, "estimators is empty"),
        ({"estimators": []}, "estimators is empty"),
        ({"y": Y[:100]}, "X has 150 rows, y has 100"),
        ({"folds": 1}, "folds must be at least 2"),
        ({"y": ["a", "a", "b"], "X": X[:3]}, "lower folds"),
        ({"y": ["a", "a"], "X": X[:2]}, "at least 2 classes"),
        ({"y": [None] * 150}, "every label in y is absent"),
        ({"sample_weight": -np.ones(150)}, "sample_weight must be >= 0; row 0 has -1"),
    ],
)
@pytest.mark.filterwarnings("ignore:classes with")
def test_bad_input_says_what_to_do(change, message):
    given = {"estimators": {"nb": GaussianNB()}, "X": X, "y": Y} | change
    with pytest.raises(ValueError, match=message):
        cross_validate(given.pop("estimators"), given.pop("X"), given.pop("y"), **given)


def test_unknown_method_bost():
    X, y = load_iris(return_X_y=True)
    labels = np.where(np.arange(150) % 5 == 0, y.astype(object), None)
    cv = cross_validate(GaussianNB(), X, labels, folds=5)
    with pytest.raises(ValueError, match="unknown method 'bost'; choose one of 'GaussianNB'"):
        cv.difference("GaussianNB", "bost")


def test_a_method_without_probabilities():
    cv = cross_validate({"svc": LinearSVC(), "nb": GaussianNB()}, X, Y, folds=2)
    assert cv.failures == {
        "svc": "TypeError: LinearSVC has no predict_proba; wrap it in sklearn's CalibratedClassifierCV"
    }


def test_the_design_is_stated_in_words():
    cv = cross_validate({"a": GaussianNB()}, X, Y, folds=3, repeats=2)
    assert cv.design == "3-fold cross-validation, repeated 2 times"
    one_part = replace(cv, folds=np.where(cv.folds[:1] == 0, 0, -1))
    assert one_part.design == f"one held-out part of {(cv.folds[0] == 0).sum()} rows"
    part = replace(cv, n_planned=9)
    assert part.design == "6 of the 9 folds of cross-validation (the time budget ended before the seventh was complete)"
    assert replace(cv, n_planned=5, records=cv.records[:4]).design.startswith("4 of the 5 folds of cross-validation (")
    assert "6 of 9 folds, 2 repeats" in repr(part)
