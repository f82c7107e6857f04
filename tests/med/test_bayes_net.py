"""MEDBayesNetClassifier: the dual against its definition, the prior against integrals, and as a user meets it."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import dblquad, quad
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import gammaln, psi
from sklearn.naive_bayes import CategoricalNB
from sklearn.utils.estimator_checks import check_estimator

from mixent import MEDBayesNetClassifier
from mixent.data import Column, Schema, Table
from mixent.med import training_sets
from mixent.med.bayes_net import Net, NetModel, NetTrainingSet, cells_of, row_products
from mixent.med.constraints import Constraints, PairConstraints, contrasts, pairs
from mixent.med.exponential_family import JointDistribution
from mixent.med.exponential_family_solving import stats_at
from mixent.med.families import Dirichlets
from mixent.med.margins import Gaussian, Laplace
from mixent.med.net_structure import find_cycle
from mixent.med.solving import Search
from mixent.med.training_sets import Subset
from mixent.med.tree_columns import CodedColumn
from mixent.options import Margin

SIZES = (2, 3, 2, 4)
CHAIN = [(0, 1), (1, 2), (2, 3)]
DENSE = [(0, 2), (1, 2), (0, 3)]


def draw(n=120, n_classes=2, seed=0, noise=0.35):
    """Codes (n, 4) that depend on the class and on each other, and labels."""
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)]
    Z = np.empty((n, len(SIZES)), int)
    before = y
    for v, size in enumerate(SIZES):
        before = np.where(rng.random(n) < noise, rng.integers(size, size=n), (before + y) % size)
        Z[:, v] = before
    for v, size in enumerate(SIZES):
        Z[:size, v] = np.arange(size)  # every value occurs
    return Z, y


def words(Z):
    """The same as a table of text."""
    return pd.DataFrame({f"v{v}": [f"k{code}" for code in column] for v, column in enumerate(Z.T)})


def in_a_row(names):
    """A structure: each column is the next one's parent."""
    return list(itertools.pairwise(names))


def parents_of(edges):
    return tuple(tuple(sorted(u for u, v in edges if v == w)) for w in range(len(SIZES)))


def discriminant(Z, y, edges, ess=10.0, bias_variance=1.0):
    columns = tuple(Column(f"v{v}", "categorical", tuple(range(size))) for v, size in enumerate(SIZES))
    table = Table(np.empty((len(Z), 0)), Z.astype(np.int32), Schema(columns, True))
    n_classes = y.max() + 1
    training_set = NetTrainingSet(table, (parents_of(edges),) * n_classes, ess, False, False)
    part = Subset(np.arange(len(y)), np.eye(n_classes)[y], np.ones(len(y), bool), np.ones(len(y)), False)
    return training_set.discriminant(part, bias_variance), PairConstraints.of(part.prior, part.weight)


def log_z(weights, Z, edges, ess):
    """log Z of one class at row weights, cell by cell."""
    value = 0.0
    for v, above in enumerate(parents_of(edges)):
        q = int(np.prod([SIZES[u] for u in above]))
        for values in itertools.product(*(range(SIZES[u]) for u in above)):
            here = (Z[:, list(above)] == values).all(axis=1)
            N = np.array([weights[here & (Z[:, v] == r)].sum() for r in range(SIZES[v])]) + ess / (q * SIZES[v])
            value += gammaln(N).sum() - gammaln(N.sum())
    return value


def dual(lam, Z, y, edges, ess, margin, bias_variance):
    """J(l), as the docstring has it; l (n, pairs), zero for pairs without the label."""
    n_classes = y.max() + 1
    a, b = pairs(n_classes)
    sign = (y[:, None] == a) * 1.0 - (y[:, None] == b)
    own = np.eye(n_classes)[y]
    alpha = np.zeros(own.shape)
    for k in range(len(a)):
        alpha[:, a[k]] += sign[:, k] * lam[:, k]
        alpha[:, b[k]] -= sign[:, k] * lam[:, k]
    M = contrasts(n_classes)
    bias_gradient = alpha.sum(axis=0) @ M
    start = 2.0 * M.T @ np.log(own.sum(axis=0))
    value = (
        margin.potential(lam)[sign != 0].sum()
        - bias_gradient @ start
        - 0.5 * bias_variance * bias_gradient @ bias_gradient
    )
    for s in range(n_classes):
        value -= log_z(own[:, s] + alpha[:, s], Z, edges, ess) - log_z(own[:, s], Z, edges, ess)
    return value


def tables_by_hand(Z, y, edges, ess):
    """Expected log-probabilities (n, C) of the prior."""
    out = np.zeros((len(Z), y.max() + 1))
    for s, (v, above) in itertools.product(range(y.max() + 1), enumerate(parents_of(edges))):
        q = np.prod([SIZES[u] for u in above])
        for t, row in enumerate(Z):
            here = (Z[:, list(above)] == row[list(above)]).all(axis=1) & (y == s)
            out[t, s] += psi((here & (Z[:, v] == row[v])).sum() + ess / (q * SIZES[v])) - psi(here.sum() + ess / q)
    return out


# --- the mathematics ----------------------------------------------------------------------------------------------


def test_products_of_cells_are_those_of_dense_rows():
    rng = np.random.default_rng(0)
    a, b = (rng.random((30, k)) * (rng.random((30, k)) < 0.4) for k in (3, 5))
    wanted = (a[:, :, None] * b[:, None, :]).reshape(30, 15)
    np.testing.assert_array_equal(row_products(csr_array(a), csr_array(b)).toarray(), wanted)


def test_cells_of_categories_are_those_written_out():
    Z, _ = draw()
    Z[::5] = -1  # missing
    columns = tuple(Column(f"v{v}", "categorical", tuple(range(size))) for v, size in enumerate(SIZES))
    table = Table(np.empty((len(Z), 0)), Z.astype(np.int32), Schema(columns, True))
    for place, size in enumerate(SIZES):
        column = CodedColumn(place, size)
        np.testing.assert_array_equal(cells_of(column, table).toarray(), column.cells(table))


def test_a_row_adds_one_to_one_cell_of_every_table():
    Z, y = draw()
    net_discriminant, _ = discriminant(Z, y, DENSE)
    net, row_features = net_discriminant.model.nets[0], net_discriminant.features[0]
    assert row_features is net_discriminant.features[1]  # of equal structure
    assert net.shapes == ((2,), (3,), (2, 3, 2), (2, 4)) and net.n_cells == 25 == len(net.group)
    tables = net.tables(row_features.weighted_sum(np.ones(len(Z))))
    for at in np.ndindex(2, 3, 2):
        assert tables[2][at] == (Z[:, [0, 1, 2]] == at).all(axis=1).sum()
    for at in np.ndindex(2, 4):
        assert tables[3][at] == (Z[:, [0, 3]] == at).all(axis=1).sum()
    assert all(table.sum() == pytest.approx(1) for table in net.tables(net.even))
    assert [len(set(g.ravel())) for g in net.tables(net.group)] == [1, 1, 6, 2]
    assert (net.tables(net.group)[2] == net.tables(net.group)[2][..., :1]).all()


@pytest.mark.parametrize("edges", [[], CHAIN, DENSE])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_dual_is_that_of_the_docstring(edges, n_classes):
    Z, y = draw(60, n_classes)
    net_discriminant, constraints = discriminant(Z, y, edges)
    problem = net_discriminant.problem(Constraints.between_classes(constraints), Laplace(0.5, 1.0))
    rng = np.random.default_rng(1)
    lam = np.where(constraints.imposed, rng.uniform(0, 0.05, constraints.signs.shape), 0.0)
    ours = problem.dual(net_discriminant.prior, stats_at(problem, lam))
    assert ours == pytest.approx(dual(lam, Z, y, edges, 10.0, problem.margin, 1.0), rel=1e-10)


@pytest.mark.parametrize("edges", [[], DENSE])
def test_the_gradient_of_the_dual_is_margin_asked_less_margin_kept(edges):
    Z, y = draw(50, 3)
    net_discriminant, constraints = discriminant(Z, y, edges)
    problem = net_discriminant.problem(Constraints.between_classes(constraints), Laplace(0.5, 1.0))
    lam = np.where(constraints.imposed, np.random.default_rng(2).uniform(0.01, 0.05, constraints.signs.shape), 0.0)
    total = stats_at(problem, lam)
    parts = tuple(
        part.with_natural_parameters(part.T + gradient)
        for part, gradient in zip(net_discriminant.prior.parts, total.gradient)
    )
    joint = JointDistribution(parts, net_discriminant.prior.bias + problem.bias_variance * total.bias_gradient)
    gradient = np.where(constraints.imposed, problem.margin.mean(lam) - problem.margins(joint), 0.0)
    for t, k in np.argwhere(constraints.imposed)[::9]:
        step = np.zeros_like(lam)
        step[t, k] = 1e-5
        values = [problem.dual(net_discriminant.prior, stats_at(problem, lam + sign * step)) for sign in (1, -1)]
        assert (values[0] - values[1]) / 2e-5 == pytest.approx(gradient[t, k], abs=1e-6)


@pytest.mark.parametrize(("n_classes", "edges"), [(2, []), (2, DENSE), (3, CHAIN)])
@pytest.mark.parametrize("margin", [Laplace(0.4, 1.0), Gaussian(0.3, 1.0)])
def test_the_optimum_is_that_of_a_general_optimizer(n_classes, edges, margin):
    Z, y = draw(24, n_classes, seed=3)
    net_discriminant, constraints = discriminant(Z, y, edges, ess=30.0)
    solution = net_discriminant.solve(constraints, margin, Search(1e-12))
    where = constraints.imposed

    def minus(x):
        lam = np.zeros(where.shape)
        lam[where] = x
        return -dual(lam, Z, y, edges, 30.0, margin, 1.0)

    bounds = [(0, min(margin.upper, 10.0) * (1 - 1e-9))] * where.sum()
    start = np.full(where.sum(), 0.01)
    best = minimize(minus, start, bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-15, "maxfun": 10**5})
    assert solution.dual == pytest.approx(-best.fun, abs=1e-6) and solution.dual >= -best.fun - 1e-9
    assert 0 <= solution.gap < 1e-9 and solution.multipliers.any()
    lam = np.zeros(where.shape)
    lam[where] = best.x
    np.testing.assert_allclose(solution.multipliers, lam, atol=2e-3)
    assert net_discriminant.divergence(solution) > 0


def test_a_naive_nets_log_partition_is_a_sum_of_integrals():
    """Each table by itself: Beta by quadrature, Dirichlet of three values in two dimensions."""
    counts = np.array([1.7, 2.4, 1.3, 2.2, 1.6])
    net = Net((2, 3), ((), ()))
    first_integral = quad(lambda p: p**0.7 * (1 - p) ** 1.4, 0, 1)[0]
    three = dblquad(lambda r, p: p**0.3 * r**1.2 * (1 - p - r) ** 0.6, 0, 1, 0, lambda p: 1 - p)[0]
    assert Dirichlets(counts, net.group).log_partition == pytest.approx(
        np.log(first_integral) + np.log(three), abs=1e-7
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_tree_is_the_same_from_every_root(n_classes):
    """BDeu is likelihood equivalent: the same log-partition, and so the same discriminant function."""
    Z, y = draw(80, n_classes, seed=4)
    answers = []
    for edges in (
        [(0, 1), (1, 2), (1, 3)],
        [(1, 0), (1, 2), (1, 3)],
        [(2, 1), (1, 0), (1, 3)],
        [(3, 1), (1, 0), (1, 2)],
    ):
        net_discriminant, constraints = discriminant(Z, y, edges, ess=2.0)
        solution = net_discriminant.solve(constraints, Laplace(0.3, 1.0), Search(1e-12))
        answers.append(([part.log_partition for part in net_discriminant.prior.parts], solution.scores, solution.dual))
    for log_partitions, scores, value in answers[1:]:
        np.testing.assert_allclose(log_partitions, answers[0][0], rtol=1e-12)
        np.testing.assert_allclose(scores, answers[0][1], atol=1e-6)
        assert value == pytest.approx(answers[0][2], abs=1e-9)
    other, _ = discriminant(Z, y, [*CHAIN[:2], (0, 3)], ess=2.0)
    assert abs(other.prior.parts[0].log_partition - answers[0][0][0]) > 0.1


@pytest.mark.parametrize("edges", [[], CHAIN, DENSE])
def test_without_discrimination_scores_are_expected_log_probabilities_of_counts(edges):
    Z, y = draw(70, 3)
    model = MEDBayesNetClassifier(edges, objective="likelihood", ess=2.5, calibration=None).fit(words(Z), y)
    scores = tables_by_hand(Z, y, edges, 2.5) + np.log(np.bincount(y))
    ours = model.decision_function(words(Z))
    np.testing.assert_allclose(ours - ours[:, :1], scores - scores[:, :1], atol=1e-10)
    assert not model.multipliers_.any() and model.gap_ == 0 and model.C_ is None and model.C_tried_ == []


@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_naive_bayes_is_scikit_learns(alpha):
    """ess of r alpha gives every cell alpha; predictive probabilities are then those of CategoricalNB."""
    rng = np.random.default_rng(5)
    y = rng.integers(3, size=90)
    Z = (y[:, None] + rng.integers(3, size=(90, 5))) % 4
    Z[:4] = np.arange(4)[:, None]
    theirs = CategoricalNB(alpha=alpha).fit(Z, y).predict_proba(Z)
    model = MEDBayesNetClassifier(objective="likelihood", ess=4 * alpha, calibration="predictive")
    np.testing.assert_allclose(model.fit(words(Z), y).predict_proba(words(Z)), theirs, rtol=1e-9)


def test_a_column_without_values_has_no_effect():
    net = Net((2, 0, 3), ((), (), (0, 1)))  # and neither does one below it
    assert net.n_cells == 2 and list(net.group) == [0, 0]
    assert np.isfinite(Dirichlets(1 + net.even, net.group).log_partition)


# --- the estimator ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [
        MEDBayesNetClassifier(C=1.0, calibration=None),
        MEDBayesNetClassifier(in_a_row, C=1.0, cv=3),
        MEDBayesNetClassifier(objective="likelihood", calibration="predictive"),
    ],
)
@pytest.mark.filterwarnings("ignore")  # the checks feed one row, one column, all zeros: they are about errors
def test_every_check_of_scikit_learn_passes(estimator):
    results = check_estimator(estimator, on_fail=None)
    assert len(results) >= 60
    assert [(r["check_name"], r["exception"]) for r in results if r["status"] not in ("passed", "skipped")] == []
    skipped = {r["check_name"] for r in results if r["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}


@pytest.mark.parametrize("margin", ["exponential", "laplace", "gaussian"])
def test_the_solution_keeps_the_conditions_of_an_optimum(margin):
    Z, y = draw(200, noise=0.6)
    X = words(Z)
    options = {"bias": "flat", "tol": 1e-10, "calibration": None}
    model = MEDBayesNetClassifier(DENSE, C=1.5, margin=Margin(margin, target=0.8), **options).fit(X, y)
    kept = np.where(y == 1, 1, -1) * model.decision_function(X)
    lam = model.multipliers_
    assert 0 <= model.gap_ < 1e-6 and 0 < np.mean(lam > 0) < 1
    np.testing.assert_allclose(kept[lam > 0], model.margin_.mean(lam[lam > 0]), atol=1e-4)
    assert (kept[lam == 0] >= model.margin_.mean(0.0) - 1e-6).all()
    assert abs(lam @ np.where(y == 1, 1, -1)) < 1e-6 * lam.sum()
    objective = [step.objective for step in model.run_.trace if step.accepted]
    assert len(objective) > 2 and np.diff(objective).min() > -1e-8


def test_a_small_c_leaves_the_prior_unless_the_bias_is_free():
    Z, y = draw(150, 3, noise=0.6)
    X = words(Z)
    prior = MEDBayesNetClassifier(CHAIN, objective="likelihood", calibration=None).fit(X, y).decision_function(X)
    options = {"C": 1e-4, "margin": Margin("laplace", target=2.0), "tol": 1e-12, "calibration": None}
    held = MEDBayesNetClassifier(CHAIN, **options).fit(X, y)
    np.testing.assert_allclose(held.decision_function(X), prior, atol=1e-4)
    free = MEDBayesNetClassifier(CHAIN, bias="flat", **options).fit(X, y)
    assert np.abs(free.decision_function(X) - prior).max() > 0.01
    np.testing.assert_allclose(free.counts_[0]["v1"], held.counts_[0]["v1"], atol=1e-3)


def test_counts_are_those_of_weighted_rows():
    Z, y = draw(150, 3, noise=0.6)
    model = MEDBayesNetClassifier(DENSE, C=0.5, tol=1e-12, calibration=None, margin=Margin("laplace", target=2.0)).fit(
        words(Z), y
    )
    a, b = pairs(3)
    for s in range(3):
        lam, ours = model.multipliers_, (y == s)
        against = np.where((a == s) | (b == s), lam, 0.0).sum(axis=1)
        weight = np.where(ours, 1 + lam.sum(axis=1), -against)
        wanted = np.full((2, 3, 2), 1.0 / 12)
        np.add.at(wanted, tuple(Z[:, [0, 1, 2]].T), weight)
        np.testing.assert_allclose(model.counts_[s]["v2"], wanted, atol=1e-4)
        np.testing.assert_allclose(model.tables_[s]["v2"], wanted / wanted.sum(axis=-1, keepdims=True), atol=1e-3)
        assert all(table.sum(axis=-1) == pytest.approx(1) for table in model.tables_[s].values())
        assert (model.counts_[s]["v2"] > 0).all()
    assert model.edges_[0] == [("v0", "v2"), ("v1", "v2"), ("v0", "v3")]
    assert model.column_names_ == ("v0", "v1", "v2", "v3")


OPTIONS = {"C": 0.5, "margin": Margin("laplace", target=2.0), "calibration": None, "tol": 1e-11}


def test_permutations_of_rows_columns_and_classes_permute_the_answer():
    Z, y = draw(120, 3, noise=0.6)
    X = words(Z)
    edges = [("v0", "v2"), ("v1", "v2"), ("v0", "v3")]
    ours = MEDBayesNetClassifier(edges, **OPTIONS).fit(X, y).decision_function(X)
    order = np.random.default_rng(6).permutation(len(y))
    rows = MEDBayesNetClassifier(edges, **OPTIONS).fit(X.iloc[order], y[order]).decision_function(X)
    np.testing.assert_allclose(rows, ours, atol=1e-5)
    swapped = X[["v3", "v1", "v0", "v2"]]
    columns = MEDBayesNetClassifier(edges, **OPTIONS).fit(swapped, y).decision_function(swapped)
    np.testing.assert_allclose(columns, ours, atol=1e-5)
    new = np.array([2, 0, 1])
    classes = MEDBayesNetClassifier(edges, **OPTIONS).fit(X, new[y]).decision_function(X)
    np.testing.assert_allclose(classes[:, new], ours, atol=1e-5)


def test_weight_two_is_the_row_twice():
    Z, y = draw(120, noise=0.6)
    X = words(Z)
    weight = np.random.default_rng(7).integers(0, 3, size=len(y)).astype(float)
    options = {**OPTIONS, "margin": Margin("laplace", quantile=0.3)}
    weighted = MEDBayesNetClassifier(CHAIN, **options).fit(X, y, weight)
    index = np.repeat(np.arange(len(y)), weight.astype(int))
    repeated = MEDBayesNetClassifier(CHAIN, **options).fit(X.iloc[index], y[index])
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-5)


def test_structures_by_name_position_function_and_class_are_one():
    Z, y = draw(100, noise=0.6)
    X, labels = words(Z), np.array(["no", "yes"])[y]
    wanted = MEDBayesNetClassifier([("v0", "v1"), ("v1", "v3")], **OPTIONS).fit(X, labels)
    for structure in (
        [(0, 1), (-3, -1), (1, 3)],  # one edge twice
        np.array([[0, 1], [1, 3]]),
        lambda names: [(names[0], names[1]), (names[1], names[3])],
        {"yes": [(0, 1), (1, 3)], "no": lambda names: [("v0", "v1"), ("v1", "v3")]},
    ):
        model = MEDBayesNetClassifier(structure, **OPTIONS).fit(X, labels)
        np.testing.assert_array_equal(model.decision_function(X), wanted.decision_function(X))
    apart = MEDBayesNetClassifier({"no": "naive", "yes": CHAIN}, **OPTIONS).fit(X, labels)
    assert apart.edges_ == [[], [("v0", "v1"), ("v1", "v2"), ("v2", "v3")]]
    assert apart.tables_[0]["v1"].shape == (3,) and apart.tables_[1]["v1"].shape == (2, 3)


def test_a_table_with_a_missing_value_or_parent_has_no_effect():
    Z, y = draw(120, noise=0.6)
    X = words(Z)
    model = MEDBayesNetClassifier([(0, 2), (1, 2)], **OPTIONS).fit(X, y)
    with_missing = X.copy()
    with_missing.loc[:, "v0"] = None
    nets = zip(model.model_.nets, model.distribution_.parts)
    mean = [dict(zip(model.column_names_, net.tables(part.mean))) for net, part in nets]
    shift = contrasts(2) @ model.distribution_.bias
    by_hand = [mean[s]["v1"][Z[:, 1]] + mean[s]["v3"][Z[:, 3]] + shift[s] for s in range(2)]
    np.testing.assert_allclose(model.decision_function(with_missing), by_hand[1] - by_hand[0], atol=1e-12)
    empty = X.iloc[:3].copy()
    empty.loc[:] = None
    np.testing.assert_allclose(model.decision_function(empty), shift[1] - shift[0])
    holes = X.mask(np.random.default_rng(8).random(X.shape) < 0.2)
    model = MEDBayesNetClassifier([(0, 2), (1, 2)], C=1.0, random_state=0).fit(holes, y)
    seen = holes[["v0", "v1", "v2"]].notna().all(axis=1)
    prior = MEDBayesNetClassifier([(0, 2), (1, 2)], objective="likelihood", calibration=None).fit(holes, y)
    assert prior.counts_[0]["v2"].sum() == pytest.approx(1 + (seen & (y == 0)).sum())
    assert np.isfinite(model.predict_proba(holes)).all()


def test_an_informative_edge_is_used():
    """Exclusive or: no single column is informative."""
    rng = np.random.default_rng(9)
    X = rng.integers(2, size=(300, 3))
    y = X[:, 0] ^ X[:, 1] ^ (rng.random(300) < 0.1)
    options = {"categorical": [0, 1, 2], "random_state": 0}
    assert MEDBayesNetClassifier([(0, 1)], **options).fit(X, y).score(X, y) > 0.85
    assert MEDBayesNetClassifier(**options).fit(X, y).score(X, y) < 0.7


def test_discrimination_mends_what_independence_gets_wrong():
    """A column five times over outvotes a better one in naive Bayes."""
    rng = np.random.default_rng(10)
    y = rng.integers(2, size=600)
    weak, good = (np.where(rng.random(600) < p, 1 - y, y) for p in (0.35, 0.2))
    X = np.column_stack([weak] * 5 + [good])
    options = {"categorical": list(range(6)), "random_state": 0}
    loss = {}
    for objective in ("margin", "likelihood"):
        model = MEDBayesNetClassifier(objective=objective, **options).fit(X[:300], y[:300])
        p = model.predict_proba(X[300:])[np.arange(300), y[300:]]
        loss[objective] = -np.log(p).mean()
    assert loss["margin"] < loss["likelihood"] - 0.02


def test_numbers_are_softly_quantized():
    rng = np.random.default_rng(11)
    y = rng.integers(2, size=240)
    X = pd.DataFrame({"size": rng.normal(size=240) + 2.5 * y, "kind": np.array(["a", "b"])[rng.integers(2, size=240)]})
    X.loc[::9, "size"] = np.nan
    model = MEDBayesNetClassifier([("kind", "size")], random_state=0).fit(X, y)
    assert model.score(X, y) > 0.75
    table = model.tables_[0]["size"]
    assert table.shape[0] == 2 and table.sum(axis=-1) == pytest.approx(1)
    both = MEDBayesNetClassifier([("size", "kind")], C=1.0, random_state=0).fit(X, y)
    assert both.score(X, y) > 0.75 and both.tables_[0]["kind"].shape == (table.shape[1], 2)
    prior = MEDBayesNetClassifier(objective="likelihood", calibration=None).fit(X, y)
    assert prior.counts_[1]["size"].sum() == pytest.approx(1 + (X["size"].notna() & (y == 1)).sum())


@pytest.mark.parametrize("relaxation", [0.3, 1.0])
def test_rows_without_a_label_take_part(relaxation):
    Z, y = draw(200, noise=0.3, seed=12)
    X = words(Z)
    hidden = np.random.default_rng(13).random(len(y)) < 0.6
    partly = y.astype(object)
    partly[hidden] = None
    model = MEDBayesNetClassifier(
        CHAIN, C=1.0, relaxation=relaxation, calibration=None, margin=Margin("laplace", target=1.0), random_state=0
    ).fit(X, partly)
    objective = [step.objective for step in model.run_.trace if step.accepted]
    assert len(objective) > 1 and np.diff(objective).min() > -1e-8
    assert (model.classes_[model.label_posterior_[hidden].argmax(axis=1)] == y[hidden]).mean() > 0.8
    np.testing.assert_array_equal(model.label_posterior_[~hidden].max(axis=1), 1.0)
    prior = MEDBayesNetClassifier(CHAIN, objective="likelihood", calibration=None).fit(X, partly)
    assert prior.counts_[0]["v0"].sum() == 1 + (y[~hidden] == 0).sum()  # of no class before discrimination


def test_labels_in_doubt_count_by_their_shares():
    Z, y = draw(100, noise=0.4, seed=14)
    P = np.where(np.eye(2)[y] == 1, 0.9, 0.1)
    prior = MEDBayesNetClassifier(objective="likelihood", calibration=None).fit(words(Z), P)
    wanted = 0.5 + np.bincount(Z[:, 0], P[:, 1])
    np.testing.assert_allclose(prior.counts_[1]["v0"], wanted)
    assert MEDBayesNetClassifier(C=1.0, calibration=None).fit(words(Z), P).score(words(Z), y) > 0.7


def test_a_fixed_margin_is_kept_or_refused():
    Z, y = draw(60, noise=0.05, seed=15)
    X = words(Z).iloc[4:]
    y = y[4:]
    model = MEDBayesNetClassifier(margin=Margin("fixed", target=1.0), calibration=None).fit(X, y)
    assert (np.where(y == 1, 1, -1) * model.decision_function(X)).min() > 1 - 1e-4
    noisy, labels = draw(100, noise=0.9, seed=16)
    with pytest.raises(ValueError, match="fixed margin"):
        MEDBayesNetClassifier(margin=Margin("fixed", target=1.0), calibration=None).fit(words(noisy), labels)


def test_the_usual_margin_is_a_quantile_between_bounds():
    Z, y = draw(150, noise=0.5, seed=17)
    X = words(Z)
    prior = MEDBayesNetClassifier(objective="likelihood", calibration=None).fit(X, y)
    kept = np.sort(np.where(y == 1, 1, -1) * prior.decision_function(X))
    model = MEDBayesNetClassifier(C=1.0, calibration=None, margin=Margin("laplace", quantile=0.3)).fit(X, y)
    assert model.margin_.target == pytest.approx(kept[44]) and 0.1 < kept[44] < 2
    model = MEDBayesNetClassifier(C=1.0, calibration=None, margin=Margin("laplace", quantile=1.0)).fit(X, y)
    assert model.margin_.target == 2.0 < kept[-1]
    model = MEDBayesNetClassifier(C=1.0, calibration=None, margin=Margin("laplace", quantile=0.0)).fit(X, y)
    assert model.margin_.target == 0.1 > kept[0]


def test_c_is_chosen_and_probabilities_are_calibrated():
    Z, y = draw(150, 3, noise=0.6, seed=18)
    X = words(Z)
    model = MEDBayesNetClassifier(cv=3, random_state=0).fit(X, y)
    assert model.C_ in [tried["C"] for tried in model.C_tried_] and len(model.C_tried_) > 2
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    again = MEDBayesNetClassifier(cv=3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))
    for calibration in ("affine", "predictive"):
        other = MEDBayesNetClassifier(C=1.0, cv=3, calibration=calibration, random_state=0).fit(X, y)
        assert other.score(X, y) > 0.5


def test_a_value_not_seen_before_counts_as_missing():
    Z, y = draw(60)
    X = words(Z)
    model = MEDBayesNetClassifier(**OPTIONS).fit(X, y)
    new, missing = X.iloc[:5].assign(v1="new"), X.iloc[:5].assign(v1=None)
    with pytest.warns(UserWarning, match="new"):
        ours = model.decision_function(new)
    np.testing.assert_array_equal(ours, model.decision_function(missing))


def test_scores_in_parts_are_the_same(monkeypatch):
    Z, y = draw(60)
    X = words(Z)
    model = MEDBayesNetClassifier(DENSE, **OPTIONS).fit(X, y)
    whole = model.decision_function(X)
    monkeypatch.setattr(training_sets, "BATCH_ROWS", 7)
    np.testing.assert_array_equal(model.decision_function(X), whole)
    assert isinstance(model.model_, NetModel)


# --- what is refused ----------------------------------------------------------------------------------------------


def test_a_cycle_is_listed_in_the_direction_of_its_edges():
    edges = [(0, 1), (1, 3), (3, 0), (0, 2)]
    cycle = find_cycle(parents_of(edges))
    assert sorted(cycle) == [0, 1, 3] and set(zip(cycle, cycle[1:] + cycle[:1])) <= set(edges)
    assert find_cycle(parents_of(DENSE)) is None
