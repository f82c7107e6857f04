"""The table of document 001's section 3.7: does it run, and is what it measures what it says?"""

import json

import numpy as np
import pandas as pd
import pytest
from benchmarks.speed.__main__ import main as speed
from benchmarks.speed.trees import ERROR, FIT, LOG_LOSS, OURS, RATIO, RATIO_PREDICT
from benchmarks.tables import __main__ as program
from benchmarks.tables.data import load
from benchmarks.tables.splice import CONSENSUS, WINDOW
from benchmarks.tables.store import Store, read_lines
from benchmarks.tables.trees import (
    BAYES,
    CHOW_LIU,
    DOCUMENT,
    EMPIRICAL,
    GAMMAS,
    LR,
    MED,
    MODELS,
    PRECISE,
    REPEATED,
    SITE,
    TREES,
    WITHOUT,
    LargestMargin,
    largest_margin,
    least_error,
    methods_of,
    paired,
    sites,
    trees,
)
from scipy.stats import ttest_rel

from mixent.options import Margin

SIZE = {"repeat": 0, "n_train": 60, "n_test": 120, "failed": None}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Made-up sites: a consensus, and two letters that are the same in true sites more often than not."""
    folder = tmp_path_factory.mktemp("trees")
    rng = np.random.default_rng(0)
    site = np.repeat(["EI", "IE", "N"], [10, 70, 90])
    letters = pd.DataFrame(rng.choice(list("ACGT"), (len(site), len(WINDOW))), columns=list(WINDOW))
    letters.loc[site == SITE, CONSENSUS[SITE]] = list("AG")
    same = (site == SITE) & (rng.random(len(site)) < 0.8)
    letters.loc[same, "pm4"] = letters.loc[same, "pm3"]
    letters.loc[(site == SITE) & (rng.random(len(site)) < 0.7), "pm5"] = "C"
    letters.iloc[10, 0] = "N"
    whole = letters.assign(**{"class": site})
    pd.concat([whole, whole[70:75]]).to_csv(folder / "splice.csv", index=False)
    features = [{"name": c, "kind": "discrete"} for c in WINDOW]
    entry = {"name": "splice", "file": "splice.csv", "features": features}
    (folder / "manifest.json").write_text(json.dumps({"datasets": [entry]}))
    return folder


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr("benchmarks.tables.trees.TRAIN", 30)
    monkeypatch.setenv("COLUMNS", "300")


@pytest.mark.slow
def test_table_trees(tables, tmp_path, capsys):
    methods = [MED, DOCUMENT, CHOW_LIU, BAYES, EMPIRICAL, LR]
    given = ["--table", "trees", "--folds", "2", "--quiet", "--data", str(tables), "--results", str(tmp_path)]
    item = ["--sets", WITHOUT, "--methods", *methods, "--picture", str(tmp_path / "a.png")]
    assert program.main([*given, *item]) == 0
    assert program.main([*given, "--sets", SITE, "--methods", CHOW_LIU]) == 0
    shown = capsys.readouterr().out
    for text in (*methods, f"{MED} - {CHOW_LIU}", f"{DOCUMENT} - {BAYES}", "12.3", "14.0", "0.152", "100 test rows"):
        assert text in shown
    assert (tmp_path / "a.png").stat().st_size > 10_000
    records = list(Store("trees", tmp_path).load(WITHOUT).values())
    assert len(records) == 2 * len(methods)
    for r in records:
        assert r["failed"] is None and (r["n_train"], r["n_test"]) == (60, 100)
        assert 0 <= r["least_error"] <= 100 * r["error"] + 1e-9 and 0.5 < r["auc"] <= 1
        assert (r["support"] is not None) == (r["method"] in (MED, DOCUMENT)) == (r["gamma"] is not None)
        assert len(r["edges"]) == (4 * 23 * 22 // 2 if r["method"] == DOCUMENT else 0)
        if r["method"] == DOCUMENT:
            assert r["train_error"] == 0 and r["gamma"] in GAMMAS and r["gamma"] < r["largest_gamma"]
    results = {(r["method"], r["metric"]): r for r in read_lines(tmp_path / "trees.jsonl") if r["set"] == WITHOUT}
    assert (results[DOCUMENT, "least_error"]["printed"], results[CHOW_LIU, "train_error"]["printed"]) == (12.4, 0.5)
    easy = np.mean([r["auc"] for r in Store("trees", tmp_path).load(SITE).values()])
    assert easy > np.mean([r["auc"] for r in records if r["method"] == CHOW_LIU])  # the consensus gives them away


def test_repeats_are_left_out_or_kept(tables):
    data = load("splice", tables, mixed=True)
    for repeats, n in ((False, 160), (True, 165)):
        train, test = sites(repeats)(data, 0)
        assert len(train) == 60 and len(set(train) | set(test)) == n and set(data.y[test]) == {"IE", "N"}
        assert np.sum(data.y[train] == SITE) == 30
    for setting in TREES.settings:
        gone = set(WINDOW) - set(TREES.methods_of(setting)[CHOW_LIU](data).columns)
        assert gone == (set() if setting.name == SITE else set(CONSENSUS[SITE]))
    assert {s.name for s in TREES.settings} == {SITE, WITHOUT, REPEATED}


def test_largest_margin_can_be_kept_and_no_more(tables):
    data = load("splice", tables, mixed=True)
    train, _ = sites(False)(data, 0)
    X, y = data.X.iloc[train][["pm3", "pm4", "pm5", "pm6", "pm7", "pm1"]], data.y[train]
    largest = largest_margin(trees(objective="likelihood", calibration=None).fit(X, y), X, y)
    assert largest > 0
    model = trees(margin=Margin("fixed", target=0.95 * largest), calibration=None).fit(X, y)
    kept = np.where(y == model.classes_[1], 1, -1) * model.decision_function(X)
    assert kept.min() == pytest.approx(0.95 * largest, rel=1e-3)
    with pytest.raises(ValueError, match="no solution satisfies the fixed margin"):
        trees(margin=Margin("fixed", target=1.2 * (largest + PRECISE)), calibration=None).fit(X, y)


def test_documents_gamma_is_the_largest_that_can_be_kept(tables, monkeypatch):
    data = load("splice", tables, mixed=True)
    train, _ = sites(False)(data, 0)
    X, y = data.X.iloc[train][list(WINDOW[4:])], data.y[train]
    monkeypatch.setattr("benchmarks.tables.trees.largest_margin", lambda known, X, y: 0.7)
    assert LargestMargin().fit(X, y).margin_.target == 0.5


def test_least_error_is_that_of_the_best_threshold():
    class Fixed:
        def scores(self, X):
            return X

    rng = np.random.default_rng(0)
    y = np.where(rng.random(300) < 0.3, "IE", "N")
    for scores in (rng.standard_normal(300) + (y == "IE"), rng.integers(4, size=300) + (y == "IE")):
        wrong = [np.mean((scores >= t) != (y == "IE")) for t in (*scores, np.inf)]
        assert least_error(Fixed(), scores, y) == pytest.approx(100 * min(wrong))


def test_naive_bayes_fills_gaps_and_counts_letters(tables):
    data = load("splice", tables, mixed=True)
    train, test = sites(False)(data, 0)
    for name in (BAYES, EMPIRICAL):
        model = methods_of(False)[name](data).fit(data.X.iloc[train], data.y[train])
        counts = model.model[-1].feature_log_prob_
        assert all(part.shape == (2, 4) for part in counts)
        assert np.isfinite(model.scores(data.X.iloc[test])).all()
    assert set(MODELS) == set(TREES.methods)


def test_differences_are_paired_over_the_splits():
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 12))
    first, second = ([SIZE | {"fold": i, "error": x} for i, x in enumerate(v)] for v in (a, b))
    cells = paired(first, second[::-1], "error")
    interval = ttest_rel(100 * a, 100 * b).confidence_interval(0.95)
    assert cells[0] == f"{100 * (a - b).mean():+.2f}"
    assert cells[1:3] == [f"{interval.low:+.2f} to {interval.high:+.2f}", f"{ttest_rel(a, b).pvalue:.2g}"]
    assert float(cells[4]) > float(cells[2])  # corrected


@pytest.mark.slow
def test_trees_are_measured_beside_classifiers_of_categories(tables):
    records = speed(["--case", "trees", "--quick", "--data", str(tables)])
    results = {(r.method, r.metric): r.mean for r in records}
    assert {method for method, _ in results} == {OURS, "CategoricalNB", "RandomForest", "HistGradientBoosting"}
    assert all(results[method, LOG_LOSS] > 0 and 0 <= results[method, ERROR] < 60 for method, _ in results)
    for method in ("CategoricalNB", "RandomForest", "HistGradientBoosting"):
        assert results[method, RATIO] == pytest.approx(results[method, FIT] / results[OURS, FIT])
        assert results[method, RATIO_PREDICT] > 0 and (OURS, RATIO) not in results
    assert not any(r.verdict for r in records)  # a smoke test judges nothing
