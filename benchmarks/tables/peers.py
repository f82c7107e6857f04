"""scikit-learn's classifiers, tuned by inner cross-validation of the log-loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.tables.data import Dataset
from mixent.evaluate.scores import log_loss

REGULARIZATION = [0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8]
PENALTIES = [0.001, 0.01, 0.1, 1.0, 10.0, 100.0]
COSTS = [0.01, 0.1, 1.0, 10.0]
LEAVES = [4, 31]
RIDGES = [1e-3, 1e-2, 1e-1]
BIC_KINDS = [(K, kind) for K in range(1, 6) for kind in ("spherical", "diag", "tied", "full")]


def qda(data: Dataset) -> Any:
    """Each covariance shrunk towards the identity of the scaled columns."""
    model = QuadraticDiscriminantAnalysis(solver="eigen", covariance_estimator=ShrunkCovariance())
    grid = {"quadraticdiscriminantanalysis__covariance_estimator__reg_param": REGULARIZATION}
    return tuned(make_pipeline(StandardScaler(), model), grid)


def logistic(data: Dataset) -> Any:
    """On `scaled` columns."""
    model = make_pipeline(scaled(data), LogisticRegression(max_iter=1000))
    return tuned(model, {"logisticregression__C": PENALTIES})


def linear_svm(data: Dataset) -> Any:
    """On `scaled` columns, with probabilities by Platt's sigmoid from five inner folds."""
    calibrated = CalibratedClassifierCV(SVC(kernel="linear"), cv=5, ensemble=False)
    return tuned(make_pipeline(scaled(data), calibrated), {"calibratedclassifiercv__estimator__C": COSTS}, folds=3)


def boosting(data: Dataset) -> Any:
    """Trees, with their leaves chosen; categories and missing values as they are."""
    ready, places = "passthrough", []
    if data.discrete:
        code = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
        ready = make_column_transformer((code, list(data.discrete)), remainder="passthrough")
        places = list(range(len(data.discrete)))
    model = StoppedBoosting(learning_rate=0.05, random_state=0, categorical_features=places or None)
    return tuned(make_pipeline(ready, model), {"stoppedboosting__max_leaf_nodes": LEAVES}, folds=3)


def naive_bayes(data: Dataset) -> Any:
    """Categories with Laplace's one; a gap is a value of its own. For tables of categories only."""
    sizes = [data.X[c].nunique(dropna=False) + 1 for c in data.X.columns]  # one more for values not seen in training
    code = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    impute = FunctionTransformer(lambda X: X.astype(object).fillna("absent"))
    shift = FunctionTransformer(lambda codes: codes + 1)  # 0: not seen in training
    return make_pipeline(impute, code, shift, CategoricalNB(min_categories=sizes))


def scaled(data: Dataset) -> Any:
    """Categories one-hot, missing values at the median, numbers scaled."""
    if not data.discrete:
        return StandardScaler()
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    columns = [c for c in data.X.columns if c not in data.discrete]
    one_hot = (OneHotEncoder(handle_unknown="ignore"), list(data.discrete))
    return make_column_transformer(one_hot, (numbers, columns))


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


class StoppedBoosting(HistGradientBoostingClassifier):
    """At most 500 rounds, until a tenth of the rows, held out, gains no more; 100 where these would lack a class."""

    def fit(self, X: Any, y: np.ndarray) -> StoppedBoosting:
        counts = np.unique(y, return_counts=True)[1]
        enough = bool(counts.min() > 1 and len(y) >= 10 * len(counts))
        self.set_params(early_stopping=enough, max_iter=500 if enough else 100)
        with threadpool_limits(1, user_api="openmp"):  # small tables: threads would only wait for each other
            return super().fit(X, y)


class ShrunkCovariance(BaseEstimator):
    """(1 - r) S + r I: what `reg_param` means, but scikit-learn's SVD solver refuses classes with few rows."""

    def __init__(self, reg_param: float = 0.0) -> None:
        self.reg_param = reg_param

    def fit(self, X: np.ndarray) -> ShrunkCovariance:
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
        results = []
        for K, kind in BIC_KINDS:
            try:
                results.append(gaussian_mixture(X, K, kind, self.ridge))
            except ValueError:  # too few rows for K, or a singular covariance in spite of the ridge
                continue
        return min(results, key=lambda m: m.bic(X))


def gaussian_mixture(X: np.ndarray, K: int, kind: str, ridge: float) -> GaussianMixture:
    """No more components than rows."""
    return GaussianMixture(min(K, len(X)), covariance_type=kind, reg_covar=ridge, random_state=0).fit(X)
