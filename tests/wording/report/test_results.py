"""Wording of report, results."""

import numpy as np

from mixent.report import results
from mixent.report.results import Predictions


def test_most_frequent_errors():
    classes, proba = np.array([1, 2]), np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]])
    counts = results.confusion_counts(Predictions("m", np.array([1, 1, 2]), proba, classes))
    assert results.frequent_errors(counts, classes).text == "Most frequent errors: class 1 predicted as class 2 (1)."
