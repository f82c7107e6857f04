"""Wording of med, margins."""

import numpy as np
import pytest

from mixent.med.margins import Exponential, Fixed, check_some_margin


def test_no_loss_stands_for_a_margin_that_is_certain():
    margin = Fixed(0.8)
    lam = np.array([0.0, 1.0, 100.0])
    with pytest.raises(NotImplementedError, match="no loss stands for a margin that is certain"):
        margin.multiplier(lam)


def test_there_would_be_no_classifier():
    for c in (0.5, 1.0):
        with pytest.raises(ValueError, match=r"there would be no classifier; take C > 1"):
            check_some_margin(Exponential(c))
