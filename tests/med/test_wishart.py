"""Normal-Wishart distributions by natural statistics: integrals, finite differences, and the other class of them."""

import numpy as np
import pytest
from scipy.integrate import dblquad

from mixent.med.gaussians import NormalWishart
from mixent.med.wishart import Wishart


def some(d, seed=0, extra=2.5):
    """Of d + extra rows, not centered."""
    rng = np.random.default_rng(seed)
    A, m, N = rng.normal(size=(d, d)), rng.normal(size=d), d + extra
    S = A @ A.T + np.eye(d)
    return Wishart(np.concatenate([[N], N * m, (S + N * np.outer(m, m)).ravel()]), d)


def twin(wishart):
    return NormalWishart(wishart.rows, wishart.center, wishart.root)


def features(x):
    return np.concatenate([[1.0], x, np.outer(x, x).ravel()])


def moves(d, n, seed=1):
    """Directions in which statistics can go: the square is symmetric."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        square = rng.normal(size=(d, d))
        yield np.concatenate([rng.normal(size=1 + d), (square + square.T).ravel()])


def test_the_log_partition_is_an_integral():
    """d = 1: of a density (r / 2 pi)^1/2 exp(-r (x - m)^2 / 2) to the power of rows, in the measure r^-1/2 dm dr."""

    def log_z(N, first, second):
        def power(m, log_r):
            r = np.exp(log_r)
            return (r / (2 * np.pi)) ** (0.5 * N) * np.exp(-0.5 * r * (second - 2 * m * first + N * m**2)) * r**0.5

        def border(sign):
            return lambda log_r: first / N + sign * 9.0 * np.exp(-0.5 * log_r) / np.sqrt(N)

        value, _ = dblquad(power, -18, 5, border(-1), border(1), epsabs=0, epsrel=1e-8)
        return np.log(value)

    ours, theirs = zip(
        *((Wishart(np.array(T), 1).log_partition, log_z(*T)) for T in ((3.0, 1.0, 5.0), (4.5, -2.0, 6.0)))
    )
    constant = 0.5 * np.log(2 * np.pi)  # A has none
    np.testing.assert_allclose(np.array(theirs) - constant, ours, rtol=1e-6)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_log_partitions_differ_as_those_of_the_other_class(d):
    """Whose coordinates are another's: a row's density is stretched by them, and 2 pi^... is left out there."""
    wishart, two = some(d, 0), some(d, 1, extra=4.0)
    origin = twin(wishart)
    theirs = twin(two).log_partition(origin) - twin(wishart).log_partition(origin)
    stretched = (two.rows - wishart.rows) * (-origin.log_det - 0.5 * d * np.log(np.pi))
    assert two.log_partition - wishart.log_partition == pytest.approx(theirs + stretched, rel=1e-11)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_mean_is_the_gradient_and_the_metric_the_hessian(d):
    wishart, h = some(d), 1e-5
    for f in moves(d, 6):
        up, down = (
            wishart.with_natural_parameters(wishart.T + h * f),
            wishart.with_natural_parameters(wishart.T - h * f),
        )
        assert wishart.mean @ f == pytest.approx((up.log_partition - down.log_partition) / (2 * h), rel=1e-6, abs=1e-8)
        np.testing.assert_allclose(wishart.hessian_product(f), (up.mean - down.mean) / (2 * h), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_metric_is_symmetric_and_positive_and_the_gram_matrix_its_own(d):
    wishart = some(d)
    F = np.array(list(moves(d, 7)))
    gram = wishart.gram(F)
    np.testing.assert_allclose(gram, gram.T, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(gram, [[f @ wishart.hessian_product(g) for g in F] for f in F], rtol=1e-10, atol=1e-12)
    assert np.linalg.eigvalsh(gram)[-min(7, (d + 1) * (d + 2) // 2)] > 0


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_mean_holds_the_coefficients_of_the_expected_log_density(d):
    wishart, X = some(d), np.random.default_rng(3).normal(size=(9, d)) * 3
    ours = np.array([wishart.mean @ features(x) for x in X])
    np.testing.assert_allclose(ours, twin(wishart).expected_log_prob(X), rtol=1e-11)


@pytest.mark.parametrize("d", [1, 3])
def test_the_divergence_is_that_of_the_other_class(d):
    wishart, prior = some(d, 0), some(d, 1, extra=3.5)
    assert wishart.divergence(prior) == pytest.approx(twin(wishart).divergence(twin(prior)), rel=1e-10)
    assert wishart.divergence(wishart) == pytest.approx(0.0, abs=1e-12) and wishart.divergence(prior) > 0


def test_rows_add_up():
    X = np.random.default_rng(4).normal(size=(6, 2))
    wishart = some(2)
    more = wishart.with_natural_parameters(wishart.T + sum(features(x) for x in X))
    assert more.rows == wishart.rows + 6
    m = (wishart.rows * wishart.center + X.sum(axis=0)) / more.rows
    np.testing.assert_allclose(more.center, m)
    away = wishart.center - m
    S = wishart.root @ wishart.root.T + wishart.rows * np.outer(away, away) + (X - m).T @ (X - m)
    np.testing.assert_allclose(more.root @ more.root.T, S, rtol=1e-12)


def test_the_border_of_the_domain():
    """More than d - 1 rows are enough."""
    assert np.isfinite(Wishart(np.r_[1.0 + 1e-6, np.zeros(2), np.eye(2).ravel()], 2).log_partition)


def test_a_gram_matrix_is_that_of_single_products():
    rng = np.random.default_rng(0)
    for d in (1, 4):
        X = rng.normal(size=(12, d)) + 3.0
        F = np.column_stack([np.ones(12), X, (X[:, :, None] * X[:, None]).reshape(12, -1)])
        P = Wishart(F.sum(axis=0) + np.r_[d + 1.0, np.zeros(d), (d + 1) * np.eye(d).ravel()], d)
        expected = F @ np.array([P.hessian_product(f) for f in F]).T
        np.testing.assert_allclose(P.gram(F), expected, rtol=1e-10, atol=1e-12)
