"""Wording of comparison, result."""

from dataclasses import replace

import pytest

from mixent import MaxEntClassifier, MEDClassifier
from mixent.comparison.candidates import Candidate
from mixent.comparison.estimate import chosen_estimate
from mixent.comparison.recommendation import recommend

from ...comparison.test_result import make_comparison, make_cv, points


def test_a_test_needs_a_method_that_worked():
    with pytest.raises(ValueError, match="'m9' does not have a score in every fold; choose one of 'm1', 'm0'"):
        make_comparison([0.2, 1.5]).test("m9", "m0")


def test_the_recommendation_has_the_difference_and_its_significance():
    text = points([0.1, 1.5, 0.2], from_mixent=(1,))
    assert text.startswith("Lowest log-loss of 3 methods: ")
    assert "Best method outside mixent: m2, log-loss higher by " in text
    assert "; significant at the 5 % level (corrected t test, p " in text and "Holm's adjustment for 2 tests)." in text
    assert "Significantly better than every other method." in text
    assert "Expected log-loss on new rows: " in text and "corrected for selecting the best of 3)." in text
    text = points([1.5, 1.5, 1.45], from_mixent=(0,))
    assert "not significant at the 5 % level" in text and "No significant difference from: " in text


def test_a_quick_method_and_one_that_explains_are_named():
    first = make_cv([1.5, 1.5]).ranking()[0]
    names = ["RBF MED", "maximum entropy"][:: 1 if first == "m0" else -1]
    cv = make_cv([1.5, 1.5], names=names)
    times = {"RBF MED": 20.0, "maximum entropy": 0.5}
    cv = replace(cv, records=[r | {"fit_seconds": times[r["method"]]} for r in cv.records])
    models = {"RBF MED": MEDClassifier("rbf"), "maximum entropy": MaxEntClassifier()}
    tried = {m: Candidate(m, models[m], "mixent", "") for m in names}
    advice = recommend(cv, tried, "log_loss", chosen_estimate(cv, names, "log_loss"))
    assert advice.method == "RBF MED"
    assert "Faster: maximum entropy fits in 0.5 s, RBF MED in 20 s." in advice.points
    assert "maximum entropy explains every prediction exactly, column by column." in advice.points


def test_no_method_is_better_than_predicting_the_class_frequencies():
    assert "No method is better than predicting the class frequencies (" in points([-1.0, -2.0])


def test_badly_calibrated():
    assert "Its probabilities are off by " in points([30.0, 40.0], n=600, metric="error")


def test_equal_methods_are_named():
    cv = make_cv([2.0, 1.0])
    records = [*cv.records[:6], *(r | {"method": "m1"} for r in cv.records[:6])]
    cv = replace(cv, records=records, proba=dict.fromkeys(("m0", "m1"), cv.proba["m0"]))
    tried = {m: Candidate(m, None, "mixent", "") for m in ("m0", "m1")}
    advice = recommend(cv, tried, "log_loss", chosen_estimate(cv, ["m0", "m1"], "log_loss"))
    assert advice.method == "m0" and advice.points[0].startswith("Lowest log-loss of 2 methods: ")
    assert advice.points[0].endswith(" nats, the same as m1.")


def test_a_strange_metric_is_refused():
    with pytest.raises(ValueError, match="metric must be one of 'error', 'balanced_error', 'log_loss'"):
        make_comparison([1.0, 2.0]).ranking("nonsense")
