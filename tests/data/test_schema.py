"""The schema survives JSON, and refuses what is not one."""

import json
import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from mixent.data import Column, Schema, integers_back, read_features, to_frame

SCHEMA = Schema(
    (
        Column("size", "continuous"),
        Column("text", "categorical", ("1", "a", "é")),
        Column("count", "integer"),
        Column("whole", "categorical", (1, 2)),
        Column("part", "categorical", (0.5, 1.0)),
        Column("new", "boolean", (False, True)),
    ),
    named=True,
)


def test_positions_names_and_sizes():
    assert SCHEMA.continuous == (0, 2) and SCHEMA.categorical == (1, 3, 4, 5)
    assert SCHEMA.names == ("size", "text", "count", "whole", "part", "new") and SCHEMA.sizes == (3, 2, 2, 2)


def _types(schema):
    return [[type(value) for value in column.categories] for column in schema.columns]


def test_json_round_trip_keeps_types():
    back = Schema.from_json(json.loads(json.dumps(SCHEMA.to_json())))
    assert back == SCHEMA and _types(back) == _types(SCHEMA)
    assert pickle.loads(pickle.dumps(SCHEMA)) == SCHEMA


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.text(), min_size=1, unique=True)
    | st.lists(st.integers(), min_size=1, unique=True)
    | st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, unique=True)
)
def test_json_round_trip_of_any_categories(categories):
    schema = Schema((Column("c", "categorical", tuple(sorted(categories))),), named=False)
    back = Schema.from_json(json.loads(json.dumps(schema.to_json())))
    assert back == schema and _types(back) == _types(schema)


def test_a_read_schema_is_plain_json():
    frame = pd.DataFrame({"a": pd.Categorical(np.array([3, 1])), "b": np.array(["x", "y"]), "c": [1.5, 2.5]})
    schema = read_features(SimpleNamespace(), frame, reset=True).schema
    assert Schema.from_json(json.loads(json.dumps(schema.to_json()))) == schema


def test_integers_back_rounds_a_copy():
    X = np.array([[0.4, 1.6], [0.6, np.nan]])
    np.testing.assert_array_equal(integers_back(SCHEMA, X), [[0.4, 2.0], [0.6, np.nan]])
    assert X[0, 1] == 1.6


def test_to_frame_gives_the_original_values():
    X = np.array([[0.4, 1.6], [np.nan, 3.0]])
    codes = np.array([[0, 1, 1, 1], [2, 0, 0, 0]])
    frame = to_frame(SCHEMA, X, codes)
    assert list(frame.columns) == list(SCHEMA.names)
    assert frame.iloc[0].tolist() == [0.4, "1", 2, 2, 1.0, True]
    assert [str(kind) for kind in frame.dtypes] == [
        "float64",
        str(pd.Series(["a"]).dtype),
        "int64",
        "int64",
        "float64",
        "bool",
    ]


def test_to_frame_keeps_gaps():
    frame = to_frame(SCHEMA, np.full((2, 2), np.nan), np.array([[-1] * 4, [0] * 4]))
    assert frame.isna().iloc[0].all() and frame["count"].isna().all()
    assert [str(frame[name].dtype) for name in ("count", "whole", "new")] == ["Int64", "Int64", "boolean"]
    assert frame["text"].tolist()[1] == "1"


def test_a_frame_there_and_back():
    frame = pd.DataFrame({"a": [1.5, None], "b": ["x", None], "c": pd.array([1, None], "Int64"), "d": [True, False]})
    table = read_features(SimpleNamespace(), frame, reset=True)
    pd.testing.assert_frame_equal(to_frame(table.schema, table.X, table.codes), frame)
