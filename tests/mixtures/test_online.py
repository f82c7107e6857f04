"""Batches of rows: what earlier ones left behind serves as well as they would."""

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

import mixent
from mixent import GaussianMixture, MixtureClassifier, SharedMixtureClassifier
from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.driver import Status, rounding
from mixent.core.executors import Serial
from mixent.mixtures.fit_plan import Candidate
from mixent.mixtures.online import past_statistics, with_past

NAMES = ("EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV")
CLOSED = ("EII", "VII", "EEI", "EVI", "VVI", "EEE", "EEV", "EVV", "VVV")  # no inner loop
CUTS = ((0, 70), (70, 80), (80, 200), (200, 240))


def batches(model, X, y=None, weight=None, cuts=CUTS, **first):
    """partial_fit, a stretch of rows at a time."""
    for a, b in cuts:
        w = None if weight is None else weight[a:b]
        if isinstance(model, GaussianMixture):
            model.partial_fit(X[a:b], sample_weight=w)
        else:
            model.partial_fit(X[a:b], y[a:b], sample_weight=w, **first)
            first = {}
    return model


def assert_never_falls(run, weight):
    steps = [s for s in run.trace if s.accepted]
    assert run.status in (Status.CONVERGED, Status.MAX_PASSES), run.message
    within = [(a.objective, b.objective) for a, b in pairwise(steps) if a.segment == b.segment]
    assert all(b >= a - rounding(a, weight) for a, b in within)


@pytest.fixture
def mixed():
    """Numbers with gaps, categories with gaps, three classes."""

    def frame(n=240, seed=0):
        rng = np.random.default_rng(seed)
        label = rng.integers(3, size=n)
        X = pd.DataFrame(2 * np.eye(3)[label] + rng.normal(size=(n, 3)), columns=["u", "v", "w"])
        X["kind"] = np.where(rng.random(n) < 0.5, np.array(["x", "y", "z"])[label], "x")
        X = X.mask(pd.DataFrame(rng.random(X.shape) < 0.1, columns=X.columns))
        return X, np.array(["a", "b", "c"])[label]

    return frame


# --- one component: batches are the whole ----------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", NAMES)
def test_with_one_component_of_each_class_batches_are_one_fit(draw, same, name, weighted):
    X, y = draw()
    weight = np.random.default_rng(1).exponential(size=len(X)) if weighted else None
    options = {"prior": None, "tol": 1e-13}
    whole = MixtureClassifier(1, name).set_params(**options).fit(X, y, sample_weight=weight)
    parts = batches(MixtureClassifier(1, name).set_params(**options), X, y, weight)
    # axes found by an inner minimization that compares values are right to sqrt(rounding)
    exact = 1e-6 if name in ("EVE", "VVE") else 1e-9
    same(parts, whole, exact)
    np.testing.assert_allclose(parts.predict_proba(X), whole.predict_proba(X), rtol=100 * exact, atol=1e-12)
    np.testing.assert_allclose(parts.statistics_.counts.sum(), len(X) if weight is None else weight.sum(), rtol=1e-9)


@pytest.mark.parametrize("name", CLOSED)
def test_a_class_may_come_later_if_it_is_named_at_first(draw, same, name):
    X, y = draw()
    late = np.argsort(y, kind="stable")  # all rows of class 2 are in the second batch
    first, rest = late[: (y < 2).sum()], late[(y < 2).sum() :]
    options = {"prior": None, "tol": 1e-13, "across_classes": True}
    parts = MixtureClassifier(1, name, **options).partial_fit(X[first], y[first], classes=[0, 1, 2])
    assert parts.classes_.tolist() == [0, 1, 2] and (parts.predict(X) != 2).all()
    assert np.isfinite(parts.predict_proba(X)).all() and parts.predict_proba(X)[:, 2].max() < 1e-250
    whole = MixtureClassifier(1, name, **options).fit(X, y)
    same(parts.partial_fit(X[rest], y[rest]), whole, 1e-8)


@pytest.mark.parametrize("name", CLOSED)
def test_what_classes_share_is_that_of_all_batches(draw, same, name):
    X, y = draw()
    options = {"prior": None, "tol": 1e-13, "across_classes": True}
    whole = MixtureClassifier(1, name).set_params(**options).fit(X, y)
    same(batches(MixtureClassifier(1, name).set_params(**options), X, y), whole, 1e-8)


def test_one_shared_component_and_one_plain_one_too(draw, same):
    X, y = draw()
    whole = SharedMixtureClassifier(1, "VVV", prior=None, tol=1e-13).fit(X, y)
    same(batches(SharedMixtureClassifier(1, "VVV", prior=None, tol=1e-13), X, y), whole, 1e-9)
    np.testing.assert_allclose(whole.class_prior_, np.bincount(y) / len(y), rtol=1e-12)
    mixture = GaussianMixture(1, "VVV", prior=None, tol=1e-13).fit(X)
    same(batches(GaussianMixture(1, "VVV", prior=None, tol=1e-13), X), mixture, 1e-9)


def test_tables_of_categories_add_up(mixed):
    X, y = mixed()
    X = X[["kind"]]
    options = {"prior__smoothing": 1e-12, "tol": 1e-13}  # its pseudo-counts follow the first batch
    whole, parts = (
        MixtureClassifier(1).set_params(**options).fit(X, y),
        batches(MixtureClassifier(1).set_params(**options), X, y),
    )
    a, b = (m.category_probabilities_["kind"] for m in (parts, whole))
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(parts.class_prior_, whole.class_prior_, rtol=1e-9)


@pytest.mark.parametrize("name", ["VVI", "VVV"])
def test_the_order_of_batches_does_not_matter(draw, same, name):
    X, y = draw()
    first = batches(MixtureClassifier(1, name, prior=None, tol=1e-13), X, y)
    other = MixtureClassifier(1, name, prior=None, tol=1e-13)
    same(batches(other, X, y, cuts=CUTS[::-1]), first, 1e-9)


@pytest.mark.parametrize("estimator", [MixtureClassifier, SharedMixtureClassifier, GaussianMixture])
def test_forgetting_is_a_weight_that_fades(draw, same, estimator):
    """Rows of a batch so many calls ago weigh (1 - f)^calls."""
    X, y = draw()
    age = np.repeat(np.arange(len(CUTS))[::-1], [b - a for a, b in CUTS])
    whole = estimator(1, "VVV", prior=None, tol=1e-13).fit(X, y, sample_weight=0.7**age)
    parts = batches(estimator(1, "VVV", prior=None, forgetting=0.3, tol=1e-13), X, y)
    same(parts, whole, 1e-9)
    assert parts.statistics_.counts.sum() == pytest.approx((0.7**age).sum(), rel=1e-9)


# --- several components ----------------------------------------------------------------------------------------------


def models():
    return {
        "mixture": GaussianMixture(3, "VEV", random_state=0),
        "per class": MixtureClassifier(2, "VVV", random_state=0),
        "across": MixtureClassifier(2, "EEE", across_classes=True, random_state=0),
        "held": MixtureClassifier(2, "VVI", class_prior=[0.2, 0.3, 0.5], random_state=0),
        "shared": SharedMixtureClassifier(4, "EEV", random_state=0),
        "shared, no prior": SharedMixtureClassifier(3, "VVV", prior=None, random_state=0),
    }


every_model = pytest.mark.parametrize("name", list(models()))


@every_model
def test_the_objective_of_no_batch_falls(mixed, name):
    X, y = mixed()
    weight = np.random.default_rng(0).exponential(size=len(X))
    model = models()[name].set_params(tol=1e-8, forgetting=0.1)
    seen = 0.0
    for a, b in CUTS:
        args = (X[a:b],) if name == "mixture" else (X[a:b], y[a:b])
        model.partial_fit(*args, sample_weight=weight[a:b])
        assert_never_falls(model.run_, weight[a:b].sum())
        seen = 0.9 * seen + weight[a:b].sum()
        assert model.statistics_.counts.sum() == pytest.approx(seen, rel=1e-9)
        assert np.isfinite(model.score_samples(X)).all()


@every_model
def test_a_batch_of_no_weight_leaves_an_optimum_alone(mixed, same, name):
    X, y = mixed()
    model = models()[name].set_params(tol=1e-12, max_iter=5000).fit(X, y)
    before = {k: getattr(model, k).copy() for k in ("weights_", "means_", "covariances_")}
    args = (X[:5],) if name == "mixture" else (X[:5], y[:5])
    for _ in range(3):
        model.partial_fit(*args, sample_weight=np.full(5, 1e-13))
    for k, value in before.items():
        np.testing.assert_allclose(getattr(model, k), value, rtol=1e-4, atol=2e-5, err_msg=k)


@every_model
def test_only_the_share_forgotten_is_lost(mixed, name):
    X, y = mixed()
    model = models()[name].fit(X[:120], y[:120])
    before = model.statistics_
    model.set_params(forgetting=0.25)
    args = (X[120:],) if name == "mixture" else (X[120:], y[120:])
    model.partial_fit(*args)
    # what this batch added, at the final parameters
    table, known = model._read(X[120:]), None if name == "mixture" else np.searchsorted(model.classes_, y[120:])
    source = ArrayBlocks(Block(table.X, table.codes), classes=known)
    problem = with_past(model.problem_, before.times(0.75))
    with Serial() as workers:
        total = workers.total(partial(problem.stats, problem.prepare(model.params_)), source)
    added = past_statistics(problem, model.params_, total)
    np.testing.assert_allclose(model.statistics_.counts, 0.75 * before.counts + added.counts, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        model.statistics_.categories, 0.75 * before.categories + added.categories, rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(
        model.statistics_.gaussian.rows, 0.75 * before.gaussian.rows + added.gaussian.rows, rtol=1e-9, atol=1e-12
    )


def test_what_is_kept_is_the_expected_complete_likelihood(draw):
    """With them in the prior, the prior's change is E[log p(x, z)] of the rows kept, whatever the parameters."""
    X, y = draw(n=80)
    model = SharedMixtureClassifier(3, "VVV", prior=2.0, random_state=0).fit(X, y)
    problem, params, past = model.problem_, model.params_, model.statistics_
    joint = np.array(
        [
            np.log(params.weights[y, k]) + multivariate_normal.logpdf(X, model.means_[k], model.covariances_[k])
            for k in range(3)
        ]
    ).T
    resp = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))  # at the parameters of the fit
    more, rng = with_past(problem, past), np.random.default_rng(0)
    differences = []
    for _ in range(4):
        gaussian = params.components.gaussian
        root = np.eye(3) + 0.3 * rng.normal(size=(3, 3, 3))
        other = replace(
            gaussian,
            means=gaussian.means + rng.normal(size=(3, 3)),
            covs=root @ gaussian.covs @ np.swapaxes(root, 1, 2),
        )
        W = rng.random((3, 3))
        there = replace(params, weights=W / W.sum(), components=replace(params.components, gaussian=other))
        means = other.means + problem.family.gaussian.center
        log_joint = np.array(
            [np.log(there.weights[y, k]) + multivariate_normal.logpdf(X, means[k], other.covs[k]) for k in range(3)]
        ).T
        expected = (resp * log_joint).sum()
        differences.append(more.log_prior(there) - problem.log_prior(there) - expected)
    np.testing.assert_allclose(differences, differences[0], rtol=1e-8)


@pytest.mark.filterwarnings("ignore:MixtureClassifier. component 2 starved")
def test_the_objective_of_a_batch_is_its_likelihood_and_what_was_kept(draw):
    X, y = draw()
    y = np.minimum(y, 1)  # the second class has two groups
    model = MixtureClassifier({0: 1, 1: 2}, "VVV", random_state=0).fit(X[:120], y[:120])
    past = model.statistics_
    model.partial_fit(X[120:], y[120:])
    log_lik = model._log_joint(X[120:])[np.arange(120), y[120:]].sum()
    log_prior = with_past(model.problem_, past).log_prior(model.params_)
    assert model.run_.objective == pytest.approx(log_lik + log_prior, rel=1e-10)


@every_model
def test_fit_is_a_first_batch(mixed, same, name):
    X, y = mixed()
    one, other = models()[name], models()[name]
    one.fit(X[:150], y[:150])
    other.partial_fit(*((X[:150],) if name == "mixture" else (X[:150], y[:150])))
    for model in (one, other):
        model.partial_fit(*((X[150:],) if name == "mixture" else (X[150:], y[150:])))
    same(one, other, 0)
    again = one.fit(X[:150], y[:150])  # fit begins anew
    np.testing.assert_allclose(again.statistics_.counts.sum(), 150, rtol=1e-9)


@every_model
def test_a_loaded_model_goes_on_as_the_saved_one(mixed, same, name, tmp_path):
    X, y = mixed()
    rest = (X[150:],) if name == "mixture" else (X[150:], y[150:])
    model = models()[name].fit(X[:150], y[:150])
    mixent.save(model, tmp_path / "m.mixent")
    again = mixent.load(tmp_path / "m.mixent").partial_fit(*rest)
    same(again, model.partial_fit(*rest), 0)
    np.testing.assert_array_equal(again.statistics_.counts, model.statistics_.counts)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    "estimator", [MixtureClassifier(2, random_state=0), SharedMixtureClassifier(4, random_state=0)]
)
def test_rows_without_a_label_and_uncertain_ones_join_later(mixed, estimator):
    X, y = mixed()
    model = estimator.fit(X[:100], y[:100])
    some = np.where(np.arange(70) % 3 > 0, y[100:170], None)
    model.partial_fit(X[100:170], some)
    assert_never_falls(model.run_, 70)
    assert model.statistics_.counts.sum() == pytest.approx(170, rel=1e-9)
    soft = np.full((70, 3), 0.1)
    soft[np.arange(70), np.searchsorted(model.classes_, y[170:])] = 0.8
    model.partial_fit(X[170:], pd.DataFrame(soft, columns=["a", "b", "c"]))
    assert_never_falls(model.run_, 70)
    assert model.statistics_.counts.sum() == pytest.approx(240, rel=1e-9)
    assert model.score(X, y) > 0.7


# --- the door --------------------------------------------------------------------------------------------------------


def test_a_class_not_seen_at_first_is_learned_later_where_components_are_shared(draw):
    X, y = draw(gap=4.0)
    early = y < 2
    model = SharedMixtureClassifier(3, "VVV", random_state=0).partial_fit(X[early], y[early], classes=[2, 0, 1])
    assert model.classes_.tolist() == [0, 1, 2]
    proba = model.predict_proba(X)
    assert np.isfinite(proba).all() and (proba[early, 2] < 1e-3).all()
    model.partial_fit(X, y)
    assert model.score(X, y) > 0.9
    np.testing.assert_allclose(
        model.class_prior_, (np.bincount(y[early], minlength=3) + np.bincount(y)) / (early.sum() + len(y)), rtol=1e-9
    )


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
@pytest.mark.parametrize("estimator", [GaussianMixture(2), MixtureClassifier(1), SharedMixtureClassifier(2)])
def test_a_column_constant_at_first_stays_out(draw, estimator):
    """The first batch settles which columns take part; a later value elsewhere is no error."""
    X, y = draw()
    X[:100, 1] = 4.0
    model = estimator.set_params(random_state=0)
    for part in (slice(0, 100), slice(100, 240)):
        model.partial_fit(*((X[part],) if isinstance(model, GaussianMixture) else (X[part], y[part])))
    assert model.varying_.tolist() == [0, 2]
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("estimator", [MixtureClassifier(2, "VVI"), SharedMixtureClassifier(4, "VVI")])
def test_a_batch_without_any_label_is_learned_from_too(draw, estimator):
    X, label = draw()
    model = estimator.partial_fit(X[:150], label[:150])
    past, before = model.statistics_.counts.sum(), model.score_samples(X[150:]).mean()
    model.partial_fit(X[150:], [None] * (len(X) - 150))
    assert model.statistics_.counts.sum() == pytest.approx(past + len(X) - 150)
    assert model.score_samples(X[150:]).mean() > before


def test_priors_adjusted_to_a_batch_are_where_partial_fit_goes_on_from(draw):
    X, label = draw()
    for prior in ("empirical", [0.2, 0.3, 0.5]):
        model = MixtureClassifier(1, class_prior=prior).fit(X, label)
        moved = model.adjust_priors(X[label == 0])
        n = moved.statistics_.counts.sum()
        np.testing.assert_allclose(moved.statistics_.counts.sum(axis=1) / n, moved.class_prior_, rtol=1e-9)
        assert n == pytest.approx(len(X))
        moved.partial_fit(X[:1], label[:1], sample_weight=[1e-9])
        again = model.adjust_priors(X[label == 0]).class_prior_
        np.testing.assert_allclose(moved.class_prior_, again, rtol=1e-6, atol=1e-10)  # a row of weight 1e-9


def test_rows_are_kept_as_blurred_as_they_were_learned(draw, monkeypatch):
    X, label = draw()
    noisy = Candidate((1, 1, 1), ("VVV",) * 3, False, 5.0, noise=0.3)
    monkeypatch.setattr(MixtureClassifier, "_candidate", lambda self, classes, plan: noisy)
    model = MixtureClassifier(1).fit(X, label)
    before = model.covariances_
    model.partial_fit(X[:3], label[:3], sample_weight=np.full(3, 1e-9))
    np.testing.assert_allclose(model.covariances_, before, rtol=1e-6)
