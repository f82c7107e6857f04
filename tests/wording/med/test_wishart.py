"""Wording of med, wishart."""

import numpy as np
import pytest

from mixent.core.driver import OutsideDomainError
from mixent.med.wishart import Wishart

from ...med.test_wishart import some, tied


@pytest.mark.parametrize(
    ("T", "message"),
    [
        (
            np.r_[1.0, np.zeros(2), np.eye(2).ravel()],
            "a Gaussian of 2 columns needs .* total weight above 1; the total weight would be 1",
        ),
        (np.r_[-3.0, np.zeros(2), np.eye(2).ravel()], "weight would be -3"),
        (np.r_[np.inf, np.zeros(2), np.eye(2).ravel()], "weight would be inf"),
        (np.r_[np.nan, np.zeros(2), np.eye(2).ravel()], "weight would be nan"),
        (np.r_[5.0, np.nan, 0.0, np.eye(2).ravel()], "weight would be 5"),
        (np.r_[5.0, np.zeros(2), 1.0, 2.0, 2.0, 1.0], "the scatter would not be positive definite"),
        (np.r_[5.0, 5.0, 0.0, np.eye(2).ravel()], "the scatter would not be positive definite"),
    ],
)
def test_outside_the_domain(T, message):
    with pytest.raises(OutsideDomainError, match=message):
        Wishart(T, 2)
    with pytest.raises(OutsideDomainError, match=message):
        some(2).with_natural_parameters(T)


def test_outside_the_domain_of_other_structures():
    with pytest.raises(OutsideDomainError, match="a Gaussian of 2 independent columns needs .* total weight above 0"):
        Wishart(np.r_[-1.0, np.zeros(2), np.ones(2)], 2, diagonal=True)
    several = tied()
    with pytest.raises(
        OutsideDomainError, match="a class needs finite parameters and a total weight above 0; it would"
    ):
        several.with_natural_parameters(-several.T)
    with pytest.raises(OutsideDomainError, match="the scatter would not be positive definite"):
        several.with_natural_parameters(several.T * np.tile([1.0, 9.0, 9.0], 3))
