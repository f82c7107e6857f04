"""Class shares by a rule: derivatives against finite differences, intervals against simulation and Wilson's formula."""

from dataclasses import replace

import numpy as np
import pytest

from mixent.fusion import Calibration, Fuser
from mixent.fusion.answers import Answers
from mixent.fusion.batch import Batch
from mixent.fusion.batch_priors import all_marginals
from mixent.fusion.dependence import dependence
from mixent.fusion.rules import ml_product
from mixent.fusion.sampling import share_interval
from mixent.fusion.shares import RuleShares
from mixent.fusion.sources import Layout

from .panels import panel, said_of, tables
from .test_diagnostics import calibrated, independent, marginals_of

TRUST = np.array([0.9, 0.6, 0.8])
PSEUDO = np.array([0.5, 1.0, 0.7])
N_HISTOGRAM = np.array([30.0, 10.0, 20.0])


def shares_of(drawn, weight=None, known=None, rates=None):
    """The shares at fixed trust weights, with pseudo-items and the histogram estimate."""
    marginals = marginals_of(drawn, weight, known)
    if rates is not None:
        layout = Layout.of(drawn.sources)
        layout.__dict__["confusion"] = rates
        marginals = all_marginals(replace(marginals.batch, layout=layout))
    batch = marginals.batch
    h = marginals.prior
    prior = ml_product(
        np.concatenate([batch.product(TRUST), np.log(np.maximum(np.eye(3), 1e-300)), np.log(1 - np.eye(3) + 1e-300)]),
        np.concatenate([batch.weight, N_HISTOGRAM * h, N_HISTOGRAM * (1 - h)]),
        np.full(3, 1 / 3),
        labels=np.concatenate([batch.labels, np.full(6, -1)]),
        pseudo_items=PSEUDO,
        tol=1e-13,
    ).prior
    return RuleShares(marginals, TRUST, prior, marginals.layout.confusion, PSEUDO, N_HISTOGRAM)


@pytest.mark.parametrize("labelled", [False, True])
def test_an_items_influence_is_the_slope_in_its_weight(labelled):
    drawn = panel(1, n=60, K=3, J=3, kind="mixed", gaps=0.1, prior=[0.3, 0.3, 0.4], rows=400)
    known = np.where(np.arange(60) % 6 == 0, 1, -1) if labelled else None
    one = shares_of(drawn, known=known)
    for i in (0, 7, 30):
        h = 0.05 * (np.arange(60) == i)
        slope = (shares_of(drawn, 1 + h, known).prior - shares_of(drawn, 1 - h, known).prior) / 0.1
        np.testing.assert_allclose(one.influence[i], slope, rtol=0.02, atol=3e-4)


def test_the_slope_in_a_rate_is_that_of_finite_differences():
    drawn = panel(2, n=200, K=3, J=3, gaps=0.1, prior=[0.3, 0.3, 0.4])
    one = shares_of(drawn)
    rates = one.marginals.layout.confusion
    for v, k in [(0, 0), (4, 2), (8, 1)]:
        moved = []
        for h in (1e-3, -1e-3):
            step = h * np.outer(np.arange(len(rates)) == v, np.arange(3) == k)
            # the evidence is divided by the pooled rates of the calibration, which are the same for all classes
            moved.append(shares_of(drawn, rates=rates + step).prior)
        np.testing.assert_allclose(one.rate_derivative[:, v, k], (moved[0] - moved[1]) / 2e-3, rtol=0.03, atol=3e-3)


def test_an_interval_of_labelled_items_contains_wilsons():
    n, z = 40.0, 1.959964
    for share in (0.0, 0.03, 0.3, 0.5, 0.97):
        p = np.array([share, 1 - share])
        low, high = share_interval(p, np.diag(p * (1 - p) / n), n, 0.95)
        center, root = share + z**2 / (2 * n), z * np.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
        wilson = (center + np.array([-root, root])) / (1 + z**2 / n)
        assert low[0] <= wilson[0] + 1e-6 and high[0] >= wilson[1] - 1e-6
        half = z * np.sqrt(share * (1 - share) / n)
        assert low[0] == pytest.approx(max(min(wilson[0], share - half), 0), abs=1e-6)
        assert high[0] == pytest.approx(min(max(wilson[1], share + half), 1), abs=1e-6)
        np.testing.assert_allclose(low, 1 - high[::-1], atol=1e-12)


def test_an_interval_is_normal_far_from_the_border_and_grows_with_the_variance():
    p = np.array([0.4, 0.6])
    low, high = share_interval(p, np.diag([0.01**2] * 2), 1e5, 0.95)
    np.testing.assert_allclose([p - low, high - p], 1.959964 * 0.01, rtol=1e-3)
    widths = [np.subtract(*share_interval(p, np.diag([v] * 2), 100, 0.95)[::-1]) for v in (0.001, 0.01, 0.05)]
    assert (np.diff(widths, axis=0) > 0).all()


@pytest.mark.parametrize("method", ["auto", "ml-product", "discounted"])
def test_one_share_is_reported_and_used(method):
    drawn = panel(3, n=150, K=3, J=4, rows=80)
    fuser = Fuser(drawn.sources, method=method).fit(drawn.answers)
    estimate = fuser.prior_estimate_
    np.testing.assert_array_equal(estimate.prior, fuser.prior_)
    assert (estimate.low <= fuser.prior_).all() and (fuser.prior_ <= estimate.high).all()
    assert (np.abs(fuser.posterior_.mean(axis=0) - fuser.prior_) < 0.2 * (estimate.high - estimate.low)).all()


def test_the_mean_posterior_is_the_share():
    """Without pseudo-items, the maximum likelihood priors are the means of the posteriors."""
    drawn = panel(4, n=150, K=3, J=4, rows=80)
    fuser = Fuser(drawn.sources, method="ml-product").fit(drawn.answers)
    np.testing.assert_allclose(fuser.posterior_.mean(axis=0), fuser.prior_estimate_.prior, atol=1e-4)


def test_permuting_classes_permutes_the_intervals():
    drawn = panel(5, n=150, K=3, J=4, rows=80)
    names = dict(zip("abc", "cab"))
    renamed = {
        name: replace(c, classes=tuple(names[k] for k in c.classes), symbols=tuple(names[v] for v in c.symbols))
        for name, c in drawn.sources.items()
    }
    answers = {name: [names[v] for v in values] for name, values in drawn.answers.items()}
    for method in ("ml-product", "discounted"):
        one = Fuser(drawn.sources, method=method).fit(drawn.answers).prior_estimate_
        other = Fuser(renamed, method=method).fit(answers).prior_estimate_
        order = [2, 0, 1]  # of a, b, c among their new names
        np.testing.assert_allclose(other.low[order], one.low, atol=2e-4)
        np.testing.assert_allclose(other.high[order], one.high, atol=2e-4)


def test_the_variance_of_calibrated_probabilities_is_that_of_calibrations_drawn_anew():
    """A large batch, and mean probabilities counted anew each time: less than the variance of labels."""
    rng = np.random.default_rng(0)
    rates, prior, truth = tables(rng, 2, 3), np.array([0.7, 0.3]), np.arange(6000) % 10 >= 7
    answers = [said_of(rng, table, truth.astype(int), True) for table in rates]
    y = np.repeat([0, 1], 60)
    estimates, variances, of_labels = [], [], []
    for _ in range(120):
        sources = {
            f"s{j}": Calibration.from_predictions(y, said_of(rng, table, y, True), symbols=[0, 1])
            for j, table in enumerate(rates)
        }
        one = all_marginals(Batch.of(Layout.of(sources), Answers(tuple(answers), len(truth))))
        estimates.append(one.prior)
        variances.append(np.diag(one.calibration_covariance(np.eye(3))))
        one.batch.__dict__["dispersion"] = np.ones((3, 2))
        of_labels.append(np.diag(one.calibration_covariance(np.eye(3))))
    ratio = np.mean(variances, axis=0) / np.var(estimates, axis=0)
    assert (ratio > 0.65).all() and (ratio < 1.5).all()
    assert (np.mean(of_labels, axis=0) > 1.5 * np.mean(variances, axis=0)).all()
    np.testing.assert_allclose(np.mean(estimates, axis=0), prior, atol=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(("shared", "share"), [(None, 0.3), ("clinic", 0.3), (None, 0.03)])
def test_the_interval_of_the_share_holds_the_truth_as_often_as_it_says(shared, share):
    rng = np.random.default_rng(0)
    prior, rates, inside = np.array([share, 1 - share]), tables(rng, 2, 4, right=0.75), []
    for _ in range(300):
        codes = independent(rng, 300, rates, prior)[1]
        fuser = Fuser(calibrated(rng, rates, 60, shared)).fit({f"s{j}": c for j, c in enumerate(codes)})
        inside.append(fuser.prior_estimate_.low[0] <= share <= fuser.prior_estimate_.high[0])
    assert 0.92 <= np.mean(inside) <= 0.99


def test_the_discrepancy_from_the_histograms_widens_the_interval():
    """Undeclared dependence makes the priors by EM inconsistent with the histograms."""
    rng = np.random.default_rng(1)
    rates = [np.array([[0.8, 0.2], [0.2, 0.8]])] * 2
    one = calibrated(rng, rates, 2000)
    _, codes = independent(rng, 3000, rates, np.array([0.9, 0.1]))
    copied = {"s0": one["s0"], "s1": one["s0"]}
    fuser = Fuser(copied, method="ml-product").fit({"s0": codes[0], "s1": codes[0]})
    estimate = fuser.prior_estimate_
    sampling = np.hypot(estimate.batch_std, estimate.calibration_std)
    assert abs(fuser.prior_[1] - 0.1) > 4 * sampling[1]  # biased
    assert estimate.low[1] < 0.1 and np.sqrt(estimate.covariance[1, 1]) > 3 * sampling[1]
    assert dependence(all_marginals(fuser._batch)).n_effective == pytest.approx(1, abs=0.01)
