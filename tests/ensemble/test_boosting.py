"""AdaBoost.M1, and what boosted classifiers share."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from mixent import MixtureClassifier
from mixent.base.delegation import aligned_proba, weight_argument
from mixent.data import DataWarning
from mixent.ensemble import AdaBoostM1Classifier, WeightBoostClassifier
from mixent.ensemble.base_estimators import drawn_rows

BOTH = [AdaBoostM1Classifier, WeightBoostClassifier]


def stump():
    return DecisionTreeClassifier(max_depth=1)


@pytest.fixture(scope="module")
def two():
    X, y = make_classification(150, 6, n_informative=4, flip_y=0.15, class_sep=0.6, random_state=3)
    return X, np.where(y == 1, "yes", "no")


@pytest.fixture(scope="module")
def three():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    return rng.normal(size=(150, 4)) + np.eye(3, 4)[y] * 1.5, np.array(["b", "c", "a"])[y]


@pytest.fixture
def mixed():
    """Categories, gaps and rows without a label."""
    rng = np.random.default_rng(1)
    hidden = rng.integers(0, 2, 120)
    size = rng.normal(size=120) + hidden
    size[rng.random(120) < 0.1] = np.nan
    shape = np.where(rng.random(120) < 0.3 + 0.4 * hidden, "round", "oval").astype(object)
    shape[:5] = None
    y = np.array(["no", "yes"], dtype=object)[hidden]
    y[10:20] = None
    return pd.DataFrame({"size": size, "shape": shape}), y


def weights_before(model, X, y, start=None):
    """The weights each stage was trained with, from the update as printed; and those after the last."""
    weight = np.ones(len(y)) if start is None else np.asarray(start, dtype=float)
    weight = weight / weight.sum()
    result = [weight]
    for stage, alpha in zip(model.estimators_, model.alphas_):
        weight = weight * np.exp(alpha * (stage.predict(X) != y))
        weight = weight / weight.sum()
        result.append(weight)
    return result


# theorems ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [stump(), GaussianNB(), None], ids=repr)
def test_a_stage_multiplies_the_exponential_loss_by_twice_the_root_of_e_times_1_less_e(two, base):
    X, y = two
    start = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    model = AdaBoostM1Classifier(base, 12, random_state=0).fit(X, y, sample_weight=start)
    assert len(model.alphas_) > 3
    np.testing.assert_allclose(model.alphas_, np.log((1 - model.errors_) / model.errors_), rtol=1e-9)
    truth = np.where(y == "yes", 1.0, -1.0)
    predicted = np.array([np.where(stage.predict(X) == "yes", 1.0, -1.0) for stage in model.estimators_])
    F = np.cumsum(model.alphas_[:, None] / 2 * predicted, axis=0)
    loss = np.exp(-truth * F) @ (start / start.sum())
    factor = 2 * np.sqrt(model.errors_ * (1 - model.errors_))
    np.testing.assert_allclose(loss[1:] / loss[:-1], factor[1:], rtol=1e-9)
    np.testing.assert_allclose(model.bound_, loss, rtol=1e-9)
    np.testing.assert_allclose(model.decision_function(X), F[-1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-2 * F[-1])), rtol=1e-9)


@pytest.mark.parametrize("base", [DecisionTreeClassifier(max_depth=2), GaussianNB()], ids=repr)
def test_the_bound_never_rises_and_the_training_error_stays_below(three, base):
    X, y = three
    start = np.random.default_rng(0).random(len(y)) + 0.1
    model = AdaBoostM1Classifier(base, 20, random_state=0).fit(X, y, sample_weight=start)
    assert len(model.bound_) > 3 and (np.diff(model.bound_) < 0).all()
    np.testing.assert_allclose(model.bound_, np.cumprod(2 * np.sqrt(model.errors_ * (1 - model.errors_))), rtol=1e-9)
    for proba, bound in zip(model.staged_predict(X), model.bound_):
        assert start[proba != y].sum() / start.sum() <= bound


def test_after_an_update_the_last_stage_errs_on_half_of_the_weight(three):
    X, y = three
    model = AdaBoostM1Classifier(GaussianNB(), 10).fit(X, y)
    weights = weights_before(model, X, y)
    for m, stage in enumerate(model.estimators_):
        wrong = stage.predict(X) != y
        np.testing.assert_allclose(weights[m][wrong].sum(), model.errors_[m], rtol=1e-9)
        np.testing.assert_allclose(weights[m + 1][wrong].sum(), 0.5, rtol=1e-9)
        again = GaussianNB().fit(X, y, sample_weight=len(y) * weights[m])
        np.testing.assert_allclose(again.theta_, stage.theta_, rtol=1e-9)


def test_the_votes_decide(three):
    X, y = three
    model = AdaBoostM1Classifier(GaussianNB(), 10).fit(X, y)
    votes = np.zeros((len(y), 3))
    for stage, alpha in zip(model.estimators_, model.alphas_):
        votes += alpha * (stage.predict(X)[:, None] == model.classes_)
    np.testing.assert_allclose(model.decision_function(X), votes, rtol=1e-9)
    assert (model.predict(X) == model.classes_[votes.argmax(axis=1)]).all()
    np.testing.assert_allclose(model.predict_proba(X), np.exp(votes) / np.exp(votes).sum(axis=1, keepdims=True))


@pytest.mark.parametrize("base", [stump(), GaussianNB()], ids=repr)
def test_two_classes_are_boosted_as_by_scikit_learn(two, base):
    X, y = two
    ours = AdaBoostM1Classifier(base, 15, random_state=0).fit(X, y)
    theirs = AdaBoostClassifier(base, n_estimators=15, random_state=0).fit(X, y)
    assert len(ours.alphas_) == len(theirs.estimators_) > 3
    np.testing.assert_allclose(ours.alphas_, theirs.estimator_weights_[: len(ours.alphas_)], rtol=1e-9)
    np.testing.assert_allclose(ours.errors_, theirs.estimator_errors_[: len(ours.alphas_)], rtol=1e-9)
    assert (ours.predict(X) == theirs.predict(X)).all()


def test_with_more_classes_scikit_learn_adds_the_logarithm_of_the_classes_less_one(three):
    X, y = three
    ours = AdaBoostM1Classifier(GaussianNB(), 1).fit(X, y)
    theirs = AdaBoostClassifier(GaussianNB(), n_estimators=1).fit(X, y)
    np.testing.assert_allclose(ours.errors_, theirs.estimator_errors_, rtol=1e-9)
    np.testing.assert_allclose(ours.alphas_ + np.log(2), theirs.estimator_weights_, rtol=1e-9)


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize("base", [None, GaussianNB()], ids=repr)
def test_weight_two_is_the_row_twice_and_weight_zero_no_row(three, make, base):
    X, y = three
    count = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = make(base, 6).fit(X, y, sample_weight=count)
    repeated = make(base, 6).fit(np.repeat(X, count, axis=0), np.repeat(y, count))
    np.testing.assert_allclose(np.hstack(weighted.alphas_), np.hstack(repeated.alphas_), rtol=1e-6)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-5)
    np.testing.assert_allclose(weighted.class_prior_, repeated.class_prior_)


@pytest.mark.parametrize("make", BOTH)
def test_a_class_without_weight_is_not_there(three, make):
    X, y = three
    model = make(GaussianNB(), 3).fit(X, y, sample_weight=(y != "b").astype(float))
    assert model.classes_.tolist() == ["a", "c"]
    np.testing.assert_array_equal(
        model.predict_proba(X), make(GaussianNB(), 3).fit(X[y != "b"], y[y != "b"]).predict_proba(X)
    )


@pytest.mark.parametrize("make", BOTH)
def test_the_first_stage_is_the_base_by_itself(three, make):
    """Weights are handed on in rows: a base with a prior must not see 150 rows as one."""
    X, y = three
    alone = LogisticRegression().fit(X, y == "a").coef_
    model = make(LogisticRegression(), 2).fit(X, np.where(y == "a", "yes", "no"))
    np.testing.assert_allclose(model.estimators_[0].coef_, alone, rtol=1e-5)


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize("resample", ["auto", True])
def test_renaming_the_classes_permutes_the_answer(three, make, resample):
    X, y = three
    names = {"a": "z", "b": "m", "c": "d"}
    model = make(GaussianNB(), 5, resample=resample, random_state=0).fit(X, y)
    other = make(GaussianNB(), 5, resample=resample, random_state=0).fit(X, [names[label] for label in y])
    order = [other.classes_.tolist().index(names[label]) for label in model.classes_]
    np.testing.assert_allclose(other.predict_proba(X)[:, order], model.predict_proba(X), rtol=1e-6)
    np.testing.assert_allclose(other.stage_proba(X)[:, :, order], model.stage_proba(X), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("make", BOTH)
def test_the_order_of_rows_does_not_matter(three, make):
    X, y = three
    order = np.random.default_rng(0).permutation(len(y))
    model, other = make(None, 5).fit(X, y), make(None, 5).fit(X[order], y[order])
    np.testing.assert_allclose(other.predict_proba(X), model.predict_proba(X), rtol=1e-6)


# early stops ------------------------------------------------------------------------------------------------------


class Says(ClassifierMixin, BaseEstimator):
    """Answers with the first column, whatever it was shown."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[np.asarray(X)[:, 0].astype(int)]


@pytest.mark.parametrize("make", BOTH)
def test_a_stage_without_error_is_kept_and_ends_it(make):
    X, y = np.repeat([[0.0], [1.0]], 10, axis=0), np.repeat(["n", "p"], 10)
    model = make(Says(), 5).fit(X, y)
    half = {AdaBoostM1Classifier: 1.0, WeightBoostClassifier: 0.5}[make]
    np.testing.assert_allclose(model.alphas_, [half * np.log(39)])  # half a row of twenty
    assert model.errors_.tolist() == [0.0] and model.stopped_.startswith("stage 1 has no")
    assert (model.predict(X) == y).all() and 0 < model.bound_[0] < 1
    np.testing.assert_allclose(model.predict_proba(X).max(axis=1), 39 / 40)
    shares = make(Says(), 5).fit(X, y, sample_weight=np.full(20, 1 / 20))  # shares are no counts
    np.testing.assert_allclose(shares.alphas_, model.alphas_)
    np.testing.assert_allclose(make(Says(), 5).fit(X, y, sample_weight=np.full(20, 2)).alphas_, half * np.log(79))


def test_the_same_answer_again_errs_on_half_of_the_weight_and_is_left_out():
    """But for rounding, by which it would be kept fifty times."""
    X = np.repeat([[0.0], [1.0]], 10, axis=0)
    for n_wrong in range(1, 5):
        y = X[:, 0].astype(int)
        y[:n_wrong] = 1
        model = AdaBoostM1Classifier(Says(), 50).fit(X, y)
        assert model.errors_.tolist() == pytest.approx([n_wrong / 20])
        assert model.stopped_.startswith("stage 2 has")


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize(("error", "first"), [(0.5, "0.5"), (0.8, "0.8"), (1.0, "1")])
def test_a_first_stage_that_errs_too_often_is_used_alone_with_a_warning(make, error, first):
    X = np.repeat([[0.0], [1.0]], 10, axis=0)
    y = X[:, 0].astype(int)
    wrong = np.r_[: int(10 * error), 10 : 10 + int(10 * error)]
    y[wrong] = 1 - y[wrong]
    with pytest.warns(UserWarning, match="Says has"):
        model = make(Says(), 5).fit(X, y)
    assert len(model.estimators_) == 1 and "used alone" in model.stopped_
    assert (model.predict(X) == X[:, 0]).all()
    np.testing.assert_allclose(model.predict_proba(X), 0.5, atol=1e-5)
    assert model.bound_[0] >= min(error, 1 - 1e-5)


def test_more_classes_ask_for_the_same_half():
    X, y = np.repeat(np.arange(4.0)[:, None], 10, axis=0), np.repeat(np.arange(4), 10)
    X[:, 0] = (y + (np.arange(40) % 10 < 6)) % 4
    with pytest.warns(UserWarning, match="stronger base"):
        model = AdaBoostM1Classifier(Says(), 5).fit(X, y)
    error = (X[:, 0] != y).mean()
    assert 0.5 <= error < 0.75 and model.bound_.tolist() == [1.0]
    np.testing.assert_allclose(model.alphas_, np.log(3 * (1 - error) / error))
    assert (model.predict(X) == X[:, 0]).all()
    np.testing.assert_allclose(model.predict_proba(X).max(axis=1), 1 - error)  # as often right as it says


# bases ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", BOTH)
def test_the_default_takes_categories_and_gaps_and_leaves_out_rows_without_a_label(mixed, make):
    X, y = mixed
    model = make(n_estimators=5).fit(X, y)
    known = np.flatnonzero([label is not None for label in y])
    other = make(n_estimators=5).fit(X.iloc[known], y[known].astype(str))
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), rtol=1e-9)
    assert (
        isinstance(model.estimators_[0], MixtureClassifier) and model.score(X.iloc[known], y[known].astype(str)) > 0.6
    )
    assert model.feature_names_in_.tolist() == ["size", "shape"] and model.estimators_[0].n_features_in_ == 2
    assert get_tags(model).input_tags.allow_nan and not get_tags(make(GaussianNB())).input_tags.allow_nan
    polars = make(n_estimators=5, resample=True, random_state=0).fit(pl.from_pandas(X), y)
    assert polars.stage_proba(pl.from_pandas(X)).shape == (len(polars.estimators_), 120, 2)


@pytest.mark.parametrize("make", BOTH)
def test_a_base_that_takes_no_weights_is_trained_on_drawn_rows(two, make):
    X, y = two
    model = make(KNeighborsClassifier(3), 10, random_state=0).fit(X, y)
    assert len(model.estimators_) > 2 and not np.array_equal(model.estimators_[0]._fit_X, X)
    np.testing.assert_array_equal(
        model.predict_proba(X), make(KNeighborsClassifier(3), 10, random_state=0).fit(X, y).predict_proba(X)
    )
    other = make(KNeighborsClassifier(3), 10, random_state=1).fit(X, y)
    assert not np.array_equal(model.predict_proba(X), other.predict_proba(X))


def test_rows_are_drawn_by_their_weights_and_show_two_classes():
    y, weight = np.repeat([0, 1], [3, 1]), np.array([0.5, 0.3, 0.2, 0.0])
    weight[3] = 1e-300
    rng = np.random.default_rng(0)
    result = [drawn_rows(rng, y, weight) for _ in range(4000)]
    assert all(3 in rows for rows in result)  # never drawn, put in
    shares = np.bincount(np.concatenate([rows[1:] for rows in result]), minlength=4) / 12000
    np.testing.assert_allclose(shares, weight, atol=0.02)


class Unlucky(Says):
    """Wrong the first few times it is trained."""

    times = 0

    def fit(self, X, y):
        type(self).times += 1
        self.flip_ = type(self).times < 4
        return super().fit(X, y)

    def predict(self, X):
        predicted = super().predict(X)
        return self.classes_[::-1][np.searchsorted(self.classes_, predicted)] if self.flip_ else predicted


def test_rows_are_drawn_again_before_boosting_ends():
    Unlucky.times = 0
    X, y = np.repeat([[0.0], [1.0]], 10, axis=0), np.repeat([0, 1], 10)
    model = AdaBoostM1Classifier(Unlucky(), 3, random_state=0).fit(X, y)
    assert Unlucky.times == 4 and model.errors_.tolist() == [0.0]


def test_weights_reach_the_last_step_of_a_pipeline(two):
    X, y = two
    pipeline = make_pipeline(StandardScaler(), GaussianNB())
    assert weight_argument(pipeline) == "gaussiannb__sample_weight"
    assert weight_argument(make_pipeline(StandardScaler(), KNeighborsClassifier())) is None
    model = AdaBoostM1Classifier(pipeline, 5).fit(X, y)
    plain = AdaBoostM1Classifier(GaussianNB(), 5).fit(StandardScaler().fit_transform(X), y)
    np.testing.assert_allclose(model.alphas_, plain.alphas_, rtol=1e-9)


@pytest.mark.parametrize("make", BOTH)
def test_a_base_without_probabilities_says_one_class(two, make):
    X, y = two
    model = make(RidgeClassifier(), 4).fit(X, y)
    proba = model.stage_proba(X)
    assert set(np.unique(proba)) == {0.0, 1.0}
    assert (model.classes_[proba[0].argmax(axis=1)] == model.estimators_[0].predict(X)).all()


@pytest.mark.parametrize("base", [None, GaussianNB()], ids=repr)
def test_stage_proba_is_what_the_stages_say(three, base):
    X, y = three
    model = AdaBoostM1Classifier(base, 5).fit(X, y)
    for proba, stage in zip(model.stage_proba(X), model.estimators_, strict=True):
        np.testing.assert_array_equal(proba, stage.predict_proba(X))


def test_a_stage_that_was_not_shown_a_class_gives_it_nothing():
    X, classes = np.arange(6.0)[:, None], np.array(["a", "b", "c"])
    stage = GaussianNB().fit(X, ["a", "a", "a", "c", "c", "c"])
    proba = aligned_proba(stage, X, classes, decisions=True)
    np.testing.assert_array_equal(proba[:, [0, 2]], stage.predict_proba(X))
    assert (proba[:, 1] == 0).all()
    blind = RidgeClassifier().fit(X, ["a", "a", "a", "c", "c", "c"])
    assert aligned_proba(blind, X, classes, decisions=True).argmax(axis=1).tolist() == [0, 0, 0, 2, 2, 2]
    rare = AdaBoostM1Classifier(GaussianNB(), 8, resample=True, random_state=0)
    rows = np.r_[np.zeros(30), np.ones(30), 9.0][:, None] + np.random.default_rng(0).normal(size=(61, 1))
    with pytest.warns(DataWarning, match="one row"):
        rare.fit(rows, ["a"] * 30 + ["b"] * 30 + ["c"])
    assert rare.stage_proba(rows).shape[2] == 3
    assert any(len(stage.classes_) == 2 for stage in rare.estimators_)


def test_random_bases_get_their_seed_from_ours(two):
    X, y = two
    tree = DecisionTreeClassifier(max_depth=1, max_features=1, random_state=7)
    given = AdaBoostM1Classifier(tree, 6, random_state=0).fit(X, y)
    seeds = [stage.random_state for stage in given.estimators_]
    assert len(set(seeds)) == len(seeds) and seeds == [
        stage.random_state for stage in AdaBoostM1Classifier(tree, 6, random_state=0).fit(X, y).estimators_
    ]
    own = AdaBoostM1Classifier(tree, 6).fit(X, y)
    assert {stage.random_state for stage in own.estimators_} == {7}
    inside = AdaBoostM1Classifier(make_pipeline(StandardScaler(), tree), 2, random_state=0).fit(X, y)
    assert inside.estimators_[0][-1].random_state == seeds[0]


# the scikit-learn face --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "may_fail"),
    [
        (AdaBoostM1Classifier(n_estimators=5), set()),
        # two splits can be equally good, and the tree then chooses by the last digit of the weights
        (AdaBoostM1Classifier(stump(), 10), {"check_sample_weight_equivalence_on_dense_data"}),
        (AdaBoostM1Classifier(stump(), 8, resample=True), {"check_sample_weight_equivalence_on_dense_data"}),
        (WeightBoostClassifier(n_estimators=4), set()),
        (WeightBoostClassifier(stump(), 10), {"check_sample_weight_equivalence_on_dense_data"}),
    ],
    ids=["ada", "ada of stumps", "ada resampled", "weightboost", "weightboost of stumps"],
)
@pytest.mark.filterwarnings("ignore")  # the checks feed one row, one column, all zeros: they are about errors
def test_every_check_of_scikit_learn_passes(estimator, may_fail):
    results = check_estimator(estimator, on_fail=None)
    assert len(results) >= 60
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] not in ("passed", "skipped")]
    assert [f for f in failed if f[0] not in may_fail] == []
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_last_of_the_staged_answers_is_the_answer(two, three, make, n_classes):
    X, y = {2: two, 3: three}[n_classes]
    model = make(GaussianNB(), 6).fit(X, y)
    proba, result = list(model.staged_predict_proba(X)), list(model.staged_predict(X))
    assert len(proba) == len(result) == len(model.stage_proba(X))
    np.testing.assert_allclose(proba[-1], model.predict_proba(X), rtol=1e-9)
    assert (result[-1] == model.predict(X)).all()
    first = make(GaussianNB(), 1).fit(X, y)
    np.testing.assert_allclose(proba[0], first.predict_proba(X), rtol=1e-9)
    assert (result[0] == first.predict(X)).all()


@pytest.mark.parametrize("make", BOTH)
def test_copies_answer_alike(two, make):
    X, y = two
    model = make(GaussianNB(), 5).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))
    again = clone(model)
    with pytest.raises(NotFittedError):
        again.predict(X)
    with pytest.raises(NotFittedError):
        again.stage_proba(X)
    np.testing.assert_array_equal(again.fit(X, y).predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("make", BOTH)
def test_shifted_priors_move_every_answer(two, make):
    X, y = two
    model = make(GaussianNB(), 3).fit(X, y)
    batch = X[(y == "yes") | (np.arange(len(y)) % 5 == 0)]
    moved = model.adjust_priors(batch)
    odds = np.log(moved.class_prior_ / model.class_prior_)
    np.testing.assert_allclose(
        moved.decision_function(X), model.decision_function(X) + (odds[1] - odds[0]) / 2, rtol=1e-9, atol=1e-12
    )
    *_, last = moved.staged_predict_proba(X)
    np.testing.assert_allclose(last, moved.predict_proba(X), rtol=1e-9)
    np.testing.assert_array_equal(moved.stage_proba(X), model.stage_proba(X))
    assert model.decision(X, reject=0.2).rejected.any()


@pytest.mark.parametrize("make", BOTH)
def test_progress_is_told(two, three, make):
    result = []
    make(GaussianNB(), 3, progress=lambda *news: result.append(news)).fit(*two)
    assert [news[:2] for news in result] == [(1, 3), (2, 3), (3, 3)] and "stage 1, weighted error 0." in result[0][2]
    make(GaussianNB(), 2, progress=True).fit(*three)


# use --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_boosted_naive_bayes_serves_on_rows_it_has_not_seen(make, load):
    X, y = load(return_X_y=True)
    assert make(GaussianNB(), 20).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9


def test_bagging_is_scikit_learns(three):
    X, y = three
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.05, np.nan, X)
    model = BaggingClassifier(MixtureClassifier(1, "VVI"), n_estimators=5, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.7


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
def test_a_constant_base_ends_at_once():
    X, y = np.zeros((10, 1)), np.repeat([0, 1], [3, 7])
    model = AdaBoostM1Classifier(DummyClassifier(), 5).fit(X, y)
    assert (model.predict(X) == 1).all() and model.errors_[0] == pytest.approx(0.3)


def overlapping(n=120):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, 2)) * (1 + y[:, None]), np.array(["in", "out"])[y]


def test_where_boosting_would_end_it_can_begin_anew():
    X, y = overlapping()
    short = AdaBoostM1Classifier(GaussianNB(), 40, random_state=0).fit(X, y)
    full = AdaBoostM1Classifier(GaussianNB(), 40, restart=True, random_state=0).fit(X, y)
    ended = len(short.estimators_)
    assert short.stopped_ is not None and short.restarts_ == [] and ended < 40
    assert full.stopped_ is None and len(full.estimators_) == 40 and full.restarts_[0] == ended
    np.testing.assert_array_equal(full.errors_[:ended], short.errors_)
    np.testing.assert_array_equal(full.bound_[:ended], short.bound_)
    assert np.isnan(full.bound_[ended:]).all() and (full.errors_ < 0.5).all()
    first = [full.estimators_[m].theta_ for m in full.restarts_[:2]]
    assert not np.allclose(*first)  # each begins with another bootstrap


def test_a_stage_without_an_error_is_kept_and_the_next_begins_anew():
    X = np.arange(20.0)[:, None]
    y = (X[:, 0] > 9).astype(int)
    model = AdaBoostM1Classifier(DecisionTreeClassifier(max_depth=1), 5, restart=True, random_state=0).fit(X, y)
    assert len(model.estimators_) == 5 and model.restarts_ == [1, 2, 3, 4] and np.isfinite(model.alphas_).all()


def test_a_stage_right_on_all_rows_that_were_drawn_has_no_endless_vote():
    X, y = load_breast_cancer(return_X_y=True)
    model = AdaBoostM1Classifier(DecisionTreeClassifier(random_state=0), 6, restart=True, random_state=0).fit(X, y)
    assert len(model.estimators_) == 6 and model.restarts_ == [1, 2, 3, 4, 5]
    assert model.alphas_.max() <= np.log(2 * len(y))
