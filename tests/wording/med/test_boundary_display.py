"""Wording of med, boundary display."""

import numpy as np
import pandas as pd
import pytest

from mixent import GaussianMixture, MEDClassifier
from mixent.displays import BoundaryDisplay

from ...med.test_boundary_display import IRIS, KIND, X, Y


def test_what_cannot_be_drawn_says_why(curved):
    four = MEDClassifier(C=5, calibration=None).fit(IRIS, KIND)
    with pytest.raises(ValueError, match="fitted to 4.; fit it to the two columns you want to see"):
        BoundaryDisplay.from_estimator(four, IRIS, KIND)
    with pytest.raises(ValueError, match="GaussianMixture has no classes_; fit a classifier first"):
        BoundaryDisplay.from_estimator(GaussianMixture(1).fit(X), X)
    with pytest.raises(ValueError, match="no row of X has values in both 'column 0' and 'column 1'"):
        BoundaryDisplay.from_estimator(curved, np.full((3, 2), np.nan))
    table = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 1.5, "x", "y")})
    with pytest.raises(ValueError, match="a map needs two continuous columns; the model takes 'b' as categorical"):
        BoundaryDisplay.from_estimator(MEDClassifier(C=5, calibration=None).fit(table, Y), table, Y, columns=("b", "a"))
