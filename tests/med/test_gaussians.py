"""Gaussians with Normal-Wishart distributions: partition functions are integrals, and the dual is equation 18."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import gammaln
from scipy.stats import invgamma, invwishart, multivariate_normal, multivariate_t, norm

from mixent.core.driver import Status, rounding
from mixent.med.constraints import PairConstraints, contrasts
from mixent.med.gaussians import ClassNormalWisharts, GaussianProblem, NormalWishart, class_posterior
from mixent.med.margins import Exponential, Gaussian, Laplace
from mixent.med.problem import row_blocks
from mixent.med.solving import GaussianDiscriminant, Search
from mixent.med.training_sets import GaussianTrainingSet, Subset

TIGHT = Search(gap=1e-11, max_iter=3000)


def some(d, seed=0, rows=9.5):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(d, d))
    return NormalWishart(rows, 3 * rng.normal(size=d), np.linalg.cholesky(half @ half.T + np.eye(d)))


def tilted(gaussian, X, weight):
    """The distribution times prod_t N(x_t; mean, V)^w_t."""
    return gaussian.with_natural_parameters(gaussian.natural_parameters_in(gaussian) + weight @ gaussian.features(X))


# --- one class --------------------------------------------------------------------------------------------------------


def over_mean_and_variance(function, gaussian):
    """int int f(m, V) N(m; m0, V/N) IW(V; S, N) dm dV for one column: V is inverse gamma (N/2, S/2)."""
    N, m0, S = gaussian.rows, gaussian.mean[0], gaussian.root[0, 0] ** 2
    variance = invgamma(0.5 * N, scale=0.5 * S)
    low, high = np.log(variance.ppf(1e-15)), np.log(variance.isf(1e-15))
    nodes, weights = np.polynomial.legendre.leggauss(300)
    z, log_v = 10.0 * nodes[:, None], 0.5 * (high + low) + 0.5 * (high - low) * nodes
    v = np.exp(log_v)
    density = norm.pdf(z) * variance.pdf(v) * v * 10.0 * 0.5 * (high - low)
    return weights @ (function(m0 + z * np.sqrt(v / N), v) * density) @ weights


def test_the_partition_function_is_the_integral_of_weighted_densities():
    """Z(w) / Z(0) = E prod_t N(x_t; m, V)^w_t, with weights of either sign."""
    gaussian = NormalWishart(9.5, np.array([0.7]), np.array([[2.5]]))
    X, weight = np.array([[0.1], [1.4], [-0.8]]), np.array([0.7, -0.5, -0.2])

    def product(m, v):
        return np.exp(sum(w * norm.logpdf(x, m, np.sqrt(v)) for w, x in zip(weight, X[:, 0])))

    ratio = over_mean_and_variance(product, gaussian)
    # the log-partition is known up to a multiple of N: -(d/2) log pi each, and the coordinates' scale
    there = tilted(gaussian, X, weight)
    exact = (
        there.log_partition(gaussian)
        - gaussian.log_partition(gaussian)
        - weight.sum() * (0.5 * np.log(np.pi) + gaussian.log_det)
    )
    assert exact == pytest.approx(np.log(ratio), abs=1e-7)


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

    gaussian = class_posterior(X, weight, 0.0, np.zeros(d), np.eye(d))
    change = 0.2 * rng.normal(size=n)
    there = tilted(gaussian, X, change)
    change_of_log_z = (
        there.log_partition(gaussian)
        - gaussian.log_partition(gaussian)
        - change.sum() * (0.5 * d * np.log(np.pi) + gaussian.log_det)
    )
    assert change_of_log_z == pytest.approx(log_z(weight + change) - log_z(weight), rel=1e-10)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_gradient_and_metric_are_the_log_partitions_derivatives(d):
    gaussian = some(d, d)
    here = gaussian.natural_parameters_in(gaussian)
    size = len(here)
    assert size == (d + 1) * (d + 2) // 2

    def A(statistics):
        return gaussian.with_natural_parameters(statistics).log_partition(gaussian)

    def gradient(statistics):
        """In the coordinates of `one`, by differences of A."""
        return np.array([(A(statistics + e) - A(statistics - e)) / 2e-4 for e in 1e-4 * np.eye(size)])

    np.testing.assert_allclose(gaussian.gradient, gradient(here), rtol=1e-6, atol=1e-6)
    hessian = np.array([(gradient(here + e) - gradient(here - e)) / 2e-3 for e in 1e-3 * np.eye(size)])
    np.testing.assert_allclose(gaussian.hessian_inverse @ hessian, np.eye(size), atol=1e-4)


def test_the_coordinates_of_any_distribution_give_the_same_result():
    gaussian, other = some(3, 0), some(3, 1, rows=6.0)
    back = other.with_natural_parameters(gaussian.natural_parameters_in(other))
    np.testing.assert_allclose(back.mean, gaussian.mean, rtol=1e-12)
    np.testing.assert_allclose(back.root, gaussian.root, rtol=1e-10)
    X = np.random.default_rng(0).normal(size=(5, 3))
    weight = np.array([0.4, -0.1, 0.3, -0.2, 1.0])
    by_one, by_other = (
        tilted(gaussian, X, weight),
        other.with_natural_parameters(gaussian.natural_parameters_in(other) + weight @ other.features(X)),
    )
    np.testing.assert_allclose(by_other.mean, by_one.mean, rtol=1e-10)
    np.testing.assert_allclose(by_other.root, by_one.root, rtol=1e-9)


def test_features_times_gradient_are_the_expected_log_density():
    for d in (1, 3):
        gaussian, X = some(d), np.random.default_rng(2).normal(size=(6, d))
        by_features = gaussian.features(X) @ gaussian.gradient - gaussian.log_det - 0.5 * d * np.log(np.pi)
        np.testing.assert_allclose(by_features, gaussian.expected_log_prob(X), rtol=1e-12)


def test_the_expected_log_density_of_one_column_is_the_integral():
    gaussian = NormalWishart(4.5, np.array([0.7]), np.array([[2.5]]))
    for x in (-3.0, 0.7, 1.5):
        integral = over_mean_and_variance(lambda m, v, x=x: norm.logpdf(x, m, np.sqrt(v)), gaussian)
        assert float(gaussian.expected_log_prob(np.array([[x]]))[0]) == pytest.approx(integral, abs=1e-7)


def test_expected_and_predictive_log_density_are_those_of_samples():
    gaussian = some(3, rows=12.0)
    rng = np.random.default_rng(0)
    X = gaussian.mean + rng.normal(size=(4, 3))
    covs = invwishart(df=12.0, scale=gaussian.root @ gaussian.root.T).rvs(20_000, random_state=rng)
    roots = np.linalg.cholesky(covs)
    means = gaussian.mean + np.einsum("nij,nj->ni", roots, rng.normal(size=(20_000, 3))) / np.sqrt(12.0)
    log_det = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    for x, expected, predictive in zip(X, gaussian.expected_log_prob(X), gaussian.predictive_log_prob(X)):
        z = np.linalg.solve(roots, (x - means)[:, :, None])[:, :, 0]
        log_prob = -1.5 * np.log(2 * np.pi) - log_det - 0.5 * (z**2).sum(axis=1)
        assert abs(log_prob.mean() - expected) < 4 * log_prob.std() / np.sqrt(20_000)
        p = np.exp(log_prob)
        assert abs(p.mean() - np.exp(predictive)) < 4 * p.std() / np.sqrt(20_000)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_predictive_density_is_students_t(d):
    gaussian = some(d, rows=d + 0.8)
    free = gaussian.rows + 1 - d
    shape = gaussian.root @ gaussian.root.T * (gaussian.rows + 1) / (gaussian.rows * free)
    X = gaussian.mean + 5 * np.random.default_rng(3).normal(size=(8, d))
    peer = multivariate_t(gaussian.mean, shape, df=free).logpdf(X)
    np.testing.assert_allclose(gaussian.predictive_log_prob(X), peer, rtol=1e-9)
    if d == 1:
        mass = quad(lambda x: np.exp(gaussian.predictive_log_prob(np.array([[x]]))[0]), -np.inf, np.inf)[0]
        assert mass == pytest.approx(1.0, abs=1e-6)


def test_the_divergence_is_the_integral_of_the_log_ratio():
    gaussian = NormalWishart(7.5, np.array([0.7]), np.array([[2.5]]))
    prior = NormalWishart(4.0, np.array([-0.3]), np.array([[1.5]]))

    def log_density(of, m, v):
        N, S = of.rows, of.root[0, 0] ** 2
        return norm.logpdf(m, of.mean[0], np.sqrt(v / N)) + invgamma.logpdf(v, 0.5 * N, scale=0.5 * S)

    integral = over_mean_and_variance(lambda m, v: log_density(gaussian, m, v) - log_density(prior, m, v), gaussian)
    assert gaussian.divergence(prior) == pytest.approx(integral, abs=1e-6)


@pytest.mark.parametrize("d", [1, 3])
def test_the_divergence_is_zero_only_at_the_prior(d):
    prior = some(d)
    assert prior.divergence(prior) == pytest.approx(0.0, abs=1e-12)
    rng = np.random.default_rng(4)
    for size in (1e-3, 0.1, 1.0):
        for _ in range(5):
            X = prior.mean + rng.normal(size=(4, d))
            other = tilted(prior, X, size * rng.normal(size=4) if size < 1 else rng.random(4))
            small = other.natural_parameters_in(prior) - prior.natural_parameters_in(prior)
            second = 0.5 * small @ np.linalg.solve(prior.hessian_inverse, small)
            assert other.divergence(prior) > 0
            if size == 1e-3:
                assert other.divergence(prior) == pytest.approx(second, rel=0.05)


def test_the_class_posterior_pools_the_prior_and_the_rows():
    rng = np.random.default_rng(5)
    X, w, k = 1e3 + rng.normal(size=(20, 3)), rng.random(20), 2.5
    m0, V0 = 1e3 + rng.normal(size=3), np.diag([1.0, 2.0, 3.0])
    gaussian = class_posterior(X, w, k, m0, V0)
    N = k + w.sum()
    mean = (k * m0 + w @ X) / N
    S = k * V0 + (X * w[:, None]).T @ X + k * np.outer(m0, m0) - N * np.outer(mean, mean)
    assert gaussian.rows == pytest.approx(N)
    np.testing.assert_allclose(gaussian.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(
        gaussian.root @ gaussian.root.T, S, atol=1e-6
    )  # the formula loses six digits, the code none
    near = class_posterior(X - 1e3, w, k, m0 - 1e3, V0)
    np.testing.assert_allclose(gaussian.root, near.root, rtol=1e-10)
    twice = class_posterior(np.vstack([X, X]), np.r_[w, w], k, m0, V0)
    np.testing.assert_allclose(class_posterior(X, 2 * w, k, m0, V0).root, twice.root, rtol=1e-10)


# --- all classes: equation 18 -----------------------------------------------------------------------------------------


def draw(seed=0, n=24, d=1, C=2, *, apart=1.0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % C
    X = apart * rng.normal(size=(C, d))[y] + rng.normal(size=(n, d)) * (1 + y[:, None])
    return X, y


def prior_of(X, y, C, k=3.0, bias=None):
    mean, cov = X.mean(axis=0), np.atleast_2d(np.cov(X.T))
    classes = tuple(class_posterior(X, (y == s).astype(float), k, mean, cov) for s in range(C))
    return ClassNormalWisharts(classes, np.zeros(C - 1) if bias is None else bias), mean, cov


class Equation18:
    """J(l) of equations 16 to 18 with the general prior (k, m0, V0), from the weights w_t^s alone; l is (n, C)."""

    def __init__(self, X, y, C, margin, k, mean, cov, weight):
        self.X, self.y, self.C, self.margin, self.k, self.mean, self.cov = X, y, C, margin, k, mean, cov
        self.weight = weight

    def weights(self, lam, s):
        """w_t^s = [y = s] (1 + sum_y l_ty) - [y != s] l_ts."""
        own = self.y == s
        weighted_lam = self.weight[:, None] * lam
        return np.where(own, 1.0 + weighted_lam.sum(axis=1), -weighted_lam[:, s])

    def log_z(self, w):
        d = self.X.shape[1]
        N = self.k + w.sum()
        m = (self.k * self.mean + w @ self.X) / N
        S = self.k * self.cov + (self.X * w[:, None]).T @ self.X + self.k * np.outer(self.mean, self.mean)
        S -= N * np.outer(m, m)
        if not d - 1 < N or np.linalg.eigvalsh(S).min() <= 0:
            return np.inf, None
        log_det = np.linalg.slogdet(np.pi * S)[1]
        value = -0.5 * d * np.log(N) - 0.5 * N * log_det + gammaln(0.5 * (N + 1 - np.arange(1, d + 1))).sum()
        return value, (N, m, S)

    def __call__(self, lam):
        """lam (n, C), zero at the own class."""
        total = (self.weight[:, None] * self.margin.potential(lam)).sum()
        for s in range(self.C):
            total -= self.log_z(self.weights(lam, s))[0] - self.log_z((self.y == s).astype(float))[0]
        return total

    def scores(self, lam):
        """(n, C) expected log-densities at the distribution of these multipliers."""
        parts = []
        for s in range(self.C):
            N, m, S = self.log_z(self.weights(lam, s))[1]
            parts.append(NormalWishart(N, m, np.linalg.cholesky(S)).expected_log_prob(self.X))
        return np.column_stack(parts)

    def slope(self, lam):
        F = self.scores(lam)
        kept = F[np.arange(len(self.y)), self.y][:, None] - F
        return self.weight[:, None] * (self.margin.mean(lam) - kept)


def by_class(constraints, multipliers, y):
    """(n, C): the multiplier of the pair {y_t, s}."""
    n, C = len(y), constraints.n_classes
    out = np.zeros((n, C))
    for k, (a, b) in enumerate(combinations(range(C), 2)):
        out[y == a, b] = multipliers[y == a, k]
        out[y == b, a] = multipliers[y == b, k]
    return out


ASKED = (Exponential(2.0, 0.5), Laplace(1.0, 0.5), Gaussian(1.0, 0.5))
GAUSSIAN_CASES = [(d, C, margin) for d, C in ((1, 2), (2, 2), (1, 3)) for margin in ASKED]


@pytest.mark.parametrize(("d", "C", "margin"), GAUSSIAN_CASES)
def test_the_gradient_of_equation_18_is_mean_minus_margin(d, C, margin):
    X, y = draw(d, d=d, C=C)
    _, mean, cov = prior_of(X, y, C)
    weight = np.random.default_rng(6).uniform(0.5, 1.5, size=len(y))
    J = Equation18(X, y, C, margin, 3.0, mean, cov, weight)
    rng = np.random.default_rng(7)
    free = np.arange(C) != y[:, None]
    lam = free * rng.uniform(0.0, 0.15, size=(len(y), C))
    assert np.isfinite(J(lam))
    for _ in range(5):
        way = free * rng.normal(size=lam.shape)
        numeric = (J(lam + 1e-5 * way) - J(lam - 1e-5 * way)) / 2e-5
        assert (J.slope(lam) * way).sum() == pytest.approx(numeric, rel=1e-5, abs=1e-5)
    # concave along segments inside its domain
    for _ in range(5):
        ends = [free * rng.uniform(0.0, 0.2, size=lam.shape) for _ in range(2)]
        a, b, middle = J(ends[0]), J(ends[1]), J(0.5 * (ends[0] + ends[1]))
        assert np.isfinite([a, b]).all()
        assert middle >= 0.5 * (a + b) - 1e-10


@pytest.mark.parametrize("bias_variance", [np.inf, 2.0], ids=["flat", "gaussian"])
@pytest.mark.parametrize(("d", "C", "margin"), GAUSSIAN_CASES)
def test_the_solution_maximizes_equation_18(d, C, margin, bias_variance):
    """One dual written out and climbed by SLSQP, the other's own dual by Newton."""
    X, y = draw(d, d=d, C=C, n=12 * C)
    prior, mean, cov = prior_of(X, y, C)
    weight = np.random.default_rng(8).uniform(0.5, 1.5, size=len(y))
    constraints = PairConstraints.of(np.eye(C)[y], weight)
    solution = GaussianDiscriminant(X, prior, bias_variance).solve(constraints, margin, TIGHT)
    assert solution.run.status is Status.CONVERGED
    J = Equation18(X, y, C, margin, 3.0, mean, cov, weight)
    t, s = np.nonzero(np.arange(C) != y[:, None])
    M = contrasts(C)

    def spread(v):
        lam = np.zeros((len(y), C))
        lam[t, s] = v
        return lam

    def bias_gradient(v):
        """(C - 1,) what the multipliers add to each bias function; zero under a flat prior."""
        lam = spread(v)
        differences = np.stack([J.weights(lam, s) - (y == s) for s in range(C)], axis=1)
        return differences.sum(axis=0) @ M

    jacobian = np.array([bias_gradient(e) for e in np.eye(len(t))]).T
    ridge = 0.0 if np.isinf(bias_variance) else bias_variance

    def fall(v):
        return -J(spread(v)) + 0.5 * ridge * bias_gradient(v) @ bias_gradient(v)

    def slope(v):
        return -J.slope(spread(v))[t, s] + ridge * jacobian.T @ bias_gradient(v)

    high = None if np.isinf(margin.upper) else margin.upper * (1 - 1e-9)
    own = by_class(constraints, solution.multipliers, y)[t, s]
    equality = [{"type": "eq", "fun": bias_gradient, "jac": lambda v: jacobian}] if np.isinf(bias_variance) else []
    peer = minimize(
        fall,
        0.5 * own,  # inside the domain, which is convex and holds zero
        jac=slope,
        bounds=[(0.0, high)] * len(t),
        constraints=equality,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert -fall(own) == pytest.approx(-peer.fun, rel=1e-6)
    assert solution.minimum == pytest.approx(-peer.fun, rel=1e-6)
    assert solution.dual == pytest.approx(-peer.fun, rel=1e-6)
    assert solution.gap <= 1e-8
    assert solution.minimum > 1e-2  # something was asked for
    np.testing.assert_allclose(bias_gradient(own) if equality else 0.0, 0.0, atol=1e-6)
    # the discriminant is equation 19 at these multipliers, and its bias that of the prior's
    F = J.scores(spread(own)) + M @ solution.state.bias
    np.testing.assert_allclose(F, solution.scores, atol=1e-5)
    if not equality:
        np.testing.assert_allclose(solution.state.bias, bias_variance * bias_gradient(own), atol=1e-5)


@pytest.mark.parametrize("seed", [0, 1])
def test_steps_stay_inside_the_domain_and_the_objective_never_falls(seed):
    """A weak prior and large multipliers lead to the border of the domain."""
    d, C = 3, 2 + seed % 2
    X, y = draw(seed, n=10 * C, d=d, C=C, apart=0.5)
    prior, _, _ = prior_of(X, y, C, k=0.1)
    constraints = PairConstraints.of(np.eye(C)[y], np.ones(len(y)))
    for margin in (Exponential(50.0, 5.0), Laplace(20.0, 5.0), Gaussian(10.0, 5.0)):
        seen = []
        watch = lambda event, seen=seen: seen.append(event.params)  # noqa: E731
        search = Search(gap=1e-9, max_iter=2000, observers=[watch])
        solution = GaussianDiscriminant(X, prior, np.inf).solve(constraints, margin, search)
        assert solution.run.status is Status.CONVERGED
        accepted = [step.objective for step in solution.run.trace if step.accepted]
        assert all(b >= a - rounding(a, len(y)) for a, b in pairwise(accepted))
        assert len(seen) > 3
        for params in seen:
            for gaussian in params.classes:
                assert gaussian.rows > d - 1
                assert (np.diagonal(gaussian.root) > 0).all()


def test_a_step_beyond_the_border_is_shortened():
    X, y = draw(1, d=2)
    prior, _, _ = prior_of(X, y, 2)
    constraints = PairConstraints.of(np.eye(2)[y], np.ones(len(y)))
    problem = GaussianProblem(constraints.differences, Exponential(2.0), np.inf, prior, contrasts(2))
    move = np.zeros(2 * 6 + 1)
    move[0] = -1e9  # rows of the first class
    stepped = problem.step(prior, move)
    assert 1 < stepped.classes[0].rows < prior.classes[0].rows


def test_the_newton_step_is_the_objectives_second_order_step():
    """In mean parameters: the objective along the step has the gradient and curvature of its parts."""
    X, y = draw(2, d=2, C=3)
    prior, _, _ = prior_of(X, y, 3)
    constraints = PairConstraints.of(np.eye(3)[y], np.random.default_rng(9).uniform(0.5, 1.5, size=len(y)))
    rows = row_blocks(X, constraints).rows
    for bias_variance in (np.inf, 2.0):
        problem = GaussianProblem(constraints.differences, Laplace(1.0, 0.5), bias_variance, prior, contrasts(3))
        rng = np.random.default_rng(10)
        here = problem.step(prior, 0.02 * rng.normal(size=3 * 6 + 2))
        total = problem.stats(here, rows)
        local = problem.local(here, rows)
        g, jacobian = local.g, problem._jacobian(here)
        slope = jacobian.T @ np.concatenate(total.gradient) - g

        def along(v, here=here, problem=problem):
            there = problem.step(here, v)
            return problem.objective(there, problem.stats(there, rows))

        for _ in range(6):
            way = rng.normal(size=len(g))
            numeric = (along(1e-4 * way) - along(-1e-4 * way)) / 2e-4
            assert slope @ way == pytest.approx(numeric, rel=1e-4, abs=1e-4)
        gradient = local.A.T @ (local.weight * problem.margin.multiplier(local.margins))
        np.testing.assert_allclose(gradient, jacobian.T @ np.concatenate(total.gradient), atol=1e-9)
        gap = problem.gap(here, total)
        best = GaussianDiscriminant(X, prior, bias_variance).solve(constraints, problem.margin, TIGHT).minimum
        assert gap is None or gap >= -problem.objective(here, total) - best - 1e-9


@pytest.mark.parametrize("C", [2, 3])
def test_shifted_scaled_and_turned_columns_give_the_same_classifier(C):
    X, y = draw(3, n=45, d=2, C=C)
    constraints = PairConstraints.of(np.eye(C)[y], np.ones(len(y)))
    turn = np.array([[2e3, 1.0], [-0.5, 1e-2]])
    transformed = X @ turn.T + [1e4, -3.0]
    for margin in (Exponential(3.0, 1.0), Gaussian(1.0, 1.0)):
        first, other = (
            GaussianDiscriminant(Z, prior_of(Z, y, C)[0], np.inf).solve(constraints, margin, TIGHT)
            for Z in (X, transformed)
        )
        assert first.minimum == pytest.approx(other.minimum, rel=1e-7)
        np.testing.assert_allclose(first.multipliers, other.multipliers, atol=1e-4)
        difference = first.scores - other.scores  # all classes lose log|turn|
        np.testing.assert_allclose(difference, np.log(abs(np.linalg.det(turn))), atol=1e-5)


def test_rows_classes_and_weights_of_gaussians():
    X, y = draw(4, n=36, d=2, C=3)
    margin = Exponential(3.0, 1.0)

    def solve(X, y, weight, prior):
        return GaussianDiscriminant(X, prior, np.inf).solve(PairConstraints.of(np.eye(3)[y], weight), margin, TIGHT)

    prior, _, _ = prior_of(X, y, 3)
    gaussian = solve(X, y, np.ones(36), prior)
    rows, classes = np.random.default_rng(0).permutation(36), np.array([2, 0, 1])
    turned = ClassNormalWisharts(tuple(prior.classes[s] for s in np.argsort(classes)), np.zeros(2))
    other = solve(X[rows], classes[y[rows]], np.ones(36), turned)
    np.testing.assert_allclose(other.scores[:, classes], gaussian.scores[rows], atol=1e-5)
    weight = 1.0 + (np.arange(36) % 4 == 0)
    twice = np.repeat(np.arange(36), weight.astype(int))
    np.testing.assert_allclose(
        solve(X, y, weight, prior).scores[twice],
        solve(X[twice], y[twice], np.ones(len(twice)), prior).scores,
        atol=1e-5,
    )


def test_rows_that_keep_their_margin_leave_the_prior_as_it_is():
    X, y = draw(5, apart=20.0)
    prior, _, _ = prior_of(X, y, 2)
    solution = GaussianDiscriminant(X, prior, 1.0).solve(
        PairConstraints.of(np.eye(2)[y], np.ones(len(y))), Exponential(1.0, -50.0), TIGHT
    )
    assert not solution.multipliers.any()
    assert solution.minimum == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(
        solution.scores, np.column_stack([gaussian.expected_log_prob(X) for gaussian in prior.classes]), rtol=1e-12
    )


def test_the_solutions_relative_entropy_adds_up():
    X, y = draw(6, d=2)
    prior, _, _ = prior_of(X, y, 2, bias=np.array([0.3]))
    margin, constraints = Exponential(3.0, 1.0), PairConstraints.of(np.eye(2)[y], np.ones(len(y)))
    for bias_variance in (np.inf, 2.0):
        discriminant = GaussianDiscriminant(X, prior, bias_variance)
        solution = discriminant.solve(constraints, margin, TIGHT)
        kept = np.where(y == 0, 1, -1) * (solution.scores[:, 0] - solution.scores[:, 1])
        assert discriminant.divergence(solution) + margin.loss(kept).sum() == pytest.approx(solution.minimum, rel=1e-9)
        assert solution.dual == pytest.approx(solution.minimum, rel=1e-8)


# --- the door ---------------------------------------------------------------------------------------------------------


def training_set(X, k=1.0):
    return GaussianTrainingSet(X, k, None, None, np.array(["cat", "dog"]))


def part(y, weight=None):
    n = len(y)
    return Subset(np.arange(n), np.eye(2)[y], np.ones(n, dtype=bool), np.ones(n) if weight is None else weight, False)


def test_the_space_pools_the_classes_and_starts_from_their_shares():
    X, y = draw(7, n=30, d=2)
    y[:6] = 1
    weight = np.random.default_rng(0).random(30)
    discriminant = training_set(X).discriminant(part(y, weight), np.inf)
    share = np.array([weight[y == s].sum() for s in (0, 1)])
    np.testing.assert_allclose(np.diff(discriminant.contrast @ discriminant.prior.bias), np.log(share[1] / share[0]))
    within = sum(np.cov(X[y == s].T, aweights=weight[y == s], ddof=0) * share[s] for s in (0, 1)) / weight.sum()
    within += 1e-3 * np.diag(np.diagonal(within))
    for s, gaussian in enumerate(discriminant.prior.classes):
        peer = class_posterior(X, weight * (y == s), 1.0, np.average(X, axis=0, weights=weight), within)
        np.testing.assert_allclose(gaussian.mean, peer.mean)
        np.testing.assert_allclose(gaussian.root, peer.root, rtol=1e-9)


def test_scores_of_other_rows_are_those_of_the_training_rows():
    X, y = draw(8, n=30, d=2)
    here = training_set(X)
    discriminant = here.discriminant(part(y), np.inf)
    constraints = PairConstraints.of(np.eye(2)[y], np.ones(30))
    solution = discriminant.solve(constraints, Exponential(3.0), TIGHT)
    np.testing.assert_allclose(
        here.scores(part(y), discriminant, solution, constraints, np.arange(5, 9)), solution.scores[5:9]
    )


def test_multivariate_normal_is_the_limit_of_many_rows():
    gaussian = NormalWishart(
        1e8, np.array([1.0, -1.0]), np.sqrt(1e8) * np.linalg.cholesky(np.array([[2.0, 0.5], [0.5, 1.0]]))
    )
    X = np.random.default_rng(0).normal(size=(5, 2))
    peer = multivariate_normal([1.0, -1.0], [[2.0, 0.5], [0.5, 1.0]]).logpdf(X)
    np.testing.assert_allclose(gaussian.expected_log_prob(X), peer, atol=1e-6)
    np.testing.assert_allclose(gaussian.predictive_log_prob(X), peer, atol=1e-6)
