"""Newton's method for exponential families with many natural parameters, solved in the space of the multipliers.

The minimized function is  D(P || P0) + sum_k w_k loss(m_k),  m_k = coef_k F(x_k) + offset_k,  the dual
of J(λ). A family may have tens of thousands of natural parameters T. With H the Hessian of the log-partition
functions, Phi the features of the constraints, and S the curvatures of the losses, the Newton step is

    d_T = r - Phi^T z,    (S^-1 + Phi H Phi^T) z = Phi H r,     r = T0 + Phi^T λ - T.

The linear system is solved directly if few constraints are active, else by conjugate gradients, where an iteration
takes one product with H and two passes over the rows of these constraints. The bias b, if any, is one more unknown,
with the Hessian of its prior.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq

from mixent.core.arrays import Array
from mixent.core.blocks import Blocks, NumberedRows
from mixent.core.driver import OutsideDomainError, Problem
from mixent.core.linalg import solver_of
from mixent.core.stats import Stats
from mixent.med.constraints import Constraints
from mixent.med.families import Distribution
from mixent.med.features import RowFeatures
from mixent.med.interior_point import local_minimum
from mixent.med.margins import MarginPrior
from mixent.show import Short

MAX_ITER = 100  # conjugate gradient iterations
EXACT, LOOSE = 1e-10, 1e-5  # their relative squared residual; the second from MANY rows on, where steps are expensive
MANY = 1000
MAX_DIRECT, MAX_ENTRIES = 600, 2 * 10**5  # constraints, and entries of their features, of a system solved directly
CUT = 1e-14  # relative eigenvalues of the kernel matrix that count as zero
FLAT, LENGTH = 1e-3, 1e-2  # share of the initial slope that counts as zero, and relative precision of a step's length
MAX_SEARCH = 100  # evaluations of a line search
PROXIMAL = 1e-8  # curvature added for a flat bias, per unit of weight: without any, rounding errors would move it


@dataclass(frozen=True, repr=False)
class JointDistribution(Short):
    """The distributions of all families, and the mean of the bias."""

    parts: tuple[Distribution, ...]
    bias: Array  # (G,)

    def divergence(self, prior: JointDistribution, bias_variance: float) -> float:
        """D(P || P0), in nats."""
        shift = self.bias - prior.bias
        parts = [part.divergence(prior_part) for part, prior_part in zip(self.parts, prior.parts)]
        return sum(parts) + 0.5 * float(shift @ shift) / bias_variance


class RowValues(Stats):
    """Values of consecutive rows, which are added by concatenation."""

    def __init__(self, *blocks: Array) -> None:
        self.blocks = blocks

    def __add__(self, other: RowValues) -> RowValues:
        return RowValues(*self.blocks, *other.blocks)

    @property
    def array(self) -> Array:
        """(n, ...) the values of all rows."""
        return np.concatenate(self.blocks)


@dataclass(frozen=True)
class FamilyStats(Stats):
    """Loss, potential and gradients of the rows at some distributions."""

    loss: float
    potential: float  # sum w (u(λ) - λ (constant part of the margin))
    weight: float
    gradient: tuple[Array, ...]  # per family (M,): Phi^T λ, minus the gradient of the loss
    bias_gradient: Array  # (G,) the same for the bias
    multipliers: RowValues  # (n, P)


@dataclass(frozen=True)
class ExponentialFamilyProblem(Problem[JointDistribution, JointDistribution, FamilyStats]):
    """max  - sum_f D(P_f || P0_f) - |b - b0|^2 / (2 bias_variance) - sum w loss."""

    features: tuple[RowFeatures, ...]  # of each output
    family_of: tuple[int, ...]  # position of the family of each output
    constraints: Constraints
    margin: MarginPrior
    prior: JointDistribution
    contrast: Array  # (S, G) coefficients of the bias in each output
    bias_variance: float  # inf: flat prior
    precision: float | None = None  # of Newton steps; None: depends on the number of rows
    safe_step: float = 2.0**-30
    last_step: dict = field(default_factory=dict, repr=False, compare=False)  # the last statistics and Newton step
    exact: ClassVar[bool] = False  # whether an update is the minimum of the local problem

    @property
    def first_C(self) -> float:
        """A value of C at which a Newton step from the prior is good."""
        return 1.0

    def source(self) -> Blocks:
        widest = max(phi.row_bytes for phi in self.features)
        return Blocks(NumberedRows.of(self.constraints.weight), 32 * self.constraints.signs.shape[1] + widest)

    def prepare(self, params: JointDistribution) -> JointDistribution:
        return params

    def scores(self, params: JointDistribution, features: tuple[RowFeatures, ...]) -> Array:
        """(n, S) expected outputs of the rows with these features."""
        without_bias = self.outputs([part.mean for part in params.parts], features) + self.offsets(features)
        return without_bias + self.contrast @ params.bias

    def outputs(self, means: list[Array], features: tuple[RowFeatures, ...]) -> Array:
        """(n, S) features times mean parameters of the families."""
        return np.column_stack([phi.dot(means[f]) for phi, f in zip(features, self.family_of)])

    def offsets(self, features: tuple[RowFeatures, ...]) -> Array:
        """(n, S) the parts of the outputs that do not depend on the parameters."""
        return np.column_stack([phi.offset for phi in features])

    def training_scores(self, params: JointDistribution) -> Array:
        """(n, S) expected outputs of the training rows."""
        return self.scores(params, self.features)

    def margins(self, params: JointDistribution) -> Array:
        """(n, P) expected margins of the training rows."""
        return self.constraints.margins(self.training_scores(params)) + self.constraints.offset

    def multipliers(self, params: JointDistribution) -> Array:
        """(n, P)."""
        return np.where(self.constraints.effective, self.margin.multiplier(self.margins(params)), 0.0)

    def stats(self, ready: JointDistribution, block: NumberedRows) -> FamilyStats:  # type: ignore[override]
        rows = slice(int(block.index[0]), int(block.index[-1]) + 1)
        features = tuple(phi.take(rows) for phi in self.features)
        constraints = self.constraints.part(rows)
        m = constraints.margins(self.scores(ready, features)) + constraints.offset
        lam = np.where(constraints.effective, self.margin.multiplier(m), 0.0)
        return self.stats_of(lam, constraints, features, np.where(constraints.imposed, self.margin.loss(m), 0.0))

    def stats_of(
        self, lam: Array, constraints: Constraints, features: tuple[RowFeatures, ...], loss: Array
    ) -> FamilyStats:
        """Statistics at these multipliers (n, P); `loss` (n, P) is the potential of constraints without effect."""
        alpha = constraints.output_weights(constraints.weight[:, None] * lam)
        constant = constraints.margins(self.offsets(features)) + constraints.offset
        potential = np.where(constraints.effective, self.margin.potential(lam) - lam * constant, loss)
        gradient = self.weighted_features(alpha, features)
        weight = constraints.weight
        return FamilyStats(
            float(weight @ loss.sum(axis=1)),
            float(weight @ potential.sum(axis=1)),
            float(weight.sum()),
            gradient,
            alpha.sum(axis=0) @ self.contrast,
            RowValues(lam),
        )

    def weighted_features(self, alpha: Array, features: tuple[RowFeatures, ...]) -> tuple[Array, ...]:
        """sum_t alpha_ts phi_s(x_t), added up for each family; alpha (n, S)."""
        sums = [np.zeros_like(part.T) for part in self.prior.parts]
        for s, (phi, f) in enumerate(zip(features, self.family_of)):
            sums[f] += phi.weighted_sum(alpha[:, s])
        return tuple(sums)

    def objective(self, params: JointDistribution, total: FamilyStats) -> float:
        return -(self.divergence(params) + total.loss)

    def divergence(self, params: JointDistribution) -> float:
        """D(P || P0), in nats."""
        return params.divergence(self.prior, self.bias_variance)

    def dual(self, params: JointDistribution, total: FamilyStats) -> float | None:
        """J(λ) = -log Z(λ) at the multipliers of these statistics; None where Z does not exist."""
        value, slope = total.potential, total.bias_gradient
        if np.isfinite(self.bias_variance):
            value -= 0.5 * self.bias_variance * float(slope @ slope) + float(slope @ self.prior.bias)
        else:
            value -= imbalance_penalty(slope, params.bias)
        try:
            for prior, gradient in zip(self.prior.parts, total.gradient):
                value -= prior.with_natural_parameters(prior.T + gradient).log_partition - prior.log_partition
        except OutsideDomainError:
            return None
        return value

    def gap(self, params: JointDistribution, total: FamilyStats) -> float | None:
        dual = self.dual(params, total)
        return None if dual is None else -self.objective(params, total) - dual

    # --- one step -----------------------------------------------------------------------------------------------

    def update(self, params: JointDistribution, total: FamilyStats, step: float) -> JointDistribution:
        if self.last_step.get("total") is not total:  # else a step was too long: the same direction is used
            steps, bias_step = self._newton_step(params, total)
            length = self._local_length(params, total.multipliers.array, steps, bias_step)
            self.last_step.update(total=total, newton=(tuple(length * d for d in steps), length * bias_step))
        steps, bias_step = self.last_step["newton"]
        return self.step(params, tuple(step * d for d in steps), step * bias_step)

    def _newton_step(self, params: JointDistribution, total: FamilyStats) -> tuple[tuple[Array, ...], Array]:
        """The full steps of the natural parameters and of the bias."""
        prior = self.prior
        residuals = tuple(p.T + g - part.T for p, g, part in zip(prior.parts, total.gradient, params.parts))
        active = self.active_set(params, self.curvature(total.multipliers.array))
        bias_residual = total.bias_gradient - (params.bias - prior.bias) / self.bias_variance
        bias_curvature = 1.0 / self.bias_variance + PROXIMAL * total.weight
        right = active.dot([part.hessian_product(r) for part, r in zip(params.parts, residuals)])
        z, bias_step = active.solve(right, bias_residual, bias_curvature)
        correction = active.weighted_features(z)
        return tuple(r - c for r, c in zip(residuals, correction)), bias_step

    def _local_length(self, params: JointDistribution, lam: Array, steps: tuple[Array, ...], bias_step: Array) -> float:
        """The length, at most 1, of the step with the lowest objective if D is quadratic and the margins are linear.

        The quadratic approximation of a loss ignores its kink, and a full step may go far beyond it.
        """
        changes = [part.hessian_product(d) for part, d in zip(params.parts, steps)]
        outputs = self.outputs(changes, self.features) + self.contrast @ bias_step
        m, m_step = self.margins(params), np.where(self.constraints.effective, self.constraints.margins(outputs), 0.0)
        shift = params.bias - self.prior.bias
        linear, square = float(shift @ bias_step), float(bias_step @ bias_step)
        linear, square = linear / self.bias_variance, square / self.bias_variance
        for part, prior, d, change in zip(params.parts, self.prior.parts, steps, changes):
            linear, square = linear + float((part.T - prior.T) @ change), square + float(d @ change)
        weighted = self.constraints.weight[:, None] * m_step

        def slope(t: float) -> float:
            return linear + t * square - float(np.vdot(weighted, self.margin.multiplier(m + t * m_step)))

        return length_of_step(slope, linear - float(np.vdot(weighted, lam)), 1.0) or 1.0

    def active_set(self, params: JointDistribution, curvature: Array) -> ActiveSet:
        """The system of a Newton step at these parameters."""
        return ActiveSet(self, params, curvature)

    def curvature(self, lam: Array) -> Array:
        """(n, P) curvatures of the losses at these multipliers, times the weights."""
        curvature = np.where(self.constraints.effective, self.margin.loss_curvature(lam), 0.0)
        return curvature * self.constraints.weight[:, None]

    def step(self, params: JointDistribution, steps: tuple[Array, ...], bias_step: Array) -> JointDistribution:
        """The distributions after a step, halved until it stays in the domain (the objective is -inf at its border)."""
        if not all(np.isfinite(step).all() for step in (*steps, bias_step)):
            raise OutsideDomainError("a step is not finite")
        while True:
            try:
                parts = tuple(part.with_natural_parameters(part.T + step) for part, step in zip(params.parts, steps))
                return JointDistribution(parts, params.bias + bias_step)
            except OutsideDomainError:
                steps, bias_step = tuple(0.5 * step for step in steps), 0.5 * bias_step


class ActiveSet:
    """The constraints with a positive curvature, and the linear system of their Newton step."""

    def __init__(self, problem: ExponentialFamilyProblem, params: JointDistribution, curvature: Array) -> None:
        """`curvature` (n, P) is the diagonal of S, zero for constraints that are not active."""
        self.problem, self.params = problem, params
        self.index = rows, k = np.divmod(np.flatnonzero(curvature > 0), curvature.shape[1])
        is_first = np.diff(rows, prepend=-1) > 0
        self.starts = np.flatnonzero(is_first)
        self.rows = rows[self.starts]
        self.row_of = np.cumsum(is_first) - 1  # (K,) positions among `rows`
        self.features = tuple(phi.take(self.rows).for_products() for phi in problem.features)
        self.coef = problem.constraints.coefficients(rows, k)  # (K, S)
        self.inverse_curvature = 1.0 / curvature[rows, k]  # S^-1
        self.B = self.coef @ problem.contrast  # (K, G) coefficients of the bias
        self.precision = problem.precision or (EXACT if problem.constraints.n_rows < MANY else LOOSE)
        self.max_iter = MAX_ITER
        self.converged = True  # whether conjugate gradients reached the precision

    def weighted_features(self, z: Array) -> tuple[Array, ...]:
        """Phi^T z, per family."""
        return self.problem.weighted_features(self.output_weights(z), self.features)

    def output_weights(self, z: Array) -> Array:
        """(rows, S) weights of the outputs of the active rows."""
        weighted = z[:, None] * self.coef
        return weighted if len(self.starts) == len(z) else np.add.reduceat(weighted, self.starts, axis=0)

    def dot(self, mean_steps: list[Array]) -> Array:
        """(K,) Phi times a step of the mean parameters."""
        return self.margins(self.problem.outputs(mean_steps, self.features))

    def margins(self, outputs: Array) -> Array:
        """(K,) margins for outputs (rows, S) of the active rows."""
        return np.einsum("ks,ks->k", outputs[self.row_of], self.coef)

    def kernel_product(self, z: Array) -> Array:
        """K z with the kernel matrix K = Phi H Phi^T, which is not formed."""
        return self.dot([part.hessian_product(f) for part, f in zip(self.params.parts, self.weighted_features(z))])

    @property
    def is_small(self) -> bool:
        """Whether the kernel matrix is small enough to be formed."""
        n_parameters = max(len(part.T) for part in self.params.parts)
        n = len(self.inverse_curvature)
        return n <= MAX_DIRECT and n * n_parameters <= MAX_ENTRIES

    def gram(self) -> Array:
        """(K, K) the kernel matrix Phi H Phi^T."""
        K = np.zeros((len(self.row_of), len(self.row_of)))
        for f, part in enumerate(self.params.parts):
            outputs = [s for s, family in enumerate(self.problem.family_of) if family == f]
            if len(outputs) == 1:
                self._add_kernel(K, outputs[0], part)
                continue
            phi: Any = 0.0
            for s in outputs:
                phi = phi + self.features[s].to_array()[self.row_of] * self.coef[:, s, None]
            K += part.gram(phi)
        return K

    def _add_kernel(self, K: Array, s: int, part: Distribution) -> None:
        """Add the kernel matrix of a family with one output, for the constraints that involve it."""
        used = np.flatnonzero(self.coef[:, s])
        if len(used) == 0:
            return
        rows, row_of = np.unique(self.row_of[used], return_inverse=True)
        kernel = self.features[s].take(rows).kernel(part)
        if len(rows) < len(used):
            kernel = kernel[np.ix_(row_of, row_of)]
        kernel *= self.coef[used, s, None]
        kernel *= self.coef[used, s]
        if len(used) == len(K):
            K += kernel
        else:
            K[np.ix_(used, used)] += kernel

    def solve(self, right: Array, bias_right: Array, bias_curvature: float) -> tuple[Array, Array]:
        """z and the step b of the bias:  (S^-1 + K) z - B b = right,   B^T z + bias_curvature b = bias_right."""
        if len(right) == 0:
            return np.zeros(0), bias_right / bias_curvature
        solve = self._solve_directly if self.is_small else self._solve_by_conjugate_gradients
        return solve(right, bias_right, bias_curvature)

    def preconditioner(self) -> Callable[[Array], Array]:
        """An approximate inverse of S^-1 + K, with a multiple of the identity in place of K."""
        D = self.inverse_curvature + self.kernel_size()
        return lambda right: np.asarray((right.T / D).T)

    def kernel_size(self) -> float:
        """An estimate of the mean of the diagonal of K."""
        n = len(self.inverse_curvature)
        signs = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
        return max(float(signs @ self.kernel_product(signs)) / n, 0.0)

    def _solve_directly(self, right: Array, bias_right: Array, bias_curvature: float) -> tuple[Array, Array]:
        B = self.B
        matrix = self.gram()
        matrix[np.diag_indices_from(matrix)] += self.inverse_curvature
        solve = solver_of(matrix)
        solved_B = solve(B)  # (K, G)
        schur = B.T @ solved_B + bias_curvature * np.eye(B.shape[1])
        z = solve(right)
        b = np.asarray(np.linalg.solve(schur, bias_right - B.T @ z)) if len(bias_right) else bias_right
        return np.asarray(z + solved_B @ b), b

    def _solve_by_conjugate_gradients(
        self, right: Array, bias_right: Array, bias_curvature: float
    ) -> tuple[Array, Array]:
        """Conjugate gradients, preconditioned by the same system with an approximation in place of S^-1 + K.

        The second equation then holds at the start and after every iteration, however small the bias curvature is.
        """
        B, G = self.B, self.B.shape[1]
        approximate_solve = self.preconditioner()
        scaled_B = approximate_solve(B)
        inverse_schur = np.linalg.inv(B.T @ scaled_B + bias_curvature * np.eye(G)) if G else np.zeros((0, 0))

        def precondition(r: Array) -> tuple[Array, Array]:
            y = inverse_schur @ (scaled_B.T @ r)
            return approximate_solve(r) - scaled_B @ y, y

        b = inverse_schur @ bias_right
        z = scaled_B @ b
        r = right + B @ b - self.inverse_curvature * z - self.kernel_product(z)
        p, y = precondition(r)
        first = size = float(r @ p)
        for _ in range(self.max_iter):
            self.converged = not size > self.precision * first
            if self.converged:
                break
            q = self.inverse_curvature * p + self.kernel_product(p) + B @ y
            length = size / float(p @ q)
            z, b, r = z + length * p, b - length * y, r - length * q
            next_p, next_y = precondition(r)
            size, previous = float(r @ next_p), size
            p, y = next_p + (size / previous) * p, next_y + (size / previous) * y
        return z, b


def length_of_step(
    slope: Callable[[float], float], initial: float, longest: float, flat: float = FLAT, rtol: float = LENGTH
) -> float | None:
    """The length of a step at which the slope of a convex objective is nearly zero; None if it does not descend.

    The step is lengthened while it is shorter than `longest`. A slope counts as zero up to the share `flat` of the
    initial one; the search also ends when the length has the relative precision `rtol`.
    """
    if not initial < 0:
        return None

    def flattened(t: float) -> float:
        value = slope(t) if t > 0 else initial
        return 0.0 if abs(value) <= -flat * initial else value

    low, high = 0.0, 1.0
    while (value := flattened(high)) < 0 and high < longest:
        low, high = high, 2.0 * high
    return (
        high
        if value <= 0
        else float(brentq(flattened, low, high, xtol=1e-12, rtol=rtol, maxiter=MAX_SEARCH, disp=False))
    )


def imbalance_penalty(bias_gradient: Array, bias: Array) -> float:
    """The amount to subtract from the dual's value where the multipliers violate the equality of a flat bias.

    The exact amount is  bias_gradient * (optimal bias).  The optimal bias is assumed to be at most 1 + 2 |bias|, which
    is accurate enough for a stopping rule. The final gap uses `balance_multipliers` instead.
    """
    return float(np.abs(bias_gradient) @ (1.0 + 2.0 * np.abs(bias)))


@dataclass(frozen=True)
class SequentialFamilyProblem(Problem[JointDistribution, JointDistribution, FamilyStats]):
    """The same problem; each update is the exact minimum of the local problem, for losses that are nearly kinked."""

    problem: ExponentialFamilyProblem
    precision: float
    safe_step: float = 2.0**-30
    last_step: dict = field(default_factory=dict, repr=False, compare=False)  # the last statistics and step

    def prepare(self, params: JointDistribution) -> JointDistribution:
        return params

    def stats(self, ready: JointDistribution, block: NumberedRows) -> FamilyStats:  # type: ignore[override]
        return self.problem.stats(ready, block)

    def objective(self, params: JointDistribution, total: FamilyStats) -> float:
        return self.problem.objective(params, total)

    def gap(self, params: JointDistribution, total: FamilyStats) -> float | None:
        return self.problem.gap(params, total)

    def update(self, params: JointDistribution, total: FamilyStats, step: float) -> JointDistribution:
        if self.last_step.get("total") is not total:  # else a step was too long: the same direction is used
            self.last_step.update(total=total, local=self._local_step(params, total))
        steps, bias_step = self.last_step["local"]
        return self.problem.step(params, tuple(step * d for d in steps), step * bias_step)

    def _local_step(self, params: JointDistribution, total: FamilyStats) -> tuple[tuple[Array, ...], Array]:
        """The full steps  T0 - T + Phi^T z  and that of the bias, for which D is quadratic and the margins are linear.

        K = V diag(root^2) V^T is the kernel matrix of all constraints; the unknowns are diag(root) V^T z and the bias.
        """
        problem = self.problem
        constraints = problem.constraints
        every = problem.active_set(params, np.where(constraints.effective, constraints.weight[:, None], 0.0))
        to_prior = [p.T - part.T for p, part in zip(problem.prior.parts, params.parts)]
        m = problem.margins(params)[every.index]
        m = m + every.dot([part.hessian_product(t) for part, t in zip(params.parts, to_prior)])
        values, vectors = eigh(every.gram())
        positive = values > CUT * max(float(values.max(initial=0.0)), 1e-300)
        root, vectors = np.sqrt(values[positive]), vectors[:, positive]
        r, G = len(root), len(params.bias)
        Q = np.diag(np.r_[np.ones(r), np.full(G, 1.0 / problem.bias_variance + PROXIMAL * total.weight)])
        g = np.r_[np.zeros(r), (params.bias - problem.prior.bias) / problem.bias_variance]
        A = np.concatenate([vectors * root, every.B], axis=1)
        v, _ = local_minimum(Q, g, A, m, constraints.weight[every.index[0]], problem.margin, self.precision)
        from_prior = every.weighted_features(vectors @ (v[:r] / root))
        return tuple(a + b for a, b in zip(to_prior, from_prior)), v[r:]
