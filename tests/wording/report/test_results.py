"""Wording of report, results."""

from dataclasses import replace

import numpy as np

from mixent.report import results, scores
from mixent.report.results import Predictions

from ...comparison.test_result import make_cv


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


def test_the_area_of_pooled_folds_is_not_that_of_the_table():
    y, proba, classes = np.array([1, 1, 2]), np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]]), np.array([1, 2])
    sentence = "It is of all folds pooled; the table of scores has the mean over the folds."
    assert results.roc([Predictions("a", y, proba, classes)])[0].caption.endswith(sentence)
    assert "pooled" not in results.roc([Predictions("a", y, proba, classes, rows="rows")])[0].caption


def test_methods_that_are_never_marked_are_named():
    cv = make_cv([1.0, 2.0])
    assert scores.methods_table(cv).caption.endswith("the best of each column is marked")
    constant = replace(cv, proba=cv.proba | {"m0": np.full((240, 2), 0.5)})
    expected = "Methods with constant probabilities (m0) are not marked: they are calibrated by construction"
    assert scores.methods_table(constant).caption.endswith(f"is marked. {expected}")
