"""Wording of med, gaussians."""

import numpy as np
import pytest

from mixent.core.driver import OutsideDomainError
from mixent.med.gaussian_training import GaussianTrainingSet

from ...med.test_gaussians import draw, part, some, training_set


def test_the_domain_ends_where_the_rows_or_the_scatter_do():
    one = some(3, rows=4.0)
    few = one.natural_parameters_in(one)
    few[0] = 2.0
    with pytest.raises(OutsideDomainError, match="a class would have a total weight of 2; 3 columns need more than 2"):
        one.with_natural_parameters(few)
    flat = one.natural_parameters_in(one)
    flat[4] = -0.1
    with pytest.raises(OutsideDomainError, match="the scatter of a class would not be positive definite"):
        one.with_natural_parameters(flat)


def test_a_class_too_small_for_its_columns_is_named():
    X, y = draw(9, n=30, d=4)
    y[:] = 0
    y[:2] = 1
    with pytest.raises(
        ValueError,
        match=r"class dog has a total weight of 2\.5; 4 columns need more than 3, .*larger prior \(now 0\.5\)",
    ):
        training_set(X, 0.5).discriminant(part(y), np.inf)


def test_columns_that_depend_on_each_other_are_named_with_the_class():
    X, y = draw(10, n=30, d=2)
    given = GaussianTrainingSet(np.column_stack([X, X.sum(axis=1)]), 1e-12, None, None, np.array(["cat", "dog"]))
    with pytest.raises(ValueError, match=r"class cat has columns that are constant or depend on each other"):
        given.discriminant(part(y), np.inf)
    X[:, 1] = 4.0
    with pytest.raises(ValueError, match=r"class cat has columns that are constant or depend on each other"):
        GaussianTrainingSet(X, 1e-18, None, np.zeros((2, 2)), np.array(["cat", "dog"])).discriminant(part(y), np.inf)
