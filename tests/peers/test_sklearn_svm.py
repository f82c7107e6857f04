"""sklearn's SVC and OneClassSVM, beside mixent.MEDClassifier and mixent.MEDNoveltyDetector."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from mixent import MEDClassifier, MEDNoveltyDetector
from mixent.options import RBF

SEPARABLE = make_blobs(60, 2, centers=[[-3, 0], [3, 1]], cluster_std=0.8, random_state=0)
X, Y = make_blobs(80, 2, centers=[[-1, 0], [1, 0.5]], cluster_std=1.0, random_state=1)
PLAIN = {"C": 1.0, "calibration": None, "standardize": False}


def test_covered_hard_margin():
    rows, label = SEPARABLE
    peer = SVC(kernel="linear", C=1e8, tol=1e-8).fit(rows, label)
    ours = MEDClassifier(margin="fixed", calibration=None, standardize=False, tol=1e-10).fit(rows, label)
    scale = np.linalg.norm(ours.coef_) / np.linalg.norm(peer.coef_)
    np.testing.assert_allclose(ours.coef_, scale * peer.coef_, rtol=1e-3)
    np.testing.assert_allclose(ours.intercept_, scale * peer.intercept_, rtol=1e-2, atol=1e-3)


def test_covered_linear_decision_function():
    model = MEDClassifier(**PLAIN).fit(X, Y)
    assert model.coef_.shape == (1, 2) and model.intercept_.shape == (1,)
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_[0], atol=1e-8)
    np.testing.assert_array_equal(model.predict(X), (model.decision_function(X) > 0).astype(int))


def test_covered_kernels():
    peer = SVC(gamma=0.5).fit(X, Y)
    model = MEDClassifier(RBF(gamma=0.5), **PLAIN).fit(X, Y)
    assert (model.predict(X) == peer.predict(X)).mean() > 0.9
    given = MEDClassifier("precomputed", C=1.0, calibration=None).fit(rbf_kernel(X, gamma=0.5), Y)
    np.testing.assert_allclose(
        given.decision_function(rbf_kernel(X, gamma=0.5)), model.decision_function(X), rtol=1e-4, atol=1e-5
    )


def test_covered_multipliers_are_bounded():
    model = MEDClassifier(**PLAIN | {"C": 0.5}).fit(X, Y)
    assert model.multipliers_.min() >= 0 and model.multipliers_.max() <= 0.5 + 1e-9


def test_covered_class_weights():
    few = np.r_[np.flatnonzero(Y == 0), np.flatnonzero(Y == 1)[:10]]
    peer = SVC(kernel="linear", class_weight="balanced").fit(X[few], Y[few])
    ours = MEDClassifier(class_weight="balanced", **PLAIN).fit(X[few], Y[few])
    plain = MEDClassifier(**PLAIN).fit(X[few], Y[few])
    assert (ours.predict(X) == peer.predict(X)).mean() > 0.9
    assert ours.predict(X).mean() > plain.predict(X).mean()


def test_covered_support_vectors():
    model = MEDClassifier(**PLAIN).fit(X, Y)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])


def test_covered_sparse_matrices():
    ours = MEDClassifier(**PLAIN).fit(csr_matrix(X), Y)
    np.testing.assert_array_equal(ours.predict(csr_matrix(X)), MEDClassifier(**PLAIN).fit(X, Y).predict(X))


@pytest.mark.filterwarnings("ignore::mixent.DataWarning")  # a class may have a single support row
def test_covered_rows_without_a_multiplier_do_not_matter():
    rows, label = SEPARABLE
    options = {"margin": "fixed", "calibration": None, "standardize": False, "tol": 1e-10}
    model = MEDClassifier(**options).fit(rows, label)
    assert 2 <= len(model.support_) < 15
    again = MEDClassifier(**options).fit(rows[model.support_], label[model.support_])
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-3)


def test_covered_weights_are_repeated_rows():
    weight = np.random.default_rng(0).integers(1, 3, len(X))
    twice = np.repeat(np.arange(len(X)), weight)
    weighted = MEDClassifier(**PLAIN, tol=1e-10).fit(X, Y, sample_weight=weight)
    repeated = MEDClassifier(**PLAIN, tol=1e-10).fit(X[twice], Y[twice])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-4)


def test_covered_three_classes_by_pairs():
    rows, label = make_blobs(90, 2, centers=3, random_state=2)
    model = MEDClassifier(**PLAIN).fit(rows, np.array(["a", "b", "c"])[label])
    assert len(model.pairs_) == 3 and model.score(rows, np.array(["a", "b", "c"])[label]) > 0.95
    assert model.decision_function(rows).shape == (90, 3)


def test_covered_errors():
    with pytest.raises(NotFittedError):
        MEDClassifier().predict(X)
    with pytest.raises(ValueError, match="classes"):
        MEDClassifier(C=1.0).fit(X, np.zeros(len(X)))
    for bad in ({"C": 0}, {"kernel": "banana"}, {"tol": -1.0}):
        with pytest.raises(ValueError):
            MEDClassifier(**bad).fit(X, Y)


@pytest.fixture(scope="module")
def detector():
    rng = np.random.default_rng(0)
    return MEDNoveltyDetector("gaussian", contamination=0.1).fit(rng.normal(size=(100, 2)))


def test_covered_outliers_are_minus_one(detector):
    rows = np.array([[0.0, 0.0], [8.0, 8.0]])
    assert detector.predict(rows).tolist() == [1, -1]
    np.testing.assert_array_equal(np.sign(detector.decision_function(rows)), detector.predict(rows))
    far = detector.score_samples(np.array([[0.0, 0.0], [2.0, 2.0], [8.0, 8.0]]))
    assert (np.diff(far) < 0).all()


def test_covered_share_of_outliers_in_training(detector):
    rows = np.random.default_rng(0).normal(size=(100, 2))
    assert (detector.predict(rows) == -1).mean() == pytest.approx(0.1, abs=0.03)
    np.testing.assert_allclose(
        detector.decision_function(rows) - detector.score_samples(rows),
        (detector.decision_function(rows) - detector.score_samples(rows))[0],
        atol=1e-9,
    )


def test_covered_fit_predict_of_outliers():
    rows = np.random.default_rng(1).normal(size=(60, 2))
    model = MEDNoveltyDetector("gaussian")
    np.testing.assert_array_equal(model.fit_predict(rows), model.predict(rows))


def test_different_meaning_of_c():
    """`C` bounds the multipliers, but the margin has a prior distribution: `margin="fixed"` is the hard margin."""
    soft = MEDClassifier(**PLAIN).fit(X, Y).coef_
    assert not np.allclose(soft, SVC(kernel="linear", C=1.0).fit(X, Y).coef_, rtol=0.01)


def test_different_probabilities_by_default():
    """`predict_proba` is always there and calibrated on held-out rows; `SVC` needs `CalibratedClassifierCV`."""
    proba = MEDClassifier(C=1.0, random_state=0).fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)


def test_different_columns_are_standardized():
    """Columns are standardized unless `standardize=False`, so that units do not matter."""
    plain = MEDClassifier(C=1.0, calibration=None).fit(X, Y)
    scaled = MEDClassifier(C=1.0, calibration=None).fit(X * [1000.0, 0.01], Y)
    np.testing.assert_allclose(scaled.decision_function(X * [1000.0, 0.01]), plain.decision_function(X), atol=1e-4)


def test_different_density_instead_of_nu():
    """Novelty detection has a density and `contamination`, not a kernel and `nu`."""
    with pytest.raises(TypeError):
        MEDNoveltyDetector(nu=0.1)


def test_absent_dual_coefficients():
    """`dual_coef_`: see `multipliers_`."""
    assert not hasattr(MEDClassifier(**PLAIN).fit(X, Y), "dual_coef_")


def test_absent_regression():
    """`SVR`."""
    import mixent

    assert not hasattr(mixent, "MEDRegressor")
