"""Minimum divergence by second-order steps along a path of penalized problems.

For a penalty e > 0 the problem

    minimize  F(q) = R(q + c e) + e sum_i w_i sum_k q_i(k) log(K q_i(k)),    c = `FLOOR`,

is strictly convex, and its solution is log-linear in the answers, with the weights W = (u log B / A) / e at its own
confusion matrices B, those of q + c e. As e tends to zero it tends to the minimizer of R of largest entropy. (The
constant c e does not matter for that, because all minimizers have the same B. It keeps classes that are absent from the
batch in the problem, whose weights R alone would not determine.) With M the covariance of the answers under q, summed
over items, and H the Hessian of R in the J, a damped Newton step changes the weights by

    (H M + e / step^2)^-1 (u log B / A - e W).

e becomes smaller as soon as the gap is of its order. Steps that increase F are shortened by the driver.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixent.core.arrays import Array, softmax_columns
from mixent.fusion.problem import MIN_RATE, MinDivergence, Ready, Rule, SymbolCounts
from mixent.maxent.blocks import Rows
from mixent.maxent.newton import is_small

FLOOR = 0.03  # added to the posteriors, in units of the penalty
NEXT_PENALTY = 0.2  # ratio of successive penalties
NEAR = 20.0  # a penalty is left when the gap per item is at most this multiple of it,
SMALL = 1e-6  # or when no weight differs more than this from the solution, times the penalty
MIN_PENALTY = 1e-13  # below it, the rounding errors of H M exceed the penalty
MAX_WORK = 1e10  # multiplications of a step: about two seconds


@dataclass(frozen=True)
class CurvedCounts(SymbolCounts):
    """Expected counts with the second moments of the answers."""

    entropy_loss: float  # sum_i w_i (log K - entropy of q_i)
    overlap: Array  # (K (K - 1) / 2, S, S) sum_i w_i q_i(k) q_i(l) s_i s_i^T for classes l < k


@dataclass(frozen=True)
class NewtonDivergence(MinDivergence):
    """Minimizes F with decreasing penalties; the driver maximizes -F, and `gap` is that of R."""

    first_step: float = 1.0
    longest_step: float = 1.0

    safe_step: float = 2.0**-24  # the steps are of first order long before

    def stats(self, ready: Ready, block: Rows) -> CurvedCounts:  # type: ignore[override]
        post, gradient = np.split(self.cells.table_logits(ready.table, block), 2)
        softmax_columns(post)
        weight = np.where(block.target.any(axis=0), 0.0, block.weight)  # labelled items keep their class
        overlap = self._overlap(post, weight, block)
        log_post = np.log(np.maximum(post, 1e-300))
        loss = float(weight @ (np.log(len(post)) + np.einsum("kn,kn->n", post, log_post)))
        plain = self.counted(post, gradient, block)
        return CurvedCounts(plain.counts, plain.classes, plain.lower_bound, loss, overlap)

    def _overlap(self, post: Array, weight: Array, block: Rows) -> Array:
        answers = self.cells.dense(block)
        pairs = np.tril_indices(len(post), -1)
        out = np.empty((len(pairs[0]), len(answers), len(answers)))
        for pair, (k, other) in enumerate(zip(*pairs)):
            part = answers * np.sqrt(weight * post[k] * post[other])
            np.matmul(part, part.T, out=out[pair])
        return out

    def objective(self, params: Rule, total: CurvedCounts) -> float:  # type: ignore[override]
        return -self.divergence(_raised(params, total)) - params.penalty * total.entropy_loss

    def update(self, params: Rule, total: CurvedCounts, step: float) -> Rule:  # type: ignore[override]
        penalty, counts = params.penalty, _raised(params, total)
        residual = self.log_ratio(counts) - penalty * params.weights
        longest = 1.0 / (self.total_share + penalty)  # a first-order step of this length does not increase F
        damping = penalty / step**2
        if damping * longest < 2.0:
            curvature = self._curvature(counts, _covariance(total.overlap, counts.shape[1]))
            weights = params.weights + _direction(curvature, residual, damping)
        else:
            weights = params.weights + longest * residual
        near = self.gap(params, total) <= NEAR * penalty * total.classes.sum() or np.abs(residual).max() <= SMALL
        gradient = self._normalized(penalty * weights, total.counts.sum(axis=1, keepdims=True))
        following = max(NEXT_PENALTY * penalty, MIN_PENALTY) if near and step == 1.0 else penalty
        return Rule(weights, gradient, max(total.lower_bound, params.lower_bound), following)

    def _curvature(self, counts: Array, covariance: Array) -> Array:
        """(K S, K S) H M, the derivative of u log B / A along changes of the weights, with its sign reversed."""
        S, K = counts.shape
        mass = self.mass(counts)
        constant = counts <= MIN_RATE * mass  # of symbols that do not occur
        if self.unconstrained is not None:
            constant = constant | self.unconstrained
        scale = np.where(constant, 0.0, self.share[:, None])
        by_class = covariance.reshape(K, S, K * S)
        groups = np.stack([_group_sums(self.group, part) for part in by_class])
        per_count = np.divide(scale, counts, out=np.zeros_like(counts), where=scale > 0).T[:, :, None]
        per_mass = np.divide(scale, mass, out=np.zeros_like(counts), where=scale > 0).T[:, :, None]
        return (per_count * by_class - per_mass * groups[:, self.group]).reshape(K * S, K * S)

    def _normalized(self, gradient: Array, totals: Array) -> Array:
        """(S, K) a gradient u log B / A of confusion matrices B, close to this one: each such gradient gives a bound.

        B of symbols that do not occur (`totals` (S, 1) zero) is zero, and their gradient, which is not used, too.
        """
        present = totals > 0
        share = self.share[:, None]
        ratio = np.divide(gradient, share, out=np.zeros_like(gradient), where=share > 0)
        if self.unconstrained is not None:
            ratio[self.unconstrained] = 0.0
        ratio = np.where(present, ratio, -np.inf)
        peak = np.full((self.group.max() + 1, ratio.shape[1]), -np.inf)
        np.maximum.at(peak, self.group, ratio)
        ratio -= np.maximum(peak, -1e300)[self.group]
        with np.errstate(divide="ignore", invalid="ignore"):  # groups without a symbol
            return np.where(present, share * (ratio - np.log(self.mass(self.confusion * np.exp(ratio)))), 0.0)


def _raised(params: Rule, total: CurvedCounts) -> Array:
    """(S, K) J of the posteriors plus `FLOOR` times the penalty."""
    return total.counts + FLOOR * params.penalty * total.counts.sum(axis=1, keepdims=True)


def _group_sums(group: np.ndarray, rows: Array) -> Array:
    sums = np.zeros((group.max() + 1, rows.shape[1]))
    np.add.at(sums, group, rows)
    return sums


def second_order(problem: MinDivergence, n_patterns: int) -> MinDivergence:
    """The same problem with second-order steps; unchanged if a step is too much work."""
    n_symbols, n_classes = problem.confusion.shape
    if not is_small(n_patterns, n_symbols, n_classes, MAX_WORK):
        return problem
    p = problem
    return NewtonDivergence(p.cells, p.confusion, p.group, p.share, p.total_share, p.unconstrained)


def _covariance(overlap: Array, K: int) -> Array:
    """(K S, K S) M, class by class, from the second moments of pairs of classes."""
    S = overlap.shape[1]
    out = np.zeros((K, S, K, S))
    for part, k, other in zip(overlap, *np.tril_indices(K, -1)):
        out[k, :, other] = out[other, :, k] = -part
        out[k, :, k] += part
        out[other, :, other] += part
    return out.reshape(K * S, K * S)


def _direction(curvature: Array, residual: Array, penalty: float) -> Array:
    """(S, K) (H M + e)^-1 of the residual."""
    matrix = curvature.copy()
    matrix[np.diag_indices_from(matrix)] += penalty
    direction = np.asarray(np.linalg.solve(matrix, residual.T.ravel()), dtype=float)
    return direction.reshape(residual.T.shape).T
