"""Families known by natural statistics, and the rows they see, beside enumeration and plain loops."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import betaln, gammaln, logsumexp, polygamma, psi

from mixent.core.driver import OutsideDomainError
from mixent.med.families import CellLayout, Dirichlets, Product, SingleTree, TreeDistribution, TreeTables
from mixent.med.features import CountFeatures, EdgeFeatures, FeatureMatrix

from .enumeration import every_tree


def one_hot(codes, sizes):
    return np.concatenate([np.eye(size)[codes[:, v]] for v, size in enumerate(sizes)], axis=1)


def derivative(function, T, f, h=1e-5):
    return (function(T + h * f) - function(T - h * f)) / (2 * h)


SIZES = [(2,), (2, 3), (3, 1, 2), (2, 3, 2, 2), (2, 2, 3, 2, 2)]


class Listed:
    """Trees with Dirichlet tables, one by one; every table from the counts of weighted rows."""

    def __init__(self, sizes, seed=0, structure=None):
        rng = np.random.default_rng(seed)
        self.sizes, self.n = sizes, len(sizes)
        self.codes = np.column_stack([rng.integers(size, size=40) for size in sizes])
        self.weight = rng.uniform(0.1, 1.0, size=40)
        self.trees = every_tree(self.n)
        E = self.n * (self.n - 1) // 2
        self.structure = np.zeros(E) if structure is None else rng.normal(size=E)
        self.place = {edge: e for e, edge in enumerate(zip(*np.triu_indices(self.n, 1)))}
        spread = np.concatenate([[1.0], 1.0 / np.repeat(sizes, sizes)])
        self.layout = CellLayout(sizes)
        self.T = (
            CountFeatures.of(one_hot(self.codes, sizes)).weighted_sum(self.weight)
            + 2.0 * np.outer(spread, spread).ravel()
        )
        self.tables = TreeTables(self.T, self.layout, self.structure)

    def pair(self, u, v):
        """N_uv, (r_u, r_v): two rows are spread evenly."""
        out = np.full((self.sizes[u], self.sizes[v]), 2.0 / (self.sizes[u] * self.sizes[v]))
        np.add.at(out, (self.codes[:, u], self.codes[:, v]), self.weight)
        return out

    def alone(self, v):
        out = np.full(self.sizes[v], 2.0 / self.sizes[v])
        np.add.at(out, self.codes[:, v], self.weight)
        return out

    def rooted(self, tree, root):
        """(parent, child) from the root down."""
        left, visited, out = list(tree), {root}, []
        while left:
            edge = next(e for e in left if (e[0] in visited) != (e[1] in visited))
            left.remove(edge)
            parent, child = edge if edge[0] in visited else edge[::-1]
            out.append((parent, child))
            visited.add(child)
        return out

    def log_integral(self, tree, root):
        """Of P(root) prod P(child | parent): one Dirichlet for the root, one for every value of each parent."""
        a = self.alone(root)
        total = gammaln(a).sum() - gammaln(a.sum())
        for parent, child in self.rooted(tree, root):
            for row in self.pair(parent, child):
                total += gammaln(row).sum() - gammaln(row.sum())
        return total

    def log_weight(self, tree):
        """Of a tree, tables integrated out."""
        return self.log_integral(tree, 0) + sum(self.structure[self.place[edge]] for edge in tree)

    @property
    def probability(self):
        logs = np.array([self.log_weight(tree) for tree in self.trees])
        return np.exp(logs - logsumexp(logs))

    def log_prob(self, tree, x):
        """E[log T(x) | tree]."""
        a = self.alone(0)
        total = psi(a[x[0]]) - psi(a.sum())
        for parent, child in self.rooted(tree, 0):
            row = self.pair(parent, child)[x[parent]]
            total += psi(row[x[child]]) - psi(row.sum())
        return total

    def covariance(self, tree, x, z):
        """Cov[log T(x), log T(z) | tree]: tables of different places are independent."""
        a = self.alone(0)
        total = polygamma(1, a[x[0]]) * (x[0] == z[0]) - polygamma(1, a.sum())
        for parent, child in self.rooted(tree, 0):
            if x[parent] == z[parent]:
                row = self.pair(parent, child)[x[parent]]
                total += polygamma(1, row[x[child]]) * (x[child] == z[child]) - polygamma(1, row.sum())
        return float(total)


@pytest.mark.parametrize("structure", [None, "own"])
@pytest.mark.parametrize("sizes", SIZES)
def test_tables_integrate_as_rooted_trees_do_whatever_the_root(sizes, structure):
    """Appendix B: the partition is the sum over all trees of Dirichlet integrals (likelihood equivalence)."""
    listed = Listed(sizes, structure=structure)
    for root in range(listed.n):
        logs = [
            listed.log_integral(tree, root) + sum(listed.structure[listed.place[edge]] for edge in tree)
            for tree in listed.trees
        ]
        assert listed.tables.log_partition == pytest.approx(logsumexp(logs), rel=1e-11)


@pytest.mark.parametrize("sizes", SIZES)
def test_expected_log_probabilities_are_those_of_equations_67_and_68(sizes):
    listed = Listed(sizes, 1, "own")
    rows = np.random.default_rng(3).integers(0, sizes, size=(6, len(sizes)))
    p = listed.probability
    wanted = [sum(q * listed.log_prob(tree, x) for q, tree in zip(p, listed.trees)) for x in rows]
    row_features = CountFeatures.of(one_hot(rows, sizes))
    np.testing.assert_allclose(row_features.dot(listed.tables.mean), wanted, rtol=1e-10)
    np.testing.assert_allclose(row_features.to_array() @ listed.tables.mean, wanted, rtol=1e-10)


@pytest.mark.parametrize("sizes", SIZES)
def test_the_metric_is_the_covariance_of_log_probabilities(sizes):
    """Of tables given the tree, and of the trees: the law of total covariance."""
    listed = Listed(sizes, 2, "own")
    rows = np.random.default_rng(4).integers(0, sizes, size=(4, len(sizes)))
    p = listed.probability
    means = np.array([[listed.log_prob(tree, x) for x in rows] for tree in listed.trees])
    about = means - p @ means
    wanted = (about * p[:, None]).T @ about
    for q, tree in zip(p, listed.trees):
        wanted += q * np.array([[listed.covariance(tree, x, z) for z in rows] for x in rows])
    phi = CountFeatures.of(one_hot(rows, sizes)).to_array()
    np.testing.assert_allclose(listed.tables.gram(phi), wanted, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(
        phi @ np.array([listed.tables.hessian_product(f) for f in phi]).T, wanted, rtol=1e-9, atol=1e-11
    )


@pytest.mark.parametrize("sizes", SIZES)
def test_gradient_and_hessian_of_tables_equal_finite_differences(sizes):
    listed = Listed(sizes, 5, "own")
    width = 1 + sum(sizes)
    rng = np.random.default_rng(6)
    T, tables = listed.T, listed.tables
    for _ in range(3):
        f = rng.normal(size=(width, width))
        f = 0.1 * (f + f.T).ravel()
        slope = derivative(lambda T: tables.with_natural_parameters(T).log_partition, T, f)
        assert tables.mean @ f == pytest.approx(slope, rel=1e-6)
        np.testing.assert_allclose(
            tables.hessian_product(f), derivative(lambda T: tables.with_natural_parameters(T).mean, T, f), atol=1e-6
        )


def test_soft_rows_are_counted_as_they_are():
    """A row spread over cells adds the products of its shares."""
    rng = np.random.default_rng(0)
    cells = np.concatenate([rng.dirichlet(np.ones(3), size=5), rng.dirichlet(np.ones(2), size=5)], axis=1)
    row_features, alpha = CountFeatures.of(cells), rng.normal(size=5)
    counts = row_features.weighted_sum(alpha).reshape(6, 6)
    assert counts[0, 0] == pytest.approx(alpha.sum())
    np.testing.assert_allclose(counts[0, 1:], alpha @ cells)
    np.testing.assert_allclose(counts[1:4, 4:], sum(a * np.outer(c[:3], c[3:]) for a, c in zip(alpha, cells)))
    np.testing.assert_allclose(counts[1:4, 4:].sum(axis=1), counts[0, 1:4])  # marginals agree (41)


@pytest.mark.parametrize("sizes", SIZES)
def test_to_begin_with_all_trees_are_equally_probable_where_that_is_asked(sizes):
    listed = Listed(sizes)
    even = listed.tables.uniform
    np.testing.assert_allclose(even.trees.mean, np.full(len(even.structure), 2 / max(len(sizes), 1)), rtol=1e-10)
    np.testing.assert_array_equal(even.T, listed.T)
    changed = even.with_natural_parameters(1.7 * listed.T)
    np.testing.assert_array_equal(changed.structure, even.structure)
    again = [
        sum(changed._evidence[listed.place[e]] - listed.tables._evidence[listed.place[e]] for e in tree)
        for tree in listed.trees
    ]
    p = np.exp(again - logsumexp(again))
    wanted = [sum(q for q, tree in zip(p, listed.trees) if edge in tree) for edge in listed.place]
    np.testing.assert_allclose(changed.trees.mean, wanted, rtol=1e-9)


def test_relative_entropy_of_tables_is_that_of_trees_and_of_tables_given_them():
    listed, sizes = Listed((2, 3, 2), 7, "own"), (2, 3, 2)
    other = Listed(sizes, 8, "own")
    other.structure = listed.structure
    tables = TreeTables(other.T, listed.layout, listed.structure)
    p, q = other.probability, listed.probability
    wanted = float(p @ np.log(p / q))
    for share, tree in zip(p, listed.trees):
        groups = [(other.alone(0), listed.alone(0))]
        for parent, child in listed.rooted(tree, 0):
            groups += list(zip(other.pair(parent, child), listed.pair(parent, child)))
        wanted += share * sum(_dirichlet_divergence(a, b) for a, b in groups)
    assert tables.divergence(listed.tables) == pytest.approx(wanted, rel=1e-10)


def _dirichlet_divergence(a, b):
    """Between two Dirichlet distributions, nats."""
    log_ratio = gammaln(a.sum()) - gammaln(a).sum() - gammaln(b.sum()) + gammaln(b).sum()
    return float(log_ratio + (a - b) @ (psi(a) - psi(a.sum())))


@pytest.mark.parametrize("where", ["rows", "cell", "pair", "nan", "zero"])
def test_counts_that_are_not_positive_are_outside(where):
    listed = Listed((2, 3, 2))
    T = listed.T.reshape(8, 8).copy()
    at = {"rows": (0, 0), "cell": (0, 3), "pair": (2, 4), "nan": (2, 5), "zero": (1, 7)}[where]
    T[at] = T[at[::-1]] = {"nan": np.nan, "zero": 0.0}.get(where, -0.5)
    with pytest.raises(OutsideDomainError, match="not positive"):
        listed.tables.with_natural_parameters(T.ravel())
    T = listed.T.reshape(8, 8).copy()
    T[1, 2] = T[2, 1] = 0.0  # cells of one column count nothing
    assert listed.tables.with_natural_parameters(T.ravel()).log_partition == listed.tables.log_partition


# --- known tables ---------------------------------------------------------------------------------------------------


def test_trees_agree_with_enumeration():
    rng = np.random.default_rng(0)
    T, prior = rng.normal(size=(2, 10)) * 2
    place = {edge: e for e, edge in enumerate(zip(*np.triu_indices(5, 1)))}
    member = np.array([[edge in tree for edge in place] for tree in every_tree(5)], dtype=float)

    def probability(T):
        return np.exp(member @ T - logsumexp(member @ T))

    ours, before, p, q = TreeDistribution(T), TreeDistribution(prior), probability(T), probability(prior)
    assert ours.log_partition == pytest.approx(logsumexp(member @ T), rel=1e-12)
    np.testing.assert_allclose(ours.mean, p @ member, rtol=1e-10)
    cov = (member.T * p) @ member - np.outer(p @ member, p @ member)
    F = rng.normal(size=(3, 10))
    np.testing.assert_allclose(ours.gram(F), F @ cov @ F.T, rtol=1e-10)
    np.testing.assert_allclose(F @ np.array([ours.hessian_product(f) for f in F]).T, F @ cov @ F.T, rtol=1e-10)
    assert ours.divergence(before) == pytest.approx(p @ np.log(p / q), rel=1e-11)
    assert before.max_divergence == pytest.approx(-np.log(q.min()), rel=1e-11)
    assert ours.divergence(before) < before.max_divergence
    with pytest.raises(OutsideDomainError, match="edge weights"):
        ours.with_natural_parameters(np.where(np.arange(10) == 3, np.inf, T))


def test_a_tree_that_is_certain_stays():
    tree = SingleTree(np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0]))  # 0-1, 0-3, 2-3
    assert tree.edges.tolist() == [[0, 1], [0, 3], [2, 3]]
    assert (
        tree.log_partition == 0.0 and tree.mean is tree.T and tree.with_natural_parameters(np.full(6, np.nan)) is tree
    )
    assert not tree.hessian_product(np.ones(6)).any() and not tree.gram(np.ones((2, 6))).any()
    assert tree.divergence(tree) == 0.0
    assert SingleTree(np.zeros(0)).edges.shape == (0, 2)


# --- Dirichlet distributions ----------------------------------------------------------------------------------------


def test_dirichlets_side_by_side():
    rng = np.random.default_rng(1)
    group = np.array([0, 1, 0, 2, 1, 0, 2])
    T, prior = rng.uniform(0.2, 5.0, size=(2, 7))
    ours, before = Dirichlets(T, group), Dirichlets(prior, group)
    own = [T[group == g] for g in range(3)]
    logs = sum(gammaln(a).sum() - gammaln(a.sum()) for a in own)
    assert ours.log_partition == pytest.approx(logs, rel=1e-12)
    assert Dirichlets(np.array([2.5, 0.7]), np.zeros(2, int)).log_partition == pytest.approx(betaln(2.5, 0.7))
    f = rng.normal(size=7)
    assert ours.mean @ f == pytest.approx(
        derivative(lambda T: ours.with_natural_parameters(T).log_partition, T, f), rel=1e-7
    )
    np.testing.assert_allclose(
        ours.hessian_product(f), derivative(lambda T: ours.with_natural_parameters(T).mean, T, f), rtol=1e-6
    )
    F = rng.normal(size=(4, 7))
    np.testing.assert_allclose(ours.gram(F), F @ np.array([ours.hessian_product(g) for g in F]).T, rtol=1e-12)
    parts = [(T[group == g], prior[group == g]) for g in range(3)]
    assert ours.divergence(before) == pytest.approx(sum(_dirichlet_divergence(a, b) for a, b in parts), rel=1e-10)
    np.testing.assert_allclose(np.bincount(group, np.exp(ours.log_predictive)), 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.exp(ours.log_predictive)[group == 1], own[1] / own[1].sum(), rtol=1e-12)


def test_the_mean_of_a_dirichlet_is_the_expected_logarithm():
    a = np.array([3.0, 1.5, 2.0])
    sample = np.random.default_rng(0).dirichlet(a, size=200_000)
    np.testing.assert_allclose(Dirichlets(a, np.zeros(3, int)).mean, np.log(sample).mean(axis=0), atol=0.01)
    hessian_product = [Dirichlets(a, np.zeros(3, int)).hessian_product(e) for e in np.eye(3)]
    np.testing.assert_allclose(hessian_product, np.cov(np.log(sample).T), atol=0.02)


# --- products -------------------------------------------------------------------------------------------------------


def test_a_product_is_its_parts():
    rng = np.random.default_rng(2)
    parts = (TreeDistribution(rng.normal(size=6)), Dirichlets(rng.uniform(1, 2, size=4), np.array([0, 0, 1, 1])))
    both = Product(parts)
    f, F = rng.normal(size=10), rng.normal(size=(3, 10))
    assert both.log_partition == parts[0].log_partition + parts[1].log_partition
    np.testing.assert_array_equal(both.T, np.r_[parts[0].T, parts[1].T])
    np.testing.assert_array_equal(both.mean, np.r_[parts[0].mean, parts[1].mean])
    np.testing.assert_array_equal(
        both.hessian_product(f), np.r_[parts[0].hessian_product(f[:6]), parts[1].hessian_product(f[6:])]
    )
    np.testing.assert_allclose(both.gram(F), F @ np.array([both.hessian_product(g) for g in F]).T, rtol=1e-11)
    T = both.T + 0.1
    other = both.with_natural_parameters(T)
    np.testing.assert_array_equal(other.T, T)
    wanted = sum(part.with_natural_parameters(own).divergence(part) for part, own in zip(parts, (T[:6], T[6:])))
    assert other.divergence(both) == pytest.approx(wanted, rel=1e-10)
    with pytest.raises(OutsideDomainError):
        both.with_natural_parameters(T - 5.0)


# --- views ----------------------------------------------------------------------------------------------------------


def _edges(seed=0, n=9, sizes=(2, 3, 1, 3)):
    rng = np.random.default_rng(seed)
    layout = CellLayout(sizes)
    table = rng.normal(size=(9, 9))
    table = np.where(layout.different, table + table.T, 0.0)
    return EdgeFeatures(rng.normal(size=(n, 9)), table, rng.normal(size=9), layout)


def _kinds():
    rng = np.random.default_rng(1)
    phi = rng.normal(size=(9, 6)) * (rng.random((9, 6)) < 0.5)
    return {
        "dense": FeatureMatrix(phi, rng.normal(size=9)),
        "sparse": FeatureMatrix(sp.csr_array(phi)),
        "edges": _edges(),
        "counted": CountFeatures.of(rng.normal(size=(9, 4))).add_offset(2.5),
    }


@pytest.mark.parametrize("name", ["dense", "sparse", "edges", "counted"])
def test_every_view_is_a_matrix_of_features(name):
    row_features = _kinds()[name]
    phi = row_features.to_array()
    rng = np.random.default_rng(2)
    alpha, mean = rng.normal(size=9), rng.normal(size=phi.shape[1])
    assert row_features.n_rows == 9 == len(row_features.offset) and row_features.row_bytes > 0
    np.testing.assert_allclose(row_features.dot(mean), phi @ mean, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(row_features.weighted_sum(alpha), phi.T @ alpha, rtol=1e-11, atol=1e-12)
    assert alpha @ row_features.dot(mean) == pytest.approx(
        row_features.weighted_sum(alpha) @ mean, rel=1e-11
    )  # transposes
    for rows in (slice(2, 5), np.array([7, 0, 0])):
        part = row_features.take(rows)
        np.testing.assert_allclose(part.to_array(), phi[rows], rtol=1e-12)
        np.testing.assert_array_equal(part.offset, row_features.offset[rows])
        np.testing.assert_allclose(part.dot(mean), phi[rows] @ mean, rtol=1e-11, atol=1e-12)


def test_the_features_of_edges_are_sums_over_pairs_of_cells():
    row_features = _edges()
    start = row_features.layout.starts
    for t in range(row_features.n_rows):
        wanted = [
            sum(
                row_features.cells[t, i] * row_features.log_ratios[i, j] * row_features.cells[t, j]
                for i in range(start[u], start[u] + row_features.layout.sizes[u])
                for j in range(start[v], start[v] + row_features.layout.sizes[v])
            )
            for u, v in zip(*np.triu_indices(4, 1))
        ]
        np.testing.assert_allclose(row_features.to_array()[t], wanted, rtol=1e-11)
    np.testing.assert_allclose(row_features.offset, row_features.cells @ row_features.log_marginals)


def test_counted_rows_are_products_of_cells():
    cells = np.random.default_rng(5).normal(size=(3, 2))
    rows = np.column_stack([np.ones(3), cells])
    np.testing.assert_array_equal(CountFeatures.of(cells).to_array(), [np.outer(r, r).ravel() for r in rows])
    assert CountFeatures.of(cells).add_offset(-1.5).offset.tolist() == [-1.5] * 3


def test_the_layout_sums_what_it_spreads():
    layout = CellLayout((2, 3, 1))
    assert layout.n == 3 and layout.n_cells == 6 and layout.starts.tolist() == [0, 2, 5]
    cells, pairs = np.arange(6.0), np.arange(36.0).reshape(6, 6)
    assert layout.by_column(cells).tolist() == [1.0, 9.0, 5.0]
    assert layout.by_pair(pairs)[0, 1] == pairs[:2, 2:5].sum() and layout.by_pair(pairs)[2, 0] == pairs[5, :2].sum()
    assert layout.spread(np.array([1.0, 2.0, 3.0])).tolist() == [1, 1, 2, 2, 2, 3]
    np.testing.assert_array_equal(layout.by_pair(layout.spread_pairs(np.eye(3))), np.diag([4.0, 9.0, 1.0]))
    assert layout.different.sum() == 36 - 4 - 9 - 1
