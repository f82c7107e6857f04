"""Wording of cli, info."""

import json

import mixent as mx


def test_a_file_that_holds_a_kernel(mixent, fails, stock):
    import pandas as pd

    X = pd.read_csv(stock / "data.csv")[["size", "count", "color"]]
    kernel = mx.FisherKernel(mx.GaussianMixture(2, "EII", random_state=0), n_samples=300, random_state=0).fit(X)
    mx.save(kernel, "k.mixent")
    assert mixent("info", "k.mixent").exit_code == 0
    assert json.loads(mixent("info", "k.mixent", "--json").stdout)["class"] == "FisherKernel"
    assert "predicts nothing by itself" in fails("predict", "k.mixent", "{stock}/data.csv", "-o", "o.csv")


def test_a_damaged_file_has_one_description(mixent, fails, stock):
    from pathlib import Path

    Path("cut.mixent").write_bytes((stock / "model.mixent").read_bytes()[:2000])
    line = fails("info", "cut.mixent")
    assert line.startswith("Error: cut.mixent is not a mixent file, or it is damaged or cut short (")
    assert fails("predict", "cut.mixent", "{stock}/data.csv", "-o", "o.csv") == line
