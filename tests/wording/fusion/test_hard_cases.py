"""Wording of fusion, hard cases."""

import pytest

from mixent.fusion import Calibration, Fuser

from ...fusion.test_hard_cases import PAIR, RNG


def test_a_share_nobody_can_tell_has_an_interval_of_everything():
    """Two symbols cannot tell three classes apart."""
    coarse = Calibration.from_rates([[0.9, 0.1], [0.1, 0.9], [0.1, 0.9]], 500, ["well", "flu", "cold"], ["ok", "sick"])
    fuser = Fuser({"x": coarse}).fit({"x": ["ok", "sick"] * 100})
    low, high = (
        dict(zip(fuser.classes_, fuser.prior_estimate_.low)),
        dict(zip(fuser.classes_, fuser.prior_estimate_.high)),
    )
    assert low["flu"] == low["cold"] == 0 and high["flu"] == high["cold"] == 1
    assert not fuser.prior_shift_.significant and any(
        "'flu' is uncertain (0\u00a0% to 100\u00a0%)" in w for w in fuser.warnings_
    )
    silent = Fuser({"x": coarse}, method="product").fit({"x": [None] * 30})
    assert silent.prior_estimate_.low.max() == 0 and silent.prior_estimate_.high.min() == 1


def test_no_source_has_calibration_rows_of_class_c():
    one = Calibration.from_counts([[20, 5], [5, 20], [0, 0]], list("abc"), list("ab"))
    with pytest.raises(ValueError, match="no source has calibration rows of class 'c'"):
        Fuser({"x": one}).fit({"x": ["a", "b"]})


def test_messages_of_scales():
    with pytest.raises(ValueError, match="scale requires symbols equal to the classes"):
        Calibration.from_counts([[9, 1, 1], [1, 9, 1]], ["h", "i"], ["h", "i", "?"], scale=(1, 0, 0, 0))


def test_hold_different_numbers_such_as_which_are_not_labels():
    with pytest.raises(ValueError, match="must be labels; got 300 different numbers, such as"):
        Calibration.from_predictions(RNG.integers(0, 2, 300), RNG.random(300))
    with pytest.raises(ValueError, match=r"'A' must be among .* \(pass probabilities as a table"):
        Fuser(PAIR).fit({"A": [0.2, 0.8]})


def test_calibrations_that_do_not_fit_are_told():
    def told(sources, answers):
        return Fuser(sources, method="product").fit(answers).warnings_[0]

    soft = Calibration.from_predictions(["h", "i"] * 30, [[0.81, 0.19], [0.33, 0.67]] * 30)
    assert told({"x": soft}, {"x": ["h", "i"] * 30}).startswith("source 'x' gives labels, but was calibrated on prob")
    assert told({"A": PAIR["A"]}, {"A": [[0.9, 0.1]] * 60}).startswith(
        "source 'A' gives probabilities, but was calibrated on labels"
    )
    odd = Calibration.from_counts([[90, 10], [20, 80]], ["h", "sick"], ["h", "i"])
    assert told({**PAIR, "C": odd}, {"A": ["h"] * 60}) == (
        "the calibration of 'A' does not contain class sick of the other sources; check the spelling"
    )
