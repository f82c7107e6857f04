"""Models of petals, for tests of displays."""

import pytest

from mixent import MEDClassifier, MEDGaussianClassifier
from mixent.options import Margin

from .petals import NAMED, X, Y


@pytest.fixture(scope="session")
def curved():
    """A boundary by a kernel."""
    return MEDClassifier("rbf", C=5, calibration=None).fit(X, Y)


@pytest.fixture(scope="session")
def gauss():
    """A boundary between Gaussians, of named columns."""
    return MEDGaussianClassifier(C=5, calibration=None, margin=Margin("laplace", quantile=0.2)).fit(NAMED, Y)
