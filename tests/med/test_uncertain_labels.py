"""Labels in doubt (Theorem 7): relative entropy falls with every half-step."""

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import rel_entr, softmax

from mixent import MEDClassifier
from mixent.core.driver import rounding
from mixent.med.constraints import PairConstraints
from mixent.med.exponential_family import JointDistribution
from mixent.med.functions import KernelDiscriminant, LinearDiscriminant
from mixent.med.gaussian_training import GaussianDiscriminant
from mixent.med.label_step import ClassShares, LabelStep, best_labels
from mixent.med.margins import Exponential, Gaussian, Laplace
from mixent.med.solving import Search
from mixent.med.uncertain_labels import LabelProblem, solve_uncertain_labels
from mixent.med.wishart import Wishart, moments
from mixent.options import Margin

MARGINS = [Exponential(3.0), Laplace(2.0), Gaussian(1.5)]
SEARCH = Search(gap=1e-10, max_iter=3000)


def row_value(scores, prior, margin, q):
    """D(q || P0) + sum_ab loss((q_a - q_b)(F_a - F_b)) of one row, pairs the prior rules out left out."""
    total = rel_entr(q, prior).sum()
    for a, b in combinations(range(len(q)), 2):
        if prior[a] + prior[b] > 0:
            total += float(margin.loss(np.array((q[a] - q[b]) * (scores[a] - scores[b]))))
    return total


# --- step 2 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [2, 3, 4])
@pytest.mark.parametrize("margin", [*MARGINS, Exponential(2.0, 3.0), Exponential(50.0), Gaussian(10.0)], ids=repr)
def test_the_best_labels_are_a_generic_solvers(margin, C):
    rng = np.random.default_rng(C)
    n = 8
    scores = 2.0 * rng.normal(size=(n, C))
    scores[0] = 0.0  # a tie
    scores[1] *= 20
    prior = rng.dirichlet(np.ones(C), n)
    prior[2] = 1.0 / C
    q = best_labels(scores, prior, margin)
    np.testing.assert_allclose(q.sum(axis=1), 1.0, rtol=1e-12)
    assert (q >= 0).all()
    for t in range(n):

        def value(v, t=t):  # free logits: the simplex without its border
            return row_value(scores[t], prior[t], margin, softmax(np.append(v, 0.0)))

        starts = [np.log(p[:-1] / p[-1]) for p in (prior[t], np.maximum(q[t], 1e-12))]
        best = min(
            (minimize(value, start, method="BFGS", options={"gtol": 1e-9}) for start in starts), key=lambda r: r.fun
        )
        mine = row_value(scores[t], prior[t], margin, q[t])
        assert mine <= best.fun + 1e-6 * (1 + abs(best.fun))
        if margin.C < 10:  # where a loss all but breaks the generic solver stops short
            np.testing.assert_allclose(q[t], softmax(np.append(best.x, 0.0)), atol=2e-4)


@pytest.mark.parametrize("margin", MARGINS, ids=repr)
def test_two_classes_have_the_labels_of_equations_77_to_79(margin):
    rng = np.random.default_rng(0)
    f, p0 = np.r_[3.0 * rng.normal(size=10), 0.0, 8.0], np.r_[rng.uniform(0.02, 0.98, size=11), 0.5]
    scores, prior = np.column_stack([-0.5 * f, 0.5 * f]), np.column_stack([1 - p0, p0])
    q = best_labels(scores, prior, margin)
    high = margin.upper * (1 - 1e-12) if margin.upper < np.inf else 1e3
    for t in range(len(f)):

        def fall(lam, t=t):  # minus equation 77
            return -margin.potential(lam) + np.logaddexp(np.log(p0[t]) + lam * f[t], np.log(1 - p0[t]) - lam * f[t])

        lam = minimize_scalar(fall, bounds=(0.0, high), method="bounded", options={"xatol": 1e-11}).x
        chosen = softmax([np.log(1 - p0[t]) - lam * f[t], np.log(p0[t]) + lam * f[t]])  # 79
        mean = chosen[1] - chosen[0]
        assert q[t, 1] - q[t, 0] == pytest.approx(mean, abs=1e-5)
        assert row_value(scores[t], prior[t], margin, q[t]) == pytest.approx(-fall(lam), abs=1e-8)


NEARLY_KINKED = [Laplace(50.0), Exponential(1e4), Gaussian(50.0), Laplace(1.0, 1e6), Laplace(300.0, 1e7)]


@pytest.mark.parametrize("C", [2, 3, 5])
@pytest.mark.parametrize("margin", [*MARGINS, *NEARLY_KINKED], ids=repr)
def test_no_other_labels_are_better_where_losses_nearly_have_kinks(margin, C):
    """The objective is convex: if other labels were better, it would fall on the way to them."""
    rng, n = np.random.default_rng(C), 50
    scores = rng.choice([0.0, 0.1, 1.0, 10.0, 100.0], size=(n, 1)) * margin.target * rng.normal(size=(n, C))
    prior, weight = rng.dirichlet(np.ones(C), n), 10.0 ** rng.uniform(-4, 4, n)
    a, b = np.triu_indices(C, 1)
    precision = 1e-6 if margin.target > 1e6 else 1e-8  # `ROUNDING` of the label step, for the largest numbers

    def values(q):
        margins = (q[:, a] - q[:, b]) * (scores[:, a] - scores[:, b])
        return rel_entr(q, prior).sum(axis=1) + margin.loss(margins).sum(axis=1)

    others = [np.eye(C)[np.full(n, k)] for k in range(C)] + [prior, *rng.dirichlet(np.ones(C), (6, n))]
    for shares in (None, ClassShares(weight, rng.uniform(1.0, 50.0, C))):
        q = best_labels(scores, prior, margin, shares)
        for other in others:
            for t in np.geomspace(1e-9, 1.0, 10):
                changed = (1 - t) * q + t * other
                change, size = values(changed) - values(q), 1 + values(q)
                if shares is not None:
                    change, size = weight @ change + shares.penalty(changed) - shares.penalty(q), weight @ size
                assert (change >= -precision * size).all()


@pytest.mark.parametrize("margin", [Gaussian(1e2), Gaussian(1e3), Laplace(1e3)], ids=repr)
def test_the_duality_gap_of_every_row_is_closed(margin):
    """Predictor-corrector steps alone would cycle on some of these rows."""
    rng = np.random.default_rng(0)
    scores, prior = 3 * rng.normal(size=(1000, 5)), rng.dirichlet(np.ones(5), 1000)
    step, gaps = LabelStep(scores, prior, margin), np.full(1000, np.inf)
    compute = step.gap

    def recorded(x, rows):
        gap, size = compute(x, rows)
        gaps[rows] = np.minimum(gaps[rows], gap / size)
        return gap, size

    step.gap = recorded
    step.solve()
    assert gaps.max() < 1e-8


def test_labels_with_a_prior_of_nearly_zero_are_solved():
    rng = np.random.default_rng(0)
    scores, prior = 3 * rng.normal(size=(40, 3)), np.tile([0.5, 0.5, 1e-80], (40, 1))
    for shares in (None, ClassShares(np.ones(40), np.array([10.0, 10.0, 5.0]))):
        for smallest in (1e-80, 0.0):
            prior[:, 2] = smallest
            q = best_labels(scores, prior, Laplace(2.0), shares)
            np.testing.assert_allclose(q.sum(axis=1), 1.0, rtol=1e-12)


def test_labels_follow_the_score_unless_the_prior_is_stronger():
    scores = np.array([[0.0, 2.0], [2.0, 0.0], [0.0, 0.0]])
    q = best_labels(scores, np.full((3, 2), 0.5), Exponential(3.0))
    assert q[0, 1] > 0.6
    assert q[1, 0] == pytest.approx(q[0, 1])
    np.testing.assert_allclose(q[2], 0.5)
    against = best_labels(scores[:1], np.array([[0.999, 0.001]]), Exponential(3.0))
    assert 0.001 < against[0, 1] < q[0, 1]


def test_a_class_the_prior_rules_out_stays_out_and_a_known_label_stays():
    scores = np.random.default_rng(1).normal(size=(3, 3))
    prior = np.array([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.0, 0.2, 0.8]])
    q = best_labels(scores, prior, Exponential(3.0))
    np.testing.assert_array_equal(q[0], prior[0])
    assert (q[prior == 0] == 0).all()
    np.testing.assert_allclose(q.sum(axis=1), 1.0)
    for t in (1, 2):
        a, b = np.flatnonzero(prior[t])
        ends = np.zeros((400, 3))
        ends[:, a] = np.linspace(1e-6, 1 - 1e-6, 400)
        ends[:, b] = 1 - ends[:, a]
        best = min(row_value(scores[t], prior[t], Exponential(3.0), end) for end in ends)
        assert row_value(scores[t], prior[t], Exponential(3.0), q[t]) <= best


def test_the_posterior_is_continuous_in_the_prior():
    p = np.r_[1e-12, 1e-6, np.linspace(0.001, 0.999, 400), 1 - 1e-6, 1 - 1e-12]
    for margin in MARGINS:
        for score in (0.3, 1.0, 5.0):
            q = best_labels(np.tile([0.0, score], (len(p), 1)), np.column_stack([1 - p, p]), margin)[:, 1]
            assert (np.diff(q) >= -1e-9).all()  # and rises with it
            # with a score against it the prior may be left at once: near 0 the posterior is steep, and no jump
            fine = np.linspace(0.2, 0.21, 200)
            near = best_labels(np.tile([0.0, score], (200, 1)), np.column_stack([1 - fine, fine]), margin)[:, 1]
            assert np.abs(np.diff(near)).max() < 20 * 0.01 / 200
            assert q[-1] == pytest.approx(1.0, abs=1e-9)


def shares_of(prior, weight, counts=None):
    """The constraint on the shares of the rows with a uniform prior, with the counts of the certain rows."""
    missing = np.ptp(prior, axis=1) == 0
    sure = prior.max(axis=1) == 1
    return ClassShares(np.where(missing, weight, 0.0), weight[sure] @ prior[sure] if counts is None else counts)


@pytest.mark.parametrize("C", [2, 3])
@pytest.mark.parametrize("margin", MARGINS, ids=repr)
def test_labels_with_their_class_shares_are_a_generic_solvers(margin, C):
    rng = np.random.default_rng(C)
    scores, weight = 2.0 * rng.normal(size=(4, C)), rng.uniform(0.5, 1.5, size=4)
    prior = rng.dirichlet(3 * np.ones(C), 4)
    shares = ClassShares(weight, np.r_[9.0, np.ones(C - 1)])

    def value(q):
        return weight @ [row_value(*row, margin, p) for *row, p in zip(scores, prior, q)] + shares.penalty(q)

    q = best_labels(scores, prior, margin, shares)
    free = minimize(lambda v: value(softmax(v.reshape(4, C), axis=1)), np.log(prior).ravel(), method="BFGS", tol=1e-8)
    assert value(q) <= free.fun + 1e-8
    np.testing.assert_allclose(softmax(free.x.reshape(4, C), axis=1), q, atol=1e-4)
    assert weight @ q[:, 0] > weight @ best_labels(scores, prior, margin)[:, 0]  # toward the counts
    # one multiplier per class, n_y / (W π_y): with it each row is solved on its own
    tilted = prior * np.exp(shares.counts / (weight @ q))
    np.testing.assert_allclose(best_labels(scores, tilted / tilted.sum(axis=1, keepdims=True), margin), q, atol=1e-5)


def test_class_shares_are_estimated_and_many_counts_fix_them():
    rng = np.random.default_rng(0)
    y = np.arange(200) < 160
    prior = np.where(y[:, None], [[0.1, 0.9]], [[0.9, 0.1]])
    weight, shift = np.ones(200), {}
    for n in (2.0, 20.0, 20_000.0):
        q = best_labels(rng.normal(size=(200, 2)), prior, Laplace(0.1), ClassShares(weight, np.array([n, n])))
        shift[n] = q[:, 1].mean()
    assert shift[2.0] > 0.7  # two rows per class do not force equal shares on 200
    assert shift[2.0] > shift[20.0] > shift[20_000.0]
    assert shift[20_000.0] == pytest.approx(0.5, abs=0.01)


# --- both steps -------------------------------------------------------------------------------------------------------


def draw(C=2, n=40, seed=0, known=0.3):
    """Rows about C centers; label distributions: some known, some missing, some guessed."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % C
    X = 1.5 * rng.normal(size=(C, 2))[y] + rng.normal(size=(n, 2))
    prior = np.full((n, C), 1.0 / C)
    sure = (np.arange(n) < 2 * C) | (rng.random(n) < known)
    prior[sure] = np.eye(C)[y[sure]]
    guessed = ~sure & (rng.random(n) < 0.3)
    prior[guessed] = 0.5 * np.eye(C)[y[guessed]] + 0.5 / C
    return X, y, prior, rng.uniform(0.5, 1.5, size=n)


def discriminants(X, prior, C, bias_variance=np.inf):
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    sure = prior.max(axis=1) == 1
    of_classes = [moments(X, prior[:, s] * sure, 2.0, X.mean(axis=0), np.cov(X.T)) for s in range(C)]
    gaussians = tuple(Wishart.of_moments(*each) for each in of_classes)
    return {
        "linear": LinearDiscriminant(X, C, bias_variance),
        "kernel": KernelDiscriminant(K, C, bias_variance),
        "gaussian": GaussianDiscriminant(X, JointDistribution(gaussians, np.zeros(C - 1)), bias_variance),
    }


def entropy(discriminant, solution, q, prior, weight, margin, shares=None):
    """D(P || P0) over all variables, minimized over the margins: the objective of Theorem 7."""
    rows = [row_value(*row) for row in zip(solution.scores, prior, [margin] * len(q), q)]
    return discriminant.divergence(solution) + weight @ rows + (0.0 if shares is None else shares.penalty(q))


@pytest.mark.parametrize("kind", ["linear", "kernel", "gaussian"])
@pytest.mark.parametrize("C", [2, 3])
@pytest.mark.parametrize(("relaxation", "counted"), [(0.1, False), (0.5, True), (1.0, False), (1.0, True)])
def test_theorem_7_the_relative_entropy_never_rises(kind, C, relaxation, counted):
    X, _, prior, weight = draw(C, n=24)
    shares = shares_of(prior, weight) if counted else None
    margin = Exponential(3.0)
    discriminant = discriminants(X, prior, C)[kind]
    seen = []
    run = solve_uncertain_labels(
        discriminant,
        margin,
        prior,
        weight,
        replace(SEARCH, observers=[lambda event: seen.append(event.params) and None]),
        shares=shares,
        relaxation=relaxation,
        tol=1e-6,
        max_rounds=15,
    )
    assert not run.status.failed
    assert all(step.accepted for step in run.trace)  # no step had to be shortened
    values = [-step.objective for step in run.trace]
    assert all(b <= a + rounding(a, weight.sum()) for a, b in pairwise(values))
    assert values[-1] < values[0] - 1e-4
    for labels in seen[:: max(1, len(seen) // 5)]:
        written = entropy(discriminant, labels.solution, labels.q, prior, weight, margin, shares)
        objective = labels.solution.minimum + weight @ rel_entr(labels.q, prior).sum(axis=1)
        objective += 0.0 if shares is None else shares.penalty(labels.q)
        assert written == pytest.approx(objective, rel=1e-8)
        np.testing.assert_array_equal(labels.q[prior.max(axis=1) == 1], prior[prior.max(axis=1) == 1])
        np.testing.assert_allclose(labels.q.sum(axis=1), 1.0)


@pytest.mark.parametrize("margin", MARGINS, ids=repr)
@pytest.mark.parametrize("kind", ["linear", "kernel", "gaussian"])
@pytest.mark.parametrize("C", [2, 3])
def test_theorem_7_holds_after_either_step(kind, C, margin):
    X, _, prior, weight = draw(C, n=24, seed=1)
    for bias_variance, shares in ((np.inf, shares_of(prior, weight)), (4.0, None)):
        discriminant = discriminants(X, prior, C, bias_variance)[kind]
        for relaxation in (0.3, 1.0):
            problem = LabelProblem(discriminant, margin, SEARCH, prior, weight, shares, first_step=relaxation)
            now = problem.start()
            value = entropy(discriminant, now.solution, now.q, prior, weight, margin, shares)
            fell = 0.0
            for _ in range(2):
                later = problem.update(now, None, relaxation)
                best = best_labels(now.solution.scores, prior, margin, shares)
                np.testing.assert_allclose(later.q, (1 - relaxation) * now.q + relaxation * best, atol=1e-6)  # 80
                between = entropy(discriminant, now.solution, later.q, prior, weight, margin, shares)
                after = entropy(discriminant, later.solution, later.q, prior, weight, margin, shares)
                slack = 1e-7 * weight.sum()  # step 1 is solved to 1e-10 nats a row
                assert value + slack >= between
                assert between + slack >= after
                fell += value - after
                now, value = later, after
            assert fell > 1e-4


def test_the_end_is_a_fixed_point_of_both_steps_whatever_the_relaxation():
    X, _, prior, weight = draw(seed=2)
    ends = []
    for relaxation in (0.5, 1.0):
        discriminant = discriminants(X, prior, 2)["linear"]
        run = solve_uncertain_labels(
            discriminant, Laplace(2.0), prior, weight, SEARCH, relaxation=relaxation, tol=1e-11, max_rounds=2000
        )
        q = run.params.q
        np.testing.assert_allclose(best_labels(run.params.solution.scores, prior, Laplace(2.0)), q, atol=1e-4)
        again = discriminant.solve(PairConstraints.of(q, weight, prior), Laplace(2.0), SEARCH)
        np.testing.assert_allclose(again.scores, run.params.solution.scores, atol=1e-4)
        ends.append(q)
    np.testing.assert_allclose(*ends, atol=1e-3)


@pytest.mark.parametrize("kind", ["linear", "kernel", "gaussian"])
def test_known_labels_give_the_plain_solution(kind):
    X, y, _, weight = draw(3)
    prior = np.eye(3)[y]
    discriminant = discriminants(X, prior, 3)[kind]
    plain = discriminant.solve(PairConstraints.of(prior, weight), Exponential(3.0), SEARCH)
    run = solve_uncertain_labels(
        discriminant, Exponential(3.0), prior, weight, SEARCH, relaxation=1.0, tol=1e-8, max_rounds=50
    )
    np.testing.assert_array_equal(run.params.q, prior)
    np.testing.assert_allclose(run.params.solution.scores, plain.scores, rtol=1e-7, atol=1e-7)
    assert run.n_passes <= 2


def test_turns_by_newton_or_by_pairs_end_in_the_same():
    X, _, prior, weight = draw(n=24, seed=3)
    K = X @ X.T
    ends = [
        solve_uncertain_labels(
            discriminant, Exponential(3.0), prior, weight, SEARCH, relaxation=1.0, tol=1e-8, max_rounds=500
        )
        for discriminant in (
            KernelDiscriminant(K, 2, np.inf),
            KernelDiscriminant(K, 2, np.inf),
            LinearDiscriminant(X, 2, np.inf),
        )
    ]
    for other in ends[1:]:
        assert other.objective == pytest.approx(ends[0].objective, rel=1e-5)
        np.testing.assert_allclose(other.params.q, ends[0].params.q, atol=1e-2)


@pytest.mark.parametrize("target", [0.005, 0.3])
def test_some_c_is_tried_however_small_the_margin(target):
    """The values of C grow as the margin shrinks, beyond the largest for uncertain labels."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 2)) + 2.0 * y[:, None]
    soft = np.where(np.eye(2)[y] == 1, 0.9, 0.1)
    margin = Margin("exponential" if target == 0.3 else "laplace", target=target)
    model = MEDClassifier(margin=margin, cv=2, random_state=0).fit(X, soft)
    assert len(model.C_tried_) >= 1 and model.score(X, y) > 0.8
