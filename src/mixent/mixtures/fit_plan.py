"""Data, options and shared computations of one call of `fit`, which may fit many candidate models.

A mixture without classes is treated as one class that contains all rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mixent.base.executors import choose_executor
from mixent.base.fingerprint import fingerprint_of
from mixent.core.arrays import Array, safe_log
from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.driver import Event, Observer, Run, Stop, run
from mixent.core.executors import Executor
from mixent.core.observers import Progress, ShowProgress
from mixent.core.proposals import Delayed, Squarem
from mixent.core.starts import QUICK, Runner, Starts, best_of, best_revised
from mixent.families.gaussian.family import Group
from mixent.families.gaussian.prior import Prior, common_variances
from mixent.families.product import ProductFamily
from mixent.families.uniform import Uniform
from mixent.mixtures.fitting import (
    Fitted,
    blocks,
    cluster_covariance,
    component_covariance,
    evenly_spaced,
    finish,
    make_family,
    part_variances,
    pooled_covariance,
    rescaled,
    scaled_to,
    shrunk,
)
from mixent.mixtures.given_start import GivenStart
from mixent.mixtures.init import (
    Partition,
    Summary,
    cluster,
    column_ranges,
    connected,
    from_partition,
    one_hot,
    sample_rows,
    space,
    summarize,
)
from mixent.mixtures.online import PastStatistics, past_statistics
from mixent.mixtures.options import MixturePrior, Search
from mixent.mixtures.outliers import OUTLIERS, Outliers
from mixent.mixtures.predict import each_row
from mixent.mixtures.problem import MixtureParams, MixtureProblem

if TYPE_CHECKING:
    from mixent.core.checkpoint import Checkpoint

PLAIN_PASSES = 10  # before extrapolation, so that fits end not below mclust (tests/mixtures/test_golden.py)


@dataclass(frozen=True)
class Candidate:
    """A model to fit: numbers of components, structures and prior."""

    counts: tuple[int, ...]  # number of components of each class; a single number if all classes share them
    structures: tuple[str, ...]  # covariance structures, likewise
    across: bool  # all classes form one structure group
    prior_rows: float | None
    noise: float = 0.0  # added to every row in training, relative to the variance of each column
    target: str = "components"  # covariance of the prior: within the "components", the initial "clusters" or "classes"
    shared: bool = False  # every class may use every component

    @property
    def rescaled(self) -> bool:
        """Whether the prior depends on the components."""
        return self.target == "components" and self.prior_rows is not None

    @property
    def n_components(self) -> int:
        return sum(self.counts)

    @property
    def is_mixture(self) -> bool:
        """Whether some class has several components; otherwise one M-step suffices."""
        return max(self.counts) > 1

    @property
    def groups(self) -> list[Group]:
        stops = np.cumsum(self.counts).tolist()
        if self.across:
            return [Group(self.structures[0], 0, stops[-1])]
        return [Group(s, a, b) for s, a, b in zip(self.structures, [0, *stops[:-1]], stops)]

    def mask(self, n_classes: int) -> Array:
        """Return ones where a class may use a component, (C, K)."""
        if self.shared:
            return np.ones((n_classes, self.n_components))
        owner = np.repeat(np.arange(len(self.counts)), self.counts)
        return np.equal(np.arange(len(self.counts))[:, None], owner).astype(float)


@dataclass(frozen=True)
class Outcome:
    """A fitted classifier and the search that led to it."""

    fitted: Fitted
    candidate: Candidate
    temperature: float = 1.0
    uniform_share: float = 0.0  # of the uniform distribution in the probabilities
    records: list[dict] = field(default_factory=list)  # the models tried by a search
    path: list = field(default_factory=list)  # the stages of growth; with a mixture per class, a list for each class


class FitPlan:
    """Rows, labels and options of a fit; summaries are computed when first needed and used for all candidates.

    Parameters
    ----------
    est : the estimator with the options
    table : Block
        The columns of the model; with `label` only if labels are uncertain.
    sizes : number of values of each categorical column
    seed : seed of all random numbers
    codes : (n,) class of each row, -1 if unknown; None: no classes
    classes : (C,) labels, for messages
    class_prior : (C,) fixed class priors, or None
    """

    def __init__(
        self,
        est: Any,
        table: Block,
        sizes: tuple[int, ...],
        seed: int,
        codes: np.ndarray | None = None,
        classes: np.ndarray | None = None,
        class_prior: Array | None = None,
    ) -> None:
        self.est, self.table, self.sizes, self.seed = est, table, sizes, seed
        self.search: Search = est._group("search")
        self.prior_options: MixturePrior = est._group("prior")
        self.outliers: Outliers = OUTLIERS[est.outliers]
        self.supervised = codes is not None
        self.codes = np.zeros(table.n_rows, dtype=np.int8) if codes is None else codes
        self.classes = np.zeros(1) if classes is None else classes
        self.class_prior = class_prior
        self.start: GivenStart | None = None  # what the user gives to start from
        self.quick = False  # stop early, since the fits are only compared
        self.checkpoint: Checkpoint | None = None  # file that records the fits
        self.origin = ""  # of the mixture of a class: the content of the plan that it is part of

    def take(self, rows: np.ndarray) -> FitPlan:
        """Return the plan for some of the rows."""
        other = copy(self)
        for cached in ("summary", "target", "class_variances", "uniform", "content"):
            other.__dict__.pop(cached, None)
        other.table = replace(self.table.take(rows), rows=None)
        other.codes = self.codes[rows]
        other.start = self.start and self.start.take(rows)
        return other

    def of_class(self, c: int) -> FitPlan:
        """Return the plan of a mixture of the rows of class c, with the same center and target of the prior."""
        other = self.take(np.flatnonzero(self.codes == c))
        other.supervised, other.class_prior = False, None
        other.table = replace(other.table, label=None)
        other.codes, other.classes = np.zeros(other.table.n_rows, dtype=np.int8), self.classes[[c]]
        other.seed = int(np.random.default_rng((self.seed, c)).integers(2**31 - 1))
        other.__dict__.update(
            summary=self.summary, target=self.target, class_variances=self.class_variances, uniform=self.uniform
        )
        other.origin = "" if self.checkpoint is None else self.content
        return other

    @property
    def n_processes(self) -> int | None:
        """Number of processes of a search; one with a checkpoint, which records the fits of this process."""
        return self.est.n_jobs if self.checkpoint is None else 1

    def with_learned_priors(self) -> FitPlan:
        """Return the plan with class priors estimated from its rows, even if the user has fixed them."""
        other = copy(self)
        other.class_prior = None
        return other

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def total_weight(self) -> float:
        return float(self.table.n_rows if self.table.weight is None else self.table.weight.sum())

    @property
    def positive(self) -> np.ndarray:
        """(n,) which rows have a positive weight."""
        return self.table.row_weights > 0

    def class_weights(self) -> Array:
        """Return the total weight of the rows of each class, (C,)."""
        labelled = self.codes >= 0
        return np.bincount(self.codes[labelled], self.table.row_weights[labelled], self.n_classes).astype(float)

    def class_rows(self) -> np.ndarray:
        """Return the number of rows of each class with a positive weight, (C,)."""
        return np.bincount(self.codes[self.positive & (self.codes >= 0)], minlength=self.n_classes)

    def target_shares(self) -> Array:
        """Return the label likelihoods, (n, C), with maximum 1; unlabelled rows are not scored."""
        if self.table.label is None:
            return one_hot(self.codes, self.n_classes)
        return self.table.label / self.table.label.max(axis=1, keepdims=True)

    @cached_property
    def summary(self) -> Summary:
        with self.executor(1) as executor:
            return summarize(blocks(self.table, 1, True), self.sizes, executor)

    @cached_property
    def uniform(self) -> Uniform | None:
        """Density of the noise component, if there is one."""
        return Uniform(*column_ranges(self.table, self.summary), self.sizes) if self.outliers.uniform else None

    @cached_property
    def target(self) -> Array:
        """Covariance within classes, (d, d), regularized as a target of shrinkage."""
        with self.executor(1) as executor:
            source = blocks(self.table, self.n_classes, False)
            cov = pooled_covariance(self.summary, source, self.codes, self.n_classes, executor)
        return shrunk(cov, self.summary, float(self.class_weights().sum())) if len(cov) else cov

    def default_rows(self) -> float | None:
        """Return the default number of pseudo-rows of the prior."""
        return self.prior_options.rows(len(self.summary.center))

    @cached_property
    def class_variances(self) -> tuple[Array, Array]:
        """Degrees of freedom and variances of the classes, (C, d) each."""
        rows = evenly_spaced(np.flatnonzero(self.positive & (self.codes >= 0)))
        return part_variances(self.table, Partition(rows, one_hot(self.codes[rows], self.n_classes)))

    def prior(self, candidate: Candidate, start: Partition) -> Prior | None:
        """Return the prior, which shrinks each covariance towards the target of the candidate."""
        rows = candidate.prior_rows
        if rows is None or not len(self.summary.center):
            return None
        return Prior.of_covariances(rows, self.prior_covariance(candidate, start), self.total_weight)

    def prior_covariance(self, candidate: Candidate, start: Partition) -> Array:
        """Return the target of the candidate, (d, d) or (K, d, d).

        Targets of the components themselves have the variances of `common_variances`: those of the parts of the start
        if there are more components than classes, else of the classes. The others are K^(-2/d) times the covariance
        within classes, since K components share the volume of a class, or within the parts of the start.
        """
        rows = candidate.prior_rows
        assert rows is not None
        cov, shrink = self.target, np.array(candidate.counts, dtype=float) ** (-2 / len(self.summary.center))
        if candidate.target == "components":
            cov = scaled_to(cov, common_variances(rows, *self.class_variances, np.diagonal(cov)))
        robust = not self.outliers.none  # the parts of the start are without isolated rows
        several = candidate.shared or candidate.n_components > self.n_classes or robust
        if candidate.target == "classes" or not several:
            return cov * np.repeat(shrink, candidate.counts)[:, None, None]
        cov = cov * float(shrink.mean())
        within = component_covariance if candidate.target == "components" else cluster_covariance
        with self.executor(1) as executor:
            return within(rows, self.table, start, self.summary, cov, executor)

    def problem(self, candidate: Candidate, start: Partition) -> MixtureProblem:
        family = self.family(candidate, self.prior(candidate, start), candidate.noise)
        return MixtureProblem(family, self.class_prior)

    def family(self, candidate: Candidate, prior: Prior | None, noise: float) -> ProductFamily:
        """Return the family of the components of a candidate."""
        smoothing, numeric = self.prior_options.smoothing, self.outliers.numeric
        return make_family(candidate.groups, self.summary, self.sizes, prior, noise, smoothing, numeric, self.uniform)

    def fit(
        self,
        candidate: Candidate,
        show: Progress | None = None,
        *,
        starts: list[Partition] | None = None,
        warm: MixtureParams | None = None,
        quick: bool = False,
        rescale: bool = True,
        before: MixtureProblem | None = None,
    ) -> tuple[Fitted, Starts]:
        """Run EM from partitions of the rows (or from `warm`); `quick` stops early, to compare candidates.

        The prior is computed from the first partition, and with `rescale`, unless the fit is quick, again from the rows
        of each component after convergence. If `warm` is the solution of an earlier problem `before` on the same rows,
        it begins with the prior of that problem, so that the earlier run is continued.
        """
        quick = quick or self.quick
        what = ("fit", candidate, starts, warm, quick, rescale, before)
        fit = partial(self._fit, candidate, show, starts, warm, quick, rescale, before)
        result: tuple[Fitted, Starts] = self.task(what, fit)
        return result

    def task(self, what: tuple, compute: Callable[[Runner], Any]) -> Any:
        """Return `compute(run)`, or its result in the checkpoint.

        Parameters
        ----------
        what : tuple
            All that the result depends on, besides this plan.
        compute : callable(run)
            Its argument does what `mixent.core.driver.run` does, and records the state of the run.
        """
        if self.checkpoint is None:
            return compute(run)
        return self.checkpoint.task(
            fingerprint_of(self.content, self.seed, self.class_prior, self.start, what), compute
        )

    @cached_property
    def content(self) -> str:
        """Fingerprint of the rows and classes."""
        return fingerprint_of(self.table, self.codes, self.classes, self.supervised, self.origin)

    def _fit(
        self,
        candidate: Candidate,
        show: Progress | None,
        starts: list[Partition] | None,
        warm: MixtureParams | None,
        quick: bool,
        rescale: bool,
        before: MixtureProblem | None,
        runner: Runner,
    ) -> tuple[Fitted, Starts]:
        est = self.est
        if candidate.prior_rows is None:
            self._check_rank(candidate)
        stop = Stop(est.tol, est.max_iter)
        if quick:
            stop = Stop(max(est.tol, QUICK.tol), min(est.max_iter, QUICK.max_passes))
        with self.executor(max(candidate.counts)) as executor:
            starts = starts or self.parts(candidate)
            problem = self.problem(candidate, starts[0])
            iterated = candidate.is_mixture or not self.outliers.none
            rescale = rescale and candidate.rescaled and iterated and self.outliers.revised and not quick
            if before is not None and _same_rows(problem, before):
                problem = _with_prior(problem, before)
            source = self.source(problem.family, max(candidate.counts))
            params = [warm] if warm is not None else self._initial_params(problem, candidate, starts, executor)
            last: deque[Event] = deque(maxlen=1)
            observers: list[Observer] = [last.append]
            options: dict[str, Any] = {
                "runner": runner,
                "executor": executor,
                "observers": observers if show is None else [*observers, ShowProgress(show, est.max_iter)],
                "propose": Delayed(Squarem(), PLAIN_PASSES) if iterated else None,
            }
            if rescale:
                revise = partial(self._rescaled, candidate, starts[0].rows)
                again = before is not None
                problem, result = best_revised(problem, source, params, revise, stop=stop, warm=again, **options)
            else:
                result = best_of(problem, source, params, stop=stop, **options)
            statistics = self._statistics(problem, source, result.run, last, executor)
        short = tuple(replace(r, last=None) for r in result.short)
        starts_result = replace(result, short=short, run=replace(result.run, last=None))
        return finish(problem, result.run, statistics), starts_result

    def _rescaled(
        self, candidate: Candidate, rows: np.ndarray, problem: MixtureProblem, run: Run
    ) -> MixtureProblem | None:
        """Return the problem with the prior of the parts that the components define, None if it is about the same."""
        other = self.problem(candidate, self.assigned(candidate, run.params, rows))
        mass = run.params.weights.sum(axis=0) * self.total_weight
        return other if rescaled(problem.family, other.family, run.params.components, mass) else None

    def assigned(self, candidate: Candidate, params: MixtureParams, rows: np.ndarray) -> Partition:
        """Return a partition of some rows: each belongs to its most probable component, given its class if known.

        Rows for which the noise component is most probable belong to no part.
        """
        problem, width, codes = MixtureProblem(self.family(candidate, None, 0.0)), params.width, self.codes[rows]
        table = replace(self.table.take(rows), rows=None, label=None)
        log_prob = each_row(problem, params, table, lambda r, b: problem.log_components(r, b).T, width, self.est.n_jobs)
        weights = np.where((codes >= 0)[:, None], params.weights[codes], params.weights.sum(axis=0))
        return Partition(rows, one_hot((log_prob + safe_log(weights)).argmax(axis=1), params.n_components))

    @staticmethod
    def _statistics(
        problem: MixtureProblem, source: ArrayBlocks, run: Run, last: deque[Event], executor: Executor
    ) -> PastStatistics | None:
        """Return the statistics at the final parameters, from the last event or from another pass."""
        if run.status.failed:
            return None
        if last and last[0].params is run.params:
            return past_statistics(problem, run.params, last[0].total)
        ready = problem.prepare(run.params)
        return past_statistics(problem, run.params, executor.total(lambda block: problem.stats(ready, block), source))

    def executor(self, n_components: int) -> Executor:
        """Return an executor with threads if there are enough rows."""
        return choose_executor(self.est.n_jobs, self.table.n_rows, n_components)

    def source(self, family: ProductFamily, n_components: int, table: Block | None = None) -> ArrayBlocks:
        """Return the rows in blocks, by class if known; `table` replaces the table (with an offset)."""
        gaussian = family.gaussian
        known = self.codes if self.supervised and self.table.label is None else None
        axis_aligned = gaussian is None or gaussian.axis_aligned
        return blocks(self.table if table is None else table, n_components, axis_aligned, known)

    def _initial_params(
        self, problem: MixtureProblem, candidate: Candidate, starts: list[Partition], executor: Executor
    ) -> list[MixtureParams]:
        params = []
        for start in starts:
            counts = self.initial_counts(candidate, start)
            initial = from_partition(problem.family, self.summary, self.table, start, counts, executor)
            if self.start is not None:
                initial = self.start.applied(initial, problem.family)
            if self.class_prior is not None:  # from the first pass on: otherwise the objective would decrease
                within = initial.weights / initial.weights.sum(axis=1, keepdims=True)
                initial = replace(initial, weights=self.class_prior[:, None] * within)
            params.append(initial)
        return params

    def initial_counts(self, candidate: Candidate, start: Partition) -> Array:
        """Return the rows of each class in each part, (C, K), > 0 where the class may use the component.

        With shared components, a tenth of the weight of each class is spread over all components, since EM cannot
        increase a weight of zero.
        """
        weight = start.resp if self.table.weight is None else start.resp * self.table.weight[start.rows, None]
        counts = one_hot(self.codes[start.rows], self.n_classes).T @ weight
        mass = weight.sum(axis=0) + 1e-6 * weight.sum() / weight.shape[1]
        if candidate.shared:
            counts += 0.1 * (self.class_weights() + 1e-3)[:, None] * mass / mass.sum()
            return counts
        return candidate.mask(self.n_classes) * mass

    def parts(self, candidate: Candidate, n_starts: int = 1) -> list[Partition]:
        """Return the initial partitions, or the one that the user gives."""
        given = None if self.start is None else self.start.partition(self.table, self.summary.scale)
        if given is not None:
            return [given]
        divide = self._shared_partition if candidate.shared else self.partition
        counts: Any = candidate.n_components if candidate.shared else candidate.counts
        return [divide(counts, number, share) for number in range(n_starts) for share in self.outliers.isolated]

    def divided(self, n_components: int) -> tuple[int, ...]:
        """Divide the components evenly among the classes; the largest classes get the remaining ones."""
        order = np.argsort(-self.class_weights(), kind="stable")
        counts = np.full(self.n_classes, n_components // self.n_classes)
        counts[order[: n_components % self.n_classes]] += 1
        return tuple(counts.tolist())

    def _shared_partition(self, n_components: int, number: int, isolated: float) -> Partition:
        """Return a partition for shared components: by k-means of each class, or of all rows, in turn."""
        if number % 2 == 0 and n_components >= self.n_classes:
            return self.partition(self.divided(n_components), number, isolated)
        with self.executor(1):
            rng = np.random.default_rng((self.seed, n_components, number))
            rows = sample_rows(np.flatnonzero(self.positive), n_components, rng)
            label = self._cluster(rows, n_components, isolated, rng)
        return Partition(rows, one_hot(label, n_components))

    def _cluster(self, rows: np.ndarray, n_clusters: int, isolated: float, rng: np.random.Generator) -> np.ndarray:
        """Return a cluster for each of these rows, by k-means; -1 for the given share of isolated rows."""
        kept = np.arange(len(rows))
        if isolated > 0:
            part = self.table.take(rows)
            kept = connected(space(part, self.summary, self.sizes), part.row_weights, n_clusters, isolated)
        label = np.full(len(rows), -1)
        part = self.table.take(rows[kept])
        label[kept] = cluster(part, self.summary, self.sizes, n_clusters, self.est.init, rng)
        return label

    def partition(self, counts: tuple[int, ...], number: int = 0, isolated: float = 0.0) -> Partition:
        """Divide the labelled rows of each class (or a sample of them) by k-means."""
        with self.executor(1):  # so that matrix products do not depend on the threads of BLAS
            return self._partition(counts, number, isolated)

    def _partition(self, counts: tuple[int, ...], number: int, isolated: float) -> Partition:
        positive = self.positive
        rows, labels, start = [], [], 0
        for c, count in enumerate(counts):
            rng = np.random.default_rng((self.seed, c, count, number))
            class_rows = sample_rows(np.flatnonzero(positive & (self.codes == c)), count, rng)
            label = self._cluster(class_rows, count, isolated, rng)
            rows.append(class_rows)
            labels.append(np.where(label < 0, -1, start + label))
            start += count
        return Partition(np.concatenate(rows), one_hot(np.concatenate(labels), start))

    def _check_rank(self, candidate: Candidate) -> None:
        """Check that each class has enough rows for a covariance without a prior."""
        rows = self.class_rows()
        few = np.flatnonzero(rows < 2)
        if len(few) and self.supervised and not candidate.shared and not candidate.across and len(self.summary.center):
            raise ValueError(
                f"class {self.classes.tolist()[few[0]]!r} has {rows[few[0]]} row(s), too few to estimate a covariance "
                "by maximum likelihood; use prior='auto' or across_classes=True"
            )


def _same_rows(problem: MixtureProblem, before: MixtureProblem) -> bool:
    """Return whether two problems are about the same rows, as far as their center and scale show."""
    gaussian, earlier = problem.family.gaussian, before.family.gaussian
    if gaussian is None or earlier is None:
        return gaussian is earlier
    return np.array_equal(gaussian.center, earlier.center) and np.array_equal(gaussian.scale, earlier.scale)


def _with_prior(problem: MixtureProblem, before: MixtureProblem) -> MixtureProblem:
    """Return the problem with the covariance of the prior of an earlier one."""
    gaussian, earlier = problem.family.gaussian, before.family.gaussian
    if gaussian is None or earlier is None or gaussian.prior is None or earlier.prior is None:
        return problem
    prior = replace(gaussian.prior, cov=earlier.prior.cov)
    return replace(problem, family=replace(problem.family, gaussian=replace(gaussian, prior=prior)))
