"""What there is to choose from: fitted mixtures of several sizes and structures, and their criteria.

A classifier consists of *units* chosen on their own: the mixture of each class, or the one mixture all classes share.
Each unit has *options*: fitted stages, grown or restarted. A *combination* takes one option of each unit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mixent.base.temperature import fit_temperature
from mixent.core.arrays import Array, log_sum_exp, safe_log
from mixent.core.blocks import Block
from mixent.core.executors import available_threads
from mixent.core.observers import Progress
from mixent.mixtures.criteria import class_criteria, conditional_bic
from mixent.mixtures.fit_plan import Candidate, Job
from mixent.mixtures.fitting import Fitted
from mixent.mixtures.growth import By, Stage, grow, restart
from mixent.mixtures.predict import each_row
from mixent.mixtures.search import ROWS_PER_COMPONENT
from mixent.mixtures.training import read_plan, shared_starts, train

LADDER = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # numbers of components tried by restarts
PATIENCE = 2  # stages in a row that may fail to improve what is chosen by
SERIAL = 4.0  # seconds of work that remains from which it is shared among processes: they take about two to start

Key = tuple[str, int]  # structure, components
Combination = tuple[Key, ...]  # one key per unit


@dataclass(frozen=True)
class Unit:
    """Classes whose densities are chosen together."""

    classes: tuple[int, ...]
    shared: bool

    def job(self, job: Job) -> Job:
        if self.shared:
            return job
        c = self.classes[0]
        if job.class_rows()[c] == 0:
            raise ValueError(
                f"class {job.classes.tolist()[c]!r} has no rows to fit its mixture to; give it some of weight > 0, "
                "also in the training part of every fold"
            )
        return job.of_class(c)

    def first(self, job: Job, name: str) -> Candidate:
        return Candidate((1,), (name,), False, job.default_rows(), local=self.shared, shared=self.shared)


@dataclass(frozen=True)
class Option:
    """A fitted stage and its criteria."""

    stage: Stage
    criteria: dict[str, float]
    density: Array | None  # (n, m) log p(x | class) of the labelled training rows, where a joint criterion needs it
    held: Array | None  # (n', m) the same of rows held out
    log_prior: Array | None  # (m,) log p(class) that goes with it

    @property
    def key(self) -> Key:
        return self.stage.covariance, self.stage.n_components


@dataclass(frozen=True)
class HeldOut:
    """Rows held out, and what is known of their classes."""

    table: Block
    target: Array  # (n', C) label likelihoods
    weight: Array  # (n',)

    @classmethod
    def of(cls, job: Job, rows: np.ndarray) -> HeldOut:
        table = replace(job.table.take(rows), rows=None, label=None, weight=None)
        return cls(table, job.target_shares()[rows], job.table.row_weights[rows])


@dataclass(frozen=True)
class Task:
    """Options of one unit and one structure."""

    job: Job
    unit: Unit
    name: str
    held: HeldOut | None


class Options:
    """All options of one set of training rows, by unit and key."""

    def __init__(self, job: Job, units: Sequence[Unit], by_unit: list[dict[Key, Option]]) -> None:
        self.job, self.units, self.by_unit = job, units, by_unit

    def get(self, unit: int, key: Key) -> Option:
        """The option of this key; where a unit has none of so many components, its next smaller (or smallest)."""
        options = self.by_unit[unit]
        if key in options:
            return options[key]
        name, count = key
        counts = [k for n, k in options if n == name]
        return options[name, max([k for k in counts if k <= count], default=min(counts))]

    def take(self, combination: Combination) -> list[Option]:
        return [self.get(u, key) for u, key in enumerate(combination)]

    @cached_property
    def judged(self) -> tuple[np.ndarray, Array]:
        """Class and weight of the labelled rows."""
        rows = labelled(self.job)
        return self.job.codes[rows], self.job.table.row_weights[rows]

    def criterion(self, name: str, combination: Combination) -> float:
        taken = self.take(combination)
        if name != "cbic":
            return sum(option.criteria[name] for option in taken)
        density = np.concatenate([option.density for option in taken if option.density is not None], axis=1)
        n_free = sum(option.stage.n_free for option in taken)
        return conditional_bic(density, *self.judged, n_free)


def labelled(job: Job) -> np.ndarray:
    return np.flatnonzero(job.codes >= 0)


def class_shares(job: Job) -> Array:
    """(C,) of the labelled rows, none zero."""
    rows = job.class_weights() + 1e-3
    return rows / rows.sum()


# --- exploring -------------------------------------------------------------------------------------------------------


class Judge:
    """Criteria of a mixture of some classes, from the labelled rows of a job."""

    def __init__(self, job: Job, unit: Unit) -> None:
        self.job, self.unit = job, unit
        rows = labelled(job)
        self.codes, self.weight = job.codes[rows], job.table.row_weights[rows]
        self.table = replace(job.table.take(rows), rows=None, label=None)

    def __call__(self, fitted: Fitted) -> tuple[dict[str, float], Array]:
        """Criteria, and log p(x | class) of all rows (n, m)."""
        est, classes, weights = self.job.est, self.unit.classes, fitted.params.weights
        log_f = log_components(fitted, self.table, est.n_jobs)
        density = class_densities(log_f, weights)
        mine = np.isin(self.codes, classes)
        place = np.searchsorted(classes, self.codes[mine])
        entropy = float(_entropy(log_f[mine], weights[place]) @ self.weight[mine])
        n_free = fitted.problem.n_free(fitted.params)
        values = class_criteria(
            density, classes, self.codes, self.weight, n_free, entropy, self.job.search.dic_weight, self.job.n_classes
        )
        return values, density


def by_criterion(job: Job, judge: Judge) -> By:
    """How growth keeps one of its candidates."""
    if job.search.grow_by == "likelihood":
        return "likelihood"
    return lambda found, candidate: judge(found)[0][job.search.criterion]


def explore(task: Task) -> list[Option]:
    """Fit one unit with one structure in all its sizes, until larger ones do no better."""
    job, unit = task.job, task.unit
    own, judge = unit.job(job), Judge(job, unit)
    options: list[Option] = []
    best, poor = np.inf, 0
    for stage in stages_of(own, unit.first(own, task.name), limit_of(own, job.search.max_components), judge):
        values, density = judge(stage.fitted)
        held = (None, None) if task.held is None else _held_out(task, stage)
        option = Option(stage, values, density if job.search.criterion == "cbic" else None, *held)
        options.append(option)
        value = _worth(task, option)
        if value is not None:
            poor = 0 if value < best else poor + 1
            best = min(best, value)
            if poor == PATIENCE:
                break
    return options


def _held_out(task: Task, stage: Stage) -> tuple[Array, Array]:
    """Of the rows held out log p(x | class) (n', m), and log p(class) (m,); shared components as trained."""
    assert task.held is not None
    job, unit, fitted = task.job, task.unit, stage.fitted
    log_prior = np.log(class_shares(job))[list(unit.classes)]
    training = read_plan(job.est._group("training")) if unit.shared and job.search.criterion == "cv" else None
    if training is not None:
        candidate = replace(unit.first(job, task.name), counts=(stage.n_components,))
        fitted = train(job, shared_starts(job, candidate, fitted), training)
        log_prior = np.log(fitted.params.weights.sum(axis=1))  # training moves the class priors too
    return class_densities(log_components(fitted, task.held.table, 1), fitted.params.weights), log_prior


def _worth(task: Task, option: Option) -> float | None:
    """What decides whether larger ones are tried; lower is better. None where that cannot be decided for one unit."""
    job, criterion = task.job, task.job.search.criterion
    if criterion in option.criteria:
        return option.criteria[criterion] if job.search.grown else None
    if (
        criterion != "cv"
        or not task.unit.shared
        or option.held is None
        or option.log_prior is None
        or task.held is None
    ):
        return None
    if option.stage.n_components < job.n_classes:  # too few to separate the classes
        return None
    prior = np.tile(option.log_prior, (len(option.held), 1))
    return fit_temperature(option.held, prior, task.held.target, task.held.weight)[1]


def stages_of(job: Job, first: Candidate, limit: int, judge: Judge) -> Iterator[Stage]:
    if job.search.grown:
        yield from grow(job, first, limit, by=by_criterion(job, judge))
        return
    n_init = job.est.n_init if first.shared else 1
    least = min(2, limit) if first.shared and job.n_classes > 1 else 1  # one for all: all classes are alike
    for k in LADDER:
        if least <= k <= limit:
            yield from restart(job, replace(first, counts=(k,)), k, n_init)


def limit_of(job: Job, most: int) -> int:
    rows = int(job.class_rows().sum())
    return int(np.clip(rows // ROWS_PER_COMPONENT, 1, most))


def log_components(fitted: Fitted, table: Block, n_jobs: int | None) -> Array:
    """log f_k(x_n), (n, K)."""
    problem, params = fitted.problem, fitted.params
    return each_row(
        problem, params, table, lambda ready, block: problem.log_components(ready, block).T, params.n_components, n_jobs
    )


def class_densities(log_f: Array, weights: Array) -> Array:
    """(n, C): log p(x | class) from log f (n, K) and joint weights (C, K)."""
    within = safe_log(weights / weights.sum(axis=1, keepdims=True))
    return np.stack([log_sum_exp(log_f + row, axis=1) for row in within], axis=1)


def _entropy(log_f: Array, weights: Array) -> Array:
    """(n,) entropy of the responsibilities, weights (n, K) those of each row's own class."""
    joint = log_f + safe_log(weights)
    log_resp = joint - log_sum_exp(joint, axis=1)[:, None]
    resp = np.exp(log_resp)
    return -np.where(resp > 0, resp * log_resp, 0.0).sum(axis=1)


def spread(
    function: Callable, tasks: Sequence, n_jobs: int | None, show: Progress | None, describe: Callable[[Any], str]
) -> list:
    """Results in the order of the tasks; when the rest looks long, it goes to several processes."""
    n_workers = available_threads() if n_jobs in (None, -1) else int(n_jobs or 1)
    results: list = []

    def take(result: Any) -> None:
        results.append(result)
        if show is not None:
            show(len(results), len(tasks), describe(result))

    began = time.perf_counter()

    def expected() -> float:
        return (time.perf_counter() - began) / max(len(results), 1) * (len(tasks) - len(results))

    while len(results) < len(tasks) and (n_workers == 1 or expected() < SERIAL):
        take(function(tasks[len(results)]))
    rest = tasks[len(results) :]
    if len(rest) == 1:
        take(function(rest[0]))
    elif rest:
        from joblib import Parallel, delayed  # only where there is much to do

        for result in Parallel(n_jobs=n_workers, return_as="generator")(delayed(function)(task) for task in rest):
            take(result)
    return results


def _describe(options: list[Option]) -> str:
    stage = options[-1].stage
    return f"{stage.covariance}, up to {stage.n_components} components"


def traveling(job: Job, quick: bool = False) -> Job:
    """The job as it goes to another process: one thread, no progress bar; its summaries are made and go along."""
    other = copy(job)
    other.est = copy(job.est)
    other.est.n_jobs, other.est.progress = 1, False
    other.quick = quick
    other.summary, other.target  # noqa: B018  (made here, once)
    return other


def options_of(
    jobs: Sequence[tuple[Job, np.ndarray | None]],
    whole: Job,
    units: Sequence[Unit],
    names: Sequence[str],
    show: Progress | None,
) -> list[Options]:
    """Options of several sets of training rows, each with the rows of `whole` held out from it."""
    ready = [
        (traveling(job, rows is not None), None if rows is None else HeldOut.of(whole, rows)) for job, rows in jobs
    ]
    tasks = [Task(job, unit, name, held) for job, held in ready for unit in units for name in names]
    results = iter(spread(explore, tasks, whole.est.n_jobs, show, _describe))
    out = []
    for job, _ in jobs:
        by_unit = []
        for _ in units:
            found: dict[Key, Option] = {}
            for _ in names:
                found |= {option.key: option for option in next(results)}
            by_unit.append(found)
        out.append(Options(job, units, by_unit))
    return out
