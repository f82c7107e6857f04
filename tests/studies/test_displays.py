"""The display of scores by ensemble size."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
from sklearn.naive_bayes import GaussianNB

from mixent.displays import EnsembleSizeDisplay
from mixent.studies import size_curves

from ..drawing import drawn


@pytest.fixture(scope="module")
def curves():
    X, y = load_iris(return_X_y=True)
    makers = {
        "$boosted_": AdaBoostClassifier(random_state=0),
        "bagged": BaggingClassifier(GaussianNB(), random_state=0),
    }
    return size_curves(makers, X, y, sizes=[1, 4, 20], folds=3)


@pytest.mark.parametrize(
    ("metric", "factor", "label"), [("error", 100, "Error (%)"), ("log_loss", 1, "Log-loss (nats)")]
)
def test_lines_are_means_and_bands_standard_errors(curves, metric, factor, label):
    ax = drawn(EnsembleSizeDisplay.from_curves(curves), metric=metric)
    assert ax.get_ylabel() == label and ax.get_xlabel() == "Ensemble size (number of estimators)"
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [r"\$boosted_", "bagged"]
    for line, band, name in zip(ax.lines, ax.collections, curves.methods):
        mean, spread = factor * curves.mean(name, metric), factor * curves.std_error(name, metric)
        np.testing.assert_allclose(line.get_xydata(), np.column_stack([[1, 4, 20], mean]))
        corners = band.get_paths()[0].vertices
        np.testing.assert_allclose(corners[:, 1].max(), (mean + spread).max())
        np.testing.assert_allclose(corners[:, 1].min(), (mean - spread).min())
    assert [t.get_text() for t in ax.get_xticklabels()] == ["1", "4", "20"] and ax.get_xscale() == "log"
    assert len({(line.get_color(), line.get_marker()) for line in ax.lines}) == 2


def test_without_bands_and_in_given_axes(curves):
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    display = EnsembleSizeDisplay.from_curves(curves)
    assert drawn(display, ax, band=False) is ax and not ax.collections and len(repr(display)) < 200


@pytest.mark.parametrize(
    ("sizes", "scale", "ticks"),
    [
        ([10, 20, 50, 70, 100], "linear", 5),
        (list(range(1, 31)), "linear", None),
        ([1, 2, 3, 4, 5, 60, 61], "linear", None),
        ([1, 2, 100], "log", 3),
    ],
)
def test_sizes_are_ticks_where_they_stand_apart(curves, sizes, scale, ticks):
    values = {"a": np.linspace(1, 0, len(sizes))}
    display = EnsembleSizeDisplay(np.array(sizes), {"error": values}, {"error": values})
    ax = drawn(display)
    assert ax.get_xscale() == scale
    if ticks:
        assert ax.get_xticks().tolist() == sizes
    else:
        assert ax.get_xticks().tolist() != sizes
