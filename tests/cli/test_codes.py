"""Codes, known cells and labels come through as they are written; what looks misunderstood is hinted at."""

import numpy as np
import pandas as pd
import pytest

import mixent as mx
from mixent.data import read_frame

ZIPS = ("01234", "1234", "00000")
ONE = ("--set", "n_components=1")
FIT = ("fit", "d.csv", "-t", "y", "-o", "m.mixent", "--ignore", "note", "--categorical", "zip,sex", *ONE)


@pytest.fixture
def table(mixent):
    """A file of codes, prices with two decimals, and classes + and -; returns it as text."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(60) % 2, "+", "-")
    frame = pd.DataFrame(
        {
            "zip": np.where(rng.random(60) < 0.8, np.where(y == "+", ZIPS[0], ZIPS[1]), ZIPS[2]),
            "price": [f"{value:.1f}0" for value in 40 + 5 * rng.normal(size=60)],
            "sex": rng.integers(1, 3, 60).astype(str),
            "note": ["=1+2", "NA", "007", " é"] * 15,
            "y": y,
        }
    )
    frame.loc[::9, "zip"] = "?"
    frame.loc[::7, "price"] = ""
    frame.to_csv("d.csv", index=False)
    return pd.read_csv("d.csv", dtype=str, na_filter=False)


def categories(path, name):
    return next(c.categories for c in mx.load(path).schema_.columns if c.name == name)


def test_codes_are_read_as_written_in_every_command(mixent, table):
    assert mixent(*FIT).exit_code == 0
    assert categories("m.mixent", "zip") == tuple(sorted(ZIPS)) and categories("m.mixent", "sex") == ("1", "2")
    model, X = mx.load("m.mixent"), read_frame("d.csv", text=["zip", "sex"])[["zip", "price", "sex"]]
    assert mixent("predict", "m.mixent", "d.csv", "-o", "o.csv", "--keep", "zip,note").exit_code == 0
    out = pd.read_csv("o.csv", dtype={"zip": str, "note": str}, na_filter=False)
    np.testing.assert_array_equal(out["p(+)"], model.predict_proba(X)[:, 0])
    assert out["zip"].tolist() == table["zip"].tolist()
    assert out["note"].tolist() == table["note"].str.strip().replace({"=1+2": "'=1+2"}).tolist()
    # alone in its file, a code is one still
    table[table["zip"] == "01234"].drop(columns="y").to_csv("one.csv", index=False)
    result = mixent("predict", "m.mixent", "one.csv", "-o", "one_out.csv")
    assert result.stderr == "" and set(pd.read_csv("one_out.csv")["predicted"]) == {"+"}
    result = mixent("explain", "m.mixent", "one.csv", "--row", "0")
    assert (result.exit_code, result.stderr) == (0, "")
    table[table["zip"] == "01234"].to_csv("week2.csv", index=False)
    result = mixent("update", "m.mixent", "week2.csv", "-t", "y", "-o", "m2.mixent")
    assert (result.exit_code, result.stderr) == (0, "")
    data = ("compare", "d.csv", "-t", "y", "--ignore", "note", "--categorical", "zip", "--categorical", "sex")
    method = ("--method", "mixture", *ONE, "--no-baselines", "--folds", "2", "--jobs", "1", "--scores", "s.csv")
    assert mixent(*data, *method, "--no-page").exit_code == 0
    scores = pd.read_csv("s.csv")
    assert scores["failed"].isna().all() and scores["error"].mean() < 0.4


def test_whole_numbers_beside_gaps_are_the_same_codes(mixent, table):
    assert mixent(*FIT).exit_code == 0
    floats = table.assign(sex=table["sex"] + ".0")
    floats.to_csv("floats.csv", index=False)
    for name in ("d.csv", "floats.csv"):
        result = mixent("predict", "m.mixent", name, "-o", f"of_{name}", "--keep", "sex")
        assert (result.exit_code, result.stderr) == (0, "")
    first, second = pd.read_csv("of_d.csv"), pd.read_csv("of_floats.csv", dtype={"sex": str})
    np.testing.assert_array_equal(first["p(+)"], second["p(+)"])
    assert second["sex"].tolist() == floats["sex"].tolist()


def test_labels_in_words_that_look_like_numbers_can_be_learned_from(mixent):
    frame = pd.DataFrame({"x": np.arange(20.0), "y": ["1", "a"] * 10})
    frame.to_csv("d.csv", index=False)
    assert mixent("fit", "d.csv", "-t", "y", "-o", "m.mixent", "--set", "n_components=1").exit_code == 0
    frame[frame["y"] == "1"].to_csv("new.csv", index=False)
    assert mixent("update", "m.mixent", "new.csv", "-t", "y", "-o", "m2.mixent").exit_code == 0


@pytest.mark.parametrize("ending", [".csv", ".tsv.gz"])
def test_imputing_leaves_known_cells_to_the_letter(mixent, table, ending):
    fit = ("fit", "d.csv", "-o", "j.mixent", "--model", "joint", "--ignore", "note", "--categorical", "zip", "-q")
    assert mixent(*fit, "--set", "prior_variance=1.0").exit_code == 0
    result = mixent("impute", "j.mixent", "d.csv", "-o", f"full{ending}")
    assert result.exit_code == 0
    assert "formula" not in result.stdout  # it stood in the file
    separator = "\t" if "tsv" in ending else ","
    full = pd.read_csv(f"full{ending}", sep=separator, dtype=str, na_filter=False)
    gaps = table.isin(["", "?"])
    expected = table.assign(note=table["note"].str.strip())
    pd.testing.assert_frame_equal(full.mask(gaps, ""), expected.mask(gaps, ""))
    assert (
        set(full["zip"][gaps["zip"]]) <= set(ZIPS) and full["price"][gaps["price"]].astype(float).between(30, 50).all()
    )
    assert mixent("impute", "j.mixent", "d.csv", "-o", "full.parquet").exit_code == 0  # types, not letters
    assert pd.read_parquet("full.parquet")["price"].dtype == float


def test_labels_of_one_sign_are_left_alone(mixent, table):
    assert mixent(*FIT).exit_code == 0
    result = mixent("predict", "m.mixent", "d.csv", "-o", "o.csv", "--explain", "--keep", "y")
    out = pd.read_csv("o.csv")
    assert set(out["predicted"]) == set(out["rival"]) == {"+", "-"} and out["y"].tolist() == table["y"].tolist()
    assert "formula" not in result.stdout
    assert mixent("explain", "m.mixent", "d.csv", "-o", "why.csv").exit_code == 0
    assert set(pd.read_csv("why.csv")["class"]) == {"+", "-"}


def test_labels_that_call_nothing_are_left_alone(mixent, table):
    table.replace({"y": {"+": "+ve", "-": "-2+f(1)"}}).to_csv("d.csv", index=False)
    assert mixent(*FIT).exit_code == 0
    assert mixent("predict", "m.mixent", "d.csv", "-o", "o.csv").exit_code == 0
    out = pd.read_csv("o.csv")["predicted"]
    assert set(out) == {"+ve", "'-2+f(1)"}


# hints


def test_probabilities_are_no_codes(mixent):
    frame = pd.DataFrame({"round": [1, 0] * 20, "square": [0, 1] * 20, "y": ["p", "q", "q", "p"] * 10})
    frame.to_csv("d.csv", index=False)
    fit = ("fit", "d.csv", "-t", "y", "-o", "m.mixent", "--model", "maxent", "--set", "prior_variance=1.0")
    result = mixent(*fit, "--set", "probabilistic={'shape': ['round', 'square']}")
    assert result.exit_code == 0 and "Hint" not in result.stdout
