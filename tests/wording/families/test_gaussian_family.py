"""Wording of families, Gaussian family."""

import numpy as np
import pytest

from mixent.families.gaussian.family import GaussianFamily, Gaussians, Group


@pytest.mark.parametrize(
    ("name", "covs", "message"),
    [
        ("VVV", np.ones((1, 2, 2)), "a covariance is not positive definite"),
        ("VVI", np.array([[1.0, 0.0]]), "a variance is not positive"),
    ],
)
def test_a_singular_covariance_is_explained(name, covs, message):
    family = GaussianFamily((Group(name, 0, 1),), np.zeros(2), np.ones(2))
    remedy = "a column is constant or depends on others; drop such columns, or use a prior"
    with pytest.raises(ValueError, match=f"{message}: {remedy}"):
        family.prepare(Gaussians(np.zeros((1, 2)), covs, (None,)))
