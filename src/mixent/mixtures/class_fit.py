"""Fit one candidate classifier: a mixture per class, of given sizes and structures."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import Block
from mixent.core.driver import Stop, run
from mixent.core.observers import ShowProgress
from mixent.core.proposals import Squarem
from mixent.families.gaussian.family import Group
from mixent.families.gaussian.prior import Prior
from mixent.mixtures.first_guess import Summary, cluster, from_responsibilities, summarise
from mixent.mixtures.fitting import (
    Fitted,
    blocks,
    choose_executor,
    finish,
    make_family,
    pooled_covariance,
    read_prior_rows,
    shrunk,
)
from mixent.mixtures.problem import MixtureProblem

QUICK = Stop(1e-3, 60)


@dataclass(frozen=True)
class Candidate:
    """What is to be fitted."""

    counts: tuple[int, ...]  # components of each class
    structures: tuple[str, ...]  # of each class
    across: bool  # one group over all classes
    prior_rows: float | None

    @property
    def groups(self) -> list[Group]:
        stops = np.cumsum(self.counts).tolist()
        if self.across:
            return [Group(self.structures[0], 0, stops[-1])]
        return [Group(s, a, b) for s, a, b in zip(self.structures, [0, *stops[:-1]], stops)]

    @property
    def mask(self) -> Array:
        """(C, K): ones where a component belongs to a class."""
        owner = np.repeat(np.arange(len(self.counts)), self.counts)
        return np.equal(np.arange(len(self.counts))[:, None], owner).astype(float)


class ClassJob:
    """The rows, labels and options of one fit; summaries are made once and serve every candidate."""

    def __init__(
        self,
        est: Any,
        table: Block,
        codes: np.ndarray,
        classes: np.ndarray,
        sizes: tuple[int, ...],
        class_prior: Array | None,
        rng: np.random.Generator,
    ) -> None:
        self.est, self.table, self.codes, self.classes = est, table, codes, classes
        self.sizes, self.class_prior = sizes, class_prior
        self.seed = int(rng.integers(2**31 - 1))

    def take(self, rows: np.ndarray) -> ClassJob:
        """The same job on some rows."""
        other = copy(self)
        other.__dict__.pop("summary", None)
        other.__dict__.pop("target", None)
        part = self.table.take(rows)
        other.table = Block(part.X, part.codes, part.label, part.weight)
        other.codes = self.codes[rows]
        return other

    def with_learned_priors(self) -> ClassJob:
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

    @cached_property
    def summary(self) -> Summary:
        with choose_executor(self.est.n_jobs, self.table.n_rows, 1) as executor:
            return summarise(blocks(self.table, 1, True), self.sizes, executor)

    @cached_property
    def target(self) -> Array:
        """Covariance within classes, (d, d), fit to be shrunk to."""
        with choose_executor(self.est.n_jobs, self.table.n_rows, 1) as executor:
            source = blocks(self.table, self.n_classes, False)
            cov = pooled_covariance(self.summary, source, self.codes, self.n_classes, executor)
        return shrunk(cov, self.summary, self.total_weight, 0.0) if len(cov) else cov

    def default_rows(self) -> float | None:
        """Pseudo-rows when the user leaves them to us."""
        rows = read_prior_rows(self.est.prior)
        return len(self.summary.centre) + 2.0 if isinstance(rows, str) else rows

    def prior(self, candidate: Candidate) -> Prior | None:
        d = len(self.summary.centre)
        if candidate.prior_rows is None or d == 0:
            return None
        shrink = np.repeat(np.array(candidate.counts, dtype=float) ** (-2 / d), candidate.counts)
        cov = self.target * shrink[:, None, None]
        return Prior(np.array(candidate.prior_rows), cov, np.zeros(d), np.array(0.01))

    def class_weights(self) -> Array:
        """(C,) weight of the rows of each class."""
        seen = self.codes >= 0
        weight = np.ones(int(seen.sum())) if self.table.weight is None else self.table.weight[seen]
        return np.bincount(self.codes[seen], weight, self.n_classes).astype(float)

    def target_shares(self) -> Array:
        """(n, C) what each row's label says, summing to one; a row without a label says nothing and is not scored."""
        if self.table.label is None:
            return np.equal(self.codes[:, None], np.arange(self.n_classes)).astype(float)
        return self.table.label / self.table.label.sum(axis=1, keepdims=True)

    def log_joint(self, found: Fitted, block: Block) -> Array:
        """log p(class, x) of new rows, (n, C)."""
        source = blocks(block, found.params.n_components, False)
        ready = found.problem.prepare(found.params)
        out = np.empty((block.n_rows, self.n_classes))
        for i in range(len(source)):
            part = source[i]
            out[part.rows] = found.problem.log_joint(ready, part)
        return out

    def fit(self, candidate: Candidate, show: Any = None, *, quick: bool = False) -> Fitted:
        """EM from a partition of each class's rows; `quick` stops early, for comparing candidates."""
        est, K = self.est, sum(candidate.counts)
        if candidate.prior_rows is None:
            self._check_rank(candidate)
        family = make_family(candidate.groups, self.summary, self.sizes, self.prior(candidate), est.smoothing)
        problem = MixtureProblem(family, self.class_prior)
        axis_aligned = family.gaussian is None or family.gaussian.axis_aligned
        classes = self.codes if self.table.label is None else None
        source = blocks(self.table, max(candidate.counts), axis_aligned, classes)
        with choose_executor(est.n_jobs, self.table.n_rows, max(candidate.counts)) as executor:
            resp = self._partition(candidate)
            start = from_responsibilities(family, self.summary, source, resp, candidate.mask, executor)
            if self.class_prior is not None:  # held from the first pass on: from others the objective would fall
                within = start.weights / start.weights.sum(axis=1, keepdims=True)
                start = replace(start, weights=self.class_prior[:, None] * within)
            found = run(
                problem,
                source,
                start,
                stop=Stop(max(est.tol, QUICK.tol), min(est.max_iter, QUICK.max_passes))
                if quick
                else Stop(est.tol, est.max_iter),
                executor=executor,
                observers=[] if show is None else [ShowProgress(show, est.max_iter)],
                propose=Squarem() if est.accelerate and self.n_classes < K else None,
            )
        return finish(problem, found)

    def _check_rank(self, candidate: Candidate) -> None:
        """Without a prior, a class on its own needs rows enough for a covariance."""
        rows = self.class_weights()
        few = np.flatnonzero(rows < 2)
        if len(few) and not candidate.across and len(self.summary.centre):
            raise ValueError(
                f"class {self.classes[few[0]]!r} has {rows[few[0]]:g} row(s), too few for a covariance by maximum "
                "likelihood; use prior='auto', or across_classes=True"
            )

    def _partition(self, candidate: Candidate) -> Array:
        """Responsibilities (n, K): the rows of each class split by k-means; rows without a label count for none."""
        resp = np.zeros((self.table.n_rows, sum(candidate.counts)))
        counted = True if self.table.weight is None else self.table.weight > 0
        start = 0
        for c, count in enumerate(candidate.counts):
            rows = np.flatnonzero((self.codes == c) & counted)
            rng = np.random.default_rng((self.seed, c, count))
            if count == 1 or len(rows) <= count:
                resp[rows, start + np.arange(len(rows)) % count] = 1.0
            else:
                some, label = cluster(self.table.take(rows), self.summary, self.sizes, count, self.est.init, rng)
                resp[rows[some], start + label] = 1.0
            start += count
        return resp
