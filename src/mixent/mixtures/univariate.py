"""Gaussian mixtures of many single columns at once, their orders by BIC.

Each unit (a column, or a column within a class) is brought to mean 0 and variance 1 and compressed to a grid of values
x_b with weights w_b and variances s_b within bins (zero up to `MOST` distinct values). For one K, EM maximizes the sum
over units of

    sum_b w_b log sum_k p_k N(x_b; m_k, v_k) exp(-s_b / 2 v_k)  -  1/2 sum_k a / v_k,   v_k >= floor.

The exponential makes a bin the geometric mean of its rows' densities: the rows of a bin share their responsibilities,
and nothing else is lost. The prior adds the scatter a of a few rows to each component and counts no rows: it widens
narrow components and, unlike one that also counts them, never narrows small ones. The update maximizes a lower bound
that touches this for every unit by itself, so no unit's share ever falls. Units neither wait for each other nor change
each other's answers, to the last bit.
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
from mixent.mixtures.columns import LOG_2PI, ByUnit, ColumnMixture, Grid, Unit, batches, compress

ROWS = 3.0  # whose scatter each component is given: columns + 2, as elsewhere
FEW = 10.0  # weight below which it is given less
PATIENCE = 2  # orders without a better BIC after which a unit is finished
QUICK = 12  # passes each start is given
LLOYD = 5  # steps of k-means
HOPE = 3000  # passes that must be able to make good, at the present gain, what a K lacks
WIDEST = 1e12  # variance: that of a starved component must stay a number
DEFAULT = Stop(1e-6, 500)


def fit_columns(
    units: Sequence[tuple[Array, Array | None]], max_components: int, *, stop: Stop = DEFAULT, seed: int = 0
) -> list[ColumnMixture]:
    """One mixture for each unit, its order among 1 to `max_components` by BIC; components by rising mean.

    Parameters
    ----------
    units : sequence of (x, weight)
        The values (n_u,) of a column (within a class), NaN left out, and their weights (n_u,) or None.
    max_components : int
        Largest K. A unit has no more components than distinct values, nor than a fifth of its weight.
    stop : Stop
        `tol` and `max_passes` hold for each unit by itself and for each K.
    seed : int
        Of the starts drawn at random; all units see the same draws, as shares of their weight.
    """
    grids = [compress(np.asarray(x, dtype=float), weight) for x, weight in units]
    found: dict[int, ColumnMixture] = {}
    with Serial():
        for index in batches(grids, max_components):
            found |= zip(index, _fit_batch([grids[i] for i in index], max_components, stop, seed), strict=True)
    return [found[i] for i in range(len(grids))]


PARTS = "weights", "means", "variances"


@dataclass(frozen=True)
class _Params(ByUnit):
    weights: Array  # (U, K)
    means: Array  # (U, K)
    variances: Array  # (U, K)
    value: Array  # (U,) objective of each unit before its last update; -inf at the start
    done: np.ndarray  # (U,) the update before gained too little: the unit rests

    @classmethod
    def begin(cls, weights: Array, means: Array, variances: Array) -> _Params:
        return cls(weights, means, variances, np.full(len(means), -np.inf), np.zeros(len(means), dtype=bool))

    def put(self, index: np.ndarray, other: _Params) -> None:
        for f in fields(self):
            getattr(self, f.name)[index] = getattr(other, f.name)


@dataclass(frozen=True)
class _Moments(Stats):
    mass: Array  # (U, K)
    first: Array  # (U, K) about the current means: E[x^2]-m^2 loses the digits of a narrow component
    second: Array  # (U, K)
    log_lik: Array  # (U,)


@dataclass(frozen=True)
class _Columns(ByUnit, Problem):
    """EM for all units; a unit whose objective gained no more than `tol` for its weight keeps its parameters."""

    floor: Array  # (U,)
    total: Array  # (U,)
    scatter: Array  # (U,) given to each component by the prior
    needed: Array  # (U,) log-likelihood below which the fit is of no use
    tol: float

    def prepare(self, params: _Params) -> _Params:
        return params

    def stats(self, ready: _Params, block: Any) -> _Moments:
        away, square, resp = _log_joint(ready, block)
        log_lik = _normalize(resp, block.weight)
        return _moments(resp, away, square, log_lik)

    def values(self, params: _Params, total: _Moments) -> Array:
        """The objective of each unit, (U,)."""
        return total.log_lik - 0.5 * self.scatter * (1 / params.variances).sum(axis=1)

    def objective(self, params: _Params, total: _Moments) -> float:
        return float(self.values(params, total).sum())

    def update(self, params: _Params, total: _Moments, step: float = 1.0) -> _Params:
        value = self.values(params, total)
        gain = value - params.value
        hopeless = HOPE * gain < self.needed - total.log_lik
        done = params.done | hopeless | (gain <= self.tol * self.total)
        new = self.maximum(params.means, total)
        weights, means, variances = (np.where(done[:, None], getattr(params, n), new[n]) for n in PARTS)
        return _Params(weights, means, variances, value, done)

    def maximum(self, means: Array, total: _Moments) -> dict[str, Array]:
        """Where the bound is highest, given moments about `means`."""
        mass = np.maximum(total.mass, 1e-280)
        shift = total.first / mass
        scatter = np.maximum(total.second - total.first * shift, 0.0) + self.scatter[:, None]
        # with v the bound rises up to this ratio and falls beyond it: outside the limits, the nearer one is best
        variances = np.minimum(np.maximum(scatter / mass, self.floor[:, None]), WIDEST)
        weights = mass / np.maximum(self.total[:, None], 1e-280)
        return {"weights": weights, "means": means + shift, "variances": variances}

    def started(self, grid: Grid, members: Array) -> _Params:
        """One M-step from the weight (U, K, n) of each grid point in each part."""
        x = grid.x[:, None, :]
        square = x**2 if grid.spread is None else x**2 + grid.spread[:, None, :]
        return _Params.begin(**self.maximum(np.zeros(members.shape[:2]), _moments(members, x, square, grid.total)))


def _moments(resp: Array, away: Array, square: Array, log_lik: Array) -> _Moments:
    first, second = (np.einsum("ukn,ukn->uk", resp, part) for part in (away, square))
    return _Moments(resp.sum(axis=2), first, second, log_lik)


def _log_joint(params: _Params, grid: Grid) -> tuple[Array, Array, Array]:
    """x - m, its square with the bin's variance, and log p_k N_k, each (U, K, n)."""
    away = grid.x[:, None, :] - params.means[:, :, None]
    square = away * away
    if grid.spread is not None:
        square += grid.spread[:, None, :]
    joint = square * (-0.5 / params.variances)[:, :, None]
    joint += (np.log(params.weights) - 0.5 * (np.log(params.variances) + LOG_2PI))[:, :, None]
    return away, square, joint


def _normalize(joint: Array, weight: Array) -> Array:
    """Turn log p(k, x) (U, K, n) into weighted responsibilities in place; return the log-likelihoods (U,)."""
    top = joint.max(axis=1)
    joint -= top[:, None, :]
    np.exp(joint, out=joint)
    mass = joint.sum(axis=1)
    joint *= (weight / mass)[:, None, :]
    top += np.log(mass)
    top *= weight
    log_lik: Array = top.sum(axis=1)
    return log_lik


def _raise(problem: _Columns, grid: Grid, params: _Params, n_updates: int) -> _Params:
    """Every unit until it rests, or for so many updates. Once half of them rest the others go on alone."""
    index = np.arange(len(params.done))
    params = params.take(index)  # to write into
    while len(index) and n_updates > 0:
        stop = Stop(-1.0, n_updates + 1)  # never by the total: each unit has its own
        one, part = problem.take(index), grid.take(index)
        result = run(one, part, params.take(index), stop=stop, executor=Serial(), observers=(_thinned,))
        params.put(index, result.params)
        if result.status is not Status.STOPPED:
            break
        n_updates -= result.n_passes - 1
        index = index[~result.params.done]
    return params


def _thinned(event: Event[_Params]) -> Halt[_Params] | None:
    done = event.params.done
    return Halt("half of the units rest") if 2 * done.sum() >= len(done) else None


def _fit_batch(units: list[Unit], max_components: int, stop: Stop, seed: int) -> list[ColumnMixture]:
    """Rising K; a unit leaves when it can carry no more components or its BIC has stopped falling."""
    whole, most = Grid.of(units), np.array([u.most_components(max_components) for u in units])
    best = [u.restore(np.ones(1), np.zeros(1), np.ones(1)) for u in units]
    lowest, poor = np.full(len(units), np.inf), np.zeros(len(units), dtype=int)
    live, before = np.arange(len(units)), None
    for K in range(1, max_components + 1):
        stay = (most[live] >= K) & (poor[live] < PATIENCE)
        live, before = live[stay], before and before.take(stay)
        if not len(live):
            break
        grid = whole.take(live)
        penalty = (3 * K - 1) * np.log(np.maximum(grid.total, 1e-280))
        needed = 0.5 * (penalty - lowest[live])  # log-likelihood at which this K is the best so far
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
    """K components for every unit, and the log-likelihoods (U,): a few passes from each start, the best runs on."""
    equal = np.arange(1, K) / K
    # k-means puts its centers by the cube root of the density; and a value repeated often is still one part
    parts = _clusters(grid, _between(np.cbrt(grid.weight), equal))
    none = np.full(len(grid.total), -np.inf)
    problem = _Columns(grid.floor, grid.total, _prior_scatter(grid, parts), none, stop.tol)
    starts = [problem.started(grid, parts)]
    if before is not None:
        cuts = equal, np.sort(rng.random(K - 1))
        starts += [problem.started(grid, _between(grid.weight, shares)) for shares in cuts]
        starts += _split(problem, grid, before)
    units = np.arange(len(grid.total))
    each = np.tile(units, len(starts))
    copies = grid.take(each)
    stacked = _Params.begin(*(np.concatenate([getattr(s, n) for s in starts]) for n in PARTS))
    tried = _raise(problem.take(each), copies, stacked, min(QUICK, stop.max_passes))
    # by likelihood: to the prior a component starved and wide costs less than one at work
    best = problem.stats(tried, copies).log_lik.reshape(len(starts), -1).argmax(axis=0)
    chosen = tried.take(best * len(units) + units)
    params = _raise(replace(problem, needed=needed), grid, chosen, stop.max_passes)
    return params, problem.stats(params, grid).log_lik


def _between(weight: Array, cuts: Array) -> Array:
    """The weight (U, K, n) of each grid point in the parts between these shares of the whole; points are divided."""
    upto = np.cumsum(weight, axis=1)
    edges = np.concatenate([[0.0], cuts, [1.0]]) * upto[:, -1:]  # (U, K + 1)
    low = np.maximum(edges[:, :-1, None], (upto - weight)[:, None, :])
    return np.maximum(np.minimum(edges[:, 1:, None], upto[:, None, :]) - low, 0.0)


def _clusters(grid: Grid, parts: Array) -> Array:
    """k-means from these parts: the weight (U, K, n) of each grid point in the part it belongs to."""
    names = np.arange(parts.shape[1])[:, None]
    for _ in range(LLOYD):
        nearest = np.abs(_from_centers(grid, parts)).argmin(axis=1)
        parts = np.where(nearest[:, None, :] == names, grid.weight[:, None, :], 0.0)
    return parts


def _from_centers(grid: Grid, parts: Array) -> Array:
    """x - the mean of each part, (U, K, n)."""
    centers = np.einsum("ukn,un->uk", parts, grid.x) / np.maximum(parts.sum(axis=2), 1e-280)
    return grid.x[:, None, :] - centers[:, :, None]


def _prior_scatter(grid: Grid, parts: Array) -> Array:
    """(U,) of `ROWS` rows at the variance within the parts; with few rows, more and more that of K equal shares.

    A value repeated often is no accident to be guarded against. The variance within parts falls with K, and if it
    alone kept a component on such a value wide, every K would fit better than the last: so it is held down for all K.
    """
    K = parts.shape[1]
    square = _from_centers(grid, parts) ** 2
    if grid.spread is not None:
        square += grid.spread[:, None, :]
    rows = np.maximum(grid.total - K, 0.0)
    within = np.einsum("ukn,ukn->u", parts, square) / np.maximum(rows, 1.0)
    trace = np.maximum(1e-8, 1 - rows / FEW)
    variance = (1 - trace) * within + trace / K**2
    return ROWS * np.minimum(grid.total / FEW, 1.0) * np.minimum(variance, np.maximum(grid.repeats**-2.0, 1e-4))


def _split(problem: _Columns, grid: Grid, params: _Params) -> list[_Params]:
    """One component more: cut in two, left and right or core and rim, the one where that gains most likelihood."""
    away, square, resp = _log_joint(params, grid)
    log_density = log_sum_exp(resp, axis=1)[:, None, :]
    others = 1 - np.exp(resp - log_density)
    _normalize(resp, grid.weight)
    starts = []
    for inside in (away < 0, square < 0.455 * params.variances[:, :, None]):  # half of a Gaussian either way
        ratio, children = others, []  # of the densities, with the children in place of component k
        for members in (resp * inside, resp * ~inside):
            child = problem.maximum(params.means, _moments(members, away, square, grid.total))
            joint = _log_joint(_Params.begin(**child), grid)[2]
            ratio = ratio + np.exp(np.minimum(joint - log_density, 700.0))
            children.append(child)
        gain = np.einsum("ukn,un->uk", np.log(np.maximum(ratio, 1e-280)), grid.weight)
        starts.append(_replaced(params, gain.argmax(axis=1), *children))
    return starts


def _replaced(params: _Params, which: np.ndarray, one: dict[str, Array], two: dict[str, Array]) -> _Params:
    """Component `which` (U,) of each unit gives way to its two children."""
    unit, new = np.arange(len(which)), {}
    for name in PARTS:
        old = getattr(params, name).copy()
        old[unit, which] = one[name][unit, which]
        new[name] = np.column_stack([old, two[name][unit, which]])
    return _Params.begin(**new)
