"""Sums and maxima over paths are those of enumeration."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

from mixent.hmm import lattice
from mixent.hmm.lattice import Layout, forward_backward, log_likelihood, viterbi


def enumerate_paths(log_start, log_trans, log_emit):
    """Every path of one sequence (paths, L), and the logarithm of its weight."""
    length, S = log_emit.shape
    paths = np.array(list(itertools.product(range(S), repeat=length)))
    weight = log_start[paths[:, 0]] + log_emit[0, paths[:, 0]]
    for t in range(1, length):
        step = log_trans if log_trans.ndim == 2 else log_trans[t - 1]
        weight = weight + step[paths[:, t - 1], paths[:, t]] + log_emit[t, paths[:, t]]
    return paths, weight


def by_enumeration(log_start, log_trans, log_emit, lengths):
    """Log-likelihoods, state posteriors, pair posteriors (n, T - 1, S, S), best weights."""
    S, longest = len(log_start), max(lengths)
    log_lik, states, pairs, best = [], [], np.zeros((len(lengths), max(longest - 1, 0), S, S)), []
    for i, (a, length) in enumerate(zip(np.cumsum(lengths) - lengths, lengths)):
        paths, weight = enumerate_paths(log_start, log_trans, log_emit[a : a + length])
        log_lik.append(logsumexp(weight))
        best.append(weight.max())
        share = np.exp(weight - log_lik[-1]) if np.isfinite(log_lik[-1]) else np.zeros(len(weight))
        states += [np.bincount(paths[:, t], share, S) for t in range(length)]
        for t in range(1, length):
            pairs[i, t - 1] = np.bincount(paths[:, t - 1] * S + paths[:, t], share, S * S).reshape(S, S)
    return np.array(log_lik), np.array(states), pairs, np.array(best)


def case(seed, *, normalized=True, by_step=False, forbidden=0.0, spread=1.0, S=3, lengths=(4, 1, 6, 2, 6, 3)):
    rng = np.random.default_rng(seed)
    lengths = np.array(lengths)
    log_start = rng.normal(size=S)
    log_trans = rng.normal(size=(lengths.max() - 1, S, S) if by_step else (S, S))
    if normalized:
        log_start -= logsumexp(log_start)
        log_trans -= logsumexp(log_trans, axis=-1, keepdims=True)
    else:  # expected logarithms of a variational posterior: less than one in all
        log_start, log_trans = log_start - 3.0, log_trans - 2.5
    log_trans[rng.random(log_trans.shape) < forbidden] = -np.inf
    log_start[1:][rng.random(S - 1) < forbidden] = -np.inf
    return log_start, log_trans, spread * rng.normal(size=(lengths.sum(), S)), lengths


CASES = {
    "plain": {},
    "one matrix per step": {"by_step": True},
    "forbidden": {"forbidden": 0.4},
    "forbidden per step": {"forbidden": 0.4, "by_step": True},
    "not normalized": {"normalized": False},
    "not normalized, forbidden, per step": {"normalized": False, "forbidden": 0.3, "by_step": True},
    "emissions far apart": {"spread": 500.0},
    "emissions far apart, forbidden": {"spread": 500.0, "forbidden": 0.4},
    "one state": {"S": 1},
    "two states": {"S": 2, "lengths": (9, 1, 1, 5)},
    "four states": {"S": 4, "lengths": (5, 4)},
    "all of length one": {"lengths": (1, 1, 1)},
    "all of length one, per step": {"lengths": (1, 1, 1), "by_step": True},
}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", CASES)
def test_everything_equals_enumeration(name, seed):
    log_start, log_trans, log_emit, lengths = given = case(seed, **CASES[name])
    log_lik, states, pairs, best = by_enumeration(*given)
    np.testing.assert_allclose(log_likelihood(*given), log_lik, rtol=1e-12)
    weight = np.random.default_rng(seed).random(len(lengths))
    apart = forward_backward(*given, weight, pairs="sequence")
    np.testing.assert_allclose(apart.log_lik, log_lik, rtol=1e-12)
    np.testing.assert_allclose(apart.states, states, atol=1e-10)
    np.testing.assert_allclose(apart.pairs, pairs.sum(axis=1) * weight[:, None, None], atol=1e-10)
    weighted = (pairs * weight[:, None, None, None]).sum(axis=0)
    np.testing.assert_allclose(forward_backward(*given, weight).pairs, weighted.sum(axis=0), atol=1e-10)
    np.testing.assert_allclose(forward_backward(*given, weight, pairs="step").pairs, weighted, atol=1e-10)
    path, log_prob = viterbi(*given)
    np.testing.assert_allclose(log_prob, best, rtol=1e-12)
    for a, length, most in zip(np.cumsum(lengths) - lengths, lengths, best):
        paths, heaviness = enumerate_paths(log_start, log_trans, log_emit[a : a + length])
        own = heaviness[(paths == path[a : a + length]).all(axis=1)]
        np.testing.assert_allclose(own, most, rtol=1e-12)


def test_an_impossible_sequence_has_no_likelihood_and_no_posterior_and_harms_no_other():
    log_start, log_trans, log_emit, lengths = case(3)
    log_emit[4] = -np.inf  # the second sequence, of one step
    log_emit[7] = -np.inf  # inside the third
    found = forward_backward(log_start, log_trans, log_emit, lengths)
    whole = forward_backward(*case(3))
    bad = np.array([False, True, True, False, False, False])
    assert (
        np.isneginf(found.log_lik[bad]).all()
        and np.isneginf(log_likelihood(log_start, log_trans, log_emit, lengths)[bad]).all()
    )
    np.testing.assert_allclose(found.log_lik[~bad], whole.log_lik[~bad], rtol=1e-14)
    steps = np.repeat(bad, lengths)
    assert (found.states[steps] == 0).all()
    np.testing.assert_allclose(found.states[~steps], whole.states[~steps], atol=1e-14)
    assert np.isneginf(viterbi(log_start, log_trans, log_emit, lengths)[1][bad]).all()


def test_a_path_that_looked_hopeless_is_found_again_when_it_is_the_only_one():
    """State 0 explains the first step e^2000 times better, but cannot lead where the second step is."""
    with np.errstate(divide="ignore"):
        log_start, log_trans = np.log([0.5, 0.5]), np.log([[1.0, 0.0], [0.0, 1.0]])
    log_emit = np.array([[0.0, -2000.0], [-5000.0, 0.0], [0.0, 0.0]])
    found = forward_backward(log_start, log_trans, log_emit, [3])
    np.testing.assert_allclose(found.log_lik, np.log(0.5) - 2000.0, rtol=1e-15)
    np.testing.assert_allclose(found.states, [[0, 1]] * 3, atol=1e-300)
    np.testing.assert_allclose(found.pairs, [[0, 0], [0, 2]], atol=1e-300)


@pytest.mark.parametrize("kind", ["plain", "forbidden", "left-right", "far apart", "impossible"])
def test_chunks_of_long_sequences_change_nothing(kind, monkeypatch):
    rng = np.random.default_rng(5)
    lengths = np.array([300, 64, 1, 131, 17])
    log_start, log_trans, log_emit, _ = case(7, lengths=lengths, forbidden=0.3 if kind == "forbidden" else 0.0)
    if kind == "left-right":
        log_trans[np.tril_indices(3, -1)] = -np.inf
    if kind == "far apart":
        log_emit *= 300
    if kind == "impossible":
        log_emit[150] = -np.inf
    weight = rng.random(len(lengths))
    kinds = ("sum", "step", "sequence")
    given = (log_start, log_trans, log_emit, lengths)
    assert len(log_emit) * 27 < lattice.NARROW * 300
    chunked = [log_likelihood(*given), *(forward_backward(*given, weight, pairs=k) for k in kinds)]
    path, log_prob = viterbi(*given)
    monkeypatch.setattr(lattice, "LONG", 10**9)
    whole = [log_likelihood(*given), *(forward_backward(*given, weight, pairs=k) for k in kinds)]
    possible = np.repeat(np.isfinite(whole[0]), lengths)
    np.testing.assert_array_equal(path[possible], viterbi(*given)[0][possible])
    np.testing.assert_allclose(log_prob, viterbi(*given)[1], rtol=1e-12)
    np.testing.assert_allclose(chunked[0], whole[0], rtol=1e-12)
    for one, other in zip(chunked[1:], whole[1:]):
        np.testing.assert_allclose(one.log_lik, other.log_lik, rtol=1e-12)
        np.testing.assert_allclose(one.states, other.states, atol=1e-10)
        np.testing.assert_allclose(one.pairs, other.pairs, atol=1e-10)


def test_long_sequences_do_not_underflow():
    """A million times the smallest number: log-likelihoods add up."""
    log_emit = np.full((5000, 2), -1000.0)
    half = np.log(np.full((2, 2), 0.5))
    np.testing.assert_allclose(log_likelihood(half[0], half, log_emit, [5000]), -5e6, rtol=1e-12)


def test_equal_matrices_per_step_are_one_matrix():
    log_start, log_trans, log_emit, lengths = case(2)
    tiled = np.tile(log_trans, (5, 1, 1))
    one, each = (forward_backward(log_start, m, log_emit, lengths) for m in (log_trans, tiled))
    np.testing.assert_allclose(one.states, each.states, rtol=1e-12)
    np.testing.assert_allclose(one.pairs, each.pairs, rtol=1e-12)


def test_pairs_agree_with_states():
    """Summed over the second state of a pair: the states of all steps but the last; over the first: but the first."""
    given = case(4, lengths=(40, 3, 17, 1))
    found, lengths = forward_backward(*given), given[-1]
    ends = np.cumsum(lengths) - 1
    np.testing.assert_allclose(found.pairs.sum(axis=1), np.delete(found.states, ends, axis=0).sum(axis=0), rtol=1e-12)
    starts = np.cumsum(lengths) - lengths
    np.testing.assert_allclose(found.pairs.sum(axis=0), np.delete(found.states, starts, axis=0).sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.states.sum(axis=1), 1.0, rtol=1e-12)


def test_the_layout_puts_every_step_somewhere():
    layout = Layout(np.array([2, 5, 1, 5]))
    assert layout.order.tolist() == [1, 3, 0, 2] and layout.active.tolist() == [4, 3, 2, 2, 2]
    assert sorted(layout.rows.tolist()) == list(range(13))
    assert layout.rows[:4].tolist() == [2, 8, 0, 7]  # the first steps, longest sequences first
    np.testing.assert_array_equal(layout.restore(layout.rows), np.arange(13))
    np.testing.assert_array_equal(layout.per_sequence(np.ones(13)), [2, 5, 1, 5])


@pytest.mark.parametrize("size", [1e3, 1e7, 1e10, 1e14, 1e16, 1e18, 1e100])
@pytest.mark.parametrize("lengths", [(2, 4, 3), (300, 70)])
def test_posteriors_are_distributions_however_improbable_the_sequence(lengths, size):
    """Where only improbable states are allowed, each step keeps a distribution: rounding errors do not add up."""
    rng = np.random.default_rng(5)
    with np.errstate(divide="ignore"):
        log_start, log_trans = np.log([1.0, 0.0, 0.0]), np.log(np.triu(rng.random((3, 3))))
    log_trans -= logsumexp(log_trans, axis=1, keepdims=True)
    log_emit = rng.normal(size=(sum(lengths), 3))
    heads = np.cumsum(lengths) - lengths
    log_emit[heads] += size * np.array([-1.0, -0.1, -0.01])
    log_emit[heads + 1] += size * np.array([-1.1, -0.3, -0.01])
    found = forward_backward(log_start, log_trans, log_emit, lengths, pairs="sequence")
    np.testing.assert_allclose(found.states.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(found.pairs.sum(axis=(1, 2)), np.array(lengths) - 1, rtol=1e-12)
    by_step = forward_backward(log_start, np.array([log_trans] * (max(lengths) - 1)), log_emit, lengths)
    np.testing.assert_allclose(by_step.states, found.states, atol=1e-9)
    assert (found.states[heads, 0] == 1).all()
