"""Wording of evaluate, multi dataset."""

import numpy as np
import pytest

from mixent.evaluate import compare_over_sets, holm

from ...evaluate.test_multi_dataset import named, random_scores


def test_the_methods_do_not_differ_significantly():
    alike = compare_over_sets(np.ones((6, 3)))
    said = str(alike)
    assert "The methods do not differ significantly" in said
    assert "with 6 data sets no pair can differ significantly; at least 7 are needed" in said
    sure = compare_over_sets(np.tile([3, 1, 2], (40, 1)) + 0.01 * np.arange(40)[:, None])
    assert str(sure).endswith(
        "method 2 is better than method 1 (p < 0.001), method 3 (p < 0.001); "
        "method 3 is better than method 1 (p < 0.001)."
    )


def test_no_pair_differs_significantly():
    none = compare_over_sets(random_scores(20, 4, 5, 0))
    assert f"no pair differs significantly; the lowest adjusted p = {none.adjusted.min():.2f}" in str(none)


def test_scores_must_be_numbers():
    pandas, _polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    scores, sets = random_scores(4, 3), ["iris", "wine", "glass", "sonar"]
    frame = pandas.DataFrame(scores, columns=["a", "b", "c"], index=sets)
    with pytest.raises(ValueError, match="scores must be numbers; column 'd' holds text, such as 'x'; drop it"):
        compare_over_sets(frame.assign(d=["x", "y", "z", "x"]))


def test_what_cannot_be_compared_says_why():
    scores = random_scores(4, 3)
    holed = named(scores, ["tree", "Bayes", "stack"])
    holed["Bayes"] = [1, 2, np.nan, 3]
    with pytest.raises(ValueError, match="every method needs a score on every set; Bayes on set 3 is nan. Leave out"):
        compare_over_sets(holed)
    with pytest.raises(ValueError, match="alpha must be between 0 and 1, such as 0.05; got 5"):
        compare_over_sets(scores, alpha=5)
    with pytest.raises(
        ValueError, match=r"at least two data sets and three methods.*\(4, 2\). Two methods: see signed"
    ):
        compare_over_sets(scores[:, :2])
    for empty in ({}, scores[:1]):
        with pytest.raises(ValueError, match="at least two data sets and three methods"):
            compare_over_sets(empty)
    with pytest.raises(ValueError, match=r"a row for each data set and a column for each method; shape \(4,\)"):
        compare_over_sets(scores[:, 0])
    with pytest.raises(ValueError, match=r"on every set; numbers of scores: {'a': 2, 'b': 3}"):
        compare_over_sets({"a": [1, 2], "b": [1, 2, 3]})
    with pytest.raises(ValueError, match=r"on every set; a and b differ in \['y', 'z'\]"):
        compare_over_sets({"a": {"x": 1, "y": 2}, "b": {"x": 1, "z": 2}})
    with pytest.raises(ValueError, match="methods must have different names; got .'1', '1', '2'."):
        compare_over_sets({1: [1, 2], "1": [1, 2], "2": [1, 3]})
    with pytest.raises(ValueError, match="unknown method 'm'; choose one of"):
        compare_over_sets(scores).adjusted_p_value("m", "method 1")
    for bad in ([0.1, 2], [[0.1]], [np.nan]):
        with pytest.raises(ValueError, match="p_values must be a list of numbers between 0 and 1; got"):
            holm(bad)
