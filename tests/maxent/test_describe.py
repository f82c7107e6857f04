"""Descriptions of maximum entropy models hold the values of the fitted model."""

import json

import numpy as np
import pandas as pd
import pytest

from mixent import MaxEntClassifier, MaxEntJoint
from mixent.base.document import Figure, Table
from mixent.base.registry import entry_of


def table(n=160, seed=0):
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.5
    X = pd.DataFrame(
        {
            "age": np.where(ill, 60, 45) + 8 * rng.normal(size=n),
            "pain": np.where(rng.random(n) < np.where(ill, 0.8, 0.3), "strong", "weak"),
            "noise": rng.normal(size=n),
        }
    )
    return X, np.where(ill, "ill", "well")


X, Y = table()


def blocks(document, kind):
    return [block for section in document.sections for block in section.content if isinstance(block, kind)]


@pytest.fixture(scope="module")
def model():
    return MaxEntClassifier(selection="bic", prior_variance=1.0, random_state=0).fit(X, Y)


def test_facts_are_those_of_the_model_and_plain(model):
    facts = json.loads(json.dumps(model.summary().facts))
    assert facts["features"] == list(model.feature_terms_) and facts["numeric_features"] == "union"
    assert facts["n_parameters"] == model.n_parameters_ and facts["entropy"] == model.entropy_
    assert facts["constraints"] == len(model.constraints().features) * 2
    assert facts["certificate"] == {"gap": model.gap_, "residual": model.residual_}
    assert facts["prior_variance"] == {"value": 1.0, "how": "given", "tried": []}
    assert facts["entropy_of_classes"] == pytest.approx(-sum(p * np.log(p) for p in model.class_prior_))
    assert [step["feature"] for step in facts["path"]] == [step.name for step in model.path_]
    assert facts["selection"] == "bic" and facts["run"]["ok"]
    strongest = facts["strongest"][0]
    assert strongest["strength"] == max(model.constraints().strength.values())


def test_every_figure_is_drawn_and_the_text_has_none(model):
    document = model.summary()
    figures = blocks(document, Figure)
    assert len(figures) == 2 and all(figure.figure().get_axes() for figure in figures)
    assert "<svg" not in str(document) and document.html().count("<figure>") == 2
    strongest = blocks(document, Table)[1]
    assert [row[0] for row in strongest.rows] == [entry["feature"] for entry in document.facts["strongest"]]


def test_how_the_prior_was_chosen():
    chosen = MaxEntClassifier(random_state=0).fit(X, Y).summary().facts["prior_variance"]
    assert (
        chosen["how"] == "cross-validation"
        and min(chosen["tried"], key=lambda e: e["log_loss"])["prior_variance"] == chosen["value"]
    )
    assert MaxEntClassifier(random_state=0).fit(X[:20], Y[:20]).summary().facts["prior_variance"]["how"] == "default"
    assert (
        MaxEntClassifier(prior_variance=None, random_state=0).fit(X, Y).summary().facts["prior_variance"]["how"]
        == "none"
    )


def test_a_model_without_features():
    noise = pd.DataFrame({"x": ["a", "b"] * 20})
    model = MaxEntClassifier(selection="bic", prior_variance=1.0).fit(noise, [*"ppqq"] * 10)
    document = model.summary()
    assert document.facts["features"] == [] and document.facts["strongest"] == []
    assert [section.title for section in document.sections][1] == "Feature selection"


def test_columns_of_probabilities_are_no_numeric_columns():
    P = pd.DataFrame({"p": [0.2, 0.9] * 20, "q": [0.8, 0.1] * 20})
    model = MaxEntClassifier(probabilistic={"vote": ["p", "q"]}, prior_variance=1.0).fit(P, [*"ab"] * 20)
    assert model.summary().facts["numeric_features"] is None


def test_the_joint_model():
    model = MaxEntJoint(prior_variance=1.0, random_state=0).fit(X)
    document = model.summary()
    facts = json.loads(json.dumps(document.facts))
    assert facts["n_values"] == len(model.params_.single) and facts["n_parameters"] == model.n_parameters_
    assert facts["strongest"][0]["columns"] == ["age", "pain"] and facts["prior_variance"]["value"] == 1.0
    (scores,) = entry_of(model).on_rows(model, X, None)
    text = {
        row[0]: [None if cell is None else float(cell.text.rstrip(" %")) for cell in row[1:]] for row in scores.rows
    }
    truth = model.accuracy_by_column(X)
    constant = 100 * (1 - X["pain"].value_counts(normalize=True).max())
    assert text["pain"][:2] == pytest.approx([100 * truth["pain"].error, constant], abs=0.051)
    assert text["age"][2] == pytest.approx(100 * truth["age"].r2, abs=0.051)


def test_an_interaction_is_zero_where_multipliers_are_sums():
    from mixent.maxent.describe_joint import _interaction

    p, q = np.array([0.2, 0.8]), np.array([0.5, 0.3, 0.2])
    sums = np.array([[1.0], [3.0]]) + np.array([0.5, -1.0, 2.0])
    assert _interaction(sums, p, q) == pytest.approx(0, abs=1e-12)
    pairs = np.random.default_rng(0).normal(size=(2, 3))
    assert _interaction(pairs + sums, p, q) == pytest.approx(_interaction(pairs, p, q))
    assert _interaction(pairs, p, q) > 0.01


def test_a_joint_model_without_an_optimum_did_not_converge():
    rows = [["a", "x"], ["b", "y"]] * 10
    with pytest.warns(UserWarning, match="never occur together"):
        model = MaxEntJoint(prior_variance=None).fit(rows)
    assert model.summary().facts["run"]["status"] == "no optimum"


def test_parameters_set_after_the_fit_change_nothing():
    model = MaxEntClassifier("bins", selection="validation", prior_variance=1.0, random_state=0).fit(X, Y)
    before = model.summary().facts
    after = model.set_params(features="union", selection=None).summary().facts
    assert (after["selection"], after["numeric_features"]) == ("validation", "bins")
    assert after == before
