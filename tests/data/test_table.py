"""A Table that has been read is as good as the user's rows: in fit, in predict, in parts, for other estimators."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from mixent.data import categorical_of, read_features, take_rows

FRAME = pd.DataFrame(
    {
        "size": [1.5, 2.5, np.nan, 4.0, 5.5, 6.0],
        "shape": ["round", "oval", None, "flat", "round", "oval"],
        "code": [1, 2, 3, 1, 2, 3],
        "ripe": [True, False, True, True, False, True],
    }
)
PARTS = {
    "some": np.array([0, 1, 4, 5]),
    "one category": np.array([0, 4]),
    "slice": slice(1, 5),
    "twice": np.array([1, 1, 3]),
}
CONTAINERS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "array": lambda frame: frame.to_numpy(dtype=object),
    "list": lambda frame: frame.astype(object).where(frame.notna(), None).values.tolist(),
}


def fitted(X, **options):
    model = SimpleNamespace()
    table = read_features(model, X, reset=True, **options)
    model.schema_ = table.schema
    return model, table


def assert_same(a, b):
    np.testing.assert_array_equal(a.X, b.X)
    np.testing.assert_array_equal(a.codes, b.codes)
    assert [(c.name, c.categories) for c in a.schema.columns] == [(c.name, c.categories) for c in b.schema.columns]
    assert a.schema.named == b.schema.named


@pytest.mark.parametrize("categorical", ["auto", ["code"]])
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("part", PARTS)
def test_rows_of_a_table_are_those_rows_read(part, container, categorical):
    X, rows = CONTAINERS[container](FRAME), PARTS[part]
    if categorical != "auto" and container in ("array", "list"):
        categorical = [2]
    whole = read_features(SimpleNamespace(), X, reset=True, categorical=categorical)
    positions = np.arange(6)[rows]
    direct, there = fitted(take_rows(X, positions), categorical=categorical)
    handed, table = fitted(whole.take(rows), categorical=categorical)
    assert_same(table, there)
    assert vars(handed).keys() == vars(direct).keys() and handed.n_features_in_ == direct.n_features_in_


@pytest.mark.parametrize("part", PARTS)
def test_a_fitted_estimator_reads_a_table_as_it_reads_the_rows(part):
    model, _ = fitted(FRAME.iloc[:2])
    whole = read_features(SimpleNamespace(), FRAME, reset=True)
    rows = np.arange(6)[PARTS[part]]
    strange = FRAME["shape"].iloc[rows].eq("flat").any()
    for X in (FRAME.iloc[rows], whole.take(rows)):
        if strange and isinstance(X, pd.DataFrame):  # whoever read a Table has been told
            with pytest.warns(UserWarning, match="not seen"):
                found = read_features(model, X, reset=False)
        else:
            found = read_features(model, X, reset=False)
        assert found.schema is model.schema_ and found.unseen == strange
        np.testing.assert_array_equal(found.X, FRAME[["size", "code"]].to_numpy()[rows])
    codes = {"oval": 0, "round": 1}
    assert found.codes[:, 0].tolist() == [codes.get(value, -1) for value in FRAME["shape"].iloc[rows]]
    assert read_features(model, whole.take(rows), reset=False, new=True).codes[:, 0].tolist() == [
        -1 if pd.isna(value) else codes.get(value, 2) for value in FRAME["shape"].iloc[rows]
    ]


def test_the_same_table_comes_back():
    model, table = fitted(FRAME)
    assert read_features(SimpleNamespace(), table, reset=True) is table
    assert read_features(model, table, reset=False) is table


def test_the_rows_as_given():
    whole = read_features(SimpleNamespace(), FRAME, reset=True)
    assert whole.given is FRAME
    pd.testing.assert_frame_equal(whole.take(slice(1, 5)).take(np.array([3, 0])).given, FRAME.iloc[[4, 1]])
    X = FRAME[["size", "code"]].to_numpy()
    assert read_features(SimpleNamespace(), X, reset=True).given is X
    rows = [[1.0, "a"], [2.0, "b"], [3.0, "a"]]
    assert read_features(SimpleNamespace(), rows, reset=True).take(np.array([2, 1])).given == [rows[2], rows[1]]


def test_other_categories_of_numbers_are_read_from_the_rows_as_given():
    auto = read_features(SimpleNamespace(), FRAME, reset=True)
    _, table = fitted(auto.take(slice(0, 4)), categorical=["code"])
    assert table.schema.columns[2].categories == (1, 2, 3) and table.X.shape == (4, 1)
    _, back = fitted(table, categorical="auto")
    assert back.schema.columns[2].kind == "integer"
    assert categorical_of(table) == {2} and categorical_of(FRAME) == "auto"


def test_values_unseen_by_one_are_known_to_another():
    few, many = fitted(FRAME.iloc[:2])[0], fitted(FRAME)[0]
    with pytest.warns(UserWarning, match="not seen"):
        table = read_features(few, FRAME, reset=False)
    assert table.codes[3, 0] == -1
    assert read_features(many, table, reset=False).codes[3, 0] == 0  # flat, round, oval: sorted
    assert read_features(few, table, reset=False, new=True).codes[3, 0] == 2


def test_an_estimator_without_names_forgets_earlier_ones():
    model, _ = fitted(FRAME)
    read_features(model, read_features(SimpleNamespace(), FRAME.to_numpy(dtype=object), reset=True), reset=True)
    assert not hasattr(model, "feature_names_in_") and model.n_features_in_ == 4
