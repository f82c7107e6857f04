"""Models of scikit-learn in files: sound ones pass, and none gets as far as code that would read what is not its own.

No damaged model is asked for anything here: it might end the process.
"""

import copy

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.svm import SVC, NuSVC
from sklearn.tree import DecisionTreeClassifier

import mixent
from mixent import TunedClassifier
from mixent.persistence import SavedFileError
from mixent.persistence.foreign_checks import check_parts

RNG = np.random.default_rng(0)
X = RNG.integers(0, 5, (90, 3)).astype(float)  # numbers, or codes of categories
Y = np.array(["a", "b", "c"])[(X[:, 0] + X[:, 1] + RNG.integers(0, 3, 90)).astype(int) % 3]
HUGE = 500_000_000

SOUND = {
    "tree": DecisionTreeClassifier(),
    "forest": RandomForestClassifier(2, random_state=0),
    "extra trees": ExtraTreesClassifier(2),
    "bagged trees": BaggingClassifier(DecisionTreeClassifier(), 2, max_features=0.5),
    "boosted trees": AdaBoostClassifier(n_estimators=2),
    "a tree behind more columns": make_pipeline(OneHotEncoder(), DecisionTreeClassifier()),
    "histograms": HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=3),
    "histograms, categories": HistGradientBoostingClassifier(
        max_iter=2, min_samples_leaf=3, categorical_features=[0, 1]
    ),
    "neighbors": KNeighborsClassifier(algorithm="brute"),
    "neighbors, another distance": KNeighborsClassifier(algorithm="brute", metric="manhattan", weights="distance"),
    "neighbors within a radius": RadiusNeighborsClassifier(5.0, algorithm="brute"),
    "vectors": SVC(),
    "vectors, sparse": make_pipeline(OneHotEncoder(), SVC()),
    "vectors, nu": NuSVC(nu=0.1),
    "vectors, calibrated": CalibratedClassifierCV(SVC(), cv=2, ensemble=False),
    "shares": DummyClassifier(),
}


@pytest.mark.parametrize("name", SOUND)
def test_sound_models_pass(name):
    check_parts(SOUND[name])  # unfitted
    check_parts({"deep": [copy.deepcopy(SOUND[name]).fit(X, Y)]})


def test_sound_models_of_other_rows_pass():
    check_parts(SVC(kernel="precomputed").fit(X @ X.T, Y))
    check_parts(SVC().fit(X, Y == "a"))
    two = np.stack([X[:, 0], X[:, 1] > 2], axis=1)
    check_parts([KNeighborsClassifier(algorithm="brute").fit(X, two), RandomForestClassifier(2).fit(X, two)])


def refused(model, message):
    with pytest.raises(SavedFileError, match=message):
        check_parts(model)


# --- trees ------------------------------------------------------------------------------------------------------------


def rebuilt(tree, change, **options):
    """The tree with another state."""
    state = copy.deepcopy(tree.__getstate__())
    change(state)
    new = type(tree)(options.get("n_features", tree.n_features), tree.n_classes, tree.n_outputs)
    new.__setstate__(state)
    return new


def nodes(**places):
    """A change of the first node, which has branches."""

    def change(state):
        for name, value in places.items():
            state["nodes"][name][0] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (nodes(left_child=HUGE), "a branch leads out of it"),
        (nodes(left_child=-HUGE, right_child=-HUGE), "a branch leads out of it"),
        (nodes(left_child=-1), "a branch leads out of it"),
        (nodes(right_child=-2), "a branch leads out of it"),
        (nodes(right_child=0), "a branch leads out of it"),
        (nodes(feature=3), "it asks for a column that is not there"),
        (nodes(feature=-HUGE), "it asks for a column that is not there"),
        (lambda state: state.update(node_count=-1), "nodes are missing"),  # more than there are, scikit-learn mends
        (lambda state: state.update(node_count=0), "nodes are missing"),
    ],
)
def test_a_damaged_tree_is_refused(change, message):
    forest = RandomForestClassifier(2, random_state=0).fit(X, Y)
    forest.estimators_[1].tree_ = rebuilt(forest.estimators_[1].tree_, change)
    refused(forest, f"holds a tree that is damaged: {message}")


def test_a_tree_and_its_model_agree():
    forest = RandomForestClassifier(2, random_state=0).fit(X, Y)
    whole, other = forest.estimators_[0].tree_, DecisionTreeClassifier().fit(X, Y == "a").tree_
    wide = rebuilt(whole, nodes(feature=HUGE), n_features=HUGE + 1)
    for tree, message in ((wide, "other columns than its model"), (other, "other classes than its model")):
        forest.estimators_[0].tree_ = tree
        refused(forest, f"holds a tree that is damaged: it has {message}")
    refused(whole, "it is not part of a model of trees")
    forest.estimators_[0].tree_ = whole
    del forest.estimators_[0].n_features_in_  # scikit-learn would then take rows of any width
    refused(forest, "its number of columns is missing")


def test_a_part_of_two_models_is_checked_for_both():
    """Rows of three columns would reach a tree that was found to be sound in a model of many."""
    narrow = DecisionTreeClassifier().fit(X, Y)
    wide = DecisionTreeClassifier().fit(np.hstack([RNG.normal(size=X.shape), X]), Y)
    narrow.tree_ = wide.tree_
    refused([wide, narrow], "it has other columns than its model")


def histograms(**options):
    return HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=3, **options).fit(X, Y)


def place(**places):
    def change(model):
        for name, value in places.items():
            model._predictors[1][0].nodes[name][0] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (place(left=HUGE), "a branch leads out of it"),
        (place(right=0), "a branch leads out of it"),
        (place(feature_idx=2_000_000_000), "it asks for a column that is not there"),
        (place(feature_idx=-1), "it asks for a column that is not there"),
        (place(is_categorical=1, bitset_idx=2_000_000_000), "it asks for a category where there are numbers"),
        (lambda model: setattr(model, "n_features_in_", 4), "other columns than its model"),
        (lambda model: delattr(model, "n_features_in_"), "its number of columns is missing"),
        (lambda model: setattr(model, "_preprocessor", OneHotEncoder()), "its columns are made in an unknown way"),
    ],
)
def test_damaged_boosting_is_refused(change, message):
    model = histograms()
    change(model)
    refused(model, message)
    refused(model._predictors, "it is not part of a model of trees")


def fewer_sets(model):
    model._predictors[0][0].raw_left_cat_bitsets = np.zeros((0, 8), dtype=np.uint32)


def shorter_sets(model):
    model._predictors[0][0].raw_left_cat_bitsets = model._predictors[0][0].raw_left_cat_bitsets[:, :1]


def without_numbers(model):
    model._preprocessor.transformers_ = model._preprocessor.transformers_[:1]


def with_fewer_by_name(model):
    model._preprocessor._transformer_to_input_indices["numerical"] = []


def with_another_function(model):
    name, _, mask = model._preprocessor.transformers_[1]
    model._preprocessor.transformers_[1] = (name, FunctionTransformer(np.isnan), mask)


def with_another_method(model):
    model._preprocessor.transform = np.isnan


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (fewer_sets, "categories are missing"),
        (shorter_sets, "categories are missing"),
        (without_numbers, "other columns than its model|a column that is not there"),
        (with_fewer_by_name, "columns are missing"),
        (with_another_function, "its columns are made in an unknown way"),
        (with_another_method, "it sets 'transform', which is not data"),
    ],
)
def test_damaged_boosting_with_categories_is_refused(change, message):
    model = histograms(categorical_features=[0, 1])
    trees = [tree for stage in model._predictors for tree in stage]
    assert any(tree.nodes["is_categorical"].any() for tree in trees) and len(trees[0].raw_left_cat_bitsets)
    change(model)
    refused(model, message)


def test_boosting_whose_trees_are_not_checked_needs_trust(tmp_path):
    model = TunedClassifier(GradientBoostingClassifier(n_estimators=2), random_state=0).fit(X, Y)
    mixent.save(model, tmp_path / "m", foreign="skops")
    with pytest.raises(SavedFileError, match="holds a GradientBoostingClassifier"):
        mixent.load(tmp_path / "m")
    again = mixent.load(tmp_path / "m", trusted=["sklearn.tree._tree.Tree"])
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


# --- others -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"_y": lambda y: y + HUGE}, "a row has a class that is not there"),
        ({"_y": lambda y: y - 1}, "a row has a class that is not there"),
        ({"classes_": lambda classes: classes[:2]}, "a row has a class that is not there"),
        ({"_y": lambda y: y[:5]}, "rows and their classes do not agree"),
        ({"_y": lambda y: y[:, None]}, "rows and their classes do not agree"),
        ({"_fit_X": lambda rows: rows[:, :2]}, "its rows have other columns"),
        ({"effective_metric_params_": lambda _: {"Y_norm_squared": np.zeros(1)}}, "its rows have lengths"),
        ({"n_features_in_": lambda _: None}, "its number of columns is missing"),
        ({"kneighbors": lambda _: 3}, "it sets 'kneighbors', which is not data"),
    ],
)
@pytest.mark.parametrize("metric", ["minkowski", "manhattan"])
def test_damaged_neighbors_are_refused(changes, message, metric):
    model = KNeighborsClassifier(algorithm="brute", metric=metric).fit(X, Y)
    for name, change in changes.items():
        setattr(model, name, change(getattr(model, name)))
    refused(model, f"holds a KNeighborsClassifier that is damaged: {message}")


def test_a_damaged_kernel_matrix_is_refused():
    model = SVC(kernel="precomputed").fit(X @ X.T, Y)
    model.shape_fit_ = (3, 3)
    refused(model, "its rows have other columns")


def test_damaged_sparse_arrays_are_refused():
    model = make_pipeline(OneHotEncoder(), SVC()).fit(X, Y)
    few = copy.deepcopy(model)
    few[-1]._dual_coef_[0, 0] = 0
    few[-1]._dual_coef_.eliminate_zeros()
    refused(few, "weights of support vectors are missing")
    model[-1].support_vectors_.indices[0] = HUGE
    refused(model, "holds a cs._(array|matrix) that is damaged")


# --- in files ---------------------------------------------------------------------------------------------------------
