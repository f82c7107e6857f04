"""`mixent info`: the description of the model in a file."""

import json

import pytest

import mixent as mx


@pytest.mark.parametrize("name", ["model", "clusters", "maxent", "joint"])
def test_the_description_and_the_facts(mixent, stock, name):
    model = mx.load(stock / f"{name}.mixent")
    result = mixent("info", f"{{stock}}/{name}.mixent")
    assert result.exit_code == 0, result.output
    kind = type(model).__name__
    assert f"{kind}, written by mixent {mx.__version__}" in " ".join(result.stdout.split())
    assert model.summary().text(80) in result.stdout and max(map(len, result.stdout.splitlines())) <= 100
    facts = json.loads(mixent("info", f"{{stock}}/{name}.mixent", "--json").stdout)
    assert (facts.pop("class"), facts.pop("mixent_version")) == (kind, mx.__version__)
    assert facts == json.loads(json.dumps(dict(model.summary().facts)))


def test_facts_of_a_classifier(mixent, stock):
    facts = json.loads(mixent("info", "{stock}/model.mixent", "--json").stdout)
    model = mx.load(stock / "model.mixent")
    assert [c["class"] for c in facts["classes"]] == ["no", "yes"]
    assert [c["prior"] for c in facts["classes"]] == model.class_prior_.tolist()
    assert facts["run"]["status"] == "converged"
    assert facts["columns"][2] == {"name": "color", "kind": "categorical", "categories": ["blue", "green", "red"]}
