"""Crowds: the objective never falls, orders do not matter, limits are known models, and evidence finds the model."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from mixent.core.blocks import Whole
from mixent.core.driver import Stop, run
from mixent.core.executors import Serial
from mixent.core.proposals import Delayed, Squarem
from mixent.fusion import Calibration, Fuser, long_answers
from mixent.fusion.answers import read_answers
from mixent.fusion.batch import Batch
from mixent.fusion.crowd_models import MODELS, Crowd, candidates
from mixent.fusion.crowds import choose
from mixent.fusion.held_out import FOLDS, Folds
from mixent.fusion.rules import DawidSkene, DawidSkeneParams, ItemAnswers
from mixent.fusion.sources import Layout
from mixent.fusion.workers import Events, Hierarchical, assumed_rates

LABELS = np.array(["a", "b", "c"])


def votes_of(kind, seed=0, n=150, J=24, n_labels=6):
    """Answers (n, J) of a simulated crowd, None where a worker did not answer, and the classes of the items."""
    rng = np.random.default_rng(seed)
    K = len(LABELS)
    truth = rng.choice(K, n, p=[0.5, 0.3, 0.2])
    rates = np.empty((J, K, K))
    accuracy = {"equal": np.full(J, 0.65), "one-coin": rng.uniform(0.35, 0.95, J)}.get(kind)
    if accuracy is None:
        common = np.array([[0.6, 0.35, 0.05], [0.05, 0.6, 0.35], [0.35, 0.05, 0.6]])
        rates[:] = [[rng.dirichlet(8 * row) for row in common] for _ in range(J)]
    else:
        rates[:] = ((1 - accuracy) / (K - 1))[:, None, None]
        rates[:, np.arange(K), np.arange(K)] = accuracy[:, None]
    votes = np.full((n, J), None, dtype=object)
    for i in range(n):
        for j in rng.choice(J, n_labels, replace=False):
            votes[i, j] = LABELS[rng.choice(K, p=rates[j, truth[i]])]
    return votes, LABELS[truth]


def table(votes):
    return {f"w{j:02d}": votes[:, j] for j in range(votes.shape[1])}


def crowd_of(votes, weight=None, labels=None):
    layout = Layout.of({name: Calibration.guess(LABELS.tolist()) for name in table(votes)})
    batch = Batch.of(layout, read_answers(layout, table(votes)), weight, labels)
    answers = ItemAnswers(batch.matrix, batch.weight, batch.labels)
    return Crowd(layout, answers, layout.counts, np.full(3, 1 / 3), 3000, 1e-9)


def problem_of(crowd, events, strength=None, **more):
    assumed = assumed_rates(events, crowd.layout.confusion)
    return Hierarchical(crowd.answers, events, crowd.given, assumed, crowd.share, strength, **more)


def fitted(crowd, problem, propose=None, tol=1e-11):
    source, start = Whole(crowd.answers.weight), problem.start(crowd.prior)
    return run(problem, source, start, stop=Stop(tol, 5000), executor=Serial(), propose=propose)


def events_of(kind, layout):
    return Events.full(layout) if kind == "full" else Events.one_coin(layout)


@pytest.mark.parametrize("strength", [None, 3.0, np.inf])
@pytest.mark.parametrize("kind", ["full", "one-coin"])
def test_the_objective_never_falls(kind, strength):
    crowd = crowd_of(votes_of("hierarchical" if kind == "full" else kind)[0])
    problem = problem_of(crowd, events_of(kind, crowd.layout), strength)
    fit = fitted(crowd, problem)
    assert fit.status.ok and (np.diff(fit.objectives) >= -1e-9).all() and fit.n_passes > 5
    if strength is None:
        fast = fitted(crowd, problem, Delayed(Squarem(), 10))
        assert fast.status.ok and (np.diff(fast.objectives) >= -1e-9).all() and fast.n_passes < fit.n_passes
        assert fast.objective == pytest.approx(fit.objective, rel=1e-6)


def test_the_objective_with_labels_calibrations_and_copies_never_falls():
    votes, truth = votes_of("hierarchical", n=60, J=8, n_labels=4)
    labels = np.where(np.arange(60) < 10, np.searchsorted(LABELS, truth), -1)
    crowd = crowd_of(votes, labels=labels)
    tested = {f"w{j:02d}": Calibration.guess(LABELS.tolist()) for j in range(8)}
    tested["w00"] = Calibration.from_counts([[8, 1, 1], [1, 8, 1], [1, 1, 8]], LABELS.tolist())
    tested["w02"] = Calibration.from_counts(0.5 * np.eye(3) + 0.2, LABELS.tolist(), smoothing=0.0, copy_of="w01")
    layout = Layout.of(tested)
    crowd = replace(crowd, layout=layout, counts=layout.counts)
    assert (crowd.given[layout.slices[0]] > 0).all() and not crowd.given[layout.slices[1]].any()
    assert crowd.share[layout.slices[2]].tolist() == [0.5] * 3
    fit = fitted(crowd, problem_of(crowd, Events.full(layout)))
    assert fit.status.ok and (np.diff(fit.objectives) >= -1e-9).all()


def test_without_shrinkage_it_is_the_model_of_dawid_and_skene():
    votes, _ = votes_of("hierarchical", n_labels=12)
    crowd = crowd_of(votes)
    heavy = replace(crowd, answers=replace(crowd.answers, weight=1e7 * crowd.answers.weight))
    problem = problem_of(heavy, Events.full(crowd.layout), 1e-3)  # against 1e7 items, this is nothing
    ours = fitted(heavy, problem, tol=1e-12)
    theirs = DawidSkene(heavy.answers, np.full_like(crowd.counts, 1e-3), crowd.layout.group)
    start = DawidSkeneParams(crowd.prior, problem.rates(problem.start(crowd.prior)))
    other = run(theirs, Whole(heavy.answers.weight), start, stop=Stop(1e-12, 5000), executor=Serial())
    np.testing.assert_allclose(ours.params.prior, other.params.prior, atol=1e-4)
    seen = heavy.answers.stats(*theirs.prepare(other.params)).counts > 1e-3 * 1e7
    np.testing.assert_allclose(problem.rates(ours.params)[seen], other.params.confusion[seen], atol=1e-3)


@pytest.mark.parametrize("kind", ["full", "one-coin"])
def test_with_infinite_shrinkage_all_workers_have_the_common_rates(kind):
    crowd = crowd_of(votes_of("hierarchical")[0])
    events = events_of(kind, crowd.layout)
    limit, strong = (problem_of(crowd, events, strength) for strength in (np.inf, 1e7))
    a, b = fitted(crowd, limit), fitted(crowd, strong)
    rates = limit.rates(a.params).reshape(crowd.layout.n_sources, 3, 3)
    np.testing.assert_allclose(rates, rates[:1].repeat(len(rates), axis=0), rtol=1e-12)
    np.testing.assert_allclose(strong.rates(b.params), limit.rates(a.params), atol=1e-4)
    np.testing.assert_allclose(rates.sum(axis=1), 1.0, rtol=1e-12)


def test_one_coin_rates_have_one_parameter_for_each_worker():
    crowd = crowd_of(votes_of("one-coin")[0])
    problem = problem_of(crowd, Events.one_coin(crowd.layout))
    rates = problem.rates(fitted(crowd, problem).params).reshape(-1, 3, 3)
    right = np.diagonal(rates, axis1=1, axis2=2)
    np.testing.assert_allclose(right, right[:, :1].repeat(3, axis=1), rtol=1e-12)
    wrong = rates[:, ~np.eye(3, dtype=bool)]
    np.testing.assert_allclose(wrong, ((1 - right[:, :1]) / 2).repeat(6, axis=1), rtol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_a_weight_of_two_is_the_item_twice(name):
    votes, _ = votes_of("hierarchical")
    once = MODELS[name](crowd_of(votes, weight=np.where(np.arange(150) < 50, 2.0, 1.0)))
    twice = MODELS[name](crowd_of(np.concatenate([votes, votes[:50]])))
    np.testing.assert_allclose(once.weights, twice.weights, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_sparse_statistics_are_the_dense_ones(name):
    crowd = crowd_of(votes_of("hierarchical")[0])
    model = MODELS[name](crowd)
    dense = crowd.answers.matrix.toarray()
    joint = dense @ model.weights + np.log(model.prior)
    np.testing.assert_allclose(crowd.answers.log_joint(model.weights, np.log(model.prior)), joint.T, rtol=1e-12)
    post = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None]) * crowd.answers.weight[:, None]
    total = crowd.answers.stats(model.weights, np.log(model.prior))
    np.testing.assert_allclose(total.counts, dense.T @ post, atol=1e-10)
    np.testing.assert_allclose(total.classes, post.sum(axis=0), rtol=1e-12)


@pytest.mark.parametrize("n_labels", [2, 20])  # below and above the density at which sparse products begin
def test_a_batch_computes_the_same_with_sparse_and_dense_products(n_labels):
    votes, _ = votes_of("one-coin", n_labels=n_labels)
    layout = Layout.of({name: Calibration.guess(LABELS.tolist()) for name in table(votes)})
    batch = Batch.of(layout, read_answers(layout, table(votes)))
    assert batch.is_sparse == (n_labels == 2)
    other = replace(batch)
    other.__dict__["is_sparse"] = not batch.is_sparse
    rng = np.random.default_rng(0)
    weights, columns = rng.normal(size=(layout.n_symbols, 3)), rng.normal(size=(4, batch.n_patterns))
    trust = rng.random(layout.n_sources)
    np.testing.assert_allclose(batch.logits(weights), other.logits(weights), atol=1e-12)
    np.testing.assert_allclose(batch.expected(columns), other.expected(columns), atol=1e-12)
    np.testing.assert_allclose(batch.product(trust), other.product(trust), atol=1e-12)
    np.testing.assert_allclose(batch.vote_totals(trust), other.vote_totals(trust), atol=1e-12)


@pytest.mark.parametrize("kind", ["one-coin", "hierarchical"])
def test_the_order_of_items_workers_and_classes_does_not_matter(kind):
    votes, _ = votes_of(kind, n=100)
    plain = Fuser().fit(table(votes))
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(len(votes)), rng.permutation(votes.shape[1])
    moved = Fuser().fit({f"w{j:02d}": votes[rows, j] for j in columns})
    assert moved.method_ == plain.method_
    np.testing.assert_allclose(moved.posterior_, plain.posterior_[rows], atol=1e-4)
    names = {"a": "z", "b": "y", "c": "x"}
    renamed = np.vectorize(lambda v: names.get(v), otypes=[object])(votes)
    np.testing.assert_allclose(Fuser().fit(table(renamed)).posterior_[:, ::-1], plain.posterior_, atol=1e-4)


@pytest.mark.parametrize("kind", ["equal", "one-coin", "hierarchical"])
def test_the_evidence_finds_the_model_that_the_answers_come_from(kind):
    found = [choose(replace(crowd_of(votes_of(kind, seed, 400, 40)[0]), tol=1e-6), list(MODELS)) for seed in range(3)]
    names = [choice.name for choice in found]
    gain = [max(c.evidence.values()) - c.evidence[kind] for c in found]
    assert names.count(kind) >= 2 and max(gain) < 2e-3  # nats per answer
    other = {"equal": "dawid-skene", "one-coin": "equal", "hierarchical": "one-coin"}[kind]
    assert all(c.evidence[kind] > c.evidence[other] for c in found)


def test_folds_hold_out_every_answer_once_and_spread_those_of_an_item():
    votes, _ = votes_of("one-coin")
    folds = Folds.of(crowd_of(votes))
    assert folds.value.sum() == sum(v is not None for v in votes.ravel())
    counts = np.zeros((len(folds.crowd.answers.weight), FOLDS))
    np.add.at(counts, (folds.row, folds.fold), 1)
    assert counts.max() == 2 and counts.min() == 1  # six answers in five folds
    share = np.bincount(folds.fold) / len(folds.fold)
    assert np.abs(share - 1 / FOLDS).max() < 0.05
    by_worker = np.zeros((24, FOLDS))
    np.add.at(by_worker, (folds.crowd.layout.source_of[folds.column], folds.fold), 1)
    assert by_worker.min() > 0  # no worker is left out of the training as a whole


def test_repeated_items_have_different_folds():
    answers = np.tile(np.array([["a", "a", "b"]], dtype=object), (50, 1))
    folds = Folds.of(crowd_of(answers))
    assert folds.crowd.answers.weight.tolist() == [10.0] * FOLDS
    assert all(len(set(folds.fold[folds.column == c])) == FOLDS for c in set(folds.column.tolist()))


def test_a_single_source_is_returned_as_it_is():
    rng = np.random.default_rng(0)
    answers = rng.choice(["a", "b", "c"], 200, p=[0.7, 0.2, 0.1]).astype(object)
    answers[::7] = None
    for columns in ({"only": answers}, {"only": answers, "silent": [None] * 200}):
        fuser = Fuser().fit(columns)
        given = answers != np.array(None)
        assert (fuser.labels_[given] == answers[given]).all()
        np.testing.assert_allclose(fuser.posterior_[given].max(axis=1), 0.7, rtol=1e-9)


def test_posteriors_of_dependent_workers_are_calibrated_by_held_out_answers():
    """Half of the items look like another class to every worker to some degree, so that errors are dependent."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=600)
    looks = np.where(rng.random(600) < 0.5, rng.random(600), 0.0)
    apparent = np.where(rng.random((600, 30)) < looks[:, None], 1 - truth[:, None], truth[:, None])
    votes = np.where(rng.random((600, 30)) < 0.85, apparent, 1 - apparent)
    columns = {f"w{j}": votes[:, j] for j in range(30)}
    fuser, plain = Fuser().fit(columns), Fuser(method="dawid-skene").fit(columns)
    loss = [-np.log(np.clip(f.posterior_[np.arange(600), truth], 1e-6, 1)).mean() for f in (fuser, plain)]
    assert loss[0] < 0.6 * loss[1] and 0 < fuser.rule_.power < 0.7


def test_candidates_need_symbols_that_are_the_classes():
    guess = Calibration.guess(["a", "b"])
    assert candidates(Layout.of({"x": guess, "y": guess})) == list(MODELS)
    unsure = Calibration.from_counts([[2, 1, 1], [1, 2, 1]], ["a", "b"], ["a", "b", "unsure"])
    assert candidates(Layout.of({"x": guess, "y": unsure})) == ["dawid-skene", "hierarchical"]


def test_the_fitted_rule_of_a_crowd():
    votes, _ = votes_of("hierarchical")
    fuser = Fuser().fit(table(votes))
    np.testing.assert_allclose(fuser.predict_proba(table(votes)), fuser.posterior_, atol=1e-12)
    parts = fuser.explain(table(votes)).sum(axis=1)
    log_posterior = np.log(fuser.posterior_) - np.log(fuser.posterior_).mean(axis=1, keepdims=True)
    np.testing.assert_allclose(parts, log_posterior, atol=1e-9)
    silent = fuser.predict_proba({name: [None] for name in table(votes)})
    np.testing.assert_allclose(silent[0], fuser.prior_, atol=1e-12)
    before = fuser.prior_.copy()
    moved = fuser.update_prior(table(votes[fuser.labels_ == "a"]))
    assert moved.prior_[0] > before[0] and moved.rule_.power > 0
    np.testing.assert_allclose(
        moved.rule_.with_prior(before).posterior(fuser._batch), fuser.rule_.with_prior(before).posterior(fuser._batch)
    )


def test_long_and_wide_tables_are_read_alike():
    votes, _ = votes_of("one-coin", n=60, n_labels=2)
    rows = [(i, f"w{j:02d}", votes[i, j]) for i, j in zip(*np.nonzero(votes != np.array(None)))]
    answers = long_answers(pd.DataFrame(rows, columns=["item", "source", "value"]))
    wide = pd.DataFrame({name: votes[answers.items.astype(int), j] for j, name in enumerate(table(votes))})
    a, b = Fuser().fit(answers), Fuser().fit(wide[list(answers.values)])
    np.testing.assert_array_equal(a.posterior_, b.posterior_)


def test_a_held_out_label_is_predicted_from_the_answers_of_its_item():
    votes, truth = votes_of("one-coin")
    labels = np.where(np.arange(150) < 40, np.searchsorted(LABELS, truth), -1)
    crowd = crowd_of(votes, labels=labels)
    folds = Folds.of(crowd)
    hidden = np.concatenate([labelled for _, _, labelled in folds.tested])
    assert sorted(hidden.tolist()) == np.flatnonzero(folds.crowd.answers.labels >= 0).tolist()
    for train, test, labelled in folds.tested:
        assert (train.labels[labelled] == -1).all() and (train.labels >= 0).sum() == 40 - len(labelled)
        assert train.matrix.nnz + len(test) == crowd.answers.matrix.nnz
    held_out = folds.held_out(MODELS["one-coin"])
    assert held_out.rates.shape[1] == crowd.answers.matrix.nnz + 40
    of_label = np.isin(held_out.rates, (0.0, 1.0)).all(axis=0)
    assert of_label.sum() == 40 and np.exp(held_out.log_prob(1.0)[of_label]).mean() > 0.6


def test_labels_of_some_items_do_not_make_the_others_worse():
    votes, truth = votes_of("hierarchical", n=300)
    gold = np.where(np.arange(300) < 60, truth, None)
    plain, helped = Fuser().fit(table(votes)), Fuser().fit(table(votes), gold)
    right = [(fit.labels_[60:] == truth[60:]).mean() for fit in (plain, helped)]
    assert right[1] >= right[0] - 0.005
    assert (helped.labels_[:60] == truth[:60]).all() and helped.method_ in MODELS


def test_pairs_of_very_many_workers_without_calibrations_are_not_tested():
    few, many = (Fuser().fit(table(votes_of("one-coin", J=J, n_labels=12)[0])).dependence_ for J in (24, 80))
    assert np.isfinite(few.z).any() and few.n_effective <= 24
    assert np.isnan(many.z).all() and many.n_effective == 80.0 and many.overall_z == 0.0
    np.testing.assert_array_equal(many.correlation, np.eye(80))


@pytest.mark.parametrize("name", MODELS)
def test_declared_copies_change_nothing_and_are_held_out_together(name):
    votes, _ = votes_of("hierarchical", J=10)
    plain = crowd_of(votes)
    guess = Calibration.guess(LABELS.tolist())
    columns = {**table(votes), "copy": votes[:, 3]}
    layout = Layout.of({**dict.fromkeys(table(votes), guess), "copy": replace(guess, copy_of="w03")})
    batch = Batch.of(layout, read_answers(layout, columns))
    without = Batch.of(plain.layout, read_answers(plain.layout, table(votes)))
    answers = ItemAnswers(batch.matrix, batch.weight, batch.labels)
    crowd = replace(plain, layout=layout, answers=answers, counts=layout.counts)
    joint = [c.answers.log_joint(m.weights, np.log(m.prior)).T for c in (plain, crowd) for m in [MODELS[name](c)]]
    np.testing.assert_allclose(batch.items(joint[1]), without.items(joint[0]), atol=1e-3)
    folds = Folds.of(crowd)
    source = layout.source_of[folds.column]
    both = [dict(zip(folds.row[source == j], folds.fold[source == j])) for j in (3, 10)]
    assert both[0] == both[1] and len(both[0]) > 20
