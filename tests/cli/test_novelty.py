"""Novelty detection on the command line: `mixent novelty`, then predict, explain, info; what cannot be."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import mixent as mx
from mixent.cli import app
from mixent.data import read_frame

LEAVE = ("--ignore", "id,w,class")
NOVELTY = ("novelty", "{stock}/data.csv", *LEAVE, "-o", "d.mixent")
COLUMNS = ["size", "count", "color"]
ODD = pd.DataFrame({"size": [0.5, 40.0, None], "count": [5.0, 5.0, 5.0], "color": ["blue", "red", "violet"]})


def said(result):
    """What came to the screen, on one line."""
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


@pytest.fixture(scope="session")
def detector(stock, tmp_path_factory):
    """The path of a detector."""
    path = tmp_path_factory.mktemp("novelty") / "d.mixent"
    result = CliRunner().invoke(app, ["novelty", str(stock / "data.csv"), *LEAVE, "-q", "-o", str(path)])
    assert result.exit_code == 0 and not result.stdout, result.output
    return path


@pytest.fixture
def rows(stock):
    return read_frame(stock / "data.csv")[COLUMNS]


# novelty


def test_the_model_its_description_and_the_most_unusual_rows(mixent):
    text = said(mixent(*NOVELTY))
    model = mx.load("d.mixent")
    assert type(model) is mx.MEDNoveltyDetector and model.progress is False
    assert " ".join(model.summary().text(80).split()) in text
    lowest = int(model.scores_.argmin())
    assert (
        f"{lowest} {model.scores_[lowest]:.2f} " in text.split("On the training rows")[1] and "Wrote d.mixent" in text
    )


@pytest.mark.parametrize("options", [{"density": "product", "contamination": 0.2}, {"density": "tree", "C": 2.0}])
def test_it_equals_the_library(mixent, rows, options):
    settings = [part for key, value in options.items() for part in ("--set", f"{key}={value}")]
    assert mixent(*NOVELTY, *settings).exit_code == 0
    model, again = mx.MEDNoveltyDetector(**options).fit(rows), mx.load("d.mixent")
    np.testing.assert_array_equal(again.score_samples(rows), model.score_samples(rows))
    assert again.offset_ == model.offset_


def test_it_is_a_model_like_others(mixent, rows):
    assert mixent(*NOVELTY, "-q").exit_code == 0
    other = ("fit", "{stock}/data.csv", *LEAVE, "-o", "other.mixent", "--model", "novelty")
    assert "On the training rows" in said(mixent(*other))
    np.testing.assert_array_equal(mx.load("other.mixent").score_samples(rows), mx.load("d.mixent").score_samples(rows))


def test_rows_that_are_sequences(mixent):
    X = np.sort(np.random.default_rng(0).normal(size=(40, 5)), axis=1)
    X[7] = X[7, ::-1]
    pd.DataFrame(X, columns=list("abcde")).to_csv("s.csv", index=False)
    said(mixent("novelty", "s.csv", "-o", "d.mixent", "--set", "density=hmm"))
    assert mx.load("d.mixent").scores_.argmin() == 7


def test_weights_and_codes(mixent, rows):
    options = ("--ignore", "id,class", "--weight", "w", "--categorical", "count")
    assert mixent("novelty", "{stock}/data.csv", *options, "-o", "d.mixent").exit_code == 0
    assert mx.load("d.mixent").schema_.columns[1].kind == "categorical"


def test_the_report(mixent):
    assert mixent(*NOVELTY, "--report", "n.html").exit_code == 0
    page = Path("n.html").read_text(encoding="utf-8")
    assert "Novelty in data.csv" in page and page.count("<figure") == 2 and "mixent novelty " in page


# predict, explain, info


def test_predict_scores_rows(mixent, detector, rows):
    text = said(mixent("predict", detector, "{stock}/data.csv", "-o", "o.csv", "--keep", "id"))
    found, model = pd.read_csv("o.csv"), mx.load(detector)
    assert list(found) == ["id", "score", "decision", "outlier"]
    np.testing.assert_allclose(found["score"], model.score_samples(rows), rtol=1e-12)
    np.testing.assert_allclose(found["decision"], model.decision_function(rows), rtol=1e-9, atol=1e-12)
    assert (found["outlier"] == (model.predict(rows) < 0)).all()
    n = int(found["outlier"].sum())
    outliers = "1 outlier" if n == 1 else f"{n} outliers"
    assert f"60 rows; {outliers} (score below {model.offset_:.4g}); scores " in text and "Wrote o.csv" in text


def test_predict_says_which_column(mixent, detector):
    ODD.to_csv("new.csv", index=False)
    assert mixent("predict", detector, "new.csv", "-o", "o.csv", "--explain").exit_code == 0
    found = pd.read_csv("o.csv")
    assert found["outlier"].tolist() == [False, True, True]
    assert found["feature"].tolist()[1:] == ["size", "color"]
    np.testing.assert_allclose(found["feature_part"], mx.load(detector).contributions(ODD).min(axis=1), rtol=1e-9)
    assert mixent("predict", detector, "new.csv", "-o", "-").stdout.startswith("score,decision,outlier\n")


def test_parts_are_what_a_value_adds(detector):
    model = mx.load(detector)
    parts = model.contributions(ODD)
    for j, name in enumerate(COLUMNS):
        gone = ODD.assign(**{name: None if name == "color" else np.nan})
        np.testing.assert_allclose(
            parts[:, j], model.score_samples(ODD) - model.score_samples(gone), rtol=1e-9, atol=1e-12
        )
    assert parts[2, 0] == 0.0  # it was missing


def test_explain(mixent, detector):
    ODD.to_csv("new.csv", index=False)
    text = said(mixent("explain", detector, "new.csv", "--row", "1"))
    assert "Row 1: an outlier, score " in text
    assert "Row 0: typical" in said(mixent("explain", detector, "new.csv"))
    text = said(mixent("explain", detector, "{stock}/data.csv"))
    assert mixent("explain", detector, "new.csv", "-o", "why.csv").exit_code == 0
    why = pd.read_csv("why.csv")
    assert list(why) == ["row", "score", "outlier", "column", "value", "part"] and len(why) == 9
    assert why[why["row"] == 1]["part"].is_monotonic_increasing
    assert mixent("explain", detector, "new.csv", "-o", "why.json").exit_code == 0
    assert len(json.loads(Path("why.json").read_text(encoding="utf-8"))) == 9
    assert mixent("explain", detector, "new.csv", "-o", "-").stdout.startswith("row,score,outlier,column,value,part\n")


# what cannot be


def test_values_that_the_estimator_refuses(fails):
    for setting in ("density=forest", "contamination=0.7"):
        assert f"{setting.partition('=')[0]} must be" in fails(*NOVELTY, "--set", setting)
