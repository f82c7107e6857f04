"""Mixtures grown one component at a time (Algorithm 1 of Mansjur and Juang, after the greedy EM of Vlassis and Likas).

From K components to K + 1: candidates from the leaves of a kd-tree over the rows, partial EM for all of them at once
with the K components frozen, full EM from the best few joined mixtures, and the best of these is the next stage.

Where a structure holds something Equal, a new component beside a frozen group can do little: with one wide volume for
all there is no room for a narrow one. There, candidates free of the structure are tried too; full EM then starts from
one M-step on the parts they make of the rows.

`restart` is what growth is compared with: every K from partitions of its own.
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
from mixent.core.starts import Starts
from mixent.families.gaussian.prior import Prior
from mixent.families.product import ProductFamily
from mixent.mixtures.fit_plan import Candidate, Job
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

BRIEF = Stop(1e-4, 25)  # of partial EM: candidates are only compared

By = str | Callable[[Fitted, Candidate], float]


@dataclass(frozen=True)
class Stage:
    """A fitted mixture on the way, and what it took to come here from the stage before."""

    n_components: int
    covariance: str
    fitted: Fitted
    log_likelihood: float  # weighted sum over rows, without the prior
    objective: float  # with it
    n_free: int
    evaluations: int  # densities evaluated by EM since the stage before: passes x rows x components, all runs together
    candidates: tuple[float, ...]  # partial objective of each candidate per row; empty where none were tried
    converged: bool


def grow(
    job: Job,
    first: Candidate,
    max_components: int,
    *,
    n_candidates: int = 16,
    n_full: int = 2,
    by: By = "likelihood",
    show: Progress | None = None,
) -> Iterator[Stage]:
    """Stages of `first`'s number of components, one more, and so on; the caller stops when it has seen enough.

    Without a prior the log-likelihood never falls from stage to stage: models with one component more contain those
    with one less, and where no candidate comes out above, the heaviest component is doubled.

    Parameters
    ----------
    job : Job
        Of a plain mixture, of the rows of one class, or of all classes when `first` shares its components.
    first : Candidate
        With one entry in `counts`.
    max_components : int
    n_candidates : int
        New components tried at each stage.
    n_full : int
        How many of them, the best by their partial objective, go through full EM.
    by : "likelihood" or callable
        The best after full EM has the highest penalized objective; or the lowest `by(fitted, candidate)`, for which all
        candidates go through full EM.
    show : callable, optional
        Called with (done, total, text) after each stage.
    """
    found, starts = job.fit(first)
    stage = _stage(first, found, passes_of(starts) * job.table.n_rows * first.n_components)
    growth = _Growth(job, first, n_candidates, n_candidates if callable(by) else n_full, by)
    while True:
        _tell(show, stage, max_components)
        yield stage
        if stage.n_components >= max_components:
            return
        stage = growth.next(stage)


def restart(
    job: Job, first: Candidate, max_components: int, n_init: int = 1, show: Progress | None = None
) -> Iterator[Stage]:
    """The same stages, each from `n_init` fresh partitions of the rows."""
    for k in range(first.n_components, max_components + 1):
        candidate = replace(first, counts=(k,))
        found, starts = job.fit(candidate, starts=job.parts(candidate, n_init))
        stage = _stage(candidate, found, passes_of(starts) * job.table.n_rows * k)
        _tell(show, stage, max_components)
        yield stage


def _stage(candidate: Candidate, found: Fitted, evaluations: int, candidates: Sequence[float] = ()) -> Stage:
    return Stage(
        n_components=found.params.n_components,
        covariance=candidate.structures[0],
        fitted=replace(found, run=replace(found.run, last=None)),
        log_likelihood=_log_likelihood(found),
        objective=found.run.objective,
        n_free=found.problem.n_free(found.params),
        evaluations=evaluations,
        candidates=tuple(candidates),
        converged=found.run.status.ok,
    )


def _log_likelihood(found: Fitted) -> float:
    return float(found.run.objective - found.problem.family.log_prior(found.params.components))


def passes_of(starts: Starts) -> int:
    """Passes over the rows of all starts together; going on from a short run takes one to come back to it."""
    if not starts.short:
        return starts.run.n_passes
    passes = sum(short.n_passes for short in starts.short)
    best = starts.short[starts.best]
    if starts.run.trace is not best.trace:
        resumed = [step.n_pass for step in best.trace if step.accepted][-1]
        passes += 1 + starts.run.n_passes - resumed
    return passes


def _tell(show: Progress | None, stage: Stage, max_components: int) -> None:
    if show is not None:
        what = f"{stage.covariance} with {stage.n_components}: log-likelihood {stage.log_likelihood:.6g}"
        show(stage.n_components, max_components, what)


@dataclass(frozen=True)
class _Growth:
    """How to come from one stage to the next."""

    job: Job
    first: Candidate
    n_candidates: int
    n_full: int
    by: By

    def next(self, before: Stage) -> Stage:
        job, old = self.job, before.fitted
        candidate = replace(self.first, counts=(before.n_components + 1,))
        rng = np.random.default_rng((job.seed, candidate.n_components))
        rows = sample_rows(np.flatnonzero(job.counted), candidate.n_components, rng)
        inside = propose(job, old, candidate, rows, self.n_candidates, rng)
        tried = [inside]
        if "E" in candidate.structures[0] and job.table.X.shape[1]:
            tried.append(propose(job, old, candidate, rows, self.n_candidates, rng, free=True))
        joined = [[join(old.params, found.params, p) for p in found.order[: self.n_full]] for found in tried]
        twice = double(old.params)
        # one partition, so one prior: values under different priors could not be compared
        best = next((many[0] for many in reversed(joined) if many), twice)
        start = _firm(_parts(job, old.problem.family, best, rows))
        warm = joined[0] + [self._settled(candidate, start, old, free, rows) for many in joined[1:] for free in many]
        full = [self._fit(candidate, start, params) for params in warm]
        chosen = self._best(full, candidate, before)
        if chosen is None:
            full.append(self._fit(candidate, start, twice))
            chosen = self._best(full, candidate, before) or self._last_resort(full, candidate, start, twice)
        passes = sum(found.run.n_passes for found in full)
        evaluations = sum(found.evaluations for found in tried) + passes * job.table.n_rows * candidate.n_components
        return _stage(candidate, chosen, evaluations, (inside.objectives / job.total_weight).tolist())

    def _fit(self, candidate: Candidate, start: Partition, warm: MixtureParams) -> Fitted:
        return self.job.fit(candidate, starts=[start], warm=warm)[0]

    def _settled(
        self, candidate: Candidate, start: Partition, old: Fitted, free: MixtureParams, rows: np.ndarray
    ) -> MixtureParams:
        """A mixture inside the structure: one M-step from the parts of one that is not."""
        job = self.job
        family = job.problem(candidate, start).family
        parts = _parts(job, old.problem.family, free, rows)
        with job.executor(1) as executor:
            return from_partition(family, job.summary, job.table, parts, free.weights, executor)

    def _best(self, full: list[Fitted], candidate: Candidate, before: Stage | None) -> Fitted | None:
        """The best of the sound ones that do not fall behind the stage before."""
        sound = [f for f in full if f.params.n_components == candidate.n_components and not f.run.status.failed]
        if before is not None:
            least = before.log_likelihood - rounding(before.log_likelihood, self.job.total_weight)
            sound = [f for f in sound if _log_likelihood(f) >= least]
        return min(sound, key=lambda found: self._score(found, candidate), default=None)

    def _score(self, found: Fitted, candidate: Candidate) -> float:
        return self.by(found, candidate) if callable(self.by) else -found.run.objective

    def _last_resort(self, full: list[Fitted], candidate: Candidate, start: Partition, twice: MixtureParams) -> Fitted:
        """A prior may cost likelihood, so the best without regard to it; without one the doubled mixture untouched."""
        chosen = None if candidate.prior_rows is None else self._best(full, candidate, None)
        if chosen is not None:
            return chosen
        problem = self.job.problem(candidate, start)
        source = self.job.source(problem.family, candidate.n_components)
        with self.job.executor(candidate.n_components) as executor:
            return finish(problem, run(problem, source, twice, stop=Stop(0.0, 1), executor=executor))


# --- candidates ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tried:
    """Candidates after partial EM."""

    params: PartialParams
    objectives: Array  # (P,) each one's own
    order: list[int]  # best first, those that stood still last; empty when the objective was not finite
    evaluations: int


def propose(
    job: Job,
    old: Fitted,
    candidate: Candidate,
    rows: np.ndarray,
    n_candidates: int,
    rng: np.random.Generator,
    free: bool = False,
) -> Tried:
    """One new component beside `old`, tried from the leaves of a kd-tree of these rows, by partial EM."""
    problem, table, start = partial_problem(job, old, candidate, rows, n_candidates, rng, free)
    P = start.n_candidates
    seen: deque[Event[PartialParams]] = deque(maxlen=1)  # the statistics of the final parameters
    with job.executor(P) as executor:
        source = job.source(problem.family, P, table)
        found = run(problem, source, start, stop=BRIEF, executor=executor, observers=[seen.append])
    evaluations = found.n_passes * job.table.n_rows * P
    if not seen:
        return Tried(found.params, np.full(P, -np.inf), [], evaluations)
    each = problem.each(seen[-1].params, seen[-1].total)
    order = np.lexsort((-each, found.params.stuck)).tolist()
    return Tried(found.params, each, order, evaluations)


def partial_problem(
    job: Job,
    old: Fitted,
    candidate: Candidate,
    rows: np.ndarray,
    n_candidates: int,
    rng: np.random.Generator,
    free: bool = False,
) -> tuple[PartialProblem, Block, PartialParams]:
    """The problem of the candidates beside `old`, the rows with what `old` thinks of them, and a start."""
    with job.executor(1):
        part = job.table.take(rows)
        label = leaves(space(part, job.summary, job.sizes), part.weight, n_candidates, rng)
    problem = job.problem(candidate, _firm(_parts(job, old.problem.family, old.params, rows)))
    family = candidate_family(problem.family, int(label.max()) + 1, free)
    partial = PartialProblem(family, frozen_group(old.params.components), old.params.weights.sum(axis=1))
    n_classes = len(partial.class_weights)
    offset = each_row(old.problem, old.params, job.table, old.problem.log_joint, n_classes, job.est.n_jobs)
    with job.executor(1) as executor:
        start = _first(job, partial, candidate, Partition(rows, one_hot(label, int(label.max()) + 1)), executor)
    return partial, replace(job.table, offset=offset), start


def _first(
    job: Job, problem: PartialProblem, candidate: Candidate, start: Partition, executor: Executor
) -> PartialParams:
    """Leaf means and covariances inside the structure: one M-step, without a prior under the weakest of them."""
    family, P = problem.family, start.resp.shape[1]
    flat = flat_components(family, job.summary, P)
    source = ArrayBlocks(replace(job.table.take(start.rows), rows=None, label=None))
    moments = membership_moments(family, flat, source, start.resp.__getitem__, executor)
    if family.gaussian is not None and family.gaussian.prior is None:
        d = family.gaussian.n_columns
        cov = job.target * candidate.n_components ** (-2 / d)
        prior = Prior(np.array(1.0), cov, np.zeros(d), np.array(0.0)).expand(P, family.gaussian.axis_aligned)
        problem = replace(problem, family=replace(family, gaussian=replace(family.gaussian, prior=prior)))
    alpha = np.full((P, len(problem.class_weights)), 1 / candidate.n_components)
    nothing = np.zeros_like(alpha)
    before = PartialParams(alpha, flat, np.zeros(P, dtype=bool))
    return problem.update(before, PartialStats(nothing, nothing, moments, np.zeros(P)))


def leaves(points: Array, weight: Array | None, n_leaves: int, rng: np.random.Generator) -> np.ndarray:
    """(m,) the leaf of each point, -1 for none: a kd-tree split level by level until it has `n_leaves`.

    Where the last level has more of them, which ones remain is left to chance.
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
    """The part cut at the median of its widest column, equal values together; whole where a half would be one row."""
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
    # a row of weight two is two rows
    return halves if all(len(half) >= 2 or weight[half].sum() >= 2 for half in halves) else [part]


# --- the rows of a job -----------------------------------------------------------------------------------------------


def _parts(job: Job, family: ProductFamily, params: MixtureParams, rows: np.ndarray) -> Partition:
    """Some rows in the parts of a mixture."""
    problem = MixtureProblem(candidate_family(family, params.n_components))
    table = replace(job.table.take(rows), rows=None, label=None)
    return Partition(rows, responsibilities(problem, params, table, job.est.n_jobs))


def _firm(soft: Partition) -> Partition:
    """Every row in its most probable part, as k-means would have it: what a prior from the parts is made of."""
    return Partition(soft.rows, one_hot(soft.resp.argmax(axis=1), soft.resp.shape[1]))
