"""MEDTreeClassifier as a user meets it."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import psi
from sklearn.utils.estimator_checks import check_estimator

from mixent import MEDTreeClassifier
from mixent.core.driver import Status
from mixent.med.spanning_trees import SpanningTrees, packed
from mixent.options import Margin, Tables, Trees

from .enumeration import every_tree

CHECKED = [
    {"C": 1.0},
    {"C": 1.0, "tables": "integrated"},
    {"objective": "likelihood"},
    {"C": 1.0, "trees": "shared"},
    pytest.param({"C": 1.0, "trees": Trees(n_trees=2)}, marks=pytest.mark.slow),
]


@pytest.mark.parametrize("options", CHECKED, ids=lambda options: ",".join(map(str, options.values())))
def test_scikit_learn_checks(options):
    results = check_estimator(MEDTreeClassifier(calibration=None, **options), on_fail=None, on_skip=None)
    failed = [(one["check_name"], str(one["exception"])[:400]) for one in results if one["status"] == "failed"]
    assert not failed
    assert sum(one["status"] == "passed" for one in results) >= 60


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"tables": "integrated"}, {"cv": 3}])  # "affine" moves the threshold
def test_scikit_learn_checks_with_all_that_is_chosen(options):
    results = check_estimator(MEDTreeClassifier(**options), on_fail=None, on_skip=None)
    assert not [(one["check_name"], one["exception"]) for one in results if one["status"] == "failed"]


def words(n=120, n_classes=2, seed=0):
    """The dependence between columns differs between classes; the last column is weakly informative alone."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    y[:n_classes] = np.arange(n_classes)
    a = rng.integers(3, size=n)
    b = np.where(rng.random(n) < 0.8, (a + y) % 3, rng.integers(3, size=n))
    c = np.where(rng.random(n) < 0.7, (b + a * (y == 0)) % 2, rng.integers(2, size=n))
    d = (rng.random(n) < 0.4 + 0.3 * y / n_classes).astype(int)
    X = ("v" + pd.DataFrame({"a": a, "b": b, "c": c, "d": d}).astype(str)).astype(object)
    return X, np.array(["no", "yes", "both"])[y]


def mixed(n=120, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    X = pd.DataFrame(
        {
            "size": rng.normal(size=n) * (1 + y),
            "weight": rng.normal(size=n) + y,
            "color": np.array(["red", "green", "blue"])[(y + rng.integers(2, size=n)) % 3],
        }
    )
    X["length"] = X["size"] * np.where(y == 1, 1, -1) + 0.5 * rng.normal(size=n)
    return X, np.array(["no", "yes"])[y]


PLAIN = {"C": 1.0, "calibration": None, "random_state": 0}


# --- the solution ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tables", ["fixed", "integrated"])
@pytest.mark.parametrize("margin", ["laplace", "exponential", "gaussian"])
def test_the_solution_keeps_the_conditions_of_an_optimum(margin, tables):
    X, y = words()
    options = {**PLAIN, "C": 1.5, "tol": 1e-11}
    model = MEDTreeClassifier(tables, margin=Margin(margin, target=2.0), **options).fit(X, y)
    sign = np.where(y == "yes", 1, -1)
    kept, lam = sign * model.decision_function(X), model.multipliers_
    assert model.gap_ < 1e-8 and (lam > 0).any()
    np.testing.assert_allclose(kept[lam > 1e-9], model.margin_.mean(lam[lam > 1e-9]), atol=1e-4)
    assert (kept[lam == 0] >= model.margin_.mean(0.0) - 1e-6).all()
    assert abs(lam @ sign) < 1e-6 * lam.sum()
    objective = [step.objective for step in model.run_.trace if step.accepted]
    assert np.diff(objective).min() > -1e-8 and model.converged_


def test_trees_are_weighted_as_equation_30_says():
    """W_uv = exp(sum_t s l_t y_t w_uv(x_t)), and the decision is the average over all trees (38)."""
    X, y = words()
    model = MEDTreeClassifier(tol=1e-12, margin=Margin("laplace", target=2.0), **PLAIN).fit(X, y)
    sign = np.where(y == model.classes_[1], 1, -1)
    codes = np.column_stack([np.unique(X[name], return_inverse=True)[1] for name in X])
    sizes = codes.max(axis=0) + 1
    place = list(zip(*np.triu_indices(4, 1)))
    score = np.zeros((len(X), 2))
    for s, label in enumerate(model.classes_):
        own = y == label
        N = own.sum() + 1.0
        alone = [np.log((np.bincount(codes[own, v], minlength=k) + 1 / k) / N) for v, k in enumerate(sizes)]
        w = np.empty((len(X), 6))
        for e, (u, v) in enumerate(place):
            joint = np.full((sizes[u], sizes[v]), 1 / (sizes[u] * sizes[v]))
            np.add.at(joint, (codes[own, u], codes[own, v]), 1.0)
            table = np.log(joint / N) - alone[u][:, None] - alone[v]
            w[:, e] = table[codes[:, u], codes[:, v]]
        log_W = (sign * (1 if s else -1) * model.multipliers_) @ w
        np.testing.assert_allclose(packed(model.edge_weights_[s]), log_W, atol=1e-3)
        # the 16 trees one by one
        totals = np.array([sum(packed(model.edge_weights_[s])[place.index(e)] for e in t) for t in every_tree(4)])
        p = np.exp(totals - totals.max())
        p /= p.sum()
        member = np.array([[edge in tree for edge in place] for tree in every_tree(4)])
        np.testing.assert_allclose(packed(model.edge_marginals_[s]), p @ member, rtol=1e-8)
        score[:, s] = sum(alone[v][codes[:, v]] for v in range(4)) + w @ (p @ member)
    ours = model.decision_function(X) - (score[:, 1] - score[:, 0])
    np.testing.assert_allclose(ours, ours[0], atol=1e-8)  # the bias


def test_unknown_tables_have_the_counts_of_equation_63():
    X, y = words()
    model = MEDTreeClassifier(
        Tables("integrated", ess=2.0), margin=Margin("laplace", target=2.0), **{**PLAIN, "tol": 1e-12}
    ).fit(X, y)
    lam = model.multipliers_
    assert lam.max() > 0
    codes = np.column_stack([np.unique(X[name], return_inverse=True)[1] for name in X])
    sizes = codes.max(axis=0) + 1
    starts = np.r_[0, np.cumsum(sizes)]
    for s, label in enumerate(model.classes_):
        part = model.distribution_.parts[s]
        w = np.where(y == label, 1 + lam, -lam)
        assert part.rows == pytest.approx(w.sum() + 2.0, rel=1e-6)
        for u, v in zip(*np.triu_indices(4, 1)):
            counts = np.full((sizes[u], sizes[v]), 2.0 / (sizes[u] * sizes[v]))
            np.add.at(counts, (codes[:, u], codes[:, v]), w)
            got = part.pairs[starts[u] : starts[u + 1], starts[v] : starts[v + 1]]
            np.testing.assert_allclose(got, counts, atol=1e-4)
            np.testing.assert_allclose(got.sum(axis=1), part.cells[starts[u] : starts[u + 1]], rtol=1e-9)  # (41)
    # the rule (39) with the digammas of (67) and (68)
    scores = []
    for part, edges in zip(model.distribution_.parts, model.edge_marginals_):
        cells, pairs = part.cells, part.pairs
        at = starts[:-1] + codes
        total = psi(cells[at]).sum(axis=1) - psi(part.rows)
        for u, v in zip(*np.triu_indices(4, 1)):
            w_uv = psi(pairs[at[:, u], at[:, v]]) - psi(cells[at[:, u]]) - psi(cells[at[:, v]])
            total = total + edges[u, v] * w_uv
        scores.append(total)
    rest = model.decision_function(X) - (scores[1] - scores[0])
    np.testing.assert_allclose(rest, rest[0], atol=1e-9)


@pytest.mark.parametrize("tables", ["fixed", "integrated"])
def test_a_certain_margin_is_kept_and_one_too_large_refused(tables):
    X, y = words(60)
    X["e"] = np.where(np.random.default_rng(0).random(60) < 0.9, y, "no")
    model = MEDTreeClassifier(tables, margin=Margin("fixed", target=0.05), calibration=None).fit(X.assign(f=y), y)
    kept = np.where(y == "yes", 1, -1) * model.decision_function(X.assign(f=y))
    assert kept.min() > 0.05 - 1e-5 and model.C_ is None and model.C_tried_ == []
    if tables == "fixed":
        with pytest.raises(ValueError, match="fixed margin"):
            MEDTreeClassifier(tables, margin=Margin("fixed", target=1e3), calibration=None).fit(X, y)


def test_the_margin_is_what_some_rows_do_not_reach_before():
    X, y = words()
    prior = MEDTreeClassifier(C=1e-9, margin=Margin("gaussian", target=1e-9), bias=1e-9, calibration=None).fit(X, y)
    kept = np.where(y == "yes", 1, -1) * prior.decision_function(X)
    for alpha in (0.1, 0.9):
        model = MEDTreeClassifier(margin=Margin("laplace", quantile=alpha), **PLAIN).fit(X, y)
        at = model.margin_.target
        quantile = np.sort(kept)[int(alpha * len(kept))]
        assert at == pytest.approx(max(quantile, 2.0), abs=0.05)
        assert model.margin_.C == 1.0


# --- baselines ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_likely_tree_for_all_classes_is_tree_augmented_naive_bayes(n_classes):
    """Friedman and others: the tree of highest conditional mutual information given the class, by code of its own."""
    X, y = words(200, n_classes)
    model = MEDTreeClassifier(Tables(ess=1e-6), objective="likelihood", calibration=None, trees="shared").fit(X, y)
    codes = np.column_stack([np.unique(X[name], return_inverse=True)[1] for name in X])
    label = np.searchsorted(model.classes_, y)
    weights = np.zeros((4, 4))
    for u in range(4):
        for v in range(4):
            if u == v:
                continue
            for s in range(n_classes):
                p = np.zeros((3, 3))
                np.add.at(p, (codes[label == s, u], codes[label == s, v]), 1.0 / len(X))
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratio = p * p.sum() / (p.sum(axis=1, keepdims=True) * p.sum(axis=0))
                    weights[u, v] += np.where(p > 0, p * np.log(ratio), 0.0).sum()
    tree = max(every_tree(4), key=lambda edges: sum(weights[edge] for edge in edges))
    names = list(X)
    assert len(model.trees_) == 1
    assert {frozenset(edge) for edge in model.trees_[0]} == {frozenset((names[u], names[v])) for u, v in tree}
    # its classification: p(class) p(root | class) prod p(child | parent, class)
    reached, left, order = {0}, list(tree), []
    while left:
        edge = next(e for e in left if (e[0] in reached) != (e[1] in reached))
        left.remove(edge)
        order.append(edge if edge[0] in reached else edge[::-1])
        reached.add(order[-1][1])
    joint = np.zeros((len(X), n_classes))
    for s in range(n_classes):
        own = label == s
        joint[:, s] = np.log(own.mean()) + np.log([np.mean(codes[own, 0] == x) for x in codes[:, 0]])
        for parent, child in order:
            for t, (x, z) in enumerate(codes[:, [parent, child]]):
                given = own & (codes[:, parent] == x)
                joint[t, s] += np.log(max(np.mean(codes[given, child] == z), 1e-300)) if given.any() else 0.0
    seen = (joint > -100).all(axis=1)
    p = np.exp(joint - joint.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    assert seen.mean() > 0.5
    np.testing.assert_allclose(model.predict_proba(X)[seen], p[seen], atol=1e-4)


def test_the_likeliest_trees_are_those_of_chow_and_liu():
    X, y = words(200)
    model = MEDTreeClassifier(objective="likelihood", calibration=None).fit(X, y)
    for information, tree, edges in zip(model.mutual_information_, model.trees_, model.edge_marginals_):
        best = max(every_tree(4), key=lambda t, own=information: sum(own[edge] for edge in t))
        assert {frozenset(edge) for edge in tree} == {frozenset(X.columns[list(edge)]) for edge in best}
        assert set(np.unique(edges)) == {0.0, 1.0} and edges.sum() == 6
    assert all(np.isnan(packed(w)).all() for w in model.edge_weights_)
    assert not model.multipliers_.any() and model.C_ is None and model.objective_ == 0.0


def test_a_mixture_of_likely_trees_is_a_mixture():
    X, y = words(150)
    model = MEDTreeClassifier(objective="likelihood", calibration=None, random_state=0, trees=Trees(n_trees=2)).fit(
        X, y
    )
    assert len(model.trees_) == 4 and all(len(tree) == 3 for tree in model.trees_)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.score(X, y) > 0.6


# --- attributes -----------------------------------------------------------------------------------------------------

SHAPES = [
    ({}, 3),
    ({"tables": "integrated"}, 3),
    ({"trees": "shared"}, 1),
    ({"trees": Trees(n_trees=2)}, 6),
    ({"trees": Trees(structure_prior="posterior")}, 3),
]


@pytest.mark.parametrize(("options", "n_parts"), SHAPES)
def test_attributes_have_their_shapes_and_meaning(options, n_parts):
    X, y = words(90, 3)
    model = MEDTreeClassifier(**options, **PLAIN).fit(X, y)
    assert model.column_names_ == ("a", "b", "c", "d") and model.classes_.tolist() == ["both", "no", "yes"]
    assert len(model.edge_marginals_) == len(model.edge_weights_) == len(model.trees_) == n_parts
    for marginals, weights, tree in zip(model.edge_marginals_, model.edge_weights_, model.trees_):
        np.testing.assert_array_equal(marginals, marginals.T)
        assert not np.diagonal(marginals).any() and marginals.sum() == pytest.approx(6.0)
        trees = SpanningTrees(packed(weights))
        np.testing.assert_allclose(packed(marginals), trees.mean, rtol=1e-9)
        assert tree == [(X.columns[u], X.columns[v]) for u, v in trees.best]
    if "tables" in options:
        with pytest.raises(AttributeError, match="mutual_information_"):
            _ = model.mutual_information_
    else:
        assert [one.shape for one in model.mutual_information_] == [(4, 4)] * len(model.model_.tables)
    assert model.multipliers_.shape == (90, 3) and model.pairs_[0] == ("both", "no")
    np.testing.assert_array_equal(model.support_, np.flatnonzero(model.multipliers_.any(axis=1)))
    np.testing.assert_allclose(model.class_prior_, [np.mean(y == k) for k in model.classes_])
    assert model.decision_function(X).shape == (90, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert (model.label_posterior_.max(axis=1) == 1).all()


def test_mutual_information_is_that_of_the_smoothed_tables():
    X, y = words(200)
    model = MEDTreeClassifier(Tables(ess=1e-9), **PLAIN).fit(X, y)
    for information, label in zip(model.mutual_information_, model.classes_):
        joint = pd.crosstab(X["a"][y == label], X["b"][y == label], normalize=True).to_numpy()
        ratio = joint / np.outer(joint.sum(axis=1), joint.sum(axis=0))
        wanted = float(np.where(joint > 0, joint * np.log(np.where(joint > 0, ratio, 1.0)), 0.0).sum())
        assert information[0, 1] == pytest.approx(wanted, rel=1e-5)


# --- symmetries -----------------------------------------------------------------------------------------------------

KINDS = [{}, {"tables": "integrated"}, {"trees": "shared"}, {"objective": "likelihood"}]


def options_of(kind):
    c = {} if "objective" in kind else {"C": 1.0, "margin": Margin("laplace", target=2.0)}
    return {**kind, **c, "calibration": None, "tol": 1e-11}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_columns_classes_and_categories_have_no_order(kind):
    X, y = words(90, 3)
    X = X[["a", "b", "c"]].assign(x=np.random.default_rng(0).normal(size=90) + (y == "no"))
    plain = MEDTreeClassifier(**options_of(kind)).fit(X, y)
    scores = plain.decision_function(X)
    order = np.random.default_rng(1).permutation(90)
    rows = MEDTreeClassifier(**options_of(kind)).fit(X.iloc[order], y[order])
    np.testing.assert_allclose(rows.decision_function(X), scores, atol=1e-4)
    columns = MEDTreeClassifier(**options_of(kind)).fit(X[["x", "c", "a", "b"]], y)
    np.testing.assert_allclose(columns.decision_function(X[["x", "c", "a", "b"]]), scores, atol=1e-4)
    at = [list(X).index(name) for name in ("x", "c", "a", "b")]
    np.testing.assert_allclose(columns.edge_marginals_[0], plain.edge_marginals_[0][np.ix_(at, at)], atol=1e-4)
    other = {"both": "z", "no": "y", "yes": "x"}  # the other way round
    classes = MEDTreeClassifier(**options_of(kind)).fit(X, np.array([other[k] for k in y]))
    np.testing.assert_allclose(classes.decision_function(X)[:, ::-1], scores, atol=1e-4)
    renamed = X.assign(a=X["a"].map({"v0": "q", "v1": "p", "v2": "o"}))
    categories = MEDTreeClassifier(**options_of(kind)).fit(renamed, y)
    np.testing.assert_allclose(categories.decision_function(renamed), scores, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_weight_two_is_the_row_twice(kind):
    X, y = mixed(80)
    weight = np.random.default_rng(1).integers(0, 3, size=80).astype(float)
    weighted = MEDTreeClassifier(**options_of(kind)).fit(X, y, weight)
    index = np.repeat(np.arange(80), weight.astype(int))
    repeated = MEDTreeClassifier(**options_of(kind)).fit(X.iloc[index], y[index])
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-4)
    assert not weighted.multipliers_[weight == 0].any()


@pytest.mark.parametrize("kind", KINDS)
def test_units_of_numbers_do_not_matter(kind):
    X, y = mixed(80)
    plain = MEDTreeClassifier(**options_of(kind)).fit(X, y).decision_function(X)
    moved = X.assign(size=1e3 * X["size"] + 1e5, weight=-1e-3 * X["weight"])
    np.testing.assert_allclose(
        MEDTreeClassifier(**options_of(kind)).fit(moved, y).decision_function(moved), plain, atol=1e-3
    )


def test_threads_change_no_bit():
    X, y = words(700)
    one, two = (MEDTreeClassifier(n_jobs=k, **PLAIN).fit(X, y).decision_function(X) for k in (1, 2))
    np.testing.assert_array_equal(one, two)


# --- data as it comes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [*KINDS, {"trees": Trees(n_trees=2)}, {"tables": Tables(continuous="quantized")}])
def test_tables_with_words_numbers_and_gaps(options):
    X, y = mixed(150)
    X = X.mask(np.random.default_rng(0).random(X.shape) < 0.1)
    c = {} if "objective" in options else {"C": 1.0}
    model = MEDTreeClassifier(**options, **c, cv=3, random_state=0).fit(X, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert model.score(X, y) > 0.6 and np.isfinite(p).all()
    nothing = X.head(2).copy()
    nothing.loc[:, :] = np.nan
    if not isinstance(options.get("trees"), Trees) and options.get("tables") != "integrated":  # only the bias is left
        scores = model.decision_function(nothing)
        assert scores[0] == scores[1]


def test_a_gap_counts_as_the_tree_of_the_other_columns():
    X, y = words()
    model = MEDTreeClassifier(**PLAIN).fit(X, y)
    row = X.head(1).copy()
    full = model.model_.outputs(model.distribution_, model.model_.columns(_table(model, row)))
    row.loc[0, "b"] = None
    cut = model.model_.outputs(model.distribution_, model.model_.columns(_table(model, row)))
    cells = model.model_.columns(_table(model, X.head(1)))[0]
    start, size = model.model_.columns.layout.starts[1], model.model_.columns.layout.sizes[1]
    b = slice(start, start + size)
    for s, (tables, edges) in enumerate(zip(model.model_.tables, model.edge_marginals_)):
        lost = cells[b] @ tables.log_marginals[b]
        spread = np.repeat(edges[1], model.model_.columns.layout.sizes)
        lost += cells[b] @ (tables.log_ratios[b] * spread) @ cells
        assert full[0, s] - cut[0, s] == pytest.approx(lost, rel=1e-9)


def _table(model, X):
    from mixent.data import read_features

    return read_features(model, X, reset=False)


@pytest.mark.parametrize("options", [{}, {"tables": "integrated"}, {"trees": Trees(n_trees=2)}])
def test_a_category_not_seen_in_training_is_a_gap(options):
    X, y = words()
    model = MEDTreeClassifier(**options, **PLAIN).fit(X, y)
    new, missing = X.head(3).copy(), X.head(3).copy()
    new["b"], missing["b"] = "new", None
    with pytest.warns(UserWarning, match="not seen"):
        p = model.predict_proba(new)
    np.testing.assert_allclose(p, model.predict_proba(missing))


@pytest.mark.parametrize("options", [*KINDS, {"trees": Trees(n_trees=2)}])
@pytest.mark.parametrize("column", ["word", "number"])
def test_one_column_only(options, column):
    """No edge: the classes' own tables, and the bias."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=60)
    word, number = np.array(list("pqr"))[(y + rng.integers(2, size=60)) % 3], y + rng.normal(size=60)
    X = pd.DataFrame({"v": word if column == "word" else number})
    c = {} if "objective" in options else {"C": 1.0}
    model = MEDTreeClassifier(**options, **c, calibration=None, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.55 and model.edge_marginals_[0].tolist() == [[0.0]] and model.trees_[0] == []


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
@pytest.mark.parametrize("options", [*KINDS, {"trees": Trees(n_trees=2)}])
def test_columns_that_say_nothing_change_nothing(options):
    X, y = words()
    c = {} if "objective" in options else {"C": 1.0, "margin": Margin("laplace", target=2.0)}
    model = MEDTreeClassifier(**options, **c, calibration=None, random_state=0).fit(X.assign(k="k", z=3.0), y)
    assert model.score(X.assign(k="k", z=3.0), y) > 0.7
    if "objective" in options:
        plain = MEDTreeClassifier(**options, calibration=None).fit(X, y)
        np.testing.assert_allclose(
            model.decision_function(X.assign(k="k", z=3.0)), plain.decision_function(X), atol=0.1
        )
    empty = pd.DataFrame({"k": ["k"] * 60, "z": 3.0})
    label = np.repeat([0, 1], [40, 20])
    none = MEDTreeClassifier(**options, **c, calibration=None, random_state=0).fit(empty, label)
    assert (none.predict(empty) == none.predict(empty)[0]).all()


@pytest.mark.parametrize("options", [{}, {"trees": "shared"}, {"objective": "likelihood"}])
def test_many_columns_are_stable(options):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=100)
    X = "v" + pd.DataFrame(rng.integers(3, size=(100, 120)), columns=[f"v{j}" for j in range(120)]).astype(str)
    X["v0"], X["v7"] = pd.Series(y + (rng.random(100) < 0.2)).map("v{}".format), X["v6"]
    c = {} if "objective" in options else {"C": 0.3}
    model = MEDTreeClassifier(**options, **c, calibration=None).fit(X.astype(object), y)
    p = model.predict_proba(X.astype(object))
    assert np.isfinite(p).all() and model.score(X.astype(object), y) > 0.8
    for marginals in model.edge_marginals_:
        assert marginals.sum() == pytest.approx(2 * 119) and marginals.max() <= 1 + 1e-9 and marginals.min() >= 0
    if not options:
        assert model.gap_ < 1e-4


def test_arrays_are_numbers_and_lists_of_words_are_words():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(60, 3))
    y = (Z[:, 0] * Z[:, 1] > 0).astype(int)  # only the pair is informative
    model = MEDTreeClassifier(C=1.0, calibration=None).fit(Z, y)
    assert model.score(Z, y) > 0.7 and model.column_names_ == ("x0", "x1", "x2")
    coded = MEDTreeClassifier(C=1.0, calibration=None, categorical=[0]).fit(np.column_stack([y, Z[:, 2]]), y)
    assert coded.score(np.column_stack([y, Z[:, 2]]), y) == 1.0


def test_the_choice_of_c_and_the_probabilities_are_judged_on_rows_held_out():
    X, y = words(100)
    model = MEDTreeClassifier(cv=3, random_state=0, margin=Margin("exponential", target=4.0)).fit(X, y)
    again = MEDTreeClassifier(cv=3, random_state=0, margin=Margin("exponential", target=4.0)).fit(X, y)
    assert model.C_ in (0.1, 0.3, 1.0, 3.0) and min(model.C_tried_, key=lambda one: one["log_loss"])["C"] == model.C_
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))
    affine = MEDTreeClassifier(C=1.0, cv=3, random_state=0, calibration="affine").fit(X, y)
    np.testing.assert_allclose(affine.predict_proba(X).sum(axis=1), 1.0)


# --- labels in doubt ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"tables": "integrated"}, {"trees": "shared"}])
@pytest.mark.parametrize("relaxation", [0.3, 1.0])
def test_rows_without_a_label_take_part(options, relaxation):
    X, y = words(120)
    X["e"] = np.where(np.random.default_rng(1).random(120) < 0.85, y, "no")
    hidden = np.random.default_rng(3).random(120) < 0.5
    partly = y.astype(object)
    partly[hidden] = None
    margin = Margin("laplace", quantile=0.5)
    model = MEDTreeClassifier(
        C=1.0, relaxation=relaxation, calibration=None, tol=1e-4, margin=margin, random_state=0, **options
    )
    model.fit(X, partly)
    objective = [step.objective for step in model.run_.trace if step.accepted]
    assert len(objective) > 2 and np.diff(objective).min() > -1e-8
    assert (model.classes_[model.label_posterior_[hidden].argmax(axis=1)] == y[hidden]).mean() > 0.8
    np.testing.assert_array_equal(model.label_posterior_[~hidden].max(axis=1), 1.0)
    assert model.score(X, y) > 0.8


def test_label_probabilities_are_labels_too():
    X, y = words(100)
    sure = (y[:, None] == ["no", "yes"]).astype(float)
    certain = MEDTreeClassifier(**PLAIN, tol=1e-11).fit(X, y).decision_function(X)
    np.testing.assert_allclose(
        MEDTreeClassifier(**PLAIN, tol=1e-11).fit(X, sure).decision_function(X), certain, atol=1e-5
    )
    soft = MEDTreeClassifier(margin=Margin("laplace", quantile=0.5), **PLAIN).fit(X, 0.8 * sure + 0.1)
    assert np.mean(soft.label_posterior_.argmax(axis=1) == sure.argmax(axis=1)) > 0.9


def test_likely_trees_leave_rows_without_a_label_alone():
    """Nothing is asked of any row, and nothing is learned of one that has no label."""
    X, y = words(100)
    partly = y.astype(object)
    partly[::3] = None
    known = np.arange(100) % 3 != 0
    ours = MEDTreeClassifier(objective="likelihood", calibration=None).fit(X, partly)
    plain = MEDTreeClassifier(objective="likelihood", calibration=None).fit(X[known], y[known])
    np.testing.assert_allclose(ours.decision_function(X), plain.decision_function(X), atol=1e-8)
    assert all(step.accepted for step in ours.run_.trace) and ours.run_.status is Status.CONVERGED


# --- refusals -------------------------------------------------------------------------------------------------------
