"""Second-order steps for minimum divergence: the path, its limit, the lower bound, and the same theorems as before."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from mixent.core.driver import Status, Stop, run
from mixent.core.executors import Serial
from mixent.fusion import Fuser, newton
from mixent.fusion.answers import read_answers
from mixent.fusion.batch import Batch
from mixent.fusion.newton import MAX_WORK, NewtonDivergence, _covariance, _raised, second_order
from mixent.fusion.problem import MinDivergence, Rule
from mixent.fusion.sources import Layout
from mixent.maxent.blocks import RowBlocks

from .panels import panel

CASES = {
    "hard": {"seed": 1, "n": 40, "K": 3, "J": 3, "gaps": 0.1},
    "soft": {"seed": 2, "n": 24, "K": 3, "J": 3, "kind": "soft"},
    "mixed": {"seed": 3, "n": 24, "K": 3, "J": 3, "kind": "mixed", "gaps": 0.3},
    "labels": {"seed": 4, "n": 30, "K": 2, "J": 3, "kind": "mixed"},
    "one class absent": {"seed": 17, "n": 60, "K": 3, "J": 3, "prior": [0.6, 0.4, 0.0], "rows": 400},
    "free rates": {"seed": 5, "n": 30, "K": 3, "J": 3, "kind": "mixed"},
}


def posed(case):
    """The problem with second-order steps, and its rows."""
    drawn = panel(**CASES[case])
    if case == "free rates":  # the first source was not calibrated on the last class
        counts = drawn.sources["s0"].counts.copy()
        counts[-1] = 0
        drawn = replace(drawn, sources={**drawn.sources, "s0": replace(drawn.sources["s0"], counts=counts)})
    layout = Layout.of(drawn.sources)
    answers = read_answers(layout, drawn.answers)
    labels = np.where(np.arange(answers.n_items) % 4 == 0, 1, -1) if case == "labels" else None
    batch = Batch.of(layout, answers, None, labels)
    problem = second_order(batch.divergence_problem(), batch.n_patterns)
    assert isinstance(problem, NewtonDivergence)
    return problem, batch.rows


def solved(problem, rows, tol=1e-10, passes=300, **options):
    start = Rule.uniform(*problem.confusion.shape)
    stop = Stop(-np.inf, passes, gap=tol)
    return run(problem, RowBlocks(rows), start, stop=stop, executor=Serial(), **options)


def posteriors(problem, rows, params):
    q = np.exp(problem.log_posterior(params, rows))
    labelled = rows.target.any(axis=0)
    q[:, labelled] = rows.target[:, labelled] / rows.weight[labelled]
    return q


def by_cvxpy(problem, rows, penalty=0.0):
    """The minimum of F, and the posteriors (K, n) at it."""
    cp = pytest.importorskip("cvxpy", reason="cvxpy is not installed (pip install --group reference)")
    answers, K = problem.cells.dense(rows), problem.confusion.shape[1]
    labelled = rows.target.any(axis=0)
    q = cp.Variable((K, rows.n_rows), nonneg=True)
    counts = (answers * rows.weight) @ (q + newton.FLOOR * penalty).T
    mass = np.equal.outer(problem.group, problem.group).astype(float) @ counts
    used = np.ones_like(problem.confusion) if problem.unconstrained is None else 1.0 * ~problem.unconstrained
    terms = cp.rel_entr(counts, cp.multiply(problem.confusion, mass))
    R = cp.sum(cp.multiply(used * problem.share[:, None], terms))
    constraints = [cp.sum(q, axis=0) == 1]
    if labelled.any():
        constraints.append(q[:, labelled] == rows.target[:, labelled] / rows.weight[labelled])
    entropy = cp.sum(cp.entr(q) @ rows.weight)
    with warnings.catch_warnings():  # the solver calls an accuracy of 1e-6 reduced; the tests need 1e-3
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        cp.Problem(cp.Minimize(R - penalty * entropy), constraints).solve(solver="CLARABEL")
    return float(R.value + penalty * (rows.weight[~labelled].sum() * np.log(K) - entropy.value)), q.value


@pytest.mark.parametrize("case", CASES)
def test_the_gap_is_never_below_the_true_one_and_closes(case):
    problem, rows = posed(case)
    least, n = by_cvxpy(problem, rows)[0], rows.weight.sum()
    gaps = []

    def watch(event):
        distance = problem.divergence(event.total.counts) - least
        gaps.append(problem.gap(event.params, event.total))
        assert gaps[-1] >= distance - 1e-6

    done = solved(problem, rows, observers=[watch])
    assert done.status is Status.CONVERGED and len(gaps) > 8
    assert -1e-11 * n <= gaps[-1] <= 1e-10 * n
    total = problem.stats(problem.prepare(done.params), rows)
    assert abs(problem.divergence(total.counts) - least) <= 1e-6 + 1e-10 * n


@pytest.mark.parametrize("case", CASES)
def test_the_penalized_problems_are_solved_and_R_falls_with_the_penalty(case, monkeypatch):
    problem, rows = posed(case)
    monkeypatch.setattr(newton, "NEXT_PENALTY", 1.0)  # the penalty stays as it is
    params, previous = Rule.uniform(*problem.confusion.shape), np.inf
    for penalty in (0.3, 0.1, 0.03, 0.01):
        start = replace(params, penalty=penalty)
        params = run(problem, RowBlocks(rows), start, stop=Stop(-np.inf, 40), executor=Serial()).params
        F, q = by_cvxpy(problem, rows, penalty)
        np.testing.assert_allclose(posteriors(problem, rows, params), q, atol=1e-3)
        total = problem.stats(problem.prepare(params), rows)
        assert problem.divergence(total.counts) < previous
        previous = problem.divergence(total.counts)
        np.testing.assert_allclose(-problem.objective(params, total), F, rtol=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_first_and_second_order_steps_tend_to_the_same_posteriors(case):
    problem, rows = posed(case)
    plain = MinDivergence(*(getattr(problem, name) for name in NAMES))
    start = Rule.uniform(*problem.confusion.shape)
    slow = run(plain, RowBlocks(rows), start, stop=Stop(-np.inf, 20_000, gap=1e-6), executor=Serial())
    fast = solved(problem, rows, tol=1e-9)
    assert fast.n_passes < 150 and slow.status is Status.CONVERGED
    distance = np.abs(posteriors(plain, rows, slow.params) - posteriors(problem, rows, fast.params))
    assert distance.max() < 0.05 and distance.mean() < 2e-3


NAMES = ("cells", "confusion", "group", "share", "total_share", "unconstrained")


@pytest.mark.parametrize("case", CASES)
def test_the_penalized_divergence_never_rises(case):
    problem, rows = posed(case)
    kept = [step.objective for step in solved(problem, rows).trace if step.accepted]
    assert len(kept) > 8 and (np.diff(kept) >= -1e-11 * rows.weight.sum()).all()


@pytest.mark.parametrize(
    ("seed", "options", "every"),
    [
        (4, {"K": 4, "J": 4, "n": 100, "gaps": 0.8, "rows": 30}, 7),
        (40, {"K": 5, "J": 3, "n": 20, "kind": "mixed", "rows": 5}, None),
        (80, {"K": 3, "J": 10, "n": 500, "rows": 30, "prior": [0.67452043, 0.01738717, 0.3080924]}, None),
        (224, {"K": 5, "J": 5, "n": 500, "kind": "mixed", "rows": 5}, None),
        (241, {"K": 5, "J": 11, "n": 500, "kind": "soft", "gaps": 0.8, "rows": 300}, None),
    ],
)
def test_rare_classes_do_not_prevent_convergence(seed, options, every):
    """R hardly depends on the posteriors of a class without items, but its lower bound does."""
    drawn = panel(seed, **options)
    y = None if every is None else [label if i % every == 0 else None for i, label in enumerate(drawn.truth)]
    fuser = Fuser(drawn.sources, method="min-divergence", max_iter=400).fit(drawn.answers, y)
    assert -1e-12 <= fuser.gap_ <= fuser.tol


@pytest.mark.parametrize("case", CASES)
def test_the_curvature_is_the_derivative_of_the_gradient(case):
    problem, rows = posed(case)
    S, K = problem.confusion.shape
    rng = np.random.default_rng(0)
    weights, direction = rng.normal(size=(S, K)), rng.normal(size=(S, K))

    def total(step):
        params = Rule(weights + step * direction, np.zeros((S, K)))
        return problem.stats(problem.prepare(params), rows)

    here, h = total(0.0), 1e-5
    curvature = problem._curvature(here.counts, _covariance(here.overlap, K))
    change = (problem.log_ratio(total(h).counts) - problem.log_ratio(total(-h).counts)) / (2 * h)
    np.testing.assert_allclose((curvature @ direction.T.ravel()).reshape(K, S).T, -change, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("case", CASES)
def test_every_gradient_of_confusion_matrices_bounds_the_minimum(case):
    problem, rows = posed(case)
    done = solved(problem, rows)
    least = problem.divergence(problem.stats(problem.prepare(done.params), rows).counts)
    totals = problem.cells.expected(rows.weight[None], rows)
    rng = np.random.default_rng(1)
    for scale in (0.1, 1.0, 5.0):
        gradient = problem._normalized(scale * rng.normal(size=problem.confusion.shape), totals)
        bound = problem.stats(problem.prepare(Rule(np.zeros_like(gradient), gradient)), rows).lower_bound
        assert bound <= least + 1e-9


def test_short_steps_are_the_first_order_ones_which_never_raise_the_penalized_divergence():
    problem, rows = posed("mixed")
    params, before = replace(Rule.uniform(*problem.confusion.shape), penalty=0.1), np.inf
    longest = 1 / (problem.total_share + 0.1)
    for _ in range(20):
        total = problem.stats(problem.prepare(params), rows)
        assert -problem.objective(params, total) < before
        before = -problem.objective(params, total)
        updated = problem.update(params, total, problem.safe_step)
        residual = problem.log_ratio(_raised(params, total)) - 0.1 * params.weights
        np.testing.assert_array_equal(updated.weights, params.weights + longest * residual)
        assert updated.penalty == 0.1
        params = updated


def test_blocks_and_their_order_change_nothing():
    problem, rows = posed("mixed")
    whole = solved(problem, rows, tol=1e-8)
    for order in (np.arange(24), np.random.default_rng(0).permutation(24)):
        mixed = rows.part(order)
        parts = [mixed.part(slice(a, a + 5)) for a in range(0, 24, 5)]
        total = parts_total(problem, whole.params, parts)
        one = problem.stats(problem.prepare(whole.params), rows)
        for name in ("counts", "classes", "lower_bound", "entropy_loss", "overlap"):
            np.testing.assert_allclose(getattr(total, name), getattr(one, name), rtol=1e-9, atol=1e-11)
        again = solved(problem, mixed, tol=1e-8)
        np.testing.assert_allclose(
            posteriors(problem, mixed, again.params), posteriors(problem, rows, whole.params)[:, order], atol=1e-6
        )


def parts_total(problem, params, parts):
    ready = problem.prepare(params)
    total = problem.stats(ready, parts[0])
    for part in parts[1:]:
        total = total + problem.stats(ready, part)
    return total


def test_stop_and_resume_is_one_long_run():
    problem, rows = posed("soft")
    whole = solved(problem, rows)
    first = solved(problem, rows, passes=7)
    assert first.status is Status.MAX_PASSES
    rest = run(problem, RowBlocks(rows), stop=Stop(-np.inf, 300, gap=1e-10), executor=Serial(), resume=first.last)
    np.testing.assert_array_equal(rest.params.weights, whole.params.weights)
    assert rest.n_passes == whole.n_passes and rest.objectives == whole.objectives


def test_a_gap_that_is_not_reached_is_not_called_convergence():
    problem, rows = posed("soft")
    done = solved(problem, rows, tol=0.0, passes=60)
    assert not done.status.ok


def test_large_problems_keep_the_first_order_steps():
    problem, _ = posed("hard")
    assert second_order(problem, int(MAX_WORK)) is problem
