"""Wording of simulated."""

import numpy as np
import pytest

from mixent.datasets import simulate_vendors, simulate_verification, simulate_votes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_items": 0}, "n_items must be a whole number of at least 1; got 0"),
        ({"n_sources": 0}, "n_sources must be a whole number of at least 1; got 0"),
        ({"n_copies": -1}, "n_copies must be a whole number of at least 0; got -1"),
        ({"n_calibration": 1.5}, "n_calibration must be a whole number of at least 0; got 1.5"),
        ({"n_copies": True}, "n_copies must be a whole number of at least 0; got True"),
        ({"priors": (1.0,)}, "priors must be the priors of at least two classes, >= 0 and with sum 1; got"),
        ({"priors": (0.5, 0.6)}, "priors must be the priors of at least two classes, >= 0 and with sum 1; got"),
        ({"priors": (np.nan, 0.6)}, "priors must be the priors of at least two classes"),
        ({"calibration_priors": (0.5, 0.6)}, "calibration_priors must be the priors of at least two classes"),
        ({"calibration_priors": (0.2, 0.3, 0.5)}, "calibration_priors must have as many classes as priors, 2; got 3"),
        ({"accuracy": (0.5, 0.6)}, r"accuracy must be one number, or one for each of the 5 sources; got \(0.5, 0.6\)"),
        ({"accuracy": 1.2}, "accuracy must be from 0 to 1; got 1.2"),
        ({"correlation": -0.1}, "correlation must be a number from 0 to 1; got -0.1"),
        ({"abstain": "some"}, "abstain must be a number from 0 to 1; got 'some'"),
        ({"abstain": 1}, "abstain must be less than 1, so that the sources give some answers; got 1"),
    ],
)
def test_votes_say_what_is_wanted(change, message):
    with pytest.raises(ValueError, match=message):
        simulate_votes(**change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_items": 0}, "n_items must be a whole number of at least 1; got 0"),
        ({"n_vendors": 0}, "n_vendors must be a whole number of at least 1; got 0"),
        ({"n_training": 10}, "n_training must be a whole number of at least 32; got 10"),
        ({"n_calibration": -1}, "n_calibration must be a whole number of at least 0; got -1"),
        ({"prevalence": 0}, "prevalence must be a number between 0 and 1 .exclusive.; got 0"),
        ({"overlap": 2}, "overlap must be a number from 0 to 1; got 2"),
        ({"training_prevalence": (0.1, 0.2, 0.3)}, "must be one number, or one for each of the 2 sources; got"),
        ({"training_prevalence": 0.001}, "must have at least two training rows; got training_prevalence=0.001"),
        ({"separation": -1}, "separation must be finite and at least 0; got -1"),
        ({"separation": np.inf}, "separation must be finite and at least 0; got inf"),
    ],
)
def test_vendors_say_what_is_wanted(change, message):
    with pytest.raises(ValueError, match=message):
        simulate_vendors(**change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_clients": 0}, "n_clients must be a whole number of at least 1; got 0"),
        ({"n_impostors": 2.5}, "n_impostors must be a whole number of at least 1; got 2.5"),
        ({"n_systems": 0}, "n_systems must be a whole number of at least 1; got 0"),
        ({"development": 5}, "development must be .number of clients, number of impostors.; got 5"),
        ({"development": (5, 0)}, r"development\[1\] must be a whole number of at least 1; got 0"),
        ({"correlation": 1}, "correlation must be less than 1, so that the systems differ; got 1"),
        ({"correlation": -0.5}, "correlation must be a number from 0 to 1; got -0.5"),
        ({"separation": (1, 2, 3)}, r"must be one number, or one for each of the 2 sources; got \(1, 2, 3\)"),
    ],
)
def test_verification_says_what_is_wanted(change, message):
    with pytest.raises(ValueError, match=message):
        simulate_verification(**change)
