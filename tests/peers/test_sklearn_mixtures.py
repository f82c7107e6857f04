"""sklearn.mixture.GaussianMixture and BayesianGaussianMixture, beside mixent.GaussianMixture."""

import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.mixture import GaussianMixture as Peer

from mixent import GaussianMixture

NAMES = {"spherical": "VII", "diag": "VVI", "tied": "EEE", "full": "VVV"}
kinds = pytest.mark.parametrize("kind", NAMES)


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    label = rng.choice(3, 240, p=[0.5, 0.3, 0.2])
    return rng.normal(size=(240, 2)) * [1.0, 0.7] + 4.0 * np.array([[0, 0], [1, 0], [0, 1.5]])[label]


def quietly(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X)


def matrices(covariances, kind):
    """scikit-learn's covariances of each type as (3, 2, 2)."""
    if kind in ("spherical", "diag"):
        return covariances.reshape(3, -1, 1) * np.eye(2)
    return np.broadcast_to(covariances, (3, 2, 2))


@kinds
def test_covered_maximum_likelihood(X, kind):
    peer = Peer(3, covariance_type=kind, reg_covar=0, tol=1e-12, max_iter=5000, random_state=0).fit(X)
    ours = GaussianMixture(3, NAMES[kind], prior=None, init=peer.predict_proba(X), tol=1e-12).fit(X)
    order = np.argsort(-peer.weights_)
    np.testing.assert_allclose(ours.weights_, peer.weights_[order], atol=1e-4)
    np.testing.assert_allclose(ours.means_, peer.means_[order], atol=1e-3)
    np.testing.assert_allclose(ours.covariances_, matrices(peer.covariances_, kind)[order], atol=1e-3)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X)[:, order], atol=1e-4)
    for name in ("score", "bic", "aic"):
        assert getattr(ours, name)(X) == pytest.approx(getattr(peer, name)(X), rel=1e-6)


@pytest.mark.usefixtures("plain_em")
@kinds
def test_covered_iterations_from_given_parameters(X, kind):
    means, n_iter = X[[0, 50, 100]], 4
    shape = {"spherical": np.ones(3), "diag": np.ones((3, 2)), "tied": np.eye(2), "full": np.tile(np.eye(2), (3, 1, 1))}
    start = {"weights_init": [0.4, 0.3, 0.3], "means_init": means, "precisions_init": shape[kind]}
    peer = quietly(Peer(3, covariance_type=kind, reg_covar=0, tol=0, max_iter=n_iter, **start), X)
    given = {"weights": [0.4, 0.3, 0.3], "means": means, "precisions": np.ones((3, 2))}
    ours = GaussianMixture(3, NAMES[kind], prior=None, init=given, tol=0, max_iter=n_iter)
    quietly(ours, X)
    order = np.argsort(-peer.weights_)
    assert ours.n_iter_ == peer.n_iter_ == n_iter
    np.testing.assert_allclose(ours.means_, peer.means_[order], rtol=1e-8)
    np.testing.assert_allclose(ours.covariances_, matrices(peer.covariances_, kind)[order], rtol=1e-7, atol=1e-10)


def test_covered_one_iteration_at_a_time(X):
    model = GaussianMixture(3, prior=None, warm_start=True, max_iter=1, random_state=0)
    scores = [quietly(model, X).score(X) for _ in range(8)]
    assert (np.diff(scores[:5]) > 0).all()
    while not model.converged_:
        quietly(model, X)


def test_covered_warm_start_from_the_last_fit(X):
    model = GaussianMixture(3, warm_start=True, random_state=0).fit(X)
    assert model.fit(X).n_iter_ <= 2


def test_covered_lower_bounds(X):
    model = GaussianMixture(3, prior=None, random_state=0).fit(X)
    assert model.lower_bounds_[-1] == model.lower_bound_ == pytest.approx(model.score(X), abs=1e-9)
    assert len(model.lower_bounds_) == model.n_iter_ and (np.diff(model.lower_bounds_) >= -1e-12).all()


def test_covered_several_initializations(X):
    one = GaussianMixture(5, "VVI", init="random", random_state=0).fit(X)
    many = GaussianMixture(5, "VVI", init="random", n_init=5, random_state=0).fit(X)
    assert len(many.starts_.short) == 5 and many.lower_bound_ >= one.lower_bound_ - 0.05
    best = max(run.objective for run in many.starts_.short)
    assert many.run_.objective >= best


def test_covered_precisions(X):
    model = GaussianMixture(3, random_state=0).fit(X)
    np.testing.assert_allclose(model.precisions_, np.linalg.inv(model.covariances_), rtol=1e-9)


def test_covered_log_density(X):
    model = GaussianMixture(3, random_state=0).fit(X)
    parts = zip(model.weights_, model.means_, model.covariances_)
    density = sum(w * multivariate_normal(m, C).pdf(X) for w, m, C in parts)
    np.testing.assert_allclose(model.score_samples(X), np.log(density), rtol=1e-9)
    assert model.score(X) == pytest.approx(np.log(density).mean(), rel=1e-9)


def test_covered_responsibilities_and_labels(X):
    model = GaussianMixture(3, random_state=0).fit(X)
    resp = model.predict_proba(X)
    np.testing.assert_allclose(resp.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X), resp.argmax(axis=1))
    np.testing.assert_array_equal(clone(model).fit_predict(X), model.predict(X))


def test_covered_sampling(X):
    model = GaussianMixture(3, random_state=0).fit(X)
    drawn, label = model.sample(3000, random_state=1)
    assert drawn.shape == (3000, 2) and label.shape == (3000,)
    np.testing.assert_allclose(np.bincount(label) / 3000, model.weights_, atol=0.04)
    np.testing.assert_allclose(drawn[label == 0].mean(axis=0), model.means_[0], atol=0.2)
    np.testing.assert_array_equal(model.sample(5, random_state=1)[0], model.sample(5, random_state=1)[0])


def test_covered_one_component_is_mean_and_covariance(X):
    model = GaussianMixture(1, prior=None).fit(X)
    np.testing.assert_allclose(model.means_[0], X.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(model.covariances_[0], np.cov(X.T, bias=True), rtol=1e-9)


def test_covered_seeds_and_permutations(X):
    first, second = (GaussianMixture(3, random_state=3).fit(X) for _ in range(2))
    np.testing.assert_array_equal(first.means_, second.means_)
    np.testing.assert_allclose(GaussianMixture(3, random_state=3).fit(X[::-1]).score(X), first.score(X), atol=1e-3)


def test_covered_errors_and_warnings(X):
    with pytest.raises(NotFittedError):
        GaussianMixture(2).predict(X)
    with pytest.raises(ValueError, match="features"):
        GaussianMixture(2, random_state=0).fit(X).predict(X[:, :1])
    with pytest.raises(ValueError, match="n_components"):
        GaussianMixture(300).fit(X)
    for bad in ({"n_components": 0}, {"covariance": "banana"}, {"init": "k"}, {"tol": -1}, {"max_iter": 0}):
        with pytest.raises(ValueError):
            GaussianMixture(**bad).fit(X)
    with pytest.warns(ConvergenceWarning):
        GaussianMixture(3, max_iter=2, tol=0, random_state=0).fit(X)


def test_covered_duplicated_rows_do_not_break_a_fit(X):
    model = quietly(GaussianMixture(3, random_state=0), np.repeat(X[:5], 10, axis=0))
    assert np.isfinite(model.score_samples(X)).all()


@pytest.mark.usefixtures("plain_em")
def test_different_lower_bounds():
    """`lower_bound_` is the objective after the last iteration, with the log prior; scikit-learn's is before it."""
    X = np.random.default_rng(0).normal(size=(200, 2)) + 3 * (np.arange(200) % 2)[:, None]
    start = {"weights": [0.5, 0.5], "means": [[0.0, 0.0], [3.0, 3.0]], "precisions": [np.eye(2)] * 2}
    options = {"tol": 0.0, "max_iter": 4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ours = GaussianMixture(2, "VVV", prior=None, init=start, **options).fit(X)
        given = {f"{name}_init": np.array(value) for name, value in start.items()}
        peer = Peer(2, **given, reg_covar=0.0, tol=0.0, max_iter=5).fit(X)
    assert ours.lower_bound_ == pytest.approx(ours.score(X), rel=1e-12)
    np.testing.assert_allclose(ours.lower_bounds_, peer.lower_bounds_[1:], rtol=1e-9)


@kinds
def test_different_names_and_shapes_of_covariances(X, kind):
    """Covariance structures have the names of mclust ("tied" is "EEE"), and `covariances_` is always (K, d, d)."""
    model = GaussianMixture(3, NAMES[kind], random_state=0).fit(X)
    assert model.covariances_.shape == model.precisions_.shape == (3, 2, 2)
    with pytest.raises(ValueError, match=NAMES[kind]):
        GaussianMixture(3, kind).fit(X)


def test_different_prior_instead_of_a_ridge(X):
    """A prior of d + 2 pseudo-rows in the objective replaces `reg_covar`; `prior=None` is maximum likelihood."""
    assert not hasattr(GaussianMixture(), "reg_covar")
    plain = GaussianMixture(1, prior=None).fit(X).score(X)
    assert GaussianMixture(1).fit(X).score(X) < plain == pytest.approx(Peer(1, reg_covar=0).fit(X).score(X), rel=1e-9)


def test_different_order_of_components(X):
    """Components are sorted by decreasing weight, so that equal fits have equal labels."""
    assert (np.diff(GaussianMixture(3, random_state=0).fit(X).weights_) <= 0).all()


def test_different_rows_start_at_the_nearest_given_mean(X):
    """With given means, the other initial parameters are those of the rows nearest to each mean, not of k-means."""
    means = np.array([[4.0, 0.0], [0.0, 6.0], [0.0, 0.0]])
    fits = [GaussianMixture(3, prior=None, init={"means": means}, random_state=seed).fit(X) for seed in (0, 1)]
    np.testing.assert_array_equal(fits[0].means_, fits[1].means_)


def test_different_tolerance_and_acceleration(X):
    """`tol` is 1e-6 nats per row, and steps are accelerated: a fit goes on where scikit-learn's default stops."""
    ours = GaussianMixture(3, prior=None, random_state=0).fit(X)
    peer = Peer(3, reg_covar=0, random_state=0).fit(X)
    assert ours.tol < peer.tol and ours.score(X) >= peer.score(X) - 1e-6


def test_different_number_of_components_by_a_search(X):
    """`n_components="auto"` selects components and structure by BIC; scikit-learn prunes a Dirichlet process."""
    model = GaussianMixture("auto", ["EEI", "VVV"], search="bic", random_state=0).fit(X)
    assert model.n_components_ == 3 and len(model.search_) == 18


def test_different_missing_values_and_weights(X):
    """Missing values and `sample_weight` are accepted."""
    gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    model = GaussianMixture(3, random_state=0).fit(gaps, sample_weight=np.ones(len(X)))
    assert np.isfinite(model.score_samples(gaps)).all()


def test_absent_variational_inference():
    """Variational inference: `BayesianGaussianMixture` and its weight concentration prior."""
    with pytest.raises(TypeError):
        GaussianMixture(2, weight_concentration_prior=1.0)


def test_absent_cholesky_factors(X):
    """`precisions_cholesky_`: use `precisions_`."""
    assert not hasattr(GaussianMixture(2, random_state=0).fit(X), "precisions_cholesky_")


def test_absent_verbose():
    """`verbose` and `verbose_interval`: use `progress` and `run_.trace`."""
    with pytest.raises(TypeError):
        GaussianMixture(2, verbose=1)
