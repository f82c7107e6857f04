"""Wording of med, unlabelled rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from mixent import MEDClassifier

from ...med.test_unlabelled import clouds


def test_labels_in_one_class():
    X, y, _ = clouds(100, label_by=0)
    rows = np.r_[np.arange(20), 20 + np.flatnonzero(y[20:] == "a")]
    partly = y[rows]
    partly[20:] = None
    with pytest.warns(UserWarning, match="unlabelled rows are inferred to be 'a'; if that is wrong, set another C, or"):
        model = MEDClassifier(C=1.0, random_state=0).fit(X[rows], partly)
    assert (model.label_posterior_[20:, 0] > 0.5).all()


def test_labels_that_do_not_converge():
    rng = np.random.default_rng(0)
    X, p = rng.normal(size=(25, 2)), pd.DataFrame(rng.dirichlet([1, 1, 1], 25), columns=list("abc"))
    with pytest.warns(ConvergenceWarning, match="the labels did not converge in 30 rounds; set a smaller C"):
        MEDClassifier("rbf", C=50.0, calibration=None, random_state=0).fit(X, p)
