"""Baum-Welch: the objective never falls, and what the theory says is one and the same is."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone

from mixent import GaussianMixture, HiddenMarkovModel
from mixent.core.driver import Stop, run
from mixent.core.executors import Serial, Threads
from mixent.hmm.fitting import blocks_of
from mixent.mixtures.clustering import STRUCTURES
from mixent.options import HMMPrior

RAW = {"prior": HMMPrior(None, smoothing=0.0, transition_smoothing=0.0)}


def objectives(model):
    steps = [step for step in model.run_.trace if step.accepted]
    return np.array([step.objective for step in steps]), np.array([step.segment for step in steps])


def assert_never_falls(model):
    values, segment = objectives(model)
    assert len(values) > 2
    for s in np.unique(segment):
        gains = np.diff(values[segment == s])
        assert (gains >= -1e-9 * np.abs(values[segment == s][1:])).all()
    rejected = [step for step in model.run_.trace if not step.accepted and step.kind == "plain"]
    assert rejected == []


@pytest.mark.parametrize("covariance", STRUCTURES)
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_it_never_falls(sequences, covariance, missing):
    X, lengths, _ = sequences(1, missing=missing)
    weight = np.random.default_rng(0).random(len(lengths)) * 3
    model = HiddenMarkovModel(3, covariance, accelerate=False, tol=0, max_iter=15)
    with pytest.warns(UserWarning, match="max_iter"):
        model.fit(X, lengths=lengths, sample_weight=weight)
    assert_never_falls(model)


@pytest.mark.parametrize("options", [{}, RAW, {"topology": "left-right"}, {"transitions": "per_step"}], ids=str)
def test_it_never_falls_with_mixed_columns(mixed, options):
    table, lengths = mixed(2, missing=0.25, n=40)
    weight = np.random.default_rng(1).integers(0, 3, size=len(lengths))
    for accelerate in (False, True):
        model = HiddenMarkovModel(3, accelerate=accelerate, random_state=0, tol=1e-4, **options)
        assert_never_falls(model.fit(table, lengths=lengths, sample_weight=weight))


@pytest.mark.parametrize("seed", range(5))
def test_it_never_falls_for_words_alone(seed):
    words = np.array(list("abcd"))[np.random.default_rng(seed).integers(4, size=(30, 12))]
    model = HiddenMarkovModel(4, accelerate=False, random_state=seed, tol=1e-4, max_iter=300).fit(words)
    assert_never_falls(model)


def same(a, b, rtol=1e-9, atol=1e-12):
    np.testing.assert_allclose(a.start_, b.start_, rtol=rtol, atol=atol)
    np.testing.assert_allclose(a.transitions_, b.transitions_, rtol=rtol, atol=atol)
    np.testing.assert_allclose(a.means_, b.means_, rtol=rtol, atol=atol)
    np.testing.assert_allclose(a.covariances_, b.covariances_, rtol=rtol, atol=atol)
    for name in a.tables_:
        np.testing.assert_allclose(a.tables_[name], b.tables_[name], rtol=rtol, atol=atol)


def take(lengths, index):
    """Rows of some sequences, and their lengths."""
    starts = np.cumsum(lengths) - lengths
    return np.concatenate([np.arange(starts[i], starts[i] + lengths[i]) for i in index]), lengths[index]


@pytest.mark.parametrize("options", [{}, {"transitions": "per_step"}, {"topology": "left-right"}], ids=str)
def test_weight_two_is_the_sequence_twice_and_weight_zero_is_none(mixed, options):
    table, lengths = mixed(3, missing=0.1)
    count = np.random.default_rng(2).integers(0, 3, size=len(lengths))
    count[lengths.argmax()] = 1  # matrices per step are as many as the longest has
    model = HiddenMarkovModel(2, random_state=0, tol=1e-4, **options)
    weighted = model.fit(table, lengths=lengths, sample_weight=count)
    again = clone(model)
    rows, several = take(lengths, np.repeat(np.arange(len(lengths)), count))
    same(weighted, again.fit(table.iloc[rows], lengths=several), rtol=1e-6, atol=1e-8)


def test_the_order_of_sequences_changes_nothing(mixed):
    table, lengths = mixed(4, missing=0.1)
    order = np.random.default_rng(0).permutation(len(lengths))
    rows, shuffled = take(lengths, order)
    one = HiddenMarkovModel(3, random_state=0, tol=1e-4).fit(table, lengths=lengths)
    other = HiddenMarkovModel(3, random_state=0, tol=1e-4).fit(table.iloc[rows], lengths=shuffled)
    same(one, other, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        other.score_samples(table.iloc[rows], lengths=shuffled),
        other.score_samples(table, lengths=lengths)[order],
        rtol=1e-12,
    )


def start_of(S, d, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "start": rng.dirichlet(np.ones(S)),
        "transitions": rng.dirichlet(np.ones(S), size=S),
        "means": rng.normal(size=(S, d)),
        "covariances": 1.0 + rng.random((S, d)),
    }


def test_permuting_states_permutes_the_answer(sequences):
    X, lengths, _ = sequences(5)
    start, order = start_of(3, 2), np.array([2, 0, 1])
    moved = {key: value[order] for key, value in start.items()}
    moved["transitions"] = moved["transitions"][:, order]
    # with the prior, not: what it pulls towards comes from a partition, whose states have an order of their own
    one, other = (
        HiddenMarkovModel(3, "VVV", init=s, tol=1e-4, prior=None).fit(X, lengths=lengths) for s in (start, moved)
    )
    np.testing.assert_allclose(other.means_, one.means_[order], rtol=1e-8)
    np.testing.assert_allclose(other.transitions_, one.transitions_[order][:, order], rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(
        other.predict_proba(X, lengths=lengths), one.predict_proba(X, lengths=lengths)[:, order], atol=1e-8
    )


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("options", [{}, {"transitions": "per_step"}], ids=str)
def test_blocks_and_threads_change_nothing(mixed, missing, options):
    table, lengths = mixed(6, missing=missing, n=60)
    model = HiddenMarkovModel(3, "VVV", random_state=0, tol=1e-3, **options).fit(table, lengths=lengths)
    chain, weight = model.chain_, np.random.default_rng(0).random(len(lengths))
    sequences = model._read(table, lengths)
    ready = chain.problem.prepare(chain.params)

    def total(rows, executor):
        source = blocks_of(chain.problem, 3, sequences, weight, rows)
        with executor as workers:
            return len(source), workers.total(lambda block: chain.problem.stats(ready, block), source)

    (few, whole), (many, small) = total(None, Serial()), total(40, Serial())
    assert few == 1 and many > 10
    for name in ("start", "trans", "log_lik"):
        np.testing.assert_allclose(getattr(small, name), getattr(whole, name), rtol=1e-10, atol=1e-12)
    for name in ("mass", "first", "second"):
        one, other = (getattr(part.components.gaussian, name) for part in (small, whole))
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    _, threads = total(40, Threads(2))
    np.testing.assert_array_equal(threads.trans, small.trans)
    assert threads.log_lik == small.log_lik


def test_one_state_is_a_gaussian_of_independent_rows(sequences):
    X, lengths, _ = sequences(7, d=3)
    model = HiddenMarkovModel(1, "VVV", prior=None).fit(X, lengths=lengths)
    np.testing.assert_allclose(model.means_[0], X.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(model.covariances_[0], np.cov(X.T, bias=True), rtol=1e-9)
    one = GaussianMixture(1, "VVV", prior=None).fit(X)
    assert model.log_likelihood_ == pytest.approx(one.score_samples(X).sum(), rel=1e-10)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_with_equal_rows_of_transitions_it_is_a_mixture(sequences, missing):
    X, lengths, _ = sequences(8, missing=missing)
    mixture = GaussianMixture(3, "VVV", random_state=0, tol=1e-3).fit(X)
    model = HiddenMarkovModel(3, "VVV", tol=1.0).fit(X, lengths=lengths)
    weights, components = mixture.weights_, mixture.params_.components
    params = replace(model.chain_.params, log_start=np.log(weights), log_trans=np.log(np.tile(weights, (3, 1))))
    model.chain_ = replace(model.chain_, params=replace(params, components=components))
    by_row = mixture.score_samples(X)
    np.testing.assert_allclose(
        model.score_samples(X, lengths=lengths), np.add.reduceat(by_row, np.cumsum(lengths) - lengths), rtol=1e-9
    )
    np.testing.assert_allclose(model.predict_proba(X, lengths=lengths), mixture.predict_proba(X), atol=1e-9)


def test_stop_and_resume_is_one_long_run(sequences):
    X, lengths, _ = sequences(9)
    model = HiddenMarkovModel(3, tol=1e-2).fit(X, lengths=lengths)
    problem, source = model.chain_.problem, blocks_of(model.chain_.problem, 3, model._read(X, lengths), None)
    start = replace(model.chain_.params, log_trans=np.log(np.full((3, 3), 1 / 3)))
    whole = run(problem, source, start, stop=Stop(0.0, 12), executor=Serial())
    half = run(problem, source, start, stop=Stop(0.0, 5), executor=Serial())
    rest = run(problem, source, resume=half.last, stop=Stop(0.0, 12), executor=Serial())
    assert rest.objective == whole.objective
    np.testing.assert_array_equal(rest.params.log_trans, whole.params.log_trans)
    np.testing.assert_array_equal(rest.params.components.gaussian.means, whole.params.components.gaussian.means)


def test_emissions_given_as_log_likelihoods_leave_start_and_transitions_to_be_learned(sequences):
    """From the emissions of a fitted model, its start and transitions are a fixed point."""
    X, lengths, _ = sequences(10, n=40)
    fitted = HiddenMarkovModel(3, tol=1e-12, max_iter=5000, accelerate=True).fit(X, lengths=lengths)
    log_emit = fitted._log_emit(fitted.chain_, fitted._read(X, lengths))
    start = {"start": fitted.start_, "transitions": fitted.transitions_}
    model = HiddenMarkovModel(3, emissions="precomputed", init=start, tol=1e-12, max_iter=5000)
    model.fit(log_emit, lengths=lengths)
    np.testing.assert_allclose(model.transitions_, fitted.transitions_, atol=1e-4)
    assert_never_falls(HiddenMarkovModel(3, emissions="precomputed", accelerate=False).fit(log_emit, lengths=lengths))
    np.testing.assert_allclose(
        model.score_samples(log_emit, lengths=lengths), fitted.score_samples(X, lengths=lengths), rtol=1e-6
    )
    assert model.n_parameters_ == 2 + 6 and model.tables_ == {} and np.isnan(model.means_).all()


def test_transitions_per_step_follow_each_step():
    """Two states seen clearly; they are kept at the first step and swapped at the second."""
    rng = np.random.default_rng(0)
    first = rng.integers(2, size=300)
    states = np.stack([first, first, 1 - first], axis=1)
    X = 10.0 * states + rng.normal(size=states.shape)
    model = HiddenMarkovModel(2, transitions="per_step", prior=HMMPrior(transition_smoothing=0.0)).fit(X)
    np.testing.assert_allclose(model.transitions_, [np.eye(2), 1 - np.eye(2)], atol=1e-6)
    shared = HiddenMarkovModel(2, prior=HMMPrior(transition_smoothing=0.0)).fit(X)
    np.testing.assert_allclose(shared.transitions_, 0.5, atol=0.05)
    assert model.score(X) > shared.score(X) + 1.0 and model.n_parameters_ == shared.n_parameters_ + 2
    same_states = HiddenMarkovModel(2, transitions="per_step").fit(X).decode(X)
    assert (same_states == states).all()


def test_tables_per_step_are_columns_seen_at_one_step_each():
    """A row per step, a column per step, the others missing: each step has a table of its own."""
    rng = np.random.default_rng(1)
    n, T = 3000, 5
    state = rng.integers(2, size=n)
    flip = np.array([0.05, 0.2, 0.1, 0.35, 0.15])
    said = np.where(rng.random((n, T)) < flip, 1 - state[:, None], state[:, None])
    steps = np.full((n, T, T), None, dtype=object)
    steps[:, np.arange(T), np.arange(T)] = np.array(["no", "yes"])[said]
    start = {"transitions": np.eye(2), "tables": {f"x{j}": [[0.8, 0.2], [0.2, 0.8]] for j in range(T)}}
    model = HiddenMarkovModel(2, init=start).fit(steps.reshape(-1, T), lengths=np.full(n, T))
    np.testing.assert_array_equal(model.transitions_, np.eye(2))  # what is forbidden stays so
    np.testing.assert_allclose([model.tables_[f"x{j}"][0, 1] for j in range(T)], flip, atol=0.05)


def test_a_collapsed_state_is_named_and_mended():
    X = np.concatenate([np.zeros(40), np.random.default_rng(0).normal(size=40) + 5])[:, None]
    with pytest.warns(UserWarning, match="state 0"):
        model = HiddenMarkovModel(2, **RAW).fit(X, lengths=[20, 20, 40])
    assert np.isfinite(model.run_.objective)
    assert np.isfinite(HiddenMarkovModel(2).fit(X, lengths=[20, 20, 40]).score(X, lengths=[20, 20, 40]))


def test_steps_wholly_missing_emit_nothing(sequences):
    """At the end of a sequence they are as if it had ended before."""
    X, lengths, _ = sequences(11, missing=0.1)
    padded = np.concatenate(
        [np.pad(part, ((0, 2), (0, 0)), constant_values=np.nan) for part in np.split(X, np.cumsum(lengths)[:-1])]
    )
    # the same in the likelihood; not in Baum-Welch's path there, as unseen states count as transitions
    model = HiddenMarkovModel(2, "VVV").fit(X, lengths=lengths)
    np.testing.assert_allclose(
        model.score_samples(padded, lengths=lengths + 2), model.score_samples(X, lengths=lengths), rtol=1e-12
    )
    nothing = np.full((3, 2), np.nan)
    np.testing.assert_allclose(model.score_samples(nothing, lengths=[3]), 0.0, atol=1e-12)
    expected = [model.start_, model.start_ @ model.transitions_]
    np.testing.assert_allclose(model.predict_proba(nothing, lengths=[3])[:2], expected, rtol=1e-10)


def test_steps_wholly_missing_do_not_hold_emissions_back(sequences):
    """They have no part in the update: one pass ends where it would without them."""
    X, _, _ = sequences(12, d=1, n=30)
    gapped = np.where(np.random.default_rng(0).random(X.shape) < 0.5, np.nan, X)
    start = {"means": [[9.0]], "covariances": [[5.0]]}
    model = HiddenMarkovModel(1, prior=None, init=start, max_iter=1, tol=0.0)
    with pytest.warns(UserWarning, match="max_iter"):
        model.fit(gapped, lengths=[len(X)])
    np.testing.assert_allclose(model.means_[0], np.nanmean(gapped), rtol=1e-10)
    np.testing.assert_allclose(model.covariances_[0, 0], np.nanvar(gapped), rtol=1e-9)


def test_gaps_at_the_end_of_rows_find_the_same_model():
    rng = np.random.default_rng(3)
    states = np.cumsum(rng.random((60, 12)) < 0.2, axis=1) % 2
    X = 4.0 * states + rng.normal(size=states.shape)
    lengths = rng.integers(4, 13, size=60)
    ragged = np.where(np.arange(12) < lengths[:, None], X, np.nan)
    rows = HiddenMarkovModel(2, tol=1e-10, max_iter=5000).fit(ragged)
    steps = HiddenMarkovModel(2, tol=1e-10, max_iter=5000).fit(ragged[~np.isnan(ragged)][:, None], lengths=lengths)
    np.testing.assert_allclose(rows.means_, steps.means_, rtol=1e-4)
    np.testing.assert_allclose(rows.transitions_, steps.transitions_, atol=1e-4)
    assert rows.log_likelihood_ == pytest.approx(steps.log_likelihood_, rel=1e-7)


def test_the_likelihood_is_that_of_the_definition(mixed):
    """log p of one short sequence, from the attributes alone."""
    from scipy.stats import multivariate_normal

    table, lengths = mixed(12)
    model = HiddenMarkovModel(2, "VVV", random_state=0).fit(table, lengths=lengths)
    part = table.iloc[:4]
    colors = model.variables_.columns[1].categories
    emit = np.zeros((4, 2))
    for s in range(2):
        emit[:, s] = multivariate_normal(model.means_[s], model.covariances_[s]).logpdf(
            part[["a", "b"]].to_numpy(float)
        )
        emit[:, s] += np.log([model.tables_["word"][s, colors.index(w)] for w in part["word"]])
        emit[:, s] += np.log([model.tables_["big"][s, int(b)] for b in part["big"]])
    alpha = np.log(model.start_) + emit[0]
    for t in range(1, 4):
        alpha = logsumexp(alpha[:, None] + np.log(model.transitions_), axis=0) + emit[t]
    assert model.score_samples(part, lengths=[4])[0] == pytest.approx(logsumexp(alpha), rel=1e-10)
