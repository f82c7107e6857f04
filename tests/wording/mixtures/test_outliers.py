"""Messages and descriptions of the parameter `outliers`."""

from dataclasses import replace

import numpy as np
import pytest

from mixent import FisherKernel, GaussianMixture, MixtureClassifier, SharedMixtureClassifier
from mixent.base.text import percent
from mixent.mixtures import bootstrap_lrt
from mixent.mixtures.registration import all_components, inside_range


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2)) + 6 * (np.arange(120) % 2)[:, None]
    X[:6] = rng.uniform(-30, 30, (6, 2))
    return X, np.arange(120) % 2


@pytest.mark.parametrize("make", [MixtureClassifier, SharedMixtureClassifier])
@pytest.mark.parametrize("training", ["conditional", "error"])
def test_only_with_likelihood(rows, make, training):
    message = f"outliers='t' is only used with training='likelihood'; got '{training}'"
    with pytest.raises(ValueError, match=message):
        make(2, outliers="t", training=training).fit(*rows)


def test_no_batches_with_t_components():
    message = "partial_fit is only available with outliers=None or 'noise'; got 't'"
    for model in (GaussianMixture(outliers="t"), MixtureClassifier(outliers="t")):
        with pytest.raises(AttributeError) as error:
            model.partial_fit  # noqa: B018
        assert message in str(error.value.__cause__)


def test_not_of_gaussians(rows):
    model = GaussianMixture(2, outliers="t", random_state=0).fit(rows[0])
    for name, call in {
        "the distribution of missing values": model.conditional,
        "bootstrap": model.bootstrap,
        "merge_components": model.merge_components,
        "bootstrap_lrt": lambda X: bootstrap_lrt(model, X),
    }.items():
        with pytest.raises(ValueError, match=f"^{name} needs a model fitted with outliers=None; got outliers='t'$"):
            call(rows[0])


def test_models_fitted_with_another_value(rows):
    model = GaussianMixture(2, outliers="noise", random_state=0).fit(rows[0]).set_params(outliers=None)
    with pytest.raises(ValueError, match=r"^merge_components needs a model fitted with outliers=None; fit it"):
        model.merge_components(rows[0])


def test_no_new_class_with_noise(rows):
    X, y = rows
    model = MixtureClassifier(1, outliers="noise", random_state=0).fit(X, y)
    with pytest.raises(
        ValueError, match=r"^a new class in partial_fit needs a model fitted with outliers=None; got outliers='noise'$"
    ):
        model.partial_fit(X[:10], y[:10] + 5)


def test_no_fisher_kernel(rows):
    message = "FisherKernel needs a mixture of Gaussians without noise; got outliers='noise', fit it with outliers=None"
    with pytest.raises(ValueError, match=message):
        FisherKernel(GaussianMixture(2, outliers="noise")).fit(rows[0])


def test_the_summary_of_noise(rows):
    fit = GaussianMixture(2, outliers="noise", random_state=0).fit(rows[0])
    text = " of the rows, with a uniform density over the range of the columns."
    assert f"Noise: {percent(fit.noise_weight_)}{text}" in str(fit.summary())


def test_the_summary_of_t_components(rows):
    text = str(GaussianMixture(2, outliers="t", random_state=0).fit(rows[0]).summary())
    assert "The components are t distributions: the fewer degrees of freedom (df), the heavier the tails." in text
    assert "mean ± scale of each numeric column" in text


def test_damaged_files(rows):
    fit = GaussianMixture(2, outliers="noise", random_state=0).fit(rows[0])
    uniform = fit.problem_.family.uniform
    with pytest.raises(ValueError, match="the range of a column is empty"):
        inside_range(replace(uniform, high=uniform.low), {})
    components = replace(fit.params_.components, gaussian=None)
    fit.params_ = replace(fit.params_, components=components)
    with pytest.raises(ValueError, match="the components have no parameters"):
        all_components(fit, {})
