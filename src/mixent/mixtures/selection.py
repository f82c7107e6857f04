"""How many components, and of which structure: criteria, cross-validation, and the nested protocol of document 002.

What differs between them is only how a combination of options (see `exploring`) is scored.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mixent.base.temperature import fit_temperature
from mixent.core.arrays import Array
from mixent.core.observers import Progress
from mixent.families.categorical import Categoricals
from mixent.families.gaussian.family import Gaussians
from mixent.families.product import Components
from mixent.mixtures.candidates import (
    Combination,
    Judge,
    Key,
    Option,
    Options,
    Unit,
    by_criterion,
    class_shares,
    limit_of,
    options_of,
)
from mixent.mixtures.fit_plan import Candidate, Job, Outcome
from mixent.mixtures.fitting import Fitted
from mixent.mixtures.growth import Stage, grow, restart
from mixent.mixtures.init import Partition
from mixent.mixtures.problem import MixtureParams
from mixent.mixtures.search import default, make_folds, search

Score = Callable[[Combination], float]


def choose(options: Sequence[Options], score: Score, per_class: bool) -> Combination:
    """The combination of least score: the same key for all units, or by turns the best key of each unit.

    By turns ends where no single change helps; for criteria that add over units that is the best of all.
    """
    n_units = len(options[0].units)
    keys = [sorted({key for o in options for key in o.by_unit[u]}, key=_size) for u in range(n_units)]
    common = sorted({key for unit in keys for key in unit}, key=_size)
    if n_units == 1:  # what some fold gave up before it came there cannot win by the smaller one in its place
        everywhere = set.intersection(*(set(o.by_unit[0]) for o in options))
        common = [key for key in common if key in everywhere] or common
    best = min(((key,) * n_units for key in common), key=score)
    if not per_class or n_units == 1:
        return best
    while True:
        before = best
        for u in range(n_units):
            tries = [(*best[:u], key, *best[u + 1 :]) for key in keys[u]]
            best = min(tries, key=score)  # the first of equals: a key of the unit's own, and the smallest
        if best == before:
            return best


def _size(key: Key) -> tuple[int, str]:
    return key[1], key[0]


@dataclass
class Held:
    """Scores of combinations on rows held out, all folds together; `tempered` as the classifier will be, or not."""

    job: Job
    options: list[Options]
    folds: list[tuple[np.ndarray, np.ndarray]]
    tempered: bool

    def __post_init__(self) -> None:
        self.rows = np.concatenate([held for _, held in self.folds])
        self.target, self.weight = self.job.target_shares()[self.rows], self.job.table.row_weights[self.rows]
        self.known: dict[Combination, dict[str, float]] = {}

    def __call__(self, combination: Combination) -> dict[str, float]:
        """log_loss and error (after the best temperature, where tempered), and that temperature."""
        if combination not in self.known:
            pairs = [_held_out(o, combination) for o in self.options]
            density, prior = (np.concatenate(part) for part in zip(*pairs))
            temperature, loss, raw = fit_temperature(density, prior, self.target, self.weight)
            if not self.tempered:
                temperature, loss = 1.0, raw
            wrong = (prior + temperature * density).argmax(axis=1) != self.target.argmax(axis=1)
            error = float(np.average(wrong, weights=self.weight))
            found = {"log_loss": loss, "log_loss_raw": raw, "error": error, "temperature": temperature}
            self.known[combination] = found
        return self.known[combination]


def _held_out(options: Options, combination: Combination) -> tuple[Array, Array]:
    """log p(x | class) and log p(class) of the rows held out, (n', C)."""
    taken = options.take(combination)
    density = np.concatenate([option.held for option in taken if option.held is not None], axis=1)
    prior = np.concatenate([option.log_prior for option in taken if option.log_prior is not None])
    return density, np.tile(prior, (len(density), 1))


@dataclass(frozen=True)
class Selected:
    """The keys chosen, what was tried, and the options of all rows where they were fitted on the way."""

    combination: Combination
    records: list[dict]
    whole: Options | None = None
    temperature: float = 1.0


def select(
    job: Job, units: Sequence[Unit], names: Sequence[str], per_class: bool, show: Progress | None
) -> Selected | None:
    """Choose by the criterion of the search (and `nested`). None when there are too few rows for folds."""
    settings = job.search
    if settings.criterion != "cv" and settings.nested is None:
        return _by_criterion(job, units, names, per_class, show)
    folds = make_folds(job, settings.cv) if settings.nested is None else make_folds(job, settings.nested, every=True)
    if folds is None and settings.nested is not None:
        warnings.warn(
            f"nested={settings.nested!r} needs more labelled rows; {settings.criterion} of all rows chooses instead",
            stacklevel=2,
        )
        return _by_criterion(job, units, names, per_class, show)
    if folds is None:
        return None
    parts = [(job.take(train).with_learned_priors(), rows) for train, rows in folds]
    options = options_of(parts, job, units, names, show)
    held = Held(job, options, folds, tempered=settings.criterion == "cv")
    if settings.criterion == "cv":
        best = choose(options, lambda c: held(c)["log_loss"], per_class)
        return Selected(best, _held_records(held, best, job), temperature=held(best)["temperature"])
    picks = {choose([o], partial(o.criterion, settings.criterion), per_class) for o in options}
    best = min(sorted(picks), key=lambda c: (held(c)["error"], sum(count for _, count in c)))
    return Selected(best, _held_records(held, best, job, sorted(picks)))


def _by_criterion(
    job: Job, units: Sequence[Unit], names: Sequence[str], per_class: bool, show: Progress | None
) -> Selected:
    (whole,) = options_of([(job, None)], job, units, names, show)
    best = choose([whole], partial(whole.criterion, job.search.criterion), per_class)
    return Selected(best, _criterion_records(whole, best, per_class), whole)


def _criterion_records(whole: Options, best: Combination, per_class: bool) -> list[dict]:
    """A line for each option of each unit, or, where all units take the same key, a line for each key."""
    job, n_units = whole.job, len(whole.units)
    lines: list[tuple[int | None, Key, Combination]]
    if per_class and n_units > 1:
        lines = [(u, key, (*best[:u], key, *best[u + 1 :])) for u in range(n_units) for key in whole.by_unit[u]]
    else:
        keys = sorted({key for unit in whole.by_unit for key in unit}, key=_size)
        lines = [(None, key, (key,) * n_units) for key in keys]
    records = []
    for u, key, combination in lines:
        taken = whole.take(combination) if u is None else [whole.get(u, key)]
        record = {} if u is None else {"class": job.classes.tolist()[whole.units[u].classes[0]]}
        record |= _sums(taken, key)
        if job.search.criterion == "cbic":
            record["cbic"] = whole.criterion("cbic", combination)
        records.append(record | {"chosen": combination == best})
    return records


def _sums(taken: list[Option], key: Key) -> dict:
    stages = [option.stage for option in taken]
    names = taken[0].criteria
    return {
        "n_components": key[1],
        "covariance": key[0],
        "log_likelihood": sum(stage.log_likelihood for stage in stages),
        "n_free": sum(stage.n_free for stage in stages),
        **{name: sum(option.criteria[name] for option in taken) for name in names},
        "evaluations": sum(stage.evaluations for stage in stages),
        "converged": all(stage.converged for stage in stages),
    }


def _held_records(held: Held, best: Combination, job: Job, picks: Sequence[Combination] | None = None) -> list[dict]:
    """A line for each combination scored, or for those the folds picked; best first."""
    records = []
    for combination in held.known if picks is None else picks:
        counts, names = [count for _, count in combination], [name for name, _ in combination]
        same = len(combination) == 1 or len(set(combination)) == 1
        record = {"n_components": counts[0] if same else counts, "covariance": names[0] if same else names}
        records.append(record | held(combination) | {"folds": len(held.folds), "chosen": combination == best})
    return sorted(records, key=lambda r: r["log_loss"] if job.search.criterion == "cv" else r["error"])


# --- the classifier of a choice --------------------------------------------------------------------------------------


def select_classes(job: Job, structures: list[str] | None, show: Progress | None) -> Outcome:
    """A mixture per class, its size and structure chosen."""
    settings = job.search
    if settings.criterion == "cv" and not settings.grown and not settings.per_class:
        candidate, records, temperature = search(job, structures, settings.max_components, settings.cv, show)
        return Outcome(job.fit(candidate)[0], candidate, temperature, records)
    _check_apart(job)
    units = [Unit((c,), False) for c in range(job.n_classes)]
    selected = select(job, units, structures or ["VVI", "VVV"], settings.per_class, show)
    if selected is None:
        candidate = default(job, structures)
        return Outcome(job.fit(candidate)[0], candidate)
    paths = [_path(job, unit, key, selected.whole, u) for u, (unit, key) in enumerate(zip(units, selected.combination))]
    stages = [_stage_of(path, key) for path, key in zip(paths, selected.combination)]
    return _together(job, stages, paths, selected)


def grown_classes(job: Job, candidate: Candidate, show: Progress | None) -> Outcome:
    """Each class grown to its given size."""
    _check_apart(job)
    units = [Unit((c,), False) for c in range(job.n_classes)]
    paths = []
    for unit, count, name in zip(units, candidate.counts, candidate.structures):
        by = by_criterion(job, Judge(job, unit))
        paths.append(list(grow(unit.job(job), unit.first(job, name), count, by=by, show=show)))
    return _together(job, [path[-1] for path in paths], paths, Selected((), []))


def select_shared(job: Job, structures: list[str] | None, show: Progress | None) -> Outcome:
    """Components shared by all classes, their number and structure chosen."""
    unit = Unit(tuple(range(job.n_classes)), True)
    selected = select(job, [unit], structures or ["VVI", "EEE", "VVV"], False, show)
    if selected is None:  # few rows: a component for each class
        candidate = replace(unit.first(job, (structures or ["EEE"])[0]), counts=(job.n_classes,))
        return Outcome(job.fit(candidate, starts=job.parts(candidate, job.est.n_init))[0], candidate)
    (key,) = selected.combination
    path = _path(job, unit, key, selected.whole, 0)
    found = _stage_of(path, key).fitted
    candidate = replace(unit.first(job, key[0]), counts=(found.params.n_components,))
    grown = path if job.search.grown else []
    return Outcome(found, candidate, selected.temperature, selected.records, grown)


def grown_shared(job: Job, candidate: Candidate, show: Progress | None) -> Outcome:
    """Shared components grown to a given number."""
    by = by_criterion(job, Judge(job, Unit(tuple(range(job.n_classes)), True)))
    path = list(grow(job, replace(candidate, counts=(1,)), candidate.n_components, by=by, show=show))
    return Outcome(path[-1].fitted, candidate, path=path)


def _check_apart(job: Job) -> None:
    if job.est.across_classes:
        raise ValueError(
            "across_classes=True needs a search that fits all classes together; set growth='restart', criterion='cv' "
            "and per_class=False"
        )


def _path(job: Job, unit: Unit, key: Key, whole: Options | None, number: int) -> list[Stage]:
    """The stages of one unit up to the key chosen: as explored, or fitted now."""
    name, count = key
    if whole is not None:
        return [option.stage for (n, _), option in whole.by_unit[number].items() if n == name]
    own = unit.job(job)
    first = unit.first(own, name)
    count = limit_of(own, count)
    if job.search.grown:
        return list(grow(own, first, count, by=by_criterion(job, Judge(job, unit))))
    n_init = job.est.n_init if unit.shared else 1
    return list(restart(own, replace(first, counts=(count,)), count, n_init))


def _stage_of(path: list[Stage], key: Key) -> Stage:
    """The stage of so many components, or the largest below (or the first)."""
    return max((s for s in path if s.n_components <= key[1]), key=lambda s: s.n_components, default=path[0])


def _together(job: Job, stages: list[Stage], paths: list[list[Stage]], selected: Selected) -> Outcome:
    """One classifier of the mixtures of all classes; EM settles what rows without a certain label change."""
    counts = tuple(stage.n_components for stage in stages)
    names = tuple(stage.covariance for stage in stages)
    candidate = Candidate(counts, names, False, job.default_rows())
    nowhere = Partition(np.arange(0), np.empty((0, candidate.n_components)))  # a prior of classes needs no parts
    params = joined([stage.fitted for stage in stages], _class_weights(job))
    found, _ = job.fit(candidate, starts=[nowhere], warm=params)
    grown: list = paths if job.search.grown else []
    return Outcome(found, candidate, selected.temperature, selected.records, grown)


def _class_weights(job: Job) -> Array:
    return class_shares(job) if job.class_prior is None else job.class_prior


def joined(parts: Sequence[Fitted], class_weights: Array) -> MixtureParams:
    """Mixtures of single classes side by side."""
    counts = [part.params.n_components for part in parts]
    owner = np.repeat(np.arange(len(parts)), counts)
    within = np.concatenate([part.params.weights.sum(axis=0) / part.params.weights.sum() for part in parts])
    weights = np.equal(np.arange(len(parts))[:, None], owner) * within * class_weights[:, None]
    gaussians = [part.params.components.gaussian for part in parts]
    tables = [part.params.components.categorical for part in parts]
    found = [g for g in gaussians if g is not None]
    gaussian = categorical = None
    if found:
        flat = all(g.covs.ndim == 2 for g in found)
        covs = np.concatenate([g.covs if flat else g.full_covs() for g in found])
        axes = tuple(axes for g in found for axes in g.axes)
        gaussian = Gaussians(np.concatenate([g.means for g in found]), covs, axes)
    if all(t is not None for t in tables):
        categorical = Categoricals(np.concatenate([t.log_probs for t in tables if t is not None]))
    return MixtureParams(weights, Components(gaussian, categorical))
