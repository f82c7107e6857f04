"""Stacks and boosting as scikit-learn's users expect them: transform, fitted classifiers by name, "drop", bases."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from mixent import (
    AdaBoostM1Classifier,
    HMMStackingClassifier,
    MaxEntStackingClassifier,
    MixtureClassifier,
    WeightBoostClassifier,
)

X, Y = make_blobs(120, 3, centers=3, cluster_std=2.5, random_state=0)
STACKS = {
    "maxent": lambda bases, **options: MaxEntStackingClassifier(bases, prior_variance=1.0, random_state=0, **options),
    "hmm": lambda bases, **options: HMMStackingClassifier(bases, random_state=0, **options),
}
BASES = [("nb", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=3))]

stacks = pytest.mark.parametrize("stack", STACKS.values(), ids=STACKS)


class Silent(ClassifierMixin, BaseEstimator):
    """A classifier whose `fit` returns nothing."""

    def fit(self, X, y, sample_weight=None):
        self.model_ = GaussianNB().fit(X, y, sample_weight)
        self.classes_ = self.model_.classes_

    def predict(self, X):
        return self.model_.predict(X)

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


@stacks
def test_transform_gives_the_outputs_of_the_classifiers(stack):
    model = stack(BASES).fit(X, Y)
    expected = np.hstack([base.predict_proba(X) for base in model.estimators_])
    np.testing.assert_allclose(model.transform(X), expected, rtol=1e-12)
    np.testing.assert_array_equal(stack(BASES).fit_transform(X, Y), model.transform(X))
    names = ["nb_0", "nb_1", "nb_2", "tree_0", "tree_1", "tree_2"]
    assert model.get_feature_names_out().tolist() == names
    assert model.set_output(transform="pandas").transform(X).columns.tolist() == names
    chain = make_pipeline(stack(BASES), GaussianNB()).fit(X, Y)
    assert chain.score(X, Y) > 0.5


@stacks
def test_fitted_classifiers_are_found_by_name(stack):
    model = stack(BASES).fit(X, Y)
    assert [type(base) for base in model.estimators_] == [GaussianNB, DecisionTreeClassifier]
    assert (
        model.named_estimators_.nb is model.estimators_[0] and model.named_estimators_["tree"] is model.estimators_[1]
    )
    boosted = stack(AdaBoostM1Classifier(n_estimators=3)).fit(X, Y)
    assert boosted.estimators_ == boosted.fitted_.estimators_
    assert list(boosted.named_estimators_) == list(boosted.base_names_)
    with pytest.raises(NotFittedError):
        stack(BASES).estimators_  # noqa: B018


@stacks
def test_a_dropped_classifier_takes_no_part(stack):
    without = stack(BASES[:1]).fit(X, Y).predict_proba(X)
    model = stack([BASES[0], ("tree", "drop")]).fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), without)
    assert model.base_names_ == ("nb",) and model.named_estimators_.tree == "drop"
    other = stack(clone(BASES, safe=False)).set_params(tree="drop")
    assert other.get_params()["tree"] == "drop" and "tree__max_depth" not in other.get_params()
    np.testing.assert_array_equal(clone(other).fit(X, Y).predict_proba(X), without)
    restored = other.set_params(tree=DecisionTreeClassifier(max_depth=3)).fit(X, Y)
    np.testing.assert_array_equal(restored.predict_proba(X), stack(BASES).fit(X, Y).predict_proba(X))
    with pytest.raises(ValueError, match="drop"):
        stack([("nb", "drop"), ("tree", "drop")]).fit(X, Y)


@stacks
def test_what_fit_of_a_base_returns_does_not_matter(stack):
    expected = stack([("nb", GaussianNB())]).fit(X, Y).predict_proba(X)
    np.testing.assert_array_equal(stack([("nb", Silent())]).fit(X, Y).predict_proba(X), expected)


@pytest.mark.parametrize("boosting", [AdaBoostM1Classifier, WeightBoostClassifier])
@pytest.mark.parametrize("resample", [False, True])
def test_stages_whose_fit_returns_nothing(boosting, resample):
    options = {"n_estimators": 3, "resample": resample, "random_state": 0}
    expected = boosting(GaussianNB(), **options).fit(X, Y).predict_proba(X)
    np.testing.assert_array_equal(boosting(Silent(), **options).fit(X, Y).predict_proba(X), expected)


@stacks
def test_an_unfitted_base_of_a_prefit_stack_is_not_fitted(stack):
    with pytest.raises(NotFittedError, match="'tree'"):
        stack([("nb", GaussianNB().fit(X, Y)), BASES[1]], cv="prefit").fit(X, Y)
    with pytest.raises(NotFittedError, match="AdaBoostM1Classifier"):
        stack(AdaBoostM1Classifier(n_estimators=2), cv="prefit").fit(X, Y)


@stacks
@pytest.mark.parametrize(
    "bases",
    [[MixtureClassifier(1), GaussianNB()], AdaBoostM1Classifier(n_estimators=3), WeightBoostClassifier(n_estimators=3)],
    ids=["list", "ada", "weightboost"],
)
def test_a_weight_of_two_is_the_row_twice(stack, bases):
    """With the default base classifiers, if no folds are drawn: they would separate a row from its copies."""
    options = {"cv": "train"} | ({"calibration": None} if stack is STACKS["hmm"] else {})
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    twice = np.repeat(np.arange(len(X)), weight)
    weighted = stack(bases, **options).fit(X, Y, sample_weight=weight).predict_proba(X)
    repeated = stack(bases, **options).fit(X[twice], Y[twice]).predict_proba(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-6)


@pytest.mark.parametrize("boosting", [AdaBoostM1Classifier, WeightBoostClassifier])
def test_staged_scores_end_at_the_score(boosting):
    model = boosting(DecisionTreeClassifier(max_depth=1), n_estimators=6, random_state=0).fit(X, Y)
    weight = np.linspace(1, 2, len(X))
    staged = list(model.staged_score(X, Y))
    assert staged[-1] == model.score(X, Y) and len(staged) == len(list(model.staged_predict(X))) > 1
    assert staged == [float((label == Y).mean()) for label in model.staged_predict(X)]
    assert list(model.staged_score(X, Y, weight))[-1] == pytest.approx(model.score(X, Y, weight), rel=1e-12)


@stacks
def test_names_are_in_the_order_given(stack):
    model = stack([("a", GaussianNB()), ("b", "drop"), ("c", DecisionTreeClassifier(max_depth=2))], cv=2).fit(X, Y)
    assert list(model.named_estimators_) == ["a", "b", "c"] and model.named_estimators_["b"] == "drop"
    assert model.named_estimators_["c"] is model.estimators_[1]


def test_members_without_a_name_each_have_no_names():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(90, 2)), np.arange(90) % 3
    model = STACKS["maxent"](WeightBoostClassifier(n_estimators=2), cv="train").fit(rows, labels)
    with pytest.raises(AttributeError, match="no names"):
        _ = model.named_estimators_
