"""Wording of cli, explain."""

import pandas as pd


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
    assert "which has no explanations" in fails("explain", "m.mixent", "{stock}/data.csv")
