"""Joint maximum entropy model of all columns (document 004, section 2.5): pseudo-likelihood, iterative scaling, L-BFGS.

A row is a vector of cells phi_t (S,) with a span for each column: the indicator of its value, or a pmf over its hidden
components; all zero where the value is missing. With a multiplier b_p for every cell and Gamma(p, q) for every pair of
cells of different columns (Gamma symmetric, zero within a column),

    P[F_m = p | rest of row t] = softmax over p in m of  b_p + sum_q Gamma(p, q) phi_t(q)
    maximize  sum_t w_t sum_m sum_{p in m} phi_t(p) log P[F_m = p | rest of row t] - |Gamma|^2 / (2 var)   (2.20)

where |Gamma|^2 counts every pair once. The sum of conditional log-likelihoods is Besag's pseudo-likelihood; it is
concave in (b, Gamma). At its maximum without a prior, 2 N(p, q) = E(p, q): the counts equal the model's expectations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import wrightomega

from mixent.core.arrays import Array, softmax_columns
from mixent.core.blocks import Blocks
from mixent.core.driver import Observer, Problem, Run, Stop, run
from mixent.core.executors import Executor
from mixent.core.proposals import Squarem
from mixent.core.stats import Stats
from mixent.show import Short

UNBOUNDED = (
    "the gain per row fell below tol, but the multipliers of pairs that never occur together have no finite optimum"
)
SOLVERS = ("lbfgs", "iis")
BLOCK_BYTES = 2 << 20  # memory of the cells of a block
UNSEEN = -30.0  # multiplier of values that never occur, instead of minus infinity


@dataclass(frozen=True, repr=False)
class Pairwise(Short):
    """The parameters: a multiplier for every cell, and one for every pair of cells of different columns."""

    single: Array  # (S,)
    pairs: Array  # (S, S) symmetric, zero within a column


@dataclass(frozen=True)
class Rows:
    """Cells of some rows; rows are the last axis."""

    phi: Array  # (S, n) cells, zero where missing
    present: np.ndarray  # (m, n) bool: which columns are observed
    weight: Array  # (n,)

    @property
    def n_rows(self) -> int:
        return len(self.weight)

    def part(self, rows: slice | np.ndarray) -> Rows:
        return Rows(self.phi[:, rows], self.present[:, rows], self.weight[rows])

    def distinct(self) -> Rows:
        """The distinct rows with summed weights, sorted by a hash: a weight of 2 then equals a repeated row exactly."""
        coefficients = np.random.default_rng(0).normal(size=len(self.phi))
        key: Array = np.zeros(self.n_rows)
        for coefficient, cells in zip(coefficients, self.phi):  # cell by cell: equal rows get exactly equal keys
            key += coefficient * cells
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        return replace(self.part(first), weight=np.bincount(inverse, self.weight).astype(float))


class RowBlocks(Blocks):
    """A partition of the rows into blocks."""

    def __init__(self, rows: Rows) -> None:
        super().__init__(rows, 8 * len(rows.phi), BLOCK_BYTES)


@dataclass(frozen=True)
class Expected(Stats):
    """Expectations under the model of the counts N(p) and 2 N(p, q)."""

    single: Array  # (S,) sum_t w P_t(p)
    pairs: Array  # (S, S) sum_t w [P_t(p) phi_t(q) + phi_t(p) P_t(q)]; values within a column are not used
    log_lik: float


@dataclass(frozen=True)
class Gram(Stats):
    """Gram matrix sum_t w_t x_t x_t^T of x = (1, phi): the counts N(p) and N(p, q)."""

    matrix: Array  # (S + 1, S + 1)


def spans_of(sizes: Sequence[int]) -> tuple[slice, ...]:
    """The range of cells of each column."""
    stops = np.cumsum(sizes, dtype=int).tolist()
    return tuple(slice(stop - size, stop) for size, stop in zip(sizes, stops))


def conditionals(params: Pairwise, spans: Sequence[slice], phi: Array) -> tuple[Array, Array]:
    """(S, n) P[F_m = p | rest] of every column given the others, and (m, n) sum_p phi(p) log P[F_m = p | rest]."""
    out = params.pairs @ phi
    out += params.single[:, None]
    log_lik = np.empty((len(spans), phi.shape[1]))
    for m, span in enumerate(spans):
        log_lik[m] = np.einsum("pn,pn->n", phi[span], out[span])
        log_lik[m] -= softmax_columns(out[span])
    return out, log_lik


@dataclass(frozen=True)
class JointProblem(Problem):
    """The penalized pseudo-likelihood, with iterative scaling (2.21) as its update.

    All multipliers are updated in parallel, each by the root d of 2 N - E e^(M d) - (gamma + d) / var = 0; without a
    prior, d = (1/M) log(2 N / E). M is the largest number of features in a conditional: the other observed columns and
    the single term. The features f_i >= 0 of a conditional sum to at most M, so by Jensen's inequality (with weight
    1 - sum f / M on zero) exp(sum_i f_i d_i) <= 1 + sum_i f_i (e^(M d_i) - 1) / M. With log Z <= Z - 1 this bounds the
    gain of a step from below by a sum over multipliers that is zero at d = 0. The update maximizes this sum, so the
    objective never falls.
    """

    sizes: tuple[int, ...]  # cells of each column
    gram: Array  # (S + 1, S + 1)
    variance: float | None  # of the Gaussian prior on pairs; None: no prior
    n_features: int  # M

    @cached_property
    def spans(self) -> tuple[slice, ...]:
        return spans_of(self.sizes)

    @cached_property
    def between(self) -> np.ndarray:
        """(S, S) 1 for two cells of different columns, 0 for two cells of the same column."""
        column = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return (column[:, None] != column).astype(float)

    @property
    def counts(self) -> Array:
        """(S,) N(p)."""
        return self.gram[0, 1:]

    @cached_property
    def pair_counts(self) -> Array:
        """(S, S) N(p, q), zero within a column."""
        return self.gram[1:, 1:] * self.between

    @cached_property
    def seen(self) -> np.ndarray:
        """(S,) bool: cells that occur in the data; the multipliers of the others are not updated."""
        return (self.shares > 1e-12) & (self.counts > 0)

    def prepare(self, params: Pairwise) -> Pairwise:
        return params

    def stats(self, ready: Pairwise, block: Rows) -> Expected:  # type: ignore[override]
        proba, log_lik = conditionals(ready, self.spans, block.phi)
        log_lik *= block.present
        for span, present in zip(self.spans, block.present):
            proba[span] *= present * block.weight
        return Expected(proba.sum(axis=1), proba @ block.phi.T, float(log_lik.sum(axis=0) @ block.weight))

    def objective(self, params: Pairwise, total: Expected) -> float:
        if self.variance is None:
            return total.log_lik
        return total.log_lik - 0.25 * float((params.pairs**2).sum()) / self.variance  # the sum contains each pair twice

    def expected_pairs(self, total: Expected) -> Array:
        """(S, S) E(p, q), symmetric, zero within a column."""
        return (total.pairs + total.pairs.T) * self.between

    def gradient(self, params: Pairwise, total: Expected) -> tuple[Array, Array]:
        """(S,) and (S, S) derivatives with respect to the multipliers of cells and of pairs (at (p, q) and (q, p))."""
        slope = 2.0 * self.pair_counts - self.expected_pairs(total)
        if self.variance is not None:
            slope -= params.pairs / self.variance
        return np.where(self.seen, self.counts - total.single, 0.0), slope

    def update(self, params: Pairwise, total: Expected, step: float) -> Pairwise:
        truth, model = 2.0 * self.pair_counts, self.expected_pairs(total)
        single = np.zeros_like(params.single)
        np.log(self.counts / np.maximum(total.single, 1e-300), out=single, where=self.seen)
        if self.variance is None:
            ratio = np.maximum(truth, 1e-300) / np.maximum(model, 1e-300)
            lowest = np.minimum(params.pairs, UNSEEN)  # a multiplier that is already lower must not be increased
            pairs = np.maximum(params.pairs + np.log(ratio) / self.n_features, lowest) * self.between
        else:
            pairs = params.pairs + _root(truth, model, params.pairs, self.variance, self.n_features) * self.between
        return Pairwise(params.single + single / self.n_features, pairs)

    def pack(self, params: Pairwise) -> Array:
        return np.concatenate([params.single, params.pairs.ravel()])

    def unpack(self, vector: Array, like: Pairwise) -> Pairwise | None:
        if not np.isfinite(vector).all():
            return None
        S = len(like.single)
        return Pairwise(vector[:S], vector[S:].reshape(S, S))

    @cached_property
    def shares(self) -> Array:
        """(S,) frequency of each cell within its column; equal frequencies for a column that is never observed."""
        sums = np.array([self.counts[span].sum() for span in self.spans])
        equal = np.repeat(1.0 / np.maximum(self.sizes, 1), self.sizes)
        total = np.repeat(sums, self.sizes)
        return np.divide(self.counts, total, out=equal, where=total > 0)

    def start(self) -> Pairwise:
        """Initialization: independent columns with their training frequencies."""
        single = np.full(len(self.counts), UNSEEN)
        np.log(self.shares, out=single, where=self.shares > 1e-12)
        return Pairwise(single, np.zeros_like(self.pair_counts))


def _root(truth: Array, model: Array, here: Array, variance: float, n_features: int) -> Array:
    """The root d of truth - model e^(M d) - (here + d) / variance = 0.

    With z = truth variance - here - d, the equation is M z e^(M z) = e^y for y = log(M variance model) + M (z + d). It
    is solved by the Lambert function of e^y, which is the Wright omega function of y. Two Newton steps restore the
    digits that are lost where z is large.
    """
    M, far = n_features, truth * variance - here
    with np.errstate(divide="ignore"):
        d = far - wrightomega(np.log(M * variance * model) + M * far) / M
    for _ in range(2):
        grown = model * np.exp(np.minimum(M * d, 600.0))
        d += (truth - grown - (here + d) / variance) / (M * grown + 1.0 / variance)
    return d


class WhiteChart:
    """Coordinates for L-BFGS in which a bound on the curvature is approximately the identity.

    The curvature of each conditional is at most half the Gram matrix G of its features (Böhning 1992). The total
    curvature along a symmetric D is therefore at most tr D H D with H = (G + 1/var) / 2. With H = U h U^T and
    D = U V U^T this form is diagonal, with entries (h_i + h_j) / 2. The bound ignores that D is zero within columns;
    `params` enforces it.
    """

    def __init__(self, problem: JointProblem) -> None:
        self.problem, H = problem, 0.5 * problem.gram
        ridge = np.full(len(H), 0.5 / problem.variance if problem.variance else 1e-6 * np.trace(H) / len(H))
        ridge[0] = 1e-9 * H[0, 0]
        H[np.diag_indices_from(H)] += ridge
        values, self.vectors = np.linalg.eigh(H)
        values = np.maximum(values, 1e-12 * values[-1])
        self.scale = np.sqrt(0.5 * (values[:, None] + values))
        self.init = problem.start().single

    def vector(self, params: Pairwise) -> Array:
        full = np.zeros_like(self.scale)
        full[0, 1:] = full[1:, 0] = params.single - self.init
        full[1:, 1:] = params.pairs
        return (self.scale * (self.vectors.T @ full @ self.vectors)).ravel()

    def params(self, vector: Array) -> Pairwise:
        full = self.vectors @ (vector.reshape(self.scale.shape) / self.scale) @ self.vectors.T
        full = 0.5 * (full + full.T)
        single = np.where(self.problem.seen, self.init + full[0, 1:], self.init)
        return Pairwise(single, full[1:, 1:] * self.problem.between)

    def gradient(self, params: Pairwise, total: Expected) -> Array:
        full = np.zeros_like(self.scale)
        single, full[1:, 1:] = self.problem.gradient(params, total)
        full[0, 1:] = full[1:, 0] = single
        return (0.5 * (self.vectors.T @ full @ self.vectors) / self.scale).ravel()


def count(rows: RowBlocks, executor: Executor) -> Array:
    """(S + 1, S + 1) Gram matrix sum_t w_t x_t x_t^T of x = (1, phi)."""

    def gram(block: Any) -> Gram:
        x = np.concatenate([np.ones((1, block.n_rows)), block.phi])
        return Gram((x * block.weight) @ x.T)

    matrix = executor.total(gram, rows).matrix
    return 0.5 * (matrix + matrix.T)  # exactly symmetric, so that all derived matrices are


def pose(rows: RowBlocks, sizes: tuple[int, ...], variance: float | None, executor: Executor) -> JointProblem:
    """The optimization problem of these rows."""
    n_features = int(rows.rows.present.sum(axis=0).max(initial=1))  # the other columns, and the single term
    return JointProblem(sizes, count(rows, executor), variance, max(n_features, 1))


def solve(
    problem: JointProblem,
    rows: RowBlocks,
    solver: str,
    stop: Stop,
    executor: Executor,
    init: Pairwise | None = None,
    observers: Sequence[Observer] = (),
) -> Run:
    """Maximize the pseudo-likelihood, starting from `init` (default: independent columns)."""
    params = problem.start() if init is None else init
    if solver == "iis":
        return run(problem, rows, params, stop=stop, executor=executor, observers=observers, propose=Squarem())
    from mixent.core.lbfgs import run_lbfgs  # imports scipy.optimize

    return run_lbfgs(problem, rows, WhiteChart(problem), params, stop=stop, executor=executor, observers=observers)
