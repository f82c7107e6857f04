"""Wording of ensemble, weightboost."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from mixent.ensemble import WeightBoostClassifier


@pytest.fixture(scope="module")
def two():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(160, 5))
    y = np.where(X[:, 0] + X[:, 1] ** 2 + rng.normal(size=160) > 1, "p", "n")
    return X, y


@pytest.mark.parametrize("beta", [-1, np.nan, "much", None, True])
def test_a_regularizer_is_a_number(two, beta):
    with pytest.raises(ValueError, match="beta must be a number >= 0; got"):
        WeightBoostClassifier(GaussianNB(), beta=beta).fit(*two)
