"""`mixent compare`: one command from a table to a model and a page."""

import html
import json
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mixent as mx
from mixent import TunedClassifier, load, save
from mixent.base.registry import entry_of
from mixent.cli.compare import chosen_methods, read_time
from mixent.cli.parsing import read_settings
from mixent.evaluate import cross_validate, halving

QUICK = ("compare", "{stock}/data.csv", "-t", "class", "--ignore", "id,w", "--method", "linear MED", "--folds", "2")


@pytest.fixture
def table(stock):
    frame = pd.read_csv(stock / "data.csv")
    return frame.drop(columns=["id", "w", "class"]), frame["class"]


ALONE = (*QUICK, "--no-baselines", "--jobs", "1")


def test_a_model_and_a_page(mixent, tmp_path):
    result = mixent(*ALONE, "--method", "maximum entropy", "--scores", "scores.csv")
    assert result.exit_code == 0, result.output
    out = " ".join(result.stdout.split())
    assert "2-fold cross-validation, settings chosen inside" in out and "Recommended: " in out and "* of mixent" in out
    assert max(map(len, result.stdout.splitlines())) <= 80
    model = load(tmp_path / "data-winner.mixent")
    assert list(model.classes_) == ["no", "yes"]
    page = (tmp_path / "data-comparison.html").read_text()
    assert "linear MED" in page and "mixent compare" in page
    assert set(pd.read_csv("scores.csv")["method"]) == {"linear MED", "maximum entropy"}
    assert not list(tmp_path.glob("*.jsonl"))
    again = mixent("predict", "data-winner.mixent", "{stock}/data.csv", "-o", "out.csv")
    assert again.exit_code == 0, again.output


def test_a_winner_of_scikit_learn_is_told_about_and_reported(mixent, table, tmp_path):
    from sklearn.linear_model import LogisticRegression

    model = TunedClassifier(LogisticRegression(), {"C": [0.1, 1.0]}, random_state=0).fit(*table)
    save(model, tmp_path / "w.mixent", foreign="skops")
    assert mixent("info", "w.mixent").exit_code == 0
    facts = json.loads(mixent("info", "w.mixent", "--json").stdout)
    assert facts["class"] == "TunedClassifier"
    assert mixent("predict", "w.mixent", "{stock}/data.csv", "-o", "o.csv").exit_code == 0
    np.testing.assert_allclose(pd.read_csv("o.csv")["p(yes)"], model.predict_proba(table[0])[:, 1])
    assert mixent("report", "w.mixent", "{stock}/data.csv", "-o", "r.html").exit_code == 0


# --- methods by model name --------------------------------------------------------------------------------------------


def chosen(names, *settings):
    return chosen_methods(names, read_settings(settings), 3)


def test_methods_by_their_names_in_the_table_and_by_model_name():
    assert chosen([]) == "auto"
    assert chosen(["mixture", "maximum entropy"]) == {"mixture": None, "maximum entropy": None}
    found = chosen(["maximum entropy", "parzen"])
    assert found["maximum entropy"] is None and entry_of(found["parzen"]).name == "parzen"


def test_settings_make_a_model_of_a_method():
    found = chosen(["mixture", "gradient boosting"], "n_components=2", "covariance=VVI")
    assert found["gradient boosting"] is None
    model = found["mixture"]
    assert (model.n_components, model.covariance, model.random_state, model.n_jobs) == (2, "VVI", 3, 1)


def test_settings_of_all_methods_and_of_one():
    found = chosen(["mixture", "shared-mixture", "med"], "n_components=2", "med.C=3.0", "shared-mixture.n_components=4")
    assert [found[name].n_components for name in ("mixture", "shared-mixture")] == [2, 4] and found["med"].C == 3.0


def test_a_model_with_settings_is_scored_on_rows_held_out(mixent, table, stock):
    """What `evaluate` was for: folds, repeats, scores in a file, a page, weights."""
    data = ("compare", "{stock}/data.csv", "-t", "class", "--ignore", "id", "--weight", "w", "--report", "r.html")
    method = ("--method", "mixture", "--set", "n_components=1", "--set", "covariance=VVI", "--no-baselines")
    more = ("--folds", "3", "--repeats", "2", "--scores", "s.csv", "--jobs", "1")
    result = mixent(*data, *method, *more)
    assert result.exit_code == 0, result.output
    scores = pd.read_csv("s.csv")
    assert len(scores) == 6 and set(scores["method"]) == {"mixture"}
    assert np.isfinite(scores[["error", "balanced_error", "log_loss", "brier", "calibration"]]).all(axis=None)
    weight = pd.read_csv(stock / "data.csv")["w"]
    model = mx.MixtureClassifier(1, "VVI", random_state=0)
    cv = cross_validate({"mixture": model}, *table, folds=3, repeats=2, random_state=0, sample_weight=weight)
    np.testing.assert_allclose(scores["log_loss"], [record["log_loss"] for record in cv.records], rtol=1e-9)
    page = Path("r.html").read_text(encoding="utf-8")
    assert "--set n_components=1" in page
    np.testing.assert_allclose(
        load("data-winner.mixent").predict_proba(table[0]),
        model.fit(*table, sample_weight=weight).predict_proba(table[0]),
    )


def test_a_page_escapes_names(mixent, stock):
    evil = "<script>alert(1)</script>"
    frame = pd.read_csv(stock / "data.csv").drop(columns=["id", "w"]).replace({"yes": evil})
    frame.rename(columns={"size": "<b>size"}).to_csv("d.csv", index=False)
    more = ("--method", "parzen", "--no-baselines", "--folds", "2", "--jobs", "1", "--report", "r.html")
    assert mixent("compare", "d.csv", "-t", "class", *more).exit_code == 0
    page = Path("r.html").read_text(encoding="utf-8")
    assert evil not in page and "<b>size" not in page and html.escape(evil) in page


# --- files ------------------------------------------------------------------------------------------------------------


def test_names_of_files_and_the_journal(mixent, tmp_path):
    more = ("-o", "m.mixent", "--no-page", "--journal", "j.jsonl", "--seed", "3")
    assert mixent(*ALONE, *more).exit_code == 0
    assert {p.name for p in tmp_path.iterdir()} == {"m.mixent", "j.jsonl"}
    lines = [json.loads(line) for line in (tmp_path / "j.jsonl").read_text().splitlines()]
    assert len(lines) == 1 + 2
    result = mixent(*ALONE, *more)
    assert result.exit_code == 0 and "Finished folds" in result.stdout


def test_names_are_left_out_and_said(mixent, stock, tmp_path):
    frame = pd.read_csv(stock / "data.csv").assign(who=lambda f: [f"P{i}" for i in range(len(f))])
    frame.to_csv(tmp_path / "named.csv", index=False)
    command = ("compare", "named.csv", "-t", "class", "--ignore", "id,w", "--method", "linear MED", "--folds", "2")
    result = mixent(*command, "--no-baselines", "--jobs", "1", "--no-page")
    assert result.stderr.count("'who'") == 1
    assert "who" in load(tmp_path / "named-winner.mixent").schema_.ignored
    assert mixent("predict", "named-winner.mixent", "named.csv", "-o", "out.csv").exit_code == 0
    result = mixent(*command, "--no-baselines", "--jobs", "1", "--no-page", "--categorical", "who")
    assert "who" not in load(tmp_path / "named-winner.mixent").schema_.ignored


def test_what_is_left_out_is_said(mixent, monkeypatch):
    monkeypatch.setattr(halving, "LEAST", 60.0)  # no fit is ended, however slow the machine is
    result = mixent(*ALONE, "--method", "maximum entropy,linear MED", "--budget", "0.01s", "--no-page")
    assert result.exit_code == 0, result.output
    assert "Left out: " in result.stdout and "the time budget" in " ".join(result.stdout.split())


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400), (" 2 H ", 7200)])
def test_times(text, seconds):
    assert read_time(text) == seconds


# --- the demonstration ------------------------------------------------------------------------------------------------


@pytest.fixture
def small_demo(monkeypatch):
    """Two methods, two folds."""
    monkeypatch.setattr(import_module("mixent.cli.demo"), "METHODS", ("maximum entropy", "linear MED"))
    monkeypatch.setattr(import_module("mixent.cli.demo"), "N_FOLDS", 2)
    monkeypatch.setattr(mx, "compare", partial(mx.compare, n_jobs=1))


def test_demo(mixent, small_demo):
    result = mixent("demo", "--out", "d.html")
    assert result.exit_code == 0, result.output
    assert "maximum entropy" in result.stdout and "d.html" in result.stdout
    assert "d-votes.csv --calibration d-vendors.json" in result.stdout
    page = Path("d.html").read_text(encoding="utf-8")
    assert "mixent demo" in page and "http://" not in page.replace("http://www.w3.org", "")
    table = pd.read_csv("d.csv")
    assert table["state"].notna().sum() == 50 and table.isna().to_numpy().any()
    assert set(pd.read_csv("d-votes.csv").columns) == {"program A", "program B", "program C"}
    assert table.drop(columns="state").equals(import_module("mixent.cli.demo").make_pumps()[0])


def test_a_column_of_groups_is_not_a_feature(mixent, stock):
    frame = pd.read_csv(stock / "data.csv")
    frame.assign(person=np.repeat(np.arange(len(frame) // 2), 2)).to_csv("grouped.csv", index=False)
    command = ("compare", "grouped.csv", "-t", "class", "--ignore", "id,w", "--method", "linear MED", "--folds", "2")
    result = mixent(*command, "--no-baselines", "--jobs", "1", "--no-page", "--group", "person")
    assert result.exit_code == 0, result.output
    assert "person" not in load("grouped-winner.mixent").feature_names_in_
