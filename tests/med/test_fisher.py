"""The Fisher kernel: scores are gradients, the information is their second moment, the kernel knows no coordinates."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from mixent import GaussianMixture, HiddenMarkovModel, HMMClassifier, MixtureClassifier, SharedMixtureClassifier
from mixent.med.fisher import FisherKernel, inverse_root
from mixent.med.fisher_scores import contrasts
from mixent.mixtures.chart import MixtureChart
from mixent.mixtures.clustering import STRUCTURES
from mixent.mixtures.predict import log_density
from mixent.options import HMMPrior

STARTS = "check_sample_weight_equivalence_on_dense_data"


def draw(seed=0, n=240, d=3, K=3, missing=0.0):
    """Rows of K overlapping Gaussians with unlike covariances, and the component of each row."""
    rng = np.random.default_rng(seed)
    centers = 2.0 * rng.normal(size=(K, d))
    roots = rng.normal(size=(K, d, d)) / np.sqrt(d) + np.eye(d)
    label = rng.integers(K, size=n)
    X = centers[label] + np.einsum("nij,nj->ni", roots[label], rng.normal(size=(n, d)))
    X[rng.random((n, d)) < missing] = np.nan
    return X, label


def mixed(seed=0, n=240, missing=0.0):
    """Two columns of numbers, one of three words, one of two; and the group each row is of."""
    rng = np.random.default_rng(seed)
    X, label = draw(seed, n, d=2)
    words = np.array(["red", "green", "blue"])[np.where(rng.random(n) < 0.6, label, rng.integers(3, size=n))]
    sizes = np.where(rng.random(n) < 0.2 + 0.3 * label, "big", "small")
    table = pd.DataFrame({"a": X[:, 0], "word": words, "b": X[:, 1], "size": sizes}, dtype=object)
    table = table.astype({"a": float, "b": float})
    return table.mask(rng.random(table.shape) < missing), label


def differences(model, X, step=1e-5):
    """(n, P) central differences of log p(x) in the model's own chart, which knows nothing of scores."""
    chart = MixtureChart(model.problem_, model.params_)
    origin, block = chart.vector(model.params_), model._block(model._read(X))

    def at(vector):
        return log_density(model.problem_, chart.params(vector), block, 1)

    return np.stack([(at(origin + e) - at(origin - e)) / (2 * step) for e in step * np.eye(len(origin))], axis=1)


def assert_same_gradient(scores, slopes):
    """Each is a linear function of the other: the same gradient in two systems of coordinates."""
    for left, right in ((scores, slopes), (slopes, scores)):
        fit = left @ np.linalg.lstsq(left, right, rcond=1e-9)[0]
        np.testing.assert_allclose(fit, right, rtol=1e-5, atol=1e-6 * np.abs(right).max())


# --- scores ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("covariance", STRUCTURES)
@pytest.mark.parametrize("missing", [0.0, 0.25])
def test_scores_are_differences_of_the_log_density(covariance, missing):
    X, _ = draw(missing=missing)
    model = GaussianMixture(3, covariance, random_state=1).fit(X)
    kernel = FisherKernel(model, random_state=0).fit(X)
    assert_same_gradient(kernel.scores(X), differences(model, X))


@pytest.mark.parametrize("covariance", STRUCTURES)
def test_the_rank_is_the_number_of_free_parameters(covariance):
    X, _ = draw(1)
    for n_components, information in ((3, "sampled"), (1, "sampled"), (1, "analytic")):
        model = GaussianMixture(n_components, covariance, random_state=0).fit(X)
        kernel = FisherKernel(model, information=information, random_state=0).fit(X)
        assert kernel.rank_ == len(kernel.information_) == model.n_parameters_
        assert kernel.root_.shape == (model.n_parameters_, kernel.rank_)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("covariance", ["VVI", "EVE", "VVV"])
def test_mixed_columns(covariance, missing):
    X, _ = mixed(missing=missing)
    model = GaussianMixture(2, covariance, random_state=0).fit(X)
    kernel = FisherKernel(model, random_state=0).fit(X)
    assert kernel.rank_ == model.n_parameters_
    assert_same_gradient(kernel.scores(X), differences(model, X))


def test_words_alone():
    X, _ = mixed(missing=0.2)
    model = GaussianMixture(2, random_state=0).fit(X[["word", "size"]])
    kernel = FisherKernel(model, random_state=0).fit(X[["word", "size"]])
    assert_same_gradient(kernel.scores(X[["word", "size"]]), differences(model, X[["word", "size"]]))
    assert kernel.rank_ == 5 and model.n_parameters_ == 7  # 3 x 2 cells identify at most five numbers


@pytest.mark.parametrize("missing", [0.0, 0.25])
@pytest.mark.parametrize(
    "model",
    [
        MixtureClassifier(2, "VEV"),
        MixtureClassifier(2, "EVE", across_classes=True),
        MixtureClassifier({0: 1, 1: 3, 2: 2}, {0: "EEV", 1: "VVI", 2: "VEE"}),
        MixtureClassifier(2, "VVI", class_prior=[0.2, 0.3, 0.5]),
        MixtureClassifier(1, "EEE", training="conditional"),
    ],
    ids=["own", "across", "unlike", "held", "trained"],
)
def test_a_classifier_has_the_score_of_its_marginal_density(model, missing):
    X, label = draw(2, n=400, K=6, missing=missing)
    model = clone(model).set_params(random_state=0).fit(X, label % 3)
    kernel = FisherKernel(model, random_state=0).fit(X)
    assert kernel.rank_ == kernel.information_.shape[0] == model.n_parameters_
    assert_same_gradient(kernel.scores(X), differences(model, X))


@pytest.mark.parametrize(("class_prior", "unknown"), [("empirical", 2 * 4), ([0.2, 0.3, 0.5], 2 * 3)])
def test_of_weights_that_classes_share_the_density_knows_the_sums(class_prior, unknown):
    X, label = draw(2, n=400, K=6, missing=0.1)
    model = SharedMixtureClassifier(4, "VVE", class_prior=class_prior, random_state=0).fit(X, label % 3)
    kernel = FisherKernel(model, random_state=0).fit(X)
    assert kernel.rank_ == model.n_parameters_ - unknown
    assert_same_gradient(kernel.scores(X), differences(model, X))


def test_a_single_gaussian():
    """In one column the scores are those of every textbook; U(m) = (x - m) / v, U(v) = ((x - m)^2 / v - 1) / (2 v)."""
    X = np.random.default_rng(0).normal(3.0, 2.0, size=(50, 1))
    model = GaussianMixture(1, prior=None).fit(X)
    kernel = FisherKernel(model).fit(X)
    mean, var = model.means_[0, 0], model.covariances_[0, 0, 0]
    of_mean, of_var = (X - mean) / var, ((X - mean) ** 2 / var - 1) / (2 * var)
    expected = of_mean @ of_mean.T * var + of_var @ of_var.T * (2 * var**2)
    np.testing.assert_allclose(kernel(X), expected, rtol=1e-9, atol=1e-9)


def test_a_single_gaussian_of_several_columns():
    """K = y.y' + tr((y y^T - I)(y' y'^T - I)) / 2."""
    X, _ = draw(3, n=40)
    kernel = FisherKernel(GaussianMixture(1)).fit(X)
    y = (X - kernel.model_.means_[0]) @ np.linalg.inv(np.linalg.cholesky(kernel.model_.covariances_[0])).T
    inner, own = y @ y.T, (y**2).sum(axis=1)
    expected = inner + 0.5 * (inner**2 - own[:, None] - own + X.shape[1])
    np.testing.assert_allclose(kernel(X), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("covariance", ["EEE", "EVE", "EEV", "VEV", "VVV"])
def test_a_round_gaussian_has_its_full_rank(covariance):
    """Where all variances are equal, axes turn freely and volume, shape and orientation are no coordinates."""
    X, _ = draw(n=50)
    model = GaussianMixture(1, covariance).fit(X)
    gaussian = replace(model.params_.components.gaussian, covs=np.eye(3)[None])
    model.params_ = replace(model.params_, components=replace(model.params_.components, gaussian=gaussian))
    assert FisherKernel(model, information="sampled", random_state=0).fit(X).rank_ == 9


def test_a_single_column_of_words():
    """K = 1 / p(word) - 1 of equal words, -1 of unequal ones, 0 where one is missing."""
    words = ["a", "b", "a", "c", "a", None]
    X = pd.DataFrame({"word": words})
    kernel = FisherKernel(GaussianMixture(1)).fit(X)
    p = dict(zip("abc", kernel.model_.category_probabilities_["word"][0]))
    expected = np.array([[(v == w) / p[v] - 1 if v and w else 0.0 for w in words] for v in words])
    np.testing.assert_allclose(kernel(X), expected, rtol=1e-9, atol=1e-12)


def test_a_row_without_values_has_no_score():
    X, _ = draw(missing=0.2)
    kernel = FisherKernel(GaussianMixture(2, "VEV", random_state=0), random_state=0).fit(X)
    np.testing.assert_allclose(kernel.scores(np.full((1, 3), np.nan)), 0.0, atol=1e-12)


def test_a_dropped_component_has_no_coordinates():
    X, _ = draw(missing=0.2)
    model = GaussianMixture(2, "EVE", random_state=0).fit(X)
    params, both = model.params_, copy.copy(model)
    covs, means = params.components.gaussian.covs, params.components.gaussian.means
    gaussian = replace(params.components.gaussian, covs=covs[[0, 1, 1]], means=means[[0, 1, 1]])
    both.params_ = replace(
        params,
        weights=np.append(params.weights, [[0.0]], axis=1),
        components=replace(params.components, gaussian=gaussian),
    )
    family = model.problem_.family
    group = replace(family.gaussian.groups[0], stop=3)
    family = replace(family, gaussian=replace(family.gaussian, groups=(group,), prior=None))
    both.problem_ = replace(model.problem_, family=family)
    scores = [FisherKernel(m, random_state=0).fit(X).scores(X) for m in (model, both)]
    np.testing.assert_allclose(*scores, rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
def test_a_constant_column_takes_no_part():
    X, _ = draw(n=60)
    first, other = (FisherKernel(GaussianMixture(1)).fit(table) for table in (X, np.insert(X, 1, 7.0, axis=1)))
    np.testing.assert_allclose(first(X), other(np.insert(X, 1, 7.0, axis=1)), rtol=1e-9, atol=1e-9)


# --- the mean and the second moment of the scores --------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("covariance", ["EII", "VEI", "EEE", "VVE", "EEV", "VVV"])
def test_at_the_maximum_of_the_likelihood_scores_sum_to_zero(covariance, missing):
    X, _ = draw(4, n=300, missing=missing)
    model = GaussianMixture(2, covariance, prior=None, tol=1e-14, max_iter=20_000, random_state=0).fit(X)
    mean = FisherKernel(model, random_state=0).fit(X).scores(X).mean(axis=0)
    np.testing.assert_allclose(mean, 0.0, atol=2e-6)


@pytest.mark.parametrize("model", [GaussianMixture(3, "VEV", random_state=0), GaussianMixture(1, random_state=0)])
def test_scores_have_mean_zero_and_features_unit_variance_under_the_model(model):
    X, _ = mixed()
    kernel = FisherKernel(model, n_samples=50_000, random_state=0).fit(X)
    new, _ = kernel.model_.sample(50_000, random_state=7)
    scores, features = kernel.scores(new), kernel.transform(new)
    error = scores.std(axis=0) / np.sqrt(len(scores))
    assert (np.abs(scores.mean(axis=0)) < 5 * error).all()
    moment = features.T @ features / len(features)
    assert np.abs(np.linalg.eigvalsh(moment) - 1).max() < 0.25


@pytest.mark.parametrize("covariance", STRUCTURES)
def test_components_that_never_meet_are_as_good_as_seen(covariance):
    """Then the information is the identity: with volumes, shapes and axes shared or not, and words."""
    X, label = mixed(n=400)
    X, label = X[label != 1], label[label != 1]
    X["a"] += 1e3 * label
    kernel = FisherKernel(GaussianMixture(2, covariance, random_state=0), n_samples=40_000, random_state=0).fit(X[:150])
    assert np.abs(kernel.model_.weights_ - 0.5).max() > 0.02
    np.testing.assert_allclose(kernel.information_, np.eye(kernel.rank_), atol=0.1)
    np.testing.assert_allclose(np.diag(kernel.information_)[0], 1.0, atol=1e-9)  # the weights have full information


def test_the_analytic_information_is_that_of_many_rows():
    X, _ = mixed()
    analytic = FisherKernel(GaussianMixture(1), information="analytic").fit(X)
    scores = analytic.scores(analytic.model_.sample(100_000, random_state=0)[0])
    products = scores[:, :, None] * scores[:, None, :]
    error = products.std(axis=0) / np.sqrt(len(scores))
    assert (np.abs(products.mean(axis=0) - analytic.information_) < 5 * error).all()
    many = FisherKernel(GaussianMixture(1), information="sampled", n_samples=100_000, random_state=0).fit(X)
    np.testing.assert_allclose(many(X[:20]), analytic(X[:20]), rtol=0.1, atol=0.3)


def test_information_is_minus_the_expected_curvature():
    """Of two Gaussians in one column, by quadrature; curvature from differences in the chart's coordinates."""
    X = np.r_[np.random.default_rng(0).normal(size=(100, 1)), np.random.default_rng(1).normal(3.0, 0.7, size=(60, 1))]
    model = GaussianMixture(2, random_state=0).fit(X)
    kernel = FisherKernel(model, n_samples=400_000, random_state=0).fit(X)
    grid = np.linspace(-12, 15, 4001)[:, None]
    p = np.exp(model.score_samples(grid)) * (grid[1, 0] - grid[0, 0])
    scores = kernel.scores(grid)
    exact = scores.T @ (p[:, None] * scores)
    rows = 0.5 * 400_000 / model.weights_  # as many of each component, which stand for this many of all
    error = np.sqrt(np.einsum("n,ni,nj->ij", p, scores**2, scores**2) / rows.min())
    assert (np.abs(kernel.information_ - exact) < 5 * error).all()
    shares = np.linalg.eigvalsh(exact)
    assert 0 < shares[0] < 0.9 and shares[-1] < 1 + 1e-9  # what remains when components are not seen

    chart, step = MixtureChart(model.problem_, model.params_), 1e-3
    origin, block = chart.vector(model.params_), model._block(model._read(grid))
    eye = step * np.eye(len(origin))

    def expected(vector):
        return p @ log_density(model.problem_, chart.params(vector), block, 1)

    curvature = np.array(
        [
            [
                sum(s * t * expected(origin + s * a + t * b) for s in (-1, 1) for t in (-1, 1)) / (4 * step**2)
                for a in eye
            ]
            for b in eye
        ]
    )
    to_chart = np.linalg.lstsq(scores, differences(model, grid), rcond=1e-9)[0]
    np.testing.assert_allclose(-curvature, to_chart.T @ exact @ to_chart, atol=2e-4 * np.abs(curvature).max())


def test_empirical_information_is_the_second_moment_of_the_rows():
    X, _ = draw(missing=0.1)
    model = GaussianMixture(2, random_state=0).fit(X)
    kernel = FisherKernel(model, information="empirical").fit(X)
    features = kernel.transform(X)
    np.testing.assert_allclose(features.T @ features / len(X), np.eye(kernel.rank_), atol=1e-9)
    weight = np.random.default_rng(0).integers(0, 4, size=len(X)).astype(float)
    weighted = FisherKernel(model, information="empirical").fit(X, sample_weight=weight)
    repeated = FisherKernel(model, information="empirical").fit(np.repeat(X, weight.astype(int), axis=0))
    np.testing.assert_allclose(weighted.information_, repeated.information_, rtol=1e-9, atol=1e-12)


# --- the kernel ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_an_affine_map_of_the_columns_changes_nothing(missing):
    X, _ = draw(5)
    rng = np.random.default_rng(0)
    A, shift = rng.normal(size=(3, 3)) + 2 * np.eye(3), 10 * rng.normal(size=3)
    A = np.diag(np.diag(A)) if missing else A  # a missing value would spread to other columns
    X[rng.random(X.shape) < missing] = np.nan
    model = GaussianMixture(2, random_state=0).fit(X)
    transformed = copy.copy(model)
    family, params = model.problem_.family.gaussian, model.params_.components.gaussian
    family = replace(family, center=A @ family.center + shift, scale=np.abs(A) @ family.scale, prior=None)
    params = replace(params, means=params.means @ A.T, covs=A @ params.covs @ A.T)
    transformed.problem_ = replace(model.problem_, family=replace(model.problem_.family, gaussian=family))
    transformed.params_ = replace(model.params_, components=replace(model.params_.components, gaussian=params))
    kernels = []
    for mixture, table in ((model, X), (transformed, X @ A.T + shift if not missing else X * np.diag(A) + shift)):
        kernels.append(FisherKernel(mixture, information="empirical").fit(table)(table))
    np.testing.assert_allclose(*kernels, rtol=1e-7, atol=1e-7 * np.abs(kernels[0]).max())


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_features_have_the_kernel_for_inner_products(missing):
    X, _ = mixed(missing=missing)
    kernel = FisherKernel(GaussianMixture(2, "VEE", random_state=0), random_state=0).fit(X)
    features, scores = kernel.transform(X), kernel.scores(X)
    np.testing.assert_allclose(kernel(X), features @ features.T, rtol=1e-12)
    np.testing.assert_allclose(kernel(X, X[:7]), kernel(X)[:, :7], rtol=1e-9, atol=1e-9)
    expected = scores @ np.linalg.solve(kernel.information_, scores.T)
    np.testing.assert_allclose(kernel(X), expected, rtol=1e-7, atol=1e-7)


def test_rows_do_not_know_each_other():
    X, _ = mixed(missing=0.2)
    kernel = FisherKernel(GaussianMixture(2, "EVV", random_state=0), random_state=0).fit(X)
    together = kernel.transform(X)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(kernel.transform(X.iloc[order]), together[order], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(kernel.transform(X[11:12]), together[11:12], rtol=1e-9, atol=1e-9)


def test_features_whose_inner_products_overflow_have_no_kernel():
    X = np.random.default_rng(0).normal(size=(40, 2))
    kernel = FisherKernel(GaussianMixture(1)).fit(X)
    far = X.copy()
    far[3] = 1e100
    assert np.isfinite(kernel.transform(far)).all()
    for rows in ((far,), (X, far), (far, X)):
        with pytest.raises(ValueError, match="row 3"):
            kernel(*rows)


def test_directions_without_information_are_left_out():
    X, _ = draw()
    model = GaussianMixture(1).fit(X)
    twice = GaussianMixture(2, random_state=0).fit(X)
    part, family = model.params_.components.gaussian, model.problem_.family.gaussian
    gaussian = replace(part, means=part.means[[0, 0]], covs=part.covs[[0, 0]])
    center = replace(twice.problem_.family.gaussian, center=family.center)
    twice.problem_ = replace(twice.problem_, family=replace(twice.problem_.family, gaussian=center))
    components = replace(twice.params_.components, gaussian=gaussian)
    twice.params_ = replace(twice.params_, components=components, weights=np.array([[0.3, 0.7]]))
    single = FisherKernel(model, information="empirical").fit(X)
    double = FisherKernel(twice, information="empirical").fit(X)
    assert double.rank_ == single.rank_ == 9 and len(double.information_) == 19
    np.testing.assert_allclose(double(X), single(X), rtol=1e-7, atol=1e-7)


def test_a_ridge_damps():
    X, _ = draw()
    model = GaussianMixture(3, random_state=0).fit(X)
    plain, damped = (FisherKernel(model, ridge=ridge, random_state=0).fit(X) for ridge in (0.0, 0.1))
    expected = plain.scores(X) @ np.linalg.solve(plain.information_ + 0.1 * np.eye(plain.rank_), plain.scores(X).T)
    np.testing.assert_allclose(damped(X), expected, rtol=1e-7, atol=1e-7)


def test_contrasts():
    p = np.random.default_rng(0).dirichlet(np.ones(6))
    B = contrasts(p)
    np.testing.assert_allclose(p @ B, 0.0, atol=1e-12)
    np.testing.assert_allclose(B.T @ (p[:, None] * B), np.eye(5), atol=1e-12)
    assert contrasts(np.ones(1)).shape == (1, 0)


def test_the_root_is_symmetric_where_all_is_known():
    X, _ = draw()
    kernel = FisherKernel(GaussianMixture(2, "VVI", random_state=0), random_state=0).fit(X)
    np.testing.assert_allclose(kernel.root_, kernel.root_.T, atol=1e-12)
    np.testing.assert_allclose(kernel.root_ @ kernel.information_ @ kernel.root_, np.eye(kernel.rank_), atol=1e-9)


def test_the_root_of_no_information():
    assert inverse_root(np.zeros((0, 0))).shape == (0, 0)
    np.testing.assert_array_equal(inverse_root(np.diag([4.0, 0.0])), [[0.5], [0.0]])


# --- models ----------------------------------------------------------------------------------------------------------


def test_a_fitted_model_is_used_as_it_is():
    X, _ = draw()
    model = GaussianMixture(2, random_state=0).fit(X)
    kernel = FisherKernel(model, random_state=0).fit(X[:30])
    assert kernel.model_.params_ is model.params_
    before = kernel.transform(X)
    model.fit(X + 1.0)
    np.testing.assert_array_equal(kernel.transform(X), before)


def test_a_model_not_fitted_is_copied_and_fitted():
    X, y = draw()
    model = GaussianMixture(2, random_state=0)
    weight = np.arange(1.0, len(X) + 1.0)
    kernel = FisherKernel(model, random_state=0).fit(X, sample_weight=weight)
    assert not hasattr(model, "params_")
    np.testing.assert_array_equal(kernel.model_.means_, clone(model).fit(X, sample_weight=weight).means_)
    classifier = FisherKernel(MixtureClassifier(1), random_state=0).fit(X, y)
    np.testing.assert_array_equal(classifier.model_.means_, MixtureClassifier(1).fit(X, y).means_)


def test_without_a_model_a_mixture_is_found():
    X, _ = draw()
    kernel = FisherKernel(random_state=0).fit(X)
    assert isinstance(kernel.model_, GaussianMixture) and len(kernel.model_.search_) == 9


@pytest.mark.parametrize(
    "model", [None, GaussianMixture(3, "VEV"), GaussianMixture(3, "VEV", random_state=5)], ids=repr
)
def test_the_same_random_state_gives_the_same_features(model):
    X, _ = draw()
    first, second, other = (FisherKernel(model, random_state=seed).fit(X) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.transform(X), second.transform(X))
    assert not np.array_equal(first.information_, other.information_)
    assert model is None or first.model_.random_state == (0 if model.random_state is None else 5)


def test_a_frozen_model_stays_fitted_in_copies():
    X, y = draw()
    model = GaussianMixture(2, random_state=0).fit(X)
    frozen = FisherKernel(FrozenEstimator(model), random_state=0)
    kernel = clone(frozen).fit(X[:100])
    assert kernel.model_.params_ is model.params_
    frozen_classifier = FisherKernel(FrozenEstimator(MixtureClassifier(1).fit(X, y)), random_state=0)
    assert clone(frozen_classifier).fit(X).rank_ == 29


# --- the scikit-learn face -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "may_fail"),
    [
        (FisherKernel(GaussianMixture(1)), set()),
        (FisherKernel(GaussianMixture(1, "VEV"), information="empirical", ridge=0.01), set()),
        (FisherKernel(MixtureClassifier(1, "VVI"), n_samples=1000), set()),
        # k-means draws its centers row by row: shuffled or repeated rows start EM elsewhere;
        # one row is no two components, and the check can lower only an n_components of the kernel's own
        (FisherKernel(GaussianMixture(2, "EEE"), n_samples=2000), {STARTS, "check_fit2d_1sample"}),
        pytest.param(FisherKernel(), {STARTS}, marks=pytest.mark.slow),
    ],
    ids=["one", "empirical", "classifier", "two", "default"],
)
@pytest.mark.filterwarnings("ignore")  # the checks feed one row, one column, all zeros: they are about errors
def test_every_check_of_scikit_learn_passes(estimator, may_fail):
    results = check_estimator(estimator, on_fail=None)
    assert len(results) >= 45
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert {name: failed[name] for name in failed.keys() - may_fail} == {}


def test_tags():
    X, y = draw()
    assert get_tags(FisherKernel()).input_tags.allow_nan
    assert not get_tags(FisherKernel()).target_tags.required
    assert get_tags(FisherKernel(MixtureClassifier())).target_tags.required
    assert not get_tags(FisherKernel(MixtureClassifier(1).fit(X, y))).target_tags.required


def test_the_constructor_only_stores_and_copies_are_equal():
    X, _ = mixed(missing=0.1)
    kernel = FisherKernel(GaussianMixture(2, random_state=0), ridge=0.5, random_state=0)
    assert clone(kernel).get_params()["ridge"] == 0.5
    kernel.set_params(model__covariance="VVI", ridge=0.0).fit(X)
    assert kernel.model_.covariance_ == "VVI"
    again = pickle.loads(pickle.dumps(kernel))
    np.testing.assert_array_equal(again.transform(X), kernel.transform(X))


def test_names_of_the_features():
    X, _ = mixed()
    kernel = FisherKernel(GaussianMixture(1)).fit(X).set_output(transform="pandas")
    assert kernel.feature_names_in_.tolist() == ["a", "word", "b", "size"] and kernel.n_features_in_ == 4
    table = kernel.transform(X)
    assert table.columns.tolist() == kernel.get_feature_names_out().tolist()
    assert table.columns[0] == "fisherkernel0" and table.shape == (len(X), kernel.rank_)
    assert isinstance(kernel(X), np.ndarray)


def test_in_a_pipeline_and_a_grid():
    X, y = mixed(n=150, missing=0.1)
    pipe = make_pipeline(FisherKernel(GaussianMixture(3, random_state=0), random_state=0), LogisticRegression(C=0.01))
    assert pipe.fit(X, y).score(X, y) > 0.8
    grid = {"fisherkernel__model__n_components": [1, 2], "fisherkernel__ridge": [0.0, 0.1]}
    search = GridSearchCV(pipe, grid, cv=2, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.6


def test_as_a_kernel_of_a_support_vector_machine():
    X, y = draw(n=120)
    kernel = FisherKernel(GaussianMixture(2, "VVI", random_state=0), random_state=0).fit(X)
    called = SVC(kernel=kernel).fit(X, y).decision_function(X)
    given = SVC(kernel="precomputed").fit(kernel(X), y).decision_function(kernel(X))
    np.testing.assert_allclose(called, given, atol=1e-9)


# --- hidden Markov models --------------------------------------------------------------------------------------------


def walks(n=60, length=5, missing=0.0, words=False, seed=0):
    """Sequences of two states that like to stay, and which of two kinds they are."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(2, size=n)
    change = rng.random((n, length)) < np.where(kind, 0.7, 0.2)[:, None]
    states = np.cumsum(change, axis=1) % 2
    if words:
        X = np.array(["a", "b", "c"], dtype=object)[np.where(rng.random(states.shape) < 0.7, states, 2)]
    else:
        X = 2.0 * states + rng.normal(size=states.shape)
    X[rng.random(X.shape) < missing] = None if words else np.nan
    return X, kind


def chain_vector(params):
    """Free coordinates of a chain: log-ratios of probabilities, means, log standard deviations."""

    def ratios(logs):
        return [row[1:] - row[0] for row in np.atleast_2d(logs)]

    parts = [*ratios(params.log_start), *ratios(params.log_trans)]
    if params.components.gaussian is not None:
        parts += [params.components.gaussian.means.ravel(), 0.5 * np.log(params.components.gaussian.covs).ravel()]
    else:
        parts += ratios(params.components.categorical.log_probs)
    return np.concatenate(parts)


def chain_params(vector, like):
    S, at = like.n_states, 0

    def shares(rows, width):
        nonlocal at
        logs = np.hstack([np.zeros((rows, 1)), vector[at : at + rows * (width - 1)].reshape(rows, width - 1)])
        at += rows * (width - 1)
        return logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)

    log_start, log_trans, components = shares(1, S)[0], shares(S, S), like.components
    if components.gaussian is not None:
        means, log_std = vector[at:].reshape(2, S, 1)
        components = replace(components, gaussian=replace(components.gaussian, means=means, covs=np.exp(2 * log_std)))
    else:
        width = components.categorical.log_probs.shape[1]
        components = replace(components, categorical=replace(components.categorical, log_probs=shares(S, width)))
    return replace(like, log_start=log_start, log_trans=log_trans, components=components)


def chain_differences(model, X, step=1e-5):
    """(n, P) central differences of log p(sequence)."""
    like, sequences = model.chain_.params, model._read(X)
    origin = chain_vector(like)

    def at(vector):
        return model._log_lik(replace(model.chain_, params=chain_params(vector, like)), sequences)

    return np.stack([(at(origin + e) - at(origin - e)) / (2 * step) for e in step * np.eye(len(origin))], axis=1)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("n_states", [1, 2, 3])
def test_scores_of_sequences_are_differences_of_their_log_likelihood(n_states, words, missing):
    X, _ = walks(80, missing=missing, words=words)
    model = HiddenMarkovModel(n_states, random_state=0, tol=1e-3, prior=HMMPrior(transition_smoothing=3.0)).fit(X)
    kernel = FisherKernel(model, n_samples=500, random_state=0).fit(X)
    slopes = chain_differences(model, X)
    assert kernel.scores(X).shape == slopes.shape == (80, model.n_parameters_)
    assert_same_gradient(kernel.scores(X), slopes)


@pytest.mark.parametrize("class_prior", ["empirical", [0.3, 0.7]], ids=str)
def test_scores_of_classes_of_sequences(class_prior):
    """p(x) = sum_c p_c p(x | c): posterior of the class times the score of its chain, and of the priors unless held."""
    X, y = walks(80)
    model = HMMClassifier(2, class_prior=class_prior, tol=1e-3).fit(X, y)
    kernel = FisherKernel(model, n_samples=500, random_state=0).fit(X)
    share = model.predict_proba(X)
    slopes = [share[:, [c]] * chain_differences(own, X) for c, own in enumerate(model.models_)]
    if class_prior == "empirical":
        slopes.append(share[:, [0]] / model.class_prior_[0] - share[:, [1]] / model.class_prior_[1])
    slopes = np.concatenate(slopes, axis=1)
    assert kernel.scores(X).shape == slopes.shape
    assert_same_gradient(kernel.scores(X), slopes)


def test_the_information_of_sequences():
    """The identity for one state; for several between 0 and the identity; the second moment of the scores."""
    X, y = walks(300, length=6)
    kernel = FisherKernel(HiddenMarkovModel(1).fit(X)).fit(X)
    np.testing.assert_array_equal(kernel.information_, np.eye(2))
    drawn = FisherKernel(HiddenMarkovModel(1).fit(X), information="sampled", n_samples=20_000, random_state=0).fit(X)
    np.testing.assert_allclose(drawn.information_, np.eye(2), atol=0.05)
    for model in (HiddenMarkovModel(2).fit(X), HMMClassifier(2).fit(X, y)):
        kernel = FisherKernel(model, n_samples=20_000, random_state=0).fit(X)
        values = np.linalg.eigvalsh(kernel.information_)
        assert values[0] > -1e-9 and values[-1] < 1.1
        rows = model.sample(20_000, random_state=1)[0]
        scores = kernel.scores(rows)
        np.testing.assert_allclose(scores.T @ scores / len(scores), kernel.information_, atol=0.06)
        np.testing.assert_allclose(scores.mean(axis=0), 0.0, atol=0.05)
        assert np.isfinite(kernel.transform(X)).all()
    weight = np.arange(300.0)
    empirical = FisherKernel(HiddenMarkovModel(2), information="empirical").fit(X, sample_weight=weight)
    scores = empirical.scores(X)
    np.testing.assert_allclose(empirical.information_, scores.T @ (scores * weight[:, None]) / weight.sum(), rtol=1e-9)


def test_the_fisher_kernel_of_sequences_separates_kinds():
    X, y = walks(200, length=12)
    kernel = FisherKernel(HiddenMarkovModel(2), random_state=0)
    assert make_pipeline(kernel, LogisticRegression(max_iter=1000)).fit(X, y).score(X, y) > 0.8
    np.testing.assert_allclose(kernel(X[:5]), kernel.transform(X[:5]) @ kernel.transform(X[:5]).T)
    left = FisherKernel(HiddenMarkovModel(3, topology="left-right"), n_samples=500, random_state=0).fit(X)
    assert np.isfinite(left.transform(X)).all()
    wanted = get_tags(FisherKernel(HMMClassifier())).target_tags.required
    assert wanted and not get_tags(FisherKernel(HMMClassifier().fit(X, y))).target_tags.required
