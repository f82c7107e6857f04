"""The section of a stack or a boosting in a report."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.naive_bayes import GaussianNB

from mixent import (
    AdaBoostM1Classifier,
    HMMStackingClassifier,
    MaxEntStackingClassifier,
    MixtureClassifier,
    WeightBoostClassifier,
)
from mixent.displays import ConstraintsDisplay
from mixent.ensemble import InputRegions
from mixent.evaluate import cross_validate
from mixent.maxent.contributions import feature_contributions
from mixent.report import common, comparison_report
from mixent.report.ensembles import describe_ensemble, ensemble_in_words


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    y = np.array(["<no>", "yes"])[rng.integers(2, size=n)]
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n) + 1.5 * (y == "yes"),
            "<colour>": np.where(rng.random(n) < 0.6, np.where(y == "yes", "red", "blue"), "green"),
            "said": np.where(rng.random(n) < 0.7, y, "unsure"),
        }
    )
    frame.loc[::9, "size"] = np.nan
    frame.loc[::8, "said"] = None
    return frame, y


X, Y = table()
NAIVE, FULL = MixtureClassifier(1, "VVI"), MixtureClassifier(1, "EEE")
BASES = [("<naive>", NAIVE), ("full", FULL), ("panel", "said")]
STACK = MaxEntStackingClassifier(BASES, cv=2, prior=1.0, random_state=0)
BOOST = AdaBoostM1Classifier(NAIVE, 15)


@pytest.fixture(scope="module")
def cv():
    return cross_validate({"<stack>": STACK, "boost": BOOST}, X, Y, folds=2)


def text_of(page):
    return " ".join(re.sub("<[^>]+>", " ", page).split()).replace("&lt;", "<").replace("&gt;", ">")


def section(path, cv, name, model, **options):
    options = {"X": X, "y": Y} | options
    path = comparison_report(path / "r.html", title="t", cv=cv, models={name: model}, **options)
    page = path.read_text(encoding="utf-8")
    return page[page.index("The ensemble</h2>") : page.index("How to reproduce</h2>")]


def test_a_stack_has_everything(tmp_path, cv):
    model = STACK.fit(X, Y)
    page = section(tmp_path, cv, "<stack>", model)
    said, strength = text_of(page), model.constraint_table().strength
    assert "<naive>" not in page and "<stack>" not in page and "<no>" not in page
    assert "<stack>, fitted on all rows: 3 classifiers combined by maximum entropy: 14 constraints." in said
    for name, error in zip(model.base_names_, model.base_errors_):
        assert re.search(rf"{name} (MixtureClassifier|column said) {100 * error:.1f} {strength[name]:.3f}", said)
    held = 100 * cv.values("<stack>", "error").mean()
    assert f"the combination cross-validated {held:.1f}" in said
    assert f"dashed, that of the combination: {held:.1f} %." in said
    assert f"Certificate: the objective is at most {model.gap_:.1g} nats" in said and "what is said" in said
    assert page.count("<figure") == 2 and "Parts of the log-odds by label of" in page
    assert "strength of place" not in said and "The place of the row" not in said


def test_where_the_row_lies(tmp_path, cv):
    model = clone(STACK).set_params(regions=InputRegions(max_components=2)).fit(X, Y)
    said = text_of(section(tmp_path, cv, "<stack>", model))
    strength = model.constraint_table().strength
    most = max(model.base_names_, key=lambda name: strength[f"{name} & input 1"])
    told = f"{strength[f'{most} & input 1']:.2f} nats beside {strength[most]:.2f} everywhere"
    assert f"The place of the row changes most what {most} says: {told}." in said
    assert "strength of place (nats)" in said and "hidden components of a mixture per class" in said
    assert "with &amp; the label in a cell of the input space" in said


def test_a_label_that_is_no_class_says_nothing_of_its_own(tmp_path, cv):
    model = clone(STACK).set_params(constraints="diagonal").fit(X, Y)
    page = section(tmp_path, cv, "<stack>", model)  # warnings are errors
    assert ", of each class with its own label" in text_of(page)
    panel = next(one for one in feature_contributions(model) if one.name == "panel")
    at = panel.values.index("unsure")
    assert np.isfinite(panel.parts[at]).all() and np.isnan(panel.parts).any()
    display = ConstraintsDisplay.from_estimator(model)
    assert len(display.blocks) == 3
    display.plot(quantity="multipliers")
    display.plot(quantity="residuals")


def test_what_is_said_of_a_row():
    model = STACK.fit(X, Y)
    lines = model.explain(X[:3]).values()
    outputs = model.base_outputs(X[:3])
    for row, line in enumerate(lines):
        p = outputs["<naive>"][row]
        assert line[0] == f"{model.classes_[p.argmax()]} ({100 * p.max():.0f} %)"
    assert lines[0][2] == "abstains" and lines[1][2] == X["said"][1]


def test_hidden_markov_models(tmp_path, cv):
    model = HMMStackingClassifier([("naive", NAIVE), ("full", FULL)], cv=2, random_state=0).fit(X, Y)
    said = text_of(section(tmp_path, cv, "<stack>", model))
    assert "2 classifiers combined by a hidden Markov model per class of the sequence of their decisions" in said
    assert "first <no> first yes the same again" in said
    start, stays = model.start_[1], np.einsum("...ii->...i", model.transitions_[1]).mean()
    assert f"yes {start[0]:.2f} {start[1]:.2f} {stays:.2f}" in said
    alone = HMMStackingClassifier([NAIVE], transitions="per_step", cv=2, random_state=0).fit(X, Y)
    assert describe_ensemble(alone)["chains"][0]["stays"] is None
    section(tmp_path, cv, "<stack>", alone)
    about = describe_ensemble(model)
    assert [chain["class"] for chain in about["chains"]] == ["<no>", "yes"]


def test_boosting_has_its_stages(tmp_path, cv):
    model = BOOST.fit(X, Y)
    page = section(tmp_path, cv, "boost", model)
    said = text_of(page)
    assert "boost, fitted on all rows: AdaBoost.M1 of MixtureClassifier, each stage trained on what the last" in said
    for m, (error, alpha, bound) in enumerate(zip(model.errors_[:12], model.alphas_, model.bound_)):
        assert f"{m + 1} {100 * error:.1f} {alpha:.3f} {100 * bound:.1f}" in said
    staged = [100 * np.mean(guess != Y) for guess in model.staged_predict(X)]
    held = 100 * cv.values("boost", "error").mean()
    told = f"{staged[0]:.1f} % after the first, {staged[-1]:.1f} % after the last, never above the bound. On rows not "
    assert f"{told}seen it is {held:.1f} %." in said
    assert page.count("<figure") == 1


def test_boosting_of_three_classes(tmp_path, cv):
    y = np.where(np.arange(120) % 3 == 0, "third", Y)
    model = WeightBoostClassifier(NAIVE, 3).fit(X, y)
    said = text_of(section(tmp_path, cv, "w", model, y=y))
    for label, stages in zip(model.classes_, model.alphas_):
        assert f"{label} against the others: {len(stages)} stage" in said
    assert "never above the bound" not in said and "On rows not seen" not in said
    assert ensemble_in_words(describe_ensemble(model))[0] == "WeightBoost of MixtureClassifier"


def test_many_stages_are_cut(tmp_path, cv):
    numbers = X[["size"]].fillna(0.0)
    bagging = BaggingClassifier(GaussianNB(), 14, random_state=0)
    model = MaxEntStackingClassifier(bagging, cv="train", prior=1.0).fit(numbers, Y)
    said = text_of(section(tmp_path, cv, "s", model, X=numbers))
    assert "(the first 12 of 14): error on the rows they were trained on" in said
    assert {entry["kind"] for entry in describe_ensemble(model)["classifiers"]} == {"GaussianNB"}


def test_without_pictures_or_rows(tmp_path, cv, monkeypatch):
    stack, boost = STACK.fit(X, Y), BOOST.fit(X, Y)
    assert "<figure" not in section(tmp_path, cv, "boost", boost, X=None)
    monkeypatch.setattr(common, "find_spec", lambda name: None)
    for name, model in (("<stack>", stack), ("boost", boost)):
        page = section(tmp_path, cv, name, model)
        assert "<figure" not in page and "<table" in page


def test_answers_that_stand_in_the_table_are_not_out_of_fold():
    votes = MaxEntStackingClassifier([("panel", "said")], prior=1.0).fit(X, Y)
    assert describe_ensemble(votes)["errors"] == "of the answers as they stand"
    assert describe_ensemble(STACK.fit(X, Y))["errors"] == "out of fold"
