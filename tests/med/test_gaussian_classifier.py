"""MEDGaussianClassifier as a user meets it."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_t
from sklearn.utils.estimator_checks import parametrize_with_checks

from mixent import MEDGaussianClassifier
from mixent.data import DataWarning
from mixent.options import RBF, GaussianPrior, Margin


@parametrize_with_checks([MEDGaussianClassifier(C=1.0, calibration=None)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([MEDGaussianClassifier(C=1.0, cv=3)])
def test_scikit_learn_checks_with_calibration(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def ring():
    """A class inside another: Gaussians of equal mean separate them."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 80)
    outer = np.column_stack([np.cos(angle), np.sin(angle)]) * rng.normal(3.0, 0.4, 80)[:, None]
    X = np.concatenate([rng.normal(size=(60, 2)) * [1.0, 0.6], outer])
    return X, np.repeat(["in", "out"], [60, 80])


def test_the_prior_is_what_no_multiplier_changes(ring):
    """So small a C that all multipliers are zero: the Gaussians are those of maximum likelihood, smoothed."""
    X, y = ring
    model = MEDGaussianClassifier(C=1e-6, margin="exponential", calibration=None, prior=0.0).fit(X, y)
    assert not model.multipliers_.any() and model.loo_estimate_ == 0
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for mean, cov, label in zip(model.means_, model.covariances_, model.classes_):
        np.testing.assert_allclose(mean, Z[y == label].mean(axis=0), atol=1e-10)
        np.testing.assert_allclose(cov, np.cov(Z[y == label].T, bias=True), atol=1e-10)


@pytest.mark.parametrize("margin", ["exponential", "laplace", "gaussian"])
def test_the_solution_keeps_the_conditions_of_an_optimum(ring, margin):
    X, y = ring
    options = {"C": 2.0, "margin": Margin(margin, quantile=0.3), "tol": 1e-10, "calibration": None}
    model = MEDGaussianClassifier(bias="flat", **options).fit(X, y)
    kept = np.where(y == "out", 1, -1) * model.decision_function(X)
    lam = model.multipliers_
    assert model.gap_ < 1e-6 and 0 < np.mean(lam > 0) < 1
    np.testing.assert_allclose(kept[lam > 0], model.margin_.mean(lam[lam > 0]), atol=1e-4)
    assert (kept[lam == 0] >= model.margin_.mean(0.0) - 1e-6).all()
    assert abs(lam @ np.where(y == "out", 1, -1)) < 1e-6 * lam.sum()
    objective = [step.objective for step in model.run_.trace if step.accepted]
    assert np.diff(objective).min() > -1e-8


def test_the_statistics_are_those_of_weighted_rows(ring):
    """Equation 17: row t weighs 1 + l in its own class and -l in the other."""
    X, y = ring
    model = MEDGaussianClassifier(
        C=2.0, tol=1e-12, calibration=None, prior=0.0, margin=Margin("laplace", quantile=0.3)
    ).fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    lam = model.multipliers_
    for one, label in zip(model.gaussians_, model.classes_):
        w = np.where(y == label, 1 + lam, -lam)
        N = w.sum()
        mean = w @ Z / N
        S = (Z * w[:, None]).T @ Z - N * np.outer(mean, mean)
        assert one.rows == pytest.approx(N, rel=1e-6)
        np.testing.assert_allclose(one.center, mean, atol=1e-5)
        np.testing.assert_allclose(one.root @ one.root.T, S, rtol=1e-4, atol=1e-4)


def test_three_classes_are_solved_jointly():
    rng = np.random.default_rng(6)
    y = rng.integers(3, size=150)
    X = rng.normal(size=(150, 3)) * (1 + y[:, None]) + np.eye(3)[y]
    model = MEDGaussianClassifier(C=3.0, tol=1e-9, calibration=None).fit(X, y)
    assert model.multipliers_.shape == (150, 3) and model.gap_ < 1e-5
    assert model.score(X, y) > 0.6
    order = [2, 0, 1]
    other = MEDGaussianClassifier(C=3.0, tol=1e-9, calibration=None).fit(X, np.array(order)[y])
    np.testing.assert_allclose(other.decision_function(X)[:, order], model.decision_function(X), atol=1e-4)


def test_weight_two_is_the_row_twice(ring):
    X, y = ring
    weight = np.random.default_rng(1).integers(0, 3, size=len(X)).astype(float)
    options = {"C": 2.0, "margin": Margin("laplace", quantile=0.3), "calibration": None, "tol": 1e-11}
    weighted = MEDGaussianClassifier(**options).fit(X, y, weight)
    index = np.repeat(np.arange(len(X)), weight.astype(int))
    repeated = MEDGaussianClassifier(**options).fit(X[index], y[index])
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-4)


def test_units_do_not_matter(ring):
    X, y = ring
    options = {"C": 2.0, "calibration": None, "tol": 1e-11}
    plain = MEDGaussianClassifier(**options).fit(X, y).decision_function(X)
    moved = X @ np.array([[3.0, 1.0], [-2.0, 0.5]]) + 1e4
    turned = MEDGaussianClassifier(prior=0.0, **options).fit(moved, y).decision_function(moved)
    again = MEDGaussianClassifier(prior=0.0, **options).fit(X, y).decision_function(X)
    np.testing.assert_allclose(turned, again, atol=1e-4)
    scaled = MEDGaussianClassifier(**options).fit(X * [1e3, 1e-3], y).decision_function(X * [1e3, 1e-3])
    np.testing.assert_allclose(scaled, plain, atol=1e-6)


def test_the_prior_of_the_user_counts_for_its_rows(ring):
    X, y = ring
    mean, cov = np.array([1.0, -1.0]), np.array([[2.0, 0.3], [0.3, 1.0]])
    model = MEDGaussianClassifier(
        C=1e-6, margin="exponential", calibration=None, prior=GaussianPrior(7.0, mean=mean, cov=cov)
    ).fit(X, y)
    own = X[y == "in"]
    N = 7.0 + len(own)
    m = (7.0 * mean + own.sum(axis=0)) / N
    S = 7.0 * cov + own.T @ own + 7.0 * np.outer(mean, mean) - N * np.outer(m, m)
    one, center, scale = model.gaussians_[0], X.mean(axis=0), X.std(axis=0)
    assert one.rows == N
    np.testing.assert_allclose(one.center * scale + center, m, atol=1e-9)
    np.testing.assert_allclose((one.root @ one.root.T) * np.outer(scale, scale), S, rtol=1e-9)


def test_predictive_probabilities_are_bayes_rule_with_student_densities(ring):
    X, y = ring
    model = MEDGaussianClassifier(C=1.0, calibration="predictive", margin=Margin("laplace", quantile=0.3)).fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    log_joint = []
    for one, b in zip(model.gaussians_, np.log(model.class_prior_)):
        free = one.rows - 1
        shape = one.root @ one.root.T * (one.rows + 1) / (one.rows * free)
        log_joint.append(multivariate_t(one.center, shape, df=free).logpdf(Z) + b)
    joint = np.exp(np.array(log_joint))
    np.testing.assert_allclose(model.predict_proba(X).T, joint / joint.sum(axis=0), rtol=1e-9)


def test_kernel_components_bend_the_boundary():
    rng = np.random.default_rng(2)
    X = rng.uniform(-2, 2, size=(300, 2))
    y = (np.sin(2.5 * X[:, 0]) > X[:, 1]).astype(int)
    plain = MEDGaussianClassifier(C=1.0, random_state=0).fit(X[:200], y[:200])
    bent = MEDGaussianClassifier(C=1.0, kernel=RBF(1.0), n_kernel_components=12, random_state=0).fit(X[:200], y[:200])
    assert bent.score(X[200:], y[200:]) > plain.score(X[200:], y[200:]) + 0.03
    assert len(bent.means_[0]) == 12
    cubic = MEDGaussianClassifier(C=1.0, kernel="poly", n_kernel_components=6, random_state=0).fit(X[:200], y[:200])
    own = MEDGaussianClassifier(C=1.0, kernel=lambda A, B: (A @ B.T + 1) ** 2, n_kernel_components=4, random_state=0)
    assert cubic.score(X, y) > 0.8 and own.fit(X, y).score(X, y) > 0.8


@pytest.mark.parametrize("relaxation", [0.3, 1.0])
def test_rows_without_a_label_take_part(ring, relaxation):
    X, y = ring
    hidden = np.random.default_rng(3).random(len(y)) < 0.6
    partly = y.astype(object)
    partly[hidden] = None
    options = {"C": 2.0, "margin": Margin("laplace", quantile=0.5), "calibration": None, "random_state": 0}
    model = MEDGaussianClassifier(relaxation=relaxation, **options).fit(X, partly)
    objective = [step.objective for step in model.run_.trace if step.accepted]
    assert len(objective) > 2 and np.diff(objective).min() > -1e-8
    assert (model.classes_[model.label_posterior_[hidden].argmax(axis=1)] == y[hidden]).mean() > 0.85
    np.testing.assert_array_equal(model.label_posterior_[~hidden].max(axis=1), 1.0)


def test_tables_with_words_and_gaps():
    rng = np.random.default_rng(4)
    y = rng.integers(2, size=150)
    X = pd.DataFrame(
        {
            "size": (1 + y) * rng.normal(size=150),
            "color": np.array(["red", "green"])[(y + (rng.random(150) < 0.3)) % 2],
        }
    ).mask(rng.random((150, 2)) < 0.1)
    model = MEDGaussianClassifier(C=1.0, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.6
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_predictive_probabilities_respect_unequal_classes():
    rng = np.random.default_rng(7)
    y = (rng.random(1500) < 0.1).astype(int)
    X = rng.normal(size=(1500, 2)) + 1.5 * y[:, None]
    model = MEDGaussianClassifier(calibration="predictive", random_state=0).fit(X[:700], y[:700])
    p = model.predict_proba(X[700:])[:, 1]
    assert abs(p.mean() - y[700:].mean()) < 0.04
    delivered = -np.log(np.where(y[700:] == 1, p, 1 - p)).mean()
    lowest = min(tried["log_loss"] for tried in model.C_tried_)
    assert abs(delivered - lowest) < 0.06  # C is chosen by the log-loss of the calibrated probabilities


def test_a_rare_bit_breaks_nothing():
    """Constant where a fold, or a class, lacks it: no overflow, no certainty."""
    rng = np.random.default_rng(8)
    y = rng.integers(2, size=200)
    X = pd.DataFrame(rng.normal(size=(200, 2)) + y[:, None], columns=["a", "b"]).assign(flag="no")
    X.loc[5, "flag"] = "yes"
    model = MEDGaussianClassifier(random_state=0).fit(X, y)
    assert all(np.isfinite(tried["log_loss"]) for tried in model.C_tried_)
    assert np.abs(model.decision_function(X)).max() < 1e3
    plain = MEDGaussianClassifier(random_state=0).fit(X[["a", "b"]], y)
    assert np.abs(model.predict_proba(X) - plain.predict_proba(X[["a", "b"]]))[np.arange(200) != 5].max() < 0.25


@pytest.mark.parametrize("size", [1e3, 1e6])
def test_many_rows_are_as_easy_as_few(ring, size):
    X, y = ring
    model = MEDGaussianClassifier(C=2.0, calibration=None).fit(X, y, np.full(len(X), size))
    assert model.converged_ and model.n_iter_ < 60 and model.gap_ < 1e-3 * size


def test_a_row_without_weight_says_nothing(ring):
    X, y = ring
    far = np.concatenate([X, [[1e8, 1e8]]])
    weight = np.append(np.ones(len(X)), 0.0)
    options = {"C": 2.0, "calibration": None, "tol": 1e-10}
    ours = MEDGaussianClassifier(**options).fit(far, np.append(y, "in"), weight).decision_function(X)
    np.testing.assert_allclose(ours, MEDGaussianClassifier(**options).fit(X, y).decision_function(X), atol=1e-6)


def test_rows_without_a_label_are_of_no_class_before_discrimination(ring):
    X, y = ring
    partly = y.astype(object)
    partly[::2] = None
    prior = GaussianPrior(2.0, mean=[0.0, 0.0], cov=np.eye(2))
    model = MEDGaussianClassifier(C=1.0, calibration=None, prior=prior, random_state=0).fit(X, partly)
    for one, label in zip(model.prior_gaussians_, model.classes_):
        assert one.rows == 2.0 + np.sum(y[1::2] == label)


@pytest.mark.parametrize("kernel", ["rbf", "poly", lambda A, B: A @ B.T])
def test_rows_that_a_kernel_does_not_distinguish_have_the_priors(kernel):
    for X in (np.ones((4, 2)), np.zeros((4, 2))):
        model = MEDGaussianClassifier(C=3.0, calibration=None, kernel=kernel, n_kernel_components=4)
        with pytest.warns(DataWarning):
            model.fit(X, ["a", "a", "b", "b"])
        np.testing.assert_allclose(model.predict_proba(X), 0.5)


@pytest.mark.parametrize("structure", ["full", "diagonal", "tied"])
@pytest.mark.parametrize("C", [0.5, 50.0])
def test_more_columns_than_rows(structure, C):
    """Without overflow, in a moment."""
    rng = np.random.default_rng(9)
    y = np.arange(30) % 3
    X = rng.normal(size=(30, 50)) + y[:, None]
    model = MEDGaussianClassifier(C=C, calibration=None, prior=GaussianPrior(covariances=structure)).fit(X, y)
    assert model.converged_ and model.gap_ < 1e-4 and np.isfinite(model.predict_proba(3 * X)).all()


def test_two_hundred_columns():
    """The features of the columns' products are never formed: of 1 000 rows they would take 320 MB."""
    rng = np.random.default_rng(10)
    y = np.arange(400) % 2
    X = rng.normal(size=(400, 200)) * (1 + 0.1 * y[:, None])
    X[:, 0] += y
    model = MEDGaussianClassifier(C=1.0, calibration=None, margin=Margin("laplace", quantile=0.5)).fit(X, y)
    assert model.converged_ and len(model.support_) > 20 and model.n_iter_ < 20


def test_many_classes():
    rng = np.random.default_rng(11)
    y = np.arange(520) % 26
    X = 2 * rng.normal(size=(26, 4))[y] + rng.normal(size=(520, 4))
    model = MEDGaussianClassifier(C=1.0, calibration=None).fit(X, y)
    assert model.converged_ and model.gap_ < 1e-3 and model.score(X, y) > 0.5


def test_structures_of_the_covariances(ring):
    """Diagonal: no correlation. Tied: one covariance, and linear boundaries, which do not separate a ring."""
    X, y = ring
    turned = X @ np.array([[1.0, 0.5], [-0.5, 1.0]])
    fits = {
        structure: MEDGaussianClassifier(C=1.0, calibration=None, prior=GaussianPrior(covariances=structure)).fit(
            turned, y
        )
        for structure in ("full", "diagonal", "tied")
    }
    assert fits["full"].score(turned, y) > 0.9 and fits["diagonal"].score(turned, y) > 0.9
    assert fits["tied"].score(turned, y) < 0.75
    assert all(abs(cov[0, 1]) < 1e-12 for cov in fits["diagonal"].covariances_)
    first, second = fits["tied"].covariances_
    np.testing.assert_array_equal(first, second)
    f = fits["tied"].decision_function
    np.testing.assert_allclose(f(0.5 * (turned[:5] + turned[5:10])), 0.5 * (f(turned[:5]) + f(turned[5:10])), atol=1e-9)
    for model in fits.values():
        assert len(model.means_) == len(model.covariances_) == 2
        predictive = MEDGaussianClassifier(C=1.0, calibration="predictive", prior=model.prior).fit(turned, y)
        np.testing.assert_allclose(predictive.predict_proba(turned).sum(axis=1), 1)
