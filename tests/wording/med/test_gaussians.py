"""Wording of med, Gaussians of classes."""

import numpy as np
import pytest

from mixent.med.gaussian_training import GaussianTrainingSet

from ...med.test_gaussians import draw, part, training_set


def test_a_class_too_small_for_its_columns_is_named():
    X, y = draw(9, n=30, d=4)
    y[:] = 0
    y[:2] = 1
    with pytest.raises(
        ValueError,
        match=r"class dog has a total weight of 2\.5; 4 columns need more than 3, .*larger prior \(now 0\.5\)",
    ):
        training_set(X, 0.5).discriminant(part(y), np.inf)
    names = np.array(["cat", "dog"])
    tied = GaussianTrainingSet(np.tile(X, 9), 0.0, None, None, names, structure="tied")
    with pytest.raises(ValueError, match="the table has a total weight of 30; 36 columns need more than 35"):
        tied.discriminant(part(y), np.inf)
    y[:] = 1
    diagonal = GaussianTrainingSet(X, 0.0, None, None, names, structure="diagonal")
    with pytest.raises(ValueError, match="class cat has a total weight of 0; 4 columns need more than 0"):
        diagonal.discriminant(part(y), np.inf)


def test_columns_that_depend_on_each_other_are_named_with_the_class():
    X, y = draw(10, n=30, d=2)
    given = GaussianTrainingSet(np.column_stack([X, X.sum(axis=1)]), 1e-12, None, None, np.array(["cat", "dog"]))
    with pytest.raises(ValueError, match=r"class cat has columns that are constant or depend on each other"):
        given.discriminant(part(y), np.inf)
    X[:, 1] = 4.0
    with pytest.raises(ValueError, match=r"class cat has columns that are constant or depend on each other"):
        GaussianTrainingSet(X, 1e-18, None, np.zeros((2, 2)), np.array(["cat", "dog"])).discriminant(part(y), np.inf)
