"""sklearn's AdaBoostClassifier and StackingClassifier, beside mixent's boosting and stacks."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, make_blobs
from sklearn.ensemble import AdaBoostClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from mixent import AdaBoostM1Classifier, HMMStackingClassifier, MaxEntStackingClassifier, WeightBoostClassifier

CANCER, MALIGNANT = (part[::3] for part in load_breast_cancer(return_X_y=True))
X, Y = make_blobs(120, 3, centers=3, cluster_std=2.5, random_state=0)
BASES = [("nb", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=3, random_state=0))]
STACKS = {
    "maxent": lambda bases, **options: MaxEntStackingClassifier(bases, prior_variance=1.0, random_state=0, **options),
    "hmm": lambda bases, **options: HMMStackingClassifier(bases, random_state=0, **options),
}
stacks = pytest.mark.parametrize("stack", STACKS.values(), ids=STACKS)
boostings = pytest.mark.parametrize("boosting", [AdaBoostM1Classifier, WeightBoostClassifier])


def stump():
    return DecisionTreeClassifier(max_depth=1, random_state=0)


def test_covered_adaboost_of_two_classes():
    peer = AdaBoostClassifier(stump(), n_estimators=8).fit(CANCER, MALIGNANT)
    ours = AdaBoostM1Classifier(stump(), 8).fit(CANCER, MALIGNANT)
    np.testing.assert_allclose(ours.alphas_, peer.estimator_weights_, rtol=1e-6)
    np.testing.assert_allclose(ours.errors_, peer.estimator_errors_, rtol=1e-6)
    for a, b in zip(ours.staged_predict(CANCER), peer.staged_predict(CANCER), strict=True):
        np.testing.assert_array_equal(a, b)


@boostings
def test_covered_staged_predictions(boosting):
    model = boosting(stump(), 5, random_state=0).fit(CANCER, MALIGNANT)
    staged = list(model.staged_score(CANCER, MALIGNANT))
    assert len(staged) == len(model.estimators_) and staged[-1] == model.score(CANCER, MALIGNANT)
    *_, proba = model.staged_predict_proba(CANCER)
    np.testing.assert_allclose(proba, model.predict_proba(CANCER), rtol=1e-9)


@boostings
def test_covered_weights_of_rows(boosting):
    weight = np.random.default_rng(0).integers(1, 4, len(X))
    twice = np.repeat(np.arange(len(X)), weight)
    weighted = boosting(n_estimators=3).fit(X, Y, sample_weight=weight).predict_proba(X)
    np.testing.assert_allclose(weighted, boosting(n_estimators=3).fit(X[twice], Y[twice]).predict_proba(X), atol=1e-8)


@boostings
def test_covered_a_base_without_weights_is_resampled(boosting):
    from sklearn.neighbors import KNeighborsClassifier

    model = boosting(KNeighborsClassifier(15), 3, random_state=0).fit(X, Y)
    assert model.score(X, Y) > 0.7


@boostings
def test_covered_invalid_bases(boosting):
    with pytest.raises(TypeError, match="classifier"):
        boosting(object()).fit(X, Y)
    with pytest.raises(ValueError, match="n_estimators"):
        boosting(n_estimators=0).fit(X, Y)


@stacks
def test_covered_outputs_as_features(stack):
    model = stack(BASES).fit(X, Y)
    assert model.transform(X).shape == (120, 6) and len(model.get_feature_names_out()) == 6
    np.testing.assert_allclose(model.transform(X)[:, :3], model.named_estimators_.nb.predict_proba(X), rtol=1e-12)


@stacks
def test_covered_fitted_classifiers(stack):
    model = stack(BASES).fit(X, Y)
    assert [type(m) for m in model.estimators_] == [GaussianNB, DecisionTreeClassifier]
    assert not hasattr(BASES[0][1], "theta_")


@stacks
def test_covered_drop(stack):
    model = stack(clone(BASES, safe=False)).set_params(tree="drop").fit(X, Y)
    assert model.base_names_ == ("nb",) and model.named_estimators_.tree == "drop"
    np.testing.assert_array_equal(model.predict_proba(X), stack(BASES[:1]).fit(X, Y).predict_proba(X))


@stacks
def test_covered_prefit(stack):
    fitted = [(name, clone(base).fit(X, Y)) for name, base in BASES]
    model = stack(fitted, cv="prefit").fit(X, Y)
    assert model.estimators_[0] is fitted[0][1]
    with pytest.raises(NotFittedError):
        stack(BASES, cv="prefit").fit(X, Y)


@stacks
def test_covered_folds(stack):
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    given = stack(BASES, cv=splits).fit(X, Y)
    np.testing.assert_array_equal(
        given.predict(X), stack(BASES, cv=KFold(3, shuffle=True, random_state=0)).fit(X, Y).predict(X)
    )
    assert given.score(X, Y) > 0.7


@stacks
def test_covered_parameters_of_members(stack):
    search = GridSearchCV(stack(BASES), {"tree__max_depth": [1, 3], "nb": ["drop", GaussianNB()]}, cv=2).fit(X, Y)
    assert search.best_score_ > 0.6


class Silent(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


@stacks
@pytest.mark.filterwarnings("ignore")
def test_covered_a_base_whose_fit_returns_nothing(stack):
    assert stack([("nb", GaussianNB()), ("silent", Silent())]).fit(X, Y).score(X, Y) > 0.7


@stacks
def test_covered_invalid_members(stack):
    for bad in ([], None, [("a", GaussianNB()), ("a", GaussianNB())], [("a", "drop")]):
        with pytest.raises((TypeError, ValueError)):
            stack(bad).fit(X, Y)


def test_different_multiclass_boosting():
    """AdaBoost.M1 needs errors below one half and stops otherwise; scikit-learn's SAMME goes on to 1 - 1 / C."""
    peer = AdaBoostClassifier(stump(), n_estimators=5).fit(X, Y)
    ours = AdaBoostM1Classifier(stump(), 5).fit(X, Y)
    assert ours.errors_[1:].max(initial=0) < 0.5
    np.testing.assert_allclose(ours.alphas_[0] + np.log(2), peer.estimator_weights_[0], rtol=1e-6)


def test_different_default_base():
    """The default base classifier is a Gaussian naive Bayes, which reads categories and missing values."""
    gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    assert AdaBoostM1Classifier(n_estimators=3).fit(gaps, Y).score(gaps, Y) > 0.6


def test_different_probabilities_of_boosting():
    """Probabilities are the normalized exponentials of the votes, without scikit-learn's factor 1 / (C - 1)."""
    model = AdaBoostM1Classifier(stump(), 5).fit(CANCER, MALIGNANT)
    odds = np.log(model.predict_proba(CANCER)[:, 1] / model.predict_proba(CANCER)[:, 0])
    np.testing.assert_allclose(odds, 2 * model.decision_function(CANCER), rtol=1e-6)


def test_different_all_columns_of_two_classes():
    """`transform` keeps both columns of two classes, because labels of members need not be classes."""
    model = STACKS["maxent"](BASES).fit(CANCER, MALIGNANT)
    assert model.transform(CANCER).shape[1] == 4


def test_different_weights_and_folds():
    """A weight of 2 is the row twice only with given folds or cv="train": drawn folds separate copies of a row."""
    weight = np.full(len(X), 2)
    twice = np.repeat(np.arange(len(X)), 2)
    weighted = STACKS["maxent"](BASES[:1], cv="train").fit(X, Y, sample_weight=weight)
    repeated = STACKS["maxent"](BASES[:1], cv="train").fit(X[twice], Y[twice])
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)


@stacks
def test_absent_final_estimator(stack):
    """`final_estimator` and `stack_method`: the outputs are combined by maximum entropy or hidden Markov models."""
    with pytest.raises(TypeError):
        stack(BASES, final_estimator=LogisticRegression())


@stacks
def test_absent_passthrough(stack):
    """`passthrough`: `regions` of `MaxEntStackingClassifier` make the weights depend on the input."""
    with pytest.raises(TypeError):
        stack(BASES, passthrough=True)


@boostings
def test_absent_learning_rate(boosting):
    """`learning_rate` and `feature_importances_` of boosting: see `beta` of `WeightBoostClassifier`, and `explain`."""
    with pytest.raises(TypeError):
        boosting(learning_rate=0.5)


def test_absent_regression():
    """`AdaBoostRegressor` and `StackingRegressor`."""
    from sklearn.tree import DecisionTreeRegressor

    with pytest.raises(TypeError, match="classifier"):
        AdaBoostM1Classifier(DecisionTreeRegressor()).fit(X, Y)
