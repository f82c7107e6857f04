"""Wording of mixtures, displays."""

import pytest
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

from mixent import MixtureClassifier, SharedMixtureClassifier
from mixent.displays import ComponentsDisplay, GrowthDisplay, RegionsDisplay, SelectionDisplay
from mixent.options import Search

from ...mixtures.test_displays import GROWN, X, Y, drawn, gaussians, search, shared


def test_this_search_has_no_bic():
    drawn(SelectionDisplay.from_search(search([f"S{i}" for i in range(20)])))
    with pytest.raises(ValueError, match="this search has no bic; it has log_loss, n_components"):
        SelectionDisplay.from_search([{"log_loss": 1.0, "n_components": 2}])
    with pytest.raises(ValueError, match="criterion must be one of"):
        SelectionDisplay.from_search(search(), "loo")
    with pytest.raises(ValueError, match="this search has no cv; it has n_components, covariance, bic"):
        SelectionDisplay.from_search(search(), "cv")


def test_bic_lowest_of_its_class():
    model = MixtureClassifier("auto", search=Search("bic", per_class=True)).set_params(**GROWN).fit(X, Y)
    display = SelectionDisplay.from_estimator(model)
    ax = drawn(display)
    assert ax.get_ylabel() == "BIC − minimum of the class\n(nats × 2; lower is better)"
    assert ax.get_xlabel() == "Number of components of each class"


def test_held_out_log_loss():
    lines = [
        {"n_components": 1, "covariance": "VVI", "log_loss": 0.5, "folds": 2},
        {"n_components": [2, 1, 1], "covariance": ["VVI", "VVV", "VVI"], "log_loss": 0.4, "folds": 2, "chosen": True},
        {"n_components": [1, 2, 1], "covariance": ["VVI"] * 3, "log_loss": 0.45, "folds": 2},
        {"n_components": [1, 1, 2], "covariance": ["VVI"] * 3, "log_loss": 0.41, "folds": 2},
        {"n_components": 9, "covariance": "VVI", "log_loss": 0.01, "folds": 1},  # given up after the first
    ]
    display = SelectionDisplay.from_search(lines, "log_loss")
    ax = drawn(display)
    assert ax.get_ylabel() == "Held-out log-loss\n(nats per row; lower is better)"


def test_quadraticdiscriminantanalysis_has_no_class_given_component():
    with pytest.raises(ValueError, match="QuadraticDiscriminantAnalysis has no class_given_component_; fit a Shared"):
        ComponentsDisplay.from_estimator(QuadraticDiscriminantAnalysis())
    with pytest.raises(ValueError, match="SharedMixtureClassifier has no class_given_component_"):
        ComponentsDisplay.from_estimator(SharedMixtureClassifier())


def test_bic_lowest_of_its_line():
    model = MixtureClassifier("auto", search=Search("bic", per_class=True)).set_params(**GROWN).fit(X, Y)
    display = GrowthDisplay.from_estimator(model)
    ax = drawn(display)
    assert ax.get_ylabel() == "BIC − minimum of the class\n(nats × 2; lower is better)"
    with pytest.raises(ValueError, match="quantity must be one of 'criterion', 'log_likelihood', 'evaluations'"):
        display.plot(quantity="seconds")


def test_the_search_has_no_icl():
    fixed = SharedMixtureClassifier(3, "VVI", search=Search(growth="incremental")).fit(X, Y)
    with pytest.raises(ValueError, match="the search has no icl; fit with n_components=\"auto\" and search='icl'"):
        GrowthDisplay.from_estimator(fixed, "icl")
    with pytest.raises(ValueError, match="criterion must be one of 'bic', 'icl', 'aic', 'dic', 'dic_robust', 'cbic'"):
        GrowthDisplay.from_estimator(fixed, "loo")
    with pytest.raises(
        ValueError, match='SharedMixtureClassifier has no path_: fit it with growth="incremental" first'
    ):
        GrowthDisplay.from_estimator(shared())


def test_there_is_no_column():
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = gaussians().fit(frame, Y)
    with pytest.raises(ValueError, match="got column 7"):
        RegionsDisplay.from_estimator(model, frame, Y, columns=(0, 7))
    with pytest.raises(ValueError, match="must name two columns"):
        RegionsDisplay.from_estimator(model, frame, Y, columns=(0,))
    coded = gaussians(categorical=[1]).fit(X[:, :2], Y)
    with pytest.raises(ValueError, match="takes 'column 1' as categorical"):
        RegionsDisplay.from_estimator(coded, X[:, :2], Y)
