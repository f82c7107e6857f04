"""Rates by counting, curves by scikit-learn, costs by their definitions; and what no monotone change can move."""

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.special import expit, logit, ndtri
from scipy.stats import norm
from sklearn.metrics import det_curve, roc_auc_score, roc_curve

from mixent.datasets import simulate_verification
from mixent.displays import RocCurvesDisplay, VerificationDisplay
from mixent.evaluate import log_loss
from mixent.studies import (
    bayes_threshold,
    cllr,
    detection_cost,
    eer,
    llr_of_posterior,
    min_cllr,
    min_dcf,
    verification_rates,
    verification_report,
)
from mixent.studies.verification import _operating_points

from ..drawing import drawn

RNG = np.random.default_rng(0)
TRUTH = RNG.permutation(np.repeat(["client", "impostor"], [60, 300]))
CLIENT = TRUTH == "client"
LLR = 2.0 * (RNG.normal(size=360) + 2 * CLIENT - 1)  # exact: d z - d^2 / 2 with d = 2
TIED = np.round(LLR)
AS_CLIENT = {"target": "client"}


@pytest.mark.parametrize("threshold", [-1, 0, 2.0, np.inf, -np.inf])
def test_rates_are_counts(threshold):
    rates = verification_rates(TRUTH, TIED, threshold=threshold, **AS_CLIENT)
    fa = sum(s >= threshold for s, c in zip(TIED, CLIENT) if not c)
    fr = sum(s < threshold for s, c in zip(TIED, CLIENT) if c)
    assert (rates.false_accepts, rates.false_rejects) == (fa, fr)
    assert (rates.n_clients, rates.n_impostors) == (60, 300)
    assert (rates.far, rates.frr, rates.hter) == (fa / 300, fr / 60, (fa / 300 + fr / 60) / 2)
    decided = np.where(threshold <= TIED, "client", "impostor")
    assert verification_rates(TRUTH, decided, **AS_CLIENT) == rates
    assert verification_rates(TRUTH, threshold <= TIED, **AS_CLIENT) == rates
    assert verification_rates(CLIENT, threshold <= TIED, target=True) == rates
    assert verification_rates(CLIENT.astype(int), (threshold <= TIED).astype(int), target=1) == rates
    # the other class as the target: accepting one is rejecting the other
    swapped = verification_rates(TRUTH, decided, target="impostor")
    assert (swapped.false_accepts, swapped.false_rejects) == (fr, fa)


def test_all_other_labels_are_impostors():
    kinds = np.where(CLIENT, "client", np.where(np.arange(360) % 2, "spoof", "stranger"))
    assert verification_rates(kinds, LLR, threshold=0, **AS_CLIENT) == verification_rates(
        TRUTH, LLR, threshold=0, **AS_CLIENT
    )


@pytest.mark.parametrize("scores", [LLR, TIED, np.zeros(360)])
def test_operating_points_are_those_of_scikit_learn(scores):
    far, frr, threshold = _operating_points(CLIENT, scores)
    false, true, at = roc_curve(CLIENT, scores, drop_intermediate=False)
    np.testing.assert_allclose(far, false, atol=1e-15)
    np.testing.assert_allclose(frr, 1 - true, atol=1e-15)
    np.testing.assert_array_equal(threshold, at)
    theirs = set(zip(*(np.round(rate, 12) for rate in det_curve(CLIENT, scores)[:2])))
    assert theirs <= set(zip(np.round(far, 12), np.round(frr, 12)))
    for t, a, r in list(zip(threshold, far, frr))[:: max(len(far) // 10, 1)]:
        rates = verification_rates(TRUTH, scores, threshold=t, **AS_CLIENT)
        assert (rates.far, rates.frr) == (a, r)


def test_the_cost_is_its_definition():
    assert detection_cost(0.02, 0.1, 0.3, cost_miss=2, cost_false_alarm=5) == pytest.approx(
        0.3 * 2 * 0.1 + 0.7 * 5 * 0.02, rel=1e-12
    )
    for prior in (0.01, 0.5, 0.9):
        costs = {"cost_miss": 3, "cost_false_alarm": 0.5, "normalized": True}
        # accepting none, accepting all: the better of them has cost 1
        assert min(detection_cost(0, 1, prior, **costs), detection_cost(1, 0, prior, **costs)) == pytest.approx(1)
    np.testing.assert_allclose(detection_cost(np.array([0, 1]), np.array([1, 0]), 0.2), [0.2, 0.8])
    rates = verification_rates(TRUTH, LLR, threshold=0.5, **AS_CLIENT)
    assert detection_cost(rates.far, rates.frr, 0.5) == pytest.approx(rates.hter)


@pytest.mark.parametrize(("prior", "miss", "alarm"), [(0.5, 1, 1), (0.01, 10, 1), (0.9, 1, 7)])
@pytest.mark.parametrize("scores", [LLR, TIED])
def test_the_least_cost_is_that_of_the_best_threshold(prior, miss, alarm, scores):
    costs = {"cost_miss": miss, "cost_false_alarm": alarm}
    by_hand = []
    for t in [*np.unique(scores), np.inf]:
        rates = verification_rates(TRUTH, scores, threshold=t, **AS_CLIENT)
        by_hand.append(detection_cost(rates.far, rates.frr, prior, **costs))
    result = min_dcf(TRUTH, scores, prior=prior, **costs, **AS_CLIENT)
    assert result == pytest.approx(min(by_hand), rel=1e-12)
    trivial = min(prior * miss, (1 - prior) * alarm)
    assert min_dcf(TRUTH, scores, prior=prior, normalized=True, **costs, **AS_CLIENT) == pytest.approx(result / trivial)
    assert result <= trivial


def test_the_bayes_threshold_has_the_least_expected_cost():
    """Of exact normal log-likelihood ratios, by their distributions."""
    for prior, miss, alarm in [(0.5, 1, 1), (0.05, 4, 1), (0.8, 1, 3)]:
        costs = {"cost_miss": miss, "cost_false_alarm": alarm}
        at = bayes_threshold(prior, **costs)
        grid = at + np.array([-0.3, -0.01, 0, 0.01, 0.3])
        far, frr = norm.sf(grid, -2, 2), norm.cdf(grid, 2, 2)
        assert np.argmin(detection_cost(far, frr, prior, **costs)) == 2
    assert bayes_threshold(0.5) == 0 and bayes_threshold(0.2) == pytest.approx(-logit(0.2))


def test_the_equal_error_rate():
    assert eer(["c", "c", "i", "i"], [3, 2, 1, 0], target="c") == 0
    assert eer(["c", "c", "i", "i"], [0, 1, 2, 3], target="c") == 1
    assert eer(["c", "c", "i", "i"], [3, 1, 2, 0], target="c") == 0.5
    assert eer(TRUTH, np.zeros(360), **AS_CLIENT) == 0.5
    # 1 of 3 impostors accepted and 1 of 3 clients rejected at one threshold
    assert eer(["c", "c", "i", "c", "i", "i"], [6, 5, 4, 3, 2, 1], target="c") == pytest.approx(1 / 3)
    # between (0, 1/2) and (1, 0), which tied scores join: FAR = t, FRR = (1 - t) / 2
    assert eer(["c", "c", "i"], [2, 1, 1], target="c") == pytest.approx(1 / 3)
    many = simulate_verification(20_000, 20_000, development=(1, 1), n_systems=1, separation=2, random_state=0)
    result = eer(many.evaluation.truth, many.evaluation.llr, **AS_CLIENT)
    assert result == pytest.approx(norm.cdf(-1), abs=4 * np.sqrt(0.16 * 0.84 / 20_000))


@pytest.mark.parametrize("change", [np.tanh, lambda s: 5 * s - 40, lambda s: np.sign(s) * s**2, expit])
def test_increasing_changes_move_no_rate_that_chooses_its_threshold(change):
    scores = np.round(LLR / 4, 3)
    changed = change(scores)
    assert len(np.unique(changed)) == len(np.unique(scores))
    assert eer(TRUTH, changed, **AS_CLIENT) == eer(TRUTH, scores, **AS_CLIENT)
    assert min_dcf(TRUTH, changed, prior=0.1, **AS_CLIENT) == min_dcf(TRUTH, scores, prior=0.1, **AS_CLIENT)
    assert min_cllr(TRUTH, changed, **AS_CLIENT) == min_cllr(TRUTH, scores, **AS_CLIENT)


def test_the_cost_of_likelihood_ratios():
    by_hand = (np.log2(1 + np.exp(-LLR[CLIENT])).mean() + np.log2(1 + np.exp(LLR[~CLIENT])).mean()) / 2
    assert cllr(TRUTH, LLR, **AS_CLIENT) == pytest.approx(by_hand, rel=1e-12)
    assert cllr(TRUTH, np.zeros(360), **AS_CLIENT) == pytest.approx(1, rel=1e-12)
    assert cllr(TRUTH, -LLR, target="impostor") == pytest.approx(by_hand, rel=1e-12)
    # log-loss at prior 1/2, in bits
    weight = np.where(CLIENT, 1 / 60, 1 / 300)
    loss = log_loss(TRUTH, np.column_stack([expit(LLR), expit(-LLR)]), ["client", "impostor"], sample_weight=weight)
    assert by_hand == pytest.approx(loss / np.log(2), rel=1e-9)
    # a ratio that is off by a constant or a factor costs more
    for off in (LLR + 3, LLR - 3, 4 * LLR, LLR / 4):
        assert cllr(TRUTH, off, **AS_CLIENT) > by_hand


def test_the_cost_of_ratios_is_the_mean_detection_cost_over_priors():
    """Cllr = integral over the threshold t of DCF at prior expit(-t), over 2 log 2 (Brümmer and du Preez, 2006)."""
    t = np.linspace(-60, 60, 40_001)
    far, frr = (LLR[~CLIENT][:, None] >= t).mean(axis=0), (LLR[CLIENT][:, None] < t).mean(axis=0)
    cost = np.array([detection_cost(a, r, p) for a, r, p in zip(far, frr, np.clip(expit(-t), 1e-12, 1 - 1e-12))])
    assert np.sum(cost) * (t[1] - t[0]) / (2 * np.log(2)) == pytest.approx(cllr(TRUTH, LLR, **AS_CLIENT), rel=1e-3)


def test_infinite_ratios():
    sure = np.where(CLIENT, np.inf, -np.inf)
    assert cllr(TRUTH, sure, **AS_CLIENT) == min_cllr(TRUTH, sure, **AS_CLIENT) == eer(TRUTH, sure, **AS_CLIENT) == 0
    assert min_dcf(TRUTH, sure, prior=0.1, **AS_CLIENT) == 0
    one = LLR.copy()
    one[np.argmax(CLIENT)] = -np.inf
    assert cllr(TRUTH, one, **AS_CLIENT) == np.inf > min_cllr(TRUTH, one, **AS_CLIENT)
    report = verification_report(TRUTH, one, prior=0.5, **AS_CLIENT)
    assert "inf" in str(report) and report.eer < 0.3


@pytest.mark.parametrize("scores", [LLR, TIED, -LLR, np.zeros(360), 3 * LLR + 5])
def test_no_increasing_function_has_less_than_the_best(scores):
    least = min_cllr(TRUTH, scores, **AS_CLIENT)
    assert least <= 1 + 1e-12
    order = np.argsort(CLIENT, kind="stable")  # equal scores stay together, whatever the order of rows
    assert min_cllr(TRUTH[order], scores[order], **AS_CLIENT) == pytest.approx(least, rel=1e-12)
    assert len(np.unique(scores)) > 1 or least == pytest.approx(1, rel=1e-12)
    rng = np.random.default_rng(1)
    values = np.unique(scores)
    for _ in range(20):
        steps = np.cumsum(rng.exponential(size=len(values)) ** 3 / len(values)) * rng.choice([1, 8])
        any_change = (steps - np.median(steps) + rng.normal())[np.searchsorted(values, scores)]
        assert cllr(TRUTH, any_change, **AS_CLIENT) >= least
    assert cllr(TRUTH, scores, **AS_CLIENT) >= least - 1e-12


def test_the_best_monotone_calibration_by_hand():
    """c i c i i, from the top: blocks {c}, {i c}, {i i}; in the middle p = (1/2)/2 : (1/3)/2 = 3 : 2."""
    result = min_cllr(["c", "i", "c", "i", "i"], [5, 4, 3, 2, 1], target="c")
    ratio = np.log((1 / 2) / (1 / 3))
    by_hand = (np.log2(1 + np.exp(-ratio)) / 2 + np.log2(1 + np.exp(ratio)) / 3) / 2
    assert result == pytest.approx(by_hand, rel=1e-12)


def test_posteriors_become_ratios():
    np.testing.assert_allclose(llr_of_posterior([0.2, 0.5, 0.9], 0.2), logit([0.2, 0.5, 0.9]) - logit(0.2))
    assert llr_of_posterior([0.0, 1.0], 0.5).tolist() == [-np.inf, np.inf]
    back = llr_of_posterior(expit(LLR + logit(0.03)), 0.03)
    np.testing.assert_allclose(back, LLR, rtol=1e-9)


def test_the_report_holds_what_the_functions_give():
    costs = {"cost_miss": 10.0, "cost_false_alarm": 2.0}
    report = verification_report(TRUTH, LLR, prior=0.02, **costs, **AS_CLIENT)
    rates = verification_rates(TRUTH, LLR, threshold=bayes_threshold(0.02, **costs), **AS_CLIENT)
    assert (report.false_accepts, report.false_rejects) == (rates.false_accepts, rates.false_rejects)
    assert (report.far, report.frr, report.hter) == (rates.far, rates.frr, rates.hter)
    assert report.threshold == bayes_threshold(0.02, **costs) and report.target == "client"
    weigh = {"prior": 0.02, **costs}
    assert report.dcf == pytest.approx(detection_cost(rates.far, rates.frr, **weigh))
    assert report.normalized_dcf == pytest.approx(detection_cost(rates.far, rates.frr, normalized=True, **weigh))
    assert report.min_dcf == min_dcf(TRUTH, LLR, **weigh, **AS_CLIENT) <= report.dcf
    assert report.normalized_min_dcf == pytest.approx(min_dcf(TRUTH, LLR, normalized=True, **weigh, **AS_CLIENT))
    assert report.eer == eer(TRUTH, LLR, **AS_CLIENT) and report.cllr == cllr(TRUTH, LLR, **AS_CLIENT)
    assert report.min_cllr == min_cllr(TRUTH, LLR, **AS_CLIENT) < report.cllr
    text = str(report).splitlines()
    assert text[1].split() == ["false", "accepts", "(FA)", str(rates.false_accepts), "of", "300", "impostors"]
    assert text[2].split() == ["false", "rejects", "(FR)", str(rates.false_rejects), "of", "60", "clients"]
    assert text[3].split()[:3] == ["FAR", f"{100 * rates.far:.3f}", "%"] and len(text) == 11
    assert verification_report(TRUTH, LLR, prior=0.9, **AS_CLIENT).trivial_dcf == pytest.approx(0.1)
    at = verification_report(TRUTH, LLR, prior=0.02, threshold=1.0, **costs, **AS_CLIENT)
    assert at.threshold == 1 and at.far == verification_rates(TRUTH, LLR, threshold=1, **AS_CLIENT).far


def test_det_draws_the_rates_as_normal_deviates():
    systems = {"good": 2 * LLR, "fair_$": LLR + RNG.normal(size=360) * 3}
    display = VerificationDisplay.from_predictions(TRUTH, systems, prior=0.2, cost_miss=2, **AS_CLIENT)
    ax = drawn(display)
    for i, (name, scores) in enumerate(systems.items()):
        curve = display.curves[name]
        assert curve.eer == eer(TRUTH, scores, **AS_CLIENT)
        assert curve.bayes == verification_rates(
            TRUTH, scores, threshold=bayes_threshold(0.2, cost_miss=2), **AS_CLIENT
        )
        line, ring, square = ax.lines[1 + 3 * i : 4 + 3 * i]
        assert line.get_label() == f"{name.replace('$', chr(92) + '$')} (EER = {100 * curve.eer:.2f} %)"
        inside = (curve.far > 0) & (curve.far < 1) & (curve.frr > 0) & (curve.frr < 1)
        wanted = ndtri(np.column_stack([curve.far, curve.frr])[inside])
        np.testing.assert_allclose(line.get_xydata()[inside], wanted)
        np.testing.assert_allclose(ring.get_xydata()[0], ndtri([curve.eer] * 2))
        np.testing.assert_allclose(square.get_xydata()[0], ndtri([curve.bayes.far, curve.bayes.frr]))
    result = [t.get_text() for t in ax.get_legend().get_texts()]
    assert result[2:] == ["equal error rate", "threshold for prior 0.2"]
    assert ax.get_xlabel() == "False acceptance rate of client (%)"
    ticks = dict(zip(ax.get_xticks(), (t.get_text() for t in ax.get_xticklabels())))
    np.testing.assert_allclose([100 * norm.cdf(t) for t in ticks], [float(text) for text in ticks.values()])


def test_det_keeps_the_corners_of_every_step():
    curve = VerificationDisplay.from_predictions(TRUTH, TIED, **AS_CLIENT).curves["scores"]
    far, frr, _ = _operating_points(CLIENT, TIED)
    np.testing.assert_array_equal([curve.far[[0, -1]], curve.frr[[0, -1]]], [[0, 1], [1, 0]])
    assert set(zip(curve.far, curve.frr)) <= set(zip(far, frr)) and len(curve.far) <= len(far)
    whole = VerificationDisplay.from_predictions(TRUTH, LLR, **AS_CLIENT).curves["scores"]
    far, frr, _ = _operating_points(CLIENT, LLR)
    # trapezoids: what was left out lies on straight lines
    assert trapezoid(whole.frr, whole.far) == pytest.approx(trapezoid(frr, far), rel=1e-12)
    assert len(whole.far) < len(far)


@pytest.mark.parametrize("scores", [np.where(CLIENT, 1.0, -1.0), -LLR, np.where(CLIENT, -1.0, 1.0), np.zeros(360)])
def test_det_of_the_best_and_of_the_worst(scores):
    ax = drawn(VerificationDisplay.from_predictions(TRUTH, {"a": scores}, prior=0.5, **AS_CLIENT))
    assert np.isfinite(ax.get_xlim()).all() and ax.get_xlim()[0] < ax.get_xlim()[1] and len(ax.get_xticks()) >= 3
    for mark in ax.lines[2:4]:
        x, y = mark.get_xydata()[0]
        assert ax.get_xlim()[0] <= x <= ax.get_xlim()[1] and ax.get_ylim()[0] <= y <= ax.get_ylim()[1]


def test_det_takes_axes_and_many_systems_and_shows_itself_in_a_line():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    display = VerificationDisplay.from_predictions(
        TRUTH, {str(i): LLR + i * RNG.normal(size=360) for i in range(6)}, **AS_CLIENT
    )
    assert drawn(display, ax) is ax and len(repr(display)) < 200 and display.prior is None
    assert len(ax.get_legend().get_texts()) == 7
    assert len(repr(display.curves["0"])) < 200


def test_roc_takes_the_same_scores():
    sure = np.where(LLR > 8, np.inf, LLR)
    display = RocCurvesDisplay.from_predictions(TRUTH, {"a": LLR, "b": sure}, pos_label="client")
    assert display.curves["a"].auc == pytest.approx(roc_auc_score(CLIENT, LLR))
    far, frr, _ = _operating_points(CLIENT, sure)
    assert display.curves["b"].auc == pytest.approx(1 - trapezoid(frr, far))
