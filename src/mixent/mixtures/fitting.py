"""Steps of a fit that all mixture estimators share: blocks, families, priors, the final order of components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.driver import Run
from mixent.core.executors import Executor
from mixent.families.categorical import CategoricalFamily
from mixent.families.gaussian.family import GaussianFamily, Group
from mixent.families.gaussian.kernels import quadratic_pays
from mixent.families.gaussian.prior import Prior
from mixent.families.product import ProductFamily
from mixent.mixtures.init import Members, Summary, flat_components, membership_moments, one_hot
from mixent.mixtures.online import PastStatistics
from mixent.mixtures.problem import MixtureParams, MixtureProblem

FEATURE_BYTES = 4 << 20  # size of the temporary arrays of a block


def blocks(table: Block, n_components: int, axis_aligned: bool, classes: np.ndarray | None = None) -> ArrayBlocks:
    """Divide the rows into blocks whose temporary arrays fit the cache."""
    d = table.X.shape[1]
    width = 1 + 2 * d if axis_aligned else (1 + d + d * (d + 1) // 2 if quadratic_pays(n_components, d) else 2 * d)
    rows = int(np.clip(FEATURE_BYTES // (8 * (width + n_components)), 512, 16384))
    incomplete_rows = int(np.clip(FEATURE_BYTES * 2 // (8 * n_components * d * max(1, d // 3) + 1), 64, 2048))
    return ArrayBlocks(table, rows, incomplete_rows, classes)


def make_family(
    groups: Sequence[Group],
    summary: Summary,
    sizes: tuple[int, ...],
    prior: Prior | None,
    noise: float,
    smoothing: float,
) -> ProductFamily:
    """Return the family of these columns; `noise` is relative to the variance of each column."""
    gaussian = categorical = None
    if len(summary.center):
        gaussian = GaussianFamily(tuple(groups), summary.center, summary.scale)
        K = groups[-1].stop
        variances = noise * summary.scale**2 if noise else None
        gaussian = replace(gaussian, prior=prior and prior.expand(K, gaussian.axis_aligned), noise=variances)
    if sizes:
        categorical = CategoricalFamily(sizes, smoothing * summary.frequencies)
    return ProductFamily(gaussian, categorical)


def pooled_covariance(
    summary: Summary, source: ArrayBlocks, label: np.ndarray, n_labels: int, executor: Executor
) -> Array:
    """Return the covariance within groups of rows, (d, d); `label` (n,) is the group of each row, -1 for none."""
    if not len(summary.center):
        return np.empty((0, 0))
    scatter, mass = within_scatter(summary, source, lambda rows: one_hot(label[rows], n_labels), n_labels, executor)
    return scatter / max(mass, 1e-300)


def within_scatter(
    summary: Summary, source: ArrayBlocks, members: Members, n_groups: int, executor: Executor
) -> tuple[Array, float]:
    """Return the scatter within the groups, (d, d), and the total weight of the rows."""
    gaussian = GaussianFamily((Group("VVV", 0, n_groups),), summary.center, summary.scale)
    family = ProductFamily(gaussian, None)
    flat = flat_components(family, summary, n_groups)
    stats = membership_moments(family, flat, source, members, executor)
    assert flat.gaussian is not None and stats.gaussian is not None
    mass, scatter, _ = gaussian.sufficient(flat.gaussian, stats.gaussian)
    return scatter.sum(axis=0), float(mass.sum())


def shrunk(cov: Array, summary: Summary, rows: float) -> Array:
    """Return a covariance suited as the target of a prior: positive definite, correlations shrunk with few rows."""
    d = len(cov)
    weight = d / (rows + d)  # with few rows, correlations are mostly noise
    floor = (1e-6 * summary.scale) ** 2
    return (1 - weight) * cov + np.diag(weight * np.diagonal(cov) + floor)


@dataclass(frozen=True)
class Fitted:
    """A fitted mixture: the problem, the run, and the parameters in canonical order."""

    problem: MixtureProblem
    params: MixtureParams
    run: Run
    statistics: PastStatistics | None = None  # sufficient statistics of the rows, from which `partial_fit` continues


def finish(problem: MixtureProblem, run: Run, statistics: PastStatistics | None = None) -> Fitted:
    """Drop components without weight and sort the others: by class, then by decreasing weight.

    Noise is only used in training: the fitted family has none.
    """
    params = run.params
    mass = params.weights.sum(axis=0)
    live = np.flatnonzero(mass > 0)
    group = problem.family.group_of(len(mass))
    owner = params.weights.argmax(axis=0)
    order = live[np.lexsort((live, -mass[live], owner[live], group[live]))]
    family, components = problem.family.take(params.components, order)
    if family.gaussian is not None:
        family = replace(family, gaussian=replace(family.gaussian, noise=None))
    params = MixtureParams(params.weights[:, order], components)
    statistics = None if statistics is None else statistics.take(order)
    return Fitted(replace(problem, family=family), params, run, statistics)
