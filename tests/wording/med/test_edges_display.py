"""Wording of med, edges display."""

import pytest
from sklearn.linear_model import LogisticRegression

from mixent import MEDTreeClassifier
from mixent.displays import EdgeWeightsDisplay
from mixent.options import Margin

from ...drawing import drawn_panels
from ...med.test_edges_display import X, Y


@pytest.fixture(scope="module")
def trees():
    return MEDTreeClassifier(C=1, calibration=None, margin=Margin("laplace", target=2)).fit(X, Y)


def test_all_classes_share_one_structure():
    shared = MEDTreeClassifier(C=1, calibration=None, trees="shared").fit(X, Y)
    with pytest.raises(ValueError, match="all classes share one structure; leave label='b' out"):
        EdgeWeightsDisplay.from_estimator(shared, label="b")


def test_what_has_no_weights_says_so(trees):
    with pytest.raises(TypeError, match="needs a fitted MEDTreeClassifier; got LogisticRegression"):
        EdgeWeightsDisplay.from_estimator(LogisticRegression())
    likely = MEDTreeClassifier(objective="likelihood", calibration=None).fit(X, Y)
    with pytest.raises(ValueError, match="objective='likelihood' does not have; use TreeDisplay"):
        EdgeWeightsDisplay.from_estimator(likely)
    alone = MEDTreeClassifier(C=1, calibration=None).fit(X[["site_0"]], Y)
    with pytest.raises(ValueError, match="this display needs at least two columns; got 'site_0' only"):
        EdgeWeightsDisplay.from_estimator(alone)
    with pytest.raises(ValueError, match="label must be one of the classes"):
        EdgeWeightsDisplay.from_estimator(trees, label="c")


def test_it_shows_itself_in_a_line_and_fits_into_given_axes(trees):
    from matplotlib.figure import Figure

    display = EdgeWeightsDisplay.from_estimator(trees)
    assert len(repr(display)) < 300 and "array(" not in repr(display)
    figure = Figure(figsize=(10, 4))
    left, right = figure.subplots(1, 2)
    drawn_panels(display, left)
    assert len(drawn_panels(EdgeWeightsDisplay.from_estimator(trees, label="b"), right)) == 1
    with pytest.raises(ValueError, match="2 panels need axes that can be divided: make ax with plt.subplots"):
        display.plot(figure.add_axes((0, 0, 1, 1)))
