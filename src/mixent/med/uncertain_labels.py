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

from scipy.special import rel_entr

from mixent.core.arrays import Array
from mixent.core.blocks import Blocks, NumberedRows
from mixent.core.driver import Problem, Run, Status, Stop, run
from mixent.core.stats import Stats
from mixent.med.constraints import PairConstraints
from mixent.med.label_step import ClassShares, best_labels
from mixent.med.margins import MarginPrior
from mixent.med.solving import Discriminant, Search, Solution

MAX_ROUNDS = 30  # of both steps, where the user gives no number
INNER_GAP = 0.1  # largest duality gap in a round, as a share of the gain at which the rounds end
INNER_ITER = 3  # most passes of a round; the next one continues from its solution


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
        best = best_labels(params.solution.scores, self.prior, self.margin, self.shares)
        q = (1.0 - step) * params.q + step * best
        return LabelSolution(q, self._solve(q, params.solution))


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
    n_rounds = max_rounds or MAX_ROUNDS
    # each solution starts from the one before, so that no step raises the objective, however large the gap is
    gap, max_iter = max(search.gap, INNER_GAP * tol), min(search.max_iter, INNER_ITER)
    inner = replace(search, gap=gap, max_iter=max_iter, observers=())
    problem = LabelProblem(discriminant, margin, inner, prior, weight, shares, first_step=relaxation)
    out = run(
        problem,
        problem.source(),
        problem.start(),
        stop=Stop(tol, min(n_rounds, search.label_rounds or n_rounds)),
        executor=search.executor,
        observers=search.observers,
    )
    if search.gap < inner.gap or out.params.solution.run.status is Status.MAX_PASSES:
        final = replace(problem, search=replace(search, observers=()))
        out = replace(out, params=replace(out.params, solution=final._solve(out.params.q, out.params.solution)))
    if out.status is not Status.MAX_PASSES:
        return out
    if max_rounds is None:
        return replace(out, message=f"the labels did not converge in {n_rounds} rounds; set a smaller C")
    return replace(out, status=Status.STOPPED, message=f"stopped after max_rounds={max_rounds} label updates")
