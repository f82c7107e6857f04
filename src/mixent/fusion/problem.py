"""Fusion by minimum divergence (document 004, section 4.3.3): posteriors that reproduce the confusion matrices.

Let s_ij(v) be the answer of source j to item i (a distribution over its symbols v), q_i(k) the fused posteriors,
A_j(v | k) the calibrated confusion matrix, and

    J_j(v, k) = sum_i w_i s_ij(v) q_i(k),     B_j(v | k) = J_j(v, k) / sum_v' J_j(v', k),

the joint counts and the confusion matrix that the posteriors imply. The problem minimizes

    R(q) = sum_j u_j sum_vk J_j(v, k) log B_j(v | k) / A_j(v | k)   (4.13),

with u_j the weight of a source (one, or shared among copies). R is convex in q and homogeneous of degree one. The
statistics are the J, which are sums over items. The update

    q_i(k) <- q_i(k) exp(-step sum_j u_j sum_v s_ij(v) log B_j(v | k) / A_j(v | k)),  normalized,

decreases R for every step <= 1 / sum_j u_j, because R is smooth relative to the entropy; larger steps are tried first.
Starting from the uniform distribution, q stays log-linear in the answers. The parameters are one number for each symbol
and class, so that they also define a rule for new items. Problems of moderate size are solved by the second-order steps
of `newton` instead, which need about thirty passes where this update needs thousands.

R has many minimizers. Where all of them have the same J, a sequence of log-linear posteriors whose R tends to the
minimum tends to the minimizer of largest entropy, whatever its steps: the minimizers are then the posteriors with these
J, and the closure of an exponential family contains exactly one distribution with given expectations of its features.

With contexts (Extension II), symbols are normalized within each context. A source without an answer does not contribute
to the sum of the item. Labelled items keep their class. A source does not constrain classes without calibration rows.

`UnweightedMinDivergence` minimizes  R~(q) = sum_j u_j sum_k D(B_j(. | k) || A_j(. | k))  (4.11), which is not convex
and assigns items to every class, even to one that is absent from the batch. It is kept for comparison.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixent.core.arrays import Array, softmax_columns
from mixent.core.driver import Problem
from mixent.core.stats import Stats
from mixent.maxent.blocks import Rows
from mixent.maxent.cells import Cells

MIN_RATE = 1e-15  # of a symbol that occurs: its rate in a class can underflow, and the gradient must remain finite


@dataclass(frozen=True)
class Rule:
    """log q_i(k) = const - sum of `weights` over the answers, with a gradient of R for the lower bound."""

    weights: Array  # (S, K)
    gradient: Array  # (S, K) u log B / A of some confusion matrices B, those of the previous iterate; zero initially
    lower_bound: float = 0.0  # on R, from the gradients so far
    penalty: float = 1.0  # on the divergence from uniform posteriors, only used by `newton`

    @staticmethod
    def uniform(n_symbols: int, n_classes: int) -> Rule:
        return Rule(np.zeros((n_symbols, n_classes)), np.zeros((n_symbols, n_classes)))


@dataclass(frozen=True)
class Ready:
    """Lookup table for `stats`."""

    table: Array  # of the logits, then of the gradient


@dataclass(frozen=True)
class SymbolCounts(Stats):
    """Expected counts of every symbol with every class."""

    counts: Array  # (S, K) J of all sources
    classes: Array  # (K,) sum_i w_i q_i
    lower_bound: float  # on R: sum_i w_i min_k of the gradient


@dataclass(frozen=True)
class MinDivergence(Problem):
    """Minimizes R; the driver maximizes -R."""

    cells: Cells
    confusion: Array  # (S, K) A(v | k), positive, sums to one within each group
    group: np.ndarray  # (S,) source and context of each symbol, from zero
    share: Array  # (S,) u of its source
    total_share: float  # sum of u over the sources
    unconstrained: np.ndarray | None = None  # (S, K) entries without calibration rows
    first_step: float = 1.0  # initial step, halved while R would increase
    longest_step: float = 16.0  # halves the number of passes, compared with a constant step

    @property
    def safe_step(self) -> float:  # type: ignore[override]
        return 1.0 / max(self.total_share, 1.0)

    def prepare(self, params: Rule) -> Ready:
        both = np.concatenate([-params.weights, params.gradient], axis=1)  # one product with the answers, not two
        return Ready(self.cells.table(both))

    def stats(self, ready: Ready, block: Rows) -> SymbolCounts:  # type: ignore[override]
        post, gradient = np.split(self.cells.table_logits(ready.table, block), 2)
        softmax_columns(post)
        return self.counted(post, gradient, block)

    def counted(self, post: Array, gradient: Array, block: Rows) -> SymbolCounts:
        """Counts of the posteriors (K, n) of a block, which are multiplied by the weights of the items in place."""
        least = gradient.min(axis=0) * block.weight
        post *= block.weight
        labelled = block.target.any(axis=0)
        if labelled.any():
            post[:, labelled] = block.target[:, labelled]
            least[labelled] = (gradient * block.target).sum(axis=0)[labelled]
        return SymbolCounts(self.cells.expected(post, block), post.sum(axis=1), float(least.sum()))

    def log_ratio(self, counts: Array) -> Array:
        """(S, K) u log B / A; zero where a class has no mass, because it is then not constrained."""
        mass = self.mass(counts)
        # a symbol that does not occur contributes 0 log 0 = 0 to R, so its gradient entry can be set to zero
        used = (mass > 0) & (counts.sum(axis=1, keepdims=True) > 0)
        rates = np.divide(counts, mass, out=np.ones_like(counts), where=used)
        ratio = np.where(used, np.log(np.maximum(rates, MIN_RATE)) - np.log(self.confusion), 0.0)
        if self.unconstrained is not None:
            ratio[self.unconstrained] = 0.0
        return self.share[:, None] * ratio

    def mass(self, counts: Array) -> Array:
        """(S, K) sums of J over the group of each symbol."""
        mass = np.zeros((self.group.max() + 1, counts.shape[1]))
        np.add.at(mass, self.group, counts)
        return mass[self.group]

    def divergence(self, counts: Array) -> float:
        """R of these J."""
        return float((counts * self.log_ratio(counts)).sum())

    def objective(self, params: Rule, total: SymbolCounts) -> float:
        return -self.divergence(total.counts)

    def gap(self, params: Rule, total: SymbolCounts) -> float:
        """R minus a lower bound on its minimum.

        R(q) >= <g(q'), q> >= sum_i w_i min_k g_i(k) for every q', with g the gradient at q', because R is convex and
        homogeneous of degree one.
        """
        return self.divergence(total.counts) - max(total.lower_bound, params.lower_bound)

    def update(self, params: Rule, total: SymbolCounts, step: float) -> Rule:
        gradient = self.log_ratio(total.counts)
        weights = params.weights + step * gradient
        bound = max(total.lower_bound, params.lower_bound)
        return Rule(weights - weights.mean(axis=1, keepdims=True), gradient, bound)

    def log_posterior(self, params: Rule, rows: Rows) -> Array:
        """(K, n) log q of unlabelled items by the rule."""
        out = self.cells.logits(-params.weights, rows)
        peak = out.max(axis=0)
        return out - (peak + np.log(np.exp(out - peak).sum(axis=0)))


class UnweightedMinDivergence(MinDivergence):
    """Minimizes R~ (4.11), in which every class has the same weight, however few items it has."""

    @property
    def safe_step(self) -> float:  # type: ignore[override]
        return 1e-9  # no safe step is known: the step is halved until R~ decreases

    def divergence(self, counts: Array) -> float:
        return float((self._shares(counts) * self.log_ratio(counts)).sum())

    def _shares(self, counts: Array) -> Array:
        """(S, K) B, zero where a class has no mass."""
        mass = self.mass(counts)
        return np.divide(counts, mass, out=np.zeros_like(counts), where=mass > 0)

    def gap(self, params: Rule, total: SymbolCounts) -> float:
        """Infinite: R~ is not convex, so that no lower bound is known."""
        return float("inf")

    def update(self, params: Rule, total: SymbolCounts, step: float) -> Rule:
        """One gradient step: dR~/dq_ik = sum_jv s_ij(v) (log B / A - D_jk) / mass_jk, times the number of items."""
        ratio = self.log_ratio(total.counts)
        distance = self.mass(self._shares(total.counts) * ratio)  # (S, K) D of the group
        scale = total.classes.sum() / np.maximum(self.mass(total.counts), 1e-300)
        gradient = (ratio - distance) * np.minimum(scale, 1e6)
        weights = params.weights + step * gradient
        return Rule(weights - weights.mean(axis=1, keepdims=True), gradient)
