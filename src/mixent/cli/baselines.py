"""Classifiers to stand beside ours: scikit-learn's, on columns it can take."""

from __future__ import annotations

from typing import Any

from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from mixent.ensemble import TunedClassifier


def baselines(categorical: Any = "auto") -> dict[str, Any]:
    """Name to unfitted classifier, with scikit-learn's defaults; `mixent compare` chooses their settings too."""
    return {
        "logistic regression": TunedClassifier(LogisticRegression(max_iter=5000), categorical=categorical),
        "naive Bayes": TunedClassifier(GaussianNB(), categorical=categorical),
    }
