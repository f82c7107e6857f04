"""Wording of cli, explain."""

import pandas as pd

from mixent.base.text import one_line


def test_explain_all_rows_shows_some_and_writes_all(mixent):
    result = mixent("explain", "{stock}/maxent.mixent", "{stock}/data.csv", "-o", "why.parquet")
    assert "... and 30 rows more; write all with -o" in result.stdout and "Choose a row with --row" in result.stdout
    assert pd.read_parquet("why.parquet")["row"].nunique() == 60


def test_rows_labels_and_files_that_are_not_there(fails):
    explain = ("explain", "{stock}/maxent.mixent", "{stock}/data.csv")
    assert "data.csv has 60 rows, numbered from 0; got row 60" in fails(*explain, "--row", "60")
    assert "--label must be one of the classes 'no', 'yes'; got 'maybe'" in fails(*explain, "--label", "maybe")
    assert "unknown kind of file '.txt'" in fails(*explain, "-o", "why.txt")
    for row in ("-1", "x", "3-1", "1-x", ""):
        fails(*explain, "--row", row, status=2)


def test_models_without_explanations(mixent, fails):
    for name in ("clusters", "joint"):
        assert "which has no classes" in fails("explain", f"{{stock}}/{name}.mixent", "{stock}/data.csv")
    fit = ("fit", "{stock}/data.csv", "-t", "class", "--ignore", "id,w", "-o", "m.mixent", "-q", "--model", "parzen")
    assert mixent(*fit).exit_code == 0
    refused = fails("explain", "m.mixent", "{stock}/data.csv", "--by", "component", status=2)
    assert "--by must be column: m.mixent holds a ParzenClassifier; got component" in refused


def test_how_contributions_were_computed(mixent):
    row = ("{stock}/data.csv", "--row", "2")
    text = one_line(mixent("explain", "{stock}/maxent.mixent", *row).stdout)
    assert "Positive parts are evidence for the class. The contributions are terms of the model itself." in text
    text = one_line(mixent("explain", "{stock}/model.mixent", *row).stdout)
    assert "Shapley values: the model integrates out the columns that are not yet known, over all orders" in text
    fit = ("fit", "{stock}/data.csv", "-t", "class", "--ignore", "id,w", "-o", "m.mixent", "-q", "--model", "parzen")
    assert mixent(*fit).exit_code == 0
    text = mixent("explain", "m.mixent", *row, "--label", "yes").stdout
    assert {"column", "value", "log-odds", "evidence"} <= set(text.split()) and "against" in text.split()
    assert "Model-agnostic (Shapley values): the values of training rows take the place of" in one_line(text)
