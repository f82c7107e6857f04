"""Mixtures of single columns: what holds for one holds for many at once."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from mixent import GaussianMixture
from mixent.core.driver import Stop, rounding, run
from mixent.core.executors import Serial
from mixent.mixtures import columns as columns_module
from mixent.mixtures import univariate
from mixent.mixtures.univariate import ColumnMixture, fit_columns
from mixent.options import Search


def columns(seed=0):
    """Smooth, skewed, grouped, rounded and spiked columns of many lengths."""
    rng = np.random.default_rng(seed)
    spiked = np.where(rng.random(300) < 0.4, 0.0, rng.normal(100, 20, 300).round())
    groups = rng.normal(size=200) + 8 * rng.integers(3, size=200)
    return [
        rng.normal(size=150),
        np.exp(rng.normal(size=220)),
        groups,
        spiked,
        rng.poisson(3, 90).astype(float),
        rng.standard_t(3, 400),
        rng.normal(size=11),
        rng.integers(2, size=40).astype(float),
    ]


def without_weights(xs):
    return [(x, None) for x in xs]


def bic(mixture, x):
    return -2 * mixture.log_density(x).sum() + (3 * len(mixture.weights) - 1) * np.log(len(x))


def assert_same(a, b, rtol):
    for name in ("weights", "means", "variances"):
        left, right = getattr(a, name), getattr(b, name)
        assert left.shape == right.shape
        np.testing.assert_allclose(left, right, rtol=rtol, atol=rtol * np.abs(right).max(), err_msg=name)


@pytest.mark.parametrize("most", [40, 2048], ids=["bins", "values"])
@pytest.mark.parametrize("K", [1, 2, 4])
def test_no_pass_lowers_the_objective_of_any_unit(most, K):
    grid = columns_module.Grid.of([columns_module.compress(x, None, most) for x in columns()[:6]])
    assert (grid.spread is None) == (most == 2048)
    parts = univariate._between(grid.weight, np.arange(1, K) / K)
    scatter, needed = univariate._prior_scatter(grid, parts), np.full(6, -np.inf)
    problem = univariate._Columns(grid.floor, grid.total, scatter, needed, -1.0)
    seen = []

    def watch(event):
        seen.append(problem.values(event.params, event.total))

    start = problem.started(grid, parts)
    result = run(problem, grid, start, stop=Stop(-1.0, 60), executor=Serial(), observers=(watch,))
    assert len(seen) == 61 and all(s.accepted for s in result.trace)
    for before, after in pairwise(seen):
        slack = [rounding(v, w) for v, w in zip(before, grid.total)]
        assert (after - before >= -np.array(slack)).all()
    if K > 1:
        assert (seen[-1] > seen[0]).all()


def test_weight_two_is_the_row_twice():
    rng = np.random.default_rng(1)
    xs = columns()
    counts = [rng.integers(0, 4, size=len(x)) for x in xs]
    weighted = fit_columns([(x, c.astype(float)) for x, c in zip(xs, counts)], 4)
    repeated = fit_columns(without_weights([np.repeat(x, c) for x, c in zip(xs, counts)]), 4)
    for a, b in zip(weighted, repeated):
        assert_same(a, b, 1e-9)


def test_units_do_not_change_each_other():
    units = without_weights(columns())
    together = fit_columns(units, 4)
    order = np.random.default_rng(0).permutation(len(units))
    for i, permuted in zip(order, fit_columns([units[i] for i in order], 4)):
        assert_same(permuted, together[i], 0.0)
    for unit, expected in zip(units, together):
        assert_same(fit_columns([unit], 4)[0], expected, 1e-9)


def test_batches_change_nothing(monkeypatch):
    """Units of one length, side by side or one by one."""
    rng = np.random.default_rng(2)
    units = without_weights(
        [*rng.pareto(2.5, (9, 90)), *(rng.normal(size=(9, 90)) + rng.integers(3, size=(9, 90)) ** 2)]
    )
    together = fit_columns(units, 5)
    monkeypatch.setattr(columns_module, "BATCH", 1)
    for a, b in zip(fit_columns(units, 5), together):
        assert_same(a, b, 1e-9)


@pytest.mark.parametrize(("scale", "offset"), [(1.0, 1e8), (3.7, -11.0), (1e-5, 2.0), (1e80, 0.0), (-2.0, 5.0)])
def test_an_affine_map_of_the_column_maps_the_mixture(scale, offset):
    xs = [x.round(3) for x in columns()[:5]]
    mapped = fit_columns(without_weights([scale * x + offset for x in xs]), 4)
    for a, b in zip(mapped, fit_columns(without_weights(xs), 4)):
        turn = slice(None, None, int(np.sign(scale)))
        std = np.sqrt(b.variances.max())
        np.testing.assert_allclose(a.weights[turn], b.weights, rtol=1e-6)
        np.testing.assert_allclose((a.means[turn] - offset) / scale, b.means, rtol=0, atol=1e-6 * std)
        np.testing.assert_allclose(a.variances[turn] / scale / scale, b.variances, rtol=1e-6)


@pytest.mark.parametrize("digits", [0, 9], ids=["integers", "continuous"])
def test_repeated_zeros_are_one_narrow_component(digits):
    rng = np.random.default_rng(3)
    xs = np.where(rng.random((6, 400)) < 0.4, 0.0, rng.normal(100, 20, (6, 400)).round(digits))
    for x, mixture in zip(xs, fit_columns(without_weights(xs), 8)):
        assert 2 <= len(mixture.weights) <= 3
        assert mixture.means[0] == pytest.approx(0, abs=0.5)
        assert np.sqrt(mixture.variances[0]) < 2.5
        assert mixture.weights[0] == pytest.approx((x == 0).mean(), rel=1e-2)
        assert np.isfinite(bic(mixture, x))


@pytest.mark.parametrize("std", [1, 2, 4])
def test_rounding_makes_no_components(std):
    xs = np.random.default_rng(4).normal(0, std, (10, 500)).round()
    orders = [len(m.weights) for m in fit_columns(without_weights(xs), 8)]
    assert orders.count(1) >= 9


def test_orders_of_clear_cases():
    rng = np.random.default_rng(5)
    groups = rng.normal(size=(8, 240)) + 10 * rng.integers(3, size=(8, 240))
    normal = rng.normal(size=(8, 240))
    found = fit_columns(without_weights([*groups, *normal]), 6)
    assert [len(m.weights) for m in found[:8]] == [3] * 8
    assert [len(m.weights) for m in found[8:]] == [1] * 8
    for mixture in found[:8]:
        np.testing.assert_allclose(mixture.means, [0, 10, 20], atol=0.5)
        np.testing.assert_allclose(mixture.variances, 1, atol=0.5)


def test_groups_of_unlike_size_and_distance_are_found():
    rng = np.random.default_rng(8)
    centers, shares = np.array([0, 3, 6, 20, 50]), [0.4, 0.3, 0.2, 0.07, 0.03]
    xs = [rng.choice(centers, p=shares, size=500) + 0.5 * rng.normal(size=500) for _ in range(8)]
    for mixture in fit_columns(without_weights(xs), 7):
        assert len(mixture.weights) <= 6
        assert (np.abs(mixture.means - centers[:, None]).min(axis=1) < 0.3).all()


def test_a_narrow_group_within_a_wide_one_is_found():
    rng = np.random.default_rng(9)
    xs = [np.where(rng.random(600) < 0.8, rng.normal(size=600), 0.7 + 0.05 * rng.normal(size=600)) for _ in range(8)]
    for mixture in fit_columns(without_weights(xs), 4):
        narrow = mixture.variances.argmin()
        assert mixture.means[narrow] == pytest.approx(0.7, abs=0.05)
        assert mixture.weights[narrow] == pytest.approx(0.2, abs=0.08)


def test_five_rows_to_a_component():
    x = np.array([0.0, 0.1, 0.2, 10.0, 10.1, 10.2])
    few, enough = fit_columns([(x, np.full(6, 1.6)), (x, np.full(6, 10.0))], 2)
    assert (len(few.weights), len(enough.weights)) == (1, 2)


def test_bic_is_that_of_the_mixture_fitted_alone():
    """Breast cancer by class, every seventh column: seldom worse than the estimator that fits one column at a time."""
    X, y = load_breast_cancer(return_X_y=True)
    xs = [X[y == c, j] for c in (0, 1) for j in range(0, 30, 7)]
    worse = []
    for x, mixture in zip(xs, fit_columns(without_weights(xs), 3)):
        alone = GaussianMixture("auto", search=Search("bic", 3), random_state=0).fit(x[:, None])
        worse.append(bic(mixture, x) - alone.bic(x[:, None]))
    assert np.mean(np.array(worse) < 2) >= 0.8
    assert np.sum(worse) < 2


def test_compression_loses_little():
    rng = np.random.default_rng(6)
    x = np.where(rng.random(50_000) < 0.3, rng.normal(0, 1, 50_000), rng.normal(5, 2, 50_000))
    short = fit_columns([(x, None)], 2, stop=Stop(1e-9, 500))[0]
    full = fit_columns([(x, None)], 2, stop=Stop(1e-9, 500), max_points=1 << 20)[0]
    assert len(short.weights) == len(full.weights) == 2
    np.testing.assert_allclose(short.means, full.means, atol=1e-3 * x.std())
    np.testing.assert_allclose(short.variances, full.variances, atol=1e-3 * x.var())


def test_bins_keep_the_moments():
    x = np.exp(np.random.default_rng(7).normal(size=9000))
    unit = columns_module.compress(x, None)
    assert len(unit.x) <= 2048
    share = unit.weight / 9000
    assert unit.center + unit.scale * (share @ unit.x) == pytest.approx(x.mean(), rel=1e-12)
    assert share @ (unit.x**2 + unit.spread) == pytest.approx(1, rel=1e-12)
    assert unit.scale**2 == pytest.approx(x.var(), rel=1e-12)


def test_one_component_is_the_same_for_bins_and_for_values():
    unit = [(np.exp(np.random.default_rng(7).normal(size=3000)), None)]
    binned = fit_columns(unit, 1)[0]
    assert_same(binned, fit_columns(unit, 1, max_points=4096)[0], 1e-9)


def test_units_that_leave_no_choice():
    nan = np.nan
    units = [
        (np.array([]), None),
        (np.array([nan, nan]), None),
        (np.array([3.0, 4.0]), np.zeros(2)),
        (np.array([7.0, 7.0, nan]), None),
        (np.array([1e8]), np.array([1e-9])),
        (np.array([1.0, 2.0, 5.0]), np.full(3, 1e-12)),
        (np.array([1.0, 1e300, -1e300]), None),
        (np.array([0.0, 5e-324]), None),
    ]
    found = fit_columns(units, 5)
    for mixture in found:
        assert len(mixture.weights) == 1 and mixture.weights[0] == 1
        assert np.isfinite(mixture.means).all() and np.isfinite(mixture.variances).all()
        assert (mixture.variances > 0).all()
    assert found[3].means[0] == 7 and found[4].means[0] == 1e8
    assert found[3].variances[0] == pytest.approx(7e-6**2)
    assert found[5].means[0] == pytest.approx(8 / 3)
    assert 0.9 < found[5].variances[0] / np.var([1, 2, 5]) < 1.5
    assert fit_columns([], 3) == []


def test_nan_is_left_out():
    x = columns()[2]
    gaps = np.insert(x, [0, 50, 200], np.nan)
    assert_same(fit_columns([(gaps, np.ones(len(gaps)))], 4)[0], fit_columns([(x, None)], 4)[0], 0.0)


def test_densities_are_those_of_scipy():
    from scipy.stats import norm

    mixture = ColumnMixture(np.array([0.3, 0.7]), np.array([-1.0, 2.0]), np.array([0.25, 4.0]))
    x = np.linspace(-6, 9, 41)
    joint = mixture.weights[:, None] * norm.pdf(x, mixture.means[:, None], np.sqrt(mixture.variances)[:, None])
    np.testing.assert_allclose(np.exp(mixture.log_joint(x)), joint, rtol=1e-12)
    np.testing.assert_allclose(np.exp(mixture.log_density(x)), joint.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(mixture.responsibilities(x), joint / joint.sum(axis=0), rtol=1e-12)


def test_far_out_the_widest_component_answers_and_among_equals_the_nearest():
    x = np.array([-1e300, -1e12, 1e12, 1e300])
    unlike = ColumnMixture(np.array([0.9, 0.1]), np.array([0.0, 1.0]), np.array([1e-8, 1.0]))
    np.testing.assert_allclose(unlike.responsibilities(x), [[0] * 4, [1] * 4], atol=1e-12)
    alike = ColumnMixture(np.array([0.9, 0.1]), np.array([0.0, 1.0]), np.array([1.0, 1.0]))
    np.testing.assert_allclose(alike.responsibilities(x), [[1, 1, 0, 0], [0, 0, 1, 1]], atol=1e-12)
    assert np.isfinite(unlike.log_density(x)).all() and np.isfinite(alike.log_joint(x)).all()
