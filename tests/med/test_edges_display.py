"""Squares of edge weights: what stands above and below the diagonal is the model's."""

import itertools

import numpy as np
import pandas as pd
import pytest

from mixent import MEDTreeClassifier
from mixent.displays import EdgeWeightsDisplay
from mixent.options import Margin, Trees

from ..drawing import drawn_panels

LETTERS = np.array(list("ACGT"))


def rows(n, columns, seed=0):
    rng = np.random.default_rng(seed)
    code = rng.integers(4, size=(n, columns))
    code[:, 1] = np.where(rng.random(n) < 0.7, code[:, 0], code[:, 1])
    y = np.where(rng.random(n) < 0.5, "b", "$a_")
    same = (y == "b") & (rng.random(n) < 0.8)
    code[same, 3] = code[same, 2]
    return pd.DataFrame(LETTERS[code], columns=[f"site_{v}" for v in range(columns)]), y


X, Y = rows(120, 5)


def halves(ax):
    """What is seen above and below the diagonal."""
    return [image.get_array() for image in ax.images]


@pytest.fixture(scope="module")
def trees():
    return MEDTreeClassifier(C=1, calibration=None, margin=Margin("laplace", target=2)).fit(X, Y)


def test_weights_are_above_the_diagonal_and_information_below(trees):
    display = EdgeWeightsDisplay.from_estimator(trees)
    panels = drawn_panels(display)
    assert len(panels) == 2 and display.kind == "information"
    above = np.triu(np.ones((5, 5), dtype=bool), 1)
    for s, ax in enumerate(panels):
        weights, information = halves(ax)
        np.testing.assert_array_equal(weights.mask, ~above)
        np.testing.assert_array_equal(information.mask, ~above.T)
        wanted = trees.edge_weights_[s][above]
        np.testing.assert_allclose(weights.compressed(), wanted - wanted.mean(), atol=1e-12)
        np.testing.assert_array_equal(information.T.compressed(), trees.mutual_information_[s].T[above])
    assert panels[1].get_title(loc="left") == "b" and panels[0].get_title(loc="left") == "\\$a_"


def test_both_squares_have_one_scale_for_each_half_and_labels(trees):
    panels = drawn_panels(EdgeWeightsDisplay.from_estimator(trees))
    for one, other in zip(panels[0].images, panels[1].images):
        assert one.get_clim() == other.get_clim()
    assert panels[0].images[1].get_clim()[0] == 0  # no information
    assert [t.get_text() for t in panels[0].get_xticklabels()] == [f"site_{v}" for v in range(5)]
    assert (panels[0].get_xlabel(), panels[0].get_ylabel()) == ("Column v", "Column u")
    assert not panels[0].child_axes
    assert [bar.get_ylabel() for bar in panels[1].child_axes] == [
        "Centered log W (nats)",
        "Mutual information (nats)",
    ]


def test_the_edge_that_tells_the_classes_apart_is_the_darkest_above(trees):
    display = EdgeWeightsDisplay.from_estimator(trees, label="b")
    assert len(display.weights) == 1 and display.titles == ["b"]
    (ax,) = drawn_panels(display)
    assert ax is display.ax_
    weights, information = halves(ax)
    assert np.unravel_index(weights.argmax(), weights.shape) == (2, 3)
    assert np.unravel_index(information.argmax(), information.shape) in ((1, 0), (3, 2))


def test_integrated_tables_have_marginals_below():
    model = MEDTreeClassifier("integrated", C=1, calibration=None).fit(X, Y)
    display = EdgeWeightsDisplay.from_estimator(model)
    assert display.kind == "marginals"
    np.testing.assert_array_equal(display.below[0], model.edge_marginals_[0])
    assert drawn_panels(display)[-1].child_axes[1].get_ylabel() == "Probability of the edge"


def test_a_shared_structure_has_one_square_and_mixtures_one_for_each_component():
    shared = MEDTreeClassifier(C=1, calibration=None, trees="shared").fit(X, Y)
    display = EdgeWeightsDisplay.from_estimator(shared)
    assert display.titles == ["all classes"] and len(drawn_panels(display)) == 1
    mean = sum(share * one for share, one in zip(shared.class_prior_, shared.mutual_information_))
    np.testing.assert_allclose(display.below[0], mean)
    with pytest.raises(ValueError, match="label='b'"):
        EdgeWeightsDisplay.from_estimator(shared, label="b")
    mixture = MEDTreeClassifier(C=1, calibration=None, random_state=0, trees=Trees(n_trees=2)).fit(X, Y)
    display = EdgeWeightsDisplay.from_estimator(mixture)
    assert display.titles == ["$a_, tree 0", "$a_, tree 1", "b, tree 0", "b, tree 1"]
    assert len(drawn_panels(display)) == 4
    assert EdgeWeightsDisplay.from_estimator(mixture, label="b").titles == display.titles[2:]


@pytest.mark.parametrize(("columns", "named"), [(25, 25), (40, 20), (60, 30)])
def test_names_of_many_columns_do_not_run_into_each_other(columns, named):
    wide, y = rows(80, columns)
    panels = drawn_panels(EdgeWeightsDisplay.from_estimator(MEDTreeClassifier(C=0.1, calibration=None).fit(wide, y)))
    labels = panels[0].get_yticklabels()
    assert len(labels) == named
    boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: box.y0)
    assert all(lower.y1 <= upper.y0 + 2 for lower, upper in itertools.pairwise(boxes))
