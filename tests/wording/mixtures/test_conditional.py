"""Wording of mixtures, conditional distributions."""

import re

import numpy as np
import pandas as pd
import pytest

from mixent import GaussianMixture, MixtureClassifier

X = pd.DataFrame(
    {
        "size": [1.0, 2.0, None, 4.0, 5.5, 6.0, 7.0, 8.5],
        "width": [1.1, 2.3, 3.0, 3.8, None, 6.1, 6.7, 8.6],
        "color": ["red", "red", "blue", None, "blue", "blue", "red", "red"],
    }
)
Y = np.array([0, 0, 0, 0, 1, 1, 1, 1])


@pytest.fixture(scope="module")
def model():
    return GaussianMixture(1, "VVV").fit(X)


def test_how_distributions_are_shown(model):
    distribution = model.conditional(X)
    assert repr(distribution) == "ConditionalDistribution(8 rows, 3 with missing values, 1 component)"
    text = str(distribution)
    assert text.startswith("Missing values given the observed values")
    assert "Mean ± standard deviation, or most probable value" in text
    assert re.search(r"^2 +size +\d", text, re.M) and re.search(r"^3 +color +\w+ \(\d+\s%\)", text, re.M)
    row = distribution[2]
    assert repr(row) == "ConditionalRow(columns=['size'], category_probabilities={}, weights=[1])"
    assert "Missing values given the observed values of a row" in str(row) and "size" in str(row)
    assert "No value is missing." in str(distribution[0])
    assert "No value is missing." in str(model.conditional(X[:2]))


def test_how_probabilities_of_categories_are_shown(model):
    table = model.category_probabilities_["color"]
    assert repr(table) == "CategoryProbabilities(1 component, 2 values: blue, red)"
    assert re.search(r"component +blue +red\n0 +0\.\d{3} +0\.\d{3}", str(table))
    rows = model.conditional(X).probabilities("color")
    assert repr(rows) == "CategoryProbabilities(8 rows, 2 values: blue, red)"
    with pytest.raises(KeyError, match="unknown value 'pink'; the values of the column are 'blue', 'red'"):
        table["pink"]


def test_what_is_refused(model):
    distribution = model.conditional(X)
    for bad, message in (
        (
            lambda: distribution.quantile(0.5, "color"),
            "'color' is not a numeric column of the model; choose one of size",
        ),
        (lambda: distribution.quantile(0.5, 7), "7 is not a numeric column of the model; choose one of size, width"),
        (lambda: distribution.probabilities("size"), "'size' is not a categorical column of the model; choose one of"),
        (lambda: distribution.quantile(1.5, "size"), "q must be between 0 and 1, or a list of such probabilities; got"),
        (lambda: distribution.quantile([[0.5]], "size"), "q must be between 0 and 1, or a list of such"),
        (lambda: distribution.interval("size", 1.0), "level must be between 0 and 1; got 1.0"),
        (
            lambda: distribution.log_density(X),
            "values must have a value for each missing one; row 2 has none in column",
        ),
        (lambda: distribution.log_density(X[:3]), "values must have a row for each of the 8 rows; got 3"),
        (lambda: distribution.sample(0), "n_samples must be a whole number >= 1; got 0"),
        (lambda: model.sample_conditional(X, 1.5), "n_samples must be a whole number >= 1; got 1.5"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            bad()


def test_labels_that_are_refused():
    model = MixtureClassifier(1).fit(X, Y)
    for method in (model.impute, model.conditional, lambda X, y: model.sample_conditional(X, y=y)):
        with pytest.raises(ValueError, match=re.escape("y holds the label 5, which is none of the classes [0, 1]")):
            method(X, [5] * 8)
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            method(X, [0, 1])


def test_weights_that_are_refused(model):
    for method in ("score", "bic", "aic", "icl"):
        with pytest.raises(ValueError, match=re.escape("sample_weight must be >= 0; row 0 has -1")):
            getattr(model, method)(X, sample_weight=[-1.0] * 8)
