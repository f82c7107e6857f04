"""Labels that are uncertain or missing (001, section 5 and appendix C).

The distribution factorizes as P(θ, γ) P(y), and the label of each row has a prior P0_t(y). The relative
entropy, minimized over the distribution of the margins, is

    D(P(θ) || P0(θ)) + sum_t w_t [ sum_ab loss(p_tab (F_a(x_t) - F_b(x_t))) + D(P_t(y) || P0_t(y)) ].

Step 1 minimizes it over θ and step 2 over the labels, of whose change a fraction is applied (the relaxation). It is
convex in each of the two, so it never rises (Theorem 7).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import rel_entr

from mixent.core.arrays import Array
from mixent.core.blocks import Blocks, NumberedRows
from mixent.core.driver import Problem, Run, Stop, run
from mixent.core.executors import Serial
from mixent.core.stats import Stats
from mixent.med.constraints import PairConstraints, pairs
from mixent.med.margins import Fixed, MarginPrior
from mixent.med.solving import Discriminant, Search, Solution

MAX_STEPS = 200  # of Newton's method
MAX_HALVINGS = 60  # of a step
DIRECT_C, C_RATIO = 3.0, 1.5  # a larger C is approached through smaller ones, by this factor
INTERIOR = 1e-3  # smallest share of its prior probability with which a label starts at each C
MIN_DECREASE = 1e-14  # relative decrease that a step must predict


@dataclass(frozen=True)
class LabelSolution:
    """Label distributions, and the optimal discriminant for them."""

    q: Array  # (n, C)
    solution: Solution


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
        return -(params.solution.minimum + total.divergence)

    def update(self, params: LabelSolution, total: LabelStats, step: float) -> LabelSolution:
        best = best_labels(params.solution.scores, self.prior, self.margin)
        q = (1.0 - step) * params.q + step * best
        return LabelSolution(q, self._solve(q, params.solution))


def best_labels(scores: Array, prior: Array, margin: MarginPrior) -> Array:
    """Step 2: the optimal label distributions (n, C) for fixed discriminant functions (the dual of equations 77 to 79).

    For each row this is the q that minimizes  D(q || P0) + sum_ab loss((q_a - q_b)(F_a - F_b)),  a convex function, by
    Newton's method. The multipliers of equation 77 are λ_ab = multiplier((q_a - q_b)(F_a - F_b)), and
    q ~ P0 exp(sum λ_ab s_ab d_ab).
    """
    q = prior / prior.sum(axis=1, keepdims=True)
    uncertain = np.flatnonzero((prior > 0).sum(axis=1) > 1)
    if len(uncertain):
        q[uncertain] = _RowProblems(scores[uncertain], q[uncertain], margin).minimize()
    return q


class _RowProblems:
    """The independent problems of all rows, solved simultaneously."""

    def __init__(self, scores: Array, prior: Array, margin: MarginPrior) -> None:
        a, b = pairs(prior.shape[1])
        self.e = np.eye(prior.shape[1])[a] - np.eye(prior.shape[1])[b]  # (pairs, C)
        self.d = scores @ self.e.T  # (n, pairs)
        self.prior, self.margin = prior, margin
        self.imposed = (prior[:, a] + prior[:, b]) > 0

    def value(self, q: Array, rows: np.ndarray) -> Array:
        """(n,) objective of each row."""
        loss = np.where(self.imposed[rows], self.margin.loss((q @ self.e.T) * self.d[rows]), 0.0)
        return rel_entr(q, self.prior[rows]).sum(axis=1) + loss.sum(axis=1)

    def minimize(self) -> Array:
        """(n, C); a large C is approached through smaller ones: Newton steps fail at the near-kink of the loss."""
        q = self.prior.copy()
        for margin in self.margin.increasing(DIRECT_C, C_RATIO):
            self.margin = margin
            q = np.maximum(q, INTERIOR * self.prior)  # away from the boundary
            self._descend(q := q / q.sum(axis=1, keepdims=True))
        return q

    def _descend(self, q: Array) -> None:
        active = np.arange(len(q))
        value = self.value(q, active)
        for _ in range(MAX_STEPS):
            gradient, step = self._step(q[active], active)
            decrease = -(gradient * step).sum(axis=1)
            large = decrease > MIN_DECREASE * (1.0 + np.abs(value[active]))
            active, step, decrease = active[large], step[large], decrease[large]
            if len(active) == 0:
                break
            previous = value[active]
            self._line_search(q, value, active, step, decrease)
            active = active[value[active] < previous]

    def _step(self, q: Array, rows: np.ndarray) -> tuple[Array, Array]:
        """Gradients, and Newton steps that preserve the sum of q; impossible classes keep probability 0."""
        C = q.shape[1]
        possible = self.prior[rows] > 0
        sign, d = q @ self.e.T, self.d[rows]
        lam = np.where(self.imposed[rows], self.margin.multiplier(sign * d), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            gradient = np.where(possible, np.log(q / self.prior[rows]), 0.0) - (lam * d) @ self.e
        curvature = np.where(self.imposed[rows], self.margin.loss_curvature(lam), 0.0) * d**2
        system = np.zeros((len(q), C + 1, C + 1))
        system[:, :C, :C] = np.einsum("np,pi,pj->nij", curvature, self.e, self.e)
        diagonal = np.arange(C)
        system[:, diagonal, diagonal] += 1.0 / np.maximum(q, 1e-300)  # nearly infinite for an impossible class
        system[:, :C, C] = system[:, C, :C] = possible
        gradient = np.where(possible, gradient, 0.0)
        right = np.concatenate([-gradient, np.zeros((len(q), 1))], axis=1)
        step = np.linalg.solve(system, right[:, :, None])[:, :C, 0]
        return gradient, np.where(possible, step, 0.0)

    def _line_search(self, q: Array, value: Array, rows: np.ndarray, step: Array, decrease: Array) -> None:
        """Halve the step of each row until its objective falls sufficiently; updates q and value in place."""
        with np.errstate(divide="ignore", invalid="ignore"):
            largest = np.where(step < 0, -q[rows] / step, np.inf).min(axis=1)
        length = np.minimum(1.0, 0.99 * largest)
        pending = np.arange(len(rows))
        for _ in range(MAX_HALVINGS):
            trial = np.maximum(q[rows[pending]] + length[pending, None] * step[pending], 0.0)
            trial_value = self.value(trial, rows[pending])
            accepted = trial_value <= value[rows[pending]] - 1e-4 * length[pending] * decrease[pending]
            q[rows[pending[accepted]]] = trial[accepted]
            value[rows[pending[accepted]]] = trial_value[accepted]
            pending = pending[~accepted]
            length[pending] *= 0.5
            if len(pending) == 0:
                break


def solve_uncertain_labels(
    discriminant: Discriminant,
    margin: MarginPrior,
    prior: Array,
    weight: Array,
    search: Search,
    *,
    relaxation: float,
    tol: float,
    max_rounds: int,
) -> Run:
    """The two-step algorithm; the params of the run are a `LabelSolution`."""
    if isinstance(margin, Fixed):
        raise ValueError(
            "margin='fixed' requires that all labels are known, but some are uncertain or missing; provide every "
            "label, or set margin='laplace'"
        )
    inner = replace(search, gap=min(search.gap, 1e-9), observers=())  # precise enough that no step raises the objective
    problem = LabelProblem(discriminant, margin, inner, prior, weight, first_step=relaxation)
    return run(
        problem,
        problem.source(),
        problem.start(),
        stop=Stop(tol, max_rounds),
        executor=search.executor or Serial(),
        observers=search.observers,
    )
