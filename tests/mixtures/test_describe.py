"""Descriptions of mixtures hold the values of the fitted model."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from mixent import GaussianMixture, MixtureClassifier, SharedMixtureClassifier
from mixent.base.document import Bullets, Figure, Paragraph, Table
from mixent.base.registry import entry_of
from mixent.datasets import make_orchestra
from mixent.mixtures.describe_rows import SURE
from mixent.mixtures.describe_search import search_table, search_text
from mixent.options import Conditional, Search

IRIS = load_iris(as_frame=True)
X = IRIS.data.set_axis(["sepal", "sepal width", "petal", "petal width"], axis=1)
X["color"] = np.where(np.arange(150) % 3 == 0, "red", "blue")
Y = np.array(["setosa", "versicolor", "virginica"])[IRIS.target]
ORCHESTRA = make_orchestra(200, random_state=0)


def blocks(document, kind):
    return [block for section in document.sections for block in section.content if isinstance(block, kind)]


def titles(document):
    return [section.title for section in document.sections]


def text(cell):
    return getattr(cell, "text", cell)


def facts_of(model):
    """As they come back from JSON."""
    return json.loads(json.dumps(model.summary().facts))


def test_the_facts_of_a_classifier_are_those_of_the_model():
    model = MixtureClassifier({"setosa": 1, "versicolor": 2, "virginica": 1}, "VVI", random_state=0).fit(X, Y)
    facts = facts_of(model)
    assert facts["n_parameters"] == model.n_parameters_ and facts["training"] == "likelihood"
    assert [entry["components"] for entry in facts["classes"]] == [1, 2, 1]
    assert [entry["prior"] for entry in facts["classes"]] == model.class_prior_.tolist()
    assert {entry["covariance"] for entry in facts["classes"]} == {"VVI"}
    assert "search" not in facts and "path" not in facts and not facts["covariance_shared_by_classes"]
    assert facts["run"]["passes"] == model.n_iter_ and facts["columns"][4]["categories"] == ["blue", "red"]
    tied = MixtureClassifier(1, "EEE", across_classes=True).fit(X, Y)
    assert facts_of(tied)["covariance_shared_by_classes"]


def test_the_table_of_components_has_their_parameters():
    model = MixtureClassifier(1, "VVV").fit(X, Y)
    table = blocks(model.summary(), Table)[1]
    names = list(X.columns[:4])
    assert list(table.header) == ["component", "class", "weight", *names, "color"]
    for k, row in enumerate(table.rows):
        assert (row[0], row[1], text(row[2])) == (str(k), model.classes_[k], f"{model.weights_[k, k]:.3f}")
        mean, deviation = text(row[3]).split(" ± ")
        assert float(mean) == pytest.approx(model.means_[k, 0], rel=1e-3)
        assert float(deviation) == pytest.approx(np.sqrt(model.covariances_[k, 0, 0]), rel=1e-2)
        assert row[-1].startswith("blue (")


def test_only_categories_have_no_means():
    model = GaussianMixture(2, random_state=0).fit(X[["color"]])
    table = blocks(model.summary(), Table)[0]
    assert list(table.header) == ["component", "weight", "color"] and model.summary().facts["covariance"] is None


def test_shared_components_have_their_classes_and_a_figure():
    model = SharedMixtureClassifier(4, "VVI", random_state=0).fit(ORCHESTRA.X, ORCHESTRA.y)
    document = model.summary()
    for k, entry in enumerate(facts_of(model)["components"]):
        assert list(entry["classes"].values()) == model.class_given_component_[:, k].tolist()
        assert entry["weight"] == model.weights_[:, k].sum()
    table = blocks(document, Table)[1]
    top = int(model.class_given_component_[:, 0].argmax())
    assert table.header[1] == "p(class | component)" and table.rows[0][1].startswith(str(model.classes_[top]))
    figures = blocks(document, Figure)
    assert len(figures) == 2 and all(figure.figure().get_axes() for figure in figures)
    assert titles(document) == ["", "Components", "Objective", "Columns", "Convergence"]


def test_training_and_temperature_are_described():
    trained = SharedMixtureClassifier(2, "VVI", training=Conditional(0.8), random_state=0).fit(ORCHESTRA.X, ORCHESTRA.y)
    facts = facts_of(trained)
    assert (facts["training"], facts["blend"]) == ("conditional", 0.8)
    (bullets,) = blocks(trained.summary(), Bullets)
    assert "(blend 0.8)" in bullets.items[0] and len(bullets.items) == 1
    trained.temperature_ = 0.5
    assert "multiplied by 0.5" in blocks(trained.summary(), Bullets)[0].items[1]


def chosen(**options):
    model = MixtureClassifier("auto", "VVI", search=Search(max_components=2), random_state=0).set_params(**options)
    return model.fit(ORCHESTRA.X, ORCHESTRA.y)


@pytest.mark.parametrize(
    ("options", "sentence", "order", "n_figures"),
    [
        ({"search": "bic"}, "by BIC (", "BIC", 1),
        ({"search__criterion": "dic", "search__growth": "incremental"}, "by DIC (", "DIC", 2),
        ({"search__criterion": "cbic", "search__per_class": True}, "for each class", "conditional BIC", 1),
        ({"search__per_class": True}, "by cross-validation", "held-out log-loss", 0),
        ({"training": "conditional"}, "before the discriminative training", "held-out log-loss", 0),
        ({"search__criterion": "icl", "search__nested": 2}, "selected by ICL in 2 folds", "held-out error", 0),
    ],
)
def test_every_search_has_a_sentence_a_table_and_a_figure(options, sentence, order, n_figures):
    model = chosen(**options)
    facts, document = facts_of(model)["search"], model.summary()
    assert facts["tried"] == len(model.search_) and facts["criterion"] == model._group("search").criterion
    assert [entry["chosen"] for entry in facts["chosen"]] == [True] * sum(e["chosen"] for e in model.search_)
    section = next(section for section in document.sections if section.title == "Search")
    paragraph, table, *_ = section.content
    assert sentence in paragraph.text and order in table.caption and table.rows[0][0] == "chosen"
    figures = [f for s in document.sections if s.title in ("Search", "Growth") for f in s.content if type(f) is Figure]
    assert len(figures) == n_figures and all(figure.figure().get_axes() for figure in figures)


def test_shared_components_are_scored_as_trained():
    model = SharedMixtureClassifier(
        "auto", ["VVI"], search=Search(max_components=2, cv=2), training="conditional", random_state=0
    ).fit(ORCHESTRA.X, ORCHESTRA.y)
    assert "before the discriminative" not in search_text(model)
    model.search = "bic"
    model.search_ = [entry | {"bic": 1.0} for entry in model.search_]
    assert "before the discriminative" in search_text(model)


def test_growth_is_described_stage_by_stage():
    model = chosen(search__criterion="bic", search__growth="incremental", search__per_class=True)
    path = facts_of(model)["path"]
    stages = [(label, stage) for label, stages in zip(model.classes_, model.path_) for stage in stages]
    assert [(e["class"], e["n_components"], e["log_likelihood"]) for e in path] == [
        (label, stage.n_components, stage.log_likelihood) for label, stage in stages
    ]
    section = next(section for section in model.summary().sections if section.title == "Growth")
    assert isinstance(section.content[0], Paragraph)
    assert f"{model.classes_[0]} up to 2 components, {model.n_components_[0]} chosen" in section.content[0].text
    fixed = GaussianMixture(2, "VVI", search=Search(growth="incremental"), random_state=0).fit(ORCHESTRA.X)
    assert [entry["n_components"] for entry in facts_of(fixed)["path"]] == [1, 2]


# --- the table of a search --------------------------------------------------------------------------------------------


def searched(search, **options):
    return SimpleNamespace(search_=search, _group=lambda name: Search("cv", **options))


def test_the_chosen_model_heads_the_table_and_duplicates_are_left_out():
    losses = [0.1, 0.1 + 1e-15, 0.2, 0.3, 0.3]
    tried = [
        {"covariance": f"S{i}", "log_loss": loss, "error": 0.5, "temperature": 1.0, "across_classes": False}
        | {"chosen": i == 4}
        for i, loss in enumerate(losses)
    ]
    table = search_table(searched(tried))
    assert list(table.header)[:3] == ["", "covariance", "log loss"]
    assert [row[:2] for row in table.rows] == [["chosen", "S4"], ["", "S0"], ["", "S2"]]
    assert "3 of 3" in table.caption and "Not shown: 2" in table.caption
    assert "across classes" not in table.header and table.caption.endswith("The same in all: temperature 1")
    tried[0]["across_classes"] = True
    assert "across classes" in search_table(searched(tried)).header


def test_the_table_has_few_digits():
    one = {"n_components": [3, 3], "covariance": "VVV", "prior_rows": 0.8, "log_loss": 0.39642012, "log_loss_raw": 0.4}
    other = {"n_components": [3, 1], "covariance": ["VVV", "VVI"], "prior_rows": 12.3456, "log_loss": 0.5}
    table = search_table(searched([one | {"chosen": True}, other]))
    assert list(table.header) == ["", "n components", "covariance", "prior rows", "log loss"]
    cells = [[text(cell) for cell in row] for row in table.rows]
    assert cells == [["chosen", "3 each", "VVV", "0.8", "0.396"], ["", "3, 1", "VVV, VVI", "12.3", "0.500"]]


def test_a_criterion_ranks_the_table():
    table = search_table(chosen(search__criterion="bic", search__per_class=True))
    assert [row[0] for row in table.rows] == ["chosen", "chosen", "", ""]
    values = [float(text(row[table.header.index("bic")])) for row in table.rows]
    assert values[2] <= values[3]


# --- on rows ----------------------------------------------------------------------------------------------------------


def test_rows_of_each_component_and_the_map_of_the_density():
    model = GaussianMixture(2, "VVI", random_state=0).fit(X)
    table, figure = entry_of(model).on_rows(model, X, None)
    proba = model.predict_proba(X)
    assert [row[1] for row in table.rows] == np.bincount(proba.argmax(axis=1)).tolist()
    assert [text(row[2]) for row in table.rows] == [f"{100 * share:.1f}" for share in proba.mean(axis=0)]
    assert f"{100 * np.mean(proba.max(axis=1) > SURE):.0f}" in table.caption
    assert "petal and petal width" in figure.caption and "<img" in figure.html()
    words = GaussianMixture(2, random_state=0).fit(X[["color"]])
    assert len(entry_of(words).on_rows(words, X[["color"]], None)) == 1


@pytest.mark.parametrize("estimator", [MixtureClassifier(1, "VVI"), SharedMixtureClassifier(3, "VVI", random_state=0)])
def test_regions_are_over_the_pair_of_columns_with_the_fewest_errors(estimator):
    model = estimator.fit(X, Y)
    for y in (Y, np.where(np.arange(150) % 2, Y, None), None):
        (figure,) = entry_of(model).on_rows(model, X, y)
        assert "<img" in figure.html()
    (figure,) = entry_of(model).on_rows(model, X, Y)
    names = list(X.columns[:4])
    errors = {
        (a, b): int(np.sum(model.marginal([a, b]).predict(X[[a, b]]) != Y))
        for i, a in enumerate(names)
        for b in names[i + 1 :]
    }
    best = [pair for pair, n in errors.items() if n == min(errors.values())]
    assert any(f"over {a} and {b};" in figure.caption for a, b in best) and "other 3 columns" in figure.caption


def test_two_columns_have_the_regions_of_the_page_and_one_number_has_no_map():
    model = MixtureClassifier(1).fit(X[["sepal", "petal"]], Y)
    assert entry_of(model).on_rows(model, X[["sepal", "petal"]], Y) == []
    few = pd.DataFrame({"a": X["sepal"], "b": X["color"], "c": X["color"]})
    model = MixtureClassifier(1).fit(few, Y)
    assert entry_of(model).on_rows(model, few, Y) == []
