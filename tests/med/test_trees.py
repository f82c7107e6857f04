"""Discriminants of trees and mixtures of trees: bounds that never rise, and what rows and components share."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp, xlogy

from mixent import MEDTreeClassifier
from mixent.core.blocks import Blocks, NumberedRows
from mixent.core.driver import Status, Stop, run
from mixent.core.executors import Serial
from mixent.data import read_features
from mixent.med import model_training_sets, training_sets
from mixent.med import trees as module
from mixent.med.constraints import Constraints, PairConstraints, contrasts
from mixent.med.exponential_family_solving import solve
from mixent.med.families import SingleTree, TreeDistribution, TreeTables
from mixent.med.latent import LatentProblem, alternate_steps
from mixent.med.margins import Fixed, Laplace
from mixent.med.model_training_sets import solve_near
from mixent.med.solving import Search, Solution
from mixent.med.training_sets import Subset
from mixent.med.tree_columns import TreeColumns
from mixent.med.tree_mixture import TreeMixtureProblem, fit_tree_mixture
from mixent.med.tree_tables import fixed_tables
from mixent.med.trees import TreeTrainingSet
from mixent.options import Tables, Trees


def rows_of(n=90, n_classes=2, seed=0, missing=0.0):
    """Words whose columns go together one way or the other, hidden, and differently so in every class."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    hidden = rng.integers(2, size=n)
    a = rng.integers(3, size=n)
    b = np.where(rng.random(n) < 0.85, (a + hidden + y) % 3, rng.integers(3, size=n))
    c = np.where(rng.random(n) < 0.8, (b + hidden) % 2, rng.integers(2, size=n))
    d = (rng.random(n) < 0.3 + 0.4 * y / n_classes).astype(int)
    X = "v" + pd.DataFrame({"a": a, "b": b, "c": c, "d": d}).astype(str)
    return X.mask(rng.random(X.shape) < missing, None).astype(object), y


def training_set_of(X, **options):
    table = read_features(MEDTreeClassifier(), X, reset=True)
    plain = {
        "tables": "fixed",
        "objective": "margin",
        "sharing": "separate",
        "structure_prior": "uniform",
        "continuous": "quantized",
        "n_trees": 1,
        "ess": 1.0,
        "seed": 0,
        "cache": {},
    }
    return TreeTrainingSet(table, **{**plain, **options})


def subset_of(y, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    return Subset(np.arange(len(y)), np.eye(y.max() + 1)[y], np.ones(len(y), dtype=bool), weight, False)


def cells_of(X):
    table = read_features(MEDTreeClassifier(), X, reset=True)
    columns = TreeColumns.of(table, np.ones((len(X), 1)), np.ones(len(X)), "quantized", True)
    return columns, columns(table)


def constraints_of(y, weight=None):
    return PairConstraints.of(np.eye(y.max() + 1)[y], np.ones(len(y)) if weight is None else weight)


SHARP = Search(gap=1e-10)


# --- mixtures by EM -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_em_never_lowers_its_objective(seed):
    X, _ = rows_of(missing=0.1)
    columns, cells = cells_of(X)
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.3, 2.0, size=len(X))
    problem = TreeMixtureProblem(cells, weight, columns, 1.5)
    start = problem.maximum(rng.dirichlet(np.ones(3), size=len(X)))
    source = Blocks(NumberedRows.of(weight), 8, 1 << 40)
    result = run(problem, source, start, stop=Stop(1e-6, 300), executor=Serial())
    objective = [step.objective for step in result.trace]
    assert result.status is Status.CONVERGED and len(objective) > 5 and np.diff(objective).min() > -1e-9
    assert all(step.accepted and step.step == 1.0 for step in result.trace)
    even = np.concatenate([np.full(s, 1 / s) for s in columns.layout.sizes])[None]
    log_joint, prior = [], 0.0
    for share, tables, tree in zip(result.params.log_shares, result.params.tables, result.params.trees):
        edges = tables.features(cells, columns.layout)
        log_joint.append(share + cells @ tables.log_marginals + edges.to_array() @ tree.T)
        at_even = tables.features(even, columns.layout)
        prior += share + 1.5 * float(even[0] @ tables.log_marginals + at_even.to_array()[0] @ tree.T)
    wanted = float(weight @ logsumexp(log_joint, axis=0)) + prior
    assert result.objective == pytest.approx(wanted, rel=1e-10)
    assert np.exp(result.params.log_shares).sum() == pytest.approx(1.0)


def test_the_maximum_given_who_belongs_where_is_one():
    """No other shares, tables or tree do better for these responsibilities."""
    X, _ = rows_of()
    columns, cells = cells_of(X)
    resp = np.random.default_rng(0).dirichlet(np.ones(2), size=len(X))
    problem = TreeMixtureProblem(cells, np.ones(len(X)), columns, 1.0)
    even = np.concatenate([np.full(s, 1 / s) for s in columns.layout.sizes])[None]

    def bound(params):
        prior = (problem.log_joint(params, even)[0] - params.log_shares).sum() + params.log_shares.sum()
        return float((resp * problem.log_joint(params, cells)).sum()) + prior

    best = problem.maximum(resp)
    rng = np.random.default_rng(1)
    for _ in range(5):
        other = problem.maximum(np.maximum(resp + 0.1 * rng.normal(size=resp.shape), 0))
        assert bound(other) < bound(best)
        for mixed in (
            replace(best, trees=other.trees[::-1]),
            replace(best, tables=other.tables),
            replace(best, log_shares=other.log_shares),
        ):
            assert bound(mixed) <= bound(best) + 1e-9


def test_a_mixture_of_one_tree_is_the_likeliest_tree():
    X, _ = rows_of()
    columns, cells = cells_of(X)
    weight = np.random.default_rng(0).uniform(size=len(X))
    mixture, resp = fit_tree_mixture(cells, weight, columns, 1.0, 1, 0)
    alone = fixed_tables(cells, weight, columns, 1.0, np.zeros(4))
    assert (resp == 1).all() and resp.shape == (len(X), 1) and mixture.log_shares.tolist() == [0.0]
    np.testing.assert_array_equal(mixture.tables[0].log_ratios, alone.log_ratios)
    np.testing.assert_array_equal(mixture.trees[0].T, alone.likeliest.T)


def test_what_rows_belong_to_sums_to_one_however_many_they_are():
    X, _ = rows_of(60)
    columns, cells = cells_of(X[["a", "b"]])
    for often in (1, 600):
        many = np.tile(cells, (often, 1))
        problem = TreeMixtureProblem(many, np.ones(len(many)), columns, 1.0)
        mixture, resp = fit_tree_mixture(many, np.ones(len(many)), columns, 1.0, 2, 0)
        np.testing.assert_allclose(resp.sum(axis=1), 1.0, rtol=1e-12)
        for tables, own in zip(mixture.tables, np.exp(problem.log_joint(mixture, many)).T):
            assert 0 < tables.rows < len(many) + 2 and own.min() > 0
        assert sum(tables.rows for tables in mixture.tables) == pytest.approx(len(many) + 2)  # each row once, ess twice


def test_two_trees_explain_what_one_cannot():
    """Pairs of columns that go together in one half of the rows, and other pairs in the other half."""
    rng = np.random.default_rng(0)
    hidden = np.repeat([0, 1], 150)
    a, b = rng.integers(4, size=(2, 300))
    X = "v" + pd.DataFrame({"a": a, "b": np.where(hidden, b, a), "c": np.where(hidden, a, b), "d": b}).astype(str)
    columns, cells = cells_of(X)
    value = []
    for K in (1, 2):
        mixture, resp = fit_tree_mixture(cells, np.ones(300), columns, 1.0, K, 0)
        problem = TreeMixtureProblem(cells, np.ones(300), columns, 1.0)
        value.append(float(logsumexp(problem.log_joint(mixture, cells), axis=1).mean()))
    apart = a != b
    agree = (resp.argmax(axis=1) == hidden)[apart].mean()
    assert value[1] > value[0] + 0.3 and max(agree, 1 - agree) > 0.95


# --- latent variables -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("tables", ["fixed", "integrated"])
def test_the_relative_entropy_of_the_bound_never_rises(tables, n_classes):
    """Theorem 6."""
    X, y = rows_of(60, n_classes)
    training_set = training_set_of(X, n_trees=2, tables=tables)
    discriminant = training_set.discriminant(subset_of(y), np.inf)
    solution = discriminant.solve(constraints_of(y), Laplace(1.0, 3.0), replace(SHARP, gap=1e-7))
    entropy = [-step.objective for step in solution.run.trace]
    assert solution.run.status is Status.CONVERGED and len(entropy) > 3
    assert np.diff(entropy).max() < 1e-8 and entropy[-1] < entropy[0] - 1e-4
    assert solution.minimum == entropy[-1] and solution.gap < 1e-5
    assert solution.multipliers.shape == (60, n_classes * (n_classes - 1) // 2)


def test_what_is_hidden_is_distributed_over_the_own_class():
    X, y = rows_of(90, 3)
    discriminant = training_set_of(X, n_trees=2).discriminant(subset_of(y), np.inf)
    assert discriminant.model.class_of.tolist() == [0, 0, 1, 1, 2, 2] and discriminant.model.is_mixture
    hidden = discriminant._responsibilities(discriminant.prior, y)
    np.testing.assert_allclose(hidden.sum(axis=1), 1.0, rtol=1e-12)
    own = discriminant.model.class_of == y[:, None]
    assert not hidden[~own].any() and (hidden[own] > 0).all()
    outputs = discriminant.model.outputs(discriminant.prior, discriminant.cells)
    joint = np.where(own, outputs, -np.inf)
    np.testing.assert_allclose(hidden, np.exp(joint - logsumexp(joint, axis=1, keepdims=True)), rtol=1e-10)


def test_the_bound_touches_the_log_probability():
    """With what is hidden distributed as the model has it, E log p(x, h) + H is log p(x); with any other it is less."""
    X, y = rows_of(60)
    discriminant = training_set_of(X, n_trees=2).discriminant(subset_of(y), 2.0)
    outputs = discriminant.model.outputs(discriminant.prior, discriminant.cells)
    whole = discriminant.model.merged(outputs)
    constraints = constraints_of(y)
    tight = discriminant._mixture_constraints(discriminant._responsibilities(discriminant.prior, y), y, constraints)
    loose = discriminant._mixture_constraints((discriminant.model.class_of == y[:, None]) / 2.0, y, constraints)
    for constraints, slack in ((tight, 0.0), (loose, 1e-3)):
        kept = np.einsum("nps,ns->np", constraints.coef, outputs) + constraints.offset
        for k, s in enumerate(discriminant.model.class_of):
            rival = y != s
            assert (constraints.imposed[:, k] == rival).all()
            truth = whole[np.arange(60), y] - outputs[:, k]
            assert (kept[rival, k] <= truth[rival] + 1e-9).all()
            assert (np.abs(kept - truth[:, None])[rival, k].max() < 1e-9) == (slack == 0.0)
    np.testing.assert_allclose(loose.offset, np.log(2.0))


@pytest.mark.parametrize("margin", [Laplace(1.0, 2.0), Fixed(-2.5)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_mixture_of_one_component_is_no_mixture(n_classes, margin):
    X, y = rows_of(60, n_classes)
    discriminant = training_set_of(X).discriminant(subset_of(y), 2.0)
    plain = discriminant.solve(constraints_of(y), margin, SHARP)
    mixed = discriminant._solve_mixture(constraints_of(y), margin, SHARP, None)
    assert mixed.minimum == pytest.approx(plain.minimum, rel=1e-7, abs=1e-9)
    np.testing.assert_allclose(mixed.scores, plain.scores, atol=1e-4)
    np.testing.assert_allclose(mixed.multipliers, plain.multipliers, atol=1e-4)


def test_a_mixture_satisfies_fixed_margins():
    X, y = rows_of(40)
    training_set = training_set_of(X, n_trees=2)
    discriminant = training_set.discriminant(subset_of(y), np.inf)
    soft = discriminant.solve(constraints_of(y), Laplace(5.0, 1.0), SHARP)
    sign = np.where(y == 1, 1, -1)
    at = float((sign * (soft.scores[:, 1] - soft.scores[:, 0])).min()) - 0.3
    solution = discriminant.solve(constraints_of(y), Fixed(at), SHARP)
    assert solution.run.status is Status.CONVERGED
    assert (sign * (solution.scores[:, 1] - solution.scores[:, 0])).min() > at - 1e-5


@pytest.mark.parametrize(("n_trees", "n", "seed", "above"), [(2, 24, 1, 0.3), (3, 30, 2, -0.05)])
def test_a_mixture_keeps_the_fixed_margin_between_classes_not_only_between_their_trees(n_trees, n, seed, above):
    """A class with K trees as probable as each other scores log K more than each of them."""
    X, y = rows_of(n, 2, seed)
    discriminant = training_set_of(X, n_trees=n_trees).discriminant(subset_of(y), np.inf)
    sign = np.where(y == 1, 1, -1)
    soft = discriminant.solve(constraints_of(y), Laplace(5.0, 1.0), Search(1e-6, 60))
    target = float((sign * (soft.scores[:, 1] - soft.scores[:, 0])).min()) + above
    solution = discriminant.solve(constraints_of(y), Fixed(target), Search(1e-8, 200))
    assert solution.run.status is Status.CONVERGED and solution.multipliers.any()
    assert (sign * (solution.scores[:, 1] - solution.scores[:, 0])).min() > target - 1e-5
    objectives = np.array(solution.run.objectives)
    assert (np.diff(objectives) > -1e-8 * n).all()  # the shares of the trees of the other class are steps of the same


def test_two_steps_stop_where_nothing_is_revealed():
    calls = []

    def step(hidden, before):
        calls.append(hidden)
        return Solution(None, None, np.zeros((2, 1)), 1.0 / hidden, 0.0, np.zeros((2, 2)))

    problem = LatentProblem(step, lambda result: min(1.0 / result.minimum + 1.0, 4.0))
    result = alternate_steps(problem, 1.0, np.ones(2), Search(), 1e-9)
    assert calls == [1.0, 2.0, 3.0, 4.0, 4.0] and result.params.hidden == 4.0
    assert [step.objective for step in result.trace] == pytest.approx([-1.0, -1 / 2, -1 / 3, -1 / 4, -1 / 4])


# --- discriminants --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tables", ["fixed", "integrated"])
def test_the_prior_is_each_class_alone_and_the_bias_its_share(tables):
    X, y = rows_of(91, 3)
    weight = np.random.default_rng(0).uniform(size=91)
    training_set = training_set_of(X, tables=tables)
    discriminant = training_set.discriminant(subset_of(y, weight), np.inf)
    shares = np.array([weight[y == s].sum() for s in range(3)])
    log_shares = contrasts(3) @ discriminant.prior.bias
    np.testing.assert_allclose(log_shares - log_shares.mean(), np.log(shares) - np.log(shares).mean(), atol=1e-12)
    assert [type(p) for p in discriminant.prior.parts] == [TreeDistribution if tables == "fixed" else TreeTables] * 3
    if tables == "fixed":
        for s, tables in enumerate(discriminant.model.tables):
            own = fixed_tables(discriminant.cells, weight * (y == s), discriminant.model.columns, 1.0, np.zeros(4))
            np.testing.assert_allclose(tables.log_ratios, own.log_ratios, rtol=1e-12)
    else:
        assert [p.rows for p in discriminant.prior.parts] == pytest.approx(shares + 1.0)
    assert training_set.discriminant(subset_of(y, weight), np.inf) is discriminant
    assert training_set.discriminant(subset_of(y), np.inf) is not discriminant


def test_margins_before_discrimination_are_differences_of_expected_log_probabilities():
    X, y = rows_of(60, 3, missing=0.1)
    discriminant = training_set_of(X).discriminant(subset_of(y), np.inf)
    scores = []
    for tables, own in zip(discriminant.model.tables, contrasts(3) @ discriminant.prior.bias):
        features = tables.features(discriminant.cells, discriminant.model.columns.layout).to_array()
        scores.append(discriminant.cells @ tables.log_marginals + features.sum(axis=1) / 2 + own)  # an edge has 2 / n
    scores = np.array(scores).T
    constraints = constraints_of(y)
    kept = discriminant.prior_margins(constraints)
    for k, (a, b) in enumerate([(0, 1), (0, 2), (1, 2)]):
        for t in np.flatnonzero((y == a) | (y == b)):
            sign = 1 if y[t] == a else -1
            assert kept[t, k] == pytest.approx(sign * (scores[t, a] - scores[t, b]), rel=1e-9, abs=1e-10)


def test_scores_come_in_portions_of_any_size(monkeypatch):
    X, y = rows_of(60, missing=0.1)
    training_set = training_set_of(X, n_trees=2)
    discriminant = training_set.discriminant(subset_of(y), np.inf)
    whole = discriminant.model.scores(discriminant.prior, training_set.table)
    monkeypatch.setattr(training_sets, "BATCH_ROWS", 7)
    np.testing.assert_allclose(discriminant.model.scores(discriminant.prior, training_set.table), whole, rtol=1e-12)
    assert whole.shape == (60, 2)


@pytest.mark.parametrize("objective", ["margin", "likelihood"])
def test_a_shared_structure_is_one(objective):
    X, y = rows_of(60, 3)
    discriminant = training_set_of(X, sharing="shared", objective=objective).discriminant(subset_of(y), np.inf)
    assert len(discriminant.prior.parts) == 1 and discriminant.family_of == (0, 0, 0)
    assert discriminant.generative == (objective == "likelihood")
    if objective == "likelihood":
        gains = sum(tables.gains for tables in discriminant.model.tables)
        rest = [SingleTree(np.roll(discriminant.prior.parts[0].T, k)) for k in range(1, 6)]
        own = float(gains @ discriminant.prior.parts[0].T)
        assert all(own >= gains @ tree.T for tree in rest if len(np.unique(tree.edges)) == 4)
    solution = discriminant.solve(constraints_of(y), Laplace(1.0, 1.0), SHARP)
    if objective == "likelihood":
        assert (
            solution.minimum == 0.0
            and not solution.multipliers.any()
            and solution.state.parts == discriminant.prior.parts
        )


@pytest.mark.parametrize("structure_prior", ["uniform", "posterior"])
@pytest.mark.parametrize("tables", ["fixed", "integrated"])
def test_trees_are_as_probable_as_asked_to_begin_with(tables, structure_prior):
    X, y = rows_of()
    training_set = training_set_of(X, tables=tables, structure_prior=structure_prior)
    for part in training_set.discriminant(subset_of(y), np.inf).prior.parts:
        assert np.allclose(part.trees.mean, 0.5) == (structure_prior == "uniform")


def test_divergence_is_that_of_all_parts():
    X, y = rows_of(60)
    discriminant = training_set_of(X).discriminant(subset_of(y), 2.0)
    margin = Laplace(1.0, 2.0)
    solution = discriminant.solve(constraints_of(y), margin, SHARP)
    problem = discriminant.problem(Constraints.between_classes(constraints_of(y)), margin)
    assert discriminant.divergence(solution) == pytest.approx(problem.divergence(solution.state), rel=1e-12)
    loss = margin.loss(problem.margins(solution.state))[problem.constraints.imposed].sum()
    assert discriminant.divergence(solution) + loss == pytest.approx(solution.minimum, rel=1e-10)
    assert solve(problem, SHARP).minimum == pytest.approx(solution.minimum, rel=1e-12)


def test_folds_are_solved_to_a_gap_of_their_own():
    X, _ = rows_of(60)
    assert training_set_of(X).for_folds(Search(gap=1e-6)).gap == 1e-5
    assert training_set_of(X).for_folds(Search(gap=1e-3)).gap == 1e-3


@pytest.mark.parametrize("tables", ["fixed", "integrated"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_far_above_the_target_are_left_out_without_changing_the_solution(tables, n_classes, monkeypatch):
    """The multipliers of such rows are zero, so that J and the gap are those of all rows."""
    X, y = rows_of(240, n_classes)
    discriminant = training_set_of(X, tables=tables).discriminant(subset_of(y), 1.0)
    problem = discriminant.problem(Constraints.between_classes(constraints_of(y)), Laplace(1.0, -1.0))
    whole = solve(problem, SHARP)
    monkeypatch.setattr(model_training_sets, "MANY", 100)
    near = solve_near(problem, SHARP, None)
    far = (~problem.constraints.imposed | (problem.margins(problem.prior) > 1.0)).all(axis=1)
    assert 0.1 * len(far) < far.sum()
    assert near.minimum == pytest.approx(whole.minimum, rel=1e-10) and near.dual == pytest.approx(whole.dual, rel=1e-10)
    np.testing.assert_allclose(near.multipliers, whole.multipliers, atol=1e-5)
    np.testing.assert_array_equal(near.scores, problem.training_scores(near.state))
    start = solve_near(problem, SHARP, near.state)
    assert start.run.n_passes == 0


def test_rows_left_out_that_end_below_the_target_are_added(monkeypatch):
    X, y = rows_of(240)
    discriminant = training_set_of(X).discriminant(subset_of(y), 1.0)
    problem = discriminant.problem(Constraints.between_classes(constraints_of(y)), Laplace(3.0, 0.5))
    whole = solve(problem, SHARP)
    monkeypatch.setattr(model_training_sets, "DISTANCE", 0.0)
    monkeypatch.setattr(model_training_sets, "MANY", 100)
    near = solve_near(problem, SHARP, None)
    assert near.dual == pytest.approx(whole.dual, rel=1e-10)
    np.testing.assert_allclose(near.multipliers, whole.multipliers, atol=1e-5)


def test_variances_within_classes():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = pd.DataFrame({"k": list("ab") * 40, "x": rng.normal(size=80) + 5 * y})
    discriminant = training_set_of(X, continuous="gaussian").discriminant(subset_of(y), np.inf)
    columns, cells = discriminant.model.columns, discriminant.cells
    within = module._within(cells, np.eye(2)[y], columns)
    z = cells[:, columns.layout.starts[1] + 1]
    assert within[0] == 0.0
    assert within[1] == pytest.approx(0.5 * (z[y == 0].var() + z[y == 1].var()), rel=1e-10)


def test_entropies_are_given():
    X, y = rows_of(40)
    discriminant = training_set_of(X, n_trees=2).discriminant(subset_of(y), np.inf)
    hidden = discriminant._responsibilities(discriminant.prior, y)
    constraints = discriminant._mixture_constraints(hidden, y, constraints_of(y))
    np.testing.assert_allclose(constraints.offset[:, 0], -xlogy(hidden, hidden).sum(axis=1), rtol=1e-12)
    rivals = discriminant.model.class_of != y[:, None]
    np.testing.assert_allclose(constraints.coef.sum(axis=2), 0.0, atol=1e-12)
    np.testing.assert_array_equal(constraints.effective, rivals)
    lam = np.random.default_rng(0).uniform(size=rivals.shape) * rivals
    np.testing.assert_allclose(discriminant._by_pair(lam, y)[:, 0], lam.sum(axis=1), rtol=1e-12)


def test_a_fitted_model_keeps_nothing_it_can_compute_again():
    X = np.random.default_rng(0).choice(list("ab"), size=(80, 40))
    model = MEDTreeClassifier(C=1, calibration=None).fit(X, X[:, 0])
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert len(pickle.dumps(model.distribution_)) < 4 * 8 * sum(len(part.T) for part in model.distribution_.parts)


def test_mutual_information_is_that_of_rows_that_have_both():
    bit = np.tile(["a", "b"], 100)
    X = np.column_stack([bit, bit]).astype(object)
    X[::4, 1] = X[1::4, 1] = None
    y = np.repeat(["u", "v"], 100)
    model = MEDTreeClassifier(Tables(ess=1e-6), C=1, calibration=None).fit(X, y)
    for information in model.mutual_information_:
        assert information[0, 1] == pytest.approx(np.log(2), abs=1e-4)


def test_renaming_classes_of_mixtures_changes_nothing_else():
    rng = np.random.default_rng(0)
    X = rng.choice(list("abc"), size=(120, 4))
    y = np.where(X[:, 0] == X[:, 1], "u", "v")
    options = {"trees": Trees(n_trees=2), "C": 1, "calibration": None, "random_state": 0}
    model = MEDTreeClassifier(**options).fit(X, y)
    two = MEDTreeClassifier(**options).fit(X, np.where(y == "u", "z", "v"))
    np.testing.assert_allclose(model.decision_function(X), -two.decision_function(X), atol=1e-5)


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
def test_a_constant_number_has_no_effect():
    rng = np.random.default_rng(0)
    age = rng.normal(40, 10, 300)
    X = np.column_stack([age, np.full(300, 3.0)])
    y = np.where(age + rng.normal(0, 5, 300) > 40, "old", "young")
    model = MEDTreeClassifier(Tables(continuous="gaussian"), C=1, calibration=None).fit(X, y)
    new = np.array([[20.0, 3.0], [60.0, 3.0]])
    np.testing.assert_allclose(
        model.decision_function(new + np.array([0.0, 5.0])), model.decision_function(new), rtol=1e-12
    )
