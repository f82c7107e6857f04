"""Linear and kernel discriminants: Newton's method in features, in a kernel matrix and a generic solver agree."""

from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import SVC

from mixent.core.blocks import Blocks, NumberedRows
from mixent.core.driver import Problem, Status, rounding
from mixent.core.executors import Serial, Threads
from mixent.core.stats import Stats
from mixent.med import functions, grams
from mixent.med.constraints import PairConstraints, contrasts, pairs
from mixent.med.exponential_family import JointDistribution, SequentialFamilyProblem, length_of_step
from mixent.med.functions import (
    FunctionProblem,
    GaussianFunctions,
    KernelDiscriminant,
    LinearDiscriminant,
    constraints_on_functions,
    dual_coefficients,
)
from mixent.med.grams import LinearGram, MatrixGram
from mixent.med.interior_point import local_minimum
from mixent.med.margins import Exponential, Fixed, Gaussian, Laplace
from mixent.med.solving import Search

MARGINS = [Exponential(3.0), Laplace(2.0), Gaussian(1.5)]
TIGHT = Search(gap=1e-12, max_iter=3000)
BIASES = [np.inf, 4.0]


def draw(seed, n=40, d=3, C=2, *, apart=1.2, weights=False, soft=False):
    """Rows about C centers, label distributions, weights."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % C
    X = apart * rng.normal(size=(C, d))[y] + rng.normal(size=(n, d))
    belief = np.eye(C)[y]
    if soft:
        belief = 0.7 * belief + 0.3 * rng.dirichlet(np.ones(C), n)
        belief[:4] = np.eye(C)[y[:4]]
        belief[4:6] = 1.0 / C  # uninformative
    return X, belief, rng.gamma(2.0, size=n) if weights else np.ones(n)


def with_zero(weight):
    weight = weight.copy()
    weight[::7] = 0.0
    return weight


def objective(X, belief, weight, margin, bias_variance):
    """The primal written out: class functions F_s = sum_g M_sg (theta_g x + b_g), one loss for each pair and row."""
    n, C = belief.shape
    M = contrasts(C)
    ones = np.column_stack([X, np.ones(n)])

    def value(v):
        planes = v.reshape(C - 1, -1)
        F = ones @ planes.T @ M.T
        slope = planes.copy()
        slope[:, -1] /= bias_variance
        total = 0.5 * (planes[:, :-1] ** 2).sum() + 0.5 * (planes[:, -1] ** 2).sum() / bias_variance
        coef = np.zeros((n, C))
        for a, b in combinations(range(C), 2):
            p = belief[:, a] - belief[:, b]
            possible = (belief[:, a] + belief[:, b]) > 0
            m = p * (F[:, a] - F[:, b])
            total += weight @ np.where(possible, margin.loss(m), 0.0)
            signed = np.where(possible, weight * margin.multiplier(m) * p, 0.0)
            coef[:, a] += signed
            coef[:, b] -= signed
        return total, (slope - M.T @ coef.T @ ones).ravel()

    return value


def searched(X, belief, weight, margin, bias_variance):
    """(value, scores) by BFGS."""
    value = objective(X, belief, weight, margin, bias_variance)
    C = belief.shape[1]
    start = np.zeros((C - 1) * (X.shape[1] + 1))
    result = minimize(value, start, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000})
    planes = result.x.reshape(C - 1, -1)
    return result.fun, np.column_stack([X, np.ones(len(X))]) @ planes.T @ contrasts(C).T


def linear(X, belief, weight, margin, bias_variance=np.inf, search=TIGHT):
    constraints = PairConstraints.of(belief, weight)
    return LinearDiscriminant(X, belief.shape[1], bias_variance).solve(constraints, margin, search)


def kernel(X, belief, weight, margin, bias_variance=np.inf, search=TIGHT):
    constraints = PairConstraints.of(belief, weight)
    return KernelDiscriminant(X @ X.T, belief.shape[1], bias_variance).solve(constraints, margin, search)


# --- the prior over functions and the constraints -----------------------------------------------------------------


@pytest.mark.parametrize("C", [2, 3, 5])
def test_differences_of_class_functions_have_the_prior_of_theorem_2_and_their_sum_is_fixed(C):
    cov = contrasts(C) @ contrasts(C).T
    for a, b in combinations(range(C), 2):
        assert cov[a, a] + cov[b, b] - 2 * cov[a, b] == pytest.approx(1.0)
    np.testing.assert_allclose(contrasts(C).sum(axis=0), 0.0, atol=1e-15)
    np.testing.assert_allclose(contrasts(C).T @ contrasts(C), 0.5 * np.eye(C - 1), atol=1e-15)
    if C == 2:
        np.testing.assert_allclose(np.diff(contrasts(2), axis=0), 1.0)


def test_a_known_label_has_the_m_minus_1_constraints_of_equation_5():
    C = 4
    constraints = PairConstraints.of(np.eye(C), np.ones(C))
    a, b = pairs(C)
    for y in range(C):
        effective = constraints.imposed[y] & (constraints.signs[y] != 0)
        assert effective.sum() == C - 1
        for k in np.flatnonzero(effective):
            wins = np.where(constraints.signs[y, k] > 0, a[k], b[k])
            assert wins == y
            assert set(constraints.differences[k]) == {-1.0, 0.0, 1.0}


# --- one optimum ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights_and_soft", [(False, False), (True, True)], ids=["plain", "weighted and soft"])
@pytest.mark.parametrize("C", [2, 3, 4])
@pytest.mark.parametrize("bias_variance", BIASES, ids=["flat", "gaussian"])
@pytest.mark.parametrize("margin", MARGINS, ids=repr)
def test_newton_the_kernel_and_a_generic_solver_agree(margin, bias_variance, C, weights_and_soft):
    weights, soft = weights_and_soft
    X, belief, weight = draw(C, C=C, weights=weights, soft=soft)
    if weights:
        weight = with_zero(weight)
    value, scores = searched(X, belief, weight, margin, bias_variance)
    for solve in (linear, kernel):
        solution = solve(X, belief, weight, margin, bias_variance)
        assert solution.run.status is Status.CONVERGED
        assert solution.minimum == pytest.approx(value, rel=1e-9)
        assert solution.minimum <= value + 1e-9 * (1 + value)
        np.testing.assert_allclose(solution.scores, scores, atol=2e-5)
        assert solution.dual == pytest.approx(value, rel=1e-8)
        assert 0 <= solution.gap <= 1e-10 * weight.sum()
        accepted = [step.objective for step in solution.run.trace if step.accepted]
        assert all(b >= a - rounding(a, weight.sum()) for a, b in pairwise(accepted))


@pytest.mark.parametrize("margin", MARGINS, ids=repr)
@pytest.mark.parametrize("bias_variance", BIASES, ids=["flat", "gaussian"])
def test_the_minimum_is_the_relative_entropy_and_the_dual_is_J(margin, bias_variance):
    """Minimum = D + losses from the scores alone; dual = sum w u(l) - a K a / 2 from the multipliers alone."""
    for C in (2, 3):
        X, belief, weight = draw(3, C=C, weights=True, soft=True)
        constraints = PairConstraints.of(belief, weight)
        for discriminant in (LinearDiscriminant(X, C, bias_variance), KernelDiscriminant(X @ X.T, C, bias_variance)):
            solution = discriminant.solve(constraints, margin, TIGHT)
            losses = 0.0
            for k, (a, b) in enumerate(zip(*pairs(C))):
                kept = constraints.signs[:, k] * (solution.scores[:, a] - solution.scores[:, b])
                losses += weight @ (margin.loss(kept) * constraints.imposed[:, k])
                np.testing.assert_allclose(
                    np.where(constraints.signs[:, k] != 0, margin.multiplier(kept), 0.0),
                    solution.multipliers[:, k],
                    atol=1e-3,
                )
            assert discriminant.divergence(solution) + losses == pytest.approx(solution.minimum, rel=1e-9)
            alpha = dual_coefficients(solution, constraints, contrasts(C))
            quiet = constraints.imposed & (constraints.signs == 0)  # the loss at margin zero, whatever the function
            J = (weight[:, None] * np.where(quiet, margin.loss(0.0), margin.potential(solution.multipliers))).sum()
            J -= 0.5 * np.einsum("tg,ts,sg->", alpha, X @ X.T, alpha)
            if np.isfinite(bias_variance):
                J -= 0.5 * bias_variance * (alpha.sum(axis=0) ** 2).sum()
            assert solution.dual == pytest.approx(J, rel=1e-6)


def test_two_classes_maximize_the_objective_of_theorem_2():
    X, belief, weight = draw(5)
    y, c = 2 * belief[:, 1] - 1, 3.0
    solution = linear(X, belief, weight, Exponential(c))
    lam = solution.multipliers[:, 0]

    def J(lam):
        theta = (lam * y) @ X
        return (lam + np.log(1 - lam / c)).sum() - 0.5 * theta @ theta

    assert solution.minimum == pytest.approx(J(lam), rel=1e-9)
    assert abs(lam @ y) < 1e-6
    assert ((lam >= 0) & (lam < c)).all()
    rng = np.random.default_rng(0)
    for _ in range(20):  # no other feasible point is better
        way = rng.normal(size=len(y)) * (lam > 0)
        way -= y * (lam > 0) * (way @ y) / (lam > 0).sum()
        assert J(np.clip(lam + 1e-3 * way, 0, c)) <= J(lam) + 1e-9
    f = solution.scores[:, 1] - solution.scores[:, 0]
    active = lam > 0
    np.testing.assert_allclose(y[active] * f[active], 1 - 1 / (c - lam[active]), atol=1e-6)
    assert (y[~active] * f[~active] >= 1 - 1 / c - 1e-9).all()
    np.testing.assert_allclose(solution.state.parts[0].T[:, 0], (lam * y) @ X, atol=1e-6)


@pytest.mark.parametrize("C", [3, 4])
def test_with_known_labels_many_classes_keep_equation_5_and_no_other_constraint(C):
    X, belief, weight = draw(11, C=C)
    X = X - X.mean(axis=0)  # as the solver sees them
    y, margin, M = belief.argmax(axis=1), Exponential(3.0), contrasts(C)

    def value(v):
        planes = v.reshape(C - 1, -1)
        total = 0.5 * (planes[:, :-1] ** 2).sum()
        for t in range(len(y)):
            F = M @ (planes[:, :-1] @ X[t] + planes[:, -1])
            for other in range(C):
                if other != y[t]:
                    shortfall = 1.0 - (F[y[t]] - F[other])
                    if shortfall > 1 / 3:
                        total += 3 * shortfall - 1 - np.log(3 * shortfall)
        return total

    solution = linear(X, belief, weight, margin)
    there = np.column_stack([solution.state.parts[0].T.T, solution.state.bias]).ravel()
    assert solution.minimum == pytest.approx(value(there), rel=1e-10)
    start = there + 0.1 * np.random.default_rng(0).normal(size=len(there))
    peer = minimize(value, start, method="BFGS", options={"gtol": 1e-6})
    assert solution.minimum == pytest.approx(peer.fun, rel=1e-8)
    assert ((solution.multipliers > 0).sum(axis=1) <= C - 1).all()


# --- what must change nothing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [2, 3])
@pytest.mark.parametrize("margin", MARGINS, ids=repr)
def test_more_columns_than_rows_go_through_a_kernel_matrix_to_the_same(margin, C):
    X, belief, weight = draw(6, n=15, d=40, C=C, apart=0.4)
    discriminant = LinearDiscriminant(X, C, np.inf)
    assert discriminant.gram.K.shape == (15, 15)
    constraints = PairConstraints.of(belief, weight)
    solution = discriminant.solve(constraints, margin, TIGHT)
    value, scores = searched(X, belief, weight, margin, np.inf)
    assert solution.minimum == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(solution.scores, scores, atol=1e-5)
    plane = discriminant.plane(solution)  # in the columns themselves
    np.testing.assert_allclose((X @ plane.coef.T + plane.bias) @ contrasts(C).T, scores, atol=1e-4)


@pytest.mark.parametrize("solve", [linear, kernel])
@pytest.mark.parametrize("C", [2, 3])
def test_weight_two_is_the_row_twice(solve, C):
    X, belief, _ = draw(8, C=C, soft=True)
    weight = 1.0 + (np.arange(len(X)) % 3 == 0)
    rows = np.repeat(np.arange(len(X)), weight.astype(int))
    for margin in MARGINS:
        heavy = solve(X, belief, weight, margin)
        twice = solve(X[rows], belief[rows], np.ones(len(rows)), margin)
        np.testing.assert_allclose(heavy.scores[rows], twice.scores, atol=1e-5)
        assert heavy.minimum == pytest.approx(twice.minimum, rel=1e-9)


@pytest.mark.parametrize("solve", [linear, kernel])
@pytest.mark.parametrize("C", [2, 3, 4])
def test_rows_columns_and_classes_may_be_permuted(solve, C):
    X, belief, weight = draw(9, C=C, weights=True, soft=True)
    rng = np.random.default_rng(1)
    rows, columns, classes = rng.permutation(len(X)), rng.permutation(3), np.roll(np.arange(C), 1)
    for margin in MARGINS:
        first = solve(X, belief, weight, margin).scores
        other = solve(X[rows][:, columns], belief[rows][:, classes], weight[rows], margin).scores
        np.testing.assert_allclose(other, first[rows][:, classes], atol=2e-5)


def test_a_column_of_zeros_and_a_row_of_no_weight_change_nothing():
    X, belief, weight = draw(10, C=3)
    first = linear(X, belief, weight, Laplace(2.0))
    wide = linear(np.column_stack([X, np.zeros(len(X))]), belief, weight, Laplace(2.0))
    np.testing.assert_allclose(wide.scores, first.scores, atol=1e-6)
    for solve in (linear, kernel):
        keep = weight.copy()
        keep[:5] = 0.0
        without = solve(X[5:], belief[5:], weight[5:], Laplace(2.0))
        np.testing.assert_allclose(solve(X, belief, keep, Laplace(2.0)).scores[5:], without.scores, atol=1e-6)


def test_threads_change_no_bit():
    X, belief, weight = draw(12, n=3000, C=3)
    first, other = (
        linear(X, belief, weight, Exponential(3.0), search=replace(TIGHT, executor=e)) for e in (Serial(), Threads(2))
    )
    np.testing.assert_array_equal(first.scores, other.scores)


# --- Newton's parts -----------------------------------------------------------------------------------------------


def functions_at(gram, coef, bias):
    """Distributions with these coefficients (m, G) and bias."""
    return JointDistribution((GaussianFunctions(coef, gram),), bias)


def evaluated(problem, joint):
    total = Serial().total(lambda block: problem.stats(joint, block), problem.source())
    return problem.objective(joint, total), problem.gap(joint, total), total


@pytest.mark.parametrize("margin", MARGINS, ids=repr)
@pytest.mark.parametrize("bias_variance", BIASES, ids=["flat", "gaussian"])
def test_the_gradient_is_the_derivative_of_the_objective(margin, bias_variance):
    X, belief, weight = draw(13, C=3, weights=True, soft=True)
    on_functions, _ = constraints_on_functions(PairConstraints.of(belief, weight))
    gram = LinearGram(X)
    problem = FunctionProblem.of(gram, on_functions, margin, bias_variance)
    v = 0.3 * np.random.default_rng(2).normal(size=8)

    def at(v):
        return functions_at(gram, v.reshape(2, 4)[:, :-1].T, v.reshape(2, 4)[:, -1])

    value, _, total = evaluated(problem, at(v))
    assert value == pytest.approx(-objective(X, belief, weight, margin, bias_variance)(v)[0])
    slope = np.column_stack([total.gradient[0].T, total.bias_gradient])
    slope -= v.reshape(2, 4) * [1.0, 1.0, 1.0, 1 / bias_variance]
    for e in 1e-5 * np.eye(8):
        numeric = (evaluated(problem, at(v + e))[0] - evaluated(problem, at(v - e))[0]) / 2e-5
        assert slope.ravel() @ e / 1e-5 == pytest.approx(numeric, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("C", [2, 3])
@pytest.mark.parametrize("bias_variance", BIASES, ids=["flat", "gaussian"])
def test_all_solutions_of_the_linear_system_give_one_step(bias_variance, C, monkeypatch):
    """In the parameters, in the constraints, by conjugate gradients; for features and for their kernel matrix."""
    X, belief, weight = draw(19, n=60, C=C, weights=True, soft=True)
    on_functions, _ = constraints_on_functions(PairConstraints.of(belief, weight))
    coef = 0.2 * np.random.default_rng(0).normal(size=(60, C - 1))
    monkeypatch.setattr(functions, "PRECISION", 1e-24)
    scores = []
    for gram, T in ((LinearGram(X), X.T @ coef), (MatrixGram(X @ X.T), coef)):
        problem = FunctionProblem.of(gram, on_functions, Laplace(2.0), bias_variance)
        joint = functions_at(gram, T, np.full(C - 1, 0.1))
        total = evaluated(problem, joint)[2]
        for most_parameters, cheap in ((200, 75), (0, 1e9), (0, 0)):
            monkeypatch.setattr(functions, "MAX_PARAMETERS", most_parameters)
            monkeypatch.setattr(functions, "CHEAP", cheap)
            scores.append(problem.training_scores(problem.update(joint, total, 1.0)))
    for other in scores[1:]:
        np.testing.assert_allclose(other, scores[0], atol=1e-6)


def test_the_length_of_a_step_is_the_best():
    X, belief, weight = draw(13, C=3, weights=True)
    on_functions, _ = constraints_on_functions(PairConstraints.of(belief, weight))
    problem = FunctionProblem.of(LinearGram(X), on_functions, Laplace(30.0), np.inf)
    joint, total = problem.prior, evaluated(problem, problem.prior)[2]
    moved = problem.update(joint, total, 1.0)
    change, shift = moved.parts[0].T - joint.parts[0].T, moved.bias - joint.bias
    values = [
        evaluated(problem, functions_at(problem.gram, joint.parts[0].T + t * change, joint.bias + t * shift))[0]
        for t in (0.0, 0.5, 0.9, 1.0, 1.1, 1.5)
    ]
    assert values[3] > max(values[0], values[1], values[5])


@pytest.mark.parametrize("kink", [1e-3, 0.3, 7.0])
def test_the_search_for_a_length_finds_a_near_kink(kink):
    """Where the slope changes its sign within a tiny interval, the step ends in it: the next one has its curvature."""
    count = []

    def slope(t):
        count.append(t)
        return -1.0 + np.clip(1e7 * (t / kink - 1.0), 0.0, 1e9)

    length = length_of_step(slope, -1.0, 1e6, flat=0.1, rtol=1e-14)
    assert abs(slope(length)) <= 0.1 and len(count) <= 104
    assert length_of_step(slope, 1.0, 1e6) is None
    assert length_of_step(lambda t: -1.0, -1.0, 4.0) == 4.0


def test_at_any_point_the_gap_bounds_the_distance_to_the_optimum():
    X, belief, weight = draw(14, C=3, weights=True, soft=True)
    on_functions, _ = constraints_on_functions(PairConstraints.of(belief, weight))
    rng = np.random.default_rng(3)
    for margin in MARGINS:
        for bias_variance in BIASES:
            best = linear(X, belief, weight, margin, bias_variance).minimum
            problem = FunctionProblem.of(LinearGram(X), on_functions, margin, bias_variance)
            for size in (0.01, 0.3, 3.0):
                joint = functions_at(problem.gram, size * rng.normal(size=(3, 2)), size * rng.normal(size=2))
                value, gap, _ = evaluated(problem, joint)
                assert gap >= -value - best - 1e-9


def test_the_gap_holds_where_multipliers_miss_the_bias_equality():
    """Far from the origin the bias is large, and so is what an unbalanced dual value would promise too much."""
    X, belief, weight = draw(14, C=2, weights=True)
    X = X + 5.0
    constraints = PairConstraints.of(belief, weight)
    rng = np.random.default_rng(5)
    for margin in MARGINS:
        fitted = LinearDiscriminant(X, 2, np.inf)
        best = fitted.solve(constraints, margin, TIGHT)
        there = fitted.plane(best)
        problem = FunctionProblem.of(LinearGram(X), constraints_on_functions(constraints)[0], margin, np.inf)
        assert abs(there.bias[0]) > 1
        for _ in range(40):
            size = 10.0 ** rng.uniform(-4, -1)
            coef = there.coef.T + size * rng.normal(size=(3, 1))
            value, gap, _ = evaluated(problem, functions_at(problem.gram, coef, there.bias + size * rng.normal(size=1)))
            assert gap >= -value - best.minimum - 1e-9


@pytest.mark.parametrize("C", [2, 3])
@pytest.mark.parametrize("bias_variance", BIASES, ids=["flat", "gaussian"])
@pytest.mark.parametrize("margin", [*MARGINS, Exponential(300.0), Laplace(300.0), Gaussian(100.0)], ids=repr)
def test_local_problems_solved_as_they_are_end_where_newtons_steps_do(margin, bias_variance, C):
    X, belief, weight = draw(15, C=C, weights=True, soft=True)
    newton = linear(X, belief, weight, margin, bias_variance, replace(TIGHT, gap=1e-10))
    on_functions, _ = constraints_on_functions(PairConstraints.of(belief, weight))
    problem = FunctionProblem.of(MatrixGram(X @ X.T), on_functions, margin, bias_variance)
    local = replace(TIGHT, gap=1e-7).run(SequentialFamilyProblem(problem, 1e-13), problem.source(), problem.prior)
    assert -local.objective == pytest.approx(newton.minimum, rel=1e-7)
    assert local.n_passes <= 12  # the problem of functions is its own local one


@pytest.mark.parametrize(
    ("seed", "C", "soft", "margin"),
    [(0, 2, False, Laplace(100.0)), (5, 3, True, Exponential(1000.0)), (5, 3, True, Laplace(5000.0))],
)
def test_rows_that_cannot_be_separated_are_solved_for_large_multipliers_too(seed, C, soft, margin):
    """Multipliers next to their upper end: converged means that the gap is as small as was asked for."""
    X, belief, weight = draw(seed, C=C, weights=True, soft=soft)
    solution = linear(X, belief, weight, margin, search=Search(gap=1e-6))
    assert solution.run.status is Status.CONVERGED
    assert solution.gap <= 1e-6 * weight.sum()


# --- interior points ----------------------------------------------------------------------------------------------


class LocalProblem:
    """A random local problem, Q all but singular for seed 0."""

    def __init__(self, seed, margin, K=40, p=5):
        rng = np.random.default_rng(seed)
        half = rng.normal(size=(p, p))
        self.Q = half @ half.T + (0.1 * np.eye(p) if seed else 0.0)
        self.g, self.A = rng.normal(size=p), rng.normal(size=(K, p))
        self.m, self.w = rng.normal(size=K), rng.gamma(2.0, size=K)
        self.margin = margin

    def value(self, v):
        return 0.5 * v @ self.Q @ v + self.g @ v + self.w @ self.margin.loss(self.m + self.A @ v)

    def slope(self, v):
        return self.Q @ v + self.g - self.A.T @ (self.w * self.margin.multiplier(self.m + self.A @ v))

    def searched(self):
        v = np.zeros(len(self.g))
        for _ in range(2):  # a kink of slope 1e4 stops a line search before the end
            v = minimize(self.value, v, jac=self.slope, method="BFGS", options={"gtol": 1e-12, "maxiter": 5000}).x
        return v

    def dual(self, lam):
        rest = self.A.T @ (self.w * lam) - self.g
        return self.w @ (self.margin.potential(lam) - lam * self.m) - 0.5 * rest @ np.linalg.solve(self.Q, rest)

    def solved(self):
        return local_minimum(self.Q, self.g, self.A, self.m, self.w, self.margin)[0]


@pytest.mark.parametrize("margin", [*MARGINS, Gaussian(1e2), Exponential(0.5, 0.2)], ids=repr)
@pytest.mark.parametrize("seed", range(3))
def test_the_local_minimum_is_a_generic_solvers(margin, seed):
    here = LocalProblem(seed, margin)
    v, peer = here.solved(), here.searched()
    assert here.value(v) <= here.value(peer) + 1e-9 * (1 + abs(here.value(peer)))
    np.testing.assert_allclose(v, peer, atol=1e-4)
    # and no value is lower, by the dual at its multipliers
    lam = margin.multiplier(here.m + here.A @ v)
    assert here.value(v) - here.dual(lam) <= 1e-6 * (1 + abs(here.value(v)))


@pytest.mark.parametrize("margin", [Exponential(1e3), Exponential(1e4), Laplace(1e4)], ids=repr)
def test_the_local_minimum_is_found_where_losses_all_but_break(margin):
    """Rows that cannot be separated: many multipliers are next to their upper end."""
    for seed in (1, 2, 10, 11, 15, 17, 24, 27, 32):
        here = LocalProblem(seed, margin)
        best = here.value(here.searched())
        assert here.value(here.solved()) <= best + 1e-6 * (1 + abs(best)), f"seed {seed}"


def test_a_local_problem_without_a_term_for_the_bias_is_solved():
    """Q has a free direction: what a flat bias leaves."""
    X, belief, weight = draw(17)
    ones = np.column_stack([X, np.ones(len(X))])
    A = (2 * belief[:, [1]] - 1) * ones
    for margin in (Exponential(3.0), Exponential(1e4)):
        v, _ = local_minimum(np.diag([1.0, 1.0, 1.0, 0.0]), np.zeros(4), A, np.zeros(len(X)), weight, margin)
        peer = linear(X, belief, weight, margin)
        value = 0.5 * v[:3] @ v[:3] + margin.loss(A @ v).sum()
        assert value == pytest.approx(peer.minimum, rel=1e-6)


# --- hard margins -------------------------------------------------------------------------------------------------


def separable(seed=0, n=40):
    """Two classes with a gap between."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    X = X[np.abs(X[:, 0] + 0.5 * X[:, 1] - 0.2) > 0.3]
    y = (X[:, 0] + 0.5 * X[:, 1] > 0.2).astype(int)
    return X, np.eye(2)[y], y


def rings(seed=0, n=40):
    """Two classes that a ring divides."""
    X = np.random.default_rng(seed).normal(size=(n, 2))
    radius = np.hypot(*X.T)
    X = X[np.abs(radius - 1.1) > 0.15]
    y = (np.hypot(*X.T) > 1.1).astype(int)
    return X, np.eye(2)[y], y


def rbf(X):
    return np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))


def decision(solution):
    return solution.scores[:, 1] - solution.scores[:, 0]


def test_as_c_grows_the_linear_discriminant_becomes_the_hard_margin_machine():
    X, belief, y = separable()
    svm = SVC(C=1e9, kernel="linear", tol=1e-8).fit(X, y)
    solutions = [linear(X, belief, np.ones(len(X)), Exponential(c)) for c in (1e2, 1e4, 1e6)]
    far = [np.abs(decision(solution) - svm.decision_function(X)).max() for solution in solutions]
    assert far[0] > far[1] > far[2]
    assert far[2] < 1e-3
    gauss = linear(X, belief, np.ones(len(X)), Gaussian(1e3))
    np.testing.assert_allclose(decision(gauss), svm.decision_function(X), atol=1e-3)


def test_as_c_grows_the_kernel_discriminant_becomes_the_hard_margin_machine():
    X, belief, y = rings()
    K = rbf(X)
    svm = SVC(C=1e9, kernel="precomputed", tol=1e-8).fit(K, y)
    for margin in (Exponential(1e7), Laplace(1e7)):
        solution = KernelDiscriminant(K, 2, np.inf).solve(PairConstraints.of(belief, np.ones(len(X))), margin, TIGHT)
        np.testing.assert_allclose(decision(solution), svm.decision_function(K), atol=1e-3)


def test_a_certain_margin_is_the_hard_margin_machine():
    X, belief, y = separable()
    svm = SVC(C=1e9, kernel="linear", tol=1e-10).fit(X, y)
    solution = linear(X, belief, np.ones(len(X)), Fixed(1.0))
    np.testing.assert_allclose(decision(solution), svm.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(solution.state.parts[0].T.T, svm.coef_, atol=1e-6)
    lam = np.zeros(len(X))
    lam[svm.support_] = np.abs(svm.dual_coef_[0])
    np.testing.assert_allclose(solution.multipliers[:, 0], lam, atol=1e-4 * lam.max())
    assert solution.minimum == pytest.approx(0.5 * (svm.coef_**2).sum(), rel=1e-6)
    assert solution.dual == pytest.approx(solution.minimum, rel=1e-5)
    # four times the margin is four times the function
    wider = linear(X, belief, np.ones(len(X)), Fixed(4.0))
    np.testing.assert_allclose(wider.scores, 4 * solution.scores, atol=1e-5)
    K = rbf(rings()[0])
    machine = SVC(C=1e9, kernel="precomputed", tol=1e-10).fit(K, rings()[2])
    constraints = PairConstraints.of(rings()[1], np.ones(len(K)))
    round_one = KernelDiscriminant(K, 2, np.inf).solve(constraints, Fixed(1.0), TIGHT)
    np.testing.assert_allclose(decision(round_one), machine.decision_function(K), atol=1e-6)


def test_many_classes_keep_a_certain_margin_and_no_smaller_function_does():
    rng = np.random.default_rng(2)
    y = np.arange(30) % 3
    X = 4 * np.array([[0, 0], [1, 0], [0, 1]])[y] + 0.4 * rng.normal(size=(30, 2))
    X = X - X.mean(axis=0)  # as the solver sees them
    belief, M = np.eye(3)[y], contrasts(3)
    solution = linear(X, belief, np.ones(30), Fixed(1.0))

    def kept(v):
        planes = v.reshape(2, 3)
        F = (X @ planes[:, :-1].T + planes[:, -1]) @ M.T
        return np.concatenate([F[np.arange(30), y] - F[np.arange(30), (y + k) % 3] - 1.0 for k in (1, 2)])

    there = np.column_stack([solution.state.parts[0].T.T, solution.state.bias]).ravel()
    assert kept(there).min() >= -1e-7
    peer = minimize(
        lambda v: 0.5 * (v.reshape(2, 3)[:, :-1] ** 2).sum(),
        there,
        constraints=[{"type": "ineq", "fun": kept}],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert solution.minimum == pytest.approx(peer.fun, rel=1e-6)


def test_a_row_of_no_weight_need_not_keep_a_certain_margin():
    X, belief, y = separable()
    wrong = np.vstack([belief, np.eye(2)[1 - y[0]]])
    weight = np.r_[np.ones(len(X)), 0.0]
    solution = linear(np.vstack([X, X[:1]]), wrong, weight, Fixed(1.0))
    np.testing.assert_allclose(solution.scores[:-1], linear(X, belief, np.ones(len(X)), Fixed(1.0)).scores, atol=1e-6)


@pytest.mark.parametrize("margin", [Laplace(1e4), Exponential(1e4), Laplace(1e6), Gaussian(1e4)], ids=repr)
@pytest.mark.parametrize("solve", [linear, kernel])
@pytest.mark.parametrize("C", [2, 3])
def test_a_large_c_on_rows_that_cannot_be_separated_ends(margin, solve, C):
    X, belief, weight = draw(18, n=120, C=C, apart=0.5)
    solution = solve(X, belief, weight, margin, search=Search(1e-6))
    assert solution.run.status is Status.CONVERGED and solution.run.n_passes < 60
    assert solution.gap <= 1e-6 * weight.sum()


@pytest.mark.parametrize("solve", [linear, kernel])
@pytest.mark.parametrize("C", [2, 3])
def test_a_small_c_gives_the_function_of_its_multipliers(solve, C):
    """The gap of the zero function is small there, but not beside its loss."""
    X, belief, weight = draw(20, C=C)
    for margin in (Laplace(0.001), Gaussian(0.003), Laplace(0.03)):
        solution = solve(X, belief, weight, margin, search=Search(1e-6))
        alpha = dual_coefficients(solution, PairConstraints.of(belief, weight), contrasts(C))
        implied = (X @ X.T @ alpha) @ contrasts(C).T
        implied = implied - implied.mean(axis=0)
        scores = solution.scores - solution.scores.mean(axis=0)
        assert np.abs(scores).max() > 0
        np.testing.assert_allclose(scores, implied, atol=2e-2 * np.abs(implied).max())


@pytest.mark.parametrize("margin", [*MARGINS, Laplace(300.0)], ids=repr)
@pytest.mark.parametrize("bias_variance", BIASES, ids=["flat", "gaussian"])
def test_a_singular_kernel_matrix_and_equal_rows_are_solved(margin, bias_variance):
    X, belief, weight = draw(21, n=30, d=2, C=3)
    X, belief, weight = np.vstack([X, X]), np.vstack([belief, belief]), np.r_[weight, weight]
    solution = kernel(X, belief, weight, margin, bias_variance, Search(1e-9))
    assert solution.run.status is Status.CONVERGED and solution.gap <= 1e-9 * weight.sum()
    assert solution.minimum == pytest.approx(linear(X, belief, weight, margin, bias_variance).minimum, rel=1e-8)


def test_known_labels_have_a_constraint_for_each_rival_only():
    X, belief, weight = draw(22, C=4)
    constraints = PairConstraints.of(belief, weight)
    on_functions, label = constraints_on_functions(constraints)
    np.testing.assert_array_equal(label, belief.argmax(axis=1))
    assert on_functions.signs.shape == (40, 4) and (on_functions.effective.sum(axis=1) == 3).all()
    through_pairs = replace(
        on_functions,
        signs=constraints.signs,
        pattern=constraints.differences @ contrasts(4),
        imposed=constraints.imposed,
        offset=np.zeros((40, 6)),
        common=None,
    )
    gram = LinearGram(X - X.mean(axis=0))
    problem = FunctionProblem.of(gram, through_pairs, Laplace(2.0), np.inf)
    run = TIGHT.run(problem, problem.source(), problem.prior)
    solution = linear(X, belief, weight, Laplace(2.0))
    assert -run.objective == pytest.approx(solution.minimum, rel=1e-9)
    np.testing.assert_allclose(solution.multipliers, problem.multipliers(run.params), atol=1e-5)


@pytest.mark.parametrize("C", [2, 3])
@pytest.mark.parametrize("margin", MARGINS, ids=lambda margin: type(margin).__name__)
def test_many_rows_have_the_solution_of_few(C, margin, monkeypatch):
    """A sample first, conjugate gradients with some columns, single precision and the coefficients' dual: the same."""
    X, belief, weight = draw(31, n=150, C=C, apart=2.0, weights=True)
    K = rbf(X)
    search = Search(1e-7)
    few = KernelDiscriminant(K, C, np.inf).solve(PairConstraints.of(belief, weight), margin, search)
    monkeypatch.setattr(functions, "MANY_ROWS", 20)
    monkeypatch.setattr(functions, "CHEAP", 0)
    monkeypatch.setattr(grams, "MIN_SINGLE", 20)
    many = KernelDiscriminant(K, C, np.inf).solve(PairConstraints.of(belief, weight), margin, search)
    assert many.run.status is Status.CONVERGED and many.gap <= 1e-7 * weight.sum()
    slack = 1e-12 * abs(few.minimum)  # rounding
    assert many.dual <= few.minimum + slack and few.dual <= many.minimum + slack  # bounds of the same optimum
    np.testing.assert_allclose(np.diff(many.scores), np.diff(few.scores), atol=1e-2)


class Creeping(Problem):
    """Maximizes -x for x > 0, each update taking a constant step towards zero: the gap is x itself."""

    safe_step = 1.0

    def __init__(self, step):
        self.length = step

    def prepare(self, params):
        return params

    def stats(self, ready, block):
        return Nothing()

    def objective(self, params, total):
        return -params

    def gap(self, params, total):
        return params

    def update(self, params, total, step):
        return max(params - self.length, 0.0)


@dataclass(frozen=True)
class Nothing(Stats):
    zero: float = 0.0


@pytest.mark.parametrize(("step", "n_passes", "status"), [(1.0, 100, Status.CONVERGED), (0.1, 51, Status.MAX_PASSES)])
def test_a_run_ends_early_only_where_its_gains_will_not_close_the_gap(step, n_passes, status):
    source = Blocks(NumberedRows.of(np.ones(1)), 8)
    run = Search(gap=1e-6, max_iter=200).run(Creeping(step), source, 100.0)
    assert run.status is status and run.n_passes == pytest.approx(n_passes, abs=2)
    patient = Search(gap=1e-6, max_iter=1000).run(Creeping(step), source, 100.0)
    assert patient.status is Status.CONVERGED  # with more passes the same gains are enough
