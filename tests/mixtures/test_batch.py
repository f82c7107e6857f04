"""Mixtures fitted together are the mixtures fitted one at a time."""

from dataclasses import replace

import numpy as np
import pytest

from mixent import MixtureClassifier, SharedMixtureClassifier
from mixent.base.bounded_loss import UNIFORM_SHARE
from mixent.core.blocks import Block
from mixent.core.driver import Status, Stop, run
from mixent.core.executors import Serial
from mixent.data import read_features, read_labels
from mixent.mixtures import batch, fit_plan, search
from mixent.mixtures.batch import Batch, FoldPart
from mixent.mixtures.fit_plan import Candidate
from mixent.mixtures.predict import each_row
from mixent.mixtures.problem import MixtureParams

KINDS = ("complete", "missing", "weights", "unlabelled", "soft", "categories")


def table(kind, n=150, seed=0):
    """Rows of three classes: X, y and weights."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    code = rng.integers(3, size=n)
    X = rng.normal(size=(n, 4)) @ rng.normal(size=(4, 4)) + 2 * np.eye(4)[code]
    y, weight = np.array(list("abc"))[code].astype(object), None
    if kind == "missing":
        X[rng.random(X.shape) < 0.15] = np.nan
    if kind == "weights":
        weight = rng.exponential(size=n)
    if kind == "unlabelled":
        y[rng.random(n) < 0.2] = None
    if kind == "soft":
        y = pd.DataFrame(0.9 * np.eye(3)[code] + 0.1 / 3, columns=list("abc"))
    if kind == "categories":
        X = pd.DataFrame(X, columns=list("pqrs")).assign(
            kind=np.array(list("uvw"))[(code + rng.integers(2, size=n)) % 3]
        )
    return X, y, weight


def plan_of(model, kind):
    X, y, weight = table(kind)
    rows = read_features(model, X, reset=True)
    labels = read_labels(y, rows.n_rows)
    return model._make_plan(rows, np.arange(4), labels, weight)


def folds_of(plan):
    labelled = np.flatnonzero(plan.codes >= 0)
    parts = []
    for f in range(3):
        held = labelled[f::3]
        parts.append(FoldPart(plan, np.setdiff1d(np.arange(plan.table.n_rows), held), held))
    return parts


def candidates_of(shared):
    if shared:
        return [Candidate((4,), (name,), False, 6.0, shared=True) for name in ("VVV", "EEE")]
    plain = Candidate((2, 1, 2), ("VVV",) * 3, False, 6.0, target="classes")
    tied = replace(plain, structures=("EEE",) * 3, across=True)
    return [plain, replace(plain, prior_rows=30.0), replace(plain, target="clusters", noise=0.1), tied]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_has_the_densities_of_single_fits(monkeypatch, kind, shared):
    monkeypatch.setattr(batch, "RULE", Stop(0.0, 4))
    monkeypatch.setattr(batch, "SHARED_RULE", Stop(0.0, 4))
    model = SharedMixtureClassifier(random_state=0) if shared else MixtureClassifier(random_state=0)
    plan = plan_of(model, kind)
    parts, candidates = folds_of(plan), candidates_of(shared)
    together = Batch(plan, parts, candidates).held_out()
    for candidate in candidates:
        for part, (density, log_prior) in zip(parts, together[candidate]):
            start = part.plan.parts(candidate)[0]
            problem = part.plan.problem(candidate, start)
            params = part.plan._initial_params(problem, candidate, [start], Serial())[0]
            source = part.plan.source(problem.family, max(candidate.counts))
            alone = run(problem, source, params, stop=Stop(0.0, 4), executor=Serial()).params
            held = plan.table.take(part.held)
            gaussian = problem.family.gaussian
            clean = replace(problem, family=replace(problem.family, gaussian=replace(gaussian, noise=None)))
            expected = each_row(clean, alone, Block(held.X, held.codes), clean.log_joint, 3, 1)
            np.testing.assert_allclose(density + log_prior, expected, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_no_pass_of_a_batch_decreases_the_objective_of_a_mixture(kind):
    plan = plan_of(MixtureClassifier(random_state=0), kind)
    fits = Batch(plan, folds_of(plan), candidates_of(False))
    problem = fits._problem()
    source, before = plan.source(problem.family, 40), None

    def watch(event):
        nonlocal before
        each = problem.each(event.params, event.total)
        assert before is None or (each >= before - 1e-9 * np.abs(before)).all()
        before = each

    result = run(problem, source, fits._initial(problem.family), stop=Stop(0.0, 12), observers=[watch])
    assert result.status is Status.MAX_PASSES


def test_without_missing_values_one_m_step_is_the_maximum_of_one_component_per_class():
    plan = plan_of(MixtureClassifier(random_state=0), "complete")
    fits = Batch(plan, folds_of(plan), [Candidate((1, 1, 1), ("VVV",) * 3, False, 6.0, target="classes")])
    assert not fits._iterated
    problem = fits._problem()
    params = fits._initial(problem.family)
    source = plan.source(problem.family, 10)
    ready = problem.prepare(params)
    again = problem.update(params, Serial().total(lambda block: problem.stats(ready, block), source))
    np.testing.assert_allclose(again.weights, params.weights, rtol=1e-4)  # the start has a little extra weight
    np.testing.assert_allclose(again.components.gaussian.covs, params.components.gaussian.covs, rtol=1e-9)


def test_of_several_starts_the_one_with_the_highest_objective_is_used(monkeypatch):
    monkeypatch.setattr(batch, "SHARED_RULE", Stop(0.0, 5))
    plan = plan_of(SharedMixtureClassifier(random_state=0), "complete")
    parts, (candidate, _) = folds_of(plan), candidates_of(True)
    (both,) = Batch(plan, parts, [candidate], n_starts=2).held_out().values()
    for part, (density, log_prior) in zip(parts, both):
        starts = part.plan.parts(candidate, 2)
        problem = part.plan.problem(candidate, starts[0])
        params = part.plan._initial_params(problem, candidate, starts, Serial())
        source = part.plan.source(problem.family, 4)
        runs = [run(problem, source, p, stop=Stop(0.0, 5), executor=Serial()) for p in params]
        best: MixtureParams = max(runs, key=lambda r: r.objective).params
        held = plan.table.take(part.held)
        expected = each_row(problem, best, Block(held.X), problem.log_joint, 3, 1)
        np.testing.assert_allclose(density + log_prior, expected, atol=1e-8)


def test_one_component_per_class_is_fitted_to_all_rows(monkeypatch):
    """The initial partition has a sample of many rows; EM then uses all of them."""
    monkeypatch.setattr(fit_plan, "sample_rows", lambda rows, n_clusters, rng: rows[:10])
    plan = plan_of(MixtureClassifier(random_state=0), "complete")
    candidate = Candidate((1, 1, 1), ("VVV",) * 3, False, 6.0, target="classes")
    parts = folds_of(plan)
    for part, (_, log_prior) in zip(parts, Batch(plan, parts, [candidate]).held_out()[candidate]):
        shares = np.bincount(plan.codes[part.train]) / len(part.train)
        np.testing.assert_allclose(np.exp(log_prior), shares, rtol=1e-5)


@pytest.mark.parametrize("model", [MixtureClassifier, SharedMixtureClassifier])
def test_probabilities_of_a_search_have_a_share_of_the_uniform(model):
    X, y, _ = table("complete")
    fitted = model(random_state=0).fit(X, y)
    far = np.concatenate([X, [[1e3, -1e3, 1e3, -1e3]]])
    posterior = np.exp(fitted._log_posterior(far))
    assert fitted.uniform_share_ == UNIFORM_SHARE
    expected = (1 - UNIFORM_SHARE) * posterior + UNIFORM_SHARE / 3
    np.testing.assert_allclose(fitted.predict_proba(far), expected, rtol=1e-9)
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(far)), expected, rtol=1e-12)
    assert (fitted.predict(far) == fitted.classes_[posterior.argmax(axis=1)]).all()
    np.testing.assert_array_equal(fitted.decision_function(far), fitted._log_posterior(far))
    odds = fitted.explain(far[:5], label="a", rival="b").log_odds
    np.testing.assert_allclose(odds, np.log(posterior[:5, 0] / posterior[:5, 1]), rtol=1e-7, atol=1e-7)


def test_without_a_search_probabilities_are_those_of_the_model():
    X, y, _ = table("complete")
    fitted = MixtureClassifier(1, random_state=0).fit(X, y)
    assert fitted.uniform_share_ == 0.0
    np.testing.assert_array_equal(fitted.predict_log_proba(X), fitted._log_posterior(X))


def test_strengths_of_the_prior_are_compared_on_the_first_folds_with_weights():
    scores = object.__new__(search._Scores)
    scores.first_weight = np.array([3.0, 1.0])
    losses = {1.0: [0.1, 0.9], 5.0: [0.4, 0.4, 0.0, 0.0]}  # means of all rows: 0.5 and 0.2, of the first: 0.3 and 0.4
    common = {"covariance": "VVV", "noise": 0.0}
    scores.records = [
        common | {"prior_rows": rows, "row_losses": np.array(loss), "log_loss": np.mean(loss)}
        for rows, loss in losses.items()
    ]
    scores.records.append(scores.records[0] | {"prior_rows": 5.0, "noise": 0.1, "row_losses": np.zeros(2)})
    assert scores.best_rows("VVV", [1.0, 5.0]) == 1.0
