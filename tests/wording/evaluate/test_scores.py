"""Wording of evaluate, scores."""

import numpy as np
import pytest

from mixent.data.labels import classes_of
from mixent.evaluate import balanced_error, calibration_error, error_rate, score_table

from ...evaluate.test_scores import CLASSES


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": ["a", None, "c"]}, "row 1 of y has no label"),
        ({"y": ["a", "z", "c"]}, "row 1 of y has the label 'z'"),
        ({"y": ["a", "b"]}, "y has 2 rows, proba has 3"),
        ({"y": [["a", "b"], ["a", "b"]]}, "one label per row"),
        ({"y": [], "proba": np.zeros((0, 3))}, "no rows to score"),
        ({"proba": np.ones(3)}, "its shape is"),
        ({"proba": np.eye(3)[:, :2]}, "pass classes= in the order of the columns"),
        ({"proba": np.eye(3) * [1, 2, 1]}, "row 1 is"),
        ({"proba": np.eye(3) * np.nan}, "row 0 is"),
        ({"sample_weight": [1, 2]}, "one value per row"),
        ({"sample_weight": [1, -2, 0]}, "row 1 has -2"),
        ({"sample_weight": [0, 0, 0]}, "at least one non-zero number"),
        ({"classes": ["a", "b", "b"]}, "differ from each other"),
    ],
)
def test_bad_input_says_what_to_do(change, message):
    given = {"y": CLASSES, "proba": np.eye(3), "classes": CLASSES, "sample_weight": None} | change
    with pytest.raises(ValueError, match=message):
        score_table(**given)


def test_more_messages():
    with pytest.raises(ValueError, match="y has 2 rows, predicted has 1"):
        error_rate([1, 2], [1])
    with pytest.raises(ValueError, match="y has 2 rows, predicted has 1"):
        balanced_error([1, 2], [1])
    with pytest.raises(ValueError, match="n_bins must be at least 1"):
        calibration_error([0, 1], np.eye(2), n_bins=0)
    with pytest.raises(ValueError, match="mixes labels of different types"):
        classes_of(["a", 1, None])
    with pytest.raises(ValueError, match="no label: every row"):
        classes_of([None, None])
