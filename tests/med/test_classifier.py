"""MEDClassifier as a user meets it."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array, csc_array, csr_array
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, RepeatedStratifiedKFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import mixent
from mixent import FisherKernel, GaussianMixture, MEDClassifier
from mixent.core.driver import Status
from mixent.data import DataWarning
from mixent.med import classifier as module
from mixent.med import functions, grams
from mixent.med.margins import Laplace
from mixent.options import RBF, Margin, Polynomial


@parametrize_with_checks(
    [
        MEDClassifier(),
        MEDClassifier("rbf", C=5.0, margin="exponential", calibration=None),
        MEDClassifier(C=1.0, bias=10.0),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def two():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=150)
    X = rng.normal(size=(150, 4)) + 1.2 * y[:, None] * np.array([1.0, -1.0, 0.5, 0.0])
    return X, np.array(["no", "yes"])[y]


@pytest.fixture(scope="module")
def three():
    return load_iris(return_X_y=True)


def mixed_table(seed=0, n=200):
    """Numbers and words with missing values; the label depends on both."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = pd.DataFrame(
        {
            "size": y + rng.normal(size=n),
            "color": np.array(["red", "green", "blue"])[(y + (rng.random(n) < 0.3)) % 3],
            "noise": rng.normal(size=n),
        }
    )
    return X.mask(rng.random(X.shape) < 0.15), np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("margin", ["laplace", "exponential", "gaussian"])
def test_the_solution_keeps_the_conditions_of_an_optimum(two, kernel, margin):
    X, y = two
    model = MEDClassifier(kernel, C=4.0, margin=margin, tol=1e-10, calibration=None).fit(X, y)
    lam, f = model.multipliers_, np.where(y == "yes", 1, -1) * model.decision_function(X)
    silent = lam == 0
    expected = model.margin_.mean(lam)
    assert model.gap_ < 1e-7
    assert (f[silent] >= model.margin_.mean(0.0) - 1e-3).all()
    np.testing.assert_allclose(f[~silent], expected[~silent], atol=1e-3)
    assert abs(lam @ np.where(y == "yes", 1, -1)) < 1e-6 * lam.sum()
    assert set(model.support_) == set(np.flatnonzero(lam))
    assert model.loo_estimate_ == pytest.approx(np.mean(lam > 0))


def test_leaving_out_a_row_without_a_multiplier_changes_nothing(two):
    X, y = two
    whole = MEDClassifier(C=4.0, tol=1e-10, standardize=False, calibration=None).fit(X, y)
    silent = np.flatnonzero(whole.multipliers_ == 0)[0]
    part = MEDClassifier(C=4.0, tol=1e-10, standardize=False, calibration=None)
    part.fit(np.delete(X, silent, axis=0), np.delete(y, silent))
    np.testing.assert_allclose(part.decision_function(X), whole.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_large_c_gives_the_hard_margin_machine(kernel):
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(size=(40, 2)) + 3, rng.normal(size=(40, 2)) - 3])
    y = np.repeat([0, 1], 40)
    peer = SVC(kernel=kernel, gamma=0.1, C=1e9, tol=1e-9).fit(X, y).decision_function(X)
    kernel = RBF(0.1) if kernel == "rbf" else kernel
    options = {"standardize": False, "calibration": None, "tol": 1e-12}
    apart = []
    for c in (1e2, 1e4, 1e6):
        ours = MEDClassifier(kernel, C=c, margin="exponential", **options).fit(X, y)
        apart.append(np.abs(ours.decision_function(X) - peer).max())
    assert apart[0] > apart[1] > apart[2]
    assert apart[2] < 1e-3
    fixed = MEDClassifier(kernel, margin="fixed", **options).fit(X, y)
    np.testing.assert_allclose(fixed.decision_function(X), peer, atol=1e-4)


def test_every_kernel_says_the_same_in_its_own_words(two):
    X, y = two
    options = {"C": 4.0, "tol": 1e-9, "standardize": False, "calibration": None}
    plain = MEDClassifier(**options).fit(X, y).decision_function(X)
    K = X @ X.T
    given = MEDClassifier("precomputed", C=4.0, tol=1e-9, calibration=None).fit(K, y).decision_function(K)
    called = MEDClassifier(lambda A, B: A @ B.T, **options).fit(X, y).decision_function(X)
    poly = MEDClassifier(Polynomial(1, 1.0, coef0=0.0), **options).fit(X, y).decision_function(X)
    for other in (given, called, poly):
        np.testing.assert_allclose(other, plain, atol=1e-4)


def test_the_fisher_kernel_is_a_kernel_like_any_other(two):
    X, y = two
    unfitted = FisherKernel(GaussianMixture(2, "VVI", random_state=0), random_state=0)
    fisher = clone(unfitted).fit(X)
    options = {"C": 2.0, "tol": 1e-9, "calibration": None}
    mapped = MEDClassifier(fisher, **options).fit(X, y)
    K = fisher(X)
    given = MEDClassifier("precomputed", **options).fit(K, y)
    np.testing.assert_allclose(mapped.decision_function(X), given.decision_function(K), atol=1e-3)
    fresh = MEDClassifier(unfitted, **options).fit(X, y)
    np.testing.assert_allclose(fresh.decision_function(X), mapped.decision_function(X), atol=1e-9)


def test_landmarks_at_every_row_are_the_kernel_itself(two):
    X, y = two
    options = {"C": 4.0, "tol": 1e-9, "calibration": None, "random_state": 0}
    exact = MEDClassifier(RBF(n_landmarks=None), **options).fit(X, y).decision_function(X)
    through = MEDClassifier(RBF(n_landmarks=len(X)), **options).fit(X, y).decision_function(X)
    few = MEDClassifier(RBF(n_landmarks=40), **options).fit(X, y).decision_function(X)
    np.testing.assert_allclose(through, exact, atol=1e-4)
    assert np.corrcoef(few, exact)[0, 1] > 0.95


def test_many_rows_go_through_features_by_themselves(two, monkeypatch):
    X, y = two
    monkeypatch.setattr(module, "MOST_ROWS", 100)
    monkeypatch.setattr(module, "LANDMARKS", 30)
    model = MEDClassifier("rbf", C=4.0, random_state=0).fit(X, y)
    assert len(model.feature_map_.landmarks) == 30


def test_classes_are_solved_jointly(three):
    """No one-vs-rest: the scores of three classes sum to zero, and the multipliers of a row are those of its pairs."""
    X, y = three
    model = MEDClassifier(C=4.0, tol=1e-9, calibration=None).fit(X, y)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores.sum(axis=1), 0, atol=1e-9)
    assert model.multipliers_.shape == (150, 3)
    assert model.pairs_ == [(0, 1), (0, 2), (1, 2)]
    strangers = [(k, c) for k, pair in enumerate(model.pairs_) for c in range(3) if c not in pair]
    for k, c in strangers:
        assert not model.multipliers_[y == c, k].any()
    assert model.coef_.shape == (3, 4) and model.intercept_.shape == (3,)
    rbf = MEDClassifier("rbf", C=4.0, tol=1e-9, calibration=None).fit(X, y)
    assert rbf.gap_ < 1e-5 and rbf.score(X, y) > 0.95


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_linear_discriminant_is_the_columns_times_the_coefficients(three, n_classes, standardize):
    X, y = three[0] * [1.0, 10.0, 0.1, 1.0] + [0.0, 5.0, 1.0, -3.0], np.minimum(three[1], n_classes - 1)
    model = MEDClassifier(C=4.0, calibration=None, standardize=standardize).fit(X, y)
    assert model.coef_.shape == (1 if n_classes == 2 else 3, 4) and model.intercept_.shape == model.coef_.shape[:1]
    scores = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(scores[:, 0] if n_classes == 2 else scores, model.decision_function(X), atol=1e-10)


def test_coefficients_of_categories_and_missing_values(three):
    X, y = three
    frame = pd.DataFrame(X, columns=list("abcd")).assign(shade=np.where(X[:, 0] > 5.8, "dark", "light"))
    frame.loc[::7, "b"] = np.nan
    model = MEDClassifier(C=4.0, calibration=None).fit(frame, y)
    assert model.feature_names_ == ("a", "b", "c", "d", "b is missing", "shade = dark", "shade = light")
    columns = [frame[["a", "b", "c", "d"]].fillna({"b": model.encoder_.center[1]}), frame["b"].isna()]
    Z = np.column_stack([*columns, frame["shade"] == "dark", frame["shade"] == "light"]).astype(float)
    np.testing.assert_allclose(Z @ model.coef_.T + model.intercept_, model.decision_function(frame), atol=1e-10)


def test_coefficients_of_a_transformer_are_those_of_its_features(two):
    X, y = two
    model = MEDClassifier(StandardScaler(), C=4.0, calibration=None).fit(X, y)
    scores = model.feature_map_.transform(X) @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(scores[:, 0], model.decision_function(X), atol=1e-10)


def test_two_classes_are_the_joint_problem_too(two):
    X, y = two
    model = MEDClassifier(C=4.0, calibration=None, tol=1e-10).fit(X, y)
    weights, bias = model.function_.weights, model.function_.bias
    f = model.encoder_(_table(model, X)) @ (weights[:, 1] - weights[:, 0]) + bias[1] - bias[0]
    np.testing.assert_allclose(f, model.decision_function(X), atol=1e-12)


def _table(model, X):
    from mixent.data import read_features

    return read_features(model, X, reset=False)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_weight_two_is_the_row_twice(two, kernel):
    X, y = two
    rng = np.random.default_rng(2)
    weight = rng.integers(0, 4, size=len(X)).astype(float)
    options = {"C": 3.0, "tol": 1e-11, "calibration": None}
    weighted = MEDClassifier(kernel, **options).fit(X, y, weight)
    index = np.repeat(np.arange(len(X)), weight.astype(int))
    repeated = MEDClassifier(kernel, **options).fit(X[index], y[index])
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-4)
    assert not weighted.multipliers_[weight == 0].any()


def test_probabilities_rank_as_the_decision_function_and_are_calibrated():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2000, 3))
    y = (X @ [1.0, -1.0, 0.5] + rng.logistic(size=2000) > 0).astype(int)
    model = MEDClassifier(C=1.0, random_state=0).fit(X[:1000], y[:1000])
    p = model.predict_proba(X[1000:])[:, 1]
    f = model.decision_function(X[1000:])
    assert (np.argsort(p) == np.argsort(f)).all()
    assert ((p > 0.5) == (f > 0)).all()
    truth = 1 / (1 + np.exp(-(X[1000:] @ [1.0, -1.0, 0.5])))
    assert np.abs(p - truth).mean() < 0.05
    raw = MEDClassifier(C=1.0, calibration=None).fit(X[:1000], y[:1000]).predict_proba(X[1000:])[:, 1]
    assert np.abs(raw - truth).mean() > np.abs(p - truth).mean()


def test_affine_calibration_moves_the_threshold():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(3000, 2))
    y = (X[:, 0] + rng.logistic(size=3000) > 2.5).astype(int)  # few of one class
    plain = MEDClassifier(C=1.0, calibration="temperature", random_state=0).fit(X, y)
    moved = MEDClassifier(C=1.0, random_state=0).fit(X, y)

    def loss(model):
        return -np.log(model.predict_proba(X)[np.arange(3000), y]).mean()

    assert loss(moved) < loss(plain)
    assert moved.calibration_.offset.any() and not plain.calibration_.offset.any()


def test_class_weight_is_a_weight_of_the_rows(two):
    X, y = two
    names, codes = np.unique(y, return_inverse=True)
    rare = np.flatnonzero((codes == 0) | (np.arange(len(y)) % 4 == 0))  # fewer rows of the second class
    X, y, codes = X[rare], y[rare], codes[rare]
    options = {"C": 1.0, "random_state": 0}
    given = MEDClassifier(class_weight={names[1]: 3.0}, **options).fit(X, y)
    expected = MEDClassifier(**options).fit(X, y, np.where(codes == 1, 3.0, 1.0))
    np.testing.assert_array_equal(given.predict_proba(X), expected.predict_proba(X))
    weight = 1.0 + np.arange(len(y)) % 3
    balanced = MEDClassifier(class_weight="balanced", **options).fit(X, y, weight)
    np.testing.assert_allclose(balanced.class_prior_, [0.5, 0.5])
    by_class = weight.sum() / (2 * np.bincount(codes, weight))
    expected = MEDClassifier(**options).fit(X, y, weight * by_class[codes])
    np.testing.assert_array_equal(balanced.predict_proba(X), expected.predict_proba(X))
    plain = MEDClassifier(**options).fit(X, y)
    assert (balanced.predict(X) == names[1]).mean() > (plain.predict(X) == names[1]).mean()


def test_the_class_weight_of_an_uncertain_label_is_its_expectation():
    rng = np.random.default_rng(0)
    X, soft = rng.normal(size=(40, 2)), rng.dirichlet([1, 1], 40)
    soft[::5] = 0.5  # no label
    options = {"C": 1.0, "calibration": None, "random_state": 0}
    given = MEDClassifier(class_weight={0: 3.0, 1: 0.5}, **options).fit(X, soft)
    weight = np.where(np.arange(40) % 5 == 0, 1.0, soft @ [3.0, 0.5])
    expected = MEDClassifier(**options).fit(X, soft, weight)
    np.testing.assert_allclose(given.decision_function(X), expected.decision_function(X), rtol=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
def test_a_sparse_matrix_is_its_array(two, kernel):
    X, y = two
    X = X @ X.T if kernel == "precomputed" else np.where(np.abs(X) < 0.5, 0.0, X)
    options = {"C": 1.0, "random_state": 0}
    expected = MEDClassifier(kernel, **options).fit(X, y)
    for container in (csr_array, coo_array, csc_array):
        model = MEDClassifier(kernel, **options).fit(container(X), y)
        np.testing.assert_array_equal(model.predict_proba(container(X)), expected.predict_proba(X))
    if kernel != "precomputed":
        np.testing.assert_array_equal(model.explain(csr_array(X[:3])).parts, expected.explain(X[:3]).parts)


def test_support_vectors_are_the_support_rows(two, tmp_path):
    X, y = two
    scaled = StandardScaler().fit_transform(X)
    for model in (MEDClassifier(C=1.0), MEDClassifier("rbf", C=1.0), MEDClassifier(C=1.0, standardize=False)):
        model.fit(X, y)
        expected = (scaled if model.standardize else X)[model.support_]
        np.testing.assert_allclose(model.support_vectors_, expected, atol=1e-12)
        mixent.save(model, tmp_path / "m.mixent")
        np.testing.assert_array_equal(mixent.load(tmp_path / "m.mixent").support_vectors_, model.support_vectors_)
    for model, rows in ((MEDClassifier("precomputed", C=1.0), X @ X.T), (MEDClassifier(RBF(n_landmarks=9), C=1.0), X)):
        assert not hasattr(model.fit(rows, y), "support_vectors_")


def test_a_grid_search_may_try_options_without_effect(two):
    grid = {"margin": ["laplace", "fixed"], "C": [0.1, 1.0]}
    apart = two[0] + 20.0 * (two[1] == "yes")[:, None]
    search = GridSearchCV(MEDClassifier(calibration=None), grid, cv=2, error_score="raise")
    with pytest.warns(UserWarning, match="C="):
        search.fit(apart, two[1])
    assert len(search.cv_results_["params"]) == 4


def test_c_is_chosen_by_cross_validated_log_loss(two):
    X, y = two
    model = MEDClassifier(random_state=0).fit(X, y)
    best = min(model.C_tried_, key=lambda tried: tried["log_loss"])
    assert best["C"] == model.C_
    again = MEDClassifier(random_state=0).fit(X, y)
    assert again.C_tried_ == model.C_tried_
    folds = MEDClassifier(cv=StratifiedKFold(3), random_state=0).fit(X, y)
    assert len(folds.C_tried_) >= 1


def test_tables_with_words_and_gaps(three):
    X, y = mixed_table()
    for kernel in ("linear", "rbf"):
        model = MEDClassifier(kernel, random_state=0).fit(X, y)
        assert model.score(X, y) > 0.65
        assert np.isfinite(model.predict_proba(X.iloc[:5])).all()
    assert "color = red" in model.feature_names_ and "size is missing" in model.feature_names_
    shuffled = X.sample(frac=1.0, random_state=1)
    np.testing.assert_allclose(model.predict_proba(shuffled), model.predict_proba(X)[shuffled.index], atol=1e-12)


def test_rows_without_a_label_take_part():
    rng = np.random.default_rng(8)
    X, hidden = rng.normal(size=(150, 4)), np.arange(150) >= 16
    X[:, 0] += rng.choice([-2, 2], size=150)
    y = np.where(X[:, 0] > 0, "yes", "no")
    partly = np.where(hidden, None, y)
    options = {"C": 3.0, "calibration": None, "random_state": 0}
    with_them = MEDClassifier(**options).fit(X, partly)
    without = MEDClassifier(**options).fit(X[~hidden], y[~hidden])
    assert with_them.unlabelled_gain_ > 0  # held-out labels gain by these rows; else they would not be used
    assert np.abs(with_them.decision_function(X) - without.decision_function(X)).max() > 1e-3
    q = with_them.label_posterior_
    np.testing.assert_allclose(q.sum(axis=1), 1)
    np.testing.assert_array_equal(q[~hidden], np.eye(2)[(y[~hidden] == "yes").astype(int)])
    guessed = with_them.classes_[q[hidden].argmax(axis=1)]
    assert (guessed == y[hidden]).mean() > without.score(X[hidden], y[hidden]) - 0.05
    objective = [step.objective for step in with_them.run_.trace if step.accepted]
    assert np.diff(objective).min() > -1e-8


def test_probabilities_as_labels(two):
    X, y = two
    hard = (y == "yes").astype(float)
    certain = pd.DataFrame({"no": 1 - hard, "yes": hard})
    options = {"C": 3.0, "calibration": None, "tol": 1e-9}
    plain = MEDClassifier(**options).fit(X, y)
    same = MEDClassifier(**options).fit(X, certain)
    np.testing.assert_allclose(same.decision_function(X), plain.decision_function(X), atol=1e-6)
    doubt = 0.1 + 0.8 * certain
    soft = MEDClassifier(**options).fit(X, doubt)
    assert ((soft.label_posterior_ > 0) & (soft.label_posterior_ < 1)).any()
    assert soft.score(X, y) > plain.score(X, y) - 0.05


def test_adjusted_priors_are_those_of_the_probabilities_they_give():
    X, y = load_breast_cancer(return_X_y=True)
    model = MEDClassifier(C=0.3, random_state=0).fit(X, y)
    batch = np.concatenate([X[y == 0], X[y == 1][:40]])
    other = model.adjust_priors(batch)
    assert other.class_prior_[0] > 0.7 > model.class_prior_[0]
    np.testing.assert_allclose(other.predict_proba(batch).mean(axis=0), other.class_prior_, atol=1e-4)
    np.testing.assert_allclose(other.adjust_priors(batch).class_prior_, other.class_prior_, atol=1e-3)


@pytest.mark.parametrize("margin", ["laplace", "exponential"])
@pytest.mark.parametrize("classes", [2, 3])
def test_an_offset_of_all_columns_changes_nothing(margin, classes):
    rng = np.random.default_rng(9)
    y = np.arange(90) % classes
    X = rng.normal(size=(90, 2)) + 2 * np.column_stack([y == 1, y == 2])
    options = {"C": 5.0, "margin": margin, "standardize": False, "calibration": None, "tol": 1e-9}
    here = MEDClassifier(**options).fit(X, y)
    for away in (1e3, 1e6):
        there = MEDClassifier(**options).fit(X + away, y)
        assert there.objective_ == pytest.approx(here.objective_, rel=1e-5)
        np.testing.assert_allclose(there.decision_function(X + away), here.decision_function(X), atol=1e-3)


def test_a_class_never_held_out_keeps_its_place():
    rng = np.random.default_rng(10)
    X = np.concatenate([rng.normal(size=(60, 3)) + np.repeat([[0.0], [1.5]], 30, axis=0), [[8.0, 8.0, 8.0]]])
    y = np.repeat([0, 1, 2], [30, 30, 1])
    with pytest.warns(DataWarning, match="one row"):
        model = MEDClassifier(C=2.0, calibration="affine", random_state=0).fit(X, y)
    assert model.calibration_.offset[2] == 0 and model.predict(X[60:]) == 2


def test_the_leave_one_out_estimate_counts_labelled_rows_by_weight(two):
    X, y = two
    options = {"C": 3.0, "calibration": None, "tol": 1e-9}
    weight = np.random.default_rng(11).integers(1, 4, size=len(X)).astype(float)
    weighted = MEDClassifier(**options).fit(X, y, weight)
    index = np.repeat(np.arange(len(X)), weight.astype(int))
    assert weighted.loo_estimate_ == pytest.approx(MEDClassifier(**options).fit(X[index], y[index]).loo_estimate_)
    partly = y.astype(object)
    partly[::2] = None
    model = MEDClassifier(C=1.0, calibration=None, random_state=0).fit(X, partly)
    assert model.loo_estimate_ == pytest.approx(np.mean(model.multipliers_[1::2] > 0))


def test_a_repeated_splitter_is_used_in_full(two):
    X, y = two
    often = RepeatedStratifiedKFold(n_splits=3, n_repeats=4, random_state=0)
    last = list(often.split(X, y))[-3:]
    slopes = [MEDClassifier(C=2.0, cv=cv).fit(X, y).calibration_.slope for cv in (often, last)]
    assert slopes[0] != slopes[1]


def test_unscaled_kernels_are_solved_too(two):
    X, y = two
    options = {"C": 5.0, "standardize": False, "calibration": None}
    plain = MEDClassifier(**options).fit(100 * X, y)
    called = MEDClassifier(lambda A, B: A @ B.T, **options).fit(100 * X, y)
    assert called.objective_ == pytest.approx(plain.objective_, rel=1e-4)


def test_a_small_c_has_coefficients_too():
    X = np.array([[-2, 0], [-1, -1], [0, -2], [0, 2], [1, 1], [2, 0]], float)
    y = np.array([1, 1, 1, 2, 2, 2])
    for C in (0.001, 0.01, 0.03, 0.1):
        model = MEDClassifier(C=C, calibration=None).fit(X, y)
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        implied = (model.multipliers_ * np.where(y == 2, 1.0, -1.0)) @ Z / X.std(axis=0)
        np.testing.assert_allclose(model.coef_[0], implied, rtol=1e-3)
        np.testing.assert_array_equal(model.predict(X), y)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_large_c_on_rows_that_cannot_be_separated_ends(kernel):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 3)), rng.integers(0, 2, 150)
    X[75:] = X[:75]  # equal rows, partly of different classes
    model = MEDClassifier(kernel, C=1e4, calibration=None).fit(X, y)
    assert model.run_.status.ok and model.gap_ <= 1e-6 * 150 * max(1.0, 1e-6 * model.objective_)


def test_the_gap_of_landmarks_is_that_of_the_kernel(two):
    X, y = two
    exact = MEDClassifier(RBF(n_landmarks=None), C=2.0, calibration=None, tol=1e-9).fit(X, y)
    few = MEDClassifier(RBF(n_landmarks=10), C=2.0, calibration=None, tol=1e-9, random_state=0).fit(X, y)
    every = MEDClassifier(RBF(n_landmarks=len(X)), C=2.0, calibration=None, tol=1e-9).fit(X, y)
    assert few.objective_ < exact.objective_ < few.objective_ + few.gap_  # both values bound the optimum
    assert few.gap_ > 0.01 * exact.objective_
    assert every.gap_ < 1e-6 * exact.objective_ and every.objective_ == pytest.approx(exact.objective_, rel=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_kernel_that_is_not_stored_gives_the_same(two, three, classes, monkeypatch):
    X, y = (two if classes == 2 else three)[0][::2], (two if classes == 2 else three)[1][::2]
    stored = MEDClassifier("rbf", C=2.0, tol=1e-10, calibration=None).fit(X, y)
    monkeypatch.setattr(module, "STORED_ROWS", 10)
    monkeypatch.setattr(module, "MOST_ROWS", 10**6)
    monkeypatch.setattr(grams, "TILE", 64)
    for most_double, most_single in ((8000, 40_000), (5, 40_000), (5, 6)):
        monkeypatch.setattr(grams, "MAX_DOUBLE", most_double)
        monkeypatch.setattr(grams, "MAX_SINGLE", most_single)
        monkeypatch.setattr(functions, "CHEAP", 75 if most_double == 8000 else 0)
        model = MEDClassifier("rbf", C=2.0, tol=1e-10, calibration=None).fit(X, y)
        assert model.objective_ == pytest.approx(stored.objective_, rel=1e-8)
        np.testing.assert_allclose(model.decision_function(X), stored.decision_function(X), atol=1e-4)
    monkeypatch.setattr(module, "SAMPLED_ROWS", 60)
    chosen = MEDClassifier(RBF("scale"), cv=2, random_state=0).fit(X, y)
    assert len(chosen.C_tried_) >= 3 and chosen.score(X, y) > 0.8


def test_close_rows_keep_a_fixed_margin():
    X = np.concatenate([np.linspace(-2, -1e-4, 20), np.linspace(1e-4, 2, 20)])[:, None]
    model = MEDClassifier(margin="fixed", standardize=False, calibration=None).fit(X, X[:, 0] > 0)
    assert model.coef_[0, 0] == pytest.approx(1e4, rel=1e-3)


def test_a_margin_may_be_an_object_with_a_target(two):
    X, y = two
    options = {"C": 4.0, "calibration": None, "tol": 1e-10}
    for name in ("exponential", "laplace", "gaussian"):
        ours = MEDClassifier(margin=Margin(name), **options).fit(X, y).decision_function(X)
        np.testing.assert_array_equal(ours, MEDClassifier(margin=name, **options).fit(X, y).decision_function(X))
    assert MEDClassifier(margin=Margin("laplace", target=2.0), **options).fit(X, y).margin_ == Laplace(4.0, 2.0)


def test_bounds_to_try_follow_the_target(two):
    """C = 1.1 is too small for an exponential margin about 0.5, which needs C > 2."""
    X, y = two
    model = MEDClassifier(margin=Margin("exponential", target=0.5), cv=2, random_state=0).fit(X, y)
    assert model.C_tried_[0]["C"] == pytest.approx(2.2) and model.score(X, y) > 0.7


def test_c_at_most_one_is_refused_where_and_only_where_no_row_would_speak(two):
    X, y = two
    with pytest.raises(ValueError, match="set C"):
        MEDClassifier(C=1.0, margin="exponential").fit(X, y)
    with pytest.raises(ValueError, match=r"set C > 0\.5"):
        MEDClassifier(C=0.4, margin=Margin("exponential", target=2.0)).fit(X, y)
    for margin in ("laplace", "gaussian"):
        assert MEDClassifier(C=0.5, margin=margin, calibration=None).fit(X, y).score(X, y) > 0.7
    assert MEDClassifier(C=0.6, margin=Margin("exponential", 2.0), calibration=None).fit(X, y).score(X, y) > 0.7
    assert MEDClassifier(C=1.01, margin="exponential", calibration=None).fit(X, y).multipliers_.any()


def test_equal_rows_cannot_keep_a_fixed_margin():
    with pytest.warns(DataWarning), pytest.raises(ValueError, match="fixed margin"):
        MEDClassifier(margin="fixed", standardize=False).fit(np.ones((10, 1)), [0, 1] * 5)


def test_a_fixed_margin_that_cannot_be_kept_is_an_error(two):
    X, y = two
    with pytest.raises(ValueError, match="fixed margin"):
        MEDClassifier(margin="fixed", calibration=None).fit(X, y)
    apart = X + 20.0 * (y == "yes")[:, None]
    assert MEDClassifier(margin=Margin("fixed", 2.0), calibration=None).fit(apart, y).score(apart, y) == 1.0


def test_progress_is_told(two):
    calls = []
    MEDClassifier(random_state=0, progress=lambda *call: calls.append(call)).fit(*two)
    assert any("C = " in text for _, _, text in calls) and any("pass" in text for _, _, text in calls)


@pytest.mark.parametrize(("margin", "C"), [("exponential", 1.5), ("laplace", 0.5), ("gaussian", 5.0)])
def test_the_share_of_support_rows_bounds_the_leave_one_out_error(margin, C):
    """Lemma 1: without a row that has no multiplier the solution is the same, and it classifies the row correctly."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = X[:, 0] + 0.7 * rng.normal(size=40) > 0
    model = MEDClassifier(C=C, margin=margin, calibration=None, standardize=False, tol=1e-8)
    whole = clone(model).fit(X, y)
    without = [clone(model).fit(np.delete(X, i, axis=0), np.delete(y, i)) for i in range(40)]
    wrong = np.array([fit.predict(X[[i]])[0] != y[i] for i, fit in enumerate(without)])
    inactive = np.setdiff1d(np.arange(40), whole.support_)
    assert 0 < wrong.mean() <= whole.loo_estimate_ < 1 and not wrong[inactive].any()
    for i in inactive:
        np.testing.assert_allclose(without[i].decision_function(X), whole.decision_function(X), atol=1e-4)


def test_a_fit_that_no_step_improves_far_from_the_optimum_has_not_converged():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2)), rng.integers(3, size=120)
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        model = MEDClassifier("rbf", C=1e9, calibration=None).fit(X, y)
    assert model.run_.status is Status.STOPPED and not model.converged_
    assert model.gap_ > 1e-3 * len(y)
