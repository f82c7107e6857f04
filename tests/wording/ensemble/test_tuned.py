"""Wording of ensemble, tuned."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from mixent import TunedClassifier

from ...ensemble.test_tuned import make_table


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"encoding": "words"}, ValueError, "encoding must be one of 'bits', 'codes'; got 'words'"),
        ({"grid": 3}, ValueError, "grid must be a dict, parameter -> list of values, or a list of dicts"),
        ({"cv": 1}, ValueError, "cv must be a whole number >= 2"),
        ({"estimator": LogisticRegression}, TypeError, "an instance of a classifier; got the class LogisticRegression"),
        ({"grid": {"C": [-1.0, -2.0]}}, ValueError, "no setting of the grid could be fitted; the first error: Invalid"),
    ],
)
def test_refused(options, error, message):
    with pytest.raises(error, match=message):
        TunedClassifier(**options).fit(*make_table())


def test_refused_labels_and_weights():
    X, y = make_table()
    with pytest.raises(ValueError, match="y must hold labels, because classifiers of other libraries do not"):
        TunedClassifier().fit(X, np.full((len(y), 2), 0.5))
    with pytest.raises(ValueError, match="a classifier needs rows of at least 2 classes with sample_weight > 0; got 1"):
        TunedClassifier().fit(X, y, sample_weight=(y == "no").astype(float))
    with pytest.raises(ValueError, match="KNeighborsClassifier does not support sample_weight; leave it out"):
        TunedClassifier(KNeighborsClassifier()).fit(X, y, sample_weight=np.ones(len(y)))
