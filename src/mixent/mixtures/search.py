"""Joint selection of components, structure and prior of a classifier by cross-validated log-loss.

Unlike BIC, the held-out log-loss measures the quality of the class probabilities. Each candidate is scored with its
best temperature: densities fitted to few rows are overconfident by a factor that can be estimated from held-out rows,
and the ranking should not depend on an error that the temperature corrects.
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
from mixent.mixtures.fit_plan import Candidate, FitPlan
from mixent.mixtures.predict import each_row

MIN_LABELLED = 60  # labelled rows below which cross-validation is mostly noise
MIN_SECOND = 10  # minimum number of rows of the second largest class
STRENGTHS = (0.2, 1.0, 5.0, 25.0)  # pseudo-rows of the prior, in units of (columns + 2)
ROWS_PER_COMPONENT = 5
LEVEL = 0.5  # standard errors within which candidates are considered equally good
NOISES = (0.03, 0.1)  # variance of the noise added to training rows, relative to the variance of each column
BETTER = 0.002  # nats by which a larger model must be better
HELD_OUT = 2000  # held-out rows that suffice to score a candidate

MIN_FIRST_FOLD = 100  # held-out rows of the first fold needed to discard a candidate after it


def search(
    plan: FitPlan, structures: list[str] | None, max_components: int, cv: Any, show: Progress | None
) -> tuple[Candidate, list[dict], float]:
    """Return the selected candidate, the table of all candidates, and the temperature."""
    folds = make_folds(plan, cv)
    if folds is None:
        return default(plan, structures), [], 1.0
    scores = _Scores(plan, folds, show)
    names = structures or ["VVV", "VVI"]
    tied = [] if structures or plan.est.across_classes else ["EEE", "EEI"]
    if not len(plan.summary.center):  # no numeric columns, hence no covariances
        names, tied = names[:1], []
    for candidate in _single(plan, names, tied):
        scores.add(candidate)
    poor = 0
    for count in (2, 3, 4, 6, 8, 12, 16, 24, 32):
        if count > max_components or poor == 2:
            break
        before = scores.best_loss
        for candidate in _several(plan, names, tied, count, scores):
            scores.add(candidate)
        poor = 0 if scores.best_loss < before - BETTER else poor + 1
    return scores.result()


def default(plan: FitPlan, structures: list[str] | None) -> Candidate:
    """Return the candidate for few rows: one Gaussian per class with strong shrinkage."""
    rows = plan.default_rows()
    if rows is not None and plan.prior_options.automatic:
        rows = 5.0 * rows
    name = (structures or ["VVV"])[0]
    return _candidate(plan, 1, name, bool(plan.est.across_classes), rows)


def _candidate(plan: FitPlan, count: int, name: str, across: bool, rows: float | None) -> Candidate:
    """Return a candidate with at most one component per `ROWS_PER_COMPONENT` rows of each class."""
    counts = np.minimum(count, np.maximum(1, plan.class_rows() // ROWS_PER_COMPONENT))
    return Candidate(tuple(counts.tolist()), (name,) * plan.n_classes, across, rows, target="classes")


def _strengths(plan: FitPlan) -> list[float | None]:
    if plan.prior_options.automatic and len(plan.summary.center):
        return [s * (len(plan.summary.center) + 2) for s in STRENGTHS]
    return [plan.default_rows()]


def _single(plan: FitPlan, names: list[str], tied: list[str]) -> Iterator[Candidate]:
    across = bool(plan.est.across_classes)
    for name in names:
        for rows in _strengths(plan):
            yield _candidate(plan, 1, name, across, rows)
    for name in tied:
        yield _candidate(plan, 1, name, True, plan.default_rows())


def _several(plan: FitPlan, names: list[str], tied: list[str], count: int, scores: _Scores) -> Iterator[Candidate]:
    """Yield candidates with several components: for each structure its best prior so far and the adjacent ones."""
    strengths = _strengths(plan)
    for name in names:
        best = strengths.index(scores.best_rows(name, strengths))
        for rows in strengths[max(0, best - 1) : best + 2]:
            yield _candidate(plan, count, name, bool(plan.est.across_classes), rows)
        if len(plan.summary.center):
            candidate = _candidate(plan, count, name, bool(plan.est.across_classes), strengths[best])
            yield replace(candidate, target="clusters")
            for noise in NOISES if len(strengths) > 1 else ():
                yield replace(candidate, prior_rows=strengths[0], target="clusters", noise=noise)
    for name in tied:
        yield _candidate(plan, count, name, True, plan.default_rows())


def _settings(candidate: Candidate) -> dict[str, Any]:
    """Return the settings of a candidate, for the table of the search."""
    return {
        "n_components": list(candidate.counts),
        "covariance": candidate.structures[0],
        "across_classes": candidate.across,
        "prior_rows": candidate.prior_rows,
        "prior_target": candidate.target,
        "noise": candidate.noise,
    }


class _Scores:
    """Held-out log-loss of the candidates."""

    def __init__(self, plan: FitPlan, folds: list[Fold], show: Progress | None) -> None:
        self.plan, self.show = plan, show
        self.parts = [(plan.take(train).with_learned_priors(), held) for train, held in folds]
        self.target = plan.target_shares()
        self.weight = plan.table.row_weights
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
        """Score a candidate on all folds; discard it after the first fold if it is much worse than the best."""
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
                worse = len(held) >= MIN_FIRST_FOLD and loss > 1.3 * self.best_first + BETTER
                self.best_first = min(self.best_first, loss)
                if worse:
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
            text = f"{candidate.structures[0]} with {max(candidate.counts)}: log-loss {loss:.4f}"
            self.show(len(self.records), max(40, len(self.records)), text)

    def _held_out(self, part: FitPlan, held: np.ndarray, candidate: Candidate) -> tuple[Array, Array]:
        """Return log p(x | class) and log p(class) of the held-out rows, (n, C)."""
        fitted, _ = part.fit(candidate, quick=True)
        table = self.plan.table.take(held)
        block = Block(table.X, table.codes)
        log_joint = fitted.problem.log_joint
        joint = each_row(fitted.problem, fitted.params, block, log_joint, self.plan.n_classes, self.plan.est.n_jobs)
        prior = np.tile(np.log(fitted.params.weights.sum(axis=1)), (len(held), 1))
        return joint - prior, prior

    def result(self) -> tuple[Candidate, list[dict], float]:
        """Return the candidate with the fewest components within half a standard error of the best, and the table.

        The best of about forty candidates is the best partly by chance; a simpler one of about the same loss predicts
        better on average. Candidates discarded after the first fold are last in the table.
        """
        ranked = sorted(self.records, key=lambda r: (r["folds"] < len(self.parts), r["log_loss"]))
        level = [r for r in ranked if r["folds"] == ranked[0]["folds"] and self._level(r, ranked[0])]
        chosen = min(level, key=lambda r: (sum(r["n_components"]), r["log_loss"]))
        table = [{k: v for k, v in r.items() if k not in ("candidate", "row_losses")} for r in ranked]
        for record, entry in zip(ranked, table):
            entry["chosen"] = record is chosen
        return chosen["candidate"], table, chosen["temperature"]

    def _level(self, record: dict, best: dict) -> bool:
        rows = np.concatenate([held for _, held in self.parts])
        weight = self.weight[rows] / self.weight[rows].sum()
        excess = record["row_losses"] - best["row_losses"]
        mean = weight @ excess
        error = np.sqrt(weight**2 @ (excess - mean) ** 2)
        return bool(mean <= LEVEL * error)


def make_folds(plan: FitPlan, cv: Any, *, every: bool = False) -> list[Fold] | None:
    """Return (training rows, held-out rows) of each fold; unlabelled rows are always in the training part.

    Returns None if there are too few labelled rows for cross-validation. Unless `every` is True, folds are left out
    once there are `HELD_OUT` held-out rows.
    """
    rows = plan.class_rows()
    if rows.sum() < MIN_LABELLED or np.sort(rows)[-2] < MIN_SECOND:
        return None
    folds = label_folds(plan.codes, plan.positive, plan.seed, cv)
    if every:
        return folds
    enough = np.flatnonzero(np.cumsum([len(held) for _, held in folds]) >= HELD_OUT)
    return folds[: max(2, enough[0] + 1)] if len(enough) else folds
