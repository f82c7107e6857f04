"""Few and long sequences, parallel in time: cut into chunks that are worked on side by side.

What a chunk does to any vector that enters it is a matrix, M(r, s) = weight of all paths through the chunk from state r
at its first step to state s at its last. These are found for all chunks at once; products of them along each sequence
give the vector that enters every chunk, and from behind the one that leaves it; then all chunks run at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.core.arrays import Array, safe_log
from mixent.hmm.lattice import TINY, Chain, Layout, backward, best_paths, forward, normalize


@dataclass(frozen=True)
class Chunks:
    """How the sequences of a layout are cut."""

    inner: Layout  # of the chunks
    where: np.ndarray  # (N,) the outer position of each inner one
    head: np.ndarray  # (n,) the first chunk of each sequence
    counts: np.ndarray  # (n,) chunks of each sequence

    @classmethod
    def of(cls, layout: Layout) -> Chunks:
        """About as many chunks as steps in each: those are done one after the other, too."""
        lengths, size = layout.lengths, max(16, int(1.8 * len(layout.alive) ** 0.5))
        counts = -(-lengths // size)
        head = np.cumsum(counts) - counts
        cut = np.full(counts.sum(), size)
        cut[head + counts - 1] = lengths - (counts - 1) * size
        inner = Layout(cut)
        position = np.empty(len(layout.rows), dtype=np.intp)
        position[layout.rows] = np.arange(len(position))
        return cls(inner, position[inner.rows], head, counts)

    def following(self, layout: Layout) -> Iterator[np.ndarray]:
        """The second chunk of every sequence that has one, the third, ..."""
        for k in range(1, int(self.counts.max())):
            yield self.head[layout.order[: int((self.counts > k).sum())]] + k

    def by_chunk(self, values: Any) -> Any:
        """Values (..., places of `inner`) in the order of the chunks."""
        out = np.empty_like(values)
        out[..., self.inner.order] = values
        return out


def in_chunks(chain: Chain, emit: Array, layout: Layout, both: bool) -> tuple[Array, Array, Array, Array]:
    """The same as `forward` and `backward` of whole sequences: alpha, its sums, beta, its sums, by position.

    emit (S, N) becomes emit beta from the second step of each sequence on.
    """
    chunks: Chunks = layout.chunks
    inner, where = chunks.inner, chunks.where
    own = np.ascontiguousarray(emit[:, where])
    through, log_through = _transfer(chain, own, inner)
    through, log_through = chunks.by_chunk(through), chunks.by_chunk(log_through)
    following = list(chunks.following(layout))
    enter = _enter(chain, through, log_through, chunks.head, following)

    def outer(values: Array) -> Array:
        out = np.empty_like(values)
        out[..., where] = values
        return out

    alpha, norm = forward(chain, own, inner, enter[:, inner.order])
    if not both:
        return alpha, outer(norm), alpha, norm
    leave = _leave(chain, through, log_through, following)
    beta, growth = backward(chain, own, inner, leave[:, inner.order])
    alpha, norm, beta, growth = outer(alpha), outer(norm), outer(beta), outer(growth)
    emit[:, where] = own
    first = where[: len(inner.lengths)]  # of every chunk; where a sequence goes on, its end before leads in here
    first = first[layout.time[first] > 0]
    emit[:, first] *= beta[:, first]
    before = layout.begins[layout.time[first] - 1] + layout.place[first]
    growth[before] = np.maximum((chain.trans[0] @ emit[:, first]).sum(axis=0), TINY)
    return alpha, norm, beta, growth


def _transfer(chain: Chain, emit: Array, inner: Layout) -> tuple[Array, Array]:
    """(to, from, place) what each chunk does, each column summing to one, and logarithms (from, place) of the sums."""
    S, n = len(emit), len(inner.lengths)
    weights = np.ascontiguousarray(chain.trans[0].T)
    through = np.eye(S)[:, :, None] * emit[:, None, :n]
    log_sum = np.zeros((S, n))
    total = np.empty((S, n))
    normalize(through, total)
    log_sum += _log(total)
    for here, _ in inner.steps:
        alive = here.stop - here.start
        moved = (weights @ through[:, :, :alive].reshape(S, -1)).reshape(S, S, alive)
        moved *= emit[:, None, here]
        normalize(moved, total[:, :alive])
        log_sum[:, :alive] += _log(total[:, :alive])
        through[:, :, :alive] = moved
    return through, log_sum


def _log(total: Array) -> Array:
    """Logarithm of sums; one that stands for zero is forbidden."""
    return np.where(total > TINY, np.log(total), -np.inf)


def _enter(chain: Chain, through: Array, log_sum: Array, head: np.ndarray, following: list[np.ndarray]) -> Array:
    """(S, chunks) the vector that enters each chunk."""
    weights = chain.trans[0].T
    enter = np.empty((len(through), through.shape[2]))
    enter[:, head] = chain.start[0][:, None]
    for chunk in following:
        log_weight = safe_log(enter[:, chunk - 1]) + log_sum[:, chunk - 1]
        top = log_weight.max(axis=0)
        share = np.exp(log_weight - np.where(np.isneginf(top), 0.0, top))
        end = (through[:, :, chunk - 1] * share).sum(axis=1)
        normalize(end, np.empty(len(chunk)))
        enter[:, chunk] = weights @ end
    return enter


def _leave(chain: Chain, through: Array, log_sum: Array, following: list[np.ndarray]) -> Array:
    """(S, chunks) the backward vector at the last step of each chunk."""
    leave = np.ones((len(through), through.shape[2]))
    for chunk in reversed(following):
        top = log_sum[:, chunk].max(axis=0)
        scale = np.exp(log_sum[:, chunk] - np.where(np.isneginf(top), 0.0, top))
        behind = scale * (through[:, :, chunk] * leave[:, None, chunk]).sum(axis=0)
        normalize(behind, np.empty(len(chunk)))
        there = chain.trans[0] @ behind
        normalize(there, np.empty(len(chunk)))
        leave[:, chunk - 1] = there
    return leave


def paths_in_chunks(chain: Chain, emit: Array, layout: Layout) -> tuple[np.ndarray, Array]:
    """The heaviest path by position, and its log-weight by place: the same, with maxima for sums."""
    chunks: Chunks = layout.chunks
    inner, where, following = chunks.inner, chunks.where, list(chunks.following(layout))
    own = np.ascontiguousarray(emit[:, where])
    S, n = len(own), len(inner.lengths)
    through = chunks.by_chunk(_best_transfer(chain, own, inner))
    enter = np.empty((S, n))
    enter[:, chunks.head] = chain.log_start[:, None]
    for chunk in following:
        end = (through[:, :, chunk - 1] + enter[None, :, chunk - 1]).max(axis=1)
        enter[:, chunk] = (end[:, None] + chain.log_trans[:, :, None]).max(axis=0)
    best, origin = best_paths(chain, own, inner, enter[:, inner.order])
    at_end = chunks.by_chunk(best[:, inner.ends])  # (S, chunks)
    # back from every state in which a chunk may end, all chunks at once; then choose along each sequence
    paths = np.empty(own.shape, dtype=np.intp)
    paths[:, inner.ends] = np.arange(S)[:, None]
    for here, before in reversed(inner.steps):
        paths[:, before] = origin[paths[:, here], np.arange(here.start, here.stop)]
    entered = chunks.by_chunk(paths[:, :n])  # (S, chunks): the first state of the path that ends in each
    last = np.empty(n, dtype=np.intp)
    final = chunks.head + chunks.counts - 1
    last[final] = at_end[:, final].argmax(axis=0)
    for chunk in reversed(following):
        into = entered[last[chunk], chunk]
        last[chunk - 1] = (at_end[:, chunk - 1] + chain.log_trans[:, into]).argmax(axis=0)
    path = np.empty(own.shape[1], dtype=np.intp)
    path[where] = paths[last[inner.order][inner.place], np.arange(own.shape[1])]
    return path, at_end[:, final].max(axis=0)[layout.order]


def _best_transfer(chain: Chain, emit: Array, inner: Layout) -> Array:
    """(to, from, place) the log-weight of the heaviest path through each chunk."""
    S, n = len(emit), len(inner.lengths)
    through = np.where(np.eye(S, dtype=bool)[:, :, None], emit[:, None, :n], -np.inf)
    for here, _ in inner.steps:
        alive = here.stop - here.start
        moved = (through[:, None, :, :alive] + chain.log_trans[:, :, None, None]).max(axis=0)
        through[:, :, :alive] = moved + emit[:, None, here]
    return through
