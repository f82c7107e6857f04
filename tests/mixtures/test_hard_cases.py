"""Data on which EM goes wrong elsewhere: it must end in a defined answer, with a warning that names the trouble."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mixent import GaussianMixture, MixtureClassifier
from mixent.core.driver import Status
from mixent.data import DataWarning
from mixent.families.gaussian.structures import COVARIANCES
from mixent.options import Search


def assert_sound(model, X):
    """Finite everywhere, weights sum to one, covariances positive definite."""
    assert np.isfinite(model.score_samples(X)).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-9)
    assert model.weights_.sum() == pytest.approx(1.0)
    varying = model.varying_
    covs = model.covariances_[:, varying[:, None], varying]
    std = np.sqrt(np.diagonal(covs, axis1=1, axis2=2))
    assert (np.linalg.eigvalsh(covs / (std[:, :, None] * std[:, None, :])) > 0).all()  # in any units


@pytest.fixture
def duplicated():
    """Thirty copies of one row beside a cloud: without a prior the likelihood has a spike there."""
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(size=(60, 2)), np.full((30, 2), 4.0)])


@pytest.mark.parametrize("name", ["VII", "VVI", "VVV"])
def test_a_collapsing_component_is_mended_and_named(duplicated, name):
    start = np.zeros((90, 2))
    start[:60, 0] = start[60:, 1] = 1.0
    with pytest.warns(
        ConvergenceWarning,
        match="component 1",
    ):
        mixture = GaussianMixture(2, name, prior=None, init=start).fit(duplicated)
    assert_sound(mixture, duplicated)


@pytest.mark.parametrize("name", ["EII", "VVI", "EEE", "VVV"])
def test_the_prior_keeps_components_from_collapsing(duplicated, name):
    start = np.zeros((90, 2))
    start[:60, 0] = start[60:, 1] = 1.0
    mixture = GaussianMixture(2, name, init=start).fit(duplicated)
    assert_sound(mixture, duplicated)
    assert mixture.converged_
    assert len({*mixture.predict(duplicated)[60:].tolist()}) == 1


@pytest.mark.parametrize("prior", ["auto", None])
def test_a_starved_component_is_mended_and_named(draw, prior):
    X, _ = draw(n=120, K=2)
    start = np.zeros((120, 3))
    start[:60, 0] = start[60:, 1] = 1.0  # nothing for the third
    with pytest.warns(ConvergenceWarning, match="GaussianMixture: component 2 (starved|collapsed)"):
        mixture = GaussianMixture(3, "VVI", prior=prior, init=start).fit(X)
    assert_sound(mixture, X)


@pytest.mark.parametrize("name", ["EII", "VVI", "EEE", "VVV"])
def test_many_components_on_few_rows_without_a_prior_do_not_abort(name):
    X = np.random.default_rng(0).normal(size=(20, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture = GaussianMixture(18, name, prior=None, random_state=0).fit(X)
    assert_sound(mixture, X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_components", [18, 20])
@pytest.mark.parametrize("name", ["EII", "VVI", "EEE", "VVV"])
def test_as_many_components_as_rows_with_the_prior(name, n_components):
    X = np.random.default_rng(0).normal(size=(20, 2))
    mixture = GaussianMixture(n_components, name, random_state=0).fit(X)
    assert_sound(mixture, X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("prior", ["auto", None])
def test_fewer_distinct_rows_than_components(prior):
    X = np.repeat(np.arange(6.0).reshape(3, 2), 10, axis=0)
    mixture = GaussianMixture(4, "VVV", prior=prior, random_state=0).fit(X)
    assert_sound(mixture, X)


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["EII", "VVI", "VEE", "VVV"])
def test_identical_rows(name):
    X = np.full((30, 2), 3.0)
    mixture = GaussianMixture(2, name, random_state=0).fit(X)
    assert_sound(mixture, X)
    np.testing.assert_allclose(mixture.means_, 3.0, atol=1e-4)


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
@pytest.mark.parametrize("name", ["EII", "EEI", "VVI", "EEE", "VVE", "VVV"])
def test_a_constant_column_does_no_harm(draw, name):
    X, label = draw(gap=6.0)
    X[:, 1] = 7.0
    mixture = GaussianMixture(3, name, random_state=0).fit(X)
    assert_sound(mixture, X)
    classifier = MixtureClassifier(1, name).fit(X, label)
    assert_sound(classifier, X)
    assert classifier.score(X, label) > 0.85


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
@pytest.mark.parametrize("prior", ["auto", None])
def test_a_constant_column_changes_no_answer(draw, prior):
    """It leaves the density, and comes back in means, imputed gaps and samples."""
    X, label = draw(missing=0.1)
    more = np.column_stack([X[:, 0], np.full(len(X), 7.0), X[:, 1:]])
    more[::9, 1] = np.nan
    one, other = (MixtureClassifier(1, "VVV", prior=prior).fit(Z, label) for Z in (X, more))
    np.testing.assert_array_equal(other.predict_proba(more), one.predict_proba(X))
    np.testing.assert_array_equal(other.score_samples(more), one.score_samples(X))
    np.testing.assert_array_equal(other.means_[:, 1], 7.0)
    assert (other.covariances_[:, 1] == 0).all()
    assert (other.impute(more)[:, 1] == 7.0).all()
    assert (other.sample(5, random_state=0)[0][:, 1] == 7.0).all()
    part = other.marginal([1, 0])
    np.testing.assert_allclose(
        part.score_samples(more[:, [1, 0]]), one.marginal([0]).score_samples(X[:, [0]]), rtol=1e-12
    )
    with pytest.raises(ValueError, match="constant"):
        other.marginal([1])


@pytest.mark.usefixtures("plain_em")
@pytest.mark.parametrize("missing", [0.0, 0.1], ids=["complete", "gaps"])
@pytest.mark.parametrize("name", ["EII", "VVI", "EEE", "VVV"])
def test_an_offset_of_1e8_costs_no_digits(draw, soft_start, name, missing):
    """Numbers near 1e8 are spaced 1.5e-8 apart; the parameters must keep what the data have."""
    X, _ = draw(n=300, missing=missing)
    X = np.round(X * 2.0**20) / 2.0**20  # so that adding 2^27 is exact
    start = soft_start(300, 3)
    near = GaussianMixture(3, name, init=start, tol=1e-10).fit(X)
    far = GaussianMixture(3, name, init=start, tol=1e-10).fit(X + 2.0**27)
    np.testing.assert_allclose(far.means_ - 2.0**27, near.means_, atol=1e-5)
    np.testing.assert_allclose(far.covariances_, near.covariances_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(far.predict_proba(X + 2.0**27), near.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("separation", [1e4, 1e6])
@pytest.mark.parametrize("name", ["VII", "VVI", "VVV"])
def test_components_very_far_apart_keep_their_own_covariance(name, separation):
    """10^4 sigma and more between two groups: E[x^2] - m^2 on centered data would have lost it."""
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1], [600, 400])
    X = rng.normal(size=(1000, 2)) + separation * label[:, None]
    start = np.eye(2)[label]
    mixture = GaussianMixture(2, name, prior=None, init=start, tol=1e-12).fit(X)
    for k in range(2):
        rows = X[label == k]
        own = np.cov(rows.T, bias=True)
        own = {"VII": np.trace(own) / 2 * np.eye(2), "VVI": np.diag(np.diag(own)), "VVV": own}[name]
        np.testing.assert_allclose(mixture.means_[k], rows.mean(axis=0), rtol=1e-9, atol=1e-7)
        np.testing.assert_allclose(mixture.covariances_[k], own, rtol=1e-6, atol=1e-7)
    centered = GaussianMixture(1, name, prior=None).fit(X[label == 0])
    expected = centered.score_samples(X[label == 0]) + np.log(0.6)
    np.testing.assert_allclose(mixture.score_samples(X[label == 0]), expected, rtol=1e-6)


def test_the_default_prior_keeps_the_covariance_of_components_very_far_apart():
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1], [600, 400])
    X = rng.normal(size=(1000, 2)) + 1e4 * label[:, None]
    for covs in (
        GaussianMixture(2, random_state=0).fit(X).covariances_,
        MixtureClassifier(1).fit(X, label).covariances_,
    ):
        np.testing.assert_allclose(covs, np.tile(np.eye(2), (2, 1, 1)), atol=0.2)


def test_huge_and_tiny_units_in_one_table(draw):
    X, label = draw()
    scaled = X * [1e12, 1e-12, 1.0]
    one, other = MixtureClassifier(1, "VVV").fit(X, label), MixtureClassifier(1, "VVV").fit(scaled, label)
    np.testing.assert_allclose(other.predict_proba(scaled), one.predict_proba(X), rtol=1e-6, atol=1e-10)


def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 50))
    y = np.repeat([0, 1], 15)
    X[y == 1] += 0.7
    model = MixtureClassifier(1, "VVV").fit(X, y)
    assert_sound(model, X)
    assert model.score(X, y) > 0.9
    assert_sound(GaussianMixture(2, random_state=0).fit(X), X)


def test_a_class_of_one_row(draw):
    X, label = draw(n=60)
    label[label == 2] = 1
    label[0] = 2
    with pytest.warns(DataWarning, match="one row"):
        model = MixtureClassifier(1, "VVV").fit(X, label)
    assert_sound(model, X)
    assert model.predict(X)[0] == 2 or model.class_prior_[2] == pytest.approx(1 / 60)


def test_far_outside_the_data_probabilities_are_still_numbers(draw):
    X, label = draw()
    model = MixtureClassifier(2, "VVI", random_state=0).fit(X, label)
    far = np.array([[1e9, -1e9, 1e9], [1e140, 0.0, 0.0]])
    proba = model.predict_proba(far)
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)


def test_a_weight_of_zero_for_a_whole_component(draw):
    X, _ = draw(n=120, K=2, gap=6.0)
    weight = np.ones(120)
    weight[60:] = 0.0
    mixture = GaussianMixture(2, "VVI", random_state=0).fit(X, sample_weight=weight)
    assert_sound(mixture, X)


@pytest.mark.usefixtures("plain_em")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_tiny_weights_are_as_good_as_large_ones(draw, soft_start, same):
    """Without a prior only their ratios count."""
    X, _ = draw(n=150)
    start = soft_start(150, 2)
    weight = np.random.default_rng(0).exponential(size=150)
    options = {"prior": None, "init": start, "tol": 1e-10}
    one = GaussianMixture(2, **options).fit(X, sample_weight=weight)
    for scale in (1e-6, 1e6):
        same(one, GaussianMixture(2, **options).fit(X, sample_weight=scale * weight), 1e-4)


@pytest.mark.parametrize("n_components", [1, 2, "auto"])
def test_a_class_whose_rows_all_weigh_nothing_is_never_predicted(draw, n_components):
    X, label = draw(n=90)
    model = MixtureClassifier(n_components, search=Search(max_components=2, cv=2), random_state=0)
    model.fit(X, label, sample_weight=(label != 1).astype(float))
    assert 1 not in model.predict(X)
    assert model.class_prior_[1] == pytest.approx(0.0, abs=1e-12)
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("weight", [1.0, 1e4, 1e6, 1e9])
@pytest.mark.parametrize("name", ["EEE", "EEV", "EVV", "VVV"])
def test_a_duplicated_column_with_any_weights(name, weight):
    """The prior must keep the covariance positive definite, however little it counts beside the rows."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(51, 1))
    X, label = np.concatenate([x, x], axis=1), np.arange(51) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)  # of two components on a line, the heavier one may take all
        for model in (MixtureClassifier(1, name), MixtureClassifier(2, name), GaussianMixture(2, name)):
            model.set_params(random_state=0).fit(X, label, sample_weight=np.full(51, weight))
            assert model.converged_
            assert_sound(model, X)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e8])
@pytest.mark.parametrize("weight", [1.0, 1e4, 1e9])
def test_classes_of_equal_rows(weight, offset):
    X = np.repeat(np.random.default_rng(0).normal(size=(2, 3)), [3, 4], axis=0) + offset
    label = np.repeat([0, 1], [3, 4])
    for name in COVARIANCES:
        model = MixtureClassifier(1, name).fit(X, label, sample_weight=np.full(7, weight))
        assert model.converged_
        np.testing.assert_allclose(model.predict_proba(X), np.eye(2)[label], atol=1e-9)


@pytest.mark.parametrize("growth", ["restart", "incremental"])
@pytest.mark.parametrize("name", ["VEE", "EEV", "VEV", "VVV"])
def test_columns_whose_units_differ_by_1e16(name, growth):
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[30:] += 6.0
    X *= [1e-8, 1.0, 1e8]
    mixture = GaussianMixture(2, name, search=Search(growth=growth), random_state=0).fit(X)
    assert mixture.converged_
    assert_sound(mixture, X)
    assert mixture.predict_proba(X)[:30].mean(axis=0).max() > 0.9


@pytest.mark.parametrize("distance", [0.0, 1e-9])
@pytest.mark.parametrize("n_components", [1, 2])
def test_dependent_columns_without_a_prior_are_not_called_converged(n_components, distance):
    """The likelihood has no maximum; with rounding errors its value would decrease, or seem to converge."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(51, 1))
    X = np.concatenate([x, x + distance * rng.normal(size=(51, 1))], axis=1)
    for model in (GaussianMixture(n_components, prior=None), MixtureClassifier(n_components, "VVV", prior=None)):
        with pytest.warns(ConvergenceWarning, match="drop such columns"):
            model.set_params(random_state=0).fit(X, np.arange(51) % 2)
        assert model.run_.status is Status.NOT_FINITE
        assert_sound(model, X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["EVE", "VVE", "VEV", "EVV", "VVV"])
def test_a_few_heavy_rows(name):
    """Few rows have nearly all the weight, so that covariances are ill-conditioned; rounding is not a decrease."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(35, 2)) * [30.0, 0.1] + rng.integers(0, 2, size=(35, 1))
        mixture = GaussianMixture(2, name, random_state=0).fit(X, sample_weight=10.0 ** rng.uniform(-9, 9, size=35))
        assert not mixture.run_.status.failed
        assert_sound(mixture, X)
