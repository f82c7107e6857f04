"""Wording of data, labels."""

import datetime

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.exceptions import DataConversionWarning

from mixent.data import read_labels, read_weights


def test_y_holds_the_label_d_which_is_none():
    with pytest.raises(ValueError, match=r"y holds the label 'd', which is none of the classes \['a', 'b'\]"):
        read_labels(["a", "d"], 2, classes=["a", "b"])
    with pytest.raises(ValueError, match=r"y has 2 label columns .* but the classes are \['a', 'b', 'c'\]"):
        read_labels(pd.DataFrame({"a": [1.0], "b": [0.0]}), 1, classes=["a", "b", "c"])


@pytest.mark.parametrize("n_rows", [3, 1])
def test_length_must_match(n_rows):
    with pytest.raises(ValueError, match=rf"inconsistent numbers of samples: \[{n_rows}, 2\]"):
        read_labels([0, 1], n_rows)


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (None, ValueError, "requires y to be passed, but the target y is None"),
        (["a", "a"], ValueError, "needs at least 2 classes; y has 1 class: 'a'; check the target column"),
        (np.ones(2), ValueError, "y has 1 class: 1.0"),
        (["a", None], ValueError, "y has 1 class: 'a'"),
        ([None, ""], ValueError, r"every label in y is absent \(all 2 rows\)"),
        (np.full(2, np.nan), ValueError, "every label in y is absent"),
        ([0.5, 1.7], ValueError, "Unknown label type: continuous"),
        ([0.0, np.inf], ValueError, "Input y contains infinity: row 1 holds inf"),
        ([None, np.inf], ValueError, "Input y contains infinity: row 1 holds inf"),
        (np.array([1j, 2]), ValueError, "Complex data not supported"),
        ([1, "a"], ValueError, r"Unknown label type: y mixes labels of different types \(.*1.*\)"),
        ([True, 2], ValueError, "y mixes labels of different types"),
        ([datetime.date(2020, 1, 1)] * 2, ValueError, "Unknown label type: y holds date values"),
        (np.array(["2020", "2021"], dtype="M8[Y]"), ValueError, "Unknown label type: y is an array of datetime64"),
        (np.array([b"a", b"b"]), ValueError, "Unknown label type: y is an array of"),
        ([{"a": 1}, {"b": 2}], ValueError, "Unknown label type: y holds dict values"),
        (np.zeros((2, 2, 2)), ValueError, "y should be a 1d array|Found array with dim 3"),
        (3, ValueError, "y must hold one label per row; got a single int"),
        ("ab", ValueError, "got a single str"),
        (csr_matrix(np.eye(2)), TypeError, "Sparse data was passed for y"),
    ],
)
def test_bad_labels(y, error, message):
    with pytest.raises(error, match=message):
        read_labels(y, 2)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[0.5, 0.5], [0.5, 0.6]], r"row 1 \(0: 0.5, 1: 0.6\) does not sum to 1; divide"),
        ([[0.5, 0.5], [0.0, 0.0]], "row 1 .* does not sum to 1"),
        ([[1.5, -0.5], [0.5, 0.5]], r"row 0 \(0: 1.5, 1: -0.5\) has a negative probability"),
        ([[0.5, np.nan], [0.5, 0.5]], "row 0 .* has some probabilities missing"),
        ([[0.5, np.inf], [0.5, 0.5]], "row 0 .* does not sum to 1"),
        ([[np.nan, np.nan], [1.0, 1.0]], "every label in y is absent"),
        ([[1.0, 0.0], [1.0, 0.0]], "y has 1 class: 0"),
        ([["a", "b"], ["c", "d"]], "y has 2 columns, so it must hold label probabilities.* pass one column"),
        (pd.DataFrame({"a": ["x", "y"], "b": [0.5, 0.5]}), "column 'a' does not hold numbers"),
        (pd.DataFrame([[0.5, 0.5]] * 2, columns=["a", 1]), "mix text and other names"),
        (np.array([["2020", "2021"]] * 2, dtype="M8[Y]"), "must hold label probabilities; it holds datetime64"),
    ],
)
def test_bad_probabilities(y, message):
    with pytest.raises(ValueError, match=message):
        read_labels(y, 2)


def test_repeated_class_columns():
    with pytest.raises(ValueError, match="column names must be unique; 'a' names 2"):
        read_labels(pd.DataFrame([[0.5, 0.5]] * 2, columns=["a", "a"]), 2)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, -0.5], "sample_weight must be >= 0; row 1 has -0.5"),
        ([np.nan, 1], "sample_weight must be finite; row 0 has nan"),
        ([1, np.inf], "sample_weight must be finite; row 1 has inf"),
        ([0, 0], "Sample weights must contain at least one non-zero number"),
        ([1, 2, 3], r"one value per row \(2\); its shape is \(3,\)"),
        (np.ones((2, 2)), "one value per row .2.; its shape is .2, 2."),
        (["a", "b"], "sample_weight must be numbers, one per row"),
        ([1, None], "sample_weight must be"),
        (np.ma.masked_array([1.0, 2.0], [True, False]), "sample_weight must be finite; row 0 has nan"),
        (-1, "sample_weight must be >= 0; row 0 has -1"),
        (np.nan, "sample_weight must be finite"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        read_weights(weights, 2)


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean", "int64[pyarrow]", object])
@pytest.mark.parametrize("made", [pd.array, pd.Series, pd.Index])
def test_sample_weight_must_be_finite(made, dtype):
    with pytest.raises(ValueError, match="sample_weight must be finite; row 1 has nan"):
        read_weights(made([True, None], dtype=dtype), 2)


def test_a_column_vector_y_was_passed():
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        read_labels([[0], [1]], 2)


def test_spellings_and_markers_among_labels():
    assert read_labels(["Yes", "yes ", "No"] * 2, 6).notes == (
        "y has spellings that differ by case or blanks only: 'Yes', 'yes '. They are kept as different classes; spell "
        "them alike if they mean the same",
    )
    assert read_labels(["-", "a", "b"] * 2, 6).notes == (
        "y holds '-', which looks like a marker of missing values and is taken as a class; mark rows without a label "
        "by None or NaN",
    )
    assert read_labels(["-", "+"] * 2, 4).notes == ()


def test_notes_on_labels():
    assert read_labels(["a", "b", "b", "c", "c", "d"], 6).notes == ("classes 'a', 'd' have one row only; kept",)
    assert read_labels([0, 0, 1, 1, -1, -1], 6).notes == (
        "y holds -1, which is taken as a class; mark rows without a label by None or NaN",
    )
