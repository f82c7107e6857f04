"""Shared components, objectives, growth and selection at the command line, and what `info` says of them."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import mixent as mx
from mixent.cli.console import Screen
from mixent.cli.fit import _say_search
from mixent.cli.summary import _spoken
from mixent.datasets import make_orchestra


@pytest.fixture(scope="module")
def rows():
    found = make_orchestra(150, random_state=0)
    return pd.DataFrame(found.X, columns=["pitch", "attack"]).assign(material=found.y)


@pytest.fixture
def fit(mixent, rows):
    """Fit to the orchestra; returns what was said, on one line, and the model."""
    rows.to_csv("d.csv", index=False)

    def run(*options, target=True):
        given = ("-t", "material") if target else ("--ignore", "material")
        result = mixent("fit", "d.csv", *given, "-o", "m.mixent", *options)
        assert result.exit_code == 0, result.output
        return " ".join(result.stdout.split()), mx.load("m.mixent")

    return run


def told(mixent):
    result = mixent("info", "m.mixent")
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 80
    return " ".join(result.stdout.split())


def test_a_shared_model_equals_the_library_and_says_who_speaks_for_whom(fit, mixent, rows):
    said, model = fit("--model", "shared", "-k", "4", "--objective", "conditional", "--alpha", "0.9", "--seed", "3")
    X = rows[["pitch", "attack"]]
    expected = mx.SharedMixtureClassifier(4, training=mx.Conditional(0.9), random_state=3)
    np.testing.assert_array_equal(model.predict_proba(X), expected.fit(X, rows["material"]).predict_proba(X))
    for text in (said, told(mixent)):
        assert "speaks for: p(class | component)" in text and " %, wood: " in text
        assert "Trained for the classes given the rows (objective conditional, alpha 0.9)" in text
    about = json.loads(mixent("info", "m.mixent", "--json").stdout)
    assert about["objective"] == "conditional" and about["covariance"] == "VVV"
    table = np.array([[c["classes"]["metal"], c["classes"]["wood"]] for c in about["components"]])
    np.testing.assert_allclose(table.T, model.class_given_component_)
    np.testing.assert_allclose([c["weight"] for c in about["components"]], model.weights_.sum(axis=0))


def test_early_stopping_is_no_failure(fit, mixent):
    said, model = fit("--model", "shared", "-k", "3", "--objective", "error", "--validation", "0.3")
    assert model.training.validation == 0.3 and "Trained for few errors" in told(mixent)
    assert ("Stopped after" in said) == (model.run_.status.name == "STOPPED") and "Did not" not in said


def test_growth_is_told_in_one_sentence(fit, mixent):
    _, model = fit("--model", "shared", "-k", "3", "--growth", "incremental")
    values = ", ".join(f"{stage.log_likelihood:.6g}" for stage in model.path_)
    assert f"Grown from 1 to 3 components: log-likelihood {values}; 3 kept." in told(mixent)
    said, model = fit("-k", "2", "--growth", "incremental")
    text = "Grown one component at a time: metal: 1 to 2 components (2 kept), wood: 1 to 2 components (2 kept)."
    assert text in said and text in told(mixent)
    path = json.loads(mixent("info", "m.mixent", "--json").stdout)["path"]
    assert [(stage["class"], stage["n_components"]) for stage in path] == [
        ("metal", 1),
        ("metal", 2),
        ("wood", 1),
        ("wood", 2),
    ]
    said, _ = fit("-k", "2", "--growth", "incremental", "--covariance", "VVI", target=False)
    assert "Grown from 1 to 2 components" in said


SEARCH = ("--max-components", "2", "--covariance", "VVI")


@pytest.mark.parametrize("select", ["cv", "bic", "icl", "dic", "dic_robust", "cbic"])
def test_every_selection_says_what_it_chose(fit, select):
    said, model = fit("--model", "shared", "--select", select, "--max-components", "4", "--covariance", "VVI")
    assert model.search.criterion == select and model.search.max_components == 4
    (best,) = [entry for entry in model.search_ if entry["chosen"]]
    if select == "cv":
        text = f"by cross-validation inside the training rows: log-loss {best['log_loss']:.3f} nats"
    else:
        text = f"Chosen among {len(model.search_)} models by {select.upper()} ({best[select]:.6g}; lower is better)"
    assert text in said


def test_selection_by_class_and_of_clusters(fit):
    said, model = fit("--select", "bic", "--per-class", *SEARCH)
    assert model.search.per_class
    best = {entry["class"]: entry["n_components"] for entry in model.search_ if entry["chosen"]}
    assert f"lower is better): metal: {best['metal']} VVI, wood: {best['wood']} VVI" in said
    assert "by cross-validation" in fit("--select", "cv", "--per-class", *SEARCH)[0]
    assert "by -2 x held-out log density (" in fit("--select", "cv", *SEARCH, target=False)[0]
    said, model = fit("-k", "1", "--select", "icl", target=False)  # one number, all structures
    assert len(model.search_) == 14 and "Chosen among 14 models by ICL" in said


def test_nested_choices_are_told(capsys, rows):
    X, y = rows[["pitch", "attack"]], rows["material"]
    model = mx.MixtureClassifier("auto", "VVI", search=mx.Search("dic", 2, nested=3), random_state=0).fit(X, y)
    _say_search(Screen(False), model)
    said = " ".join(capsys.readouterr().out.split())
    assert "that DIC picked in 3 folds, by held-out error: log-loss" in said


@pytest.mark.parametrize(
    ("select", "covariance", "before"), [("cv", "VVI", False), ("bic", "VVI", True), ("cv", ["VVI", "VVI"], True)]
)
def test_scores_from_before_the_training_are_called_so(capsys, select, covariance, before):
    entry = {"log_loss": 0.2, "error": 0.1} if select == "cv" else {"bic": 5.0}
    model = mx.SharedMixtureClassifier(training="error", search=select)
    model.search_, model.covariance_ = [entry | {"chosen": True}], covariance
    _say_search(Screen(False), model)
    assert ("before the training that followed" in " ".join(capsys.readouterr().out.split())) == before


def test_few_rows_are_not_searched(capsys):
    _say_search(Screen(False), SimpleNamespace(search_=[]))
    assert capsys.readouterr().out == ""


def test_shares_in_words():
    assert _spoken({"a": 0.1, "b": 0.896, "c": 0.004}) == "b: 90 %, a: 10 %"
    assert _spoken(dict.fromkeys("abcdef", 1 / 6)).endswith("d: 17 %, ...")
    assert _spoken({"[red]": 1.0}) == "\\[red]: 100 %"


IDLE = "has no effect with --components 2; it serves --components auto"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--model", "forest"],
            "--model must be one of mixture, shared, maxent, joint, med, med-gaussian, med-tree, med-bayes-net, parz",
        ),
        (["--objective", "fun"], "--objective must be one of likelihood, conditional, error; got 'fun'"),
        (["--growth", "up"], "--growth must be one of restart, incremental; got 'up'"),
        (["--select", "aic"], "--select must be one of cv, bic, icl, dic, dic_robust, cbic; got 'aic'"),
        (["--alpha", "0.5"], "--alpha has no effect with --objective likelihood; it serves --objective conditional"),
        (["--alpha", "0.5", "--objective", "error"], "--alpha has no effect with --objective error"),
        (["--alpha", "2", "--objective", "conditional"], "--alpha"),
        (["--validation", "0.2"], "--validation has no effect with --objective likelihood; it serves --objective cond"),
        (["--validation", "1", "--objective", "error"], "--validation must be a share, more than 0 and less than 1"),
        (["--validation", "nan", "--objective", "error"], "got nan"),
        (["-k", "2", "--select", "bic"], f"--select {IDLE}"),
        (["-k", "2", "--max-components", "3"], f"--max-components {IDLE}"),
        (["-k", "2", "--per-class"], f"--per-class {IDLE}"),
        (["--max-components", "0"], "--max-components"),
        (["--per-class", "--model", "shared"], "--per-class has no effect with --model shared"),
    ],
)
@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_an_option_without_effect_is_an_error(fails, command, options, message):
    output = ["-o", "m.mixent"] if command == "fit" else []
    assert message in fails(command, "{stock}/data.csv", "-t", "class", *output, *options, status=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "shared"], "--model shared needs --target: clusters have no classes"),
        (["--objective", "error"], "--objective error needs --target"),
        (["--per-class"], "--per-class needs --target"),
        (["--select", "dic"], "--select must be one of bic, icl, cv; got 'dic'"),
        (["-k", "2", "--covariance", "VVI", "--select", "bic"], f"--select {IDLE}"),
    ],
)
def test_clusters_have_no_classes(fails, options, message):
    assert message in fails("fit", "{stock}/data.csv", "-o", "m.mixent", *options, status=2)


def test_several_models_are_compared(mixent, rows):
    from pathlib import Path

    rows.to_csv("d.csv", index=False)
    both = ("--model", "mixture", "--model", "shared", "-k", "2")
    result = mixent("evaluate", "d.csv", "-t", "material", *both, "--folds", "2", "--report", "r.html")
    assert result.exit_code == 0, result.output
    assert "mixent mixture" in result.stdout and "mixent shared" in result.stdout
    page = Path("r.html").read_text(encoding="utf-8")
    assert "The model: mixent mixture" in page and "The model: mixent shared" in page
    assert page.count("p(class | component)") == 1 and "Errors, made and expected" in page
