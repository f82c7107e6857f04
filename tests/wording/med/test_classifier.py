"""Wording of med, classifier."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array, csr_array
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA

from mixent import MEDClassifier
from mixent.data import frames
from mixent.med.margins import Laplace
from mixent.options import RBF, LabelUpdates, Margin, Polynomial


@pytest.fixture(scope="module")
def two():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=150)
    X = rng.normal(size=(150, 4)) + 1.2 * y[:, None] * np.array([1.0, -1.0, 0.5, 0.0])
    return X, np.array(["no", "yes"])[y]


def test_there_would_be_no_classifier(two):
    X, y = two
    with pytest.raises(ValueError, match="there would be no classifier; set C > 1"):
        MEDClassifier(C=1.0, margin="exponential").fit(X, y)


BAD = [
    ({"kernel": "sigmoid"}, "kernel must be one of 'linear', 'poly', 'rbf', 'precomputed'"),
    ({"kernel": 3}, "kernel must be one of"),
    ({"C": -1.0}, "C must be a number > 0"),
    ({"C": "best"}, "C must be a number > 0"),
    ({"margin": "hinge"}, "margin must be one of 'exponential', 'laplace', 'gaussian', 'fixed', or a Margin"),
    ({"margin": Laplace(5.0)}, "margin must be one of"),
    ({"margin": Margin("hinge")}, "margin must be one of"),
    ({"margin": Margin("fixed", 0.0)}, "target of the margin must be a number > 0"),
    ({"bias": 0.0}, "bias must be 'flat', or the variance of its Gaussian prior, > 0"),
    ({"bias": "none"}, "bias must be 'flat'"),
    ({"relaxation": 0.0}, "relaxation must be the step size of label updates"),
    ({"relaxation": LabelUpdates(max_rounds=0)}, "max_rounds must be a whole number >= 1, or None; got 0"),
    ({"relaxation": LabelUpdates(class_prior=[1.0])}, "class_prior must be 'empirical' or 2 positive numbers, one per"),
    ({"calibration": "isotonic"}, "calibration must be one of 'temperature', 'affine'"),
    ({"kernel": RBF(n_landmarks=0)}, "n_landmarks must be a whole number >= 1, or 'auto' or None"),
    ({"kernel": RBF("large")}, "gamma must be 'auto', 'scale' or a number > 0"),
    ({"kernel": Polynomial(coef0=-1.0)}, "coef0 must be a number >= 0"),
    ({"kernel": Polynomial(1.5)}, "degree must be a whole number >= 1"),
    ({"standardize": "yes"}, "standardize must be True or False"),
    ({"class_weight": "equal"}, "class_weight must be None, 'balanced', or a dict of class -> weight; got 'equal'"),
    ({"class_weight": {"yes": 0}}, "class_weight of 'yes' must be a number > 0; got 0"),
    ({"class_weight": {"maybe": 2}}, r"contains 'maybe', which is not a class; the classes are \['no', 'yes'\]"),
    ({"tol": 0.0}, "tol must be a number > 0"),
    ({"max_iter": 0}, "max_iter must be a whole number >= 1"),
    ({"cv": 1}, "cv must be a whole number >= 2"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_options_are_refused_in_words(two, options, message):
    with pytest.raises(ValueError, match=message):
        MEDClassifier(**options).fit(*two)


UNUSED = [
    ({"margin": Margin("laplace", quantile=0.5)}, "quantile=0.5 of the margin .* only used with classifiers by prob"),
    ({"margin": "fixed", "C": 2.0}, "C=2.0 has no effect; it is only used with a margin other than"),
    ({"standardize": False, "kernel": PCA()}, r"standardize=False .* with kernels of encoded columns; got kernel=PCA"),
]


@pytest.mark.parametrize(("options", "message"), UNUSED)
def test_options_without_effect_are_named(two, options, message):
    X = np.column_stack([two[0], 20.0 * (two[1] == "yes")])  # the hard margin needs rows that can be separated
    with pytest.warns(UserWarning, match=message):
        MEDClassifier(**{"C": 1.0, "calibration": None, **options}).fit(X, two[1])


def test_a_sparse_matrix_has_a_limit(two, monkeypatch):
    monkeypatch.setattr(frames, "MOST_DENSE", 1000)
    with pytest.raises(ValueError, match=r"sparse matrix of 150 rows and 4 columns, which takes 0.0 GiB as an array"):
        MEDClassifier(C=1.0).fit(csr_array(two[0]), two[1])


def test_a_sparse_array_has_rows_and_columns(two):
    with pytest.raises(ValueError, match=r"two dimensions, rows and columns; got a sparse array of shape \(4,\)"):
        MEDClassifier(C=1.0).fit(coo_array(two[0][0]), two[1])


def test_bad_data_is_refused_in_words(two):
    X, y = two
    with pytest.raises(ValueError, match="takes the square kernel matrix of the training rows; got shape"):
        MEDClassifier("precomputed", C=2.0).fit(X, y)
    K = X @ X.T
    K[3, 5] += 1
    with pytest.raises(ValueError, match="the precomputed kernel must be symmetric"):
        MEDClassifier("precomputed", C=2.0).fit(K, y)
    with pytest.raises(ValueError, match="must be positive semi-definite; on 150 rows its smallest eigenvalue is -"):
        MEDClassifier("precomputed", C=2.0).fit(-X @ X.T, y)
    K[3, 5] = np.nan
    with pytest.raises(ValueError, match=r"a kernel matrix cannot have missing values; entry \[3, 5\] is missing"):
        MEDClassifier("precomputed", C=2.0).fit(K, y)
    words = pd.DataFrame(np.where(X @ X.T > 0, "a", "b"))
    with pytest.raises(ValueError, match="takes a matrix of numbers; X has categorical columns"):
        MEDClassifier("precomputed", C=2.0).fit(words, y)
    with pytest.raises(ValueError, match="must give a finite matrix of shape"):
        MEDClassifier(lambda A, B: np.ones(3), C=2.0).fit(X, y)
    with pytest.raises(ValueError, match="the kernel would depend on the first alone; scale the columns"):
        MEDClassifier(C=2.0, standardize=False).fit(X * [1e12, 1, 1, 1], y)
    with pytest.raises(ValueError, match="class 'yes' is not the most probable label of any row"):
        MEDClassifier(C=2.0).fit(X, y, (y == "no").astype(float))
    with pytest.raises(ValueError, match="cv must train on rows of every class and hold out rows with a label"):
        MEDClassifier(C=2.0, cv=[(np.flatnonzero(y == "no"), np.flatnonzero(y == "yes"))]).fit(X, y)
    with pytest.raises(ValueError, match="too little"):
        MEDClassifier(C=2.0).fit(X * 1e-200, y)
    cubic = MEDClassifier("poly", C=2.0, calibration=None).fit(X, y)
    far = np.array([[0.0] * 4, [1e140] * 4])
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="row 1 is so far from the training rows that its"):
        cubic.predict(far)
    model = MEDClassifier("rbf", C=2.0, calibration=None).fit(X, y)
    with pytest.raises(AttributeError, match="has no coefficients; only kernel='linear' does"):
        model.coef_  # noqa: B018
    model = MEDClassifier("precomputed", C=2.0, calibration=None).fit(X @ X.T, y)
    with pytest.raises(AttributeError, match="does not encode columns"):
        model.feature_names_  # noqa: B018
    with pytest.raises(AttributeError, match="kernel='precomputed' has no support rows in encoded columns; take the"):
        model.support_vectors_  # noqa: B018


def test_a_transformer_must_give_features(two):
    class Broken(BaseEstimator):
        def fit(self, X, y=None):
            return self

        def __sklearn_is_fitted__(self):
            return True

        def transform(self, X):
            return np.full((len(X), 2), np.inf)

    with pytest.raises(ValueError, match="must return a matrix of finite features; Broken returned shape"):
        MEDClassifier(Broken(), C=2.0).fit(*two)


def test_too_few_passes_are_told(two):
    from sklearn.exceptions import ConvergenceWarning

    with pytest.warns(ConvergenceWarning, match="MEDClassifier did not converge: max_iter was reached first"):
        MEDClassifier(C=5.0, max_iter=2, calibration=None).fit(*two)
