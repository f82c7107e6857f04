"""Wording of cli, predict."""

import numpy as np
import pandas as pd
import pytest

from mixent.base.text import one_line

from ...cli.test_predict import PREDICT


def test_warning_column_color_has_values_not_seen_at_fit_purple(mixent):
    pd.DataFrame({"size": [np.nan, 1.0], "count": [np.nan, 2], "color": [None, "purple"]}).to_csv(
        "new.csv", index=False
    )
    result = mixent(*PREDICT[:2], "new.csv", "-o", "out.csv", "--density")
    assert "Warning: column 'color' has values not seen at fit ('purple')" in result.stderr


def test_help_lists_all_commands_that_write_models(mixent):
    text = " ".join(mixent("predict", "--help").stdout.replace("│", " ").split())
    assert "written by `mixent compare`, `fit`, `novelty` or `fuse`" in text


def test_help_tells_prediction_from_decision(mixent):
    text = " ".join(mixent("predict", "--help").stdout.replace("│", " ").split())
    assert "is the most probable class" in text and "whose expected cost is lowest" in text


def test_class_priors_of_this_table(mixent, stock):
    frame = pd.read_csv(stock / "data.csv")
    frame[(frame["class"] == "yes") | (frame["id"] < 10)].to_csv("new.csv", index=False)
    result = mixent(*PREDICT[:2], "new.csv", "-o", "out.csv", "--adjust-priors")
    assert "Class priors of this table: no: 0." in result.stdout


def test_cells_that_a_spreadsheet_would_run_as_a_formula(mixent, stock):
    frame = pd.read_csv(stock / "data.csv").drop(columns=["id", "w"]).replace({"yes": "=cmd()", "no": "@no"})
    frame.assign(**{"+note": "-1+2"}).to_csv("d.csv", index=False)
    assert (
        mixent(
            "fit", "d.csv", "-t", "class", "--ignore", "+note", "-o", "m.mixent", "--set", "n_components=1"
        ).exit_code
        == 0
    )
    result = mixent("predict", "m.mixent", "d.csv", "-o", "-", "--keep", "+note")
    rows = [line.split(",") for line in result.stdout.splitlines()]
    n_yes = sum(row[1] == "'=cmd()" for row in rows)
    assert f"{60 + n_yes + 1} cells that a spreadsheet would run as a formula got a leading '" in one_line(
        result.stderr
    )


@pytest.mark.parametrize(
    ("name", "options", "tasks"),
    [
        ("joint", ["--density"], "classification, clustering"),
        ("joint", ["--explain"], "classification, novelty, fusion"),
        ("joint", ["--reject", "1"], "classification"),
        ("maxent", ["--target", "size"], "joint"),
        ("clusters", ["--adjust-priors"], "classification, fusion"),
    ],
)
def test_options_of_other_tasks_are_refused(fails, name, options, tasks):
    line = fails("predict", f"{{stock}}/{name}.mixent", "{stock}/data.csv", "-o", "o.csv", *options, status=2)
    assert f"{options[0]} is only used with models for {tasks}; " in line


def test_options_that_need_a_capability(fails):
    line = fails("predict", "{stock}/maxent.mixent", "{stock}/data.csv", "-o", "o.csv", "--density", status=2)
    assert "--density is not used" in line
    line = fails("predict", "{stock}/joint.mixent", "{stock}/data.csv", "-o", "o.csv", "--target", "colr")
    assert "has no column 'colr'; did you mean 'color'?" in line
