"""The public displays: names of their own, one way to draw, typed signatures."""

import inspect
import re

import matplotlib.pyplot as plt
import pytest
import sklearn.calibration
import sklearn.inspection
import sklearn.metrics
import sklearn.model_selection
from sklearn.datasets import load_iris

import mixent.displays
from mixent.base.displays import Display, computed
from mixent.displays import ConstraintsDisplay, ConvergenceDisplay, ReliabilityDisplay, RocCurvesDisplay

X, Y = load_iris(return_X_y=True)
MODEL = mixent.MixtureClassifier(1, "VVI").fit(X, Y)
DISPLAYS = [getattr(mixent.displays, name) for name in mixent.displays.__all__]


def test_names_are_none_of_scikit_learn():
    theirs = {
        name
        for module in (sklearn.metrics, sklearn.calibration, sklearn.inspection, sklearn.model_selection)
        for name in dir(module)
    }
    assert not theirs & set(mixent.displays.__all__)


def figures():
    return plt.get_fignums()


@pytest.mark.parametrize("display", DISPLAYS, ids=lambda display: display.__name__)
def test_all_that_makes_a_display_draws_it_and_takes_the_options_of_plot(display):
    options = list(inspect.signature(display.plot).parameters)[1:]
    for name, make in inspect.getmembers(display, inspect.ismethod):
        if name.startswith("from_"):
            own, doc = inspect.signature(make).parameters, inspect.getdoc(make)
            assert inspect.unwrap(make.__func__) is not make.__func__, name  # decorated
            assert all(own[option].kind is inspect.Parameter.KEYWORD_ONLY for option in options), name
            assert all(re.search(rf"(?m)^{option} : ", doc) for option in options), name


def test_from_estimator_draws_once_in_a_new_figure_or_in_ax():
    display = ConvergenceDisplay.from_estimator(MODEL)
    assert figures() == [1] and display.figure_.axes == [display.ax_]
    _, ax = plt.subplots()
    assert ConvergenceDisplay.from_estimator(MODEL, ax=ax).ax_ is ax
    assert RocCurvesDisplay.from_estimators({"a": MODEL}, X, Y, pos_label=1, ax=ax).ax_ is ax
    assert figures() == [1, 2]


def test_made_from_other_sources_a_display_is_still_drawn_once():
    ReliabilityDisplay.from_estimator(MODEL, X, Y)
    RocCurvesDisplay.from_classes(Y, MODEL.predict_proba(X), MODEL.classes_)
    assert figures() == [1, 2]


def test_options_of_plot_are_options_of_what_draws():
    maxent = mixent.MaxEntClassifier(prior_variance=1.0).fit(X, Y)
    _, (left, right) = plt.subplots(1, 2)
    display = ConstraintsDisplay.from_estimator(maxent, n_features=1, ax=left, quantity="residuals")
    display.plot(right, quantity="residuals")
    assert [len(ax.lines) for ax in (left, right)] == [len(left.lines)] * 2
    assert left.get_xlabel() == right.get_xlabel() != ""
    with pytest.raises(ValueError, match="quantity"):
        ConstraintsDisplay.from_estimator(maxent, quantity="x")
    with pytest.raises(TypeError, match="qantity"):
        ConstraintsDisplay.from_estimator(maxent, qantity="residuals")


def test_computed_draws_nothing_and_a_picture_is_unknown_to_pyplot():
    display = computed(ConvergenceDisplay.from_estimator, MODEL)
    assert display.ax_ is None and display.picture().axes == [display.ax_] and figures() == []


@pytest.mark.parametrize("display", DISPLAYS, ids=lambda display: display.__name__)
def test_a_display_computes_in_from_and_draws_in_plot(display):
    assert display.__name__.endswith("Display") and issubclass(display, Display)
    makers = [name for name, _ in inspect.getmembers(display, inspect.ismethod) if name.startswith("from_")]
    assert makers and all(inspect.getdoc(getattr(display, name)) for name in makers)
    assert list(inspect.signature(display.plot).parameters)[1] == "ax"
    for name in [*makers, "plot"]:
        signature = inspect.signature(getattr(display, name))
        assert signature.return_annotation == "Self", name
        assert all(p.annotation is not p.empty for p in signature.parameters.values() if p.name != "self"), name
