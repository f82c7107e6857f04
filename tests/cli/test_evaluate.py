import html
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

EVALUATE = ("evaluate", "{stock}/data.csv", "-t", "class", "--ignore", "id", "-k", "1", "--covariance", "VVI")


def test_a_table_of_scores_at_80_columns(mixent):
    result = mixent(*EVALUATE, "--weight", "w", "--folds", "3")
    assert result.exit_code == 0, result.output
    assert "3-fold cross-validation: mean ± sd" in result.stdout and "Rows are weighted" in result.stdout
    for text in ("mixent mixture", "naive Bayes", "log-loss", "Brier", "calib."):
        assert text in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_scores_in_a_file_and_no_baselines(mixent):
    result = mixent(*EVALUATE, "--ignore", "w", "--folds", "3", "--repeats", "2", "--no-baselines", "-o", "s.csv", "-q")
    assert (result.exit_code, result.output) == (0, "")
    assert "weighted" not in mixent(*EVALUATE, "--folds", "2", "--no-baselines").stdout
    scores = pd.read_csv("s.csv")
    assert len(scores) == 6 and set(scores["method"]) == {"mixent mixture"}
    assert np.isfinite(scores[["error", "balanced_error", "log_loss", "brier", "calibration"]]).all(axis=None)


def test_the_report_escapes_and_says_how_to_get_it_again(mixent, stock):
    evil = "<script>alert(1)</script>"
    frame = (
        pd.read_csv(stock / "data.csv")
        .drop(columns=["id", "w"])
        .replace({"yes": evil})
        .rename(columns={"size": "<b>size"})
    )
    frame.to_csv("d.csv", index=False)
    result = mixent("evaluate", "d.csv", "-t", "class", "-k", "1", "--folds", "2", "--report", "r.html")
    assert result.exit_code == 0, result.output
    page = Path("r.html").read_text(encoding="utf-8")
    assert evil not in page and "<b>size" not in page
    assert html.escape(evil) in page
    assert "mixent evaluate d.csv -t class -k 1 --folds 2 --report r.html" in page


def test_rows_without_a_label_are_one_bullet_and_one_method_is_the_only_one(mixent, stock):
    frame = pd.read_csv(stock / "data.csv").drop(columns=["id", "w"])
    frame.loc[:3, "class"] = None
    frame.to_csv("d.csv", index=False)
    run = ("evaluate", "d.csv", "-t", "class", "-k", "1", "--folds", "2", "--no-baselines", "--report", "r.html")
    assert "4 of 60 rows have no label" in mixent(*run).stderr
    page = Path("r.html").read_text(encoding="utf-8")
    assert page.count("label: ") == 1 and "4 rows without a label: always in training, never scored." in page
    assert "mixent mixture was the only method run" in page


def test_a_method_that_fails_is_told(mixent, stock, monkeypatch):
    from sklearn.naive_bayes import GaussianNB

    def broken(self, *args, **more):
        raise ValueError("out of [luck]")

    monkeypatch.setattr(GaussianNB, "fit", broken)
    result = mixent(*EVALUATE, "--folds", "2")
    assert result.exit_code == 0, result.output
    assert "Warning: naive Bayes failed: ValueError: out of [luck]" in result.stderr and "failed" in result.stdout


@pytest.fixture
def small_demo(monkeypatch):
    """Fewer rows, columns, folds and methods."""
    import mixent as package

    module = import_module("mixent.cli.demo")
    X, y = module.load_data()
    monkeypatch.setattr(module, "load_data", lambda: (X.iloc[::3, :3], y[::3]))
    monkeypatch.setattr(module, "METHODS", ("maximum entropy", "linear MED"))
    monkeypatch.setattr(package, "compare", partial(package.compare, baselines=False, folds=3, n_jobs=1))


def test_demo(mixent, small_demo):
    result = mixent("demo", "--out", "d.html")
    assert result.exit_code == 0, result.output
    assert "maximum entropy" in result.stdout and "d.html" in result.stdout and "Next" in result.stdout
    assert max(map(len, result.stdout.splitlines()[:-2])) <= 80
    page = Path("d.html").read_text(encoding="utf-8")
    assert "mixent demo" in page and "Take " in page and "http://" not in page.replace("http://www.w3.org", "")


def test_a_number_of_components_means_two_things(mixent):
    base = (
        "evaluate",
        "{stock}/data.csv",
        "-t",
        "class",
        "--ignore",
        "id",
        "--no-baselines",
        "--folds",
        "2",
        "-k",
        "2",
    )
    said = "mixent mixture has 2 for each class, mixent shared 2 in all."
    both = mixent(*base, "--model", "mixture", "--model", "shared", "--covariance", "VVI")
    assert both.exit_code == 0 and said in both.stdout
    assert said not in mixent(*base, "--model", "shared", "--covariance", "VVI").stdout
