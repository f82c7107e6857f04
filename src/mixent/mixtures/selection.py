"""Selection of numbers of components and structures by a criterion, cross-validation, or the protocol of document 002.

The methods only differ in how they score a combination of options (see `candidates`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mixent.base.bounded_loss import UNIFORM_SHARE, fit_temperature
from mixent.core.arrays import Array
from mixent.core.observers import Progress
from mixent.families.categorical import Categoricals
from mixent.families.product import Components
from mixent.mixtures.candidates import (
    ClassCriteria,
    Combination,
    Key,
    Option,
    Options,
    Unit,
    class_shares,
    growth_rule,
    limit_of,
    options_of,
    shared_counts,
)
from mixent.mixtures.fit_plan import Candidate, FitPlan, Outcome
from mixent.mixtures.fitting import Fitted
from mixent.mixtures.growth import Stage, grow, restart
from mixent.mixtures.options import by_likelihood
from mixent.mixtures.problem import MixtureParams
from mixent.mixtures.search import default, make_folds, search, search_shared
from mixent.warn import warn

Score = Callable[[Combination], float]


def choose(options: Sequence[Options], score: Score, per_class: bool) -> Combination:
    """Return the combination with the lowest score: the same key for all units, or one for each unit in turn.

    The latter is coordinate descent; for criteria that are additive over units, the result is the global optimum.
    """
    n_units = len(options[0].units)
    keys = [sorted({key for o in options for key in o.by_unit[u]}, key=_size) for u in range(n_units)]
    common = sorted({key for unit in keys for key in unit}, key=_size)
    if n_units == 1:  # exclude keys that some fold did not fit, since a smaller one would be scored instead
        everywhere = set.intersection(*(set(o.by_unit[0]) for o in options))
        common = [key for key in common if key in everywhere] or common
    best = min(((key,) * n_units for key in common), key=score)
    if not per_class or n_units == 1:
        return best
    while True:
        before = best
        for u in range(n_units):
            combinations = [(*best[:u], key, *best[u + 1 :]) for key in keys[u]]
            best = min(combinations, key=score)  # of equal scores the first, hence the smallest
        if best == before:
            return best


def _size(key: Key) -> tuple[int, str]:
    return key[1], key[0]


@dataclass
class HeldOutScores:
    """Scores of combinations on the held-out rows of all folds, with (`tempered`) or without the best temperature."""

    plan: FitPlan
    options: list[Options]
    folds: list[tuple[np.ndarray, np.ndarray]]
    tempered: bool

    def __post_init__(self) -> None:
        self.rows = np.concatenate([held for _, held in self.folds])
        self.target, self.weight = self.plan.target_shares()[self.rows], self.plan.table.row_weights[self.rows]
        self.scores: dict[Combination, dict[str, float]] = {}

    def __call__(self, combination: Combination) -> dict[str, float]:
        """Return log-loss, error and temperature of a combination."""
        if combination not in self.scores:
            pairs = [_held_out(o, combination) for o in self.options]
            density, prior = (np.concatenate(part) for part in zip(*pairs))
            temperature, loss, raw = map(float, fit_temperature(density, prior, self.target, self.weight))
            if not self.tempered:
                temperature, loss = 1.0, raw
            wrong = (prior + temperature * density).argmax(axis=1) != self.target.argmax(axis=1)
            error = float(np.average(wrong, weights=self.weight))
            scores = {"log_loss": loss, "log_loss_raw": raw, "error": error, "temperature": temperature}
            self.scores[combination] = scores
        return self.scores[combination]


def _held_out(options: Options, combination: Combination) -> tuple[Array, Array]:
    """Return log p(x | class) and log p(class) of the held-out rows, (n', C)."""
    selected = options.take(combination)
    density = np.concatenate([option.held for option in selected if option.held is not None], axis=1)
    prior = np.concatenate([option.log_prior for option in selected if option.log_prior is not None])
    return density, np.tile(prior, (len(density), 1))


@dataclass(frozen=True)
class Selected:
    """The selected keys, the table of the search, and the options of all rows if they were fitted."""

    combination: Combination
    records: list[dict]
    options: Options | None = None
    temperature: float = 1.0


def select(
    plan: FitPlan, units: Sequence[Unit], names: Sequence[str], per_class: bool, show: Progress | None
) -> Selected | None:
    """Select by the criterion of the search (and `nested`); None if there are too few rows for folds."""
    settings = plan.search
    if settings.criterion != "cv" and settings.nested is None:
        return _by_criterion(plan, units, names, per_class, show)
    folds = make_folds(plan, settings.cv) if settings.nested is None else make_folds(plan, settings.nested, every=True)
    if folds is None and settings.nested is not None:
        warn(f"nested={settings.nested!r} needs more labelled rows; {settings.criterion} of all rows is used instead")
        return _by_criterion(plan, units, names, per_class, show)
    if folds is None:
        return None
    parts = [(plan.take(train).with_learned_priors(), rows) for train, rows in folds]
    options = options_of(parts, plan, units, names, show)
    scores = HeldOutScores(plan, options, folds, tempered=settings.criterion == "cv")
    if settings.criterion == "cv":
        best = choose(options, lambda c: scores(c)["log_loss"], per_class)
        return Selected(best, _held_out_records(scores, best, plan), temperature=scores(best)["temperature"])
    choices = {choose([o], partial(o.criterion, settings.criterion), per_class) for o in options}
    best = min(sorted(choices), key=lambda c: (scores(c)["error"], sum(count for _, count in c)))
    return Selected(best, _held_out_records(scores, best, plan, sorted(choices)))


def _by_criterion(
    plan: FitPlan, units: Sequence[Unit], names: Sequence[str], per_class: bool, show: Progress | None
) -> Selected:
    (options,) = options_of([(plan, None)], plan, units, names, show)
    best = choose([options], partial(options.criterion, plan.search.criterion), per_class)
    return Selected(best, _criterion_records(options, best, per_class), options)


def _criterion_records(options: Options, best: Combination, per_class: bool) -> list[dict]:
    """Return a record for each option of each unit or, if all units have the same key, for each key."""
    plan, n_units = options.plan, len(options.units)
    entries: list[tuple[int | None, Key, Combination]]
    if per_class and n_units > 1:
        entries = [(u, key, (*best[:u], key, *best[u + 1 :])) for u in range(n_units) for key in options.by_unit[u]]
    else:
        keys = sorted({key for unit in options.by_unit for key in unit}, key=_size)
        entries = [(None, key, (key,) * n_units) for key in keys]
    records = []
    for u, key, combination in entries:
        selected = options.take(combination) if u is None else [options.get(u, key)]
        record = {} if u is None else {"class": plan.classes.tolist()[options.units[u].classes[0]]}
        record |= _sums(selected, key)
        if plan.search.criterion == "cbic":
            record["cbic"] = options.criterion("cbic", combination)
        records.append(record | {"chosen": combination == best})
    return records


def _sums(selected: list[Option], key: Key) -> dict:
    stages = [option.stage for option in selected]
    names = selected[0].criteria
    return {
        "n_components": key[1],
        "covariance": key[0],
        "log_likelihood": sum(stage.log_likelihood for stage in stages),
        "n_free": sum(stage.n_free for stage in stages),
        **{name: sum(option.criteria[name] for option in selected) for name in names},
        "evaluations": sum(stage.evaluations for stage in stages),
        "converged": all(stage.converged for stage in stages),
    }


def _held_out_records(
    scores: HeldOutScores, best: Combination, plan: FitPlan, choices: Sequence[Combination] | None = None
) -> list[dict]:
    """Return a record for each combination scored, or for those selected in the folds, best first."""
    records = []
    for combination in scores.scores if choices is None else choices:
        counts, names = [count for _, count in combination], [name for name, _ in combination]
        same = len(combination) == 1 or len(set(combination)) == 1
        record = {"n_components": counts[0] if same else counts, "covariance": names[0] if same else names}
        records.append(record | scores(combination) | {"folds": len(scores.folds), "chosen": combination == best})
    return sorted(records, key=lambda r: r["log_loss"] if plan.search.criterion == "cv" else r["error"])


# --- the selected classifier -----------------------------------------------------------------------------------------


def select_classes(plan: FitPlan, structures: list[str] | None, show: Progress | None) -> Outcome:
    """Fit a mixture per class, with selected numbers of components and structures."""
    settings = plan.search
    if settings.criterion == "cv" and not settings.grown and not settings.per_class:
        candidate, records, temperature = search(plan, structures, settings.max_components, settings.cv, show)
        return Outcome(plan.fit(candidate)[0], candidate, temperature, UNIFORM_SHARE, records)
    _check_apart(plan)
    units = [Unit((c,), False) for c in range(plan.n_classes)]
    selected = select(plan, units, structures or ["VVI", "VVV"], settings.per_class, show)
    if selected is None:
        candidate = default(plan, structures)
        return Outcome(plan.fit(candidate)[0], candidate, uniform_share=_uniform_share(plan))
    paths = [
        _path(plan, unit, key, selected.options, u) for u, (unit, key) in enumerate(zip(units, selected.combination))
    ]
    stages = [_stage_of(path, key) for path, key in zip(paths, selected.combination)]
    return _together(plan, stages, paths, selected)


def grown_classes(plan: FitPlan, candidate: Candidate, show: Progress | None) -> Outcome:
    """Grow the mixture of each class to its given number of components."""
    _check_apart(plan)
    units = [Unit((c,), False) for c in range(plan.n_classes)]
    paths = []
    for unit, count, name in zip(units, candidate.counts, candidate.structures):
        by = growth_rule(plan, ClassCriteria(plan, unit))
        paths.append(list(grow(unit.plan(plan), unit.first(plan, name), count, by=by, show=show)))
    return _together(plan, [path[-1] for path in paths], paths, Selected((), []))


def select_shared(plan: FitPlan, structures: list[str] | None, show: Progress | None) -> Outcome:
    """Fit components shared by all classes, with selected number and structure."""
    unit = Unit(tuple(range(plan.n_classes)), True)
    names = structures or ["VVI", "EEE", "VVV"]
    if plan.search.criterion == "cv" and not plan.search.grown and by_likelihood(plan.est.training):
        result = search_shared(plan, names, shared_counts(plan), plan.search.cv, show)
        if result is not None:
            candidate, records, temperature = result
            fitted, _ = plan.fit(candidate, starts=plan.parts(candidate, plan.est.n_init))
            return Outcome(fitted, candidate, temperature, UNIFORM_SHARE, records)
    selected = select(plan, [unit], names, False, show)
    if selected is None:  # few rows: one component for each class
        candidate = replace(unit.first(plan, (structures or ["EEE"])[0]), counts=(plan.n_classes,))
        fitted, _ = plan.fit(candidate, starts=plan.parts(candidate, plan.est.n_init))
        return Outcome(fitted, candidate, uniform_share=_uniform_share(plan))
    (key,) = selected.combination
    path = _path(plan, unit, key, selected.options, 0)
    fitted = _stage_of(path, key).fitted
    candidate = replace(unit.first(plan, key[0]), counts=(fitted.params.n_components,))
    grown = path if plan.search.grown else []
    return Outcome(fitted, candidate, selected.temperature, _uniform_share(plan), selected.records, grown)


def grown_shared(plan: FitPlan, candidate: Candidate, show: Progress | None) -> Outcome:
    """Grow shared components to a given number."""
    by = growth_rule(plan, ClassCriteria(plan, Unit(tuple(range(plan.n_classes)), True)))
    path = list(grow(plan, replace(candidate, counts=(1,)), candidate.n_components, by=by, show=show))
    return Outcome(path[-1].fitted, candidate, path=path)


def _check_apart(plan: FitPlan) -> None:
    if plan.est.across_classes:
        raise ValueError(
            "across_classes=True needs a search that fits all classes together; set growth='restart', criterion='cv' "
            "and per_class=False"
        )


def _path(plan: FitPlan, unit: Unit, key: Key, options: Options | None, number: int) -> list[Stage]:
    """Return the stages of a unit up to the selected key, from the search or fitted now."""
    name, count = key
    if options is not None:
        return [option.stage for (n, _), option in options.by_unit[number].items() if n == name]
    unit_plan = unit.plan(plan)
    first = unit.first(unit_plan, name)
    count = limit_of(unit_plan, count)
    if plan.search.grown:
        return list(grow(unit_plan, first, count, by=growth_rule(plan, ClassCriteria(plan, unit))))
    n_init = plan.est.n_init if unit.shared else 1
    return list(restart(unit_plan, replace(first, counts=(count,)), count, n_init))


def _stage_of(path: list[Stage], key: Key) -> Stage:
    """Return the stage with this number of components, or the next smaller (or the first)."""
    return max((s for s in path if s.n_components <= key[1]), key=lambda s: s.n_components, default=path[0])


def _together(plan: FitPlan, stages: list[Stage], paths: list[list[Stage]], selected: Selected) -> Outcome:
    """Return a classifier from the mixtures of all classes, after EM with all rows, also those of uncertain class."""
    counts = tuple(stage.n_components for stage in stages)
    names = tuple(stage.covariance for stage in stages)
    candidate = Candidate(counts, names, False, plan.default_rows())
    params = joined([stage.fitted for stage in stages], _class_weights(plan))
    start = plan.assigned(candidate, params, np.flatnonzero(plan.positive & (plan.codes >= 0)))
    fitted, _ = plan.fit(candidate, starts=[start], warm=params)
    grown: list = paths if plan.search.grown else []
    return Outcome(fitted, candidate, selected.temperature, _uniform_share(plan), selected.records, grown)


def _uniform_share(plan: FitPlan) -> float:
    """Return the share of the uniform distribution in the probabilities, which is that of the loss of the search."""
    searched = isinstance(plan.est.n_components, str) and plan.search.criterion == "cv"
    return UNIFORM_SHARE if searched else 0.0


def _class_weights(plan: FitPlan) -> Array:
    return class_shares(plan) if plan.class_prior is None else plan.class_prior


def joined(parts: Sequence[Fitted], class_weights: Array) -> MixtureParams:
    """Return the joint parameters of the mixtures of single classes."""
    counts = [part.params.n_components for part in parts]
    owner = np.repeat(np.arange(len(parts)), counts)
    shares = [part.params.weights.sum(axis=0) / part.params.weights.sum() for part in parts]
    within = np.concatenate([share[:count] for share, count in zip(shares, counts)])
    noise = np.array([share[count:] for share, count in zip(shares, counts)])  # (C, 1), or (C, 0) without noise
    own = np.equal(np.arange(len(parts))[:, None], owner) * within
    weights = np.column_stack([own, noise]) * class_weights[:, None]
    optional = [part.params.components.gaussian for part in parts]
    tables = [part.params.components.categorical for part in parts]
    gaussians = [g for g in optional if g is not None]
    gaussian = categorical = None
    if gaussians:
        axes = tuple(axes for g in gaussians for axes in g.axes)
        gaussian = replace(gaussians[0].extended(gaussians[1:]), axes=axes)
    if all(t is not None for t in tables):
        categorical = Categoricals(np.concatenate([t.log_probs for t in tables if t is not None]))
    return MixtureParams(weights, Components(gaussian, categorical))
