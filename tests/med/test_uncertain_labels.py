"""Labels in doubt (Theorem 7): relative entropy falls with every half-step. And from scores to probabilities."""

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import rel_entr, softmax

from mixent.core.driver import rounding
from mixent.med.calibration import Calibration, fit_calibration, log_loss, slope_penalty, typical_lead
from mixent.med.constraints import PairConstraints
from mixent.med.functions import KernelDiscriminant, LinearDiscriminant
from mixent.med.gaussians import ClassNormalWisharts, class_posterior
from mixent.med.margins import Exponential, Gaussian, Laplace
from mixent.med.solving import GaussianDiscriminant, Search
from mixent.med.uncertain_labels import LabelProblem, best_labels, solve_uncertain_labels

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
    gaussians = tuple(class_posterior(X, prior[:, s] * sure, 2.0, X.mean(axis=0), np.cov(X.T)) for s in range(C))
    return {
        "linear": LinearDiscriminant(X, C, bias_variance),
        "kernel": KernelDiscriminant(K, C, bias_variance),
        "gaussian": GaussianDiscriminant(X, ClassNormalWisharts(gaussians, np.zeros(C - 1)), bias_variance),
    }


def entropy(discriminant, solution, q, prior, weight, margin):
    """D(P || P0) over all variables, minimized over the margins: the objective of Theorem 7."""
    rows = [row_value(*row) for row in zip(solution.scores, prior, [margin] * len(q), q)]
    return discriminant.divergence(solution) + weight @ rows


@pytest.mark.parametrize("kind", ["linear", "kernel", "gaussian"])
@pytest.mark.parametrize("C", [2, 3])
@pytest.mark.parametrize("relaxation", [0.1, 0.5, 1.0])
def test_theorem_7_the_relative_entropy_never_rises(kind, C, relaxation):
    X, _, prior, weight = draw(C, n=24)
    margin = Exponential(3.0)
    discriminant = discriminants(X, prior, C)[kind]
    seen = []
    run = solve_uncertain_labels(
        discriminant,
        margin,
        prior,
        weight,
        replace(SEARCH, observers=[lambda event: seen.append(event.params) and None]),
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
        written = entropy(discriminant, labels.solution, labels.q, prior, weight, margin)
        objective = labels.solution.minimum + weight @ rel_entr(labels.q, prior).sum(axis=1)
        assert written == pytest.approx(objective, rel=1e-8)
        np.testing.assert_array_equal(labels.q[prior.max(axis=1) == 1], prior[prior.max(axis=1) == 1])
        np.testing.assert_allclose(labels.q.sum(axis=1), 1.0)


@pytest.mark.parametrize("margin", MARGINS, ids=repr)
@pytest.mark.parametrize("kind", ["linear", "kernel", "gaussian"])
@pytest.mark.parametrize("C", [2, 3])
def test_theorem_7_holds_after_either_step(kind, C, margin):
    X, _, prior, weight = draw(C, n=24, seed=1)
    for bias_variance in (np.inf, 4.0):
        discriminant = discriminants(X, prior, C, bias_variance)[kind]
        for relaxation in (0.3, 1.0):
            problem = LabelProblem(discriminant, margin, SEARCH, prior, weight, first_step=relaxation)
            now = problem.start()
            value = entropy(discriminant, now.solution, now.q, prior, weight, margin)
            fell = 0.0
            for _ in range(2):
                later = problem.update(now, None, relaxation)
                share = (1 - relaxation) * now.q + relaxation * best_labels(now.solution.scores, prior, margin)  # 80
                np.testing.assert_allclose(later.q, share, rtol=1e-12)
                between = entropy(discriminant, now.solution, later.q, prior, weight, margin)
                after = entropy(discriminant, later.solution, later.q, prior, weight, margin)
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


# --- calibration ------------------------------------------------------------------------------------------------------


def simulated(n=20_000, C=3, slope=0.7, offset=(0.5, -0.2, -0.3), seed=0):
    rng = np.random.default_rng(seed)
    scores = 3.0 * rng.normal(size=(n, C))
    p = softmax(slope * scores + np.array(offset[:C]), axis=1)
    y = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return scores, np.eye(C)[y]


@pytest.mark.parametrize("C", [2, 3])
def test_calibration_recovers_slope_and_offset(C):
    offset = np.array([0.5, -0.5] if C == 2 else [0.5, -0.2, -0.3])
    scores, target = simulated(C=C, offset=offset)
    calibration = fit_calibration(scores, target, np.ones(len(scores)), affine=True)
    assert calibration.slope == pytest.approx(0.7, abs=0.03)
    np.testing.assert_allclose(calibration.offset, offset, atol=0.08)
    level = fit_calibration(*simulated(C=C, offset=np.zeros(C)), np.ones(len(scores)), affine=False)
    assert level.slope == pytest.approx(0.7, abs=0.03)


def test_calibration_is_the_maximum_of_the_likelihood():
    scores, target = simulated(300)
    weight = np.random.default_rng(1).random(300)

    def loss(made):
        prior = slope_penalty(np.log(made.slope * typical_lead(scores, weight))) / weight.sum()
        return log_loss(made(scores), target, weight) + prior

    for affine in (True, False):
        calibration = fit_calibration(scores, target, weight, affine=affine)
        for slope in (0.98, 1.0, 1.02):
            for s in range(3):
                for step in (-0.03, 0.03) if affine else (0.0,):
                    offset = calibration.offset + step * np.eye(3)[s]
                    assert (
                        loss(Calibration(slope * calibration.slope, offset, calibration.lapse))
                        >= loss(calibration) - 1e-9
                    )


def test_probabilities_are_a_softmax_and_a_lapse():
    scores, _ = simulated(50)
    made = Calibration(0.7, np.array([0.2, -0.1, -0.1]), 0.01)
    np.testing.assert_allclose(np.exp(made(scores)), 0.99 * softmax(0.7 * scores + made.offset, axis=1) + 0.01 / 3)
    plain = Calibration(0.7, np.zeros(3))(1e4 * scores)  # no lapse: logits with all their digits, not log 0
    assert np.isfinite(plain).all()


def test_a_temperature_keeps_the_ranking_and_the_winner():
    scores, target = simulated(300)
    calibration = fit_calibration(scores, target, np.ones(300), affine=False)
    assert calibration.slope > 0
    np.testing.assert_array_equal(calibration.offset, 0.0)
    np.testing.assert_array_equal(calibration(scores).argmax(axis=1), scores.argmax(axis=1))
    two, which = simulated(300, C=2)
    p = fit_calibration(two, which, np.ones(300), affine=False)(two)[:, 1]
    np.testing.assert_array_equal(p.argsort(kind="stable"), (two[:, 1] - two[:, 0]).argsort(kind="stable"))


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_scores_that_separate_the_classes_make_nothing_certain_whatever_their_unit(affine, scale):
    y = np.arange(60) % 3
    scores = scale * (np.eye(3)[y] * 4 + np.random.default_rng(0).random((60, 3)))
    calibration = fit_calibration(scores, np.eye(3)[y], np.ones(60), affine=affine)
    assert 0 < calibration.slope < np.inf
    assert np.isfinite(calibration.offset).all()
    p = np.exp(calibration(scores))
    assert 0.9 < p.max(axis=1).mean() < 1 - 0.5 / 62
    assert p.min() >= 1 / 62 / 3
    unit = fit_calibration(scores / scale, np.eye(3)[y], np.ones(60), affine=affine)
    assert calibration.slope * scale == pytest.approx(unit.slope, rel=1e-3)


def test_one_row_far_on_the_wrong_side_does_not_blur_the_others():
    y = np.arange(200) % 2
    scores = np.eye(2)[y] * 5 + np.random.default_rng(0).normal(size=(200, 2))
    before = fit_calibration(scores, np.eye(2)[y], np.ones(200), affine=False)
    scores[0] = [-1e4, 1e4]
    after = fit_calibration(scores, np.eye(2)[y], np.ones(200), affine=False)
    assert after.slope > 0.5 * before.slope


@pytest.mark.parametrize("affine", [True, False])
def test_a_calibration_weight_of_two_is_the_row_twice(affine):
    scores, target = simulated(200)
    weight = 1.0 + (np.arange(200) % 3 == 0)
    rows = np.repeat(np.arange(200), weight.astype(int))
    heavy = fit_calibration(scores, target, weight, affine=affine)
    twice = fit_calibration(scores[rows], target[rows], np.ones(len(rows)), affine=affine)
    assert heavy.slope == pytest.approx(twice.slope, rel=1e-4)
    np.testing.assert_allclose(heavy.offset, twice.offset, atol=1e-4)


def test_uninformative_or_reversed_scores_give_a_slope_of_nearly_zero():
    scores, target = simulated(300)
    for affine in (True, False):
        contrary = fit_calibration(-scores, target, np.ones(300), affine=affine)
        assert 0 < contrary.slope < 0.01
        nothing = fit_calibration(np.zeros((300, 3)), target, np.ones(300), affine=affine)
        assert np.isfinite(nothing.slope)
        if affine:
            p = np.exp(nothing(np.zeros((1, 3))))[0]
            np.testing.assert_allclose(p, target.mean(axis=0), atol=1e-4)
