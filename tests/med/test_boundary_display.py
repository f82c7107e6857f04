"""Pictures of maximum entropy discrimination: the lines drawn are the model's."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from mixent import (
    MEDClassifier,
    MEDGaussianClassifier,
    MixtureClassifier,
)
from mixent.displays import BoundaryDisplay, RegionsDisplay

from ..drawing import drawn, texts
from .petals import IRIS, KIND, NAMED, PETALS, X, Y


def lines(ax, width):
    """Vertices of the contours of this line width."""
    contours = [c for c in ax.collections if len(c.get_linewidths()) and c.get_linewidths()[0] == width]
    return [np.concatenate([path.vertices for path in c.get_paths()]) for c in contours]


@pytest.mark.parametrize("margin", ["laplace", "exponential", "gaussian"])
def test_the_boundary_is_where_f_is_zero_and_the_lines_where_it_is_the_expected_margin(margin):
    model = MEDClassifier("rbf", C=5, margin=margin, calibration=None).fit(X, Y)
    display = BoundaryDisplay.from_estimator(model, X, Y)
    expected = {"laplace": 1.0, "exponential": 0.8, "gaussian": 1.0}[margin]
    assert display.margin == pytest.approx(expected)
    ax = drawn(display)
    (boundary,) = lines(ax, 1.8)
    np.testing.assert_allclose(model.decision_function(boundary), 0, atol=0.01)
    first, second = lines(ax, 1.1)
    np.testing.assert_allclose(model.decision_function(first), -expected, atol=0.01)
    np.testing.assert_allclose(model.decision_function(second), expected, atol=0.01)


def test_rows_beyond_the_line_of_their_class_have_no_ring(curved):
    display = BoundaryDisplay.from_estimator(curved, X, Y)
    kept = curved.decision_function(X) * np.where(curved.classes_[1] == Y, 1, -1)
    np.testing.assert_array_equal(np.flatnonzero(display.support), curved.support_)
    assert (kept[~display.support] > display.margin - 1e-3).all()
    assert (kept[display.support] < display.margin + 1e-3).all()
    ax = drawn(display)
    (rings,) = [c for c in ax.collections if len(c.get_facecolor()) == 0 and len(c.get_offsets()) > 1]
    np.testing.assert_array_equal(rings.get_offsets(), X[curved.support_])
    assert texts(ax) == [
        "\\$virginica_",
        "versicolor",
        f"Support rows: {len(curved.support_)} of 100",
        "Decision boundary",
        "Expected margin: 1",
    ]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("column 0", "column 1")


def test_other_rows_have_no_rings_and_rows_without_a_label_are_grey(curved):
    display = BoundaryDisplay.from_estimator(curved, X[:30], Y[:30])
    assert not display.support.any() and not any("support" in text for text in texts(drawn(display)))
    some = Y.astype(object)
    some[::2] = None
    display = BoundaryDisplay.from_estimator(curved, X, some)
    assert (display.point_class[::2] == -1).all() and "no label" in texts(drawn(display))
    assert (BoundaryDisplay.from_estimator(curved, X).point_class >= 0).all()  # as the model knows them


def test_labels_in_doubt_are_drawn_as_they_are_believed():
    some = Y.astype(object)
    some[np.arange(100) % 5 > 0] = None
    model = MEDClassifier(C=1, calibration=None).fit(X, some)
    display = BoundaryDisplay.from_estimator(model, X)
    np.testing.assert_array_equal(display.point_class, model.label_posterior_.argmax(axis=1))
    frame = pd.DataFrame(model.label_posterior_, columns=model.classes_)
    np.testing.assert_array_equal(BoundaryDisplay.from_estimator(model, X, frame).point_class, display.point_class)


def test_ellipses_are_in_the_units_of_the_columns(gauss):
    display = BoundaryDisplay.from_estimator(gauss, NAMED, Y)
    for s, label in enumerate(gauss.classes_):
        rows = X[label == Y]
        np.testing.assert_allclose(display.before.means[s], rows.mean(axis=0), rtol=0.02)
        np.testing.assert_allclose(display.before.covariances[s], np.cov(rows.T, ddof=0), rtol=0.15, atol=0.01)
        encoded = (X - gauss.encoder_.center) / gauss.encoder_.scale
        after = np.linalg.inv(display.after.covariances[s])
        away = X - display.after.means[s]
        ours = gauss.gaussians_[s].rows * (gauss.gaussians_[s].whiten(encoded) ** 2).sum(axis=1)
        np.testing.assert_allclose(np.einsum("ni,ij,nj->n", away, after, away), ours, rtol=1e-9)
    ax = drawn(display)
    styles = [patch.get_linestyle() for patch in ax.patches]
    assert styles.count("--") == styles.count("-") == 2
    assert texts(ax)[-2:] == ["Prior Gaussian (1σ)", "Fitted Gaussian (1σ)"]
    assert display.margin == pytest.approx(gauss.margin_.mean(0.0)) and ax.get_xlabel() == "length"


def test_an_ellipse_drawn_is_one_standard_deviation(gauss):
    display = BoundaryDisplay.from_estimator(gauss, NAMED, Y)
    ellipse = next(patch for patch in drawn(display).patches if patch.get_linestyle() == "-")
    edge = ellipse.get_patch_transform().transform(ellipse.get_path().vertices[:25:3])  # the others are off the curve
    away = edge - display.after.means[0]
    far = np.einsum("ni,ij,nj->n", away, np.linalg.inv(display.after.covariances[0]), away)
    np.testing.assert_allclose(far, 1, rtol=0.01)


def test_regions_show_no_gaussians_in_other_units_than_the_columns(gauss):
    """The means of this classifier are those of standardized columns."""
    assert np.abs(gauss.means_).max() < 2 < X.min(axis=0).max()
    display = RegionsDisplay.from_estimator(gauss, NAMED, Y, grid_size=5)
    assert display.means is None and len(drawn(display).patches) == 0


def test_columns_may_be_turned(gauss):
    straight = BoundaryDisplay.from_estimator(gauss, NAMED, Y, grid_size=30)
    turned = BoundaryDisplay.from_estimator(gauss, NAMED, Y, columns=("width", "length"), grid_size=30)
    np.testing.assert_allclose(turned.scores, straight.scores.T)
    np.testing.assert_array_equal(turned.points, straight.points[:, ::-1])
    np.testing.assert_array_equal(turned.after.means, straight.after.means[:, ::-1])
    np.testing.assert_array_equal(turned.after.covariances, straight.after.covariances[:, ::-1, ::-1])
    assert drawn(turned).get_xlabel() == "width"
    mixture = MixtureClassifier(1, "VVV", random_state=0).fit(X, Y)
    assert len(drawn(BoundaryDisplay.from_estimator(mixture, X, Y, columns=(1, 0))).patches) == 2


def test_gaussians_of_kernel_components_have_no_ellipses():
    model = MEDGaussianClassifier(C=5, kernel="rbf", n_kernel_components=4, calibration=None, random_state=0).fit(X, Y)
    display = BoundaryDisplay.from_estimator(model, X, Y)
    assert display.before is None and display.after is None
    drawn(display)


def test_gaps_are_left_out_of_the_picture():
    incomplete = X.copy()
    incomplete[::7, 0] = np.nan
    model = MEDGaussianClassifier(C=5, calibration=None).fit(incomplete, Y)
    display = BoundaryDisplay.from_estimator(model, incomplete, Y)
    assert len(display.points) == len(display.support) == np.isfinite(incomplete).all(axis=1).sum()
    assert display.after.covariances.shape == (2, 2, 2)
    drawn(display)


def test_more_classes_have_regions():
    model = MEDClassifier("poly", C=5, calibration=None).fit(PETALS, KIND)
    display = BoundaryDisplay.from_estimator(model, PETALS, KIND, grid_size=60)
    mesh = np.stack([a.ravel() for a in np.meshgrid(*display.grid)], axis=1)
    np.testing.assert_array_equal(display.scores.argmax(axis=2).ravel(), model.predict(mesh))
    assert display.margin is None
    ax = drawn(display)
    assert texts(ax)[:3] == ["class 0", "class 1", "class 2"] and "Decision boundary" in texts(ax)
    for border in lines(ax, 1.4):
        two = np.sort(model.decision_function(border), axis=1)[:, -2:]
        assert np.median(two[:, 1] - two[:, 0]) < 0.05
    gauss = MEDGaussianClassifier(C=3, calibration=None).fit(PETALS, KIND)
    assert len(drawn(BoundaryDisplay.from_estimator(gauss, PETALS, KIND)).patches) == 6


@pytest.mark.parametrize("other", [MixtureClassifier(1, "VVV", random_state=0), LogisticRegression(), SVC()])
def test_other_classifiers_have_the_same_picture_without_margins(other):
    display = BoundaryDisplay.from_estimator(other.fit(X, Y), X, Y)
    assert display.margin is None and not display.support.any() and display.before is None
    (boundary,) = lines(drawn(display), 1.8)
    p = np.abs(other.decision_function(boundary)) if hasattr(other, "decision_function") else None
    p = np.abs(other.predict_proba(boundary)[:, 1] - 0.5) if p is None else p
    assert p.max() < 0.02
    if isinstance(other, MixtureClassifier):
        np.testing.assert_allclose(display.after.means, other.means_)
        assert "Gaussian (1σ)" in texts(display.ax_)


def test_a_mixture_of_more_columns_is_seen_through_its_marginal():
    model = MixtureClassifier(1, "VVV", random_state=0).fit(IRIS, KIND)
    display = BoundaryDisplay.from_estimator(model, IRIS, KIND, columns=(2, 3), grid_size=20)
    mesh = np.stack([a.ravel() for a in np.meshgrid(*display.grid)], axis=1)
    np.testing.assert_array_equal(display.scores.argmax(axis=2).ravel(), model.marginal((2, 3)).predict(mesh))
    drawn(display)


def test_a_boundary_outside_the_picture_is_no_error():
    model = MEDClassifier(C=5, calibration=None).fit(X, Y)
    far = X[Y == "versicolor"] - 3
    ax = drawn(BoundaryDisplay.from_estimator(model, far))
    low, high = ax.get_xlim()
    assert low < np.median(far[:, 0]) < high < X[:, 0].max()  # about these rows, not the training rows
    boundary = [c for c in ax.collections if len(c.get_linewidths()) and c.get_linewidths()[0] == 1.8]
    assert not any(len(path.vertices) for c in boundary for path in c.get_paths())


def test_displays_show_themselves_in_a_line_and_share_axes(curved, gauss):
    from matplotlib.figure import Figure

    left, right = Figure(figsize=(11, 4)).subplots(1, 2)
    for model, ax in ((curved, left), (gauss, right)):
        table = X if model is curved else NAMED
        display = BoundaryDisplay.from_estimator(model, table, Y)
        assert drawn(display, ax) is ax
        assert len(repr(display)) < 400 and "array(" not in repr(display) and "\n" not in repr(display)
