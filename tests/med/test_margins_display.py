"""Displays of margins: the bars count the model's rows."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from mixent import (
    MEDBayesNetClassifier,
    MEDClassifier,
    MEDTreeClassifier,
)
from mixent.displays import MarginsDisplay
from mixent.options import Margin

from ..drawing import drawn

X, CODES = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[CODES]
TWO = np.where(CODES == 2, "yes", "no")
OPTIONS = {"C": 2.0, "cv": 2, "random_state": 0}


@pytest.fixture(scope="module")
def three():
    return MEDClassifier(**OPTIONS).fit(X, Y)


@pytest.fixture(scope="module")
def two():
    return MEDClassifier("rbf", **OPTIONS).fit(X, TWO)


def test_margins_are_those_of_the_scores(two, three):
    display = MarginsDisplay.from_estimator(two, X, TWO)
    f = two.decision_function(X) - np.diff(two.calibration_.score_offset)[0]
    np.testing.assert_allclose(display.margin, f * np.where(TWO == "yes", 1, -1), atol=1e-12)
    assert display.n_wrong == np.sum((f > 0) != (TWO == "yes")) and display.expected == 1.0
    np.testing.assert_array_equal(np.flatnonzero(display.support), two.support_)
    display = MarginsDisplay.from_estimator(three, X, Y)
    scores = three.decision_function(X) - three.calibration_.score_offset
    rival = np.where(np.eye(3, dtype=bool)[CODES], -np.inf, scores).max(axis=1)
    np.testing.assert_allclose(display.margin, scores[np.arange(150), CODES] - rival, atol=1e-12)
    np.testing.assert_array_equal(np.flatnonzero(display.support), three.support_)
    assert display.n_wrong == np.sum(scores.argmax(axis=1) != CODES)


def test_every_row_is_in_a_bar_and_none_crosses_zero(two, three):
    for model, y in ((two, TWO), (three, Y)):
        display = MarginsDisplay.from_estimator(model, X, y)
        ax = drawn(display)
        assert sum(bar.get_height() for bar in ax.patches) == 150
        assert all(bar.get_x() >= -1e-12 or bar.get_x() + bar.get_width() <= 1e-12 for bar in ax.patches)
        texts = [t.get_text() for t in ax.get_legend().get_texts()]
        n = len(model.support_)
        assert f"Support rows: {n}" in texts and f"Other rows: {150 - n}" in texts
        assert f"Negative margin: {display.n_wrong}" in texts and "Expected margin: 1" in texts
        left = [bar for bar in ax.patches if bar.get_x() + bar.get_width() <= 1e-12]
        assert sum(bar.get_height() for bar in left) == display.n_wrong
        assert ax.get_xlabel() and ax.get_ylabel() == "Number of training rows"


def test_rows_without_a_label_are_left_out():
    y = TWO.astype(object)
    y[::3] = None
    model = MEDClassifier(**OPTIONS).fit(X, y)
    display = MarginsDisplay.from_estimator(model, X, y)
    assert len(display.margin) == 100
    drawn(display)


def test_all_or_no_rows_have_a_multiplier():
    margin = np.linspace(1.5, 2, 10)
    for support, text in ((np.ones(10, bool), "Support rows: 10"), (np.zeros(10, bool), "Other rows: 10")):
        texts = [t.get_text() for t in drawn(MarginsDisplay(margin, support, 1.0)).get_legend().get_texts()]
        assert text in texts and len(texts) == 3
    drawn(MarginsDisplay(np.zeros(4), np.ones(4, bool), 0.0))  # nothing to see, nothing to fall over
    assert repr(MarginsDisplay(margin, np.ones(10, bool), 1.0)).startswith("MarginsDisplay(margin=<10 float64>")


def test_axes_that_are_there(two):
    plt = pytest.importorskip("matplotlib.pyplot")
    _, ax = plt.subplots()
    assert drawn(MarginsDisplay.from_estimator(two, X, TWO), ax) is ax


@pytest.mark.parametrize(
    "model",
    [
        MEDTreeClassifier(C=1, calibration=None),
        MEDTreeClassifier(margin=Margin("fixed", target=0.2), calibration=None),
        MEDBayesNetClassifier([(0, 1)], C=1, calibration=None),
    ],
)
def test_margins_of_trees_and_nets(model):
    some = X[::3], TWO[::3]
    display = MarginsDisplay.from_estimator(model.fit(*some), *some)
    sign = np.where(some[1] == model.classes_[1], 1, -1)
    np.testing.assert_allclose(display.margin, sign * model.decision_function(some[0]))
    np.testing.assert_array_equal(np.flatnonzero(display.support), model.support_)
    assert display.expected == pytest.approx(model.margin_.target)
    drawn(display)
