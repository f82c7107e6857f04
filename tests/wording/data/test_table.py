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
        read_features(model, fitted(FRAME[["size", "shape"]])[1], reset=False)
    with pytest.warns(UserWarning, match="valid feature names"):
        read_features(model, fitted(FRAME.to_numpy(dtype=object))[1], reset=False)
    with pytest.raises(ValueError, match="column 'size' has no values: all 1 rows"):
        fitted(table.take(np.array([2])))
    with pytest.raises(ValueError, match="column 'shape' has no values: all 1 rows"):
        fitted(fitted(FRAME.assign(size=1.0))[1].take(np.array([2])))
    with pytest.raises(ValueError, match="'shape' held numbers at fit|held numbers"):
        read_features(fitted(FRAME.assign(shape=[1.0, 2, 3, 4, 5, 6]))[0], table, reset=False)
