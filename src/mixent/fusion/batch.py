"""A batch of items for the solvers: patterns of answers with their counts, and the evidence of every source.

Items with the same answers of all sources are one pattern: a million items of five sources with two symbols have at
most 243. With a source that gives probabilities, every item is a pattern of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mixent.core.arrays import Array
from mixent.fusion.answers import Answers
from mixent.fusion.problem import Agreement, Rule, Unweighted
from mixent.fusion.sources import Layout
from mixent.maxent.blocks import Rows
from mixent.maxent.cells import Cells

LEAST = 1e-12  # probability of a class by a source: zero would override all others
SHORTEST = 0.1  # sharpness below which steps of "min-divergence" grow no longer
DENSIFY = 1 << 40


@dataclass(frozen=True)
class Batch:
    """Patterns, their total weights, and their classes where known."""

    layout: Layout
    answers: Answers  # of the patterns
    weight: Array  # (P,)
    known: np.ndarray  # (P,) class, -1 where not known
    pattern_of: np.ndarray | None = None  # (n,) pattern of each item; None: every item is one

    @staticmethod
    def of(layout: Layout, answers: Answers, weight: Array | None = None, known: np.ndarray | None = None) -> Batch:
        n = answers.n_items
        weight = np.ones(n) if weight is None else weight
        known = np.full(n, -1) if known is None else known
        if any(one.ndim == 2 for one in answers.responses):
            return Batch(layout, answers, weight, known)
        columns = [*answers.responses, known]
        first, pattern_of = patterns(columns, [*(size + 1 for size in layout.sizes), layout.n_classes + 1])
        counts = np.bincount(pattern_of, weight, minlength=len(first)).astype(float)
        return Batch(layout, answers.part(first), counts, known[first], pattern_of)

    def joined(self, other: Batch) -> Batch:
        """The patterns of both, in this order; `pattern_of` refers to the patterns of both."""
        weight = np.concatenate([self.weight, other.weight])
        known = np.concatenate([self.known, other.known])
        return Batch.of(self.layout, self.answers.joined(other.answers), weight, known)

    @property
    def n_patterns(self) -> int:
        return len(self.weight)

    def items(self, values: np.ndarray) -> np.ndarray:
        """Values of patterns (P, ...) for every item."""
        return values if self.pattern_of is None else values[self.pattern_of]

    @cached_property
    def hard(self) -> list[int]:
        return [j for j, one in enumerate(self.answers.responses) if one.ndim == 1]

    @cached_property
    def soft(self) -> list[int]:
        return [j for j, one in enumerate(self.answers.responses) if one.ndim == 2]

    @cached_property
    def order(self) -> np.ndarray:
        """(S,) the layout's symbols in the order of the cells: codes first, then distributions."""
        parts = [np.arange(s.start, s.stop) for s in (self.layout.slices[j] for j in [*self.hard, *self.soft])]
        return np.concatenate(parts)

    @cached_property
    def cells(self) -> Cells:
        sizes = self.layout.sizes
        return Cells(tuple(sizes[j] for j in self.hard), sum(sizes[j] for j in self.soft))

    @cached_property
    def rows(self) -> Rows:
        P, responses = self.n_patterns, self.answers.responses
        codes = np.stack([responses[j] for j in self.hard], axis=1) if self.hard else np.empty((P, 0), dtype=int)
        dense = np.concatenate([responses[j].T for j in self.soft]) if self.soft else np.empty((0, P))
        target = np.zeros((self.layout.n_classes, P))
        labelled = np.flatnonzero(self.known >= 0)
        target[self.known[labelled], labelled] = self.weight[labelled]
        return Rows(self.cells.packed(codes), np.ascontiguousarray(dense), target, self.weight, np.ones(P, dtype=int))

    def agreement(self, safe: bool = True, confusion: Array | None = None) -> Agreement:
        """The problem of minimizing R, or R~ where `safe` is False."""
        layout, order = self.layout, self.order
        A = layout.confusion if confusion is None else confusion
        free = layout.free[order]
        return (Agreement if safe else Unweighted)(
            self.cells,
            A[order],
            _renumbered(layout.group[order]),
            layout.share[layout.source_of][order],
            float(layout.share.sum()),
            free if free.any() else None,
            1.0 / max(self.sharpness, SHORTEST) if safe else 1.0,
        )

    @cached_property
    def sharpness(self) -> float:
        """How far answers are from uniform: one for labels, less for probabilities, which allow longer steps."""
        each = np.ones(self.layout.n_sources)
        for j in self.soft:
            responses, V = self.answers.responses[j], self.layout.sizes[j]
            total = float(self.weight @ self.answered[j])
            if total > 0 and V > 1:
                peak = float(self.weight @ np.einsum("nv,nv->n", responses, responses)) / total
                each[j] = (peak - 1 / V) / (1 - 1 / V)
        return float(np.average(each, weights=self.layout.share))

    def logits(self, weights: Array) -> Array:
        """(K, P): sum of weights (S, K) over the answers."""
        return self.cells.logits(weights[self.order], self.rows)

    def expected(self, weights: Array) -> Array:
        """(S, C): sum over patterns of the answers times weights (C, P)."""
        out = np.empty((self.layout.n_symbols, len(weights)))
        out[self.order] = self.cells.expected(np.ascontiguousarray(weights), self.rows)
        return out

    @cached_property
    def answered(self) -> np.ndarray:
        """(J, P)"""
        return self.answers.answered()

    def product(self, trust: Array, confusion: Array | None = None) -> Array:
        """(P, K) sum over the sources of trust times log-likelihood ratio, source by source to save memory."""
        out = np.zeros((self.n_patterns, self.layout.n_classes))
        one = np.empty_like(out)
        A = self.layout.confusion if confusion is None else confusion
        for j, responses in enumerate(self.answers.responses):
            one[:] = 0.0
            self._evidence_of(j, responses, A[self.layout.slices[j]], one)
            one *= trust[j] if self._copy_scale is None else trust[j] * self._copy_scale[j][:, None]
            out += one
        return out

    @cached_property
    def _copy_scale(self) -> Array | None:
        """(J, P) factors of copies: those with an answer have the whole vote of their group. None without copies."""
        layout = self.layout
        if len(np.unique(layout.root)) == layout.n_sources:
            return None
        n_answered = np.zeros((layout.n_sources, self.n_patterns))
        np.add.at(n_answered, layout.root, self.answered.astype(float))
        return 1.0 / (np.maximum(n_answered[layout.root], 1.0) * layout.share[:, None])

    def product_evidence(self, confusion: Array | None = None) -> Array:
        """(J, P, K) evidence for product rules: copies with an answer have the whole vote of their group."""
        evidence = self.evidence(confusion)
        return evidence if self._copy_scale is None else evidence * self._copy_scale[:, :, None]

    @cached_property
    def ratio(self) -> Array:
        """(P, K) log-likelihood ratios of the product rule: each source with its share of a vote."""
        return self.product(self.layout.share)

    @cached_property
    def shares(self) -> Array:
        """(J, P) share of a vote of each source on each pattern; zero without an answer."""
        return self.layout.share[:, None] * self.answered

    def evidence(self, confusion: Array | None = None) -> Array:
        """(J, P, K) log-likelihood ratios; zero without an answer."""
        out = np.zeros((self.layout.n_sources, self.n_patterns, self.layout.n_classes))
        A = self.layout.confusion if confusion is None else confusion
        for j, responses in enumerate(self.answers.responses):
            self._evidence_of(j, responses, A[self.layout.slices[j]], out[j])
        return out

    def _evidence_of(self, j: int, responses: np.ndarray, confusion: Array, out: Array) -> None:
        ratio = confusion / self.layout.pooled[self.layout.slices[j], None]  # (S_j, K)
        if responses.ndim == 1:
            there = responses >= 0
            out[there] = np.log(ratio)[responses[there]]
            return
        own = self._own_probabilities(j)
        if own is None:
            np.log(np.maximum(responses @ ratio, LEAST), out=out)
        else:
            place, prior = own
            scale = self.layout.calibrations[j].scale
            had = prior > 0  # its probabilities carry no evidence on a class it was not trained on
            whole = bool(had.all()) and place == list(range(out.shape[1]))
            values = np.maximum(responses if whole else responses[:, had], LEAST)
            np.log(values, out=values)
            ratio = values - np.log(prior[had]) if scale is None else scale[0] * values + np.array(scale[1:])[had]
            out[:, slice(None) if whole else np.array(place)[had]] = ratio
        if not self.answered[j].all():
            out[~self.answered[j]] = 0.0

    def _own_probabilities(self, j: int) -> tuple[list[int], Array] | None:
        """The classes of its distributions, and its priors of them; None where the symbols are not classes."""
        source, one = self.layout.sources[j], self.layout.calibrations[j]
        classes = self.layout.classes.tolist()
        if not source.as_is or one.cells is not None or one.edges is not None:
            return None
        used = {symbol for symbol, responses in zip(one.symbols, one.counts.sum(axis=0)) if responses > 0}
        seen = {label for label, there in zip(one.classes, one.seen) if there}
        # for a class with rows but without a symbol, or without any probability, there is only the confusion matrix
        if not set(one.symbols) <= set(one.classes) or not seen <= used:
            return None
        prior = dict(zip(one.classes, one.class_prior))
        return [classes.index(s) for s in one.symbols], np.array([prior[s] for s in one.symbols])

    def votes(self) -> Array:
        """(J, P, K) one-hot: the class each source names; zero for a symbol that is not a class."""
        layout = self.layout
        out = np.zeros((layout.n_sources, self.n_patterns, layout.n_classes))
        for j, responses in enumerate(self.answers.responses):
            named = self._named(j)
            codes = responses if responses.ndim == 1 else np.where(self.answered[j], responses.argmax(axis=1), -1)
            classes = np.where(codes >= 0, named[codes], -1)
            voted = np.flatnonzero(classes >= 0)
            out[j, voted, classes[voted]] = 1.0
        return out

    def _named(self, j: int) -> np.ndarray:
        """(S_j,) class each symbol names, -1: none. A bin of scores names the class with the largest rate."""
        one = self.layout.calibrations[j]
        classes = self.layout.classes.tolist()
        if one.edges is not None:
            return self.layout.confusion[self.layout.slices[j]].argmax(axis=1)
        named = np.array([classes.index(s) if s in classes else -1 for s in one.symbols])
        return np.repeat(named, 1 if one.cells is None else len(one.cells))

    def part(self, rows: np.ndarray) -> Batch:
        """Some of the patterns."""
        return Batch(self.layout, self.answers.part(rows), self.weight[rows], self.known[rows])

    @cached_property
    def totals(self) -> Array:
        """(S,) total weight of each symbol."""
        return self.expected(self.weight[None])[:, 0]

    @cached_property
    def unlabelled_totals(self) -> Array:
        """(S,) total weight of each symbol over items without a known class."""
        if not (self.known >= 0).any():
            return self.totals
        return self.expected((self.weight * (self.known < 0))[None])[:, 0]

    @cached_property
    def moments(self) -> Array:
        """(S + 1, S + 1) sum of w x x^T over items without a known class, x a one and all answers to an item."""
        known = self.known >= 0
        some = self.part(np.flatnonzero(~known)) if known.any() else self
        place = np.concatenate([[0], 1 + np.argsort(self.order)])
        return some.cells.gram(some.rows)[np.ix_(place, place)]

    def rule(self, params: Rule) -> Array:
        """(S, K) weights of log q, by the layout's symbols."""
        out = np.empty_like(params.weights)
        out[self.order] = -params.weights
        return out


def patterns(columns: list[np.ndarray], sizes: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """First row of every distinct row of codes (from -1), and the pattern of each row."""
    joint = np.zeros(len(columns[0]), dtype=np.int64)
    span = 1
    for column, size in zip(columns, sizes):
        if span * size > DENSIFY:
            _, joint = np.unique(joint, return_inverse=True)
            span = int(joint.max()) + 1 if len(joint) else 1
        joint = joint * size + (column + 1)
        span *= size
    if span > 4 * len(joint):
        _, first, place = np.unique(joint, return_index=True, return_inverse=True)
        return first, place
    first_of = np.full(span, -1, dtype=np.int64)
    first_of[joint[::-1]] = np.arange(len(joint))[::-1]
    there = np.flatnonzero(first_of >= 0)
    place_of = np.empty(span, dtype=np.int64)
    place_of[there] = np.arange(len(there))
    return first_of[there], place_of[joint]


def _renumbered(group: np.ndarray) -> np.ndarray:
    return np.unique(group, return_inverse=True)[1]
