"""What a batch without labels tells: derivatives against finite differences, errors against simulation."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from mixent.fusion import Calibration, Fuser, Source
from mixent.fusion.answers import Answers, read_answers
from mixent.fusion.batch import Batch
from mixent.fusion.batch_priors import all_marginals
from mixent.fusion.dependence import _pair_excess, _scores, dependence
from mixent.fusion.drift import drift
from mixent.fusion.sources import Layout

from .panels import Drawn, dense, panel, said_of, tables, with_copies


def marginals_of(drawn, weight=None, known=None):
    layout = Layout.of(drawn.sources)
    answers = read_answers(layout, drawn.answers)
    n = answers.n_items
    return all_marginals(
        Batch(layout, answers, np.ones(n) if weight is None else weight, np.full(n, -1) if known is None else known)
    )


def composite_likelihood(drawn, prior, known=None, share=None):
    """sum_ij u_j log sum_k p_k A_j(v_ij | k); an item of known class counts log p_k for every source."""
    total = 0.0
    for j, (name, one) in enumerate(drawn.sources.items()):
        u = 1.0 if share is None else share[j]
        said = dense(drawn.answers[name], one.symbols)
        free = np.ones(len(said), dtype=bool) if known is None else known < 0
        # of a pmf over symbols: as many answers as it says, each with its share
        total += u * float((said[free].sum(axis=0) * np.log(prior @ one.confusion)).sum())
        if known is not None:
            total += u * float(np.log(prior[known[~free]]).sum())
    return total


@pytest.mark.parametrize("kind", ["hard", "mixed"])
@pytest.mark.parametrize("labelled", [False, True])
def test_the_estimate_is_that_of_greatest_composite_likelihood(kind, labelled):
    drawn = with_copies(panel(0, n=100, K=3, J=3, kind=kind, gaps=0.1, prior=[0.3, 0.3, 0.4]), 2)
    known = np.where(np.arange(100) % 10 == 0, np.searchsorted(["a", "b", "c"], drawn.truth.astype(str)), -1)
    known = known if labelled else None
    found = marginals_of(drawn, known=known)
    share = found.layout.share

    def cost(x):
        p = np.exp(np.append(x, 0.0))
        return -composite_likelihood(drawn, p / p.sum(), known, share)

    best = minimize(cost, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000}).x
    p = np.exp(np.append(best, 0.0))
    np.testing.assert_allclose(found.prior, p / p.sum(), atol=2e-5)


def weighted_prior(drawn, weight, known=None):
    return marginals_of(drawn, weight, known).prior


@pytest.mark.parametrize("labelled", [False, True])
def test_an_items_influence_is_the_slope_in_its_weight(labelled):
    drawn = panel(1, n=60, K=3, J=3, kind="mixed", gaps=0.1, prior=[0.3, 0.3, 0.4], rows=400)
    known = np.where(np.arange(60) % 6 == 0, 1, -1) if labelled else None
    found = marginals_of(drawn, known=known)
    for i in (0, 7, 30):
        h = 0.05 * (np.arange(60) == i)
        slope = (weighted_prior(drawn, 1 + h, known) - weighted_prior(drawn, 1 - h, known)) / 0.1
        np.testing.assert_allclose(found.influence[i], slope, rtol=0.02, atol=2e-4)
    np.testing.assert_allclose(found.influence.sum(axis=0), 0.0, atol=1e-3)


def test_the_slope_in_a_rate_is_that_of_finite_differences(monkeypatch):
    drawn = with_copies(panel(2, n=200, K=3, J=3, gaps=0.1, prior=[0.3, 0.3, 0.4]), 1)
    found = marginals_of(drawn)
    rates = found.layout.confusion
    for v, k in [(0, 0), (4, 2), (8, 1), (10, 1)]:
        moved = []
        for h in (1e-3, -1e-3):
            layout = Layout.of(drawn.sources)
            layout.__dict__["confusion"] = rates + h * np.outer(np.arange(len(rates)) == v, np.arange(3) == k)
            moved.append(all_marginals(replace(found.batch, layout=layout)).prior)
        np.testing.assert_allclose(found.rate_derivative[:, v, k], (moved[0] - moved[1]) / 2e-3, rtol=0.02, atol=2e-3)


def independent(rng, n, rates, prior):
    """Codes (J, n) of sources independent given the class."""
    truth = rng.choice(len(prior), n, p=prior)
    return truth, np.stack([said_of(rng, table, truth, False) for table in rates])


def calibrated(rng, rates, rows, shared=None):
    """Counts of rows of every class: of each source's own, or of the same rows for all."""
    K = len(rates[0])
    truth = np.repeat(np.arange(K), rows)
    out = {}
    for j, table in enumerate(rates):
        codes = said_of(rng, table, truth, False)
        counts = np.zeros((K, K))
        np.add.at(counts, (truth, codes), 1)
        out[f"s{j}"] = Calibration.from_counts(counts, range(K), calibration_set=shared)
    return out


def batch_of(sources, codes):
    return Batch.of(Layout.of(sources), Answers(tuple(codes), codes.shape[1]))


def test_the_batch_covariance_is_that_of_batches_drawn_anew():
    rng = np.random.default_rng(3)
    rates, prior = tables(rng, 3, 3), np.array([0.5, 0.3, 0.2])
    sources = {f"s{j}": Calibration.from_rates(t, 1e6, range(3)) for j, t in enumerate(rates)}
    found, covariances = [], []
    for _ in range(150):
        one = all_marginals(batch_of(sources, independent(rng, 400, rates, prior)[1]))
        found.append(one.prior)
        covariances.append(one.batch_covariance)
    ratio = np.diag(np.mean(covariances, axis=0)) / np.var(found, axis=0)
    assert (np.abs(ratio - 1) < 0.35).all()  # 150 draws tell a variance within 12 %
    # dependence between sources is no matter: the first source three times, not declared
    copied, told = [], []
    thrice = {**sources, "x": sources["s0"], "y": sources["s0"]}
    for _ in range(150):
        codes = independent(rng, 400, rates, prior)[1]
        one = all_marginals(batch_of(thrice, np.concatenate([codes, codes[:1], codes[:1]])))
        copied.append(one.prior)
        told.append(one.batch_covariance)
    ratio = np.diag(np.mean(told, axis=0)) / np.var(copied, axis=0)
    assert (np.abs(ratio - 1) < 0.35).all()


@pytest.mark.parametrize("shared", [None, "clinic"])
def test_the_calibration_covariance_is_that_of_calibrations_drawn_anew(shared):
    """A large batch with exact histograms, and the rates counted anew each time."""
    rng = np.random.default_rng(4)
    rates, prior = tables(rng, 2, 3), np.array([0.7, 0.3])
    _, codes = independent(rng, 20_000, rates, prior)
    found, variances = [], []
    for _ in range(150):
        sources = calibrated(rng, rates, 80, shared)
        batch = batch_of(sources, codes)
        one = all_marginals(batch)
        found.append(one.prior)
        variances.append(np.diag(one.calibration_covariance(dependence(one).correlation)))
    ratio = np.mean(variances, axis=0) / np.var(found, axis=0)
    assert (ratio > 0.65).all() and (ratio < 1.5).all()


def test_rates_counted_on_the_same_rows_err_together():
    """Three times the same source, calibrated on the same rows, is as unsure as once; on rows of its own each, less."""
    rng = np.random.default_rng(5)
    rates = tables(rng, 2, 1)
    _, codes = independent(rng, 5000, rates, np.array([0.6, 0.4]))
    one = calibrated(rng, rates, 50)["s0"]

    def std(calibration_set, times):
        sources = {f"s{j}": replace(one, calibration_set=calibration_set) for j in range(times)}
        batch = Batch(Layout.of(sources), Answers(tuple(codes[[0] * times]), 5000), np.ones(5000), np.full(5000, -1))
        found = all_marginals(batch)
        return np.sqrt(found.calibration_covariance(dependence(found).correlation)[0, 0])

    np.testing.assert_allclose(std("clinic", 3), std(None, 1), rtol=0.05)
    np.testing.assert_allclose(std(None, 3), std(None, 1) / np.sqrt(3), rtol=1e-6)


def coverage(K, J, n, rows, shared, repeats, prior, seed=0):
    """(K,) how often the interval holds the truth."""
    rng = np.random.default_rng(seed)
    rates = tables(rng, K, J)
    inside = np.zeros(K)
    for _ in range(repeats):
        sources = calibrated(rng, rates, rows, shared)
        _, codes = independent(rng, n, rates, prior)
        found = Fuser(sources, method="ml-product").fit({f"s{j}": c for j, c in enumerate(codes)}).prior_estimate_
        inside += (found.low <= prior) & (prior <= found.high)
    return inside / repeats


@pytest.mark.slow
@pytest.mark.parametrize(
    ("K", "J", "n", "rows", "shared", "prior"),
    [
        (2, 3, 300, 60, None, (0.3, 0.7)),
        (2, 3, 300, 60, "clinic", (0.3, 0.7)),
        (2, 5, 1000, 40, "clinic", (0.8, 0.2)),
        (4, 4, 400, 60, None, (0.4, 0.3, 0.2, 0.1)),
        (4, 4, 400, 60, "clinic", (0.4, 0.3, 0.2, 0.1)),
    ],
)
def test_the_interval_holds_the_truth_as_often_as_it_says(K, J, n, rows, shared, prior):
    found = coverage(K, J, n, rows, shared, 400, np.array(prior))
    assert (found >= 0.90).all() and (found <= 0.98).all(), found


def simulated(rng, J, n, rows, prior, copies=0, rates=None, drifted=None):
    rates = tables(rng, len(prior), J) if rates is None else rates
    sources = calibrated(rng, rates, rows)
    truth, codes = independent(rng, n, rates, prior)
    if drifted is not None:
        codes[0] = said_of(rng, drifted, truth, False)
    for i in range(copies):
        sources[f"x{i}"] = sources["s0"]
        codes = np.concatenate([codes, codes[:1]])
    return all_marginals(batch_of(sources, codes))


def test_independent_pairs_make_no_alarm_and_copies_do():
    rng = np.random.default_rng(6)
    z, numbers = [], []
    for _ in range(60):
        found = dependence(simulated(rng, 5, 300, 60, np.array([0.5, 0.3, 0.2])))
        z.extend(found.z[np.triu_indices(5, 1)])
        numbers.append(found.n_effective)
        assert np.isnan(np.diag(found.z)).all() and np.allclose(found.z, found.z.T, equal_nan=True)
    z = np.array(z)
    assert np.mean(np.abs(z) > 4) < 0.01 and abs(z.mean()) < 0.3 and 0.7 < z.std() < 1.3
    assert 4.6 < np.mean(numbers) <= 5
    for _ in range(5):
        found = dependence(simulated(rng, 1, 300, 60, np.array([0.6, 0.4]), copies=4))
        assert found.z[np.triu_indices(5, 1)].min() > 4 and found.largest > 4
        assert 1 <= found.n_effective < 1.3
        assert found.correlation[np.triu_indices(5, 1)].min() > 0.8


def pair_excess(found, i, j):
    """As `dependence` has it: excess, influence of the items."""
    A = found.layout.confusion
    f = np.log(A) - np.log(A).mean(axis=1, keepdims=True)
    scores = [_scores(found.batch, f, m) for m in range(found.layout.n_sources)]
    means = [A[s].T @ f[s] for s in found.layout.slices]
    return _pair_excess(found, scores, means, found.prior, i, j)[:2]


def test_the_excess_of_a_pair_moves_with_an_items_weight_as_its_influence_says():
    """Sources that know one class well and another badly: then the priors move what is expected of the pair."""
    rng = np.random.default_rng(16)
    rates = np.array([[0.95, 0.05], [0.3, 0.7]])
    truth = np.arange(80) % 2
    sources = {f"s{j}": Calibration.from_rates(rates, 200, ["a", "b"]) for j in range(3)}
    answers = {name: np.array(["a", "b"])[said_of(rng, rates, truth, False)].tolist() for name in sources}
    drawn = Drawn(sources, {**answers, "s0": [None, *answers["s0"][1:]]}, truth)
    _, influence = pair_excess(marginals_of(drawn), 0, 1)
    for i in (0, 11, 40, 60):
        h = 0.1 * (np.arange(80) == i)
        up, down = (pair_excess(marginals_of(drawn, 1 + s), 0, 1)[0] for s in (h, -h))
        np.testing.assert_allclose(influence[i], (up - down) / 0.2, rtol=0.03, atol=1e-5)


def test_declared_copies_are_no_news_and_silent_pairs_are_not_known():
    drawn = with_copies(panel(7, n=100, K=2, J=2), 1)
    found = dependence(marginals_of(drawn))
    assert np.isnan(found.z[0, 2]) and found.correlation[0, 2] == pytest.approx(1.0) and np.isfinite(found.z[0, 1])
    apart = panel(8, n=40, K=2, J=2)
    apart.answers["s0"] = [v if i < 20 else None for i, v in enumerate(apart.answers["s0"])]
    apart.answers["s1"] = [v if i >= 20 else None for i, v in enumerate(apart.answers["s1"])]
    found = dependence(marginals_of(apart))
    assert np.isnan(found.z).all() and found.largest == 0.0 and found.n_effective == pytest.approx(2, rel=0.01)


def test_drift_is_seen_and_its_absence_too():
    rng = np.random.default_rng(9)
    rates, prior = tables(rng, 2, 4), np.array([0.65, 0.35])
    calm, alarmed, others = [], [], []
    worn = np.array([[0.55, 0.45], [0.15, 0.85]])
    for _ in range(150):
        one = simulated(rng, 4, 1500, 40, prior, rates=rates)  # the errors of the rates are most of it
        calm.append(drift(one, 0, np.eye(4)).p_value)
    for _ in range(30):
        one = simulated(rng, 4, 400, 80, prior, rates=rates, drifted=worn)
        alarmed.append(drift(one, 0, np.eye(4)).p_value)
        others.append(drift(one, 1, np.eye(4)).p_value)
    calm = np.array(calm)
    assert 0.01 < np.mean(calm < 0.05) < 0.09 and 0.35 < np.mean(calm < 0.5) < 0.65
    assert np.median(alarmed) < 0.01 and np.mean(np.array(alarmed) < 0.05) > 0.8
    assert np.median(others) > 100 * np.median(alarmed)  # it spoils what the others are compared with, a little


def test_drift_tells_shares_and_says_when_it_cannot_be_tested():
    drawn = panel(10, n=200, K=2, J=3, gaps=0.2)
    fuser = Fuser(drawn.sources, method="product").fit(drawn.answers)
    said = [v for v in drawn.answers["s1"] if v is not None]
    np.testing.assert_allclose(fuser.drift_["s1"].observed, [said.count("a") / len(said), said.count("b") / len(said)])
    others = marginals_of(drawn).without(1).prior
    np.testing.assert_allclose(fuser.drift_["s1"].expected, others @ drawn.sources["s1"].confusion, atol=1e-6)
    alone = Fuser({"s0": drawn.sources["s0"]}).fit({"s0": drawn.answers["s0"]})
    assert np.isnan(alone.drift_["s0"].p_value)
    silent = Fuser(drawn.sources).fit({**drawn.answers, "s2": [None] * 200})
    assert np.isnan(silent.drift_["s2"].p_value) and np.isfinite(silent.drift_["s0"].p_value)


def test_the_statistic_of_moved_priors_is_the_gain_in_likelihood():
    drawn = panel(11, n=150, K=2, J=3, prior=[0.25, 0.75], gaps=0.1)
    fuser = Fuser(drawn.sources, method="product").fit(drawn.answers)
    ratio = np.ones((150, 2))
    for name, one in drawn.sources.items():
        said = dense(drawn.answers[name], one.symbols)
        ratio *= np.where(said.any(axis=1, keepdims=True), said @ one.confusion.T, 1.0)

    def log_lik(p):
        return np.log(ratio @ [1 - p, p]).sum()

    best = minimize_scalar(lambda p: -log_lik(p), bounds=(0, 1), method="bounded", options={"xatol": 1e-10})
    np.testing.assert_allclose(fuser.prior_shift_.statistic, 2 * (-best.fun - log_lik(0.5)), rtol=1e-4)
    other = Fuser(drawn.sources, method="product", class_prior=[0.3, 0.7]).fit(drawn.answers)
    np.testing.assert_allclose(other.prior_shift_.statistic, 2 * (-best.fun - log_lik(0.7)), atol=1e-3)


def test_moved_priors_are_seen_and_only_those():
    rng = np.random.default_rng(12)
    rates = tables(rng, 2, 3)
    alarms, plain, power = [], [], []
    for prior, where in ((np.array([0.5, 0.5]), alarms), (np.array([0.25, 0.75]), power)):
        for _ in range(100 if where is alarms else 20):
            sources = calibrated(rng, rates, 100)
            codes = independent(rng, 300, rates, prior)[1]
            found = Fuser(sources, method="product").fit({f"s{j}": c for j, c in enumerate(codes)}).prior_shift_
            where.append(found.significant)
            if where is alarms:
                plain.append(found.p_value < 0.05)
            assert found.significant == (found.robust_p_value < 0.05)
    assert 0.01 <= np.mean(alarms) <= 0.11 and np.mean(power) > 0.9
    assert np.mean(plain) > np.mean(alarms)  # which holds the rates for exact


def test_the_interval_carries_both_errors():
    drawn = panel(13, n=300, K=2, J=3, rows=50)
    found = Fuser(drawn.sources, method="product").fit(drawn.answers).prior_estimate_
    np.testing.assert_allclose(
        np.sqrt(np.diag(found.covariance)), np.hypot(found.batch_std, found.calibration_std), rtol=1e-9
    )
    # the side of the nearer border is that of the normal interval, the other one is a little longer
    down, up = found.prior - found.low, found.high - found.prior
    below, above = np.where(found.prior < 0.5, down, up), np.where(found.prior < 0.5, up, down)
    np.testing.assert_allclose(below, 1.959964 * np.sqrt(np.diag(found.covariance)), rtol=1e-5)
    assert (above > below).all() and (above < 1.1 * below).all()
    wide = Fuser(drawn.sources, method="product", confidence=0.99).fit(drawn.answers).prior_estimate_
    np.testing.assert_allclose(np.max(wide.prior - wide.low) / below.max(), 2.5758 / 1.95996, rtol=0.02)
    # ten times the rows behind every rate: a tenth of the variance
    sure = {n: replace(c, counts=10 * c.counts, smoothing=5.0) for n, c in drawn.sources.items()}
    sharper = Fuser(sure, method="product").fit(drawn.answers).prior_estimate_
    np.testing.assert_allclose(sharper.batch_std, found.batch_std, rtol=1e-6)
    np.testing.assert_allclose(found.calibration_std / sharper.calibration_std, np.sqrt(10), rtol=0.02)
    assert found.confidence == 0.95


def test_labels_make_the_interval_narrower():
    drawn = panel(14, n=300, K=2, J=3)
    y = [t if i % 2 else None for i, t in enumerate(drawn.truth)]
    told = Fuser(drawn.sources).fit(drawn.answers, y).prior_estimate_
    plain = Fuser(drawn.sources).fit(drawn.answers).prior_estimate_
    assert (told.high - told.low < plain.high - plain.low).all()
    share = np.mean(drawn.truth == "a")
    assert told.low[0] < share < told.high[0]


def test_soft_sources_have_intervals_too():
    rng = np.random.default_rng(15)
    inside = 0
    for _ in range(40):
        prior = np.array([0.3, 0.7])
        drawn = panel(int(rng.integers(1 << 30)), n=200, K=2, J=3, kind="soft", prior=prior)
        sources = {n: Source(c, as_is=False) for n, c in drawn.sources.items()}
        found = Fuser(sources, method="product").fit(drawn.answers).prior_estimate_
        inside += found.low[0] <= 0.3 <= found.high[0]
    assert inside >= 34
