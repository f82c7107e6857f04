"""WeightBoost: boosting with an input-dependent regularizer."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from mixent.ensemble import AdaBoostM1Classifier, WeightBoostClassifier
from mixent.ensemble.weightboost import BinaryBoosting


@pytest.fixture(scope="module")
def two():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(160, 5))
    y = np.where(X[:, 0] + X[:, 1] ** 2 + rng.normal(size=160) > 1, "p", "n")
    return X, y


@pytest.fixture(scope="module")
def four():
    rng = np.random.default_rng(6)
    y = rng.integers(0, 4, 160)
    return rng.normal(size=(160, 4)) + 1.5 * np.eye(4)[y], np.array(["d", "a", "c", "b"])[y]


BASES = [DecisionTreeClassifier(max_depth=1), GaussianNB(), None]


def by_hand(model, X, y, beta, start):
    """H before every stage and after the last, and W+ and W- (not normalized) of every stage, as printed."""
    truth, v = np.where(y == model.classes_[1], 1.0, -1.0), start / start.sum()
    H, result = np.zeros(len(y)), []
    for stage, alpha in zip(model.estimators_, model.alphas_):
        w = v * np.exp(-truth * H - np.abs(beta * H))
        h = np.where(stage.predict(X) == model.classes_[1], 1.0, -1.0)
        result.append((H, w[h == truth].sum(), w[h != truth].sum()))
        H = H + alpha * np.exp(-np.abs(beta * H)) * h
    return truth, v, result, H


@pytest.mark.parametrize("beta", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("base", BASES, ids=repr)
def test_the_loss_falls_by_at_least_what_is_promised(two, base, beta):
    X, y = two
    start = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    model = WeightBoostClassifier(base, 12, beta=beta, random_state=0).fit(X, y, sample_weight=start)
    truth, v, result, H = by_hand(model, X, y, beta, start)
    assert len(result) > 2
    for m, (before, right, wrong) in enumerate(result):
        np.testing.assert_allclose(model.alphas_[m], np.log(right / wrong) / 2, rtol=1e-9)
        np.testing.assert_allclose(model.errors_[m], wrong / (right + wrong), rtol=1e-9)
        loss = v @ np.exp(-truth * before)
        promised = (np.sqrt(right) - np.sqrt(wrong)) ** 2
        assert promised > 0 and model.bound_[m] <= loss - promised + 1e-12
        if beta == 0:
            np.testing.assert_allclose(model.bound_[m], loss - promised, rtol=1e-9)
    np.testing.assert_allclose(model.bound_[-1], v @ np.exp(-truth * H), rtol=1e-9)
    np.testing.assert_allclose(model.decision_function(X), H, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-2 * H)), rtol=1e-9)
    for proba, bound in zip(model.staged_predict(X), model.bound_, strict=True):
        assert v[proba != y].sum() <= bound


@pytest.mark.parametrize("base", BASES, ids=repr)
def test_beta_0_is_adaboost(two, base):
    X, y = two
    ours = WeightBoostClassifier(base, 10, beta=0.0, random_state=0).fit(X, y)
    ada = AdaBoostM1Classifier(base, 10, random_state=0).fit(X, y)
    np.testing.assert_allclose(2 * ours.alphas_, ada.alphas_, rtol=1e-6)
    predicted = np.array([np.where(stage.predict(X) == "p", 1.0, -1.0) for stage in ada.estimators_])
    np.testing.assert_allclose(ours.decision_function(X), ada.alphas_ @ predicted / 2, rtol=1e-6, atol=1e-9)
    assert (ours.predict(X) == ada.predict(X)).all()
    np.testing.assert_allclose(ours.bound_, ada.bound_, rtol=1e-6)
    np.testing.assert_allclose(ours.stage_proba(X), ada.stage_proba(X), rtol=1e-5, atol=1e-9)


def test_a_sure_row_hears_little_of_the_next_stage(two):
    X, y = two
    model = WeightBoostClassifier(GaussianNB(), 6, beta=2.0).fit(X, y)
    heights = list(model.binary_boostings_[0].staged(X))
    for before, after, alpha in zip(heights, heights[1:], model.alphas_[1:]):
        np.testing.assert_allclose(np.abs(after - before), alpha * np.exp(-2 * np.abs(before)), rtol=1e-9)


def test_more_classes_are_each_against_the_rest(four):
    X, y = four
    model = WeightBoostClassifier(GaussianNB(), 6, beta=0.5).fit(X, y)
    assert len(model.binary_boostings_) == len(model.estimators_) == len(model.alphas_) == len(model.stopped_) == 4
    H = []
    for c, name in enumerate(model.classes_):
        alone = WeightBoostClassifier(GaussianNB(), 6, beta=0.5).fit(X, y == name)
        np.testing.assert_allclose(model.alphas_[c], alone.alphas_, rtol=1e-9)
        np.testing.assert_allclose(model.bound_[c], alone.bound_, rtol=1e-9)
        np.testing.assert_allclose(model.errors_[c], alone.errors_, rtol=1e-9)
        H.append(alone.decision_function(X))
    sure = 1 / (1 + np.exp(-2 * np.array(H).T))
    np.testing.assert_allclose(model.predict_proba(X), sure / sure.sum(axis=1, keepdims=True), rtol=1e-9)
    assert (model.predict(X) == model.classes_[np.argmax(H, axis=0)]).all()


def test_what_the_stages_of_more_classes_say(four):
    X, y = four
    model = WeightBoostClassifier(GaussianNB(), 6, beta=0.5).fit(X, y)
    proba = model.stage_proba(X)
    np.testing.assert_allclose(proba.sum(axis=2), 1)
    own = np.column_stack([stages[0].predict_proba(X)[:, 1] for stages in model.estimators_])
    np.testing.assert_allclose(proba[0], own / own.sum(axis=1, keepdims=True), rtol=1e-9)


class Row:
    """A stage of a contest, trained or not, that says this of its own class."""

    classes_ = np.array([0, 1])

    def __init__(self, *own):
        self.own = np.array(own)

    def predict_proba(self, X):
        return np.column_stack([1 - self.own, self.own])

    def predict(self, X):
        return (self.own > 0.5).astype(int)


def test_a_contest_that_ended_gives_its_share_and_nobody_stands_for_all():
    X = np.zeros((2, 1))
    model = WeightBoostClassifier(GaussianNB(), 2, beta=0.5).fit(np.arange(6.0)[:, None], [0, 0, 1, 1, 2, 2])
    model.n_features_in_, nothing = 1, np.zeros(2)
    stages = [[Row(0.5, 0.0), Row(0.2, 0.0)], [Row(0.25, 0.0)], [Row(0.25, 0.0), Row(0.0, 0.4)]]
    model.binary_boostings_ = tuple(
        BinaryBoosting(own, np.array([0, 1]), share, np.ones(len(own)), nothing, nothing, None, 0.5)
        for own, share in zip(stages, (0.5, 0.3, 0.2))
    )
    np.testing.assert_allclose(model.stage_proba(X)[0], [[0.5, 0.25, 0.25], [1 / 3, 1 / 3, 1 / 3]])
    np.testing.assert_allclose(model.stage_proba(X)[1], [[0.4, 0.6, 0.0], [0.0, 3 / 7, 4 / 7]])
    first, second = model.staged_predict_proba(X)  # what has ended stays where it is
    np.testing.assert_allclose(first[0], np.full(3, 1 / 3))
    H = np.array([-1 - np.exp(-0.5), -1.0, -1 - np.exp(-0.5)])
    sure = 1 / (1 + np.exp(-2 * H))
    np.testing.assert_allclose(second[0], sure / sure.sum(), rtol=1e-9)


def test_progress_tells_the_class(four):
    result = []
    WeightBoostClassifier(GaussianNB(), 2, progress=lambda *news: result.append(news)).fit(*four)
    assert [news[:2] for news in result] == [(m, 8) for m in range(1, 9)] and result[2][2].startswith("'b', stage 1")


def test_drawn_rows_serve_every_contest_alike(four):
    X, y = four
    model = WeightBoostClassifier(KNeighborsClassifier(3), 3, random_state=0).fit(X, y)
    firsts = [stages[0]._fit_X for stages in model.estimators_]
    for other in firsts[1:]:
        np.testing.assert_array_equal(other, firsts[0])  # even weights, one seed: the same rows
