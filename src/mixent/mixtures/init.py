"""Initialization of EM: a summary of the table, a partition of the rows, and an M-step from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.executors import Executor
from mixent.families.categorical import Categoricals
from mixent.families.gaussian.family import GaussianFamily, Gaussians
from mixent.families.gaussian.prior import Prior
from mixent.families.product import Components, ComponentStats, ProductFamily
from mixent.mixtures.kmeans import kmeans, nearest
from mixent.mixtures.problem import MixtureParams

SAMPLE = 5000  # rows of the sample for k-means
NEIGHBORS = 10  # number of the neighbor whose distance measures how isolated a row is


@dataclass(frozen=True)
class Summary:
    """Weighted means and standard deviations of the continuous columns, frequencies of the categorical ones."""

    center: Array  # (d,)
    scale: Array  # (d,) > 0
    frequencies: Array  # (sum of sizes,), smoothed


def summarize(source: ArrayBlocks, sizes: tuple[int, ...], executor: Executor) -> Summary:
    """Compute means, standard deviations and frequencies in two passes; missing values are left out."""
    table = source.table

    def total(values: Callable[[Block], tuple[Array, Array]]) -> tuple[Array, Array]:
        parts = executor.map(values, source)
        return np.sum([p[0] for p in parts], axis=0), np.sum([p[1] for p in parts], axis=0)

    def first(block: Block) -> tuple[Array, Array]:
        return _weighted_sum(block, block.X)

    mass, sums = total(first)
    center = sums / np.maximum(mass, 1e-300)
    mass, squares = total(lambda block: _weighted_sum(block, (block.X - center) ** 2))
    scale = np.sqrt(squares / np.maximum(mass, 1e-300))
    # a constant column has no standard deviation: its scale is relative to its value
    scale = np.where(scale > 1e-15 * np.maximum(np.abs(center), 1e-300), scale, np.maximum(np.abs(center), 1.0) * 1e-6)
    return Summary(center, scale, _frequencies(table, sizes))


def _weighted_sum(block: Block, values: Array) -> tuple[Array, Array]:
    weight = block.row_weights
    if block.complete:
        return np.full(values.shape[1], weight.sum()), weight @ values
    observed = ~np.isnan(values)
    return weight @ observed, weight @ np.where(observed, values, 0.0)


def column_ranges(table: Block, summary: Summary) -> tuple[Array, Array]:
    """Return the smallest and largest value of each continuous column, (d,) each, of rows with positive weight."""
    rows = table.X if table.weight is None else table.X[table.weight > 0]
    low, high = np.fmin.reduce(rows, axis=0), np.fmax.reduce(rows, axis=0)
    varies = high - low > 0  # a column that is constant, or missing, has the range of its scale
    return np.where(varies, low, summary.center - summary.scale), np.where(varies, high, summary.center + summary.scale)


def _frequencies(table: Block, sizes: tuple[int, ...]) -> Array:
    out = []
    for j, size in enumerate(sizes):
        assert table.codes is not None
        codes = table.codes[:, j]
        observed = codes >= 0
        weight = None if table.weight is None else table.weight[observed]
        counts = np.bincount(codes[observed], weight, size)[:size] + 0.5
        out.append(counts / counts.sum())
    return np.concatenate(out) if out else np.empty(0)


def flat_components(family: ProductFamily, summary: Summary, n_components: int) -> Components:
    """Return identical components, each with the means, variances and frequencies of the whole table."""
    gaussian = categorical = None
    if family.gaussian is not None:
        gaussian = _flat_gaussians(family.gaussian, summary, n_components)
    if family.categorical is not None:
        categorical = Categoricals(np.tile(np.log(summary.frequencies), (n_components, 1)))
    return Components(gaussian, categorical)


def _flat_gaussians(family: GaussianFamily, summary: Summary, n_components: int) -> Gaussians:
    means = np.zeros((n_components, family.n_columns))
    variances = np.tile(summary.scale**2, (n_components, 1))
    covs = variances if family.axis_aligned else variances[:, :, None] * np.eye(family.n_columns)
    return family.initial(means, covs)


Members = Callable[[slice | np.ndarray], Array]  # responsibilities (n, K) of some rows


def membership_moments(
    family: ProductFamily,
    components: Components,
    source: ArrayBlocks,
    members: Members,
    executor: Executor,
) -> ComponentStats:
    """Return the moments of all rows under given responsibilities, `members(rows) -> (n, K)`.

    Missing values are replaced by their expectations under `components`.
    """
    family = family.trained
    ready = family.prepare(components)

    def moments(block: Block) -> ComponentStats:
        work = family.open(ready, block)
        work.log_prob()
        part = np.ascontiguousarray(members(slice(None) if block.rows is None else block.rows).T)
        return work.moments(part if block.weight is None else part * block.weight)

    return executor.total(moments, source)


@dataclass(frozen=True)
class Partition:
    """Initial responsibilities of some rows."""

    rows: np.ndarray  # (m,) row numbers
    resp: Array  # (m, K)


def from_partition(
    family: ProductFamily, summary: Summary, table: Block, start: Partition, counts: Array, executor: Executor
) -> MixtureParams:
    """Return the M-step from a partition; `counts` (C, K) has the rows of each class and part, 0 where not allowed."""
    all_rows = len(start.rows) == table.n_rows and bool((np.diff(start.rows) == 1).all())
    part = table if all_rows else replace(table.take(start.rows), rows=None, label=None)
    source = ArrayBlocks(part)
    flat = flat_components(family, summary, start.resp.shape[1])
    stats = membership_moments(family, flat, source, start.resp.__getitem__, executor)
    components = family.update(flat, stats)
    if family.degenerate(components).any():  # with a weak prior EM can start, and repair degenerate components
        components = _with_weak_prior(family, summary, start.resp.shape[1]).update(flat, stats)
    return MixtureParams(family.initial_weights(counts), components)


def with_gaussians(gaussians: Gaussians, family: GaussianFamily, means: Array | None, covs: Array | None) -> Gaussians:
    """Return Gaussians with given means (K, d) and covariances (K, d, d) or diagonals (K, d), within the structure."""
    if means is not None:
        gaussians = replace(gaussians, means=means - family.center)
    if covs is None:
        return gaussians
    if family.axis_aligned:
        covs = covs if covs.ndim == 2 else np.diagonal(covs, axis1=1, axis2=2).copy()
    elif covs.ndim == 2:
        covs = covs[:, :, None] * np.eye(covs.shape[1])
    gaussians = replace(gaussians, covs=covs)
    nearest = family.unpack(family.pack(gaussians), gaussians, np.ones(len(covs)))
    return gaussians if nearest is None else nearest  # projected on the structure


def _with_weak_prior(family: ProductFamily, summary: Summary, n_components: int) -> ProductFamily:
    """Return the family with a prior of one pseudo-row."""
    gaussian = family.gaussian
    assert gaussian is not None
    prior = Prior(np.array(1.0), summary.scale**2, np.zeros(gaussian.n_columns), np.array(0.0))
    return replace(family, gaussian=replace(gaussian, prior=prior.expand(n_components, gaussian.axis_aligned)))


def sample_rows(rows: np.ndarray, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Return the rows, or a random sample of them that is large enough for k-means."""
    limit = max(SAMPLE, 50 * n_clusters)
    return np.sort(rng.choice(rows, limit, replace=False)) if len(rows) > limit else rows


def cluster(
    table: Block, summary: Summary, sizes: tuple[int, ...], n_clusters: int, method: str, rng: np.random.Generator
) -> np.ndarray:
    """Return a cluster label for each row: by k-means, or the nearest of randomly drawn rows."""
    n = table.n_rows
    if n_clusters == 1 or n <= n_clusters:
        return np.arange(n) % n_clusters
    points = space(table, summary, sizes)
    if method == "random":
        return nearest(points, points[rng.choice(n, n_clusters, replace=False)])
    return kmeans(points, n_clusters, table.weight, rng)


def connected(points: Array, weight: Array, n_clusters: int, isolated: float) -> np.ndarray:
    """Return the points (m,) without a share `isolated` of their weight, those farthest from their neighbors.

    These may be outliers, and would often be cluster centers. The distance is that within which the points weigh as
    much as the point itself and `NEIGHBORS` others of weight 1. A weight of 2 for each cluster is kept.
    """
    from sklearn.neighbors import NearestNeighbors  # takes long to import

    total = weight.sum()
    target = max((1 - isolated) * total, 2.0 * n_clusters)
    if target >= total:
        return np.arange(len(points))
    neighbors = NearestNeighbors(n_neighbors=min(2 * NEIGHBORS, len(points)), n_jobs=1).fit(points)
    distances, index = neighbors.kneighbors(points)  # the first is the point itself
    reached = np.cumsum(weight[index], axis=1) >= NEIGHBORS + 1
    position = np.where(reached[:, -1], reached.argmax(axis=1), -1)
    distance = distances[np.arange(len(points)), position]
    order = np.argsort(distance, kind="stable")
    last = order[np.searchsorted(np.cumsum(weight[order]), target)]
    return np.flatnonzero(distance <= distance[last])  # equal rows are treated alike


def space(block: Block, summary: Summary, sizes: tuple[int, ...]) -> Array:
    """Return standardized columns, with missing values replaced by the mean, and one-hot encoded categories."""
    X = np.nan_to_num((block.X - summary.center) / summary.scale, nan=0.0)
    if block.codes is None:
        return X
    indicators = [np.equal(block.codes[:, [j]], np.arange(size)).astype(float) for j, size in enumerate(sizes)]
    return np.concatenate([X, *indicators], axis=1)


def one_hot(label: np.ndarray, size: int) -> Array:
    return np.equal(label[:, None], np.arange(size)).astype(float)
