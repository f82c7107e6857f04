"""Components all classes share: Theorem 3.1, the latent-class model they are, and what cannot matter."""

import copy
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import mixent
from mixent import GaussianMixture, MixtureClassifier, SharedMixtureClassifier
from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.driver import Status, Stop, rounding, run
from mixent.core.executors import Serial
from mixent.families.gaussian.family import GaussianFamily, Gaussians, Group
from mixent.families.gaussian.prior import Prior
from mixent.families.product import Components, ProductFamily
from mixent.mixtures.discriminative import ConditionalLikelihood, DiscriminativeProblem, SmoothedError
from mixent.mixtures.problem import MixtureParams, MixtureProblem

NAMES = ("EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV")
every_structure = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="module")
def grouped():
    """Three classes made of the same four groups in different proportions."""

    def rows(n=240, seed=0, missing=0.0):
        rng = np.random.default_rng(seed)
        share = np.array([[0.6, 0.2, 0.1, 0.1], [0.1, 0.5, 0.3, 0.1], [0.1, 0.1, 0.2, 0.6]])
        y = rng.integers(3, size=n)
        group = np.array([rng.choice(4, p=share[c]) for c in y])
        center = np.array([[0.0, 0.0, 0.0], [4.0, 0.0, 1.0], [0.0, 4.0, -1.0], [4.0, 4.0, 2.0]])
        X = center[group] + rng.normal(size=(n, 3)) @ np.array([[1.0, 0.3, 0.0], [0.0, 0.8, 0.2], [0.0, 0.0, 1.2]])
        X[rng.random(X.shape) < missing] = np.nan
        return X, y

    return rows


def assert_never_falls(result, weight):
    assert result.status in (Status.CONVERGED, Status.MAX_PASSES), result.message
    for segment in {s.segment for s in result.trace}:
        values = [s.objective for s in result.trace if s.segment == segment and s.accepted]
        assert all(b >= a - rounding(a, weight) for a, b in pairwise(values))


# --- Theorem 3.1 -----------------------------------------------------------------------------------------------------


def log_normal(X, mean, cov):
    away = X - mean
    return -0.5 * (np.einsum("ni,ij,nj->n", away, np.linalg.inv(cov), away) + np.linalg.slogdet(2 * np.pi * cov)[1])


def theorem_3_1(X, y, prior, alpha, means, covs):
    """One step of hierarchical EM, written as in the document: h_k(x_t, y_t), then alpha, mu and Sigma."""
    n_classes, n_components = alpha.shape
    h = np.array([np.log(alpha[y, k]) + log_normal(X, means[k], covs[k]) for k in range(n_components)]).T
    h = np.exp(h - h.max(axis=1, keepdims=True))
    h /= h.sum(axis=1, keepdims=True)
    new_alpha = np.array([h[y == c].sum(axis=0) / (y == c).sum() for c in range(n_classes)])
    new_means = (h.T @ X) / h.sum(axis=0)[:, None]
    new_covs = []
    for k in range(n_components):
        away = X - new_means[k]
        new_covs.append((h[:, k] * away.T) @ away / h[:, k].sum())
    return np.bincount(y) / len(y), new_alpha, new_means, np.array(new_covs), h.sum(axis=0)


STRUCTURED = {  # closed forms of what a structure makes of the scatters
    "VVV": lambda covs, mass: covs,
    "VVI": lambda covs, mass: np.array([np.diag(np.diag(c)) for c in covs]),
    "VII": lambda covs, mass: np.array([np.trace(c) / 3 * np.eye(3) for c in covs]),
    "EEE": lambda covs, mass: np.repeat([np.average(covs, axis=0, weights=mass)], len(covs), axis=0),
    "EEI": lambda covs, mass: np.repeat([np.diag(np.diag(np.average(covs, axis=0, weights=mass)))], len(covs), axis=0),
}


@pytest.mark.usefixtures("plain_em")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", STRUCTURED)
def test_one_step_is_that_of_theorem_3_1(grouped, name):
    X, y = grouped()
    model = SharedMixtureClassifier(4, name, prior=None, random_state=0, max_iter=4).fit(X, y)
    problem, source = model.problem_, ArrayBlocks(Block(X), 64, 64, classes=y)
    with Serial() as workers:
        total = workers.total(partial(problem.stats, problem.prepare(model.params_)), source)
    after = problem.update(model.params_, total)
    alpha = model.weights_ / model.weights_.sum(axis=1, keepdims=True)
    prior, alpha, means, covs, mass = theorem_3_1(X, y, model.class_prior_, alpha, model.means_, model.covariances_)
    np.testing.assert_allclose(after.weights, prior[:, None] * alpha, rtol=1e-9)
    gaussian = after.components.gaussian
    np.testing.assert_allclose(gaussian.means + problem.family.gaussian.center, means, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(gaussian.full_covs(), STRUCTURED[name](covs, mass), rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("missing", [0.0, 0.2], ids=["complete", "gaps"])
@every_structure
def test_hierarchical_em_never_falls(grouped, name, missing, weighted):
    """Known, uncertain and absent labels at once, with a category beside the numbers."""
    X, y = grouped(160, missing=missing)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(X, columns=["u", "v", "w"]).assign(kind=np.where(rng.random(160) < 0.7, "a", "b"))
    soft = np.full((160, 3), 0.1)
    soft[np.arange(160), y] = 0.8
    soft[:40] = 1.0
    soft[40:80] = np.eye(3)[y[40:80]]
    weight = rng.exponential(size=160) if weighted else None
    prior = [0.2, 0.3, 0.5] if NAMES.index(name) % 3 == 0 else "empirical"
    model = SharedMixtureClassifier(4, name, class_prior=prior, tol=1e-7, max_iter=30, random_state=0)
    model.fit(frame, soft, sample_weight=weight)
    assert_never_falls(model.run_, 160 if weight is None else weight.sum())
    if prior != "empirical":
        np.testing.assert_allclose(model.class_prior_, prior, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_class_priors_are_the_shares_of_the_classes(grouped, weighted):
    X, y = grouped()
    weight = np.random.default_rng(0).exponential(size=len(y)) if weighted else np.ones(len(y))
    model = SharedMixtureClassifier(4, random_state=0).fit(X, y, sample_weight=weight if weighted else None)
    np.testing.assert_allclose(model.class_prior_, np.bincount(y, weight) / weight.sum(), rtol=1e-12)
    np.testing.assert_allclose(model.weights_.sum(), 1.0, rtol=1e-12)


# --- the latent-class model it is ------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.3], ids=["complete", "gaps"])
@pytest.mark.parametrize("name", ["VVI", "EEE", "VVV"])
def test_it_is_the_joint_latent_class_model(grouped, brute_force, name, missing):
    """p(k) = sum_c p_c a_ck and p(c | k) = p_c a_ck / p(k): then p(c | x) = sum_k p(c | k) p(k | x)."""
    X, y = grouped(missing=missing)
    model = SharedMixtureClassifier(4, name, random_state=0).fit(X, y)
    component, speaks = model.weights_.sum(axis=0), model.class_given_component_
    np.testing.assert_allclose(speaks.sum(axis=0), 1.0, rtol=1e-12)
    np.testing.assert_allclose(speaks * component, model.weights_, rtol=1e-12)
    rows = X[:40].copy()
    rows[0] = np.nan
    joint = brute_force(rows, component, model.means_, model.covariances_)
    density = np.logaddexp.reduce(joint, axis=1)
    np.testing.assert_allclose(model.predict_proba(rows), np.exp(joint - density[:, None]) @ speaks.T, rtol=1e-8)
    np.testing.assert_allclose(model.score_samples(rows), density, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(rows)[0], model.class_prior_, rtol=1e-9)
    np.testing.assert_array_equal(model.component_class_, model.weights_.argmax(axis=0))


def test_components_of_one_class_each_are_a_mixture_per_class(grouped):
    """With W block-diagonal the shared model is `MixtureClassifier`, to the last bit."""
    X, y = grouped(missing=0.1)
    own = MixtureClassifier(2, "VVV", random_state=0).fit(X, y)
    shared = SharedMixtureClassifier(6, "VVV", random_state=0).fit(X, y)
    for name in ("problem_", "params_", "class_prior_", "schema_"):
        setattr(shared, name, getattr(own, name))
    np.testing.assert_array_equal(shared.predict_proba(X), own.predict_proba(X))
    np.testing.assert_array_equal(shared.score_samples(X), own.score_samples(X))
    blocks = np.kron(np.eye(3), np.ones(2))
    np.testing.assert_array_equal(shared.class_given_component_, blocks)


@pytest.mark.usefixtures("plain_em")
def test_a_weight_of_zero_stays_zero_and_the_fit_is_that_of_a_mixture_per_class(grouped):
    X, y = grouped()
    own = MixtureClassifier(2, "VVV", random_state=0, tol=1e-10).fit(X, y)
    problem, source = own.problem_, ArrayBlocks(Block(X, label=np.eye(3)[y]))  # as soft labels: no class set apart
    again = run(problem, source, own.params_, stop=Stop(1e-10, 50), executor=Serial())
    np.testing.assert_array_equal(again.params.weights > 0, own.weights_ > 0)
    assert again.objective == pytest.approx(own.run_.objective, rel=1e-7)


@pytest.mark.parametrize("name", ["VVI", "VVV"])
def test_without_labels_it_is_a_plain_mixture(grouped, name):
    """Absent labels: the components see sum_c W_ck and nothing of the classes."""
    X, _ = grouped(missing=0.1)
    mixture = GaussianMixture(3, name, random_state=0).fit(X)
    gaussian = mixture.params_
    W = np.array([[0.3], [0.7]]) * gaussian.weights
    problem = replace(mixture.problem_)
    source = ArrayBlocks(Block(X, label=np.ones((len(X), 2))))
    with Serial() as workers:
        ready = problem.prepare(replace(gaussian, weights=W))
        shared = workers.total(partial(problem.stats, ready), source)
        plain = workers.total(partial(problem.stats, problem.prepare(gaussian)), ArrayBlocks(Block(X)))
    assert shared.log_lik == pytest.approx(plain.log_lik, rel=1e-12)
    np.testing.assert_allclose(shared.counts, np.array([[0.3], [0.7]]) * plain.counts, rtol=1e-9)


# --- what cannot matter ----------------------------------------------------------------------------------------------


CRITERIA = {
    "likelihood": None,
    "conditional": ConditionalLikelihood(1.0),
    "blend": ConditionalLikelihood(0.5),
    "error": SmoothedError(2.0),
}
every_criterion = pytest.mark.parametrize("criterion", CRITERIA)


def solve(X, label, W, means, criterion, name="VVV", weight=None, passes=8):
    """So many passes from given components."""
    K, d = means.shape
    family = GaussianFamily((Group(name, 0, K),), np.zeros(d), np.ones(d))
    rule = Prior(np.array(2.0), np.eye(d), np.zeros(d), np.array(0.5))
    family = replace(family, prior=rule.expand(K, family.axis_aligned))
    covs = np.ones((K, d)) if family.axis_aligned else np.repeat(np.eye(d)[None], K, axis=0)
    params = MixtureParams(W, Components(Gaussians(means, covs, (None,)), None))
    if CRITERIA[criterion] is None:
        problem = MixtureProblem(ProductFamily(family, None), weight_rows=3.0 * W)
    else:
        problem = DiscriminativeProblem(ProductFamily(family, None), weight_rows=3.0 * W, criterion=CRITERIA[criterion])
    source = ArrayBlocks(Block(X, label=label, weight=weight), 64, 64)
    found = run(problem, source, params, stop=Stop(0.0, passes), executor=Serial())
    gaussian = found.params.components.gaussian
    return found.params.weights, gaussian.means, gaussian.full_covs(), found.objective


@pytest.fixture
def began(grouped):
    """Rows with gaps, labels of all kinds, and where to begin."""
    X, y = grouped(120, missing=0.1)
    rng = np.random.default_rng(0)
    label = np.eye(3)[y]
    label[::5] = 1.0
    label[1::5] = rng.dirichlet(np.ones(3), size=24)
    W = rng.random((3, 4)) + 0.1
    return X, label, W / W.sum(), 2 * rng.normal(size=(4, 3)) + 2


def assert_same(one, other, rtol=1e-8):
    for a, b in zip(one, other):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b).max())


@every_criterion
def test_the_order_of_classes_rows_columns_and_components_does_not_matter(began, criterion):
    X, label, W, means = began
    weights, centers, covs, objective = solve(X, label, W, means, criterion)
    c, k = np.array([2, 0, 1]), np.array([3, 1, 0, 2])
    assert_same(solve(X, label[:, c], W[c], means, criterion), (weights[c], centers, covs, objective))
    assert_same(solve(X, label, W[:, k], means[k], criterion), (weights[:, k], centers[k], covs[k], objective))
    order = np.random.default_rng(1).permutation(len(X))
    assert_same(solve(X[order], label[order], W, means, criterion), (weights, centers, covs, objective))
    turned = solve(X[:, c], label, W, means[:, c], criterion)
    assert_same(turned, (weights, centers[:, c], covs[:, c][:, :, c], objective))


@every_criterion
@pytest.mark.parametrize("name", ["EII", "VVI", "EEE", "VVV"])
def test_weight_two_is_the_row_twice_and_zero_is_none(began, criterion, name):
    X, label, W, means = began
    often = np.random.default_rng(2).integers(0, 3, size=len(X))
    repeated = solve(np.repeat(X, often, axis=0), np.repeat(label, often, axis=0), W, means, criterion, name)
    assert_same(solve(X, label, W, means, criterion, name, weight=often.astype(float)), repeated)


@pytest.mark.parametrize(
    "options",
    [{}, {"training": "conditional"}, {"training": "conditional", "training__solver": "lbfgs"}, {"training": "error"}],
    ids=["likelihood", "conditional", "lbfgs", "error"],
)
def test_renaming_classes_and_moving_columns_changes_nothing(grouped, options):
    """Names that sort the same way, origins and units of columns."""
    X, y = grouped()
    model = SharedMixtureClassifier(4, "VVV", random_state=0).set_params(**options).fit(X, y)
    named = SharedMixtureClassifier(4, "VVV", random_state=0).set_params(**options).fit(X, np.array(["a", "b", "c"])[y])
    np.testing.assert_array_equal(named.predict_proba(X), model.predict_proba(X))
    a, b = np.array([100.0, 1.0, 0.01]), np.array([3.0, -7.0, 0.5])
    moved = SharedMixtureClassifier(4, "VVV", random_state=0).set_params(**options).fit(a * X + b, y)
    np.testing.assert_allclose(moved.predict_proba(a * X + b), model.predict_proba(X), atol=2e-3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("objective", ["likelihood", "conditional", "error"])
def test_the_number_of_threads_changes_no_bit(grouped, monkeypatch, same, objective):

    monkeypatch.setattr("mixent.base.executors.SMALL", 0)
    X, y = grouped(4000, missing=0.1)
    options = {"training": objective, "max_iter": 6, "random_state": 0}
    fits = [SharedMixtureClassifier(4, "VVV", n_jobs=jobs).set_params(**options).fit(X, y) for jobs in (1, 2, 3)]
    for other in fits[1:]:
        same(fits[0], other, 0)
        np.testing.assert_array_equal(other.predict_proba(X), fits[0].predict_proba(X))


# --- the estimator ---------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("objective", ["likelihood", "conditional", "error"])
@every_structure
def test_every_structure_learns_from_gaps_and_labels_of_all_kinds(grouped, name, objective):
    X, y = grouped(missing=0.1)
    some = np.where(np.arange(len(y)) % 4 == 0, np.nan, y)
    model = SharedMixtureClassifier(4, name, training=objective, max_iter=25, random_state=0).fit(X, some)
    assert_never_falls(model.run_, len(y))
    assert model.score(X, y) > 0.5 and np.isfinite(model.predict_log_proba(X)).all()
    assert model.covariance_ == name and model.n_components_ == 4


def test_what_labels_leave_open_helps_the_groups(grouped):
    """The likelihood uses rows without a label; training for the posterior does not, at alpha = 1."""
    X, y = grouped(400)
    some = np.where(np.arange(400) < 40, y, np.nan)
    few = SharedMixtureClassifier(4, "EEE", random_state=0).fit(X[:40], y[:40])
    with_others = SharedMixtureClassifier(4, "EEE", random_state=0).fit(X, some)
    assert with_others.score_samples(X).mean() > few.score_samples(X).mean()


def test_groups_in_other_proportions_need_no_mixture_of_their_own(grouped):
    """Held-out density of the shared model beats a mixture for each class with as many components in all."""
    X, y = grouped(200)
    new, labels = grouped(2000, seed=1)
    shared = SharedMixtureClassifier(4, "VVV", random_state=0).fit(X, y)
    own = MixtureClassifier(4, "VVV", random_state=0).fit(X, y)
    loss = [-m.predict_log_proba(new)[np.arange(2000), labels].mean() for m in (shared, own)]
    assert loss[0] < loss[1]


def test_marginals_samples_and_gaps_filled(grouped):
    X, y = grouped(missing=0.1)
    model = SharedMixtureClassifier(4, "VVV", random_state=0).fit(X, y)
    part = model.marginal([2, 0])
    alone = np.full((len(X), 3), np.nan)
    alone[:, [2, 0]] = X[:, [2, 0]]
    np.testing.assert_allclose(part.predict_proba(X[:, [2, 0]]), model.predict_proba(alone), rtol=1e-8, atol=1e-12)
    drawn, labels = model.sample(4000, random_state=0)
    np.testing.assert_allclose(np.bincount(labels) / 4000, model.class_prior_, atol=0.03)
    assert model.score(drawn, labels) > 0.5
    filled = model.impute(X)
    assert not np.isnan(filled).any()
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])


def test_new_priors_shift_the_posterior_only(grouped):
    X, y = grouped()
    model = SharedMixtureClassifier(4, "VVV", random_state=0).fit(X, y)
    other = model.adjust_priors(X[y == 0])
    assert other.class_prior_[0] > model.class_prior_[0]
    log_ratio = np.log(other.class_prior_ / model.class_prior_)
    shifted = model.predict_log_proba(X) + log_ratio
    shifted -= np.logaddexp.reduce(shifted, axis=1)[:, None]
    np.testing.assert_allclose(other.predict_log_proba(X), shifted, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model.predict_proba(X), copy.deepcopy(model).predict_proba(X))


def test_the_best_of_the_starts_goes_on(grouped):
    X, y = grouped()
    one = SharedMixtureClassifier(4, "VVV", n_init=1, random_state=0).fit(X, y)
    many = SharedMixtureClassifier(4, "VVV", n_init=6, random_state=0).fit(X, y)
    assert many.score_samples(X).mean() > one.score_samples(X).mean() - 1e-2


def test_fewer_components_than_classes(grouped):
    X, y = grouped()
    for objective in ("likelihood", "conditional", "error"):
        model = SharedMixtureClassifier(2, "VVV", training=objective, random_state=0).fit(X, y)
        assert model.weights_.shape == (3, 2) and np.isfinite(model.predict_log_proba(X)).all()


@pytest.mark.parametrize("objective", ["likelihood", "conditional", "error"])
def test_a_saved_one_predicts_the_same_bits(grouped, tmp_path, objective):
    X, y = grouped(missing=0.1)
    model = SharedMixtureClassifier(4, "VEV", training=objective, random_state=0).fit(X, y)
    mixent.save(model, tmp_path / "m.mixent")
    again = mixent.load(tmp_path / "m.mixent")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.class_given_component_, model.class_given_component_)
    assert again.get_params() == model.get_params()
