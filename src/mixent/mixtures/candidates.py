"""Candidates of a search: fitted mixtures with several numbers of components and structures, and their criteria.

A classifier consists of *units*: the mixture of each class, or the mixture that all classes share. Each unit has
*options*: fitted stages, grown or restarted. A *combination* has one option of each unit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mixent.base.bounded_loss import fit_temperature
from mixent.core.arrays import Array, log_sum_exp, safe_log
from mixent.core.blocks import Block
from mixent.core.executors import available_threads
from mixent.core.observers import Progress
from mixent.mixtures.criteria import class_criteria, conditional_bic
from mixent.mixtures.fit_plan import Candidate, FitPlan
from mixent.mixtures.fitting import Fitted
from mixent.mixtures.growth import By, Stage, grow, restart
from mixent.mixtures.predict import each_row
from mixent.mixtures.search import ROWS_PER_COMPONENT
from mixent.mixtures.training import shared_starts, train, training_plan

COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # numbers of components tried by restarts
PATIENCE = 2  # stages in a row without improvement of the criterion
SERIAL = 4.0  # seconds of remaining work from which several processes are used; they take about two to start

Key = tuple[str, int]  # structure, number of components
Combination = tuple[Key, ...]  # one key per unit


@dataclass(frozen=True)
class Unit:
    """Classes whose densities are selected together."""

    classes: tuple[int, ...]
    shared: bool

    def plan(self, plan: FitPlan) -> FitPlan:
        if self.shared:
            return plan
        c = self.classes[0]
        if plan.class_rows()[c] == 0:
            raise ValueError(
                f"class {plan.classes.tolist()[c]!r} has no rows to fit its mixture to; it needs rows with weight > 0, "
                "also in the training part of every fold"
            )
        return plan.of_class(c)

    def first(self, plan: FitPlan, name: str) -> Candidate:
        return Candidate((1,), (name,), False, plan.default_rows(), shared=self.shared)


@dataclass(frozen=True)
class Option:
    """A fitted stage and its criteria."""

    stage: Stage
    criteria: dict[str, float]
    density: Array | None  # (n, m) log p(x | class) of the labelled training rows, for criteria of all classes together
    held: Array | None  # (n', m) the same of held-out rows
    log_prior: Array | None  # (m,) the corresponding log p(class)

    @property
    def key(self) -> Key:
        return self.stage.covariance, self.stage.n_components


@dataclass(frozen=True)
class HeldOut:
    """Held-out rows and their label likelihoods."""

    table: Block
    target: Array  # (n', C) label likelihoods
    weight: Array  # (n',)

    @classmethod
    def of(cls, plan: FitPlan, rows: np.ndarray) -> HeldOut:
        table = replace(plan.table.take(rows), rows=None, label=None, weight=None)
        return cls(table, plan.target_shares()[rows], plan.table.row_weights[rows])


@dataclass(frozen=True)
class Task:
    """The fits of one unit with one structure."""

    plan: FitPlan
    unit: Unit
    name: str
    held: HeldOut | None


class Options:
    """All options of a set of training rows, by unit and key."""

    def __init__(self, plan: FitPlan, units: Sequence[Unit], by_unit: list[dict[Key, Option]]) -> None:
        self.plan, self.units, self.by_unit = plan, units, by_unit

    def get(self, unit: int, key: Key) -> Option:
        """Return the option of this key, or that with the next smaller (or smallest) number of components."""
        options = self.by_unit[unit]
        if key in options:
            return options[key]
        name, count = key
        counts = [k for n, k in options if n == name]
        return options[name, max([k for k in counts if k <= count], default=min(counts))]

    def take(self, combination: Combination) -> list[Option]:
        return [self.get(u, key) for u, key in enumerate(combination)]

    @cached_property
    def labels(self) -> tuple[np.ndarray, Array]:
        """Class and weight of the labelled rows."""
        rows = labelled(self.plan)
        return self.plan.codes[rows], self.plan.table.row_weights[rows]

    def criterion(self, name: str, combination: Combination) -> float:
        selected = self.take(combination)
        if name != "cbic":
            return sum(option.criteria[name] for option in selected)
        density = np.concatenate([option.density for option in selected if option.density is not None], axis=1)
        n_free = sum(option.stage.n_free for option in selected)
        return conditional_bic(density, *self.labels, n_free)


def labelled(plan: FitPlan) -> np.ndarray:
    return np.flatnonzero(plan.codes >= 0)


def class_shares(plan: FitPlan) -> Array:
    """Return the class frequencies of the labelled rows, (C,), all positive."""
    rows = plan.class_weights() + 1e-3
    return rows / rows.sum()


# --- fits ------------------------------------------------------------------------------------------------------------


class ClassCriteria:
    """Criteria of a mixture of some classes, computed from the labelled rows of a plan."""

    def __init__(self, plan: FitPlan, unit: Unit) -> None:
        self.plan, self.unit = plan, unit
        rows = labelled(plan)
        self.codes, self.weight = plan.codes[rows], plan.table.row_weights[rows]
        self.table = replace(plan.table.take(rows), rows=None, label=None)

    def __call__(self, fitted: Fitted) -> tuple[dict[str, float], Array]:
        """Return the criteria, and log p(x | class) of all rows, (n, m)."""
        est, classes, weights = self.plan.est, self.unit.classes, fitted.params.weights
        log_f = log_components(fitted, self.table, est.n_jobs)
        density = class_densities(log_f, weights)
        inside = np.isin(self.codes, classes)
        position = np.searchsorted(classes, self.codes[inside])
        entropy = float(_entropy(log_f[inside], weights[position]) @ self.weight[inside])
        n_free = fitted.problem.n_free(fitted.params)
        values = class_criteria(
            density, classes, self.codes, self.weight, n_free, entropy, self.plan.search.dic_weight, self.plan.n_classes
        )
        return values, density


def growth_rule(plan: FitPlan, criteria: ClassCriteria) -> By:
    """Return the rule by which growth selects one of its candidates."""
    if plan.search.grow_by == "likelihood":
        return "likelihood"
    return lambda fitted, candidate: criteria(fitted)[0][plan.search.criterion]


def fit_options(task: Task) -> list[Option]:
    """Fit a unit with one structure and increasing numbers of components, until the criterion stops improving."""
    plan, unit = task.plan, task.unit
    unit_plan, criteria = unit.plan(plan), ClassCriteria(plan, unit)
    limit = limit_of(unit_plan, plan.search.max_components)
    options: list[Option] = []
    best, poor = np.inf, 0
    for stage in stages_of(unit_plan, unit.first(unit_plan, task.name), limit, criteria):
        values, density = criteria(stage.fitted)
        held = (None, None) if task.held is None else _held_out(task, stage)
        option = Option(stage, values, density if plan.search.criterion == "cbic" else None, *held)
        options.append(option)
        value = _stopping_value(task, option)
        if value is not None:
            poor = 0 if value < best else poor + 1
            best = min(best, value)
            if poor == PATIENCE:
                break
    return options


def _held_out(task: Task, stage: Stage) -> tuple[Array, Array]:
    """Return log p(x | class), (n', m), of the held-out rows and log p(class), (m,); shared components are trained."""
    assert task.held is not None
    plan, unit, fitted = task.plan, task.unit, stage.fitted
    log_prior = np.log(class_shares(plan))[list(unit.classes)]
    training = training_plan(plan.est._group("training")) if unit.shared and plan.search.criterion == "cv" else None
    if training is not None:
        candidate = replace(unit.first(plan, task.name), counts=(stage.n_components,))
        fitted = train(plan, shared_starts(plan, candidate, fitted), training)
        log_prior = np.log(fitted.params.weights.sum(axis=1))  # training changes the class priors, too
    return class_densities(log_components(fitted, task.held.table, 1), fitted.params.weights), log_prior


def _stopping_value(task: Task, option: Option) -> float | None:
    """Return the value (lower is better) that decides whether more components are tried.

    None if this cannot be decided for a single unit.
    """
    plan, criterion = task.plan, task.plan.search.criterion
    if criterion in option.criteria:
        return option.criteria[criterion] if plan.search.grown else None
    if (
        criterion != "cv"
        or not task.unit.shared
        or option.held is None
        or option.log_prior is None
        or task.held is None
    ):
        return None
    if option.stage.n_components < plan.n_classes:  # too few to separate the classes
        return None
    prior = np.tile(option.log_prior, (len(option.held), 1))
    return float(fit_temperature(option.held, prior, task.held.target, task.held.weight)[1])


def stages_of(plan: FitPlan, first: Candidate, limit: int, criteria: ClassCriteria) -> Iterator[Stage]:
    if plan.search.grown:
        yield from grow(plan, first, limit, by=growth_rule(plan, criteria))
        return
    n_init = plan.est.n_init if first.shared else 1
    for k in shared_counts(plan) if first.shared else [k for k in COUNTS if k <= limit]:
        yield from restart(plan, replace(first, counts=(k,)), k, n_init)


def shared_counts(plan: FitPlan) -> list[int]:
    """Return the numbers of shared components to try; one cannot discriminate between classes."""
    limit = limit_of(plan, plan.search.max_components)
    smallest = min(2, limit) if plan.n_classes > 1 else 1
    return [k for k in COUNTS if smallest <= k <= limit]


def limit_of(plan: FitPlan, max_components: int) -> int:
    rows = int(plan.class_rows().sum())
    return int(np.clip(rows // ROWS_PER_COMPONENT, 1, max_components))


def log_components(fitted: Fitted, table: Block, n_jobs: int | None) -> Array:
    """Return log f_k(x_n), (n, K)."""
    problem, params = fitted.problem, fitted.params
    return each_row(
        problem, params, table, lambda ready, block: problem.log_components(ready, block).T, params.width, n_jobs
    )


def class_densities(log_f: Array, weights: Array) -> Array:
    """Return log p(x | class), (n, C), from log f (n, K) and joint weights (C, K)."""
    within = safe_log(weights / weights.sum(axis=1, keepdims=True))
    return np.stack([log_sum_exp(log_f + row, axis=1) for row in within], axis=1)


def _entropy(log_f: Array, weights: Array) -> Array:
    """Return the entropy of the responsibilities, (n,), for weights (n, K) of the class of each row."""
    joint = log_f + safe_log(weights)
    log_resp = joint - log_sum_exp(joint, axis=1)[:, None]
    resp = np.exp(log_resp)
    return -np.where(resp > 0, resp * log_resp, 0.0).sum(axis=1)


def map_tasks(
    function: Callable, tasks: Sequence, n_jobs: int | None, show: Progress | None, describe: Callable[[Any], str]
) -> list:
    """Return the results in the order of the tasks, computed by several processes if they are expected to take long."""
    n_workers = available_threads() if n_jobs in (None, -1) else int(n_jobs or 1)
    results: list = []

    def add(result: Any) -> None:
        results.append(result)
        if show is not None:
            show(len(results), len(tasks), describe(result))

    start = time.perf_counter()

    def expected() -> float:
        return (time.perf_counter() - start) / max(len(results), 1) * (len(tasks) - len(results))

    while len(results) < len(tasks) and (n_workers == 1 or expected() < SERIAL):
        add(function(tasks[len(results)]))
    rest = tasks[len(results) :]
    if len(rest) == 1:
        add(function(rest[0]))
    elif rest:
        from joblib import Parallel, delayed  # imported only if it is used

        for result in Parallel(n_jobs=n_workers, return_as="generator")(delayed(function)(task) for task in rest):
            add(result)
    return results


def _describe(options: list[Option]) -> str:
    stage = options[-1].stage
    return f"{stage.covariance}, up to {stage.n_components} components"


def worker_copy(plan: FitPlan, quick: bool = False) -> FitPlan:
    """Return a copy for another process: with one thread, no progress bar, and its summaries computed."""
    other = copy(plan)
    other.est = copy(plan.est)
    other.est.n_jobs, other.est.progress = 1, False
    other.quick = quick
    other.summary, other.target  # noqa: B018  (computed here, once)
    return other


def options_of(
    plans: Sequence[tuple[FitPlan, np.ndarray | None]],
    full_plan: FitPlan,
    units: Sequence[Unit],
    names: Sequence[str],
    show: Progress | None,
) -> list[Options]:
    """Return the options of several sets of training rows, each with its held-out rows of `full_plan`."""
    copies = [
        (worker_copy(plan, rows is not None), None if rows is None else HeldOut.of(full_plan, rows))
        for plan, rows in plans
    ]
    tasks = [Task(plan, unit, name, held) for plan, held in copies for unit in units for name in names]
    results = iter(map_tasks(fit_options, tasks, full_plan.n_processes, show, _describe))
    out = []
    for plan, _ in plans:
        by_unit = []
        for _ in units:
            options: dict[Key, Option] = {}
            for _ in names:
                options |= {option.key: option for option in next(results)}
            by_unit.append(options)
        out.append(Options(plan, units, by_unit))
    return out
