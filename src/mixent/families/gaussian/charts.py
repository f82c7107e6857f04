"""Unconstrained coordinates of K Gaussians, for all 14 covariance structures, and gradients in these coordinates.

    m_k = m0_k + C0_k^(1/2) t_k
    C_k = u D_k diag(exp(v_k)) D_k^T u,   v_k = a + (b - mean b),   D_k = D0 Q,   Q = (I - S)^-1 (I + S)

with log volume a, shape b and skew-symmetric S (Cayley transform), each variable or common to the group according to
the three letters of the structure. m0, C0 are the start, D0 its axes, u a diagonal of units. The coordinates are scaled
such that the Fisher information of complete data at the start is close to the identity, which makes L-BFGS fast.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixent.core.arrays import Array
from mixent.core.driver import OutsideDomainError
from mixent.families.gaussian.family import GaussianFamily, Gaussians
from mixent.families.gaussian.kernels import Moments, about_means

EQUIVARIANT = {"EEE", "VEE", "EVV", "VVV"}  # scaling a column preserves the structure
LIMIT = 200.0  # largest allowed |v|: variances between e^-200 and e^200 times that of the data
FAR = 1e8  # largest allowed mean, in standard deviations of the data, and largest tan(angle / 2)


def all_rows(family: GaussianFamily, params: Gaussians, moments: Moments, live: np.ndarray | None) -> Moments:
    """Return the moments about the means, including the pseudo-rows of the prior and the noise of every row."""
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
    """Return (F first, F second F^T - mass I)  with F^T F = C^-1, in the layout of F; both are zero at the maximum.

    This avoids C^-1, which would lose accuracy when C is nearly singular.
    """
    mass, first, second = moments.mass, moments.first, moments.second
    if factors.ndim == 2:
        variances = second if second.ndim == 2 else np.diagonal(second, axis1=1, axis2=2)
        return factors * first, factors**2 * variances - mass[:, None]
    spread = factors @ second @ _transposed(factors)
    return _times(factors, first), spread - mass[:, None, None] * np.eye(first.shape[1])


class GaussianChart:
    """Coordinates of means and covariances, group by group.

    Components that are not live have no coordinates and do not change.
    """

    def __init__(self, family: GaussianFamily, start: Gaussians, live: np.ndarray) -> None:
        self.family, self.start, self.live = family, start, np.asarray(live, dtype=bool)
        self.groups = [
            GroupChart(family, start, g, np.flatnonzero(self.live[group.span]) + group.start)
            for g, group in enumerate(family.groups)
        ]
        self.size = sum(group.size for group in self.groups)
        # the coordinates of a covariance are not unique (axes may be permuted): the latest ones are stored
        self._latest: tuple[Gaussians, list[GroupPoint]] | None = None

    def vector(self, params: Gaussians) -> Array:
        """Return the coordinates of these parameters; for the latest result of `params`, exactly its argument."""
        return np.concatenate([point.vector for point in self._points(params)])

    def params(self, vector: Array) -> Gaussians:
        means, covs, axes = np.array(self.start.means), np.array(self.start.covs), list(self.start.axes)
        cuts = np.cumsum([group.size for group in self.groups])[:-1]
        points = [group.point(part) for group, part in zip(self.groups, np.split(np.array(vector), cuts))]
        for g, (group, point) in enumerate(zip(self.groups, points)):
            means[group.index], covs[group.index] = point.means, group.covs(point, covs.ndim)
            axes[g] = point.axes[0] if group.common_axes and len(group.index) else axes[g]
        params = Gaussians(means, covs, tuple(axes))
        self._latest = params, points
        return params

    def gradient(self, params: Gaussians, moments: Moments) -> Array:
        """Return the gradient of  sum_nk r_nk log N(x_n; m_k, C_k) + log prior  at the coordinates `vector(params)`."""
        rows = all_rows(self.family, params, moments, self.live)
        parts = []
        for group, point in zip(self.groups, self._points(params)):
            i = group.index
            group_moments = Moments(rows.mass[i], rows.first[i], rows.second[i], "means")
            parts.append(group.gradient(point, group_moments))
        return np.concatenate(parts)

    def _points(self, params: Gaussians) -> list[GroupPoint]:
        if self._latest is not None and self._latest[0] is params:
            return self._latest[1]
        return [group.point(group.vector(params)) for group in self.groups]


@dataclass(frozen=True)
class GroupPoint:
    """Coordinates of a group and the parameters computed from them."""

    vector: Array
    means: Array  # (n, d)
    log_variances: Array  # (n, d): v
    skew: Array  # (m, d, d): S, of each component or m = 1; without orientation m = 0
    turn: Array  # (m, d, d): Q
    axes: Array  # (m, d, d): D


class GroupChart:
    """Coordinates of the live components of a group."""

    def __init__(self, family: GaussianFamily, start: Gaussians, g: int, index: np.ndarray) -> None:
        name = family.groups[g].model.name
        self.g, self.index, self.n, self.d = g, index, len(index), family.n_columns
        volume, self.shape, self.orientation = tuple(name)
        self.common_axes = self.shape == "V" and self.orientation == "E"
        # a common unit of all columns preserves every structure and scales the numbers to about 1
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
        """Return the axes of the covariances, (m, d, d), in order of increasing variance unless they are stored."""
        if self.n_turns == 0:
            return np.empty((0, self.d, self.d))
        stored = params.axes[self.g]
        if self.common_axes and stored is not None:
            return stored[None]
        covs = params.covs[self.index] / (self.unit[:, None] * self.unit)
        if self.orientation == "E":
            # with unequal weights, so that differences between components do not cancel
            shares = 1.0 / (np.arange(1.0, self.n + 1.0) * np.trace(covs, axis1=1, axis2=2))
            covs = np.tensordot(shares, covs, 1)[None]
        return np.linalg.eigh(covs)[1]

    def _turn_unit(self, v: Array) -> Array:
        """Return units of the angles, (m, d(d-1)/2), in which the curvature is about that of a log variance.

        The curvature of the log density with respect to a rotation between axes of variances l_i and l_j is
        (l_i - l_j)^2 / (l_i l_j), which is large for elongated components; without these units L-BFGS needs thousands
        of passes for them.
        """
        i, j = self.upper
        curvature = 4.0 * np.cosh(0.5 * (v[:, i] - v[:, j])) ** 2
        return 1.0 / np.sqrt(_shared(curvature, self.n_turns))

    def _variances(self, params: Gaussians, axes: Array) -> Array:
        """Return the variances along these axes, in units, (n, d)."""
        covs = params.covs[self.index]
        if self.n_turns == 0:
            return (covs if covs.ndim == 2 else np.diagonal(covs, axis1=1, axis2=2)) / self.unit**2
        covs = covs / (self.unit[:, None] * self.unit)
        return np.asarray((axes * (covs @ axes)).sum(axis=1))

    def vector(self, params: Gaussians) -> Array:
        """Return the coordinates of the group; covariances that do not have the structure are averaged."""
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

    def point(self, vector: Array) -> GroupPoint:
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
        return GroupPoint(vector, means, v, skew, turn, self.base @ turn)

    def covs(self, point: GroupPoint, ndim: int) -> Array:
        """Return the covariances, (n, d) variances or (n, d, d)."""
        spread = self._spread(point.log_variances, point.axes)
        if self.n_turns == 0:
            return spread**2 if ndim == 2 else (spread**2)[:, :, None] * np.eye(self.d)
        covs: Array = spread @ np.swapaxes(spread, 1, 2)
        return 0.5 * (covs + np.swapaxes(covs, 1, 2))

    def _spread(self, v: Array, axes: Array) -> Array:
        """Return L = u D exp(v/2)  with L L^T = C: (n, d, d), or its diagonal (n, d) without orientation."""
        std = np.exp(0.5 * v)
        return self.unit * std if self.n_turns == 0 else self.unit[:, None] * axes * std[:, None, :]

    def _factors(self, v: Array, axes: Array) -> Array:
        """Return F = L^-1 = exp(-v/2) D^T / u  with F^T F = C^-1."""
        precise = np.exp(-0.5 * v)
        return precise / self.unit if self.n_turns == 0 else precise[:, :, None] * np.swapaxes(axes, 1, 2) / self.unit

    def gradient(self, point: GroupPoint, rows: Moments) -> Array:
        """Return the gradient; with T = F second F^T - mass I:  d/dv = diag(T) / 2,  d/dQ = Q exp(-v/2) T exp(v/2)."""
        factors = self._factors(point.log_variances, point.axes)
        d_means, excess = whitened(rows, factors)
        dt = _times(_transposed(self.first_spread), _times(_transposed(factors), d_means))
        diagonal = excess if excess.ndim == 2 else np.diagonal(excess, axis1=1, axis2=2)
        dv = 0.5 * diagonal
        db = dv - dv.mean(axis=1, keepdims=True)
        parts = [dt, _summed(dv.sum(axis=1), self.n_volumes), _summed(db, self.n_shapes)]
        if self.n_turns:
            half = 0.5 * point.log_variances
            d_turn = _summed(excess * np.exp(half[:, None, :] - half[:, :, None]), self.n_turns)
            d_skew = cayley_gradient(point.skew, point.turn, point.turn @ d_turn)
            parts.append(d_skew[:, *self.upper] * self.turn_unit)
        return np.concatenate([part.ravel() for part in parts])


def _times(matrices: Array, vectors: Array) -> Array:
    """Multiply matrices (n, d, d), or diagonals (n, d), with vectors (n, d)."""
    return matrices * vectors if matrices.ndim == 2 else (matrices @ vectors[:, :, None])[:, :, 0]


def _transposed(matrices: Array) -> Array:
    return matrices if matrices.ndim == 2 else np.swapaxes(matrices, 1, 2)


def _shared(values: Array, copies: int) -> Array:
    """Return the entries of all components, or their mean, or none."""
    return values if copies == len(values) else values.mean(axis=0, keepdims=True)[:copies]


def _summed(slopes: Array, copies: int) -> Array:
    """Return the derivative by `_shared` coordinates (chain rule)."""
    return slopes if copies == len(slopes) else slopes.sum(axis=0, keepdims=True)[:copies]


def cayley(skew: Array) -> Array:
    """Return the rotations  (I - S)^-1 (I + S)  of skew-symmetric S (m, d, d); no axis is rotated by 180 degrees."""
    eye = np.eye(skew.shape[-1])
    return np.asarray(np.linalg.solve(eye - skew, eye + skew), dtype=float)


def cayley_gradient(skew: Array, turn: Array, d_turn: Array) -> Array:
    """Convert d/dQ to d/dS_ij for i < j (S_ji = -S_ij):  dQ = (I - S)^-1 dS (I + Q)."""
    eye = np.eye(skew.shape[-1])
    d_skew = np.asarray(np.linalg.solve(eye + skew, d_turn @ (eye + np.swapaxes(turn, 1, 2))), dtype=float)
    return d_skew - np.swapaxes(d_skew, 1, 2)


def uncayley(turns: Array) -> Array:
    """Return S (m, d, d) whose Cayley transform is the orthogonal matrix Q, up to signs of its columns.

    The sign of an axis is arbitrary; the signs are chosen so that no axis is rotated by 180 degrees, by elimination in
    Q + E with each E_jj = +-1 the sign of its pivot (as Ballard et al. 2014 reconstruct Householder vectors): every
    pivot is >= 1.
    """
    eye = np.eye(turns.shape[-1])
    out = np.empty_like(turns)
    for i, turn in enumerate(turns):
        signs = np.ones(len(turn))
        left = np.array(turn)
        for j in range(len(turn)):
            signs[j] = 1.0 if left[j, j] >= 0 else -1.0
            column = left[j + 1 :, j] / (left[j, j] + signs[j])
            left[j + 1 :, j + 1 :] -= column[:, None] * left[j, j + 1 :]
        turn = turn * signs
        skew = np.linalg.solve((turn + eye).T, (turn - eye).T).T
        out[i] = 0.5 * (skew - skew.T)
    return out
