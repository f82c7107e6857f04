"""K Gaussians in groups of common covariance structure: densities, moments, MAP update, sampling, conditionals."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import Block
from mixent.core.driver import OutsideDomainError
from mixent.families.gaussian.kernels import Moments, Ready, Work, about_means, embed, make_ready
from mixent.families.gaussian.missing import Gapped, GappedDiagonal
from mixent.families.gaussian.prior import Prior
from mixent.families.gaussian.structures import COVARIANCES, Covariances, Structure

FLAT = 1e-12  # smallest variance a component may have in some direction, in units of the data's variance


@dataclass(frozen=True)
class Gaussians:
    """Parameters of K Gaussians."""

    means: Array  # (K, d) about the family's center
    covs: Array  # (K, d) variances when every structure is axis-aligned, else (K, d, d)
    axes: tuple[Array | None, ...]  # per group: the shared axes of EVE and VVE

    @property
    def n_components(self) -> int:
        return len(self.means)

    def full_covs(self) -> Array:
        """(K, d, d)."""
        return self.covs if self.covs.ndim == 3 else self.covs[:, :, None] * np.eye(self.covs.shape[1])


@dataclass(frozen=True)
class Group:
    """Components start..stop share a covariance structure: what is "equal" is equal among them."""

    structure: str
    start: int
    stop: int

    @property
    def model(self) -> Structure:
        return COVARIANCES[self.structure]

    @property
    def span(self) -> slice:
        return slice(self.start, self.stop)

    @property
    def size(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True)
class GaussianFamily:
    """Maximizes  sum_nk r_nk log N(x_n; m_k, C_k) + log prior(m_k, C_k)  in closed form, group by group.

    `update` never lowers it (structures with an inner loop start from the current covariances).

    With `noise` R, training sees each row blurred by R:  E log N(x + e; m, C) = log N(x; m, C) - 1/2 tr(C^-1 R)
    takes the place of log N. The M-step adds n_k R to each scatter: a ridge, but inside the objective. (A row with
    gaps pays the same 1/2 tr(C^-1 R): still an objective that never falls, though no longer that expectation.)
    """

    groups: tuple[Group, ...]
    center: Array  # (d,) the common origin of all means
    scale: Array  # (d,) standard deviation of each column of the data
    prior: Prior | None = None  # expanded: one entry per component
    noise: Array | None = None  # (d,) variance of the noise put on every row

    @property
    def n_columns(self) -> int:
        return len(self.center)

    @property
    def axis_aligned(self) -> bool:
        return all(g.model.axis_aligned for g in self.groups)

    def prepare(self, params: Gaussians) -> Ready:
        ready = self._factorized(params)
        if self.noise is None:
            return ready
        diagonal = ready.precisions if ready.axis_aligned else np.diagonal(ready.precisions, axis1=1, axis2=2)
        return replace(ready, half_log_det=ready.half_log_det + 0.5 * diagonal @ self.noise)

    def _factorized(self, params: Gaussians) -> Ready:
        if self.axis_aligned:
            if not (params.covs > 0).all():
                raise OutsideDomainError("a variance is not positive")
            std = np.sqrt(params.covs)
            return make_ready(params.means, params.covs, np.log(std).sum(axis=1), 1 / std, self.center)
        half_log_det, factors = _factorize(params.covs)
        return make_ready(params.means, params.covs, half_log_det, factors, self.center)

    def restrict(self, ready: Ready, index: np.ndarray) -> Ready:
        return ready.restrict(index)

    def open(self, ready: Ready, block: Block) -> Work:
        return ready.open(block)

    def embed(self, moments: Moments, index: np.ndarray, n_components: int) -> Moments:
        return embed(moments, index, n_components)

    def update(self, params: Gaussians, moments: Moments, live: np.ndarray | None = None) -> Gaussians:
        """The MAP update; a component that is not `live` has no part in it, nor its prior, and stays as it is."""
        mass, scatter, means = self.sufficient(params, moments, live)
        covs, axes = np.array(params.covs), list(params.axes)
        for g, group in enumerate(self.groups):
            live = np.flatnonzero(mass[group.span] > 0) + group.start
            if len(live) == 0:
                continue
            new = group.model.update(mass[live], scatter[live], self._current(params, g, live))
            covs[live], axes[g] = _in_layout(new.covs, covs.ndim), new.axes
        return Gaussians(means, covs, tuple(axes))

    def sufficient(
        self, params: Gaussians, moments: Moments, live: np.ndarray | None = None
    ) -> tuple[Array, Array, Array]:
        """Counts, scatters about the new means, and the new means; prior rows of live components included."""
        # about the current mean: E[x^2] - m^2 loses every digit for tight components far out
        moments = about_means(moments, params.means) if moments.about == "center" else moments
        mass, first, second = moments.mass, moments.first, moments.second
        prior = self.prior_of(live)
        pulled, weight = first, mass
        if prior is not None:
            pulled = first + prior.mean_rows[:, None] * (prior.mean - params.means)
            weight = mass + prior.mean_rows
        shift = np.divide(pulled, weight[:, None], out=np.zeros_like(first), where=weight[:, None] > 0)
        means = params.means + shift
        if second.ndim == 2:
            scatter = second - 2 * first * shift + mass[:, None] * shift**2
        else:
            cross = first[:, :, None] * shift[:, None, :]
            outer = mass[:, None, None] * shift[:, :, None] * shift[:, None, :]
            scatter = second - cross - np.swapaxes(cross, 1, 2) + outer
        if self.noise is not None:
            blur = self.noise if scatter.ndim == 2 else np.diag(self.noise)
            scatter = scatter + mass.reshape(-1, *[1] * blur.ndim) * blur
        if prior is not None:
            mass, scatter = mass + prior.rows, scatter + prior.scatter(means)
        return mass, scatter, means

    def with_own_rows(self, params: Gaussians, moments: Moments, rows: Array) -> Moments:
        """Add `rows` (K,) expected rows of each component itself: they hold it where it is."""
        moments = about_means(moments, params.means) if moments.about == "center" else moments
        own = params.covs
        if self.noise is not None:  # `sufficient` blurs every row, these too
            own = own - (self.noise if own.ndim == 2 else np.diag(self.noise))
        second = moments.second + rows.reshape(-1, *[1] * (own.ndim - 1)) * own
        return Moments(moments.mass + rows, moments.first, second, "means")

    def feasible(self, params: Gaussians, moments: Moments, live: np.ndarray | None = None) -> np.ndarray:
        """(K,) do these (perhaps signed) moments have a positive mass and a positive definite scatter?"""
        mass, scatter, _ = self.sufficient(params, moments, live)
        if scatter.ndim == 2:
            return np.asarray((mass > 0) & (scatter > 0).all(axis=1))
        scaled = scatter / (self.scale[:, None] * self.scale)
        try:
            return np.isfinite(np.linalg.cholesky(scaled)[:, -1, -1]) & (mass > 0)
        except np.linalg.LinAlgError:
            return np.asarray((np.linalg.eigvalsh(scaled)[:, 0] > 0) & (mass > 0))

    def anchored(self, params: Gaussians, rows: Array, factor: float) -> GaussianFamily:
        """The prior times `factor`, and `rows` (K,) pseudo-rows that look as the components do now."""
        covs = params.covs
        anchor = Prior(rows, covs, params.means, rows)
        prior = None if self.prior is None else self.prior.times(factor)
        return replace(self, prior=anchor if prior is None else prior.plus(anchor))

    def _current(self, params: Gaussians, g: int, live: np.ndarray) -> Covariances:
        covs = params.covs[live]
        if self.groups[g].model.axis_aligned and covs.ndim == 3:
            covs = np.diagonal(covs, axis1=1, axis2=2)
        return Covariances(covs, params.axes[g])

    def prior_of(self, live: np.ndarray | None) -> Prior | None:
        """The prior of the components that are still there."""
        return self.prior if self.prior is None or live is None else self.prior.only(live)

    def log_prior(self, params: Gaussians, live: np.ndarray | None = None) -> float:
        prior = self.prior_of(live)
        if prior is None:
            return 0.0
        ready = self._factorized(params)
        scatter = prior.scatter(params.means)
        trace = np.einsum("kd,kd->" if scatter.ndim == 2 else "kij,kij->", ready.precisions, scatter)
        return float(-(prior.rows @ ready.half_log_det) - 0.5 * trace)

    def broken(self, params: Gaussians) -> np.ndarray:
        """Components that are flat in some direction: the likelihood has no maximum there."""
        if self.prior is not None:
            return np.zeros(params.n_components, dtype=bool)
        if params.covs.ndim == 2:
            return np.asarray((params.covs <= FLAT * self.scale**2).any(axis=1) | np.isnan(params.covs).any(axis=1))
        scaled = params.covs / (self.scale[:, None] * self.scale)
        try:
            # far cheaper than eigenvalues; a NaN anywhere ends on the diagonal
            chol = np.linalg.cholesky(scaled - FLAT * np.eye(self.n_columns))
            if np.isfinite(chol[:, -1, -1]).all():
                return np.zeros(params.n_components, dtype=bool)
        except np.linalg.LinAlgError:
            pass
        return np.asarray(~(np.linalg.eigvalsh(np.nan_to_num(scaled))[:, 0] > FLAT))

    def group_of(self) -> np.ndarray:
        """(K,) the group each component belongs to."""
        return np.repeat(np.arange(len(self.groups)), [g.size for g in self.groups])

    def copied(self, params: Gaussians, parent: int, child: int) -> Gaussians:
        """Give `child` the parameters of `parent`."""
        means, covs = np.array(params.means), np.array(params.covs)
        means[child], covs[child] = means[parent], covs[parent]
        return replace(params, means=means, covs=covs)

    def split(self, params: Gaussians, parent: int, child: int) -> Gaussians:
        """Put `child` beside `parent`, one standard deviation apart along the parent's longest axis."""
        cov = params.full_covs()[parent] / (self.scale[:, None] * self.scale)
        values, vectors = np.linalg.eigh(cov)
        away = 0.5 * np.sqrt(values[-1]) * vectors[:, -1] * self.scale
        beside = self.copied(params, parent, child)
        beside.means[child] += away
        beside.means[parent] -= away
        return beside

    def n_free(self) -> int:
        d = self.n_columns
        return sum(g.size * d + g.model.n_free(g.size, d) for g in self.groups)

    def pack(self, params: Gaussians) -> Array:
        """Means and log-Cholesky factors in units of the data's standard deviation."""
        means = params.means / self.scale
        if params.covs.ndim == 2:
            if not (params.covs > 0).all():
                raise OutsideDomainError("a variance is not positive")
            return np.concatenate([means.ravel(), np.log(np.sqrt(params.covs) / self.scale).ravel()])
        chol = _cholesky(params.covs) / self.scale[:, None]
        d = self.n_columns
        diagonal = np.arange(d)
        chol[:, diagonal, diagonal] = np.log(chol[:, diagonal, diagonal])
        return np.concatenate([means.ravel(), chol[:, *np.tril_indices(d)].ravel()])

    def unpack(self, vector: Array, like: Gaussians, mass: Array) -> Gaussians | None:
        """Parameters nearest to such a vector that the structures allow (their own M-step, without the prior)."""
        K, d = like.means.shape
        means, rest = vector[: K * d].reshape(K, d) * self.scale, vector[K * d :]
        if not np.isfinite(vector).all() or np.abs(vector).max() > 1e8:
            return None
        with np.errstate(over="ignore", invalid="ignore"):  # a step too long ends in the domain test
            try:
                return self._nearest(means, self._unpack_covs(rest, like), like, mass)
            except (np.linalg.LinAlgError, OutsideDomainError):
                return None

    def _unpack_covs(self, rest: Array, like: Gaussians) -> Array:
        K, d = like.means.shape
        if like.covs.ndim == 2:
            return (np.exp(_moderate(rest)).reshape(K, d) * self.scale) ** 2
        chol = np.zeros((K, d, d))
        chol[:, *np.tril_indices(d)] = rest.reshape(K, -1)
        diagonal = np.arange(d)
        chol[:, diagonal, diagonal] = np.exp(_moderate(chol[:, diagonal, diagonal]))
        chol *= self.scale[:, None]
        return chol @ np.swapaxes(chol, 1, 2)

    def _nearest(self, means: Array, covs: Array, like: Gaussians, mass: Array) -> Gaussians:
        target = Gaussians(means, covs, like.axes)
        axes = list(like.axes)
        fitted = np.array(covs)
        for g, group in enumerate(self.groups):
            live = np.flatnonzero(mass[group.span] > 0) + group.start
            if len(live) == 0:
                continue
            scatter = covs[live] * mass[live].reshape(-1, *[1] * (covs.ndim - 1))
            new = group.model.update(mass[live], scatter, self._current(target, g, live))
            fitted[live], axes[g] = _in_layout(new.covs, covs.ndim), new.axes
        return Gaussians(means, fitted, tuple(axes))

    def take(self, params: Gaussians, index: np.ndarray) -> tuple[GaussianFamily, Gaussians]:
        """The family and parameters of some components, in this order within each group."""
        groups, axes, start = [], [], 0
        for g, group in enumerate(self.groups):
            size = int(((index >= group.start) & (index < group.stop)).sum())
            if size:
                groups.append(Group(group.structure, start, start + size))
                axes.append(params.axes[g])
                start += size
        prior = None if self.prior is None else self.prior.take(index)
        covs = params.covs[index]
        family = replace(self, groups=tuple(groups), prior=prior)
        if family.axis_aligned and covs.ndim == 3:
            covs = np.diagonal(covs, axis1=1, axis2=2).copy()
            family = replace(family, prior=prior and prior.expand(len(index), True))
        return family, Gaussians(params.means[index], covs, tuple(axes))

    def sample(self, params: Gaussians, component: np.ndarray, rng: np.random.Generator) -> Array:
        """One row per entry of `component` (n,)."""
        z = rng.standard_normal((len(component), self.n_columns))
        out = np.empty_like(z)
        for k in np.unique(component):
            rows = component == k
            if params.covs.ndim == 2:
                out[rows] = z[rows] * np.sqrt(params.covs[k])
            else:
                out[rows] = z[rows] @ np.linalg.cholesky(params.covs[k]).T
            out[rows] += params.means[k] + self.center
        return out

    def marginal(self, params: Gaussians, columns: np.ndarray) -> tuple[GaussianFamily, Gaussians]:
        """The exact marginal over some columns (as free covariances: a marginal of EEV is no EEV)."""
        K = params.n_components
        if params.covs.ndim == 2:
            name, covs = "VVI", params.covs[:, columns]
        else:
            name, covs = "VVV", params.covs[:, columns[:, None], columns]
        family = GaussianFamily((Group(name, 0, K),), self.center[columns], self.scale[columns])
        return family, Gaussians(params.means[:, columns], covs, (None,))

    def expected(self, ready: Ready, block: Block, resp: Array) -> Array:
        """E[x | observed part] of a block with missing values, under component probabilities (K, n)."""
        work = GappedDiagonal(ready, block) if ready.axis_aligned else Gapped(ready, block)
        return work.expected(resp) + self.center


def _factorize(covs: Array) -> tuple[Array, Array]:
    """Half log determinants, and lower triangular F with F^T F = covs^-1."""
    chol = _cholesky(covs)
    half_log_det = np.log(np.diagonal(chol, axis1=1, axis2=2)).sum(axis=1)
    return half_log_det, np.tril(np.linalg.inv(chol))


def _cholesky(covs: Array) -> Array:
    try:
        return np.asarray(np.linalg.cholesky(covs), dtype=float)
    except np.linalg.LinAlgError:
        raise OutsideDomainError("a covariance is not positive definite") from None


def _moderate(log_std: Array) -> Array:
    """Log standard deviations in units of the data's; far outside [-40, 40] nothing can be meant."""
    if np.abs(log_std).max() > 40:
        raise OutsideDomainError("a standard deviation is out of range")
    return log_std


def _in_layout(covs: Array, ndim: int) -> Array:
    """Variances as diagonal matrices where another group needs full ones."""
    return covs if covs.ndim == ndim else covs[:, :, None] * np.eye(covs.shape[1])
