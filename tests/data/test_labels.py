"""Labels of any type, soft and absent labels, weights."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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
        with pytest.warns(DataConversionWarning, match="column-vector"):
            assert read_labels(y, 2).codes.tolist() == [0, 1]


def test_classes_known_beforehand():
    labels = read_labels(["a", "a"], 2, classes=["c", "a", "b"])
    assert labels.classes.tolist() == ["a", "b", "c"] and labels.likelihood.tolist() == [[1, 0, 0]] * 2
    with pytest.raises(ValueError, match="'d'"):
        read_labels(["a", "d"], 2, classes=["a", "b"])
    assert read_labels(np.array([[0.5, 0.5]]), 1, classes=["b", "a"]).classes.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="2 label columns"):
        read_labels(pd.DataFrame({"a": [1.0], "b": [0.0]}), 1, classes=["a", "b", "c"])


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


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean", "int64[pyarrow]", object])
@pytest.mark.parametrize("made", [pd.array, pd.Series, pd.Index])
def test_a_gap_among_the_weights_of_pandas_is_named(made, dtype):
    assert read_weights(made([True, True], dtype=dtype), 2).tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="sample_weight"):
        read_weights(made([True, None], dtype=dtype), 2)
