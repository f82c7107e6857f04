"""Wording of med, trees display."""

import pytest
from sklearn.linear_model import LogisticRegression

from mixent import MEDTreeClassifier
from mixent.displays import TreeDisplay
from mixent.options import Margin

from ...med.test_trees_display import X, Y


@pytest.fixture(scope="module")
def trees():
    return MEDTreeClassifier(C=1, calibration=None, margin=Margin("laplace", target=2)).fit(X, Y)


def test_what_has_no_trees_says_so_and_a_display_is_a_line(trees):
    with pytest.raises(TypeError, match="needs a fitted MEDTreeClassifier or MEDBayesNetClassifier; got Logistic"):
        TreeDisplay.from_estimator(LogisticRegression())
    with pytest.raises(ValueError, match="label must be one of the classes"):
        TreeDisplay.from_estimator(trees, label="maybe")
    display = TreeDisplay.from_estimator(trees)
    assert len(repr(display)) < 300 and "\n" not in repr(display)
