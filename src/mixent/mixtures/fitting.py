"""From a table to a fitted mixture: the steps every mixture estimator shares."""

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
from mixent.mixtures.online import Kept
from mixent.mixtures.problem import MixtureParams, MixtureProblem

FEATURE_BYTES = 4 << 20  # of a block's temporaries


def blocks(table: Block, n_components: int, axis_aligned: bool, classes: np.ndarray | None = None) -> ArrayBlocks:
    """Rows cut into blocks whose temporaries stay in the cache."""
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
    """The family of these columns; a part without columns is absent. `noise` is a share of each column's variance."""
    gaussian = categorical = None
    if len(summary.center):
        gaussian = GaussianFamily(tuple(groups), summary.center, summary.scale)
        K = groups[-1].stop
        blur = noise * summary.scale**2 if noise else None
        gaussian = replace(gaussian, prior=prior and prior.expand(K, gaussian.axis_aligned), noise=blur)
    if sizes:
        categorical = CategoricalFamily(sizes, smoothing * summary.frequencies)
    return ProductFamily(gaussian, categorical)


def pooled_covariance(
    summary: Summary, source: ArrayBlocks, label: np.ndarray, n_labels: int, executor: Executor
) -> Array:
    """Covariance within groups of rows, (d, d); `label` (n,) is the group of each row, -1 none."""
    if not len(summary.center):
        return np.empty((0, 0))
    scatter, mass = within_scatter(summary, source, lambda rows: one_hot(label[rows], n_labels), n_labels, executor)
    return scatter / max(mass, 1e-300)


def within_scatter(
    summary: Summary, source: ArrayBlocks, members: Members, n_groups: int, executor: Executor
) -> tuple[Array, float]:
    """Sum of squares and products about the means of the groups, (d, d), and the weight of the rows."""
    gaussian = GaussianFamily((Group("VVV", 0, n_groups),), summary.center, summary.scale)
    family = ProductFamily(gaussian, None)
    flat = flat_components(family, summary, n_groups)
    stats = membership_moments(family, flat, source, members, executor)
    assert flat.gaussian is not None and stats.gaussian is not None
    mass, scatter, _ = gaussian.sufficient(flat.gaussian, stats.gaussian)
    return scatter.sum(axis=0), float(mass.sum())


def shrunk(cov: Array, summary: Summary, rows: float) -> Array:
    """A covariance fit to be a prior's target: positive definite, correlations shrunk where there are few rows."""
    d = len(cov)
    weight = d / (rows + d)  # with few rows the correlations are mostly noise
    floor = (1e-6 * summary.scale) ** 2
    return (1 - weight) * cov + np.diag(weight * np.diagonal(cov) + floor)


@dataclass(frozen=True)
class Fitted:
    """A mixture that has been fitted: the problem, the run, and the parameters in canonical order."""

    problem: MixtureProblem
    params: MixtureParams
    run: Run
    kept: Kept | None = None  # the statistics of its rows, for `partial_fit` to go on from


def finish(problem: MixtureProblem, run: Run, kept: Kept | None = None) -> Fitted:
    """Drop components without weight and put the others in canonical order: by class, then by falling weight.

    Noise is for training: the fitted family has none.
    """
    params = run.params
    mass = params.weights.sum(axis=0)
    keep = np.flatnonzero(mass > 0)
    group = problem.family.group_of(len(mass))
    owner = params.weights.argmax(axis=0)
    order = keep[np.lexsort((keep, -mass[keep], owner[keep], group[keep]))]
    family, components = problem.family.take(params.components, order)
    if family.gaussian is not None:
        family = replace(family, gaussian=replace(family.gaussian, noise=None))
    params = MixtureParams(params.weights[:, order], components)
    return Fitted(replace(problem, family=family), params, run, None if kept is None else kept.take(order))
