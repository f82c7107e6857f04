"""Wording of report, rows."""

import numpy as np

from mixent.report import rows


def test_decisions_of_have_a_probability_below():
    proba = np.array([[0.95, 0.05], [0.6, 0.4], [0.2, 0.8]])
    _table, figure = rows.predicted(np.array(["a", "b"]), proba, "item")
    assert figure.caption == "2 decisions of 3 have a probability below 0.9."
