"""The page of one model: of any kind, with labels and without."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mixent as mx
from mixent.base.describe import describe, document
from mixent.base.document import Figure, Section, Table, canvas
from mixent.base.options import Estimator
from mixent.base.registry import entries, register, unregister
from mixent.evaluate import log_loss
from mixent.report import Paragraph, model_report
from mixent.report.model import PAGES
from mixent.report.sections import model_content

X, CODES = load_iris(return_X_y=True)
FRAME = pd.DataFrame(X, columns=["<a>", "$b", "_c", "d & e"])
Y = np.array(["<setosa>", "versicolor", "virginica"])[CODES]
EVEN, ODD = slice(None, None, 2), slice(1, None, 2)
DATA = ["summary", "columns", "data-problems"]
SCORED = ["scores", "calibration", "roc-curves", "errors"]


@pytest.fixture(scope="module")
def mixture():
    return mx.MixtureClassifier(1, covariance="VVV", random_state=0).fit(FRAME[EVEN], Y[EVEN])


# --- a registered model describes itself ----------------------------------------------------------------------------


class Majority(ClassifierMixin, Estimator):
    """Answers the most frequent class."""

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.share_ = counts / counts.sum()
        return self

    def predict_proba(self, X):
        return np.tile(self.share_, (len(X), 1))


def describe_majority(model):
    shares = Table("Shares", ["class", "share"], [[str(c), float(p)] for c, p in zip(model.classes_, model.share_)])
    own = Section("Counts <of> classes", [shares, Figure(lambda: canvas(2, 1), "An empty figure.")])
    return document(model, f"Answers {model.classes_[model.share_.argmax()]}.", [own])


def on_rows(model, X, y):
    return [Paragraph(f"{len(X)} rows, {'no' if y is None else len(y)} labels")]


@pytest.fixture
def majority():
    facts = {"state": {"classes_": np.ndarray, "share_": np.ndarray}, "describe": describe_majority}
    register("majority", task="classification", title="Most <frequent> class", on_rows=on_rows, **facts)(Majority)
    yield Majority().fit(X[:110], Y[:110])
    unregister(Majority)


def test_the_page_of_a_registered_model_is_made_of_its_description(tmp_path, read, majority):
    page = read(model_report(tmp_path / "r.html", majority, X, Y))
    assert page.sections[-4:] == ["the-model", "the-model-on-these-rows", "explained-rows", "how-to-reproduce"]
    for text in ("Most <frequent> class", "Answers <setosa>.", "Counts <of> classes", "150 rows, 150 labels"):
        assert text in page.text
    assert ("img", "alt", "An empty figure.") in page.attributes
    assert "150 rows, no labels" in read(model_report(tmp_path / "r.html", majority, X)).text


def test_columns_are_shown_once(mixture):
    titles = [section.title for section in describe(mixture).sections]
    assert "Columns" in titles
    assert "Columns" not in [getattr(block, "text", "") for block in model_content(mixture)]


def test_every_task_has_a_page():
    from mixent.base.registry import TASKS

    assert set(PAGES) == set(TASKS) - {"features"}
    assert {entry.task for entry in entries()} <= set(TASKS)


@pytest.mark.parametrize("entry", [e for e in entries() if e.task in PAGES], ids=lambda entry: entry.name)
def test_a_model_that_is_not_fitted_has_no_page(tmp_path, entry):
    with pytest.raises(NotFittedError):
        model_report(tmp_path / "r.html", entry.make(), None if entry.task == "fusion" else X)


# --- classifiers ----------------------------------------------------------------------------------------------------


def test_a_classifier_with_labels(tmp_path, read, mixture):
    given = {"title": "<t>", "commands": "mixent <report>", "data_notes": ["a <note>"]}
    path = model_report(tmp_path / "r.html", mixture, FRAME[ODD], Y[ODD], **given)
    page = read(path)
    shown = [name for name in page.sections if name != "the-model-on-these-rows"]
    assert shown == [
        *DATA,
        *SCORED,
        "map-of-the-rows",
        "the-model",
        "explained-rows",
        "unusual-rows",
        "how-to-reproduce",
    ]
    wrong = int((mixture.predict(FRAME[ODD]) != Y[ODD]).sum())
    assert f"{wrong} of 75" in page.words and {"<t>", "mixent <report>", "A <note>."} <= set(page.text)
    assert f"{log_loss(Y[ODD], mixture.predict_proba(FRAME[ODD]), mixture.classes_):.3f}" in page.text
    again = model_report(tmp_path / "2.html", mixture, FRAME[ODD], Y[ODD], **given)
    assert again.read_bytes() == path.read_bytes()


def test_a_classifier_without_labels(tmp_path, read, mixture):
    page = read(model_report(tmp_path / "r.html", mixture, FRAME))
    assert "predictions" in page.sections and not set(SCORED) & set(page.sections)
    top = mixture.predict_proba(FRAME).max(axis=1)
    assert f"{int((top < 0.9).sum())} decisions of 150" in page.words


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(5, random_state=0),
        make_pipeline(StandardScaler(), LogisticRegression()),
        KNeighborsClassifier(),
    ],
    ids=lambda m: type(m).__name__,
)
def test_models_of_other_libraries(tmp_path, read, model):
    model.fit(FRAME[EVEN], Y[EVEN])
    page = read(model_report(tmp_path / "r.html", model, FRAME[ODD], Y[ODD]))
    shown = [*DATA, *SCORED, "map-of-the-rows", "the-model", "explained-rows", "how-to-reproduce"]
    assert page.sections == shown and page.tags.count("img") >= 4
    assert describe(model).title in page.text


def test_two_columns_have_decision_regions(tmp_path, read):
    model = LogisticRegression().fit(X[:, 2:], Y)
    page = read(model_report(tmp_path / "r.html", model, X[:, 2:], Y))
    assert sum("Decision regions" in str(value) for _, name, value in page.attributes if name == "alt") == 1


def test_weights_count_in_every_score(tmp_path, read, mixture):
    weight = np.ones(150)
    weight[:75] = 2
    page = read(model_report(tmp_path / "r.html", mixture, FRAME, Y, sample_weight=weight))
    expected = log_loss(Y, mixture.predict_proba(FRAME), mixture.classes_, sample_weight=weight)
    assert f"{expected:.3f}" in page.text


# --- other models ---------------------------------------------------------------------------------------------------


def test_models_without_classes(tmp_path, read):
    coded = pd.DataFrame({"u": np.where(X[:, 2] > 3, "long", "short"), "v": Y, "w": X[:, 3]})
    models = {
        mx.GaussianMixture(2, random_state=0): FRAME,
        mx.MaxEntJoint(): coded,
        mx.HiddenMarkovModel(2, random_state=0): X,
    }
    for model, rows in models.items():
        page = read(model_report(tmp_path / "r.html", model.fit(rows), rows))
        assert {*DATA, "log-likelihood", "the-model", "unusual-rows"} <= set(page.sections)
        assert f"{model.score_samples(rows).mean():.4g} nats" in page.words


def test_steps_of_sequences(tmp_path, read):
    rng, groups = np.random.default_rng(0), np.repeat(np.arange(20), 6)
    y = np.array(["a", "b"])[np.arange(20) % 2]
    steps = rng.normal(size=(120, 1)) + 2 * (y[groups] == "b")[:, None]
    model = mx.HMMClassifier(1, random_state=0).fit(steps, y, groups=groups)
    page = read(model_report(tmp_path / "r.html", model, steps, y, groups=groups))
    assert page.sections == [*DATA, *SCORED, "the-model", "how-to-reproduce"]
    assert "predicts 20 sequences" in page.words and "120 rows and 1 column" in page.words
    alone = mx.HiddenMarkovModel(1, random_state=0).fit(steps, groups=groups)
    page = read(model_report(tmp_path / "r.html", alone, steps, groups=groups))
    assert "on 20 sequences of 1 column" in page.words and "unusual-rows" not in page.sections


def test_without_matplotlib_there_are_tables(tmp_path, read, mixture, without_matplotlib):
    for y in (Y, None):
        page = read(model_report(tmp_path / "r.html", mixture, FRAME, y))
        assert "img" not in page.tags and "table" in page.tags


# --- errors ---------------------------------------------------------------------------------------------------------


# --- all models -----------------------------------------------------------------------------------------------------


def shown(entry):
    return entry.listed and entry.task not in ("features", "fusion")


@pytest.mark.parametrize("entry", list(filter(shown, entries())), ids=lambda entry: entry.name)
def test_every_registered_model_has_a_page_on_other_rows(tmp_path, read, entry):
    """With values and labels missing; a warning would be an error."""
    rows = FRAME[["<a>", "_c"]].assign(kind=np.where(X[:, 1] > 3, "wide", "narrow"))[50::2]
    rows = FRAME[["<a>", "_c", "d & e"]][50::2] if entry.family == "hmm" else rows
    y, model = Y[50::2].astype(object), entry.make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = model.fit(rows[::2], y[::2]) if entry.task == "classification" else model.fit(rows[::2])
    new, labels = rows[1::2].copy(), y[1::2]
    new.iloc[::5, 0] = np.nan
    labels[::7] = None
    page = read(model_report(tmp_path / "r.html", model, new, labels if entry.task == "classification" else None))
    assert {"summary", "the-model", "how-to-reproduce"} <= set(page.sections) and entry.title in page.text
