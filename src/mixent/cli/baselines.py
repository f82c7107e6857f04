"""Classifiers to stand beside ours: scikit-learn's, on columns it can take."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mixent.tables import read_features


class PlainNumbers(TransformerMixin, BaseEstimator):
    """Any table as numbers without gaps: missing numbers get the mean, categories one column each."""

    def __init__(self, categorical: Any = "auto") -> None:
        self.categorical = categorical

    def fit(self, X: Any, y: Any = None) -> Self:
        table = read_features(self, X, reset=True, categorical=self.categorical)
        self.schema_ = table.schema
        self.mean_ = np.nanmean(table.X, axis=0)
        return self

    def transform(self, X: Any) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unseen categories: our own model says it already
            table = read_features(self, X, reset=False)
        numbers = np.where(np.isnan(table.X), self.mean_, table.X)
        codes = (
            []
            if table.codes is None
            else [np.equal.outer(c, np.arange(k)) for c, k in zip(table.codes.T, self.schema_.sizes)]
        )
        return np.hstack([numbers, *codes]).astype(float)


def baselines(categorical: Any = "auto") -> dict[str, Any]:
    """Name to unfitted classifier."""
    return {
        "logistic regression": make_pipeline(
            PlainNumbers(categorical), StandardScaler(), LogisticRegression(max_iter=5000)
        ),
        "naive Bayes": make_pipeline(PlainNumbers(categorical), StandardScaler(), GaussianNB()),
    }
