"""Wording of ensemble, boosting."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from mixent.ensemble import AdaBoostM1Classifier

from ...ensemble.test_boosting import BOTH, Says


@pytest.fixture(scope="module")
def two():
    X, y = make_classification(150, 6, n_informative=4, flip_y=0.15, class_sep=0.6, random_state=3)
    return X, np.where(y == 1, "yes", "no")


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize(("error", "first"), [(0.5, "0.5"), (0.8, "0.8"), (1.0, "1")])
def test_first_says_errs_on_of_the_training_weight_take(make, error, first):
    X = np.repeat([[0.0], [1.0]], 10, axis=0)
    y = X[:, 0].astype(int)
    wrong = np.r_[: int(10 * error), 10 : 10 + int(10 * error)]
    y[wrong] = 1 - y[wrong]
    with pytest.warns(
        UserWarning, match=f"first Says has a weighted training error of {first}, .*; choose a stronger base"
    ):
        make(Says(), 5).fit(X, y)


def test_stronger_base_or_weightboostclassifier_which_has_two_classes():
    X, y = np.repeat(np.arange(4.0)[:, None], 10, axis=0), np.repeat(np.arange(4), 10)
    X[:, 0] = (y + (np.arange(40) % 10 < 6)) % 4
    with pytest.warns(
        UserWarning, match="stronger base classifier, or WeightBoostClassifier, which separates one class at a time"
    ):
        AdaBoostM1Classifier(Says(), 5).fit(X, y)


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"estimator": GaussianNB}, TypeError, "an instance of a classifier; got the class GaussianNB"),
        ({"estimator": LinearRegression()}, TypeError, "a classifier with fit and predict; got LinearRegression"),
        ({"estimator": SimpleNamespace(fit=None)}, TypeError, "with fit and predict; got SimpleNamespace"),
        ({"n_estimators": 0}, ValueError, "n_estimators must be a whole number >= 1; got 0"),
        ({"resample": "always"}, ValueError, "resample must be 'auto', True or False; got 'always'"),
        (
            {"estimator": KNeighborsClassifier(), "resample": False},
            ValueError,
            "resample=False requires .* sample_weight, which KNeighborsClassifier does not support",
        ),
    ],
)
def test_options_that_make_no_sense(two, make, options, error, message):
    with pytest.raises(error, match=message):
        make(**options).fit(*two)


@pytest.mark.parametrize("make", BOTH)
def test_labels_that_cannot_be_counted(two, make):
    X, y = two
    with pytest.raises(ValueError, match="y holds label probabilities; give one label per row"):
        make(GaussianNB()).fit(X, np.full((len(y), 2), 0.5))
    with pytest.raises(ValueError, match="2 classes with sample_weight > 0; got 1; give rows of another"):
        make(GaussianNB()).fit(X, y, sample_weight=(y == "yes").astype(float))
    with pytest.raises(ValueError, match="sample_weight must be >= 0"):
        make(GaussianNB()).fit(X, y, sample_weight=-np.ones(len(y)))


def test_restart_is_yes_or_no():
    with pytest.raises(ValueError, match="restart must be True or False; got 'always'"):
        AdaBoostM1Classifier(restart="always").fit([[0.0], [1.0]], [0, 1])


def test_a_stage_that_errs_on_half_of_the_weight_is_left_out():
    X = np.repeat([[0.0], [1.0]], 10, axis=0)
    model = AdaBoostM1Classifier(Says(), 50).fit(X, np.where(np.arange(20) < 1, 1, X[:, 0].astype(int)))
    assert model.stopped_ == "stage 2 has a weighted error of 0.5, at least one half, and was discarded"
