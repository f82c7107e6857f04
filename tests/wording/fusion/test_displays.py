"""Wording of fusion, displays."""

import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from mixent.displays import DependenceDisplay, DriftDisplay, PriorsDisplay, TrustDisplay
from mixent.fusion import Fuser

from ...fusion.test_displays import SOURCES, VOTES


def test_what_cannot_be_drawn_is_refused(fuser):
    for display in (PriorsDisplay, TrustDisplay, DependenceDisplay):
        with pytest.raises(TypeError, match="this display needs a fitted Fuser; got a LogisticRegression"):
            display.from_estimator(LogisticRegression())
        with pytest.raises(NotFittedError, match="This Fuser instance is not fitted yet"):
            display.from_estimator(Fuser(SOURCES))
    with pytest.raises(ValueError, match="method 'majority' has no trust weights; use 'product', 'ml-product'"):
        TrustDisplay.from_estimator(Fuser(SOURCES, method="majority").fit(VOTES))
    with pytest.raises(ValueError, match="this display needs at least two sources; got only 's_0'"):
        DependenceDisplay.from_estimator(Fuser({"s_0": SOURCES["s_0"]}).fit({"s_0": VOTES["s_0"]}))
    fuser = Fuser(SOURCES).fit(VOTES)
    with pytest.raises(ValueError, match="windows must contain at least one table of answers; got none"):
        DriftDisplay.from_windows(fuser, [])
    with pytest.raises(ValueError, match="names must have one name for each of the 2 windows; got 1"):
        DriftDisplay.from_windows(fuser, [VOTES, VOTES], ["monday"])
    with pytest.raises(TypeError, match="this display needs a fitted Fuser; got a LogisticRegression"):
        DriftDisplay.from_windows(LogisticRegression(), [VOTES])
