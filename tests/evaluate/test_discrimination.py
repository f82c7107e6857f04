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
    MEDClassifier,
    MEDGaussianClassifier,
)
from mixent.evaluate.discrimination import describe_discrimination, in_words, strongest_columns, what_kernel
from mixent.med import RBF, Polynomial

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
