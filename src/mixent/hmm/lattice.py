"""Sums and maxima over all state paths of many sequences at once: functions of values, no model.

The weight of a path z_0 ... z_{L-1} through a sequence is

    start(z_0) emit_0(z_0)  prod_{t>0}  trans_t(z_{t-1}, z_t) emit_t(z_t),

every factor given by its logarithm. Nothing need sum to one (expected logarithms of variational methods do not), and
-inf forbids. One transition matrix (S, S) holds for all steps, or (T - 1, S, S) has one for each: trans[t - 1] leads
into step t, so T is at least the longest length.

Sequences stand side by side, longest first, so that the steps of one time are neighbors: one product of matrices per
time moves all sequences that are still alive. Forward and backward vectors are scaled to sum to one at every step. The
overlap Z_t = sum_s alpha_t(s) beta_t(s) then bounds what underflow can have lost by about 1e-308 / Z_t; where it is
small (a path that looked hopeless turned out to be the only one) the sequence is done again in the log domain.
Few and long sequences are cut into chunks that stand side by side in turn (`chunks.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mixent.core.arrays import Array, log_sum_exp

SURE = 1e-20  # overlap above which scaled numbers are right to the last digit
TINY = 1e-300  # stands for a sum of zero when it is divided by
LONG = 64  # steps from which sequences are cut into chunks ...
NARROW = 16_000  # ... where fewer than this / S^3 of them stand side by side


@dataclass(frozen=True)
class Layout:
    """Where the steps of concatenated sequences stand when sequences are put side by side, longest first."""

    lengths: np.ndarray  # (n,) of the sequences, >= 1, in the caller's order

    @cached_property
    def order(self) -> np.ndarray:
        """(n,) the sequence at each place."""
        return np.argsort(-self.lengths, kind="stable")

    @cached_property
    def alive(self) -> np.ndarray:
        """(T,) sequences that reach each time: the first ones, by place."""
        longest = int(self.lengths.max(initial=0))
        return len(self.lengths) - np.searchsorted(np.sort(self.lengths), np.arange(longest), side="right")

    @cached_property
    def begins(self) -> np.ndarray:
        """(T,) the first position of each time."""
        return np.cumsum(self.alive) - self.alive

    @cached_property
    def time(self) -> np.ndarray:
        """(N,) of each position."""
        return np.repeat(np.arange(len(self.alive)), self.alive)

    @cached_property
    def place(self) -> np.ndarray:
        """(N,) of each position: 0 is the longest sequence."""
        return np.arange(len(self.time)) - self.begins[self.time]

    @cached_property
    def rows(self) -> np.ndarray:
        """(N,) the step, in the concatenation of sequences, at each position."""
        first = np.cumsum(self.lengths) - self.lengths
        return first[self.order[self.place]] + self.time

    @cached_property
    def steps(self) -> list[tuple[slice, slice]]:
        """For every time but the first: positions there, and of the same sequences one step before."""
        begins, alive = self.begins.tolist(), self.alive.tolist()
        return [
            (slice(begins[t], begins[t] + alive[t]), slice(begins[t - 1], begins[t - 1] + alive[t]))
            for t in range(1, len(alive))
        ]

    @cached_property
    def before(self) -> np.ndarray | slice:
        """Positions one step before those from `alive[0]` on."""
        n, N = len(self.lengths), len(self.time)
        if self.alive[-1] == n:
            return slice(0, N - n)
        return np.arange(n, N) - self.alive[self.time[n:] - 1]

    @cached_property
    def ends(self) -> np.ndarray:
        """(n,) the last position of each sequence, by place."""
        return self.begins[self.lengths[self.order] - 1] + np.arange(len(self.lengths))

    @cached_property
    def chunks(self) -> Any:
        """How few and long sequences are cut (`chunks.Chunks`)."""
        from mixent.hmm.chunks import Chunks

        return Chunks.of(self)

    def per_sequence(self, values: Array) -> Array:
        """Sums (n,) over the steps of each sequence, in the caller's order, of values (N,) by position."""
        out = np.empty(len(self.lengths))
        out[self.order] = np.bincount(self.place, values, len(self.lengths))
        return out

    def back(self, values: Any) -> Any:
        """Values (..., N) by position, as (N, ...) in the order of the concatenation."""
        out = np.empty((values.shape[-1], *values.shape[:-1]), dtype=values.dtype)
        out[self.rows] = np.moveaxis(values, -1, 0)
        return out


@dataclass(frozen=True)
class Chain:
    """Start and transitions: logarithms, and weights relative to the largest."""

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
        """Weights (S,), and the logarithm they are relative to."""
        top = float(_finite(self.log_start.max()))
        return np.exp(self.log_start - top), top

    @cached_property
    def trans(self) -> tuple[Array, Array]:
        """Weights, as `log_trans`, and the logarithms () or (T - 1,) they are relative to."""
        top = _finite(self.log_trans.max(axis=(-2, -1)))
        return np.exp(self.log_trans - top[..., None, None]), np.asarray(top)

    @cached_property
    def mixes(self) -> bool:
        """Can every state follow every other? Then a scaled forward pass alone is safe."""
        return bool(self.start[0].min() > TINY and self.trans[0].min(initial=1.0) > 1e-50)

    def steps(self, weights: Array, count: int) -> list[Array]:
        """The matrix into each step from the second on."""
        return list(weights[:count]) if self.by_step else [weights] * count

    def log_scale(self, lengths: np.ndarray) -> Array:
        """(n,) what the weights are relative to, along each sequence."""
        _, per_step = self.trans
        along = np.cumsum(np.append(0.0, per_step))[lengths - 1] if self.by_step else (lengths - 1) * per_step
        return self.start[1] + along


@dataclass(frozen=True)
class Sweep:
    """What forward and backward found, by position."""

    log_lik: Array  # (n,) of each sequence, in the caller's order
    states: Array  # (S, N) posteriors; zero throughout an impossible sequence
    pairs: Array | None  # posteriors of two successive states, summed as asked for


@dataclass(frozen=True)
class Posterior:
    """What is known of the states of each sequence."""

    log_lik: Array  # (n,)
    states: Array  # (n_steps, S)
    pairs: Array  # (S, S) summed over steps and sequences; (T - 1, S, S) or (n, S, S) when asked for


def _side_by_side(log_start: Array, log_trans: Array, log_emit: Array, lengths: Any) -> tuple[Chain, Array, Layout]:
    layout, chain = Layout(np.asarray(lengths)), Chain(np.asarray(log_start), np.asarray(log_trans))
    if len(log_emit) != layout.lengths.sum():
        raise ValueError(f"log_emit has {len(log_emit)} steps, but lengths add up to {layout.lengths.sum()}")
    if chain.by_step and len(log_trans) < len(layout.steps):
        raise ValueError(f"log_trans has {len(log_trans)} matrices, but a sequence has {len(layout.alive)} steps")
    return chain, np.ascontiguousarray(np.asarray(log_emit)[layout.rows].T), layout


def log_likelihood(log_start: Array, log_trans: Array, log_emit: Array, lengths: Any) -> Array:
    """Logarithm of the summed weight of all paths, (n,); -inf for an impossible sequence.

    Parameters
    ----------
    log_start : (S,)
    log_trans : (S, S) or (T - 1, S, S)
    log_emit : (n_steps, S), sequences one after the other
    lengths : (n,)
    """
    chain, emit, layout = _side_by_side(log_start, log_trans, log_emit, lengths)
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
    """Posteriors of states and of pairs of successive states.

    Parameters
    ----------
    log_start, log_trans, log_emit, lengths
        See `log_likelihood`.
    weight : (n,), optional
        Of each sequence, in the sums of pairs; state posteriors have none.
    pairs : "sum", "step" or "sequence"
        Pairs summed over all, (S, S); of each step apart, (T - 1, S, S); or of each sequence apart, (n, S, S).
    """
    chain, emit, layout = _side_by_side(log_start, log_trans, log_emit, lengths)
    found = sweep(chain, emit, layout, weight, pairs=pairs)
    assert found.pairs is not None
    return Posterior(found.log_lik, layout.back(found.states), found.pairs)


def viterbi(log_start: Array, log_trans: Array, log_emit: Array, lengths: Any) -> tuple[np.ndarray, Array]:
    """The heaviest path of each sequence, (n_steps,), and the logarithm of its weight, (n,).

    Parameters as in `log_likelihood`. Of an impossible sequence, whose paths all weigh nothing, any is returned.
    """
    chain, emit, layout = _side_by_side(log_start, log_trans, log_emit, lengths)
    if narrow(chain, layout):
        from mixent.hmm.chunks import paths_in_chunks

        path, by_place = paths_in_chunks(chain, emit, layout)
    else:
        best, origin = best_paths(chain, emit, layout, chain.log_start[:, None])
        path = np.empty(emit.shape[1], dtype=np.intp)
        path[layout.ends] = best[:, layout.ends].argmax(axis=0)
        for here, before in reversed(layout.steps):
            path[before] = origin[path[here], np.arange(here.start, here.stop)]
        by_place = best[:, layout.ends].max(axis=0)
    log_prob = np.empty(len(layout.lengths))
    log_prob[layout.order] = by_place
    return layout.back(path), log_prob


def best_paths(chain: Chain, emit: Array, layout: Layout, first: Array) -> tuple[Array, np.ndarray]:
    """(S, N) log-weights of the heaviest paths that end in each state, and the state each comes from."""
    best, origin = np.empty_like(emit), np.zeros(emit.shape, dtype=np.int32)
    head = slice(0, len(layout.lengths))
    np.add(emit[:, head], first, out=best[:, head])
    for (here, before), log_step in zip(layout.steps, chain.steps(chain.log_trans, len(layout.steps))):
        reached = best[:, None, before] + log_step[:, :, None]  # (from, to, sequence)
        origin[:, here] = reached.argmax(axis=0)
        np.add(reached.max(axis=0), emit[:, here], out=best[:, here])
    return best, origin


def sweep_forward(chain: Chain, log_emit: Array, layout: Layout) -> Array:
    """Log-likelihoods (n,) of emissions by position (S, N)."""
    if not chain.mixes:  # only the overlap with the backward pass shows whether underflow did harm
        return sweep(chain, log_emit, layout, pairs=None).log_lik
    emit, top = _scaled(log_emit)
    norm = _passes(chain, emit, layout, both=False)[1]
    if norm.min(initial=1.0) < 1e-200:  # a step that no state can emit
        return sweep(chain, log_emit, layout, pairs=None).log_lik
    return _log_lik(chain, layout, norm, top)


def sweep(
    chain: Chain, log_emit: Array, layout: Layout, weight: Array | None = None, *, pairs: str | None = "sum"
) -> Sweep:
    """Forward and backward over emissions by position (S, N); see `forward_backward` for `weight` and `pairs`."""
    emit, top = _scaled(log_emit)
    alpha, norm, beta, growth = _passes(chain, emit, layout)
    log_lik = _log_lik(chain, layout, norm, top)
    states = np.multiply(alpha, beta, out=beta)
    overlap = states.sum(axis=0)
    unsure = overlap.min(initial=1.0) < SURE
    states /= np.maximum(overlap, TINY) if unsure else overlap
    lost = np.unique(layout.order[layout.place[overlap < SURE]]) if unsure else np.empty(0, dtype=np.intp)
    kept = np.ones(len(layout.lengths)) if weight is None else np.array(weight, dtype=float)
    kept[lost] = 0.0
    summed = None
    if pairs is not None:
        # xi_t(r, s) = alpha_{t-1}(r) trans(r, s) emit_t(s) beta_t(s) / (growth_{t-1} Z_{t-1}); emit now holds emit beta
        n, before = len(layout.lengths), layout.before
        scale = kept[layout.order[layout.place[n:]]] / np.maximum(growth[before] * overlap[before], TINY)
        summed = _pairs(chain, layout, alpha[:, before], emit[:, n:] * scale, pairs)
    found = Sweep(log_lik, states, summed)
    return _mended(found, chain, log_emit, layout, lost, weight, pairs) if len(lost) else found


def _pairs(chain: Chain, layout: Layout, before: Array, after: Array, kind: str) -> Array:
    """Sum of  before_r trans(r, s) after_s,  over all, by step, or by sequence."""
    weights, S, count = chain.trans[0], chain.n_states, len(layout.alive) - 1
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
    """Emissions relative to the largest of each step, and the logarithm of that."""
    top = _finite(log_emit.max(axis=0))
    emit = log_emit - top
    return np.exp(emit, out=emit), top


def _finite(top: Any) -> Any:
    """The largest of what may be forbidden throughout: relative to 0 then."""
    return np.where(np.isneginf(top), 0.0, top)


def _passes(chain: Chain, emit: Array, layout: Layout, *, both: bool = True) -> tuple[Array, Array, Array, Array]:
    """alpha (S, N) and its sums (N,), beta and its sums; emit becomes emit beta from the second step on."""
    if narrow(chain, layout):
        from mixent.hmm.chunks import in_chunks

        return in_chunks(chain, emit, layout, both)
    n = len(layout.lengths)
    alpha, norm = forward(chain, emit, layout, chain.start[0][:, None])
    beta, growth = backward(chain, emit, layout, np.ones((chain.n_states, n))) if both else (alpha, norm)
    return alpha, norm, beta, growth


def narrow(chain: Chain, layout: Layout) -> bool:
    """Are sequences so few and long that they are better cut into chunks?"""
    long = len(layout.alive)
    return not chain.by_step and long >= LONG and len(layout.time) * chain.n_states**3 < NARROW * long


def forward(chain: Chain, emit: Array, layout: Layout, first: Array) -> tuple[Array, Array]:
    """alpha (S, N), each column summing to one, and the sums (N,) before that; `first` (S, n or 1) enters, by place."""
    alpha, norm = np.empty_like(emit), np.empty(emit.shape[1])
    head = slice(0, len(layout.lengths))
    np.multiply(emit[:, head], first, out=alpha[:, head])
    normalize(alpha[:, head], norm[head])
    weights = np.ascontiguousarray(np.swapaxes(chain.trans[0], -1, -2))
    for (here, before), step in zip(layout.steps, chain.steps(weights, len(layout.steps))):
        there = alpha[:, here]
        np.matmul(step, alpha[:, before], out=there)
        there *= emit[:, here]
        normalize(there, norm[here])
    return alpha, norm


def backward(chain: Chain, emit: Array, layout: Layout, last: Array) -> tuple[Array, Array]:
    """beta (S, N), `last` (S, n, by place) at the last steps; the columns of other steps sum to one.

    And the sums before that; emit becomes emit beta from the second step on.
    """
    beta, growth = np.empty_like(emit), np.ones(emit.shape[1])
    beta[:, layout.ends] = last
    matrices = chain.steps(chain.trans[0], len(layout.steps))
    for (here, before), step in zip(reversed(layout.steps), reversed(matrices)):
        message = emit[:, here]
        message *= beta[:, here]
        there = beta[:, before]
        np.matmul(step, message, out=there)
        normalize(there, growth[before])
    return beta, growth


def normalize(columns: Array, total: Array) -> None:
    """Divide each column by its sum, which is written to `total`; a column of zeros stays one."""
    np.add.reduce(columns, axis=0, out=total)
    np.maximum(total, TINY, out=total)
    columns /= total


def _log_lik(chain: Chain, layout: Layout, norm: Array, top: Array) -> Array:
    return layout.per_sequence(np.log(norm) + top) + chain.log_scale(layout.lengths)


# in the log domain ----------------------------------------------------------------------------------------------------


def _mended(
    found: Sweep,
    chain: Chain,
    log_emit: Array,
    layout: Layout,
    lost: np.ndarray,
    weight: Array | None,
    pairs: str | None,
) -> Sweep:
    """Do some sequences again, in the log domain."""
    where = np.flatnonzero(np.isin(layout.order[layout.place], lost))  # by position; the order of places is kept
    own = Layout(layout.lengths[lost])
    # `lost` rises, and both layouts break ties of length in the callers' order
    log_lik, states, totals = _log_sweep(chain, log_emit[:, where], own, None if weight is None else weight[lost])
    found.log_lik[lost] = log_lik
    found.states[:, where] = states
    if pairs is not None and found.pairs is not None:
        for t, by_sequence in enumerate(totals()):
            if pairs == "sequence":
                found.pairs[lost[own.order[: len(by_sequence)]]] += by_sequence
            elif pairs == "step":
                found.pairs[t] += by_sequence.sum(axis=0)
            else:
                found.pairs[...] += by_sequence.sum(axis=0)
    return found


def _log_sweep(
    chain: Chain, log_emit: Array, layout: Layout, weight: Array | None
) -> tuple[Array, Array, Callable[[], Iterator[Array]]]:
    """Log-likelihoods, state posteriors (S, N), and a generator of weighted pair posteriors (alive, S, S) by step."""
    n, matrices = len(layout.lengths), chain.steps(chain.log_trans, len(layout.steps))
    alpha, beta = np.empty_like(log_emit), np.zeros_like(log_emit)
    alpha[:, :n] = log_emit[:, :n] + chain.log_start[:, None]
    for (here, before), step in zip(layout.steps, matrices):
        alpha[:, here] = log_sum_exp(alpha[:, None, before] + step[:, :, None], axis=0) + log_emit[:, here]
    for (here, before), step in zip(reversed(layout.steps), reversed(matrices)):
        beta[:, before] = log_sum_exp(step[:, :, None] + (log_emit[:, here] + beta[:, here])[None], axis=1)
    by_place = log_sum_exp(alpha[:, layout.ends], axis=0)
    log_lik = np.empty(n)
    log_lik[layout.order] = by_place
    base = np.where(np.isneginf(by_place), 0.0, by_place)  # an impossible sequence has no posterior
    states = np.exp(alpha + beta - base[layout.place])
    kept = (np.ones(n) if weight is None else weight)[layout.order] * ~np.isneginf(by_place)

    def totals() -> Iterator[Array]:
        for (here, before), step in zip(layout.steps, matrices):
            alive = here.stop - here.start
            after = log_emit[:, here] + beta[:, here] - base[:alive]
            pairs = np.exp(alpha[:, None, before] + step[:, :, None] + after[None])
            yield (pairs * kept[:alive]).transpose(2, 0, 1)

    return log_lik, states, totals
