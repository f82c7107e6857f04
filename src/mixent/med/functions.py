"""Linear and kernel discriminant functions: Gaussian processes as an exponential family (001, Theorem 2).

The G functions f_g = sum_t alpha_tg k(x_t, .) have natural parameters alpha (n, G), mean parameters K alpha, the
Hessian K and the relative entropy  tr(alpha^T K alpha) / 2  to their prior. The parameters of linear functions are
their coefficients T = X^T alpha instead, and K = X X^T is never formed. A Newton step of `ExponentialFamilyProblem`
involves the rows with active constraints only, and its length minimizes the objective along the step, which takes no
product with K.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from mixent.base.kernels import factor
from mixent.core.arrays import Array, scratch
from mixent.core.linalg import solver_of
from mixent.med.constraints import Constraints, PairConstraints, contrasts, multipliers_by_pair
from mixent.med.exponential_family import (
    PROXIMAL,
    ActiveSet,
    ExponentialFamilyProblem,
    FamilyStats,
    JointDistribution,
    imbalance_penalty,
    length_of_step,
)
from mixent.med.exponential_family_solving import balance_multipliers, solve, stats_at
from mixent.med.families import Distribution
from mixent.med.features import RowFeatures
from mixent.med.grams import Gram, LinearGram, MatrixGram
from mixent.med.interior_point import local_minimum
from mixent.med.margins import Fixed, MarginPrior
from mixent.med.solving import Discriminant, Search, Solution

MAX_PARAMETERS = 200  # parameters of linear functions up to which a step is solved in the parameters
BLOCK = 2**17  # numbers of the rows that are added to the matrix of such a step at once
MAX_DIRECT = 2500  # constraints up to which the system of a step is solved directly if conjugate gradients fail
CHEAP = 16  # products with K that take as long as a direct solution which is preferred
PRECISION, MAX_ITER = 1e-8, 300  # relative squared residual of conjugate gradients, and their most iterations
COLUMNS, MAX_COLUMNS = 5.0, 500  # of the kernel matrix in a preconditioner: so many times sqrt(constraints), at most
LARGE_C, MAX_FACTORED = 1e3, 3000  # C from which a kernel matrix is factored, and its most rows
LONGEST = 4.0  # length of a step
MAX_LOCAL = 5e7  # constraints times squared parameters up to which an interior-point method is used
REFINEMENTS = 5  # Newton steps of the multipliers
NEAR = 1.0 - 1e-12  # share of their upper bound that multipliers may reach
MANY_ROWS, SHARE = 1000, 4  # from so many rows on, every fourth is solved first
SAMPLED_C = 30.0  # largest multiple of the first C for that
GROWTH, LINEAR_GROWTH = 3.0, 10.0  # a large C is approached through smaller ones: factor between them
ROUGH = 1e-3  # and their gap per row


@dataclass(frozen=True)
class GaussianFunctions(Distribution):
    """Gaussian processes; `mean` holds the expected functions at the rows."""

    T: Array  # (m, G)
    inner_products: Gram
    known_mean: Array | None = None  # (n, G)

    @cached_property
    def mean(self) -> Array:
        return self.inner_products.values(self.T) if self.known_mean is None else self.known_mean

    @property
    def log_partition(self) -> float:
        return 0.5 * self.inner_products.inner(self.T, self.T, self.mean)

    def hessian_product(self, f: Array) -> Array:
        return self.inner_products.values(f)

    def with_natural_parameters(self, T: Array) -> GaussianFunctions:
        return GaussianFunctions(T, self.inner_products)

    def divergence(self, prior: Distribution) -> float:
        return self.log_partition

    def of_gram(self, gram: Gram) -> GaussianFunctions:
        """The same functions with their parameters for another form of the same inner products."""
        if type(gram) is type(self.inner_products):
            return GaussianFunctions(self.T, gram, self.mean)
        return GaussianFunctions(gram.parameters(self.T), gram)

    def step_to(self, other: GaussianFunctions) -> FunctionStep:
        return FunctionStep(other.T - self.T, other.mean - self.mean)


@dataclass(frozen=True)
class FunctionStep:
    """A change of the functions."""

    T: Array  # (m, G)
    mean: Array  # (n, G)


class FunctionValues(RowFeatures):
    """The values of the functions at some rows."""

    def __init__(self, gram: Gram, rows: np.ndarray | slice = slice(None)) -> None:
        self.gram, self.rows = gram, rows

    @property
    def row_bytes(self) -> int:
        return 8

    def dot(self, mean: Array) -> Array:
        return mean[self.rows]

    def weighted_sum(self, alpha: Array) -> Array:
        return self.gram.parameters(alpha, self.rows)

    def take(self, rows: np.ndarray | slice) -> FunctionValues:
        return FunctionValues(self.gram, rows)

    def to_array(self) -> Array:
        return self.gram.parameters(np.eye(self.gram.n_rows)).T[self.rows]


@dataclass(frozen=True)
class FunctionProblem(ExponentialFamilyProblem):
    """max  - |f|^2 / 2 - |b|^2 / (2 bias_variance) - sum w loss,  |f| the norm of the Hilbert space of the kernel.

    The outputs are the functions f_g + b_g.
    """

    memo: list = field(default_factory=list, repr=False, compare=False)  # the functions of the last multipliers

    @classmethod
    def of(cls, gram: Gram, constraints: Constraints, margin: MarginPrior, bias_variance: float) -> FunctionProblem:
        G = constraints.pattern.shape[1]
        zero = GaussianFunctions(gram.parameters(np.zeros((gram.n_rows, G))), gram, np.zeros((gram.n_rows, G)))
        prior = JointDistribution((zero,), np.zeros(G))
        return cls((FunctionValues(gram),), (0,), constraints, margin, prior, np.eye(G), bias_variance)

    @property
    def gram(self) -> Gram:
        return self.prior.parts[0].inner_products  # type: ignore[attr-defined]

    def outputs(self, means: list[Array], features: tuple[RowFeatures, ...]) -> Array:
        return features[0].dot(means[0])

    def offsets(self, features: tuple[RowFeatures, ...]) -> Array:
        return np.zeros((1, len(self.contrast)))

    def weighted_features(self, alpha: Array, features: tuple[RowFeatures, ...]) -> tuple[Array, ...]:
        return (features[0].weighted_sum(alpha),)

    def active_set(self, params: JointDistribution, curvature: Array) -> ActiveRows:
        return ActiveRows(self, params, curvature)

    @property
    def first_C(self) -> float:
        """The C at which the curvature of a loss, about C^2, is that of the relative entropy."""
        size = self.gram.mean_square
        return abs(self.margin.target) / np.sqrt(size) if size > 1e-200 else 1.0

    def at_multipliers(self, total: FamilyStats) -> GaussianFunctions:
        """The functions with the coefficients of the multipliers, whose relative entropy is part of the dual."""
        if not self.memo or self.memo[0].T is not total.gradient[0]:
            self.memo[:] = [GaussianFunctions(total.gradient[0], self.gram)]
        return self.memo[0]

    def dual(self, params: JointDistribution, total: FamilyStats) -> float:
        return self.dual_at(params, total, self.at_multipliers(total).log_partition)

    def dual_at(self, params: JointDistribution, total: FamilyStats, divergence: float) -> float:
        """J(λ), from the relative entropy of the functions with the coefficients of the multipliers."""
        slope = total.bias_gradient
        value = total.potential - divergence
        if np.isfinite(self.bias_variance):
            return value - 0.5 * self.bias_variance * float(slope @ slope)
        return value - imbalance_penalty(slope, params.bias)

    def gap(self, params: JointDistribution, total: FamilyStats) -> float | None:
        """The gap to the larger of two duals: of the multipliers of the margins, and of those in the coefficients."""
        own = self.coefficients_as_multipliers(params)
        dual = self.dual(params, total)
        return -self.objective(params, total) - (dual if own is None else max(dual, own[1]))

    def coefficients_as_multipliers(self, params: JointDistribution) -> tuple[Array, float] | None:
        """Multipliers (n, 1) from the coefficients of the rows, and their dual; None if these do not determine them.

        After a Newton step they are as precise as the step; those of the margins are less so where C is large. With few
        rows, where steps are cheap, the run ends later instead.
        """
        gram, constraints, part = self.gram, self.constraints, params.parts[0]
        assert isinstance(part, GaussianFunctions)
        if isinstance(gram, LinearGram) or constraints.signs.shape[1] > 1 or gram.n_rows < MANY_ROWS:
            return None
        scale = constraints.weight[:, None] * constraints.signs * constraints.pattern
        used = (self.multipliers(params) > 0) & (scale != 0)  # an attained margin has the multiplier zero
        lam = np.divide(part.T, scale, out=np.zeros_like(part.T), where=used)
        lam = balance_multipliers(self, np.clip(lam, 0.0, NEAR * self.margin.upper))
        total = stats_at(self, lam)
        change = total.gradient[0] - part.T
        mean = part.mean + gram.values(change) if np.abs(change).max(initial=0.0) > 0 else part.mean
        self_product = GaussianFunctions(total.gradient[0], gram, mean).log_partition
        return lam, self.dual_at(params, total, self_product)

    def update(self, params: JointDistribution, total: FamilyStats, step: float) -> JointDistribution:
        part: Any = params.parts[0]
        to_multipliers = part.step_to(self.at_multipliers(total))
        active = self.active_set(params, self.curvature(total.multipliers.array))
        bias_residual = total.bias_gradient - params.bias / self.bias_variance
        bias_curvature = 1.0 / self.bias_variance + PROXIMAL * total.weight
        change, bias_step = active.newton_step(to_multipliers, bias_residual, bias_curvature)
        lam = total.multipliers.array
        length = self.best_length(params, lam, change, bias_step)
        if length is None:  # an inexact solution of the system; the step to the multipliers always descends
            change, bias_step = to_multipliers, 0.0 * bias_step
            length = self.best_length(params, lam, change, bias_step) or 0.0
        length *= step
        changed = GaussianFunctions(part.T + length * change.T, self.gram, part.mean + length * change.mean)
        return JointDistribution((changed,), params.bias + length * bias_step)

    def refined(self, solution: Solution, search: Search) -> Solution:
        """The solution with more precise multipliers, while its gap is too large and theirs smaller.

        Where C is large, the margins determine the multipliers less precisely than the conditions of the optimum do.
        """
        enough = search.gap * float(self.constraints.weight.sum())
        if isinstance(self.margin, Fixed) or solution.minimum - solution.lower_bound <= enough:
            return solution
        own = self.coefficients_as_multipliers(solution.state)
        if own is not None and own[1] > solution.lower_bound:
            solution = replace(solution, multipliers=own[0], dual=own[1])
        solution = self._with_newton_multipliers(solution, enough)
        if solution.minimum - solution.lower_bound > enough and self._is_local():
            solution = self._with_newton_multipliers(self._by_interior_point(solution), enough)
        return solution

    def _is_local(self) -> bool:
        """Whether the problem is small enough for an interior-point method in the coefficients of the functions."""
        gram, constraints = self.gram, self.constraints
        if not isinstance(gram, LinearGram):
            return False
        n_parameters = (gram.X.shape[1] + 1) * constraints.pattern.shape[1]
        return np.count_nonzero(constraints.effective) * n_parameters**2 <= MAX_LOCAL

    def _by_interior_point(self, solution: Solution) -> Solution:
        """The solution by the interior-point method, where its dual is larger: the local problem is the problem."""
        gram, constraints, bias = self.gram, self.constraints, solution.state.bias
        assert isinstance(gram, LinearGram)
        t, k = index = np.nonzero(constraints.effective & (constraints.weight > 0)[:, None])
        coef = constraints.coefficients(t, k)
        X = np.concatenate([gram.X, np.ones((gram.n_rows, 1))], axis=1)[t]
        p, G = X.shape[1], coef.shape[1]
        weight = constraints.weight[t]
        bias_curvature = 1.0 / self.bias_variance + PROXIMAL * float(constraints.weight.sum())
        Q = np.diag(np.tile(np.r_[np.ones(p - 1), bias_curvature], G))
        start = np.concatenate([solution.state.parts[0].T, bias[None]])
        g = np.concatenate([start[:-1], bias[None] / self.bias_variance])
        A = (coef[:, :, None] * X[:, None]).reshape(len(t), G * p)
        v, positive = local_minimum(Q, g.T.ravel(), A, self.margins(solution.state)[index], weight, self.margin)
        changed = start + v.reshape(G, p).T
        joint = JointDistribution((GaussianFunctions(changed[:-1], gram),), changed[-1])
        lam = np.zeros(constraints.signs.shape)
        lam[index] = positive
        lam = balance_multipliers(self, lam)
        dual = self.dual(joint, stats_at(self, lam))
        if dual <= solution.lower_bound:
            return solution
        loss = np.where(constraints.imposed, self.margin.loss(self.margins(joint)), 0.0)
        minimum = self.divergence(joint) + float(constraints.weight @ loss.sum(axis=1))
        if minimum > solution.minimum:
            joint, minimum = solution.state, solution.minimum
        return replace(solution, state=joint, multipliers=lam, minimum=minimum, dual=dual)

    def _with_newton_multipliers(self, solution: Solution, enough: float) -> Solution:
        """Newton steps for  u'(λ) = m(λ) + b,  the conditions of positive multipliers, and the equality of the bias."""
        constraints, bias, lam = self.constraints, solution.state.bias, solution.multipliers
        weight = constraints.weight
        bias_curvature = 1.0 / self.bias_variance + PROXIMAL * float(weight.sum())
        for _ in range(REFINEMENTS):
            if solution.minimum - solution.lower_bound <= enough:
                break
            active = self.active_set(solution.state, self.curvature(lam))
            alpha = constraints.output_weights(weight[:, None] * lam)
            margins = active.margins(self.gram.product(alpha)[active.rows] + bias) + constraints.offset[active.index]
            bias_right = bias / self.bias_variance - alpha.sum(axis=0)
            z, bias_step = active.solve(self.margin.mean(lam[active.index]) - margins, bias_right, bias_curvature)
            bias, lam = bias - bias_step, lam.copy()
            changed = lam[active.index] + z / weight[active.index[0]]
            lam[active.index] = np.clip(changed, 0.0, NEAR * self.margin.upper)
            lam = balance_multipliers(self, lam)
            dual = self.dual(solution.state, stats_at(self, lam))
            if dual > solution.lower_bound:
                solution = replace(solution, multipliers=lam, dual=dual)
        return solution

    def best_length(
        self, params: JointDistribution, lam: Array, change: FunctionStep, bias_step: Array
    ) -> float | None:
        """The length of the step with the lowest objective, nearly: the root of its slope.

        `lam` are the multipliers (n, P) of the margins. None: the objective does not decrease.
        """
        constraints, part = self.constraints, params.parts[0]
        assert isinstance(part, GaussianFunctions)
        effective = constraints.effective
        m = self.margins(params)
        m_step = np.where(effective, constraints.margins(change.mean + bias_step), 0.0)
        weighted = constraints.weight[:, None] * m_step
        linear = self.gram.inner(change.T, part.T, part.mean) + float(params.bias @ bias_step) / self.bias_variance
        square = self.gram.inner(change.T, change.T, change.mean) + float(bias_step @ bias_step) / self.bias_variance

        def slope(t: float) -> float:
            return linear + t * square - float(np.vdot(weighted, self.margin.multiplier(m + t * m_step)))

        return length_of_step(slope, linear - float(np.vdot(weighted, lam)), LONGEST)


class ActiveRows(ActiveSet):
    """The system of a Newton step of functions that share their kernel."""

    def __init__(self, problem: FunctionProblem, params: JointDistribution, curvature: Array) -> None:
        super().__init__(problem, params, curvature)
        self.precision, self.max_iter = PRECISION, MAX_ITER

    @cached_property
    def gram_of_rows(self) -> Gram:
        return self.problem.gram.for_products(self.rows)  # type: ignore[attr-defined]

    def kernel_product(self, z: Array) -> Array:
        return self.margins(self.gram_of_rows.product(self.output_weights(z)))

    @property
    def is_small(self) -> bool:
        n = len(self.inverse_curvature)
        return n <= MAX_DIRECT and n**3 / 3.0 <= CHEAP * self.gram_of_rows.cost(self.coef.shape[1])

    def gram(self) -> Array:
        K = self.problem.gram.take(self.rows).to_array()  # type: ignore[attr-defined]
        if len(self.rows) < len(self.row_of):
            K = K[np.ix_(self.row_of, self.row_of)]
        return K * (self.coef @ self.coef.T)

    def preconditioner(self) -> Callable[[Array], Array]:
        """An approximate inverse of S^-1 + K, from some columns of K (Nyström) and the mean of the remaining diagonal.

        The columns are those of constraints that are drawn, the more often the larger their curvature is.
        """
        n = len(self.inverse_curvature)
        gram = self.gram_of_rows
        m = min(MAX_COLUMNS, int(COLUMNS * np.sqrt(n)))
        if isinstance(gram, LinearGram) or n < 2 * m:
            return super().preconditioner()
        keys = np.random.default_rng(0).exponential(size=n) * np.sqrt(self.inverse_curvature)
        chosen = np.argpartition(keys, m)[:m]
        columns = gram.columns(self.row_of[chosen])
        columns = columns if len(self.rows) == n else columns[self.row_of]
        columns = columns * (self.coef @ self.coef[chosen].T)
        inner = columns[chosen]
        some = columns[:: max(1, n // m)]
        diagonal = np.einsum("ks,ks->k", self.coef, self.coef).mean() * gram.mean_square
        left = diagonal - float(np.einsum("km,mk->", some, solver_of(inner.copy())(some.T))) / len(some)
        D = self.inverse_curvature + max(left, 0.0)
        inner += columns.T @ (columns / D[:, None])
        solve = solver_of(inner)

        def approximate_solve(right: Array) -> Array:
            out = (right.T / D).T
            return np.asarray(out - ((columns @ solve(columns.T @ out)).T / D).T)

        return approximate_solve

    def newton_step(
        self, to_multipliers: FunctionStep, bias_right: Array, bias_curvature: float
    ) -> tuple[FunctionStep, Array]:
        """The Newton step of the functions and of the bias, from the step to the functions of the multipliers."""
        gram: Gram = self.problem.gram  # type: ignore[attr-defined]
        if isinstance(gram, LinearGram):
            n_parameters = (gram.X.shape[1] + 1) * self.coef.shape[1]
            if n_parameters <= min(MAX_PARAMETERS, max(len(self.coef), 1)):
                v = self._solve_in_parameters(to_multipliers.T, bias_right, bias_curvature)
                return FunctionStep(v[:-1], gram.X @ v[:-1]), v[-1]
        right = self.margins(to_multipliers.mean[self.rows])
        z, bias_step = self.solve(right, bias_right, bias_curvature)
        if not self.converged and len(right) <= MAX_DIRECT:
            z, bias_step = self._solve_directly(right, bias_right, bias_curvature)
        correction = gram.parameters(self.output_weights(z), self.rows)
        return FunctionStep(to_multipliers.T - correction, to_multipliers.mean - gram.values(correction)), bias_step

    def _solve_in_parameters(self, right: Array, bias_right: Array, bias_curvature: float) -> Array:
        """(m + 1, G) the step v of the coefficients and the bias:  (I + A^T S A) v = right."""
        X, rows, G = self.problem.gram.X, self.index[0], self.coef.shape[1]  # type: ignore[attr-defined]
        p = X.shape[1] + 1
        root = self.coef / np.sqrt(self.inverse_curvature)[:, None]
        matrix = np.diag(np.tile(np.r_[np.ones(p - 1), bias_curvature], G))
        size = max(1, BLOCK // (G * p))
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            scaled = scratch.get("scaled rows", (len(rows[part]), G, p))
            np.multiply(X.take(rows[part], axis=0)[:, None], root[part, :, None], out=scaled[..., :-1])
            scaled[..., -1] = root[part]
            A = scaled.reshape(-1, G * p)
            matrix += A.T @ A
        both = np.concatenate([right, bias_right[None]])
        return solver_of(matrix)(both.T.ravel()).reshape(G, p).T


def constraints_on_functions(constraints: PairConstraints) -> tuple[Constraints, np.ndarray | None]:
    """The constraints on the functions; with known labels those between the class and each rival, and the labels."""
    M = contrasts(constraints.n_classes)
    n, C = constraints.n_rows, constraints.n_classes
    imposed, weight = constraints.imposed, constraints.weight
    known = C > 2 and bool((np.abs(constraints.signs[imposed]) == 1).all())
    if not known:
        offset = np.zeros(constraints.signs.shape)
        return Constraints(constraints.signs, constraints.differences @ M, imposed, weight, offset), None
    label = constraints.label
    rival = (np.arange(C) != label[:, None]) & np.asarray(imposed.any(axis=1))[:, None]
    return Constraints(np.ones((n, C)), -M, rival, weight, np.zeros((n, C)), M[label]), label


class FunctionDiscriminant(Discriminant):
    """Functions F_s = sum_g M_sg (f_g + b_g) of the classes, f_g ~ Gaussian process with the matrix K on the rows."""

    def __init__(self, gram: Gram, n_classes: int, bias_variance: float) -> None:
        self.gram, self.contrast, self.bias_variance = gram, contrasts(n_classes), bias_variance

    def solve(self, constraints: PairConstraints, margin: MarginPrior, search: Search, start: Any = None) -> Solution:
        on_functions, label = constraints_on_functions(constraints)
        problem = FunctionProblem.of(self.gram_for(margin), on_functions, margin, self.bias_variance)
        search = replace(search, gap=search.gap * self._unit(problem))
        if start is None:
            start = self._approach(problem, search)
        else:
            start = JointDistribution((start.parts[0].of_gram(problem.gram),), start.bias)
        solution = problem.refined(solve(problem, search, start), search)
        lam = solution.multipliers if label is None else multipliers_by_pair(solution.multipliers, label)
        scores = problem.training_scores(solution.state) @ self.contrast.T
        return replace(solution, multipliers=lam, scores=scores)

    def gram_for(self, margin: MarginPrior) -> Gram:
        """The inner products in the form that is precise enough for this margin."""
        return self.gram

    def _unit(self, problem: FunctionProblem) -> float:
        """The loss per row of the zero function, if below one nat: a gap must be small beside it.

        Zero for a fixed margin: the multipliers of a round are the start of the next, and must be exact.
        """
        if isinstance(problem.margin, Fixed):
            return 0.0
        constraints = problem.constraints
        loss = np.where(constraints.imposed, problem.margin.loss(constraints.offset), 0.0)
        mean = float(constraints.weight @ loss.sum(axis=1)) / max(float(constraints.weight.sum()), 1e-300)
        return min(1.0, mean) if mean > 0 else 1.0

    def _approach(self, problem: FunctionProblem, search: Search) -> JointDistribution:
        """Rough solutions for increasing C: from the zero function, steps for a large C would be short.

        With many rows and a kernel matrix, the first is that of a sample of the rows.
        """
        growth = LINEAR_GROWTH if isinstance(problem.gram, LinearGram) else GROWTH
        margins = problem.margin.increasing(problem.first_C, growth)
        rough = replace(search, gap=max(search.gap, ROUGH * self._unit(problem)), observers=())
        start = problem.prior
        sample = _sample(problem.gram, problem.constraints)
        if sample is not None:
            later = [i for i, margin in enumerate(margins) if getattr(margin, "C", 0.0) <= SAMPLED_C * problem.first_C]
            margins = margins[later[-1] if later else 0 :]
            start = self._from_sample(replace(problem, margin=margins[0]), sample, rough)
        for margin in margins[:-1]:
            start = rough.run(replace(problem, margin=margin, memo=[]), problem.source(), start).params
        return start

    def _from_sample(self, problem: FunctionProblem, rows: np.ndarray, search: Search) -> JointDistribution:
        """The functions of a sample, in which a row stands for several."""
        part = problem.constraints.part(rows)
        part = replace(part, weight=part.weight * (problem.constraints.weight.sum() / part.weight.sum()))
        sampled = FunctionProblem.of(problem.gram.take(rows), part, problem.margin, self.bias_variance)
        params = search.run(sampled, sampled.source(), self._approach(sampled, search)).params
        T = problem.gram.parameters(params.parts[0].T, rows)
        functions = GaussianFunctions(T, problem.gram, problem.gram.values(T))
        return JointDistribution((functions,), params.bias)

    def divergence(self, solution: Solution) -> float:
        bias = solution.state.bias
        return solution.state.parts[0].log_partition + 0.5 * float(bias @ bias) / self.bias_variance


def _sample(gram: Gram, constraints: Constraints) -> np.ndarray | None:
    """Every fourth row of each class; None: the rows are few, or the functions linear."""
    if isinstance(gram, LinearGram) or gram.n_rows < MANY_ROWS:
        return None
    used = np.flatnonzero((constraints.weight > 0) & constraints.effective.any(axis=1))
    used = np.random.default_rng(0).permutation(used)
    weights = constraints.part(used).output_weights(constraints.imposed[used] + 0.0)
    groups = (weights.round(6) @ np.arange(1.0, weights.shape[1] + 1)).round(6)
    return np.sort(used[np.argsort(groups, kind="stable")[::SHARE]])


class LinearDiscriminant(FunctionDiscriminant):
    """Linear functions f(x) = θ x + b of features, θ ~ N(0, 1)."""

    def __init__(self, X: Array, n_classes: int, bias_variance: float) -> None:
        # a flat bias absorbs any shift of the features; features far from zero would lose precision
        self.center = X.mean(axis=0) if np.isinf(bias_variance) else np.zeros(X.shape[1])
        self.X = X - self.center
        gram = LinearGram(self.X) if X.shape[1] <= len(X) else MatrixGram(self.X @ self.X.T)
        super().__init__(gram, n_classes, bias_variance)

    def plane(self, solution: Solution) -> Plane:
        """The solution as coefficients of the features."""
        T = solution.state.parts[0].T.T
        coef = T if isinstance(self.gram, LinearGram) else T @ self.X
        return Plane(coef, solution.state.bias - coef @ self.center)


class KernelDiscriminant(FunctionDiscriminant):
    """Functions with a kernel matrix K; `rows` are those in use."""

    def __init__(self, K: Array, n_classes: int, bias_variance: float, rows: np.ndarray | None = None) -> None:
        super().__init__(MatrixGram(K, rows), n_classes, bias_variance)
        self._factored: LinearGram | None = None

    def gram_for(self, margin: MarginPrior) -> Gram:
        """For nearly hard margins a factor of K: large coefficients of the rows would cancel."""
        nearly_hard = isinstance(margin, Fixed) or margin.C >= LARGE_C  # type: ignore[attr-defined]
        if not nearly_hard or self.gram.n_rows > MAX_FACTORED:
            return self.gram
        if self._factored is None:
            self._factored = LinearGram(factor(self.gram.to_array()))
        return self._factored


@dataclass(frozen=True)
class Plane:
    """Linear functions f_g(x) = coef_g x + bias_g."""

    coef: Array  # (G, d)
    bias: Array  # (G,)


def dual_coefficients(solution: Solution, constraints: PairConstraints, contrast: Array) -> Array:
    """(n, G) coefficients of the rows in the functions:  f_g = sum_t alpha_tg k(x_t, .),  alpha = w λ p e."""
    signed = constraints.weight[:, None] * solution.multipliers * constraints.signs
    return signed @ (constraints.differences @ contrast)
