"""Any container in, the same Table out; typing rules; what happens at predict."""

import datetime
import subprocess
import sys
from decimal import Decimal
from types import SimpleNamespace

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mixent.data import few_numbers, names_out, problems, read_features
from mixent.data.checks import flagged

ROWS = [[1.5, 3, "a", True], [None, 4, "b", None], [2.5, None, "a", False], [3.5, 7, None, True]]
NAMES = ["p", "q", "r", "s"]
COLUMNS = {name: list(values) for name, values in zip(NAMES, zip(*ROWS))}

CONTAINERS = {
    "list": lambda: ROWS,
    "tuple": lambda: tuple(map(tuple, ROWS)),
    "object array": lambda: np.array(ROWS, dtype=object),
    "masked array": lambda: np.ma.masked_array(
        np.array([[0 if v is None else v for v in row] for row in ROWS], dtype=object),
        [[v is None for v in row] for row in ROWS],
    ),
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas object": lambda: pd.DataFrame(COLUMNS, dtype=object),
    "pandas nullable": lambda: pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas category": lambda: pd.DataFrame(COLUMNS).astype({"r": "category"}),
    "pandas arrow": lambda: pa.table(COLUMNS).to_pandas(types_mapper=pd.ArrowDtype),
    "pandas int names": lambda: pd.DataFrame(ROWS),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars categorical": lambda: pl.DataFrame(COLUMNS).with_columns(pl.col("r").cast(pl.Categorical)),
    "polars enum": lambda: pl.DataFrame(COLUMNS).with_columns(pl.col("r").cast(pl.Enum(["b", "a"]))),
    "pyarrow": lambda: pa.table(COLUMNS),
    "pyarrow batch": lambda: pa.RecordBatch.from_pydict(COLUMNS),
    "narwhals": lambda: nw.from_native(pl.DataFrame(COLUMNS)),
    "pyarrow dictionary": lambda: pa.table({**COLUMNS, "r": pa.array(COLUMNS["r"]).dictionary_encode()}),
}


def fit(X, **options):
    model = SimpleNamespace()
    table = read_features(model, X, reset=True, **options)
    model.schema_ = table.schema
    return model, table


def predict(model, X, **options):
    return read_features(model, X, reset=False, **options)


def kinds(table):
    return [column.kind for column in table.schema.columns]


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_gives_the_same_table(container):
    X = CONTAINERS[container]()
    model, table = fit(X)
    for read in (table, predict(model, X)):
        np.testing.assert_array_equal(read.X, [[1.5, 3], [np.nan, 4], [2.5, np.nan], [3.5, 7]])
        assert read.X.dtype == np.float64 and read.codes.dtype == np.int32
        assert read.codes.tolist() == [[0, 1], [1, -1], [0, 0], [-1, 1]]
    assert kinds(table) == ["continuous", "integer", "categorical", "boolean"]
    assert [c.categories for c in table.schema.columns] == [(), (), ("a", "b"), (False, True)]
    assert model.n_features_in_ == 4 and table.n_rows == 4
    named = hasattr(X, "columns") and container != "pandas int names"
    assert table.schema.named is named
    assert list(getattr(model, "feature_names_in_", [])) == (NAMES if named else [])
    assert (table.schema.names == tuple(NAMES)) is named


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.int64, np.uint8, np.longdouble])
def test_numeric_arrays_become_float64(dtype):
    _, table = fit(np.arange(6).reshape(3, 2).astype(dtype))
    assert table.X.dtype == np.float64 and table.X.tolist() == [[0, 1], [2, 3], [4, 5]] and table.codes is None
    assert set(kinds(table)) == {"integer" if np.dtype(dtype).kind in "iu" else "continuous"}


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_float64_array_is_not_copied(order):
    X = np.array(np.random.default_rng(0).normal(size=(20, 3)), order=order)
    X[3, 1] = np.nan
    X.flags.writeable = False
    model, table = fit(X)
    assert np.shares_memory(table.X, X) and np.shares_memory(predict(model, X).X, X)
    assert table.X.shape == X.shape


def test_importing_tables_brings_no_table_library():
    code = (
        "import sys, sklearn.utils.multiclass, scipy.sparse; before = set(sys.modules); import mixent.data;"
        "new = {m.split('.')[0] for m in set(sys.modules) - before};"
        "print(new & {'narwhals','pandas','polars','pyarrow','matplotlib','rich','typer'})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# ---- typing


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1.0, 2.0, None], "integer"),
        ([1.0, 2.5, None], "continuous"),
        ([1.0, 2.0, 3.0], "continuous"),
        ([1, 2, 3], "integer"),
        ([1, 2, 1e100], "continuous"),
        ([1, 2, 10**30], "continuous"),
        ([Decimal("1.5"), 2, None], "continuous"),
        ([True, False, None], "boolean"),
        ([True, 2, None], "integer"),
        (["a", "", None], "categorical"),
        (["1", "2", None], "integer"),
        (["01", "2", None], "categorical"),
    ],
)
def test_kind_of_a_column(values, kind):
    _, table = fit(pd.DataFrame({"c": pd.Series(values, dtype=object)}))
    assert kinds(table) == [kind]


def test_whole_floats_with_gaps_are_integers_in_every_float_container():
    values = [1.0, float("nan"), 3.0]
    for X in (np.array([values]).T, pd.DataFrame({"c": values}), pl.DataFrame({"c": values}), pa.table({"c": values})):
        assert kinds(fit(X)[1]) == ["integer"]


def test_a_late_fraction_or_gap_is_seen():
    values = np.arange(5000.0)
    values[4000] = np.nan
    assert kinds(fit(values[:, None])[1]) == ["integer"]
    values[4500] = 0.5
    assert kinds(fit(values[:, None])[1]) == ["continuous"]


def test_bool_and_text_arrays():
    _, table = fit(np.array([[True, False], [True, True]]))
    assert kinds(table) == ["boolean", "boolean"] and table.codes.tolist() == [[1, 0], [1, 1]]
    assert table.X.shape == (2, 0) and table.n_rows == 2
    _, table = fit(np.array([["x", "y1"], [" ", "y2"]]))
    assert table.codes.tolist() == [[0, 0], [-1, 1]]


@pytest.mark.parametrize("categorical", [["c", 1], [0, "d"], np.array([0, 1]), [-3, -2], ("c", "d")])
def test_listed_columns_are_categorical(categorical):
    frame = pd.DataFrame({"c": [3.0, np.nan, 1.0], "d": [0.5, 0.25, 0.5], "e": [1.5, 2.5, 3.5]})
    model, table = fit(frame, categorical=categorical)
    assert [c.categories for c in table.schema.columns] == [(1, 3), (0.25, 0.5), ()]
    assert table.codes.tolist() == [[1, 1], [-1, 0], [0, 1]] and table.X.tolist() == [[1.5], [2.5], [3.5]]
    assert predict(model, frame).codes.tolist() == table.codes.tolist()
    with pytest.warns(UserWarning, match="valid feature names"):
        assert predict(model, frame.to_numpy()).codes.tolist() == table.codes.tolist()


def test_declared_categories_of_numbers_stay_categories():
    _, table = fit(pd.DataFrame({"c": pd.Categorical([10, 20, None, 10])}))
    assert table.schema.columns[0].categories == (10, 20) and table.codes.ravel().tolist() == [0, 1, -1, 0]


def test_masked_numbers_are_missing():
    _, table = fit(np.ma.masked_array([[1.5], [7.0]], [[False], [True]]))
    np.testing.assert_array_equal(table.X, [[1.5], [np.nan]])


def test_names_out():
    _, table = fit(np.ones((2, 2)) * [[1.0, 2.5], [3.0, 4.5]])
    assert names_out(table.schema).tolist() == ["x0", "x1"]


# ---- predict


@pytest.fixture
def mixed():
    return fit(pd.DataFrame({"size": [1.5, 2.5, 3.5], "shape": ["round", "long", "oval"], "new": [True, False, True]}))[
        0
    ]


def frame_with(**changes):
    return pd.DataFrame({"size": [1.0, 2.0], "shape": ["long", "oval"], "new": [True, True], **changes})


def test_missing_categories_do_not_warn(mixed):
    assert predict(mixed, frame_with(shape=["", None])).codes[:, 0].tolist() == [-1, -1]
    assert np.isnan(predict(mixed, frame_with(size=[None, None])).X).all()
    assert predict(mixed, pl.DataFrame(frame_with(shape=[None, None]))).codes[:, 0].tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("fitted", "coming", "codes"),
    [
        (["1", "2", "A"], [2, 1], [1, 0]),  # a column of a file read as text once, as numbers the next time
        (["1.0", "2.5", "A"], [2.5, 1.0], [1, 0]),
        (["True", "maybe"], [True, True], [0, 0]),
        ([True, False, None], ["true", "False"], [1, 0]),
        ([True, False, None], [1, 0], [1, 0]),
    ],
)
def test_the_same_category_in_another_type(fitted, coming, codes):
    model, _ = fit(pd.DataFrame({"c": fitted}))
    assert predict(model, pd.DataFrame({"c": coming})).codes.ravel().tolist() == codes


def test_numbers_at_fit_text_of_the_same_numbers_later_for_listed_columns():
    model, _ = fit(pd.DataFrame({"c": [1, 2, 3]}), categorical=["c"])
    assert predict(model, pd.DataFrame({"c": ["3", "1"]})).codes.ravel().tolist() == [2, 0]


def test_text_that_only_looks_alike_is_unseen():
    for fitted, coming in (("01", "1"), ("1", "01"), ("1", "1.0"), ("A", "a"), ("a", "a ")):
        model, _ = fit(pd.DataFrame({"c": [fitted, "zz"]}))
        with pytest.warns(UserWarning, match="not seen"):
            assert predict(model, pd.DataFrame({"c": [coming, "zz"]})).codes.ravel().tolist() == [-1, 1]


# ---- unseen categories that are to be told apart


def test_new_categories_are_one_code_after_the_others(mixed):
    """Whatever they are called, in every column by itself; nothing warns, and nothing else changes."""
    frame = frame_with(shape=["flat", "oval"], new=["maybe", None])
    table = predict(mixed, frame, new=True)
    assert table.codes.tolist() == [[3, 2], [1, -1]] and table.codes.dtype == np.int32
    many = pd.DataFrame({"size": [1.0] * 3, "shape": ["v", "w", "long"], "new": [True] * 3})
    assert predict(mixed, many, new=True).codes[:, 0].tolist() == [3, 3, 0]
    known = frame_with(shape=["long", ""])
    for new in (False, True):
        read = predict(mixed, known, new=new)
        assert read.codes.tolist() == [[0, 1], [-1, 1]] and read.X.tolist() == [[1.0], [2.0]]
    assert table.schema == mixed.schema_  # the new ones are no category of the schema


@pytest.mark.parametrize("backend", [pd.DataFrame, pl.DataFrame, pa.table])
def test_new_categories_of_every_container(backend):
    model, _ = fit(pd.DataFrame({"c": ["a", "b", None]}))
    assert predict(model, backend({"c": ["z", None, "b"]}), new=True).codes.ravel().tolist() == [2, -1, 1]


@pytest.mark.parametrize(
    ("fitted", "coming", "codes"),
    [
        (["1", "2", "A"], [2, 7], [1, 3]),  # another type is not another category
        ([True, False, None], ["true", "perhaps"], [1, 2]),
        ([True, False, None], [1, 5], [1, 2]),
        (["a", "a", "a"], ["b", "a"], [1, 0]),
    ],
)
def test_the_same_category_in_another_type_is_not_new(fitted, coming, codes):
    model, _ = fit(pd.DataFrame({"c": fitted}))
    assert predict(model, pd.DataFrame({"c": coming}), new=True).codes.ravel().tolist() == codes


def test_new_numbers_of_a_listed_column():
    model, _ = fit(pd.DataFrame({"c": [1, 2, 3]}), categorical=["c"])
    assert predict(model, pd.DataFrame({"c": [3.0, 9.5, np.nan]}), new=True).codes.ravel().tolist() == [2, 3, -1]
    assert predict(model, pd.DataFrame({"c": ["3", "x", None]}), new=True).codes.ravel().tolist() == [2, 3, -1]


# ---- bad input at fit

GOOD = np.array([[1.5, 2.5], [3.5, 4.5]])
DATES = pd.to_datetime(["2020-01-01", "2020-01-02"])

BAD = {
    "1-D": (np.ones(3), ValueError, "Reshape your data"),
    "series": (pd.Series([1.0, 2.0]), ValueError, "2-dimensional container"),
    "scalar": (3.0, ValueError, "Expected 2D array, got scalar"),
    "3-D": (np.ones((2, 2, 2)), ValueError, "Found array with dim 3"),
    "no rows": (np.empty((0, 3)), ValueError, r"0 sample\(s\)"),
    "no columns": (np.empty((3, 0)), ValueError, r"0 feature\(s\)"),
    "frame without rows": (pd.DataFrame({"a": []}), ValueError, r"0 sample\(s\)"),
    "frame without columns": (pd.DataFrame(index=range(3)), ValueError, r"0 feature\(s\)"),
    "empty list": ([], ValueError, "Reshape your data|0 sample"),
    "complex": (GOOD + 1j, ValueError, "Complex data not supported"),
    "complex objects": (np.array([[1j], [2]], dtype=object), ValueError, "Complex data not supported: column 'x0'"),
    "complex frame": (pd.DataFrame({"a": [1j, 2]}), ValueError, "Complex data not supported: column 'a'"),
    "dict in a cell": (
        np.array([[1, {}], [2, 3]], dtype=object),
        TypeError,
        "'x1', row 0 .*argument must be .* string.* number",
    ),
    "all None": ([[None, None], [None, ""]], ValueError, "no column of X can be used: 'x0', 'x1'"),
    "polars null": (pl.DataFrame({"b": [None, None]}), ValueError, "no column of X can be used: 'b'"),
    "pyarrow null": (pa.table({"b": [None, None]}), ValueError, "no column of X can be used: 'b'"),
    "intervals": (
        pd.DataFrame({"a": pd.cut([1, 2, 3], 2)}),
        TypeError,
        "'a', row 0 holds a Interval;.*convert the column",
    ),
    "durations": (pd.DataFrame({"d": DATES - DATES[0]}), ValueError, "column 'd' holds .*Duration.*into numbers"),
    "time objects": ([[datetime.time(12)]] * 2, ValueError, "column 'x0' holds times or durations"),
    "polars lists": (pl.DataFrame({"d": [[1], [2]]}), ValueError, "column 'd' holds .*List"),
    "bytes": ([[b"a"], [b"b"]], ValueError, "column 'x0' holds bytes; decode it"),
    "byte array": (np.array([[b"a"]]), ValueError, "array of type"),
    "ragged": ([[1, 2], [3]], ValueError, "row 0 has 2 values, row 1 has 1"),
    "number among rows": ([[1, 2], 3], ValueError, "row 0 has 2 values, row 1 has 1"),
    "lazy": (pl.LazyFrame({"a": [1]}), TypeError, "lazy LazyFrame.*call .collect"),
    "repeated names": (pd.DataFrame(GOOD, columns=["a", "a"]), ValueError, "names must be unique; 'a' names 2 columns"),
    "levels": (
        pd.DataFrame(GOOD, columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])),
        ValueError,
        "several levels",
    ),
    "mixed names": (
        pd.DataFrame(GOOD, columns=["a", 1]),
        TypeError,
        "only supported if all input features have string",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_at_fit(case):
    X, error, message = BAD[case]
    with pytest.raises(error, match=message):
        fit(X)


def test_columns_named_like_attributes():
    names = ["column_names", "columns", "to_pandas", "shape", "collect_schema"]
    _, table = fit(pd.DataFrame(np.eye(5) + 0.5, columns=names))
    assert table.schema.names == tuple(names)
    assert fit(pl.DataFrame(np.eye(5) + 0.5, schema=names))[1].schema.names == tuple(names)


def test_odd_frame_types():
    _, table = fit(pa.table({"d": pa.array([Decimal("1.5"), None]), "h": pa.array([1.5, 2.0], pa.float32())}))
    np.testing.assert_array_equal(table.X, [[1.5, 1.5], [np.nan, 2.0]])
    _, table = fit(pd.DataFrame({"s": pd.arrays.SparseArray([0.0, 0.0, 1.5])}))
    assert table.X.ravel().tolist() == [0, 0, 1.5]
    with pytest.raises(ValueError, match="names"):
        fit(pa.table([[1.5], [2.5]], names=["a", "a"]))


def test_many_numbers_as_text_are_fine_when_listed():
    frame = pd.DataFrame({"zip": [f"{i:05d}" for i in range(60)]})
    assert fit(frame, categorical=["zip"])[1].schema.sizes == (60,)
    assert fit(pd.concat([frame] * 2))[1].schema.sizes == (60,)


def test_few_whole_numbers_are_found():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"code": rng.integers(1, 4, 30), "size": rng.normal(size=30), "half": [0.5, 1.0] * 15})
    frame = frame.assign(gap=[1.0, 2.0, np.nan] * 10, same=1, four=[1, 2, 3, 4, 4] * 6, word=["a", "b"] * 15)
    assert few_numbers(fit(frame)[1]) == {"code": [1, 2, 3], "gap": [1, 2]}
    assert few_numbers(fit(frame, categorical=["code"])[1]) == {"gap": [1, 2]}
    assert few_numbers(fit(frame[:9])[1]) == {}  # too few rows to tell
    late = pd.DataFrame({"late": [0, 1] * 1000 + [2, 3]})
    assert few_numbers(fit(late)[1]) == {}


# ---- problems


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (np.arange(5, 15)[::-1], True),
        (np.arange(9), False),  # too few to tell
        (2 * np.arange(10), False),
        (np.r_[np.arange(9), 0], False),
    ],
)
def test_problems_tell_a_row_number(values, told):
    found = problems(fit(pd.DataFrame({"id": values, "x": np.arange(len(values)) / 3}))[1])
    assert len(found) == told and flagged(["id", "x"], found) == ["id"] * told


# ---- properties

CELLS = st.one_of(st.none(), st.floats(-1e6, 1e6), st.integers(-(10**6), 10**6))


@settings(max_examples=40, deadline=None)
@given(arrays(np.float64, (7, 3), elements=st.floats(-1e100, 1e100) | st.just(float("nan"))))
def test_frames_and_arrays_agree(X):
    if np.isnan(X).all(axis=0).any():
        X = np.where(np.isnan(X), 0.5, X)
    names = ["a", "b", "c"]
    _, expected = fit(X)
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names), pa.table(list(X.T), names=names)):
        _, table = fit(frame)
        np.testing.assert_array_equal(table.X, X)
        assert kinds(table) == kinds(expected)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(max_size=3) | st.none(), min_size=1, max_size=20))
def test_codes_give_the_words_back(words):
    """Of a column that is listed as categorical: every text is a category, whatever it looks like."""
    words = [*words, "x"]
    model, table = fit([[word] for word in words], categorical=[0])
    categories = [*table.schema.columns[0].categories, None]
    assert categories[:-1] == sorted(categories[:-1])
    back = [categories[code] for code in table.codes[:, 0]]
    assert back == [word if word and word.strip() else None for word in words]
    np.testing.assert_array_equal(predict(model, [[word] for word in words]).codes, table.codes)


@settings(max_examples=40, deadline=None)
@given(st.lists(CELLS, min_size=1, max_size=12))
def test_number_columns_of_objects_are_numbers(values):
    values = [*values, 0.5]
    _, table = fit([[value] for value in values])
    np.testing.assert_array_equal(table.X[:, 0], [np.nan if v is None else v for v in values])
    assert kinds(table) == ["continuous"]
