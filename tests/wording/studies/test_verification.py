"""Wording of studies, verification."""

import numpy as np
import pytest

from mixent.displays import VerificationDisplay
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

from ...studies.test_verification import AS_CLIENT, LLR, TRUTH


def test_verification_of_client_at_prior():
    costs = {"cost_miss": 10.0, "cost_false_alarm": 2.0}
    report = verification_report(TRUTH, LLR, prior=0.02, **costs, **AS_CLIENT)
    text = str(report).splitlines()
    assert text[0] == ("Verification of 'client' at prior 0.02; a miss costs 10, a false alarm 2; threshold 2.282")


@pytest.mark.parametrize("which", [eer, cllr, min_cllr])
def test_what_cannot_be_measured_says_why(which):
    with pytest.raises(ValueError, match=r"target must be one of the labels in y_true, .*; got 1"):
        which(TRUTH, LLR, target=1)
    with pytest.raises(ValueError, match="all labels in y_true are 'c'; rows of impostors"):
        which(["c", "c"], [0.0, 1.0], target="c")
    with pytest.raises(ValueError, match="target must be one of the labels in y_true"):
        which(["i", "i"], [0.0, 1.0], target="c")  # no client
    with pytest.raises(ValueError, match="row 1 of y_true has no label; leave unlabelled rows out"):
        which(["c", None, "i"], [0.0, 1.0, 2.0], target="c")
    with pytest.raises(ValueError, match=r"scores must hold one number for each of 360 rows; got shape \(3,\)"):
        which(TRUTH, [1, 2, 3], **AS_CLIENT)
    with pytest.raises(ValueError, match="scores must be numbers; row 1 is missing"):
        which(["c", "i", "c"], [0.0, np.nan, 1.0], target="c")


def test_options_that_cannot_be_say_what_is_wanted():
    for prior in (0, 1, -0.1, np.nan, True, "half"):
        with pytest.raises(ValueError, match="prior must be a probability above 0 and below 1; got"):
            detection_cost(0.1, 0.1, prior)
    for call in (
        lambda: bayes_threshold(2),
        lambda: llr_of_posterior([0.5], 0),
        lambda: min_dcf(TRUTH, LLR, prior=1, **AS_CLIENT),
        lambda: verification_report(TRUTH, LLR, prior=0, **AS_CLIENT),
    ):
        with pytest.raises(ValueError, match="prior must be a probability"):
            call()
    with pytest.raises(ValueError, match="cost_miss must be a number > 0; got 0"):
        detection_cost(0.1, 0.1, 0.5, cost_miss=0)
    with pytest.raises(ValueError, match="cost_false_alarm must be a number > 0; got -1"):
        bayes_threshold(0.5, cost_false_alarm=-1)
    with pytest.raises(ValueError, match="far must be between 0 and 1; got 3"):
        detection_cost(3, 0.1, 0.5)
    with pytest.raises(ValueError, match="frr must be between 0 and 1; got nan"):
        detection_cost(0.1, float("nan"), 0.5)
    with pytest.raises(ValueError, match="posterior must be between 0 and 1; give"):
        llr_of_posterior([0.5, 1.2], 0.5)
    for threshold in (np.nan, "low", True):
        with pytest.raises(ValueError, match="threshold must be a number; got"):
            verification_rates(TRUTH, LLR, threshold=threshold, **AS_CLIENT)
        with pytest.raises(ValueError, match="threshold must be a number; got"):
            verification_report(TRUTH, LLR, prior=0.5, threshold=threshold, **AS_CLIENT)
    with pytest.raises(ValueError, match="scores holds decimal numbers rather than decisions; give a threshold"):
        verification_rates(TRUTH, LLR, **AS_CLIENT)
    with pytest.raises(ValueError, match="y_true has 360 rows, but scores has 2"):
        verification_rates(TRUTH, ["client", "impostor"], **AS_CLIENT)
    with pytest.raises(ValueError, match=r"scores must hold one number for each of 360 rows; got shape \(2,\)"):
        verification_rates(TRUTH, [0.5, 1.5], threshold=0, **AS_CLIENT)
    with pytest.raises(ValueError, match="row 1 of y has the label 'unsure', which is not among the classes"):
        verification_rates(["c", "i"], ["c", "unsure"], target="c")


def test_det_says_what_is_wrong():
    with pytest.raises(ValueError, match="scores is empty; give the scores of at least one system"):
        VerificationDisplay.from_predictions(TRUTH, {}, **AS_CLIENT)
    with pytest.raises(ValueError, match="cost_miss and cost_false_alarm are only used with prior"):
        VerificationDisplay.from_predictions(TRUTH, LLR, cost_miss=3, **AS_CLIENT)
    with pytest.raises(ValueError, match=r"scores of 'a' must hold one number for each of 360 rows; got shape \(2,\)"):
        VerificationDisplay.from_predictions(TRUTH, {"a": [1, 2]}, **AS_CLIENT)
    with pytest.raises(ValueError, match="scores of 'a' must be numbers; row 0 is missing"):
        VerificationDisplay.from_predictions(["c", "i"], {"a": [np.nan, 2]}, target="c")
    with pytest.raises(ValueError, match="prior must be a probability"):
        VerificationDisplay.from_predictions(TRUTH, LLR, prior=1.5, **AS_CLIENT)
