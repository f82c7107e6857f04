"""Wording of med, fisher."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from mixent import GaussianMixture, HiddenMarkovModel, MixtureClassifier
from mixent.med.fisher import FisherKernel

from ...med.test_fisher import draw, mixed, walks


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("model", "VVV", "model must be a GaussianMixture, .* fitted or not, or None; got 'VVV'"),
        ("model", LogisticRegression(), "model must be a GaussianMixture, .* got LogisticRegression"),
        ("information", "exact", "information must be one of 'auto', 'analytic', 'sampled', 'empirical'; got 'exact'"),
        ("information", "analytic", "information='analytic' needs a model with one component; got 2. Set"),
        ("n_samples", 0, "n_samples must be a whole number >= 1; got 0"),
        ("n_samples", 18, "n_samples must be at least the number of free parameters, 19; got 18. Increase it"),
        ("ridge", -1.0, "ridge must be a number >= 0; got -1.0"),
    ],
)
def test_wrong_options(option, value, message):
    X, _ = draw(n=60)
    kernel = FisherKernel(GaussianMixture(2, random_state=0)).set_params(**{option: value})
    with pytest.raises(ValueError, match=message):
        kernel.fit(X)


def test_a_row_out_of_reach():
    X, _ = draw(n=60)
    kernel = FisherKernel(GaussianMixture(1)).fit(1e-20 * X)
    with pytest.raises(ValueError, match="row 1 is so far from every component that its score is not finite"):
        kernel.transform([X[0], [0.0, 1e149, 0.0]])


def test_wrong_rows():
    X, _ = mixed(n=60)
    kernel = FisherKernel(GaussianMixture(1))
    for method in (kernel.transform, kernel.scores, kernel, lambda X: kernel.get_feature_names_out()):
        with pytest.raises(NotFittedError, match="FisherKernel instance is not fitted yet"):
            method(X)
    kernel.fit(X)
    with pytest.raises(ValueError, match="feature names should match"):
        kernel.transform(X[["b", "a", "word", "size"]])
    with pytest.raises(ValueError, match="X has 3 features, but FisherKernel is expecting 4"):
        FisherKernel(GaussianMixture(1)).fit(X.to_numpy()).transform(X.to_numpy()[:, :3])
    with pytest.raises(ValueError, match="feature names should match"):
        FisherKernel(kernel.model_).fit(X[["b", "a", "word", "size"]])
    with pytest.raises(ValueError, match="y"):
        FisherKernel(MixtureClassifier(1)).fit(X)


def test_sequences_the_fisher_kernel_does_not_take():
    X, _ = walks()
    with pytest.raises(ValueError, match="needs a hidden Markov model whose rows are sequences, fitted without"):
        FisherKernel(HiddenMarkovModel(2).fit(X.reshape(-1, 1), lengths=[len(X.ravel())])).fit(X)
    with pytest.raises(ValueError, match="needs a hidden Markov model with transitions='shared'"):
        FisherKernel(HiddenMarkovModel(2, transitions="per_step")).fit(X)
    with pytest.raises(
        ValueError,
        match="needs a hidden Markov model with Gaussian or .*; got emissions='precomputed'",
    ):
        FisherKernel(HiddenMarkovModel(2, emissions="precomputed")).fit(X)
    with pytest.raises(ValueError, match="row 0 is so far from every component that its score is not finite"):
        FisherKernel(HiddenMarkovModel(2).fit(1e-9 * X)).fit(1e-9 * X).scores(np.full((1, 5), 1e149))
