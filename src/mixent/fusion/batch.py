"""A batch of items: distinct patterns of answers with their counts, and the evidence of every source.

Items with the same answers from all sources form one pattern: a million items of five sources with two symbols have at
most 243 patterns. With a source that gives probabilities, every item is a separate pattern.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mixent.core.arrays import Array
from mixent.fusion.answers import Answers
from mixent.fusion.problem import MinDivergence, Rule, UnweightedMinDivergence
from mixent.fusion.rules import ml_product
from mixent.fusion.sources import Layout
from mixent.fusion.stated import MIN_PROBABILITY
from mixent.maxent.blocks import Rows
from mixent.maxent.cells import Cells

ROUNDING = 1e-6  # of a count of labels
MIN_DISPERSION = 0.05  # of probabilities, in units of the variance of labels
MIN_SHARPNESS = 0.1  # below it, the initial step of "min-divergence" is no longer increased
MAX_DENSITY = 0.1  # share of answered pairs up to which products with a sparse matrix are faster
MAX_CODE = 1 << 40  # codes of patterns are renumbered before they exceed it


@dataclass(frozen=True)
class Batch:
    """Patterns of answers, their total weights, and their labels."""

    layout: Layout
    answers: Answers  # of the patterns
    weight: Array  # (P,)
    labels: np.ndarray  # (P,) index of the class, -1 for unlabelled items
    pattern_of: np.ndarray | None = None  # (n,) pattern of each item; None: every item is a pattern

    @staticmethod
    def of(layout: Layout, answers: Answers, weight: Array | None = None, labels: np.ndarray | None = None) -> Batch:
        """The distinct patterns of the items."""
        n = answers.n_items
        weight = np.ones(n) if weight is None else weight
        labels = np.full(n, -1) if labels is None else labels
        if any(responses.ndim == 2 for responses in answers.responses):
            return Batch(layout, answers, weight, labels)
        columns = [*answers.responses, labels]
        first, pattern_of = patterns(columns, [*(size + 1 for size in layout.sizes), layout.n_classes + 1])
        counts = np.bincount(pattern_of, weight, minlength=len(first)).astype(float)
        return Batch(layout, answers.part(first), counts, labels[first], pattern_of)

    def joined(self, *others: Batch) -> Batch:
        """The patterns of all batches; `pattern_of` is the new pattern of each of their patterns in turn."""
        parts = (self, *others)
        weight, labels = (np.concatenate([getattr(p, name) for p in parts]) for name in ("weight", "labels"))
        return Batch.of(self.layout, self.answers.joined(*(p.answers for p in others)), weight, labels)

    @property
    def n_patterns(self) -> int:
        return len(self.weight)

    def items(self, values: np.ndarray) -> np.ndarray:
        """(n, ...) values of the items, from values of the patterns (P, ...)."""
        return values if self.pattern_of is None else values[self.pattern_of]

    @cached_property
    def hard(self) -> list[int]:
        """Sources with one symbol for each item."""
        return [j for j, responses in enumerate(self.answers.responses) if responses.ndim == 1]

    @cached_property
    def soft(self) -> list[int]:
        """Sources with a distribution over their symbols for each item."""
        return [j for j, responses in enumerate(self.answers.responses) if responses.ndim == 2]

    @cached_property
    def calibrated_on_labels(self) -> list[int]:
        """Sources that give probabilities, although the counts of their calibrations are those of labels."""
        return [
            j
            for j, calibration in ((j, self.layout.calibrations[j]) for j in self.soft)
            if calibration.cells is None
            and calibration.edges is None
            and calibration.line is None
            and (np.abs(calibration.counts - np.round(calibration.counts)) <= ROUNDING).all()
        ]

    @cached_property
    def dispersion(self) -> Array:
        """(J, K) variance of the answers within a class, divided by that of labels with the same rates.

        One for labels. The calibration of a source that gives probabilities has only their sums, and the mean of
        s (1 - s) in the batch, with s such a probability, is the variance that it lacks.
        """
        layout = self.layout
        out = np.ones((layout.n_sources, layout.n_classes))
        soft = [j for j in self.soft if j not in self.calibrated_on_labels and layout.n_groups[j] == 1]
        if soft:
            start = 0.9 * layout.training_prior + 0.1 / layout.n_classes
            mass = self.weight[:, None] * ml_product(self.ratio, self.weight, start, labels=self.labels).posterior
        for j in soft:
            s, A = self.answers.responses[j], layout.confusion[layout.slices[j]]
            missing = (s * (1 - s)).sum(axis=1) @ mass  # zero without an answer
            n = self.answered[j] @ mass
            out[j] = 1.0 - missing / np.maximum(n, MIN_PROBABILITY) / (A * (1 - A)).sum(axis=0)
        return np.clip(out, MIN_DISPERSION, 1.0)

    @cached_property
    def order(self) -> np.ndarray:
        """(S,) symbols of the layout in the order of `cells`: hard sources first, then soft ones."""
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
        labelled = np.flatnonzero(self.labels >= 0)
        target[self.labels[labelled], labelled] = self.weight[labelled]
        return Rows(self.cells.packed(codes), np.ascontiguousarray(dense), target, self.weight, np.ones(P, dtype=int))

    @cached_property
    def matrix(self) -> Any:
        """(P, S) sparse matrix of the answers: ones for labels, probabilities otherwise."""
        rows, columns, values = [], [], []
        for responses, here in zip(self.answers.responses, self.layout.slices):
            if responses.ndim == 1:
                row = np.flatnonzero(responses >= 0)
                column, value = responses[row], np.ones(len(row))
            else:
                row, column = np.nonzero(responses)
                value = responses[row, column]
            rows.append(row)
            columns.append(here.start + column)
            values.append(value)
        entries = (np.concatenate(rows), np.concatenate(columns))
        return csr_array((np.concatenate(values), entries), shape=(self.n_patterns, self.layout.n_symbols))

    @cached_property
    def is_sparse(self) -> bool:
        """Whether the sources give labels for few of the patterns each, so that `matrix` is faster than `cells`."""
        n_answers = int(self.answered.sum())
        return not self.soft and n_answers < MAX_DENSITY * self.answered.size

    def divergence_problem(self, safe: bool = True, confusion: Array | None = None) -> MinDivergence:
        """The problem of minimizing R, or R~ where `safe` is False."""
        layout, order = self.layout, self.order
        A = layout.confusion if confusion is None else confusion
        unconstrained = layout.unconstrained[order]
        return (MinDivergence if safe else UnweightedMinDivergence)(
            self.cells,
            A[order],
            _renumbered(layout.group[order]),
            layout.share[layout.source_of][order],
            float(layout.share.sum()),
            unconstrained if unconstrained.any() else None,
            1.0 / max(self.sharpness, MIN_SHARPNESS) if safe else 1.0,
        )

    @cached_property
    def sharpness(self) -> float:
        """Mean deviation of answers from uniform: 1 for labels, less for probabilities, which allow larger steps."""
        sharpness = np.ones(self.layout.n_sources)
        for j in self.soft:
            responses, V = self.answers.responses[j], self.layout.sizes[j]
            total = float(self.weight @ self.answered[j])
            if total > 0 and V > 1:
                peak = float(self.weight @ np.einsum("nv,nv->n", responses, responses)) / total
                sharpness[j] = (peak - 1 / V) / (1 - 1 / V)
        return float(np.average(sharpness, weights=self.layout.share))

    def logits(self, weights: Array) -> Array:
        """(K, P): sum of weights (S, K) over the answers."""
        if self.is_sparse:
            return np.ascontiguousarray((self.matrix @ weights).T)
        return self.cells.logits(weights[self.order], self.rows)

    def expected(self, weights: Array) -> Array:
        """(S, C): sum over patterns of the answers times weights (C, P)."""
        if self.is_sparse:
            return self.matrix.T @ np.ascontiguousarray(weights.T)
        out = np.empty((self.layout.n_symbols, len(weights)))
        out[self.order] = self.cells.expected(np.ascontiguousarray(weights), self.rows)
        return out

    @cached_property
    def answered(self) -> np.ndarray:
        """(J, P) whether the source answered."""
        return self.answers.answered()

    def product(self, trust: Array, confusion: Array | None = None) -> Array:
        """(P, K) sum over the sources of trust times log-likelihood ratio, source by source to save memory."""
        A = self.layout.confusion if confusion is None else confusion
        if self.is_sparse and self.copy_scale is None:
            return self.matrix @ (trust[self.layout.source_of, None] * np.log(A / self.layout.pooled[:, None]))
        out = np.zeros((self.n_patterns, self.layout.n_classes))
        term = np.empty_like(out)
        for j in np.flatnonzero(trust).tolist():
            responses = self.answers.responses[j]
            term[:] = 0.0
            self._evidence_of(j, responses, A[self.layout.slices[j]], term)
            term *= trust[j] if self.copy_scale is None else trust[j] * self.copy_scale[j][:, None]
            out += term
        return out

    @cached_property
    def copy_scale(self) -> Array | None:
        """(J, P) factors of copies: those with an answer share the vote of their group. None without copies."""
        layout = self.layout
        if len(np.unique(layout.root)) == layout.n_sources:
            return None
        n_answered = np.zeros((layout.n_sources, self.n_patterns))
        voting = layout.share[:, None] > 0
        np.add.at(n_answered, layout.root, (self.answered & voting).astype(float))
        return voting / (np.maximum(n_answered[layout.root], 1.0) * np.where(voting, layout.share[:, None], 1.0))

    def product_evidence(self, confusion: Array | None = None) -> Array:
        """(J, P, K) evidence for product rules: the copies with an answer share the vote of their group."""
        evidence = self.evidence(confusion)
        return evidence if self.copy_scale is None else evidence * self.copy_scale[:, :, None]

    @cached_property
    def ratio(self) -> Array:
        """(P, K) log-likelihood ratios of the product rule, each source with its share of a vote."""
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

    def source_evidence(self, j: int, confusion: Array) -> Array:
        """(P, K) log-likelihood ratios of one source with these rates (S_j, K); zero without an answer."""
        out = np.zeros((self.n_patterns, self.layout.n_classes))
        self._evidence_of(j, self.answers.responses[j], confusion, out)
        return out

    def _evidence_of(self, j: int, responses: np.ndarray, confusion: Array, out: Array) -> None:
        ratio = confusion / self.layout.pooled[self.layout.slices[j], None]  # (S_j, K)
        if responses.ndim == 1:
            answered = responses >= 0
            out[answered] = np.log(ratio)[responses[answered]]
            return
        direct = self.class_probabilities(j)
        if direct is None:
            np.log(np.maximum(responses @ ratio, MIN_PROBABILITY), out=out)
        else:
            columns, prior = direct
            scale = self.layout.calibrations[j].scale
            trained = prior > 0  # the probabilities carry no evidence on a class that was not in the training
            whole = bool(trained.all()) and columns == list(range(out.shape[1]))
            values = np.maximum(responses if whole else responses[:, trained], MIN_PROBABILITY)
            np.log(values, out=values)
            ratio = (
                values - np.log(prior[trained]) if scale is None else scale[0] * values + np.array(scale[1:])[trained]
            )
            out[:, slice(None) if whole else np.array(columns)[trained]] = ratio
        if not self.answered[j].all():
            out[~self.answered[j]] = 0.0

    def class_probabilities(self, j: int) -> tuple[list[int], Array] | None:
        """Indices of the classes of a source's probabilities, and its training priors of them.

        None where the symbols are not the classes, so that the confusion matrix is used instead.
        """
        source, calibration = self.layout.sources[j], self.layout.calibrations[j]
        classes, symbols = self.layout.classes.tolist(), calibration.symbols
        if not source.as_is or calibration.cells is not None or calibration.edges is not None or calibration.ordinal:
            return None
        used = {symbol for symbol, total in zip(symbols, calibration.counts.sum(axis=0)) if total > 0}
        seen = {label for label, has_rows in zip(calibration.classes, calibration.seen) if has_rows}
        # a class with calibration rows, but without a symbol or any probability, needs the confusion matrix
        if not set(symbols) <= set(calibration.classes) or not seen <= used:
            return None
        prior = dict(zip(calibration.classes, calibration.class_prior))
        return [classes.index(s) for s in symbols], np.array([prior[s] for s in symbols])

    def votes(self) -> Array:
        """(J, P, K) one-hot votes of the sources; zero for a symbol that is not a class."""
        layout = self.layout
        out = np.zeros((layout.n_sources, self.n_patterns, layout.n_classes))
        for j, responses in enumerate(self.answers.responses):
            class_of = self.class_of_symbol(j)
            codes = responses if responses.ndim == 1 else np.where(self.answered[j], responses.argmax(axis=1), -1)
            classes = np.where(codes >= 0, class_of[codes], -1)
            voted = np.flatnonzero(classes >= 0)
            out[j, voted, classes[voted]] = 1.0
        return out

    def vote_totals(self, share: Array) -> Array:
        """(P, K) sums of the votes with the shares (J,) of the sources."""
        if not self.is_sparse:
            return np.einsum("j,jpk->pk", share, self.votes())
        classes = np.concatenate([self.class_of_symbol(j) for j in range(self.layout.n_sources)])
        voted = classes[:, None] == np.arange(self.layout.n_classes)
        return self.matrix @ (share[self.layout.source_of, None] * voted)

    def class_of_symbol(self, j: int) -> np.ndarray:
        """(S_j,) class that each symbol is a vote for, -1 for none; for an ordered one, the class of largest rate."""
        calibration = self.layout.calibrations[j]
        classes = self.layout.classes.tolist()
        if calibration.edges is not None or calibration.ordinal:
            return self.layout.confusion[self.layout.slices[j]].argmax(axis=1)
        class_of = np.array([classes.index(s) if s in classes else -1 for s in calibration.symbols])
        return np.repeat(class_of, 1 if calibration.cells is None else len(calibration.cells))

    def part(self, rows: np.ndarray) -> Batch:
        """Some of the patterns."""
        return Batch(self.layout, self.answers.part(rows), self.weight[rows], self.labels[rows])

    @cached_property
    def totals(self) -> Array:
        """(S,) total weight of each symbol."""
        return self.expected(self.weight[None])[:, 0]

    @cached_property
    def unlabelled_totals(self) -> Array:
        """(S,) total weight of each symbol over unlabelled items."""
        if not (self.labels >= 0).any():
            return self.totals
        return self.expected((self.weight * (self.labels < 0))[None])[:, 0]

    @cached_property
    def moments(self) -> Array:
        """(S + 1, S + 1) sum of w x x^T over unlabelled items, with x = (1, all answers to the item)."""
        labelled = self.labels >= 0
        unlabelled = self.part(np.flatnonzero(~labelled)) if labelled.any() else self
        order = np.concatenate([[0], 1 + np.argsort(self.order)])
        return unlabelled.cells.gram(unlabelled.rows)[np.ix_(order, order)]

    def rule(self, params: Rule) -> Array:
        """(S, K) weights of log q, in the order of the layout's symbols."""
        out = np.empty_like(params.weights)
        out[self.order] = -params.weights
        return out


def patterns(columns: list[np.ndarray], sizes: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Index of the first row of each distinct row of codes (from -1), and the pattern of each row."""
    joint = np.zeros(len(columns[0]), dtype=np.int64)
    span = 1
    for column, size in zip(columns, sizes):
        if span * size > MAX_CODE:
            _, joint = np.unique(joint, return_inverse=True)
            span = int(joint.max()) + 1 if len(joint) else 1
        joint = joint * size + (column + 1)
        span *= size
    if span > 4 * len(joint):
        _, first, pattern_of = np.unique(joint, return_index=True, return_inverse=True)
        return first, pattern_of
    first_of = np.full(span, -1, dtype=np.int64)
    first_of[joint[::-1]] = np.arange(len(joint))[::-1]
    codes = np.flatnonzero(first_of >= 0)
    pattern_of_code = np.empty(span, dtype=np.int64)
    pattern_of_code[codes] = np.arange(len(codes))
    return first_of[codes], pattern_of_code[joint]


def _renumbered(group: np.ndarray) -> np.ndarray:
    return np.unique(group, return_inverse=True)[1]
