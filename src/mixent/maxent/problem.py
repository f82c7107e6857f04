"""Conditional maximum entropy (document 004, sections 2.1-2.4): the dual, and two closed-form updates that raise it.

With cells phi_t (S,) of row t and target distribution q_t over classes,

    P[c | t] = exp(b_c + phi_t . gamma_c) / sum_c' exp(b_c' + phi_t . gamma_c')                      (2.8)
    maximise  sum_t w_t sum_c q_tc log P[c | t] - |gamma|^2 / (2 var)

the (penalised) dual of maximising entropy subject to  P_m[c, i] = P_g[c, i]  for every cell i. The class term b is not
penalised: without it a row with no feature would get the uniform pmf. Statistics are the model's expected counts
T P_m (S + 1, C); the truth's T P_g are counted once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from mixent.core.arrays import Array, log_sum_exp
from mixent.core.driver import Problem
from mixent.core.executors import Executor
from mixent.core.stats import Stats
from mixent.maxent.cells import Cells
from mixent.maxent.rows import RowBlocks, Rows


@dataclass(frozen=True)
class Multipliers:
    """The parameters: one multiplier for every constraint."""

    bias: Array  # (C,)
    cells: Array  # (S, C)

    @property
    def n_classes(self) -> int:
        return len(self.bias)


@dataclass(frozen=True)
class Expected(Stats):
    """Expected counts T P_m of the class term (first row) and of every cell."""

    counts: Array  # (V, S + 1, C), by number of features present; V = 1 where the update does not ask
    log_lik: float

    @property
    def total(self) -> Array:
        return self.counts.sum(axis=0)


@dataclass(frozen=True)
class Gram(Stats):
    """sum_t w_t phi_t phi_t^T with the class term first."""

    matrix: Array  # (S + 1, S + 1)


@dataclass(frozen=True)
class MaxEntProblem(Problem):
    """What is maximised; a subclass gives the update."""

    cells: Cells
    truth: Array  # (S + 1, C) counts T P_g
    variance: float | None  # of the Gaussian prior on multipliers; None: no prior
    total_weight: float
    mask: Array | None = None  # (S, C) ones where a cell may speak for a class; None: everywhere

    def prepare(self, params: Multipliers) -> Multipliers:
        return params

    def stats(self, ready: Multipliers, block: Rows) -> Expected:  # type: ignore[override]
        log_post = self.log_posterior(ready, block)
        log_lik = float(np.einsum("cn,cn->", block.target, log_post, optimize=True))
        np.exp(log_post, out=log_post)
        log_post *= block.weight
        return Expected(self._counts(log_post, block), log_lik)

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
        return 0.0 if self.variance is None else 0.5 * float((params.cells**2).sum()) / self.variance

    def gradient(self, params: Multipliers, total: Expected) -> Array:
        """(S + 1, C), class term first."""
        slope = self.truth - total.total
        if self.variance is not None:
            slope[1:] -= params.cells / self.variance
        if self.mask is not None:
            slope[1:] *= self.mask
        return slope

    def residual(self, total: Expected) -> float:
        """The largest |P_m - P_g| over all constraints."""
        off = np.abs(self.truth - total.total)
        if self.mask is not None:
            off[1:] *= self.mask
        return float(off.max()) / self.total_weight

    def gap(self, params: Multipliers, total: Expected) -> float | None:
        """An upper bound of (maximum - objective); None without a prior.

        In gamma the objective is 1/var strongly concave, so the maximum is at most var |slope|^2 / 2 above. The class
        term has no such curvature, but it can only lie within `reach` of here: gamma at the maximum is no longer than
        sqrt(2 var (-objective)), and the class term then balances the class counts.
        """
        if self.variance is None:
            return None
        slope = self.gradient(params, total)
        bound = 0.5 * self.variance * float((slope[1:] ** 2).sum())
        return bound + self._reach(params, total) * float(np.abs(slope[0]).sum())

    def _reach(self, params: Multipliers, total: Expected) -> float:
        """How far the class term (mean zero) may be from here at the maximum."""
        assert self.variance is not None
        length = np.sqrt(2 * self.variance * max(-self.objective(params, total), 0.0))
        swing = np.sqrt(self.longest) * length  # |phi . gamma_c| <= |phi| |gamma_c|
        counts = np.log(np.maximum(self.truth[0], 1e-300))
        at_most = 2 * swing + float(np.ptp(counts[self.truth[0] > 0]))
        return at_most + float(np.ptp(params.bias))

    @property
    def longest(self) -> float:
        """The largest |phi_t|^2: each column gives at most one."""
        return float(len(self.cells.sizes) + max(1.0, self.cells.n_dense))

    def pack(self, params: Multipliers) -> Array:
        return np.concatenate([params.bias, params.cells.ravel()])

    def unpack(self, vector: Array, like: Multipliers) -> Multipliers | None:
        if not np.isfinite(vector).all():
            return None
        C = like.n_classes
        return Multipliers(vector[:C], vector[C:].reshape(like.cells.shape))


def count_truth(cells: Cells, source: RowBlocks, executor: Executor) -> Array:
    """(S + 1, C) counts T P_g: of the classes, and of every cell in every class."""

    def count(rows: Any) -> Expected:
        each = np.concatenate([rows.target.sum(axis=1)[None], cells.expected(rows.target, rows)])
        return Expected(each[None], 0.0)

    return executor.total(count, source).total


def start(truth: Array) -> Multipliers:
    """Nothing known of the features: the class shares."""
    shares = np.log(np.maximum(truth[0], 1e-3) / truth[0].sum())
    return Multipliers(shares - shares.mean(), np.zeros((len(truth) - 1, truth.shape[1])))


@dataclass(frozen=True)
class Bohning(MaxEntProblem):
    """Fixed curvature: -Hessian <= 1/2 (I - 11^T/C) x (Phi^T W Phi) + 1/var (Bohning 1992), so

        theta' = theta + (1/2 Phi^T W Phi + 1/var)^-1 slope

    maximises a quadratic that touches the objective and lies below it. One Cholesky factor serves every pass.
    """

    curvature: Curvature | None = field(default=None, repr=False)

    def update(self, params: Multipliers, total: Expected, step: float) -> Multipliers:
        assert self.curvature is not None
        move = self.curvature.solve(self.gradient(params, total))
        if self.mask is None:
            move -= move.mean(axis=1, keepdims=True)  # what all classes share changes nothing but the penalty
        return Multipliers(params.bias + move[0], params.cells + move[1:])


class Curvature:
    """Cholesky factors of 1/2 Phi^T W Phi + 1/var: one for all classes, or one for the cells of each."""

    def __init__(self, gram: Array, variance: float | None, mask: Array | None) -> None:
        matrix = 0.5 * gram
        # without a prior, columns that sum to one are collinear
        ridge = np.full(len(gram), 1e-9 * float(np.diagonal(gram).mean()))
        if variance is not None:
            ridge = np.concatenate([[0.0], np.full(len(gram) - 1, 1.0 / variance)])
        matrix[np.diag_indices_from(matrix)] += ridge
        if mask is None:
            self.index = None
            self.factors = [cholesky(matrix, lower=True)]
        else:
            self.index = [np.concatenate([[0], 1 + np.flatnonzero(column)]) for column in mask.T]
            self.factors = [cholesky(matrix[np.ix_(i, i)], lower=True) for i in self.index]

    def solve(self, slope: Array) -> Array:
        """Curvature^-1 slope, (S + 1, C)."""
        if self.index is None:
            return cho_solve((self.factors[0], True), slope)
        out = np.zeros_like(slope)
        for c, (index, factor) in enumerate(zip(self.index, self.factors)):
            out[index, c] = cho_solve((factor, True), slope[index, c])
        return out

    def whiten(self, slope: Array) -> Array:
        """L^-1 slope: the gradient in coordinates in which the curvature is the identity."""
        return self._triangular(slope, "N")

    def colour(self, whitened: Array) -> Array:
        """L^-T u: back from these coordinates."""
        return self._triangular(whitened, "T")

    def uncolour(self, params: Array) -> Array:
        """L^T theta."""
        if self.index is None:
            return self.factors[0].T @ params
        out = np.zeros_like(params)
        for c, (index, factor) in enumerate(zip(self.index, self.factors)):
            out[index, c] = factor.T @ params[index, c]
        return out

    def _triangular(self, values: Array, trans: str) -> Array:
        if self.index is None:
            return solve_triangular(self.factors[0], values, lower=True, trans=trans)
        out = np.zeros_like(values)
        for c, (index, factor) in enumerate(zip(self.index, self.factors)):
            out[index, c] = solve_triangular(factor, values[index, c], lower=True, trans=trans)
        return out


class WhiteChart:
    """Coordinates for L-BFGS in which the bound on the curvature is the identity."""

    def __init__(self, problem: MaxEntProblem, curvature: Curvature) -> None:
        self.problem, self.curvature = problem, curvature
        self.shape = problem.truth.shape

    def vector(self, params: Multipliers) -> Array:
        return self.curvature.uncolour(np.concatenate([params.bias[None], params.cells])).ravel()

    def params(self, vector: Array) -> Multipliers:
        theta = self.curvature.colour(vector.reshape(self.shape))
        return Multipliers(theta[0], theta[1:])

    def gradient(self, params: Multipliers, total: Expected) -> Array:
        return self.curvature.whiten(self.problem.gradient(params, total)).ravel()


def gram_matrix(cells: Cells, source: RowBlocks, executor: Executor) -> Array:
    """(S + 1, S + 1): sum_t w_t phi_t phi_t^T, class term first."""

    def gram(rows: Any) -> Gram:
        return _gram(cells, rows)

    return executor.total(gram, source).matrix


def _gram(cells: Cells, rows: Rows) -> Gram:
    phi = np.concatenate([np.ones((1, rows.n_rows)), cells.dense(rows)])
    return Gram((phi * rows.weight) @ phi.T)


@dataclass(frozen=True)
class Scaling(MaxEntProblem):
    """Improved iterative scaling: each multiplier moves by the root d of

        T P_g - sum_N T P_m(N) e^(N d) - (gamma + d) / var = 0,

    where P_m(N) is the model's count among rows with N features present. With all features present and no prior that
    is the printed  d = (1/N) log P_g / P_m  (2.12).
    """

    n_features: tuple[int, ...] = ()  # the numbers N that occur, rising

    lowest = -30.0  # a multiplier without a prior whose cell never occurs would run to minus infinity

    def _counts(self, weighted: Array, block: Rows) -> Array:
        out = np.zeros((len(self.n_features), len(self.truth), len(weighted)))
        for number in np.unique(block.sums):  # rows come ordered: one number, seldom two
            rows = block if (block.sums[0] == block.sums[-1]) else block.part(np.flatnonzero(block.sums == number))
            part = weighted if rows is block else weighted[:, block.sums == number]
            v = self.n_features.index(int(number))
            out[v, 0] = part.sum(axis=1)
            out[v, 1:] = self.cells.expected(part, rows)
        return out

    def update(self, params: Multipliers, total: Expected, step: float) -> Multipliers:
        current = np.concatenate([params.bias[None], params.cells])
        curb = np.zeros((len(current), 1))
        if self.variance is not None:
            curb[1:] = 1.0 / self.variance
        move = self._root(total.counts, current, curb)
        move[(total.total == 0) & (curb == 0)] = 0.0
        if self.mask is not None:
            move[1:] *= self.mask
        new = np.maximum(current + move, self.lowest) if self.variance is None else current + move
        return replace(params, bias=new[0], cells=new[1:])

    def _root(self, counts: Array, current: Array, curb: Array) -> Array:
        """Newton's method on a decreasing concave function, from the right of its root: it never overshoots."""
        numbers = np.array(self.n_features, dtype=float)[:, None, None]
        total = np.maximum(counts.sum(axis=0), 1e-300)
        with np.errstate(divide="ignore"):
            # e^(N d) >= e^(N_min d) for d >= 0, >= e^(N_max d) for d < 0: without a prior the root is left of this
            ratio = np.log(np.maximum(self.truth, 1e-300) / total)
        d = np.where(ratio > 0, ratio / numbers.min(), ratio / numbers.max())
        # the prior pulls towards zero multipliers: where it pulls up, the root may lie further right
        d = np.maximum(d, np.where(current < 0, -current, -np.inf)) if curb.any() else d
        d = np.clip(d, -60.0, 60.0 / numbers.max())
        for _ in range(60):
            grown = counts * np.exp(numbers * d)
            value = self.truth - grown.sum(axis=0) - curb * (current + d)
            slope = (numbers * grown).sum(axis=0) + curb
            move = np.divide(value, slope, out=np.zeros_like(value), where=slope > 0)
            d = d + np.clip(move, -60.0, 60.0)
            if np.abs(move).max() <= 1e-12:
                break
        return d
