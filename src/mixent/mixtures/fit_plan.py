"""Data, options and shared computations of one call of `fit`, which may fit many candidate models.

A mixture without classes is treated as one class that contains all rows.
"""

from __future__ import annotations

from collections import deque
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from mixent.base.executors import choose_executor
from mixent.core.arrays import Array
from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.driver import Event, Observer, Run, Stop
from mixent.core.executors import Executor
from mixent.core.observers import Progress, ShowProgress
from mixent.core.proposals import Squarem
from mixent.core.starts import Starts, best_of
from mixent.families.gaussian.family import Group
from mixent.families.gaussian.prior import Prior
from mixent.families.product import ProductFamily
from mixent.mixtures.fitting import (
    Fitted,
    blocks,
    finish,
    make_family,
    pooled_covariance,
    shrunk,
    within_scatter,
)
from mixent.mixtures.init import Partition, Summary, cluster, from_partition, one_hot, sample_rows, summarize
from mixent.mixtures.online import PastStatistics, past_statistics
from mixent.mixtures.options import MixturePrior, Search
from mixent.mixtures.problem import MixtureParams, MixtureProblem

QUICK = Stop(1e-3, 60)  # for fits that are only compared


@dataclass(frozen=True)
class Candidate:
    """A model to fit: numbers of components, structures and prior."""

    counts: tuple[int, ...]  # number of components of each class; a single number if all classes share them
    structures: tuple[str, ...]  # covariance structures, likewise
    across: bool  # all classes form one structure group
    prior_rows: float | None
    noise: float = 0.0  # added to every row in training, relative to the variance of each column
    local: bool = False  # prior from the covariance within the initial clusters instead of within the classes
    shared: bool = False  # every class may use every component

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
        self.supervised = codes is not None
        self.codes = np.zeros(table.n_rows, dtype=np.int8) if codes is None else codes
        self.classes = np.zeros(1) if classes is None else classes
        self.class_prior = class_prior
        self.quick = False  # stop early, since the fits are only compared

    def take(self, rows: np.ndarray) -> FitPlan:
        """Return the plan for some of the rows."""
        other = copy(self)
        for cached in ("summary", "target"):
            other.__dict__.pop(cached, None)
        other.table = replace(self.table.take(rows), rows=None)
        other.codes = self.codes[rows]
        return other

    def of_class(self, c: int) -> FitPlan:
        """Return the plan of a mixture of the rows of class c, with the same center and target of the prior."""
        other = self.take(np.flatnonzero(self.codes == c))
        other.supervised, other.class_prior = False, None
        other.table = replace(other.table, label=None)
        other.codes, other.classes = np.zeros(other.table.n_rows, dtype=np.int8), self.classes[[c]]
        other.seed = int(np.random.default_rng((self.seed, c)).integers(2**31 - 1))
        other.__dict__.update(summary=self.summary, target=self.target)
        return other

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
    def target(self) -> Array:
        """Covariance within classes, (d, d), regularized as a target of shrinkage."""
        with self.executor(1) as executor:
            source = blocks(self.table, self.n_classes, False)
            cov = pooled_covariance(self.summary, source, self.codes, self.n_classes, executor)
        return shrunk(cov, self.summary, float(self.class_weights().sum())) if len(cov) else cov

    def default_rows(self) -> float | None:
        """Return the default number of pseudo-rows of the prior."""
        return self.prior_options.rows(len(self.summary.center))

    def prior(self, candidate: Candidate, start: Partition) -> Prior | None:
        """Return the prior, which shrinks each covariance towards K^(-2/d) times the covariance within classes.

        The factor accounts for K components sharing the volume of a class. With `local`, the target is the covariance
        within the initial clusters, which is not inflated by the distances between clusters, plus a small share of the
        former (more for small clusters), which keeps it positive definite.
        """
        d = len(self.summary.center)
        if candidate.prior_rows is None or d == 0:
            return None
        shrink = np.repeat(np.array(candidate.counts, dtype=float) ** (-2 / d), candidate.counts)
        cov = self.target * shrink[:, None, None]
        if candidate.local and (candidate.shared or candidate.n_components > self.n_classes):
            within, rows = self._within(start)
            share = max(1e-8, 1 - rows / (10 * d))
            cov = (1 - share) * within + share * cov
        return Prior(np.array(candidate.prior_rows), cov, np.zeros(d), np.array(0.0))

    def _within(self, start: Partition) -> tuple[Array, float]:
        """Return the covariance within the parts of a partition, and its degrees of freedom."""
        part = replace(self.table.take(start.rows), rows=None, label=None)
        n_parts = start.resp.shape[1]
        with self.executor(1) as executor:
            members = start.resp.__getitem__
            scatter, mass = within_scatter(self.summary, ArrayBlocks(part), members, n_parts, executor)
        rows = max(mass - n_parts, 0.0)
        return shrunk(scatter / max(rows, 1.0), self.summary, rows), rows

    def problem(self, candidate: Candidate, start: Partition) -> MixtureProblem:
        prior = self.prior(candidate, start)
        noise, smoothing = candidate.noise, self.prior_options.smoothing
        family = make_family(candidate.groups, self.summary, self.sizes, prior, noise, smoothing)
        return MixtureProblem(family, self.class_prior)

    def fit(
        self,
        candidate: Candidate,
        show: Progress | None = None,
        *,
        starts: list[Partition] | None = None,
        warm: MixtureParams | None = None,
        quick: bool = False,
    ) -> tuple[Fitted, Starts]:
        """Run EM from partitions of the rows (or from `warm`); `quick` stops early, to compare candidates."""
        est = self.est
        if candidate.prior_rows is None:
            self._check_rank(candidate)
        stop = Stop(est.tol, est.max_iter)
        if quick or self.quick:
            stop = Stop(max(est.tol, QUICK.tol), min(est.max_iter, QUICK.max_passes))
        with self.executor(max(candidate.counts)) as executor:
            starts = starts or self.parts(candidate)
            problem = self.problem(candidate, starts[0])
            source = self.source(problem.family, max(candidate.counts))
            params = [warm] if warm is not None else self._initial_params(problem, candidate, starts, executor)
            last: deque[Event] = deque(maxlen=1)
            observers: list[Observer] = [last.append]
            result = best_of(
                problem,
                source,
                params,
                stop=stop,
                executor=executor,
                observers=observers if show is None else [*observers, ShowProgress(show, est.max_iter)],
                propose=Squarem() if est.accelerate and candidate.is_mixture else None,
            )
            statistics = self._statistics(problem, source, result.run, last, executor)
        short = tuple(replace(r, last=None) for r in result.short)
        starts_result = replace(result, short=short, run=replace(result.run, last=None))
        return finish(problem, result.run, statistics), starts_result

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
            counts = self._counts(candidate, start)
            initial = from_partition(problem.family, self.summary, self.table, start, counts, executor)
            if self.class_prior is not None:  # from the first pass on: otherwise the objective would decrease
                within = initial.weights / initial.weights.sum(axis=1, keepdims=True)
                initial = replace(initial, weights=self.class_prior[:, None] * within)
            params.append(initial)
        return params

    def _counts(self, candidate: Candidate, start: Partition) -> Array:
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
        """Return the initial partitions."""
        if candidate.shared:
            return [self._shared_partition(candidate.n_components, number) for number in range(n_starts)]
        return [self.partition(candidate.counts, number) for number in range(n_starts)]

    def divided(self, n_components: int) -> tuple[int, ...]:
        """Divide the components evenly among the classes; the largest classes get the remaining ones."""
        order = np.argsort(-self.class_weights(), kind="stable")
        counts = np.full(self.n_classes, n_components // self.n_classes)
        counts[order[: n_components % self.n_classes]] += 1
        return tuple(counts.tolist())

    def _shared_partition(self, n_components: int, number: int = 0) -> Partition:
        """Return a partition for shared components: by k-means of each class, or of all rows, in turn."""
        if number % 2 == 0 and n_components >= self.n_classes:
            return self.partition(self.divided(n_components), number)
        with self.executor(1):
            rng = np.random.default_rng((self.seed, n_components, number))
            rows = sample_rows(np.flatnonzero(self.positive), n_components, rng)
            part = self.table.take(rows)
            label = cluster(part, self.summary, self.sizes, n_components, self.est.init, rng)
        return Partition(rows, one_hot(label, n_components))

    def partition(self, counts: tuple[int, ...], number: int = 0) -> Partition:
        """Divide the labelled rows of each class (or a sample of them) by k-means."""
        with self.executor(1):  # so that matrix products do not depend on the threads of BLAS
            return self._partition(counts, number)

    def _partition(self, counts: tuple[int, ...], number: int) -> Partition:
        positive = self.positive
        rows, labels, start = [], [], 0
        for c, count in enumerate(counts):
            rng = np.random.default_rng((self.seed, c, count, number))
            class_rows = sample_rows(np.flatnonzero(positive & (self.codes == c)), count, rng)
            label = cluster(self.table.take(class_rows), self.summary, self.sizes, count, self.est.init, rng)
            rows.append(class_rows)
            labels.append(start + label)
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
