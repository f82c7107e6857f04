"""Distributions over spanning trees, beside the list of all n^(n-2) of them."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from mixent.med.spanning_trees import SpanningTrees, heaviest_tree, n_edges, n_vertices, packed, unpacked

from .enumeration import every_tree

DIGITS = 600


class Listed:
    """The distribution, by summing over the list, with more digits than the weights span."""

    def __init__(self, log_weights, n):
        place = {(u, v): e for e, (u, v) in enumerate(zip(*np.triu_indices(n, 1)))}
        self.trees = [[place[edge] for edge in tree] for tree in every_tree(n)]
        self.E = len(log_weights)
        with localcontext() as context:
            context.prec = DIGITS
            weight = [Decimal(0) if w == -np.inf else Decimal(float(w)).exp() for w in log_weights]
            product_of = [self._product(weight, tree) for tree in self.trees]
            Z = sum(product_of, Decimal(0))
            self.log_partition = float(Z.ln())
            self.probability = [p / Z for p in product_of]
            self.mean = np.array([float(sum(self._over(e), Decimal(0))) for e in range(self.E)])

    @staticmethod
    def _product(weight, tree):
        out = Decimal(1)
        for e in tree:
            out *= weight[e]
        return out

    def _over(self, *edges):
        return [p for p, tree in zip(self.probability, self.trees) if all(e in tree for e in edges)]

    def covariances(self):
        """(E, E), each to its own last digit."""
        out = np.empty((self.E, self.E))
        with localcontext() as context:
            context.prec = DIGITS
            alone = [sum(self._over(e), Decimal(0)) for e in range(self.E)]
            for i in range(self.E):
                for j in range(i, self.E):
                    out[i, j] = out[j, i] = float(sum(self._over(i, j), Decimal(0)) - alone[i] * alone[j])
        return out


def log_weights_of(n, span, seed):
    """`span` nats from the lightest to the heaviest edge, about."""
    return np.random.default_rng(seed).uniform(-span / 2, span / 2, size=n_edges(n))


@pytest.mark.parametrize("n", range(1, 8))
def test_there_are_as_many_trees_as_by_cayleys_formula(n):
    trees = SpanningTrees(np.zeros(n_edges(n)))
    assert len(set(map(frozenset, every_tree(n)))) == max(n, 1) ** max(n - 2, 0) == len(every_tree(n))
    assert trees.log_partition == pytest.approx(max(n - 2, 0) * np.log(n), abs=1e-13)
    np.testing.assert_allclose(trees.mean, 2 / n, rtol=1e-13)
    assert trees.n == n and trees.best.shape == (n - 1, 2)


@pytest.mark.parametrize("span", [0.0, 3.0, 40.0, 600.0])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_partition_and_marginals_equal_enumeration(n, span):
    """The smallest marginal too has all its digits."""
    log_weights = log_weights_of(n, span, n)
    ours, listed = SpanningTrees(log_weights), Listed(log_weights, n)
    assert ours.log_partition == pytest.approx(listed.log_partition, rel=1e-13, abs=1e-12)
    np.testing.assert_allclose(ours.mean, listed.mean, rtol=1e-10)
    assert span < 600 or listed.mean.min() < 1e-25 or n == 2


@pytest.mark.parametrize("seed", range(12))
def test_marginals_have_their_digits_over_hundreds_of_nats(seed):
    log_weights = log_weights_of(5, [80.0, 500.0, 1200.0][seed % 3], 100 + seed)
    listed = Listed(log_weights, 5)
    np.testing.assert_allclose(SpanningTrees(log_weights).mean, listed.mean, rtol=1e-10)


@pytest.mark.parametrize(("n", "span"), [(2, 1.0), (3, 5.0), (4, 2.0), (5, 30.0), (5, 300.0), (6, 4.0)])
def test_averages_and_second_moments_are_those_of_lemmas_4_and_5(n, span):
    log_weights = log_weights_of(n, span, 7 * n)
    ours, listed = SpanningTrees(log_weights), Listed(log_weights, n)
    cov = listed.covariances()
    rng = np.random.default_rng(n)
    f, g = rng.normal(size=(2, n_edges(n)))
    member = np.array([[e in tree for e in range(listed.E)] for tree in listed.trees], dtype=float)
    p = np.array(listed.probability, dtype=float)
    assert ours.average(f) == pytest.approx(p @ (member @ f), rel=1e-10)
    second = p @ ((member @ f) * (member @ g))
    assert ours.covariance(f, g) + ours.average(f) * ours.average(g) == pytest.approx(second, rel=1e-10)
    np.testing.assert_allclose(ours.hessian_product(f), cov @ f, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose([ours.hessian_product(e) for e in np.eye(listed.E)], cov, rtol=1e-10, atol=1e-13)
    F = rng.normal(size=(4, listed.E))
    np.testing.assert_allclose(ours.gram(F), F @ cov @ F.T, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("span", "seed"), [(20.0, 1), (200.0, 3), (600.0, 2)])
def test_two_edges_exclude_each_other_to_the_last_digit_of_their_marginals(span, seed):
    """Covariances P(e, f) - P(e) P(f) of different edges are never positive (Rayleigh); even small ones are precise."""
    log_weights = log_weights_of(5, span, seed)
    listed = Listed(log_weights, 5)
    cov, trees = listed.covariances(), SpanningTrees(log_weights)
    ours = np.array([trees.hessian_product(e) for e in np.eye(10)])
    apart = ~np.eye(10, dtype=bool)
    assert (cov[apart] <= 0).all() and (span < 100 or cov[apart].max() > -1e-60)
    assert (np.abs(ours - cov)[apart] <= 1e-12 * np.outer(listed.mean, listed.mean)[apart]).all()


@pytest.mark.parametrize("span", [10.0, 3000.0])
def test_many_vertices_have_the_marginals_and_covariances_of_the_flows_on_their_edges(span):
    """Beside the transfer-current matrix in the coordinates of the edges of the heaviest tree, which takes O(n^4)."""
    n = 24
    log_weights = log_weights_of(n, span, 5)
    trees = SpanningTrees(log_weights)
    u, v = np.triu_indices(n, 1)
    from_root = np.zeros((n, n - 1))
    order, parent = heaviest_tree(np.where(np.eye(n) > 0, -np.inf, unpacked(log_weights, n)))
    for step in range(1, n):
        from_root[order[step]] = from_root[parent[order[step]]]
        from_root[order[step], step - 1] = 1.0
    path = from_root[u] - from_root[v]
    tree_weights = unpacked(log_weights, n)[order[1:], parent[order[1:]]]
    Y = path * np.exp(0.5 * np.where(path != 0, log_weights[:, None] - tree_weights, -np.inf))
    currents = Y @ np.linalg.solve(Y.T @ Y, Y.T)
    np.testing.assert_allclose(trees.mean, np.diagonal(currents), rtol=1e-9)
    assert trees.log_partition == pytest.approx(tree_weights.sum() + np.linalg.slogdet(Y.T @ Y)[1], rel=1e-13)
    f = np.random.default_rng(0).normal(size=len(u))
    cov = np.diag(np.diagonal(currents)) - currents**2
    np.testing.assert_allclose(trees.hessian_product(f), cov @ f, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(trees.gram(np.array([f, f**2])), np.array([f, f**2]) @ cov @ np.array([f, f**2]).T)


@pytest.mark.parametrize("span", [2.0, 500.0])
def test_the_best_tree_is_the_most_probable(span):
    for seed in range(10):
        log_weights = log_weights_of(5, span, seed)
        listed = Listed(log_weights, 5)
        likeliest = listed.trees[int(np.argmax(listed.probability))]
        u, v = np.triu_indices(5, 1)
        assert {tuple(edge) for edge in SpanningTrees(log_weights).best} == {(u[e], v[e]) for e in likeliest}


def test_ties_go_to_the_earliest_vertex_and_still_make_a_best_tree():
    assert SpanningTrees(np.zeros(10)).best.tolist() == [[0, 1], [0, 2], [0, 3], [0, 4]]
    for seed in range(10):
        log_weights = np.random.default_rng(seed).integers(0, 3, size=15).astype(float)
        place = {(u, v): e for e, (u, v) in enumerate(zip(*np.triu_indices(6, 1)))}
        ours = sum(log_weights[place[tuple(edge)]] for edge in SpanningTrees(log_weights).best)
        assert ours == max(sum(log_weights[place[edge]] for edge in tree) for tree in every_tree(6))


def test_edges_without_weight_are_in_no_tree():
    log_weights = log_weights_of(5, 10.0, 1)
    log_weights[[0, 4, 7]] = -np.inf
    ours, listed = SpanningTrees(log_weights), Listed(log_weights, 5)
    assert ours.log_partition == pytest.approx(listed.log_partition, rel=1e-13)
    np.testing.assert_allclose(ours.mean, listed.mean, rtol=1e-10)
    assert (ours.mean[[0, 4, 7]] == 0).all()
    f = np.arange(10.0)
    np.testing.assert_allclose(ours.hessian_product(f), listed.covariances() @ f, rtol=1e-10, atol=1e-13)


def test_a_graph_that_is_itself_a_tree_has_one():
    log_weights = np.full(10, -np.inf)
    log_weights[[0, 4, 7, 9]] = [3.0, -200.0, 0.0, 1.0]  # the path 0 1 2 3 4
    ours = SpanningTrees(log_weights)
    assert ours.log_partition == -196.0
    np.testing.assert_allclose(ours.mean, np.isfinite(log_weights), rtol=1e-15)
    np.testing.assert_allclose(ours.hessian_product(np.arange(10.0)), 0.0, atol=1e-14)


@pytest.mark.parametrize("span", [3.0, 250.0])
def test_sums_of_weights_as_numbers_equal_those_of_ratios(span, monkeypatch):
    n = 15
    log_weights = log_weights_of(n, span, 4)
    log_weights[3] = -np.inf
    F = np.random.default_rng(1).normal(size=(4, len(log_weights)))
    plain = SpanningTrees(log_weights)
    assert plain._scaled is not None
    monkeypatch.setattr("mixent.med.spanning_trees.NARROW", -1.0)
    by_ratios = SpanningTrees(log_weights)
    assert by_ratios._scaled is None
    assert plain.log_partition == pytest.approx(by_ratios.log_partition, rel=1e-14)
    np.testing.assert_allclose(plain.mean, by_ratios.mean, rtol=1e-11)
    np.testing.assert_allclose(plain.hessian_product(F[0]), by_ratios.hessian_product(F[0]), rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(plain.gram(F), by_ratios.gram(F), rtol=1e-10)


def test_one_vertex_has_one_tree_and_two_have_one():
    single, pair = SpanningTrees(np.zeros(0)), SpanningTrees(np.array([-3.0]))
    assert single.n == 1 and single.log_partition == 0.0 and single.mean.shape == (0,) and single.best.shape == (0, 2)
    assert single.average(np.zeros(0)) == 0.0 and single.gram(np.zeros((2, 0))).tolist() == [[0.0, 0.0]] * 2
    assert pair.n == 2 and pair.log_partition == -3.0 and pair.mean.tolist() == [1.0] and pair.best.tolist() == [[0, 1]]
    assert pair.hessian_product(np.ones(1)).tolist() == [0.0]


@pytest.mark.parametrize(("n", "span"), [(100, 4.0), (200, 4.0), (100, 1000.0), (200, 30.0)])
def test_many_vertices(n, span):
    log_weights = log_weights_of(n, span, n)
    ours = SpanningTrees(log_weights)
    assert ours.mean.sum() == pytest.approx(n - 1, rel=1e-12)
    assert (ours.mean >= 0).all() and (ours.mean <= 1 + 1e-12).all()
    f = np.random.default_rng(0).normal(size=len(log_weights))
    assert ours.covariance(f, f) >= 0
    assert abs(ours.hessian_product(np.ones_like(f))).max() < 1e-10  # every tree has n - 1 edges
    assert n_vertices(n_edges(n)) == n
    if span <= 4.0:  # the determinant itself
        W = unpacked(np.exp(log_weights), n)
        Q = (np.diag(W.sum(axis=1)) - W)[1:, 1:]
        assert ours.log_partition == pytest.approx(np.linalg.slogdet(Q)[1], rel=1e-11)
        inverse = np.zeros((n, n))
        inverse[1:, 1:] = np.linalg.inv(Q)
        apart = np.diagonal(inverse)[:, None] + np.diagonal(inverse) - 2 * inverse  # twice M of equation 61
        np.testing.assert_allclose(ours.mean, packed(W * apart), rtol=1e-8)


def test_a_common_factor_of_the_weights_changes_no_probability():
    log_weights = log_weights_of(8, 20.0, 0)
    plain, heavy = SpanningTrees(log_weights), SpanningTrees(log_weights + 1e4)
    assert heavy.log_partition - 7e4 == pytest.approx(plain.log_partition, abs=1e-9)
    np.testing.assert_allclose(heavy.mean, plain.mean, rtol=1e-9)


def test_vertices_have_no_order():
    n, log_weights = 7, log_weights_of(7, 50.0, 5)
    order = np.random.default_rng(1).permutation(n)
    permuted = SpanningTrees(packed(unpacked(log_weights, n)[np.ix_(order, order)]))
    plain = SpanningTrees(log_weights)
    assert permuted.log_partition == pytest.approx(plain.log_partition, rel=1e-13)
    np.testing.assert_allclose(unpacked(permuted.mean, n), unpacked(plain.mean, n)[np.ix_(order, order)], rtol=1e-10)


def test_the_gradient_and_the_hessian_equal_finite_differences():
    log_weights, h = log_weights_of(6, 3.0, 9), 1e-5
    f = np.random.default_rng(2).normal(size=15)
    ahead, back = SpanningTrees(log_weights + h * f), SpanningTrees(log_weights - h * f)
    here = SpanningTrees(log_weights)
    assert here.average(f) == pytest.approx((ahead.log_partition - back.log_partition) / (2 * h), rel=1e-8)
    np.testing.assert_allclose(here.hessian_product(f), (ahead.mean - back.mean) / (2 * h), atol=1e-9)


def test_edges_are_packed_row_by_row():
    matrix = np.arange(16.0).reshape(4, 4)
    matrix = np.triu(matrix, 1) + np.triu(matrix, 1).T
    assert packed(matrix).tolist() == [1.0, 2.0, 3.0, 6.0, 7.0, 11.0]
    np.testing.assert_array_equal(unpacked(packed(matrix), 4), matrix)
    assert [n_vertices(n_edges(n)) for n in range(1, 300)] == list(range(1, 300))
