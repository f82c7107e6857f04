"""The section of a maximum entropy classifier in a report."""

import html
import re

import numpy as np
import pandas as pd
import pytest

from mixent import MaxEntClassifier, MixtureClassifier
from mixent.evaluate import cross_validate
from mixent.maxent import BinFeatures
from mixent.maxent.contributions import strongest_features
from mixent.report import common, comparison_report
from mixent.report.maxent import _examples


def table(n=160, seed=0):
    rng = np.random.default_rng(seed)
    y = np.array(["<no>", "yes"])[rng.integers(2, size=n)]
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n) + 1.5 * (y == "yes"),
            "<colour>": np.where(rng.random(n) < 0.6, np.where(y == "yes", "red", "blue"), "green"),
            "noise": rng.normal(size=n),
        }
    )
    frame.loc[::9, "size"] = np.nan
    return frame, y


X, Y = table()
MODEL = MaxEntClassifier(BinFeatures(n_bins=4), selection="bic", prior=1.0, random_state=0)


@pytest.fixture(scope="module")
def cv():
    return cross_validate({"maximum entropy": MODEL, "mixture": MixtureClassifier(1)}, X, Y, folds=2)


def text_of(page):
    return " ".join(re.sub("<[^>]+>", " ", page).split())


def test_the_section_has_everything(tmp_path, cv):
    model = MODEL.fit(X, Y)
    path = comparison_report(tmp_path / "r.html", title="t", cv=cv, models={"maximum entropy": model}, X=X, y=Y)
    page = path.read_text(encoding="utf-8")
    said = text_of(page)
    assert "The maximum entropy model" in page and "<colour>" not in page and "<no>" not in page
    assert f"{len(model.feature_terms_)} features ({2 * len(model.params_.cells)} constraints)" in said
    assert "Columns of numbers enter as bins." in said
    assert "Prior variance of the multipliers 1: what was seen seldom counts for less." in said
    assert f"at most {model.gap_:.1g} nats per row below its maximum" in said
    assert f"Constraints are met within {model.residual_:.2g}; least" in said
    assert f"Entropy of the class given the row: {model.entropy_:.3f} nats; without the row 0." in said
    kept = sum(step.kept for step in model.path_)
    assert f"kept {kept} of {len(model.path_)} additions" in said
    strength = model.constraints().strength
    for name in model.feature_terms_:
        assert f"{strength[name]:.3f}" in said
    assert "Parts of the log-odds by value of" in page and "grey, where the rows are" in said
    assert "beside each value the share of the rows" in said
    for entry in strongest_features(model):  # no sign before the number: it is always for the class
        loud, adds = entry, f"{entry['nats']:.2f}"
        told = f"{html.escape(loud['value'])} {html.escape(loud['class'])} {adds}"
        assert told in said, told
    for example in ("A case like most: row", "The least sure case: row", "The surest error: row"):
        assert example in said
    section = page[page.index("The maximum entropy model</h2>") :]
    assert section.count("<figure") == 5  # path, constraints, three cases


def test_beside_a_mixture_each_has_its_section(tmp_path, cv):
    models = {"maximum entropy": MODEL.fit(X, Y), "mixture": MixtureClassifier(1).fit(X, Y)}
    page = comparison_report(tmp_path / "r.html", title="t", cv=cv, models=models, X=X, y=Y).read_text()
    assert "The model: maximum entropy" in page and "The model: mixture" in page


def test_without_pictures_rows_path_or_prior(tmp_path, cv, monkeypatch):
    monkeypatch.setattr(common, "find_spec", lambda name: None)
    model = MaxEntClassifier("moments", prior=None, random_state=0).fit(X[["size", "noise"]], Y)
    page = comparison_report(tmp_path / "r.html", title="t", cv=cv, models={"m": model}).read_text()
    said = text_of(page)
    assert "No prior on the multipliers: constraints are met exactly where they can be." in said
    assert "Certificate" not in said and "<figure" not in page and "The features, strongest first" in said


def test_a_model_that_kept_nothing(tmp_path, cv):
    turn = np.where(Y == "yes", np.cumsum(Y == "yes"), np.cumsum(Y != "yes"))  # as often in either class
    noise = pd.DataFrame({"x": np.array(["a", "b"])[turn % 2]})
    model = MaxEntClassifier(selection="bic", prior=1.0).fit(noise, Y)
    assert not model.feature_terms_
    page = comparison_report(tmp_path / "r.html", title="t", cv=cv, models={"m": model}, X=noise, y=Y).read_text()
    assert "0 features (0 constraints)" in text_of(page) and "Path of features added: none kept." in page


def test_examples_are_what_they_are_called():
    model = MODEL.fit(X, Y)
    y = Y.astype(object)
    y[:20] = None
    proba = model.predict_proba(X)
    wrong = model.classes_[proba.argmax(axis=1)] != Y
    found = {why: (row, label) for why, row, label in _examples(model, X, y)}
    sure, known = proba.max(axis=1), np.arange(len(Y)) >= 20
    row, label = found["The surest error"]
    assert wrong[row] and sure[row] == sure[wrong & known].max() and label == Y[row]
    row, _ = found["The least sure case"]
    assert sure[row] == sure[known].min() and row >= 20
    row, _ = found["A case like most"]
    assert not wrong[row]


def test_one_row_is_shown_once():
    """The least sure case may be the surest error too."""
    frame = pd.DataFrame({"c": ["a", *"ab" * 10]})
    y = np.array(["q", *"pq" * 10])
    found = _examples(MaxEntClassifier(prior=1.0).fit(frame, y), frame, y)
    assert [(why, row) for why, row, _ in found][1:] == [("The least sure case", 0)] and found[0][1] != 0
