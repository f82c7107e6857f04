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
        ({"grid": 3}, ValueError, "grid must be a dict of option to values to try, or a list of such"),
        ({"cv": 1}, ValueError, "cv must be a whole number >= 2"),
        ({"estimator": LogisticRegression}, TypeError, "got the class LogisticRegression: call it to make one"),
        ({"grid": {"C": [-1.0, -2.0]}}, ValueError, "no setting of the grid could be fitted; the first: Invalid"),
    ],
)
def test_refused(options, error, message):
    with pytest.raises(error, match=message):
        TunedClassifier(**options).fit(*make_table())


def test_refused_labels_and_weights():
    X, y = make_table()
    with pytest.raises(
        ValueError, match="y holds probabilities of labels, which classifiers of other libraries do not"
    ):
        TunedClassifier().fit(X, np.full((len(y), 2), 0.5))
    with pytest.raises(ValueError, match="a classifier needs at least 2 classes; 1 has a row of sample_weight > 0"):
        TunedClassifier().fit(X, y, sample_weight=(y == "no").astype(float))
    with pytest.raises(ValueError, match="KNeighborsClassifier takes no sample_weight; leave it out"):
        TunedClassifier(KNeighborsClassifier()).fit(X, y, sample_weight=np.ones(len(y)))
