"""Missing values are integrated out exactly, in training and in prediction."""

import itertools

import numpy as np
import pytest

from mixent import GaussianMixture, MixtureClassifier

NAN = np.nan
TRUTH = {
    "weights": np.array([0.6, 0.4]),
    "means": np.array([[0.0, 0.0, 0.0], [3.0, 2.0, -2.0]]),
    "covs": np.array(
        [[[1.0, 0.5, 0.2], [0.5, 1.0, 0.0], [0.2, 0.0, 0.6]], [[0.8, -0.3, 0.0], [-0.3, 1.2, 0.4], [0.0, 0.4, 1.0]]]
    ),
}


def draw_truth(n, seed, missing=0.3):
    rng = np.random.default_rng(seed)
    label = (rng.random(n) > TRUTH["weights"][0]).astype(int)
    roots = np.linalg.cholesky(TRUTH["covs"])
    X = TRUTH["means"][label] + np.einsum("nij,nj->ni", roots[label], rng.normal(size=(n, 3)))
    X[rng.random((n, 3)) < missing] = NAN
    return X, label


def parameter_error(model):
    """Root mean squared error over all parameters."""
    gaps = [
        np.ravel(model.weights_.sum(axis=0) if model.weights_.ndim == 2 else model.weights_) - TRUTH["weights"],
        (model.means_ - TRUTH["means"]).ravel(),
        (model.covariances_ - TRUTH["covs"]).ravel(),
    ]
    return np.sqrt(np.mean(np.concatenate(gaps) ** 2))


def mean_error(n, n_seeds):
    """Over several tables; components come by falling weight, as in the truth."""
    fits = (
        GaussianMixture(2, "VVV", prior=None, random_state=0).fit(draw_truth(n, seed)[0]) for seed in range(n_seeds)
    )
    return np.mean([parameter_error(fit) for fit in fits])


def test_with_gaps_the_parameters_converge_to_the_truth():
    """Eight times the rows: the error falls about by sqrt(8)."""
    few, many = mean_error(500, 8), mean_error(4000, 8)
    assert many < 0.06
    assert 0.6 * np.sqrt(8) < few / many < 1.6 * np.sqrt(8)


@pytest.mark.slow
def test_with_gaps_the_parameters_converge_to_the_truth_for_many_rows():
    some, many = mean_error(4000, 6), mean_error(40000, 6)
    assert many < 0.02
    assert 0.6 * np.sqrt(10) < some / many < 1.6 * np.sqrt(10)


def test_with_gaps_and_labels_the_parameters_converge_to_the_truth():
    errors = []
    for n in (500, 4000):
        tables = [draw_truth(n, seed) for seed in range(8)]
        fits = [MixtureClassifier(1, "VVV", prior=None, tol=1e-8).fit(X, label) for X, label in tables]
        errors.append(np.mean([parameter_error(fit) for fit in fits]))
    assert errors[1] < 0.05
    assert 0.6 * np.sqrt(8) < errors[0] / errors[1] < 1.6 * np.sqrt(8)


# --- against brute force ---------------------------------------------------------------------------------------------


@pytest.fixture(params=["EII", "VVI", "VEE", "VVV"])
def mixture(request, draw):
    X, _ = draw(seed=4, n=200, d=4, missing=0.2)
    return GaussianMixture(3, request.param, random_state=0).fit(X)


@pytest.fixture
def every_pattern():
    """A row for each of the 2^4 patterns of gaps, the last without any value."""
    X = np.random.default_rng(0).normal(size=(16, 4)) * 3
    X[np.array(list(itertools.product([False, True], repeat=4)))] = NAN
    return X


def test_score_samples_is_the_marginal_density(mixture, every_pattern, brute_force):
    joint = brute_force(every_pattern, mixture.weights_, mixture.means_, mixture.covariances_)
    expected = np.logaddexp.reduce(joint, axis=1)
    np.testing.assert_allclose(mixture.score_samples(every_pattern), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        mixture.predict_proba(every_pattern), np.exp(joint - expected[:, None]), rtol=1e-8, atol=1e-12
    )
    assert mixture.score(every_pattern) == pytest.approx(expected.mean(), rel=1e-9)


def test_a_row_without_values_has_density_one_and_the_weights_as_responsibilities(mixture, every_pattern):
    assert mixture.score_samples(every_pattern)[-1] == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(mixture.predict_proba(every_pattern)[-1], mixture.weights_, rtol=1e-12)


def test_impute_is_the_conditional_expectation(mixture, every_pattern, brute_force):
    """E[x_m | x_o] = sum_k r_k (m_k + C_mo C_oo^-1 (x_o - m_k)), written out row by row."""
    joint = brute_force(every_pattern, mixture.weights_, mixture.means_, mixture.covariances_)
    resp = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None])
    expected = every_pattern.copy()
    for i, row in enumerate(every_pattern):
        o, m = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
        guesses = []
        for mean, cov in zip(mixture.means_, mixture.covariances_):
            guesses.append(mean[m] + cov[np.ix_(m, o)] @ np.linalg.solve(cov[np.ix_(o, o)], row[o] - mean[o]))
        expected[i, m] = resp[i] @ np.array(guesses)
    filled = mixture.impute(every_pattern)
    np.testing.assert_allclose(filled, expected, rtol=1e-9, atol=1e-12)
    seen = ~np.isnan(every_pattern)
    np.testing.assert_array_equal(filled[seen], every_pattern[seen])


def test_impute_leaves_the_input_alone_and_complete_rows_as_they_are(mixture, every_pattern):
    before = every_pattern.copy()
    mixture.impute(every_pattern)
    np.testing.assert_array_equal(every_pattern, before)
    np.testing.assert_array_equal(mixture.impute(np.ones((3, 4))), np.ones((3, 4)))


def test_marginal_is_the_density_of_some_columns(mixture, every_pattern):
    part = mixture.marginal([2, 0])
    alone = np.full_like(every_pattern, NAN)
    alone[:, [2, 0]] = every_pattern[:, [2, 0]]
    np.testing.assert_allclose(
        part.score_samples(every_pattern[:, [2, 0]]), mixture.score_samples(alone), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_array_equal(part.means_, mixture.means_[:, [2, 0]])
    np.testing.assert_array_equal(part.covariances_, mixture.covariances_[:, [2, 0]][:, :, [2, 0]])
    assert part.n_features_in_ == 2 and mixture.n_features_in_ == 4


def test_gaps_only_at_predict(draw, brute_force):
    X, label = draw(seed=2, n=200)
    model = MixtureClassifier(1, "VVV").fit(X, label)
    gaps = X[:30].copy()
    gaps[np.random.default_rng(0).random(gaps.shape) < 0.5] = NAN
    gaps[-1] = NAN
    joint = brute_force(gaps, model.class_prior_, model.means_, model.covariances_)
    expected = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None])
    np.testing.assert_allclose(model.predict_proba(gaps), expected, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(gaps)[-1], model.class_prior_, rtol=1e-12)
    np.testing.assert_allclose(model.score_samples(gaps), np.logaddexp.reduce(joint, axis=1), rtol=1e-9, atol=1e-12)


def test_a_row_without_values_says_nothing_in_training(draw, soft_start, same):
    """All it can add is to the weights: means and covariances stay."""
    X, label = draw(n=100)
    model = MixtureClassifier(1, "VVV", prior=None, tol=1e-12).fit(X, label)
    more = np.concatenate([X, np.full((20, 3), NAN)])
    other = MixtureClassifier(1, "VVV", prior=None, tol=1e-12, max_iter=5000).fit(
        more, np.concatenate([label, np.repeat([0], 20)])
    )
    np.testing.assert_allclose(other.means_, model.means_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(other.covariances_, model.covariances_, rtol=1e-4, atol=1e-5)
    assert other.class_prior_[0] == pytest.approx((np.sum(label == 0) + 20) / 120)


def test_one_gap_pattern_per_row_is_the_same_as_pattern_by_pattern(draw):
    """Rows are sorted by pattern inside; the answers come back in the order of the rows."""
    X, _ = draw(n=300, d=5, missing=0.3)
    fit = GaussianMixture(2, "VVV", random_state=0).fit(X)
    order = np.random.default_rng(0).permutation(300)
    np.testing.assert_allclose(fit.score_samples(X)[order], fit.score_samples(X[order]), rtol=1e-12)
    np.testing.assert_allclose(fit.impute(X)[order], fit.impute(X[order]), rtol=1e-12)
