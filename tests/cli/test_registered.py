"""An estimator that only the registry knows appears in every command."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import OutlierMixin

import mixent as mx
from mixent.base.document import Document
from mixent.base.registry import unregister
from mixent.plugins import Estimator, able, register, yes

FIT = ("fit", "{stock}/some.csv", "-t", "class", "--ignore", "id,w", "-o", "m.mixent", "--model", "majority")


@pytest.fixture
def fitted(mixent, majority):
    result = mixent(*FIT, "--set", "strength=0.5", "--set", "search.most=4")
    assert result.exit_code == 0, result.output
    return result


def test_fit(fitted, stock):
    model = mx.load("m.mixent")
    counts = pd.read_csv(stock / "some.csv")["class"].dropna().value_counts().sort_index().to_numpy() + 0.5
    np.testing.assert_allclose(model.share_, counts / counts.sum())  # rows without a label were left out
    assert model.search.most == 4
    assert "Most frequent class" in fitted.stdout and "Answers yes." in fitted.stdout


def test_info(mixent, fitted):
    assert "Answers yes." in mixent("info", "m.mixent").stdout
    facts = json.loads(mixent("info", "m.mixent", "--json").stdout)
    assert facts["class"] == "Majority" and facts["mixent_version"] == mx.__version__
    assert facts["share"] == mx.load("m.mixent").share_.tolist()


def test_predict(mixent, fitted):
    more = ("--reject", "0.1", "--keep", "id")
    assert mixent("predict", "m.mixent", "{stock}/data.csv", "-o", "o.csv", *more).exit_code == 0
    out = pd.read_csv("o.csv")
    assert set(out["predicted"]) == {"yes"} and out["rejected"].all() and len(out) == 60
    np.testing.assert_allclose(out[["p(no)", "p(yes)"]].iloc[0], mx.load("m.mixent").share_)


def test_compare(mixent, majority):
    more = (
        "--method",
        "majority",
        "--set",
        "strength=2.0",
        "--no-baselines",
        "--folds",
        "2",
        "--jobs",
        "1",
        "--no-page",
    )
    result = mixent("compare", "{stock}/data.csv", "-t", "class", "--ignore", "id,w", *more, "--scores", "s.csv")
    assert result.exit_code == 0, result.output
    assert mx.load("data-winner.mixent").strength == 2.0
    assert "*" not in result.stdout  # it is not of mixent
    np.testing.assert_allclose(pd.read_csv("s.csv")["log_loss"], np.log(2), rtol=1e-2)


# --- a novelty detector -------------------------------------------------------------------------------------------


class Distance(OutlierMixin, Estimator):
    """Distance from the mean, with no more methods than a detector of scikit-learn has."""

    def fit(self, X, y=None):
        self.feature_names_in_ = np.array(X.columns, dtype=object)
        self.mean_, self.offset_ = X.mean().to_numpy(), -3.0
        return self

    def score_samples(self, X):
        return -np.abs(np.asarray(X, dtype=float) - self.mean_).sum(axis=1)

    def decision_function(self, X):
        return self.score_samples(X) - self.offset_

    def predict(self, X):
        return np.where(self.decision_function(X) < 0, -1, 1)


class ExplainedDistance(Distance):
    """The same, with the part of each column."""

    def contributions(self, X):
        return -np.abs(np.asarray(X, dtype=float) - self.mean_)

    def __sklearn_tags__(self):
        return able(super().__sklearn_tags__(), explanations=yes("by column"))


@pytest.fixture(params=[Distance, ExplainedDistance])
def detector(request, tmp_path):
    cls, state = request.param, {"mean_": np.ndarray, "feature_names_in_": np.ndarray, "offset_": float}
    register(cls.__name__.lower(), task="novelty", title="Distance", describe=lambda m: Document("", ()), state=state)(
        cls
    )
    X = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [5.0, 5.0, 9.0]})
    X.to_csv(tmp_path / "rows.csv", index=False)
    mx.save(cls().fit(X), tmp_path / "d.mixent")
    yield cls
    unregister(cls)


def test_a_detector_scores_rows_and_explains_them_if_it_can(mixent, fails, detector):
    assert mixent("predict", "d.mixent", "rows.csv", "-o", "o.csv").exit_code == 0
    np.testing.assert_allclose(pd.read_csv("o.csv")["score"], [-7 / 3, -4 / 3, -11 / 3])
    if detector is Distance:
        assert "--explain is not used" in fails("predict", "d.mixent", "rows.csv", "-o", "o.csv", "--explain", status=2)
        assert "no explanations" in fails("explain", "d.mixent", "rows.csv")
        return
    assert mixent("predict", "d.mixent", "rows.csv", "-o", "o.csv", "--explain").exit_code == 0
    assert pd.read_csv("o.csv")["feature"].tolist() == ["b", "b", "b"]
    assert mixent("explain", "d.mixent", "rows.csv", "-o", "why.csv").exit_code == 0
    parts = pd.read_csv("why.csv").set_index(["row", "column"])["part"]
    assert parts[2, "b"] == pytest.approx(-8 / 3) and len(parts) == 6
