"""Choose components, structure and prior of a classifier together, by cross-validated log-loss.

Held-out log-loss is what the user of the probabilities pays, and unlike BIC it sees the classes. Each candidate is
scored after its best temperature: densities fitted to few rows are over-confident by a factor that the held-out rows
reveal, and the ranking should not depend on what the temperature will mend anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from mixent.base.folds import Fold, label_folds
from mixent.base.temperature import fit_temperature, row_losses
from mixent.core.arrays import Array
from mixent.core.blocks import Block
from mixent.core.observers import Progress
from mixent.mixtures.fit_plan import Candidate, Job
from mixent.mixtures.predict import each_row

ENOUGH = 60  # labelled rows below which cross-validation is mostly noise
SECOND = 10  # rows the second largest class must have
STRENGTHS = (0.2, 1.0, 5.0, 25.0)  # pseudo-rows of the prior, in units of (columns + 2)
ROWS_PER_COMPONENT = 5
LEVEL = 0.5  # standard errors within which candidates count as equally good
NOISES = (0.03, 0.1)  # shares of each column's variance put on every training row
BETTER = 0.002  # nats by which a larger model must win
HELD_OUT = 2000  # rows enough to score a candidate on

SURE = 100  # held-out rows from which one fold shows that a candidate is far behind


def search(
    job: Job, structures: list[str] | None, max_components: int, cv: Any, show: Progress | None
) -> tuple[Candidate, list[dict], float]:
    """The best candidate, the table of all, and the temperature."""
    folds = make_folds(job, cv)
    if folds is None:
        return default(job, structures), [], 1.0
    scores = _Scores(job, folds, show)
    names = structures or ["VVV", "VVI"]
    tied = [] if structures or job.est.across_classes else ["EEE", "EEI"]
    if not len(job.summary.center):  # only categories: covariances do not matter
        names, tied = names[:1], []
    for candidate in _single(job, names, tied):
        scores.add(candidate)
    poor = 0
    for count in (2, 3, 4, 6, 8, 12, 16, 24, 32):
        if count > max_components or poor == 2:
            break
        before = scores.best_loss
        for candidate in _several(job, names, tied, count, scores):
            scores.add(candidate)
        poor = 0 if scores.best_loss < before - BETTER else poor + 1
    return scores.result()


def default(job: Job, structures: list[str] | None) -> Candidate:
    """One well-shrunk Gaussian per class: what few rows allow."""
    rows = job.default_rows()
    if rows is not None and job.prior_options.automatic:
        rows = 5.0 * rows
    name = (structures or ["VVV"])[0]
    return _candidate(job, 1, name, bool(job.est.across_classes), rows)


def _candidate(job: Job, count: int, name: str, across: bool, rows: float | None) -> Candidate:
    """No class gets more components than its rows can carry."""
    counts = np.minimum(count, np.maximum(1, job.class_rows() // ROWS_PER_COMPONENT))
    return Candidate(tuple(counts.tolist()), (name,) * job.n_classes, across, rows)


def _strengths(job: Job) -> list[float | None]:
    if job.prior_options.automatic and len(job.summary.center):
        return [s * (len(job.summary.center) + 2) for s in STRENGTHS]
    return [job.default_rows()]


def _single(job: Job, names: list[str], tied: list[str]) -> Iterator[Candidate]:
    across = bool(job.est.across_classes)
    for name in names:
        for rows in _strengths(job):
            yield _candidate(job, 1, name, across, rows)
    for name in tied:
        yield _candidate(job, 1, name, True, job.default_rows())


def _several(job: Job, names: list[str], tied: list[str], count: int, scores: _Scores) -> Iterator[Candidate]:
    """For each structure, the prior that served it best so far and its neighbors."""
    strengths = _strengths(job)
    for name in names:
        best = strengths.index(scores.best_rows(name, strengths))
        for rows in strengths[max(0, best - 1) : best + 2]:
            yield _candidate(job, count, name, bool(job.est.across_classes), rows)
        if len(job.summary.center):
            one = _candidate(job, count, name, bool(job.est.across_classes), strengths[best])
            yield replace(one, local=True)
            for noise in NOISES if len(strengths) > 1 else ():
                yield replace(one, prior_rows=strengths[0], local=True, noise=noise)
    for name in tied:
        yield _candidate(job, count, name, True, job.default_rows())


def _settings(candidate: Candidate) -> dict[str, Any]:
    """The settings of a candidate, for the table of a search."""
    return {
        "n_components": list(candidate.counts),
        "covariance": candidate.structures[0],
        "across_classes": candidate.across,
        "prior_rows": candidate.prior_rows,
        "prior_local": candidate.local,
        "noise": candidate.noise,
    }


class _Scores:
    """Held-out log-loss of every candidate tried."""

    def __init__(self, job: Job, folds: list[Fold], show: Progress | None) -> None:
        self.job, self.show = job, show
        self.parts = [(job.take(train).with_learned_priors(), held) for train, held in folds]
        self.target = job.target_shares()
        self.weight = job.table.row_weights
        self.records: list[dict] = []
        self.tried: set[Candidate] = set()
        self.best_first = np.inf  # lowest loss on the first fold

    @property
    def best_loss(self) -> float:
        return min((r["log_loss"] for r in self.records if r["folds"] == len(self.parts)), default=np.inf)

    def best_rows(self, name: str, strengths: list) -> Any:
        same = [r for r in self.records if r["covariance"] == name and r["prior_rows"] in strengths]
        return min(same, key=lambda r: r["log_loss"])["prior_rows"]

    def add(self, candidate: Candidate) -> None:
        """Score on all folds; a candidate far behind on the first is dropped there."""
        if candidate in self.tried:
            return
        self.tried.add(candidate)
        densities: list[Array] = []
        priors: list[Array] = []
        for part, held in self.parts:
            density, prior = self._held_out(part, held, candidate)
            densities.append(density)
            priors.append(prior)
            rows = np.concatenate([held for _, held in self.parts[: len(densities)]])
            density, prior = np.concatenate(densities), np.concatenate(priors)
            temperature, loss, raw = fit_temperature(density, prior, self.target[rows], self.weight[rows])
            if len(densities) == 1:
                behind = len(held) >= SURE and loss > 1.3 * self.best_first + BETTER
                self.best_first = min(self.best_first, loss)
                if behind:
                    break
        wrong = (prior + temperature * density).argmax(axis=1) != self.target[rows].argmax(axis=1)
        scores = {
            "log_loss": loss,
            "log_loss_raw": raw,
            "error": float(np.average(wrong, weights=self.weight[rows])),
            "temperature": temperature,
            "folds": len(densities),
            "row_losses": row_losses(density, prior, temperature, self.target[rows]),
        }
        self.records.append({**_settings(candidate), **scores, "candidate": candidate})
        if self.show is not None:
            what = f"{candidate.structures[0]} with {max(candidate.counts)}: log-loss {loss:.4f}"
            self.show(len(self.records), max(40, len(self.records)), what)

    def _held_out(self, part: Job, held: np.ndarray, candidate: Candidate) -> tuple[Array, Array]:
        """log p(x | class) and log p(class), (n, C), of the held-out rows."""
        found, _ = part.fit(candidate, quick=True)
        table = self.job.table.take(held)
        block = Block(table.X, table.codes)
        log_joint = found.problem.log_joint
        joint = each_row(found.problem, found.params, block, log_joint, self.job.n_classes, self.job.est.n_jobs)
        prior = np.tile(np.log(found.params.weights.sum(axis=1)), (len(held), 1))
        return joint - prior, prior

    def result(self) -> tuple[Candidate, list[dict], float]:
        """The candidate with the fewest components that is not worse than the best by more than half a standard error.

        The best of forty is best partly by luck; on the same rows, a simpler one within noise of it predicts better.
        Candidates dropped after the first fold stand last in the table.
        """
        ranked = sorted(self.records, key=lambda r: (r["folds"] < len(self.parts), r["log_loss"]))
        level = [r for r in ranked if r["folds"] == ranked[0]["folds"] and self._level(r, ranked[0])]
        chosen = min(level, key=lambda r: (sum(r["n_components"]), r["log_loss"]))
        table = [{k: v for k, v in r.items() if k not in ("candidate", "row_losses")} for r in ranked]
        for record, line in zip(ranked, table):
            line["chosen"] = record is chosen
        return chosen["candidate"], table, chosen["temperature"]

    def _level(self, record: dict, best: dict) -> bool:
        rows = np.concatenate([held for _, held in self.parts])
        weight = self.weight[rows] / self.weight[rows].sum()
        excess = record["row_losses"] - best["row_losses"]
        mean = weight @ excess
        error = np.sqrt(weight**2 @ (excess - mean) ** 2)
        return bool(mean <= LEVEL * error)


def make_folds(job: Job, cv: Any, *, every: bool = False) -> list[Fold] | None:
    """(training rows, held-out rows) pairs; rows without a label are always trained on.

    None when there are too few labelled rows to learn anything from folds. Folds beyond what gives `HELD_OUT`
    rows are left out, unless `every` one is wanted.
    """
    rows = job.class_rows()
    if rows.sum() < ENOUGH or np.sort(rows)[-2] < SECOND:
        return None
    folds = label_folds(job.codes, job.counted, job.seed, cv)
    if every:
        return folds
    enough = np.flatnonzero(np.cumsum([len(held) for _, held in folds]) >= HELD_OUT)
    return folds[: max(2, enough[0] + 1)] if len(enough) else folds
