"""Dual ascent on a box: it never falls, its gap bounds what is left, and setting rows aside changes nothing."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from mixent.core import dual as module
from mixent.core.driver import Status, Stop, rounding, run
from mixent.core.dual import BoxDual, Point, best_constant
from mixent.core.executors import Serial, Threads
from mixent.med.margins import Exponential, Gaussian, Laplace

MARGINS = [Exponential(3.0), Laplace(1.5), Gaussian(2.0)]
END = Stop(-np.inf, 2000, gap=1e-11)


def draw(seed, n=30, *, potential, balanced, d=3, soft=True, zeros=True):
    """A kernel of random rows, with uncertain labels and weights, some of both zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    e = np.sign(X[:, 0] + 0.8 * rng.normal(size=n))
    weight = np.ones(n)
    if soft:
        e *= rng.uniform(0.05, 1.0, size=n)
        weight = rng.gamma(2.0, size=n)
    if zeros:
        e[rng.random(n) < 0.1] = 0.0
        weight[rng.random(n) < 0.1] = 0.0
    return BoxDual(X @ X.T, e, weight, potential, balanced)


def solved(dual, stop=END, executor=None):
    return run(dual, dual.source(), dual.start(), stop=stop, executor=executor or Serial())


def total_at(dual, point):
    with Serial() as workers:
        return workers.total(lambda block: dual.stats(point, block), dual.source())


def J(dual, lam):
    """The objective, from its definition."""
    a = dual.weight * dual.direction * lam
    live = dual.weight > 0
    return dual.weight[live] @ dual.potential.potential(lam[live]) - 0.5 * a @ dual.kernel @ a


def searched(dual):
    """The maximum by SLSQP, over the rows that can speak."""
    live = np.flatnonzero((dual.direction != 0) & (dual.weight > 0))
    we = (dual.weight * dual.direction)[live]
    K, w = dual.kernel[np.ix_(live, live)], dual.weight[live]
    high = dual.potential.upper * (1 - 1e-9) if dual.potential.upper < np.inf else None
    result = minimize(
        lambda lam: 0.5 * (we * lam) @ K @ (we * lam) - w @ dual.potential.potential(lam),
        np.zeros(len(live)),
        jac=lambda lam: we * (K @ (we * lam)) - w * dual.potential.mean(lam),
        bounds=[(0.0, high)] * len(live),
        constraints=[{"type": "eq", "fun": lambda lam: we @ lam, "jac": lambda lam: we}] if dual.balanced else [],
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-15},
    )
    return -result.fun


CASES = [(margin, balanced, seed) for margin in MARGINS for balanced in (True, False) for seed in range(3)]


@pytest.mark.parametrize(("margin", "balanced", "seed"), CASES)
def test_the_optimum_is_a_generic_solvers_and_the_objective_never_falls(margin, balanced, seed):
    dual = draw(seed, potential=margin, balanced=balanced, d=3 + 5 * seed)
    result = solved(dual)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(J(dual, result.params.lam), rel=1e-12)
    peer = searched(dual)
    assert result.objective == pytest.approx(peer, rel=1e-6)
    assert result.objective >= peer - 1e-9 * abs(peer)
    accepted = [step.objective for step in result.trace if step.accepted]
    assert len(accepted) >= 2
    assert all(b >= a - rounding(a, dual.weight.sum()) for a, b in pairwise(accepted))
    assert all(step.accepted for step in result.trace)


@pytest.mark.parametrize(("margin", "balanced", "seed"), CASES[::2])
def test_every_move_goes_to_the_top_of_its_line_and_none_lowers_the_objective(margin, balanced, seed):
    dual = draw(seed + 10, potential=margin, balanced=balanced)
    rows = np.flatnonzero((dual.weight > 0) & (dual.direction != 0))
    cache = module._ActiveRows.of(dual, rows)
    sweep = module._Sweep(dual, cache, np.zeros(len(rows)), np.zeros(len(rows)))
    lam, value = np.zeros(len(dual.direction)), 0.0
    for _ in range(60):
        before, was = sweep.slope.copy(), sweep.lam.copy()
        (sweep.change_pairs if balanced else sweep.change_single)(1)
        lam[rows] = sweep.lam
        moved = np.flatnonzero(sweep.lam != was)
        if (sweep.lam[moved] > 0).all():  # no border in the way: to the very top of the line
            left, steep = (
                np.ptp(slope[moved]) if balanced else np.abs(slope[moved]).max() for slope in (sweep.slope, before)
            )
            assert left <= 1e-3 * steep
        after = J(dual, lam)
        assert after >= value - 1e-12 * (1 + abs(value))
        value = after
        a = dual.weight * dual.direction * lam
        slope = (margin.mean(lam[rows]) / dual.direction[rows]) - (dual.kernel @ a)[rows]
        np.testing.assert_allclose(sweep.slope, slope, rtol=1e-9, atol=1e-9)  # kept up to date, not computed again
        assert ((lam >= 0) & (lam < margin.upper)).all()
    assert value > 0


@pytest.mark.parametrize(("margin", "balanced", "seed"), CASES)
def test_the_gap_bounds_the_distance_to_the_optimum_everywhere(margin, balanced, seed):
    dual = draw(seed + 20, potential=margin, balanced=balanced)
    best = searched(dual)
    points = []
    run(
        dual,
        dual.source(),
        dual.start(),
        stop=END,
        executor=Serial(),
        observers=[lambda event: points.append(event.params)],
    )
    for point in points:
        gap = dual.gap(point, total_at(dual, point))
        assert gap >= best - J(dual, point.lam) - 1e-7 * (1 + abs(best))
        assert gap >= -1e-10 * (1 + abs(best))
    assert gap <= END.gap * dual.weight.sum()
    first = dual.gap(points[0], total_at(dual, points[0]))
    assert first > 1e3 * max(gap, 1e-14)


@pytest.mark.parametrize(("margin", "balanced", "seed"), CASES)
def test_the_optimum_keeps_the_conditions_of_karush_kuhn_and_tucker(margin, balanced, seed):
    dual = draw(seed, potential=margin, balanced=balanced, d=8)
    point = solved(dual).params
    b = dual.constant(point)
    np.testing.assert_allclose(point.f, dual.kernel @ dual.alpha(point), rtol=1e-10, atol=1e-10)
    kept = dual.direction * (point.f + b)
    live = (dual.direction != 0) & (dual.weight > 0)
    active, silent = live & (point.lam > 0), live & (point.lam == 0)
    assert active.any()
    assert silent.any()
    np.testing.assert_allclose(kept[active], margin.mean(point.lam[active]), atol=2e-4)
    assert (kept[silent] >= margin.mean(0.0) - 2e-4).all()
    assert (point.lam[~live] == 0).all()
    if balanced:
        a = dual.alpha(point)
        assert abs(a.sum()) <= 1e-13 * np.abs(a).sum() * len(a)
        assert a.any()
    else:
        assert b == 0.0


def test_the_constant_is_the_median_of_what_the_active_rows_say():
    # CORRECTIONS 001 (75): median over active t with p_t != 0 of (1 - 1 / (c - l_t)) / p_t - L_t
    for seed in range(4):
        dual = draw(seed, potential=Exponential(3.0), balanced=True)
        point = solved(dual).params
        active = (point.lam > 0) & (dual.direction != 0)
        slope = (1 - 1 / (3.0 - point.lam[active])) / dual.direction[active] - point.f[active]
        assert dual.constant(point) == pytest.approx(np.median(slope), abs=1e-5)


@pytest.mark.parametrize("margin", MARGINS, ids=repr)
def test_the_best_constant_is_the_least_of_the_losses_whatever_the_guess(margin):
    rng = np.random.default_rng(3)
    f, direction, weight = 5 * rng.normal(size=20) + 40, rng.uniform(-1, 1, size=20), rng.random(20)
    least = minimize_scalar(
        lambda b: weight @ margin.loss(direction * (f + b)), bracket=(-60, -20), options={"xtol": 1e-12}
    )
    for guess in (0.0, -40.0, 1e4):
        b = best_constant(margin, f, direction, weight, guess)
        assert weight @ margin.loss(direction * (f + b)) <= least.fun * (1 + 1e-12)
        assert b == pytest.approx(least.x, abs=1e-5)


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("margin", MARGINS, ids=repr)
def test_rows_set_aside_change_nothing(margin, balanced, monkeypatch):
    results = []
    for share in (0.0, module.SHRINK, 1.0):  # never, as it is, at once
        monkeypatch.setattr(module, "SHRINK", share)
        dual = draw(5, 120, potential=margin, balanced=balanced, soft=False)
        results.append(solved(dual, replace(END, gap=1e-13)).params)
        if share == 1.0:
            assert len(dual.cache) == 2  # some were
    for other in results[1:]:
        # the last digits depend on the order of the moves
        np.testing.assert_allclose(other.f, results[0].f, atol=2e-6)
        assert J(dual, other.lam) == pytest.approx(J(dual, results[0].lam), rel=1e-12)


@pytest.mark.parametrize("balanced", [True, False])
def test_weight_two_is_the_row_twice(balanced):
    dual = draw(7, potential=Exponential(4.0), balanced=balanced, soft=False, zeros=False)
    weight = np.where(np.arange(30) % 3 == 0, 2.0, 1.0)
    rows = np.repeat(np.arange(30), weight.astype(int))
    heavy = replace(dual, weight=weight, cache=[])
    twice = BoxDual(dual.kernel[np.ix_(rows, rows)], dual.direction[rows], np.ones(len(rows)), dual.potential, balanced)
    one, two = solved(heavy), solved(twice)
    assert one.objective == pytest.approx(two.objective, rel=1e-9)
    np.testing.assert_allclose(one.params.f[rows], two.params.f, atol=1e-4)


@pytest.mark.parametrize("balanced", [True, False])
def test_threads_change_no_bit_and_rows_may_come_in_any_order(balanced):
    dual = draw(8, 60, potential=Laplace(2.0), balanced=balanced)
    order = np.random.default_rng(0).permutation(60)
    moved = BoxDual(
        dual.kernel[np.ix_(order, order)], dual.direction[order], dual.weight[order], dual.potential, balanced
    )
    one, other = solved(dual), solved(moved)
    np.testing.assert_array_equal(one.params.lam, solved(replace(dual, cache=[]), executor=Threads(2)).params.lam)
    np.testing.assert_allclose(other.params.f, one.params.f[order], atol=1e-4)


@pytest.mark.parametrize("balanced", [True, False])
def test_rows_that_all_pull_one_way_or_not_at_all(balanced):
    K = np.eye(6) + 0.1
    nobody = BoxDual(K, np.zeros(6), np.ones(6), Exponential(4.0), balanced)
    result = solved(nobody)
    assert not result.params.lam.any()
    assert result.objective == 0.0
    one_way = BoxDual(K, np.ones(6), np.ones(6), Exponential(4.0), balanced)
    result = solved(one_way)
    assert result.status is Status.CONVERGED
    # with a free constant all six are pleased at no cost
    assert result.params.lam.any() != balanced


def test_a_singular_kernel_and_rows_that_say_the_same_are_solved():
    x = np.repeat([[1.0], [-1.0], [2.0]], 4, axis=0)
    direction = np.tile([1.0, -1.0, 1.0, 0.3], 3)
    for margin in MARGINS:
        for balanced in (True, False):
            dual = BoxDual(x @ x.T, direction, np.ones(12), margin, balanced)
            assert solved(dual).objective == pytest.approx(searched(dual), rel=1e-6)


def test_a_point_adds_up_to_its_energy():
    dual = draw(9, 40, potential=Gaussian(1.0), balanced=False)
    lam = np.random.default_rng(1).random(40)
    point = Point(lam, dual.kernel @ (dual.weight * dual.direction * lam))
    assert dual.objective(point, total_at(dual, point)) == pytest.approx(J(dual, lam), rel=1e-12)
