"""The paired t test on rows: identities with the plain test, weights, groups, and a quick form of the study."""

import numpy as np
import pytest
from scipy import stats
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from mixent.evaluate import cross_validate, row_t_test
from mixent.evaluate.paired_rows import loss_interval, wilson
from mixent.evaluate.row_losses import best_of, is_constant, out_of_fold_losses, paired_test, score_interval

RNG = np.random.default_rng(0)
GAP = RNG.normal(0.1, size=60)
VALUES = ("mean", "std_error", "p_value", "dof")


def values(test):
    return [*(getattr(test, name) for name in VALUES), *test.interval]


def test_it_is_the_plain_test_but_for_the_two_parts_of_the_correction():
    test, plain = row_t_test(GAP), stats.ttest_1samp(GAP, 0)
    variance = 1.1 * GAP.var(ddof=1) / 60 + (np.abs(GAP).max() / 60) ** 2
    assert test.mean == pytest.approx(GAP.mean(), rel=1e-12) and test.dof == pytest.approx(plain.df, rel=1e-12)
    assert test.std_error == pytest.approx(np.sqrt(variance), rel=1e-12)
    assert test.t == pytest.approx(GAP.mean() / test.std_error, rel=1e-12)
    assert test.p_value == pytest.approx(2 * stats.t.sf(abs(test.t), 59), rel=1e-9)
    np.testing.assert_allclose(test.interval, test.mean + np.array([-1, 1]) * stats.t.ppf(0.975, 59) * test.std_error)


def test_with_many_rows_it_is_the_plain_paired_t_test_of_a_variance_increased_by_a_tenth():
    many = np.tile(GAP, 4000)
    test, plain = row_t_test(many), stats.ttest_1samp(many, 0).confidence_interval(0.95)
    widened = test.mean + np.sqrt(1.1) * (np.array(plain) - test.mean)
    np.testing.assert_allclose(test.interval, widened, rtol=1e-4)


def test_the_order_of_rows_changes_nothing_and_swapping_the_methods_the_sign():
    test = row_t_test(GAP)
    np.testing.assert_allclose(values(row_t_test(GAP[RNG.permutation(60)])), values(test), rtol=1e-9)
    other = row_t_test(-GAP)
    assert other.mean == -test.mean and other.p_value == test.p_value and other.interval[0] == -test.interval[1]
    np.testing.assert_allclose(values(row_t_test(1e3 * GAP))[1], 1e3 * test.std_error, rtol=1e-12)


@pytest.mark.parametrize("bound", [0.0, 1.0, 5.0])
def test_a_weighted_row_is_the_row_repeated_in_one_group(bound):
    times = RNG.integers(1, 4, size=60)
    weighted = row_t_test(GAP, sample_weight=times, bound=bound)
    repeated = row_t_test(np.repeat(GAP, times), groups=np.repeat(np.arange(60), times), bound=bound)
    np.testing.assert_allclose(values(weighted), values(repeated), rtol=1e-9)
    scaled = row_t_test(GAP, sample_weight=7.5 * times, bound=bound)
    np.testing.assert_allclose(values(scaled), values(weighted), rtol=1e-9)


def test_rows_of_weight_0_do_not_count():
    weight = np.r_[np.ones(60), np.zeros(20)]
    test = row_t_test(np.r_[GAP, RNG.normal(9, 9, size=20)], sample_weight=weight, bound=1.0)
    np.testing.assert_allclose(values(test), values(row_t_test(GAP, bound=1.0)), rtol=1e-9)


def test_groups_of_equal_rows_count_once():
    """Ten copies of every row add nothing."""
    copies = row_t_test(np.repeat(GAP, 10), groups=np.repeat(np.arange(60), 10))
    np.testing.assert_allclose(values(copies), values(row_t_test(GAP)), rtol=1e-9)
    assert row_t_test(np.repeat(GAP, 10)).std_error < 0.4 * copies.std_error


def test_errors_have_the_adjusted_interval_of_agresti_and_min():
    """Beside the tenth: half a discordant row more in each direction."""
    errors = np.r_[np.ones(9), -np.ones(4), np.zeros(87)]
    test = row_t_test(errors, bound=1.0)
    assert test.std_error**2 == pytest.approx(1.1 * (13 - 100 * 0.05**2) / (99 * 100) + 1 / 100**2, rel=1e-9)
    same, half = row_t_test(np.zeros(100), bound=1.0), stats.t.ppf(0.975, 99) / 100
    assert same.p_value == 1 and same.interval == pytest.approx((-half, half))


def test_identical_losses_have_no_difference():
    test = row_t_test(np.zeros(20))
    assert (test.mean, test.std_error, test.p_value, test.interval) == (0, 0, 1, (0, 0))


@pytest.mark.parametrize(("wrong", "n"), [(0, 50), (3, 50), (50, 50), (17, 200)])
def test_the_interval_of_an_error_rate_is_wilsons(wrong, n):
    losses = (np.arange(n) < wrong).astype(float)
    t, share = stats.t.ppf(0.975, n - 1), wrong / n
    low, high = loss_interval(losses, upper=1.0)
    rows = n if wrong in (0, n) else n - 1  # the variance of the sample has n - 1
    for end in (low, high):  # Wilson: the shares whose own standard error puts the observed one at t
        assert end in (0, 1) or (share - end) ** 2 == pytest.approx(t**2 * end * (1 - end) / rows, rel=1e-9)
    assert 0 <= low <= share <= high <= 1 and (low, high) == pytest.approx(wilson(share, rows, t))


@pytest.mark.parametrize("upper", [2.0, np.inf])
def test_intervals_stay_within_the_range_of_the_loss(upper):
    losses = np.r_[np.full(11, 1e-3), 1.9]
    low, high = loss_interval(losses, upper=upper)
    assert 0 < low < losses.mean() < high <= upper
    many = loss_interval(np.tile(losses, 3000), upper=upper)
    plain = stats.ttest_1samp(np.tile(losses, 3000), 0).confidence_interval(0.95)
    np.testing.assert_allclose(many, plain, rtol=2e-3)


def table(n=150, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 3)) + 0.5 * y[:, None], y


METHODS = {"nb": GaussianNB(), "lda": LinearDiscriminantAnalysis()}


@pytest.mark.parametrize("metric", ["error", "log_loss", "brier"])
def test_the_difference_of_a_cross_validation_is_that_of_its_rows(metric):
    cv = cross_validate(METHODS, *table())
    (first, second), _ = out_of_fold_losses(cv, ["nb", "lda"], metric)
    expected = row_t_test(first - second, bound=1.0 if metric == "error" else 0.0)
    result = cv.difference("nb", "lda", metric)
    assert result == pytest.approx(
        {"mean": expected.mean, "se": expected.std_error, "p_value": expected.p_value}, rel=1e-6, abs=1e-12
    )


def test_a_method_with_fewer_folds_is_tested_on_the_rows_in_common():
    from dataclasses import replace

    cv = cross_validate(METHODS, *table())
    kept = [r for r in cv.records if r["method"] == "lda" or r["fold"] < 2]
    part = cv.proba["nb"].copy()
    part[cv.folds[0] >= 2] = np.nan
    partial = replace(cv, records=kept, proba=cv.proba | {"nb": part})
    test = paired_test(partial, "nb", "lda", "log_loss")
    gaps = cv.values("nb", "log_loss") - cv.values("lda", "log_loss")
    assert test.n_rows == 60 and test.mean == pytest.approx(gaps[:2].mean(), rel=1e-9)
    assert partial.ranking() == ["lda"]
    nothing = replace(cv, records=[r for r in kept if r["method"] == "lda" or r["fold"] > 4])
    assert paired_test(nothing, "nb", "lda", "log_loss") is None


def test_a_score_that_is_no_mean_over_rows_is_tested_on_the_folds():
    cv = cross_validate(METHODS, *table())
    test = paired_test(cv, "nb", "lda", "calibration")
    assert test.dof == 4 and test.test_ratio == pytest.approx(1 / 4)
    assert score_interval(cv, "nb", "calibration") is None


def test_constant_predictions_are_recognized():
    cv = cross_validate({**METHODS, "prior": GaussianNB(var_smoothing=1e20)}, *table())
    assert is_constant(cv, "prior") and not is_constant(cv, "nb")
    assert best_of(cv, "calibration", ["prior", "nb"]) == ["nb"] and best_of(cv, "error", []) == []
    lowest = min(cv.methods, key=lambda m: cv.values(m, "log_loss").mean())
    assert best_of(cv, "log_loss", cv.methods) == [lowest]
