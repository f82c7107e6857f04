"""Fusion by constraints (document 004, section 4.3.3): posteriors of a batch that keep the sources' confusion matrices.

With s_ij(v) what source j says of item i (a pmf over its symbols v), q_i(k) the fused posteriors, A_j(v | k) the
confusion matrix and

    J_j(v, k) = sum_i w_i s_ij(v) q_i(k),     B_j(v | k) = J_j(v, k) / sum_v' J_j(v', k),

minimizes  R(q) = sum_j u_j sum_vk J_j(v, k) log B_j(v | k) / A_j(v | k)   (4.13),

u_j the weight of a source (one, or shared among copies). R is convex in q and homogeneous of degree one. Statistics are
the J: sums over items. The update

    q_i(k) <- q_i(k) exp(-step sum_j u_j sum_v s_ij(v) log B_j(v | k) / A_j(v | k)),  normalized,

lowers R for every step <= 1 / sum_j u_j, for R is so smooth relative to entropy; larger ones are tried first. From the
uniform start q stays log-linear in what the sources say: the parameters are one number for each symbol and class, and
they are a rule for new items too.

Symbols may fall into contexts, within each of which they are normalized (Extension II); a source that gives no answer
has no symbol in the item's sum; items of known class keep it; classes a source was never calibrated on are not
constrained by it.

`Unweighted` minimizes  R~(q) = sum_j u_j sum_k D(B_j(. | k) || A_j(. | k))  (4.11), which is not convex and gives every
class its rows, also one that the batch lacks. It is there to be compared with.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixent.core.arrays import Array, softmax_columns
from mixent.core.driver import Problem
from mixent.core.stats import Stats
from mixent.maxent.blocks import Rows
from mixent.maxent.cells import Cells


@dataclass(frozen=True)
class Rule:
    """log q_i(k) = const - sum over what is said of `weights`; and the slope of R at the point they came from."""

    weights: Array  # (S, K)
    slope: Array  # (S, K) u log B / A there; zero at the start
    floor: float = 0.0  # what R is nowhere below, by the slopes met so far

    @staticmethod
    def uniform(n_symbols: int, n_classes: int) -> Rule:
        return Rule(np.zeros((n_symbols, n_classes)), np.zeros((n_symbols, n_classes)))


@dataclass(frozen=True)
class Ready:
    table: Array  # of the logits, then of the slopes


@dataclass(frozen=True)
class Said(Stats):
    """Expected counts of every symbol with every class."""

    counts: Array  # (S, K) all sources' J
    classes: Array  # (K,) sum_i w_i q_i
    floor: float  # sum_i w_i min_k of the slope: R is nowhere below


@dataclass(frozen=True)
class Agreement(Problem):
    """Minimizes R; the driver maximizes -R."""

    cells: Cells
    confusion: Array  # (S, K) A(v | k), positive, sums to one within each group
    group: np.ndarray  # (S,) source and context of each symbol, from zero
    share: Array  # (S,) u of its source
    total_share: float  # sum of u over the sources
    free: np.ndarray | None = None  # (S, K) entries that are not constrained
    first_step: float = 1.0  # tried first, and halved wherever R would rise
    longest_step: float = 16.0  # twice as few passes as with steps that never grow

    @property
    def safe_step(self) -> float:  # type: ignore[override]
        return 1.0 / max(self.total_share, 1.0)

    def prepare(self, params: Rule) -> Ready:
        both = np.concatenate([-params.weights, params.slope], axis=1)  # one product with what is said, not two
        return Ready(self.cells.table(both))

    def stats(self, ready: Ready, block: Rows) -> Said:  # type: ignore[override]
        post, slope = np.split(self.cells.looked_up(ready.table, block), 2)
        softmax_columns(post)
        least = slope.min(axis=0) * block.weight
        post *= block.weight
        known = block.target.any(axis=0)
        if known.any():
            post[:, known] = block.target[:, known]
            least[known] = (slope * block.target).sum(axis=0)[known]
        return Said(self.cells.expected(post, block), post.sum(axis=1), float(least.sum()))

    def log_ratio(self, counts: Array) -> Array:
        """(S, K) u log B / A; zero where a class has no mass: it is not constrained."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(counts) - np.log(self.mass(counts)) - np.log(self.confusion)
        # a symbol never said says nothing of where R falls to; -inf would only be 0 log 0
        ratio = np.where(np.isfinite(ratio), ratio, 0.0)
        if self.free is not None:
            ratio[self.free] = 0.0
        return self.share[:, None] * ratio

    def mass(self, counts: Array) -> Array:
        """(S, K) sums of J over the group of each symbol."""
        mass = np.zeros((self.group.max() + 1, counts.shape[1]))
        np.add.at(mass, self.group, counts)
        return mass[self.group]

    def divergence(self, counts: Array) -> float:
        """R of these J."""
        return float((counts * self.log_ratio(counts)).sum())

    def objective(self, params: Rule, total: Said) -> float:
        return -self.divergence(total.counts)

    def gap(self, params: Rule, total: Said) -> float:
        """R less a bound from below.

        R(q) >= <slope at q', q> >= sum_i w_i min_k slope_i(k) for every q', as R is convex and homogeneous.
        """
        return self.divergence(total.counts) - max(total.floor, params.floor)

    def update(self, params: Rule, total: Said, step: float) -> Rule:
        slope = self.log_ratio(total.counts)
        weights = params.weights + step * slope
        return Rule(weights - weights.mean(axis=1, keepdims=True), slope, max(total.floor, params.floor))

    def log_posterior(self, params: Rule, rows: Rows) -> Array:
        """(K, n) log q by the rule, of items whose class is not known."""
        out = self.cells.logits(-params.weights, rows)
        peak = out.max(axis=0)
        return out - (peak + np.log(np.exp(out - peak).sum(axis=0)))


class Unweighted(Agreement):
    """Minimizes R~ (4.11): every class counts the same, however few items it has."""

    @property
    def safe_step(self) -> float:  # type: ignore[override]
        return 1e-9  # none is known: the step halves until R~ falls

    def divergence(self, counts: Array) -> float:
        return float((self._shares(counts) * self.log_ratio(counts)).sum())

    def _shares(self, counts: Array) -> Array:
        """(S, K) B, zero where a class has no mass."""
        mass = self.mass(counts)
        return np.divide(counts, mass, out=np.zeros_like(counts), where=mass > 0)

    def gap(self, params: Rule, total: Said) -> float:
        """None is known: R~ is not convex."""
        return float("inf")

    def update(self, params: Rule, total: Said, step: float) -> Rule:
        """dR~/dq_ik = sum_jv s_ij(v) (log B / A - D_jk) / mass_jk, as mean over the classes' items."""
        ratio = self.log_ratio(total.counts)
        distance = self.mass(self._shares(total.counts) * ratio)  # (S, K) D of the group
        scale = total.classes.sum() / np.maximum(self.mass(total.counts), 1e-300)
        slope = (ratio - distance) * np.minimum(scale, 1e6)
        weights = params.weights + step * slope
        return Rule(weights - weights.mean(axis=1, keepdims=True), slope)
