"""Forward-backward and Viterbi algorithms for many sequences at once.

The weight of a path z_0 ... z_{L-1} through a sequence is

    start(z_0) emit_0(z_0)  prod_{t>0}  trans_t(z_{t-1}, z_t) emit_t(z_t),

with every factor given by its logarithm. The factors need not be normalized (expected logarithms of variational methods
are not), and -inf excludes a state or transition. There is one transition matrix (S, S) for all steps, or one for each
step, (T - 1, S, S): trans[t - 1] leads to step t, so T is at least the longest length.

Sequences are sorted by length, longest first, and the steps of the same time are stored next to each other: one matrix
product per time updates all sequences of at least this length. Forward and backward vectors are normalized at every
step. The overlap Z_t = sum_s alpha_t(s) beta_t(s) then bounds the loss by underflow by about 1e-308 / Z_t; if it is
small (because a very improbable path was the only possible one), the sequence is computed again in the log domain.
A few long sequences are divided into chunks that are processed in parallel (`chunks.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mixent.core.arrays import Array, log_sum_exp, softmax_columns

MIN_OVERLAP = 1e-20  # overlap above which the normalized passes are exact to rounding
TINY = 1e-300  # replaces a sum of zero in divisions
LONG = 64  # steps from which sequences are divided into chunks ...
NARROW = 16_000  # ... if there are fewer than this / S^3 sequences


@dataclass(frozen=True)
class Layout:
    """Positions of the steps of concatenated sequences, sorted by time, and at each time by decreasing length."""

    lengths: np.ndarray  # (n,) lengths of the sequences, >= 1, in the order of the caller

    @cached_property
    def order(self) -> np.ndarray:
        """(n,) the sequence of each rank."""
        return np.argsort(-self.lengths, kind="stable")

    @cached_property
    def active(self) -> np.ndarray:
        """(T,) number of sequences that reach each time: those of lowest rank."""
        longest = int(self.lengths.max(initial=0))
        return len(self.lengths) - np.searchsorted(np.sort(self.lengths), np.arange(longest), side="right")

    @cached_property
    def starts(self) -> np.ndarray:
        """(T,) first position of each time."""
        return np.cumsum(self.active) - self.active

    @cached_property
    def time(self) -> np.ndarray:
        """(N,) time of each position."""
        return np.repeat(np.arange(len(self.active)), self.active)

    @cached_property
    def rank(self) -> np.ndarray:
        """(N,) rank of the sequence at each position: 0 is the longest."""
        return np.arange(len(self.time)) - self.starts[self.time]

    @cached_property
    def rows(self) -> np.ndarray:
        """(N,) index in the concatenated sequences of each position."""
        first = np.cumsum(self.lengths) - self.lengths
        return first[self.order[self.rank]] + self.time

    @cached_property
    def steps(self) -> list[tuple[slice, slice]]:
        """Positions at each time except the first, and those of the same sequences one step before."""
        starts, active = self.starts.tolist(), self.active.tolist()
        return [
            (slice(starts[t], starts[t] + active[t]), slice(starts[t - 1], starts[t - 1] + active[t]))
            for t in range(1, len(active))
        ]

    @cached_property
    def before(self) -> np.ndarray | slice:
        """Positions one step before those from `alive[0]` on."""
        n, N = len(self.lengths), len(self.time)
        if self.active[-1] == n:
            return slice(0, N - n)
        return np.arange(n, N) - self.active[self.time[n:] - 1]

    @cached_property
    def ends(self) -> np.ndarray:
        """(n,) last position of each sequence, by rank."""
        return self.starts[self.lengths[self.order] - 1] + np.arange(len(self.lengths))

    @cached_property
    def chunks(self) -> Any:
        """Division of a few long sequences into chunks (`chunks.Chunks`)."""
        from mixent.hmm.chunks import Chunks

        return Chunks.of(self)

    def per_sequence(self, values: Array) -> Array:
        """Return the sums over the steps of each sequence, (n,), in the order of the caller, of values by position."""
        out = np.empty(len(self.lengths))
        out[self.order] = np.bincount(self.rank, values, len(self.lengths))
        return out

    def restore(self, values: Any) -> Any:
        """Return values (..., N) by position as (N, ...) in the order of the concatenated sequences."""
        out = np.empty((values.shape[-1], *values.shape[:-1]), dtype=values.dtype)
        out[self.rows] = np.moveaxis(values, -1, 0)
        return out


@dataclass(frozen=True)
class Chain:
    """Start and transition weights: logarithms, and weights relative to the largest."""

    log_start: Array  # (S,)
    log_trans: Array  # (S, S) or (T - 1, S, S)

    @property
    def n_states(self) -> int:
        return len(self.log_start)

    @property
    def by_step(self) -> bool:
        return self.log_trans.ndim == 3

    @cached_property
    def start(self) -> tuple[Array, float]:
        """Weights (S,) relative to the largest, and its logarithm."""
        top = float(_finite(self.log_start.max()))
        return np.exp(self.log_start - top), top

    @cached_property
    def trans(self) -> tuple[Array, Array]:
        """Weights relative to the largest of each matrix, and its logarithm, () or (T - 1,)."""
        top = _finite(self.log_trans.max(axis=(-2, -1)))
        return np.exp(self.log_trans - top[..., None, None]), np.asarray(top)

    @cached_property
    def all_allowed(self) -> bool:
        """Whether all transitions are possible; a normalized forward pass alone is then accurate."""
        return bool(self.start[0].min() > TINY and self.trans[0].min(initial=1.0) > 1e-50)

    def steps(self, weights: Array, count: int) -> list[Array]:
        """Return the matrix of each transition between successive steps."""
        return list(weights[:count]) if self.by_step else [weights] * count

    def log_scale(self, lengths: np.ndarray) -> Array:
        """Return the logarithm of the scale of the weights along each sequence, (n,)."""
        _, per_step = self.trans
        total = np.cumsum(np.append(0.0, per_step))[lengths - 1] if self.by_step else (lengths - 1) * per_step
        return self.start[1] + total


@dataclass(frozen=True)
class Sweep:
    """Result of a forward and backward pass, by position."""

    log_lik: Array  # (n,) of each sequence, in the order of the caller
    states: Array  # (S, N) posteriors; zero for an impossible sequence
    pairs: Array | None  # sums of posteriors of pairs of successive states


@dataclass(frozen=True)
class Posterior:
    """Posterior probabilities of the states of each sequence."""

    log_lik: Array  # (n,)
    states: Array  # (n_steps, S)
    pairs: Array  # (S, S) summed over steps and sequences; (T - 1, S, S) or (n, S, S) by step or sequence


def _prepare(log_start: Array, log_trans: Array, log_emit: Array, lengths: Any) -> tuple[Chain, Array, Layout]:
    layout, chain = Layout(np.asarray(lengths)), Chain(np.asarray(log_start), np.asarray(log_trans))
    if len(log_emit) != layout.lengths.sum():
        raise ValueError(f"log_emit has {len(log_emit)} steps, but lengths add up to {layout.lengths.sum()}")
    if chain.by_step and len(log_trans) < len(layout.steps):
        raise ValueError(f"log_trans has {len(log_trans)} matrices, but a sequence has {len(layout.active)} steps")
    return chain, np.ascontiguousarray(np.asarray(log_emit)[layout.rows].T), layout


def log_likelihood(log_start: Array, log_trans: Array, log_emit: Array, lengths: Any) -> Array:
    """Return the logarithm of the total weight of all paths, (n,); -inf for an impossible sequence.

    Parameters
    ----------
    log_start : (S,)
    log_trans : (S, S) or (T - 1, S, S)
    log_emit : (n_steps, S), concatenated sequences
    lengths : (n,)
    """
    chain, emit, layout = _prepare(log_start, log_trans, log_emit, lengths)
    return sweep_forward(chain, emit, layout)


def forward_backward(
    log_start: Array,
    log_trans: Array,
    log_emit: Array,
    lengths: Any,
    weight: Array | None = None,
    *,
    pairs: str = "sum",
) -> Posterior:
    """Return the posteriors of states and of pairs of successive states.

    Parameters
    ----------
    log_start, log_trans, log_emit, lengths
        See `log_likelihood`.
    weight : (n,), optional
        Weight of each sequence in the sums of pairs; state posteriors are not weighted.
    pairs : "sum", "step" or "sequence"
        Whether pairs are summed over all steps and sequences, (S, S); over sequences, (T - 1, S, S); or over steps,
        (n, S, S).
    """
    chain, emit, layout = _prepare(log_start, log_trans, log_emit, lengths)
    result = sweep(chain, emit, layout, weight, pairs=pairs)
    assert result.pairs is not None
    return Posterior(result.log_lik, layout.restore(result.states), result.pairs)


def viterbi(log_start: Array, log_trans: Array, log_emit: Array, lengths: Any) -> tuple[np.ndarray, Array]:
    """Return the path of largest weight of each sequence, (n_steps,), and the logarithm of its weight, (n,).

    For the parameters see `log_likelihood`. For an impossible sequence an arbitrary path is returned.
    """
    chain, emit, layout = _prepare(log_start, log_trans, log_emit, lengths)
    if narrow(chain, layout):
        from mixent.hmm.chunks import paths_in_chunks

        path, by_rank = paths_in_chunks(chain, emit, layout)
    else:
        best, origin = best_paths(chain, emit, layout, chain.log_start[:, None])
        path = np.empty(emit.shape[1], dtype=np.intp)
        path[layout.ends] = best[:, layout.ends].argmax(axis=0)
        for here, before in reversed(layout.steps):
            path[before] = origin[path[here], np.arange(here.start, here.stop)]
        by_rank = best[:, layout.ends].max(axis=0)
    log_prob = np.empty(len(layout.lengths))
    log_prob[layout.order] = by_rank
    return layout.restore(path), log_prob


def best_paths(chain: Chain, emit: Array, layout: Layout, first: Array) -> tuple[Array, np.ndarray]:
    """Return the log-weights of the best paths that end in each state, (S, N), and their previous states."""
    best, origin = np.empty_like(emit), np.zeros(emit.shape, dtype=np.int32)
    head = slice(0, len(layout.lengths))
    np.add(emit[:, head], first, out=best[:, head])
    for (here, before), log_step in zip(layout.steps, chain.steps(chain.log_trans, len(layout.steps))):
        extended = best[:, None, before] + log_step[:, :, None]  # (from, to, sequence)
        origin[:, here] = extended.argmax(axis=0)
        np.add(extended.max(axis=0), emit[:, here], out=best[:, here])
    return best, origin


def sweep_forward(chain: Chain, log_emit: Array, layout: Layout) -> Array:
    """Return the log-likelihoods, (n,), of emissions by position (S, N)."""
    if not chain.all_allowed:  # only the overlap with the backward pass shows the loss by underflow
        return sweep(chain, log_emit, layout, pairs=None).log_lik
    emit, top = _scaled(log_emit)
    norm = _passes(chain, emit, layout, both=False)[1]
    if norm.min(initial=1.0) < 1e-200:  # a step of probability zero in all states
        return sweep(chain, log_emit, layout, pairs=None).log_lik
    return _log_lik(chain, layout, norm, top)


def sweep(
    chain: Chain, log_emit: Array, layout: Layout, weight: Array | None = None, *, pairs: str | None = "sum"
) -> Sweep:
    """Run a forward and backward pass with emissions by position (S, N); see `forward_backward` for the options."""
    emit, top = _scaled(log_emit)
    alpha, norm, beta, growth = _passes(chain, emit, layout)
    log_lik = _log_lik(chain, layout, norm, top)
    states = np.multiply(alpha, beta, out=beta)
    overlap = states.sum(axis=0)
    inexact = overlap.min(initial=1.0) < MIN_OVERLAP
    states /= np.maximum(overlap, TINY) if inexact else overlap
    underflow = np.unique(layout.order[layout.rank[overlap < MIN_OVERLAP]]) if inexact else np.empty(0, dtype=np.intp)
    weights = np.ones(len(layout.lengths)) if weight is None else np.array(weight, dtype=float)
    weights[underflow] = 0.0
    summed = None
    if pairs is not None:
        # xi_t(r, s) = alpha_{t-1}(r) trans(r, s) emit_t(s) beta_t(s) / (growth_{t-1} Z_{t-1}); emit is now emit beta
        n, before = len(layout.lengths), layout.before
        scale = weights[layout.order[layout.rank[n:]]] / np.maximum(growth[before] * overlap[before], TINY)
        summed = _pairs(chain, layout, alpha[:, before], emit[:, n:] * scale, pairs)
    result = Sweep(log_lik, states, summed)
    return _in_log_domain(result, chain, log_emit, layout, underflow, weight, pairs) if len(underflow) else result


def _pairs(chain: Chain, layout: Layout, before: Array, after: Array, kind: str) -> Array:
    """Return the sum of  before_r trans(r, s) after_s  over all, by step, or by sequence."""
    weights, S, count = chain.trans[0], chain.n_states, len(layout.active) - 1
    if kind == "sum" and not chain.by_step:
        return weights * (before @ after.T)
    n, n_matrices = len(layout.lengths), len(weights) if chain.by_step else count
    total = np.zeros((n if kind == "sequence" else n_matrices, S, S))
    for t, ((here, _), step) in enumerate(zip(layout.steps, chain.steps(weights, count))):
        span = slice(here.start - n, here.stop - n)
        if kind == "sequence":
            products = before[:, span].T[:, :, None] * after[:, span].T[:, None, :]
            total[layout.order[: here.stop - here.start]] += products * step
        else:
            total[t] = step * (before[:, span] @ after[:, span].T)
    return total.sum(axis=0) if kind == "sum" else total


def _scaled(log_emit: Array) -> tuple[Array, Array]:
    """Return emissions relative to the largest of each step, and its logarithm."""
    top = _finite(log_emit.max(axis=0))
    emit = log_emit - top
    return np.exp(emit, out=emit), top


def _finite(top: Any) -> Any:
    """Return the maximum, or 0 if it is -inf."""
    return np.where(np.isneginf(top), 0.0, top)


def _passes(chain: Chain, emit: Array, layout: Layout, *, both: bool = True) -> tuple[Array, Array, Array, Array]:
    """Return alpha (S, N), its sums (N,), beta, its sums; emit is replaced by emit beta from the second step on."""
    if narrow(chain, layout):
        from mixent.hmm.chunks import in_chunks

        return in_chunks(chain, emit, layout, both)
    n = len(layout.lengths)
    alpha, norm = forward(chain, emit, layout, chain.start[0][:, None])
    beta, growth = backward(chain, emit, layout, np.ones((chain.n_states, n))) if both else (alpha, norm)
    return alpha, norm, beta, growth


def narrow(chain: Chain, layout: Layout) -> bool:
    """Whether there are so few and so long sequences that chunks are faster."""
    long = len(layout.active)
    return not chain.by_step and long >= LONG and len(layout.time) * chain.n_states**3 < NARROW * long


def forward(chain: Chain, emit: Array, layout: Layout, first: Array) -> tuple[Array, Array]:
    """Return normalized alpha (S, N) and its sums before normalization (N,), from `first` (S, n or 1), by rank."""
    alpha, norm = np.empty_like(emit), np.empty(emit.shape[1])
    head = slice(0, len(layout.lengths))
    np.multiply(emit[:, head], first, out=alpha[:, head])
    normalize(alpha[:, head], norm[head])
    weights = np.ascontiguousarray(np.swapaxes(chain.trans[0], -1, -2))
    for (here, before), step in zip(layout.steps, chain.steps(weights, len(layout.steps))):
        current = alpha[:, here]
        np.matmul(step, alpha[:, before], out=current)
        current *= emit[:, here]
        normalize(current, norm[here])
    return alpha, norm


def backward(chain: Chain, emit: Array, layout: Layout, last: Array) -> tuple[Array, Array]:
    """Return beta (S, N), with `last` (S, n, by rank) at the last steps and normalized otherwise, and its sums (N,).

    emit is replaced by emit beta from the second step on.
    """
    beta, growth = np.empty_like(emit), np.ones(emit.shape[1])
    beta[:, layout.ends] = last
    matrices = chain.steps(chain.trans[0], len(layout.steps))
    for (here, before), step in zip(reversed(layout.steps), reversed(matrices)):
        message = emit[:, here]
        message *= beta[:, here]
        previous = beta[:, before]
        np.matmul(step, message, out=previous)
        normalize(previous, growth[before])
    return beta, growth


def normalize(columns: Array, total: Array) -> None:
    """Divide each column by its sum, which is written to `total`; a column of zeros does not change."""
    np.add.reduce(columns, axis=0, out=total)
    np.maximum(total, TINY, out=total)
    columns /= total


def _log_lik(chain: Chain, layout: Layout, norm: Array, top: Array) -> Array:
    return layout.per_sequence(np.log(norm) + top) + chain.log_scale(layout.lengths)


# in the log domain ----------------------------------------------------------------------------------------------------


def _in_log_domain(
    result: Sweep,
    chain: Chain,
    log_emit: Array,
    layout: Layout,
    index: np.ndarray,
    weight: Array | None,
    pairs: str | None,
) -> Sweep:
    """Compute the sequences in `index` again, in the log domain."""
    where = np.flatnonzero(np.isin(layout.order[layout.rank], index))  # positions, in the same order of ranks
    part = Layout(layout.lengths[index])
    # `index` is increasing, and both layouts order sequences of equal length like the caller
    log_lik, states, totals = _log_sweep(chain, log_emit[:, where], part, None if weight is None else weight[index])
    result.log_lik[index] = log_lik
    result.states[:, where] = states
    if pairs is not None and result.pairs is not None:
        for t, by_sequence in enumerate(totals()):
            if pairs == "sequence":
                result.pairs[index[part.order[: len(by_sequence)]]] += by_sequence
            elif pairs == "step":
                result.pairs[t] += by_sequence.sum(axis=0)
            else:
                result.pairs[...] += by_sequence.sum(axis=0)
    return result


def _log_sweep(
    chain: Chain, log_emit: Array, layout: Layout, weight: Array | None
) -> tuple[Array, Array, Callable[[], Iterator[Array]]]:
    """Return log-likelihoods, state posteriors (S, N), and a generator of weighted pair posteriors of each step.

    As in the other passes, forward and backward vectors are normalized at every step, here by subtraction: sums along
    the sequence would round away the differences between states after a very improbable step.
    """
    n, matrices = len(layout.lengths), chain.steps(chain.log_trans, len(layout.steps))
    alpha, beta = np.empty_like(log_emit), np.zeros_like(log_emit)
    norm = np.empty(log_emit.shape[1])
    head = slice(0, n)
    alpha[:, head] = log_emit[:, head] + chain.log_start[:, None]
    _subtract_sum(alpha[:, head], norm[head])
    for (here, before), step in zip(layout.steps, matrices):
        alpha[:, here] = log_sum_exp(alpha[:, None, before] + step[:, :, None], axis=0) + log_emit[:, here]
        _subtract_sum(alpha[:, here], norm[here])
    ignored = np.empty_like(norm)
    for (here, before), step in zip(reversed(layout.steps), reversed(matrices)):
        beta[:, before] = log_sum_exp(step[:, :, None] + (log_emit[:, here] + beta[:, here])[None], axis=1)
        _subtract_sum(beta[:, before], ignored[before])
    states = alpha + beta
    softmax_columns(states)  # zeros for an impossible sequence
    weights = (np.ones(n) if weight is None else weight)[layout.order]

    def totals() -> Iterator[Array]:
        S = chain.n_states
        for (here, before), step in zip(layout.steps, matrices):
            after = log_emit[:, here] + beta[:, here]
            pairs = (alpha[:, None, before] + step[:, :, None] + after[None]).reshape(S * S, -1)
            softmax_columns(pairs)
            yield (pairs * weights[: pairs.shape[1]]).T.reshape(-1, S, S)

    return layout.per_sequence(norm), states, totals


def _subtract_sum(log_columns: Array, log_total: Array) -> None:
    """Subtract from each column the logarithm of its sum, which is written to `log_total`; -inf does not change."""
    log_total[:] = log_sum_exp(log_columns, axis=0)
    log_columns -= _finite(log_total)
