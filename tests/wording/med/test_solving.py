"""Wording of med, solving."""

import numpy as np
import pytest

from mixent.core.blocks import Blocks, NumberedRows
from mixent.med.margins import Fixed
from mixent.med.solving import Search

from ...med.test_solving import Creeping, draw, kernel, linear


@pytest.mark.parametrize("solve", [linear, kernel])
def test_a_certain_margin_that_cannot_be_kept_is_refused_with_the_reason(solve):
    X, belief, weight = draw(0)
    with pytest.raises(
        ValueError, match=r"no solution satisfies the fixed margin 2 for every row .*set a smaller target"
    ):
        solve(X, belief, weight, Fixed(2.0))


def test_a_run_that_ends_early_says_why_and_what_to_do():
    run = Search(max_iter=200).run(Creeping(0.1), Blocks(NumberedRows.of(np.ones(1)), 8), 100.0)
    assert run.message == (
        "the duality gap falls too slowly to be closed within max_iter passes; "
        "set a smaller C, or check for huge weights"
    )
