"""Labels that are uncertain or missing (001, section 5 and appendix C).

The distribution sought factorizes, P(theta, g) P(y), each row's label has a prior P0_t(y), and of

    D(P(theta) || P0(theta)) + sum_t w_t [ sum_ab loss(p_tab (F_a(x_t) - F_b(x_t))) + D(P_t(y) || P0_t(y)) ],

the relative entropy of the whole with the margins minimized out, step 1 finds the least over theta and step 2 over
the labels, of which a share is taken (relaxation). It is convex in each, so it never rises (Theorem 7).
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

STEPS = 200  # of Newton's method
HALVINGS = 60  # of one
SOFT, SOFTER = 3.0, 1.5  # c from which step 2 comes by way of smaller ones, and by which factor
INSIDE = 1e-3  # share of its prior probability a label has at least where such a way begins
FLAT = 1e-14  # what a step must promise, relative


@dataclass(frozen=True)
class LabelSolution:
    """Label distributions, and the best discriminant for them."""

    q: Array  # (n, C)
    solution: Solution


@dataclass(frozen=True)
class LabelStats(Stats):
    divergence: float  # sum_t w_t D(P_t(y) || P0_t(y))


@dataclass(frozen=True)
class LabelProblem(Problem[LabelSolution, LabelSolution, LabelStats]):
    """Maximizes minus the relative entropy; one update is both steps."""

    discriminant: Discriminant
    margin: MarginPrior
    search: Search
    prior: Array  # (n, C) P0_t(y)
    weight: Array  # (n,)
    first_step: float = 1.0  # the relaxation
    safe_step: float = 2.0**-20

    def start(self) -> LabelSolution:
        """Labels as the prior has them."""
        return LabelSolution(self.prior, self._solve(self.prior, None))

    def source(self) -> Blocks:
        return Blocks(NumberedRows.of(self.weight), 64)

    def _solve(self, q: Array, start: Solution | None) -> Solution:
        """Step 1."""
        constraints = PairConstraints.of(q, self.weight, self.prior)
        state = None if start is None else start.state
        return self.discriminant.solve(constraints, self.margin, self.search, state)

    def prepare(self, params: LabelSolution) -> LabelSolution:
        return params

    def stats(self, ready: LabelSolution, block: NumberedRows) -> LabelStats:  # type: ignore[override]
        apart = rel_entr(ready.q[block.index], self.prior[block.index]).sum(axis=1)
        return LabelStats(float(block.weight @ apart))

    def objective(self, params: LabelSolution, total: LabelStats) -> float:
        return -(params.solution.minimum + total.divergence)

    def update(self, params: LabelSolution, total: LabelStats, step: float) -> LabelSolution:
        best = best_labels(params.solution.scores, self.prior, self.margin)
        q = (1.0 - step) * params.q + step * best
        return LabelSolution(q, self._solve(q, params.solution))


def best_labels(scores: Array, prior: Array, margin: MarginPrior) -> Array:
    """Step 2: the label distributions (n, C) for fixed discriminant functions (equations 77 to 79, in their dual).

    Row by row, the q that minimizes  D(q || P0) + sum_ab loss((q_a - q_b)(F_a - F_b)): convex, by Newton's method.
    The multipliers of equation 77 are l_ab = multiplier((q_a - q_b)(F_a - F_b)), and q ~ P0 exp(sum l_ab s_ab d_ab).
    """
    q = prior / prior.sum(axis=1, keepdims=True)
    doubtful = np.flatnonzero((prior > 0).sum(axis=1) > 1)
    if len(doubtful):
        q[doubtful] = _Rowwise(scores[doubtful], q[doubtful], margin).minimum()
    return q


def _rising(c: float) -> list[float]:
    """From a small one to c."""
    out = [c]
    while out[-1] > SOFT:
        out.append(out[-1] / SOFTER)
    return out[::-1]


class _Rowwise:
    """As many small problems as there are rows, side by side."""

    def __init__(self, scores: Array, prior: Array, margin: MarginPrior) -> None:
        a, b = pairs(prior.shape[1])
        self.e = np.eye(prior.shape[1])[a] - np.eye(prior.shape[1])[b]  # (pairs, C)
        self.d = scores @ self.e.T  # (n, pairs)
        self.prior, self.margin = prior, margin
        self.imposed = (prior[:, a] + prior[:, b]) > 0

    def value(self, q: Array, rows: np.ndarray) -> Array:
        """(n,)."""
        loss = np.where(self.imposed[rows], self.margin.loss((q @ self.e.T) * self.d[rows]), 0.0)
        return rel_entr(q, self.prior[rows]).sum(axis=1) + loss.sum(axis=1)

    def minimum(self) -> Array:
        """(n, C); a large c by way of smaller ones, for a loss that all but breaks points nowhere."""
        q = self.prior.copy()
        whole = self.margin
        for C in _rising(getattr(whole, "C", 1.0)):
            self.margin = replace(whole, C=C) if hasattr(whole, "C") else whole  # type: ignore[type-var]
            q = np.maximum(q, INSIDE * self.prior)  # off the border
            self._descend(q := q / q.sum(axis=1, keepdims=True))
        return q

    def _descend(self, q: Array) -> None:
        moving = np.arange(len(q))
        now = self.value(q, moving)
        for _ in range(STEPS):
            slope, step = self._step(q[moving], moving)
            promise = -(slope * step).sum(axis=1)
            some = promise > FLAT * (1.0 + np.abs(now[moving]))
            moving, step, promise = moving[some], step[some], promise[some]
            if len(moving) == 0:
                break
            before = now[moving]
            self._search(q, now, moving, step, promise)
            moving = moving[now[moving] < before]

    def _step(self, q: Array, rows: np.ndarray) -> tuple[Array, Array]:
        """Slopes and Newton steps, sums held; a class the prior rules out stays out."""
        C = q.shape[1]
        possible = self.prior[rows] > 0
        ahead, d = q @ self.e.T, self.d[rows]
        lam = np.where(self.imposed[rows], self.margin.multiplier(ahead * d), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(possible, np.log(q / self.prior[rows]), 0.0) - (lam * d) @ self.e
        loss_curvature = np.where(self.imposed[rows], self.margin.loss_curvature(lam), 0.0) * d**2
        system = np.zeros((len(q), C + 1, C + 1))
        system[:, :C, :C] = np.einsum("np,pi,pj->nij", loss_curvature, self.e, self.e)
        diagonal = np.arange(C)
        system[:, diagonal, diagonal] += 1.0 / np.maximum(q, 1e-300)  # all but rigid where the class is ruled out
        system[:, :C, C] = system[:, C, :C] = possible
        slope = np.where(possible, slope, 0.0)
        right = np.concatenate([-slope, np.zeros((len(q), 1))], axis=1)
        step = np.linalg.solve(system, right[:, :, None])[:, :C, 0]
        return slope, np.where(possible, step, 0.0)

    def _search(self, q: Array, now: Array, rows: np.ndarray, step: Array, promise: Array) -> None:
        """Halve the steps of those rows whose value does not fall."""
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(step < 0, -q[rows] / step, np.inf).min(axis=1)
        length = np.minimum(1.0, 0.99 * room)
        left = np.arange(len(rows))
        for _ in range(HALVINGS):
            trial = np.maximum(q[rows[left]] + length[left, None] * step[left], 0.0)
            value = self.value(trial, rows[left])
            good = value <= now[rows[left]] - 1e-4 * length[left] * promise[left]
            q[rows[left[good]]] = trial[good]
            now[rows[left[good]]] = value[good]
            left = left[~good]
            length[left] *= 0.5
            if len(left) == 0:
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
    """The two-step algorithm; the run's params are `Beliefs`."""
    if isinstance(margin, Fixed):
        raise ValueError(
            "margin='fixed' needs certain labels, and some rows have none; give every label, or set margin='laplace'"
        )
    inner = replace(search, gap=min(search.gap, 1e-9), observers=())  # a step must not lose what the last one found
    problem = LabelProblem(discriminant, margin, inner, prior, weight, first_step=relaxation)
    return run(
        problem,
        problem.source(),
        problem.start(),
        stop=Stop(tol, max_rounds),
        executor=search.executor or Serial(),
        observers=search.observers,
    )
