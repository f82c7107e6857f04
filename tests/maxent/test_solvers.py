"""The dual of maximum entropy: its statistics, its gradient, and three ways to one optimum."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from mixent.core.driver import Stop, run
from mixent.core.executors import Serial, Threads
from mixent.maxent.cells import Cells
from mixent.maxent.problem import MaxEntProblem, Multipliers, Scaling, count_truth, start
from mixent.maxent.rows import RowBlocks, Rows
from mixent.maxent.solving import SOLVERS, Sums, solve, total_at

SIZES, N_DENSE, N_CLASSES = (3, 4, 2, 5), 3, 3


def draw(n=400, *, seed=0, gaps=0.0, dense=True):
    """Codes (n, m), pmf cells (D, n), classes (n,) that depend on both."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(size, size=n) for size in SIZES], axis=1).astype(np.int32)
    pmf = rng.dirichlet(np.ones(N_DENSE), n).T if dense else np.empty((0, n))
    score = rng.normal(size=(N_CLASSES, n)) + np.equal(codes[:, 0], np.arange(N_CLASSES)[:, None])
    score[1] += codes[:, 3] > 2
    if dense:
        score[2] += 2 * pmf[0]
    codes[rng.random(codes.shape) < gaps] = -1
    pmf[:, rng.random(n) < gaps] = 0.0
    return codes, pmf, score.argmax(axis=0)


def rows_of(codes, pmf, y, weight=None):
    cells = Cells(SIZES, len(pmf))
    weight = np.ones(len(y)) if weight is None else weight
    target = np.equal(y, np.arange(N_CLASSES)[:, None]) * weight
    present = 1 + (codes >= 0).sum(axis=1) + pmf.any(axis=0)
    return cells, Rows(cells.packed(codes), pmf, target, weight * (y >= 0), present)


def written_out(codes, pmf):
    """(n, S) all cells."""
    hot = [np.equal(codes[:, [j]], np.arange(size)) for j, size in enumerate(SIZES)]
    return np.concatenate([*hot, pmf.T], axis=1).astype(float)


def solved(rows, cells, solver, variance=1.0, stop=None):
    with Serial() as workers:
        sums = Sums.of(cells, rows, workers, gram=True)
        return solve(cells, sums, variance, solver, stop or Stop(0.0, 20_000, gap=1e-13), workers)


def posterior(found, rows):
    return np.exp(found.problem.log_posterior(found.run.params, rows)).T


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_looking_up_and_counting_are_products_with_the_cells(gaps):
    codes, pmf, y = draw(gaps=gaps)
    cells, rows = rows_of(codes, pmf, y)
    phi = written_out(codes, pmf)
    rng = np.random.default_rng(1)
    gamma, weights = rng.normal(size=(cells.n_cells, N_CLASSES)), rng.random((N_CLASSES, len(y)))
    np.testing.assert_allclose(cells.logits(gamma, rows), (phi @ gamma).T, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(cells.expected(weights, rows), phi.T @ weights.T, rtol=1e-12)
    np.testing.assert_array_equal(cells.dense(rows), phi.T)


def test_many_columns_are_packed_and_none_is_lost():
    rng = np.random.default_rng(0)
    sizes = (7, 30, 2, 400, 3, 3, 3, 9000)
    cells = Cells(sizes)
    codes = np.stack([rng.integers(-1, size, size=50) for size in sizes], axis=1)
    assert sorted(j for pack in cells.packs for j in pack.columns) == list(range(len(sizes)))
    rows = Rows(cells.packed(codes), np.empty((0, 50)), np.zeros((2, 50)), np.ones(50), np.ones(50, dtype=int))
    gamma = rng.normal(size=(cells.n_cells, 2))
    expected = np.zeros((50, 2))
    for j, begin in enumerate(cells.starts):
        seen = codes[:, j] >= 0
        expected[seen] += gamma[begin + codes[seen, j]]
    np.testing.assert_allclose(cells.logits(gamma, rows).T, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("variance", [None, 0.7])
def test_the_gradient_is_that_of_finite_differences(variance):
    cells, rows = rows_of(*draw(gaps=0.2))
    source = RowBlocks(rows.ordered())
    rng = np.random.default_rng(2)
    with Serial() as workers:
        truth = count_truth(cells, source, workers)
        problem = Scaling(cells, truth, variance, source.total_weight, n_features=tuple(np.unique(source.rows.sums)))
        point = Multipliers(rng.normal(size=N_CLASSES), rng.normal(size=(cells.n_cells, N_CLASSES)))
        slope = problem.gradient(point, total_at(problem, point, source, workers))
        for _ in range(5):
            way = Multipliers(rng.normal(size=N_CLASSES), rng.normal(size=point.cells.shape))

            def along(t, way=way):
                params = Multipliers(point.bias + t * way.bias, point.cells + t * way.cells)
                return problem.objective(params, total_at(problem, params, source, workers))

            numeric = (along(1e-5) - along(-1e-5)) / 2e-5
            exact = slope[0] @ way.bias + (slope[1:] * way.cells).sum()
            assert numeric == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("gaps", [0.0, 0.25])
def test_all_solvers_reach_the_same_optimum_and_never_fall(gaps):
    cells, rows = rows_of(*draw(gaps=gaps))
    found = {solver: solved(rows, cells, solver) for solver in SOLVERS}
    best = max(f.run.objective for f in found.values())
    for solver, f in found.items():
        np.testing.assert_allclose(posterior(f, rows), posterior(found["lbfgs"], rows), atol=1e-8, err_msg=solver)
        accepted = [step.objective for step in f.run.trace if step.accepted]
        assert all(b >= a - 1e-9 * abs(a) for a, b in pairwise(accepted))
        assert f.gap * len(rows.weight) >= best - f.run.objective


def test_hard_instances_are_multinomial_logistic_regression():
    codes, pmf, y = draw(dense=False)
    cells, rows = rows_of(codes, pmf, y)
    found = solved(rows, cells, "bohning", variance=2.0)
    peer = LogisticRegression(C=2.0, tol=1e-12, max_iter=100_000).fit(written_out(codes, pmf), y)
    np.testing.assert_allclose(posterior(found, rows), peer.predict_proba(written_out(codes, pmf)), atol=1e-6)


def test_the_certificate_is_never_below_the_gap():
    cells, rows = rows_of(*draw(gaps=0.1))
    best = solved(rows, cells, "lbfgs").run.objective
    with Serial() as workers:
        for passes in (1, 2, 3, 5, 8, 13, 21):
            f = solved(rows, cells, "bohning", stop=Stop(0.0, passes))
            total = total_at(f.problem, f.run.params, RowBlocks(rows.ordered()), workers)
            assert f.problem.gap(f.run.params, total) >= best - f.run.objective


def test_iterative_scaling_is_the_printed_update_when_nothing_is_missing():
    """Equation (2.12), the class term counted as one more feature."""
    cells, rows = rows_of(*draw())
    source = RowBlocks(rows.ordered())
    n_features = len(SIZES) + 2
    with Serial() as workers:
        truth = count_truth(cells, source, workers)
        problem = Scaling(cells, truth, None, source.total_weight, n_features=(n_features,))
        params = start(truth)
        total = total_at(problem, params, source, workers)
        after = problem.update(params, total, 1.0)
    printed = np.log(truth / total.total) / n_features
    np.testing.assert_allclose(after.bias - params.bias, printed[0], atol=1e-10)
    np.testing.assert_allclose(after.cells - params.cells, printed[1:], atol=1e-10)


def test_each_multiplier_solves_its_own_equation():
    cells, rows = rows_of(*draw(gaps=0.3))
    source = RowBlocks(rows.ordered())
    numbers = tuple(np.unique(source.rows.sums).tolist())
    rng = np.random.default_rng(5)
    with Serial() as workers:
        truth = count_truth(cells, source, workers)
        problem = Scaling(cells, truth, 0.5, source.total_weight, n_features=numbers)
        params = Multipliers(rng.normal(size=N_CLASSES), rng.normal(size=(cells.n_cells, N_CLASSES)))
        total = total_at(problem, params, source, workers)
        after = problem.update(params, total, 1.0)
    move = after.cells - params.cells
    grown = sum(total.counts[v, 1:] * np.exp(number * move) for v, number in enumerate(numbers))
    np.testing.assert_allclose(truth[1:] - grown, after.cells / 0.5, atol=1e-8)


def test_weight_two_is_the_row_twice_and_no_label_is_no_row():
    codes, pmf, y = draw(gaps=0.1)
    twice = np.r_[np.arange(len(y)), np.arange(50)]
    weight = np.ones(len(y))
    weight[:50] = 2.0
    cells, rows = rows_of(codes, pmf, y, weight)
    _, double = rows_of(codes[twice], pmf[:, twice], y[twice])
    one, other = solved(rows, cells, "bohning"), solved(double, cells, "bohning")
    np.testing.assert_allclose(posterior(one, rows), posterior(other, rows), atol=1e-7)
    unknown = np.r_[y, np.full(30, -1)]
    _, more = rows_of(np.r_[codes, codes[:30]], np.c_[pmf, pmf[:, :30]], unknown, np.r_[weight, np.ones(30)])
    same = solved(more, cells, "bohning")
    np.testing.assert_allclose(same.run.params.cells, one.run.params.cells, rtol=1e-12)


def test_blocks_and_threads_change_nothing(monkeypatch):
    cells, rows = rows_of(*draw(4000, gaps=0.2))
    sums = []
    for executor, size in ((Serial(), 4000), (Serial(), 300), (Threads(2), 300)):
        source = RowBlocks(rows.ordered())
        source.size = size
        with executor as workers:
            truth = count_truth(cells, source, workers)
            problem = Scaling(cells, truth, 1.0, source.total_weight, n_features=tuple(np.unique(source.rows.sums)))
            sums.append(total_at(problem, start(truth), source, workers))
    np.testing.assert_allclose(sums[0].counts, sums[1].counts, rtol=1e-12, atol=1e-9)
    np.testing.assert_array_equal(sums[1].counts, sums[2].counts)


def test_a_row_with_nothing_but_gaps_gets_the_class_shares():
    codes, pmf, y = draw()
    codes[:40], pmf[:, :40] = -1, 0.0
    cells, rows = rows_of(codes, pmf, y)
    found = solved(rows, cells, "bohning")
    total = np.bincount(y) / len(y)
    assert posterior(found, rows)[:40].std(axis=0).max() < 1e-15
    assert np.abs(posterior(found, rows).mean(axis=0) - total).max() < 1e-7  # the class term is met exactly


def test_a_broken_update_is_caught():
    class Backwards(MaxEntProblem):
        def update(self, params, total, step):
            return Multipliers(params.bias, params.cells - 0.01 * self.gradient(params, total)[1:])

    cells, rows = rows_of(*draw())
    source = RowBlocks(rows.ordered())
    with Serial() as workers:
        truth = count_truth(cells, source, workers)
        problem = Backwards(cells, truth, 1.0, source.total_weight)
        assert run(problem, source, start(truth), executor=workers).status.failed
