"""Labels of any type, soft and absent labels, weights."""

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets

from mixent.data import rare, read_labels, read_weights

WORDS = ["b", None, "a", "b"]


@pytest.mark.parametrize(
    "y",
    [
        WORDS,
        tuple(WORDS),
        np.array(WORDS, dtype=object),
        ["b", "", "a", "b"],
        ["b", "  ", "a", "b"],
        np.array(["b", "", "a", "b"]),
        ["b", float("nan"), "a", "b"],
        ["b", pd.NA, "a", "b"],
        pd.Series(WORDS),
        pd.Series(WORDS, dtype="string"),
        pd.Series(WORDS, dtype="category"),
        pd.Series(WORDS, index=[4, 3, 2, 1]),
        pl.Series(WORDS),
        pl.Series(WORDS, dtype=pl.Categorical),
        pa.array(WORDS),
        pa.chunked_array([WORDS]),
        np.ma.masked_array(["b", "x", "a", "b"], [False, True, False, False]),
    ],
)
def test_every_container_gives_the_same_labels(y):
    labels = read_labels(y, 4)
    assert labels.classes.tolist() == ["a", "b"] and labels.classes.dtype.kind == "U"
    assert labels.codes.tolist() == [1, -1, 0, 1] and labels.codes.dtype == np.int32
    assert labels.likelihood.tolist() == [[0, 1], [1, 1], [1, 0], [0, 1]]
    assert labels.n_absent == 1 and not labels.all_hard_and_known


@pytest.mark.parametrize(
    ("y", "classes", "kind"),
    [
        ([2, 1, 2], [1, 2], "i"),
        (np.array([2.0, 1.0, 2.0]), [1.0, 2.0], "f"),
        (np.array([2.0, np.nan, 1.0]), [1, 2], "i"),  # integers before the gap
        ([2, None, 1], [1, 2], "i"),
        ([2.0, None, 1.0], [1, 2], "i"),
        (pd.array([2, None, 1], dtype="Int64"), [1, 2], "i"),
        (pl.Series([2, None, 1]), [1, 2], "i"),
        ([True, False, True], [False, True], "b"),
        ([True, None, False], [False, True], "b"),
        (np.array([3, 1, 1], dtype=np.uint8), [1, 3], "u"),
        (np.array([3, 1, 1], dtype=object), [1, 3], "i"),
    ],
)
def test_labels_keep_their_type(y, classes, kind):
    labels = read_labels(y, 3)
    assert labels.classes.tolist() == classes and labels.classes.dtype.kind == kind


def test_known_labels():
    assert read_labels([0, 1], 2).all_hard_and_known
    assert read_labels([0, 1], 2).n_absent == 0


def test_column_vector_warns_as_scikit_learn_does():
    for y in (np.array([[0], [1]]), pd.DataFrame({"y": [0, 1]}), [[0], [1]]):
        with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
            assert read_labels(y, 2).codes.tolist() == [0, 1]


def test_classes_known_beforehand():
    labels = read_labels(["a", "a"], 2, classes=["c", "a", "b"])
    assert labels.classes.tolist() == ["a", "b", "c"] and labels.likelihood.tolist() == [[1, 0, 0]] * 2
    with pytest.raises(ValueError, match=r"y holds the label 'd', which is none of the classes \['a', 'b'\]"):
        read_labels(["a", "d"], 2, classes=["a", "b"])
    assert read_labels(np.array([[0.5, 0.5]]), 1, classes=["b", "a"]).classes.tolist() == ["a", "b"]
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


def test_many_classes_warn_as_scikit_learn_does():
    """From 1.7 on it warns; before, it says nothing."""

    def said(read):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            read()
        return [str(one.message) for one in found]

    theirs = said(lambda: check_classification_targets(np.arange(30)))
    assert said(lambda: read_labels(np.arange(30), 30)) == theirs
    assert not theirs or "unique classes is greater than 50%" in theirs[0]


# ---- soft labels


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table, pa.RecordBatch.from_pydict])
def test_probabilities_with_class_names(library):
    y = library({"b": [0.25, None, 1.0, 1.0], "a": [0.75, None, 0.0, 1.0]})
    labels = read_labels(y, 4)
    assert labels.classes.tolist() == ["a", "b"] and labels.codes is None
    assert labels.likelihood.tolist() == [[0.75, 0.25], [1, 1], [0, 1], [1, 1]]
    assert labels.n_absent == 2 and not labels.all_hard_and_known


def test_probabilities_without_names():
    labels = read_labels(np.array([[0.5, 0.3, 0.2], [np.nan] * 3]), 2)
    assert labels.classes.tolist() == [0, 1, 2] and labels.n_absent == 1
    assert read_labels([[0.5, 0.5], [None, None]], 2).n_absent == 1


def test_soft_rows_without_zero_are_not_absent():
    assert read_labels(np.full((4, 2), 0.5), 4).n_absent == 0


def test_one_hot_rows_are_hard():
    labels = read_labels(np.array([[0, 1], [1, 0], [1, 1]]), 3)
    assert labels.codes.tolist() == [1, 0, -1]
    assert read_labels(np.eye(2, dtype=bool), 2).all_hard_and_known


def test_integer_class_names_sort_as_numbers():
    labels = read_labels(pd.DataFrame({10: [1.0, 0.0], 9: [0.0, 1.0]}), 2)
    assert labels.classes.tolist() == [9, 10] and labels.codes.tolist() == [1, 0]


def test_small_rounding_is_divided_out():
    labels = read_labels(np.array([[0.3, 0.7 + 5e-7], [1, 0]]), 2)
    np.testing.assert_allclose(labels.likelihood.sum(axis=1), 1.0, rtol=1e-15)


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


def test_rare_classes():
    assert rare(read_labels(["a", "b", "b", None], 4), 2) == {"a": 1.0}
    assert rare(read_labels([[0.5, 0.5], [0.9, 0.1]], 2), 1) == {1: 0.6}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(["x", "y", "z", None]), min_size=2, max_size=20))
def test_hard_labels_equal_their_one_hot_table(y):
    y = [*y, "x", "y", "z"]
    hard = read_labels(y, len(y))
    soft = read_labels(pd.DataFrame(hard.likelihood, columns=hard.classes), len(y))
    np.testing.assert_array_equal(soft.codes, hard.codes)
    np.testing.assert_array_equal(soft.likelihood, hard.likelihood)
    assert [None if c < 0 else hard.classes[c] for c in hard.codes] == y


# ---- weights


def test_weights():
    assert read_weights(None, 3) is None
    for weights in ([1, 2, 0], np.array([1, 2, 0.0]), pd.Series([1, 2, 0]), pl.Series([1, 2, 0])):
        assert read_weights(weights, 3).tolist() == [1, 2, 0] and read_weights(weights, 3).dtype == np.float64
    assert read_weights(2, 3).tolist() == [2, 2, 2]


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
def test_a_gap_among_the_weights_of_pandas_is_named(made, dtype):
    assert read_weights(made([True, True], dtype=dtype), 2).tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="sample_weight must be finite; row 1 has nan"):
        read_weights(made([True, None], dtype=dtype), 2)
