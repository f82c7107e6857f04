"""Grouped parameters: short forms and objects are the same, nested names can be set, searched, cloned and saved."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import mixent
from mixent.med import (
    FisherKernel,
    MEDBayesNetClassifier,
    MEDClassifier,
    MEDGaussianClassifier,
    MEDNoveltyDetector,
    MEDTreeClassifier,
)
from mixent.options import RBF, GaussianPrior, KernelFunction, Margin, Polynomial, Tables, Trees

UNCOUNTED = {"categorical", "class_prior", "class_weight", "random_state", "n_jobs", "progress"}
ESTIMATORS = [
    MEDClassifier,
    MEDGaussianClassifier,
    MEDTreeClassifier,
    MEDBayesNetClassifier,
    MEDNoveltyDetector,
    FisherKernel,
]
SAME = [  # an estimator with short forms, and with the objects they stand for
    (MEDClassifier("rbf", C=1.0), MEDClassifier(RBF(), C=1.0, margin=Margin("laplace"))),
    (MEDClassifier("poly", C=1.0), MEDClassifier(Polynomial(), C=1.0)),
    (
        MEDGaussianClassifier(C=1.0, kernel="rbf", n_kernel_components=2, prior=2.0),
        MEDGaussianClassifier(C=1.0, kernel=RBF(n_landmarks=500), n_kernel_components=2, prior=GaussianPrior(2.0)),
    ),
    (MEDGaussianClassifier(C=1.0), MEDGaussianClassifier(C=1.0, margin=Margin("laplace", quantile=0.1))),
    (
        MEDTreeClassifier(C=1.0, trees="shared"),
        MEDTreeClassifier(Tables("fixed", 1.0, "auto"), C=1.0, trees=Trees("shared", "uniform", 1)),
    ),
    (MEDBayesNetClassifier(C=1.0), MEDBayesNetClassifier(C=1.0, margin=Margin("laplace", None, 0.1))),
    (MEDNoveltyDetector(), MEDNoveltyDetector(margin=Margin("exponential", quantile=0.5))),
]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    return rng.normal(size=(60, 3)) + y[:, None], y


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_constructors_have_at_most_eleven_parameters(cls):
    assert len(set(cls().get_params(deep=False)) - UNCOUNTED) <= 11


@pytest.mark.parametrize(("short", "objects"), SAME, ids=lambda model: type(model).__name__)
def test_short_forms_are_their_objects(short, objects, rows, tmp_path):
    X, y = rows
    fast = {"calibration": None, "random_state": 0} if hasattr(short, "calibration") else {}
    short, objects = short.set_params(**fast), objects.set_params(**fast)
    ours = short.fit(X, y).decision_function(X)
    np.testing.assert_array_equal(objects.fit(X, y).decision_function(X), ours)
    mixent.save(objects, tmp_path / "m.mixent")
    again = mixent.load(tmp_path / "m.mixent")
    assert repr(again.get_params()) == repr(objects.get_params())
    np.testing.assert_array_equal(clone(again).fit(X, y).decision_function(X), ours)


def test_nested_parameters_of_short_forms():
    tree = MEDTreeClassifier()
    assert tree.get_params()["margin__target"] is None and tree.get_params()["tables__ess"] == 1.0
    tree.set_params(margin__target=2.0, tables="integrated", tables__ess=3.0, trees__n_trees=2)
    assert (tree.margin.distribution, tree.margin.target) == ("laplace", 2.0)
    assert (tree.tables.kind, tree.tables.ess, tree.trees.n_trees) == ("integrated", 3.0, 2)
    other = clone(tree).set_params(trees__n_trees=3)
    assert (other.trees.n_trees, tree.trees.n_trees) == (3, 2)
    gaussian = MEDGaussianClassifier(prior=2.0).set_params(prior__mean=[0.0], kernel="rbf", kernel__gamma=0.5)
    assert (gaussian.prior.strength, gaussian.prior.mean, gaussian.kernel.gamma) == (2.0, [0.0], 0.5)
    function = MEDClassifier(np.dot).set_params(kernel__n_landmarks=5).kernel
    assert isinstance(function, KernelFunction) and function.function is np.dot
    with pytest.raises(ValueError, match="gamma"):
        MEDClassifier("linear").set_params(kernel__gamma=1.0)


def test_a_grid_search_varies_parameters_of_a_short_form(rows):
    grid = {"kernel__gamma": [1e-4, 0.3], "margin__target": [1.0, 2.0], "C": [1.0]}
    search = GridSearchCV(MEDClassifier("rbf", calibration=None), grid, cv=2).fit(*rows)
    assert search.best_params_["kernel__gamma"] == 0.3
    assert search.best_estimator_.kernel_.gamma == 0.3 and search.estimator.kernel == "rbf"


def test_kernels_with_the_same_landmarks_are_the_same_whatever_names_them(rows):
    X, y = rows
    options = {"C": 1.0, "calibration": None, "random_state": 0}
    named = MEDClassifier(Polynomial(1, 1.0, 0.0, n_landmarks=10), **options).fit(X, y)
    called = MEDClassifier(KernelFunction(lambda A, B: A @ B.T, n_landmarks=10), **options).fit(X, y)
    np.testing.assert_array_equal(called.feature_map_.landmarks, named.feature_map_.landmarks)
    np.testing.assert_allclose(called.decision_function(X), named.decision_function(X), atol=1e-8)
