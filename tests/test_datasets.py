import numpy as np
import pytest
from scipy.stats import multivariate_normal

from mixent.datasets import make_orchestra


def test_shapes_names_and_repeatability():
    rows = make_orchestra(50, n_features=4, random_state=3)
    assert rows.X.shape == (50, 4) and rows.X.dtype == float
    assert rows.y.shape == rows.instrument.shape == (50,)
    assert set(rows.y) <= set(rows.classes) == {"metal", "wood"}
    assert set(rows.instrument) <= set(rows.instruments) == {"flute", "saxophone", "clarinet", "violin"}
    again = make_orchestra(50, n_features=4, random_state=3)
    np.testing.assert_array_equal(rows.X, again.X)
    np.testing.assert_array_equal(rows.y, again.y)
    assert (make_orchestra(50, n_features=4, random_state=4).X != rows.X).any()
    assert len(make_orchestra().X) == 1000


def test_every_group_is_mostly_of_one_material_and_every_class_needs_three():
    weights = make_orchestra(1).weights
    np.testing.assert_allclose(weights.sum(), 1)
    within = weights / weights.sum(axis=1, keepdims=True)
    assert (np.count_nonzero(within > 0.1, axis=1) == 3).all()
    assert (np.max(weights / weights.sum(axis=0), axis=0) >= 0.7).all()
    mostly = dict(zip(make_orchestra(1).instruments, make_orchestra(1).classes[weights.argmax(axis=0)]))
    assert mostly == {"flute": "metal", "saxophone": "metal", "clarinet": "wood", "violin": "wood"}


def test_the_posterior_is_bayes_rule_on_the_shared_components():
    rows = make_orchestra(200, separation=1.3, random_state=0, return_posterior=True)
    density = np.stack([multivariate_normal(m, c).pdf(rows.X) for m, c in zip(rows.means, rows.covariances)], axis=1)
    joint = density @ rows.weights.T
    np.testing.assert_allclose(rows.true_proba, joint / joint.sum(axis=1, keepdims=True), rtol=1e-9)
    np.testing.assert_array_equal(rows.true_proba, rows.posterior(rows.X))
    assert make_orchestra(2).true_proba is None


def test_rows_come_from_the_distribution_that_is_stated():
    rows = make_orchestra(40_000, random_state=0, return_posterior=True)
    for k, name in enumerate(rows.instruments):
        mine = rows.X[rows.instrument == name]
        spread = np.sqrt(np.diag(rows.covariances[k]) / len(mine))
        assert (np.abs(mine.mean(axis=0) - rows.means[k]) < 4.5 * spread).all()
        np.testing.assert_allclose(np.cov(mine.T), rows.covariances[k], atol=0.04)
        for c, label in enumerate(rows.classes):
            share = rows.weights[c, k]
            seen = np.mean((rows.instrument == name) & (rows.y == label))
            assert abs(seen - share) <= 4.5 * np.sqrt(share * (1 - share) / 40_000)
    # labels agree with the posterior wherever it is asked: residuals have mean 0 given x
    miss = (rows.y == rows.classes[0]) - rows.true_proba[:, 0]
    for g in (np.ones(40_000), *rows.X.T, rows.X[:, 0] * rows.X[:, 1], rows.true_proba[:, 0] > 0.5):
        assert abs(np.mean(miss * g)) < 4.5 * np.std(miss * g) / 200


@pytest.mark.parametrize("separation", [0, 1, 2.5, 6])
def test_the_bayes_error_is_that_of_the_posterior(separation):
    rows = make_orchestra(50_000, separation=separation, random_state=0, return_posterior=True)
    chance = 1 - rows.true_proba.max(axis=1)
    assert abs(chance.mean() - rows.bayes_error) < 4.5 * chance.std() / np.sqrt(len(chance))


def test_the_bayes_error_falls_to_what_cannot_be_heard():
    errors = [make_orchestra(1, separation=s).bayes_error for s in (0, 1, 2, 4, 1000)]
    assert (np.diff(errors) < 0).all()
    assert errors[-1] == pytest.approx(0.15, rel=1e-9)  # a quarter each of flutes and clarinets, 0.3 wrong
    assert errors[0] < 0.5


def test_the_bayes_error_equals_another_quadrature():
    rows = make_orchestra(1)
    grid = np.linspace(-9, 9, 601)
    plane = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    density = np.stack([multivariate_normal(m, c).pdf(plane) for m, c in zip(rows.means, rows.covariances)], axis=1)
    assert rows.bayes_error == pytest.approx((density @ rows.weights.T).min(axis=1).sum() * 0.03**2, abs=1e-5)


def test_further_features_tell_nothing():
    rows = make_orchestra(300, n_features=5, random_state=0, return_posterior=True)
    other = rows.X.copy()
    other[:, 2:] += 7
    np.testing.assert_array_equal(rows.posterior(other), rows.true_proba)
    assert rows.bayes_error == make_orchestra(1).bayes_error
    assert (np.abs(rows.X[:, 2:].mean(axis=0)) < 4.5 / np.sqrt(300)).all()


def test_the_posterior_far_away_is_still_one():
    rows = make_orchestra(1)
    far = rows.posterior(np.array([[1e4, 0], [-1e6, 1e6], [0, -1e4]]))
    np.testing.assert_allclose(far.sum(axis=1), 1, rtol=1e-12)
