"""Displays of multipliers: the heights drawn are the model's."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from mixent import (
    MEDBayesNetClassifier,
    MEDClassifier,
    MEDNoveltyDetector,
    MEDTreeClassifier,
)
from mixent.displays import MultipliersDisplay

from ..drawing import drawn, texts
from .petals import KIND, PETALS, X, Y


def test_multipliers_fall_and_their_share_is_the_estimate(curved, gauss):
    for model in (curved, gauss, MEDClassifier(C=5, calibration=None).fit(PETALS, KIND)):
        display = MultipliersDisplay.from_estimator(model)
        whole = np.reshape(model.multipliers_, (model.n_rows_, -1)).sum(axis=1)
        np.testing.assert_array_equal(display.multipliers, np.sort(whole)[::-1])
        np.testing.assert_array_equal(display.multipliers, whole[display.row])
        assert (display.multipliers == 0).mean() == pytest.approx(display.zero_share) == 1 - model.loo_estimate_
        ax = drawn(display)
        assert f"{len(model.support_)} of {model.n_rows_} rows are support rows" in ax.get_title(loc="left")
        points = np.concatenate([c.get_offsets() for c in ax.collections if len(c.get_offsets()) > 1])
        np.testing.assert_allclose(np.sort(points[:, 1]), np.sort(whole))
        assert ("Sum" in ax.get_ylabel()) == (len(model.classes_) > 2)
    first = MultipliersDisplay.from_estimator(curved)
    assert first.upper == 5 and first.classes[first.row_class[0]] == Y[first.row[0]]


def test_multipliers_without_a_bound_and_rows_without_weight():
    weight = np.ones(100)
    weight[:20] = 0
    model = MEDClassifier(C=5, margin="gaussian", calibration=None).fit(X, Y, sample_weight=weight)
    display = MultipliersDisplay.from_estimator(model)
    assert display.upper is None and (display.multipliers[display.row < 20] == 0).all()
    assert display.zero_share == pytest.approx((display.multipliers[display.row >= 20] == 0).mean())
    assert not any(text.startswith("C =") for text in texts(drawn(display)))
    with pytest.raises(TypeError, match="LogisticRegression"):
        MultipliersDisplay.from_estimator(LogisticRegression())


@pytest.mark.parametrize("margin", ["exponential", "gaussian"])
@pytest.mark.parametrize("rows", [X, X.mean(axis=0) < X])
def test_a_novelty_detector_has_rows_that_count_and_no_classes(margin, rows):
    model = MEDNoveltyDetector("product", margin=margin).fit(rows)
    display = MultipliersDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.multipliers, np.sort(model.multipliers_)[::-1])
    np.testing.assert_array_equal(display.multipliers, model.multipliers_[display.row])
    assert display.upper == (1 if margin == "exponential" else None) and display.loo_estimate is None
    assert not len(display.classes) and len(repr(display)) < 300
    ax = drawn(display)
    assert ax.get_title(loc="left") == f"{len(model.support_)} of {len(rows)} rows are support rows"
    assert ax.get_ylabel() == "Multiplier"
    (points,) = [c.get_offsets() for c in ax.collections if len(c.get_offsets()) > 1]
    np.testing.assert_allclose(points[:, 1], display.multipliers)
    near = margin == "exponential" and display.multipliers[0] > 0.5
    assert (ax.get_legend() is not None) == near and (not near or texts(ax) == ["C = 1"])


@pytest.mark.parametrize("model", [MEDTreeClassifier(C=1, calibration=None), MEDBayesNetClassifier([(0, 1)], C=1)])
def test_multipliers_of_trees_and_nets(model):
    display = MultipliersDisplay.from_estimator(model.fit(X.mean(axis=0) < X, Y))
    np.testing.assert_array_equal(display.multipliers, np.sort(model.multipliers_)[::-1])
    assert f"{len(model.support_)} of 100 rows are support rows" in drawn(display).get_title(loc="left")


def test_the_bound_is_drawn_where_rows_come_near_it():
    wrong = Y.copy()
    wrong[[0, 99]] = wrong[[99, 0]]
    display = MultipliersDisplay.from_estimator(MEDClassifier(C=5, calibration=None).fit(X, wrong))
    assert {0, 99} == set(display.row[:2]) and "C = 5" in texts(drawn(display))
    easy = MultipliersDisplay.from_estimator(MEDClassifier(C=1000, calibration=None).fit(PETALS[:100], KIND[:100]))
    assert easy.upper == 1000 and not any(text.startswith("C =") for text in texts(drawn(easy)))
    assert easy.ax_.get_ylim()[1] < 100


def test_a_display_is_a_line_and_takes_axes(curved):
    from matplotlib.figure import Figure

    display, ax = MultipliersDisplay.from_estimator(curved), Figure().subplots()
    assert drawn(display, ax) is ax and len(repr(display)) < 300
