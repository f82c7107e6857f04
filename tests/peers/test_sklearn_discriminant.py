"""sklearn's naive Bayes, linear and quadratic discriminant analysis, beside mixent.MixtureClassifier."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from mixent import DataWarning, MixtureClassifier
from mixent.options import MixturePrior

X, Y = load_iris(return_X_y=True)
NAIVE = {"n_components": 1, "covariance": "VVI", "prior": None}
LINEAR = {"n_components": 1, "covariance": "EEE", "across_classes": True, "prior": None}


def close(a, b, atol=1e-9):
    np.testing.assert_allclose(a, b, rtol=1e-7, atol=atol)


def test_covered_gaussian_naive_bayes():
    peer = GaussianNB(var_smoothing=0).fit(X, Y)
    ours = MixtureClassifier(**NAIVE).fit(X, Y)
    close(ours.predict_proba(X), peer.predict_proba(X))
    close(ours.means_, peer.theta_)
    close(np.diagonal(ours.covariances_, axis1=1, axis2=2), peer.var_)
    close(ours.class_prior_, peer.class_prior_)


def test_covered_linear_discriminant_analysis():
    peer = LinearDiscriminantAnalysis(solver="lsqr", store_covariance=True).fit(X, Y)
    ours = MixtureClassifier(**LINEAR).fit(X, Y)
    close(ours.predict_proba(X), peer.predict_proba(X))
    close(ours.covariances_[0], peer.covariance_)


def test_covered_quadratic_discriminant_analysis():
    peer = QuadraticDiscriminantAnalysis(store_covariance=True).fit(X, Y)
    ours = MixtureClassifier(1, "VVV", prior=None).fit(X, Y)
    ratio = np.array(peer.covariance_) / ours.covariances_  # versions of scikit-learn divide by n or by n - 1
    close(ratio, ratio[0, 0, 0])
    assert min(abs(ratio[0, 0, 0] - 1), abs(ratio[0, 0, 0] - 50 / 49)) < 1e-9
    assert (ours.predict(X) == peer.predict(X)).mean() > 0.98


def test_covered_given_priors():
    prior = [0.2, 0.3, 0.5]
    close(
        MixtureClassifier(**NAIVE, class_prior=prior).fit(X, Y).predict_proba(X),
        GaussianNB(priors=prior, var_smoothing=0).fit(X, Y).predict_proba(X),
    )


def test_covered_categorical_naive_bayes():
    codes = np.digitize(X, [2.0, 4.0, 6.0])
    frame = pd.DataFrame(codes).map("v{}".format).add_prefix("c")
    ours = MixtureClassifier(1, prior=MixturePrior(None, smoothing=1e-9)).fit(frame, Y)
    peer = CategoricalNB(alpha=1e-9, force_alpha=True).fit(codes, Y)
    close(ours.predict_proba(frame), peer.predict_proba(codes), atol=1e-6)


def test_covered_weights_are_repeated_rows():
    weight = np.random.default_rng(0).integers(1, 4, len(X))
    twice = np.repeat(np.arange(len(X)), weight)
    for options in (NAIVE, LINEAR):
        weighted = MixtureClassifier(**options).fit(X, Y, sample_weight=weight)
        close(weighted.predict_proba(X), MixtureClassifier(**options).fit(X[twice], Y[twice]).predict_proba(X))
    peer = GaussianNB(var_smoothing=0).fit(X, Y, weight).predict_proba(X)
    close(MixtureClassifier(**NAIVE).fit(X, Y, sample_weight=weight).predict_proba(X), peer)


def test_covered_batches_are_one_fit():
    whole = MixtureClassifier(**NAIVE).fit(X, Y)
    parts = MixtureClassifier(**NAIVE)
    for start in range(3):
        parts.partial_fit(X[start::3], Y[start::3])
    close(parts.predict_proba(X), whole.predict_proba(X))


def test_covered_classes_of_later_batches():
    early, late = Y < 2, Y == 2
    options = NAIVE | {"prior": "auto"}
    model = MixtureClassifier(**options).partial_fit(X[early], Y[early], classes=[0, 1, 2])
    assert model.classes_.tolist() == [0, 1, 2] and set(model.predict(X)) == {0, 1}
    model.partial_fit(X[late], Y[late])
    close(model.class_prior_, 1 / 3)
    assert model.score(X, Y) > 0.9
    with pytest.raises(ValueError, match="classes"):
        model.partial_fit(X, Y, classes=[0, 1])


def test_covered_labels_of_any_type():
    names = np.array(["setosa", "versicolor", "virginica"])
    model = MixtureClassifier(**NAIVE).fit(X, names[Y])
    assert model.classes_.tolist() == sorted(names) and model.score(X, names[Y]) > 0.9


def test_covered_log_probabilities():
    model = MixtureClassifier(**LINEAR).fit(X, Y)
    close(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X).argmax(axis=1))


def test_covered_more_columns_than_rows():
    wide = np.random.default_rng(0).normal(size=(12, 30)) + 2.0 * (np.arange(12) % 2)[:, None]
    model = MixtureClassifier(1, "VVV").fit(wide, np.arange(12) % 2)
    assert np.isfinite(model.predict_proba(wide)).all() and model.score(wide, np.arange(12) % 2) == 1


@pytest.mark.filterwarnings("ignore::mixent.DataWarning")
def test_covered_a_constant_column():
    model = MixtureClassifier(1, "VVV").fit(np.insert(X, 0, 1.0, axis=1), Y)
    close(model.predict_proba(np.insert(X, 0, 1.0, axis=1)), MixtureClassifier(1, "VVV").fit(X, Y).predict_proba(X))


def test_different_shrinkage():
    """A prior of d + 2 pseudo-rows replaces `shrinkage`, `reg_param` and `var_smoothing`."""
    few = np.r_[0:3, 50:53, 100:103]
    assert MixtureClassifier(1, "VVV").fit(X[few], Y[few]).score(X, Y) > 0.9
    with pytest.raises(TypeError):
        MixtureClassifier(1, shrinkage="auto")


def test_different_smoothing_of_categories():
    """`smoothing` is the number of pseudo-rows with the frequencies of the table, not `alpha` for every category."""
    frame = pd.DataFrame({"c": ["a"] * 6 + ["b"] * 2})
    model = MixtureClassifier(1, prior=MixturePrior("auto", 2.0)).fit(frame, [0, 0, 0, 1, 1, 1, 0, 1])
    counts = np.array([[3, 1], [3, 1]]) + 2.0 * np.array([6.5, 2.5]) / 9
    close(model.category_probabilities_["c"], counts / counts.sum(axis=1, keepdims=True))


def test_different_unlabelled_rows():
    """Rows without a label contribute to the densities instead of being refused."""
    some = np.where(np.arange(150) % 3 == 0, Y, np.nan)
    assert MixtureClassifier(1, "VVV").fit(X, some).score(X, Y) > 0.95


def test_absent_projection():
    """`transform`, `coef_`, `scalings_`, `xbar_` of discriminant analysis: the model has means and covariances."""
    model = MixtureClassifier(**LINEAR).fit(X, Y)
    assert not any(hasattr(model, name) for name in ("transform", "coef_", "scalings_", "xbar_"))


def test_absent_event_counts():
    """`MultinomialNB`, `ComplementNB` and `BernoulliNB` of word counts: numbers are Gaussian, text is categorical."""
    assert np.isfinite(MixtureClassifier(1).fit(np.round(X), Y).means_).all()


def test_absent_joint_log_probabilities():
    """`predict_joint_log_proba`: use `predict_log_proba` and `score_samples`, which add up to it."""
    model = MixtureClassifier(**NAIVE).fit(X, Y)
    joint = model.predict_log_proba(X) + model.score_samples(X)[:, None]
    assert not hasattr(model, "predict_joint_log_proba")
    close(joint, GaussianNB(var_smoothing=0).fit(X, Y).predict_joint_log_proba(X), atol=1e-7)


def test_different_new_classes_in_later_batches():
    """A later batch may have labels of new classes, which are added with a note; GaussianNB refuses them."""
    early = Y < 2
    model = MixtureClassifier(1, "VVI").partial_fit(X[early], Y[early])
    with pytest.warns(DataWarning, match="new class"):
        model.partial_fit(X[~early], Y[~early])
    assert model.classes_.tolist() == [0, 1, 2] and model.score(X, Y) > 0.9
