"""Wording of core, dual."""

from mixent.core.driver import run
from mixent.core.executors import Serial

from ...core.test_dual import CASES, END, draw


def test_the_certified_gap_per_row_fell_below_its_tolerance():
    margin, balanced, seed = CASES[0]
    dual = draw(seed + 20, potential=margin, balanced=balanced)
    result = run(dual, dual.source(), dual.start(), stop=END, executor=Serial())
    assert result.message == "the certified gap per row fell below its tolerance"
