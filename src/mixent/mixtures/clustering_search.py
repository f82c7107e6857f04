"""Search over numbers of components and covariance structures of a mixture without classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from mixent.core.blocks import Block
from mixent.core.observers import Progress
from mixent.core.starts import Starts
from mixent.mixtures.candidates import PATIENCE, map_tasks, worker_copy
from mixent.mixtures.clustering import plain_candidate
from mixent.mixtures.fit_plan import FitPlan
from mixent.mixtures.fitting import Fitted
from mixent.mixtures.growth import By, Stage, grow
from mixent.mixtures.predict import entropy_of, log_density, responsibilities


@dataclass(frozen=True)
class Trial:
    """A fit with a number of components and a structure."""

    fitted: Fitted
    starts: Starts | None  # None if it was grown
    record: dict
    stage: Stage | None  # None if it was not grown


def search(
    plan: FitPlan, counts: list[int], names: list[str], show: Progress | None
) -> tuple[Fitted, Starts | None, list[dict], list[Stage]]:
    """Return the best fit by the criterion, its starts, all records, and its path if it was grown."""
    copied = worker_copy(plan)
    grown = plan.search.grown
    tasks = [(copied, counts, n) for n in names] if grown else [(copied, [k], n) for k in counts for n in names]
    criterion = plan.search.criterion
    results = map_tasks(try_structure, tasks, plan.n_processes, show, partial(_progress_text, criterion))
    all_trials = [t for result in results for t in result]
    trials = [t for t in all_trials if t.record["n_components"] in counts]
    # a failed fit is selected only if all fits failed
    best = min(trials, key=lambda t: (t.fitted.run.status.failed, t.record[criterion]))
    records = [t.record | {"chosen": t is best} for t in trials]
    name = best.record["covariance"]
    path = [t.stage for t in all_trials if t.stage is not None and t.record["covariance"] == name]
    return best.fitted, best.starts, records, path


def _progress_text(criterion: str, trials: list[Trial]) -> str:
    record = trials[-1].record
    return f"{record['covariance']} with {record['n_components']}: {criterion} {record[criterion]:.6g}"


def try_structure(task: tuple[FitPlan, list[int], str]) -> list[Trial]:
    """Fit a structure with every number of components."""
    plan, counts, name = task
    if plan.search.grown:
        return list(_grown(plan, counts, name))
    trials = []
    for k in counts:
        candidate = plain_candidate(plan, k, name)
        fitted, starts = plan.fit(candidate, starts=plan.parts(candidate, plan.est.n_init))
        record = _record(fitted, plan, k, name) | {"evaluations": starts.n_passes * plan.table.n_rows * k}
        if plan.search.criterion == "cv":
            record["cv"] = _held_out(plan, k, name)
        trials.append(Trial(fitted, starts, record, None))
    return trials


def _grown(plan: FitPlan, counts: list[int], name: str) -> Iterator[Trial]:
    """Yield the stages of growth, which ends when the criterion has not improved several times in a row."""
    criterion, best, poor = plan.search.criterion, np.inf, 0
    held = _held_out_grown(plan, name, counts[-1])
    for stage in grow(plan, plain_candidate(plan, 1, name), counts[-1], by=growth_rule(plan)):
        record = _record(stage.fitted, plan, stage.n_components, name) | {"evaluations": stage.evaluations}
        if criterion == "cv":
            record["cv"] = next(held)
        yield Trial(stage.fitted, None, record, stage)
        poor = 0 if record[criterion] < best else poor + 1
        best = min(best, record[criterion])
        if poor == PATIENCE and len(counts) > 1:
            return


def growth_rule(plan: FitPlan) -> By:
    """Return the rule by which growth selects one of its candidates."""
    criterion = plan.search.criterion
    if plan.search.grow_by == "likelihood":
        return "likelihood"
    return lambda fitted, candidate: _record(fitted, plan, candidate.n_components, candidate.structures[0])[criterion]


def _record(fitted: Fitted, plan: FitPlan, n_components: int, name: str) -> dict:
    log_lik = fitted.run.objective - fitted.problem.family.log_prior(fitted.params.components)
    n_free, weight = fitted.problem.n_free(fitted.params), plan.total_weight
    bic = -2 * log_lik + n_free * np.log(weight)
    entropy = entropy_of(responsibilities(fitted.problem, fitted.params, plan.table, plan.est.n_jobs))
    total_entropy = entropy.sum() if plan.table.weight is None else plan.table.weight @ entropy
    return {
        "n_components": n_components,
        "covariance": name,
        "log_likelihood": float(log_lik),
        "n_free": n_free,
        "bic": float(bic),
        "icl": float(bic + 2 * total_entropy),
        "aic": float(-2 * log_lik + 2 * n_free),
        "converged": fitted.run.status.ok,
    }


def _held_out(plan: FitPlan, n_components: int, name: str) -> float:
    """Return -2 times the log density of the held-out rows of all folds."""
    total = 0.0
    for part, held in _folds(plan):
        count = min(n_components, part.table.n_rows)
        candidate = plain_candidate(part, count, name)
        fitted, _ = part.fit(candidate, starts=part.parts(candidate, part.est.n_init))
        total += _log_density(fitted, held)
    return -2 * total


def _held_out_grown(plan: FitPlan, name: str, max_components: int) -> Iterator[float]:
    """Yield the same for 1, 2, ... components, grown in each fold; a fold whose growth has ended does not change."""
    folds = _folds(plan)
    paths = [
        grow(part, plain_candidate(part, 1, name), min(max_components, part.table.n_rows), by=growth_rule(part))
        for part, _ in folds
    ]
    last = [next(path) for path in paths]
    while True:
        yield -2 * sum(_log_density(stage.fitted, held) for stage, (_, held) in zip(last, folds))
        last = [next(path, stage) for path, stage in zip(paths, last)]


def _log_density(fitted: Fitted, held: Block) -> float:
    density = log_density(fitted.problem, fitted.params, Block(held.X, held.codes), 1)
    return float(density.sum() if held.weight is None else density @ held.weight)


def _folds(plan: FitPlan) -> list[tuple[FitPlan, Block]]:
    """Return for each fold the plan of its training rows, with quick fits, and its held-out rows."""
    n, cv = plan.table.n_rows, plan.search.cv
    if isinstance(cv, (int, np.integer)):
        fold = np.random.default_rng((plan.seed, 5)).permutation(n) % min(cv, n)
        splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(min(cv, n))]
    else:
        from sklearn.model_selection import check_cv  # takes long to import

        splits = list(check_cv(cv).split(np.arange(n)))
    parts = [(plan.take(train), plan.table.take(rows)) for train, rows in splits]
    for part, _ in parts:
        part.quick = True
    return parts
