"""Steps to the exact minimum of a local problem, in the space of the multipliers.

Where the multipliers may grow large, a loss has almost a kink, and Newton steps with its quadratic approximation are
useless. Here only D is approximated: with steps  T0 - T + Phi^T z  of the natural parameters and b of the bias,

    minimize  z^T K z / 2 + q |b|^2 / 2 + g^T b + sum_k w_k loss(m_k + (K z)_k + B_k b)

where K = Phi H Phi^T is the kernel matrix of the constraints, and z = w λ at the minimum. An iteration factorizes the
part of K whose constraints have a positive curvature. The margins are linear, so the search along its direction needs
one product with K.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mixent.core.arrays import Array
from mixent.core.linalg import solver_of
from mixent.med.exponential_family import (
    PROXIMAL,
    ActiveSet,
    ExponentialFamilyProblem,
    FamilyStats,
    JointDistribution,
    length_of_step,
)

MAX_CONSTRAINTS = 2500  # of a kernel matrix
MAX_COST = 3e9  # multiplications of a step with a factor of a larger one
SHARE = 0.05  # of the constraints cubed: a factor that costs less is used in place of the matrix
PRECISION = 1e-10  # of the local minimum, in nats per unit of weight
MAX_ITER = 200
FLAT, PRECISE = 0.1, 1e-14  # line search: share of the initial slope at which it ends, and precision of a kink
LONGEST = 2.0**20  # length of a step
SPARE, FEW = 1.3, 30  # constraints that are chosen: so many times those with a shortfall, and so many more


@dataclass(frozen=True)
class Direction:
    """The full step to the minimum of a local problem."""

    steps: tuple[Array, ...]  # of the natural parameters
    bias_step: Array
    start: Array  # (n, P) z of the distributions it starts from
    z: Array  # (n, P) z at the minimum


@dataclass(frozen=True)
class LocalMinimumProblem(ExponentialFamilyProblem):
    """The same problem; an update is the minimum of the local problem, or a Newton step if that is too large."""

    exact: ClassVar[bool] = True
    memo: dict = field(default_factory=dict, repr=False, compare=False)  # the last distributions, their z and direction

    def update(self, params: JointDistribution, total: FamilyStats, step: float) -> JointDistribution:
        if self.memo.get("params") is not params:  # else a step was too long
            z = self.memo["z"] if self.memo.get("next") is params else self._first(params)
            self.memo.update(params=params, direction=self._direction(params, total, z))
        direction = self.memo["direction"]
        if direction is None:
            return super().update(params, total, step)
        new = self.step(params, tuple(step * d for d in direction.steps), step * direction.bias_step)
        self.memo.update(next=new, z=direction.start + step * (direction.z - direction.start))
        return new

    def _first(self, params: JointDistribution) -> Array:
        """z from the multipliers; zero at the prior."""
        weight = self.constraints.weight[:, None]
        return 0.0 * weight * self.constraints.signs if params is self.prior else weight * self.multipliers(params)

    def _direction(self, params: JointDistribution, total: FamilyStats, start: Array) -> Direction | None:
        """z is zero where a margin is attained anyway, so the kernel matrix is that of the other constraints."""
        constraints, margins, required = self.constraints, self.margins(params), float(self.margin.mean(0.0))
        to_prior = tuple(p.T - part.T for p, part in zip(self.prior.parts, params.parts))
        at_prior = margins + self._margin_changes(params, to_prior, np.zeros_like(params.bias))
        possible = constraints.effective & (constraints.weight > 0)[:, None]
        lowest = np.where(possible, np.minimum(margins, at_prior), np.inf)
        n_chosen = min(int(SPARE * np.count_nonzero(lowest < required)) + FEW, lowest.size)
        chosen, z = (
            (lowest <= np.partition(lowest, n_chosen - 1, axis=None)[n_chosen - 1]) & possible | (start > 0),
            start,
        )
        while np.count_nonzero(chosen) <= MAX_CONSTRAINTS or self._factor_cost(chosen) <= MAX_COST:
            z, bias_step, sums = self._minimum(params, total, chosen, at_prior, z)
            short = possible & ~chosen & (at_prior + self._margin_changes(params, sums, bias_step) < required)
            if not short.any():
                return Direction(tuple(a + b for a, b in zip(to_prior, sums)), bias_step, start, z)
            chosen |= short
        return None

    def _margin_changes(self, params: JointDistribution, steps: tuple[Array, ...], bias_step: Array) -> Array:
        """(n, P) changes of the margins, to first order in steps of T and of the bias."""
        means = [part.hessian_product(step) for part, step in zip(params.parts, steps)]
        changes = np.column_stack([phi.dot(means[f]) for phi, f in zip(self.features, self.family_of)])
        return self.constraints.margins(changes + self.contrast @ bias_step)

    def _factor_cost(self, chosen: np.ndarray) -> float:
        """Multiplications to form the system of a factor of the kernel matrix."""
        ranks = [self.prior.parts[f].rank for f in self.family_of]  # type: ignore[attr-defined]
        return float(np.count_nonzero(chosen.any(axis=1))) * sum(ranks) ** 2 + sum(ranks) ** 3 / 3

    def _kernel(self, active: ActiveSet, chosen: np.ndarray) -> KernelMatrix | KernelFactor:
        n = len(active.coef)
        if n <= MAX_CONSTRAINTS and self._factor_cost(chosen) > SHARE * n**3:
            return KernelMatrix(active.gram())
        parts = [active.params.parts[f] for f in self.family_of]
        factors = [phi.kernel_factor(part) for phi, part in zip(active.features, parts)]  # type: ignore[attr-defined]
        return KernelFactor(factors, self.family_of, active)

    def _minimum(
        self, params: JointDistribution, total: FamilyStats, chosen: np.ndarray, at_prior: Array, start: Array
    ) -> tuple[Array, Array, tuple[Array, ...]]:
        """z (n, P) at the minimum, the step of the bias, and the sums Phi^T z."""
        weight = self.constraints.weight
        active = ActiveSet(self, params, np.where(chosen, weight[:, None], 0.0))
        q = 1.0 / self.bias_variance + PROXIMAL * total.weight
        g = (params.bias - self.prior.bias) / self.bias_variance
        at = active.index
        local = LocalSearch(self._kernel(active, chosen), active.B, q, g, at_prior[at], weight[at[0]], self.margin)
        z, (solved, bias_step) = np.zeros_like(start), local.minimize(start[at], PRECISION * total.weight)
        z[at] = solved
        return z, bias_step, active.weighted_features(solved)


class KernelMatrix:
    """K as a matrix."""

    def __init__(self, K: Array) -> None:
        self.K = K

    def product(self, z: Array) -> Array:
        """K z."""
        return np.asarray(self.K @ z)

    def solve(
        self, active: np.ndarray, diagonal: Array, right: Array, B: Array, q: float, g: Array
    ) -> tuple[Array, Array]:
        """z and b:  (K + diagonal) z + B b = right  for the active constraints,   q b + g = B^T z."""
        matrix = self.K[np.ix_(active, active)]
        matrix[np.diag_indices_from(matrix)] += diagonal
        solve = solver_of(matrix)
        z, solved_B = solve(right), solve(B)
        b = np.asarray(np.linalg.solve(B.T @ solved_B + q * np.eye(len(g)), B.T @ z - g)) if len(g) else g
        return z - solved_B @ b, b


class KernelFactor:
    """K = A A^T, where A has few columns; its rows are combinations of factors of the outputs, and are not formed."""

    def __init__(self, factors: list[Array], family_of: tuple[int, ...], active: ActiveSet) -> None:
        """`factors` (rows, rank) are those of the outputs, of which the ones of a family have the same columns."""
        self.factors, self.row_of, self.coef = factors, active.row_of, active.coef
        self.contrast = active.problem.contrast
        ranks = [next(F.shape[1] for F, g in zip(factors, family_of) if g == f) for f in range(max(family_of) + 1)]
        ends = np.cumsum(ranks)
        self.columns = [slice(ends[f] - ranks[f], ends[f]) for f in family_of]
        self.p = int(ends[-1])

    def product(self, z: Array) -> Array:
        """K z."""
        alpha = np.zeros((len(self.factors[0]), len(self.factors)))
        np.add.at(alpha, self.row_of, z[:, None] * self.coef)
        v = self._sums(alpha, slice(None))
        return np.asarray((self._outputs(v, slice(None))[self.row_of] * self.coef).sum(axis=1))

    def _sums(self, alpha: Array, rows: Any) -> Array:
        """(p,) sum of the factors of some rows, weighted by alpha (rows, S)."""
        v = np.zeros(self.p)
        for F, columns, a in zip(self.factors, self.columns, alpha.T):
            v[columns] += a @ F[rows]
        return v

    def _outputs(self, v: Array, rows: Any) -> Array:
        return np.column_stack([F[rows] @ v[columns] for F, columns in zip(self.factors, self.columns)])

    def solve(
        self, active: np.ndarray, diagonal: Array, right: Array, B: Array, q: float, g: Array
    ) -> tuple[Array, Array]:
        """The same as that of `KernelMatrix`, by a system of p + G unknowns."""
        coef, p, M = self.coef[active], self.p, self.contrast
        rows, starts, row_of = np.unique(self.row_of[active], return_index=True, return_inverse=True)
        W = np.add.reduceat(coef[:, :, None] * (coef / diagonal[:, None])[:, None, :], starts, axis=0)  # (rows, S, S)
        matrix = np.diag(np.r_[np.ones(p), np.full(len(g), q)])
        factors = [F[rows] for F in self.factors]
        for s, (F, columns) in enumerate(zip(factors, self.columns)):
            for t in range(len(factors)):
                if W[:, s, t].any():
                    matrix[columns, self.columns[t]] += F.T @ (W[:, s, t, None] * factors[t])
            matrix[columns, p:] += F.T @ (W[:, s] @ M)
        matrix[p:, :p] = matrix[:p, p:].T
        matrix[p:, p:] += M.T @ W.sum(axis=0) @ M
        alpha = np.add.reduceat((right / diagonal)[:, None] * coef, starts, axis=0)
        v = solver_of(matrix)(np.r_[self._sums(alpha, rows), alpha.sum(axis=0) @ M - g])
        outputs = self._outputs(v, rows) + M @ v[p:]
        return (right - (outputs[row_of] * coef).sum(axis=1)) / diagonal, v[p:]


class LocalSearch:
    """The minimization of the local problem."""

    def __init__(
        self, kernel: KernelMatrix | KernelFactor, B: Array, q: float, g: Array, m: Array, weight: Array, margin: Any
    ) -> None:
        """B (k, G), g (G,), m (k,), weight (k,)."""
        self.kernel, self.B, self.q, self.g, self.m, self.weight, self.margin = kernel, B, q, g, m, weight, margin

    def minimize(self, z: Array, tol: float) -> tuple[Array, Array]:
        """z and b; the search starts at z and ends where a step lowers the objective by less than `tol`."""
        b = np.zeros_like(self.g)
        if (z > 0).any():
            points = [(0.0 * z, b), (z, b), self._predict(z)]
            z, b = min(points, key=lambda point: self._objective(*point))
        Kz = self.kernel.product(z)
        for _ in range(MAX_ITER):
            margins = self.m + Kz + self.B @ b
            lam = self.margin.multiplier(margins)
            new_z, new_b = self._newton(margins, lam)
            dz, db = new_z - z, new_b - b
            Kdz = self.kernel.product(dz)
            linear = float(Kdz @ z + (self.q * b + self.g) @ db)
            change = Kdz + self.B @ db
            slope = linear - float((self.weight * lam) @ change)
            if not slope < -tol:
                break
            quadratic = float(Kdz @ dz) + self.q * float(db @ db)
            t = self._length(margins, change, linear, quadratic, slope)
            z, b, Kz = z + t * dz, b + t * db, Kz + t * Kdz
            if not t * slope < -tol:  # a bound on the decrease: at a kink, steps can be tiny
                break
        return z, b

    def _objective(self, z: Array, b: Array) -> float:
        Kz = self.kernel.product(z)
        divergence = 0.5 * float(z @ Kz) + 0.5 * self.q * float(b @ b) + float(self.g @ b)
        return divergence + float(self.weight @ self.margin.loss(self.m + Kz + self.B @ b))

    def _predict(self, z: Array) -> tuple[Array, Array]:
        """The Newton step of the dual problem: the expected margins u'(λ) are smooth where the losses have kinks."""
        active = np.flatnonzero(z > 0)
        lam = np.minimum(z[active] / self.weight[active], (1 - 1e-9) * self.margin.upper)
        variance = self.margin.curvature(lam)
        right = self.margin.mean(lam) + variance * lam - self.m[active]
        return self._solve(active, variance / self.weight[active], right)

    def _newton(self, margins: Array, lam: Array) -> tuple[Array, Array]:
        """The minimum of the quadratic approximation; z is zero where the loss has no curvature."""
        curvature = self.weight * self.margin.loss_curvature(lam)
        active = np.flatnonzero(curvature > 0)
        right = (self.weight * lam)[active] / curvature[active] + (margins - self.m)[active]
        return self._solve(active, 1.0 / curvature[active], right)

    def _solve(self, active: np.ndarray, diagonal: Array, right: Array) -> tuple[Array, Array]:
        z = np.zeros(len(self.m))
        if len(active) == 0:
            return z, -self.g / self.q
        z[active], b = self.kernel.solve(active, diagonal, right, self.B[active], self.q, self.g)
        return z, b

    def _length(self, margins: Array, change: Array, linear: float, quadratic: float, initial: float) -> float:
        """The length of the step at which the slope of the objective, which increases with it, is nearly zero."""
        weighted = self.weight * change

        def slope(t: float) -> float:
            return linear + t * quadratic - float(weighted @ self.margin.multiplier(margins + t * change))

        return length_of_step(slope, initial, LONGEST, FLAT, PRECISE) or 0.0
