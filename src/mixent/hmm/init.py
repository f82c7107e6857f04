"""Initialization of Baum-Welch: a partition of the steps into states, and an M-step from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixent.core.arrays import Array, log_sum_exp, safe_log, weighted_quantile
from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.executors import Executor
from mixent.families.categorical import CategoricalFamily, Categoricals
from mixent.families.gaussian.family import Group
from mixent.families.gaussian.prior import Prior
from mixent.families.poisson import PoissonFamily, Poissons
from mixent.families.product import Components, ProductFamily
from mixent.hmm.lattice import Layout
from mixent.hmm.problem import ChainParams
from mixent.hmm.sequences import Sequences, observed_steps
from mixent.mixtures.fitting import component_covariance, make_family, pooled_covariance, shrunk
from mixent.mixtures.init import Partition, Summary, cluster, from_partition, one_hot, space, with_gaussians
from mixent.mixtures.kmeans import cluster_means, lloyd, nearest

SAMPLE = 20_000  # steps of the sample for k-means
TOPOLOGIES = ("full", "left-right")
PERTURBATION = 0.3  # standard deviation of the initial perturbation of log probabilities of categories
LEAST_RATE = 1e-100  # of a variable whose counts are all zero


@dataclass(frozen=True)
class InitialStates:
    """An initial state of every step."""

    label: np.ndarray  # (n_steps,), -1 for a step without observed values
    seed: tuple[int, int]


def initial_states(
    sequences: Sequences,
    steps: Block,
    summary: Summary,
    sizes: tuple[int, ...],
    n_states: int,
    topology: str,
    method: str,
    seed: tuple[int, int],
) -> InitialStates:
    """Divide the steps into states.

    "full": by k-means; the centers of the first start are from quantiles along the first principal axis, without random
    numbers, so that it depends neither on the order of sequences nor on whether a sequence is repeated or has weight 2.
    "left-right": by time, into segments of equal length.
    """
    rng = np.random.default_rng(seed)
    observed = observed_steps(steps)
    if topology == "left-right":
        label = _segments(sequences, n_states, rng if method == "random" or seed[1] else None)
    else:
        label = _clusters(steps, observed, summary, sizes, n_states, method, seed[1], rng)
    return InitialStates(np.where(observed, label, -1), seed)


def _segments(sequences: Sequences, n_states: int, rng: np.random.Generator | None) -> np.ndarray:
    layout = Layout(sequences.lengths)
    share = np.empty(len(layout.time))
    share[layout.rows] = (layout.time + 0.5) / sequences.lengths[layout.order[layout.rank]]
    cuts = np.arange(1, n_states) / n_states if rng is None else np.sort(rng.random(n_states - 1))
    return np.searchsorted(cuts, share)


def _clusters(
    steps: Block,
    observed: np.ndarray,
    summary: Summary,
    sizes: tuple[int, ...],
    n_states: int,
    method: str,
    number: int,
    rng: np.random.Generator,
) -> np.ndarray:
    used = np.flatnonzero(observed & (steps.row_weights > 0))
    if n_states == 1 or len(used) == 0:
        return np.zeros(steps.n_rows, dtype=np.intp)
    if len(used) > SAMPLE:
        used = used[np.linspace(0, len(used) - 1, SAMPLE).astype(np.intp)]
    part = replace(steps.take(used), rows=None)
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
    label: np.ndarray,
    steps: Block,
    summary: Summary,
    target: Array,
    n_states: int,
    rows: float | None,
    executor: Executor,
) -> Prior | None:
    """Return the prior, which shrinks covariances towards a common one within the states (`component_covariance`).

    `label` is the state of each step, -1 for a step without observed values.
    """
    d = len(summary.center)
    if rows is None or d == 0:
        return None
    cov = target * n_states ** (-2 / d)
    if n_states > 1:
        where = np.flatnonzero((label >= 0) & (steps.row_weights > 0))
        part = Partition(where, one_hot(label[where], n_states))
        cov = component_covariance(rows, steps, part, summary, cov, executor)
    return Prior.of_covariances(rows, cov, float(steps.row_weights.sum()))


def overall_covariance(steps: Block, summary: Summary, executor: Executor) -> Array:
    """Return the covariance of all steps, (d, d), regularized as a target of shrinkage."""
    if not len(summary.center):
        return np.empty((0, 0))
    whole = np.zeros(steps.n_rows, dtype=np.intp)
    cov = pooled_covariance(summary, ArrayBlocks(steps), whole, 1, executor)
    return shrunk(cov, summary, float(steps.row_weights.sum()))


def emission_family(
    n_states: int, structure: str, summary: Summary, sizes: tuple[int, ...], prior: Prior | None, smoothing: float
) -> ProductFamily:
    """Return the family of the emissions."""
    family = make_family([Group(structure, 0, n_states)], summary, sizes, prior, 0.0, smoothing)
    if family.categorical is None:
        return family
    # without smoothing, values of probability zero get a tiny one, so that the logarithm is finite
    rows = np.maximum(family.categorical.rows, 1e-300)
    return replace(family, categorical=replace(family.categorical, rows=rows))


def poisson_family(n_states: int, summary: Summary, sizes: tuple[int, ...], smoothing: float) -> ProductFamily:
    """Return the family of emissions with Poisson distributions of the numeric variables."""
    family = emission_family(n_states, "VVI", replace(summary, center=np.empty(0)), sizes, None, smoothing)
    if not len(summary.center):
        return family
    poisson: Any = PoissonFamily(n_states, np.maximum(summary.center, LEAST_RATE), smoothing)
    return replace(family, gaussian=poisson)


def initial_components(
    start: InitialStates, steps: Block, summary: Summary, family: ProductFamily, n_states: int, executor: Executor
) -> Components:
    """Return the M-step from the initial states, perturbed where states would be identical."""
    where = np.flatnonzero(start.label >= 0)
    label = start.label[where]
    partition = Partition(where, one_hot(label, n_states))
    counts = np.ones((1, n_states))
    rng = np.random.default_rng((*start.seed, 1))
    poisson = family.gaussian if isinstance(family.gaussian, PoissonFamily) else None
    if poisson is not None:
        family = replace(family, gaussian=None)
    elif family.gaussian is not None:
        family = replace(family, gaussian=replace(family.gaussian, fixed_means=False))  # fixed from here on
    components = Components(None, None)
    if family.gaussian is not None or family.categorical is not None:
        components = from_partition(family, summary, steps, partition, counts, executor).components
    gaussian, categorical = components.gaussian, components.categorical
    if poisson is not None:
        gaussian = _initial_rates(poisson, steps.take(where), partition.resp, rng)
    elif gaussian is not None and n_states > 1:
        empty = np.bincount(label, steps.row_weights[where], n_states) == 0
        noise = rng.standard_normal(gaussian.means.shape) * summary.scale
        gaussian = replace(gaussian, means=gaussian.means + 0.5 * empty[:, None] * noise)
    if categorical is not None and n_states > 1:
        assert family.categorical is not None
        perturbed = categorical.log_probs + PERTURBATION * rng.standard_normal(categorical.log_probs.shape)
        categorical = Categoricals(_normalized(family.categorical, perturbed))
    return Components(gaussian, categorical)


def _initial_rates(family: PoissonFamily, steps: Block, resp: Array, rng: np.random.Generator) -> Any:
    """Return the M-step of the rates; those of states without steps are perturbed around the mean rates."""
    noise = rng.standard_normal((resp.shape[1], family.n_columns)) if resp.shape[1] > 1 else np.zeros((1, 1))
    flat = Poissons(family.mean * np.exp(PERTURBATION * noise))
    stats = family.open(flat.rates, steps).moments(np.ascontiguousarray((resp * steps.row_weights[:, None]).T))
    empty = (stats.mass == 0).all(axis=1, keepdims=True)
    rates = np.where(empty, flat.rates, family.update(flat, stats).rates)
    # a rate of zero would remain zero: EM starts from at least a small share of the mean rate
    return Poissons(np.maximum(rates, 1e-3 * family.mean))


def _normalized(family: CategoricalFamily, log_probs: Array) -> Array:
    parts = np.split(log_probs, family.starts[1:], axis=1)
    return np.concatenate([part - log_sum_exp(part, axis=1)[:, None] for part in parts], axis=1)


def initial_chain(
    start: InitialStates | None, sequences: Sequences, weight: Array, n_states: int, topology: str
) -> tuple[Array, Array]:
    """Return the logarithms of start (S,) and transition (S, S) probabilities, from counts in the initial states.

    All probabilities that the topology allows are positive.
    """
    allowed = np.ones((n_states, n_states))
    first = np.ones(n_states)
    if topology == "left-right":
        allowed, first = np.triu(allowed), np.eye(n_states)[0]
    start_counts: np.ndarray = np.zeros(n_states)
    pairs: np.ndarray = np.zeros((n_states, n_states))
    if start is not None:
        label, by_step = start.label, np.repeat(weight, sequences.lengths)
        heads = sequences.starts[label[sequences.starts] >= 0]
        start_counts = np.bincount(label[heads], by_step[heads], n_states)
        inner = np.ones(len(label), dtype=bool)
        inner[sequences.starts] = False
        index = np.flatnonzero(inner)
        index = index[(label[index] >= 0) & (label[index - 1] >= 0)]
        cells = label[index - 1] * n_states + label[index]
        pairs = np.bincount(cells, by_step[index], n_states**2).reshape(pairs.shape)
    return _smoothed(start_counts, first), _smoothed(pairs, allowed)


def _smoothed(counts: Array, allowed: Array) -> Array:
    """Return the logarithms of relative counts, after adding 1 plus a tenth of each row over all allowed entries."""
    counts = counts * allowed
    total = counts.sum(axis=-1, keepdims=True)
    table = counts + (1.0 + 0.1 * total) * allowed / allowed.sum(axis=-1, keepdims=True)
    return safe_log(table / table.sum(axis=-1, keepdims=True))


def with_initial(
    params: ChainParams, initial: dict[str, Any], family: ProductFamily | None, fixed: tuple[str, ...] = ()
) -> ChainParams:
    """Replace initial parameters by those of the user (checked by `options.read_start`).

    Covariances are projected on the structure, which fixed ones must have.
    """
    if "start" in initial:
        params = replace(params, log_start=safe_log(initial["start"]))
    if "transitions" in initial:
        params = replace(params, log_trans=safe_log(initial["transitions"]))
    if family is None or params.components is None:
        return params
    gaussian, categorical = params.components.gaussian, params.components.categorical
    if isinstance(gaussian, Poissons):
        gaussian = Poissons(initial["means"]) if "means" in initial else gaussian
    elif gaussian is not None and family.gaussian is not None:
        covs = initial.get("covariances")
        gaussian = with_gaussians(gaussian, family.gaussian, initial.get("means"), covs)
        if covs is not None and "covariances" in fixed:
            full = covs if covs.ndim == 3 else covs[:, :, None] * np.eye(covs.shape[1])
            if not np.allclose(gaussian.full_covs(), full, rtol=1e-9, atol=1e-9 * np.abs(full).max()):
                structure = family.gaussian.groups[0].structure
                raise ValueError(f"init: fixed covariances do not have the structure {structure!r}; use 'VVV'")
    if categorical is not None and "tables" in initial:
        categorical = Categoricals(safe_log(np.maximum(initial["tables"], 1e-300)))
    return replace(params, components=Components(gaussian, categorical))
