"""Wording of fusion, fuser corners."""

import numpy as np
import pandas as pd
import pytest

from mixent.fusion import Calibration, Fuser, long_answers

from ...fusion.test_fuser_corners import ABC


@pytest.mark.parametrize("name", ["update_prior", "explain", "predict_proba"])
def test_no_items_are_refused_alike(name):
    fuser = Fuser({"x": ABC}, method="product").fit({"x": list("abc") * 20})
    with pytest.raises(ValueError, match="must contain at least one item; got none"):
        getattr(fuser, name)({"x": []})


def test_messages_in_place_of_python_errors():
    with pytest.raises(ValueError, match="'x'"):
        Fuser({"x": ABC}).fit({"x": {}})  # StopIteration
    with pytest.raises(ValueError, match="accuracy must be between"):
        Calibration.guess(["a", "b"], "high")  # TypeError
    table = pd.DataFrame({"item": [1, 1], "source": ["x", "x"], "value": ["a", "a"], "p": [0.5, 0.5]})
    with pytest.raises(ValueError, match="more than one probability"):
        long_answers(table, probability="p")  # the two are added


def test_idle_max_iter_is_refused():
    with pytest.raises(ValueError, match="max_iter=3 is only used with method 'auto', .*; got method='product'"):
        Fuser({"x": ABC}, method="product", max_iter=3).fit({"x": ["a"]})


def test_the_columns_of_the_source_must_be_its_symbols_h():
    said = pd.DataFrame({"i": [0.1, 0.9], "h": [0.9, 0.1]})
    with pytest.raises(ValueError, match="the columns of 'the source' must be its symbols 'h', 'i'; got 'h', 'j'"):
        Calibration.from_predictions(["h", "i"], said.rename(columns={"i": "j"})[["h", "j"]])


def test_no_score_has_a_label():
    with pytest.raises(ValueError, match="scores must be numbers"):
        Calibration.from_scores([0, 1], ["low", "high"])
    with pytest.raises(ValueError, match="at least one finite score must have a label; got none"):
        Calibration.from_scores([0, 1, None, None], [np.nan, np.nan, 1.0, 2.0])
    with pytest.raises(ValueError, match="y_true must be labels; got probabilities"):
        Calibration.from_scores([[0.2, 0.8], [0.5, 0.5]], [1.0, 2.0])


def test_many_quiet_sources_are_one_warning():
    sources = {f"w{j}": Calibration.from_counts([[30, 5], [5, 30]], ["a", "b"]) for j in range(6)}
    answers = {
        name: [("a" if i % 3 else "b") if i % 6 == j else None for i in range(60)] for j, name in enumerate(sources)
    }
    told = Fuser(sources, method="product").fit(answers).warnings_
    assert told[0] == "6 sources answered less than half of the items, 'w0' only 17\u00a0%"
