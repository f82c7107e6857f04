"""Normal-Wishart distributions: partition functions are integrals, and their derivatives finite differences."""

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.special import gammaln
from scipy.stats import invgamma, invwishart, multivariate_normal, multivariate_t, norm

from mixent.med.tied_wishart import TiedWishart
from mixent.med.wishart import Wishart, moments


def tilted(wishart, X, weight):
    """The distribution times prod_t N(x_t; mean, V)^w_t."""
    (phi,) = wishart.features(X)
    return wishart.with_natural_parameters(wishart.T + phi.weighted_sum(weight))


def some(d, seed=0, rows=None, diagonal=False, frame=True):
    """A distribution that is not standard in its frame."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(d, d))
    m, N = 3 * rng.normal(size=d), d + 2.5 if rows is None else rows
    S = half @ half.T + np.eye(d)
    S = np.diag(np.diagonal(S)) if diagonal else S
    if not frame:
        second = S + N * np.outer(m, m)
        return Wishart(np.r_[N, N * m, np.diagonal(second) if diagonal else second.ravel()], d, diagonal)
    first = Wishart.standard(N, m, np.linalg.cholesky(S), diagonal)
    return tilted(first, first.center + rng.normal(size=(4, d)), np.array([0.5, -0.2, -0.4, 0.1]))


def tied(C=3, d=2, seed=0):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(d, d))
    rows, means = rng.uniform(2, 5, size=C), rng.normal(size=(C, d))
    prior = TiedWishart.of_moments(rows, means, 5 * (half @ half.T + np.eye(d)))
    return prior.with_natural_parameters(prior.T * (1 + 0.05 * rng.normal(size=len(prior.T))))


KINDS = {
    "one": some(1),
    "full": some(4),
    "bare": some(3, frame=False),
    "diagonal": some(4, diagonal=True),
    "tied": tied(),
}
by_kind = pytest.mark.parametrize("wishart", KINDS.values(), ids=KINDS.keys())


def moves(wishart, n, seed=1):
    """Directions in which T can go: second moments are symmetric."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3 * len(wishart.T), wishart.d))
    features = wishart.features(X)
    for _ in range(n):
        yield sum(phi.weighted_sum(rng.normal(size=len(X))) for phi in features) / len(X)


# --- integrals --------------------------------------------------------------------------------------------------------


def over_mean_and_variance(function, wishart):
    """int int f(m, V) N(m; m0, V/N) IW(V; S, N) dm dV for one column: V is inverse gamma (N/2, S/2)."""
    N, m0, S = wishart.rows, wishart.center[0], wishart.root[0, 0] ** 2
    variance = invgamma(0.5 * N, scale=0.5 * S)
    low, high = np.log(variance.ppf(1e-15)), np.log(variance.isf(1e-15))
    nodes, weights = np.polynomial.legendre.leggauss(300)
    z, log_v = 10.0 * nodes[:, None], 0.5 * (high + low) + 0.5 * (high - low) * nodes
    v = np.exp(log_v)
    density = norm.pdf(z) * variance.pdf(v) * v * 10.0 * 0.5 * (high - low)
    return weights @ (function(m0 + z * np.sqrt(v / N), v) * density) @ weights


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


def change_of_log_partition(wishart, X, weight):
    """log Z(w) / Z(0) in the units of the columns."""
    return tilted(wishart, X, weight).log_partition - wishart.log_partition - weight.sum() * wishart.frame.log_det


def test_the_partition_function_is_the_integral_of_weighted_densities():
    """Z(w) / Z(0) = E prod_t N(x_t; m, V)^w_t, with weights of either sign."""
    wishart = Wishart.standard(9.5, np.array([0.7]), np.array([[2.5]]))
    X, weight = np.array([[0.1], [1.4], [-0.8]]), np.array([0.7, -0.5, -0.2])

    def product(m, v):
        return np.exp(sum(w * norm.logpdf(x, m, np.sqrt(v)) for w, x in zip(weight, X[:, 0])))

    ratio = over_mean_and_variance(product, wishart)
    assert change_of_log_partition(wishart, X, weight) == pytest.approx(np.log(ratio), abs=1e-7)


def test_equation_16_is_the_log_partition():
    """log Z = -d/2 log N - N/2 log|pi S| + sum_j log Gamma((N + 1 - j) / 2), from weights alone."""
    rng = np.random.default_rng(1)
    d, n = 3, 30
    X, weight = 2 + rng.normal(size=(n, d)), rng.uniform(0.2, 1.0, size=n)
    weight[:4] *= -0.3

    def log_z(w):
        N = w.sum()
        mean = w @ X / N
        S = (X * w[:, None]).T @ X - N * np.outer(mean, mean)
        gamma = gammaln(0.5 * (N + 1 - np.arange(1, d + 1))).sum()
        return -0.5 * d * np.log(N) - 0.5 * N * (d * np.log(np.pi) + np.linalg.slogdet(S)[1]) + gamma

    wishart = Wishart.of_moments(*moments(X, weight, 0.0, np.zeros(d), np.eye(d)))
    change = 0.2 * rng.normal(size=n)
    expected = log_z(weight + change) - log_z(weight)
    assert change_of_log_partition(wishart, X, change) == pytest.approx(expected, rel=1e-10)


def test_the_expected_log_density_of_one_column_is_the_integral():
    wishart = Wishart.standard(4.5, np.array([0.7]), np.array([[2.5]]))
    for x in (-3.0, 0.7, 1.5):
        integral = over_mean_and_variance(lambda m, v, x=x: norm.logpdf(x, m, np.sqrt(v)), wishart)
        assert float(wishart.expected_log_prob(np.array([[x]]))[0]) == pytest.approx(integral, abs=1e-7)


def test_the_divergence_is_the_integral_of_the_log_ratio():
    prior = Wishart.standard(4.0, np.array([-0.3]), np.array([[1.5]]))
    wishart = tilted(prior, np.array([[0.5], [1.5], [3.0]]), np.array([1.5, 1.0, 0.5]))

    def log_density(of, m, v):
        N, S = of.rows, of.root[0, 0] ** 2
        return norm.logpdf(m, of.center[0], np.sqrt(v / N)) + invgamma.logpdf(v, 0.5 * N, scale=0.5 * S)

    integral = over_mean_and_variance(lambda m, v: log_density(wishart, m, v) - log_density(prior, m, v), wishart)
    assert wishart.divergence(prior) == pytest.approx(integral, abs=1e-6)


def sampled(means, covs, rng):
    roots = np.linalg.cholesky(covs)
    return means + np.einsum("nij,nj->ni", roots, rng.normal(size=means.shape)), roots


def test_expected_and_predictive_log_density_are_those_of_samples():
    rng = np.random.default_rng(0)
    single, several, n = some(3, rows=12.0), tied(2, 3), 20_000
    root = several.frame.root @ several._root
    for wishart, s, N, total, S in (
        (single, None, single.rows, single.rows, single.root @ single.root.T),
        (several, 1, several.rows[1], several.total, root @ root.T),
    ):
        center = wishart.gaussians[-1][0]
        X = center + rng.normal(size=(4, 3))
        covs = invwishart(df=total, scale=S).rvs(n, random_state=rng)
        means, _ = sampled(np.tile(center, (n, 1)), covs / N, rng)
        roots = np.linalg.cholesky(covs)
        log_det = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        pick = (lambda values: values) if s is None else (lambda values, s=s: values[:, s])
        for x, expected, predictive in zip(X, pick(wishart.expected_log_prob(X)), pick(wishart.predictive_log_prob(X))):
            z = np.linalg.solve(roots, (x - means)[:, :, None])[:, :, 0]
            log_prob = -1.5 * np.log(2 * np.pi) - log_det - 0.5 * (z**2).sum(axis=1)
            assert abs(log_prob.mean() - expected) < 4 * log_prob.std() / np.sqrt(n)
            p = np.exp(log_prob)
            assert abs(p.mean() - np.exp(predictive)) < 4 * p.std() / np.sqrt(n)


# --- derivatives ------------------------------------------------------------------------------------------------------


@by_kind
def test_the_mean_is_the_gradient_and_the_hessian_its_derivative(wishart):
    h = 1e-5
    for f in moves(wishart, 6):
        up, down = (wishart.with_natural_parameters(wishart.T + sign * h * f) for sign in (1, -1))
        assert wishart.mean @ f == pytest.approx((up.log_partition - down.log_partition) / (2 * h), rel=1e-6, abs=1e-7)
        np.testing.assert_allclose(wishart.hessian_product(f), (up.mean - down.mean) / (2 * h), rtol=1e-5, atol=1e-5)


@by_kind
def test_the_hessian_is_positive_and_the_kernel_its_own(wishart):
    F = np.array(list(moves(wishart, 5)))
    gram = np.array([[f @ wishart.hessian_product(g) for g in F] for f in F])
    np.testing.assert_allclose(gram, gram.T, rtol=1e-9, atol=1e-10)
    assert np.linalg.eigvalsh(gram)[-min(5, wishart.rank)] > 0
    np.testing.assert_allclose(wishart.gram(F), gram, rtol=1e-7, atol=1e-10)
    X = 2 * np.random.default_rng(3).normal(size=(7, wishart.d))
    for phi in wishart.features(X):
        expected = [[f @ wishart.hessian_product(g) for g in phi.to_array()] for f in phi.to_array()]
        factor = phi.kernel_factor(wishart)
        assert factor.shape == (7, wishart.rank)
        np.testing.assert_allclose(phi.kernel(wishart), expected, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(factor @ factor.T, expected, rtol=1e-7, atol=1e-9)


@by_kind
def test_features_are_those_of_their_array_and_never_formed(wishart):
    rng = np.random.default_rng(4)
    X, alpha, vector = rng.normal(size=(6, wishart.d)), rng.normal(size=6), rng.normal(size=len(wishart.T))
    for phi in wishart.features(X):
        np.testing.assert_allclose(phi.dot(vector), phi.to_array() @ vector, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(phi.weighted_sum(alpha), alpha @ phi.to_array(), rtol=1e-11, atol=1e-12)
        np.testing.assert_array_equal(phi.take(slice(2, 4)).to_array(), phi.to_array()[2:4])
        assert phi.row_bytes <= 24 * (1 + wishart.d)


@by_kind
def test_the_mean_holds_the_coefficients_of_the_expected_log_density(wishart):
    """Of tied Gaussians up to what all have in common."""
    X = 3 * np.random.default_rng(3).normal(size=(9, wishart.d))
    ours = np.column_stack([phi.dot(wishart.mean) + phi.offset for phi in wishart.features(X)])
    difference = ours - wishart.expected_log_prob(X).reshape(ours.shape)
    np.testing.assert_allclose(difference - difference[:, :1], 0.0, atol=1e-9)
    if not isinstance(wishart, TiedWishart):
        np.testing.assert_allclose(difference, 0.0, atol=1e-9)


@by_kind
def test_the_divergence_is_zero_only_at_the_prior_and_half_the_square_near_it(wishart):
    assert wishart.divergence(wishart) == pytest.approx(0.0, abs=1e-12)
    for f in moves(wishart, 5):
        near = wishart.with_natural_parameters(wishart.T + 1e-3 * f)
        assert near.divergence(wishart) > 0
        assert near.divergence(wishart) == pytest.approx(0.5e-6 * f @ wishart.hessian_product(f), rel=0.05)


# --- the same in other forms ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_predictive_density_is_students_t(d):
    wishart = some(d, rows=d + 0.8)
    free = wishart.rows + 1 - d
    shape = wishart.root @ wishart.root.T * (wishart.rows + 1) / (wishart.rows * free)
    X = wishart.center + 5 * np.random.default_rng(3).normal(size=(8, d))
    peer = multivariate_t(wishart.center, shape, df=free).logpdf(X)
    np.testing.assert_allclose(wishart.predictive_log_prob(X), peer, rtol=1e-9)
    if d == 1:
        mass = quad(lambda x: np.exp(wishart.predictive_log_prob(np.array([[x]]))[0]), -np.inf, np.inf)[0]
        assert mass == pytest.approx(1.0, abs=1e-6)


def test_a_diagonal_distribution_is_the_product_of_its_columns():
    wishart = some(3, diagonal=True)
    X = np.random.default_rng(0).normal(size=(5, 3))
    columns = [Wishart.standard(wishart.rows, wishart.center[[j]], wishart.root[[j]][:, [j]]) for j in range(3)]
    for name in ("expected_log_prob", "predictive_log_prob"):
        one_by_one = sum(getattr(one, name)(X[:, [j]]) for j, one in enumerate(columns))
        np.testing.assert_allclose(getattr(wishart, name)(X), one_by_one, rtol=1e-10)
    change = tilted(wishart, X, np.full(5, 0.3)).log_partition - wishart.log_partition
    framed = [Wishart.standard(w.rows, w.center, w.root) for w in columns]
    parts = [change_of_log_partition(w, X[:, [j]], np.full(5, 0.3)) for j, w in enumerate(framed)]
    assert change - 1.5 * wishart.frame.log_det == pytest.approx(sum(parts), rel=1e-10)


def test_tied_gaussians_of_one_class_are_a_single_one():
    rng = np.random.default_rng(2)
    mean, half = rng.normal(size=3), rng.normal(size=(3, 3))
    scatter = half @ half.T + np.eye(3)
    single, several = (
        Wishart.of_moments(6.5, mean, scatter),
        TiedWishart.of_moments(np.array([6.5]), mean[None], scatter),
    )
    X = rng.normal(size=(5, 3))
    for name in ("expected_log_prob", "predictive_log_prob"):
        np.testing.assert_allclose(getattr(several, name)(X)[:, 0], getattr(single, name)(X), rtol=1e-12)
    for ours, theirs in zip(several.gaussians[0], single.gaussians[0]):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_differences_of_tied_log_densities_are_linear():
    wishart = tied(3, 2)
    X = np.random.default_rng(0).normal(size=(3, 2))
    F = wishart.expected_log_prob(np.array([X[0], X[1], 0.3 * X[0] + 0.7 * X[1]]))
    F = F - F[:, :1]
    np.testing.assert_allclose(F[2], 0.3 * F[0] + 0.7 * F[1], atol=1e-11)


def test_rows_add_up():
    X = np.random.default_rng(4).normal(size=(6, 2))
    wishart = some(2)
    more = tilted(wishart, X, np.ones(6))
    assert more.rows == pytest.approx(wishart.rows + 6)
    m = (wishart.rows * wishart.center + X.sum(axis=0)) / more.rows
    np.testing.assert_allclose(more.center, m)
    away = wishart.center - m
    S = wishart.root @ wishart.root.T + wishart.rows * np.outer(away, away) + (X - m).T @ (X - m)
    np.testing.assert_allclose(more.root @ more.root.T, S, rtol=1e-11)


def test_moments_pool_the_prior_and_the_rows():
    rng = np.random.default_rng(5)
    X, w, k = 1e3 + rng.normal(size=(20, 3)), rng.random(20), 2.5
    m0, V0 = 1e3 + rng.normal(size=3), np.diag([1.0, 2.0, 3.0])
    N, mean, S = moments(X, w, k, m0, V0)
    assert pytest.approx(k + w.sum()) == N
    np.testing.assert_allclose(mean, (k * m0 + w @ X) / N, rtol=1e-12)
    direct = k * V0 + (X * w[:, None]).T @ X + k * np.outer(m0, m0) - N * np.outer(mean, mean)
    np.testing.assert_allclose(S, direct, atol=1e-6)  # the formula loses six digits, the code none
    np.testing.assert_allclose(S, moments(X - 1e3, w, k, m0 - 1e3, V0)[2], rtol=1e-10)
    twice = moments(np.vstack([X, X]), np.r_[w, w], k, m0, V0)
    np.testing.assert_allclose(moments(X, 2 * w, k, m0, V0)[2], twice[2], rtol=1e-10)


def test_columns_far_from_zero_in_any_units_lose_no_precision():
    """A column at 1e8 with a standard deviation of 1, and one of 1e-6: as if they were standard."""
    rng = np.random.default_rng(6)
    Z, w = np.round(1024 * rng.normal(size=(40, 3))) / 1024, rng.uniform(-0.2, 1.0, size=40)
    unit, away = np.array([1.0, 2.0**-20, 2.0**15]), np.array([2.0**27, 0.0, -(2.0**40)])
    X = Z * unit + away
    np.testing.assert_array_equal((X - away) / unit, Z)
    near, far = (
        tilted(Wishart.of_moments(*moments(rows, np.ones(40), 1.0, mean, np.diag(scale**2))), rows, w)
        for rows, mean, scale in ((Z, np.zeros(3), np.ones(3)), (X, away, unit))
    )
    np.testing.assert_allclose(far.T, near.T, rtol=1e-7, atol=1e-7)
    jacobian = np.log(unit).sum()
    np.testing.assert_allclose(far.expected_log_prob(X) + jacobian, near.expected_log_prob(Z), rtol=1e-7)


def test_multivariate_normal_is_the_limit_of_many_rows():
    cov = np.array([[2.0, 0.5], [0.5, 1.0]])
    wishart = Wishart.standard(1e8, np.array([1.0, -1.0]), np.sqrt(1e8) * np.linalg.cholesky(cov))
    X = np.random.default_rng(0).normal(size=(5, 2))
    peer = multivariate_normal([1.0, -1.0], cov).logpdf(X)
    np.testing.assert_allclose(wishart.expected_log_prob(X), peer, atol=1e-6)
    np.testing.assert_allclose(wishart.predictive_log_prob(X), peer, atol=1e-6)


def test_the_border_of_the_domain():
    """More than d - 1 rows are enough, and any if the columns are independent."""
    assert np.isfinite(Wishart(np.r_[1.0 + 1e-6, np.zeros(2), np.eye(2).ravel()], 2).log_partition)
    assert np.isfinite(Wishart(np.r_[1e-3, np.zeros(2), np.ones(2)], 2, True).log_partition)


def test_a_gram_matrix_is_that_of_single_products():
    rng = np.random.default_rng(0)
    for d in (1, 4):
        X = rng.normal(size=(12, d)) + 3.0
        F = np.column_stack([np.ones(12), X, (X[:, :, None] * X[:, None]).reshape(12, -1)])
        P = Wishart(F.sum(axis=0) + np.r_[d + 1.0, np.zeros(d), (d + 1) * np.eye(d).ravel()], d)
        expected = F @ np.array([P.hessian_product(f) for f in F]).T
        np.testing.assert_allclose(P.gram(F), expected, rtol=1e-10, atol=1e-12)
