"""Wording of med, margins."""

import numpy as np
import pytest

from mixent.med.margins import Exponential, Fixed, check_some_margin


def test_a_fixed_margin_has_no_finite_loss():
    margin = Fixed(0.8)
    lam = np.array([0.0, 1.0, 100.0])
    with pytest.raises(NotImplementedError, match="a fixed margin has no finite loss"):
        margin.multiplier(lam)


def test_there_would_be_no_classifier():
    for c in (0.5, 1.0):
        with pytest.raises(ValueError, match=r"there would be no classifier; set C > 1"):
            check_some_margin(Exponential(c))
