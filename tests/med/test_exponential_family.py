"""Newton's method for families of natural statistics, beside a general maximization of the dual."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp

from mixent.core.blocks import Blocks, NumberedRows
from mixent.core.driver import Status
from mixent.core.executors import Serial, Threads
from mixent.med import exponential_family, exponential_family_solving
from mixent.med.constraints import Constraints, PairConstraints, contrasts
from mixent.med.exponential_family import (
    ActiveSet,
    ExponentialFamilyProblem,
    JointDistribution,
    SequentialFamilyProblem,
)
from mixent.med.exponential_family_solving import balance_multipliers, maximize, solve, stats_at
from mixent.med.families import CellLayout, Dirichlets, TreeDistribution, TreeTables
from mixent.med.features import CountFeatures, EdgeFeatures, FeatureMatrix
from mixent.med.margins import Exponential, Fixed, Gaussian, Laplace
from mixent.med.solving import Search

from .enumeration import every_tree

SIZES = (2, 3, 2, 2)
EDGES = list(zip(*np.triu_indices(4, 1)))
STARTS = np.concatenate([[0], np.cumsum(SIZES)])
MARGINS = {"laplace": Laplace(0.8, 2.0), "exponential": Exponential(2.0, 2.0), "gaussian": Gaussian(0.6, 2.0)}


MEMBER = np.array([[edge in tree for edge in EDGES] for tree in every_tree(4)], dtype=float)  # (16, 6)


def log_partition(part, T):
    """A(T), the trees one by one; -inf of minus it outside the domain."""
    if isinstance(part, TreeDistribution):
        return float(logsumexp(MEMBER @ T))
    width = 1 + sum(SIZES)
    table = T.reshape(width, width)
    cells, pairs = table[0, 1:], table[1:, 1:]
    spans = [slice(STARTS[v], STARTS[v + 1]) for v in range(4)]
    if table[0, 0] <= 0 or cells.min() <= 0 or min(pairs[spans[u], spans[v]].min() for u, v in EDGES) <= 0:
        return np.inf
    alone = [gammaln(cells[s]).sum() for s in spans]
    W = np.array([gammaln(pairs[spans[u], spans[v]]).sum() - alone[u] - alone[v] for u, v in EDGES])
    return float(sum(alone) - gammaln(table[0, 0]) + logsumexp(MEMBER @ (W + part.structure)))


def problem_of(kind, margin, n_classes=2, bias_variance=np.inf, n=14, seed=0, weight=None, shared=False):
    """Rows of four columns, and tables (known or not) of every class."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, SIZES, size=(n, 4))
    label = np.arange(n) % n_classes
    cells = np.concatenate([np.eye(size)[codes[:, v]] for v, size in enumerate(SIZES)], axis=1)
    layout = CellLayout(SIZES)
    weight = rng.uniform(0.5, 1.5, size=n) if weight is None else weight
    R = sum(SIZES)
    features, parts = [], []
    for s in range(n_classes):
        if kind == "fixed":
            table = rng.normal(size=(R, R)) * 1.5
            features.append(
                EdgeFeatures(cells, np.where(layout.different, table + table.T, 0.0), rng.normal(size=R), layout)
            )
            parts.append(TreeDistribution(0.5 * rng.normal(size=6)))
        else:
            spread = np.concatenate([[1.0], 1.0 / np.repeat(SIZES, SIZES)])
            features.append(CountFeatures.of(cells).add_offset(float(rng.normal())))
            own = features[-1].weighted_sum((label == s) * weight) + 6.0 * np.outer(spread, spread).ravel()
            parts.append(TreeTables(own, layout, rng.normal(size=6)).uniform)
    constraints = Constraints.between_classes(PairConstraints.of(np.eye(n_classes)[label], weight))
    family_of = (0,) * n_classes if shared else tuple(range(n_classes))
    prior = JointDistribution(tuple(parts[: max(family_of) + 1]), 0.3 * rng.normal(size=n_classes - 1))
    return ExponentialFamilyProblem(
        tuple(features), family_of, constraints, margin, prior, contrasts(n_classes), bias_variance
    )


class Dual:
    """J(l), by code of its own."""

    def __init__(self, problem):
        self.problem = problem
        constraints = problem.constraints
        self.t, self.k = np.nonzero(constraints.effective & (constraints.weight > 0)[:, None])
        self.w, self.coef = constraints.weight[self.t], constraints.coef[self.t, self.k]
        self.features = [row_features.to_array()[self.t] for row_features in problem.features]
        known = np.column_stack([row_features.offset for row_features in problem.features])[self.t]
        self.known = (self.coef * known).sum(axis=1) + constraints.offset[self.t, self.k]
        self.silent = 0.0
        if not isinstance(problem.margin, Fixed):
            loss = np.where(constraints.imposed & ~constraints.effective, problem.margin.loss(constraints.offset), 0.0)
            self.silent = float(constraints.weight @ loss.sum(axis=1))

    def bias_gradient(self, lam):
        return (self.w * lam) @ self.coef @ self.problem.contrast

    def __call__(self, lam):
        problem = self.problem
        value = float(self.w @ (problem.margin.potential(lam) - lam * self.known)) + self.silent
        for f, part in enumerate(problem.prior.parts):
            T = part.T.copy()
            for s in (s for s, family_of in enumerate(problem.family_of) if family_of == f):
                T = T + (self.w * lam * self.coef[:, s]) @ self.features[s]
            value -= log_partition(part, T) - log_partition(part, part.T)
        if np.isfinite(problem.bias_variance):
            bias_gradient = self.bias_gradient(lam)
            value -= 0.5 * problem.bias_variance * float(bias_gradient @ bias_gradient) + float(
                bias_gradient @ problem.prior.bias
            )
        return value

    def maximum(self):
        upper = min(self.problem.margin.upper * (1 - 1e-9), 50.0)
        flat = np.isinf(self.problem.bias_variance)
        result = minimize(
            lambda lam: min(-self(lam), 1e6),
            np.full(len(self.t), 0.1 * min(upper, 1.0)),
            bounds=[(0.0, upper)] * len(self.t),
            constraints=[{"type": "eq", "fun": self.bias_gradient}] if flat else [],
            method="SLSQP",
            options={"ftol": 1e-13, "maxiter": 500},
        )
        assert not flat or np.abs(self.bias_gradient(result.x)).max() < 1e-7
        return -result.fun


SHARP = Search(gap=1e-11)


def objective_at(problem, joint):
    total = Serial().total(lambda block: problem.stats(joint, block), problem.source())
    return problem.objective(joint, total), problem.gap(joint, total)


def elsewhere(problem, seed=0, size=0.3):
    """Distributions that are not optimal, within the rows' reach."""
    rng = np.random.default_rng(seed)
    lam = size * rng.random(problem.constraints.imposed.shape) * problem.constraints.effective
    total = stats_at(problem, lam)
    parts = tuple(
        part.with_natural_parameters(part.T + gradient) for part, gradient in zip(problem.prior.parts, total.gradient)
    )
    return JointDistribution(parts, problem.prior.bias + 0.2 * rng.normal(size=problem.prior.bias.shape))


@pytest.mark.parametrize("bias_variance", [np.inf, 2.0])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize("kind", ["fixed", "integrated"])
def test_the_optimum_is_that_of_a_general_maximization_of_the_dual(kind, margin, n_classes, bias_variance):
    problem = problem_of(kind, MARGINS[margin], n_classes, bias_variance, n=9)
    solution = solve(problem, SHARP)
    best = Dual(problem).maximum()
    assert solution.run.status is Status.CONVERGED and best > 0.1
    assert solution.minimum == pytest.approx(best, abs=1e-6 * max(1.0, best))
    assert solution.dual == pytest.approx(best, abs=1e-6 * max(1.0, best))
    assert solution.minimum >= solution.dual - 1e-9
    assert (solution.multipliers >= 0).all() and (solution.multipliers < problem.margin.upper).all()
    objective = [step.objective for step in solution.run.trace if step.accepted]
    assert np.diff(objective).min(initial=0.0) > -1e-9


@pytest.mark.parametrize("kind", ["fixed", "integrated"])
def test_one_structure_may_serve_all_classes(kind):
    problem = problem_of(kind, MARGINS["laplace"], 3, 2.0, n=9, shared=True)
    solution = solve(problem, SHARP)
    assert solution.minimum == pytest.approx(Dual(problem).maximum(), abs=1e-6) and len(solution.state.parts) == 1


@pytest.mark.parametrize("kind", ["fixed", "integrated"])
@pytest.mark.parametrize("margin", MARGINS)
def test_the_objective_is_minus_relative_entropy_and_loss(kind, margin):
    problem = problem_of(kind, MARGINS[margin], 3, 2.0)
    joint = elsewhere(problem)
    wanted = 0.0
    for part, prior in zip(joint.parts, problem.prior.parts):
        away, h = part.T - prior.T, 1e-5
        slope = (log_partition(prior, part.T + h * away) - log_partition(prior, part.T - h * away)) / (2 * h)
        wanted += slope - log_partition(prior, part.T) + log_partition(prior, prior.T)
    wanted += 0.25 * float(((joint.bias - problem.prior.bias) ** 2).sum())
    scores = [
        row_features.to_array() @ part.mean + row_features.offset
        for row_features, part in zip(problem.features, joint.parts)
    ]
    scores = np.column_stack(scores) + problem.contrast @ joint.bias
    label = np.arange(14) % 3
    for t in range(14):
        for rival in {0, 1, 2} - {label[t]}:
            m = scores[t, label[t]] - scores[t, rival]
            wanted += problem.constraints.weight[t] * float(problem.margin.loss(np.array(m)))
    objective, _ = objective_at(problem, joint)
    assert objective == pytest.approx(-wanted, rel=1e-7)
    np.testing.assert_allclose(problem.training_scores(joint), scores, rtol=1e-11)


@pytest.mark.parametrize("kind", ["fixed", "integrated"])
@pytest.mark.parametrize("margin", MARGINS)
def test_the_gap_is_a_bound_everywhere_and_nothing_at_the_optimum(kind, margin):
    problem = problem_of(kind, MARGINS[margin], 3, 2.0)
    solution = solve(problem, SHARP)
    for seed in range(10):
        for size in (0.01, 0.3):
            objective, gap = objective_at(problem, elsewhere(problem, seed, size))
            assert gap is None or gap >= -solution.minimum - objective - 1e-9 >= -2e-9
    _, gap = objective_at(problem, solution.state)
    assert abs(gap) < 1e-9


def test_multipliers_that_leave_the_domain_give_no_bound():
    problem = problem_of("integrated", Gaussian(50.0, 8.0))
    objective, gap = objective_at(problem, problem.prior)
    assert gap is None and np.isfinite(objective)
    solution = solve(problem, SHARP)
    assert solution.dual == pytest.approx(solution.minimum, rel=1e-7)


@pytest.mark.parametrize("kind", ["fixed", "integrated"])
@pytest.mark.parametrize(("n_classes", "bias_variance"), [(2, np.inf), (3, np.inf), (3, 2.0)])
def test_every_way_leads_to_the_same_optimum(kind, n_classes, bias_variance, monkeypatch):
    problem = problem_of(kind, MARGINS["laplace"], n_classes, bias_variance, n=20)
    direct = solve(problem, SHARP)
    scores = problem.training_scores(direct.state)
    scores -= scores.mean(axis=1, keepdims=True)

    def same(joint, atol):
        other = problem.training_scores(joint)
        np.testing.assert_allclose(other - other.mean(axis=1, keepdims=True), scores, atol=atol)

    local = SHARP.run(SequentialFamilyProblem(problem, 1e-13), problem.source(), problem.prior)
    assert local.status is Status.CONVERGED and -local.objective == pytest.approx(direct.minimum, abs=1e-9)
    same(local.params, 1e-4)
    assert np.diff([step.objective for step in local.trace if step.accepted]).min() > -1e-9
    from_afar = solve(problem, SHARP, elsewhere(problem))
    assert from_afar.minimum == pytest.approx(direct.minimum, abs=1e-9)
    same(from_afar.state, 1e-4)
    monkeypatch.setattr(exponential_family, "MAX_DIRECT", 0)
    by_gradients = solve(problem, SHARP)
    assert by_gradients.minimum == pytest.approx(direct.minimum, abs=1e-9)
    same(by_gradients.state, 1e-4)


@pytest.mark.parametrize("bias_variance", [np.inf, 2.0])
@pytest.mark.parametrize("kind", ["fixed", "integrated"])
def test_both_solvers_of_the_step_solve_its_system(kind, bias_variance, monkeypatch):
    monkeypatch.setattr(exponential_family, "EXACT", 1e-24)
    problem = problem_of(kind, MARGINS["gaussian"], 3, bias_variance, n=20)
    joint = elsewhere(problem)
    curvature = np.where(
        problem.constraints.effective, np.random.default_rng(0).uniform(0.2, 1.0, problem.constraints.imposed.shape), 0
    )
    active = ActiveSet(problem, joint, curvature)
    K, B = active.gram(), active.B
    np.testing.assert_allclose(K, np.array([active.kernel_product(e) for e in np.eye(len(K))]).T, rtol=1e-8, atol=1e-10)
    right, slope, held = np.random.default_rng(1).normal(size=len(K)), np.array([0.3, -0.7]), 0.05
    for solver in (active._solve_directly, active._solve_by_conjugate_gradients):
        z, bias = solver(right, slope, held)
        np.testing.assert_allclose(active.inverse_curvature * z + K @ z - B @ bias, right, atol=1e-8)
        np.testing.assert_allclose(B.T @ z + held * bias, slope, atol=1e-8)


def test_a_shorter_step_has_the_direction_of_the_longer_and_is_not_solved_again(monkeypatch):
    problem = problem_of("trees", Laplace(3.0, 1.0))
    start = elsewhere(problem)
    total = problem.stats(start, NumberedRows.of(problem.constraints.weight))
    full = problem.update(start, total, 1.0)
    monkeypatch.setattr(exponential_family.ActiveSet, "solve", None)
    half = problem.update(start, total, 0.5)
    for first, last, middle in zip(start.parts, full.parts, half.parts):
        np.testing.assert_allclose(middle.T, 0.5 * (first.T + last.T), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(half.bias, 0.5 * (start.bias + full.bias), rtol=1e-12)


def test_the_step_of_a_small_active_set_is_newtons():
    """Where no kink is met the loss is smooth, and one full step from nearby squares the error."""
    problem = problem_of("integrated", Gaussian(0.3, 30.0), 2, 1.0)  # large margins: every constraint is active
    best = solve(problem, Search(gap=1e-14))
    errors = []
    for size in (1e-2, 1e-3):
        parts = tuple(part.with_natural_parameters(part.T * (1 + size)) for part in best.state.parts)
        near = JointDistribution(parts, best.state.bias)
        total = Serial().total(lambda block, near=near: problem.stats(near, block), problem.source())
        after = problem.update(near, total, 1.0)
        errors.append(-best.minimum - objective_at(problem, after)[0])
    assert errors[0] < 1e-4 and errors[1] < 2e-3 * errors[0] + 1e-11


@pytest.mark.parametrize("kind", ["fixed", "integrated"])
def test_blocks_and_threads_change_nothing(kind):
    problem = problem_of(kind, MARGINS["laplace"], 3, 2.0, n=1100)
    joint = elsewhere(problem, size=0.01)
    whole = Serial().total(lambda block: problem.stats(joint, block), problem.source())
    cut = Blocks(NumberedRows.of(problem.constraints.weight), 1, 7)
    assert len(cut) > 4 and len(problem.source()) == 1
    serial = Serial().total(lambda block: problem.stats(joint, block), cut)
    with Threads(2) as threads:
        threaded = threads.total(lambda block: problem.stats(joint, block), cut)
    for name in ("loss", "potential", "weight"):
        assert getattr(serial, name) == getattr(threaded, name)  # to the last bit
        assert getattr(serial, name) == pytest.approx(getattr(whole, name), rel=1e-12)
    for a, b, c in zip(serial.gradient, threaded.gradient, whole.gradient):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, c, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(serial.bias_gradient, whole.bias_gradient, rtol=1e-10)


@pytest.mark.parametrize("kind", ["fixed", "integrated"])
def test_the_gradient_is_the_derivative_of_the_loss(kind):
    """Phi^T l: minus the gradient of the loss in the mean parameters, and in the bias."""
    problem = problem_of(kind, MARGINS["laplace"], 3, 2.0)
    joint, h = elsewhere(problem), 1e-6
    total = Serial().total(lambda block: problem.stats(joint, block), problem.source())
    rng = np.random.default_rng(0)

    class Shifted:
        def __init__(self, part, by):
            self.mean = part.mean + by

    ways = [rng.normal(size=part.T.shape) for part in joint.parts]
    if kind == "integrated":
        ways = [(w.reshape(10, 10) + w.reshape(10, 10).T).ravel() for w in ways]
    tilt = rng.normal(size=2)

    def loss(step):
        parts = tuple(Shifted(part, step * way) for part, way in zip(joint.parts, ways))
        there = JointDistribution(parts, joint.bias + step * tilt)
        return Serial().total(lambda block: problem.stats(there, block), problem.source()).loss

    wanted = -(loss(h) - loss(-h)) / (2 * h)
    assert sum(f @ w for f, w in zip(total.gradient, ways)) + total.bias_gradient @ tilt == pytest.approx(
        wanted, rel=1e-6
    )


def rows_of_problem(problem, rows, weight=None):
    constraints = problem.constraints.part(rows)
    if weight is not None:
        constraints = replace(constraints, weight=weight)
    return replace(
        problem, features=tuple(row_features.take(rows) for row_features in problem.features), constraints=constraints
    )


@pytest.mark.parametrize("kind", ["fixed", "integrated"])
def test_weight_two_is_the_row_twice_and_rows_have_no_order(kind):
    problem = problem_of(kind, MARGINS["laplace"], 3, 2.0)
    counts = np.random.default_rng(3).integers(1, 4, size=14)
    weighted = solve(rows_of_problem(problem, slice(None), counts.astype(float)), SHARP)
    index = np.random.default_rng(4).permutation(np.repeat(np.arange(14), counts))
    repeated = solve(rows_of_problem(problem, index, np.ones(len(index))), SHARP)
    assert weighted.minimum == pytest.approx(repeated.minimum, rel=1e-9)
    np.testing.assert_allclose(weighted.multipliers[index], repeated.multipliers, atol=1e-5)
    for a, b in zip(weighted.state.parts, repeated.state.parts):
        np.testing.assert_allclose(a.T, b.T, atol=1e-4)


def test_a_row_of_weight_zero_has_no_effect():
    problem = problem_of("fixed", MARGINS["laplace"])
    weight = problem.constraints.weight.copy()
    weight[3] = 0.0
    without = solve(rows_of_problem(problem, np.delete(np.arange(14), 3)), SHARP)
    silent = solve(rows_of_problem(problem, slice(None), weight), SHARP)
    assert silent.minimum == pytest.approx(without.minimum, rel=1e-10)
    np.testing.assert_allclose(silent.state.parts[0].T, without.state.parts[0].T, atol=1e-6)


# --- margins that are certain ---------------------------------------------------------------------------------------


def tight(kind, n_classes, bias_variance):
    """A margin that can be kept, but not by the prior and any bias."""
    problem = problem_of(kind, Laplace(20.0, 2.0), n_classes, bias_variance, n=6, seed=7)
    near = problem.margins(solve(problem, SHARP).state)[problem.constraints.effective].min()
    return replace(problem, margin=Fixed(near - 0.05))


@pytest.mark.parametrize(("n_classes", "bias_variance"), [(2, np.inf), (2, 2.0), (3, np.inf)])
@pytest.mark.parametrize("kind", ["fixed", "integrated"])
def test_a_fixed_margin_holds_for_all_rows_and_only_tight_ones_have_multipliers(kind, n_classes, bias_variance):
    problem = tight(kind, n_classes, bias_variance)
    solution = solve(problem, SHARP)
    live = problem.constraints.effective
    over = (problem.margins(solution.state) - problem.margin.target)[live]
    lam = solution.multipliers[live]
    assert over.min() >= -1e-6 and lam.max() > 1e-3 and solution.minimum > 1e-3
    assert (lam >= 0).all() and (over > 1e-4).any() and (lam[over > 1e-4] < 1e-6).all()
    assert solution.minimum == pytest.approx(problem.divergence(solution.state), rel=1e-12)
    assert solution.dual == pytest.approx(solution.minimum, abs=2e-5)
    total = stats_at(problem, solution.multipliers)
    for part, prior, gradient in zip(solution.state.parts, problem.prior.parts, total.gradient):
        np.testing.assert_allclose(part.T, prior.T + gradient, atol=1e-3)
    if np.isinf(bias_variance):
        np.testing.assert_allclose(total.bias_gradient, 0.0, atol=1e-5)
    assert solution.minimum == pytest.approx(Dual(problem).maximum(), abs=1e-5)


def test_a_fixed_margin_is_reached_by_shifting_the_prior_not_by_a_large_C_alone(monkeypatch):
    """A Gaussian prior that is not shifted leaves every tight row short of the margin by lambda / C^2."""
    monkeypatch.setattr(ExponentialFamilyProblem, "first_C", 10.0)
    monkeypatch.setattr(exponential_family_solving, "GROWTH", 1.0)
    problem = tight("fixed", 2, np.inf)
    solution = solve(problem, SHARP)
    over = (problem.margins(solution.state) - problem.margin.target)[problem.constraints.effective]
    assert solution.multipliers.max() / 10.0**2 > 1e-4  # what a Gaussian that stays would leave
    assert over.min() >= -1e-7


# --- constraints -----------------------------------------------------------------------------------------------------


def test_pairs_of_classes_are_constraints_on_differences():
    belief = np.array([[1.0, 0.0, 0.0], [0.0, 0.3, 0.7], [1 / 3, 1 / 3, 1 / 3]])
    weight = np.array([1.0, 2.0, 0.5])
    constraints = Constraints.between_classes(PairConstraints.of(belief, weight))
    np.testing.assert_allclose(constraints.coef[1, 2], [0.0, -0.4, 0.4])  # (q_b - q_c)(F_b - F_c)
    np.testing.assert_allclose(constraints.coef[0, 0], [1.0, -1.0, 0.0])
    assert constraints.n_rows == 3 and not constraints.offset.any()
    assert constraints.imposed.tolist() == [[True, True, False], [True, True, True], [True, True, True]]
    assert constraints.effective.tolist() == [[True, True, False], [True, True, True], [False, False, False]]
    part = constraints.part(np.array([2, 0]))
    assert part.weight.tolist() == [0.5, 1.0] and part.effective.sum() == 2


def test_margins_and_output_weights_are_transposes():
    rng = np.random.default_rng(0)
    own = rng.dirichlet(np.ones(3), size=5)
    rival = rng.random((5, 3)) < 0.5
    for constraints in (
        Constraints.between_classes(PairConstraints.of(own, np.ones(5))),
        Constraints.against_rivals(own, rival, np.ones(5), np.zeros((5, 3))),
        Constraints.single_output(np.ones(5)),
    ):
        coef = constraints.coef
        scores, multipliers = rng.normal(size=(5, coef.shape[2])), rng.normal(size=(5, coef.shape[1]))
        np.testing.assert_allclose(constraints.margins(scores), np.einsum("nps,ns->np", coef, scores), atol=1e-12)
        np.testing.assert_allclose(
            constraints.output_weights(multipliers), np.einsum("np,nps->ns", multipliers, coef), atol=1e-12
        )
        rows, k = np.array([4, 0, 4]), np.zeros(3, dtype=int)
        np.testing.assert_array_equal(constraints.coefficients(rows, k), coef[rows, k])
        np.testing.assert_array_equal(constraints.part(rows).coef, coef[rows])
    np.testing.assert_allclose(Constraints.against_rivals(own, rival, np.ones(5), own).coef[2, 1], own[2] - [0, 1, 0])


def test_constraints_without_effect_still_have_a_loss():
    problem = problem_of("fixed", MARGINS["laplace"], 2, 2.0)
    belief = np.eye(2)[np.arange(14) % 2]
    belief[[2, 5]] = 0.5
    constraints = Constraints.between_classes(PairConstraints.of(belief, problem.constraints.weight))
    doubtful = replace(problem, constraints=constraints)
    solution = solve(doubtful, SHARP)
    without = solve(rows_of_problem(doubtful, np.delete(np.arange(14), [2, 5])), SHARP)
    lost = float(problem.constraints.weight[[2, 5]].sum() * problem.margin.loss(np.zeros(1))[0])
    assert solution.minimum == pytest.approx(without.minimum + lost, rel=1e-10)
    assert solution.dual == pytest.approx(without.dual + lost, rel=1e-9)
    assert not solution.multipliers[[2, 5]].any()


def test_a_single_output_may_be_asked_to_be_large():
    """No bias, features of any kind: the expected log-probability of every row shall reach a margin."""
    rng = np.random.default_rng(0)
    phi = (rng.random((9, 5)) < 0.4).astype(float)
    given = rng.normal(size=9)
    constraints = Constraints.single_output(np.ones(9), given)
    assert (
        constraints.imposed.all()
        and constraints.offset.shape == (9, 1)
        and not Constraints.single_output(np.zeros(2)).imposed.any()
    )
    prior = JointDistribution((Dirichlets(rng.uniform(1, 2, size=5), np.array([0, 0, 1, 1, 1])),), np.zeros(0))
    problem = ExponentialFamilyProblem(
        (FeatureMatrix(phi),), (0,), constraints, Laplace(1.0, 0.5), prior, np.zeros((1, 0)), np.inf
    )
    solution = solve(problem, SHARP)

    def dual(lam):
        T = prior.parts[0].T + lam @ phi
        own = Dirichlets(T, prior.parts[0].group).log_partition - prior.parts[0].log_partition
        return float((problem.margin.potential(lam) - lam * given).sum()) - own

    best = minimize(lambda lam: -dual(lam), np.full(9, 0.1), bounds=[(0, 1 - 1e-9)] * 9, tol=1e-14)
    assert solution.minimum == pytest.approx(-best.fun, abs=1e-7) and solution.dual == pytest.approx(
        -best.fun, abs=1e-7
    )


def test_nothing_to_ask_leaves_the_prior():
    problem = problem_of("integrated", Laplace(1.0, -1e3))
    solution = solve(problem, SHARP)
    assert solution.minimum == 0.0 and solution.dual == 0.0 and not solution.multipliers.any()
    assert all(part.T is prior.T for part, prior in zip(solution.state.parts, problem.prior.parts))


def test_balanced_multipliers_keep_the_equality_of_a_flat_bias():
    for n_classes in (2, 3, 4):
        problem = problem_of("fixed", MARGINS["laplace"], n_classes)
        lam = 0.7 * np.random.default_rng(0).random(problem.constraints.signs.shape) * problem.constraints.effective
        even = balance_multipliers(problem, lam)
        np.testing.assert_allclose(stats_at(problem, even).bias_gradient, 0.0, atol=1e-12)
        assert (even >= 0).all() and (even < problem.margin.upper).all() and not even[lam == 0].any()
        assert balance_multipliers(replace(problem, bias_variance=1.0), lam) is lam


def test_a_move_out_of_the_domain_is_halved():
    problem = problem_of("integrated", MARGINS["laplace"])
    out = tuple(-1.5 * part.T for part in problem.prior.parts)
    stepped = problem.step(problem.prior, out, np.ones(1))
    np.testing.assert_allclose(stepped.parts[0].T, 0.25 * problem.prior.parts[0].T)
    np.testing.assert_allclose(stepped.bias, problem.prior.bias + 0.5)


def test_local_problems_take_over_where_newton_does_not_arrive(monkeypatch):
    problem = problem_of("fixed", MARGINS["gaussian"])
    best = solve(problem, SHARP)
    monkeypatch.setattr(exponential_family_solving, "NEWTON_STEPS", 2)
    run = maximize(problem, SHARP, problem.prior)
    assert run.status is Status.CONVERGED and run.n_passes > 2
    assert -run.objective == pytest.approx(best.minimum, rel=1e-9)
    short = maximize(problem, replace(SHARP, max_iter=2), problem.prior)
    assert short.status is Status.MAX_PASSES and short.n_passes == 2
