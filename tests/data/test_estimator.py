"""An estimator that reads all its data through mixent.data passes scikit-learn's checks."""

from collections import Counter

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted

from mixent.data import read_features, read_labels, read_weights


class ToyBayes(ClassifierMixin, BaseEstimator):
    def __init__(self, categorical="auto"):
        self.categorical = categorical

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X, y, sample_weight=None):
        table = read_features(self, X, reset=True, categorical=self.categorical)
        labels = read_labels(y, table.n_rows)
        weight = read_weights(sample_weight, table.n_rows)
        mass = labels.likelihood if weight is None else labels.likelihood * weight[:, None]
        mass = np.where(labels.likelihood.min(axis=1, keepdims=True) == 1.0, 0.0, mass)
        if (mass.sum(axis=0) > 0).sum() < 2:
            raise ValueError("fewer than 2 classes have positive sample_weight")
        self.schema_, self.classes_ = table.schema, labels.classes
        self._fit_moments(table.X, mass)
        self._fit_categories(table, mass)
        return self

    def _fit_moments(self, X, mass):
        seen = ~np.isnan(X)
        filled = np.where(seen, X, 0.0)
        rows = mass.T @ seen + 1e-9
        self.mean_ = mass.T @ filled / rows
        center = filled.mean(axis=0)
        spread = np.where(seen, (filled - center) ** 2, 0.0)
        second = mass.T @ spread / rows - (self.mean_ - center) ** 2
        self.var_ = np.maximum(second, 0.0) + 1e-3
        self.log_prior_ = np.log(mass.sum(axis=0) + 1e-9) - np.log(mass.sum() + 1e-9)

    def _fit_categories(self, table, mass):
        self.log_prob_ = []
        for place, size in enumerate(table.schema.sizes):
            one_hot = table.codes[:, place, None] == np.arange(size)
            counts = mass.T @ one_hot + 1.0
            self.log_prob_.append(np.log(counts / counts.sum(axis=1, keepdims=True)))

    def predict_proba(self, X):
        check_is_fitted(self)
        table = read_features(self, X, reset=False)
        z = (table.X[:, None, :] - self.mean_) ** 2 / self.var_ + np.log(self.var_)
        score = self.log_prior_ - 0.5 * np.nansum(z, axis=2)
        for place, log_prob in enumerate(self.log_prob_):
            codes = table.codes[:, place]
            score += np.where(codes[:, None] >= 0, log_prob[:, codes].T, 0.0)
        score -= score.max(axis=1, keepdims=True)
        prob = np.exp(score)
        return prob / prob.sum(axis=1, keepdims=True)

    def predict(self, X):
        probability = self.predict_proba(X)
        return self.classes_[probability.argmax(axis=1)]


def test_an_estimator_behind_the_door_passes_scikit_learn():
    results = check_estimator(ToyBayes(), on_skip=None)
    status = Counter(result["status"] for result in results)
    assert status["passed"] >= 55 and set(status) <= {"passed", "skipped"}
    assert [r["check_name"] for r in results if r["status"] == "skipped"] in ([], ["check_array_api_input"])


def test_mixed_table_with_gaps_soft_labels_and_pipeline():
    frame = pd.DataFrame({"size": [1.0, 1.2, np.nan, 5.0, 5.1], "shape": ["round", "round", None, "long", "long"]})
    hard = make_pipeline(ToyBayes()).fit(frame, ["a", "a", None, "b", "b"])
    assert hard.predict(frame[::-1]).tolist()[:2] == ["b", "b"]
    soft = ToyBayes().fit(frame, pd.DataFrame({"b": [0, 0, np.nan, 1, 0.9], "a": [1, 1, np.nan, 0, 0.1]}))
    assert soft.predict(frame).tolist()[:2] == ["a", "a"]
    assert np.isfinite(soft.predict_proba(frame)).all()
