"""Newton's method for families known by natural statistics, in the multipliers' space and without a matrix.

As in `newton`, what is minimized is  D(P || P0) + sum_k w_k loss(m_k),  m_k = coef_k F(x_k) + given_k,  the dual's own
dual; but a family may have tens of thousands of statistics T. With H the Hessian of the log-partitions, Phi the
demands' features, and S the losses' curvatures, the step is

    d_T = r - Phi^T z,    (S^-1 + Phi H Phi^T) z = Phi H r,     r = T0 + Phi^T l - T,

solved as it stands where few rows speak, else by conjugate gradients: a product with H and two passes over these rows.
The bias b, if any, is an unknown beside it, with the metric of its prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh

from mixent.core.arrays import Array
from mixent.core.blocks import Blocks, NumberedRows
from mixent.core.driver import OutsideDomainError, Problem
from mixent.core.linalg import solver_of
from mixent.core.stats import Stats
from mixent.med.constraints import Constraints
from mixent.med.families import Distribution
from mixent.med.features import View
from mixent.med.interior_point import local_minimum
from mixent.med.margins import MarginPrior
from mixent.med.problem import PROXIMAL, unbalanced

MOST = 100  # conjugate gradient steps
EXACT, LOOSE = 1e-10, 1e-5  # of them: square of the residual, relative; the second with many rows, where steps are dear
MANY = 1000
WRITTEN, NUMBERS = 600, 2 * 10**5  # demands, and numbers in their features, up to which the kernel is written out
CUT = 1e-14  # eigenvalues of the kernel that are none


@dataclass(frozen=True)
class Joint:
    """Distributions of all families, and the mean of the bias."""

    parts: tuple[Distribution, ...]
    bias: Array  # (G,)

    def divergence(self, prior: Joint, bias_variance: float) -> float:
        """D(P || P0), nats."""
        away = self.bias - prior.bias
        parts = [one.divergence(before) for one, before in zip(self.parts, prior.parts)]
        return sum(parts) + 0.5 * float(away @ away) / bias_variance


@dataclass(frozen=True)
class Push(Stats):
    """What the rows do at some distributions."""

    loss: float
    potential: float  # sum w (u(l) - l (what no family decides))
    weight: float
    force: tuple[Array, ...]  # per family (M,): Phi^T l
    drift: Array  # (G,)


@dataclass(frozen=True)
class ExponentialFamilyProblem(Problem[Joint, Joint, Push]):
    """max  - sum_f D(P_f || P0_f) - |b - b0|^2 / (2 bias_variance) - sum w loss."""

    views: tuple[View, ...]  # of each output
    owner: tuple[int, ...]  # which family gives each output its score
    demands: Constraints
    margin: MarginPrior
    prior: Joint
    contrast: Array  # (S, G) what the bias adds to each output
    bias_variance: float  # inf: flat
    safe_step: float = 2.0**-30

    def source(self) -> Blocks:
        widest = max(view.row_bytes for view in self.views)
        return Blocks(NumberedRows.of(self.demands.weight), 32 * self.demands.signs.shape[1] + widest)

    def prepare(self, params: Joint) -> Joint:
        return params

    def scores(self, params: Joint, views: tuple[View, ...]) -> Array:
        """(n, S) of the rows in these views."""
        free = [view.dot(params.parts[f].mean) + view.offset for view, f in zip(views, self.owner)]
        return np.column_stack(free) + self.contrast @ params.bias

    def training_scores(self, params: Joint) -> Array:
        """(n, S)."""
        return self.scores(params, self.views)

    def margins(self, params: Joint) -> Array:
        """(n, P) kept by every row."""
        return self.demands.kept(self.training_scores(params)) + self.demands.given

    def multipliers(self, params: Joint) -> Array:
        """(n, P)."""
        return np.where(self.demands.speaks, self.margin.multiplier(self.margins(params)), 0.0)

    def stats(self, ready: Joint, block: NumberedRows) -> Push:  # type: ignore[override]
        rows = slice(int(block.index[0]), int(block.index[-1]) + 1)
        views = tuple(view.take(rows) for view in self.views)
        asked = self.demands.part(rows)
        m = asked.kept(self.scores(ready, views)) + asked.given
        lam = np.where(asked.speaks, self.margin.multiplier(m), 0.0)
        return self.pushed(lam, asked, views, np.where(asked.open, self.margin.loss(m), 0.0))

    def pushed(self, lam: Array, asked: Constraints, views: tuple[View, ...], loss: Array) -> Push:
        """Statistics at these multipliers (n, P); `loss` (n, P) is the constant of demands that cannot speak."""
        alpha = asked.pushes(asked.weight[:, None] * lam)
        known = asked.kept(np.column_stack([view.offset for view in views])) + asked.given
        potential = np.where(asked.speaks, self.margin.potential(lam) - lam * known, loss)
        force = self.gathered(alpha, views)
        weight = asked.weight
        return Push(
            float(weight @ loss.sum(axis=1)),
            float(weight @ potential.sum(axis=1)),
            float(weight.sum()),
            force,
            alpha.sum(axis=0) @ self.contrast,
        )

    def gathered(self, alpha: Array, views: tuple[View, ...]) -> tuple[Array, ...]:
        """What rows with these coefficients (n, S) add to each family."""
        force = [np.zeros_like(part.T) for part in self.prior.parts]
        for s, (view, f) in enumerate(zip(views, self.owner)):
            force[f] += view.gather(alpha[:, s])
        return tuple(force)

    def objective(self, params: Joint, total: Push) -> float:
        return -(self.divergence(params) + total.loss)

    def divergence(self, params: Joint) -> float:
        """D(P || P0), nats."""
        return params.divergence(self.prior, self.bias_variance)

    def dual(self, params: Joint, total: Push) -> float | None:
        """J at the multipliers of these statistics; None where there is none."""
        value = total.potential
        if np.isfinite(self.bias_variance):
            value -= 0.5 * self.bias_variance * float(total.drift @ total.drift) + float(total.drift @ self.prior.bias)
        else:
            value -= unbalanced(total.drift, params.bias)
        try:
            for prior, force in zip(self.prior.parts, total.force):
                value -= prior.at(prior.T + force).log_partition - prior.log_partition
        except OutsideDomainError:
            return None
        return value

    def gap(self, params: Joint, total: Push) -> float | None:
        dual = self.dual(params, total)
        return None if dual is None else -self.objective(params, total) - dual

    # --- one step -----------------------------------------------------------------------------------------------

    def update(self, params: Joint, total: Push, step: float) -> Joint:
        pull = tuple(p.T + f - one.T for p, f, one in zip(self.prior.parts, total.force, params.parts))
        lam = self.multipliers(params)
        stiff = self.demands.weight[:, None] * np.where(self.demands.speaks, self.margin.bend(lam), 0.0)
        active = Active(self, params, stiff)
        held = 1.0 / self.bias_variance + PROXIMAL * total.weight
        slope = total.drift - (params.bias - self.prior.bias) / self.bias_variance
        right = active.along([one.metric(r) for one, r in zip(params.parts, pull)])
        z, bias = active.solve(right, slope, held)
        back = active.gathered(z)
        return self.moved(params, tuple(step * (r - b) for r, b in zip(pull, back)), step * bias)

    def moved(self, params: Joint, moves: tuple[Array, ...], bias: Array) -> Joint:
        """After a move, halved until it stays in the domain: the objective falls to -inf at the border."""
        if not all(np.isfinite(move).all() for move in (*moves, bias)):
            raise OutsideDomainError("a step is not finite")
        while True:
            try:
                parts = tuple(one.at(one.T + move) for one, move in zip(params.parts, moves))
                return Joint(parts, params.bias + bias)
            except OutsideDomainError:
                moves, bias = tuple(0.5 * move for move in moves), 0.5 * bias


class Active:
    """Constraints whose multipliers can move, and the system they make."""

    def __init__(self, problem: ExponentialFamilyProblem, params: Joint, stiff: Array) -> None:
        """`stiff` (n, P): the curvature S of each demand, zero where it does not move."""
        self.problem, self.params = problem, params
        self.which = rows, k = np.nonzero(stiff > 0)
        self.rows, self.at = np.unique(rows, return_inverse=True)
        self.views = tuple(view.take(self.rows) for view in problem.views)
        self.coef = problem.demands.of(rows, k)  # (K, S)
        self.soft = 1.0 / stiff[rows, k]  # S^-1
        self.push = self.coef @ problem.contrast  # B (K, G)

    def gathered(self, z: Array) -> tuple[Array, ...]:
        """Phi^T z, per family."""
        alpha = np.zeros((len(self.rows), self.coef.shape[1]))
        np.add.at(alpha, self.at, z[:, None] * self.coef)
        return self.problem.gathered(alpha, self.views)

    def along(self, moves: list[Array]) -> Array:
        """(K,) Phi times a move of the mean parameters."""
        scores = np.column_stack([view.dot(moves[f]) for view, f in zip(self.views, self.problem.owner)])
        return np.asarray((scores[self.at] * self.coef).sum(axis=1))

    def kernel(self, z: Array) -> Array:
        """Phi H Phi^T z."""
        return self.along([one.metric(f) for one, f in zip(self.params.parts, self.gathered(z))])

    @property
    def few(self) -> bool:
        """Can the kernel be written out?"""
        widest = max(len(part.T) for part in self.params.parts)
        return len(self.soft) <= WRITTEN and len(self.soft) * widest <= NUMBERS

    def gram(self) -> Array:
        """(K, K) Phi H Phi^T, written out."""
        K = np.zeros((len(self.at), len(self.at)))
        for f, one in enumerate(self.params.parts):
            phi: Any = 0.0
            for s in (s for s, owner in enumerate(self.problem.owner) if owner == f):
                phi = phi + self.views[s].features()[self.at] * self.coef[:, s, None]
            K += one.gram(phi)
        return K

    def solve(self, right: Array, slope: Array, held: float) -> tuple[Array, Array]:
        """z and the bias' move:  (S^-1 + K) z - B b = right,   B^T z + held b = slope."""
        if len(right) == 0:
            return np.zeros(0), slope / held
        return self._directly(right, slope, held) if self.few else self._by_gradients(right, slope, held)

    def _directly(self, right: Array, slope: Array, held: float) -> tuple[Array, Array]:
        matrix = self.gram()
        matrix[np.diag_indices_from(matrix)] += self.soft
        solve = solver_of(matrix)
        across = solve(self.push)  # (K, G)
        inner = self.push.T @ across + held * np.eye(self.push.shape[1])
        alone = solve(right)
        bias = np.asarray(np.linalg.solve(inner, slope - self.push.T @ alone)) if len(slope) else slope
        return np.asarray(alone + across @ bias), bias

    def _by_gradients(self, right: Array, slope: Array, held: float) -> tuple[Array, Array]:
        """Conjugate gradients, preconditioned by the same system with a multiple of 1 for K.

        So the second line holds from the start and in every step, however little the bias is held.
        """
        n, G = self.push.shape
        signs = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
        D = self.soft + max(float(signs @ self.kernel(signs)) / n, 0.0)
        scaled = self.push / D[:, None]
        inner = np.linalg.inv(self.push.T @ scaled + held * np.eye(G)) if G else np.zeros((0, 0))

        def smooth(r: Array) -> tuple[Array, Array]:
            y = inner @ (scaled.T @ r)
            return r / D - scaled @ y, y

        bias = inner @ slope
        z = scaled @ bias
        r = right + self.push @ bias - self.soft * z - self.kernel(z)
        p, y = smooth(r)
        first = size = float(r @ p)
        exact = EXACT if self.problem.demands.n_rows < MANY else LOOSE
        for _ in range(MOST):
            if not size > exact * first:
                break
            q = self.soft * p + self.kernel(p) + self.push @ y
            length = size / float(p @ q)
            z, bias, r = z + length * p, bias - length * y, r - length * q
            next_p, next_y = smooth(r)
            size, before = float(r @ next_p), size
            p, y = next_p + (size / before) * p, next_y + (size / before) * y
        return z, bias


@dataclass(frozen=True)
class ExponentialFamilySequential(Problem[Joint, Joint, Push]):
    """The same problem, each update the minimum of the local one: for losses that all but break."""

    whole: ExponentialFamilyProblem
    precise: float
    safe_step: float = 2.0**-30

    def prepare(self, params: Joint) -> Joint:
        return params

    def stats(self, ready: Joint, block: NumberedRows) -> Push:  # type: ignore[override]
        return self.whole.stats(ready, block)

    def objective(self, params: Joint, total: Push) -> float:
        return self.whole.objective(params, total)

    def gap(self, params: Joint, total: Push) -> float | None:
        return self.whole.gap(params, total)

    def update(self, params: Joint, total: Push, step: float) -> Joint:
        """D is quadratic and margins are linear in a move  T0 - T + Phi^T z:  the kernel's factor takes z's place."""
        whole = self.whole
        asked = whole.demands
        every = Active(whole, params, np.where(asked.speaks, asked.weight[:, None], 0.0))
        back = [p.T - one.T for p, one in zip(whole.prior.parts, params.parts)]
        m = whole.margins(params)[every.which] + every.along([one.metric(b) for one, b in zip(params.parts, back)])
        values, vectors = eigh(every.gram())
        kept = values > CUT * max(float(values.max(initial=0.0)), 1e-300)
        root = np.sqrt(values[kept])
        r, G = len(root), len(params.bias)
        Q = np.diag(np.r_[np.ones(r), np.full(G, 1.0 / whole.bias_variance + PROXIMAL * total.weight)])
        g = np.r_[np.zeros(r), (params.bias - whole.prior.bias) / whole.bias_variance]
        A = np.concatenate([vectors[:, kept] * root, every.push], axis=1)
        move = local_minimum(Q, g, A, m, asked.weight[every.which[0]], whole.margin, self.precise)
        towards = every.gathered(vectors[:, kept] @ (move[:r] / root))
        return whole.moved(params, tuple(step * (b + t) for b, t in zip(back, towards)), step * move[r:])
