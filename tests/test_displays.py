"""The public displays: names of their own, one way to draw, typed signatures."""

import inspect

import pytest
import sklearn.calibration
import sklearn.inspection
import sklearn.metrics
import sklearn.model_selection

import mixent.displays
from mixent.base.style import Display

DISPLAYS = [getattr(mixent.displays, name) for name in mixent.displays.__all__]


def test_names_are_none_of_scikit_learn():
    theirs = {
        name
        for module in (sklearn.metrics, sklearn.calibration, sklearn.inspection, sklearn.model_selection)
        for name in dir(module)
    }
    assert not theirs & set(mixent.displays.__all__)


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
