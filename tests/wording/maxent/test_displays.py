"""Wording of maxent, displays."""

import numpy as np
import pytest

from mixent import MixtureClassifier
from mixent.displays import ConstraintsDisplay, PathDisplay
from mixent.options import Search

from ...maxent.test_displays import X, Y, drawn


def test_features_need_axes_that_can_be_divided(iris):
    plt = pytest.importorskip("matplotlib.pyplot")
    figure, (_left, right) = plt.subplots(1, 2, figsize=(14, 6), layout="constrained")
    display = ConstraintsDisplay.from_estimator(iris, n_features=2)
    drawn(display, right)
    free = figure.add_axes([0, 0, 0.5, 0.5])
    with pytest.raises(ValueError, match="2 features need axes that can be divided: make ax with plt.subplots"):
        display.plot(free)


def test_constraints_that_are_not_there(iris):
    with pytest.raises(ValueError, match="MixtureClassifier has no constraints; give a fitted MaxEntClassifier"):
        ConstraintsDisplay.from_estimator(MixtureClassifier(1).fit(X, Y))
    with pytest.raises(ValueError, match="unknown feature 'z'; the features of the model are "):
        ConstraintsDisplay.from_estimator(iris, ["a", "z"])
    with pytest.raises(ValueError, match="feature is empty"):
        ConstraintsDisplay.from_estimator(iris, [])
    with pytest.raises(ValueError, match="n_features must be a whole number >= 1; got 0"):
        ConstraintsDisplay.from_estimator(iris, n_features=0)
    with pytest.raises(
        ValueError, match="quantity must be one of 'contributions', 'multipliers', 'residuals'; got 'x'"
    ):
        ConstraintsDisplay.from_estimator(iris, quantity="x")


def test_no_path(iris):
    for model in (iris, MixtureClassifier(2, "VVI", search=Search(growth="incremental")).fit(X, Y)):
        with pytest.raises(ValueError, match="has no selection path; fit a MaxEntClassifier.selection="):
            PathDisplay.from_estimator(model)
    with pytest.raises(ValueError, match="quantity must be one of 'score', 'gain'; got 'x'"):
        PathDisplay(["a"], np.ones(1), np.ones(1), np.ones(1), np.ones(1, dtype=bool), "bic").plot(quantity="x")
