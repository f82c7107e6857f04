"""Incremental growth of mixtures (Algorithm 1 of Mansjur and Juang, after the greedy EM of Vlassis and Likas).

From K components to K + 1: candidates from the leaves of a kd-tree of the rows, partial EM for all of them at once with
the K components fixed, full EM from the best few resulting mixtures; the best of these is the next stage.

If a structure has parameters in common, a new component that shares those of the fixed group cannot fit well: with a
large common volume, for example, it cannot be narrow. In this case candidates without the structure are tried, too;
full EM then starts from an M-step on the clusters they define.

`restart` gives the same stages without growth: each K from new partitions of the rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.driver import Event, Stop, rounding, run
from mixent.core.executors import Executor
from mixent.core.observers import Progress
from mixent.families.gaussian.prior import Prior
from mixent.families.product import ProductFamily
from mixent.mixtures.fit_plan import Candidate, FitPlan
from mixent.mixtures.fitting import Fitted, finish
from mixent.mixtures.init import (
    Partition,
    flat_components,
    from_partition,
    membership_moments,
    one_hot,
    sample_rows,
    space,
)
from mixent.mixtures.partial import (
    PartialParams,
    PartialProblem,
    PartialStats,
    candidate_family,
    double,
    frozen_group,
    join,
)
from mixent.mixtures.predict import each_row, responsibilities
from mixent.mixtures.problem import MixtureParams, MixtureProblem
from mixent.show import Short

BRIEF = Stop(1e-4, 25)  # for partial EM, whose results are only compared

By = str | Callable[[Fitted, Candidate], float]  # rule by which growth selects a candidate


@dataclass(frozen=True, repr=False)
class Stage(Short):
    """A mixture fitted during growth, and the cost of the step to it."""

    _shown = ("n_components", "covariance", "log_likelihood", "n_free")

    n_components: int
    covariance: str
    fitted: Fitted
    log_likelihood: float  # weighted sum over rows, without the prior
    objective: float  # with the prior
    n_free: int
    evaluations: int  # density evaluations since the previous stage: passes x rows x components, over all runs
    candidates: tuple[float, ...]  # partial objective of each candidate per row; empty without candidates
    converged: bool


def grow(
    plan: FitPlan,
    first: Candidate,
    max_components: int,
    *,
    n_candidates: int = 16,
    n_full: int = 2,
    by: By = "likelihood",
    show: Progress | None = None,
) -> Iterator[Stage]:
    """Yield stages with an increasing number of components, beginning with that of `first`.

    Without a prior, the log-likelihood never decreases from stage to stage: models with one more component include
    those with one less, and if no candidate improves the likelihood, the heaviest component is divided into two.

    Parameters
    ----------
    plan : FitPlan
        Of all rows, of the rows of one class, or of all classes if they share components.
    first : Candidate
        With one entry in `counts`.
    max_components : int
    n_candidates : int
        Number of candidates for the new component at each stage.
    n_full : int
        Number of candidates, the best by their partial objective, from which full EM is run.
    by : "likelihood" or callable
        Select the highest penalized objective after full EM, or the lowest `by(fitted, candidate)`, for which full EM
        is run from all candidates.
    show : callable, optional
        Called with (done, total, text) after each stage.
    """
    fitted, starts = plan.fit(first)
    stage = _stage(first, fitted, starts.n_passes * plan.table.n_rows * first.n_components)
    growth = _Growth(plan, first, n_candidates, n_candidates if callable(by) else n_full, by)
    while True:
        _report(show, stage, max_components)
        yield stage
        if stage.n_components >= max_components:
            return
        stage = growth.next(stage)


def restart(
    plan: FitPlan, first: Candidate, max_components: int, n_init: int = 1, show: Progress | None = None
) -> Iterator[Stage]:
    """Yield stages with an increasing number of components, each from `n_init` new partitions of the rows."""
    for k in range(first.n_components, max_components + 1):
        candidate = replace(first, counts=(k,))
        fitted, starts = plan.fit(candidate, starts=plan.parts(candidate, n_init))
        stage = _stage(candidate, fitted, starts.n_passes * plan.table.n_rows * k)
        _report(show, stage, max_components)
        yield stage


def _stage(candidate: Candidate, fitted: Fitted, evaluations: int, candidates: Sequence[float] = ()) -> Stage:
    return Stage(
        n_components=fitted.params.n_components,
        covariance=candidate.structures[0],
        fitted=replace(fitted, run=replace(fitted.run, last=None)),
        log_likelihood=_log_likelihood(fitted),
        objective=fitted.run.objective,
        n_free=fitted.problem.n_free(fitted.params),
        evaluations=evaluations,
        candidates=tuple(candidates),
        converged=fitted.run.status.ok,
    )


def _log_likelihood(fitted: Fitted) -> float:
    return float(fitted.run.objective - fitted.problem.family.log_prior(fitted.params.components))


def _report(show: Progress | None, stage: Stage, max_components: int) -> None:
    if show is not None:
        text = f"{stage.covariance} with {stage.n_components}: log-likelihood {stage.log_likelihood:.6g}"
        show(stage.n_components, max_components, text)


@dataclass(frozen=True)
class _Growth:
    """The step from one stage to the next."""

    plan: FitPlan
    first: Candidate
    n_candidates: int
    n_full: int
    by: By

    def next(self, before: Stage) -> Stage:
        plan, old = self.plan, before.fitted
        candidate = replace(self.first, counts=(before.n_components + 1,))
        rng = np.random.default_rng((plan.seed, candidate.n_components))
        rows = sample_rows(np.flatnonzero(plan.positive), candidate.n_components, rng)
        structured = propose(plan, old, candidate, rows, self.n_candidates, rng)
        proposals = [structured]
        if "E" in candidate.structures[0] and plan.table.X.shape[1]:
            proposals.append(propose(plan, old, candidate, rows, self.n_candidates, rng, free=True))
        joined = [[join(old.params, p.params, i) for i in p.order[: self.n_full]] for p in proposals]
        doubled = double(old.params)
        # one partition for all, hence one prior: objectives with different priors could not be compared
        best = next((mixtures[0] for mixtures in reversed(joined) if mixtures), doubled)
        start = _hard(_parts(plan, old.problem.family, best, rows))
        free = [mixture for mixtures in joined[1:] for mixture in mixtures]
        warm = joined[0] + [self._structured(candidate, start, old, params, rows) for params in free]
        full = [self._fit(candidate, start, params) for params in warm]
        chosen = self._best(full, candidate, before)
        if chosen is None:
            full.append(self._fit(candidate, start, doubled))
            chosen = self._best(full, candidate, before) or self._fallback(full, candidate, start, doubled)
        passes = sum(len(fitted.run.trace) for fitted in full)
        evaluations = sum(p.evaluations for p in proposals) + passes * plan.table.n_rows * candidate.n_components
        return _stage(candidate, chosen, evaluations, (structured.objectives / plan.total_weight).tolist())

    def _fit(self, candidate: Candidate, start: Partition, warm: MixtureParams) -> Fitted:
        return self.plan.fit(candidate, starts=[start], warm=warm, rescale=False)[0]

    def _structured(
        self, candidate: Candidate, start: Partition, old: Fitted, free: MixtureParams, rows: np.ndarray
    ) -> MixtureParams:
        """Return a mixture with the structure: an M-step on the clusters of a mixture without it."""
        plan = self.plan
        family = plan.problem(candidate, start).family
        parts = _parts(plan, old.problem.family, free, rows)
        counts = free.weights[:, : free.n_components]
        with plan.executor(1) as executor:
            params = from_partition(family, plan.summary, plan.table, parts, counts, executor)
        return replace(params, weights=free.weights)

    def _best(self, full: list[Fitted], candidate: Candidate, before: Stage | None) -> Fitted | None:
        """Return the best successful fit whose likelihood is not below that of the previous stage."""
        valid = [f for f in full if f.params.n_components == candidate.n_components and not f.run.status.failed]
        if before is not None:
            lowest = before.log_likelihood - rounding(before.log_likelihood, self.plan.total_weight)
            valid = [f for f in valid if _log_likelihood(f) >= lowest]
        return min(valid, key=lambda fitted: self._score(fitted, candidate), default=None)

    def _score(self, fitted: Fitted, candidate: Candidate) -> float:
        return self.by(fitted, candidate) if callable(self.by) else -fitted.run.objective

    def _fallback(self, full: list[Fitted], candidate: Candidate, start: Partition, doubled: MixtureParams) -> Fitted:
        """Return the best fit even if its likelihood is lower (with a prior), else the doubled mixture unchanged."""
        chosen = None if candidate.prior_rows is None else self._best(full, candidate, None)
        if chosen is not None:
            return chosen
        problem = self.plan.problem(candidate, start)
        source = self.plan.source(problem.family, candidate.n_components)
        with self.plan.executor(candidate.n_components) as executor:
            return finish(problem, run(problem, source, doubled, stop=Stop(0.0, 0), executor=executor))


# --- candidates ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Proposals:
    """Candidates after partial EM."""

    params: PartialParams
    objectives: Array  # (P,) objective of each candidate
    order: list[int]  # best first, those with a fixed density last; empty if the objective was not finite
    evaluations: int


def propose(
    plan: FitPlan,
    old: Fitted,
    candidate: Candidate,
    rows: np.ndarray,
    n_candidates: int,
    rng: np.random.Generator,
    free: bool = False,
) -> Proposals:
    """Return candidates for a component added to `old`: leaves of a kd-tree of these rows, after partial EM."""
    problem, table, start = partial_problem(plan, old, candidate, rows, n_candidates, rng, free)
    P = start.n_candidates
    last: deque[Event[PartialParams]] = deque(maxlen=1)  # with the statistics of the final parameters
    with plan.executor(P) as executor:
        source = plan.source(problem.family, P, table)
        result = run(problem, source, start, stop=BRIEF, executor=executor, observers=[last.append])
    evaluations = len(result.trace) * plan.table.n_rows * P
    if not last:
        return Proposals(result.params, np.full(P, -np.inf), [], evaluations)
    objectives = problem.each(last[-1].params, last[-1].total)
    order = np.lexsort((-objectives, result.params.fixed)).tolist()
    return Proposals(result.params, objectives, order, evaluations)


def partial_problem(
    plan: FitPlan,
    old: Fitted,
    candidate: Candidate,
    rows: np.ndarray,
    n_candidates: int,
    rng: np.random.Generator,
    free: bool = False,
) -> tuple[PartialProblem, Block, PartialParams]:
    """Return the problem of the candidates, the rows with their log densities under `old`, and a start."""
    with plan.executor(1):
        part = plan.table.take(rows)
        label = leaves(space(part, plan.summary, plan.sizes), part.weight, n_candidates, rng)
    problem = plan.problem(candidate, _hard(_parts(plan, old.problem.family, old.params, rows)))
    family = candidate_family(problem.family, int(label.max()) + 1, free)
    partial = PartialProblem(family, frozen_group(old.params.components), old.params.weights.sum(axis=1))
    n_classes = len(partial.class_weights)
    offset = each_row(old.problem, old.params, plan.table, old.problem.log_joint, n_classes, plan.est.n_jobs)
    with plan.executor(1) as executor:
        leaf = Partition(rows, one_hot(label, int(label.max()) + 1))
        start = _initial_params(plan, partial, candidate, leaf, executor)
    return partial, replace(plan.table, offset=offset), start


def _initial_params(
    plan: FitPlan, problem: PartialProblem, candidate: Candidate, start: Partition, executor: Executor
) -> PartialParams:
    """Return the M-step on the leaves within the structure, with a weak prior if there is no other."""
    family, P = problem.family, start.resp.shape[1]
    flat = flat_components(family, plan.summary, P)
    source = ArrayBlocks(replace(plan.table.take(start.rows), rows=None, label=None))
    moments = membership_moments(family, flat, source, start.resp.__getitem__, executor)
    if family.gaussian is not None and family.gaussian.prior is None:
        d = family.gaussian.n_columns
        cov = plan.target * candidate.n_components ** (-2 / d)
        prior = Prior(np.array(1.0), cov, np.zeros(d), np.array(0.0)).expand(P, family.gaussian.axis_aligned)
        problem = replace(problem, family=replace(family, gaussian=replace(family.gaussian, prior=prior)))
    alpha = np.full((P, len(problem.class_weights)), 1 / candidate.n_components)
    zero = np.zeros_like(alpha)
    before = PartialParams(alpha, flat, np.zeros(P, dtype=bool))
    return problem.update(before, PartialStats(zero, zero, moments, np.zeros(P)))


def leaves(points: Array, weight: Array | None, n_leaves: int, rng: np.random.Generator) -> np.ndarray:
    """Return the leaf of each point, (m,), -1 for none, of a kd-tree that is split until it has `n_leaves`.

    If the last level has more leaves, a random selection is used.
    """
    weight = np.ones(len(points)) if weight is None else weight
    parts = [np.arange(len(points))]
    while len(parts) < n_leaves:
        halves = [half for part in parts for half in _halves(points, weight, part)]
        if len(halves) == len(parts):
            break
        parts = halves
    if len(parts) > n_leaves:
        parts = [parts[i] for i in np.sort(rng.choice(len(parts), n_leaves, replace=False))]
    label = np.full(len(points), -1)
    for number, part in enumerate(parts):
        label[part] = number
    return label


def _halves(points: Array, weight: Array, part: np.ndarray) -> list[np.ndarray]:
    """Split a part at the median of its widest column; do not split if a half would have a single row."""
    width = np.ptp(points[part], axis=0)
    if width.max() == 0:
        return [part]
    column = points[part, width.argmax()]
    order = np.argsort(column, kind="stable")
    below = np.cumsum(weight[part][order])
    middle = column[order[np.searchsorted(below, below[-1] / 2)]]
    low = column <= middle
    if low.all():
        low = column < middle
    halves = [part[low], part[~low]]
    # a row of weight 2 is equivalent to two rows
    return halves if all(len(half) >= 2 or weight[half].sum() >= 2 for half in halves) else [part]


# --- partitions ------------------------------------------------------------------------------------------------------


def _parts(plan: FitPlan, family: ProductFamily, params: MixtureParams, rows: np.ndarray) -> Partition:
    """Return the responsibilities of some rows under a mixture, without those of the noise component."""
    K = params.n_components
    problem = MixtureProblem(replace(family, gaussian=candidate_family(family, K).gaussian))
    table = replace(plan.table.take(rows), rows=None, label=None)
    return Partition(rows, responsibilities(problem, params, table, plan.est.n_jobs)[:, :K])


def _hard(partition: Partition) -> Partition:
    """Assign every row to its most probable part, as k-means does; the prior is computed from these parts.

    Rows that are more probably noise belong to no part.
    """
    resp = partition.resp
    outlier = 1 - resp.sum(axis=1) > resp.max(axis=1)
    return Partition(partition.rows, one_hot(np.where(outlier, -1, resp.argmax(axis=1)), resp.shape[1]))
