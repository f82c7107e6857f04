"""Ensembles at the command line: models by name inside others, answers in columns, files that hold them."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mixent as mx
from mixent.data import read_frame

from .conftest import FEATURES

FIT = ("fit", "{stock}/data.csv", "-t", "class", "--ignore", "id,w", "-o", "m.mixent", "--model")
QUICK = ("--set", "mixture.n_components=1", "--set", "mixture.covariance=VVI", "--set", "prior_variance=1.0")
MIXED = ("stack", "--set", "estimators=mixture,naive-bayes", *QUICK)


def naive():
    return mx.MixtureClassifier(1, "VVI", random_state=0)


@pytest.fixture
def table(stock):
    frame = read_frame(stock / "data.csv")
    return frame[FEATURES], frame["class"]


def same(model, X):
    np.testing.assert_array_equal(mx.load("m.mixent").predict_proba(X), model.predict_proba(X))


def test_a_stack_is_the_library_s_and_explains_by_classifier(mixent, table):
    from sklearn.naive_bayes import GaussianNB

    assert mixent(*FIT, *MIXED).exit_code == 0
    bases = [("mixture", naive()), ("naive-bayes", mx.TunedClassifier(GaussianNB(), random_state=0))]
    model = mx.MaxEntStackingClassifier(bases, prior_variance=1.0, random_state=0).fit(*table)
    same(model, table[0])
    assert mixent("info", "m.mixent").exit_code == 0
    data = "{stock}/data.csv"
    assert mixent("predict", "m.mixent", data, "-o", "out.csv", "--explain").exit_code == 0
    out = pd.read_csv("out.csv")
    np.testing.assert_allclose(out[["p(no)", "p(yes)"]], model.predict_proba(table[0]), rtol=1e-12)
    assert set(out["feature"]) <= set(FEATURES)
    assert mixent("explain", "m.mixent", data, "-o", "why.json", "--by", "classifier").exit_code == 0
    for row in json.loads(Path("why.json").read_text())[:5]:
        np.testing.assert_allclose(sum(part["part_log_odds"] for part in row["parts"]), row["log_odds"], rtol=1e-9)
        assert {part["part"] for part in row["parts"]} == {"average row", "mixture", "naive-bayes"}


def test_answers_in_columns(mixent, stock):
    frame = read_frame(stock / "data.csv")
    rng = np.random.default_rng(0)
    sure = 1 / (1 + np.exp(-rng.normal(size=len(frame)) - (frame["class"] == "yes")))
    panel = frame["class"].where(rng.random(len(frame)) < 0.8, "unsure")
    panel[::8] = None
    frame = frame.assign(p_no=1 - sure, p_yes=sure, panel=panel)
    frame.to_csv("answers.csv", index=False)
    boxes = [("vendor", ["p_no", "p_yes"]), ("panel", "panel")]
    fit = ("fit", "answers.csv", "-t", "class", "--ignore", "id,w", "-o", "m.mixent", "--model", "stack", *QUICK)
    result = mixent(*fit, "--set", f"estimators={['mixture', *boxes]!r}")
    assert result.exit_code == 0, result.output
    frame = read_frame("answers.csv")
    X, y = frame[[*FEATURES, "p_no", "p_yes", "panel"]], frame["class"]
    same(mx.MaxEntStackingClassifier([("mixture", naive()), *boxes], prior_variance=1.0, random_state=0).fit(X, y), X)
    assert mixent("predict", "m.mixent", "answers.csv", "-o", "out.csv").exit_code == 0
    np.testing.assert_allclose(
        pd.read_csv("out.csv")[["p(no)", "p(yes)"]], mx.load("m.mixent").predict_proba(X), rtol=1e-12
    )
    assert "abstains" in mixent("explain", "m.mixent", "answers.csv", "--row", "0", "--by", "classifier").stdout


@pytest.mark.parametrize(
    ("name", "cls"), [("adaboost", mx.AdaBoostM1Classifier), ("weightboost", mx.WeightBoostClassifier)]
)
def test_boosting_is_the_library_s(mixent, table, name, cls):
    settings = ("estimator=mixture", "estimator.n_components=1", "estimator.covariance=VVI", "n_estimators=3")
    assert mixent(*FIT, name, *(part for text in settings for part in ("--set", text))).exit_code == 0
    same(cls(naive(), 3, random_state=0).fit(*table), table[0])
    assert mixent("predict", "m.mixent", "{stock}/data.csv", "-o", "out.csv").exit_code == 0


def test_the_stages_of_boosting_combined(mixent, table):
    settings = ("estimators=adaboost", "estimators.n_estimators=2")
    assert mixent(*FIT, "hmm-stack", *(part for text in settings for part in ("--set", text))).exit_code == 0
    boosting = mx.AdaBoostM1Classifier(None, 2, random_state=0)
    same(mx.HMMStackingClassifier(boosting, random_state=0).fit(*table), table[0])


def test_codes_reach_the_bases(mixent, stock):
    frame = read_frame(stock / "data.csv")
    frame["code"] = np.arange(len(frame)) % 4
    frame.drop(columns=["id", "w"]).to_csv("codes.csv", index=False)
    fit = ("fit", "codes.csv", "-t", "class", "-o", "m.mixent", "--categorical", "code,color", "--model", *MIXED)
    assert mixent(*fit).exit_code == 0
    base = mx.load("m.mixent").fitted_[0]
    assert base.categorical == ["code", "color"] and base.schema_.columns[-1].categories == ("0", "1", "2", "3")
    assert mixent("predict", "m.mixent", "codes.csv", "-o", "out.csv").exit_code == 0


def test_jobs(mixent, table):
    assert mixent(*FIT, *MIXED, "--jobs", "2").exit_code == 0
    assert mx.load("m.mixent").n_jobs == 2
