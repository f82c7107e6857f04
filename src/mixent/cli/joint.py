"""A joint model beside classifiers: the label is one more column, predicted from the others."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from mixent.data import read_labels


class JointClassifier(ClassifierMixin, BaseEstimator):
    """`MaxEntJoint` of features and label together; rows without a label count too."""

    def __init__(self, joint: Any, name: str) -> None:
        self.joint = joint
        self.name = name

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """X is a DataFrame."""
        listed = [] if isinstance(self.joint.categorical, str) else list(self.joint.categorical)
        classes = read_labels(y, len(X)).classes
        codes = {label: str(i) for i, label in enumerate(classes.tolist())}
        column = np.array([codes.get(label) for label in np.asarray(y, dtype=object).tolist()], dtype=object)
        self.model_ = clone(self.joint).set_params(categorical=[*listed, self.name])
        self.model_.fit(self._table(X, column), sample_weight=sample_weight)
        seen = self.model_.values(self.name).tolist()
        self.classes_ = classes[[int(code) for code in seen]]
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.model_.predict_proba(self._table(X, np.full(len(X), None, dtype=object)), target=self.name)

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _table(self, X: Any, column: np.ndarray) -> Any:
        return X.assign(**{self.name: column})
