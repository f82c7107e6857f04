"""Unconstrained coordinates of K Gaussians: one chart for all 14 covariance structures, and its gradient.

    m_k = m0_k + C0_k^(1/2) t_k
    C_k = u D_k diag(exp(v_k)) D_k^T u,   v_k = a + (b - mean b),   D_k = D0 Q,   Q = (I - S)^-1 (I + S)

with log volume a, shape b and skew-symmetric S (Cayley), each one per component or one for the group as the three
letters of the structure say. m0, C0 are the start, D0 its axes, u a diagonal of units. All is measured by the start, so
that there a row of complete data knows each coordinate about equally well: the nearer the start, the better for L-BFGS.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixent.core.arrays import Array
from mixent.core.driver import OutsideDomainError
from mixent.families.gaussian.family import GaussianFamily, Gaussians
from mixent.families.gaussian.kernels import Moments, about_means

EQUIVARIANT = {"EEE", "VEE", "EVV", "VVV"}  # scaling a column leaves the structure as it is
LIMIT = 200.0  # of |v|: a variance e^200 times the data's, or e^-200, cannot be meant
FAR = 1e8  # of means, in standard deviations of the data; of tan(angle / 2)


def all_rows(family: GaussianFamily, params: Gaussians, moments: Moments, live: np.ndarray | None) -> Moments:
    """Moments about the means, the prior's pseudo-rows and the noise on every row included."""
    if moments.about == "center":
        moments = about_means(moments, params.means)
    mass, first, second = moments.mass, moments.first, moments.second
    if family.noise is not None:
        second = second + (
            mass[:, None] * family.noise if second.ndim == 2 else mass[:, None, None] * np.diag(family.noise)
        )
    prior = family.prior_of(live)
    if prior is not None:
        first = first + prior.mean_rows[:, None] * (prior.mean - params.means)
        mass, second = mass + prior.rows, second + prior.scatter(params.means)
    return Moments(mass, first, second, "means")


def whitened(moments: Moments, factors: Array) -> tuple[Array, Array]:
    """(F first, F second F^T - mass I)  with F^T F = C^-1, in the layout of F: zero at the maximum.

    Nothing here is as large as C^-1, which would cost digits when C is nearly singular.
    """
    mass, first, second = moments.mass, moments.first, moments.second
    if factors.ndim == 2:
        variances = second if second.ndim == 2 else np.diagonal(second, axis1=1, axis2=2)
        return factors * first, factors**2 * variances - mass[:, None]
    spread = factors @ second @ _transposed(factors)
    return _times(factors, first), spread - mass[:, None, None] * np.eye(first.shape[1])


class GaussianChart:
    """Means, then covariances, group by group.

    Components that are not live have no coordinates and stay as they were at the start.
    """

    def __init__(self, family: GaussianFamily, start: Gaussians, live: np.ndarray) -> None:
        self.family, self.start, self.live = family, start, np.asarray(live, dtype=bool)
        self.groups = [
            GroupChart(family, start, g, np.flatnonzero(self.live[group.span]) + group.start)
            for g, group in enumerate(family.groups)
        ]
        self.size = sum(group.size for group in self.groups)
        # covariances do not say which of their coordinates they came from (axes may be swapped): the latest are kept
        self._latest: tuple[Gaussians, list[Place]] | None = None

    def vector(self, params: Gaussians) -> Array:
        """Coordinates of these parameters; of those `params` gave last, exactly where they came from."""
        return np.concatenate([place.vector for place in self._places(params)])

    def params(self, vector: Array) -> Gaussians:
        means, covs, axes = np.array(self.start.means), np.array(self.start.covs), list(self.start.axes)
        cuts = np.cumsum([group.size for group in self.groups])[:-1]
        places = [group.place(part) for group, part in zip(self.groups, np.split(np.array(vector), cuts))]
        for g, (group, place) in enumerate(zip(self.groups, places)):
            means[group.index], covs[group.index] = place.means, group.covs(place, covs.ndim)
            axes[g] = place.axes[0] if group.own_axes and len(group.index) else axes[g]
        params = Gaussians(means, covs, tuple(axes))
        self._latest = params, places
        return params

    def gradient(self, params: Gaussians, moments: Moments) -> Array:
        """Of  sum_nk r_nk log N(x_n; m_k, C_k) + log prior,  at the coordinates `vector(params)`."""
        rows = all_rows(self.family, params, moments, self.live)
        parts = []
        for group, place in zip(self.groups, self._places(params)):
            i = group.index
            own = Moments(rows.mass[i], rows.first[i], rows.second[i], "means")
            parts.append(group.gradient(place, own))
        return np.concatenate(parts)

    def _places(self, params: Gaussians) -> list[Place]:
        if self._latest is not None and self._latest[0] is params:
            return self._latest[1]
        return [group.place(group.vector(params)) for group in self.groups]


@dataclass(frozen=True)
class Place:
    """A point of a group's chart and what follows from it."""

    vector: Array
    means: Array  # (n, d)
    log_variances: Array  # (n, d): v
    skew: Array  # (m, d, d): S, of each component or m = 1; without orientation m = 0
    turn: Array  # (m, d, d): Q
    axes: Array  # (m, d, d): D


class GroupChart:
    """The live components of one group."""

    def __init__(self, family: GaussianFamily, start: Gaussians, g: int, index: np.ndarray) -> None:
        name = family.groups[g].model.name
        self.g, self.index, self.n, self.d = g, index, len(index), family.n_columns
        volume, self.shape, self.orientation = tuple(name)
        self.own_axes = self.shape == "V" and self.orientation == "E"
        # one unit for all columns changes no structure and brings the numbers near 1
        common = np.full(self.d, np.exp(np.log(family.scale).mean()))
        self.unit = family.scale if name in EQUIVARIANT else common
        self.n_volumes = self._copies(volume)
        self.n_shapes = self._copies(self.shape)
        self.n_turns = self._copies(self.orientation)
        self.upper = np.triu_indices(self.d, 1)
        self.base = self._axes(start)
        v = np.log(np.maximum(self._variances(start, self.base), np.exp(-LIMIT)))
        self.turn_unit = self._turn_unit(v)
        self.first_means, self.scale = start.means[index], family.scale
        self.first_factors, self.first_spread = self._factors(v, self.base), self._spread(v, self.base)
        lengths = [self.n * self.d, self.n_volumes, self.n_shapes * self.d, self.turn_unit.size]
        self.cuts, self.size = np.cumsum(lengths)[:-1], sum(lengths)

    def _copies(self, letter: str) -> int:
        return {"I": 0, "E": min(1, self.n), "V": self.n}[letter]

    def _axes(self, params: Gaussians) -> Array:
        """(m, d, d): axes of the covariances, in the order of rising variance unless they are given."""
        if self.n_turns == 0:
            return np.empty((0, self.d, self.d))
        given = params.axes[self.g]
        if self.own_axes and given is not None:
            return given[None]
        covs = params.covs[self.index] / (self.unit[:, None] * self.unit)
        if self.orientation == "E":
            # in unequal shares: what differs in one component must not cancel against another
            shares = 1.0 / (np.arange(1.0, self.n + 1.0) * np.trace(covs, axis1=1, axis2=2))
            covs = np.tensordot(shares, covs, 1)[None]
        return np.linalg.eigh(covs)[1]

    def _turn_unit(self, v: Array) -> Array:
        """(m, d(d-1)/2): angles in which each plane of axes is about as stiff as a log variance.

        A turn between axes of variances l_i and l_j bends the log density with (l_i - l_j)^2 / (l_i l_j): long thin
        components allow but small turns, and without these units L-BFGS needs thousands of passes for them.
        """
        i, j = self.upper
        stiff = 4.0 * np.cosh(0.5 * (v[:, i] - v[:, j])) ** 2
        return 1.0 / np.sqrt(_shared(stiff, self.n_turns))

    def _variances(self, params: Gaussians, axes: Array) -> Array:
        """(n, d): along these axes, in units."""
        covs = params.covs[self.index]
        if self.n_turns == 0:
            return (covs if covs.ndim == 2 else np.diagonal(covs, axis1=1, axis2=2)) / self.unit**2
        covs = covs / (self.unit[:, None] * self.unit)
        return np.asarray((axes * (covs @ axes)).sum(axis=1))

    def vector(self, params: Gaussians) -> Array:
        """Coordinates of the group; covariances that are not of the structure are averaged."""
        axes = self._axes(params)
        variances = self._variances(params, axes)
        if not (variances > 0).all():
            raise OutsideDomainError("a covariance is not positive definite")
        v = np.log(variances)
        a = v.mean(axis=1)
        b = v - a[:, None]
        skew = uncayley(np.swapaxes(self.base, 1, 2) @ axes)[:, *self.upper] / self.turn_unit
        means = _times(self.first_factors, params.means[self.index] - self.first_means)
        parts = means, _shared(a, self.n_volumes), _shared(b, self.n_shapes), skew
        return np.concatenate([part.ravel() for part in parts])

    def place(self, vector: Array) -> Place:
        t, a, b, s = np.split(vector, self.cuts)
        means = self.first_means + _times(self.first_spread, t.reshape(self.n, self.d))
        if not (np.abs(means) <= FAR * self.scale).all():  # NaN too
            raise OutsideDomainError("a mean is out of range")
        b = b.reshape(-1, self.d)
        v = np.zeros((self.n, self.d)) + a[:, None]
        if self.n_shapes:
            v = v + (b - b.mean(axis=1, keepdims=True))
        if not (np.abs(v) <= LIMIT).all():
            raise OutsideDomainError("a standard deviation is out of range")
        if not (np.abs(s) <= FAR).all():
            raise OutsideDomainError("an axis is out of range")
        skew = np.zeros((self.n_turns, self.d, self.d))
        skew[:, *self.upper] = s.reshape(self.turn_unit.shape) * self.turn_unit
        skew = skew - np.swapaxes(skew, 1, 2)
        turn = cayley(skew)
        return Place(vector, means, v, skew, turn, self.base @ turn)

    def covs(self, place: Place, ndim: int) -> Array:
        """(n, d) variances or (n, d, d)."""
        spread = self._spread(place.log_variances, place.axes)
        if self.n_turns == 0:
            return spread**2 if ndim == 2 else (spread**2)[:, :, None] * np.eye(self.d)
        covs: Array = spread @ np.swapaxes(spread, 1, 2)
        return 0.5 * (covs + np.swapaxes(covs, 1, 2))

    def _spread(self, v: Array, axes: Array) -> Array:
        """L = u D exp(v/2)  with L L^T = C: (n, d, d), or its diagonal (n, d) without orientation."""
        std = np.exp(0.5 * v)
        return self.unit * std if self.n_turns == 0 else self.unit[:, None] * axes * std[:, None, :]

    def _factors(self, v: Array, axes: Array) -> Array:
        """F = L^-1 = exp(-v/2) D^T / u  with F^T F = C^-1."""
        precise = np.exp(-0.5 * v)
        return precise / self.unit if self.n_turns == 0 else precise[:, :, None] * np.swapaxes(axes, 1, 2) / self.unit

    def gradient(self, place: Place, rows: Moments) -> Array:
        """From T = F second F^T - mass I:  d/dv = diag(T) / 2,  d/dQ = Q exp(-v/2) T exp(v/2)."""
        factors = self._factors(place.log_variances, place.axes)
        pull, excess = whitened(rows, factors)
        dt = _times(_transposed(self.first_spread), _times(_transposed(factors), pull))
        diagonal = excess if excess.ndim == 2 else np.diagonal(excess, axis1=1, axis2=2)
        dv = 0.5 * diagonal
        db = dv - dv.mean(axis=1, keepdims=True)
        parts = [dt, _summed(dv.sum(axis=1), self.n_volumes), _summed(db, self.n_shapes)]
        if self.n_turns:
            half = 0.5 * place.log_variances
            d_turn = _summed(excess * np.exp(half[:, None, :] - half[:, :, None]), self.n_turns)
            d_skew = cayley_gradient(place.skew, place.turn, place.turn @ d_turn)
            parts.append(d_skew[:, *self.upper] * self.turn_unit)
        return np.concatenate([part.ravel() for part in parts])


def _times(matrices: Array, vectors: Array) -> Array:
    """Matrices (n, d, d), or diagonals (n, d), times vectors (n, d)."""
    return matrices * vectors if matrices.ndim == 2 else (matrices @ vectors[:, :, None])[:, :, 0]


def _transposed(matrices: Array) -> Array:
    return matrices if matrices.ndim == 2 else np.swapaxes(matrices, 1, 2)


def _shared(values: Array, copies: int) -> Array:
    """One entry per component as they are, or their mean, or none."""
    return values if copies == len(values) else values.mean(axis=0, keepdims=True)[:copies]


def _summed(slopes: Array, copies: int) -> Array:
    """The chain rule for `_shared` coordinates."""
    return slopes if copies == len(slopes) else slopes.sum(axis=0, keepdims=True)[:copies]


def cayley(skew: Array) -> Array:
    """Rotations  (I - S)^-1 (I + S)  from skew-symmetric S (m, d, d): all but those by 180 degrees about some axis."""
    one = np.eye(skew.shape[-1])
    return np.asarray(np.linalg.solve(one - skew, one + skew), dtype=float)


def cayley_gradient(skew: Array, turn: Array, d_turn: Array) -> Array:
    """From d/dQ to d/dS_ij for i < j (S_ji = -S_ij):  dQ = (I - S)^-1 dS (I + Q)."""
    one = np.eye(skew.shape[-1])
    d_skew = np.asarray(np.linalg.solve(one + skew, d_turn @ (one + np.swapaxes(turn, 1, 2))), dtype=float)
    return d_skew - np.swapaxes(d_skew, 1, 2)


def uncayley(turns: Array) -> Array:
    """S (m, d, d) whose Cayley transform is the orthogonal matrix Q, up to signs of its columns.

    An axis has no sign; the signs are chosen so that none is turned by 180 degrees, by elimination in Q + E with each
    E_jj = +-1 of the sign of its pivot (as Ballard et al. 2014 reconstruct Householder vectors): every pivot is >= 1.
    """
    one = np.eye(turns.shape[-1])
    out = np.empty_like(turns)
    for i, turn in enumerate(turns):
        signs = np.ones(len(turn))
        left = np.array(turn)
        for j in range(len(turn)):
            signs[j] = 1.0 if left[j, j] >= 0 else -1.0
            column = left[j + 1 :, j] / (left[j, j] + signs[j])
            left[j + 1 :, j + 1 :] -= column[:, None] * left[j, j + 1 :]
        turn = turn * signs
        skew = np.linalg.solve((turn + one).T, (turn - one).T).T
        out[i] = 0.5 * (skew - skew.T)
    return out
