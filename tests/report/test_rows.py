"""Rows without labels: predictions, log-likelihoods, unusual rows."""

import numpy as np
import pandas as pd

from mixent.report import rows


def test_predictions_are_counted():
    proba = np.array([[0.95, 0.05], [0.6, 0.4], [0.2, 0.8]])
    table, figure = rows.predicted(np.array(["a", "b"]), proba, "item")
    cells = [[getattr(cell, "text", cell) for cell in row] for row in table.rows]
    assert cells == [["a", 2, "66.7", "58.3", "0.775"], ["b", 1, "33.3", "41.7", "0.800"]]
    assert "<img" in figure.html()


def test_log_likelihoods_have_a_histogram():
    text, figure = rows.likelihoods(np.array([-3.0, -2.0, -1.0]), "pseudo-likelihood")
    assert "from -3 to -1, median -2" in text.text and "pseudo-likelihood" in text.text
    assert "<img" in figure.html() and "<img" in rows.likelihoods(np.zeros(4))[1].html()


def test_unusual_rows_are_those_of_lowest_score_with_their_least_usual_values():
    frame = pd.DataFrame({"x": [0.0] * 9 + [9.0], "kind": ["u"] * 8 + ["v", "u"], "empty": [None] * 10})
    scores = np.array([0.0] * 8 + [-4.0, -5.0])
    (table,) = rows.unusual(scores, frame)
    assert [row[0] for row in table.rows][:2] == ["9", "8"] and len(table.rows) == rows.UNUSUAL
    assert table.rows[0][2].startswith("x = 9") and table.rows[1][2].startswith("kind = v")


def test_how_unusual_a_value_is():
    frame = pd.DataFrame({"x": [0.0, 0.0, 3.0, np.nan], "kind": ["u", "u", "u", "v"], "same": [1.0] * 4})
    found = rows.distance_from_usual(frame)
    x = np.array([0.0, 0.0, 3.0])
    np.testing.assert_allclose(found[:3, 0], np.abs(x - 1) / x.std())
    np.testing.assert_allclose(found[:, 1], np.sqrt(-2 * np.log([0.75, 0.75, 0.75, 0.25])))
    assert found[3, 0] == 0 and not found[:, 2].any()
