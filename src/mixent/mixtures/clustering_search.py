"""The search of a plain mixture: every number of components with every covariance structure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from mixent.core.blocks import Block
from mixent.core.observers import Progress
from mixent.core.starts import Starts
from mixent.mixtures.candidates import PATIENCE, spread, traveling
from mixent.mixtures.clustering import plain_candidate, starts_of
from mixent.mixtures.fit_plan import Job
from mixent.mixtures.fitting import Fitted
from mixent.mixtures.growth import By, Stage, grow, passes_of
from mixent.mixtures.predict import entropy_of, log_density, responsibilities


@dataclass(frozen=True)
class Try:
    """One number of components with one structure, fitted."""

    found: Fitted
    starts: Starts | None  # where it was not grown
    record: dict
    stage: Stage | None  # where it was grown


def search(
    job: Job, counts: list[int], names: list[str], show: Progress | None
) -> tuple[Fitted, Starts | None, list[dict], list[Stage]]:
    """Every K with every structure: the best by the criterion, its starts, all records, and its path where grown."""
    ready = traveling(job)
    grown = job.search.grown
    tasks = [(ready, counts, n) for n in names] if grown else [(ready, [k], n) for k in counts for n in names]
    criterion = job.search.criterion
    results = spread(try_structure, tasks, job.est.n_jobs, show, partial(_progress_text, criterion))
    tried = [t for result in results for t in result]
    tries = [t for t in tried if t.record["n_components"] in counts]
    # a fit that broke off wins only among its like
    best = min(tries, key=lambda t: (t.found.run.status.failed, t.record[criterion]))
    records = [t.record | {"chosen": t is best} for t in tries]
    name = best.record["covariance"]
    path = [t.stage for t in tried if t.stage is not None and t.record["covariance"] == name]
    return best.found, best.starts, records, path


def _progress_text(criterion: str, tries: list[Try]) -> str:
    record = tries[-1].record
    return f"{record['covariance']} with {record['n_components']}: {criterion} {record[criterion]:.6g}"


def try_structure(task: tuple[Job, list[int], str]) -> list[Try]:
    """One structure with every number of components."""
    job, counts, name = task
    if job.search.grown:
        return list(_grown(job, counts, name))
    tries = []
    for k in counts:
        found, starts = job.fit(plain_candidate(job, k, name), starts=starts_of(job, k))
        record = _record(found, job, k, name) | {"evaluations": passes_of(starts) * job.table.n_rows * k}
        if job.search.criterion == "cv":
            record["cv"] = _held_out(job, k, name)
        tries.append(Try(found, starts, record, None))
    return tries


def _grown(job: Job, counts: list[int], name: str) -> Iterator[Try]:
    """Stage by stage; growth ends when the criterion has risen several times in a row."""
    criterion, best, poor = job.search.criterion, np.inf, 0
    held = _held_out_grown(job, name, counts[-1])
    for stage in grow(job, plain_candidate(job, 1, name), counts[-1], by=keep_by(job)):
        record = _record(stage.fitted, job, stage.n_components, name) | {"evaluations": stage.evaluations}
        if criterion == "cv":
            record["cv"] = next(held)
        yield Try(stage.fitted, None, record, stage)
        poor = 0 if record[criterion] < best else poor + 1
        best = min(best, record[criterion])
        if poor == PATIENCE and len(counts) > 1:
            return


def keep_by(job: Job) -> By:
    """How growth keeps one of its candidates."""
    criterion = job.search.criterion
    if job.search.grow_by == "likelihood":
        return "likelihood"
    return lambda found, candidate: _record(found, job, candidate.n_components, candidate.structures[0])[criterion]


def _record(found: Fitted, job: Job, n_components: int, name: str) -> dict:
    log_lik = found.run.objective - found.problem.family.log_prior(found.params.components)
    n_free, weight = found.problem.n_free(found.params), job.total_weight
    bic = -2 * log_lik + n_free * np.log(weight)
    entropy = entropy_of(responsibilities(found.problem, found.params, job.table, job.est.n_jobs))
    spread_out = entropy.sum() if job.table.weight is None else job.table.weight @ entropy
    return {
        "n_components": n_components,
        "covariance": name,
        "log_likelihood": float(log_lik),
        "n_free": n_free,
        "bic": float(bic),
        "icl": float(bic + 2 * spread_out),
        "aic": float(-2 * log_lik + 2 * n_free),
        "converged": found.run.status.ok,
    }


def _held_out(job: Job, n_components: int, name: str) -> float:
    """-2 x the log density of rows held out, all folds together."""
    total = 0.0
    for part, held in _folds(job):
        count = min(n_components, part.table.n_rows)
        found, _ = part.fit(plain_candidate(part, count, name), starts=starts_of(part, count))
        total += _log_density(found, held)
    return -2 * total


def _held_out_grown(job: Job, name: str, most: int) -> Iterator[float]:
    """The same for 1, 2, ... components, each fold growing alongside; one that has ended stays where it is."""
    folds = _folds(job)
    paths = [
        grow(part, plain_candidate(part, 1, name), min(most, part.table.n_rows), by=keep_by(part)) for part, _ in folds
    ]
    last = [next(path) for path in paths]
    while True:
        yield -2 * sum(_log_density(stage.fitted, held) for stage, (_, held) in zip(last, folds))
        last = [next(path, stage) for path, stage in zip(paths, last)]


def _log_density(found: Fitted, held: Block) -> float:
    density = log_density(found.problem, found.params, Block(held.X, held.codes), 1)
    return float(density.sum() if held.weight is None else density @ held.weight)


def _folds(job: Job) -> list[tuple[Job, Block]]:
    """For each fold the job of its training rows, whose fits are only compared, and the rows held out."""
    n, cv = job.table.n_rows, job.search.cv
    if isinstance(cv, (int, np.integer)):
        fold = np.random.default_rng((job.seed, 5)).permutation(n) % min(cv, n)
        splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(min(cv, n))]
    else:
        from sklearn.model_selection import check_cv  # takes long to import

        splits = list(check_cv(cv).split(np.arange(n)))
    parts = [(job.take(train), job.table.take(rows)) for train, rows in splits]
    for part, _ in parts:
        part.quick = True
    return parts
