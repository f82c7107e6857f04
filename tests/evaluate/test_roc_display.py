"""Receiver operating characteristics: the areas are those of scikit-learn, the axes say what is found."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB

from mixent import GaussianMixture, MEDClassifier, MEDNoveltyDetector, MixtureClassifier
from mixent.displays import RocCurvesDisplay

from ..drawing import drawn, texts

IRIS, KIND = load_iris(return_X_y=True)
X, Y = IRIS[50:], np.where(KIND[50:] == 1, "versicolor", "$virginica_")


@pytest.fixture(scope="module")
def models():
    return {
        "linear": MEDClassifier(C=1, calibration=None).fit(X[::2], Y[::2]),
        "Gaussians": MixtureClassifier(1, "VVV", random_state=0).fit(X[::2], Y[::2]),
        "logistic_$": LogisticRegression().fit(X[::2], Y[::2]),
    }


@pytest.mark.parametrize("positive", [None, "$virginica_"])
def test_areas_are_those_of_the_scores(models, positive):
    display = RocCurvesDisplay.from_estimators(models, X[1::2], Y[1::2], pos_label=positive)
    assert display.pos_label == (positive or "versicolor")
    hit = Y[1::2] == display.pos_label
    sign = 1 if positive is None else -1
    for name, model in models.items():
        if hasattr(model, "decision_function"):
            scores = sign * model.decision_function(X[1::2])
        else:
            scores = model.predict_proba(X[1::2])[:, list(model.classes_).index(display.pos_label)]
        assert display.curves[name].auc == pytest.approx(roc_auc_score(hit, scores), abs=1e-12)
    ax = drawn(display)
    curves = [line for line in ax.lines if not line.get_label().startswith("_")]
    for line, (name, curve) in zip(curves, display.curves.items()):
        assert line.get_label() == f"{name.replace('$', chr(92) + '$')} (AUC = {curve.auc:.2f})"
        np.testing.assert_array_equal(line.get_xydata(), np.column_stack([curve.fpr, curve.tpr]))
        assert line.get_xydata()[0].tolist() == [0, 0] and line.get_xydata()[-1].tolist() == [1, 1]
    called = display.pos_label.replace("$", "\\$")
    assert ax.get_xlabel() == f"False Positive Rate (Positive label: {called})"
    assert len({(line.get_color(), line.get_linestyle()) for line in curves}) == 3


def test_one_class_against_the_rest():
    model = GaussianNB().fit(IRIS, KIND)
    display = RocCurvesDisplay.from_estimators({"GaussianNB": model}, IRIS, KIND, pos_label=1)
    assert list(display.curves) == ["GaussianNB"]
    wanted = roc_auc_score(KIND == 1, model.predict_proba(IRIS)[:, 1])
    assert display.curves["GaussianNB"].auc == pytest.approx(wanted, abs=1e-12)
    assert drawn(display).get_ylabel() == "True Positive Rate (Positive label: 1)"


class Sure(ClassifierMixin, BaseEstimator):
    """Rows' log-odds are what they hold; probabilities round to 1."""

    classes_ = np.array(["a", "b"])

    def predict_log_proba(self, X):
        return np.column_stack([-X[:, 0], -np.exp(-X[:, 0])])

    def predict_proba(self, X):
        return np.exp(self.predict_log_proba(X))


def test_rows_that_are_all_but_certain_are_ranked():
    rows, y = np.arange(40.0, 46)[:, None], np.repeat(["a", "b"], 3)
    model = Sure()
    assert roc_auc_score(y == "b", model.predict_proba(rows)[:, 1]) == 0.5
    assert RocCurvesDisplay.from_estimators({"Sure": model}, rows, y).curves["Sure"].auc == 1
    assert RocCurvesDisplay.from_estimators({"Sure": model}, rows, y, pos_label="a").curves["Sure"].auc == 1


def test_detectors_find_typical_rows():
    setosa = IRIS[:50]
    models = {
        "level set": MEDNoveltyDetector().fit(setosa[::2]),
        "mixture": GaussianMixture(1).fit(setosa[::2]),
        "forest": IsolationForest(random_state=0).fit(setosa[::2]),
    }
    y = np.where(KIND == 0, 1, -1)
    display = RocCurvesDisplay.from_estimators(models, IRIS, y)
    assert display.pos_label == 1 and display.curves["level set"].auc > 0.99
    for name, model in models.items():
        assert display.curves[name].auc == pytest.approx(roc_auc_score(y, model.score_samples(IRIS)), abs=1e-12)
    named = np.array(["setosa", "versicolor", "virginica"])[KIND]
    same = RocCurvesDisplay.from_estimators(models, IRIS, named, pos_label="setosa")
    assert [c.auc for c in same.curves.values()] == [c.auc for c in display.curves.values()]


def test_weights_are_counts_and_rows_without_a_label_are_left_out():
    rng = np.random.default_rng(0)
    score, y, weight = rng.normal(size=60), rng.integers(2, size=60), rng.integers(3, size=60)
    score += y
    whole = RocCurvesDisplay.from_predictions(np.repeat(y, weight), np.repeat(score, weight)).curves["scores"]
    one = RocCurvesDisplay.from_predictions(y, {"a": score}, sample_weight=weight).curves["a"]
    assert one.auc == pytest.approx(whole.auc, abs=1e-12)
    some = y.astype(object)
    some[::3] = None
    assert RocCurvesDisplay.from_predictions(some, score).curves["scores"].auc == pytest.approx(
        roc_auc_score(y[np.arange(60) % 3 > 0], score[np.arange(60) % 3 > 0])
    )


def test_impossible_rows_come_last():
    curve = RocCurvesDisplay.from_predictions([0, 0, 1, 1], [-np.inf, -np.inf, 0.5, -np.inf]).curves["scores"]
    assert curve.auc == pytest.approx(0.75)


def test_it_shows_itself_in_a_line_and_takes_axes(models):
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    display = RocCurvesDisplay.from_estimators(models, X, Y)
    assert drawn(display, ax) is ax and len(repr(display)) < 200
    assert len(texts(ax)) == 3
