"""Conditional maximum entropy (document 004, sections 2.1-2.4): the dual problem and two closed-form updates.

With cells phi_t (S,) of row t and target distribution q_t over classes,

    P[c | t] = exp(b_c + phi_t . gamma_c) / sum_c' exp(b_c' + phi_t . gamma_c')                      (2.8)
    maximize  sum_t w_t sum_c q_tc log P[c | t] - |gamma|^2 / (2 var)

the (penalized) dual of maximizing the entropy subject to P_m[c, i] = P_g[c, i] for every cell i. The class term b is
not penalized; without it, a row without features would get the uniform distribution. The statistics are the expected
counts under the model, T P_m (S + 1, C); the counts T P_g of the training data are computed once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mixent.core.arrays import Array, log_sum_exp, softmax_columns
from mixent.core.driver import Problem
from mixent.core.executors import Executor
from mixent.core.stats import Stats
from mixent.maxent.blocks import RowBlocks, Rows
from mixent.maxent.cells import Cells
from mixent.maxent.curvature import Curvature, Diagonal, Hessian, Variance, precision
from mixent.show import Short


@dataclass(frozen=True, repr=False)
class Multipliers(Short):
    """The parameters: a Lagrange multiplier for every constraint."""

    bias: Array  # (C,)
    cells: Array  # (S, C)

    @property
    def n_classes(self) -> int:
        return len(self.bias)


@dataclass(frozen=True)
class Ready:
    """Multipliers in the form that a pass over the data uses."""

    bias: Array  # (C, 1)
    table: Array  # see `Cells.table`


@dataclass(frozen=True)
class Expected(Stats):
    """Expected counts T P_m of the class term (first row) and of every cell."""

    counts: Array  # (V, S + 1, C), by number of observed features; V = 1 if the update does not need it
    log_lik: float

    @property
    def total(self) -> Array:
        return self.counts.sum(axis=0)


@dataclass(frozen=True)
class MaxEntProblem(Problem):
    """The dual objective and its gradient; a subclass defines the update."""

    cells: Cells
    truth: Array  # (S + 1, C) counts T P_g
    variance: Variance  # of the Gaussian prior on multipliers; None: no prior
    total_weight: float
    mask: Array | None = None  # (S, C) 1 where a cell has a multiplier for a class, else 0; None: 1 everywhere
    max_square: float = field(default=np.inf, kw_only=True)  # upper bound on all |phi_t|^2

    def prepare(self, params: Multipliers) -> Ready:
        return Ready(params.bias[:, None], self.cells.table(params.cells))

    def stats(self, ready: Ready, block: Rows) -> Expected:  # type: ignore[override]
        post, log_lik = self._posterior(ready, block)
        post *= block.weight
        return Expected(self._counts(post, block), log_lik)

    def _posterior(self, ready: Ready, block: Rows) -> tuple[Array, float]:
        """P[c | t] (C, n), and sum_t w_t sum_c q_tc log P[c | t]."""
        logits = self.cells.table_logits(ready.table, block)
        logits += ready.bias
        target_logits = float(np.einsum("cn,cn->", block.target, logits))
        log_norm = softmax_columns(logits)
        return logits, target_logits - float(block.weight @ log_norm)

    def _counts(self, weighted: Array, block: Rows) -> Array:
        return np.concatenate([weighted.sum(axis=1)[None], self.cells.expected(weighted, block)])[None]

    def log_posterior(self, params: Multipliers, rows: Rows) -> Array:
        """(C, n) log P[c | t]."""
        logits = self.cells.logits(params.cells, rows)
        logits += params.bias[:, None]
        logits -= log_sum_exp(logits, axis=0)
        return logits

    def objective(self, params: Multipliers, total: Expected) -> float:
        return total.log_lik - self._penalty(params)

    def _penalty(self, params: Multipliers) -> float:
        return 0.5 * float((self.precision * params.cells**2).sum())

    @property
    def precision(self) -> Array:
        """(S, 1) or (1, 1) prior precision of each cell's multipliers; zero without a prior."""
        return precision(self.variance)

    def gradient(self, params: Multipliers, total: Expected) -> Array:
        """(S + 1, C), class term first."""
        slope = self.truth - total.total
        slope[1:] -= self.precision * params.cells
        if self.mask is not None:
            slope[1:] *= self.mask
        return slope

    def residual(self, total: Expected) -> float:
        """The largest |P_m - P_g| over all constraints."""
        difference = np.abs(self.truth - total.total)
        if self.mask is not None:
            difference[1:] *= self.mask
        return float(difference.max()) / self.total_weight

    def gap(self, params: Multipliers, total: Expected) -> float | None:
        """An upper bound on (maximum - objective); None without a prior, or if a class has no rows.

        In gamma the objective is strongly concave with modulus 1/var, so the maximum is at most sum var slope^2 / 2
        above the current value. The class term is not strongly concave, but its gradient sums to zero and its distance
        from the optimum is at most `_bias_distance`. `ClassTerm` makes this gradient vanish, and its part of the bound.
        """
        if self.variance is None or not (self.truth[0] > 0).all():
            return None
        slope = self.gradient(params, total)
        bound = 0.5 * float((slope[1:] ** 2 / self.precision).sum())
        bias_slope = float(np.abs(slope[0]).sum())
        return bound + 0.5 * self._bias_distance(params, total) * bias_slope if bias_slope > 0 else bound

    def _bias_distance(self, params: Multipliers, total: Expected) -> float:
        """Upper bound on the change of the difference of two class terms between here and the optimum.

        At the optimum |gamma| <= sqrt(2 var (-objective)), because log P <= 0. Then log(P[c | t] / P[c' | t]) differs
        from the difference of the class terms by at most |phi_t| |gamma_c - gamma_c'|, and the sums of both
        probabilities over the rows are the class counts.
        """
        assert self.variance is not None
        length = np.sqrt(2 * max(-self.objective(params, total), 0.0) / self.precision.min(initial=np.inf))
        deviation = np.sqrt(2 * self.max_square) * length
        return deviation + float(np.ptp(np.log(self.truth[0]))) + float(np.ptp(params.bias))

    def pack(self, params: Multipliers) -> Array:
        return np.concatenate([params.bias, params.cells.ravel()])

    def unpack(self, vector: Array, like: Multipliers) -> Multipliers | None:
        if not np.isfinite(vector).all():
            return None
        C = like.n_classes
        return Multipliers(vector[:C], vector[C:].reshape(like.cells.shape))


def count_truth(cells: Cells, source: RowBlocks, executor: Executor) -> Array:
    """(S + 1, C) training counts T P_g of the classes, and of every cell with every class."""

    def count(rows: Any) -> Expected:
        each = np.concatenate([rows.target.sum(axis=1)[None], cells.expected(rows.target, rows)])
        return Expected(each[None], 0.0)

    return executor.total(count, source).total


def max_square(cells: Cells, source: RowBlocks, executor: Executor) -> float:
    """An upper bound on |phi_t|^2: one for each discrete column, and the largest sum of squares of the dense cells."""

    def largest(rows: Any) -> float:
        return float(cells.dense_squares(rows).max(initial=0.0))

    return len(cells.sizes) + (max(executor.map(largest, source)) if cells.n_dense else 0.0)


def start(truth: Array) -> Multipliers:
    """Initialization: the class frequencies, with zero multipliers for the features."""
    shares = np.log(np.maximum(truth[0] / truth[0].sum(), 1e-6))
    return Multipliers(shares - shares.mean(), np.zeros((len(truth) - 1, truth.shape[1])))


@dataclass(frozen=True)
class Bohning(MaxEntProblem):
    """Fixed bound on the curvature: -Hessian <= 1/2 (I - 11^T/C) x (Phi^T W Phi) + 1/var (Böhning 1992), so

        theta' = theta + (1/2 Phi^T W Phi + 1/var)^-1 slope

    maximizes a quadratic lower bound that touches the objective. All passes use the same Cholesky factor.
    """

    curvature: Curvature | Diagonal | None = field(default=None, repr=False)

    def update(self, params: Multipliers, total: Expected, step: float) -> Multipliers:
        assert self.curvature is not None
        move = self.curvature.solve(self.gradient(params, total))
        bias, cells = params.bias + move[0], params.cells + move[1:]
        if self.mask is None:  # a component common to all classes changes only the penalty: remove it
            bias, cells = bias - bias.mean(), cells - cells.mean(axis=1, keepdims=True)
        return Multipliers(bias, cells)

    def certified_gain(self, params: Multipliers, total: Expected) -> float:
        """The maximum of the quadratic lower bound, 1/2 slope curvature^-1 slope."""
        assert self.curvature is not None
        slope = self.gradient(params, total)
        return 0.5 * float((slope * self.curvature.solve(slope)).sum())


@dataclass(frozen=True)
class ClassMoments(Expected):
    """Expected counts, and sum_t w_t P[c | t] P[c' | t]."""

    second: Array  # (C, C)


@dataclass(frozen=True)
class ClassTerm(MaxEntProblem):
    """Newton's method for the class term alone, whose C x C Hessian is cheap.

    These are the last steps of every solver: once the class counts are reproduced, the optimality gap depends on the
    penalized multipliers only.
    """

    safe_step = 2.0**-10  # a step of this length increases the objective, up to rounding

    def stats(self, ready: Ready, block: Rows) -> ClassMoments:  # type: ignore[override]
        post, log_lik = self._posterior(ready, block)
        weighted = post * block.weight
        return ClassMoments(self._counts(weighted, block), log_lik, weighted @ post.T)

    def update(self, params: Multipliers, total: ClassMoments, step: float) -> Multipliers:
        slope = self.truth[0] - total.total[0]
        curvature = np.diag(total.total[0]) - total.second
        move = np.linalg.pinv(curvature, rcond=1e-12, hermitian=True) @ slope
        return replace(params, bias=params.bias + step * move)


class WhiteChart:
    """Coordinates for L-BFGS in which the curvature is approximately the identity."""

    def __init__(self, problem: MaxEntProblem, curvature: Curvature | Diagonal | Hessian) -> None:
        self.problem, self.curvature = problem, curvature
        self.shape = problem.truth.shape

    def vector(self, params: Multipliers) -> Array:
        return self.curvature.uncolor(np.concatenate([params.bias[None], params.cells])).ravel()

    def params(self, vector: Array) -> Multipliers:
        theta = self.curvature.color(vector.reshape(self.shape))
        return Multipliers(theta[0], theta[1:])

    def gradient(self, params: Multipliers, total: Expected) -> Array:
        return self.curvature.whiten(self.problem.gradient(params, total)).ravel()


@dataclass(frozen=True)
class Scaling(MaxEntProblem):
    """Improved iterative scaling: each multiplier is changed by the root d of

        T P_g - sum_N T P_m(N) e^(N d) - (gamma + d) / var = 0,

    where P_m(N) is the probability under the model in rows with N observed features. If all features are observed and
    there is no prior, this is d = (1/N) log P_g / P_m (2.12).
    """

    n_features: tuple[int, ...] = ()  # the numbers N that occur, in increasing order

    lowest = -30.0  # least multiplier without a prior, instead of minus infinity for cells that never occur

    def _counts(self, weighted: Array, block: Rows) -> Array:
        out = np.zeros((len(self.n_features), len(self.truth), len(weighted)))
        for number in np.unique(block.sums):  # rows are sorted by this number, so a block has few different ones
            rows = block if (block.sums[0] == block.sums[-1]) else block.part(np.flatnonzero(block.sums == number))
            part = weighted if rows is block else weighted[:, block.sums == number]
            v = self.n_features.index(int(number))
            out[v, 0] = part.sum(axis=1)
            out[v, 1:] = self.cells.expected(part, rows)
        return out

    def update(self, params: Multipliers, total: Expected, step: float) -> Multipliers:
        current = np.concatenate([params.bias[None], params.cells])
        precision = np.zeros((len(current), 1))
        precision[1:] = self.precision
        move = self._root(total.counts, current, precision)
        move[(total.total == 0) & (precision == 0)] = 0.0
        if self.mask is not None:
            move[1:] *= self.mask
        new = np.maximum(current + move, self.lowest) if self.variance is None else current + move
        return replace(params, bias=new[0], cells=new[1:])

    def certified_gain(self, params: Multipliers, total: Expected) -> float:
        """The auxiliary function at the update: T P_g d - sum_N T P_m(N) (e^(N d) - 1) / N - change of the penalty.

        The terms of first order in d are collected in the gradient, because they cancel near the optimum.
        """
        after = self.update(params, total, 1.0)
        move = np.concatenate([(after.bias - params.bias)[None], after.cells - params.cells])
        numbers = np.array(self.n_features, dtype=float)[:, None, None]
        cost = float((total.counts * _beyond_linear(numbers * move) / numbers).sum())
        cost += 0.5 * float((self.precision * move[1:] ** 2).sum())
        return float((self.gradient(params, total) * move).sum()) - cost

    def _root(self, counts: Array, current: Array, precision: Array) -> Array:
        """Newton's method on a decreasing concave function, started to the right of its root: it never overshoots."""
        numbers = np.array(self.n_features, dtype=float)[:, None, None]
        total = np.maximum(counts.sum(axis=0), 1e-300)
        # at a root d >= 0: total e^(N_min d) <= truth - precision (current + d) <= truth - precision current, so
        # d <= log(ratio) / N_min; a root d < 0 is left of 0, or without a prior of log(ratio) / N_max
        with np.errstate(divide="ignore"):
            ratio = np.log(np.maximum(self.truth + precision * np.maximum(-current, 0.0), 1e-300) / total)
        d = np.where(ratio > 0, ratio / numbers.min(), np.where(precision > 0, 0.0, ratio / numbers.max()))
        d = np.clip(d, -60.0, 600.0 / numbers.max())
        for _ in range(200):
            grown = counts * np.exp(numbers * d)
            value = self.truth - grown.sum(axis=0) - precision * (current + d)
            slope = (numbers * grown).sum(axis=0) + precision
            move = np.divide(value, slope, out=np.zeros_like(value), where=slope > 0)
            d = d + np.clip(move, -60.0, 60.0)
            if np.abs(move).max() <= 1e-12:
                break
        return d


def _beyond_linear(x: Array) -> Array:
    """e^x - 1 - x, accurate near zero."""
    return np.where(np.abs(x) < 1e-3, 0.5 * x**2 * (1 + x / 3 + x**2 / 12), np.expm1(x) - x)
