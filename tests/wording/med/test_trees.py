"""Wording of med, trees."""

import numpy as np
import pytest

from mixent import MEDTreeClassifier


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
def test_too_many_columns_are_refused_in_words():
    X = np.random.default_rng(0).choice(list("ab"), size=(10, 301))
    with pytest.raises(ValueError, match="trees allow at most 300 columns; got 301, with 45150 pairs"):
        MEDTreeClassifier(C=1).fit(X, X[:, 0])
