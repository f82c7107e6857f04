"""Wording of fusion, calibration."""

import re

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from mixent import DataWarning
from mixent.fusion.calibration import Calibration
from mixent.fusion.serialize import load_calibrations

from ...fusion.test_calibration import COUNTS


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": "no"}, "classes must be a list of labels; got 'no'"),
        ({"classes": [0, 0]}, r"classes must be distinct; got \[0, 0\]"),
        ({"classes": [0], "counts": [[1, 2]]}, r"classes must contain at least two labels; got \[0\]"),
        ({"counts": [[1, 2]]}, r"counts must be finite numbers of shape \(2, 2\); got shape \(1, 2\)"),
        ({"counts": [["a", 2], [1, 2]]}, r"counts must be numbers of shape \(2, 2\); could not convert"),
        ({"counts": [[1, -2], [1, 2]]}, "counts must be >= 0; got -2 for class 0 and answer 1"),
        ({"priors": [1, -1]}, r"priors must be >= 0 and not all zero; got \[1.0, -1.0\]"),
        ({"edges": [1.0, 2.0]}, r"edges must be finite numbers of shape \(1,\); got shape \(2,\)"),
        ({"symbols": ["a", "b"], "edges": [np.nan]}, r"edges must be finite numbers of shape \(1,\)"),
        ({"copy_of": 3}, "copy_of must be a non-empty string or None; got 3"),
        ({"calibration_set": ""}, "calibration_set must be a non-empty string or None; got ''"),
        ({"smoothing": -1}, "smoothing must be a finite number >= 0; got -1"),
        ({"ordinal": "yes"}, "ordinal must be True or False; got 'yes'"),
        ({"ordinal": True, "line": (1, 0)}, "ordinal=True cannot be combined with cells, line or scale; use only one"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Calibration(**{"classes": [0, 1], "symbols": [0, 1], "counts": COUNTS, **options})


def test_messages_of_the_constructors(tmp_path):
    with pytest.raises(ValueError, match=r"edges must be increasing; got \[2.0, 1.0\]"):
        Calibration((0, 1), ("a", "b", "c"), np.ones((2, 3)), edges=[2, 1])
    with pytest.raises(ValueError, match=r"rates must be >= 0 and sum to 1 in each class; got .* for class 'yes'"):
        Calibration.from_rates([[0.8, 0.2], [0.1, 0.8]], 10, ["no", "yes"])
    with pytest.raises(ValueError, match="n_rows must be a number >= 0, or one for each class; got -1"):
        Calibration.from_rates([[1, 0], [0, 1]], -1, [0, 1])
    with pytest.raises(ValueError, match="of the source must be among the symbols 'no', 'yes'; got 'maybe'"):
        Calibration.from_predictions(["no", "yes"], ["no", "maybe"], symbols=["no", "yes"])
    with pytest.raises(ValueError, match="must have a column for each of the 2 symbols .*; got 3 columns"):
        Calibration.from_predictions([0, 1], np.full((2, 3), 1 / 3))
    with pytest.raises(ValueError, match="y_true must be labels; got probabilities"):
        Calibration.from_predictions([[0.5, 0.5], [0.1, 0.9]], [0, 1])
    with pytest.raises(ValueError, match="y must be labels; got probabilities"):
        Calibration.from_cv(GaussianNB(), np.eye(2), [[0.5, 0.5], [0.1, 0.9]])
    with pytest.raises(ValueError, match="scores must contain at least one finite number"):
        Calibration.from_scores([0, 1], [np.nan, np.nan])
    for text, message in [
        ("{", "is not a JSON file"),
        ("[]", "must contain an object of source -> calibration; got a list"),
        ('{"a": 3}', "source 'a': a calibration must be a JSON object; got int"),
        ('{"a": {"classes": [0, 1]}}', "source 'a': a calibration must have the field 'counts'"),
        (
            '{"a": {"rate": 1}}',
            "source 'a': unknown field 'rate' of a calibration; choose one of 'calibration_set', 'cells', 'classes'",
        ),
    ]:
        (tmp_path / "c.json").write_text(text)
        with pytest.raises(ValueError, match=message):
            load_calibrations(tmp_path / "c.json")


def test_cells_must_have_one_entry_for_each_of_rows():
    truth, said = ["no", "no", "yes", "yes", "yes"], ["no", "yes", "yes", "yes", "no"]
    where = ["l", "r", "r", None, "l"]
    with pytest.raises(ValueError, match="cells must have one entry for each of the 5 rows; got 4"):
        Calibration.from_predictions(truth, said, cells=where[:4])


def test_accuracy_must_be_between_and_and_n_rows():
    for options in ((0.3,), (1.0,), (0.9, 0)):
        with pytest.raises(ValueError, match=r"accuracy must be between 1/3 and 1, and n_rows > 0; got"):
            Calibration.guess(["a", "b", "c"], *options)


def test_ratio_true_needs_labels_of_two_classes():
    with pytest.raises(ValueError, match="ratio=True requires two classes; y_true has 0, 1, 2"):
        Calibration.from_scores([0, 1, 2], [1.0, 2, 3], ratio=True)
    with pytest.raises(ValueError, match="ratio=True requires finite scores of both classes"):
        Calibration.from_scores([0, 1], [1.0, np.nan], ratio=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"counts": np.zeros((2, 2))}, r"counts must not be all zero; for a source without labelled answers use `Cal"),
        ({"cells": ["l", "r"]}, r"counts must be finite numbers of shape \(2, 2, 2\); got shape \(2, 2\)"),
        ({"cells": "lr"}, "cells must be a list of labels; got 'lr'"),
        ({"cells": ["l", "l"]}, r"cells must be distinct; got \['l', 'l'\]"),
        ({"symbols": 3}, "symbols must be a list of labels; got 3"),
        ({"context": True}, "context must be True or False, and can be True only with cells; got True"),
        ({"context": 1}, "context must be True or False, and can be True only with cells; got 1"),
        ({"line": (1.0,)}, r"line must be finite numbers of shape \(2,\); got shape \(1,\)"),
        ({"line": (1, 2), "symbols": ["a", "b"]}, "line requires two classes"),
        ({"line": (1, 2), "edges": [0.5]}, "line requires two classes"),
        ({"smoothing": np.nan}, "smoothing must be a finite number >= 0; got nan"),
        ({"smoothing": True}, "smoothing must be a finite number >= 0; got True"),
        ({"priors": [0, 0]}, "priors must be >= 0 and not all zero"),
        (
            {"counts": [[[1, 2], [3, 4]], [[1, 2], [-3, 4]]], "cells": ["l", "r"]},
            "counts must be >= 0; got -3 for class 1 and answer 1",
        ),
    ],
)
def test_new_fields_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Calibration(**{"classes": [0, 1], "symbols": [0, 1], "counts": COUNTS, **options})


def test_messages_of_ordinal_answers():
    with pytest.raises(
        ValueError, match="ordinal=True requires symbols, all possible answers in increasing order; for"
    ):
        Calibration.from_predictions([0, 1], ["low", "high"], ordinal=True)
    message = (
        "the answers 1, 2, 3, 4, 5 are whole numbers, of which two or more are no class; they are counted as labels "
        "without an order. If they are scores, use `Calibration.from_scores` with ordinal=True; if not, pass all "
        "possible answers as symbols"
    )
    with pytest.warns(DataWarning, match=message):
        Calibration.from_predictions([0, 1] * 5, [1, 2, 3, 4, 5] * 2)


def judged(n=200, right=0.7, low=0.9):
    """Labels, and probabilities of at least `low` for an answer that is right so often."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    p = np.where((rng.random(n) < right) == (y == 1), low, 1 - low)
    return y, np.column_stack([1 - p, p])


def test_a_calibration_states_whether_its_probabilities_are_calibrated():
    y, p = judged()
    assert (
        "The source states 90\u00a0% on average and is right on 62\u00a0% of the calibration rows (p < 0.001)."
        in one_line(Calibration.from_predictions(y, p))
    )
    assert "Its probabilities are rescaled." in one_line(Calibration.from_predictions(y, p))
    assert "Its probabilities are used as stated." in one_line(Calibration.from_predictions(y, p, scaled=False))
    calibrated = Calibration.from_predictions(*judged(low=0.68), priors=[0.5, 0.5])
    assert "do not differ significantly from calibrated ones on these rows (p = " in one_line(calibrated)
    other = Calibration.from_predictions(y, np.tile([0.9, 0.1], (200, 1)) + 1e-3 * (p - 0.5))
    assert re.match(
        r"states (90|10)\u00a0% for class [01] on average, which \d\d\u00a0% of the cal", str(other.reliability)
    )
    with pytest.raises(ValueError, match=r"reliability must be \(subject, stated, observed, p_value\), with a class"):
        Calibration.from_counts([[5, 1], [1, 5]], [0, 1], reliability=("x", 0.5, 0.5, 0.1))


def one_line(calibration):
    return " ".join(str(calibration).replace("\n", " ").split(" "))
