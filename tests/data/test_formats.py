"""Real tables at the door: every rule, the same result as after cleaning by hand, formats kept from fit to predict."""

import datetime
import json
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import mixent
from mixent.data import DataWarning, Schema, read_features, read_labels, to_frame
from mixent.data.dates import DateText, date_parts
from mixent.data.formats import PLAIN, Ignored
from mixent.data.numbers import NumberText

from ..subjects import SEQUENCES, SUBJECTS, Y
from .test_features import fit, predict

nan = np.nan
EPOCH = datetime.date(1970, 1, 1)


def days(*dates):
    return [nan if date is None else (datetime.date.fromisoformat(date) - EPOCH).days for date in dates]


def many(*values, times=20):
    return list(values) * times


# --- text that is numbers -----------------------------------------------------------------------------------------

NUMBERS = {
    "plain": (["1", "2.5", "-3", "1e2", None], [1, 2.5, -3, 100, nan]),
    "blanks around": ([" 1 ", "2"], [1, 2]),
    "markers": (["1", "N/A", "n/a", "None", "NULL", "#N/A", "-", ".", "?", "<NA>"], [1] + [nan] * 9),
    "money": (["$1,234", "$12", "-$3.50", "($7)", "$1,000,000"], [1234, 12, -3.5, -7, 1e6]),
    "some money without its sign": (["$1,234.5", "12"], [1234.5, 12]),
    "euros after the number": (["1.234,50 €", "12,00 €"], [1234.5, 12]),
    "a code of a currency": (["USD 5.25", "7 USD"], [5.25, 7]),
    "percent": (["45 %", "12.5%"], [45, 12.5]),
    "decimal comma": (["1,5", "2,25", "3"], [1.5, 2.25, 3]),
    "thousands and decimals": (["1,234.56", "7.5"], [1234.56, 7.5]),
    "thousands in groups": (["1,234,567", "1,234"], [1234567, 1234]),
    "thousands of points": (["1.234.567", "1.234"], [1234567, 1234]),
    "thousands of blanks": (["1 234,5", "12 345 678,25"], [1234.5, 12345678.25]),
    "narrow blanks": (["1\u202f234", "5\u00a0000"], [1234, 5000]),
    "apostrophes": (["1'234.50", "7"], [1234.5, 7]),
    "a point before three digits": (["1.234", "5.678"], [1.234, 5.678]),
    "pounds before three digits": (["£1,234", "£5,678"], [1234, 5678]),
    "a true minus sign": (["\u22125", "5"], [-5, 5]),
    "numbers and text": ([*many(1, 2.5), "3"], [*many(1, 2.5), 3]),
    "95 %": ([*many("1.5", times=19), "soon"], [*many(1.5, times=19), nan]),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_text_that_is_numbers(case):
    """In fit and in predict, and after the model has been stored as JSON."""
    texts, values = NUMBERS[case]
    frame = pd.DataFrame({"c": pd.Series(texts, dtype=object)})
    model, table = fit(frame)
    np.testing.assert_array_equal(table.X[:, 0], values)
    assert len(table.schema.columns) == 1 and table.notes[0].startswith(("text is read", "column 'c' has values"))
    model.schema_ = Schema.from_json(json.loads(json.dumps(table.schema.to_json())))
    assert model.schema_ == table.schema
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(predict(model, frame[::-1]).X[:, 0], values[::-1])


CATEGORIES = {
    "codes with leading zeros": many("007", "012", "112"),
    "below 95 %": [*many("1.5", times=18), "soon", "late"],
    "two currencies": many("$1", "€1"),
    "percent and shares": many("45%", "0.45"),
    "versions": many("1.2.3.4", "1.10"),
    "words": many("a", "b"),
    "groups of two digits": many("1,23,456", "2"),
}


@pytest.mark.parametrize("case", CATEGORIES)
def test_text_that_is_no_number(case):
    _, table = fit(pd.DataFrame({"c": CATEGORIES[case]}))
    assert table.schema.columns[0].categories == tuple(sorted(set(CATEGORIES[case]))) and table.notes == ()


@pytest.mark.parametrize("texts", [many("€1,234", "€5,678"), many("1,234", "5,678"), many("1/2/2024", "3/4/2024")])
def test_what_the_column_leaves_open_stays_categories(texts):
    _, table = fit(pd.DataFrame({"c": texts}))
    assert table.schema.sizes == (2,) and len(table.notes) == 1


def test_the_whole_column_decides_where_one_value_does_not():
    euros = [f"€{v:,}" for v in range(900, 2000, 20)]  # €900, €920, ..., €1,980
    assert fit(pd.DataFrame({"c": euros}))[1].X[:, 0].tolist() == list(range(900, 2000, 20))
    assert fit(pd.DataFrame({"c": ["€1,234", "€1,5"]}))[1].X[:, 0].tolist() == [1.234, 1.5]
    dates = fit(pd.DataFrame({"c": ["1/2/2024", "31/1/2024"]}))[1]
    assert dates.X[:, 0].tolist() == days("2024-02-01", "2024-01-31")
    dates = fit(pd.DataFrame({"c": ["1/2/2024", "1/31/2024"]}))[1]
    assert dates.X[:, 0].tolist() == days("2024-01-02", "2024-01-31")


def test_a_value_that_recurs_keeps_an_indicator():
    cells = pd.DataFrame({"c": [*map(str, range(95)), "soon", "soon", "late", None, "-"]})
    model, table = fit(cells)
    assert [c.name for c in table.schema.columns] == ["c", "c = soon"] and model.n_features_in_ == 1
    assert table.codes[:, 0].tolist() == [0] * 95 + [1, 1, 0, -1, 0]
    assert np.isnan(table.X[95:, 0]).all() and table.X[:95, 0].tolist() == list(range(95))
    new = predict(model, pd.DataFrame({"c": ["soon", "7", None]}))
    assert new.codes[:, 0].tolist() == [1, 0, -1] and np.isnan(new.X[[0, 2], 0]).all() and new.X[1, 0] == 7


def test_listed_columns_and_declared_categories_are_as_written():
    texts = many("1", "2", "NA", "$3")
    for frame, options in (
        (pd.DataFrame({"c": texts}), {"categorical": ["c"]}),
        (pd.DataFrame({"c": pd.Categorical(texts)}), {}),
        (pl.DataFrame({"c": texts}, schema={"c": pl.Categorical}), {}),
    ):
        model, table = fit(frame, **options)
        assert table.schema.columns[0].categories == ("$3", "1", "2", "NA") and table.notes == ()
        assert predict(model, frame).codes.tolist() == table.codes.tolist()


# --- dates --------------------------------------------------------------------------------------------------------

ISO = ["2024-01-31", None, "1969-12-31", "2000-02-29"]
TYPED = [None if text is None else datetime.date.fromisoformat(text) for text in ISO]
DATES = {
    "ISO": ISO,
    "points": ["31.1.2024", None, "31.12.1969", "29.2.2000"],
    "month first": ["1/31/2024", "-", "12/31/1969", "2/29/2000"],
    "day first": ["31/01/2024", "N/A", "31/12/1969", "29/02/2000"],
    "two digits of the year": ["31.1.24", None, "31.12.69", "29.2.00"],
    "with times": ["2024-01-31T00:00:00", None, "1969-12-31 00:00", "2000-02-29T02:00:00+02:00"],
    "objects": TYPED,
    "datetime objects": [None if d is None else datetime.datetime(d.year, d.month, d.day) for d in TYPED],
    "numpy objects": [None if d is None else np.datetime64(d) for d in TYPED],
}


@pytest.mark.parametrize("case", DATES)
def test_dates_are_days_and_parts_of_year_and_week(case):
    frame = pd.DataFrame({"d": pd.Series(DATES[case], dtype=object)})
    model, table = fit(frame)
    expected = np.array(days(*ISO))
    assert model.n_features_in_ == 1 and [c.name[:3] for c in table.schema.columns] == ["d ("] * 5
    np.testing.assert_array_equal(table.X[:, 0], expected)
    np.testing.assert_allclose(table.X, np.column_stack(date_parts(expected)), rtol=1e-12)
    np.testing.assert_array_equal(predict(model, frame).X, table.X)
    assert Schema.from_json(json.loads(json.dumps(table.schema.to_json()))) == table.schema


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"d": pd.to_datetime(ISO)}),
        pd.DataFrame({"d": pd.to_datetime(ISO, utc=True)}),
        pd.DataFrame({"d": pd.to_datetime(ISO).astype("datetime64[s]")}),
        pl.DataFrame({"d": TYPED}),
        pl.DataFrame({"d": TYPED}).with_columns(pl.col("d").cast(pl.Datetime("ms"))),
        pa.table({"d": TYPED}),
        np.array(ISO, dtype="M8[D]")[:, None],
    ],
)
def test_dates_of_every_container_are_the_same(frame):
    model, table = fit(frame)
    np.testing.assert_array_equal(table.X[:, 0], days(*ISO))
    assert table.notes == () and isinstance(table.schema.inputs[0].format, DateText)
    text = ISO if table.schema.named else [[value] for value in ISO]
    again = predict(model, pd.DataFrame({"d": text}) if table.schema.named else text)
    np.testing.assert_array_equal(again.X, table.X)


@given(st.datetimes(datetime.datetime(1583, 1, 1), datetime.datetime(2400, 1, 1)))
def test_the_parts_are_those_of_the_calendar(moment):
    length = 366 if (moment.year % 4 == 0 and moment.year % 100 != 0) or moment.year % 400 == 0 else 365
    here = (moment - datetime.datetime(1970, 1, 1)) / datetime.timedelta(days=1)
    year = (moment - datetime.datetime(moment.year, 1, 1)) / datetime.timedelta(days=length)
    week = (moment.weekday() + (here - np.floor(here))) / 7
    parts = np.array(date_parts(np.array([here, nan])))
    turns = 2 * np.pi * np.array([year, year, week, week])
    expected = [here, np.sin(turns[0]), np.cos(turns[1]), np.sin(turns[2]), np.cos(turns[3])]
    np.testing.assert_allclose(parts[:, 0], expected, atol=1e-7)
    assert np.isnan(parts[:, 1]).all()


# --- other columns ------------------------------------------------------------------------------------------------


def test_columns_without_values_are_ignored_and_come_back_where_they_have_some():
    frame = pd.DataFrame({"a": [1.5, 2.5, 3.5, 4.5], "b": [nan, nan, 7.0, 8.0], "c": [None, None, "u", "v"]})
    whole = read_features(SimpleNamespace(), frame, reset=True)
    model = SimpleNamespace()
    part = read_features(model, whole.take(np.arange(2)), reset=True)
    model.schema_ = part.schema
    assert part.schema.names == ("a",) and part.schema.ignored == ("b", "c") and model.n_features_in_ == 3
    assert len(part.notes) == 2 and part.codes is None
    assert read_features(model, whole, reset=False).X.tolist() == frame[["a"]].to_numpy().tolist()
    later = read_features(SimpleNamespace(), whole.take(np.arange(2, 4)), reset=True)
    assert later.schema.names == ("a", "b", "c") and later.notes == ()
    direct, table = fit(frame[:2])
    assert table.schema == part.schema and predict(direct, frame).X.tolist() == frame[["a"]].to_numpy().tolist()
    model, table = fit(np.array([[1.5, nan], [2, nan]]))
    assert table.X.tolist() == [[1.5], [2.0]] and model.n_features_in_ == 2
    assert predict(model, np.array([[1.5, 7.0]])).X.tolist() == [[1.5]]


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e151, -1e300])
def test_infinite_and_huge_values_are_missing(value):
    X = np.array([[1.5, 1.0], [value, 2.0], [2.5, 3.0]])
    before = X.copy()
    for given_as in (X, pd.DataFrame(X), pl.DataFrame(X), X.astype(object), X.tolist()):
        model, table = fit(given_as)
        np.testing.assert_array_equal(table.X, [[1.5, 1], [nan, 2], [2.5, 3]])
        assert len(table.notes) == 1 and table.schema.columns[0].kind == "continuous"
        with pytest.warns(DataWarning):
            np.testing.assert_array_equal(predict(model, given_as).X, table.X)
    np.testing.assert_array_equal(X, before)  # the user's array is not changed


def test_identifiers_are_ignored_unless_listed():
    names = pd.DataFrame({"id": [f"u{i}" for i in range(20)], "x": np.arange(20) / 3})
    assert fit(names)[1].schema.ignored == ("id",) and len(fit(names)[1].notes) == 1
    assert fit(names, categorical=["id"])[1].schema.sizes == (20,)
    assert fit(names[:19])[1].schema.sizes == (19,)  # too few to be sure


def test_rare_categories_are_pooled():
    words = [f"w{i:04d}" for i in range(1001)] * 2 + ["w0007"]
    model, table = fit(pd.DataFrame({"c": words}))
    categories = table.schema.columns[0].categories
    assert len(categories) == 1000 and categories[-1] == "(other)" and "w0007" in categories and len(table.notes) == 1
    assert categories[:-1] == tuple(f"w{i:04d}" for i in range(999))
    new = predict(model, pd.DataFrame({"c": ["w1000", "w0000", "never", None]}))  # no note: it is one of the others
    assert new.codes[:, 0].tolist() == [999, 0, 999, -1]
    codes = fit(pd.DataFrame({"c": list(range(1001)) * 2}), categorical=["c"])[1]
    assert len(codes.schema.columns[0].categories) == 1000 and codes.codes.max() == 999


def test_spellings_are_pointed_out():
    assert len(fit(pd.DataFrame({"c": many("Yes", "yes ", "no")}))[1].notes) == 1
    assert fit(pd.DataFrame({"c": many("Yes", "no")}))[1].notes == ()


def test_text_and_numbers_in_one_column():
    model, table = fit(pd.DataFrame({"c": pd.Series(many("u", 1, 2.5, True), dtype=object)}))
    assert table.schema.columns[0].categories == ("1", "2.5", "True", "u") and table.notes == ()
    new = pd.DataFrame({"c": pd.Series([1.0, True, "1", 2.5, "u"], dtype=object)})
    assert predict(model, new).codes[:, 0].tolist() == [0, 2, 0, 1, 3]


def test_labels_of_one_row_and_minus_one():
    assert read_labels([0, 0, 1, 1, 2], 5).notes and not read_labels([0, 1, 2], 3).notes
    assert read_labels([0, 0, -1, -1, 1, 1], 6).notes and not read_labels([-1, 1, 1, -1], 4).notes
    assert not read_labels([0, 0, 1], 3, classes=[0, 1]).notes


def test_damaged_formats_are_refused():
    table = fit(pd.DataFrame({"d": ISO, "p": ["$1", "$2", "$3", "$4"], "e": [None] * 4}))[1]
    whole = table.schema.to_json()
    for i, change in (
        (0, {"format": {"kind": "dates", "order": "dym"}}),
        (0, {"format": {"kind": "tables"}}),
        (0, {"columns": [0]}),
        (1, {"format": {"kind": "numbers", "decimal": ","}, "columns": [7]}),
        (1, {"format": {"kind": "numbers", "decimal": ";"}}),
        (1, {"format": {"kind": "numbers", "sign": "."}}),
        (2, {"format": {"kind": "ignored", "reason": "dull"}}),
        (2, {"name": 3}),
    ):
        damaged = json.loads(json.dumps(whole))
        damaged["inputs"][i] |= change
        with pytest.raises(ValueError, match="not a table"):
            Schema.from_json(damaged)


# --- the same as after cleaning by hand -----------------------------------------------------------------------------

RNG = np.random.default_rng(0)
N = len(Y)
CLASS = np.unique(Y, return_inverse=True)[1]
PRICE = (1000 + 300 * CLASS + 100 * RNG.random(N)).round(2)
DAY = pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 300, N), "D")
SIZE = RNG.normal(size=N) + CLASS
WORD = np.array(["red", "blue"])[(CLASS + RNG.integers(0, 2, N)) % 2]
HOLES = np.arange(N) % 15 == 0
CLEAN = pd.DataFrame({"price": np.where(HOLES, nan, PRICE), "size": np.where(HOLES, nan, SIZE), "word": WORD})
PARTS = date_parts(np.array((DAY - pd.Timestamp("1970-01-01")).days, float))
CLEAN = CLEAN.assign(**{f"day{i}": part for i, part in enumerate(PARTS)})
DIRTY = pd.DataFrame(
    {
        "price": np.where(HOLES, "N/A", [f"${v:,.2f}" for v in PRICE]),
        "size": np.where(HOLES, np.inf, SIZE),
        "empty": nan,
        "word": WORD,
        "day": DAY.strftime("%d.%m.%Y"),
        "id": [f"u{i}" for i in range(N)],
    }
)


@pytest.mark.parametrize("name", ["MixtureClassifier", "MaxEntClassifier", "TunedClassifier", "ParzenClassifier"])
def test_predictions_are_those_of_the_table_cleaned_by_hand(name):
    """Columns that depend on the others only by their position give the same model."""
    dirty, clean = (clone(SUBJECTS[name].model) for _ in range(2))
    with pytest.warns(DataWarning) as seen:
        dirty.fit(DIRTY, Y)
    assert len(seen) == 1 and len(dirty.notes_) == 5 and list(dirty.feature_names_in_) == list(DIRTY.columns)
    clean.fit(CLEAN[["price", "size", "word", *(f"day{i}" for i in range(5))]], Y)
    with pytest.warns(DataWarning):
        np.testing.assert_allclose(dirty.predict_proba(DIRTY), clean.predict_proba(CLEAN), rtol=1e-9, atol=1e-12)


OTHERS = ("Fuser", "kernel matrix", "boosting of naive Bayes", "stack of naive Bayes", "stack of fitted ones")


@pytest.mark.parametrize("name", [name for name in SUBJECTS if name not in OTHERS])
def test_every_estimator_fits_and_predicts_real_tables(name):
    one = SUBJECTS[name]
    X = DIRTY
    if one.X is SEQUENCES:  # a step is missing in all rows
        X = np.insert(SEQUENCES, 2, nan, axis=1)
        X[3, 0] = np.inf
    model = clone(one.model)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model.fit(X, Y if one.takes_y else None)
    assert len([w for w in seen if issubclass(w.category, DataWarning)]) == 1 and model.notes_
    assert model.n_features_in_ == np.shape(X)[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isfinite(one.said(model, X)).all()
        with mixent.config_context(strict=True), pytest.raises(ValueError, match="strict"):
            clone(one.model).fit(X, Y if one.takes_y else None)


def test_tables_come_back_in_their_own_form():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(SUBJECTS["MixtureClassifier"].model).fit(DIRTY, Y)
        frame = DIRTY.assign(day=np.where(HOLES, None, DIRTY["day"]))
        filled = model.impute(frame)
    assert list(filled.columns) == list(DIRTY.columns) and filled["id"].tolist() == DIRTY["id"].tolist()
    np.testing.assert_array_equal(filled["price"][~HOLES], PRICE[~HOLES])
    assert filled["price"].notna().all() and filled["empty"].isna().all() and np.isfinite(filled["size"]).all()
    assert (filled["day"].to_numpy()[~HOLES] == DAY.to_numpy()[~HOLES]).all() and filled["day"].notna().all()
    drawn = model.sample(3, random_state=0)[0]
    assert list(drawn.columns) == list(DIRTY.columns) and drawn["day"].dtype.kind == "M"
    table = read_features(SimpleNamespace(), pd.DataFrame({"d": pd.to_datetime(ISO)}), reset=True)
    assert to_frame(table.schema, table.X)["d"].isna().tolist() == [False, True, False, False]


def test_formats_are_kept_in_files(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(SUBJECTS["MixtureClassifier"].model).fit(DIRTY, Y)
        mixent.save(model, tmp_path / "m.mixent")
        again = mixent.load(tmp_path / "m.mixent")
        np.testing.assert_array_equal(again.predict_proba(DIRTY), model.predict_proba(DIRTY))
    assert again.schema_ == model.schema_ and again.notes_ == model.notes_
    formats = [given.format for given in again.schema_.inputs]
    assert formats == [
        NumberText(".", ",", "$"),
        PLAIN,
        Ignored("empty"),
        PLAIN,
        DateText("dmy"),
        Ignored("identifier"),
    ]


CELL = st.one_of(
    st.text(max_size=8),
    st.none(),
    st.sampled_from(["N/A", "-", "1,234", "$5", "1.2.2024", "12%", "0012", "inf", "1e999", "(3)", "\u00a0"]),
    st.integers(-(10**20), 10**20).map(str),
    st.floats().map(str),
    st.dates().map(str),
    st.booleans(),
    st.floats(),
    st.dates(),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(CELL, min_size=1, max_size=30), st.lists(CELL, min_size=1, max_size=8))
@example(["1,234"] * 3, ["1.5"])
@example([datetime.date(1, 1, 1), "x"], [datetime.date(9999, 12, 31)])
def test_no_column_of_text_is_refused(values, others):
    """Neither in fit nor in predict; the file of the schema gives the same table."""
    frame = pd.DataFrame({"x": np.arange(len(values)) / 3, "c": pd.Series(values, dtype=object)})
    model, table = fit(frame)
    model.schema_ = Schema.from_json(json.loads(json.dumps(table.schema.to_json())))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = predict(model, frame)
        predict(model, pd.DataFrame({"x": 0.5, "c": pd.Series(others, dtype=object)}))
    np.testing.assert_array_equal(again.X, table.X)
    np.testing.assert_array_equal(again.codes, table.codes)
    assert np.isfinite(table.X[~np.isnan(table.X)]).all()
