"""Wording of evaluate, paired."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from mixent.evaluate import (
    corrected_t_test,
    five_by_two_f,
    five_by_two_f_test,
    sign_test,
    signed_rank_test,
    ten_by_ten,
)

from ...evaluate.test_paired import C45, C45_M, Nearest, X, Y, nothing


def test_a_and_b_have_the_same_mean_score_not_significant():
    none = five_by_two_f(np.zeros((5, 2)))
    assert str(none) == "a and b have the same mean score. Not significant at the 5 % level (5x2cv F = 0.00, p = 1.00)."
    always = five_by_two_f(np.full((5, 2), -0.25))
    assert str(always) == ("a is better, by 0.25 on average. Significant at the 5 % level (5x2cv F = inf, p < 0.001).")


def test_gaussiannb_a_and_gaussiannb_b_have_the_same_mean_error():
    found = five_by_two_f_test(GaussianNB(), GaussianNB(), X, Y)
    assert str(found).startswith("GaussianNB a and GaussianNB b have the same mean error.")


def test_not_significant_at_the_level():
    a, b = Nearest(0, 2), Nearest(2)
    rows, y = nothing(40, 2, np.random.default_rng(0))
    found = ten_by_ten(a, b, rows, y, random_state=1, names=("left", "right"))
    assert "Not significant at the 5 % level (corrected t test, 100 differences" in str(found)


def test_b_has_the_lower_error_by_points_on_average_significant():
    found = corrected_t_test([0.5, 0.5, 0.5], 0.5, metric="error")
    assert str(found).startswith("b has the lower error, by 50.00 points on average. Significant")


def test_c_m_is_better_than_c_on_data_sets():
    found = signed_rank_test(-np.array(C45), -np.array(C45_M), names=("C4.5", "C4.5+m"))
    assert str(found) == (
        "C4.5+m is better than C4.5 on 14 data sets (10 wins, 2 losses, 2 ties). "
        f"Significant at the 5 % level (signed-rank test, p = {found.p_value:.3f})."
    )


def test_a_is_better_than_b_on_data_sets():
    signs = sign_test([1, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0])
    assert str(signs).startswith("a is better than b on 6 data sets (4 wins, 1 loss, 1 tie). Not significant")


class Fails(GaussianNB):
    def fit(self, X, y, sample_weight=None):
        raise ZeroDivisionError("no luck")


def test_what_cannot_be_tested_says_why():
    a, b = GaussianNB(), LinearDiscriminantAnalysis()
    with pytest.raises(ValueError, match="metric must be one of 'error', .*; got 'accuracy'"):
        five_by_two_f_test(a, b, X, Y, metric="accuracy")
    with pytest.raises(ValueError, match="metric must be one of 'error', .*; got 'accuracy'"):
        five_by_two_f(np.ones((5, 2)), metric="accuracy")
    with pytest.raises(ValueError, match="metric must be one of 'error', .*; got 'accuracy'"):
        corrected_t_test([1, 2], 1, metric="accuracy")
    with pytest.raises(TypeError, match="b must be a classifier, not fitted; got the class GaussianNB"):
        five_by_two_f_test(a, GaussianNB, X, Y)
    with pytest.raises(TypeError, match="a must be a classifier, not fitted; got a str"):
        ten_by_ten("nb", b, X, Y)
    with pytest.raises(ValueError, match="names must be two different names, of a and of b; got .'x', 'x'."):
        five_by_two_f_test(a, b, X, Y, names=("x", "x"))
    with pytest.raises(RuntimeError, match="Fails failed in 10 of 10 folds, so there is no test. First: ZeroDivision"):
        five_by_two_f_test(a, Fails(), X, Y)
    with pytest.raises(ValueError, match=r"differences must have shape \(5, 2\), a row for each.*got \(2, 5\)"):
        five_by_two_f(np.ones((2, 5)))
    with pytest.raises(ValueError, match=r"differences must be finite numbers; that at \(1, 0\) is nan"):
        five_by_two_f([[1, 2], [np.nan, 3], [1, 2], [1, 2], [1, 2]])
    with pytest.raises(ValueError, match=r"differences must be a list of at least two numbers; got shape \(1,\)"):
        corrected_t_test([1], 0.1)
    with pytest.raises(ValueError, match="test_ratio must be a number >= 0; got -1"):
        corrected_t_test([1, 2], -1)
    with pytest.raises(ValueError, match="confidence must be between 0 and 1, such as 0.95; got 95"):
        corrected_t_test([1, 2], 0, confidence=95)
    with pytest.raises(ValueError, match="confidence must be between 0 and 1, such as 0.95; got 95"):
        ten_by_ten(a, b, X, Y, confidence=95)
    with pytest.raises(ValueError, match=r"a and b must be lists of one score per data set.*\(2,\) and \(3,\)"):
        sign_test([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="scores must be finite numbers; that of b on set 1 is nan"):
        signed_rank_test([1, 2], [1, np.nan])


def test_a_and_b_are_equally_good():
    for test in (signed_rank_test, sign_test):
        found = test([0.1, 0.2, 0.3], [0.1, 0.2, 0.3])
        assert str(found).startswith("a and b are equally good on 3 data sets (0 wins each, 3 ties).")
