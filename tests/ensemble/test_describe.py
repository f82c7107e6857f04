"""Descriptions of ensembles hold the values of the fitted model."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from mixent import (
    AdaBoostM1Classifier,
    HMMStackingClassifier,
    MaxEntStackingClassifier,
    MixtureClassifier,
    TunedClassifier,
    WeightBoostClassifier,
)
from mixent.base.document import Figure, Table
from mixent.base.registry import entry_of
from mixent.ensemble import OutputColumns
from mixent.options import InputRegions

WINE, Y = load_wine(return_X_y=True)
X = WINE[:, :4]
BASES = [("nb", GaussianNB()), ("mixture", MixtureClassifier(1))]


def blocks(document, kind):
    return [block for section in document.sections for block in section.content if isinstance(block, kind)]


def plain_facts(document):
    return json.loads(json.dumps(document.facts))


@pytest.mark.parametrize("regions", [None, InputRegions("pooled", max_components=2)])
def test_stack(regions):
    model = MaxEntStackingClassifier(BASES, regions=regions, cv=2, prior_variance=1.0, random_state=0).fit(X, Y)
    document, facts = model.summary(), plain_facts(model.summary())
    strength = model.constraint_table().strength
    for entry, name, error in zip(facts["classifiers"], model.base_names_, model.base_errors_):
        assert (entry["name"], entry["error"], entry["strength"]) == (name, error, strength[name])
        assert entry.get("strength_of_region") == (strength[f"{name} & input 1"] if regions else None)
    assert [entry["kind"] for entry in facts["classifiers"]] == ["GaussianNB", "MixtureClassifier"]
    assert facts["errors"] == "out of fold" and facts["entropy"] == model.entropy_
    assert facts["regions"] == ([len(model.regions_[0].names)] if regions else [])
    assert facts["constraints"] == model.constraint_table().truth.size
    assert all(figure.figure().get_axes() for figure in blocks(document, Figure))
    convergence = document.sections[-1].content[1].items
    assert convergence[0].startswith("combination: ") and convergence[1].startswith("mixture: ")


def test_stack_of_stages_and_of_columns():
    boosting = AdaBoostM1Classifier(n_estimators=2)
    model = MaxEntStackingClassifier(boosting, cv="train", prior_variance=1.0).fit(X, Y)
    facts = plain_facts(model.summary())
    assert {entry["kind"] for entry in facts["classifiers"]} == {"MixtureClassifier"}
    table = pd.DataFrame({"said": np.where(np.arange(len(Y)) % 5, Y, 0)})
    model = MaxEntStackingClassifier([("judge", "said")], prior_variance=1.0).fit(table, Y)
    facts = plain_facts(model.summary())
    assert facts["classifiers"][0]["kind"] == "column said"
    assert model.fitted_[0].summary().facts["columns"] == ["said"] and isinstance(model.fitted_[0], OutputColumns)


def test_hmm_stack():
    model = HMMStackingClassifier(BASES, cv=2, random_state=0).fit(X, Y)
    document, facts = model.summary(), plain_facts(model.summary())
    assert facts["temperature"] == model.temperature_ and facts["transitions"] == "shared"
    for c, chain in enumerate(facts["chains"]):
        assert list(chain["first"].values()) == model.start_[c].tolist()
        assert chain["stays"] == pytest.approx(np.diag(model.transitions_[c]).mean())
    assert facts["run"]["passes"] >= model.n_iter_
    alone = HMMStackingClassifier(BASES[:1], transitions="per_step", cv=2, random_state=0).fit(X, Y)
    assert {chain["stays"] for chain in alone.summary().facts["chains"]} == {None}
    assert len(blocks(document, Table)) == 3


def test_boosting():
    model = AdaBoostM1Classifier(n_estimators=4).fit(X, Y)
    document, facts = model.summary(), plain_facts(model.summary())
    (run,) = facts["boosting"]
    assert [stage["error"] for stage in run["stages"]] == model.errors_.tolist()
    assert [stage["vote"] for stage in run["stages"]] == model.alphas_.tolist()
    assert [stage["bound"] for stage in run["stages"]] == model.bound_.tolist()
    assert facts["base"] == "MixtureClassifier" and run["stopped"] == model.stopped_
    (figure,) = blocks(document, Figure)
    assert figure.figure().get_axes()
    (rows,) = entry_of(model).on_rows(model, X, Y)
    line = rows.figure().get_axes()[0].lines[0].get_ydata()
    np.testing.assert_allclose(line, [100 * np.mean(p != Y) for p in model.staged_predict(X)])
    assert entry_of(model).on_rows(model, X, None) == []


def test_boosting_class_by_class():
    model = WeightBoostClassifier(n_estimators=2).fit(X, Y)
    document, facts = model.summary(), plain_facts(model.summary())
    assert [run["class"] for run in facts["boosting"]] == [0, 1, 2] and not blocks(document, Figure)
    (rows,) = entry_of(model).on_rows(model, X, [*Y[:-1].astype(object), None])
    assert len(rows.figure().get_axes()[0].lines) == 1


def test_tuned():
    table = pd.DataFrame(X, columns=list("abcd")).assign(e=np.where(X[:, 0] > 13, "big", "small"))
    table.loc[3, "b"] = np.nan
    model = TunedClassifier(LogisticRegression(max_iter=500), {"C": [0.1, 1.0]}, random_state=0).fit(table, Y)
    document, facts = model.summary(), plain_facts(model.summary())
    assert facts["estimator"] == "LogisticRegression" and facts["parameters"]["C"] == str(model.best_params_["C"])
    assert [entry["log_loss"] for entry in facts["tried"]] == [entry["log_loss"] for entry in model.search_]
    weights = {row[0]: float(row[1].text) for row in blocks(document, Table)[2].rows}
    largest = np.abs(model.model_.coef_).max(axis=0)
    assert model.columns_.names == ["a", "b", "c", "d", "e = big", "e = small", "b missing"]
    assert weights == pytest.approx(dict(zip(model.columns_.names, largest)), abs=6e-4)
    forest = TunedClassifier(RandomForestClassifier(5), encoding="codes", random_state=0).fit(table, Y)
    assert forest.columns_.names == list("abcde") and forest.summary().facts["tried"] == []


@pytest.mark.parametrize("stack", [MaxEntStackingClassifier, HMMStackingClassifier])
def test_the_objective_is_of_the_combination_alone(stack):
    model = stack(BASES, cv=2, random_state=0).fit(X, Y)
    runs = model.runs_ if stack is HMMStackingClassifier else [model.run_]
    assert model.summary().facts["run"]["objective"] == sum(run.objective for run in runs)
