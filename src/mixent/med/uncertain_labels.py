"""Labels that are uncertain or missing (001, section 5 and appendix C).

The distribution factorizes as P(θ, γ) P(y), and the label of each row has a prior P0_t(y). The relative
entropy, minimized over the distribution of the margins, is

    D(P(θ) || P0(θ)) + sum_t w_t [ sum_ab loss(p_tab (F_a(x_t) - F_b(x_t))) + D(P_t(y) || P0_t(y)) ].

Unlabelled rows can all move to one class at nearly no cost: with a large bias, a probability slightly above 1/C of this
class already gives the required margins. Priors P0_t from a fit to the labelled rows prevent this (`estimator`).
Besides, the shares of the classes among them are constrained,

    1/W sum_t w_t P_t(y) = π_y,      W = sum_t w_t  over the unlabelled rows,

to shares π that are unknown. Their prior is the Dirichlet distribution given the labelled counts n_y, which adds
-sum_y n_y log π_y to the objective: π may differ from the labelled shares as much as the sampling error of the counts
allows.

Step 1 minimizes the objective over θ and step 2 over the labels and π, of whose change a fraction is applied (the
relaxation). It is convex in each of the two, so it never rises (Theorem 7).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import rel_entr

from mixent.core.arrays import Array
from mixent.core.blocks import Blocks, NumberedRows
from mixent.core.driver import Problem, Run, Status, Stop, run
from mixent.core.stats import Stats
from mixent.med.constraints import PairConstraints, pairs
from mixent.med.margins import MarginPrior
from mixent.med.solving import Discriminant, Search, Solution

MAX_ROUNDS = 30  # of both steps, where the user gives no number
INNER_GAP = 0.1  # largest duality gap in a round, as a share of the gain at which the rounds end
MAX_STEPS, FEW_STEPS = 200, 20  # of Newton's method: to the optimum, and where any decrease is enough
MAX_HALVINGS, FLAT = 60, 0.1  # steps of a line search, and the share of the initial slope at which it ends
DIRECT_C, C_RATIO = 3.0, 1.5  # a larger C is approached through smaller ones, by this factor
INTERIOR = 1e-3  # smallest share of its prior probability with which a label starts at each C
SHARES_DECREMENT = 1e-14  # gain of a Newton step on the multipliers of the shares that is small, per unit of weight
MIN_DECREASE = 1e-14  # relative decrease that a step must predict


@dataclass(frozen=True)
class LabelSolution:
    """Label distributions, and the optimal discriminant for them."""

    q: Array  # (n, C)
    solution: Solution


@dataclass(frozen=True)
class ClassShares:
    """Constraint on the class shares of the unlabelled rows, with the Dirichlet prior of these shares."""

    weight: Array  # (n,) of the unlabelled rows; 0 for the others
    counts: Array  # (C,) n_y > 0

    def penalty(self, q: Array) -> float:
        """-sum_y n_y log π_y for the shares of these label distributions, minus its minimum."""
        return float(rel_entr(self.counts, self.counts.sum() * (self.weight @ q) / self.weight.sum()).sum())


@dataclass(frozen=True)
class LabelStats(Stats):
    """Relative entropy of the label distributions to their priors."""

    divergence: float  # sum_t w_t D(P_t(y) || P0_t(y))


@dataclass(frozen=True)
class LabelProblem(Problem[LabelSolution, LabelSolution, LabelStats]):
    """Maximizes minus the relative entropy; one update consists of both steps."""

    discriminant: Discriminant
    margin: MarginPrior
    search: Search
    prior: Array  # (n, C) P0_t(y)
    weight: Array  # (n,)
    shares: ClassShares | None = None  # of the unlabelled rows; None without such rows
    first_step: float = 1.0  # the relaxation
    safe_step: float = 2.0**-20

    def start(self) -> LabelSolution:
        """The solution for the prior label distributions."""
        return LabelSolution(self.prior, self._solve(self.prior, None))

    def source(self) -> Blocks:
        return Blocks(NumberedRows.of(self.weight), 64)

    def _solve(self, q: Array, start: Solution | None) -> Solution:
        """Step 1: the optimal discriminant for these label distributions."""
        constraints = PairConstraints.of(q, self.weight, self.prior)
        state = None if start is None else start.state
        return self.discriminant.solve(constraints, self.margin, self.search, state)

    def prepare(self, params: LabelSolution) -> LabelSolution:
        return params

    def stats(self, ready: LabelSolution, block: NumberedRows) -> LabelStats:  # type: ignore[override]
        divergence = rel_entr(ready.q[block.index], self.prior[block.index]).sum(axis=1)
        return LabelStats(float(block.weight @ divergence))

    def objective(self, params: LabelSolution, total: LabelStats) -> float:
        penalty = 0.0 if self.shares is None else self.shares.penalty(params.q)
        return -(params.solution.minimum + total.divergence + penalty)

    def update(self, params: LabelSolution, total: LabelStats, step: float) -> LabelSolution:
        best = best_labels(params.solution.scores, self.prior, self.margin, self.shares, params.q)
        q = (1.0 - step) * params.q + step * best
        return LabelSolution(q, self._solve(q, params.solution))


def best_labels(
    scores: Array, prior: Array, margin: MarginPrior, shares: ClassShares | None = None, start: Array | None = None
) -> Array:
    """Step 2: the optimal label distributions (n, C) for fixed discriminant functions (the dual of equations 77 to 79).

    For each row this is the q that minimizes  D(q || P0) + sum_ab loss((q_a - q_b)(F_a - F_b)),  a convex function, by
    Newton's method. The multipliers of equation 77 are λ_ab = multiplier((q_a - q_b)(F_a - F_b)), and
    q ~ P0 exp(sum λ_ab s_ab d_ab). The constraint on the shares of the unlabelled rows has a multiplier μ_y for each
    class, with which their prior is  P0(y) exp(μ_y). From label distributions `start`, other rows are only improved
    by a few steps.
    """
    q = prior / prior.sum(axis=1, keepdims=True)
    first, start = start is None, q if start is None else start
    separate = (prior > 0).sum(axis=1) > 1
    if shares is not None:
        together = np.flatnonzero(shares.weight > 0)
        separate[together] = False
        rows = _RowProblems(scores[together], q[together], margin, start[together])
        if first:
            rows.approach()
        q[together] = _with_shares(rows, shares.weight[together], shares.counts)
    if separate.any():
        rows = _RowProblems(scores[separate], q[separate], margin, start[separate])
        q[separate] = rows.approach() if first else rows.improve()
    return q


def _with_shares(rows: _RowProblems, weight: Array, counts: Array) -> Array:
    """The optimal label distributions (n, C) of the unlabelled rows, by Newton's method on the multipliers.

    Maximizes the dual  sum_t w_t min_q [ row_t(q) - μ q ] + sum_y n_y log μ_y,  which is concave; at the optimum
    μ_y = n_y / (W π_y).
    """
    base = rows.prior

    def dual(multipliers: Array) -> float:
        tilted = base * np.exp(multipliers - multipliers.max())
        total = tilted.sum(axis=1, keepdims=True)
        rows.prior = tilted / total
        rows.minimize()
        constant = np.log(total[:, 0]) + multipliers.max()
        return float(weight @ (rows.value(rows.q, np.arange(len(weight))) - constant) + counts @ np.log(multipliers))

    multipliers = np.full(len(counts), counts.sum() / weight.sum())  # those of the shares of the counts
    value = dual(multipliers)
    for _ in range(MAX_STEPS):
        gradient = counts / multipliers - weight @ rows.q
        hessian = np.diag(counts / multipliers**2) + rows.sensitivity(weight)
        step = np.linalg.solve(hessian, gradient)
        if gradient @ step <= SHARES_DECREMENT * weight.sum():
            break
        length, gain = min(1.0, 0.9 / np.max(-step / multipliers, initial=0.9)), float(gradient @ step)
        while not (trial := dual(multipliers + length * step)) >= value + 1e-4 * length * gain:
            length *= 0.5
            if length * gain <= MIN_DECREASE * (weight.sum() + abs(value)):  # rounding
                return rows.q
        multipliers, value = multipliers + length * step, trial
    return rows.q


class _RowProblems:
    """The independent problems of all rows, solved simultaneously; `q` is their solution."""

    def __init__(self, scores: Array, prior: Array, margin: MarginPrior, start: Array) -> None:
        a, b = pairs(prior.shape[1])
        self.e = np.eye(prior.shape[1])[a] - np.eye(prior.shape[1])[b]  # (pairs, C)
        self.d = scores @ self.e.T  # (n, pairs)
        self.prior, self.margin, self.q = prior, margin, start
        self.imposed = (prior[:, a] + prior[:, b]) > 0

    def value(self, q: Array, rows: np.ndarray) -> Array:
        """(n,) objective of each row."""
        loss = np.where(self.imposed[rows], self.margin.loss((q @ self.e.T) * self.d[rows]), 0.0)
        return rel_entr(q, self.prior[rows]).sum(axis=1) + loss.sum(axis=1)

    def approach(self) -> Array:
        """(n, C) through smaller values of C: Newton steps are short at the near-kink of the loss of a large C."""
        final = self.margin
        for self.margin in final.increasing(DIRECT_C, C_RATIO):
            self.minimize()
        return self.q

    def improve(self) -> Array:
        """(n, C) after a few steps; no row is worse than before."""
        every, before = np.arange(len(self.q)), self.q
        after = self.minimize(FEW_STEPS)
        worse = self.value(after, every) > self.value(before, every)
        self.q = np.where(worse[:, None], before, after)
        return self.q

    def minimize(self, n_steps: int = MAX_STEPS) -> Array:
        """(n, C) from the present solution."""
        q = np.maximum(self.q, INTERIOR * self.prior)  # away from the boundary
        self._descend(q := q / q.sum(axis=1, keepdims=True), n_steps)
        self.q = q
        return q

    def sensitivity(self, weight: Array) -> Array:
        """(C, C) derivative of the sum of the label distributions by the multipliers of the classes."""
        _, system = self._system(self.q, np.arange(len(self.q)))
        C = self.q.shape[1]
        return np.einsum("n,nij->ij", weight, np.linalg.inv(system)[:, :C, :C])

    def _descend(self, q: Array, n_steps: int) -> None:
        active = np.arange(len(q))
        value = self.value(q, active)
        for _ in range(n_steps):
            gradient, step = self._step(q[active], active)
            decrease = -(gradient * step).sum(axis=1)
            large = decrease > MIN_DECREASE * (1.0 + np.abs(value[active]))
            active, step, decrease = active[large], step[large], decrease[large]
            if len(active) == 0:
                break
            length = self._step_lengths(q[active], active, step, decrease)
            changed = np.maximum(q[active] + length[:, None] * step, 0.0)
            changed_value = self.value(changed, active)
            falls = changed_value < value[active]
            active = active[falls]
            q[active], value[active] = changed[falls], changed_value[falls]

    def _step(self, q: Array, rows: np.ndarray) -> tuple[Array, Array]:
        """Gradients, and Newton steps that preserve the sum of q; impossible classes keep probability 0."""
        gradient, system = self._system(q, rows)
        right = np.concatenate([-gradient, np.zeros((len(q), 1))], axis=1)
        step = np.linalg.solve(system, right[:, :, None])[:, : q.shape[1], 0]
        return gradient, np.where(self.prior[rows] > 0, step, 0.0)

    def _system(self, q: Array, rows: np.ndarray) -> tuple[Array, Array]:
        """Gradients (n, C), and Hessians bordered by the sum of q (n, C + 1, C + 1)."""
        C = q.shape[1]
        possible = self.prior[rows] > 0
        sign, d = q @ self.e.T, self.d[rows]
        lam = np.where(self.imposed[rows], self.margin.multiplier(sign * d), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            gradient = np.where(possible, np.log(q / self.prior[rows]), 0.0) - (lam * d) @ self.e
        curvature = np.where(self.imposed[rows], self.margin.loss_curvature(lam), 0.0) * d**2
        system = np.zeros((len(q), C + 1, C + 1))
        a, b = pairs(C)
        system[:, a, b] = system[:, b, a] = -curvature
        diagonal = np.arange(C)
        system[:, diagonal, diagonal] = -system[:, :C, :C].sum(axis=2)
        system[:, diagonal, diagonal] += 1.0 / np.maximum(q, 1e-300)  # nearly infinite for an impossible class
        system[:, :C, C] = system[:, C, :C] = possible
        return np.where(possible, gradient, 0.0), system

    def _step_lengths(self, q: Array, rows: np.ndarray, step: Array, decrease: Array) -> Array:
        """(n,) lengths, at most 1 and within the domain, at which the slopes of the objectives are nearly zero.

        A shorter step would end before the near-kink of a loss with a large C, which the next step would not see.
        """
        prior, imposed, d = self.prior[rows], self.imposed[rows], self.d[rows]
        margin, change = (q @ self.e.T) * d, (step @ self.e.T) * d
        with np.errstate(divide="ignore", invalid="ignore"):
            length = np.minimum(1.0, 0.99 * np.where(step < 0, -q / step, np.inf).min(axis=1))
        low, high, searched = np.zeros(len(q)), length.copy(), np.arange(len(q))
        for _ in range(MAX_HALVINGS):
            t = length[searched, None]
            lam = self.margin.multiplier(margin[searched] + t * change[searched])
            loss_slope = np.where(imposed[searched], lam * change[searched], 0.0).sum(axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                log_ratio = np.log((q[searched] + t * step[searched]) / prior[searched])
            slope = np.where(prior[searched] > 0, step[searched] * log_ratio, 0.0).sum(axis=1) - loss_slope
            steep = np.abs(slope) > FLAT * decrease[searched]
            falls, rises = searched[steep & (slope < 0)], searched[steep & (slope >= 0)]
            low[falls], high[rises] = length[falls], length[rises]
            searched = searched[steep & (low[searched] < high[searched])]
            if len(searched) == 0:
                return length
            length[searched] = 0.5 * (low[searched] + high[searched])
        length[searched] = low[searched]  # the numbers do not resolve the near-kink
        return length


def solve_uncertain_labels(
    discriminant: Discriminant,
    margin: MarginPrior,
    prior: Array,
    weight: Array,
    search: Search,
    *,
    shares: ClassShares | None = None,
    relaxation: float,
    tol: float,
    max_rounds: int | None = None,
) -> Run:
    """The two-step algorithm; the params of the run are a `LabelSolution`. A given `max_rounds` is no failure."""
    # each solution starts from the one before, so that no step raises the objective, however large the gap is
    inner = replace(search, gap=max(search.gap, INNER_GAP * tol), observers=())
    problem = LabelProblem(discriminant, margin, inner, prior, weight, shares, first_step=relaxation)
    out = run(
        problem,
        problem.source(),
        problem.start(),
        stop=Stop(tol, max_rounds or MAX_ROUNDS),
        executor=search.executor,
        observers=search.observers,
    )
    if search.gap < inner.gap:
        final = replace(problem, search=replace(inner, gap=search.gap))
        out = replace(out, params=replace(out.params, solution=final._solve(out.params.q, out.params.solution)))
    if out.status is not Status.MAX_PASSES:
        return out
    if max_rounds is None:
        return replace(out, message=f"the labels did not converge in {MAX_ROUNDS} rounds; set a smaller C")
    return replace(out, status=Status.STOPPED, message=f"stopped after max_rounds={max_rounds} label updates")
