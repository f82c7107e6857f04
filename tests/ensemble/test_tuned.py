"""Classifiers of other libraries on any table: how rows become numbers, how settings are chosen, how they are saved."""

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, PredefinedSplit, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

import mixent
from mixent import TunedClassifier
from mixent.base.bounded_loss import log_with_uniform
from mixent.data import read_features
from mixent.ensemble.encoding import ColumnEncoding


def make_table(n=80, seed=0):
    rng = np.random.default_rng(seed)
    y = np.array(["no", "yes"])[np.arange(n) % 2]
    X = pd.DataFrame({"size": rng.normal(size=n) + 1.5 * (y == "yes"), "age": 50 + 10 * rng.normal(size=n)})
    X["color"] = np.where(rng.random(n) < 0.7, np.where(y == "yes", "red", "blue"), "green")
    X.loc[::9, "size"] = np.nan
    X.loc[::7, "color"] = None
    return X, y


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_checks():
    result = check_estimator(TunedClassifier(), on_fail=None)
    assert [r["check_name"] for r in result if r["status"] == "failed"] == []
    assert sum(r["status"] == "passed" for r in result) >= 58


# --- rows as numbers --------------------------------------------------------------------------------------------------


def plain(encoding, X, weight=None):
    table = read_features(TunedClassifier(), X, reset=True)
    columns = ColumnEncoding.of(encoding, table, np.ones(len(X)) if weight is None else weight)
    return columns, columns(table)


def test_bits():
    X = pd.DataFrame({"x": [1.0, np.nan, 3.0], "c": ["a", None, "b"]})
    _, Z = plain("bits", X)
    np.testing.assert_array_equal(Z, [[-1, 1, 0, 0, 0], [0, 0, 0, 1, 1], [1, 0, 1, 0, 0]])


def test_codes():
    X = pd.DataFrame({"c": ["a", None, "b"], "x": [1.0, np.nan, 3.0]})
    columns, Z = plain("codes", X)
    np.testing.assert_array_equal(Z, [[1, 0], [np.nan, np.nan], [3, 1]])
    np.testing.assert_array_equal(columns.coded, [False, True])


def test_scaled_columns_have_mean_zero_and_variance_one_by_weight():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(5, 3, (40, 3)), rng.random(40)
    _, Z = plain("bits", X, weight)
    np.testing.assert_allclose(weight @ Z / weight.sum(), 0, atol=1e-12)
    np.testing.assert_allclose(weight @ Z**2 / weight.sum(), 1, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
def test_a_constant_column_and_an_unseen_category_are_no_trouble():
    X, y = make_table()
    model = TunedClassifier().fit(X.assign(one=1.0), y)
    new = X.assign(one=2.0)[:3]
    new.loc[0, "color"] = "mauve"
    with pytest.warns(UserWarning, match="mauve"):
        assert np.isfinite(model.predict_proba(new)).all()


# --- settings ---------------------------------------------------------------------------------------------------------


def test_the_choice_is_that_of_grid_search_on_the_same_folds():
    X, y = make_table(90)
    place = np.arange(90) % 5
    folds = list(PredefinedSplit(place).split())
    grid = {"C": [1e-4, 1e-2, 1.0, 100.0]}
    ours = TunedClassifier(LogisticRegression(max_iter=500), grid, cv=folds).fit(X, y)
    _, Z = plain("bits", X)

    def bounded(model, Z, y):  # the loss of a row is bounded, see `mixent.base.bounded_loss`
        log_proba = log_with_uniform(model.predict_log_proba(Z))
        return log_proba[np.arange(len(y)), np.searchsorted(model.classes_, y)].mean()

    theirs = GridSearchCV(LogisticRegression(max_iter=500), grid, scoring=bounded, cv=folds).fit(Z, y)
    assert ours.best_params_ == theirs.best_params_
    by_c = {one["params"]["C"]: one["log_loss"] for one in ours.search_}
    np.testing.assert_allclose([by_c[c] for c in grid["C"]], -theirs.cv_results_["mean_test_score"], rtol=1e-9)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(Z), rtol=1e-9)


def test_the_best_comes_first_and_without_a_grid_nothing_is_tried():
    X, y = make_table()
    model = TunedClassifier(KNeighborsClassifier(), {"n_neighbors": [1, 5, 9, 500]}, random_state=0).fit(X, y)
    losses = [one["log_loss"] for one in model.search_]
    assert losses == sorted(losses) and model.best_params_ == model.search_[0]["params"]
    assert losses[-1] == np.inf and "n_neighbors" in model.search_[-1]["failed"]
    assert TunedClassifier().fit(X, y).search_ == []


def test_weight_two_is_the_row_twice():
    X, y = make_table()
    weight = 1.0 + (np.arange(len(y)) % 3 == 0)
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    base = LogisticRegression(tol=1e-10, max_iter=5000)
    one = TunedClassifier(base).fit(X, y, sample_weight=weight)
    other = TunedClassifier(base).fit(X.iloc[rows], y[rows])
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-5)


def test_rows_without_a_label_or_weight_are_left_out():
    X, y = make_table()
    some = np.where(np.arange(len(y)) % 4 == 0, None, y)
    keep = np.arange(len(y)) % 4 != 0
    expected = TunedClassifier().fit(X[keep], y[keep]).predict_proba(X)
    np.testing.assert_allclose(TunedClassifier().fit(X, some).predict_proba(X), expected, rtol=1e-9)
    weighted = TunedClassifier().fit(X, y, sample_weight=keep.astype(float))
    np.testing.assert_allclose(weighted.predict_proba(X), expected, rtol=1e-9)


def test_boosting_is_told_which_codes_are_categories():
    X, y = make_table()
    model = TunedClassifier(HistGradientBoostingClassifier(max_iter=5), encoding="codes").fit(X, y)
    np.testing.assert_array_equal(model.model_.is_categorical_, [False, False, True])


def test_a_category_of_many_values_is_a_number_to_boosting():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"place": [f"p{i}" for i in rng.permutation(600) % 300], "x": rng.normal(size=600)})
    y = (X["x"] > 0).astype(int)
    model = TunedClassifier(HistGradientBoostingClassifier(max_iter=3), encoding="codes").fit(X, y)
    assert model.model_.is_categorical_ is None and model.score(X, y) > 0.9


def test_the_seed_reaches_the_estimator():
    X, y = make_table()
    forest = TunedClassifier(RandomForestClassifier(5), encoding="codes", random_state=3)
    np.testing.assert_array_equal(forest.fit(X, y).predict_proba(X), forest.fit(X, y).predict_proba(X))


def test_decisions_count_as_certain():
    X, y = make_table()
    proba = TunedClassifier(RidgeClassifier()).fit(X, y).predict_proba(X)
    assert set(np.round(proba.ravel(), 9)) == {0.0, 1.0}


def test_priors_can_be_adjusted():
    X, y = make_table(200)
    model = TunedClassifier().fit(X, y)
    batch = X[(y == "no") | (np.arange(200) % 10 == 1)]
    moved = model.adjust_priors(batch)
    assert moved.class_prior_[0] > 0.65
    odds = np.log(moved.predict_proba(X)) - np.log(model.predict_proba(X))
    gained = odds[:, 0] - odds[:, 1]
    np.testing.assert_allclose(gained, gained[0], rtol=1e-6)  # one factor for all rows: Bayes' rule


# --- files ------------------------------------------------------------------------------------------------------------

SAVED = {
    "logistic": (LogisticRegression(), "bits"),
    "forest": (RandomForestClassifier(5), "codes"),
    "boosting": (HistGradientBoostingClassifier(max_iter=5), "codes"),
    "svm": (CalibratedClassifierCV(SVC(), cv=StratifiedKFold(3, shuffle=True, random_state=0), ensemble=False), "bits"),
    "neighbors": (KNeighborsClassifier(algorithm="brute"), "bits"),
}


@pytest.mark.parametrize("name", SAVED)
def test_saved_and_loaded_without_more_trust(name, tmp_path):
    X, y = make_table()
    base, encoding = SAVED[name]
    model = TunedClassifier(base, encoding=encoding, random_state=0).fit(X, y)
    mixent.save(model, tmp_path / "m.mixent", foreign="skops")
    again = mixent.load(tmp_path / "m.mixent")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.best_params_ == model.best_params_
    model.predict_proba(X)  # saving took nothing from it
    with pytest.raises(TypeError, match="mixent's own"):
        mixent.save(model, tmp_path / "n.mixent")


def test_out_of_bag_scores_take_one_fit_for_each_setting(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 3)), np.arange(150) % 2
    X[:, 0] += y
    forest, fits = RandomForestClassifier(40), []
    monkeypatch.setattr(RandomForestClassifier, "fit", counting(RandomForestClassifier.fit, fits))
    model = TunedClassifier(forest, {"min_samples_leaf": [1, 30]}, encoding="codes", cv="oob", random_state=0).fit(X, y)
    assert len(fits) == 2 + 1 and model.search_[0]["params"] == model.best_params_
    seed = model.model_.random_state
    alone = RandomForestClassifier(40, random_state=seed, **model.best_params_).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), np.maximum(alone.predict_proba(X), 1e-15), rtol=1e-9)
    votes = fits[0].oob_decision_function_[np.arange(150), y]
    loss = -np.log(np.maximum(votes, 0.5 / (40 * np.exp(-1)))).mean()
    assert {entry["params"]["min_samples_leaf"]: entry["log_loss"] for entry in model.search_}[1] == pytest.approx(loss)


def counting(fit, fits):
    def wrapped(self, *args, **options):
        fits.append(self)
        return fit(self, *args, **options)

    return wrapped


def test_out_of_bag_scores_need_a_classifier_that_has_them():
    with pytest.raises(ValueError, match="oob_score"):
        TunedClassifier(LogisticRegression(), {"C": [1.0, 2.0]}, cv="oob").fit([[0.0], [1.0]], [0, 1])


def test_early_stopping_is_on_the_rows_held_out():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), np.arange(200) % 2
    X[:, 0] += y
    rule = {"early_stopping": True, "n_iter_no_change": 5, "max_iter": 300, "learning_rate": 0.05}
    grid, folds = {"max_leaf_nodes": [4, 15]}, list(StratifiedKFold(3).split(X, y))
    model = TunedClassifier(HistGradientBoostingClassifier(**rule), grid, encoding="codes", cv=folds, random_state=0)
    model.fit(X, y)
    leaves, seed = model.search_[0]["params"], model.model_.random_state
    n_iter = []
    for train, test in folds:
        trees = HistGradientBoostingClassifier(**rule, **leaves, random_state=seed)
        n_iter.append(trees.fit(X[train], y[train], X_val=X[test], y_val=y[test]).n_iter_ - 5)
    assert model.best_params_ == {**leaves, "max_iter": round(np.mean(n_iter)), "early_stopping": False}
    assert model.model_.n_iter_ == model.best_params_["max_iter"] < 300
