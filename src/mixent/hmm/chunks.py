"""Forward-backward and Viterbi algorithms for a few long sequences, in chunks that are processed in parallel.

A chunk acts on the forward vector as a matrix, M(r, s) = weight of all paths through the chunk from state r at its
first step to state s at its last. These matrices are computed for all chunks at once. Their products along each
sequence give the forward vector at the start and the backward vector at the end of every chunk; then all chunks are
processed at once.
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
    """Division of the sequences of a layout into chunks."""

    inner: Layout  # layout of the chunks
    where: np.ndarray  # (N,) position in the outer layout of each position in the inner one
    head: np.ndarray  # (n,) first chunk of each sequence
    counts: np.ndarray  # (n,) number of chunks of each sequence

    @classmethod
    def of(cls, layout: Layout) -> Chunks:
        """Divide into about as many chunks as each has steps, since both are processed sequentially."""
        lengths, size = layout.lengths, max(16, int(1.8 * len(layout.active) ** 0.5))
        counts = -(-lengths // size)
        head = np.cumsum(counts) - counts
        cut = np.full(counts.sum(), size)
        cut[head + counts - 1] = lengths - (counts - 1) * size
        inner = Layout(cut)
        position = np.empty(len(layout.rows), dtype=np.intp)
        position[layout.rows] = np.arange(len(position))
        return cls(inner, position[inner.rows], head, counts)

    def following(self, layout: Layout) -> Iterator[np.ndarray]:
        """Yield the second chunk of all sequences with at least two, then the third, and so on."""
        for k in range(1, int(self.counts.max())):
            yield self.head[layout.order[: int((self.counts > k).sum())]] + k

    def by_chunk(self, values: Any) -> Any:
        """Return values (..., ranks of `inner`) in the order of the chunks."""
        out = np.empty_like(values)
        out[..., self.inner.order] = values
        return out


def in_chunks(chain: Chain, emit: Array, layout: Layout, both: bool) -> tuple[Array, Array, Array, Array]:
    """Return the same as `forward` and `backward` of whole sequences: alpha, its sums, beta, its sums, by position.

    emit (S, N) is replaced by emit beta from the second step of each sequence on.
    """
    chunks: Chunks = layout.chunks
    inner, where = chunks.inner, chunks.where
    chunk_emit = np.ascontiguousarray(emit[:, where])
    through, log_through = _transfer(chain, chunk_emit, inner)
    through, log_through = chunks.by_chunk(through), chunks.by_chunk(log_through)
    following = list(chunks.following(layout))
    enter = _enter(chain, through, log_through, chunks.head, following)

    def outer(values: Array) -> Array:
        out = np.empty_like(values)
        out[..., where] = values
        return out

    alpha, norm = forward(chain, chunk_emit, inner, enter[:, inner.order])
    if not both:
        return alpha, outer(norm), alpha, norm
    leave = _leave(chain, through, log_through, following)
    beta, growth = backward(chain, chunk_emit, inner, leave[:, inner.order])
    alpha, norm, beta, growth = outer(alpha), outer(norm), outer(beta), outer(growth)
    emit[:, where] = chunk_emit
    first = where[: len(inner.lengths)]  # first steps of the chunks; those within a sequence have a previous step
    first = first[layout.time[first] > 0]
    emit[:, first] *= beta[:, first]
    before = layout.starts[layout.time[first] - 1] + layout.rank[first]
    growth[before] = np.maximum((chain.trans[0] @ emit[:, first]).sum(axis=0), TINY)
    return alpha, norm, beta, growth


def _transfer(chain: Chain, emit: Array, inner: Layout) -> tuple[Array, Array]:
    """Return the normalized matrix of each chunk, (to, from, rank), and the logarithms of its sums, (from, rank)."""
    S, n = len(emit), len(inner.lengths)
    weights = np.ascontiguousarray(chain.trans[0].T)
    through = np.eye(S)[:, :, None] * emit[:, None, :n]
    log_sum = np.zeros((S, n))
    total = np.empty((S, n))
    normalize(through, total)
    log_sum += _log(total)
    for here, _ in inner.steps:
        active = here.stop - here.start
        product = (weights @ through[:, :, :active].reshape(S, -1)).reshape(S, S, active)
        product *= emit[:, None, here]
        normalize(product, total[:, :active])
        log_sum[:, :active] += _log(total[:, :active])
        through[:, :, :active] = product
    return through, log_sum


def _log(total: Array) -> Array:
    """Return the logarithm of sums, -inf for those that replace zero."""
    return np.where(total > TINY, np.log(total), -np.inf)


def _enter(chain: Chain, through: Array, log_sum: Array, head: np.ndarray, following: list[np.ndarray]) -> Array:
    """Return the forward vector before each chunk, (S, chunks)."""
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
    """Return the backward vector at the last step of each chunk, (S, chunks)."""
    leave = np.ones((len(through), through.shape[2]))
    for chunk in reversed(following):
        top = log_sum[:, chunk].max(axis=0)
        scale = np.exp(log_sum[:, chunk] - np.where(np.isneginf(top), 0.0, top))
        following_beta = scale * (through[:, :, chunk] * leave[:, None, chunk]).sum(axis=0)
        normalize(following_beta, np.empty(len(chunk)))
        beta = chain.trans[0] @ following_beta
        normalize(beta, np.empty(len(chunk)))
        leave[:, chunk - 1] = beta
    return leave


def paths_in_chunks(chain: Chain, emit: Array, layout: Layout) -> tuple[np.ndarray, Array]:
    """Return the best path by position, and its log-weight by rank: the same algorithm with maxima instead of sums."""
    chunks: Chunks = layout.chunks
    inner, where, following = chunks.inner, chunks.where, list(chunks.following(layout))
    chunk_emit = np.ascontiguousarray(emit[:, where])
    S, n = len(chunk_emit), len(inner.lengths)
    through = chunks.by_chunk(_best_transfer(chain, chunk_emit, inner))
    enter = np.empty((S, n))
    enter[:, chunks.head] = chain.log_start[:, None]
    for chunk in following:
        end = (through[:, :, chunk - 1] + enter[None, :, chunk - 1]).max(axis=1)
        enter[:, chunk] = (end[:, None] + chain.log_trans[:, :, None]).max(axis=0)
    best, origin = best_paths(chain, chunk_emit, inner, enter[:, inner.order])
    at_end = chunks.by_chunk(best[:, inner.ends])  # (S, chunks)
    # trace back from every final state of all chunks at once; then select the final states along each sequence
    paths = np.empty(chunk_emit.shape, dtype=np.intp)
    paths[:, inner.ends] = np.arange(S)[:, None]
    for here, before in reversed(inner.steps):
        paths[:, before] = origin[paths[:, here], np.arange(here.start, here.stop)]
    entered = chunks.by_chunk(paths[:, :n])  # (S, chunks): first state of the path that ends in each state
    last = np.empty(n, dtype=np.intp)
    final = chunks.head + chunks.counts - 1
    last[final] = at_end[:, final].argmax(axis=0)
    for chunk in reversed(following):
        into = entered[last[chunk], chunk]
        last[chunk - 1] = (at_end[:, chunk - 1] + chain.log_trans[:, into]).argmax(axis=0)
    path = np.empty(chunk_emit.shape[1], dtype=np.intp)
    path[where] = paths[last[inner.order][inner.rank], np.arange(chunk_emit.shape[1])]
    return path, at_end[:, final].max(axis=0)[layout.order]


def _best_transfer(chain: Chain, emit: Array, inner: Layout) -> Array:
    """Return the log-weight of the best path through each chunk, (to, from, rank)."""
    S, n = len(emit), len(inner.lengths)
    through = np.where(np.eye(S, dtype=bool)[:, :, None], emit[:, None, :n], -np.inf)
    for here, _ in inner.steps:
        active = here.stop - here.start
        product = (through[:, None, :, :active] + chain.log_trans[:, :, None, None]).max(axis=0)
        through[:, :, :active] = product + emit[:, None, here]
    return through
