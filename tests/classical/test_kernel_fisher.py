"""The kernel Fisher discriminant: exact leave-one-out, Fisher's own directions, weights, missing values."""

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import eigh
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

from mixent import KernelFisherClassifier
from mixent.base.bounded_loss import UNIFORM_SHARE
from mixent.classical import kernel_fisher
from mixent.classical.discriminant import ClassGaussians, Smoother, directions
from mixent.data import DataWarning
from mixent.options import RBF


def rows(n=60, seed=0, n_classes=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    return rng.normal(size=(n, 4)) + y[:, None] * [1.5, 1, 0, 0], y


def mixed(n=60, seed=0):
    X, y = rows(n, seed)
    rng = np.random.default_rng(seed + 1)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["color"] = np.array(["red", "green", "blue"])[(y + rng.integers(2, size=n)) % 3]
    frame["a"] = frame["a"].where(rng.random(n) > 0.2)
    return frame, np.array(["x", "y", "z"])[y]


def ridge(K, Y, weight, lam, query):
    """Kernel ridge regression with an intercept, by its normal equations."""
    n = len(K)
    system = np.block([[K + lam * np.diag(1 / weight), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solution = np.linalg.solve(system, np.vstack([Y, np.zeros((1, Y.shape[1]))]))
    return query @ solution[:n] + solution[n]


@pytest.mark.parametrize("lam", [0.01, 1.0])
def test_leaving_a_row_out_is_fitting_without_it(lam):
    X, y = rows()
    Y, K = np.eye(3)[y], RBF(0.3).gram(X, X)
    weight = np.random.default_rng(1).choice([0.5, 1.0, 2.0, 3.0], size=60)
    out = np.minimum(weight, 1)
    fit, loo = Smoother.of_kernel(K, weight).leave_one_out(Y, lam, out)
    np.testing.assert_allclose(fit, ridge(K, Y, weight, lam, K), rtol=1e-9, atol=1e-9)
    for row in range(60):
        rest = weight.copy()
        rest[row] -= out[row]
        keep = rest > 0
        again = ridge(K[np.ix_(keep, keep)], Y[keep], rest[keep], lam, K[row, keep])
        np.testing.assert_allclose(loo[row], again, rtol=1e-9, atol=1e-9)


def test_features_and_their_kernel_are_one():
    X, y = rows()
    Y, weight = np.eye(3)[y], np.random.default_rng(1).uniform(0.5, 2, size=60)
    by_kernel, by_features = Smoother.of_kernel(X @ X.T, weight), Smoother.of_features(X, weight)
    for one, other in zip(by_kernel.leave_one_out(Y, 0.3, weight), by_features.leave_one_out(Y, 0.3, weight)):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(X.T @ by_kernel.coefficients(Y, 0.3), by_features.coefficients(Y, 0.3), atol=1e-12)
    assert by_kernel.trace == pytest.approx(by_features.trace)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_with_a_linear_kernel_and_no_shrinkage_it_is_fishers_own(n_classes):
    X, y = rows(200, n_classes=n_classes)
    X = X + np.eye(4)[y] * 2
    model = KernelFisherClassifier("linear", shrinkage=1e-9, standardize=False).fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(X, y).transform(X)[:, : n_classes - 1]
    ours = model.transform(X)
    for k in range(n_classes - 1):  # direction by direction, in their order
        assert abs(np.corrcoef(ours[:, k], theirs[:, k])[0, 1]) == pytest.approx(1, abs=1e-9)


def test_directions_maximize_the_rayleigh_quotient():
    """Variance between classes over that within plus lam |f|^2, by the generalized eigenproblem itself."""
    X, y = rows(50)
    Y, K, lam, n = np.eye(3)[y], RBF(0.2).gram(X, X), 0.5, 50
    smoother = Smoother.of_kernel(K, np.ones(n))
    fit, _ = smoother.leave_one_out(Y, lam, np.ones(n))
    coefficients = smoother.coefficients(Y, lam) @ directions(Y, fit, np.ones(n))
    center = np.eye(n) - 1 / n
    means = Y @ np.diag(1 / Y.sum(axis=0)) @ Y.T
    between, within = K @ center @ means @ center @ K, K @ (np.eye(n) - means) @ K + lam * K
    within += 1e-12 * np.trace(within) * np.eye(n)
    best = np.sort(eigh(between, within, eigvals_only=True))[::-1][:2]
    ours = [(a @ between @ a) / (a @ within @ a) for a in coefficients.T]
    np.testing.assert_allclose(ours, best, rtol=1e-5)


def test_probabilities_are_those_of_gaussians_of_rows_left_out():
    X, y = rows()
    model = KernelFisherClassifier(RBF(0.2), shrinkage=0.1).fit(X, y)
    gaussians, q = model.gaussians_, 2
    np.testing.assert_allclose(np.diagonal(gaussians.cov), 1)
    scores = model.transform(X)
    gone = scores[:, None] - gaussians.means
    log_p = -0.5 * np.einsum("nci,ij,ncj->nc", gone, np.linalg.inv(gaussians.cov), gone) + np.log(np.bincount(y) / 60)
    proba = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    proba /= proba.sum(axis=1, keepdims=True)
    expected = proba * (1 - 1 / 62) + np.bincount(y) / 60 / 62
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-9)
    assert gaussians.means.shape == (3, q) and model.get_feature_names_out().tolist() == [
        "kernelfisherclassifier0",
        "kernelfisherclassifier1",
    ]


def test_a_cloud_has_the_moments_of_its_rows():
    rng = np.random.default_rng(0)
    scores, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    gaussians = ClassGaussians.of(scores, np.eye(2)[y], np.zeros((2, 2)))
    np.testing.assert_allclose(gaussians.means, [scores[y == c].mean(axis=0) for c in range(2)])
    within = sum(np.cov(scores[y == c].T, bias=True) * 15 for c in range(2))
    np.testing.assert_allclose(gaussians.cov, within / 31)


def test_training_scores_are_the_smoothers():
    """Predictions go by coefficients and an intercept, rows left out by the smoother: small gammas part them first."""
    X, y = rows()
    for gamma in (1e-4, 0.2, 3.0):
        model = KernelFisherClassifier(RBF(gamma), shrinkage=1e-4).fit(X, y)
        Z = model.encoder_(kernel_fisher.read_features(model, X, reset=False))
        smoother = Smoother.of_kernel(RBF(gamma).gram(Z, Z), np.ones(60))
        lam = 1e-4 * smoother.trace / 60
        fit, _ = smoother.leave_one_out(np.eye(3)[y], lam, np.ones(60))
        combine = np.linalg.lstsq(fit, model.transform(X), rcond=None)[0]
        np.testing.assert_allclose(fit @ combine, model.transform(X), atol=1e-5)


def test_weight_two_is_the_row_twice():
    frame, y = mixed()
    weight = np.random.default_rng(3).integers(0, 4, size=60)
    often = np.repeat(np.arange(60), weight)
    for options in ({}, {"kernel": "linear"}):
        one = KernelFisherClassifier(**options).fit(frame, y, sample_weight=weight)
        other = KernelFisherClassifier(**options).fit(frame.iloc[often], y[often])
        assert (one.shrinkage_, one.gamma_) == (other.shrinkage_, pytest.approx(other.gamma_))
        np.testing.assert_allclose(one.predict_proba(frame), other.predict_proba(frame), rtol=1e-6)
        np.testing.assert_allclose(one.loo_proba_[often], other.loo_proba_, rtol=1e-6)


def test_order_of_rows_and_names_of_classes_do_not_matter():
    frame, y = mixed()
    one = KernelFisherClassifier().fit(frame, y)
    order = np.random.default_rng(0).permutation(60)
    other = KernelFisherClassifier().fit(frame.iloc[order], pd.Series(y).map({"x": 2, "y": 0, "z": 1})[order])
    np.testing.assert_allclose(other.predict_proba(frame)[:, [2, 0, 1]], one.predict_proba(frame), rtol=1e-6)
    np.testing.assert_allclose(np.abs(other.transform(frame)), np.abs(one.transform(frame)), rtol=1e-5, atol=1e-6)


def test_the_chosen_pair_is_the_best_tried():
    frame, y = mixed()
    model = KernelFisherClassifier().fit(frame, y)
    best = min(model.tried_, key=lambda one: one["log_loss"])
    assert (best["gamma"], best["shrinkage"]) == (model.gamma_, model.shrinkage_) and len(model.tried_) == 8 * 15
    # tried with bounded losses, -log((1 - e) p + e / C) <= -log(1 - e) - log p
    assert best["log_loss"] <= model.loo_log_loss_ - np.log(1 - UNIFORM_SHARE)
    for one in model.tried_[::31]:
        given = KernelFisherClassifier(RBF(one["gamma"]), shrinkage=one["shrinkage"]).fit(frame, y)
        assert given.tried_[0]["log_loss"] == pytest.approx(one["log_loss"]) and len(given.tried_) == 1


def test_as_many_landmarks_as_rows_are_the_kernel_itself():
    X, y = rows()
    exact = KernelFisherClassifier(RBF(0.5, n_landmarks=None), shrinkage=0.1).fit(X, y)
    spanned = KernelFisherClassifier(RBF(0.5, n_landmarks=60), shrinkage=0.1, random_state=0).fit(X, y)
    np.testing.assert_allclose(spanned.predict_proba(X), exact.predict_proba(X), rtol=1e-6)
    few = KernelFisherClassifier(RBF(0.5, n_landmarks=10), shrinkage=0.1, random_state=0).fit(X, y)
    assert few.basis_.nystrom.landmarks.shape == (10, 4) and few.score(X, y) > 0.6


def test_many_rows_go_through_features(monkeypatch):
    monkeypatch.setattr(kernel_fisher, "MOST_ROWS", 50)
    monkeypatch.setattr(kernel_fisher, "LANDMARKS", 20)
    model = KernelFisherClassifier(random_state=0).fit(*rows())
    assert model.basis_.vectors is None and len(model.basis_.nystrom.landmarks) == 20


def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 50))
    y = np.arange(20) % 2
    X[:, 0] += 6 * y
    model = KernelFisherClassifier("linear").fit(X, y)
    assert model.basis_.vectors is not None and model.score(X, y) > 0.9


def test_soft_and_absent_labels():
    X, y = rows()
    hard = KernelFisherClassifier().fit(X, y)
    soft = KernelFisherClassifier().fit(X, np.eye(3)[y])
    np.testing.assert_allclose(soft.predict_proba(X), hard.predict_proba(X), rtol=1e-9)
    partly = y.astype(object)
    partly[:5] = None
    few = KernelFisherClassifier().fit(X, partly)
    np.testing.assert_allclose(few.predict_proba(X), KernelFisherClassifier().fit(X[5:], y[5:]).predict_proba(X))
    assert np.isnan(few.loo_proba_[:5]).all() and np.isfinite(few.loo_proba_[5:]).all()


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
def test_constant_columns_leave_the_priors():
    y = np.arange(40) % 4 == 0
    proba = KernelFisherClassifier().fit(np.ones((40, 2)), y).predict_proba(np.ones((3, 2)))
    np.testing.assert_allclose(proba, [[0.75, 0.25]] * 3, atol=1e-6)


def test_shifted_priors_and_progress():
    X, y = rows(n_classes=2)
    calls = []
    model = KernelFisherClassifier(progress=lambda *args: calls.append(args)).fit(X, y)
    assert len(calls) == 8 and calls[0][2].startswith("gamma ")
    assert model.adjust_priors(X[y == 1]).class_prior_[1] > 0.8


@pytest.mark.parametrize("options", [{"shrinkage": 0.1, "kernel": RBF("scale")}, {"kernel": "linear"}])
def test_scikit_learn_checks(options):
    results = check_estimator(KernelFisherClassifier(**options), on_fail=None, on_skip=None)
    assert {r["check_name"] for r in results if r["status"] != "passed"} <= {"check_array_api_input"}
    assert len(results) >= 60


def test_a_search_varies_one_option_of_a_default_estimator():
    X, y = rows()
    search = GridSearchCV(KernelFisherClassifier(shrinkage=0.1), {"kernel__gamma": [0.1, "auto"]}, cv=2).fit(X, y)
    assert search.best_params_["kernel__gamma"] in (0.1, "auto") and isinstance(search.best_estimator_.kernel, RBF)
    assert KernelFisherClassifier().get_params()["kernel__gamma"] == "auto"
    assert KernelFisherClassifier(RBF("scale")).get_params()["kernel__gamma"] == "scale"


@pytest.mark.parametrize("weight", [0.37, 1.0, 1000.0])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_equal_rows_have_the_priors_alone_and_together(kernel, weight):
    """Rows that a kernel does not distinguish have no discriminant: rounding errors must not be taken for one."""
    X, y = np.full((25, 2), -3000.0), np.repeat(["a", "b"], [15, 10])
    with pytest.warns(DataWarning):
        model = KernelFisherClassifier(kernel).fit(X, y, np.full(25, weight))
    np.testing.assert_allclose(model.predict_proba(X), [[0.6, 0.4]] * 25, atol=0.03)
    np.testing.assert_allclose(model.predict_proba(X[:1]), model.predict_proba(X)[:1], rtol=1e-9)
