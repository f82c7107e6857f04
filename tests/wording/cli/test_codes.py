"""Wording of cli, codes."""

import numpy as np
import pandas as pd
import pytest

import mixent as mx
from mixent.base.text import one_line

from ...cli.test_codes import FIT, categories


@pytest.mark.usefixtures("table")
def test_filled_cells_in_columns(mixent):
    fit = ("fit", "d.csv", "-o", "j.mixent", "--model", "joint", "--ignore", "note", "--categorical", "zip", "-q")
    assert mixent(*fit, "--set", "prior_variance=1.0").exit_code == 0
    result = mixent("impute", "j.mixent", "d.csv", "-o", "full.csv")
    assert "filled 16 cells in 2 columns (zip: 7, price: 9)" in one_line(result.stdout)


def test_a_formula_is_not_filled_in(mixent):
    frame = pd.DataFrame({"a": ["=f(1)", "b"] * 20, "c": ["x", "y"] * 20})
    frame.to_csv("d.csv", index=False)
    assert (
        mixent("fit", "d.csv", "-o", "j.mixent", "--model", "joint", "--set", "prior_variance=1.0", "-q").exit_code == 0
    )
    pd.DataFrame({"a": [None, "+g(1)"], "c": ["x", "y"]}).to_csv("new.csv", index=False)
    result = mixent("impute", "j.mixent", "new.csv", "-o", "full.csv")
    assert pd.read_csv("full.csv")["a"].tolist() == ["'=f(1)", "+g(1)"]
    assert "1 cell that a spreadsheet would run as a formula got a leading '" in one_line(result.stdout)
    for command in ("predict", "explain", "impute"):
        page = one_line(mixent(command, "--help").stdout.replace("│", " "))
        assert "spreadsheet would run as a formula" in page and "leading '" in page


def test_cells_that_a_spreadsheet_would_run(mixent, table):
    table.replace({"y": {"+": "+ve", "-": "-2+f(1)"}}).to_csv("d.csv", index=False)
    assert mixent(*FIT).exit_code == 0
    result = mixent("predict", "m.mixent", "d.csv", "-o", "o.csv")
    out = pd.read_csv("o.csv")["predicted"]
    n = (out != "+ve").sum()
    assert f"{n} cells that a spreadsheet would run" in one_line(result.stdout)


def test_numbers_that_look_like_codes(mixent):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.integers(1, 3, 40) for name in ("sex", "steroid", "a, b", "spleen")})
    frame = frame.assign(stage=rng.integers(0, 3, 40), size=rng.normal(size=40), half=[0.5, 1] * 20, y=["p", "q"] * 20)
    frame.to_csv("d.csv", index=False)
    fit = ("fit", "d.csv", "-t", "y", "-o", "m.mixent", "--set", "n_components=1")
    text = one_line(mixent(*fit).stdout)
    option = "--categorical sex,steroid,spleen,stage --categorical 'a, b'"
    told = "sex, steroid, a, b, ... hold only 1, 2; stage holds only 0, 1, 2"
    assert f"Hint: {told}: add {option} if these are codes" in text
    listed = ("--categorical", "sex,steroid,spleen", "--categorical", "a, b", "--set", "prior=1.0")
    result = mixent(*fit, *listed)
    assert "Hint: stage holds only 0, 1, 2: add --categorical stage if it holds codes" in one_line(result.stdout)
    assert categories("m.mixent", "a, b") == ("1", "2") and mx.load("m.mixent").categorical[-1] == "a, b"
    assert "codes" not in mixent(*fit, *listed, "--categorical", "stage").stdout
    assert "codes" not in mixent(*fit, "--ignore", "sex, steroid,spleen,stage", "--ignore", "a, b").stdout
    line = one_line(mixent(*fit, "--categorical", "sex,stge").stderr)
    assert line == "Error: d.csv has no column 'stge'; did you mean 'stage'?"


def test_a_target_that_looks_like_a_number(mixent):
    pd.DataFrame({"x": np.arange(80.0), "y": np.arange(80) // 2}).to_csv("d.csv", index=False)
    fit = ("fit", "d.csv", "-t", "y", "-o", "m.mixent", "--set", "n_components=1", "--set", "covariance=EII")
    told = "Hint: the target 'y' holds 40 different numbers and looks like a number, not a class; to predict a number"
    assert told in one_line(mixent(*fit).stdout)
    pd.DataFrame({"x": np.arange(80.0), "y": np.arange(80) / 3}).to_csv("d.csv", index=False)
    result = mixent(*fit)
    assert result.exit_code == 1 and "looks like a number" in one_line(result.stdout)
    pd.DataFrame({"x": np.arange(80.0), "y": np.arange(80) // 4}).to_csv("d.csv", index=False)
    assert "looks like" not in one_line(mixent(*fit).stdout)


def test_many_columns_are_counted(fails):
    pd.DataFrame(np.ones((3, 19)), columns=[f"c{j}" for j in range(19)]).to_csv("d.csv", index=False)
    line = fails("fit", "d.csv", "-t", "zzz", "-o", "m.mixent")
    assert line.endswith("'c8', 'c9', ... (19 in all)")
