"""Wording of evaluate, projection display."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from mixent.displays import ProjectionDisplay, RocCurvesDisplay

from ...evaluate.test_projection_display import CODES, X, Y


def test_what_is_refused():
    proba, classes = np.eye(3)[CODES], np.unique(Y)
    with pytest.raises(ValueError, match=r"proba must have shape \(150, 3\), rows by classes; got \(150, 2\)"):
        ProjectionDisplay.from_predictions(X, Y, proba[:, :2], classes)
    with pytest.raises(ValueError, match="needs labelled rows of two classes at least"):
        ProjectionDisplay.from_predictions(X[:50], Y[:50], proba[:50], classes)
    with pytest.raises(ValueError, match="every column of X is constant"):
        ProjectionDisplay.from_predictions(np.ones((150, 2)), Y, proba, classes)
    with pytest.raises(ValueError, match="X has 149 rows, y has 150"):
        ProjectionDisplay.from_predictions(X[1:], Y, proba, classes)


def test_all_labels_in_y_are_setosa():
    proba = GaussianNB().fit(X[::2], Y[::2]).predict_proba(X)
    with pytest.raises(ValueError, match=r"proba must have shape \(150, 3\)"):
        RocCurvesDisplay.from_classes(Y, proba[:, 1:], np.unique(Y))
    with pytest.raises(ValueError, match="all labels in y are 'setosa'"):
        RocCurvesDisplay.from_classes(Y[:50], proba[:50], np.unique(Y))
