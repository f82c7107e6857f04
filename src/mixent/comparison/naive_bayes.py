"""Naive Bayes of scikit-learn for tables with numeric and categorical columns."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from mixent.core.arrays import log_sum_exp


class MixedNaiveBayes(ClassifierMixin, BaseEstimator):
    """Naive Bayes with Gaussian numeric columns and categorical columns, independent within each class.

    log p(c, x) = log p(c) + the sum of GaussianNB of scikit-learn over numeric columns and of CategoricalNB over
    categorical columns. A missing category is one more category; a missing number is replaced by the mean.

    Parameters
    ----------
    categorical_features : (p,) bool, optional
        Columns that hold codes 0, 1, ..., NaN where missing.
    alpha : float
        Pseudo-count of each category; times 1e-3, it is added to the variances of the standardized numeric columns.
    """

    consists_of = "GaussianNB and CategoricalNB of scikit-learn"

    def __init__(self, categorical_features: Any = None, alpha: float = 1.0) -> None:
        self.categorical_features = categorical_features
        self.alpha = alpha

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        X = np.asarray(X, dtype=float)
        coded = np.zeros(X.shape[1], dtype=bool) if self.categorical_features is None else self.categorical_features
        self.coded_ = np.asarray(coded, dtype=bool)
        self.classes_, labels = np.unique(y, return_inverse=True)
        weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        self.log_prior_ = np.log(np.bincount(labels, weight) / weight.sum())
        numbers, codes = X[:, ~self.coded_], X[:, self.coded_]
        observed = ~np.isnan(numbers)
        mass = np.maximum(weight @ observed, 1e-300)
        self.mean_ = weight @ np.where(observed, numbers, 0.0) / mass
        std = np.sqrt(weight @ np.where(observed, numbers - self.mean_, 0.0) ** 2 / mass)
        self.scale_ = np.where(std > 0, std, 1.0)
        self.parts_ = []
        if numbers.shape[1]:
            self.parts_.append(GaussianNB(var_smoothing=1e-3 * self.alpha).fit(self._numbers(X), y, sample_weight))
        if codes.shape[1]:
            self.sizes_ = np.nanmax(codes, axis=0, initial=0).astype(int) + 2  # and one for missing values
            tables = CategoricalNB(alpha=self.alpha, min_categories=self.sizes_)
            self.parts_.append(tables.fit(self._codes(X), y, sample_weight))
        return self

    def _numbers(self, X: np.ndarray) -> np.ndarray:
        """Standardized numeric columns, so that the smoothing of variances is comparable between columns."""
        numbers = X[:, ~self.coded_]
        return np.where(np.isnan(numbers), 0.0, (numbers - self.mean_) / self.scale_)

    def _codes(self, X: np.ndarray) -> np.ndarray:
        """Categorical columns; missing values and categories that did not occur in training are 0."""
        codes = X[:, self.coded_] + 1
        return np.where(np.isnan(codes) | (codes >= self.sizes_), 0, codes).astype(int)

    def predict_proba(self, X: Any) -> np.ndarray:
        X = np.asarray(X, dtype=float)
        joint = np.tile(self.log_prior_, (len(X), 1))
        for part in self.parts_:
            rows = self._numbers(X) if isinstance(part, GaussianNB) else self._codes(X)
            joint += part.predict_joint_log_proba(rows) - self.log_prior_
        return np.exp(joint - log_sum_exp(joint, axis=1)[:, None])

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]
