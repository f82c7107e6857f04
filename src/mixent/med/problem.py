"""Newton's method in the parameters' few dimensions, for every discriminant that is linear in mean parameters.

The dual  max_l  sum_k w_k u(l_k) - log Z(l)  has as many unknowns as there are constraints. Its own dual,

    min  D(P || P0) + sum_k w_k loss(m_k),     m_k = p_k sum_s e_ks E_P[F_s(x_k)],

has as many as P has parameters: d + 1 for the linear discriminant, d (d + 3) / 2 + 1 per class for Gaussians. What is
maximized is minus this; statistics are sums over rows, the update is one Newton step, and the driver shortens a step
that would lower the objective. The multipliers at any P are l_k = multiplier(m_k), and they give the dual's value.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import Blocks
from mixent.core.driver import Problem
from mixent.core.linalg import solve_positive
from mixent.core.stats import Stats
from mixent.med.constraints import PairConstraints
from mixent.med.interior_point import local_minimum
from mixent.med.margins import MarginPrior

P = TypeVar("P")
# a step is held back so much, per unit of weight, where nothing else holds a flat bias: else rounding would move it
PROXIMAL = 1e-8


@dataclass(frozen=True)
class Rows:
    """Some rows with their constraints."""

    X: Array  # (n, d)
    signs: Array  # (n, pairs)
    open: np.ndarray  # (n, pairs) bool
    weight: Array  # (n,)
    shift: Array | None = None  # (n, pairs) subtracted from each margin
    lam: Array | None = None  # (n, pairs) multipliers, where they are not those of the margins

    @property
    def n_rows(self) -> int:
        return len(self.weight)

    def part(self, rows: slice | np.ndarray) -> Rows:
        shift = None if self.shift is None else self.shift[rows]
        lam = None if self.lam is None else self.lam[rows]
        return Rows(self.X[rows], self.signs[rows], self.open[rows], self.weight[rows], shift, lam)


def row_blocks(X: Array, contests: PairConstraints, shift: Array | None = None, width: int = 0) -> Blocks:
    """Blocks for the driver; `width`: numbers a row's features take."""
    rows = Rows(X, contests.signs, contests.open, contests.weight, shift)
    return Blocks(rows, 8 * (2 * max(width, X.shape[1]) + 4 * contests.signs.shape[1]))


@dataclass(frozen=True)
class Pull(Stats):
    """What the rows do at some parameters; outputs s, features of output s."""

    loss: float
    potential: float  # sum w (u(l) + l shift)
    weight: float  # sum w
    force: tuple[Array, ...]  # per output s (m_s,): sum w l p e_s psi_s
    curvature: Array  # (M, M) over the features of all outputs


def pull(rows: Rows, scores: Array, features: list[Array], outputs: Array, margin: MarginPrior) -> Pull:
    """Statistics of some rows from their scores (n, S), features S x (n, m_s) and outputs (pairs, S)."""
    kept = rows.signs * (scores @ outputs.T)
    m = kept if rows.shift is None else kept - rows.shift
    speaks = rows.open & (rows.signs != 0)
    weight = rows.weight[:, None]
    lam = margin.multiplier(m) if rows.lam is None else rows.lam
    loss = np.where(rows.open, margin.loss(m), 0.0)
    pushed = np.where(speaks, weight * lam, 0.0)
    alpha = (pushed * rows.signs) @ outputs  # (n, S)
    stiff = np.where(speaks, weight * rows.signs**2 * margin.bend(lam), 0.0)
    force = tuple(phi.T @ alpha[:, s] for s, phi in enumerate(features))
    if rows.lam is None:
        potential = loss + np.where(speaks, lam * kept, 0.0)
    else:
        potential = np.where(speaks, margin.potential(lam), loss)
    return Pull(
        float((weight * loss).sum()),
        float((weight * potential).sum()),
        float(rows.weight.sum()),
        force,
        _curvature(stiff, features, outputs),
    )


def _curvature(stiff: Array, features: list[Array], outputs: Array) -> Array:
    """sum_t sum_pairs stiff e_s e_s' psi_s psi_s'^T, rows that say nothing left out."""
    some = np.flatnonzero(stiff.any(axis=1))
    stiff = stiff[some]
    kept = {id(phi): phi[some] for phi in features}
    parts = [kept[id(phi)] for phi in features]
    S = len(parts)
    blocks: list[list[Any]] = [[None] * S for _ in range(S)]
    for s in range(S):
        for other in range(s + 1):
            by_row = stiff @ (outputs[:, s] * outputs[:, other])
            blocks[s][other] = (parts[s] * by_row[:, None]).T @ parts[other]
            blocks[other][s] = blocks[s][other].T
    return np.block(blocks)


class MedProblem(Problem[P, Any, Pull]):
    """What linear and Gaussian discriminants have in common."""

    safe_step = 2.0**-30  # a step shortened so far descends, or the numbers are at their end
    newton_steps = 20  # before local problems are solved as they are
    margin: MarginPrior
    bias_variance: float  # inf: flat
    outputs: Array  # (pairs, S)

    @abstractmethod
    def scores(self, params: P, X: Array) -> Array:
        """(n, S): expected discriminant functions."""

    def objective(self, params: P, total: Pull) -> float:
        return -(self.divergence(params) + total.loss)

    @abstractmethod
    def divergence(self, params: P) -> float:
        """D(P || P0), in nats."""

    @abstractmethod
    def dual(self, params: P, total: Pull) -> float | None:
        """-log Z at the multipliers of these parameters; None where it does not exist."""

    @abstractmethod
    def local(self, params: P, rows: Rows) -> Local:
        """The problem about these parameters."""

    @abstractmethod
    def moved(self, params: P, move: Array) -> P:
        """The parameters after a move v."""

    def gap(self, params: P, total: Pull) -> float | None:
        dual = self.dual(params, total)
        return None if dual is None else -self.objective(params, total) - dual

    def multipliers(self, params: P, rows: Rows) -> Array:
        """(n, pairs)."""
        m = rows.signs * (self.scores(params, rows.X) @ self.outputs.T)
        if rows.shift is not None:
            m = m - rows.shift
        return np.where(rows.open & (rows.signs != 0), self.margin.multiplier(m), 0.0)


def balanced(lam: Array, contests: PairConstraints) -> Array:
    """Multipliers of two classes that keep the bias equality."""
    return lam * evened((contests.weight[:, None] * contests.signs * lam) * contests.open)


def evened(pushed: Array) -> Array:
    """What to multiply each with that all add up to zero: the heavier side takes back what it has too much."""
    up, down = float(pushed[pushed > 0].sum()), -float(pushed[pushed < 0].sum())
    return np.where(pushed > 0, down / up if up > down else 1.0, up / down if down > up else 1.0)


def unbalanced(drift: Array, bias: Array) -> float:
    """What the dual's value is worth less when the multipliers miss the bias equality.

    The bound is short of  drift * (optimal bias), taken to be no farther out than twice the present one and one more:
    enough to tell a search when to stop. Of two classes the result is judged by `balanced` multipliers.
    """
    return float(np.abs(drift) @ (1.0 + 2.0 * np.abs(bias)))


@dataclass(frozen=True)
class Local:
    """The problem about some parameters: D as a quadratic function of a move v, margins as linear ones."""

    Q: Array  # (p, p)
    g: Array  # (p,)
    A: Array  # (K, p)
    margins: Array  # (K,)
    weight: Array  # (K,)


def spoken(rows: Rows, scores: Array, features: list[Array], outputs: Array) -> tuple[Array, Array, Array]:
    """A (K, M), margins (K,) and weights (K,) of all constraints that can speak, rows in order."""
    t, k = np.nonzero(rows.open & (rows.signs != 0) & (rows.weight > 0)[:, None])
    sign = rows.signs[t, k]
    m = sign * (scores[t] * outputs[k]).sum(axis=1)
    if rows.shift is not None:
        m = m - rows.shift[t, k]
    A = np.concatenate([phi[t] * (sign * outputs[k, s])[:, None] for s, phi in enumerate(features)], axis=1)
    return A, m, rows.weight[t]


@dataclass(frozen=True)
class Sequential(Problem[P, Any, Pull]):
    """The same problem, each update the minimum of the local one: for losses that all but break."""

    whole: Any  # a MedProblem
    rows: Rows
    precise: float
    safe_step: float = 2.0**-30

    def prepare(self, params: P) -> Any:
        return self.whole.prepare(params)

    def stats(self, ready: Any, block: Rows) -> Pull:  # type: ignore[override]
        return self.whole.stats(ready, block)

    def objective(self, params: P, total: Pull) -> float:
        return self.whole.objective(params, total)

    def gap(self, params: P, total: Pull) -> float | None:
        return self.whole.gap(params, total)

    def update(self, params: P, total: Pull, step: float) -> P:
        here = self.whole.local(params, self.rows)
        move = local_minimum(here.Q, here.g, here.A, here.margins, here.weight, self.whole.margin, self.precise)
        return self.whole.moved(params, step * move)


@dataclass(frozen=True)
class Plane:
    """Linear discriminants f_g(x) = coef_g x + bias_g."""

    coef: Array  # (G, d)
    bias: Array  # (G,)


@dataclass(frozen=True)
class LinearProblem(MedProblem[Plane]):
    """Theorem 2:  max  - |coef|^2 / 2 - |bias|^2 / (2 bias_variance) - sum w loss."""

    outputs: Array  # (pairs, G)
    margin: MarginPrior
    bias_variance: float  # inf: flat

    def start(self, d: int) -> Plane:
        n_outputs = self.outputs.shape[1]
        return Plane(np.zeros((n_outputs, d)), np.zeros(n_outputs))

    def scores(self, params: Plane, X: Array) -> Array:
        return X @ params.coef.T + params.bias

    def prepare(self, params: Plane) -> Plane:
        return params

    def stats(self, ready: Plane, block: Rows) -> Pull:  # type: ignore[override]
        features = np.concatenate([block.X, np.ones((block.n_rows, 1))], axis=1)
        n_outputs = self.outputs.shape[1]
        return pull(block, self.scores(ready, block.X), [features] * n_outputs, self.outputs, self.margin)

    def divergence(self, params: Plane) -> float:
        return 0.5 * float((params.coef**2).sum() + (params.bias**2).sum() / self.bias_variance)

    def update(self, params: Plane, total: Pull, step: float) -> Plane:
        force = np.array(total.force)  # (G, d + 1)
        held, pulled = self._held(params, total.weight)
        matrix = total.curvature + np.diag(held)
        return self.moved(params, step * solve_positive(matrix, force.ravel() - pulled))

    def _held(self, params: Plane, weight: float) -> tuple[Array, Array]:
        """Curvature (its diagonal) and slope of D."""
        held = np.ones((len(params.bias), params.coef.shape[1] + 1))
        held[:, -1] = 1.0 / self.bias_variance
        slope = held * np.column_stack([params.coef, params.bias])
        held[:, -1] += PROXIMAL * weight
        return held.ravel(), slope.ravel()

    def moved(self, params: Plane, move: Array) -> Plane:
        move = move.reshape(len(params.bias), -1)
        return Plane(params.coef + move[:, :-1], params.bias + move[:, -1])

    def local(self, params: Plane, rows: Rows) -> Local:
        features = np.concatenate([rows.X, np.ones((rows.n_rows, 1))], axis=1)
        A, m, weight = spoken(rows, self.scores(params, rows.X), [features] * len(params.bias), self.outputs)
        held, pulled = self._held(params, float(rows.weight.sum()))
        return Local(np.diag(held), pulled, A, m, weight)

    def dual(self, params: Plane, total: Pull) -> float | None:
        force = np.array(total.force)
        drift = force[:, -1]
        value = total.potential - 0.5 * float((force[:, :-1] ** 2).sum())
        if np.isfinite(self.bias_variance):
            return value - 0.5 * self.bias_variance * float(drift @ drift)
        return value - unbalanced(drift, params.bias)
