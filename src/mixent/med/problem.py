"""Newton's method in the parameters, for Gaussians, which are linear in their mean parameters.

The dual  max_λ  J(λ) = sum_k w_k u(λ_k) - log Z(λ)  has one unknown per constraint. Its own dual,

    min_P  D(P || P0) + sum_k w_k loss(m_k),     m_k = p_k sum_s e_ks E_P[F_s(x_k)],

has one unknown per parameter of P: d (d + 3) / 2 + 1 per class for Gaussians. The
objective of the driver is minus this. The statistics are sums over rows, the update is one Newton step, and the driver
shortens a step that would lower the objective. The multipliers at any P are λ_k = multiplier(m_k); they give the
value of the dual.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import Blocks
from mixent.core.driver import Problem
from mixent.core.stats import Stats
from mixent.med.constraints import PairConstraints
from mixent.med.exponential_family import PROXIMAL as PROXIMAL
from mixent.med.exponential_family import imbalance_penalty as imbalance_penalty
from mixent.med.interior_point import local_minimum
from mixent.med.margins import MarginPrior

P = TypeVar("P")


@dataclass(frozen=True)
class Rows:
    """Rows and their margin constraints."""

    X: Array  # (n, d)
    signs: Array  # (n, pairs)
    imposed: np.ndarray  # (n, pairs) bool
    weight: Array  # (n,)
    shift: Array | None = None  # (n, pairs) subtracted from each margin
    lam: Array | None = None  # (n, pairs) multipliers; None: those of the margins

    @property
    def n_rows(self) -> int:
        return len(self.weight)

    @property
    def effective(self) -> np.ndarray:
        """(n, pairs) bool: constraints that depend on the discriminant functions; only these have a multiplier."""
        return self.imposed & (self.signs != 0)

    def part(self, rows: slice | np.ndarray) -> Rows:
        shift = None if self.shift is None else self.shift[rows]
        lam = None if self.lam is None else self.lam[rows]
        return Rows(self.X[rows], self.signs[rows], self.imposed[rows], self.weight[rows], shift, lam)


def row_blocks(X: Array, constraints: PairConstraints, shift: Array | None = None, width: int = 0) -> Blocks:
    """Blocks of rows for the driver; `width` is the number of features of a row."""
    rows = Rows(X, constraints.signs, constraints.imposed, constraints.weight, shift)
    return Blocks(rows, 8 * (2 * max(width, X.shape[1]) + 4 * constraints.signs.shape[1]))


@dataclass(frozen=True)
class MarginStats(Stats):
    """Loss, potential, gradient and curvature of the rows at some parameters, for outputs s with features psi_s."""

    loss: float
    potential: float  # sum w (u(λ) + λ shift)
    weight: float  # sum w
    gradient: tuple[Array, ...]  # per output s (m_s,): sum w λ p e_s psi_s, minus the gradient of the loss
    curvature: Array  # (M, M) Hessian of the loss over the features of all outputs


def margin_stats(rows: Rows, scores: Array, features: list[Array], outputs: Array, margin: MarginPrior) -> MarginStats:
    """Statistics of rows from their scores (n, S), features S x (n, m_s) and outputs (pairs, S)."""
    unshifted = rows.signs * (scores @ outputs.T)
    m = unshifted if rows.shift is None else unshifted - rows.shift
    effective = rows.effective
    weight = rows.weight[:, None]
    lam = margin.multiplier(m) if rows.lam is None else rows.lam
    loss = np.where(rows.imposed, margin.loss(m), 0.0)
    weighted_lam = np.where(effective, weight * lam, 0.0)
    alpha = (weighted_lam * rows.signs) @ outputs  # (n, S)
    curvature = np.where(effective, weight * rows.signs**2 * margin.loss_curvature(lam), 0.0)
    gradient = tuple(phi.T @ alpha[:, s] for s, phi in enumerate(features))
    if rows.lam is None:
        potential = loss + np.where(effective, lam * unshifted, 0.0)
    else:
        potential = np.where(effective, margin.potential(lam), loss)
    return MarginStats(
        float((weight * loss).sum()),
        float((weight * potential).sum()),
        float(rows.weight.sum()),
        gradient,
        _hessian(curvature, features, outputs),
    )


def _hessian(curvature: Array, features: list[Array], outputs: Array) -> Array:
    """sum_t sum_pairs curvature e_s e_s' psi_s psi_s'^T, from the rows with a positive curvature (n, pairs)."""
    used = np.flatnonzero(curvature.any(axis=1))
    curvature = curvature[used]
    of_used_rows = {id(phi): phi[used] for phi in features}  # outputs may share their features
    parts = [of_used_rows[id(phi)] for phi in features]
    S = len(parts)
    blocks: list[list[Any]] = [[None] * S for _ in range(S)]
    for s in range(S):
        for other in range(s + 1):
            row_weights = curvature @ (outputs[:, s] * outputs[:, other])
            blocks[s][other] = (parts[s] * row_weights[:, None]).T @ parts[other]
            blocks[other][s] = blocks[s][other].T
    return np.block(blocks)


class MedProblem(Problem[P, Any, MarginStats]):
    """The common part of the problems of linear and Gaussian discriminants."""

    safe_step = 2.0**-30  # a step this short lowers the loss, or the limit of the floating-point numbers is reached
    newton_steps = 20  # Newton steps before the local problems are solved exactly
    margin: MarginPrior
    bias_variance: float  # inf: flat prior
    outputs: Array  # (pairs, S)

    @abstractmethod
    def scores(self, params: P, X: Array) -> Array:
        """(n, S): expected discriminant functions."""

    def objective(self, params: P, total: MarginStats) -> float:
        return -(self.divergence(params) + total.loss)

    @abstractmethod
    def divergence(self, params: P) -> float:
        """D(P || P0), in nats."""

    @abstractmethod
    def dual(self, params: P, total: MarginStats) -> float | None:
        """J(λ) = -log Z(λ) at the multipliers of these parameters; None where Z does not exist."""

    @abstractmethod
    def local(self, params: P, rows: Rows) -> LocalProblem:
        """The local problem at these parameters."""

    @abstractmethod
    def step(self, params: P, v: Array) -> P:
        """The parameters after a step v."""

    def gap(self, params: P, total: MarginStats) -> float | None:
        dual = self.dual(params, total)
        return None if dual is None else -self.objective(params, total) - dual

    def multipliers(self, params: P, rows: Rows) -> Array:
        """(n, pairs)."""
        m = rows.signs * (self.scores(params, rows.X) @ self.outputs.T)
        if rows.shift is not None:
            m = m - rows.shift
        return np.where(rows.effective, self.margin.multiplier(m), 0.0)


def balance_multipliers(lam: Array, constraints: PairConstraints) -> Array:
    """The multipliers of two classes, scaled down until  sum_t w_t p_t λ_t = 0  as a flat bias requires."""
    return lam * balancing_factors((constraints.weight[:, None] * constraints.signs * lam) * constraints.imposed)


def balancing_factors(terms: Array) -> Array:
    """Factors at most 1 with which the terms add up to zero: those of the sign with the larger sum are scaled down."""
    up, down = float(terms[terms > 0].sum()), -float(terms[terms < 0].sum())
    return np.where(terms > 0, down / up if up > down else 1.0, up / down if down > up else 1.0)


@dataclass(frozen=True)
class LocalProblem:
    """D as a quadratic function, and the margins as linear functions, of a step v from some parameters.

    minimize  v^T Q v / 2 + g^T v + sum_k w_k loss(m_k + A_k v)
    """

    Q: Array  # (p, p)
    g: Array  # (p,)
    A: Array  # (K, p)
    margins: Array  # (K,)
    weight: Array  # (K,)


def linearized_margins(rows: Rows, scores: Array, features: list[Array], outputs: Array) -> tuple[Array, Array, Array]:
    """A (K, M), margins (K,) and weights (K,) of all effective constraints, in the order of the rows."""
    t, k = np.nonzero(rows.effective & (rows.weight > 0)[:, None])
    sign = rows.signs[t, k]
    m = sign * (scores[t] * outputs[k]).sum(axis=1)
    if rows.shift is not None:
        m = m - rows.shift[t, k]
    A = np.concatenate([phi[t] * (sign * outputs[k, s])[:, None] for s, phi in enumerate(features)], axis=1)
    return A, m, rows.weight[t]


@dataclass(frozen=True)
class SequentialProblem(Problem[P, Any, MarginStats]):
    """The same problem; each update is the exact minimum of the local problem, for losses that are nearly kinked."""

    problem: Any  # a MedProblem
    rows: Rows
    precision: float
    safe_step: float = 2.0**-30

    def prepare(self, params: P) -> Any:
        return self.problem.prepare(params)

    def stats(self, ready: Any, block: Rows) -> MarginStats:  # type: ignore[override]
        return self.problem.stats(ready, block)

    def objective(self, params: P, total: MarginStats) -> float:
        return self.problem.objective(params, total)

    def gap(self, params: P, total: MarginStats) -> float | None:
        return self.problem.gap(params, total)

    def update(self, params: P, total: MarginStats, step: float) -> P:
        local = self.problem.local(params, self.rows)
        v = local_minimum(local.Q, local.g, local.A, local.margins, local.weight, self.problem.margin, self.precision)
        return self.problem.step(params, step * v)
