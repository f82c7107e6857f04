"""Wording of uniform."""

from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ..subjects import SUBJECTS, TABLE
from ..test_uniform import NAMES, TABLES


@pytest.mark.parametrize("name", NAMES)
def test_an_estimator_that_is_not_fitted_says_so(name):
    one = SUBJECTS[name]
    words = f"This {name} instance is not fitted yet. Call 'fit' with appropriate arguments"
    with pytest.raises(NotFittedError, match=words):
        one.said(clone(one.model))


@pytest.mark.parametrize("name", TABLES)
def test_other_columns_than_at_fit_are_refused(name):
    one = SUBJECTS[name]
    width = one.X.shape[1]
    if one.X is TABLE:
        with pytest.raises(ValueError, match="feature names should match those that were passed during fit"):
            one.said(one.usual, TABLE.rename(columns={"age": "years", "color": "colour"}))
    told = pytest.warns(UserWarning, match="not have valid feature names") if one.X is TABLE else nullcontext()
    words = f"X has {width - 1} features, but {name} is expecting {width} features as input"
    with told, pytest.raises(ValueError, match=words):
        one.said(one.usual, np.asarray(one.X)[:, 1:])
