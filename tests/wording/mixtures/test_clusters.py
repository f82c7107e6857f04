"""Wording of mixtures: bootstrap, likelihood ratio tests, merged components."""

import re

import numpy as np
import pytest

from mixent import GaussianMixture, MixtureClassifier
from mixent.displays import MergingDisplay
from mixent.mixtures import bootstrap_lrt
from mixent.mixtures.describe_rows import mixture_on_rows

from ...mixtures.test_likelihood_ratio import FEW, groups
from ...mixtures.test_merging import boxes


@pytest.fixture(scope="module")
def model():
    means = [[-1.5, 0], [1.5, 0], [-1.5, 4], [1.5, 4], [8, 2]]
    return GaussianMixture(5, init={"means": means}, random_state=0).fit(boxes())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "jackknife"}, "method must be one of 'weights', 'rows'; got 'jackknife'"),
        ({"n_resamples": 1}, "n_resamples must be at least 2 for a standard error; got 1"),
        ({"n_resamples": 2.5}, "n_resamples must be a whole number >= 1; got 2.5"),
        ({"confidence": 95}, "confidence must be between 0 and 1, such as 0.95; got 95"),
    ],
)
def test_options_of_the_bootstrap(model, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        model.bootstrap(boxes(), **options)


def test_a_component_without_rows_in_nearly_all_resamples():
    X = np.concatenate([np.random.default_rng(0).normal(size=(60, 2)), [[50.0, 50.0], [50.0, 51.0], [51.0, 50.0]]])
    few = GaussianMixture(2, prior=None, random_state=0).fit(X)
    message = "a component lost its rows in [12] of 2 resamples; use fewer components, a prior, or method='weights'"
    with pytest.raises(ValueError, match=message):
        few.bootstrap(X, n_resamples=2, method="rows", random_state=0)


def test_the_bootstrap_as_text(model):
    text = str(model.bootstrap(boxes(), n_resamples=20))
    assert "20 resamples (random weights of the rows), 95 % percentile intervals." in text
    assert "mean of x0" in text and "standard error" in text
    X = np.concatenate([np.random.default_rng(0).normal(size=(60, 2)), np.random.default_rng(1).normal(10, 1, (4, 2))])
    few = GaussianMixture(2, prior=None, random_state=0).fit(X)
    text = " ".join(str(few.bootstrap(X, n_resamples=30, method="rows")).split())
    assert "(rows drawn with replacement)" in text and "more were left out, because a component lost its rows." in text
    few.max_iter = 1
    assert "did not converge; raise max_iter." in " ".join(str(few.bootstrap(X, n_resamples=5)).split())


@pytest.mark.parametrize(
    ("options", "parameters", "message"),
    [
        ({"n_resamples": 18}, {}, "n_resamples=18 cannot reject at level 0.05; use at least 19"),
        ({"level": 5}, {}, "level must be between 0 and 1, such as 0.05; got 5"),
        ({"max_components": 1}, {}, "max_components must be at least 2; got 1"),
        (
            {},
            {"covariance": ["VVI", "EII"]},
            "covariance must be one structure for these tests, such as 'VVV'; got ['VVI",
        ),
        ({}, {"init": np.ones((60, 1))}, "init must be 'kmeans++' or 'random' for tests of the number of components"),
        (
            {"sample_weight": np.full(60, 1.5)},
            {},
            "sample_weight must be whole numbers, since tables of that many rows are drawn; row 0 has 1.5",
        ),
    ],
)
def test_options_of_the_tests(options, parameters, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        bootstrap_lrt(GaussianMixture(**parameters), groups(2), **options)


def test_the_tests_as_text():
    result = bootstrap_lrt(GaussianMixture(covariance="EII", random_state=0), groups(3), **FEW)
    text = " ".join(str(result).split())
    assert (
        "Selected: 2 components, covariance structure EII, at the 20 % level. Every test rejects; raise max_comp"
        in text
    )
    assert "Statistic: 2 x difference of the log-likelihoods; p-values from 4 samples each" in text
    assert "1 against 2" in text


def test_merged_components_as_text(model):
    merging = model.merge_components(boxes())
    assert "5 components; suggested: 3 clusters." in str(merging)
    with pytest.raises(ValueError, match="n_clusters must be at most 5, the number of components; got 6"):
        merging.components(6)
    with pytest.raises(ValueError, match="n_clusters must be a whole number >= 1; got 0"):
        merging.predict(boxes(), 0)


def test_merged_components_on_the_page(model):
    text = "\n".join(line for block in mixture_on_rows(model, boxes(), None) for line in block.lines(1000))
    assert (
        "Several components overlap: merging them by the entropy of the assignments suggests 3 clusters of the 5"
        in text
    )


def test_the_picture_of_merged_components_needs_a_mixture_without_classes():
    with pytest.raises(ValueError, match="MixtureClassifier has no merge_components; pass a fitted GaussianMixture"):
        MergingDisplay.from_estimator(MixtureClassifier(), boxes())


def test_axes_of_the_picture(model):
    display = MergingDisplay.from_estimator(model, boxes())
    assert [ax.get_xlabel() for ax in display.axes_[:2]] == ["Number of clusters", "Cumulative number of merged rows"]
    assert (
        display.axes_[0].get_ylabel() == "Entropy (nats)"
        and display.axes_[2].get_title() == "3 clusters of 5 components"
    )


def test_likelihood_ratio_tests_of_another_estimator():
    with pytest.raises(ValueError, match=r"^estimator must be a GaussianMixture; got MixtureClassifier$"):
        bootstrap_lrt(MixtureClassifier(), groups(1))
