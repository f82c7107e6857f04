"""Joint selection of components, structure and prior of a classifier by cross-validated log-loss.

Unlike BIC, the held-out log-loss measures the quality of the class probabilities. Each candidate is scored with its
best temperature: densities fitted to few rows are overconfident by a factor that can be estimated from held-out rows,
and the ranking should not depend on an error that the temperature corrects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mixent.base.bounded_loss import fit_temperature, row_losses
from mixent.base.folds import Fold, label_folds
from mixent.core.arrays import Array
from mixent.core.blocks import Block
from mixent.core.observers import Progress
from mixent.core.starts import Runner
from mixent.families.gaussian.structures import COVARIANCES
from mixent.mixtures.batch import Batch, FoldPart, HeldOutDensities
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

FIRST_ROWS = 100  # held-out rows after which candidates are discarded
KEPT = 5  # one in this number of candidates is scored on all folds
CLEAR = 2.0  # standard errors by which a discarded candidate is worse than the best


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
    scores.add(_single(plan, names, tied), every=True)
    poor = 0
    for count in (2, 3, 4, 6, 8, 12, 16, 24, 32):
        if count > max_components or poor == 2:
            break
        before = scores.best_loss
        scores.add(_several(plan, names, tied, count, scores))
        poor = 0 if scores.best_loss < before - BETTER else poor + 1
    return scores.result()


def search_shared(
    plan: FitPlan, names: list[str], counts: Iterable[int], cv: Any, show: Progress | None
) -> tuple[Candidate, list[dict], float] | None:
    """Return the same for components shared by all classes; None if there are too few rows for folds."""
    folds = make_folds(plan, cv)
    if folds is None:
        return None
    scores = _Scores(plan, folds, show)
    poor = 0
    for count in counts:
        if poor == 2:
            break
        before = scores.best_loss
        scores.add((shared_candidate(plan, count, name) for name in names), every=True)
        poor = 0 if scores.best_loss < before or count < plan.n_classes else poor + 1  # few cannot separate the classes
    return scores.result(level=0.0)  # there is one structure for all classes: the best candidate


def shared_candidate(plan: FitPlan, count: int, name: str) -> Candidate:
    return Candidate((count,), (name,), False, plan.default_rows(), shared=True)


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
    if candidate.shared:
        return {"n_components": candidate.n_components, "covariance": candidate.structures[0]}
    return {
        "n_components": list(candidate.counts),
        "covariance": candidate.structures[0],
        "across_classes": candidate.across,
        "prior_rows": candidate.prior_rows,
        "prior_target": candidate.target,
        "noise": candidate.noise,
    }


class _Scores:
    """Held-out losses of the candidates, by successive halving over the folds.

    All candidates are scored on the first folds; those that are about as good as the best there, and at most a fifth of
    them, on the others.
    """

    def __init__(self, plan: FitPlan, folds: list[Fold], show: Progress | None) -> None:
        self.plan, self.show = plan, show
        self.n_starts = getattr(plan.est, "n_init", 1)
        self.parts = [FoldPart(plan, train, held) for train, held in folds]
        self.target, self.weight = plan.target_shares(), plan.table.row_weights
        sizes = np.cumsum([len(part.held) for part in self.parts])
        self.n_first = min(int(np.searchsorted(sizes, FIRST_ROWS)) + 1, len(self.parts))
        self.records: list[dict] = []
        self.first_weight = self.weight[self._rows(self.parts[: self.n_first])]
        self.best_first: Array | None = None  # losses of the rows of the first folds, of the best candidate there

    @property
    def finished(self) -> list[dict]:
        """Records of the candidates that were scored on all folds."""
        return [record for record in self.records if record["folds"] == len(self.parts)]

    @property
    def best_loss(self) -> float:
        return min((record["log_loss"] for record in self.finished), default=np.inf)

    def best_rows(self, name: str, strengths: list) -> Any:
        """Return the number of pseudo-rows with the lowest loss on the first folds, on which all are scored."""
        same = [r for r in self.records if r["covariance"] == name and r["prior_rows"] in strengths and not r["noise"]]
        return min(same, key=lambda r: self.first_weight @ r["row_losses"][: len(self.first_weight)])["prior_rows"]

    def add(self, candidates: Iterable[Candidate], *, every: bool = False) -> None:
        """Score candidates with the same numbers of components; with `every`, all of them on all folds."""
        tried = {record["candidate"] for record in self.records}
        candidates = [c for c in dict.fromkeys(candidates) if c not in tried]
        if not candidates:
            return
        first, rest = self.parts[: self.n_first], self.parts[self.n_first :]
        held = self._held_out(candidates, self.parts if every else first)
        if every:
            self._record(held, self.parts)
            return
        records = self._record(held, first)
        kept = self._kept(records) if rest else []
        if kept:
            later = self._held_out([record["candidate"] for record in kept], rest)
            for record in kept:
                self.records.remove(record)
            self._record({c: held[c] + more for c, more in later.items()}, self.parts)

    def _kept(self, records: list[dict]) -> list[dict]:
        """Return the records of the candidates to be scored on the other folds, too."""
        ranked = sorted(records, key=lambda record: record["log_loss"])[: -(-len(records) // KEPT)]
        assert self.best_first is not None
        return [record for record in ranked if self._excess(record, self.best_first) <= CLEAR]

    def _excess(self, record: dict, losses: Array) -> float:
        """Return the mean difference to the losses of another candidate on the same rows, in standard errors."""
        rows = self._rows(self.parts[: record["folds"]])
        weight = self.weight[rows] / self.weight[rows].sum()
        excess = record["row_losses"] - losses[: len(rows)]
        mean = float(weight @ excess)
        return mean / max(float(np.sqrt(weight**2 @ (excess - mean) ** 2)), 1e-300)

    @staticmethod
    def _rows(parts: Sequence[FoldPart]) -> np.ndarray:
        return np.concatenate([part.held for part in parts])

    def _record(self, held: HeldOutDensities, parts: Sequence[FoldPart]) -> list[dict]:
        """Add a record for each candidate."""
        rows = self._rows(parts)
        sizes = [len(part.held) for part in parts]
        density = np.stack([np.concatenate([d for d, _ in pairs]) for pairs in held.values()])
        prior = np.stack([np.repeat([p for _, p in pairs], sizes, axis=0) for pairs in held.values()])
        target, weight = self.target[rows], self.weight[rows]
        temperatures, losses, raws = fit_temperature(density, prior, target, weight)
        joint = prior + temperatures[:, None, None] * density
        errors = np.average(joint.argmax(axis=2) != target.argmax(axis=1), axis=1, weights=weight)
        by_row = row_losses(density, prior, temperatures[:, None, None], target)
        records = []
        for i, candidate in enumerate(held):
            scores = {
                "log_loss": float(losses[i]),
                "log_loss_raw": float(raws[i]),
                "error": float(errors[i]),
                "temperature": float(temperatures[i]),
                "folds": len(parts),
                "row_losses": by_row[i],
            }
            records.append({**_settings(candidate), **scores, "candidate": candidate})
        self.records += records
        best = by_row[losses.argmin(), : len(self.first_weight)]
        if self.best_first is None or self.first_weight @ best < self.first_weight @ self.best_first:
            self.best_first = best
        if self.show is not None:
            least = min(records, key=lambda record: record["log_loss"])
            text = f"{least['covariance']} with {max(least['candidate'].counts)}: log-loss {least['log_loss']:.4f}"
            self.show(len(self.records), max(40, len(self.records)), text)
        return records

    def _held_out(self, candidates: Sequence[Candidate], parts: Sequence[FoldPart]) -> HeldOutDensities:
        """Return log p(x | class), (n, C), and log p(class), (C,), of the held-out rows of each fold."""
        held: HeldOutDensities = {}
        layouts: dict[bool, list[Candidate]] = {}
        for candidate in candidates:
            layouts.setdefault(COVARIANCES[candidate.structures[0]].axis_aligned, []).append(candidate)
        for same in layouts.values():
            if not self._batched(same[0]):
                held |= {candidate: [self._fitted_alone(part, candidate) for part in parts] for candidate in same}
            else:
                held |= self._fitted_in_batch(same, parts)
        return {candidate: held[candidate] for candidate in candidates}

    def _batched(self, candidate: Candidate) -> bool:
        """Whether candidates are fitted in a batch, which has neither repairs of components nor outliers."""
        without_prior = candidate.prior_rows is None and len(self.plan.summary.center) > 0
        return self.plan.outliers.none and not without_prior

    def _fitted_in_batch(self, candidates: list[Candidate], parts: Sequence[FoldPart]) -> HeldOutDensities:
        """Return the same of candidates that are fitted in one batch."""

        def fit(runner: Runner) -> list:
            held = Batch(self.plan, parts, candidates, self.n_starts).held_out(runner)
            return [held[candidate] for candidate in candidates]

        what = ("held out", candidates, [part.held for part in parts], self.n_starts)
        return dict(zip(candidates, self.plan.task(what, fit)))

    def _fitted_alone(self, part: FoldPart, candidate: Candidate) -> tuple[Array, Array]:
        """Return the same of one candidate, fitted by itself, with repairs of degenerate components."""
        fitted, _ = part.plan.fit(candidate, quick=True, starts=part.starts(candidate, self.n_starts))
        table = self.plan.table.take(part.held)
        block = Block(table.X, table.codes)
        log_joint = fitted.problem.log_joint
        joint = each_row(fitted.problem, fitted.params, block, log_joint, self.plan.n_classes, self.plan.est.n_jobs)
        log_prior = np.log(fitted.params.weights.sum(axis=1))
        return joint - log_prior, log_prior

    def result(self, level: float = LEVEL) -> tuple[Candidate, list[dict], float]:
        """Return the candidate with the fewest components within `level` standard errors of the best, and the table.

        The best of many candidates is the best partly by chance; a simpler one of about the same loss predicts better
        on average. Candidates that were not scored on all folds are last in the table.
        """
        ranked = sorted(self.records, key=lambda r: (r["folds"] < len(self.parts), r["log_loss"]))
        best = ranked[0]["row_losses"]
        about_equal = [record for record in self.finished if self._excess(record, best) <= level]
        chosen = min(about_equal, key=lambda r: (r["candidate"].n_components, r["log_loss"]))
        table = [{k: v for k, v in r.items() if k not in ("candidate", "row_losses")} for r in ranked]
        for record, entry in zip(ranked, table):
            entry["chosen"] = record is chosen
        return chosen["candidate"], table, chosen["temperature"]


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
