"""Wording of med, describe."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from mixent.base.registry import entry_of
from mixent.base.text import percent
from mixent.med import (
    MEDClassifier,
    MEDGaussianClassifier,
    MEDNoveltyDetector,
    MEDTreeClassifier,
)
from mixent.options import RBF, LabelUpdates, Polynomial, Tables, Trees

from ...med.test_describe import OPTIONS, TWO, WORDS, X, Y, facts_of
from ...med.test_unlabelled import clouds


def test_for_the_labels_inferred_at_the_end_the_objective():
    uncertain = 0.7 * (Y[::10, None] == np.unique(Y)) + 0.1
    model = MEDGaussianClassifier(C=1.0, calibration=None, random_state=0).fit(X[::10], uncertain)
    assert "For the labels inferred at the end, the objective is at most" in str(model.summary())


def test_C():
    options = {"C": 2.0, "calibration": None}
    assert "Upper bound on the multipliers: C = 2, as given." in str(MEDClassifier(**options).fit(X, TWO).summary())
    text = " ".join(str(MEDClassifier(margin="gaussian", **options).fit(X, TWO).summary()).split())
    assert "Scale of the margin prior: C = 2, as given; its standard deviation is 1 / C." in text
    assert "The multipliers have no upper bound." in text and "Upper bound on" not in text


def test_hard_margin():
    apart = X + 20.0 * (TWO == "yes")[:, None]
    fixed = MEDClassifier(margin="fixed", calibration=None).fit(apart, TWO)
    assert "Hard margin of 1 for every row" in str(fixed.summary())


@pytest.mark.parametrize(
    ("calibration", "text"),
    [
        ("temperature", "calibrated on held-out rows (temperature)"),
        ("affine", "(affine), plus"),
        ("predictive", "Bayes' rule with the predictive density of each class"),
        (None, "softmax of the scores, not calibrated"),
    ],
)
def test_calibration(calibration, text):
    model = MEDGaussianClassifier(calibration=calibration, **OPTIONS).fit(X, TWO)
    assert facts_of(model)["calibration"]["kind"] == calibration and text in str(model.summary())


def test_labelled_training_rows(three):
    on_rows = entry_of(three).on_rows
    (figure,) = on_rows(three, X, Y)
    wrong, n_support = int(np.sum(three.classes_[three._scores(X).argmax(axis=1)] != Y)), len(three.support_)
    assert f"training rows: {n_support} support rows, {wrong} with a negative margin" in figure.alt


def test_the_error_is_that_of_held_out_rows(three):
    text = " ".join(str(three.summary()).split())
    error = percent(three.cv_error_, 1).replace("\N{NO-BREAK SPACE}", " ")
    assert f"Error on held-out rows: {error}, in the cross-validation of the calibration; " in text
    assert f"the leave-one-out error is at most {100 * three.loo_estimate_:.0f}" in text
    chosen = MEDClassifier(cv=2, calibration=None, random_state=0).fit(X, TWO)
    assert "in the cross-validation of C; slightly optimistic" in " ".join(str(chosen.summary()).split())
    plain = MEDClassifier(C=1, calibration=None).fit(X, TWO)
    assert "held-out" not in str(plain.summary()) and plain.summary().facts["cv_error"] is None


@pytest.mark.parametrize(
    ("model", "name", "text"),
    [
        (MEDClassifier(**OPTIONS), "linear", "Linear discriminant function of 4 encoded columns"),
        (MEDClassifier(RBF(0.5), **OPTIONS), "rbf", "RBF kernel with gamma 0.5."),
        (MEDClassifier(RBF(0.5, n_landmarks=9), **OPTIONS), "rbf", "gamma 0.5, approximated by 9 landmarks"),
        (MEDClassifier(Polynomial(2, 0.5), **OPTIONS), "poly", "Polynomial kernel of degree 2 with gamma 0.5, coef0 1"),
        (MEDClassifier(lambda A, B: A @ B.T, **OPTIONS), "function", "Kernel given as a function"),
        (MEDClassifier(StandardScaler(), **OPTIONS), "StandardScaler", "Inner products of the features of StandardSc"),
        (
            MEDGaussianClassifier(kernel=RBF(0.5), n_kernel_components=1, **OPTIONS),
            "rbf",
            "Gaussian densities of the 1 leading principal component of the RBF kernel with gamma 0.5",
        ),
    ],
)
def test_kernels(model, name, text):
    assert facts_of(model.fit(X, TWO))["kernel"]["name"] == name
    assert text in " ".join(str(model.summary()).split())


def test_numbers_in_trees():
    for continuous, text in (("gaussian", "numbers are Gaussian"), ("quantized", "quantized by a mixture per column")):
        model = MEDTreeClassifier(Tables(continuous=continuous), C=0.5, calibration=None).fit(X, TWO)
        assert text in " ".join(str(model.summary()).split())


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "Average over all trees of 4 columns, separate for each class, with fixed tables."),
        ({"tables": "integrated"}, "separate for each class, with Dirichlet tables, learned with the trees"),
        ({"trees": "shared"}, "shared by all classes"),
        ({"trees": Trees(n_trees=2)}, "in a mixture of 2 for each class"),
        ({"objective": "likelihood", "C": "auto"}, "Trees of maximum likelihood of 4 columns, separate"),
    ],
)
def test_trees(options, text):
    model = MEDTreeClassifier(**{"C": 0.5, "calibration": None, "random_state": 0, **options}).fit(WORDS, Y)
    assert text in " ".join(str(model.summary()).split())


@pytest.mark.parametrize(
    ("density", "options", "rows", "text"),
    [
        ("product", {}, X, "Density of 4 columns, independent of each other"),
        ("gaussian", {}, X, "Density of 4 columns with jointly Gaussian numbers"),
        ("tree", {}, WORDS, "Average over all dependency trees of 4 columns, with Dirichlet tables"),
        ("mixture", {"n_hidden": 2}, X, "Mixture of 2 components over 4 columns"),
        ("hmm", {"n_hidden": 2}, X, "Hidden Markov model with 2 states; rows are sequences of 4 steps"),
    ],
)
def test_densities(density, options, rows, text):
    model = MEDNoveltyDetector(density, **options).fit(rows)
    assert text in " ".join(str(model.summary()).split())


def test_a_fit_far_from_the_optimum_is_not_said_to_have_converged():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2)), rng.integers(3, size=120)
    with pytest.warns(ConvergenceWarning, match=r"stopped: no step improves the objective .*; set a smaller C"):
        model = MEDClassifier("rbf", C=1e9, calibration=None).fit(X, y)
    text = " ".join(str(model.summary()).split())
    assert "Stopped after" in text and "no step improves the objective at a duality gap of" in text


def test_unlabelled_rows_that_are_not_used_are_not_said_to_be():
    X, _, partly = clouds(120, label_by=1)
    text = " ".join(str(MEDClassifier(C=0.3, random_state=0).fit(X, partly).summary()).split())
    assert "Rows without a label were not used" in text and "were used;" not in text
    assert "support rows (their multiplier is not zero); without any other row the model is the same" in text
    assert "of 120 rows are support rows" not in text and "For the labels inferred at the end" not in text
    X, _, partly = clouds(100, label_by=0, seed=16, n_labelled=12)
    updates = LabelUpdates(class_prior={"a": 0.4, "b": 0.6})
    model = MEDClassifier(C=1.0, relaxation=updates, random_state=0).fit(X, partly)
    assert "88 rows without a certain label were used" in " ".join(str(model.summary()).split())
