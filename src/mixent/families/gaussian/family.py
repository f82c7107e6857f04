"""K Gaussians in groups with a common covariance structure: densities, moments, MAP update, samples, conditionals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import Block
from mixent.core.driver import OutsideDomainError
from mixent.families.gaussian.conditional import ConditionalGaussians, condition
from mixent.families.gaussian.kernels import Moments, Ready, Work, about_means, embed, make_ready
from mixent.families.gaussian.missing import Incomplete, IncompleteDiagonal
from mixent.families.gaussian.prior import Prior
from mixent.families.gaussian.structures import COVARIANCES, Covariances, Structure

CANCELED = 1e-8  # sums of squares below this share of the squared shift of the mean have few digits left
ROUNDING = 1e-14  # bound on their errors, as such a share
FLAT = 1e-12  # smallest allowed variance of a component in any direction, relative to the variance of the data
SMALL = 12  # columns up to which LAPACK inverts a triangular matrix faster than products of blocks
SINGULAR = "a column is constant or depends on others; drop such columns, or use a prior"


@dataclass(frozen=True)
class Gaussians:
    """Parameters of K Gaussians."""

    means: Array  # (K, d) about the family's center
    covs: Array  # (K, d) variances when every structure is axis-aligned, else (K, d, d)
    axes: tuple[Array | None, ...]  # per group: the shared axes of EVE and VVE

    @property
    def n_components(self) -> int:
        return len(self.means)

    @cached_property
    def factors(self) -> tuple[Array, Array]:
        """Half the log determinants, (K,), and F with F^T F = covs^-1: (K, d) 1/std, or (K, d, d) lower triangular."""
        return _factorize(self.covs)

    @cached_property
    def precisions(self) -> Array:
        """(K, d) or (K, d, d)."""
        factors = self.factors[1]
        return factors**2 if factors.ndim == 2 else np.swapaxes(factors, 1, 2) @ factors

    def full_covs(self) -> Array:
        """(K, d, d)."""
        return self.covs if self.covs.ndim == 3 else self.covs[:, :, None] * np.eye(self.covs.shape[1])

    def take(self, index: np.ndarray) -> Self:
        """Return copies of some components, in this order."""
        return replace(self, means=self.means[index], covs=self.covs[index])

    def extended(self, others: Sequence[Self]) -> Self:
        """Return these components followed by those of `others`, as matrices unless all covariances are diagonal."""
        parts = [self, *others]
        diagonal = all(part.covs.ndim == 2 for part in parts)
        covs = np.concatenate([part.covs if diagonal else part.full_covs() for part in parts])
        return replace(self, means=np.concatenate([part.means for part in parts]), covs=covs)


@dataclass(frozen=True)
class Group:
    """Components start..stop share a covariance structure; "equal" refers to the components of the group."""

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

    `update` never decreases it (structures with an inner loop start from the current covariances).

    With `noise` R, log N is replaced by its expectation over rows with added noise e of covariance R:
    E log N(x + e; m, C) = log N(x; m, C) - 1/2 tr(C^-1 R).  The M-step adds n_k R to each scatter, like a ridge that
    is part of the objective. (Rows with missing values get the same term 1/2 tr(C^-1 R): the objective still never
    decreases, but for these rows it is no longer this expectation.)
    """

    groups: tuple[Group, ...]
    center: Array  # (d,) the common origin of all means
    scale: Array  # (d,) standard deviation of each column of the data
    prior: Prior | None = None  # expanded: one entry per component
    noise: Array | None = None  # (d,) or (K, d) variance of the noise added to every row
    fixed_means: bool = False  # whether `update` leaves the means unchanged

    @property
    def n_columns(self) -> int:
        return len(self.center)

    @property
    def axis_aligned(self) -> bool:
        return all(g.model.axis_aligned for g in self.groups)

    def initial(self, means: Array, covs: Array) -> Gaussians:
        """Return parameters to start from, with means (K, d) and covariances in the layout of the structures."""
        return Gaussians(means, covs, (None,) * len(self.groups))

    def prepare(self, params: Gaussians) -> Ready:
        ready = self._factorized(params)
        if self.noise is None:
            return ready
        diagonal = ready.precisions if ready.axis_aligned else np.diagonal(ready.precisions, axis1=1, axis2=2)
        return replace(ready, half_log_det=ready.half_log_det + 0.5 * (diagonal * self.noise).sum(axis=1))

    def _factorized(self, params: Gaussians) -> Ready:
        # the log prior needs the precisions, too: they are computed once
        precisions = None if self.prior is None else params.precisions
        return make_ready(params.means, params.covs, *params.factors, self.center, precisions)

    def restrict(self, ready: Ready, index: np.ndarray) -> Ready:
        return ready.restrict(index)

    def open(self, ready: Ready, block: Block) -> Work:
        return ready.open(block)

    def embed(self, moments: Moments, index: np.ndarray, n_components: int) -> Moments:
        return embed(moments, index, n_components)

    def update(self, params: Gaussians, moments: Moments, live: np.ndarray | None = None) -> Gaussians:
        """Return the MAP update; components that are not `live`, and their priors, are excluded and do not change."""
        mass, scatter, means = self.sufficient(params, moments, live)
        covs, axes = np.array(params.covs), list(params.axes)
        for g, group in enumerate(self.groups):
            live = np.flatnonzero(mass[group.span] > 0) + group.start
            if len(live) == 0:
                continue
            new = group.model.update(mass[live], scatter[live], self._current(params, g, live))
            covs[live], axes[g] = _in_layout(new.covs, covs.ndim), new.axes
        return self.update_tails(replace(params, means=means, covs=covs, axes=tuple(axes)), moments)

    def update_tails(self, params: Gaussians, moments: Moments) -> Gaussians:
        """Return the update of the shape of the tails, which is fixed for Gaussians."""
        return params

    def sufficient(
        self, params: Gaussians, moments: Moments, live: np.ndarray | None = None
    ) -> tuple[Array, Array, Array]:
        """Return counts, scatters about the new means, and the new means, including prior rows of live components."""
        # about the current mean: E[x^2] - m^2 cancels for components with small variance far from the center
        moments = about_means(moments, params.means) if moments.about == "center" else moments
        mass, first, second = moments.mass, moments.first, moments.second
        prior = self.prior_of(live)
        total, weight = first, mass
        if prior is not None:
            total = first + prior.mean_rows[:, None] * (prior.mean - params.means)
            weight = mass + prior.mean_rows
        shift = np.divide(total, weight[:, None], out=np.zeros_like(first), where=weight[:, None] > 0)
        if self.fixed_means:
            shift = np.zeros_like(shift)
        means = params.means + shift
        if second.ndim == 2:
            scatter = second - 2 * first * shift + mass[:, None] * shift**2
        else:
            half = (first - 0.5 * mass[:, None] * shift)[:, :, None] * shift[:, None, :]
            scatter = second - half
            scatter -= np.swapaxes(half, 1, 2)
        # these terms cancel if a mean moves much farther than the rows of its component are apart
        squares = scatter if scatter.ndim == 2 else np.einsum("kii->ki", scatter)  # a view
        canceled = np.abs(mass)[:, None] * shift**2
        squares += np.where(np.abs(squares) < CANCELED * canceled, ROUNDING * shift.shape[1] * canceled, 0.0)
        rows = moments.rows
        if self.noise is not None:
            squares = scatter if scatter.ndim == 2 else np.einsum("kii->ki", scatter)
            squares += rows[:, None] * self.noise
        if prior is not None:
            rows, scatter = rows + prior.rows, scatter + prior.scatter(means)
        return rows, scatter, means

    def with_expected_rows(self, params: Gaussians, moments: Moments, rows: Array) -> Moments:
        """Add the moments of `rows` (K,) rows expected under each component, which damp the update."""
        moments = about_means(moments, params.means) if moments.about == "center" else moments
        covs = params.covs
        if self.noise is not None:  # `sufficient` adds the noise to these rows, too
            covs = np.array(covs)
            variances = covs if covs.ndim == 2 else np.einsum("kii->ki", covs)  # a view
            variances -= self.noise
        second = moments.second + rows.reshape(-1, *[1] * (covs.ndim - 1)) * covs
        return Moments(moments.mass + rows, moments.first, second, "means")

    def feasible(self, params: Gaussians, moments: Moments, live: np.ndarray | None = None) -> np.ndarray:
        """Return whether these (possibly signed) moments have positive mass and a positive definite scatter, (K,)."""
        mass, scatter, _ = self.sufficient(params, moments, live)
        if scatter.ndim == 2:
            return np.asarray((mass > 0) & (scatter > 0).all(axis=1))
        scaled = scatter / (self.scale[:, None] * self.scale)
        try:
            return np.isfinite(np.linalg.cholesky(scaled)[:, -1, -1]) & (mass > 0)
        except np.linalg.LinAlgError:
            return np.asarray((np.linalg.eigvalsh(scaled)[:, 0] > 0) & (mass > 0))

    def anchored(self, params: Gaussians, rows: Array, factor: float) -> GaussianFamily:
        """Return the family with its prior times `factor`, plus `rows` (K,) pseudo-rows of the current components."""
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
        """Return the prior of the live components."""
        return self.prior if self.prior is None or live is None else self.prior.only(live)

    def log_prior(self, params: Gaussians, live: np.ndarray | None = None) -> float:
        prior = self.prior_of(live)
        if prior is None:
            return 0.0
        scatter = prior.scatter(params.means)
        trace = np.einsum("kd,kd->" if scatter.ndim == 2 else "kij,kij->", params.precisions, scatter)
        return float(-(prior.rows @ params.factors[0]) - 0.5 * trace)

    def condition(self, params: Gaussians) -> float:
        """Return the largest variance of a column divided by its variance given the other columns."""
        if params.covs.ndim == 2:
            return 1.0
        return float(np.einsum("kii,kii->ki", params.covs, params.precisions).max())

    def degenerate(self, params: Gaussians) -> np.ndarray:
        """Return which components are degenerate in some direction, so that the likelihood has no maximum."""
        if self.prior is not None:
            return np.zeros(params.n_components, dtype=bool)
        if params.covs.ndim == 2:
            return np.asarray((params.covs <= FLAT * self.scale**2).any(axis=1) | np.isnan(params.covs).any(axis=1))
        scaled = params.covs / (self.scale[:, None] * self.scale)
        try:
            # much faster than eigenvalues; a NaN propagates to the diagonal
            chol = np.linalg.cholesky(scaled - FLAT * np.eye(self.n_columns))
            if np.isfinite(chol[:, -1, -1]).all():
                return np.zeros(params.n_components, dtype=bool)
        except np.linalg.LinAlgError:
            pass
        return np.asarray(~(np.linalg.eigvalsh(np.nan_to_num(scaled))[:, 0] > FLAT))

    def group_of(self) -> np.ndarray:
        """Return the group of each component, (K,)."""
        return np.repeat(np.arange(len(self.groups)), [g.size for g in self.groups])

    def copied(self, params: Gaussians, parent: int, child: int) -> Gaussians:
        """Copy the parameters of `parent` to `child`."""
        index = np.arange(params.n_components)
        index[child] = parent
        return params.take(index)

    def split(self, params: Gaussians, parent: int, child: int) -> Gaussians:
        """Place `child` and `parent` one standard deviation apart along the parent's longest axis."""
        cov = params.full_covs()[parent] / (self.scale[:, None] * self.scale)
        values, vectors = np.linalg.eigh(cov)
        offset = 0.5 * np.sqrt(values[-1]) * vectors[:, -1] * self.scale
        result = self.copied(params, parent, child)
        result.means[child] += offset
        result.means[parent] -= offset
        return result

    def n_free(self) -> int:
        d = self.n_columns
        return sum(g.size * d + g.model.n_free(g.size, d) for g in self.groups)

    def pack(self, params: Gaussians) -> Array:
        """Return means and log-Cholesky factors in units of the standard deviation of the data."""
        means = params.means / self.scale
        if params.covs.ndim == 2:
            if not (params.covs > 0).all():
                raise OutsideDomainError(f"a variance is not positive: {SINGULAR}")
            return np.concatenate([means.ravel(), np.log(np.sqrt(params.covs) / self.scale).ravel()])
        chol = _cholesky(params.covs) / self.scale[:, None]
        d = self.n_columns
        diagonal = np.arange(d)
        chol[:, diagonal, diagonal] = np.log(chol[:, diagonal, diagonal])
        return np.concatenate([means.ravel(), chol[:, *np.tril_indices(d)].ravel()])

    def unpack(self, vector: Array, like: Gaussians, mass: Array) -> Gaussians | None:
        """Return the parameters of such a vector, projected on the structures by their M-step without the prior."""
        K, d = like.means.shape
        means, rest = vector[: K * d].reshape(K, d) * self.scale, vector[K * d :]
        if not np.isfinite(vector).all() or np.abs(vector).max() > 1e8:
            return None
        with np.errstate(over="ignore", invalid="ignore"):  # the domain is checked below
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
        target = replace(like, means=means, covs=covs)
        axes = list(like.axes)
        fitted = np.array(covs)
        for g, group in enumerate(self.groups):
            live = np.flatnonzero(mass[group.span] > 0) + group.start
            if len(live) == 0:
                continue
            scatter = covs[live] * mass[live].reshape(-1, *[1] * (covs.ndim - 1))
            new = group.model.update(mass[live], scatter, self._current(target, g, live))
            fitted[live], axes[g] = _in_layout(new.covs, covs.ndim), new.axes
        return replace(like, means=means, covs=fitted, axes=tuple(axes))

    def take(self, params: Gaussians, index: np.ndarray) -> tuple[GaussianFamily, Gaussians]:
        """Return the family and parameters of some components, in this order within each group."""
        groups, axes, start = [], [], 0
        for g, group in enumerate(self.groups):
            size = int(((index >= group.start) & (index < group.stop)).sum())
            if size:
                groups.append(Group(group.structure, start, start + size))
                axes.append(params.axes[g])
                start += size
        prior = None if self.prior is None else self.prior.take(index)
        params = replace(params.take(index), axes=tuple(axes))
        family = replace(self, groups=tuple(groups), prior=prior)
        if family.axis_aligned and params.covs.ndim == 3:
            params = replace(params, covs=np.diagonal(params.covs, axis1=1, axis2=2).copy())
            family = replace(family, prior=prior and prior.expand(len(index), True))
        return family, params

    def sample(self, params: Gaussians, component: np.ndarray, rng: np.random.Generator) -> Array:
        """Sample a row for each entry of `component`, (n,)."""
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
        """Return the exact marginal over some columns (with VVV or VVI: a marginal of EEV is not EEV)."""
        K = params.n_components
        if params.covs.ndim == 2:
            name, covs = "VVI", params.covs[:, columns]
        else:
            name, covs = "VVV", params.covs[:, columns[:, None], columns]
        family = type(self)((Group(name, 0, K),), self.center[columns], self.scale[columns])
        return family, replace(params, means=params.means[:, columns], covs=covs, axes=(None,))

    def conditional(self, params: Gaussians, X: Array) -> ConditionalGaussians:
        """Return the distributions of the missing values of the rows X (n, d), given the observed ones."""
        return condition(params.means + self.center, self.prepare(params).precisions, X)

    def expected(self, ready: Ready, block: Block, resp: Array) -> Array:
        """Return E[x | observed part] of a block with missing values, under component probabilities (K, n)."""
        work = IncompleteDiagonal(ready, block) if ready.axis_aligned else Incomplete(ready, block)
        return work.expected(resp) + self.center


def _factorize(covs: Array) -> tuple[Array, Array]:
    """Return half the log determinants, and lower triangular F with F^T F = covs^-1; 1/std of variances (K, d)."""
    if covs.ndim == 2:
        if not (covs > 0).all():
            raise OutsideDomainError(f"a variance is not positive: {SINGULAR}")
        std = np.sqrt(covs)
        return np.log(std).sum(axis=1), 1 / std
    chol = _cholesky(covs)
    half_log_det = np.log(np.diagonal(chol, axis1=1, axis2=2)).sum(axis=1)
    return half_log_det, _inverse_triangular(chol)


def _inverse_triangular(lower: Array) -> Array:
    """Return the inverses of lower triangular matrices, (K, d, d), by halves: products of blocks are fast."""
    d = lower.shape[-1]
    if d <= SMALL:
        return np.tril(np.linalg.inv(lower))
    half = d // 2
    first, last = _inverse_triangular(lower[:, :half, :half]), _inverse_triangular(lower[:, half:, half:])
    out = np.zeros_like(lower)
    out[:, :half, :half], out[:, half:, half:] = first, last
    out[:, half:, :half] = -(last @ (lower[:, half:, :half] @ first))
    return out


def _cholesky(covs: Array) -> Array:
    try:
        return np.asarray(np.linalg.cholesky(covs), dtype=float)
    except np.linalg.LinAlgError:
        raise OutsideDomainError(f"a covariance is not positive definite: {SINGULAR}") from None


def _moderate(log_std: Array) -> Array:
    """Check log standard deviations, in units of the data: they must be in [-40, 40]."""
    if np.abs(log_std).max() > 40:
        raise OutsideDomainError("a standard deviation is out of range")
    return log_std


def _in_layout(covs: Array, ndim: int) -> Array:
    """Return variances as diagonal matrices if another group needs full matrices."""
    return covs if covs.ndim == ndim else covs[:, :, None] * np.eye(covs.shape[1])
