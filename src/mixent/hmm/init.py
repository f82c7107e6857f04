"""Where Baum-Welch starts: steps parted into states, parts turned into parameters by one M-step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixent.core.arrays import Array, log_sum_exp, safe_log, weighted_quantile
from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.executors import Executor
from mixent.families.categorical import CategoricalFamily, Categoricals
from mixent.families.gaussian.family import GaussianFamily, Group
from mixent.families.gaussian.prior import Prior
from mixent.families.product import Components, ProductFamily
from mixent.hmm.lattice import Layout
from mixent.hmm.problem import ChainParams
from mixent.hmm.sequences import Sequences, seen_steps
from mixent.mixtures.fitting import make_family, pooled_covariance, shrunk, within_scatter
from mixent.mixtures.init import Partition, Summary, cluster, from_partition, one_hot, space
from mixent.mixtures.kmeans import cluster_means, lloyd, nearest

SAMPLE = 20_000  # steps that are looked at to part them into states
TOPOLOGIES = ("full", "left-right")
TILT = 0.3  # standard deviation of the logarithms by which the states' tables differ at the start


@dataclass(frozen=True)
class Start:
    """A state for every step, as a guess."""

    label: np.ndarray  # (n_steps,), -1 where nothing was seen
    seed: tuple[int, int]


def guess_states(
    sequences: Sequences,
    steps: Block,
    summary: Summary,
    sizes: tuple[int, ...],
    n_states: int,
    topology: str,
    method: str,
    seed: tuple[int, int],
) -> Start:
    """Part the steps into states.

    "full": by k-means; the first start has centers from the quantiles along the longest axis and draws nothing, so
    that it knows neither the order of sequences nor whether one came twice. "left-right": by time, in equal segments.
    """
    rng = np.random.default_rng(seed)
    seen = seen_steps(steps)
    if topology == "left-right":
        label = _segments(sequences, n_states, rng if method == "random" or seed[1] else None)
    else:
        label = _clusters(steps, seen, summary, sizes, n_states, method, seed[1], rng)
    return Start(np.where(seen, label, -1), seed)


def _segments(sequences: Sequences, n_states: int, rng: np.random.Generator | None) -> np.ndarray:
    layout = Layout(sequences.lengths)
    share = np.empty(len(layout.time))
    share[layout.rows] = (layout.time + 0.5) / sequences.lengths[layout.order[layout.place]]
    cuts = np.arange(1, n_states) / n_states if rng is None else np.sort(rng.random(n_states - 1))
    return np.searchsorted(cuts, share)


def _clusters(
    steps: Block,
    seen: np.ndarray,
    summary: Summary,
    sizes: tuple[int, ...],
    n_states: int,
    method: str,
    number: int,
    rng: np.random.Generator,
) -> np.ndarray:
    counted = np.flatnonzero(seen & (steps.row_weights > 0))
    if n_states == 1 or len(counted) == 0:
        return np.zeros(steps.n_rows, dtype=np.intp)
    if len(counted) > SAMPLE:
        counted = counted[np.linspace(0, len(counted) - 1, SAMPLE).astype(np.intp)]
    part = replace(steps.take(counted), rows=None)
    points = space(part, summary, sizes)
    if method == "random":
        label = cluster(part, summary, sizes, n_states, "random", rng)
    elif number:
        label = cluster(part, summary, sizes, n_states, "kmeans++", rng)
    else:
        label = _by_quantiles(points, part.row_weights, n_states)
    centers = cluster_means(points, part.row_weights, label, n_states)
    filled = np.isfinite(centers[:, 0])
    return np.flatnonzero(filled)[nearest(space(steps, summary, sizes), centers[filled])]


def _by_quantiles(points: Array, weight: Array, n_states: int) -> np.ndarray:
    share = weight / weight.sum()
    centered = points - share @ points
    axis = np.linalg.eigh((centered * share[:, None]).T @ centered)[1][:, -1]
    axis *= np.sign(axis[np.abs(axis).argmax()])
    along = centered @ axis
    cuts = [weighted_quantile(along, weight, k / n_states) for k in range(1, n_states)]
    label = np.searchsorted(cuts, along)
    centers = cluster_means(points, weight, label, n_states)
    filled = np.flatnonzero(np.isfinite(centers[:, 0]))
    return filled[lloyd(points, centers[filled], weight)]


def emission_prior(
    start: Start, steps: Block, summary: Summary, target: Array, n_states: int, rows: float | None, executor: Executor
) -> Prior | None:
    """Shrink covariances towards that within the parts of a start, with a trace of `target`, more when rows are few."""
    d = len(summary.center)
    if rows is None or d == 0:
        return None
    cov = target * n_states ** (-2 / d)
    if n_states > 1:
        where = np.flatnonzero(start.label >= 0)
        part = replace(steps.take(where), rows=None)
        resp = one_hot(start.label[where], n_states)
        scatter, mass = within_scatter(summary, ArrayBlocks(part), resp.__getitem__, n_states, executor)
        known = max(mass - n_states, 0.0)
        within = shrunk(scatter / max(known, 1.0), summary, known)
        trace = max(1e-3, 1 - known / (10 * d))
        cov = (1 - trace) * within + trace * cov
    return Prior(np.array(rows), cov, np.zeros(d), np.array(0.0))


def overall_covariance(steps: Block, summary: Summary, executor: Executor) -> Array:
    """(d, d) of all steps together, fit to be shrunk to."""
    if not len(summary.center):
        return np.empty((0, 0))
    whole = np.zeros(steps.n_rows, dtype=np.intp)
    cov = pooled_covariance(summary, ArrayBlocks(steps), whole, 1, executor)
    return shrunk(cov, summary, float(steps.row_weights.sum()))


def emission_family(
    n_states: int, structure: str, summary: Summary, sizes: tuple[int, ...], prior: Prior | None, smoothing: float
) -> ProductFamily:
    """The family of the states' emissions."""
    family = make_family([Group(structure, 0, n_states)], summary, sizes, prior, 0.0, smoothing)
    if family.categorical is None:
        return family
    # without smoothing a value that a state never emits keeps a trace, so that its logarithm is a number
    rows = np.maximum(family.categorical.rows, 1e-300)
    return replace(family, categorical=replace(family.categorical, rows=rows))


def first_components(
    start: Start, steps: Block, summary: Summary, family: ProductFamily, n_states: int, executor: Executor
) -> Components:
    """One M-step from the parts; states are then made to differ where the parts are alike."""
    where = np.flatnonzero(start.label >= 0)
    label = start.label[where]
    partition = Partition(where, one_hot(label, n_states))
    cells = np.ones((1, n_states))
    found = from_partition(family, summary, steps, partition, cells, executor).components
    rng = np.random.default_rng((*start.seed, 1))
    gaussian, categorical = found.gaussian, found.categorical
    if gaussian is not None and n_states > 1:
        empty = np.bincount(label, steps.row_weights[where], n_states) == 0
        away = rng.standard_normal(gaussian.means.shape) * summary.scale
        gaussian = replace(gaussian, means=gaussian.means + 0.5 * empty[:, None] * away)
    if categorical is not None and n_states > 1:
        assert family.categorical is not None
        tilted = categorical.log_probs + TILT * rng.standard_normal(categorical.log_probs.shape)
        categorical = Categoricals(_normalized(family.categorical, tilted))
    return Components(gaussian, categorical)


def _normalized(family: CategoricalFamily, log_probs: Array) -> Array:
    parts = np.split(log_probs, family.starts[1:], axis=1)
    return np.concatenate([part - log_sum_exp(part, axis=1)[:, None] for part in parts], axis=1)


def first_chain(
    start: Start | None, sequences: Sequences, weight: Array, n_states: int, topology: str
) -> tuple[Array, Array]:
    """Logarithms of start (S,) and transitions (S, S), from what follows what in the guess; nothing allowed is zero."""
    allowed = np.ones((n_states, n_states))
    first = np.ones(n_states)
    if topology == "left-right":
        allowed, first = np.triu(allowed), np.eye(n_states)[0]
    begins: np.ndarray = np.zeros(n_states)
    pairs: np.ndarray = np.zeros((n_states, n_states))
    if start is not None:
        label, by_step = start.label, np.repeat(weight, sequences.lengths)
        heads = sequences.begins[label[sequences.begins] >= 0]
        begins = np.bincount(label[heads], by_step[heads], n_states)
        inner = np.ones(len(label), dtype=bool)
        inner[sequences.begins] = False
        at = np.flatnonzero(inner)
        at = at[(label[at] >= 0) & (label[at - 1] >= 0)]
        pairs = np.bincount(label[at - 1] * n_states + label[at], by_step[at], n_states**2).reshape(pairs.shape)
    return _softened(begins, first), _softened(pairs, allowed)


def _softened(counts: Array, allowed: Array) -> Array:
    """Shares of counts, a tenth and a count of one of each row kept for all that is allowed."""
    counts = counts * allowed
    total = counts.sum(axis=-1, keepdims=True)
    table = counts + (1.0 + 0.1 * total) * allowed / allowed.sum(axis=-1, keepdims=True)
    return safe_log(table / table.sum(axis=-1, keepdims=True))


def with_given(params: ChainParams, given: dict[str, Any], family: ProductFamily | None) -> ChainParams:
    """A start with some of its parameters given (checked, see `options.read_start`)."""
    if "start" in given:
        params = replace(params, log_start=safe_log(given["start"]))
    if "transitions" in given:
        params = replace(params, log_trans=safe_log(given["transitions"]))
    if family is None or params.components is None:
        return params
    gaussian, categorical = params.components.gaussian, params.components.categorical
    if gaussian is not None and family.gaussian is not None:
        if "means" in given:
            gaussian = replace(gaussian, means=given["means"] - family.gaussian.center)
        if "covariances" in given:
            gaussian = replace(gaussian, covs=_in_layout(given["covariances"], family.gaussian))
            nearest = family.gaussian.unpack(family.gaussian.pack(gaussian), gaussian, np.ones(params.n_states))
            gaussian = gaussian if nearest is None else nearest  # a start the structure allows
    if categorical is not None and "tables" in given:
        categorical = Categoricals(safe_log(np.maximum(given["tables"], 1e-300)))
    return replace(params, components=Components(gaussian, categorical))


def _in_layout(covs: Array, family: GaussianFamily) -> Array:
    if family.axis_aligned:
        return covs if covs.ndim == 2 else np.diagonal(covs, axis1=1, axis2=2).copy()
    return covs if covs.ndim == 3 else covs[:, :, None] * np.eye(covs.shape[1])
