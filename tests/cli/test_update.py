import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mixent as mx


@pytest.fixture
def model(mixent, stock):
    shutil.copy(stock / "model.mixent", "m.mixent")
    return "m.mixent"


def test_update_is_partial_fit(mixent, model, stock):
    result = mixent("update", model, "{stock}/data.csv", "-t", "class", "--weight", "w", "--set", "forgetting=0.25")
    assert result.exit_code == 0, result.output
    assert "Updated with 60 rows" in result.stdout and "Wrote m.mixent" in result.stdout
    frame = pd.read_csv(stock / "data.csv")
    X = frame[["size", "count", "color"]]
    expected = mx.load(stock / "model.mixent").set_params(forgetting=0.25)
    expected.partial_fit(X, frame["class"], sample_weight=frame["w"])
    found = mx.load(model)
    np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))
    assert found.forgetting == 0.0  # an option of the call, not of the model
    assert "MixtureClassifier" in mixent("info", model).stdout


def test_update_to_another_file_and_of_clusters(mixent, model, stock):
    before = Path(model).read_bytes()
    result = mixent("update", model, "{stock}/data.csv", "-t", "class", "-o", "n.mixent", "-q")
    assert (result.exit_code, result.output) == (0, "")
    assert Path(model).read_bytes() == before and mx.load("n.mixent").classes_.tolist() == ["no", "yes"]
    result = mixent("update", "{stock}/clusters.mixent", "{stock}/data.csv", "-o", "c.mixent")
    assert result.exit_code == 0, result.output
    assert isinstance(mx.load("c.mixent"), mx.GaussianMixture)


def test_a_new_class_is_added_where_it_is_allowed(mixent, model, stock):
    frame = pd.read_csv(stock / "data.csv")
    frame["class"] = np.where(frame.index % 3 == 0, "maybe", frame["class"])
    frame["size"] = frame["size"] + 8 * (frame["class"] == "maybe")
    frame.to_csv("new.csv", index=False)
    result = mixent("update", model, "new.csv", "-t", "class", "--new-classes")
    assert result.exit_code == 0, result.output
    found, X = mx.load(model), frame[["size", "count", "color"]]
    assert found.classes_.tolist() == ["maybe", "no", "yes"]
    expected = mx.load(stock / "model.mixent").partial_fit(X, frame["class"], classes=["maybe", "no", "yes"])
    np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))
    assert found.score(X, frame["class"]) > 0.8
    same = mixent("update", model, "{stock}/data.csv", "-t", "class", "--new-classes")  # none is new
    assert same.exit_code == 0 and "New class" not in same.stdout
