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


def test_what_is_refused(fails, stock):
    data = "{stock}/data.csv"
    assert "which has no model of the columns" in fails("impute", "{stock}/maxent.mixent", data, "-o", "o.csv")
    assert "unknown kind of file '.txt'" in fails("impute", "{stock}/joint.mixent", data, "-o", "full.txt")
    fails("impute", "{stock}/joint.mixent", data, status=2)
    Path("short.csv").write_text("size\n1\n")
    line = fails("impute", "{stock}/joint.mixent", "short.csv", "-o", "full.csv")
    assert "short.csv has no columns 'count', 'color'" in line
    assert "not a mixent file" in fails("impute", "short.csv", "short.csv", "-o", "full.csv")
