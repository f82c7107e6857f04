"""Partial EM: EM for a new component added to a fixed mixture (equations 5 to 9 of Mansjur and Juang).

Several candidates are fitted at once; each is the only new component of its own mixture.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixent.core.arrays import Array, safe_log
from mixent.core.blocks import Block
from mixent.core.driver import Problem
from mixent.core.stats import Stats
from mixent.families.categorical import Categoricals
from mixent.families.gaussian.family import Gaussians, Group
from mixent.families.gaussian.kernels import Moments
from mixent.families.gaussian.structures import Covariances
from mixent.families.product import Components, ComponentStats, ProductFamily
from mixent.mixtures.problem import MixtureParams

MIN_SHARE = 1e-8  # smallest share of a class for a candidate, and for the other components


@dataclass(frozen=True)
class PartialParams:
    """P candidates."""

    alpha: Array  # (P, C) share of each class that belongs to the candidate
    components: Components  # P components
    fixed: np.ndarray  # (P,) whether the density is no longer updated, since its covariance would be degenerate

    @property
    def n_candidates(self) -> int:
        return len(self.alpha)


@dataclass(frozen=True)
class PartialStats(Stats):
    new_counts: Array  # (P, C) expected rows of each class in the candidate
    old_counts: Array  # (P, C) expected rows of each class in the fixed mixture
    components: ComponentStats
    log_lik: Array  # (P,)


@dataclass(frozen=True)
class Ready:
    new_weight: Array  # (P, C) alpha_pc pi_c
    old_share: Array  # (P, C) 1 - alpha_pc
    family: tuple


@dataclass(frozen=True)
class PartialProblem(Problem):
    """P mixtures, each of a fixed mixture and one new component.

    Maximizes  sum_p { sum_n w_n log sum_c l_nc [(1 - a_pc) p_old(c, x_n) + a_pc pi_c f_p(x_n)] + log prior(f_p) }

    over the shares a (P, C) and the densities f_p. `Block.offset` is log p_old(c, x_n). The terms of the candidates
    have separate parameters, and each update maximizes a lower bound that touches them: no term ever decreases. If the
    covariance of a candidate would become degenerate, only its shares are updated.
    """

    family: ProductFamily  # of the P candidates
    like: Covariances | None  # of the fixed components, for what the structure has in common
    class_weights: Array  # (C,) pi of the fixed mixture

    def prepare(self, params: PartialParams) -> Ready:
        return Ready(params.alpha * self.class_weights, 1 - params.alpha, self.family.prepare(params.components))

    def stats(self, ready: Ready, block: Block) -> PartialStats:
        assert block.offset is not None
        classes = slice(None) if block.known is None else slice(block.known, block.known + 1)
        new_weight, old_share = ready.new_weight[:, classes], ready.old_share[:, classes]
        offset = block.offset[:, classes]
        label = np.ones(offset.shape) if block.known is not None or block.label is None else block.label
        old_density, top = _scaled(label, offset)
        work = self.family.open(ready.family, block)
        log_new, allowed, old = work.log_prob(), new_weight @ label.T, old_share @ old_density.T  # (P, n)
        log_new += safe_log(allowed)
        log_lik = np.logaddexp(log_new, safe_log(old) + top)
        resp = _share(log_new, log_lik)  # (6)
        weight = block.row_weights
        rest = (1 - resp) * weight
        resp *= weight
        new_counts, old_counts = np.zeros_like(ready.new_weight), np.zeros_like(ready.new_weight)
        new_counts[:, classes] = new_weight * (_ratio(resp, allowed) @ label)
        old_counts[:, classes] = old_share * (_ratio(rest, old) @ old_density)
        # a row of weight zero is excluded, even if its density is zero
        return PartialStats(new_counts, old_counts, work.moments(resp), np.where(weight > 0, log_lik, 0.0) @ weight)

    def objective(self, params: PartialParams, total: PartialStats) -> float:
        return float(total.log_lik.sum()) + self.family.log_prior(params.components)

    def each(self, params: PartialParams, total: PartialStats) -> Array:
        """Return the objective of each candidate, (P,)."""
        single = np.eye(params.n_candidates)
        return total.log_lik + [self.family.log_prior(params.components, live) for live in single]

    def update(self, params: PartialParams, total: PartialStats, step: float = 1.0) -> PartialParams:
        rows = total.new_counts + total.old_counts
        alpha = np.divide(total.new_counts, rows, out=np.array(params.alpha), where=rows > 0)  # (7)
        components, fixed = self._densities(params.components, total.components)
        return PartialParams(alpha.clip(MIN_SHARE, 1 - MIN_SHARE), components, params.fixed | fixed)

    def _densities(self, components: Components, stats: ComponentStats) -> tuple[Components, np.ndarray]:
        gaussian, categorical = components.gaussian, components.categorical
        fixed = np.zeros(components.n_components, dtype=bool)
        if gaussian is not None and stats.gaussian is not None:
            gaussian, fixed = self._gaussians(gaussian, stats.gaussian)
        if self.family.categorical is not None and categorical is not None and stats.categorical is not None:
            categorical = self.family.categorical.update(categorical, stats.categorical)
        return Components(gaussian, categorical), fixed

    def _gaussians(self, current: Gaussians, moments: Moments) -> tuple[Gaussians, np.ndarray]:
        """Return equations (8) and (9) within the structure, and which candidates are not updated."""
        family = self.family.gaussian
        assert family is not None and self.like is not None
        mass, scatter, means = family.sufficient(current, moments)
        empty = ~(mass > 0)
        covs = family.groups[0].model.update_added(np.where(empty, 1.0, mass), scatter, self.like)
        fixed = empty | family.degenerate(replace(current, means=means, covs=covs))
        means = np.where(fixed[:, None], current.means, means)
        covs = np.where(fixed.reshape(-1, *[1] * (covs.ndim - 1)), current.covs, covs)
        return family.update_tails(replace(current, means=means, covs=covs), moments), fixed


def _scaled(label: Array, offset: Array) -> tuple[Array, Array]:
    """Return label * p_old divided by its maximum over classes, (n, C), and the log of this maximum, (n,)."""
    top = np.where(label > 0, offset, -np.inf).max(axis=1)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):  # a class excluded by the label may exceed the maximum
        density = np.where(label > 0, label * np.exp(offset - top[:, None]), 0.0)
    return density, top


def _share(log_part: Array, log_whole: Array) -> Array:
    """Replace log_part by exp(log_part - log_whole), with 0 / 0 = 0."""
    possible = log_whole > -np.inf
    np.subtract(log_part, log_whole, out=log_part, where=possible)
    np.exp(log_part, out=log_part)
    if not possible.all():
        log_part[~possible] = 0.0
    return log_part


def _ratio(top: Array, bottom: Array) -> Array:
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


# --- from a mixture to candidates of a new component, and back -------------------------------------------------------


def candidate_family(family: ProductFamily, n_components: int, free: bool = False) -> ProductFamily:
    """Return a family of n_components in one group (without structure if `free`), with the prior of the first."""
    gaussian = family.gaussian
    if gaussian is not None:
        prior = gaussian.prior and gaussian.prior.take(np.zeros(n_components, dtype=int))
        name = gaussian.groups[0].structure
        if free:
            name = "VVI" if gaussian.axis_aligned else "VVV"
        gaussian = replace(gaussian, groups=(Group(name, 0, n_components),), prior=prior, noise=None)
    return ProductFamily(gaussian, family.categorical)


def frozen_group(components: Components) -> Covariances | None:
    """Return the covariances with which new components share what the structure has in common."""
    gaussian = components.gaussian
    return None if gaussian is None else Covariances(gaussian.covs, gaussian.axes[0])


def join(params: MixtureParams, candidates: PartialParams, p: int) -> MixtureParams:
    """Return the mixture with candidate p as its last trained component (5): exactly the density of partial EM."""
    alpha = candidates.alpha[p]
    weights = np.insert(
        params.weights * (1 - alpha)[:, None], params.n_components, params.weights.sum(axis=1) * alpha, axis=1
    )
    return MixtureParams(weights, _append(params.components, candidates.components, p))


def double(params: MixtureParams) -> MixtureParams:
    """Return the same density with the heaviest component as two components of half the weight."""
    K = params.n_components
    k = int(params.weights[:, :K].sum(axis=0).argmax())
    weights = np.insert(params.weights, K, params.weights[:, k], axis=1)
    weights[:, [k, K]] /= 2
    return MixtureParams(weights, _append(params.components, params.components, k))


def _append(first: Components, other: Components, k: int) -> Components:
    gaussian, categorical = first.gaussian, first.categorical
    if gaussian is not None and other.gaussian is not None:
        gaussian = gaussian.extended([other.gaussian.take(np.array([k]))])
    if categorical is not None and other.categorical is not None:
        categorical = Categoricals(np.concatenate([categorical.log_probs, other.categorical.log_probs[[k]]]))
    return Components(gaussian, categorical)
