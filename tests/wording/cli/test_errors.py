"""Wording of cli, errors."""

import os
from pathlib import Path

import pytest

from ...cli.test_errors import FILES, shell

pytestmark = pytest.mark.usefixtures("bad_files")

BAD_TABLES = [
    ("missing.csv", "no such file: missing.csv"),
    ("goood.csv", "did you mean 'good.csv'?"),
    ("empty.csv", "the file is empty"),
    ("header.csv", "no rows below the header"),
    ("blank.csv", "the file is empty"),
    ("folder.csv", "is a folder"),
    ("book.xlsx", "save it as CSV"),
    ("fake.parquet", "not a readable Parquet file"),
    ("binary.csv", "binary data"),
    ("ragged.csv", "line 3 has 3 values"),
    ("no_header.csv", "a header line with column names is needed"),
]


BAD_FITS = [
    ("one_class.csv", "a classifier needs at least 2 classes; y has 1 class: 'p'"),
    ("no_labels.csv", "every label in y is absent"),
    ("real_target.csv", "Unknown label type"),
    ("target_only.csv", "'y' is the only column"),
]


@pytest.mark.parametrize(("name", "message"), BAD_TABLES + BAD_FITS)
def test_bad_table(fails, name, message):
    assert message in fails("fit", name, "-t", "y", "-o", "m.mixent")
    assert not Path("m.mixent").exists()


@pytest.mark.parametrize(("name", "message"), BAD_TABLES[:5])
def test_bad_table_at_compare(fails, name, message):
    assert message in fails("compare", name, "-t", "y", "-o", "m.mixent")


@pytest.mark.parametrize(("name", "message"), BAD_TABLES)
def test_bad_table_at_predict(fails, name, message):
    assert message in fails("predict", "{stock}/model.mixent", name, "-o", "out.csv")
    assert not Path("out.csv").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-t", "Y"], "has no column 'Y'; the columns are 'x', 'c', 'y'"),
        (["-t", "yy"], "has no column 'yy'; did you mean 'y'?"),
        (["-t", "[bold]"], "has no column '[bold]'"),
        (["-t", "y", "--ignore", "xx"], "has no column 'xx'; did you mean 'x'?"),
        (["-t", "y", "--ignore", "x", "--ignore", "c"], "'y' is the only column"),
        (["--ignore", "x", "--ignore", "c", "--ignore", "y"], "no column is left to fit"),
        (["-t", "y", "--ignore", "y"], "'y' is the --target and cannot be given to --ignore too"),
        (["-t", "y", "--weight", "y"], "cannot be given to --weight too"),
        (["-t", "y", "--weight", "v"], "has no column 'v'"),
        (["-t", "y", "--weight", "c"], "column 'c' (--weight) must hold numbers; row 0 holds 'a'"),
        (["-t", "y", "--categorical", "cc"], "has no column 'cc'; did you mean 'c'?"),
        (["-t", "y", "--categorical", "x", "--ignore", "x"], "has no column 'x'"),
    ],
)
def test_bad_columns(fails, options, message):
    assert message in fails("fit", "good.csv", *options, "-o", "m.mixent")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "n_components"], "--set must be KEY=VALUE"),
        (["--set", "components=2"], "unknown parameter 'components' of mixture; did you mean 'n_components'?"),
        (["--model", "mixtur"], "unknown model 'mixtur'; did you mean 'mixture'?"),
        (["--seed", "-1"], "--seed"),
        (["--jobs", "0"], "--jobs"),
        (["--nonsense"], "--nonsense"),
        (["--seed", "x"], "--seed"),
    ],
)
def test_bad_options_are_usage_errors(fails, options, message):
    assert message in fails("fit", "good.csv", "-t", "y", "-o", "m.mixent", *options, status=2)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.mixent", "missing.mixent: No such file or directory"),
        ("folder.csv", "folder.csv: Is a directory"),
        ("empty.csv", "not a mixent file"),
        ("fake.mixent", "not a mixent file"),
        ("cut.mixent", "not a mixent file"),
        ("flipped.mixent", "flipped.mixent"),
        ("good.csv", "not a mixent file"),
    ],
)
def test_bad_model(fails, name, message):
    assert message in fails("predict", name, "good.csv", "-o", "out.csv")
    assert message in fails("info", name)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["good.csv"], "good.csv has no columns 'size', 'count', 'color'"),
        (["clash.csv", "--keep", "predicted"], "has a column 'predicted' too"),
        (["clash.csv", "--keep-all"], "has a column 'predicted' too"),
        (["clash.csv", "--keep", "nope"], "has no column 'nope'"),
        (["clash.csv", "--costs", "missing.csv"], "no such file"),
        (["clash.csv", "--costs", "costs_text.csv"], "every cost must be a finite number"),
        (["clash.csv", "--costs", "costs_gap.csv"], "every cost must be a finite number"),
        (["clash.csv", "--costs", "costs_classes.csv"], "needs one column for each class 'no', 'yes'"),
        (["clash.csv", "--costs", "costs_rows.csv"], "needs one row for each class 'no', 'yes'"),
    ],
)
def test_bad_predict(fails, args, message):
    assert message in fails("predict", "{stock}/model.mixent", *args, "-o", "out.csv")


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("folder.csv", "it is a folder"),
        ("nowhere/out.csv", "folder 'nowhere' does not exist"),
        ("good.csv/out.csv", "does not exist"),
        ("out.xlsx", "unknown kind of file '.xlsx'"),
        ("clash.csv", "it is an input of this command"),
    ],
)
def test_output_that_cannot_be_written(fails, output, message):
    assert message in fails("predict", "{stock}/model.mixent", "clash.csv", "-o", output)
    assert Path("clash.csv").read_text() == FILES["clash.csv"]


def test_outputs_of_the_other_commands(fails):
    assert "it is an input" in fails("fit", "good.csv", "-t", "y", "-o", "good.csv")
    assert "does not exist" in fails("fit", "good.csv", "-t", "y", "-o", "nowhere/m.mixent")
    assert "does not exist" in fails("compare", "good.csv", "-t", "y", "--report", "nowhere/r.html")
    assert "unknown kind" in fails("compare", "good.csv", "-t", "y", "--report", "r.pdf")
    assert "unknown kind" in fails("compare", "good.csv", "-t", "y", "--scores", "scores.txt")
    assert "does not exist" in fails("demo", "--out", "nowhere/d.html")


def test_no_permission(fails, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may write anywhere
    assert "cannot write m.mixent: no permission" in fails("fit", "good.csv", "-t", "y", "-o", "m.mixent")


def test_installed_command_errors(stock):
    result = shell("fit", "nothing-like-it.csv", "-t", "y", "-o", "m.mixent")
    assert (result.returncode, result.stdout, result.stderr) == (1, "", "Error: no such file: nothing-like-it.csv\n")


def test_an_option_given_twice_is_an_error(mixent):
    for command in (["fit", "good.csv", "-o", "m.mixent"], ["compare", "good.csv"]):
        result = mixent(*command, "-t", "y", "--seed", "1", "--seed=2")
        assert result.exit_code == 2 and "--seed was given 2 times and takes one value" in result.stderr
