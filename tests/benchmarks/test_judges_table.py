"""Table "judges": splits, methods and verdict, on made-up judges."""

import json

import numpy as np
import pandas as pd
import pytest
from benchmarks.tables import __main__ as program
from benchmarks.tables.data import load
from benchmarks.tables.judges import (
    AUTO,
    CLASSES,
    FEW,
    FREE,
    FUSED,
    JUDGES,
    JUDGES_TABLE,
    LABELLED,
    LOGISTIC,
    MODELS,
    OWN,
    SHIFTED,
    STACKED,
    STACKED_SHIFTED,
    UNCALIBRATED,
    Fusion,
    Halves,
    calibrations,
    judged,
    loss,
    methods,
    near,
    wrong,
)
from benchmarks.tables.store import Store

from mixent import Fuser


@pytest.fixture(scope="module")
def panel(tmp_path_factory):
    """420 items, twelve judges who are right three times in four, with a few blanks."""
    folder = tmp_path_factory.mktemp("judges")
    rng = np.random.default_rng(0)
    truth = rng.integers(1, 3, size=420)
    outputs = {judge: np.where(rng.random(420) < 0.75, truth, 3 - truth).astype(object) for judge in JUDGES}
    for column in outputs.values():
        column[rng.random(420) < 0.02] = ""
    pd.DataFrame({**outputs, "class": truth}).to_csv(folder / "judges.csv", index=False)
    features = [{"name": judge, "kind": "discrete"} for judge in JUDGES]
    entry = {"name": "llmbar_judges", "file": "judges.csv", "features": features}
    (folder / "manifest.json").write_text(json.dumps({"datasets": [entry]}))
    return folder


@pytest.fixture(scope="module")
def data(panel):
    return load("llmbar_judges", panel, mixed=True, discrete=True)


def test_twelve_judges_two_of_each_model_and_no_prompt_twice():
    assert len(set(JUDGES)) == 12
    assert [sum(judge.split(":")[0] == model for judge in JUDGES) for model in MODELS] == [2] * 6


def test_every_method_of_the_fuser_is_in_the_table():
    from mixent.fusion.methods import METHODS

    assert set(FUSED) == set(METHODS) and FUSED[0] == AUTO
    assert set(methods()) == {*FREE, LABELLED, STACKED, STACKED_SHIFTED, LOGISTIC}


def test_a_split_has_no_item_on_both_sides_and_the_priors_asked_for(data):
    train, test = Halves((0.2, 0.8))(data, 3)
    assert not set(train) & set(test) and len(train) == len(test) == 210
    assert np.mean(data.y[test] == CLASSES[0]) == pytest.approx(0.2)
    again = Halves((0.5, 0.5))(data, 3)
    assert set(again[0]) == set(train)  # the same half, whatever the priors


def test_judges_are_calibrated_on_rows_of_their_own(data):
    train, _ = Halves((0.5, 0.5))(data, 0)
    X, y = data.X.iloc[train], data.y[train]
    result = calibrations(X, y)
    assert list(result) == list(JUDGES)
    for judge, item in result.items():
        assert OWN - 10 <= item.counts.sum() <= OWN  # blanks are left out
        assert 0.6 < item.confusion[0, 0] < 0.9, judge
    counts = np.stack([item.n_rows for item in result.values()])
    assert len(np.unique(counts, axis=0)) > 6  # not the same rows for all
    shuffled = calibrations(X, y)
    assert all((shuffled[judge].counts == result[judge].counts).all() for judge in JUDGES)


def test_told_items_keep_their_class_and_are_not_judged(data):
    train, test = Halves((0.2, 0.8))(data, 1)
    X, y = data.X.iloc[test], data.y[test]
    model = Fusion(data, labels=FEW).fit(data.X.iloc[train], data.y[train])
    proba = model.predict_proba(X)
    assert (proba[np.arange(FEW), (y[:FEW] == CLASSES[1]).astype(int)] == 1).all()
    rows = judged(X)
    assert not rows[:FEW].any() and not set(test[rows]) & set(test[:FEW])
    right = proba[rows].argmax(axis=1) == (y[rows] == CLASSES[1])
    assert wrong(model, X, y) == pytest.approx(100 * np.mean(~right))
    model.proba = np.full_like(proba, 0.5)
    assert loss(model, X, y) == pytest.approx(np.log(2))


def test_fusion_is_that_of_the_fuser(data):
    train, test = Halves((0.5, 0.5))(data, 0)
    X = data.X.iloc[test]
    model = Fusion(data, "product").fit(data.X.iloc[train], data.y[train])
    wanted = Fuser(calibrations(data.X.iloc[train], data.y[train]), method="product").fit(X[list(JUDGES)])
    np.testing.assert_array_equal(model.predict_proba(X), wanted.posterior_)


@pytest.mark.parametrize("method", [SHIFTED, UNCALIBRATED, STACKED, STACKED_SHIFTED, LOGISTIC])
def test_other_methods_give_probabilities_that_are_mostly_right(data, method):
    train, test = Halves((0.2, 0.8))(data, 2)
    model = methods()[method](data).fit(data.X.iloc[train], data.y[train])
    proba = model.predict_proba(data.X.iloc[test])
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert np.mean(model.classes_[proba.argmax(axis=1)] != data.y[test]) < 0.25


def test_near_the_best_by_either_standard_error():
    def records(values):
        size = {"repeat": 0, "failed": None, "n_train": 10, "n_test": 10}
        return [{"fold": i, "loss": v, **size} for i, v in enumerate(values)]

    by = {AUTO: records([1.0, 2.2, 3.0]), "pool": records([1.0, 2.0, 3.0]), "min-divergence": records([5.0, 5.0, 5.0])}
    result = near(by, AUTO, (AUTO, "pool", "min-divergence"), "loss")
    assert result.best == "pool" and result.gap == pytest.approx(0.2 / 3)
    assert result.paired_se == pytest.approx(0.2 / 3) and result.mean_se == pytest.approx(1 / np.sqrt(3))
    assert str(result).endswith("yes")
    by[AUTO] = records([1.2, 2.2, 3.2])  # always worse: the paired difference knows
    assert "by the mean's s.e. only" in str(near(by, AUTO, (AUTO, "pool"), "loss"))
    assert str(near(by, AUTO, (AUTO,), "loss")).endswith("yes")


def test_table_judges(panel, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    given = ["--table", "judges", "--folds", "2", "--quiet", "--data", str(panel), "--results", str(tmp_path)]
    some = [AUTO, "majority", SHIFTED, LABELLED]
    assert program.main([*given, "--sets", "20-80", "--methods", *some]) == 0
    printed = capsys.readouterr().out
    assert "within one s.e. of the best label-free in loss?" in printed and LABELLED in printed
    records = Store("judges", tmp_path).load("20-80").values()
    assert len(records) == 2 * len(some) and not any(r["failed"] for r in records)
    assert all(r["covered"] in (0.0, 1.0) for r in records if r["method"] == AUTO)


def test_settings_of_the_table():
    assert [s.folds for s in JUDGES_TABLE.settings] == [20] * 3
    assert [s.splits.priors for s in JUDGES_TABLE.settings] == [(0.5, 0.5), (0.2, 0.8), (0.8, 0.2)]
