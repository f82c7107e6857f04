"""Classifiers by maximum entropy discrimination in pictures and words: the numbers are the model's."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

from mixent import (
    FisherKernel,
    GaussianMixture,
    HiddenMarkovModel,
    HMMClassifier,
    MEDBayesNetClassifier,
    MEDClassifier,
    MEDGaussianClassifier,
    MEDNoveltyDetector,
    MEDTreeClassifier,
    MixtureClassifier,
)
from mixent.displays import MarginsDisplay
from mixent.evaluate.discrimination import describe_discrimination, in_words, strongest_columns, what_kernel
from mixent.med import RBF, Margin, Polynomial

X, CODES = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[CODES]
TWO = np.where(CODES == 2, "yes", "no")
OPTIONS = {"C": 2.0, "cv": 2, "random_state": 0}


@pytest.fixture(scope="module")
def three():
    return MEDClassifier(**OPTIONS).fit(X, Y)


@pytest.fixture(scope="module")
def two():
    return MEDClassifier("rbf", **OPTIONS).fit(X, TWO)


def drawn(display, ax=None):
    assert display.plot(ax) is display and display.figure_ is display.ax_.figure
    display.figure_.canvas.draw()
    return display.ax_


# margins


def test_margins_are_those_of_the_scores(two, three):
    display = MarginsDisplay.from_estimator(two, X, TWO)
    np.testing.assert_allclose(display.margin, two.decision_function(X) * np.where(TWO == "yes", 1, -1))
    assert display.n_wrong == np.sum(two.predict(X) != TWO) and display.wanted == 1.0
    np.testing.assert_array_equal(np.flatnonzero(display.support), two.support_)
    display = MarginsDisplay.from_estimator(three, X, Y)
    scores = three.decision_function(X)
    rival = np.where(np.eye(3, dtype=bool)[CODES], -np.inf, scores).max(axis=1)
    np.testing.assert_allclose(display.margin, scores[np.arange(150), CODES] - rival)
    np.testing.assert_array_equal(np.flatnonzero(display.support), three.support_)
    assert display.n_wrong == np.sum(three.predict(X) != Y)


def test_every_row_is_in_a_bar_and_none_crosses_zero(two, three):
    for model, y in ((two, TWO), (three, Y)):
        display = MarginsDisplay.from_estimator(model, X, y)
        ax = drawn(display)
        assert sum(bar.get_height() for bar in ax.patches) == 150
        assert all(bar.get_x() >= -1e-12 or bar.get_x() + bar.get_width() <= 1e-12 for bar in ax.patches)
        texts = [t.get_text() for t in ax.get_legend().get_texts()]
        n = len(model.support_)
        assert f"with a multiplier: {n}" in texts and f"without: {150 - n}" in texts
        assert f"left of 0, wrong: {display.n_wrong}" in texts and "margin asked for: 1" in texts
        left = [bar for bar in ax.patches if bar.get_x() + bar.get_width() <= 1e-12]
        assert sum(bar.get_height() for bar in left) == display.n_wrong
        assert ax.get_xlabel() and ax.get_ylabel() == "training rows"


def test_rows_without_a_label_are_left_out():
    y = TWO.astype(object)
    y[::3] = None
    model = MEDClassifier(**OPTIONS).fit(X, y)
    display = MarginsDisplay.from_estimator(model, X, y)
    assert len(display.margin) == 100
    drawn(display)


def test_all_or_none_speak():
    margin = np.linspace(1.5, 2, 10)
    for support, told in ((np.ones(10, bool), "with a multiplier: 10"), (np.zeros(10, bool), "without: 10")):
        texts = [t.get_text() for t in drawn(MarginsDisplay(margin, support, 1.0)).get_legend().get_texts()]
        assert told in texts and len(texts) == 3
    drawn(MarginsDisplay(np.zeros(4), np.ones(4, bool), 0.0))  # nothing to see, nothing to fall over
    assert repr(MarginsDisplay(margin, np.ones(10, bool), 1.0)).startswith("MarginsDisplay(margin=<10 float64>")


def test_axes_that_are_there(two):
    plt = pytest.importorskip("matplotlib.pyplot")
    _, ax = plt.subplots()
    assert drawn(MarginsDisplay.from_estimator(two, X, TWO), ax) is ax


def test_margins_that_are_not_there(two):
    with pytest.raises(ValueError, match="MixtureClassifier has no multipliers; give a fitted MEDClassifier"):
        MarginsDisplay.from_estimator(MixtureClassifier(1).fit(X, Y), X, Y)
    with pytest.raises(ValueError, match="the model was fitted to: it saw 150, and these are 10"):
        MarginsDisplay.from_estimator(two, X[:10], TWO[:10])
    with pytest.raises(ValueError, match="MEDNoveltyDetector has no classes, and margins are .* LikelihoodsDisplay"):
        MarginsDisplay.from_estimator(MEDNoveltyDetector("product").fit(X), X, Y)
    likely = MEDTreeClassifier(objective="likelihood", calibration=None).fit(X, Y)
    with pytest.raises(ValueError, match="objective='likelihood' asks for no margin; fit with objective='margin'"):
        MarginsDisplay.from_estimator(likely, X, Y)


@pytest.mark.parametrize(
    "model",
    [
        MEDTreeClassifier(C=1, calibration=None),
        MEDTreeClassifier(margin=Margin("fixed", target=0.2), calibration=None),
        MEDBayesNetClassifier([(0, 1)], C=1, calibration=None),
    ],
)
def test_margins_of_trees_and_nets(model):
    some = X[::3], TWO[::3]
    display = MarginsDisplay.from_estimator(model.fit(*some), *some)
    sign = np.where(some[1] == model.classes_[1], 1, -1)
    np.testing.assert_allclose(display.margin, sign * model.decision_function(some[0]))
    np.testing.assert_array_equal(np.flatnonzero(display.support), model.support_)
    assert display.wanted == pytest.approx(model.margin_.at)
    drawn(display)


# words


@pytest.mark.parametrize(
    ("model", "name", "words"),
    [
        (MEDClassifier(**OPTIONS), "linear", "Linear discriminant in 4 encoded columns"),
        (MEDClassifier(RBF(0.5), **OPTIONS), "rbf", "Kernel rbf, gamma 0.5"),
        (
            MEDClassifier(RBF(0.5, n_landmarks=9), **OPTIONS),
            "rbf",
            "Kernel rbf, gamma 0.5, through 9 landmarks",
        ),
        (
            MEDClassifier(Polynomial(2, 0.5), **OPTIONS),
            "poly",
            "Kernel poly of degree 2, gamma 0.5, coef0 1",
        ),
        (MEDClassifier(lambda A, B: A @ B.T, **OPTIONS), "function", "Kernel of a function"),
        (MEDClassifier(StandardScaler(), **OPTIONS), "StandardScaler", "Kernel of the features of a StandardScaler"),
        (MEDGaussianClassifier(**OPTIONS), None, "Gaussians of 4 encoded columns"),
        (
            MEDGaussianClassifier(kernel=RBF(0.5), n_kernel_components=1, **OPTIONS),
            "rbf",
            "Gaussians of 1 component of the kernel rbf, gamma 0.5",
        ),
    ],
)
def test_kernels_in_words(model, name, words):
    found = what_kernel(model.fit(X, TWO))
    assert (found["name"], found["words"]) == (name, words)
    json.dumps(describe_discrimination(model))


def test_a_matrix_and_a_fisher_kernel_in_words():
    model = MEDClassifier("precomputed", **OPTIONS).fit(X @ X.T, TWO)
    assert what_kernel(model) == {"name": "precomputed", "words": "Kernel given as a matrix"}
    kernel = FisherKernel(GaussianMixture(2, "EII", random_state=0), n_samples=300, random_state=0)
    model = MEDClassifier(kernel, **OPTIONS).fit(X, TWO)
    assert what_kernel(model)["words"] == f"Fisher kernel of a mixture of 2 components: {model.map_.rank_} features"
    assert strongest_columns(model) == []


def test_a_fisher_kernel_of_sequences_in_words():
    sequences = np.random.default_rng(0).choice(list("ab"), size=(60, 6))
    label = sequences[:, 0] == "a"
    for chain in (HMMClassifier(2, random_state=0), HiddenMarkovModel(2, random_state=0)):
        model = MEDClassifier(FisherKernel(chain), **OPTIONS).fit(sequences, label)
        words = f"Fisher kernel of a hidden Markov model of 2 states: {model.map_.rank_} features"
        assert what_kernel(model)["words"] == words


def test_strongest_columns_are_the_largest_coefficients(three):
    table = pd.DataFrame(X, columns=list("abcd"))
    model = MEDClassifier(**OPTIONS).fit(table, TWO)
    found = strongest_columns(model, 3)
    order = np.argsort(-np.abs(model.coef_))[:3]
    assert [entry["column"] for entry in found] == ["abcd"[j] for j in order]
    np.testing.assert_allclose([entry["size"] for entry in found], np.abs(model.coef_)[order])
    assert [entry["class"] for entry in found] == ["yes" if model.coef_[j] > 0 else "no" for j in order]
    centred = three.coef_ - three.coef_.mean(axis=0)
    for entry in strongest_columns(three):
        j = three.feature_names_.index(entry["column"])
        assert entry["size"] == pytest.approx(centred[:, j].max())
        assert entry["class"] == three.classes_[centred[:, j].argmax()]


def test_the_values_are_the_model_s(three):
    about = describe_discrimination(three)
    assert about["gap"] == three.gap_ and about["c"] == {"value": 2.0, "how": "given", "tried": []}
    assert about["support"]["leave_one_out"] == three.loo_estimate_ and about["support"]["of"] == 150
    assert [entry["support"] for entry in about["classes"]] == np.bincount(CODES[three.support_], minlength=3).tolist()
    assert "in_doubt" not in about
    y = Y.astype(object)
    y[::5] = None
    about = describe_discrimination(MEDGaussianClassifier(**OPTIONS).fit(X, y))
    assert about["in_doubt"]["rows"] == 30 and about["margin"]["quantile"] == 0.1


def test_a_gap_that_is_not_known_is_said(three):
    about = describe_discrimination(three) | {"gap": None}
    assert "Certificate: no bound of the optimum is known" in in_words(about, see="")
