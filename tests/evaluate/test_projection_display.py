"""The plane that parts the classes best, and the mean answer about each of its points."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from mixent.displays import ProjectionDisplay, RocCurvesDisplay
from mixent.evaluate.displays.projection import MOST_COLUMNS, SHRINK, discriminants, encoded, local_mean

X, CODES = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[CODES]
W, WINES = load_wine(return_X_y=True)


def fisher_ratio(Z, true, score):
    """Between over shrunk within, of one direction's scores: what the first axis maximizes."""
    direction = np.linalg.lstsq(Z, score, rcond=None)[0]
    means = np.stack([Z[true == c].mean(axis=0) for c in np.unique(true)])[true]
    within = (Z - means).T @ (Z - means) / len(Z)
    within = (1 - SHRINK) * within + SHRINK * np.trace(within) / len(within) * np.eye(len(within))
    return (direction @ means.T @ means @ direction / len(Z)) / (direction @ within @ direction)


def test_no_direction_parts_the_classes_better_than_the_first():
    Z = encoded(W)[0]
    points, kept = discriminants(Z, WINES)
    best = fisher_ratio(Z, WINES, points[:, 0] - points[:, 0].mean())
    rng = np.random.default_rng(0)
    for _ in range(200):
        assert fisher_ratio(Z, WINES, Z @ rng.normal(size=Z.shape[1])) <= best * (1 + 1e-9)
    assert best >= fisher_ratio(Z, WINES, points[:, 1] - points[:, 1].mean())
    assert kept > 0.95


def test_axes_are_in_deviations_within_classes_and_go_with_the_discriminants():
    points, _ = discriminants(encoded(X)[0], CODES)
    means = np.stack([points[c == CODES].mean(axis=0) for c in range(3)])
    np.testing.assert_allclose(((points - means[CODES]) ** 2).mean(axis=0), 1.0)
    assert (means[2] >= points.mean(axis=0)).all()  # the last class lies to the right and above
    plain = LinearDiscriminantAnalysis().fit_transform(X, CODES)
    assert abs(np.corrcoef(points[:, 0], plain[:, 0])[0, 1]) > 0.98  # shrinking turns it a little


def test_rows_units_and_names_of_classes_change_nothing():
    at = discriminants(encoded(X)[0], CODES)[0]
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(discriminants(encoded(X[order])[0], CODES[order])[0], at[order], rtol=1e-7, atol=1e-9)
    scaled = X * [1e3, 1e-3, 5, 1] + [7, 0, -1e4, 3]
    np.testing.assert_allclose(discriminants(encoded(scaled)[0], CODES)[0], at, rtol=1e-6, atol=1e-7)
    turned = discriminants(encoded(X)[0], 2 - CODES)[0]
    np.testing.assert_allclose(np.abs(turned - turned.mean(axis=0)), np.abs(at - at.mean(axis=0)), rtol=1e-6, atol=1e-7)


def test_of_two_classes_the_second_axis_goes_its_own_way():
    points, _ = discriminants(encoded(X[:100])[0], CODES[:100])
    assert abs(np.corrcoef(points.T)[0, 1]) < 1e-9
    alone, _ = discriminants(np.arange(8.0)[:, None] - 3.5, np.repeat([0, 1], 4))
    assert alone.shape == (8, 2) and (alone[:, 1] == 0).all()


def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(40, MOST_COLUMNS + 50))
    true = np.arange(40) % 2
    Z[:, 7] += 8 * true
    points, kept = discriminants(Z, true)
    assert np.isfinite(points).all() and kept == 1.0
    assert abs(np.corrcoef(points[:, 0], Z[:, 7])[0, 1]) > 0.6


def test_the_map_is_the_mean_answer_about_a_place():
    axes = (np.linspace(-3, 3, 13), np.linspace(-2, 2, 9))
    points, values = np.array([[0.0, 0.0], [1.0, 0.5], [-1, 1]]), np.array([[1.0, 0], [0.25, 0.75], [0, 1]])
    width = np.array([0.7, 0.4])
    found, near = local_mean(axes, points, values, width)
    assert found.shape == (9, 13, 2) and near.shape == (9, 13)
    for i, v in enumerate(axes[1]):
        for j, u in enumerate(axes[0]):
            k = np.exp(-0.5 * ((([u, v] - points) / width) ** 2).sum(axis=1))
            np.testing.assert_allclose(found[i, j], k @ values / k.sum(), rtol=1e-9)
    np.testing.assert_allclose(found.sum(axis=2), 1)
    assert near[0, 0] < 0.01 and near[4, 6] == 1  # far from all rows, and at one


def test_far_from_every_row_the_map_is_white():
    found, near = local_mean((np.array([0.0, 1e6]),) * 2, np.zeros((3, 2)), np.eye(3), np.ones(2))
    assert near[1, 1] == 0 and np.isfinite(found).all()


def test_it_is_drawn_for_any_model_and_any_columns():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "a_name_much_too_long_for_an_axis"])
    frame["color"] = np.where(CODES == 2, "red", "blue")
    frame.loc[::9, "a"] = np.nan
    proba = GaussianNB().fit(X, Y).predict_proba(X)
    display = ProjectionDisplay.from_predictions(frame, Y, proba, np.unique(Y))
    wrong = np.unique(Y)[proba.argmax(axis=1)] != Y
    assert wrong.any() and (display.wrong == wrong).all()
    assert len(display.ax_.collections) == 4  # three classes and the crosses
    assert len(display.ax_.collections[-1].get_offsets()) == wrong.sum()
    legend = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    assert legend == ["setosa", "versicolor", "virginica", "misclassified"]
    assert "a_name_much_too_lon…" in display.names[0] and "color = blue" in encoded(frame)[1]
    assert "color = red" not in encoded(frame)[1]  # it says the same
    own = ProjectionDisplay.from_estimator(GaussianNB().fit(X, Y), X, Y)
    assert (own.wrong == wrong).all() and own.names[0].startswith("column ")


def test_rows_without_label_or_answer_are_left_out():
    y, proba = Y.astype(object), np.eye(3)[CODES]
    y[:10], proba[10:15] = None, np.nan
    display = ProjectionDisplay.from_predictions(X, y, proba, np.unique(Y))
    assert len(display.points) == 135 and not display.wrong.any()


def test_curves_of_each_class_against_the_others():
    from sklearn.metrics import roc_auc_score

    proba = GaussianNB().fit(X[::2], Y[::2]).predict_proba(X)
    display = RocCurvesDisplay.from_classes(Y, proba, np.unique(Y))
    for c, label in enumerate(np.unique(Y)):
        assert display.curves[label].auc == pytest.approx(roc_auc_score(label == Y, proba[:, c]))
    assert display.ax_.get_xlabel() == "False Positive Rate"
    weight = np.linspace(0.5, 2, 150)
    weighted = RocCurvesDisplay.from_classes(Y, proba, np.unique(Y), sample_weight=weight)
    expected = roc_auc_score(Y == "virginica", proba[:, 2], sample_weight=weight)
    assert weighted.curves["virginica"].auc == pytest.approx(expected)
    fewer = RocCurvesDisplay.from_classes(Y[:100], proba[:100], np.unique(Y))
    assert list(fewer.curves) == ["setosa", "versicolor"]  # none of the third is there to be found
    with pytest.raises(ValueError, match="proba"):
        RocCurvesDisplay.from_classes(Y, proba[:, 1:], np.unique(Y))
    with pytest.raises(ValueError, match="'setosa'"):
        RocCurvesDisplay.from_classes(Y[:50], proba[:50], np.unique(Y))
