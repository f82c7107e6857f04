"""Gaussians with Normal-Wishart distributions: the dual is equation 18, and steps are minima of local problems."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import gammaln

from mixent.core.driver import Status, rounding
from mixent.med import local_kernel
from mixent.med.constraints import Constraints, PairConstraints, contrasts
from mixent.med.exponential_family import ExponentialFamilyProblem, JointDistribution
from mixent.med.gaussian_training import GaussianDiscriminant, GaussianTrainingSet, gaussian_scores
from mixent.med.interior_point import local_minimum
from mixent.med.margins import Exponential, Gaussian, Laplace
from mixent.med.solving import Search
from mixent.med.training_sets import Subset
from mixent.med.wishart import Wishart, moments

TIGHT = Search(gap=1e-13, max_iter=3000)


# --- all classes: equation 18 -----------------------------------------------------------------------------------------


def draw(seed=0, n=24, d=1, C=2, *, apart=1.0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % C
    X = apart * rng.normal(size=(C, d))[y] + rng.normal(size=(n, d)) * (1 + y[:, None])
    return X, y


def prior_of(X, y, C, k=3.0, bias=None):
    mean, cov = X.mean(axis=0), np.atleast_2d(np.cov(X.T))
    classes = tuple(Wishart.of_moments(*moments(X, (y == s).astype(float), k, mean, cov)) for s in range(C))
    return JointDistribution(classes, np.zeros(C - 1) if bias is None else bias), mean, cov


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
            parts.append(Wishart.of_moments(N, m, S).expected_log_prob(self.X))
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
            for gaussian in params.parts:
                assert gaussian.rows > d - 1
                assert (np.diagonal(gaussian.root) > 0).all()


def problem_of(X, y, C, margin, bias_variance=np.inf, weight=None, k=3.0):
    prior, _, _ = prior_of(X, y, C, k=k)
    constraints = PairConstraints.of(np.eye(C)[y], np.ones(len(y)) if weight is None else weight)
    return GaussianDiscriminant(X, prior, bias_variance).problem(Constraints.between_classes(constraints), margin)


def test_a_step_beyond_the_border_is_shortened():
    problem = problem_of(*draw(1, d=2), 2, Exponential(2.0))
    prior = problem.prior
    steps = tuple(np.r_[-1e9 * (s == 0), np.zeros(6)] for s in range(2))  # rows of the first class
    stepped = problem.step(prior, steps, np.zeros(1))
    assert 1 < stepped.parts[0].rows < prior.parts[0].rows


@pytest.mark.parametrize("margin", [Laplace(1.0, 0.5), Laplace(30.0, 2.0), Exponential(5.0, 1.0), Gaussian(2.0, 1.0)])
@pytest.mark.parametrize("bias_variance", [np.inf, 2.0])
def test_a_step_is_the_minimum_of_the_local_problem(margin, bias_variance, monkeypatch):
    """As the interior-point method finds it, in all forms of the kernel; a second step starts from the first."""
    X, y = draw(2, n=36, d=2, C=3)
    problem = problem_of(X, y, 3, margin, bias_variance, np.random.default_rng(9).uniform(0.5, 1.5, size=36))
    weight = problem.constraints.weight
    for share in (1e9, 0.0):  # a factor, a matrix
        monkeypatch.setattr(local_kernel, "SHARE", share)
        problem.memo.clear()
        here = problem.prior
        for _ in range(2):
            total = problem.stats(here, problem.source().rows)
            there = problem.update(here, total, 1.0)
            every = local_kernel.ActiveSet(problem, here, np.where(problem.constraints.effective, weight[:, None], 0.0))
            to_prior = [p.T - part.T for p, part in zip(problem.prior.parts, here.parts)]
            m = problem.margins(here)[every.index]
            m = m + every.dot([part.hessian_product(t) for part, t in zip(here.parts, to_prior)])
            values, vectors = np.linalg.eigh(every.gram())
            root = np.sqrt(np.maximum(values, 0.0))
            Q = np.diag(np.r_[np.ones(len(root)), np.full(2, 1.0 / bias_variance + 1e-8 * weight.sum())])
            g = np.r_[np.zeros(len(root)), (here.bias - problem.prior.bias) / bias_variance]
            A = np.concatenate([vectors * root, every.B], axis=1)
            v, _ = local_minimum(Q, g, A, m, weight[every.index[0]], margin)
            predicted = m + A @ v
            direction = problem.memo["direction"]  # of which the step is a part if the domain ends before
            changes = [part.hessian_product(step) for part, step in zip(here.parts, direction.steps)]
            ours = problem.margins(here)[every.index] + every.dot(changes) + every.B @ direction.bias_step
            np.testing.assert_allclose(ours, predicted, atol=1e-4)
            here = there


@pytest.mark.parametrize("C", [2, 3])
def test_a_problem_too_large_for_a_kernel_has_the_same_solution(C, monkeypatch):
    """Newton steps by conjugate gradients."""
    X, y = draw(3, n=60 * C, d=3, C=C)
    constraints = PairConstraints.of(np.eye(C)[y], np.ones(len(y)))
    discriminant = GaussianDiscriminant(X, prior_of(X, y, C)[0], 1.0)
    exact = discriminant.solve(constraints, Laplace(1.0, 1.0), TIGHT)
    monkeypatch.setattr(local_kernel, "MAX_CONSTRAINTS", 5)
    monkeypatch.setattr(local_kernel, "MAX_COST", 5)
    steps, update = [], ExponentialFamilyProblem.update
    monkeypatch.setattr(ExponentialFamilyProblem, "update", lambda *args: steps.append(1) or update(*args))
    newton = discriminant.solve(constraints, Laplace(1.0, 1.0), TIGHT)
    assert len(steps) == newton.run.n_passes > 0
    assert newton.minimum == pytest.approx(exact.minimum, rel=1e-9)


@pytest.mark.parametrize("structure", ["full", "diagonal", "tied"])
@pytest.mark.parametrize("C", [2, 3])
def test_the_gap_is_never_below_the_distance_from_the_optimum(structure, C):
    for seed in range(4):
        X, y = draw(seed, n=20 * C, d=3, C=C)
        subset = Subset(np.arange(len(y)), np.eye(C)[y], np.ones(len(y), dtype=bool), np.ones(len(y)), False)
        here = GaussianTrainingSet(X, None, None, None, np.arange(C), structure=structure)
        discriminant = here.discriminant(subset, 1.0)
        constraints = PairConstraints.of(np.eye(C)[y], np.ones(len(y)))
        for margin in (Laplace(3.0, 1.0), Gaussian(1.0, 1.0)):
            best = discriminant.solve(constraints, margin, TIGHT)
            for gap in (1e-2, 1e-4):
                rough = discriminant.solve(constraints, margin, Search(gap=gap))
                assert rough.minimum - best.minimum <= rough.gap + 1e-9
                assert rough.dual <= best.minimum + 1e-9


@pytest.mark.parametrize("structure", ["diagonal", "tied"])
@pytest.mark.parametrize("bias_variance", [np.inf, 2.0])
@pytest.mark.parametrize("margin", [Laplace(2.0, 1.0), Exponential(3.0, 1.0), Gaussian(1.0, 1.0)])
def test_structured_covariances_are_solved_exactly(structure, bias_variance, margin):
    """The primal objective is convex along any segment of solutions, and lowest at the one found; the gap says so."""
    X, y = draw(4, n=40, d=2, C=2)
    here = GaussianTrainingSet(X, 1.0, None, None, np.array(["cat", "dog"]), structure=structure)
    discriminant = here.discriminant(part(y), bias_variance)
    constraints = PairConstraints.of(np.eye(2)[y], np.ones(40))
    solution = discriminant.solve(constraints, margin, TIGHT)
    assert solution.run.status is Status.CONVERGED and solution.gap < 1e-8 and solution.minimum > 1e-2
    problem = discriminant.problem(Constraints.between_classes(constraints), margin)
    rows = problem.source().rows
    rng = np.random.default_rng(0)
    best = -problem.objective(solution.state, problem.stats(solution.state, rows))
    assert best == pytest.approx(solution.minimum, rel=1e-12)
    for size in (1e-4, 1e-2, 0.3):
        for _ in range(10):
            alpha = size * rng.normal(size=(40, 2))
            alpha -= alpha.mean(axis=1, keepdims=True)  # the weights of margins between classes
            steps = problem.weighted_features(alpha, problem.features)
            other = problem.step(solution.state, steps, size * rng.normal(size=1))
            assert -problem.objective(other, problem.stats(other, rows)) >= best - 1e-9
    kept = np.where(y == 0, 1, -1) * (solution.scores[:, 0] - solution.scores[:, 1])
    lam = solution.multipliers[:, 0]
    np.testing.assert_allclose(kept[lam > 0], margin.mean(lam[lam > 0]), atol=1e-6)
    assert (kept[lam == 0] >= margin.mean(0.0) - 1e-7).all()
    scores = gaussian_scores(solution.state, X)
    np.testing.assert_allclose(np.diff(scores), np.diff(solution.scores), atol=1e-9)


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
    turned = JointDistribution(tuple(prior.parts[s] for s in np.argsort(classes)), np.zeros(2))
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
        solution.scores, np.column_stack([gaussian.expected_log_prob(X) for gaussian in prior.parts]), rtol=1e-12
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
    np.testing.assert_allclose(np.diff(contrasts(2) @ discriminant.prior.bias), np.log(share[1] / share[0]))
    within = sum(np.cov(X[y == s].T, aweights=weight[y == s], ddof=0) * share[s] for s in (0, 1)) / weight.sum()
    within += 1e-3 * np.diag(np.diagonal(within))
    each = [moments(X, weight * (y == s), 1.0, np.average(X, axis=0, weights=weight), within) for s in (0, 1)]
    for gaussian, (N, m, S) in zip(discriminant.prior.parts, each):
        assert gaussian.rows == pytest.approx(N)
        np.testing.assert_allclose(gaussian.center, m)
        np.testing.assert_allclose(gaussian.root @ gaussian.root.T, S, rtol=1e-9)


def test_scores_of_other_rows_are_those_of_the_training_rows():
    X, y = draw(8, n=30, d=2)
    here = training_set(X)
    discriminant = here.discriminant(part(y), np.inf)
    constraints = PairConstraints.of(np.eye(2)[y], np.ones(30))
    solution = discriminant.solve(constraints, Exponential(3.0), TIGHT)
    np.testing.assert_allclose(
        here.scores(part(y), discriminant, solution, constraints, np.arange(5, 9)), solution.scores[5:9]
    )
