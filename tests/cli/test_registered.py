"""An estimator that only the registry knows appears in every command."""

import json

import numpy as np
import pandas as pd
import pytest

import mixent as mx

FIT = ("fit", "{stock}/some.csv", "-t", "class", "--ignore", "id,w", "-o", "m.mixent", "--model", "majority")


@pytest.fixture
def fitted(mixent, majority):
    result = mixent(*FIT, "--set", "strength=0.5", "--set", "search.most=4")
    assert result.exit_code == 0, result.output
    return result


def test_fit(fitted, stock):
    model = mx.load("m.mixent")
    counts = pd.read_csv(stock / "some.csv")["class"].dropna().value_counts().sort_index().to_numpy() + 0.5
    np.testing.assert_allclose(model.share_, counts / counts.sum())  # rows without a label were left out
    assert model.search.most == 4
    assert "Most frequent class" in fitted.stdout and "Answers yes." in fitted.stdout


def test_info(mixent, fitted):
    assert "Answers yes." in mixent("info", "m.mixent").stdout
    facts = json.loads(mixent("info", "m.mixent", "--json").stdout)
    assert facts["class"] == "Majority" and facts["mixent_version"] == mx.__version__
    assert facts["share"] == mx.load("m.mixent").share_.tolist()


def test_predict(mixent, fitted):
    more = ("--reject", "0.1", "--keep", "id")
    assert mixent("predict", "m.mixent", "{stock}/data.csv", "-o", "o.csv", *more).exit_code == 0
    out = pd.read_csv("o.csv")
    assert set(out["predicted"]) == {"yes"} and out["rejected"].all() and len(out) == 60
    np.testing.assert_allclose(out[["p(no)", "p(yes)"]].iloc[0], mx.load("m.mixent").share_)


def test_compare(mixent, majority):
    more = (
        "--method",
        "majority",
        "--set",
        "strength=2.0",
        "--no-baselines",
        "--folds",
        "2",
        "--jobs",
        "1",
        "--no-page",
    )
    result = mixent("compare", "{stock}/data.csv", "-t", "class", "--ignore", "id,w", *more, "--scores", "s.csv")
    assert result.exit_code == 0, result.output
    assert mx.load("data-winner.mixent").strength == 2.0
    assert "*" not in result.stdout  # it is not of mixent
    np.testing.assert_allclose(pd.read_csv("s.csv")["log_loss"], np.log(2), rtol=1e-2)
