"""Wording of cli, impute."""

from pathlib import Path

import pandas as pd


def test_impute_leaves_unknown_columns_and_full_tables_alone(mixent, stock):
    frame = pd.read_csv(stock / "data.csv").dropna().assign(note=None)
    frame.to_csv("d.csv", index=False)
    result = mixent("impute", stock / "joint.mixent", "d.csv", "-o", "full.parquet")
    assert "filled 0 cells: none is missing" in result.stdout
    assert "Warning: columns the model does not have keep their missing values: 'note'" in result.stderr
    assert pd.read_parquet("full.parquet")["note"].isna().all()


def test_draws_are_counted(mixent, stock):
    result = mixent("impute", "{stock}/model.mixent", "{stock}/data.csv", "--draws", "2", "-o", "o.csv")
    assert "60 rows; filled 22 cells in 3 columns" in result.stdout
    assert ", drawn 2 times" in " ".join(result.stdout.split())


def test_what_is_refused(fails, stock):
    data = "{stock}/data.csv"
    assert "which has no model of the columns" in fails("impute", "{stock}/maxent.mixent", data, "-o", "o.csv")
    assert "unknown kind of file '.txt'" in fails("impute", "{stock}/joint.mixent", data, "-o", "full.txt")
    fails("impute", "{stock}/joint.mixent", data, status=2)
    Path("short.csv").write_text("size\n1\n")
    line = fails("impute", "{stock}/joint.mixent", "short.csv", "-o", "full.csv")
    assert "short.csv has no columns 'count', 'color'" in line
    line = fails("impute", "{stock}/joint.mixent", data, "-o", "o.csv", "--draws", "2", status=2)
    assert "--draws is only used with mixtures" in line
    line = fails("impute", "{stock}/clusters.mixent", data, "-o", "o.csv", "-t", "class", status=2)
    assert "--target is only used with classifiers" in line
    line = fails("impute", "{stock}/model.mixent", data, "-o", "o.csv", "-t", "color")
    assert "is not a class of" in line and "its classes are 'no', 'yes'" in line
    pd.read_csv(stock / "data.csv").assign(draw=1).to_csv("draws.csv", index=False)
    line = fails("impute", "{stock}/model.mixent", "draws.csv", "-o", "o.csv", "--draws", "2")
    assert line.endswith("draws.csv has a column 'draw', which --draws would overwrite; rename it")
    assert "not a mixent file" in fails("impute", "short.csv", "short.csv", "-o", "full.csv")
