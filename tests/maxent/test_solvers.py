"""The dual of maximum entropy: its statistics, its gradient, and three ways to one optimum."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from mixent.core.driver import Status, Stop, run
from mixent.core.executors import Serial, Threads
from mixent.maxent import solvers
from mixent.maxent.blocks import RowBlocks, Rows
from mixent.maxent.cells import Cells
from mixent.maxent.curvature import Hessian
from mixent.maxent.problem import Bohning, MaxEntProblem, Multipliers, Scaling, count_truth, start
from mixent.maxent.solvers import SOLVERS, Sums, solve, total_at

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


# the objective is flat to rounding long before the multipliers stand still; the certified gain is not
TO_THE_END = Stop(-np.inf, 20_000, gain=1e-20)


def solved(rows, cells, solver, variance=1.0, stop=TO_THE_END, mask=None):
    if solver in ("auto", "lbfgs") and stop is TO_THE_END:
        stop = Stop(0.0, 20_000)  # ends where no step raises the objective
    with Serial() as workers:
        sums = Sums.of(cells, rows, workers, gram=True)
        return solve(cells, sums, variance, solver, stop, workers, mask)


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


def random_table(seed):
    """Rows with gaps, weights, rows without a label and, by turns, soft targets and a class mask; a prior."""
    rng = np.random.default_rng(seed)
    codes, pmf, y = draw(int(rng.integers(60, 300)), seed=seed, gaps=float(rng.choice([0.0, 0.3])))
    y[:5] = -1
    cells, rows = rows_of(codes, pmf, y, rng.gamma(2.0, size=len(y)))
    if seed % 2:
        soft = rng.dirichlet(np.ones(N_CLASSES), len(y)).T * rows.weight
        rows = replace(rows, target=0.7 * rows.target + 0.3 * soft)
    mask = (rng.random((cells.n_cells, N_CLASSES)) < 0.7).astype(float) if seed % 3 == 2 else None
    return cells, rows, mask, float(10 ** rng.uniform(-1, 1))


@pytest.mark.parametrize("seed", range(6))
def test_all_solvers_reach_the_same_optimum_and_never_fall(seed):
    cells, rows, mask, variance = random_table(seed)
    result = {solver: solved(rows, cells, solver, variance, mask=mask) for solver in SOLVERS}
    best = max(f.run.objective for f in result.values())
    for solver, f in result.items():
        np.testing.assert_allclose(posterior(f, rows), posterior(result["bohning"], rows), atol=1e-8, err_msg=solver)
        accepted = [step.objective for step in f.run.trace if step.accepted]
        assert all(b >= a - 1e-9 * abs(a) for a, b in pairwise(accepted))
        assert f.gap * rows.weight.sum() >= best - f.run.objective - 1e-15 * abs(best)  # sums of 400 rows are rounded
        if mask is not None:
            assert (f.run.params.cells[mask == 0] == 0).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_hard_instances_are_multinomial_logistic_regression(solver):
    codes, pmf, y = draw(dense=False)
    cells, rows = rows_of(codes, pmf, y)
    result = solved(rows, cells, solver, variance=2.0)
    peer = LogisticRegression(C=2.0, tol=1e-12, max_iter=100_000).fit(written_out(codes, pmf), y)
    np.testing.assert_allclose(posterior(result, rows), peer.predict_proba(written_out(codes, pmf)), atol=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_the_true_gap_lies_between_the_certified_gain_and_the_certificate(seed):
    """And what the step really gains lies between its certified gain and the gap."""
    cells, rows, mask, variance = random_table(seed)
    best = max(solved(rows, cells, solver, variance, mask=mask).run.objective for solver in ("bohning", "lbfgs"))
    rng = np.random.default_rng(seed)
    wild = Multipliers(rng.normal(size=N_CLASSES), 2 * rng.normal(size=(cells.n_cells, N_CLASSES)))
    if mask is not None:
        wild = replace(wild, cells=wild.cells * mask)
    with Serial() as workers:
        source = RowBlocks(rows.ordered())
        for solver in SOLVERS:
            problem = solved(rows, cells, solver, variance, Stop(0.0, 1), mask).problem
            params = [wild, start(problem.truth)]
            params += [solved(rows, cells, solver, variance, Stop(0.0, n), mask).run.params for n in (2, 5, 12)]
            for here in params:
                total = total_at(problem, here, source, workers)
                after = problem.update(here, total, 1.0)
                value = problem.objective(here, total)
                gained = problem.objective(after, total_at(problem, after, source, workers)) - value
                certified, gap = problem.certified_gain(here, total), problem.gap(here, total)
                blur = 1e-12 * abs(best)
                assert 0 <= certified <= gained + blur
                assert gained <= best - value + blur
                assert best - value <= gap + blur


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_class_term_is_met_and_the_history_tells_of_it(solver):
    cells, rows, _, variance = random_table(3)
    with Serial() as workers:
        source = RowBlocks(rows.ordered())
        for passes in (1, 4, 30):
            f = solved(rows, cells, solver, variance, Stop(1e-9, passes))
            total = total_at(f.problem, f.run.params, source, workers)
            slope = f.problem.gradient(f.run.params, total)
            assert np.abs(slope[0]).max() < 1e-9 * rows.weight.sum()
            penalized = 0.5 * variance * float((slope[1:] ** 2).sum()) / rows.weight.sum()
            assert penalized <= f.gap <= 1.001 * penalized + 1e-7
            assert f.run.objective == f.problem.objective(f.run.params, total)
            last = [step for step in f.run.trace if step.accepted][-1]
            assert last.objective == f.run.objective and f.run.n_passes == f.run.trace[-1].n_pass


@pytest.mark.parametrize("solver", ["bohning", "iis", "lbfgs"])
def test_a_certified_gain_may_end_a_run(solver):
    cells, rows, _, variance = random_table(1)
    result = solved(rows, cells, solver, variance, Stop(-np.inf, 5000, gain=1e-8))
    assert result.run.status.ok and 0 <= result.gain < 1e-7  # the class term has moved since
    assert result.run.n_passes < solved(rows, cells, solver, variance, Stop(-np.inf, 5000, gain=1e-12)).run.n_passes


def test_moments_are_long_and_the_certificate_knows():
    codes, pmf, y = draw()
    cells, rows = rows_of(codes, 30 * pmf, y)
    with Serial() as workers:
        sums = Sums.of(cells, rows, workers)
    assert sums.max_square == pytest.approx(len(SIZES) + 900 * (pmf**2).sum(axis=0).max())


@pytest.mark.parametrize("same", [True, False])
def test_the_gram_matrix_is_counted_right(same):
    codes, pmf, y = draw(500, gaps=0.2)
    weight = np.full(len(y), 2.0) if same else np.random.default_rng(0).gamma(1.0, size=len(y))
    cells, rows = rows_of(codes, pmf, y, weight)
    phi = np.concatenate([np.ones((1, len(y))), written_out(codes, pmf).T])
    np.testing.assert_allclose(cells.gram(rows), (phi * weight) @ phi.T, rtol=1e-12, atol=1e-12)
    with Serial() as workers:
        sums = Sums.of(cells, rows, workers).row_sums(workers)
    assert (sums >= ((phi * weight) @ phi.T).sum(axis=1) - 1e-9).all()


def test_very_many_cells_need_no_matrix(monkeypatch):
    cells, rows = rows_of(*draw(gaps=0.1))
    narrow = solved(rows, cells, "auto")
    monkeypatch.setattr(solvers, "WIDEST", 5)
    for name in ("gram_matrix", "Curvature"):
        monkeypatch.setattr(solvers, name, None)
    for solver in ("auto", "lbfgs"):
        wide = solved(rows, cells, solver)
        np.testing.assert_allclose(posterior(wide, rows), posterior(narrow, rows), atol=1e-7)
    with pytest.raises(ValueError, match="got 17"):
        solved(rows, cells, "bohning")


def test_the_curvature_of_a_sample_serves_all_rows(monkeypatch):
    cells, rows = rows_of(*draw(3000, gaps=0.1))
    plain = solved(rows, cells, "lbfgs")
    monkeypatch.setattr(solvers, "SAMPLED", 200)
    used = []

    def estimate(*given):
        used.append(Hessian(*given))
        return used[-1]

    monkeypatch.setattr(solvers, "Hessian", estimate)
    result = solved(rows, cells, "lbfgs")
    assert len(used) == 1 and result.run.status is Status.CONVERGED
    assert result.run.trace[0].objective > plain.run.trace[0].objective  # begun at the optimum of the sample
    np.testing.assert_allclose(posterior(result, rows), posterior(plain, rows), atol=1e-7)


def test_the_hessian_is_that_of_finite_differences():
    cells, rows = rows_of(*draw(100))
    rng = np.random.default_rng(4)
    with Serial() as workers:
        source = RowBlocks(rows.ordered())
        problem = Bohning(cells, count_truth(cells, source, workers), 0.5, source.total_weight)
        here = Multipliers(rng.normal(size=N_CLASSES), rng.normal(size=(cells.n_cells, N_CLASSES)))
        hessian = Hessian(cells, rows, np.exp(problem.log_posterior(here, rows)), 0.5)
        way = rng.normal(size=problem.truth.shape)
        slopes = []
        for t in (1e-5, -1e-5):
            there = Multipliers(here.bias + t * way[0], here.cells + t * way[1:])
            slopes.append(problem.gradient(there, total_at(problem, there, source, workers)))
    numeric = (slopes[1] - slopes[0]) / 2e-5
    np.testing.assert_allclose(hessian.uncolor(way), hessian.whiten(numeric), rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(hessian.color(hessian.uncolor(way)), way, rtol=1e-9, atol=1e-9)


def test_a_hessian_that_cannot_be_factorized_is_done_without(monkeypatch):
    cells, rows = rows_of(*draw(3000))
    monkeypatch.setattr(solvers, "SAMPLED", 200)

    def fails(*given):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(solvers, "Hessian", fails)
    result = solved(rows, cells, "auto")
    np.testing.assert_allclose(posterior(result, rows), posterior(solved(rows, cells, "bohning"), rows), atol=1e-7)


def test_a_sample_of_rows_is_spread_over_all():
    _, rows = rows_of(*draw(5000))
    source = RowBlocks(replace(rows, weight=np.arange(1.0, 5001.0)))
    some = source.sample(640)
    assert some.n_rows == 640 and source.sample(5000) is source
    assert some.total_weight / 640 == pytest.approx(source.total_weight / 5000, rel=0.05)


def test_a_start_whose_multipliers_share_something_is_no_hindrance():
    cells, rows = rows_of(*draw())
    with Serial() as workers:
        sums = Sums.of(cells, rows, workers)
        first = Multipliers(np.ones(N_CLASSES), np.ones((cells.n_cells, N_CLASSES)))
        result = solve(cells, sums, 1.0, "bohning", TO_THE_END, workers, init=first)
    assert result.run.objective == pytest.approx(solved(rows, cells, "bohning").run.objective, rel=1e-12)


def test_no_certificate_without_a_prior_or_for_a_class_without_rows():
    codes, pmf, y = draw()
    cells, rows = rows_of(codes, pmf, y)
    assert solved(rows, cells, "bohning", None, Stop(1e-6, 50)).gap is None
    cells, rows = rows_of(codes, pmf, np.minimum(y, 1))
    assert solved(rows, cells, "bohning", stop=Stop(1e-6, 50)).gap is None


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
    result = solved(rows, cells, "bohning")
    total = np.bincount(y) / len(y)
    assert posterior(result, rows)[:40].std(axis=0).max() < 1e-15
    assert np.abs(posterior(result, rows).mean(axis=0) - total).max() < 1e-7  # the class term is met exactly


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


@pytest.mark.parametrize("gamma", [-20.0, -5.0, 0.0, 5.0])
@pytest.mark.parametrize("number", [2, 60])
def test_the_scalar_equation_is_solved_however_long_the_multiplier(gamma, number):
    truth = np.array([[3.0, 5.0], [0.0, 4.0]])
    problem = Scaling(Cells((1,), 0), truth, 1.0, 8.0, n_features=(number // 2, number))
    counts = np.array([[[1.0, 2.0], [1e-6, 3.0]], [[2.5, 1.5], [4.0, 1e-9]]])
    current, curb = np.full((2, 2), gamma), np.array([[0.0], [1.0]])
    d = problem._root(counts, current, curb)
    numbers = np.array([number // 2, number])[:, None, None]
    terms = truth, (counts * np.exp(numbers * d)).sum(axis=0), curb * (current + d)
    np.testing.assert_allclose(terms[0] - terms[1] - terms[2], 0.0, atol=1e-9 * max(np.abs(t).max() for t in terms))


def test_each_cell_may_have_its_own_prior():
    """Scaling a cell by 1/w is scaling its prior's variance by w^2."""
    cells, rows = rows_of(*draw(300, gaps=0.1))
    width = np.random.default_rng(1).uniform(0.2, 2.0, cells.n_cells)
    for solver in SOLVERS:
        result = solved(rows, cells, solver, variance=0.5 / width**2)
        problem, params = result.problem, result.run.params
        with Serial() as workers:
            source = RowBlocks(rows.ordered())
            slope = problem.gradient(params, total_at(problem, params, source, workers))
        np.testing.assert_allclose(slope, 0.0, atol=1e-3)
        assert result.gap >= result.gain >= -1e-15
