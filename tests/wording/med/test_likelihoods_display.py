"""Wording of med, likelihoods display."""

import pytest
from sklearn.ensemble import IsolationForest

from mixent import MEDNoveltyDetector
from mixent.displays import LikelihoodsDisplay

from ...med.test_likelihoods_display import X, drawn


def test_what_has_no_likelihoods_says_so_and_a_display_is_a_line():
    with pytest.raises(TypeError, match="needs a fitted MEDNoveltyDetector; got IsolationForest"):
        LikelihoodsDisplay.from_estimator(IsolationForest())
    from matplotlib.figure import Figure

    display = LikelihoodsDisplay.from_estimator(MEDNoveltyDetector().fit(X))
    ax = Figure().subplots()
    assert drawn(display, ax) is ax and len(repr(display)) < 200
