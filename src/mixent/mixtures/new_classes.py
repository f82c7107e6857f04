"""New classes in a later batch of `partial_fit` (`partial_fit`).

A class that has rows in the batch gets one component of its own, with the prior of the fitted model. The statistics of
earlier rows have zeros for the new class and component, so that EM continues as before. Components of other classes do
not suffice for a new class, also if classes share components: the earlier rows fix them where these rows are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixent.core.arrays import Array, safe_log
from mixent.core.blocks import ArrayBlocks
from mixent.families.categorical import CategoricalFamily, Categoricals
from mixent.families.gaussian.family import GaussianFamily, Gaussians, Group
from mixent.families.gaussian.prior import Prior
from mixent.families.product import Components, ProductFamily
from mixent.mixtures.fit_plan import FitPlan
from mixent.mixtures.init import membership_moments, one_hot
from mixent.mixtures.online import PastStatistics
from mixent.mixtures.problem import MixtureParams, MixtureProblem, MixtureStats


@dataclass(frozen=True)
class Places:
    """Where old classes and components are in the extended model, and where new ones are."""

    classes: np.ndarray  # (C,) old class of each class, -1 if new
    components: np.ndarray  # (K,) old component of each component, -1 if new
    new: dict[int, int]  # class -> its new component

    @classmethod
    def of(cls, weights: Array, before: np.ndarray, classes: np.ndarray, own: np.ndarray, shared: bool) -> Places:
        """Return the places for joint weights (C, K) of the classes `before`; new classes `own` get a component.

        New components are among those of the other classes in the order of the classes, or last if all are shared.
        """
        old = {label: c for c, label in enumerate(before.tolist())}
        from_class = np.array([old.get(label, -1) for label in classes.tolist()])
        now = np.flatnonzero(from_class >= 0)
        owner = np.concatenate([now[weights.argmax(axis=0)], own])
        order = np.arange(len(owner)) if shared else np.argsort(owner, kind="stable")
        source = np.concatenate([np.arange(weights.shape[1]), np.full(len(own), -1)])[order]
        return cls(from_class, source, {int(owner[order[k]]): int(k) for k in np.flatnonzero(source < 0)})

    def insert(self, values: Array, new: Any = 0.0) -> Array:
        """Return values of components (K, ...) with those of new ones."""
        out = np.array(values[np.maximum(self.components, 0)])
        out[self.components < 0] = new
        return out

    def joint(self, values: Array) -> Array:
        """Return values (C, K) with zeros for new classes and components."""
        out = self.insert(values.T).T[np.maximum(self.classes, 0)]
        out[self.classes < 0] = 0.0
        return out


@dataclass(frozen=True)
class Extended:
    """A fitted mixture with new classes, before EM."""

    problem: MixtureProblem
    params: MixtureParams
    statistics: PastStatistics


def extend(
    problem: MixtureProblem, params: MixtureParams, past: PastStatistics, places: Places, shared: bool
) -> Extended:
    """Return the mixture with new classes, whose components have average parameters."""
    share = params.weights.sum(axis=0) / params.weights.sum()
    gaussian, family = params.components.gaussian, problem.family
    gaussians = categoricals = gaussian_family = categorical_family = None
    if family.gaussian is not None and gaussian is not None:
        gaussian_family, gaussians = _extend_gaussians(family.gaussian, gaussian, places, share)
    if family.categorical is not None and params.components.categorical is not None:
        categorical_family, categoricals = _extend_tables(
            family.categorical, params.components.categorical, places, share
        )
    weights = places.joint(params.weights)
    for c in np.flatnonzero(places.classes < 0).tolist():  # positive where the class may use a component
        if c in places.new:
            weights[c, places.new[c]] = 1e-300
    if shared:
        weights = np.maximum(weights, 1e-300)
    other = replace(problem, family=ProductFamily(gaussian_family, categorical_family))
    components = Components(gaussians, categoricals)
    return Extended(other, replace(params, weights=weights, components=components), _extend_past(past, places))


def _extend_past(past: PastStatistics, places: Places) -> PastStatistics:
    gaussian = None if past.gaussian is None else _extend_prior(past.gaussian, places, 0.0)
    categories = None if past.categories is None else places.insert(past.categories)
    return PastStatistics(places.joint(past.counts), gaussian, categories)


def _extend_prior(prior: Prior, places: Places, rows: float) -> Prior:
    """Return the prior with `rows` times the average number of pseudo-rows, about the average, for new components."""
    return Prior(
        places.insert(prior.rows, rows * prior.rows.mean()),
        places.insert(prior.cov, rows * prior.cov.mean(axis=0)),
        places.insert(prior.mean, prior.mean.mean(axis=0)),
        places.insert(prior.mean_rows, rows * prior.mean_rows.mean()),
    )


def _extend_gaussians(
    family: GaussianFamily, params: Gaussians, places: Places, share: Array
) -> tuple[GaussianFamily, Gaussians]:
    several = len(family.groups) > 1
    old = family.group_of()[np.maximum(places.components, 0)]
    fresh = places.components < 0
    number = np.where(fresh, len(family.groups) + np.cumsum(fresh), old) if several else np.zeros(len(fresh), dtype=int)
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    groups, axes = [], []
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(number)]):
        new = several and bool(fresh[start])
        groups.append(Group(new_structure(family) if new else family.groups[number[start]].structure, start, stop))
        axes.append(None if new else params.axes[number[start]])
    prior = None if family.prior is None else _extend_prior(family.prior, places, 1.0)
    means = places.insert(params.means, share @ params.means)
    covs = places.insert(params.covs, np.tensordot(share, params.covs, axes=1))
    return replace(family, groups=tuple(groups), prior=prior), Gaussians(means, covs, tuple(axes))


def new_structure(family: GaussianFamily) -> str:
    """Return the structure of a new component: that of the others if they agree, else VVI or VVV."""
    names = {group.structure for group in family.groups}
    return names.pop() if len(names) == 1 else "VVI" if family.axis_aligned else "VVV"


def _extend_tables(
    family: CategoricalFamily, params: Categoricals, places: Places, share: Array
) -> tuple[CategoricalFamily, Categoricals]:
    rows = family.rows if family.rows.ndim == 1 else places.insert(family.rows, family.rows.mean(axis=0))
    average = safe_log(share @ np.exp(params.log_probs))
    return replace(family, rows=rows), Categoricals(places.insert(params.log_probs, average))


def initialize(
    problem: MixtureProblem, params: MixtureParams, plan: FitPlan, places: Places, shared: bool
) -> MixtureParams:
    """Return the M-step from the rows of new classes in their own components; `problem` includes the earlier rows."""
    rows = np.flatnonzero(np.isin(plan.codes, list(places.new)) & plan.positive)
    weight = plan.table.row_weights[rows]
    component = np.array([places.new[c] for c in plan.codes[rows].tolist()], dtype=int)
    members = one_hot(component, params.n_components)
    if len(rows) == 0:  # classes without rows
        rows, members = np.zeros(1, dtype=int), np.zeros((1, params.n_components))
    params = _centered(params, plan.table.X[rows], members * plan.table.row_weights[rows, None], problem)
    source = ArrayBlocks(replace(plan.table.take(rows), rows=None, label=None))
    with plan.executor(1) as executor:
        stats = membership_moments(problem.family, params.components, source, members.__getitem__, executor)
    counts = np.zeros_like(params.weights)
    np.add.at(counts, (plan.codes[rows[: len(component)]], component), weight)
    params = problem.update(params, MixtureStats(counts, stats, 0.0))
    _check_rank(problem, params, plan, places)
    if not shared:
        return params
    from mixent.mixtures.training import smoothed_weights  # loaded when used

    return replace(params, weights=smoothed_weights(params.weights))


def _centered(params: MixtureParams, X: Array, weight: Array, problem: MixtureProblem) -> MixtureParams:
    """Return the parameters with the means of new components at those of their observed values."""
    gaussian, family = params.components.gaussian, problem.family.gaussian
    if gaussian is None or family is None:
        return params
    observed = ~np.isnan(X)
    mass = weight.T @ observed
    sums = weight.T @ np.where(observed, X - family.center, 0.0)
    means = np.divide(sums, mass, out=np.array(gaussian.means), where=mass > 0)
    return replace(params, components=replace(params.components, gaussian=replace(gaussian, means=means)))


def _check_rank(problem: MixtureProblem, params: MixtureParams, plan: FitPlan, places: Places) -> None:
    """Check that new classes have enough rows for a covariance, without a prior."""
    gaussian, family = params.components.gaussian, problem.family.gaussian
    if gaussian is None or family is None:
        return
    flat = replace(family, prior=None).degenerate(gaussian)
    for c, k in places.new.items():
        if flat[k]:
            raise ValueError(
                f"the new class {plan.classes.tolist()[c]!r} has {plan.class_rows()[c]} row(s) in this batch, too few "
                "to estimate a covariance by maximum likelihood; give more rows of it, or fit with prior='auto'"
            )
