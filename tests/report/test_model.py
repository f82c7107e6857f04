"""The page of one model: of any kind, with labels and without."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mixent as mx
from mixent.report import comparison_report, fusion_report, model_report
from mixent.report.model import likely_seen

_spec = importlib.util.spec_from_file_location("html_checks", Path(__file__).with_name("test_html.py"))
_checks = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_checks)

X, CODES = load_iris(return_X_y=True)
FRAME = pd.DataFrame(X, columns=["<a>", "$b", "_c", "d & e"])
Y = np.array(["<setosa>", "versicolor", "virginica"])[CODES]
EVEN, ODD = slice(None, None, 2), slice(1, None, 2)


def read(path):
    page = _checks.read(path)
    return page, " ".join(page.text)


def headings(path):
    import re

    return re.findall(r"<h2[^>]*>(.*?)</h2>", path.read_text())


@pytest.fixture(scope="module")
def mixture():
    return mx.MixtureClassifier(1, covariance="VVV", random_state=0).fit(FRAME[EVEN], Y[EVEN])


def test_a_classifier_with_labels(tmp_path, mixture):
    path = model_report(tmp_path / "r.html", mixture, FRAME[ODD], Y[ODD], title="<t>", commands="mixent <report>")
    page, text = read(path)
    wrong = int((mixture.predict(FRAME[ODD]) != Y[ODD]).sum())
    assert f"asked about 75 rows: {wrong} of 75 with a label are decided wrongly" in text
    assert "If the model was fitted to these rows, the scores on this page flatter it" in text
    assert headings(path) == [
        *("In short", "The columns", "Problems found", "Scores on this table", "Calibration", "Classes found"),
        *("Errors", "Map of two columns", "Map of the rows", "The mixture model", "Typical and odd rows"),
        *("Unusual rows", "How the fit ended", "How to reproduce"),
    ]
    assert "fitted on all rows" not in text and "mixent <report>" in text and "Fingerprint of the table" in text
    again = model_report(tmp_path / "2.html", mixture, FRAME[ODD], Y[ODD], title="<t>", commands="mixent <report>")
    assert again.read_bytes() == path.read_bytes()
    from mixent.evaluate import log_loss

    loss = log_loss(Y[ODD], mixture.predict_proba(FRAME[ODD]), mixture.classes_)
    assert f"{loss:.3f}" in page.text


def test_a_classifier_without_labels(tmp_path, mixture):
    path = model_report(tmp_path / "r.html", mixture, FRAME)
    _, text = read(path)
    assert "without labels: nothing here says how often it is right" in text
    assert "Scores on this table" not in text and "decided wrongly" not in text and "Crosses" not in text
    top = mixture.predict_proba(FRAME).max(axis=1)
    assert f"{int((top < 0.9).sum())} decisions of 150 have a probability below 0.9." in text
    assert "What it says" in headings(path)


def test_absent_labels_are_not_scored(tmp_path, mixture):
    y = Y.astype(object)
    y[:30] = None
    _, text = read(model_report(tmp_path / "r.html", mixture, FRAME, y))
    assert "of 120 with a label are decided wrongly" in text and "on 120 rows of this table" in text


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(5, random_state=0),
        make_pipeline(StandardScaler(), LogisticRegression()),
        KNeighborsClassifier(),
    ],
    ids=lambda m: type(m).__name__,
)
def test_models_of_other_libraries(tmp_path, model):
    path = model_report(tmp_path / "r.html", model.fit(FRAME[EVEN], Y[EVEN]), FRAME[ODD], Y[ODD])
    page, text = read(path)
    assert "The model" in headings(path) and page.tags.count("img") >= 4
    assert "no explanation of its own" in text
    if hasattr(model, "feature_importances_"):
        best = FRAME.columns[model.feature_importances_.argmax()]
        assert f"{model.feature_importances_.max():.3f}" in page.text and best in page.text


def test_rows_of_the_training_table_are_suspected(tmp_path):
    model = mx.MEDClassifier(C=1.0).fit(FRAME, Y)
    assert likely_seen(model, 150) and not likely_seen(model, 149)
    assert "as many rows as the model was fitted to" in read(model_report(tmp_path / "r.html", model, FRAME, Y))[1]
    _, text = read(model_report(tmp_path / "r.html", model, FRAME[:149], Y[:149]))
    assert "as many rows as" not in text and "training rows are on their side" not in text
    knn = make_pipeline(StandardScaler(), KNeighborsClassifier()).fit(FRAME, Y)
    assert likely_seen(knn, 150) and not likely_seen(knn, 20)


def test_models_without_classes(tmp_path):
    path = model_report(tmp_path / "r.html", mx.GaussianMixture(2, random_state=0).fit(FRAME), FRAME)
    assert {"Clusters", "The mixture model", "Unusual rows", "How probable the rows are"} <= set(headings(path))
    coded = pd.DataFrame({"u": np.where(X[:, 2] > 3, "long", "short"), "v": Y, "w": X[:, 3]})
    model = mx.MaxEntJoint().fit(coded)
    path = model_report(tmp_path / "r.html", model, coded)
    page, text = read(path)
    assert "The joint model" in headings(path) and "log pseudo-likelihood" in text
    wrong = 100 * np.mean(model.predict(coded, target="v") != coded["v"])
    assert f"{wrong:.1f} %" in page.text and "66.7 %" in page.text
    chain = mx.HiddenMarkovModel(2, random_state=0).fit(X)
    assert "The hidden Markov model" in headings(model_report(tmp_path / "r.html", chain, X))


def test_steps_of_sequences(tmp_path):
    rng, groups = np.random.default_rng(0), np.repeat(np.arange(20), 6)
    y = np.array(["a", "b"])[np.arange(20) % 2]
    steps = rng.normal(size=(120, 1)) + 2 * (y[groups] == "b")[:, None]
    model = mx.HMMClassifier(1, random_state=0).fit(steps, y, groups=groups)
    path = model_report(tmp_path / "r.html", model, steps, y, groups=groups)
    _, text = read(path)
    assert "asked about 20 sequences:" in text and "120 rows and 1 column" in text
    assert "Map of the rows" not in text and "Typical and odd rows" not in text
    alone = mx.HiddenMarkovModel(1, random_state=0).fit(steps, groups=groups)
    assert (
        "asked about 20 sequences of 1 column"
        in read(model_report(tmp_path / "r.html", alone, steps, groups=groups))[1]
    )


def test_detectors_and_fusions_have_pages_of_their_own(tmp_path):
    detector = mx.MEDNoveltyDetector().fit(FRAME[:100])
    path = model_report(tmp_path / "r.html", detector, FRAME[:100])
    assert "Scores of the training rows" in headings(path) and "Scores of the rows of this table" not in headings(path)
    _, text = read(model_report(tmp_path / "r.html", detector, FRAME[100:]))
    outside = 100 * np.mean(detector.score_samples(FRAME[100:]) < detector.offset_)
    assert f"{outside:.1f}\u00a0% of 50 rows lie below the threshold" in text and "rows of this table of lowest" in text
    votes = pd.DataFrame(
        {name: np.where(np.arange(60) % k == 0, "no", "yes") for name, k in (("a", 2), ("b", 3), ("c", 4))}
    )
    fuser = mx.Fuser().fit(votes)
    assert "The items of this table" in headings(model_report(tmp_path / "r.html", fuser, votes))
    truth = np.where(np.arange(60) % 2 == 0, "no", "yes").astype(object)
    truth[:10] = None
    path = model_report(tmp_path / "r.html", fuser, votes, truth)
    assert {"Scores on this table", "Calibration", "Classes found", "Errors"} <= set(headings(path))
    assert "on 50 items of this table" in read(path)[1]


def test_without_pictures(tmp_path, mixture, monkeypatch):
    from mixent.report import common

    monkeypatch.setattr(common, "find_spec", lambda name: None)
    detector = mx.MEDNoveltyDetector().fit(FRAME[:100])
    for model, rows, y in ((mixture, FRAME, Y), (mixture, FRAME, None), (detector, FRAME[50:], None)):
        page, _ = read(model_report(tmp_path / "r.html", model, rows, y))
        assert "img" not in page.tags and "table" in page.tags
    clusters = mx.GaussianMixture(2, random_state=0).fit(X)
    assert "img" not in read(model_report(tmp_path / "r.html", clusters, X))[0].tags


def test_what_is_refused(tmp_path, mixture):
    out = tmp_path / "r.html"
    with pytest.raises(TypeError, match="a StandardScaler predicts no probabilities.*give a classifier"):
        model_report(out, StandardScaler().fit(X), X)
    with pytest.raises(ValueError, match="y and sample_weight have no effect: a GaussianMixture has no classes"):
        model_report(out, mx.GaussianMixture(1).fit(X), X, Y)
    with pytest.raises(ValueError, match="sample_weight has no effect without y"):
        model_report(out, mixture, FRAME, sample_weight=np.ones(150))
    with pytest.raises(ValueError, match="no effect on the page of a novelty detector"):
        model_report(out, mx.MEDNoveltyDetector().fit(X), X, Y)
    with pytest.raises(ValueError, match="y must have one label for each of 150 rows; it has 149"):
        model_report(out, mixture, FRAME, Y[1:])
    with pytest.raises(ValueError, match="row 0 of y has the label 'oak', which is not among the classes"):
        model_report(out, mixture, FRAME, ["oak"] * 150)
    votes = pd.DataFrame({"a": list("xyxy"), "b": list("xyyx"), "c": list("xxyy")})
    fuser = mx.Fuser().fit(votes)
    with pytest.raises(ValueError, match="y has no effect without answers"):
        fusion_report(out, title="t", fuser=fuser, y=list("xyxy"))
    with pytest.raises(ValueError, match="y must have one class for each of 4 items; it has 2"):
        fusion_report(out, title="t", fuser=fuser, answers=votes, y=list("xy"))
    with pytest.raises(ValueError, match="give cv= or comparison=, one of them"):
        comparison_report(out, title="t")
    assert not out.exists()


def test_weights_count_in_every_score(tmp_path, mixture):
    weight = np.ones(150)
    weight[:75] = 2
    _, text = read(model_report(tmp_path / "r.html", mixture, FRAME, Y, sample_weight=weight))
    from mixent.evaluate import log_loss

    proba = mixture.predict_proba(FRAME)
    assert f"{log_loss(Y, proba, mixture.classes_, sample_weight=weight):.3f}" in text
    assert "Rows are counted here and below" in text


def test_a_comparison_leads_with_what_to_take(tmp_path):
    methods = {"logistic": make_pipeline(StandardScaler(), LogisticRegression()), "forest": RandomForestClassifier(5)}
    found = mx.compare(FRAME, Y, methods=methods, baselines=False, folds=3, n_jobs=1)
    path = found.report(tmp_path / "r.html", commands="mixent compare <x>")
    page, text = read(path)
    assert headings(path)[0] == "Recommendation" and found.reason in page.text
    assert "Typical and odd rows" in headings(path) and "How the fit ended" in headings(path)
    assert "found = mixent.compare(X, y, " in path.read_text()
    assert "not used for fitting" in text and found.fingerprint in text
    alone = SimpleNamespace(**{name: getattr(found, name) for name in STAND_IN}, winner=None, reason="Take <it>.")
    alone.skipped = {"slow": "too slow"}
    page, text = read(comparison_report(tmp_path / "r.html", comparison=alone))
    assert "Take <it>." in page.text and "Comparison of 2 methods" in page.text
    value = found.estimate.value
    assert f"To expect of it on new rows: log-loss {value:.3f} nats" in text
    assert "Not tried, or given up:" in text and "slow: too slow" in text


STAND_IN = ("cv", "candidates", "metric", "recommended", "estimate", "problems")


def test_labels_that_are_numbers_are_one_class_whatever_their_type(tmp_path):
    model = mx.MixtureClassifier(1, random_state=0).fit(X, CODES)
    wrong = int((model.predict(X) != CODES).sum())
    labels = CODES.astype(float)
    labels[:5] = np.nan
    _, text = read(model_report(tmp_path / "r.html", model, X, labels))
    assert f"{wrong} of 145 with a label are decided wrongly" in text and "A typical row of class 2" in text
