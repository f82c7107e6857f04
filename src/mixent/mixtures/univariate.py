"""Gaussian mixtures of many single columns at once, with the number of components selected by BIC.

Each unit (a column, or a column within a class) is standardized and compressed to a grid of values x_b with weights w_b
and variances s_b within bins (zero for up to `MAX_POINTS` distinct values). For a given K, EM maximizes the sum over
units of

    sum_b w_b log sum_k p_k N(x_b; m_k, v_k) exp(-s_b / 2 v_k)  -  1/2 sum_k a / v_k,   v_k >= floor.

The exponential makes the density of a bin the geometric mean of the densities of its rows; the only approximation is
that the rows of a bin have the same responsibilities. The prior adds the scatter a of a few rows to each component
without adding to its count: it widens narrow components and, unlike a prior that also adds to the counts, never narrows
components with few rows. The update maximizes a lower bound that touches the objective of each unit, so that no unit's
objective ever decreases. The result of a unit does not depend on the other units, to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from mixent.core.arrays import Array, log_sum_exp
from mixent.core.driver import Event, Halt, Problem, Status, Stop, run
from mixent.core.executors import Serial
from mixent.core.stats import Stats
from mixent.mixtures.columns import LOG_2PI, MAX_POINTS, ByUnit, ColumnMixture, Grid, Unit, batches, compress

ROWS = 3.0  # number of rows whose scatter the prior adds to each component: columns + 2, as elsewhere
FEW = 10.0  # total weight below which the prior is weaker
PATIENCE = 2  # numbers of components without a better BIC after which a unit is finished
QUICK = 12  # passes of the short run from each start
LLOYD = 5  # iterations of k-means
MAX_REMAINING = 3000  # a unit stops if, at its current gain, it would need more passes to reach a better BIC
WIDEST = 1e12  # largest variance, so that a starved component remains finite
DEFAULT = Stop(1e-6, 500)


def fit_columns(
    units: Sequence[tuple[Array, Array | None]],
    max_components: int,
    *,
    stop: Stop = DEFAULT,
    seed: int = 0,
    max_points: int = MAX_POINTS,
) -> list[ColumnMixture]:
    """Return a mixture of each unit, with 1 to `max_components` components selected by BIC, sorted by mean.

    Parameters
    ----------
    units : sequence of (x, weight)
        The values (n_u,) of a column (within a class), where NaN is ignored, and their weights (n_u,) or None.
    max_components : int
        Largest number of components; at most the number of distinct values, and a fifth of the weight.
    stop : Stop
        `tol` and `max_passes` apply to each unit and each number of components.
    seed : int
        Seed of the random starts; all units use the same random numbers, as shares of their weight.
    max_points : int
        Number of distinct values of a unit from which they are grouped into bins.
    """
    grids = [compress(np.asarray(x, dtype=float), weight, max_points) for x, weight in units]
    mixtures: dict[int, ColumnMixture] = {}
    with Serial():
        for index in batches(grids, max_components):
            mixtures |= zip(index, _fit_batch([grids[i] for i in index], max_components, stop, seed), strict=True)
    return [mixtures[i] for i in range(len(grids))]


PARTS = "weights", "means", "variances"


@dataclass(frozen=True)
class _Params(ByUnit):
    weights: Array  # (U, K)
    means: Array  # (U, K)
    variances: Array  # (U, K)
    value: Array  # (U,) objective of each unit before its last update; -inf at the start
    done: np.ndarray  # (U,) whether the unit has converged and is no longer updated

    @classmethod
    def begin(cls, weights: Array, means: Array, variances: Array) -> _Params:
        return cls(weights, means, variances, np.full(len(means), -np.inf), np.zeros(len(means), dtype=bool))

    def put(self, index: np.ndarray, other: _Params) -> None:
        for f in fields(self):
            getattr(self, f.name)[index] = getattr(other, f.name)


@dataclass(frozen=True)
class _Moments(Stats):
    mass: Array  # (U, K)
    first: Array  # (U, K) about the current means, since E[x^2] - m^2 cancels for a narrow component
    second: Array  # (U, K)
    log_lik: Array  # (U,)


@dataclass(frozen=True)
class _Columns(ByUnit, Problem):
    """EM for all units; a unit whose objective gains at most `tol` per unit of weight is no longer updated."""

    floor: Array  # (U,)
    total: Array  # (U,)
    scatter: Array  # (U,) added to each component by the prior
    needed: Array  # (U,) log-likelihood below which the fit will not be selected
    tol: float

    def prepare(self, params: _Params) -> _Params:
        return params

    def stats(self, ready: _Params, block: Any) -> _Moments:
        deviation, square, resp = _log_joint(ready, block)
        log_lik = _normalize(resp, block.weight)
        return _moments(resp, deviation, square, log_lik)

    def values(self, params: _Params, total: _Moments) -> Array:
        """Return the objective of each unit, (U,)."""
        return total.log_lik - 0.5 * self.scatter * (1 / params.variances).sum(axis=1)

    def objective(self, params: _Params, total: _Moments) -> float:
        return float(self.values(params, total).sum())

    def update(self, params: _Params, total: _Moments, step: float = 1.0) -> _Params:
        value = self.values(params, total)
        gain = value - params.value
        hopeless = MAX_REMAINING * gain < self.needed - total.log_lik
        done = params.done | hopeless | (gain <= self.tol * self.total)
        new = self.maximum(params.means, total)
        weights, means, variances = (np.where(done[:, None], getattr(params, n), new[n]) for n in PARTS)
        return _Params(weights, means, variances, value, done)

    def maximum(self, means: Array, total: _Moments) -> dict[str, Array]:
        """Return the maximum of the lower bound, given moments about `means`."""
        mass = np.maximum(total.mass, 1e-280)
        shift = total.first / mass
        scatter = np.maximum(total.second - total.first * shift, 0.0) + self.scatter[:, None]
        # the bound has a single maximum in v; if it is outside the limits, the nearer limit is optimal
        variances = np.minimum(np.maximum(scatter / mass, self.floor[:, None]), WIDEST)
        weights = mass / np.maximum(self.total[:, None], 1e-280)
        return {"weights": weights, "means": means + shift, "variances": variances}

    def started(self, grid: Grid, members: Array) -> _Params:
        """Return the M-step from the weight (U, K, n) of each grid point in each part."""
        x = grid.x[:, None, :]
        square = x**2 if grid.spread is None else x**2 + grid.spread[:, None, :]
        return _Params.begin(**self.maximum(np.zeros(members.shape[:2]), _moments(members, x, square, grid.total)))


def _moments(resp: Array, deviation: Array, square: Array, log_lik: Array) -> _Moments:
    first, second = (np.einsum("ukn,ukn->uk", resp, part) for part in (deviation, square))
    return _Moments(resp.sum(axis=2), first, second, log_lik)


def _log_joint(params: _Params, grid: Grid) -> tuple[Array, Array, Array]:
    """Return x - m, its square plus the variance of the bin, and log p_k N_k, each (U, K, n)."""
    deviation = grid.x[:, None, :] - params.means[:, :, None]
    square = deviation * deviation
    if grid.spread is not None:
        square += grid.spread[:, None, :]
    joint = square * (-0.5 / params.variances)[:, :, None]
    joint += (np.log(params.weights) - 0.5 * (np.log(params.variances) + LOG_2PI))[:, :, None]
    return deviation, square, joint


def _normalize(joint: Array, weight: Array) -> Array:
    """Replace log p(k, x), (U, K, n), by weighted responsibilities in place and return the log-likelihoods, (U,)."""
    top = joint.max(axis=1)
    joint -= top[:, None, :]
    np.exp(joint, out=joint)
    mass = joint.sum(axis=1)
    joint *= (weight / mass)[:, None, :]
    top += np.log(mass)
    top *= weight
    log_lik: Array = top.sum(axis=1)
    return log_lik


def _maximize(problem: _Columns, grid: Grid, params: _Params, n_updates: int) -> _Params:
    """Update each unit until it converges, at most n_updates times.

    Whenever half of the units have converged, the others are continued in a smaller problem.
    """
    index = np.arange(len(params.done))
    params = params.take(index)  # a copy to write into
    while len(index) and n_updates > 0:
        stop = Stop(-1.0, n_updates)  # the total gain does not stop the run: each unit has its own rule
        part_problem, part = problem.take(index), grid.take(index)
        result = run(part_problem, part, params.take(index), stop=stop, executor=Serial(), observers=(_half_done,))
        params.put(index, result.params)
        if result.status is not Status.STOPPED:
            break
        n_updates -= result.n_passes
        index = index[~result.params.done]
    return params


def _half_done(event: Event[_Params]) -> Halt[_Params] | None:
    done = event.params.done
    return Halt("half of the units have converged") if 2 * done.sum() >= len(done) else None


def _fit_batch(units: list[Unit], max_components: int, stop: Stop, seed: int) -> list[ColumnMixture]:
    """Fit increasing numbers of components; a unit is finished at its limit, or when BIC no longer decreases."""
    whole, limits = Grid.of(units), np.array([u.most_components(max_components) for u in units])
    best = [u.restore(np.ones(1), np.zeros(1), np.ones(1)) for u in units]
    lowest, poor = np.full(len(units), np.inf), np.zeros(len(units), dtype=int)
    live, before = np.arange(len(units)), None
    for K in range(1, max_components + 1):
        unfinished = (limits[live] >= K) & (poor[live] < PATIENCE)
        live, before = live[unfinished], before and before.take(unfinished)
        if not len(live):
            break
        grid = whole.take(live)
        penalty = (3 * K - 1) * np.log(np.maximum(grid.total, 1e-280))
        needed = 0.5 * (penalty - lowest[live])  # log-likelihood at which this K has the lowest BIC so far
        before, log_lik = _fit_order(grid, K, before, needed, stop, np.random.default_rng((seed, K)))
        bic = penalty - 2 * log_lik
        better = bic < lowest[live]
        for j in np.flatnonzero(better):
            best[live[j]] = units[live[j]].restore(*(getattr(before, n)[j] for n in PARTS))
        poor[live] = np.where(better, 0, poor[live] + 1)
        lowest[live] = np.minimum(bic, lowest[live])
    return best


def _fit_order(
    grid: Grid, K: int, before: _Params | None, needed: Array, stop: Stop, rng: np.random.Generator
) -> tuple[_Params, Array]:
    """Fit K components to every unit, from the best of several short runs; return them and log-likelihoods (U,)."""
    equal = np.arange(1, K) / K
    # the density of k-means centers is proportional to the cube root of the density; a frequent value is a single part
    parts = _clusters(grid, _between(np.cbrt(grid.weight), equal))
    none = np.full(len(grid.total), -np.inf)
    problem = _Columns(grid.floor, grid.total, _prior_scatter(grid, parts), none, stop.tol)
    starts = [problem.started(grid, parts)]
    if before is not None:
        cuts = equal, np.sort(rng.random(K - 1))
        starts += [problem.started(grid, _between(grid.weight, shares)) for shares in cuts]
        starts += _split(problem, grid, before)
    units = np.arange(len(grid.total))
    tiled = np.tile(units, len(starts))
    copies = grid.take(tiled)
    stacked = _Params.begin(*(np.concatenate([getattr(s, n) for s in starts]) for n in PARTS))
    short = _maximize(problem.take(tiled), copies, stacked, min(QUICK, stop.max_passes))
    # by likelihood, since the prior prefers a starved wide component
    best = problem.stats(short, copies).log_lik.reshape(len(starts), -1).argmax(axis=0)
    chosen = short.take(best * len(units) + units)
    params = _maximize(replace(problem, needed=needed), grid, chosen, stop.max_passes)
    return params, problem.stats(params, grid).log_lik


def _between(weight: Array, cuts: Array) -> Array:
    """Return the weight (U, K, n) of each grid point in the parts between these quantiles; points may be divided."""
    upto = np.cumsum(weight, axis=1)
    edges = np.concatenate([[0.0], cuts, [1.0]]) * upto[:, -1:]  # (U, K + 1)
    low = np.maximum(edges[:, :-1, None], (upto - weight)[:, None, :])
    return np.maximum(np.minimum(edges[:, 1:, None], upto[:, None, :]) - low, 0.0)


def _clusters(grid: Grid, parts: Array) -> Array:
    """Run k-means from these parts; return the weight (U, K, n) of each grid point in its cluster."""
    names = np.arange(parts.shape[1])[:, None]
    for _ in range(LLOYD):
        nearest = np.abs(_from_centers(grid, parts)).argmin(axis=1)
        parts = np.where(nearest[:, None, :] == names, grid.weight[:, None, :], 0.0)
    return parts


def _from_centers(grid: Grid, parts: Array) -> Array:
    """Return x minus the mean of each part, (U, K, n)."""
    centers = np.einsum("ukn,un->uk", parts, grid.x) / np.maximum(parts.sum(axis=2), 1e-280)
    return grid.x[:, None, :] - centers[:, :, None]


def _prior_scatter(grid: Grid, parts: Array) -> Array:
    """Return the scatter of `ROWS` rows with the variance within the parts, (U,).

    With few rows, the variance is increasingly that of K parts of equal width. Components on a very frequent value may
    be narrow: the variance within parts decreases with K, and if only the prior determined the width of such a
    component, the fit would improve with every K. The variance is therefore bounded for all K.
    """
    K = parts.shape[1]
    square = _from_centers(grid, parts) ** 2
    if grid.spread is not None:
        square += grid.spread[:, None, :]
    rows = np.maximum(grid.total - K, 0.0)
    within = np.einsum("ukn,ukn->u", parts, square) / np.maximum(rows, 1.0)
    share = np.maximum(1e-8, 1 - rows / FEW)
    variance = (1 - share) * within + share / K**2
    return ROWS * np.minimum(grid.total / FEW, 1.0) * np.minimum(variance, np.maximum(grid.repeats**-2.0, 1e-4))


def _split(problem: _Columns, grid: Grid, params: _Params) -> list[_Params]:
    """Return starts with one more component: that with the largest gain is divided, at its mean or by distance."""
    deviation, square, resp = _log_joint(params, grid)
    log_density = log_sum_exp(resp, axis=1)[:, None, :]
    others = 1 - np.exp(resp - log_density)
    _normalize(resp, grid.weight)
    starts = []
    for inside in (deviation < 0, square < 0.455 * params.variances[:, :, None]):  # each is half of a Gaussian
        ratio, children = others, []  # ratio of densities with and without the division of component k
        for members in (resp * inside, resp * ~inside):
            child = problem.maximum(params.means, _moments(members, deviation, square, grid.total))
            joint = _log_joint(_Params.begin(**child), grid)[2]
            ratio = ratio + np.exp(np.minimum(joint - log_density, 700.0))
            children.append(child)
        gain = np.einsum("ukn,un->uk", np.log(np.maximum(ratio, 1e-280)), grid.weight)
        starts.append(_replaced(params, gain.argmax(axis=1), *children))
    return starts


def _replaced(params: _Params, which: np.ndarray, first: dict[str, Array], second: dict[str, Array]) -> _Params:
    """Replace component `which` (U,) of each unit by its two children."""
    unit, new = np.arange(len(which)), {}
    for name in PARTS:
        old = getattr(params, name).copy()
        old[unit, which] = first[name][unit, which]
        new[name] = np.column_stack([old, second[name][unit, which]])
    return _Params.begin(**new)
