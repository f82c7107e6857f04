"""Wording of med, solving."""

import pytest

from mixent.med.margins import Fixed

from ...med.test_solving import draw, kernel, linear


@pytest.mark.parametrize("solve", [linear, kernel])
def test_a_certain_margin_that_cannot_be_kept_is_refused_with_the_reason(solve):
    X, belief, weight = draw(0)
    with pytest.raises(
        ValueError, match=r"no solution satisfies the fixed margin 2 for every row .*set a smaller target"
    ):
        solve(X, belief, weight, Fixed(2.0))
