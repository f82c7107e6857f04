"""scikit-learn's classifiers, tuned by inner cross-validation of the log-loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.tables.data import Dataset
from mixent.evaluate.scores import log_loss

REGULARISATION = [0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8]
PENALTIES = [0.001, 0.01, 0.1, 1.0, 10.0, 100.0]
RIDGES = [1e-3, 1e-2, 1e-1]
BIC_KINDS = [(K, kind) for K in range(1, 6) for kind in ("spherical", "diag", "tied", "full")]


def qda(data: Dataset) -> Any:
    """Each covariance pulled towards the identity of the scaled columns."""
    model = QuadraticDiscriminantAnalysis(solver="eigen", covariance_estimator=PulledCovariance())
    grid = {"quadraticdiscriminantanalysis__covariance_estimator__reg_param": REGULARISATION}
    return tuned(make_pipeline(StandardScaler(), model), grid)


def logistic(data: Dataset) -> Any:
    """Categories one-hot, gaps at the median, all scaled."""
    ready = StandardScaler()
    if data.discrete:
        numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
        columns = [c for c in data.X.columns if c not in data.discrete]
        one_hot = (OneHotEncoder(handle_unknown="ignore"), list(data.discrete))
        ready = make_column_transformer(one_hot, (numbers, columns))
    model = make_pipeline(ready, LogisticRegression(max_iter=1000))
    return tuned(model, {"logisticregression__C": PENALTIES})


def gmm_bic(data: Dataset) -> Any:
    """K and covariance type of each class by BIC, otherwise scikit-learn's defaults."""
    return GmmByBic()


def gmm_tuned(data: Dataset) -> Any:
    """K, type and ridge, the same for all classes, by log-loss in three inner folds."""
    kinds = [{"K": [1], "kind": ["diag", "full"]}, {"K": [2, 3], "kind": ["diag", "full", "tied"]}]
    grid = [{f"gmmperclass__{k}": v for k, v in (part | {"ridge": RIDGES}).items()} for part in kinds]
    return tuned(make_pipeline(StandardScaler(), GmmPerClass()), grid, folds=3)


def tuned(model: Any, grid: Any, folds: int = 5) -> GridSearchCV:
    """A setting that fails in a fold (a singular covariance) is not chosen."""
    inner = StratifiedKFold(folds, shuffle=True, random_state=0)
    return GridSearchCV(model, grid, scoring=neg_log_loss, cv=inner, n_jobs=1)


def neg_log_loss(model: Any, X: Any, y: Any) -> float:
    """Unlike scikit-learn's own, fine with a held-out part that lacks a class."""
    return -log_loss(y, model.predict_proba(X), model.classes_)


class PulledCovariance(BaseEstimator):
    """(1 - r) S + r I: what `reg_param` means, but scikit-learn's SVD solver refuses classes with few rows."""

    def __init__(self, reg_param: float = 0.0) -> None:
        self.reg_param = reg_param

    def fit(self, X: np.ndarray) -> PulledCovariance:
        self.covariance_ = (1 - self.reg_param) * np.cov(X.T, bias=True) + self.reg_param * np.eye(X.shape[1])
        return self


class GmmPerClass(ClassifierMixin, BaseEstimator):
    """Bayes classifier with a scikit-learn GaussianMixture per class."""

    def __init__(self, K: int = 1, kind: str = "full", ridge: float = 1e-6) -> None:
        self.K, self.kind, self.ridge = K, kind, ridge

    def fit(self, X: np.ndarray, y: np.ndarray) -> GmmPerClass:
        self.classes_, counts = np.unique(y, return_counts=True)
        self.log_prior_ = np.log(counts / len(y))
        self.mixtures_ = [self._mixture(X[y == c]) for c in self.classes_]
        return self

    def _mixture(self, X: np.ndarray) -> GaussianMixture:
        return gaussian_mixture(X, self.K, self.kind, self.ridge)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        joint = self.log_prior_ + np.column_stack([m.score_samples(X) for m in self.mixtures_])
        joint -= joint.max(axis=1, keepdims=True)
        return np.exp(joint) / np.exp(joint).sum(axis=1, keepdims=True)


class GmmByBic(GmmPerClass):
    """The same with K in 1..5 and the covariance type chosen in each class by BIC."""

    def _mixture(self, X: np.ndarray) -> GaussianMixture:
        found = []
        for K, kind in BIC_KINDS:
            try:
                found.append(gaussian_mixture(X, K, kind, self.ridge))
            except ValueError:  # too few rows for K, or a singular covariance in spite of the ridge
                continue
        return min(found, key=lambda m: m.bic(X))


def gaussian_mixture(X: np.ndarray, K: int, kind: str, ridge: float) -> GaussianMixture:
    """No more components than rows."""
    return GaussianMixture(min(K, len(X)), covariance_type=kind, reg_covar=ridge, random_state=0).fit(X)
