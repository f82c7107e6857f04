"""From the likelihood solution to one trained for its posterior: the anchor, early stopping, options."""

import copy
import re
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone

from mixent import MixtureClassifier, SharedMixtureClassifier
from mixent.core.driver import Status, rounding
from mixent.core.executors import Serial
from mixent.data import read_features, read_labels
from mixent.mixtures import training
from mixent.mixtures.chart import MixtureChart
from mixent.mixtures.discriminative import ConditionalLikelihood, SmoothedError
from mixent.mixtures.fitting import Fitted
from mixent.mixtures.model import varying_columns
from mixent.mixtures.training import TrainingPlan, TrainingStart, anchored, tempered, train, training_plan
from mixent.options import Conditional, MinimumError

NAMES = ("EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV")
every_structure = pytest.mark.parametrize("name", NAMES)
TRAINED = [
    ("conditional", {}),
    ("conditional", {"training__blend": 0.5}),
    ("error", {}),
    ("error", {"training__sharpness": 3.0}),
]


def overlapping(n=120, seed=0, missing=0.0, codes=False):
    """Three classes of two clusters each, hardly apart."""
    rng = np.random.default_rng(seed)
    member = rng.integers(6, size=n)
    X = 1.5 * rng.normal(size=(6, 3))[member] + rng.normal(size=(n, 3)) * [1.0, 0.6, 1.4]
    X[rng.random(X.shape) < missing] = np.nan
    y = np.array(["a", "b", "c"])[member % 3]
    if not codes:
        return X, y
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    frame["kind"] = np.where(rng.random(n) < 0.6, np.array(["x", "y"])[member % 2], "z")
    frame.loc[rng.random(n) < missing, "kind"] = None
    return frame, y


def plan_of(est, X, y, weight=None):
    """The plan of a fit."""
    table = read_features(est, X, reset=True, categorical=est.categorical)
    labels = read_labels(y, table.n_rows)
    return est._make_plan(table, varying_columns(table.X, weight)[0], labels, weight), labels


def start_of(est, X, y):
    """A plan and its maximum likelihood solution."""
    plan, labels = plan_of(est, X, y)
    shared = isinstance(est, SharedMixtureClassifier)
    candidate = est._candidate(plan) if shared else est._candidate(labels.classes, plan)
    return plan, plan.fit(candidate)[0]


def total_of(problem, source, params):
    with Serial() as workers:
        return workers.total(partial(problem.stats, problem.prepare(params)), source)


def accepted(model):
    return np.array([s.objective for s in model.run_.trace if s.accepted])


# --- the anchor ------------------------------------------------------------------------------------------------------


def pay(there, here, rows):
    """rows x KL(there || here) over all components and tables, and K rows x KL of the weights, written out."""
    a, b = there.components, here.components
    K, total = there.n_components, 0.0
    for m, C, n, D in zip(a.gaussian.means, a.gaussian.full_covs(), b.gaussian.means, b.gaussian.full_covs()):
        away = n - m
        log_det = np.linalg.slogdet(D)[1] - np.linalg.slogdet(C)[1]
        total += 0.5 * (np.trace(np.linalg.solve(D, C)) - len(m) + log_det + away @ np.linalg.solve(D, away))
    if a.categorical is not None:
        p, q = a.categorical.log_probs, b.categorical.log_probs
        total += (np.exp(p) * (p - q)).sum()
    used = there.weights > 0
    total += K * (there.weights[used] * np.log(there.weights[used] / here.weights[used])).sum()
    return rows * total


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", [MixtureClassifier, SharedMixtureClassifier])
@every_structure
def test_the_anchor_pays_for_leaving_the_start_by_divergence(name, estimator):
    X, y = overlapping(missing=0.1, codes=True)
    est = estimator(6 if estimator is SharedMixtureClassifier else 2, name, random_state=0, max_iter=20)
    plan, start = start_of(est, X, y)
    problem = anchored(plan, start, TrainingPlan(ConditionalLikelihood(1.0), 7.0, "ebw", None))
    begun = TrainingStart(problem, start.problem, start.params)
    source = plan.source(problem.family, 6)
    data = total_of(problem, source, start.params).log_lik
    objective = problem.objective(start.params, total_of(problem, source, start.params))
    assert begun.relative(objective) == pytest.approx(data)
    assert begun.relative(problem.log_prior(start.params)) == 0.0
    rng = np.random.default_rng(0)
    chart = MixtureChart(problem, start.params)
    for _ in range(3):
        vector = chart.vector(start.params)
        other = chart.params(vector + 0.3 * rng.normal(size=len(vector)))
        paid = problem.log_prior(start.params) - problem.log_prior(other)
        assert paid == pytest.approx(pay(start.params, other, 7.0), rel=1e-9) and paid > 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("held", [False, True], ids=["learned", "held"])
@every_structure
def test_the_anchor_pulls_nowhere_at_the_start(name, held):
    """Its gradient is zero there, so all that moves the start is what training adds."""
    X, y = overlapping(codes=True)
    prior = [0.2, 0.3, 0.5] if held else "empirical"
    plan, start = start_of(SharedMixtureClassifier(4, name, class_prior=prior, random_state=0, max_iter=8), X, y)
    problem = anchored(plan, start, TrainingPlan(ConditionalLikelihood(0.0), 50.0, "ebw", None))
    plain = replace(problem, family=start.problem.family, weight_rows=None)
    total = total_of(problem, plan.source(problem.family, 4), start.params)
    gradients = [MixtureChart(p, start.params).gradient(start.params, total) for p in (problem, plain)]
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-9, atol=1e-9 * np.abs(gradients[1]).max() + 1e-8)


def test_pseudo_rows_by_default_are_between_the_columns_and_the_parameters_of_a_component():
    X, y = overlapping()
    plan, start = start_of(MixtureClassifier(1, "VVV"), X, y)
    problem = anchored(plan, start, TrainingPlan(ConditionalLikelihood(1.0), None, "ebw", None))
    rows = np.sqrt(5.0 * 9.0)  # 3 columns + 2; 3 means, 3 variances, 3 covariances
    np.testing.assert_allclose(problem.family.gaussian.prior.rows, rows, rtol=1e-12)
    assert problem.weight_rows.sum() == pytest.approx(3 * rows)
    half = anchored(plan, start, TrainingPlan(ConditionalLikelihood(0.5), 2.0, "ebw", None))
    np.testing.assert_allclose(half.family.gaussian.prior.rows, 2.0 + 0.5 * start.problem.family.gaussian.prior.rows)


def test_how_much_of_the_prior_stays():
    assert TrainingPlan(ConditionalLikelihood(0.3), None, "ebw", None).prior_share == pytest.approx(0.7)
    assert TrainingPlan(ConditionalLikelihood(1.0), None, "ebw", None).prior_share == 0.0
    assert TrainingPlan(SmoothedError(2.0), None, "ebw", None).prior_share == 0.0


@pytest.mark.parametrize("solver", ["ebw", "lbfgs"])
@pytest.mark.parametrize("name", ["EII", "VVI", "EEE", "EVE", "VVV"])
def test_at_blend_zero_the_likelihood_solution_stays(name, solver):
    X, y = overlapping(missing=0.1, codes=True)
    options = {"tol": 1e-12, "max_iter": 5000, "random_state": 0}
    plain = MixtureClassifier(2, name).set_params(**options).fit(X, y)
    other = MixtureClassifier(2, name, training=Conditional(0.0, solver=solver)).set_params(**options).fit(X, y)
    assert other.n_iter_ <= 25 and other.run_.status is Status.CONVERGED
    np.testing.assert_allclose(other.means_, plain.means_, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(other.predict_proba(X), plain.predict_proba(X), atol=1e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("objective", "options"), TRAINED)
@pytest.mark.parametrize("name", ["VII", "VVI", "EEE", "VVV"])
def test_separable_rows_are_learned_without_end_or_overflow(name, objective, options):
    """The conditional likelihood has no maximum there; with the anchor it has one, and training finds it."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 40)
    X = rng.normal(size=(80, 2)) + 30.0 * y[:, None]
    for estimator in (MixtureClassifier(1, name), SharedMixtureClassifier(3, name)):
        model = estimator.set_params(training=objective, random_state=0, **options).fit(X, y)
        assert model.run_.status is Status.CONVERGED, model.run_.message
        assert np.isfinite(model.means_).all() and np.isfinite(model.run_.objective)
        assert (np.linalg.eigvalsh(model.covariances_) > 0).all()
        assert model.score(X, y) == 1.0
        assert np.abs(model.means_).max() < 100


@pytest.mark.parametrize(("objective", "options"), TRAINED)
@pytest.mark.parametrize("name", ["VVI", "EEE"])
def test_the_stronger_the_anchor_the_nearer_the_start(name, objective, options):
    X, y = overlapping(seed=1)
    common = {"training": objective, "tol": 1e-8, "max_iter": 3000, "random_state": 0, **options}
    start = (
        MixtureClassifier(2, name, random_state=0).set_params(**{k: common[k] for k in ("tol", "max_iter")}).fit(X, y)
    )
    away = []
    for rows in (3.0, 100.0, 1e4):
        model = MixtureClassifier(2, name).set_params(**common, training__anchor=rows).fit(X, y)
        away.append(pay(start.params_, model.params_, 1.0))
    assert all(b < a for a, b in pairwise(away)), away
    assert away[-1] < 1e-4 < away[0]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", [MixtureClassifier(2), SharedMixtureClassifier(6)], ids=["per class", "shared"])
@pytest.mark.parametrize("solver", ["ebw", "lbfgs"])
@pytest.mark.parametrize(("objective", "options"), TRAINED)
def test_training_gives_more_of_what_it_is_for_on_its_rows(objective, options, solver, estimator):
    """The objective only rises and the anchor only costs: at blend = 1 what is left cannot fall."""
    X, y = overlapping(missing=0.1, codes=True)
    weight = np.random.default_rng(2).exponential(size=len(y))
    estimator = clone(estimator).set_params(covariance="VEV", random_state=0, max_iter=60)
    plain = clone(estimator).fit(X, y, sample_weight=weight)
    model = estimator.set_params(training=objective, training__solver=solver, **options).fit(X, y, sample_weight=weight)
    values = accepted(model)
    assert (np.diff(values) >= -rounding(np.abs(values).max(), weight.sum())).all() and values[-1] > values[0]
    rows, column = np.arange(len(y)), np.searchsorted(plain.classes_, y)
    log_p = [m.predict_log_proba(X)[rows, column] for m in (plain, model)]
    if objective == "error":
        before, after = (-weight @ (1 / (1 + np.expm1(-p) ** -options.get("training__sharpness", 1.0))) for p in log_p)
    elif not options:
        before, after = (weight @ p for p in log_p)
    elif isinstance(model, SharedMixtureClassifier):
        return  # each start has a prior of its own
    else:  # a - b / 2 = (log p(label, x) + log p(label | x)) / 2, and half the prior
        before, after = (
            0.5 * (weight @ (m._log_joint(X)[rows, column] + p) + plain.problem_.log_prior(m.params_))
            for m, p in zip((plain, model), log_p)
        )
    assert after > before


# --- early stopping --------------------------------------------------------------------------------------------------


def noisy(n=120, seed=0):
    """Long tails, and classes no two Gaussians tell apart: something to learn, and more to learn by heart."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) ** 3
    y = (X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=n) > 0).astype(int)
    return X, y


WEAK = {"training": "conditional", "training__anchor": 0.3, "random_state": 0, "tol": 1e-9}


@pytest.mark.parametrize("solver", ["ebw", "lbfgs"])
@pytest.mark.parametrize("estimator", [MixtureClassifier(2), SharedMixtureClassifier(4)], ids=["per class", "shared"])
def test_stopping_early_is_the_same_every_time_and_says_so(estimator, solver):
    X, y = noisy(seed=2)
    estimator = estimator.set_params(
        covariance="VVV", training__solver=solver, max_iter=300, training__validation=0.25, **WEAK
    )
    model = estimator.fit(X, y)
    one, proba, passes = model.run_, model.predict_proba(X), model.n_iter_
    assert one.status is Status.STOPPED
    assert "held-out rows" in one.message
    assert 1 < passes == int(re.search(r"\d+", one.message)[0]) < 300
    again = estimator.fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), proba)
    other = estimator.set_params(random_state=5).fit(X, y)
    assert not np.array_equal(other.predict_proba(X), proba)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["ebw", "lbfgs"])
@pytest.mark.parametrize("max_iter", [1, 2, 5, 12])
def test_no_more_passes_than_asked_for(max_iter, solver):
    X, y = noisy()
    for validation in (None, 0.2):
        est = SharedMixtureClassifier(4, "VVI", max_iter=max_iter)
        est.set_params(training__solver=solver, training__validation=validation, **WEAK)
        assert est.fit(X, y).n_iter_ <= max_iter


def test_the_share_held_out_is_that_of_every_class_and_of_labelled_rows_only():
    X, _ = noisy(200)
    y = np.repeat(["a", "b", "c"], [100, 60, 40]).astype(object)
    y[::5] = None
    plan, _ = plan_of(MixtureClassifier(1), X, y)
    held = training._held_out(plan, 0.25)
    assert not held[::5].any()
    assert [int(held[y == c].sum()) for c in "abc"] == [20, 12, 8]
    np.testing.assert_array_equal(held, training._held_out(plan, 0.25))
    assert (training._held_out(plan, 0.5).sum(), training._held_out(plan, 0.1).sum()) == (80, 16)


def test_held_out_rows_are_not_trained_on_while_counting_passes(monkeypatch):
    X, y = noisy()
    sizes = []
    solve = training._optimize
    monkeypatch.setattr(
        training, "_optimize", lambda plan, *args: sizes.append(plan.table.n_rows) or solve(plan, *args)
    )
    MixtureClassifier(1, "VVV").set_params(training__validation=0.25, **WEAK).fit(X, y)
    held = sum(round(0.25 * n) for n in np.bincount(y))
    assert sizes == [120 - held, 120]


def test_the_passes_are_those_after_which_held_out_rows_score_best():
    X, y = noisy()
    plan, _ = plan_of(MixtureClassifier(2, "VVV", max_iter=200).set_params(**WEAK), X, y)
    est = plan.est
    held = training._held_out(plan, 0.3)
    part, rest = plan.take(np.flatnonzero(~held)), plan.take(np.flatnonzero(held))
    candidate = est._candidate(plan.classes, plan)
    settings = replace(training_plan(est._group("training")), validation=0.3)
    passes = training._passes_until_best(plan, lambda j: [j.fit(candidate)[0]], settings)
    start = part.fit(candidate)[0]
    begun = TrainingStart(anchored(part, start, settings), start.problem, start.params)
    scores = {}

    def score(event):
        params = event.params
        scores[event.n_pass] = total_of(begun.problem, rest.source(begun.problem.family, 4), params).log_lik

    training._solve(part, begun, settings, 200, [score])
    seen = {n: s for n, s in scores.items() if n <= passes + training.PATIENCE}
    assert passes == max(seen, key=seen.get)
    assert seen[passes] > seen[0] and min(seen) == 0


# --- options ---------------------------------------------------------------------------------------------------------


def test_options_training_accepts():
    assert training_plan(MixtureClassifier()._group("training")) is None
    settings = training_plan(Conditional(np.float64(0.5), anchor=3, solver="lbfgs"))
    assert settings == TrainingPlan(ConditionalLikelihood(0.5), 3.0, "lbfgs", None)
    assert training_plan(MinimumError(2, validation=np.float32(0.5))) == TrainingPlan(
        SmoothedError(2.0), None, "ebw", 0.5
    )


# --- where training starts -------------------------------------------------------------------------------------------


def test_softening_is_a_power_of_each_density():
    X, y = overlapping()
    _, start = start_of(MixtureClassifier(1, "VVV"), X, y)
    gaussian = tempered(start, 0.4).params.components.gaussian
    before = start.params.components.gaussian
    for k in range(3):
        soft = multivariate_normal.logpdf(X, gaussian.means[k], gaussian.covs[k])
        power = 0.4 * multivariate_normal.logpdf(X, before.means[k], before.covs[k])
        np.testing.assert_allclose(soft - power, (soft - power)[0], rtol=1e-9)
    assert tempered(start, 1.0) is start


def test_the_temperature_of_a_search_goes_into_the_covariances():
    X, y = overlapping(150, seed=2)
    options = {"covariance": ["VVV"], "search__max_components": 2, "search__cv": 3, "random_state": 0}
    plain = MixtureClassifier("auto").set_params(**options).fit(X, y)
    assert plain.temperature_ != 1.0
    model = MixtureClassifier("auto", training=Conditional(anchor=1e6)).set_params(**options).fit(X, y)
    assert model.temperature_ == 1.0
    np.testing.assert_allclose(model.covariances_, plain.covariances_ / plain.temperature_, rtol=1e-2)
    joint = model.problem_.log_joint  # what predicts is the mixture itself
    table = model._read(X)
    np.testing.assert_array_equal(model._log_joint(X), model._each(table, joint, 3))


def test_what_is_lent_to_other_components_leaves_classes_and_components_alone():
    W = np.array([[0.3, 0.2, 0.0, 0.0], [0.0, 0.0, 0.4, 0.1]])
    smoothed_weights = training.smoothed_weights(W)
    assert (smoothed_weights > 0).all()
    np.testing.assert_allclose(smoothed_weights.sum(axis=1), W.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(smoothed_weights.sum(axis=0), W.sum(axis=0), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_better_of_two_starts_goes_on():
    """Likelihood alone finds groups that say nothing of the classes; components learned apart do."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=300)
    X = np.column_stack([8.0 * rng.integers(2, size=300) + rng.normal(size=300), 1.5 * y + rng.normal(size=300)])
    plain = SharedMixtureClassifier(2, "VVI", n_init=2, random_state=0).fit(X, y)
    model = SharedMixtureClassifier(2, "VVI", training="conditional", random_state=0).fit(X, y)
    assert plain.score(X, y) < 0.6 < 0.72 < model.score(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["ebw", "lbfgs"])
def test_progress_is_shown_of_the_training(solver):
    X, y = noisy()
    seen = []
    MixtureClassifier(
        1, training=MinimumError(solver=solver), max_iter=30, progress=lambda *line: seen.append(line), random_state=0
    ).fit(X, y)
    assert seen and all(total == 30 for _, total, _ in seen)


@pytest.mark.parametrize("objective", ["conditional", "error"])
def test_rows_without_a_label_say_nothing_and_slow_nothing_down(objective):
    rng = np.random.default_rng(3)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 3)) + y[:, None]
    more = np.vstack([X, rng.normal(size=(600, 3)) + 0.5])
    labels = np.concatenate([y.astype(object), np.full(600, None)])
    est = MixtureClassifier(2, "VVI", training=objective, random_state=0)
    plan, found = start_of(est, X, y)
    whole, _ = plan_of(est, more, labels)
    whole.__dict__["summary"] = plan.summary
    training = training_plan(est._group("training"))
    alone = train(plan, lambda part: [found], training)
    among = train(whole, lambda part: [found], training)
    assert among.run.n_passes == alone.run.n_passes
    np.testing.assert_allclose(among.params.weights, alone.params.weights, rtol=1e-9)


def test_softened_is_the_density_to_the_power_t():
    rng = np.random.default_rng(4)
    y = np.arange(120) % 2
    X = rng.normal(size=(120, 2)) * (1 + 2 * y[:, None]) + y[:, None]
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": np.where(rng.random(120) < 0.3 + 0.4 * y, "p", "q")})
    model = MixtureClassifier(1, random_state=0).fit(frame, y)
    soft = tempered(Fitted(model.problem_, model.params_, model.run_), 0.4)
    cooled = copy.copy(model)
    cooled.params_, cooled.class_prior_ = soft.params, soft.params.weights.sum(axis=1)
    model.temperature_ = 0.4
    np.testing.assert_allclose(cooled.predict_proba(frame), model.predict_proba(frame), rtol=1e-9)
