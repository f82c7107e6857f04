"""Wording of evaluate, comparison displays."""

import pytest

from mixent.displays import CriticalDifferenceDisplay

from ...evaluate.test_comparison_displays import comparison, drawn


def test_mean_rank_over_data_sets_is_best():
    found = comparison(6)
    display = CriticalDifferenceDisplay.from_comparison(found)
    ax = drawn(display)
    said = [text.get_text() for text in ax.texts]
    assert "Mean rank over 14 data sets, 1 is best (Friedman test: p < 0.001)" in said


def test_a_critical_difference_longer_than_the_line_says_so():
    ax = drawn(CriticalDifferenceDisplay.from_comparison(comparison(3, 2)))
    assert any(text.get_text().endswith("longer than the line") for text in ax.texts)


def test_what_is_no_comparison_is_refused():
    with pytest.raises(TypeError, match="this display needs the result of compare_over_sets; got a list"):
        CriticalDifferenceDisplay.from_comparison([1, 2])
