"""Descriptions: facts are the model's numbers, and text, tables and pages show the same facts."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from mixent import GaussianMixture, HiddenMarkovModel, HMMClassifier
from mixent.base.document import Figure, Table
from mixent.base.registry import entry_of
from mixent.med import (
    FisherKernel,
    MEDBayesNetClassifier,
    MEDClassifier,
    MEDGaussianClassifier,
    MEDNoveltyDetector,
    MEDTreeClassifier,
)
from mixent.med.describe import strongest_columns
from mixent.med.describe_novelty import unusual_rows
from mixent.options import Margin, Trees

X, CODES = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "<virginica>"])[CODES]
TWO = np.where(CODES == 2, "yes", "no")
OPTIONS = {"C": 2.0, "cv": 2, "random_state": 0}
WORDS = pd.DataFrame(np.where(X.mean(axis=0) < X, "high", "low"), columns=["<a>", "b", "c", "d"])


def facts_of(model):
    document = model.summary()
    json.dumps(document.facts)  # plain values
    page = document.html()
    assert "<virginica>" not in page and "<a>" not in page
    return document.facts


def tables(document):
    return [block for section in document.sections for block in section.content if isinstance(block, Table)]


def figures(content):
    return [block for block in content if isinstance(block, Figure)]


@pytest.fixture(scope="module")
def three():
    return MEDClassifier(**OPTIONS).fit(X, Y)


# --- margins ----------------------------------------------------------------------------------------------------------


def test_facts_are_the_values_of_the_model(three):
    facts = facts_of(three)
    assert facts["gap"] == three.gap_ and facts["C"] == {
        "value": 2.0,
        "bounds_multipliers": True,
        "chosen_by": "user",
        "tried": [],
    }
    assert facts["support"]["leave_one_out"] == three.loo_estimate_ and facts["support"]["of"] == 150
    support = [np.sum(Y[three.support_] == label) for label in three.classes_]
    assert [entry["support"] for entry in facts["classes"]] == support
    assert [entry["prior"] for entry in facts["classes"]] == pytest.approx(three.class_prior_)
    assert facts["margin"] == {"distribution": "laplace", "target": 1.0, "quantile": None} and facts["bias"] == "flat"
    assert facts["calibration"]["slope"] == three.calibration_.slope and "inferred_labels" not in facts
    assert facts["run"]["passes"] == three.n_iter_ and len(facts["columns"]) == 4


@pytest.mark.slow
def test_labels_that_were_inferred_are_counted():
    partly = Y[::5].astype(object)
    partly[::5] = None
    model = MEDGaussianClassifier(**OPTIONS).fit(X[::5], partly)
    facts = facts_of(model)
    certain = model.label_posterior_[::5].max(axis=1) >= 0.9
    gain = model.unlabelled_gain_
    assert facts["inferred_labels"] == {"rows": 6, "certain": certain.sum(), "unlabelled_gain": gain}
    assert facts["margin"]["quantile"] == 0.1


def test_how_C_was_found():
    chosen = MEDClassifier(cv=2, random_state=0).fit(X, TWO)
    facts = facts_of(chosen)
    assert facts["C"]["chosen_by"] == "cross-validation" and facts["C"]["value"] == chosen.C_
    assert facts["C"]["tried"] == chosen.C_tried_
    table = next(table for table in tables(chosen.summary()) if table.header[0] == "C")
    assert [row[0].text for row in table.rows if row[0].best] == [f"{chosen.C_:g}"]
    assert len(table.rows) == len(chosen.C_tried_)
    apart = X + 20.0 * (TWO == "yes")[:, None]
    fixed = MEDClassifier(margin="fixed", calibration=None).fit(apart, TWO)
    assert facts_of(fixed)["C"] == {"value": None, "bounds_multipliers": False, "chosen_by": None, "tried": []}
    few = MEDClassifier(random_state=0).fit(X[[0, 100]], TWO[[0, 100]])
    assert facts_of(few)["C"]["chosen_by"] == "default"


@pytest.mark.parametrize("margin", ["laplace", "exponential", "gaussian"])
def test_C_is_called_a_bound_only_where_it_bounds_the_multipliers(margin):
    noise = np.random.default_rng(0).permutation(TWO)  # rows that cannot be separated
    model = MEDClassifier(margin=margin, C=2.0, calibration=None).fit(X, noise)
    largest = model.multipliers_.max()
    assert bool(largest < 2.0) is facts_of(model)["C"]["bounds_multipliers"] is (margin != "gaussian")


def test_margins_are_drawn_on_the_training_rows_alone(three):
    on_rows = entry_of(three).on_rows
    (figure,) = on_rows(three, X, Y)
    assert "<img" in figure.html()
    assert on_rows(three, X[:10], Y[:10]) == on_rows(three, X, None) == []
    likely = MEDTreeClassifier(objective="likelihood", calibration=None).fit(X, Y)
    assert entry_of(likely).on_rows(likely, X, Y) == []


# --- kernels and columns ----------------------------------------------------------------------------------------------


def test_gaussians_and_matrices():
    assert facts_of(MEDGaussianClassifier(**OPTIONS).fit(X, TWO))["kernel"] is None
    assert facts_of(MEDClassifier("precomputed", **OPTIONS).fit(X @ X.T, TWO))["kernel"] == {"name": "precomputed"}


def test_fisher_kernels():
    kernel = FisherKernel(GaussianMixture(2, "EII", random_state=0), n_samples=300, random_state=0)
    model = MEDClassifier(kernel, **OPTIONS).fit(X, TWO)
    facts = facts_of(model)["kernel"]
    assert facts == {"name": "fisher", "of": "mixture", "components": 2, "features": model.feature_map_.rank_}
    alone = facts_of(model.feature_map_)
    assert {**alone, **facts} == alone and alone["model"] == model.feature_map_.model_.summary().facts
    sequences = np.random.default_rng(0).choice(list("ab"), size=(60, 6))
    for chain in (HMMClassifier(2, random_state=0), HiddenMarkovModel(2, random_state=0)):
        model = MEDClassifier(FisherKernel(chain), **OPTIONS).fit(sequences, sequences[:, 0] == "a")
        assert facts_of(model)["kernel"]["of"] == "hidden Markov model"


def test_strongest_columns_are_the_largest_coefficients(three):
    table = pd.DataFrame(X, columns=list("abcd"))
    model = MEDClassifier(**OPTIONS).fit(table, TWO)
    strongest = strongest_columns(model, 3)
    weights = model.coef_[0] * model.encoder_.scale  # of the standardized columns
    order = np.argsort(-np.abs(weights))[:3]
    assert [entry["column"] for entry in strongest] == ["abcd"[j] for j in order]
    np.testing.assert_allclose([entry["coefficient"] for entry in strongest], np.abs(weights)[order])
    assert [entry["class"] for entry in strongest] == ["yes" if weights[j] > 0 else "no" for j in order]
    centered = three.coef_.copy()
    centered[:, : len(three.encoder_.scale)] *= three.encoder_.scale
    centered -= centered.mean(axis=0)
    for entry in facts_of(three)["strongest"]:
        j = three.feature_names_.index(entry["column"])
        assert entry["coefficient"] == pytest.approx(centered[:, j].max())
        assert entry["class"] == three.classes_[centered[:, j].argmax()]


def test_many_columns_are_cut():
    wide = np.random.default_rng(0).normal(size=(60, 20))
    model = MEDClassifier(standardize=False, **OPTIONS).fit(wide, np.arange(60) % 2)
    table = next(table for table in tables(model.summary()) if "coefficient" in table.header)
    assert len(table.rows) == 12 and table.caption.startswith("The 12 largest of 20 coefficients")
    assert "standard deviations" not in table.caption and model.summary().facts["encoded_columns"] == 20


# --- trees and nets ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "n_trees"),
    [
        ({}, 3),
        ({"tables": "integrated"}, 3),
        ({"trees": "shared"}, 1),
        ({"trees": Trees(n_trees=2)}, 6),
        ({"objective": "likelihood", "C": "auto"}, 3),
    ],
)
def test_trees(options, n_trees):
    model = MEDTreeClassifier(**{"C": 0.5, "calibration": None, "random_state": 0, **options}).fit(WORDS, Y)
    facts, document = facts_of(model), model.summary()
    assert len(facts["trees"]) == n_trees
    names = list(model.column_names_)
    for tree, edges, marginal in zip(facts["trees"], model.trees_, model.edge_marginals_):
        assert {frozenset(edge["between"]) for edge in tree["edges"]} == {frozenset(edge) for edge in edges}
        chances = [edge["probability"] for edge in tree["edges"]]
        assert chances == sorted(chances, reverse=True) and 0 < tree["probability"] <= 1
        for edge in tree["edges"]:
            assert edge["probability"] == marginal[names.index(edge["between"][0]), names.index(edge["between"][1])]
    likely = "objective" in options
    assert len(figures(document.sections[1].content)) == (1 if likely else 2)
    assert ("support rows" in document.sections[0].content[1].header) == (not likely)
    owners = {tree["class"] for tree in facts["trees"]}
    assert owners == ({None} if options.get("trees") == "shared" else set(Y))


def test_large_trees_are_listed_in_part_and_not_drawn():
    rng = np.random.default_rng(0)
    wide = rng.choice(list("ab"), size=(40, 61))
    model = MEDTreeClassifier(objective="likelihood", calibration=None).fit(wide, wide[:, 0])
    document = model.summary()
    assert not figures(document.sections[1].content) and len(tables(document)[1].rows) == 2 * 12
    assert len(document.facts["trees"][0]["edges"]) == 60


def test_nets():
    options = {"C": 0.5, "calibration": None}
    model = MEDBayesNetClassifier([("b", "c")], **options).fit(WORDS, TWO)
    facts = facts_of(model)
    assert facts["nets"] == [{"class": label, "edges": [["b", "c"]]} for label in ("no", "yes")]
    assert facts["n_cells"] == [net.n_cells for net in model.model_.nets]
    assert tables(model.summary())[1].rows == [["all classes", "b → c"]]
    each = MEDBayesNetClassifier({"no": [("b", "c")], "yes": "naive"}, **options).fit(WORDS, TWO)
    assert tables(each.summary())[1].rows == [["no", "b → c"], ["yes", "no edges"]]
    naive = MEDBayesNetClassifier(objective="likelihood", calibration=None).fit(WORDS, TWO)
    text = " ".join(str(naive.summary()).split())
    assert "without edges (naive Bayes)" in text and "A baseline, trained without margins" in text


def test_a_quantile_is_named_where_it_is_the_target():
    options = {"C": 0.5, "cv": 2, "random_state": 0}
    given = MEDTreeClassifier(margin=Margin("laplace", target=1.0), **options).fit(WORDS, TWO)
    assert facts_of(given)["margin"] == {"distribution": "laplace", "target": 1.0, "quantile": None}
    bounded = MEDTreeClassifier(**options).fit(WORDS, TWO)
    assert facts_of(bounded)["margin"]["target"] >= 2.0


# --- novelty ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("density", "options", "rows"),
    [
        ("product", {}, X),
        ("gaussian", {}, X),
        ("tree", {}, WORDS),
        ("mixture", {"n_hidden": 2}, X),
        ("hmm", {"n_hidden": 2}, X),
    ],
)
def test_densities(density, options, rows):
    model = MEDNoveltyDetector(density, **options).fit(rows)
    facts = facts_of(model)
    assert facts["density"] == density
    assert facts["level"] == {"value": model.level_, "quantile": 0.5} and facts["threshold"]["value"] == model.offset_
    assert facts["scores"]["outside"] == np.sum(model.predict(rows) < 0) and facts["C"] == 1.0
    assert facts["support"] == {"rows": len(model.support_), "largest": model.multipliers_.max()}
    assert len(figures(model.summary().sections[1].content)) == 2


def test_a_bayesian_fit_has_no_margins():
    model = MEDNoveltyDetector("gaussian", objective="bayes").fit(X)
    facts = facts_of(model)
    assert facts["margin"] is None and facts["C"] is None and facts["gap"] is None
    assert len(figures(model.summary().sections[1].content)) == 1


def test_contributions_of_independent_columns_add_up_to_the_score():
    """Less what missing values have on average."""
    model = MEDNoveltyDetector("product").fit(X)
    parts = model.contributions(X[:20])
    scores = model.score_samples(X[:20])
    nothing = model.score_samples(np.full((1, 4), np.nan))
    np.testing.assert_allclose(parts.sum(axis=1), scores - nothing, atol=1e-9)


def test_unusual_rows_and_their_columns():
    model = MEDNoveltyDetector("product").fit(X)
    odd = X.copy()
    odd[7, 2] = 40.0
    (row,) = unusual_rows(model, odd, 1)
    assert row["row"] == 7 and row["outlier"] and row["score"] == pytest.approx(model.score_samples(odd)[7])
    assert row["columns"][0]["column"] == "x2" and row["columns"][0]["value"] == "40"
    below = [column["below"] for column in row["columns"]]
    assert below == sorted(below, reverse=True)


def test_values_that_are_new_or_missing():
    rows = pd.DataFrame({"size": X[:, 0], "color": np.where(CODES == 0, "red", "blue")})
    rows.loc[7, "color"] = "violet"
    model = MEDNoveltyDetector("product").fit(rows)
    columns = {entry["row"]: entry["columns"] for entry in unusual_rows(model, rows)}
    assert columns[7][0]["column"] == "color" and columns[7][0]["value"] == "violet"
    Z = np.random.default_rng(0).normal(size=(60, 2))
    Z[3] = [9.0, np.nan]
    entry = unusual_rows(MEDNoveltyDetector().fit(Z), Z, 1)[0]
    assert entry["row"] == 3 and entry["columns"][0]["column"] == "x0" and entry["columns"][1]["value"] == "missing"


def test_rows_of_a_page():
    model = MEDNoveltyDetector("product").fit(X)
    on_rows = entry_of(model).on_rows
    text, table = on_rows(model, X, None)
    assert len(table.rows) == 15 and "of 150 rows" in text.text
    order = np.argsort(model.scores_, kind="stable")[:15]
    assert [row[0] for row in table.rows] == [str(i) for i in order]
    text, figure, table = on_rows(model, X[:50] + 1, None)
    outside = int(np.sum(model.predict(X[:50] + 1) < 0))
    assert f"50 rows; {outside} are below the threshold" in figure.alt and "<img" in figure.html()


def test_a_gap_that_is_not_known():
    other = MEDClassifier(**OPTIONS).fit(X, Y)
    other.gap_ = None
    assert facts_of(other)["gap"] is None and "from its optimum" not in str(other.summary())


def test_hidden_values_are_named_only_where_there_are_some():
    incomplete = X.copy()
    incomplete[::10, 0] = np.nan
    for rows, hidden in ((X, False), (incomplete, True)):
        model = MEDNoveltyDetector("gaussian").fit(rows)
        assert model.hidden_ is hidden and ("hidden values" in str(model.summary())) is hidden


def test_a_tree_over_one_column_has_no_table_of_edges():
    document = MEDTreeClassifier(C=1.0, random_state=0).fit(WORDS[["b"]], TWO).summary()
    assert all(table.rows for table in tables(document)) and not document.facts["trees"][0]["edges"]
