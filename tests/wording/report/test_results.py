"""Wording of report, results."""

import numpy as np

from mixent.report import results
from mixent.report.results import Predictions


def test_most_frequent_errors():
    classes, proba = np.array([1, 2]), np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]])
    counts = results.confusion_counts(Predictions("m", np.array([1, 1, 2]), proba, classes))
    assert results.frequent_errors(counts, classes).text == "Most frequent errors: class 1 predicted as class 2 (1)."


def test_a_figure_of_some_methods_says_of_how_many():
    y, proba, classes = np.array([1, 1, 2]), np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]]), np.array([1, 2])
    every = [Predictions(name, y, proba, classes) for name in "abcde"]
    for figures in (results.calibration, results.roc):
        assert "(the best 4 of 5 methods)" in figures(every)[0].caption
        assert "methods)" not in figures(every[:4])[0].caption
    assert "(all folds pooled; the table of scores has the mean over" in results.calibration(every)[0].caption
