"""The encoding of a table: scaled numbers, indicators of missing values, one-hot categories."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from mixent.data import read_features
from mixent.med.encoding import Encoder


def table(data, reset_from=None):
    model = SimpleNamespace() if reset_from is None else reset_from
    read = read_features(model, data, reset=reset_from is None)
    model.schema_ = read.schema
    return read, model


def frame():
    return pd.DataFrame(
        {
            "size": [1.0, 2.0, np.nan, 5.0],
            "word": ["red", "blue", None, "red"],
            "same": [7.0, 7.0, 7.0, 7.0],
            "age": [10.0, 20.0, 30.0, 40.0],
        }
    )


def encoded(weight=None, standardize=True, data=None):
    read, model = table(frame() if data is None else data)
    encoder = Encoder.of(read, np.ones(read.n_rows) if weight is None else weight, standardize)
    return encoder(read), encoder, model


def test_columns_are_scaled_missing_values_have_indicators_and_categories_are_one_hot():
    values, encoder, _ = encoded()
    assert encoder.names == ("size", "same", "age", "size is missing", "word = blue", "word = red")
    seen = np.array([1.0, 2.0, 5.0])
    np.testing.assert_allclose(values[[0, 1, 3], 0], (seen - seen.mean()) / seen.std())
    assert values[2, 0] == 0.0
    np.testing.assert_array_equal(values[:, 3], [0, 0, 1, 0])
    np.testing.assert_array_equal(values[:, 4:], [[0, 1], [1, 0], [0, 0], [0, 1]])  # a gap has no bit
    assert values.shape[1] == len(encoder.names)


def test_a_constant_column_stays_zero_at_any_offset():
    for offset in (0.0, 7.0, 1e9, 0.1):
        data = frame().assign(same=offset)
        weight = np.array([0.3, 0.7, 1.1, 0.9])  # the mean is the constant but for rounding
        np.testing.assert_allclose(encoded(weight, data=data)[0][:, 1], 0.0, atol=1e-6)


def test_scaled_columns_have_mean_zero_and_variance_one_under_the_weights():
    weight = np.array([0.5, 2.0, 1.0, 3.0])
    values, _, _ = encoded(weight)
    assert weight @ values[:, 2] == pytest.approx(0.0, abs=1e-12)
    assert weight @ values[:, 2] ** 2 == pytest.approx(weight.sum())
    rows = [0, 1, 1, 2, 3]
    twice, _, _ = encoded(data=frame().iloc[rows])
    heavy, _, _ = encoded(np.array([1.0, 2.0, 1.0, 1.0]))
    np.testing.assert_allclose(heavy[rows], twice)


def test_a_row_of_no_weight_teaches_nothing():
    weight = np.array([1.0, 1.0, 0.0, 1.0])  # the row with the gap
    _, encoder, _ = encoded(weight)
    assert "size is missing" not in encoder.names


def test_new_rows_are_read_as_at_fit():
    _, encoder, model = encoded()
    new = pd.DataFrame({"size": [np.nan, 3.0], "word": ["blue", "red"], "same": [7.0, 8.0], "age": [np.nan, 25.0]})
    values = encoder(table(new, model)[0])
    assert values.shape == (2, 6)
    np.testing.assert_allclose(
        values[0], [0, 0, 0, 1, 1, 0]
    )  # no indicator for columns without missing values in the training rows
    np.testing.assert_allclose(values[1], [1 / 3 / np.std([1, 2, 5]), 1, 0, 0, 0, 1])


def test_a_unit_or_an_offset_changes_nothing():
    data = frame()
    transformed = data.assign(size=1e3 * data["size"] - 5, age=data["age"] / 7 + 1e4)
    np.testing.assert_allclose(encoded()[0], encoded(data=transformed)[0], atol=1e-9)


def test_unscaled_columns_are_left_as_they_are_unless_one_drowns_the_rest():
    values, _, _ = encoded(standardize=False)
    np.testing.assert_array_equal(values[:, 2], [10, 20, 30, 40])
    np.testing.assert_array_equal(values[:, 0], [1, 2, 0, 5])
    far = frame().assign(age=1e10 * frame()["age"])
    with pytest.raises(ValueError, match="'age'"):
        encoded(standardize=False, data=far)
    encoded(data=far)


def test_a_table_of_categories_alone():
    values, encoder, _ = encoded(data=pd.DataFrame({"a": ["x", "y", "x"], "b": ["u", "v", "w"]}))
    assert encoder.names == ("a = x", "a = y", "b = u", "b = v", "b = w")
    np.testing.assert_array_equal(values.sum(axis=1), 2.0)
