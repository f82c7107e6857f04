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
from mixent.families.gaussian.prior import Prior, common_variances
from mixent.families.product import Components, ContaminatedFamily, ProductFamily
from mixent.families.uniform import Uniform
from mixent.mixtures.init import Members, Partition, Summary, flat_components, membership_moments, one_hot
from mixent.mixtures.online import PastStatistics
from mixent.mixtures.problem import MixtureParams, MixtureProblem

VARIANCE_ROWS = 4_000  # rows of the sample from which the scale of a prior is estimated
NOTICEABLE = 0.02  # share of a component's variance by which another prior has to change it to be used
LEAST_SHRINKAGE = 1e-3  # of the correlations in the target of a prior, which must not be nearly singular
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
    numeric: type[GaussianFamily] = GaussianFamily,
    uniform: Uniform | None = None,
) -> ProductFamily:
    """Return the family of these columns; `noise` is relative to the variance of each column."""
    gaussian = categorical = None
    if len(summary.center):
        gaussian = numeric(tuple(groups), summary.center, summary.scale)
        K = groups[-1].stop
        variances = noise * summary.scale**2 if noise else None
        gaussian = replace(gaussian, prior=prior and prior.expand(K, gaussian.axis_aligned), noise=variances)
    if sizes:
        categorical = CategoricalFamily(sizes, smoothing * summary.frequencies)
    if uniform is not None:
        return ContaminatedFamily(gaussian, categorical, uniform)
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
    weight = max(d / (rows + d), LEAST_SHRINKAGE)  # with few rows, correlations are mostly noise
    floor = (1e-6 * summary.scale) ** 2
    return (1 - weight) * cov + np.diag(weight * np.diagonal(cov) + floor)


def evenly_spaced(rows: np.ndarray) -> np.ndarray:
    """Return at most 4,000 of the rows."""
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), VARIANCE_ROWS)).astype(np.intp)]


def part_variances(table: Block, start: Partition) -> tuple[Array, Array]:
    """Return m_k and v_k for `common_variances`: degrees of freedom and variances of the parts of a partition, (K, d).

    They are those of at most 4,000 rows. Missing values are left out. Equal values do not contribute to the degrees of
    freedom, since they carry no information about the scale: a column that is constant within a part would otherwise
    suggest a scale of zero.
    """
    some = evenly_spaced(np.arange(len(start.rows)))
    rows, parts = start.rows[some], start.resp[some]
    X, weight = table.X[rows], table.row_weights[rows]
    counts = np.zeros((start.resp.shape[1], X.shape[1]))
    variances = np.zeros_like(counts)
    hard = parts.argmax(axis=1)
    for k, resp in enumerate(parts.T):
        used = np.flatnonzero(resp * weight > 0)
        if not len(used):
            continue
        observed = ~np.isnan(X[used])
        share = (resp * weight)[used, None] * observed
        values = np.where(observed, X[used], 0.0)
        mass = share.sum(axis=0)
        mean = (share * values).sum(axis=0) / np.maximum(mass, 1e-300)
        squares = (share * (values - mean) ** 2).sum(axis=0)
        variances[k] = squares / np.maximum(mass - 1, 0.5 * mass + 1e-300)
        own = np.sort(X[used[hard[used] == k]], axis=0)
        distinct = (np.diff(own, axis=0) > 0).sum(axis=0)  # NaN is last; one value less
        counts[k] = np.minimum(distinct, np.maximum(mass - 1, 0.0))
    return counts, variances


def scaled_to(cov: Array, variances: Array) -> Array:
    """Return the covariance with the same correlations and these variances."""
    std = np.sqrt(variances / np.diagonal(cov))
    return cov * std[:, None] * std


def component_covariance(
    rows: float, table: Block, start: Partition, summary: Summary, reference: Array, executor: Executor
) -> Array:
    """Return the covariance towards which a prior shrinks components, (d, d), from a partition of the rows.

    Variances are those of `common_variances`, which do not depend on the distances between the parts. Correlations are
    those within the parts; with few rows, these are replaced by the correlations of `reference`.
    """
    within, share = _within_parts(table, start, summary, executor)
    ones = np.ones(len(reference))
    correlations = (1 - share) * scaled_to(within, ones) + share * scaled_to(reference, ones)
    floor = (1e-6 * summary.scale) ** 2
    variances = common_variances(rows, *part_variances(table, start), np.diagonal(reference))
    return scaled_to(correlations, np.maximum(variances, floor))


def cluster_covariance(
    rows: float, table: Block, start: Partition, summary: Summary, reference: Array, executor: Executor
) -> Array:
    """Return the pooled covariance within the parts of a partition, (d, d); with few rows, that of `reference`.

    Wide parts determine it, whereas narrow ones determine `component_covariance`. Components are therefore smoother,
    and predict classes better where these have few rows for their number of columns.
    """
    within, share = _within_parts(table, start, summary, executor)
    share = max(share, 1e-8)  # keeps it positive definite
    return (1 - share) * within + share * reference


def _within_parts(table: Block, start: Partition, summary: Summary, executor: Executor) -> tuple[Array, float]:
    """Return the pooled covariance within the parts, and the share by which a reference should replace it."""
    n_parts = start.resp.shape[1]
    part = ArrayBlocks(replace(table.take(start.rows), rows=None, label=None))
    scatter, mass = within_scatter(summary, part, start.resp.__getitem__, n_parts, executor)
    degrees = max(mass - n_parts, 0.0)
    return shrunk(scatter / max(degrees, 1.0), summary, degrees), max(0.0, 1 - degrees / (10 * len(scatter)))


def rescaled(before: ProductFamily, after: ProductFamily, components: Components, mass: Array) -> bool:
    """Return whether the prior of `after` changes the variance of a component noticeably, given their rows `mass`."""
    if before.gaussian is None or after.gaussian is None or components.gaussian is None:
        return False
    old, new = before.gaussian.prior, after.gaussian.prior
    if old is None or new is None:
        return False
    change = old.rows[:, None] * np.abs(_variances(new.cov) - _variances(old.cov))
    rows = mass[: len(old.rows)] + old.rows
    return bool((change > NOTICEABLE * rows[:, None] * _variances(components.gaussian.covs)).any())


def _variances(covs: Array) -> Array:
    return covs if covs.ndim == 2 else np.diagonal(covs, axis1=1, axis2=2)


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
    statistics = None if statistics is None else statistics.take(order, run.params.n_components)
    return Fitted(replace(problem, family=family), params, run, statistics)
