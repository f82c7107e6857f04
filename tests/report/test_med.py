"""The section of a classifier by maximum entropy discrimination in a report."""

import re

import numpy as np
import pandas as pd
import pytest

from mixent import MEDClassifier, MEDGaussianClassifier
from mixent.base import document
from mixent.evaluate import cross_validate
from mixent.evaluate.discrimination import describe_discrimination, in_words
from mixent.report import Paragraph, Section, write_report
from mixent.report.med import med_section


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    y = np.array(["<no>", "yes"])[rng.integers(2, size=n)]
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n) + 1.5 * (y == "yes"),
            "<colour>": np.where(rng.random(n) < 0.6, np.where(y == "yes", "red", "blue"), "green"),
        }
    )
    frame.loc[::9, "size"] = np.nan
    return frame, y


X, Y = table()
MODEL = MEDClassifier(cv=2, random_state=0)


@pytest.fixture(scope="module")
def cv():
    return cross_validate({"discrimination": MODEL.set_params(C="auto")}, X, Y, folds=2)


def comparison_report(path, *, title, cv, models, X=None, y=None):
    """The former section on a page of its own."""
    draw = document.can_draw()
    sections = [
        Section("The discrimination model", med_section(name, model, X, y, draw=draw)) for name, model in models.items()
    ]
    return write_report(path, title, [*sections, Section("How to reproduce", [Paragraph("p")])])


def text_of(page):
    return " ".join(re.sub("<[^>]+>", " ", page).split())


def section(path, cv, **options):
    page = comparison_report(path / "r.html", title="t", cv=cv, **options).read_text(encoding="utf-8")
    return page[page.index("The discrimination model</h2>") : page.index("How to reproduce</h2>")]


def test_the_section_has_everything(tmp_path, cv):
    model = MODEL.fit(X, Y)
    page = section(tmp_path, cv, models={"discrimination": model}, X=X, y=Y)
    said = text_of(page)
    assert "<colour>" not in page and "<no>" not in page
    assert "Linear discriminant in 5 encoded columns." in said and "least relative entropy to the prior" in said
    for fact in in_words(describe_discrimination(model), see="the comparison above says what it is on rows not seen"):
        assert f"{fact}." in said
    for entry in model.C_tried_:
        assert f"{entry['log_loss']:.4f}" in said
    assert f"<strong>{model.C_:g}</strong>" in page  # the one in use is marked
    for name, coefficient in zip(model.feature_names_, model.coef_):
        assert f"{name.replace('<', '&lt;').replace('>', '&gt;')} {abs(coefficient):.3f}" in said
    assert "numbers are in standard deviations" in said and page.count("<figure") == 1
    assert f"Margins of 120 labelled training rows: {len(model.support_)} have a multiplier, " in page


def test_three_classes_kernels_and_gaussians(tmp_path, cv):
    y = np.where(np.arange(120) % 3 == 0, "third", Y)
    page = section(tmp_path, cv, models={"m": MEDClassifier(C=2, cv=2, random_state=0).fit(X, y)}, X=X, y=y)
    assert "of that class less the mean of all classes" in page and "tried" not in page
    page = section(tmp_path, cv, models={"m": MEDClassifier("rbf", C=2, cv=2, random_state=0).fit(X, y)}, X=X, y=y)
    assert "Kernel rbf, gamma" in page and "speaks for" not in page and "<table" not in page
    model = MEDGaussianClassifier(C=2, cv=2, random_state=0).fit(X, Y)
    page = section(tmp_path, cv, models={"m": model}, X=X, y=Y)
    assert "distributions over the Gaussians of the classes" in page and "Gaussians of 5 encoded columns" in page


def test_without_pictures_or_rows(tmp_path, cv, monkeypatch):
    model = MODEL.fit(X, Y)
    page = section(tmp_path, cv, models={"discrimination": model})
    assert "<figure" not in page and "The encoded columns, strongest first" in page
    monkeypatch.setattr(document, "find_spec", lambda name: None)
    assert "<figure" not in section(tmp_path, cv, models={"discrimination": model}, X=X, y=Y)


def test_many_columns_are_cut(tmp_path, cv):
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(120, 20))).rename(columns=str)
    model = MEDClassifier(C=2, cv=2, standardize=False, random_state=0).fit(wide, Y)
    said = text_of(section(tmp_path, cv, models={"m": model}, X=wide, y=Y))
    assert "The 12 strongest of 20 encoded columns" in said and "standard deviations" not in said
