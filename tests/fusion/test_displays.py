"""Pictures of a fusion show the fusion's own numbers."""

import numpy as np
import pytest

from mixent.displays import DependenceDisplay, DriftDisplay, PriorsDisplay, TrustDisplay
from mixent.fusion import Calibration, Fuser

from ..drawing import drawn, drawn_panels

LABELS = np.array(["$a_", "b", "c"])


def panel(n_sources=4, seed=0, shared=0.9):
    """The first two sources err together; the last is a declared copy of the third."""
    rng = np.random.default_rng(seed)
    truth, y = rng.integers(3, size=300), rng.choice(3, p=[0.7, 0.2, 0.1], size=600)

    def said(true, right):
        return LABELS[np.where(right, true, (true + 1) % 3)]

    sources, votes = {}, {}
    luck, old_luck = rng.random(600), rng.random(300)
    for j in range(n_sources):
        own, old = rng.random(600), rng.random(300)
        if j < 2:
            own, old = (np.where(rng.random(len(u)) < shared, u, v) for u, v in ((luck, own), (old_luck, old)))
        sources[f"s_{j}"] = Calibration.from_predictions(LABELS[truth], said(truth, old < 0.75))
        votes[f"s_{j}"] = said(y, own < 0.75)
    last, original = f"s_{n_sources - 1}", f"s_{n_sources - 2}"
    counts = sources[original].counts
    sources[last] = Calibration.from_counts(counts, classes=LABELS.tolist(), copy_of=original)
    votes[last] = votes[original]
    return sources, votes


SOURCES, VOTES = panel()


@pytest.fixture(scope="module")
def fuser():
    return Fuser(SOURCES, method="pool").fit(VOTES)


def test_priors_with_intervals_beside_those_of_the_training(fuser):
    display = PriorsDisplay.from_estimator(fuser)
    np.testing.assert_array_equal(display.prior, fuser.prior_estimate_.prior)
    np.testing.assert_array_equal(display.used, fuser.prior_)
    ax = drawn(display)
    (interval,) = ax.collections
    ends = np.array([segment[:, 0] for segment in interval.get_segments()])
    np.testing.assert_allclose(ends, 100 * np.column_stack([display.low, display.high]))
    lines = {line.get_label(): line.get_xdata() for line in ax.lines}
    np.testing.assert_allclose(lines["estimate"], 100 * display.prior)
    np.testing.assert_allclose(lines["training"], 100 * fuser._fitted_layout.training_prior)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["\\$a_", "b", "c"]
    assert "95 % interval" in [t.get_text() for t in ax.get_legend().get_texts()]


def test_trust_is_a_bar_each(fuser):
    ax = drawn(TrustDisplay.from_estimator(fuser))
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], list(fuser.trust_.values()))
    assert [t.get_text() for t in ax.get_yticklabels()] == ["s_0", "s_1", "s_2", "s_3"]
    assert ax.get_xlabel() == "Trust weight"
    votes = TrustDisplay.from_estimator(Fuser(SOURCES, method="product").fit(VOTES))
    assert drawn(votes).get_xlabel() == "Share of a vote" and votes.trust.tolist() == [1, 1, 0.5, 0.5]


def test_of_many_sources_the_most_trusted_have_a_bar():
    trust = np.linspace(0, 1, 60)
    ax = drawn(TrustDisplay(tuple(f"s{j}" for j in range(60)), trust, True))
    assert len(ax.patches) == 40 and ax.get_xlabel() == "Trust weight (the 40 largest of 60)"
    assert ax.get_yticklabels()[0].get_text() == "s20"


def test_the_map_has_z_above_and_correlation_below(fuser):
    display = DependenceDisplay.from_estimator(fuser)
    ax = drawn(display)
    above = np.triu(np.ones((4, 4), dtype=bool), 1)
    z, correlation = (image.get_array() for image in ax.images)
    known = above & np.isfinite(display.z)
    np.testing.assert_allclose(z[known], np.clip(fuser.dependence_.z[known] / display.LIMIT, -1, 1))
    assert z.mask[~above].all() and z.mask[2, 3]  # of declared copies there is no test
    np.testing.assert_allclose(correlation[3, 2], fuser.dependence_.correlation[3, 2])
    assert correlation.mask[above].all()
    texts = [text.get_text() for text in ax.texts]
    assert f"{display.z[0, 1]:+.1f}" in texts and display.z[0, 1] > 4
    assert "-0.0" not in texts and "-0.00" not in texts
    assert ax.get_title(loc="left") == f"4 sources; effective number {fuser.dependence_.n_effective:.1f}"


def test_a_map_of_many_sources_has_no_numbers():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(50, 50))
    ax = drawn(DependenceDisplay(tuple(f"source number {j}" for j in range(50)), z, z / 9, 1.0))
    assert not ax.texts and len(ax.get_xticklabels()) == 25
    assert ax.get_title(loc="left") == "50 sources; effective number 1.0"


def windows(n=5, broken=2):
    """Answers of four independent sources in each window; from window `broken` on, the first is random."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=600)

    def said(y, right):
        return LABELS[np.where(rng.random(len(y)) < right, y, rng.integers(3, size=len(y)))]

    sources = {f"s{j}": Calibration.from_predictions(LABELS[truth], said(truth, 0.7)) for j in range(4)}
    tables = []
    for w in range(n):
        y = rng.choice(3, p=[0.7 - 0.1 * w, 0.2 + 0.1 * w, 0.1], size=500)
        tables.append({f"s{j}": said(y, 0.0 if j == 0 and w >= broken else 0.7) for j in range(4)})
    return sources, tables


def test_the_drift_chart_has_the_numbers_of_each_window():
    sources, tables = windows()
    fuser = Fuser(sources, method="ml-product").fit(tables[0])
    before = fuser.prior_.copy()
    display = DriftDisplay.from_windows(fuser, iter(tables))
    np.testing.assert_array_equal(fuser.prior_, before)
    for w, table in enumerate(tables):
        fit = Fuser(sources, method="ml-product").fit(tables[0]).update_prior(table)
        for name in ("prior", "low", "high"):
            np.testing.assert_array_equal(getattr(display, name)[w], getattr(fit.prior_estimate_, name))
        tests = [(fit.drift_[name].p_value, fit.agreement_[name].p_value) for name in sources]
        np.testing.assert_allclose(display.p_value[w], np.minimum(2 * np.min(tests, axis=1), 1.0))
        for marked, alone in ((display.faulty, True), (display.suspected, False)):
            found = {name for fault in fit.faults_ if (len(fault.sources) == 1) is alone for name in fault.sources}
            assert found == set(np.array([*sources])[marked[w]])
    np.testing.assert_array_equal(display.faulty, np.outer(np.arange(5) >= 2, [1, 0, 0, 0]))
    above, below = drawn_panels(display)
    (image,) = below.images
    shown = np.clip(-np.log10(np.maximum(display.p_value.T, 1e-300)), 0, 6)
    np.testing.assert_allclose(np.clip(image.get_array(), 0, 6), shown)
    crosses = next(line for line in below.lines if line.get_label() == "named as faulty")
    np.testing.assert_array_equal(crosses.get_xydata(), [[2, 0], [3, 0], [4, 0]])
    lines = {line.get_label(): line for line in above.lines}
    assert [t.get_text() for t in below.get_yticklabels()] == ["s0", "s1", "s2", "s3"]
    np.testing.assert_allclose(above.containers[0].lines[0].get_ydata(), 100 * display.prior[:, 0])
    assert "training" in lines and below.get_xticklabels()[-1].get_text() == "5"


def test_windows_have_names_and_sources_without_a_test_are_gray():
    sources, tables = windows(3)
    fuser = Fuser({"s0": sources["s0"]}, method="product").fit({"s0": tables[0]["s0"]})
    display = DriftDisplay.from_windows(fuser, [{"s0": t["s0"]} for t in tables], ["mon", "tue", "wed"])
    assert np.isnan(display.p_value).all() and not display.faulty.any() and display.windows == ("mon", "tue", "wed")
    _, below = drawn_panels(display)
    assert below.images[0].get_array().mask.all() and not below.lines


def test_long_names_are_cut_in_their_middle():
    from mixent.fusion.displays import middle_cut

    assert middle_cut("vendor", 10) == "vendor"
    cut = [middle_cut(f"vendor with a long name {j}", 11) for j in (1, 2)]
    assert cut == ["vendo…ame 1", "vendo…ame 2"]
