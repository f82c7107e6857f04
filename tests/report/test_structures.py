"""Sections of trees, Bayes nets and hidden Markov models, and the page of a novelty detector."""

import re

import numpy as np
import pandas as pd
import pytest

from mixent import HMMClassifier, MEDBayesNetClassifier, MEDNoveltyDetector, MEDTreeClassifier
from mixent.base import document
from mixent.evaluate import cross_validate
from mixent.med import Margin, Trees
from mixent.report import Paragraph, Section, model_report, write_report
from mixent.report.novelty_rows import row_values, unusual_rows
from mixent.report.sequences import sequences_section
from mixent.report.structures import describe_structure, edges_in_words, structure_in_words
from mixent.report.trees import structures_section


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    y = np.array(["<no>", "yes"])[rng.integers(2, size=n)]
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n) + 1.5 * (y == "yes"),
            "<colour>": np.where(rng.random(n) < 0.6, np.where(y == "yes", "red", "blue"), "green"),
            "weight": rng.normal(size=n),
        }
    )
    frame.loc[::9, "size"] = np.nan
    return frame, y


def series(n=40, seed=0):
    rising = np.sort(np.random.default_rng(seed).normal(size=(n, 6)), axis=1)
    rising[n // 2 :] = rising[n // 2 :, ::-1]
    return rising, np.repeat(["up", "down"], n // 2)


X, Y = table()
TREE = MEDTreeClassifier(cv=2, random_state=0)


@pytest.fixture(scope="module")
def cv():
    return cross_validate({"m": MEDTreeClassifier(C=0.5, cv=2, random_state=0)}, X, Y, folds=2)


def comparison_report(path, *, title, cv, models, X=None, y=None):
    """The former section on a page of its own."""
    draw, sections = document.can_draw(), []
    for name, model in models.items():
        of = sequences_section if isinstance(model, HMMClassifier) else structures_section
        head = "The hidden Markov models" if isinstance(model, HMMClassifier) else "The discrimination model"
        sections.append(Section(head, of(name, model, X, y, draw=draw)))
    return write_report(path, title, [*sections, Section("How to reproduce", [Paragraph("p")])])


def novelty_report(path, *, title, model, X, **options):
    return model_report(path, model, X, title=title, **options)


def text_of(page):
    return " ".join(re.sub("<[^>]+>", " ", page).split())


def section(path, cv, title="The discrimination model", **options):
    page = comparison_report(path / "r.html", title="t", cv=cv, **options).read_text(encoding="utf-8")
    return page[page.index(f"{title}</h2>") : page.index("How to reproduce</h2>")]


# trees


def test_the_section_of_trees_has_everything(tmp_path, cv):
    model = TREE.fit(X, Y)
    page = section(tmp_path, cv, models={"m": model}, X=X, y=Y)
    said, about = text_of(page), describe_structure(model)
    assert "<colour>" not in page and "<no>" not in page
    assert "of all distributions over the trees of the classes that keep the margin" in said
    see = "the comparison above says what it is on rows not seen"
    for fact in structure_in_words(about, see=see)[1:]:
        assert f"{fact}." in said
    for tree in about["trees"]:
        for edge in tree["edges"]:
            pair = " – ".join(edge["between"]).replace("<", "&lt;").replace(">", "&gt;")
            assert f"{pair} {100 * edge['probability']:.1f}" in said
    assert page.count("<figure") == 3 and "Edge weights of each class. Heaviest: " in page
    assert "Margins of 120 labelled training rows" in page and "Values of C tried" in page


def test_trees_of_other_kinds(tmp_path, cv):
    options = {"cv": 2, "random_state": 0}
    model = MEDTreeClassifier(objective="likelihood", **options).fit(X, Y)
    page = section(tmp_path, cv, models={"m": model}, X=X, y=Y)
    assert "without discrimination, a baseline" in page and "Edges of the tree of highest likelihood" in page
    assert page.count("<figure") == 1 and "Margins of" not in page
    model = MEDTreeClassifier("integrated", C=0.5, **options).fit(X, Y)
    page = section(tmp_path, cv, models={"m": model}, X=X, y=Y)
    assert "the probability that a tree has the edge" in page and page.count("<figure") == 3
    model = MEDTreeClassifier(C=0.5, trees="shared", **options).fit(X, Y)
    assert "all classes" in section(tmp_path, cv, models={"m": model}, X=X, y=Y)
    model = MEDTreeClassifier(C=0.5, trees=Trees(n_trees=2), **options).fit(X, Y)
    assert "yes, tree 1" in text_of(section(tmp_path, cv, models={"m": model}, X=X, y=Y))


def test_one_column_has_no_tree_to_draw(tmp_path, cv):
    model = MEDTreeClassifier(C=0.5, cv=2, random_state=0).fit(X[["size"]], Y)
    page = section(tmp_path, cv, models={"m": model}, X=X[["size"]], y=Y)
    assert page.count("<figure") == 1  # the margins


def test_many_edges_are_cut(tmp_path, cv):
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(120, 16))).rename(columns=lambda j: f"x{j}")
    model = MEDTreeClassifier(C=0.5, cv=2, random_state=0).fit(wide, Y)
    page = section(tmp_path, cv, models={"m": model}, X=wide, y=Y)
    assert "(the 12 most probable of 15)" in page
    assert edges_in_words(describe_structure(model))[0][1].endswith(", and 3 more")


# Bayes nets


def test_the_section_of_a_net(tmp_path, cv):
    model = MEDBayesNetClassifier([("<colour>", "size")], C=0.5, cv=2, random_state=0).fit(X, Y)
    page = section(tmp_path, cv, models={"m": model}, X=X, y=Y)
    said = text_of(page)
    assert "<colour>" not in page and "all classes &lt;colour&gt; -&gt; size" in said and "Edges, as given" in said
    assert "distributions over the tables of the classes&#x27; Bayes nets" in said and page.count("<figure") == 2
    model = MEDBayesNetClassifier(C=0.5, cv=2, random_state=0).fit(X, Y)
    page = section(tmp_path, cv, models={"m": model}, X=X, y=Y)
    assert "columns depend on the class alone" in page and page.count("<figure") == 1


def test_structures_of_each_class(tmp_path, cv):
    model = MEDBayesNetClassifier({"<no>": "naive", "yes": [("<colour>", "size")]}, C=0.5, cv=2, random_state=0)
    about = describe_structure(model.fit(X, Y))
    assert edges_in_words(about) == [("<no>", "no edges"), ("yes", "<colour> -> size")]
    assert "edges of each class its own" in about["words"]


def test_a_margin_that_is_no_quantile():
    options = {"C": 0.5, "cv": 2, "random_state": 0}
    assert (
        "quantile"
        not in describe_structure(MEDTreeClassifier(margin=Margin("laplace", target=1.0), **options).fit(X, Y))[
            "margin"
        ]
    )
    apart = X.assign(size=np.where(Y == "yes", 9.0, 0.0) + np.arange(120) / 60)
    assert (
        describe_structure(MEDTreeClassifier(margin=Margin("laplace", quantile=0.3), **options).fit(apart, Y))[
            "margin"
        ]["quantile"]
        == 0.3
    )
    apart = X.assign(size=np.where(Y == "yes", 50.0, 0.0) + np.arange(120) / 60)
    found = describe_structure(MEDBayesNetClassifier(margin=Margin("laplace", quantile=0.9), **options).fit(apart, Y))[
        "margin"
    ]
    assert "quantile" not in found  # as much as is ever asked


def test_without_pictures(tmp_path, cv, monkeypatch):
    model = TREE.fit(X, Y)
    page = section(tmp_path, cv, models={"m": model})
    assert page.count("<figure") == 2  # trees and weights need no rows
    monkeypatch.setattr(document, "find_spec", lambda name: None)
    assert "<figure" not in section(tmp_path, cv, models={"m": model}, X=X, y=Y)


# hidden Markov models


def test_the_section_of_states(tmp_path, cv):
    S, labels = series()
    model = HMMClassifier(3, random_state=0).fit(S, labels)
    page = section(tmp_path, cv, "The hidden Markov models", models={"m": model}, X=S, y=labels)
    said = text_of(page)
    assert "A hidden Markov model of each class, 3 states; 6 steps in a row" in said and page.count("<figure") == 2
    for chain in model.models_:
        for s in range(3):
            assert f"{chain.start_[s]:.2f}" in said and f"value {chain.means_[s, 0]:.3g} ± " in said
    page = section(tmp_path, cv, "The hidden Markov models", models={"m": model})
    assert page.count("<figure") == 2 and "its first row" not in page


def test_states_that_did_not_converge_and_many_classes(tmp_path, cv):
    S, labels = series()
    with pytest.warns(UserWarning, match="did not converge"):
        model = HMMClassifier(3, max_iter=1, random_state=0).fit(S, labels)
    page = section(tmp_path, cv, "The hidden Markov models", models={"m": model}, X=S, y=labels)
    assert "did not converge for down: max_iter was reached" in page
    many = np.array([f"k{i % 8}" for i in range(40)])
    model = HMMClassifier(1, random_state=0).fit(S, many)
    page = section(tmp_path, cv, "The hidden Markov models", models={"m": model}, X=S, y=many)
    assert "... and 2 more classes." in page and page.count("<figure") == 6


# novelty


def odd():
    """Row 5 has a size far out, row 7 a colour that is rare."""
    rows = X.copy()
    rows.loc[5, "size"] = 30.0
    rows.loc[7, "<colour>"] = "violet"
    return rows


def test_the_page_of_a_detector(tmp_path):
    rows = odd()
    model = MEDNoveltyDetector("product").fit(rows)
    page = novelty_report(
        tmp_path / "n.html", title="t", model=model, X=rows, data_notes=["a <note>"], commands="mixent novelty"
    ).read_text(encoding="utf-8")
    said = text_of(page)
    assert "<colour>" not in page and "A &lt;note&gt;." in page and "mixent novelty" in page
    for fact in structure_in_words(describe_structure(model), see="")[1:]:
        assert f"{fact}." in said
    assert page.count("<figure") == 2 and f"{len(model.support_)} of 120 rows count" in page
    lowest = int(model.scores_.argmin())
    assert lowest == 5 and f"5 {model.scores_[5]:.2f} yes size = 30 (" in said


def test_which_columns_make_a_row_unusual():
    rows = odd()
    for kind in ("product",):  # a joint Gaussian stretches towards the row, and blames what lies across
        found = {entry["row"]: entry for entry in unusual_rows(MEDNoveltyDetector(kind).fit(rows), rows)}
        assert found[5]["columns"][0]["column"] == "size" and found[5]["columns"][0]["value"] == "30"
        assert found[7]["columns"][0] == max(found[7]["columns"], key=lambda c: c["below"])
        assert found[7]["columns"][0]["column"] == "<colour>" and found[5]["outlier"]
    scores = [entry["score"] for entry in unusual_rows(MEDNoveltyDetector().fit(rows), rows, 4)]
    assert scores == sorted(scores) and len(scores) == 4


def test_arrays_and_gaps():
    Z = np.random.default_rng(0).normal(size=(60, 2))
    Z[3] = [9.0, np.nan]
    entry = unusual_rows(MEDNoveltyDetector().fit(Z), Z, 1)[0]
    assert entry["row"] == 3 and entry["columns"][0] | {"below": 0} == {"column": "x0", "value": "9", "below": 0}
    assert row_values(pd.DataFrame({"a": [1.0, None], "b": [pd.NA, "u"]})) == [["1", "missing"], ["missing", "u"]]


def test_a_bayesian_fit_and_no_pictures(tmp_path, monkeypatch):
    model = MEDNoveltyDetector(objective="bayes").fit(X)
    page = novelty_report(tmp_path / "n.html", title="t", model=model, X=X).read_text(encoding="utf-8")
    assert "A Bayesian model was fitted to 120 rows" in page
    assert "The level set raises" not in page and page.count("<figure") == 1
    monkeypatch.setattr(document, "find_spec", lambda name: None)
    assert "<figure" not in novelty_report(tmp_path / "n.html", title="t", model=model, X=X).read_text()


def test_every_kind_has_a_page(tmp_path):
    for kind in ("tree", "product", "mixture"):
        model = MEDNoveltyDetector(kind, contamination=0.0).fit(X)
        page = novelty_report(tmp_path / "n.html", title="t", model=model, X=X).read_text(encoding="utf-8")
        assert "0 of 120 training rows lie below (contamination 0)" in page
    S, _ = series()
    model = MEDNoveltyDetector("hmm", n_hidden=2).fit(S)
    page = novelty_report(tmp_path / "n.html", title="t", model=model, X=S).read_text(encoding="utf-8")
    assert "A hidden Markov model of 2 states; 6 steps in a row" in page
