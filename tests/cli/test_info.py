import json

import mixent as mx


def test_info_of_a_classifier(mixent):
    result = mixent("info", "{stock}/model.mixent")
    assert result.exit_code == 0, result.output
    for text in (
        "MixtureClassifier",
        f"mixent {mx.__version__}",
        "categorical",
        "blue, green, red",
        "VVV",
        "Converged",
        "free parameters",
    ):
        assert text in result.stdout


def test_info_of_clusters(mixent):
    result = mixent("info", "{stock}/clusters.mixent")
    assert "GaussianMixture" in result.stdout and "component" in result.stdout


def test_json(mixent, stock):
    about = json.loads(mixent("info", "{stock}/model.mixent", "--json").stdout)
    model = mx.load(stock / "model.mixent")
    assert about["class"] == "MixtureClassifier"
    assert [c["class"] for c in about["classes"]] == ["no", "yes"]
    assert [c["prior"] for c in about["classes"]] == model.class_prior_.tolist()
    assert about["run"]["status"] == "converged" and about["n_parameters"] == model.n_parameters_
    assert about["columns"][2] == {"name": "colour", "kind": "categorical", "categories": ["blue", "green", "red"]}
    assert "components" in json.loads(mixent("info", "{stock}/clusters.mixent", "--json").stdout)
