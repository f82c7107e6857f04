"""The 14 covariance structures of Celeux & Govaert (1995), Pattern Recognition 28, 781-793.

Sigma_k = lambda_k D_k A_k D_k^T with |A_k| = 1: volume lambda, shape A, orientation D. The three letters of a name
refer to volume, shape and orientation: Equal for all components, Variable, or the Identity.

In the formulas below n_k is `mass`, n its sum, W_k the scatter of component k and W their sum.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mixent.core.arrays import Array
from mixent.families.gaussian._inner import (
    common_axes,
    eigen,
    positive,
    relative_volumes,
    whiten_diagonal,
    whiten_full,
)


@dataclass(frozen=True)
class Covariances:
    """The covariances of a group of components that share one structure."""

    covs: Array  # (K, d) variances for axis-aligned structures, (K, d, d) otherwise
    axes: Array | None = None  # (d, d) orthogonal, common to the group: initial axes of the next M-step of EVE and VVE


Step = Callable[[Array, Array, Covariances | None], Covariances]


@dataclass(frozen=True)
class Structure:
    """A covariance structure: its M-step and its number of free parameters."""

    name: str
    axis_aligned: bool  # diagonal covariances, stored (K, d)
    shared: bool  # every component has the same covariance
    _step: Step
    _free: Callable[[int, int], int]

    def update(self, mass: Array, scatter: Array, current: Covariances | None = None) -> Covariances:
        """Return the M-step: maximize  -1/2 sum_k [ mass_k log|S_k| + tr(S_k^-1 scatter_k) ]  over the structure.

        The maximum is global for all structures except EVE and VVE, which find a local one, not below `current`.
        A singular scatter gives finite, possibly singular covariances.

        Parameters
        ----------
        mass : (K,) array, > 0
            Rows, or sum of responsibilities, of each component (prior pseudo-rows included).
        scatter : (K, d, d) array, or (K, d) for axis-aligned structures
            Sums of squares and products about each component's mean.
        current : Covariances, optional
            Start of the structures with an inner iteration; the result is never worse.
        """
        if self.axis_aligned and scatter.ndim == 3:
            scatter = np.diagonal(scatter, axis1=1, axis2=2)
        return self._step(mass, scatter, current)

    def update_added(self, mass: Array, scatter: Array, like: Covariances) -> Array:
        """Return the M-step of new components, each added to the fixed group `like`:  (P, d) or (P, d, d).

        Maximizes  -1/2 [ mass_p log|S_p| + tr(S_p^-1 scatter_p) ]  over what the structure allows to vary between
        components; what is Equal is taken from the group.

        Parameters
        ----------
        mass : (P,) array, > 0
        scatter : (P, d, d) array, or (P, d) for axis-aligned structures
        like : Covariances
            The current group, whose components agree on what is Equal.
        """
        if self.axis_aligned and scatter.ndim == 3:
            scatter = np.diagonal(scatter, axis1=1, axis2=2)
        return _update_added(self.name, mass, scatter, like)

    def n_free(self, n_components: int, n_columns: int) -> int:
        """Return the number of free covariance parameters."""
        return self._free(n_components, n_columns)

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __reduce__(
        self,
    ) -> tuple[Callable[[str], Structure], tuple[str]]:  # copies and pickles refer to the object of this name
        return get_structure, (self.name,)


def log_det_trace(covariances: Covariances, mass: Array, scatter: Array) -> float:
    """Return the objective of the M-step:  -1/2 sum_k [ mass_k log|S_k| + tr(S_k^-1 scatter_k) ]."""
    covs = covariances.covs
    if covs.ndim == 2:
        variances = scatter if scatter.ndim == 2 else np.diagonal(scatter, axis1=1, axis2=2)
        return -0.5 * float(mass @ np.log(covs).sum(1) + (variances / covs).sum())
    traces = np.trace(np.linalg.solve(covs, scatter), axis1=1, axis2=2)
    return -0.5 * float(mass @ np.linalg.slogdet(covs)[1] + traces.sum())


# --- axis-aligned: scatter is (K, d) ---------------------------------------------------------------------------------


def _eii(mass: Array, scatter: Array, current: Covariances | None) -> Covariances:
    """lambda = tr(W) / (n d)."""
    return Covariances(np.full(scatter.shape, scatter.sum() / (mass.sum() * scatter.shape[1])))


def _vii(mass: Array, scatter: Array, current: Covariances | None) -> Covariances:
    """lambda_k = tr(W_k) / (n_k d)."""
    return Covariances(np.repeat((scatter.mean(1) / mass)[:, None], scatter.shape[1], axis=1))


def _eei(mass: Array, scatter: Array, current: Covariances | None) -> Covariances:
    """B = diag(W) / n."""
    return Covariances(np.repeat(scatter.sum(0, keepdims=True) / mass.sum(), len(mass), axis=0))


def _vei(mass: Array, scatter: Array, current: Covariances | None) -> Covariances:
    """B = sum_k diag(W_k) / (n lambda_k), lambda_k = tr(W_k B^-1) / (n_k d), at their common fixed point."""
    return Covariances(_variable_volume(mass, scatter, current))


def _evi(mass: Array, scatter: Array, current: Covariances | None) -> Covariances:
    """B_k = diag(W_k) / |diag(W_k)|^(1/d), lambda = sum_k |diag(W_k)|^(1/d) / n."""
    return Covariances(_equal_volume(mass, positive(scatter)))


def _vvi(mass: Array, scatter: Array, current: Covariances | None) -> Covariances:
    """B_k = diag(W_k) / n_k."""
    return Covariances(scatter / mass[:, None])


# --- a common orientation; scatter is (K, d, d) from here on ---------------------------------------------------------


def _eee(mass: Array, scatter: Array, current: Covariances | None) -> Covariances:
    """C = W / n."""
    return Covariances(np.repeat(_symmetric(scatter.sum(0, keepdims=True) / mass.sum()), len(mass), axis=0))


def _vee(mass: Array, scatter: Array, current: Covariances | None) -> Covariances:
    """C = sum_k W_k / (n lambda_k), lambda_k = tr(W_k C^-1) / (n_k d), at their common fixed point."""
    d = scatter.shape[1]
    # the columns may have any units, so they are scaled; this changes all volumes by the same factor
    std = np.sqrt(positive(np.diagonal(scatter, axis1=1, axis2=2).sum(0)))
    units = std[:, None] * std
    scaled = scatter / units
    traces = positive(np.trace(scaled, axis1=1, axis2=2))
    pooled = np.linalg.eigvalsh((scaled / traces[:, None, None]).sum(0))
    if pooled[0] < 1e-15 * pooled[-1] or pooled[-1] == 0.0:
        # all components are singular in some direction: add just enough variance for a Cholesky factor
        scaled = scaled + (1e-13 * traces / d)[:, None, None] * np.eye(d)
    start = _start_volumes(mass, traces / d, current)
    volumes = relative_volumes(mass, scaled, start, whiten_full)
    C = (scaled / volumes[:, None, None]).sum(0) / mass.sum()
    return Covariances(volumes[:, None, None] * (_symmetric(C) * units))


def _eve(mass: Array, scatter: Array, current: Covariances | None) -> Covariances:
    """Common axes D; given D, as EVI in these coordinates."""
    D, within = _common_frame(mass, scatter, current, equal_volume=True)
    return Covariances(_compose(D, _equal_volume(mass, positive(within))), D)


def _vve(mass: Array, scatter: Array, current: Covariances | None) -> Covariances:
    """Common axes D; given D, as VVI in these coordinates."""
    D, within = _common_frame(mass, scatter, current, equal_volume=False)
    return Covariances(_compose(D, within / mass[:, None]), D)


# --- variable orientation: W_k = L_k Omega_k L_k^T, eigenvalues in increasing order ----------------------------------


def _eev(mass: Array, scatter: Array, current: Covariances | None) -> Covariances:
    """D_k = L_k, A = sum_k Omega_k / n."""
    omega, L = eigen(scatter)
    return Covariances(_compose(L, np.repeat(omega.sum(0, keepdims=True) / mass.sum(), len(mass), 0)))


def _vev(mass: Array, scatter: Array, current: Covariances | None) -> Covariances:
    """D_k = L_k; volumes and the common shape as in VEI, on the eigenvalues."""
    omega, L = eigen(scatter)
    return Covariances(_compose(L, _variable_volume(mass, omega, current)))


def _evv(mass: Array, scatter: Array, current: Covariances | None) -> Covariances:
    """C_k = W_k / |W_k|^(1/d), lambda = sum_k |W_k|^(1/d) / n."""
    sign, log_det = np.linalg.slogdet(scatter)
    flat = (sign <= 0) | ~np.isfinite(log_det)
    if flat.any():
        largest = np.trace(scatter, axis1=1, axis2=2).max()
        log_det[flat] = np.log(positive(np.linalg.eigvalsh(scatter[flat]), largest)).sum(1)
    log_side = log_det / scatter.shape[1]
    volume = np.exp(log_side).sum() / mass.sum()
    return Covariances(_symmetric((volume * np.exp(-log_side))[:, None, None] * scatter))


def _vvv(mass: Array, scatter: Array, current: Covariances | None) -> Covariances:
    """C_k = W_k / n_k."""
    return Covariances(_symmetric(scatter / mass[:, None, None]))


# --- a new component added to a fixed group --------------------------------------------------------------------------


def _update_added(name: str, mass: Array, scatter: Array, like: Covariances) -> Array:
    """With w = diag(D^T W D): A = w / |w|^(1/d) if free, lambda = sum_i (w_i / A_i) / (n d) if free."""
    volume, shape, turn = tuple(name)
    d, side = scatter.shape[1], _side(like.covs[:1])
    if shape == "V" and turn == "E":  # a free shape along the axes of the group
        D = like.axes if like.axes is not None else np.linalg.eigh(like.covs.sum(0))[1]
        within = np.einsum("ia,pij,ja->pa", D, scatter, D, optimize=True).clip(min=0.0)
        return _compose(D, _update_added(f"{volume}VI", mass, within, Covariances(np.repeat(side[:, None], d, axis=1))))
    if shape == "E" and turn == "V":  # the shape of the group along free axes; both in increasing order
        omega, L = eigen(scatter)
        group = Covariances(positive(eigen(like.covs[:1])[0]))
        return _compose(L, _update_added(f"{volume}EI", mass, omega, group))
    if shape == "V":  # a free matrix, except for the volume
        if volume == "V":
            return _symmetric(scatter / _over(mass, scatter)) if turn == "V" else scatter / mass[:, None]
        scatter = positive(scatter) if turn == "I" else _symmetric(scatter)
        return scatter * _over(side / _side(scatter), scatter)
    unit = (
        np.ones((1, d)) if shape == "I" else like.covs[:1] / _over(side, like.covs)
    )  # the matrix of the group, except for the volume
    sides = _trace_over(scatter, unit) / (mass * d) if volume == "V" else np.repeat(side, len(mass))
    return unit * _over(sides, unit)


def _side(covs: Array) -> Array:
    """Return |S|^(1/d), (K,); for a singular matrix, that of the nearest regular one."""
    if covs.ndim == 2:
        return np.exp(np.log(positive(covs)).mean(1))
    sign, log_det = np.linalg.slogdet(covs)
    flat = (sign <= 0) | ~np.isfinite(log_det)
    if flat.any():
        log_det[flat] = np.log(positive(np.linalg.eigvalsh(covs[flat]))).sum(1)
    return np.exp(log_det / covs.shape[1])


def _trace_over(scatter: Array, unit: Array) -> Array:
    """Return tr(unit^-1 scatter_p), (P,)."""
    if scatter.ndim == 2:
        return (scatter / unit).sum(1)
    return np.trace(np.linalg.solve(unit, scatter), axis1=1, axis2=2)


def _over(values: Array, like: Array) -> Array:
    """Reshape (K,) values so that they multiply or divide (K, ...) arrays."""
    return values.reshape(-1, *[1] * (like.ndim - 1))


# --- shared steps ----------------------------------------------------------------------------------------------------


def _equal_volume(mass: Array, within: Array) -> Array:
    """Return lambda B_k with a common volume and |B_k| = 1, B_k proportional to `within` (K, d), all > 0."""
    log_side = np.log(within).mean(1)  # in logarithms: a product of many small numbers underflows
    volume = np.exp(log_side).sum() / mass.sum()
    covs: Array = (volume * np.exp(-log_side))[:, None] * within
    return covs


def _variable_volume(mass: Array, within: Array, current: Covariances | None) -> Array:
    """Return lambda_k B with a common diagonal B, from `within` (K, d)."""
    within = positive(within)
    start = _start_volumes(mass, within.mean(1), current)
    volumes = relative_volumes(mass, within, start, whiten_diagonal)[:, None]
    covs: Array = volumes * ((within / volumes).sum(0) / mass.sum())
    return covs


def _start_volumes(mass: Array, spread: Array, current: Covariances | None) -> Array:
    """Return log lambda_k of the current covariances if they are regular, else of spheres with this spread, (K,)."""
    log_sides: Array = np.log(positive(spread / mass))
    if current is not None and len(current.covs) == len(mass):
        covs = current.covs
        log_dets = np.log(positive(covs)).sum(1) if covs.ndim == 2 else np.linalg.slogdet(covs)[1]
        if np.isfinite(log_dets).all():
            log_sides = log_dets / covs.shape[1]
    return log_sides


def _common_frame(
    mass: Array, scatter: Array, current: Covariances | None, *, equal_volume: bool
) -> tuple[Array, Array]:
    """Return common axes D and diag(D^T W_k D), (K, d)."""
    problem = mass, scatter, equal_volume
    if current is not None and current.axes is not None:
        _, D = common_axes(*problem, current.axes)
    else:
        short = [common_axes(*problem, start, max_iter=15) for start in _initial_axes(scatter, current)]
        _, D = common_axes(*problem, min(short, key=lambda result: result[0])[1])
    return D, np.einsum("ia,kij,ja->ka", D, scatter, D, optimize=True).clip(min=0.0)


def _initial_axes(scatter: Array, current: Covariances | None) -> Array:
    """Return several initial axes: the problem has local maxima, so the best of a few short runs is used."""
    traces = positive(np.trace(scatter, axis1=1, axis2=2))[:, None, None]
    pools = [scatter.sum(0), (scatter / traces).sum(0), np.diag(np.arange(1.0, scatter.shape[1] + 1.0)), *scatter]
    if current is not None and current.covs.ndim == 3:
        pools.append(current.covs.sum(0))
    return np.linalg.eigh(np.stack(pools))[1]


def _compose(axes: Array, variances: Array) -> Array:
    """Return D diag(v) D^T for each component, exactly symmetric."""
    return _symmetric((axes * variances[:, None, :]) @ np.swapaxes(axes, -1, -2))


def _symmetric(matrices: Array) -> Array:
    return 0.5 * (matrices + np.swapaxes(matrices, -1, -2))


# --- the names -------------------------------------------------------------------------------------------------------


def _b(d: int) -> int:
    return d * (d + 1) // 2


COVARIANCES: dict[str, Structure] = {
    structure.name: structure
    for structure in (
        Structure("EII", True, True, _eii, lambda K, d: 1),
        Structure("VII", True, False, _vii, lambda K, d: K),
        Structure("EEI", True, True, _eei, lambda K, d: d),
        Structure("VEI", True, False, _vei, lambda K, d: K + d - 1),
        Structure("EVI", True, False, _evi, lambda K, d: 1 + K * (d - 1)),
        Structure("VVI", True, False, _vvi, lambda K, d: K * d),
        Structure("EEE", False, True, _eee, lambda K, d: _b(d)),
        Structure("VEE", False, False, _vee, lambda K, d: _b(d) + K - 1),
        Structure("EVE", False, False, _eve, lambda K, d: _b(d) + (K - 1) * (d - 1)),
        Structure("VVE", False, False, _vve, lambda K, d: _b(d) + (K - 1) * d),
        Structure("EEV", False, False, _eev, lambda K, d: K * _b(d) - (K - 1) * d),
        Structure("VEV", False, False, _vev, lambda K, d: K * _b(d) - (K - 1) * (d - 1)),
        Structure("EVV", False, False, _evv, lambda K, d: K * _b(d) - (K - 1)),
        Structure("VVV", False, False, _vvv, lambda K, d: K * _b(d)),
    )
}
# names in scikit-learn, which messages translate; its `covariances_` have another shape for each of them
ELSEWHERE = {"spherical": "VII", "diag": "VVI", "tied": "EEE", "full": "VVV"}


def get_structure(name: str, also: str = "") -> Structure:
    """Return the structure of this name; raise a ValueError that lists the choices, and what is `also` allowed.

    Examples
    --------
    >>> get_structure("VVI")
    <VVI>
    """
    if isinstance(name, str) and name in COVARIANCES:
        return COVARIANCES[name]
    close = difflib.get_close_matches(str(name).upper(), COVARIANCES, 1)
    close = close or [ELSEWHERE[other] for other in difflib.get_close_matches(str(name).lower(), ELSEWHERE, 1)]
    hint = f" Did you mean {close[0]!r}?" if close else ""
    extra = f", or {also}" if also else ""
    raise ValueError(f"covariance must be one of {', '.join(COVARIANCES)}{extra}; got {name!r}.{hint}")
