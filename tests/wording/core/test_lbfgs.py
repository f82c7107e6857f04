"""Wording of core, lbfgs."""

import numpy as np

from ...core.test_lbfgs import Plain, Valley, climb


def test_the_gradient_at_the_start_is_not_finite():
    assert climb(Valley(), chart=Plain(np.nan)).message.startswith("the gradient at the start is not finite")
