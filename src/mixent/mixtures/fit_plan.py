"""One call of `fit`: the rows summarized once, then any number of candidate models fitted to them.

A plain mixture is the case of one class that every row belongs to.
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
from mixent.mixtures.online import Kept, keep
from mixent.mixtures.options import MixturePrior, Search
from mixent.mixtures.problem import MixtureParams, MixtureProblem

QUICK = Stop(1e-3, 60)


@dataclass(frozen=True)
class Candidate:
    """What is to be fitted."""

    counts: tuple[int, ...]  # components of each class; one number when all classes share them
    structures: tuple[str, ...]  # of each class, in the same way
    across: bool  # one group over all classes
    prior_rows: float | None
    noise: float = 0.0  # put on every row in training, as a share of each column's variance
    local: bool = False  # prior from the covariance within the starting parts, not within the classes
    shared: bool = False  # every class may use every component

    @property
    def n_components(self) -> int:
        return sum(self.counts)

    @property
    def is_mixture(self) -> bool:
        """Has some class more than one component? Otherwise one M-step ends the run."""
        return max(self.counts) > 1

    @property
    def groups(self) -> list[Group]:
        stops = np.cumsum(self.counts).tolist()
        if self.across:
            return [Group(self.structures[0], 0, stops[-1])]
        return [Group(s, a, b) for s, a, b in zip(self.structures, [0, *stops[:-1]], stops)]

    def mask(self, n_classes: int) -> Array:
        """(C, K): ones where a class may use a component."""
        if self.shared:
            return np.ones((n_classes, self.n_components))
        owner = np.repeat(np.arange(len(self.counts)), self.counts)
        return np.equal(np.arange(len(self.counts))[:, None], owner).astype(float)


@dataclass(frozen=True)
class Outcome:
    """A fitted classifier and how it was found."""

    found: Fitted
    candidate: Candidate
    temperature: float = 1.0
    records: list[dict] = field(default_factory=list)  # what a search tried
    path: list = field(default_factory=list)  # every stage of growth; of a mixture per class, a list for each


class Job:
    """Rows, labels and options; summaries are made when first needed and used for every candidate.

    Parameters
    ----------
    est : the estimator whose options hold
    table : Block
        The columns that take part; `label` only where labels are uncertain.
    sizes : values of each categorical column
    codes : (n,) class of each row, -1 unknown; None: no classes
    classes : (C,) labels, for messages
    class_prior : (C,) held fixed, or None
    seed : everything random follows from it
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
        self.quick = False  # stop early: the fits are only compared

    def take(self, rows: np.ndarray) -> Job:
        """The same job on some rows."""
        other = copy(self)
        for made in ("summary", "target"):
            other.__dict__.pop(made, None)
        other.table = replace(self.table.take(rows), rows=None)
        other.codes = self.codes[rows]
        return other

    def of_class(self, c: int) -> Job:
        """A plain mixture of the rows known to be of class c; same center, same target of the prior."""
        other = self.take(np.flatnonzero(self.codes == c))
        other.supervised, other.class_prior = False, None
        other.table = replace(other.table, label=None)
        other.codes, other.classes = np.zeros(other.table.n_rows, dtype=np.int8), self.classes[[c]]
        other.seed = int(np.random.default_rng((self.seed, c)).integers(2**31 - 1))
        other.__dict__.update(summary=self.summary, target=self.target)
        return other

    def with_learned_priors(self) -> Job:
        """The same job with the priors of its own rows, whatever the user wants for prediction."""
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
    def counted(self) -> np.ndarray:
        """(n,) rows that weigh something."""
        return self.table.row_weights > 0

    def class_weights(self) -> Array:
        """(C,) weight of the rows of each class."""
        seen = self.codes >= 0
        return np.bincount(self.codes[seen], self.table.row_weights[seen], self.n_classes).astype(float)

    def class_rows(self) -> np.ndarray:
        """(C,) rows of each class that count for something."""
        return np.bincount(self.codes[self.counted & (self.codes >= 0)], minlength=self.n_classes)

    def target_shares(self) -> Array:
        """(n, C) label likelihoods, largest one; a row without a label is not scored."""
        if self.table.label is None:
            return one_hot(self.codes, self.n_classes)
        return self.table.label / self.table.label.max(axis=1, keepdims=True)

    @cached_property
    def summary(self) -> Summary:
        with self.executor(1) as executor:
            return summarize(blocks(self.table, 1, True), self.sizes, executor)

    @cached_property
    def target(self) -> Array:
        """Covariance within classes, (d, d), fit to be shrunk to."""
        with self.executor(1) as executor:
            source = blocks(self.table, self.n_classes, False)
            cov = pooled_covariance(self.summary, source, self.codes, self.n_classes, executor)
        return shrunk(cov, self.summary, float(self.class_weights().sum())) if len(cov) else cov

    def default_rows(self) -> float | None:
        """Pseudo-rows when the user leaves them to us."""
        return self.prior_options.rows(len(self.summary.center))

    def prior(self, candidate: Candidate, start: Partition) -> Prior | None:
        """Shrink each covariance towards that within classes, shrunk by K^(-2/d) as K components share its volume.

        With `local`, towards that within the parts of the starting partition, which groups far apart do not swell; a
        trace of the former, more when the parts are small, keeps it away from zero.
        """
        d = len(self.summary.center)
        if candidate.prior_rows is None or d == 0:
            return None
        shrink = np.repeat(np.array(candidate.counts, dtype=float) ** (-2 / d), candidate.counts)
        cov = self.target * shrink[:, None, None]
        if candidate.local and (candidate.shared or candidate.n_components > self.n_classes):
            within, rows = self._within(start)
            trace = max(1e-8, 1 - rows / (10 * d))
            cov = (1 - trace) * within + trace * cov
        return Prior(np.array(candidate.prior_rows), cov, np.zeros(d), np.array(0.0))

    def _within(self, start: Partition) -> tuple[Array, float]:
        """Covariance within the parts of a partition, and the rows it is worth."""
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
        """EM from partitions of the rows (or from `warm`); `quick` stops early, for comparing candidates."""
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
            first = [warm] if warm is not None else self._first(problem, candidate, starts, executor)
            seen: deque[Event] = deque(maxlen=1)
            observers: list[Observer] = [seen.append]
            found = best_of(
                problem,
                source,
                first,
                stop=stop,
                executor=executor,
                observers=observers if show is None else [*observers, ShowProgress(show, est.max_iter)],
                propose=Squarem() if est.accelerate and candidate.is_mixture else None,
            )
            kept = self._kept(problem, source, found.run, seen, executor)
        short = tuple(replace(r, last=None) for r in found.short)
        return finish(problem, found.run, kept), replace(found, short=short, run=replace(found.run, last=None))

    @staticmethod
    def _kept(
        problem: MixtureProblem, source: ArrayBlocks, run: Run, seen: deque[Event], executor: Executor
    ) -> Kept | None:
        """The statistics at the final parameters: those of the last event, or, where none was seen, of a pass."""
        if run.status.failed:
            return None
        if seen and seen[0].params is run.params:
            return keep(problem, run.params, seen[0].total)
        ready = problem.prepare(run.params)
        return keep(problem, run.params, executor.total(lambda block: problem.stats(ready, block), source))

    def executor(self, n_components: int) -> Executor:
        """Threads when there is work for them."""
        return choose_executor(self.est.n_jobs, self.table.n_rows, n_components)

    def source(self, family: ProductFamily, n_components: int, table: Block | None = None) -> ArrayBlocks:
        """Rows of known class go by class; each meets so many components. `table`: the rows with something added."""
        gaussian = family.gaussian
        known = self.codes if self.supervised and self.table.label is None else None
        axis_aligned = gaussian is None or gaussian.axis_aligned
        return blocks(self.table if table is None else table, n_components, axis_aligned, known)

    def _first(
        self, problem: MixtureProblem, candidate: Candidate, starts: list[Partition], executor: Executor
    ) -> list[MixtureParams]:
        params = []
        for start in starts:
            cells = self._cells(candidate, start)
            guess = from_partition(problem.family, self.summary, self.table, start, cells, executor)
            if self.class_prior is not None:  # held from the first pass on: from others the objective would fall
                within = guess.weights / guess.weights.sum(axis=1, keepdims=True)
                guess = replace(guess, weights=self.class_prior[:, None] * within)
            params.append(guess)
        return params

    def _cells(self, candidate: Candidate, start: Partition) -> Array:
        """(C, K) rows of each class in each part, > 0 where the class may use the component.

        A class that shares components keeps a tenth of its weight for all of them: from nothing EM does not come back.
        """
        weight = start.resp if self.table.weight is None else start.resp * self.table.weight[start.rows, None]
        cells = one_hot(self.codes[start.rows], self.n_classes).T @ weight
        mass = weight.sum(axis=0) + 1e-6 * weight.sum() / weight.shape[1]
        if candidate.shared:
            cells += 0.1 * (self.class_weights() + 1e-3)[:, None] * mass / mass.sum()
            return cells
        return candidate.mask(self.n_classes) * mass

    def parts(self, candidate: Candidate, n_starts: int = 1) -> list[Partition]:
        """Partitions for EM to start from."""
        if candidate.shared:
            return [self._shared_partition(candidate.n_components, number) for number in range(n_starts)]
        return [self.partition(candidate.counts, number) for number in range(n_starts)]

    def divided(self, n_components: int) -> tuple[int, ...]:
        """Components divided evenly among the classes; the largest classes get the odd ones."""
        order = np.argsort(-self.class_weights(), kind="stable")
        counts = np.full(self.n_classes, n_components // self.n_classes)
        counts[order[: n_components % self.n_classes]] += 1
        return tuple(counts.tolist())

    def _shared_partition(self, n_components: int, number: int = 0) -> Partition:
        """Parts for components all classes share: each class split by k-means, or all rows together, in turn."""
        if number % 2 == 0 and n_components >= self.n_classes:
            return self.partition(self.divided(n_components), number)
        with self.executor(1):
            rng = np.random.default_rng((self.seed, n_components, number))
            rows = sample_rows(np.flatnonzero(self.counted), n_components, rng)
            part = self.table.take(rows)
            label = cluster(part, self.summary, self.sizes, n_components, self.est.init, rng)
        return Partition(rows, one_hot(label, n_components))

    def partition(self, counts: tuple[int, ...], number: int = 0) -> Partition:
        """The rows of each class (or a sample of them) split by k-means; rows without a label count for none."""
        with self.executor(1):  # its products too must not depend on the threads of BLAS
            return self._partition(counts, number)

    def _partition(self, counts: tuple[int, ...], number: int) -> Partition:
        counted = self.counted
        rows, labels, start = [], [], 0
        for c, count in enumerate(counts):
            rng = np.random.default_rng((self.seed, c, count, number))
            mine = sample_rows(np.flatnonzero(counted & (self.codes == c)), count, rng)
            label = cluster(self.table.take(mine), self.summary, self.sizes, count, self.est.init, rng)
            rows.append(mine)
            labels.append(start + label)
            start += count
        return Partition(np.concatenate(rows), one_hot(np.concatenate(labels), start))

    def _check_rank(self, candidate: Candidate) -> None:
        """Without a prior, a class on its own needs rows enough for a covariance."""
        rows = self.class_rows()
        few = np.flatnonzero(rows < 2)
        if len(few) and self.supervised and not candidate.shared and not candidate.across and len(self.summary.center):
            raise ValueError(
                f"class {self.classes.tolist()[few[0]]!r} has {rows[few[0]]} row(s), too few for a covariance by "
                "maximum likelihood; use prior='auto', or across_classes=True"
            )
