"""Tables of pairwise marginals and the cells they are made of, beside counting, scipy's densities and enumeration."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, norm

from mixent import MEDTreeClassifier
from mixent.data import read_features
from mixent.med.families import CellLayout
from mixent.med.tree_columns import CodedColumn, PowersColumn, SoftColumn, TreeColumns
from mixent.med.tree_tables import PRIOR_ROWS, best_tree, counted_tables, fixed_tables

from .enumeration import every_tree

RNG = np.random.default_rng


def read_table(X):
    return read_features(MEDTreeClassifier(), X, reset=True)


def words(n=60, seed=0, missing=0.0):
    rng = RNG(seed)
    a = rng.integers(3, size=n)
    b = (a + (rng.random(n) < 0.3)) % 2
    c = np.where(rng.random(n) < 0.8, b, 1 - b)
    d = rng.integers(2, size=n)
    X = "v" + pd.DataFrame({"a": a, "b": b, "c": c, "d": d}).astype(str)
    return X.mask(rng.random(X.shape) < missing, None).astype(object)


def columns_of(X, weight=None, continuous="gaussian", fill=False, member=None):
    table = read_table(X)
    weight = np.ones(len(X)) if weight is None else weight
    columns = TreeColumns.of(table, weight[:, None] if member is None else member, weight, continuous, fill)
    return columns, columns(table)


def cell(columns, v):
    start = columns.layout.starts[v]
    return slice(start, start + columns.layout.sizes[v])


# --- categories -----------------------------------------------------------------------------------------------------


def test_known_tables_are_consistent_marginals():
    """Of weighted counts and `ess` rows spread evenly; T_uv sums to T_u, T_v sums to one."""
    X, weight = words(), RNG(1).uniform(0.2, 2.0, size=60)
    columns, cells = columns_of(X, weight)
    assert columns.layout.sizes == (3, 2, 2, 2) and columns.names == ("a", "b", "c", "d")
    ess = 2.5
    tables = fixed_tables(cells, weight, columns, ess, np.zeros(4))
    alone = np.exp(tables.log_marginals)
    N = weight.sum() + ess
    assert tables.rows == pytest.approx(N)
    for v, name in enumerate(X):
        levels = sorted(X[name].unique())
        share = [(weight[X[name] == k].sum() + ess / len(levels)) / N for k in levels]
        np.testing.assert_allclose(alone[cell(columns, v)], share, rtol=1e-12)
        for u, other in enumerate(X):
            block = tables.log_ratios[cell(columns, u), cell(columns, v)]
            if u == v:
                assert not block.any()
                continue
            joint = np.exp(block) * np.outer(alone[cell(columns, u)], alone[cell(columns, v)])
            np.testing.assert_allclose(joint.sum(axis=0), alone[cell(columns, v)], rtol=1e-12)
            rows = sorted(X[other].unique())
            counted = [[weight[(X[other] == i) & (X[name] == j)].sum() for j in levels] for i in rows]
            np.testing.assert_allclose(joint, (np.array(counted) + ess / (len(rows) * len(levels))) / N, rtol=1e-11)


def test_every_tree_of_known_tables_is_a_distribution():
    """Equation 27: over all values the probabilities sum to one, whatever the tree."""
    X = words()
    columns, cells = columns_of(X)
    tables = fixed_tables(cells, np.ones(60), columns, 1.0, np.zeros(4))
    grid = np.array([np.concatenate([np.eye(s)[x] for s, x in zip((3, 2, 2, 2), xs)]) for xs in
                     product(range(3), range(2), range(2), range(2))])  # fmt: skip
    row_features = tables.features(grid, columns.layout)
    place = list(zip(*np.triu_indices(4, 1)))
    for tree in every_tree(4):
        log_prob = row_features.dot(np.array([edge in tree for edge in place], dtype=float)) + row_features.offset
        assert np.exp(log_prob).sum() == pytest.approx(1.0, rel=1e-12)
    assert tables.features(grid, columns.layout, -2.0).offset == pytest.approx(row_features.offset - 2.0)


def log_likelihood(X, weight, tree, ess):
    """Of the smoothed marginals along a tree, by conditional tables; `ess` rows more, spread evenly."""
    names = list(X)
    visited, left, total = {0}, list(tree), 0.0
    order = []
    while left:
        edge = next(e for e in left if (e[0] in visited) != (e[1] in visited))
        left.remove(edge)
        order.append(edge if edge[0] in visited else edge[::-1])
        visited.add(order[-1][1])
    count = np.array([weight[X[names[0]] == k].sum() for k in sorted(X[names[0]].unique())])
    count = count + ess / len(count)
    total += count @ np.log(count / count.sum())
    for parent, child in order:
        a, b = X[names[parent]], X[names[child]]
        joint = np.array([[weight[(a == i) & (b == j)].sum() for j in sorted(b.unique())] for i in sorted(a.unique())])
        joint = joint + ess / joint.size
        with np.errstate(divide="ignore"):
            total += np.where(joint > 0, joint * np.log(joint / joint.sum(axis=1, keepdims=True)), 0.0).sum()
    return total


@pytest.mark.parametrize("seed", range(2))
def test_the_likeliest_tree_is_that_of_highest_likelihood(seed):
    """Chow and Liu, beside all 125 trees; a gain is what an edge adds to the likelihood."""
    rng = RNG(seed)
    X = words(40, seed).assign(e=RNG(seed + 50).choice(["v0", "v1", "v2"], size=40))
    weight = rng.uniform(0.5, 1.5, size=40)
    columns, cells = columns_of(X, weight)
    tables = fixed_tables(cells, weight, columns, 1.0, np.zeros(5))
    values = {tuple(tree): log_likelihood(X, weight, tree, 1.0) for tree in every_tree(5)}
    best = max(values, key=values.get)
    assert {tuple(edge) for edge in tables.likeliest.edges} == set(best)
    place = {edge: e for e, edge in enumerate(zip(*np.triu_indices(5, 1)))}
    alone = [w - sum(tables.gains[place[edge]] for edge in tree) for tree, w in values.items()]
    np.testing.assert_allclose(alone, alone[0], rtol=1e-11)
    assert (tables.gains >= -1e-12).all()


def test_with_next_to_no_prior_rows_the_likelihood_is_the_empirical_one():
    X, weight = words(), np.ones(60)
    columns, cells = columns_of(X)
    tables = fixed_tables(cells, weight, columns, 1e-9, np.zeros(4))
    row_features = tables.features(cells, columns.layout)
    ours = float((row_features.offset + row_features.dot(tables.likeliest.mean)).sum())
    assert ours == pytest.approx(max(log_likelihood(X, weight, tree, 0.0) for tree in every_tree(4)), rel=1e-7)


def test_best_tree_has_the_highest_sum_of_gains():
    tree = best_tree(np.array([1.0, 5.0, 2.0, 0.0, 4.0, 3.0]))
    assert tree.T.tolist() == [0.0, 1.0, 0.0, 0.0, 1.0, 1.0] and tree.edges.tolist() == [[0, 2], [1, 3], [2, 3]]


def test_a_row_with_a_gap_scores_as_its_seen_columns_do():
    X = words(80, 3, missing=0.2)
    columns, cells = columns_of(X)
    tables = fixed_tables(cells, np.ones(80), columns, 1.0, np.zeros(4))
    mean = RNG(0).random(6)
    scores = tables.features(cells, columns.layout)
    scores = scores.offset + scores.dot(mean)
    weights = np.zeros((4, 4))
    weights[np.triu_indices(4, 1)] = mean
    assert X.isna().to_numpy().any(axis=1).sum() > 20
    for t in range(80):
        seen = np.flatnonzero(X.iloc[t].notna())
        code = {v: np.flatnonzero(cells[t, cell(columns, v)])[0] for v in seen}
        wanted = sum(tables.log_marginals[cell(columns, v)][code[v]] for v in seen)
        for i, u in enumerate(seen):
            for v in seen[i + 1 :]:
                wanted += weights[u, v] * tables.log_ratios[cell(columns, u), cell(columns, v)][code[u], code[v]]
        assert scores[t] == pytest.approx(wanted, rel=1e-11)


def test_pairs_that_are_not_both_seen_count_nothing():
    X = words(80, 3, missing=0.2)
    columns, cells = columns_of(X)
    tables = fixed_tables(cells, np.ones(80), columns, 1.0, np.zeros(4))
    both = X["b"].notna() & X["c"].notna()
    joint = pd.crosstab(X["b"][both], X["c"][both]).to_numpy() + 0.25
    alone = np.exp(tables.log_marginals)
    b, c = cell(columns, 1), cell(columns, 2)
    got = np.exp(tables.log_ratios[b, c]) * np.outer(alone[b], alone[c])
    np.testing.assert_allclose(got, joint / joint.sum(), rtol=1e-11)


@pytest.mark.parametrize("structure", ["uniform", "posterior"])
def test_counts_of_unknown_tables_are_those_of_rows_and_even_ones(structure):
    X, weight = words(), RNG(0).uniform(size=60)
    columns, cells = columns_of(X, weight)
    tables = counted_tables(cells, weight, columns.layout, 3.0, structure)
    assert tables.rows == pytest.approx(weight.sum() + 3.0)
    joint = [[weight[(X["a"] == f"v{i}") & (X["c"] == f"v{j}")].sum() + 0.5 for j in "01"] for i in "012"]
    np.testing.assert_allclose(tables.pairs[cell(columns, 0), cell(columns, 2)], joint, rtol=1e-12)
    np.testing.assert_allclose(tables.cells[cell(columns, 0)], np.sum(joint, axis=1), rtol=1e-12)
    even = np.allclose(tables.trees.mean, 0.5)
    assert even == (structure == "uniform") and tables.structure.any() == even


# --- numbers --------------------------------------------------------------------------------------------------------


def numbers(n=200, seed=0):
    rng = RNG(seed)
    z = rng.multivariate_normal([1.0, -2.0, 50.0], [[1, 0.8, 3], [0.8, 2, 1], [3, 1, 25]], size=n)
    return pd.DataFrame(z, columns=["x", "y", "z"])


def test_pairs_of_numbers_are_bivariate_normal():
    """w_uv is the logarithm of the bivariate normal over the product of its marginals."""
    X = numbers()
    columns, cells = columns_of(X)
    Z = ((X - X.mean()) / X.std(ddof=0)).to_numpy()
    weight = RNG(5).uniform(size=200) * (1 + (Z[:, 0] > 0))  # a class whose means are not those of all rows
    N = weight.sum() + PRIOR_ROWS
    tables = fixed_tables(cells, weight, columns, 1.0, np.ones(3))
    mean = weight @ Z / N
    var = (weight @ Z**2 + PRIOR_ROWS) / N - mean**2
    features, offset = tables.features(cells, columns.layout).to_array(), tables.features(cells, columns.layout).offset
    np.testing.assert_allclose(offset, norm.logpdf(Z, mean, np.sqrt(var)).sum(axis=1), rtol=1e-9)
    first = (weight @ Z + PRIOR_ROWS * mean) / N
    second = ((Z * weight[:, None]).T @ Z + PRIOR_ROWS * (np.outer(mean, mean) + np.diag(var))) / N - np.outer(
        first, first
    )
    rho = second / np.sqrt(np.outer(np.diagonal(second), np.diagonal(second)))
    for e, (u, v) in enumerate(zip(*np.triu_indices(3, 1))):
        cov = rho[u, v] * np.sqrt(var[u] * var[v])
        both = multivariate_normal(mean[[u, v]], [[var[u], cov], [cov, var[v]]]).logpdf(Z[:, [u, v]])
        apart = norm.logpdf(Z[:, u], mean[u], var[u] ** 0.5) + norm.logpdf(Z[:, v], mean[v], var[v] ** 0.5)
        np.testing.assert_allclose(features[:, e], both - apart, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(tables.gains, weight @ features, rtol=1e-9)
    information = tables.gains / tables.rows
    np.testing.assert_allclose(information, -0.5 * np.log(1 - rho[np.triu_indices(3, 1)] ** 2), atol=0.03)


def test_a_number_given_a_category_is_normal():
    X = numbers(150).assign(k=np.array(list("uvw"))[RNG(2).integers(3, size=150)])[["k", "x", "y"]]
    X.loc[X.k == "v", "x"] += 3.0
    columns, cells = columns_of(X)
    z = ((X.x - X.x.mean()) / X.x.std(ddof=0)).to_numpy()
    weight = 0.3 + (z > 0)  # a class whose mean is not that of all rows
    tables = fixed_tables(cells, weight, columns, 1.0, np.full(3, 0.5))
    row_features = tables.features(cells, columns.layout)
    mean = weight @ z / (weight.sum() + PRIOR_ROWS)
    var = (weight @ z**2 + PRIOR_ROWS * 0.5) / (weight.sum() + PRIOR_ROWS) - mean**2
    for k in "uvw":
        own = (X.k == k).to_numpy()
        N = weight[own].sum() + PRIOR_ROWS
        m = (weight[own] @ z[own] + PRIOR_ROWS * mean) / N
        v = (weight[own] @ z[own] ** 2 + PRIOR_ROWS * (var + mean**2)) / N - m**2
        wanted = norm.logpdf(z[own], m, np.sqrt(v)) - norm.logpdf(z[own], mean, np.sqrt(var))
        np.testing.assert_allclose(row_features.to_array()[own, 0], wanted, rtol=1e-9, atol=1e-10)
    assert np.abs(tables.log_ratios - tables.log_ratios.T).max() < 1e-12
    assert not tables.log_ratios[~columns.layout.different].any()


def test_a_number_that_is_missing_drops_out():
    X = numbers(100).mask(RNG(0).random((100, 3)) < 0.2)
    columns, cells = columns_of(X)
    tables = fixed_tables(cells, np.ones(100), columns, 1.0, np.ones(3))
    row_features = tables.features(cells, columns.layout)
    gap = X.x.isna().to_numpy()
    assert gap.any() and not row_features.to_array()[gap][:, :2].any()  # edges of x
    assert not cells[gap][:, :3].any() and (cells[~gap, 0] == 1).all()
    single = X.notna().to_numpy().sum(axis=1) == 1
    assert single.any() and not row_features.to_array()[single].any()


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_powers_are_standardized(offset):
    X = numbers(100)[["x"]] + offset
    weight = RNG(0).uniform(size=100)
    columns, cells = columns_of(X, weight)
    assert isinstance(columns.columns[0], PowersColumn) and columns.powers.tolist() == [0]
    np.testing.assert_allclose(cells[:, 0], 1.0)
    assert weight @ cells[:, 1] / weight.sum() == pytest.approx(0.0, abs=1e-6)
    assert weight @ cells[:, 2] / weight.sum() == pytest.approx(1.0, rel=1e-6)
    np.testing.assert_allclose(cells[:, 1] ** 2, cells[:, 2])


def test_a_constant_number_stays_zero():
    X = pd.DataFrame({"x": np.full(20, 7e6), "y": np.arange(20.0)})
    columns, cells = columns_of(X)
    assert not cells[:, 1:3].any() and not (np.abs(columns(read_table(X + 5.0))[:, 1:3]) > 1e-200).any()
    tables = fixed_tables(cells, np.ones(20), columns, 1.0, np.array([0.0, 1.0]))
    assert (
        np.isfinite(tables.log_ratios).all()
        and np.isfinite(tables.log_marginals).all()
        and np.isfinite(tables.gains).all()
    )


def test_equal_columns_have_finite_tables():
    X = numbers(50)[["x"]].assign(again=lambda X: X.x, back=lambda X: -X.x)
    columns, cells = columns_of(X)
    tables = fixed_tables(cells, np.ones(50), columns, 1.0, np.ones(3))
    assert np.isfinite(tables.features(cells, columns.layout).to_array()).all() and tables.gains.min() > 50


# --- cells ----------------------------------------------------------------------------------------------------------


def test_soft_quantization_is_a_distribution_over_components_of_every_class():
    rng = RNG(0)
    y = rng.integers(2, size=300)
    X = pd.DataFrame({"x": np.where(y == 1, rng.choice([-5.0, 5.0], size=300), 0.0) + rng.normal(size=300)})
    member = np.eye(2)[y]
    X.loc[:9, "x"] = np.nan
    columns, cells = columns_of(X, continuous="quantized", member=member)
    assert isinstance(columns.columns[0], SoftColumn) and columns.layout.n_cells >= 3
    np.testing.assert_allclose(cells[10:].sum(axis=1), 1.0, rtol=1e-12)
    assert (cells >= 0).all() and not cells[:10].any()
    mixture = columns.columns[0].mixture
    assert mixture.weights.sum() == pytest.approx(1.0) and (np.diff(mixture.means) >= 0).all()
    density = np.exp(norm.logpdf(X.x.to_numpy()[10:, None], mixture.means, np.sqrt(mixture.variances)))
    joint = density * mixture.weights
    np.testing.assert_allclose(cells[10:], joint / joint.sum(axis=1, keepdims=True), rtol=1e-7, atol=1e-12)


def test_soft_columns_take_what_there_is():
    """A class, or all classes, may not have seen the column."""
    y = np.repeat([0, 1], 20)
    X = pd.DataFrame({"x": np.where(y == 1, np.nan, np.arange(40.0)), "w": np.arange(40.0)})
    _, cells = columns_of(X, continuous="quantized", member=np.eye(2)[y])
    np.testing.assert_allclose(cells[:20].sum(axis=1), 2.0)
    nobody = TreeColumns.of(read_table(X).take(slice(20, 40)), np.eye(2)[y[20:]], np.ones(20), "quantized", False)
    assert nobody.columns[0].size == 1


def test_missing_values_are_filled_with_the_shares_of_all_rows_on_request():
    X = words(50, 1, missing=0.2)
    weight = RNG(0).uniform(size=50)
    _, cells = columns_of(X, weight, fill=True)
    gap = X["a"].isna().to_numpy()
    share = np.array([weight[X["a"] == f"v{k}"].sum() for k in "012"])
    np.testing.assert_allclose(cells[gap][:, :3], np.tile(share / share.sum(), (gap.sum(), 1)), rtol=1e-6)
    np.testing.assert_allclose(cells.sum(axis=1), 4.0, rtol=1e-12)


def test_a_category_that_was_not_seen_is_a_gap():
    table = read_table(pd.DataFrame({"a": ["x", "y", "x"]}))
    column = CodedColumn(0, 1)  # trained where only the first was
    assert column.cells(table).tolist() == [[1.0], [0.0], [1.0]]


def test_columns_keep_the_order_of_the_table():
    X = numbers(30)[["x"]].assign(k=list("ab") * 15, y=lambda X: X.x**2)
    columns, cells = columns_of(X)
    assert [type(c).__name__ for c in columns.columns] == ["PowersColumn", "CodedColumn", "PowersColumn"]
    assert columns.layout == CellLayout((3, 2, 3)) and cells.shape == (30, 8) and columns.powers.tolist() == [0, 2]
