"""Fusion by constraints: R falls, the gap bounds what is left, and the theorems of its symmetry."""

import numpy as np
import pytest
from scipy.optimize import minimize

from mixent.core.driver import Status, Stop, run
from mixent.core.executors import Serial
from mixent.fusion.problem import MinDivergence, Rule
from mixent.maxent.blocks import RowBlocks, Rows
from mixent.maxent.cells import Cells


def confusion(rng, K, V, right=0.6):
    table = rng.dirichlet(np.ones(V), K)
    table[np.arange(min(K, V)), np.arange(min(K, V))] += right / (1 - right)
    return table / table.sum(axis=1, keepdims=True)


def batch(seed=0, n=60, K=3, alphabets=(3, 3, 4), gaps=0.0):
    """Codes (n, J) drawn from the model, confusion matrices (K, V), truth."""
    rng = np.random.default_rng(seed)
    tables = [confusion(rng, K, V) for V in alphabets]
    truth = rng.choice(K, n, p=rng.dirichlet(3 * np.ones(K)))
    codes = np.stack([[rng.choice(len(t[c]), p=t[c]) for c in truth] for t in tables], axis=1).astype(np.int32)
    codes[rng.random(codes.shape) < gaps] = -1
    return codes, tables, truth


def problem_of(tables, share=None, dense=0):
    sizes = tuple(t.shape[1] for t in tables)
    share = np.ones(len(tables)) if share is None else np.asarray(share, dtype=float)
    group = np.repeat(np.arange(len(tables)), sizes)
    cells = Cells((), sum(sizes)) if dense else Cells(sizes)
    return MinDivergence(cells, np.concatenate([t.T for t in tables]), group, share[group], float(share.sum()))


def rows_of(problem, codes, K, weight=None):
    n = len(codes)
    weight = np.full(n, 1 / n) if weight is None else weight
    return Rows(problem.cells.packed(codes), np.empty((0, n)), np.zeros((K, n)), weight, np.full(n, codes.shape[1]))


def solved(codes, tables, stop=None, share=None, weight=None):
    problem, K = problem_of(tables, share), len(tables[0])
    rows = rows_of(problem, codes, K, weight)
    source = RowBlocks(rows)
    stop = Stop(-np.inf, 4000, gap=1e-6) if stop is None else stop
    done = run(problem, source, Rule.uniform(len(problem.group), K), stop=stop, executor=Serial())
    return problem, done, np.exp(problem.log_posterior(done.params, rows)).T


def written_out(codes, tables, q, share=None):
    """R of (4.13), from posteriors (n, K)."""
    value = 0.0
    for j, table in enumerate(tables):
        answered = codes[:, j] >= 0
        counts = q[answered].T @ np.eye(table.shape[1])[codes[answered, j]] / len(codes)  # (K, V)
        mass = counts.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            part = counts * (np.log(counts) - np.log(mass) - np.log(table))
        value += (1.0 if share is None else share[j]) * np.nansum(part)
    return value


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_the_objective_is_the_printed_one_and_never_falls(gaps):
    codes, tables, _ = batch(gaps=gaps)
    _, done, q = solved(codes, tables)
    assert done.status is Status.CONVERGED
    np.testing.assert_allclose(-done.objective, written_out(codes, tables, q), rtol=1e-9, atol=1e-12)
    kept = [step.objective for step in done.trace if step.accepted]
    assert len(kept) > 3 and (np.diff(kept) >= -1e-12).all()


def test_every_safe_step_lowers_the_divergence():
    codes, tables, _ = batch(1)
    problem = problem_of(tables)
    source = RowBlocks(rows_of(problem, codes, 3))
    params = Rule.uniform(len(problem.group), 3)
    before = np.inf
    for _ in range(30):
        total = Serial().total(lambda block, p=params: problem.stats(problem.prepare(p), block), source)
        assert problem.divergence(total.counts) <= before + 1e-14
        before = problem.divergence(total.counts)
        params = problem.update(params, total, problem.safe_step)


@pytest.mark.parametrize("seed", range(3))
def test_the_gap_bounds_how_far_the_minimum_is(seed):
    codes, tables, _ = batch(seed, n=14, K=2, alphabets=(2, 2))

    def value(x):
        q = 1 / (1 + np.exp(-x))
        return written_out(codes, tables, np.column_stack([1 - q, q]))

    starts = np.random.default_rng(0).normal(size=(6, 14))
    least = min(minimize(value, start, method="BFGS").fun for start in starts)
    for passes in (2, 5, 20, 200):
        problem, done, q = solved(codes, tables, Stop(-np.inf, passes))
        total = problem.stats(problem.prepare(done.params), rows_of(problem, codes, 2))
        gap = problem.gap(done.params, total)
        assert written_out(codes, tables, q) - gap <= least + 1e-7
    assert -done.objective <= least + 1e-4


def test_the_slope_is_the_gradient():
    codes, tables, _ = batch(2, n=10)
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(3), 10)
    problem = problem_of(tables)
    counts = problem.cells.expected((q / 10).T.copy(), rows_of(problem, codes, 3))
    slope = problem.cells.logits(problem.log_ratio(counts), rows_of(problem, codes, 3)).T / 10  # (4.14)
    for i, k in [(0, 0), (3, 1), (9, 2)]:
        h = 1e-6 * np.equal(np.arange(30).reshape(10, 3), 3 * i + k)
        found = (written_out(codes, tables, q + h) - written_out(codes, tables, q - h)) / 2e-6
        np.testing.assert_allclose(slope[i, k], found, rtol=1e-5, atol=1e-8)


def test_patterns_with_counts_are_the_items():
    codes, tables, _ = batch(3, n=500, K=2, alphabets=(2, 2, 2))
    stop = Stop(-np.inf, 40)
    patterns, place, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    _, items, q = solved(codes, tables, stop)
    _, packed, short = solved(patterns, tables, stop, weight=counts / 500)
    np.testing.assert_allclose(packed.objective, items.objective, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(short[place.ravel()], q, atol=1e-10)


def test_copies_that_share_a_vote_change_nothing():
    codes, tables, _ = batch(4, n=300, K=2, alphabets=(2, 2, 3))
    stop = Stop(-np.inf, 60)
    _, _, plain = solved(codes, tables, stop)
    copied = np.concatenate([codes, codes[:, :1], codes[:, :1]], axis=1)
    _, _, shared = solved(copied, [*tables, tables[0], tables[0]], stop, share=[1 / 3, 1, 1, 1 / 3, 1 / 3])
    np.testing.assert_allclose(shared, plain, atol=1e-9)


def test_permuting_sources_classes_or_items_permutes_the_answer():
    codes, tables, _ = batch(5, n=80)
    stop = Stop(-np.inf, 50)
    _, _, plain = solved(codes, tables, stop)
    order, of_classes, rows = [2, 0, 1], np.array([1, 2, 0]), np.random.default_rng(0).permutation(80)
    _, _, sources = solved(codes[:, order], [tables[j] for j in order], stop)
    _, _, classes = solved(codes, [table[of_classes] for table in tables], stop)
    _, _, items = solved(codes[rows], tables, stop)
    np.testing.assert_allclose(sources, plain, atol=1e-10)
    np.testing.assert_allclose(classes, plain[:, of_classes], atol=1e-10)
    np.testing.assert_allclose(items, plain[rows], atol=1e-10)


def test_a_source_that_is_silent_says_nothing():
    codes, tables, _ = batch(6, n=50)
    stop = Stop(-np.inf, 30)
    silent = np.concatenate([codes, np.full((50, 1), -1, dtype=np.int32)], axis=1)
    _, done, q = solved(silent, [*tables, tables[0]], stop)
    assert np.isfinite(done.objective)
    np.testing.assert_allclose(q.sum(axis=1), 1.0)
    np.testing.assert_allclose(-done.objective, written_out(codes, tables, q), rtol=1e-9)


def test_a_class_that_is_not_there_gets_no_share():
    rng = np.random.default_rng(7)
    tables = [np.array([[0.9, 0.1], [0.2, 0.8]])] * 4
    codes = np.stack([rng.choice(2, 400, p=tables[0][0]) for _ in tables], axis=1).astype(np.int32)
    _, _, q = solved(codes, tables)
    assert q.mean(axis=0)[1] < 0.05
