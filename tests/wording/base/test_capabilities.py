"""Wording of base, capabilities."""

import pytest
from sklearn.linear_model import LogisticRegression

from mixent.base.capabilities import cells_of


def test_an_estimator_of_another_library_has_no_row():
    with pytest.raises(TypeError, match="LogisticRegression is not an estimator of mixent"):
        cells_of(LogisticRegression())
