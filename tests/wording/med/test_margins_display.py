"""Wording of med, margins display."""

import pytest

from mixent import MEDClassifier, MEDNoveltyDetector, MEDTreeClassifier, MixtureClassifier
from mixent.displays import MarginsDisplay

from ...med.test_margins_display import OPTIONS, TWO, X, Y


@pytest.fixture(scope="module")
def two():
    return MEDClassifier("rbf", **OPTIONS).fit(X, TWO)


def test_margins_that_are_not_there(two):
    with pytest.raises(TypeError, match="needs a fitted MEDClassifier, .*; got MixtureClassifier"):
        MarginsDisplay.from_estimator(MixtureClassifier(1).fit(X, Y), X, Y)
    with pytest.raises(ValueError, match="must be the 150 rows that the model was fitted to; got 10 rows"):
        MarginsDisplay.from_estimator(two, X[:10], TWO[:10])
    with pytest.raises(TypeError, match="got MEDNoveltyDetector"):
        MarginsDisplay.from_estimator(MEDNoveltyDetector("product").fit(X), X, Y)
    likely = MEDTreeClassifier(objective="likelihood", calibration=None).fit(X, Y)
    with pytest.raises(ValueError, match="trained with margins; fit it with objective='margin'"):
        MarginsDisplay.from_estimator(likely, X, Y)
