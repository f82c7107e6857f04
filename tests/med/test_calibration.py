"""From scores to probabilities: likelihood of certain and uncertain labels, slope, offsets, and what follows them."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime
from scipy.special import expit, softmax

from mixent import MEDBayesNetClassifier, MEDClassifier, MEDGaussianClassifier, MEDTreeClassifier
from mixent.med.calibration import (
    OFFSET_STD,
    PRIOR_MEAN,
    PRIOR_STD,
    Calibration,
    CalibrationProblem,
    fit_calibration,
    log_loss,
    typical_lead,
)
from mixent.options import Tables


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
        log_slope = np.log(made.slope * typical_lead(scores, weight))
        penalty = 0.5 * ((log_slope - PRIOR_MEAN) / PRIOR_STD) ** 2 + 0.5 * (made.offset**2).sum() / OFFSET_STD**2
        return log_loss(made(scores), target, weight) + penalty / weight.sum()

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
        nothing = fit_calibration(np.zeros((300, 3)), target, np.full(300, 1e3), affine=affine)
        assert np.isfinite(nothing.slope)
        if affine:  # with so many rows the prior of the offsets has no influence
            p = np.exp(nothing(np.zeros((1, 3))))[0]
            np.testing.assert_allclose(p, target.mean(axis=0), atol=1e-4)


@pytest.mark.parametrize("C", [2, 3])
@pytest.mark.parametrize("labels", ["certain", "uncertain"])
def test_the_derivatives_are_those_of_finite_differences(labels, C):
    scores, target = simulated(40, C=C)
    rng = np.random.default_rng(2)
    if labels == "uncertain":
        target = rng.dirichlet(np.ones(C), 40)
    problem = CalibrationProblem(scores, target, rng.random(40), affine=True)
    for v in rng.normal(size=(5, C + 1)):
        gradient, hessian = problem.derivatives(v)
        np.testing.assert_allclose(gradient, approx_fprime(v, problem.value, 1e-7), rtol=1e-5, atol=1e-5)
        numeric = approx_fprime(v, lambda v: problem.derivatives(v)[0], 1e-7)
        np.testing.assert_allclose(hessian, numeric, rtol=1e-5, atol=1e-4)


# --- uncertain labels -------------------------------------------------------------------------------------------------


def noisy(n=4000, rate=0.3, seed=0, C=2):
    """Scores, the true labels, and the likelihoods of labels that are wrong at this rate."""
    scores, true = simulated(n, C=C, offset=np.zeros(C), seed=seed)
    rng = np.random.default_rng(seed + 1)
    given = (true.argmax(axis=1) + (rng.random(n) < rate) * rng.integers(1, C, n)) % C
    return scores, true, np.where(np.eye(C)[given] == 1, 1 - rate, rate / (C - 1))


@pytest.mark.parametrize("C", [2, 3])
def test_labels_with_known_noise_give_the_calibration_of_the_true_labels(C):
    scores, true, likelihood = noisy(20_000, C=C)
    ones = np.ones(len(scores))
    clean = fit_calibration(scores, true, ones, affine=True)
    calibration = fit_calibration(scores, likelihood, ones, affine=True)
    assert calibration.slope == pytest.approx(clean.slope, rel=0.1)
    np.testing.assert_allclose(calibration.offset, clean.offset, atol=0.1)


def test_for_certain_labels_the_likelihood_is_the_log_loss():
    scores, target = simulated(100)
    log_p = Calibration(0.7, np.zeros(3), 0.01)(scores)
    weight = np.random.default_rng(0).random(100)
    expected = -weight @ log_p[np.arange(100), target.argmax(axis=1)] / weight.sum()
    assert log_loss(log_p, target, weight) == pytest.approx(expected, rel=1e-12)
    assert log_loss(log_p, np.ones((100, 3)), weight) == pytest.approx(0, abs=1e-12)  # no label: log 1


def test_rows_without_a_label_contribute_nothing():
    scores, target = simulated(200)
    likelihood = np.where(np.arange(200)[:, None] < 150, target, 1.0)
    both = CalibrationProblem(scores, likelihood, np.ones(200), affine=True)
    labelled = CalibrationProblem(scores[:150], target[:150], np.full(150, 4 / 3), affine=True)  # the same lapse rate
    penalty = CalibrationProblem(scores, np.ones((200, 3)), np.ones(200), affine=True)
    v = np.array([0.3, 0.1, -0.2, 0.4])
    assert both.value(v) - penalty.value(v) == pytest.approx(0.75 * (labelled.value(v) - penalty.value(v)), rel=1e-12)


@pytest.mark.parametrize("affine", [True, False])
def test_labels_that_are_all_equally_uncertain_keep_the_slope_finite(affine):
    """The likelihood alone has no maximum: every label agrees with the scores."""
    y = np.arange(400) % 2
    scores = np.eye(2)[y] + 0.1 * np.random.default_rng(0).random((400, 2))
    calibration = fit_calibration(scores, np.where(np.eye(2)[y] == 1, 0.6, 0.4), np.ones(400), affine=affine)
    assert 1 < calibration.slope * typical_lead(scores, np.ones(400)) < 30
    assert np.abs(calibration.offset).max() < 0.1


def test_the_best_of_several_maxima_is_found():
    """Most rows ask for a slope near 1, and some, far on the wrong side, for one near 0."""
    for n_wrong in (20, 60):
        scores, target = simulated(200, C=2, offset=np.zeros(2))
        scores[:n_wrong] = -1000 * (2 * target[:n_wrong] - 1)
        for affine in (True, False):
            problem = CalibrationProblem(scores, target, np.ones(200), affine)
            ends = np.array([problem.descend(np.array([start, 0.0, 0.0])) for start in np.linspace(-12, 4, 33)])
            best = problem.fit()
            assert np.ptp(ends[:, 0]) > 1  # there are several
            least = min(problem.value(v) for v in ends)
            assert problem.value(np.append(np.log(best.slope), best.offset)) == pytest.approx(least, abs=1e-9)


# --- classifiers ------------------------------------------------------------------------------------------------------

TWO = {"linear": MEDClassifier, "rbf": partial(MEDClassifier, "rbf"), "gaussian": MEDGaussianClassifier}
TWO |= {"tree": partial(MEDTreeClassifier, Tables(continuous="gaussian")), "net": MEDBayesNetClassifier}


def unequal(n, seed=0, effect=0.4, share=0.31):
    """Rows of two classes that hardly differ, with 31 % in the second."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    X = rng.normal(size=(n, 3))
    X[:, 0] += effect * y
    return X, y


def mean_log_loss(model, X, y):
    return -model.predict_log_proba(X)[np.arange(len(y)), y].mean()


@pytest.mark.parametrize("kind", TWO)
def test_unequal_classes_are_never_worse_than_a_constant(kind):
    X, y = unequal(120, effect=0.0)
    new, true = unequal(4000, seed=1, effect=0.0)
    constant = -np.log(np.where(true == 1, y.mean(), 1 - y.mean())).mean()
    model = TWO[kind](C=1.0, cv=3, random_state=0).fit(X, y)
    assert model.calibration == "affine" and model.calibration_.offset.any()
    assert mean_log_loss(model, new, true) < constant + 0.012


LEAST_GAIN = {"linear": -0.001, "rbf": 0.002, "gaussian": 0.02, "tree": 0.001, "net": 0.004}  # a flat bias is an offset


@pytest.mark.parametrize("kind", TWO)
def test_offsets_help_where_classes_are_unequal_and_hardly_differ(kind):
    gains = []
    for seed in range(4):
        (X, y), (new, true) = unequal(150, seed, effect=0.3), unequal(4000, seed + 100, effect=0.3)
        options = {"C": 1.0, "cv": 3, "random_state": 0}
        scaled = TWO[kind](**options, calibration="temperature").fit(X, y)
        gains.append(mean_log_loss(scaled, new, true) - mean_log_loss(TWO[kind](**options).fit(X, y), new, true))
    assert np.mean(gains) > LEAST_GAIN[kind]


@pytest.mark.parametrize("kind", TWO)
def test_decisions_and_probabilities_agree_for_every_calibration(kind):
    X, y = unequal(60, effect=1.5)
    three = np.where(X[:, 2] > 0.6, 2, y)
    for calibration in (*TWO[kind]()._calibrations, None):
        for labels in (y, three):
            fitted = TWO[kind](C=1.0, cv=2, calibration=calibration, random_state=0).fit(X, labels)
            for model in (fitted, fitted.adjust_priors(X[labels > 0])):
                f, p, predicted = model.decision_function(X), model.predict_proba(X), model.predict(X)
                best = (f > 0).astype(int) if f.ndim == 1 else f.argmax(axis=1)
                np.testing.assert_array_equal(best, predicted)
                np.testing.assert_array_equal(p.argmax(axis=1), predicted)
                if f.ndim == 1:
                    assert (np.diff(p[np.argsort(f), 1]) >= -1e-12).all()


def test_the_decision_function_is_score_and_offset_and_the_intercept_has_it():
    X, y = unequal(100, effect=1.5)
    model = MEDClassifier(C=1.0, random_state=0).fit(X, y)
    made = model.calibration_
    scores = model._scores(X)
    shift = np.diff(made.offset)[0] / made.slope
    assert abs(shift) > 1e-3
    np.testing.assert_allclose(model.decision_function(X), scores[:, 1] - scores[:, 0] + shift, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_[0], atol=1e-9)
    p = (1 - made.lapse) * expit(made.slope * model.decision_function(X)) + made.lapse / 2
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], p, rtol=1e-9)


def test_noise_of_known_rate_is_discounted_once():
    """The labels of the training rows are flipped at a known rate; the probabilities are those of the true labels."""
    rng = np.random.default_rng(3)

    def draw(n):
        y = rng.integers(0, 2, n)
        return rng.normal(size=(n, 4)) + np.outer(2 * y - 1, [1.6, 0, 0, 0]), y

    (X, y), (new, true) = draw(300), draw(2000)
    given = np.where(rng.random(300) < 0.3, 1 - y, y)
    probabilities = pd.DataFrame(np.where(np.eye(2)[given] == 1, 0.7, 0.3), columns=[0, 1])
    model = MEDClassifier(C=1.0, random_state=0).fit(X, probabilities)
    right, confidence = model.score(new, true), model.predict_proba(new).max(axis=1).mean()
    assert right > 0.92 and abs(confidence - right) < 0.05  # confidence was 0.57
    assert mean_log_loss(model, new, true) < 0.2  # was 0.56


def test_equally_uncertain_labels_give_finite_probabilities():
    X, y = unequal(100, effect=3.0)
    model = MEDClassifier(C=1.0, random_state=0).fit(X, np.where(np.eye(2)[y] == 1, 0.6, 0.4))
    p = model.predict_proba(X)
    assert np.isfinite(model.calibration_.slope) and p.min() > 0 and model.score(X, y) > 0.85


def test_the_error_in_the_folds_is_kept():
    X, y = unequal(200, effect=1.5)
    new, true = unequal(4000, seed=1, effect=1.5)
    for options in ({}, {"C": 1.0}, {"calibration": None}):
        model = MEDClassifier(random_state=0, **options).fit(X, y)
        assert abs(model.cv_error_ - (1 - model.score(new, true))) < 0.05 < model.loo_estimate_ - model.cv_error_
    assert MEDClassifier(C=1.0, calibration=None).fit(X, y).cv_error_ is None
