"""Wording of comparison, result."""

import re
from dataclasses import replace

import numpy as np
import pytest

from mixent import MaxEntClassifier, MEDClassifier
from mixent.comparison.candidates import Candidate
from mixent.comparison.estimate import chosen_estimate
from mixent.comparison.recommendation import headline, recommend

from ...comparison.test_result import make_comparison, make_cv, points


def test_a_test_needs_a_method_of_the_comparison():
    with pytest.raises(ValueError, match="unknown method 'm9'; choose one of 'm0', 'm1'"):
        make_comparison([0.2, 1.5]).test("m9", "m0")


def test_a_test_needs_folds_in_common():
    comparison = make_comparison([0.2, 1.5])
    failed = [r | ({"log_loss": float("nan")} if r["method"] == "m0" else {}) for r in comparison.cv.records]
    with pytest.raises(ValueError, match="'m0' and 'm1' have no folds in common in which both finished; choose other"):
        replace(comparison, cv=replace(comparison.cv, records=failed)).test("m0", "m1")


def test_a_test_states_its_result():
    text = str(make_comparison([0.2, 1.5]).test("m0", "m1"))
    assert text.startswith("m1 has the lower log-loss: ") and "(paired t test on 240 rows, p < 0.001)." in text
    assert "95 % interval of m0 - m1: " in text and text.endswith(" nats.")


def test_the_headline_says_how_many_rows_it_is_based_on():
    text = make_comparison([0.1, 1.5]).recommendation.headline
    expected = r"Recommended: m1. Right on \d+ of 100 rows \(95 % interval \d+ to \d+, from 240 labelled rows\); "
    assert re.match(expected + r"always answering '[ab]' gets \d+.$", text)
    few = make_comparison([0.1, 1.5], n=60).recommendation.headline
    assert re.search(r"Right on \d+ of 60 rows \(95 % interval \d+ to \d+ of 100\); always answering", few)
    many = make_comparison([0.1, 1.5], n=1200).recommendation.headline
    assert re.search(r"Right on \d+ of 100 rows; always answering '[ab]' gets \d+.$", many)
    cv = replace(make_cv([0.1, 1.5]), groups=np.arange(240) // 2)
    assert "from 240 labelled rows in 120 groups" in headline(cv, "m1")


def test_the_recommendation_has_the_difference_and_its_significance():
    text = points([0.1, 1.5, 0.2], from_mixent=(1,))
    assert text.startswith("Lowest mean log-loss of 3 methods: ")
    assert " (on 240 labelled rows, each predicted by a model that was not fitted to it)." in text
    assert "Best method outside mixent: m2, log-loss higher by " in text
    assert (
        "; significant at the 5 % level (paired t test on rows, p " in text
        and "Holm's adjustment for 2 tests)." in text
    )
    assert "Significantly better than every other method." in text
    assert "Expected log-loss on new rows: " in text and "corrected for selecting the best of 3)." in text
    text = points([1.5, 1.5, 1.45], from_mixent=(0,))
    assert "not significant at the 5 % level" in text and "No significant difference from any other method." in text
    assert "No significant difference from m" in points([1.5, 1.5])
    assert "Significantly better than all other methods but: m" in points([1.5, 1.5, 0.1])
    assert "Significantly better only than: m3." in points([1.5, 1.5, 1.5, 0.1])


def test_a_quick_method_and_one_that_explains_are_named():
    first = make_cv([2.2, 1.9], common=True).ranking()[0]
    names = ["RBF MED", "maximum entropy"][:: 1 if first == "m0" else -1]
    cv = make_cv([2.2, 1.9], names=names, common=True)
    times = {"RBF MED": 20.0, "maximum entropy": 0.5}
    cv = replace(cv, records=[r | {"fit_seconds": times[r["method"]]} for r in cv.records])
    models = {"RBF MED": MEDClassifier("rbf"), "maximum entropy": MaxEntClassifier()}
    tried = {m: Candidate(m, models[m], "mixent", "") for m in names}
    advice = recommend(cv, tried, "log_loss", chosen_estimate(cv, names, "log_loss"))
    assert advice.method == "RBF MED"
    assert "Faster and close: maximum entropy fits in 0.5 s, RBF MED in 20 s." in advice.points
    assert "Close, and explains every prediction exactly, column by column: maximum entropy." in advice.points


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
    assert advice.method == "m0" and advice.points[0].startswith("Lowest mean log-loss of 2 methods: ")
    assert " nats, the same as m1 (on 240" in advice.points[0]


def test_a_strange_metric_is_refused():
    with pytest.raises(ValueError, match="metric must be one of 'error', 'balanced_error', 'log_loss'"):
        make_comparison([1.0, 2.0]).ranking("nonsense")
