"""Wording of data, table."""

import numpy as np
import pytest

from mixent.data import read_features

from ...data.test_table import FRAME, fitted


def test_what_a_user_would_be_refused_a_table_is_too():
    model, table = fitted(FRAME)
    with pytest.raises(ValueError, match="feature names should match"):
        read_features(model, fitted(FRAME[["shape", "size", "code", "ripe"]])[1], reset=False)
    with pytest.raises(ValueError, match="feature names should match|has 2 features"):
        read_features(model, fitted(FRAME[["size"]])[1], reset=False)
    with pytest.warns(UserWarning, match="valid feature names"):
        read_features(model, fitted(FRAME.to_numpy(dtype=object))[1], reset=False)
    with pytest.raises(ValueError, match="no column of X can be used: 'size' have no values"):
        fitted(fitted(FRAME[["size"]])[1].take(np.array([2])))
    numbers = fitted(FRAME.assign(shape=[1.0, 2, 3, 4, 5, 6]))[0]
    assert "column 'shape' has values that are not numbers" in read_features(numbers, table, reset=False).notes[0]
