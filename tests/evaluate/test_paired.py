"""Tests of two methods: values by hand, other programs' values, and how often they cry out when nothing is there."""

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from mixent.evaluate import (
    corrected_t_test,
    cross_validate,
    five_by_two_f,
    five_by_two_f_test,
    sign_test,
    signed_rank_test,
    stratified_folds,
    ten_by_ten,
)

X, CODES = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[CODES]
# Demsar (2006), Table 6: AUC of C4.5 and of C4.5 with its m tuned, on 14 data sets
C45 = [0.763, 0.599, 0.954, 0.628, 0.882, 0.936, 0.661, 0.583, 0.775, 1.000, 0.940, 0.619, 0.972, 0.957]
C45_M = [0.768, 0.591, 0.971, 0.661, 0.888, 0.931, 0.668, 0.583, 0.838, 1.000, 0.962, 0.666, 0.981, 0.978]


def nothing(n_rows, n_columns, rng, shift=0.35):
    """Rows whose first and second half of the columns say equally much: methods of one half each are equally good."""
    y = np.arange(n_rows) % 2
    return rng.normal(size=(n_rows, 2 * n_columns)) + shift * (2 * y[:, None] - 1), y


class Nearest(ClassifierMixin, BaseEstimator):
    """The nearer class mean, in some of the columns."""

    def __init__(self, first=0, last=None):
        self.first, self.last = first, last

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.means_ = np.array([X[y == c, self.first : self.last].mean(axis=0) for c in self.classes_])
        return self

    def predict_proba(self, X):
        away = ((X[:, None, self.first : self.last] - self.means_) ** 2).sum(axis=2)
        share = np.exp(-(away - away.min(axis=1, keepdims=True)) / 2)
        return share / share.sum(axis=1, keepdims=True)


def errors_by_fold(X, y, fold):
    """(F,) errors of `Nearest` in every fold, all at once."""
    into = np.eye(fold.max() + 1)[fold]
    means = []
    for c in (0, 1):
        member = (y == c)[:, None]
        means.append(((X * member).sum(axis=0) - into.T @ (X * member)) / (member.sum() - into.T @ member))
    apart, middle = (means[1] - means[0])[fold], (means[1] + means[0])[fold] / 2
    wrong = (((X - middle) * apart).sum(axis=1) > 0) != y
    return into.T @ wrong / into.sum(axis=0)


def null_differences(n_experiments, n_rows, folds, repeats, seed=0):
    """(E, repeats, folds) differences of two equally good methods."""
    rng = np.random.default_rng(seed)
    found = np.empty((n_experiments, repeats, folds))
    for e in range(n_experiments):
        rows, y = nothing(n_rows, 4, rng)
        for r in range(repeats):
            fold = np.empty(n_rows, dtype=int)
            for c in (0, 1):
                fold[rng.permutation(np.flatnonzero(y == c))] = np.arange(n_rows // 2) % folds
            found[e, r] = errors_by_fold(rows[:, :4], y, fold) - errors_by_fold(rows[:, 4:], y, fold)
    return found


def false_alarms(differences):
    return np.mean([five_by_two_f(one).p_value < 0.05 for one in differences])


def test_f_by_hand():
    p = [[3, 1], [2, 2], [1, -1], [0, 2], [4, 2]]
    # squares: 9+1 + 4+4 + 1+1 + 0+4 + 16+4 = 44; s_i^2 = (p_i1 - p_i2)^2 / 2 = 2, 0, 2, 2, 2, in all 8
    found = five_by_two_f(p)
    assert found.f == pytest.approx(44 / 16, rel=1e-12)
    assert found.p_value == pytest.approx(stats.f.sf(44 / 16, 10, 5), rel=1e-12)
    assert found.mean == 1.6
    assert found.t == pytest.approx(3 / math.sqrt(8 / 5)) and found.t_p_value == pytest.approx(
        2 * stats.t.sf(3 / math.sqrt(1.6), 5)
    )
    np.testing.assert_array_equal(found.differences, p)


def test_the_critical_value_is_the_printed_one():
    """4.74 is the 95 % point of F(10, 5)."""
    p = np.array([[1.0, 0.0]] * 5)
    grow = np.sqrt((4.7351 - 0.5) / 2) - 0.5  # p = (1 + g, g): f = (1 + g)^2 + g^2 = 2 (g + 1/2)^2 + 1/2
    assert five_by_two_f(p + grow).f == pytest.approx(4.7351)
    assert five_by_two_f(p + grow).p_value == pytest.approx(0.05, abs=1e-5)
    assert stats.f.ppf(0.95, 10, 5) == pytest.approx(4.74, abs=0.005)


def test_f_knows_neither_the_order_of_methods_nor_the_unit():
    p = np.random.default_rng(0).normal(size=(5, 2))
    found = five_by_two_f(p)
    for same in (-p, p[::-1], p[:, ::-1], 100 * p, 1e-200 * p, 1e200 * p):
        assert five_by_two_f(same).f == pytest.approx(found.f, rel=1e-12)
        assert five_by_two_f(same).p_value == pytest.approx(found.p_value, rel=1e-12)
    assert five_by_two_f(-p).mean == -found.mean


def test_f_where_folds_agree():
    none = five_by_two_f(np.zeros((5, 2)))
    assert (none.f, none.p_value, none.t, none.t_p_value) == (0, 1, 0, 1)
    always = five_by_two_f(np.full((5, 2), -0.25))
    assert (always.f, always.p_value, always.t, always.t_p_value) == (np.inf, 0, -np.inf, 0)


def test_the_f_test_is_that_of_the_common_folds():
    a, b = GaussianNB(), LinearDiscriminantAnalysis()
    found = five_by_two_f_test(a, b, X, Y, random_state=3, metric="log_loss")
    fold_of = stratified_folds(Y, folds=2, repeats=5, random_state=3)
    for i in range(5):
        for j in range(2):
            test = fold_of[i] == j
            models = [est.fit(X[~test], Y[~test]) for est in (a, b)]
            first, second = (
                -np.log(model.predict_proba(X[test])[np.arange(75), CODES[test]]).mean() for model in models
            )
            assert found.differences[i, j] == pytest.approx(first - second, abs=1e-9)
    other = five_by_two_f_test(b, a, X, Y, random_state=3, metric="log_loss")
    assert other.f == found.f and other.p_value == found.p_value
    np.testing.assert_array_equal(other.differences, -found.differences)
    assert other.scores == found.scores[::-1] and found.scores[0] - found.scores[1] == pytest.approx(found.mean)


def test_one_method_against_itself():
    found = five_by_two_f_test(GaussianNB(), GaussianNB(), X, Y)
    assert (found.f, found.p_value) == (0, 1)


class Blurred(GaussianNB):
    """The same probabilities but for the last bit."""

    def predict_proba(self, X):
        return super().predict_proba(X) * (1 + 1e-15)


def test_rounding_is_no_difference():
    found = five_by_two_f_test(GaussianNB(), Blurred(), X, Y, metric="brier")
    assert found.f == 0 and not found.differences.any()


def test_a_pipeline_has_the_name_of_its_last_step():
    pipe = make_pipeline(StandardScaler(), LinearDiscriminantAnalysis())
    assert five_by_two_f_test(GaussianNB(), pipe, X, Y).names == ("GaussianNB", "LinearDiscriminantAnalysis")
    assert five_by_two_f_test(GaussianNB(), pipe, X, Y, names=("x", "y")).names == ("x", "y")


def test_weights_and_progress_are_handed_on():
    told, weight = [], 1.0 + np.arange(150) % 3
    a, b = GaussianNB(), DecisionTreeClassifier(max_depth=2, random_state=0)
    found = five_by_two_f_test(a, b, X, Y, sample_weight=weight, progress=lambda *said: told.append(said))
    cv = cross_validate({"a": a, "b": b}, X, Y, folds=2, repeats=5, sample_weight=weight)
    np.testing.assert_allclose(found.differences.ravel(), cv.values("a", "error") - cv.values("b", "error"), atol=1e-12)
    assert told[-1] == (20, 20, "DecisionTreeClassifier, fold 2 of 2, repeat 5")


def test_ten_by_ten_is_the_corrected_test_of_a_hundred_differences():
    a, b = Nearest(0, 2), Nearest(2)
    rows, y = nothing(40, 2, np.random.default_rng(0))
    found = ten_by_ten(a, b, rows, y, random_state=1, names=("left", "right"))
    cv = cross_validate({"a": a, "b": b}, rows, y, folds=10, repeats=10, random_state=1)
    gap = cv.values("a", "error") - cv.values("b", "error")
    np.testing.assert_allclose(found.differences, gap, atol=1e-12)
    assert found.test_ratio == pytest.approx(1 / 9) and found.dof == 99
    assert found.std_error == pytest.approx(np.sqrt((1 / 100 + 1 / 9) * gap.var(ddof=1)))
    assert cv.difference("a", "b", "error")["mean"] == pytest.approx(found.mean)
    assert found.interval[0] < 0 < found.interval[1]


def test_the_plain_t_test_is_that_of_scipy():
    gap = np.random.default_rng(1).normal(0.3, size=12)
    found, peer = corrected_t_test(gap, 0, confidence=0.9), stats.ttest_1samp(gap, 0)
    assert found.t == pytest.approx(peer.statistic) and found.p_value == pytest.approx(peer.pvalue)
    np.testing.assert_allclose(found.interval, peer.confidence_interval(0.9), rtol=1e-9)
    assert "paired t test, 12 differences" in str(found) and "90 % interval of a - b" in str(found)


def test_overlap_widens_the_interval_and_swapping_mirrors_it():
    gap = np.random.default_rng(2).normal(0.1, size=20)
    plain, corrected, other = corrected_t_test(gap, 0), corrected_t_test(gap, 1 / 4), corrected_t_test(-gap, 1 / 4)
    assert corrected.std_error / plain.std_error == pytest.approx(np.sqrt(1 + 20 / 4))
    assert corrected.p_value > plain.p_value and corrected.p_value == other.p_value
    np.testing.assert_allclose(corrected.interval, [-other.interval[1], -other.interval[0]])
    middle = corrected_t_test(gap, 0.25, confidence=1 - corrected.p_value)
    assert min(np.abs(middle.interval)) == pytest.approx(0, abs=1e-9)  # interval and p-value say the same


def test_differences_all_alike():
    assert corrected_t_test([0, 0, 0], 0.5).p_value == 1
    found = corrected_t_test([0.5, 0.5, 0.5], 0.5, metric="error")
    assert (found.p_value, found.t, found.interval) == (0, np.inf, (0.5, 0.5))


@pytest.mark.parametrize(
    ("interval", "said"),
    [((0.0049, 0.51), "0.005 to 0.510 nats"), ((-0.2, 0.31), "-0.20 to 0.31"), ((1e-9, 0.3), "0.0000 to 0.3000")],
)
def test_an_interval_that_leaves_out_zero_is_seen_to(interval, said):
    half = (interval[1] - interval[0]) / 2
    gap = np.array([-1, 1]) * half / corrected_t_test([-1, 1], 0).interval[1] + np.mean(interval)
    assert said in str(corrected_t_test(gap, 0, metric="log_loss"))


def test_signed_ranks_as_in_the_paper():
    """Demsar (2006), section 3.1.3: sums of ranks 93 and 12."""
    found = signed_rank_test(-np.array(C45), -np.array(C45_M), names=("C4.5", "C4.5+m"))
    assert found.statistic == 12 and found.balance == 12 - 93 and found.leader == "C4.5+m"
    assert found.p_value < 0.05 and (found.wins, found.ties, found.losses) == (2, 2, 10)
    other = signed_rank_test(-np.array(C45_M), -np.array(C45), names=("C4.5+m", "C4.5"))
    assert (other.p_value, other.leader, other.balance) == (found.p_value, "C4.5+m", 81)


def test_signed_ranks_and_signs_are_those_of_scipy():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 30))
    found = signed_rank_test(a, b + 0.3)
    assert found.p_value == pytest.approx(stats.wilcoxon(a, b + 0.3).pvalue, rel=1e-12)
    assert found.statistic == stats.wilcoxon(a, b + 0.3).statistic
    signs = sign_test([1, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0])
    assert (signs.wins, signs.ties, signs.losses, signs.statistic) == (4, 1, 1, 1)
    assert signs.p_value == pytest.approx(2 * 6 / 32)  # of five tosses four or five, either way


@pytest.mark.parametrize("n", [5, 8])
def test_the_exact_p_value_counts_all_choices_of_signs(n):
    """With ties and zeros too, where scipy counts as well but takes seconds."""
    gap = np.random.default_rng(n).integers(-2, 4, size=n).astype(float)
    gap[0] = 0
    ranks = stats.rankdata(np.abs(gap))
    signs = np.array(np.meshgrid(*[[-1, 1]] * n)).reshape(n, -1)
    totals = np.sign(np.abs(gap)) * ranks @ signs
    seen = (ranks * np.sign(gap)).sum()
    share = min(np.mean(totals <= seen + 1e-9), np.mean(totals >= seen - 1e-9))
    found = signed_rank_test(gap, np.zeros(n))
    assert found.p_value == pytest.approx(min(1, 2 * share), rel=1e-12)
    assert found.p_value == pytest.approx(stats.wilcoxon(gap, zero_method="zsplit").pvalue, rel=1e-9)


def test_many_sets_are_tested_by_the_normal_law():
    a, b = np.random.default_rng(0).normal(size=(2, 80))
    a[:3] = b[:3]
    peer = stats.wilcoxon(a, b, zero_method="zsplit", method="approx")
    found = signed_rank_test(a, b)
    assert (found.p_value, found.statistic) == (pytest.approx(peer.pvalue), pytest.approx(peer.statistic))
    assert signed_rank_test(a, a).p_value == 1
    with_fifty = signed_rank_test(a[:50], b[:50]).p_value
    assert with_fifty == pytest.approx(
        stats.wilcoxon(a[:50], b[:50], zero_method="zsplit", method="approx").pvalue, abs=0.01
    )


def test_equal_methods_are_level():
    for test in (signed_rank_test, sign_test):
        found = test([0.1, 0.2, 0.3], [0.1, 0.2, 0.1 + 0.2])  # which is 0.30000000000000004
        assert (found.p_value, found.ties, found.leader) == (1, 3, None)


def test_the_quick_simulation_is_the_test_itself():
    rng = np.random.default_rng(4)
    rows, y = nothing(60, 4, rng)
    fold_of = stratified_folds(y, folds=2, repeats=5, random_state=0)
    gaps = [errors_by_fold(rows[:, :4], y, f) - errors_by_fold(rows[:, 4:], y, f) for f in fold_of]
    found = five_by_two_f_test(Nearest(0, 4), Nearest(4), rows, y, random_state=0)
    np.testing.assert_allclose(found.differences, gaps, atol=1e-12)


def test_the_f_test_seldom_cries_out_for_nothing():
    assert 0.005 < false_alarms(null_differences(400, 100, 2, 5)) < 0.075


def test_false_alarms_for_independent_differences_are_known():
    """The sums share terms: f = 1/2 + F(5, 5) / 2, so that 4.74 is passed in 1.75 % of the cases and not in 5 %."""
    p = np.random.default_rng(0).normal(size=(20_000, 5, 2))
    within = ((p[:, :, 0] - p[:, :, 1]) ** 2 / 2).sum(axis=1)
    between = (p.sum(axis=2) ** 2 / 2).sum(axis=1)  # independent of it
    f = [five_by_two_f(one).f for one in p[:200]]
    np.testing.assert_allclose(f, 0.5 + between[:200] / within[:200] / 2, rtol=1e-9)
    exact = stats.f.sf(2 * stats.f.ppf(0.95, 10, 5) - 1, 5, 5)
    assert exact == pytest.approx(0.0175, abs=1e-4)
    rate = np.mean(0.5 + between / within / 2 > stats.f.ppf(0.95, 10, 5))
    assert abs(rate - exact) < 4 * np.sqrt(exact / 20_000)


@pytest.mark.slow
@pytest.mark.parametrize(("n_rows", "least", "most"), [(60, 0.05, 0.09), (200, 0.015, 0.06), (500, 0.015, 0.06)])
def test_false_alarms_of_the_f_test(n_rows, least, most):
    """At nominal 5 %: conservative, but for tables so small that errors in both folds agree by accident."""
    assert least < false_alarms(null_differences(4000, n_rows, 2, 5, seed=n_rows)) < most


def coverage(differences, test_ratio):
    return np.mean([corrected_t_test(one.ravel(), test_ratio).p_value >= 0.05 for one in differences])


def test_the_corrected_interval_covers_and_the_plain_one_does_not():
    gaps = null_differences(200, 100, 10, 10)
    assert coverage(gaps, 0) < 0.75 < 0.9 < coverage(gaps, 1 / 9)


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [100, 300])
def test_coverage_of_both_intervals(n_rows):
    gaps = null_differences(2000, n_rows, 10, 10, seed=5)
    assert coverage(gaps, 0) < 0.7 and 0.93 < coverage(gaps, 1 / 9) < 0.995


def test_results_show_themselves_in_a_line():
    for found in (five_by_two_f(np.ones((5, 2))), corrected_t_test([1, 2], 0), sign_test([1], [2])):
        assert len(repr(found)) < 200
