"""StepMix's latent class analysis, beside mixent.GaussianMixture on tables of categories and numbers."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mixent import GaussianMixture, MixtureClassifier
from mixent.mixtures import bootstrap_lrt
from mixent.options import MixturePrior

GOLDEN = Path(__file__).parent.parent / "golden"
EXPECTED = json.loads((GOLDEN / "peers.json").read_text())["stepmix"]


@pytest.fixture(scope="module")
def tables():
    spec = importlib.util.spec_from_file_location("peers_numbers", GOLDEN / "peers_numbers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    codes, numbers = module.answers()
    questions = pd.DataFrame(codes, columns=list("abcd")).map(lambda v: None if np.isnan(v) else f"answer {int(v)}")
    columns = pd.DataFrame(numbers, columns=["x", "y"])
    return {"categorical": questions, "numeric": columns, "mixed": pd.concat([questions, columns], axis=1)}


SEVERAL = {"n_init": 4, "tol": 1e-12, "max_iter": 5000, "random_state": 0}


def maximum(X, **options):
    """Maximum likelihood, from several starts."""
    prior = MixturePrior(None, smoothing=1e-9)
    return GaussianMixture(2, "VVI", prior=prior, **{**SEVERAL, **options}).fit(X)


@pytest.fixture(scope="module")
def fits(tables):
    return {name: maximum(X) for name, X in tables.items()}


@pytest.mark.parametrize("name", EXPECTED)
def test_covered_likelihood_with_missing_values(tables, fits, name):
    assert fits[name].score(tables[name]) == pytest.approx(EXPECTED[name]["score"], abs=1e-8)
    np.testing.assert_allclose(np.sort(fits[name].weights_), EXPECTED[name]["weights"], atol=1e-4)


@pytest.mark.parametrize("name", ["categorical", "numeric"])
def test_covered_information_criteria(tables, fits, name):
    assert fits[name].n_parameters_ == EXPECTED[name]["n_parameters"]
    assert fits[name].bic(tables[name]) == pytest.approx(EXPECTED[name]["bic"], rel=1e-8)


def test_covered_class_probabilities_of_answers(tables, fits):
    probabilities = fits["mixed"].category_probabilities_
    assert list(probabilities) == list("abcd") and probabilities["a"].shape == (2, 3)
    np.testing.assert_allclose(sum(np.sum(p) for p in probabilities.values()), 8)


def test_covered_names_of_answers(fits):
    answers = fits["mixed"].category_probabilities_["a"]
    assert list(answers.frame()) == ["answer 0", "answer 1", "answer 2"]
    np.testing.assert_array_equal(answers["answer 1"], np.asarray(answers)[:, 1])


def test_covered_weights_in_criteria(tables, fits):
    weight = np.random.default_rng(0).integers(1, 3, len(tables["mixed"]))
    twice = tables["mixed"].iloc[np.repeat(np.arange(len(weight)), weight)]
    for name in ("score", "bic", "aic"):
        measure = getattr(fits["mixed"], name)
        assert measure(tables["mixed"], sample_weight=weight) == pytest.approx(measure(twice), rel=1e-10)


def test_covered_posteriors_and_modal_assignment(tables, fits):
    model, X = fits["mixed"], tables["mixed"]
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X).argmax(axis=1))


def test_covered_a_row_without_answers_has_the_weights(tables, fits):
    empty = pd.DataFrame([{"a": None, "b": None, "c": None, "d": None, "x": np.nan, "y": np.nan}]).astype(
        tables["mixed"].dtypes.to_dict()
    )
    np.testing.assert_allclose(fits["mixed"].predict_proba(empty)[0], fits["mixed"].weights_, rtol=1e-9)


def test_covered_weights_are_repeated_rows(tables):
    X = tables["mixed"].iloc[:120]
    weight = np.random.default_rng(0).integers(1, 3, 120)
    twice = X.iloc[np.repeat(np.arange(120), weight)]
    start = np.eye(2)[np.arange(120) % 2] * 0.2 + 0.4
    resp = {"init": start}, {"init": np.repeat(start, weight, axis=0)}
    options = {"prior": MixturePrior(None, smoothing=1e-9), "tol": 1e-10, "max_iter": 5000}
    weighted = GaussianMixture(2, "VVI", **options, **resp[0]).fit(X, sample_weight=weight)
    repeated = GaussianMixture(2, "VVI", **options, **resp[1]).fit(twice)
    np.testing.assert_allclose(weighted.weights_, repeated.weights_, atol=1e-4)


def test_covered_sampling(fits):
    drawn, label = fits["mixed"].sample(2000, random_state=0)
    assert list(drawn.columns) == [*"abcd", "x", "y"] and set(drawn["a"]) <= {f"answer {v}" for v in range(3)}
    np.testing.assert_allclose(np.bincount(label) / 2000, fits["mixed"].weights_, atol=0.04)


def test_covered_start_from_given_responsibilities(tables, fits):
    again = maximum(tables["mixed"], n_init=1, init=fits["mixed"].predict_proba(tables["mixed"]))
    assert again.lower_bounds_[0] == pytest.approx(fits["mixed"].lower_bound_, abs=0.01)  # missing values are filled
    assert again.lower_bound_ == pytest.approx(fits["mixed"].lower_bound_, abs=1e-9)


def test_covered_number_of_classes(tables):
    model = GaussianMixture("auto", "VVI", search="bic", random_state=0).set_params(search__max_components=3)
    assert model.fit(tables["mixed"]).n_components_ == 2


def test_covered_bootstrap_intervals_of_parameters(tables, fits):
    result = fits["mixed"].bootstrap(tables["mixed"], n_resamples=10, random_state=0)
    np.testing.assert_array_equal(
        result.category_probabilities["a"].estimate, fits["mixed"].category_probabilities_["a"]
    )
    assert (result.means.low <= result.means.high).all() and (result.weights.std_error > 0).all()


def test_covered_bootstrap_likelihood_ratio_test(tables):
    few = {"n_resamples": 4, "level": 0.2, "max_components": 2}
    result = bootstrap_lrt(GaussianMixture(covariance="VVI", random_state=0), tables["mixed"].iloc[:150], **few)
    assert result.n_components == 2 and result.tests[0]["p_value"] == 0.2


def test_different_types_come_from_the_table(tables):
    """Types of columns come from the table, and `categorical` overrules them; there is no `measurement` descriptor."""
    codes = tables["categorical"].apply(lambda c: c.str[-1].astype(float))
    model = GaussianMixture(2, categorical=list("abcd"), random_state=0).fit(codes)
    assert set(model.category_probabilities_) == set("abcd")


def test_different_smoothing_by_default(tables):
    """Categories are smoothed by one pseudo-row and covariances have a prior; both can be turned off."""
    X = tables["categorical"]
    assert GaussianMixture(2, n_init=4, random_state=0).fit(X).score(X) < maximum(X).score(X)


def test_different_structural_model(tables):
    """Known groups are labels of a classifier that shares its rows with the density; there are no three-step models."""
    y = np.where(tables["numeric"]["x"].fillna(0) > 1.2, "high", "low")
    assert MixtureClassifier(1).fit(tables["categorical"], y).score(tables["categorical"], y) > 0.6


def test_absent_steps_and_corrections():
    """`n_steps`, `correction="BCH"` or `"ML"`, `structural` models, covariates and distal outcomes."""
    with pytest.raises(TypeError):
        GaussianMixture(2, n_steps=3, correction="BCH")


def test_absent_relabeling():
    """`permute_classes`: components are always in order of decreasing weight."""
    assert not hasattr(GaussianMixture(2), "permute_classes")


def test_absent_other_distributions():
    """Poisson and other measurement models of counts."""
    with pytest.raises(TypeError):
        GaussianMixture(2, measurement="poisson")
