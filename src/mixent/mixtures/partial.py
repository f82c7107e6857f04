"""Partial EM: one new component beside a mixture that stays as it is (equations 5 to 9 of Mansjur and Juang).

Any number of candidates for it go through the rows together, each the only new component of its own mixture.
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

LEAST = 1e-8  # the smallest share of a class a candidate may have, and may leave to the others


@dataclass(frozen=True)
class PartialParams:
    """P candidates."""

    alpha: Array  # (P, C) share of each class that goes to the candidate
    components: Components  # P of them
    stuck: np.ndarray  # (P,) stands still because its next covariance would be flat

    @property
    def n_candidates(self) -> int:
        return len(self.alpha)


@dataclass(frozen=True)
class PartialStats(Stats):
    taken: Array  # (P, C) expected rows of each class in the candidate
    kept: Array  # (P, C) expected rows of each class in the frozen part
    components: ComponentStats
    log_lik: Array  # (P,)


@dataclass(frozen=True)
class Ready:
    taking: Array  # (P, C) alpha_pc pi_c
    keeping: Array  # (P, C) 1 - alpha_pc
    family: tuple


@dataclass(frozen=True)
class PartialProblem(Problem):
    """P mixtures at once, each of a frozen part and one new component.

    Maximizes  sum_p { sum_n w_n log sum_c l_nc [(1 - a_pc) p_old(c, x_n) + a_pc pi_c f_p(x_n)] + log prior(f_p) }

    over the shares a (P, C) and the densities f_p. `Block.offset` holds log p_old(c, x_n). Each term has parameters of
    its own, and each update maximizes a lower bound that touches it: no candidate's value ever falls. A candidate whose
    covariance would become flat keeps its density and moves its shares only.
    """

    family: ProductFamily  # of the P candidates
    like: Covariances | None  # the frozen components: what the structure holds equal is theirs
    class_weights: Array  # (C,) pi of the frozen mixture

    def prepare(self, params: PartialParams) -> Ready:
        return Ready(params.alpha * self.class_weights, 1 - params.alpha, self.family.prepare(params.components))

    def stats(self, ready: Ready, block: Block) -> PartialStats:
        assert block.offset is not None
        only = slice(None) if block.known is None else slice(block.known, block.known + 1)
        taking, keeping, offset = ready.taking[:, only], ready.keeping[:, only], block.offset[:, only]
        label = np.ones(offset.shape) if block.known is not None or block.label is None else block.label
        frozen, top = _scaled(label, offset)
        work = self.family.open(ready.family, block)
        new, allowed, left = work.log_prob(), taking @ label.T, keeping @ frozen.T  # (P, n)
        new += safe_log(allowed)
        log_lik = np.logaddexp(new, safe_log(left) + top)
        resp = _share(new, log_lik)  # (6)
        weight = block.row_weights
        rest = (1 - resp) * weight
        resp *= weight
        taken, kept = np.zeros_like(ready.taking), np.zeros_like(ready.taking)
        taken[:, only] = taking * (_ratio(resp, allowed) @ label)
        kept[:, only] = keeping * (_ratio(rest, left) @ frozen)
        # weight zero is the row left out, whatever its density
        return PartialStats(taken, kept, work.moments(resp), np.where(weight > 0, log_lik, 0.0) @ weight)

    def objective(self, params: PartialParams, total: PartialStats) -> float:
        return float(total.log_lik.sum()) + self.family.log_prior(params.components)

    def each(self, params: PartialParams, total: PartialStats) -> Array:
        """(P,) the objective of each candidate on its own."""
        alone = np.eye(params.n_candidates)
        return total.log_lik + [self.family.log_prior(params.components, one) for one in alone]

    def update(self, params: PartialParams, total: PartialStats, step: float = 1.0) -> PartialParams:
        rows = total.taken + total.kept
        alpha = np.divide(total.taken, rows, out=np.array(params.alpha), where=rows > 0)  # (7)
        components, flat = self._densities(params.components, total.components)
        return PartialParams(alpha.clip(LEAST, 1 - LEAST), components, params.stuck | flat)

    def _densities(self, components: Components, stats: ComponentStats) -> tuple[Components, np.ndarray]:
        gaussian, categorical = components.gaussian, components.categorical
        flat = np.zeros(components.n_components, dtype=bool)
        if gaussian is not None and stats.gaussian is not None:
            gaussian, flat = self._gaussians(gaussian, stats.gaussian)
        if self.family.categorical is not None and categorical is not None and stats.categorical is not None:
            categorical = self.family.categorical.update(categorical, stats.categorical)
        return Components(gaussian, categorical), flat

    def _gaussians(self, current: Gaussians, moments: Moments) -> tuple[Gaussians, np.ndarray]:
        """Equations (8) and (9), inside the structure; and which candidates must stand still."""
        family = self.family.gaussian
        assert family is not None and self.like is not None
        mass, scatter, means = family.sufficient(current, moments)
        empty = ~(mass > 0)
        covs = family.groups[0].model.beside(np.where(empty, 1.0, mass), scatter, self.like)
        still = empty | family.broken(Gaussians(means, covs, current.axes))
        means = np.where(still[:, None], current.means, means)
        covs = np.where(still.reshape(-1, *[1] * (covs.ndim - 1)), current.covs, covs)
        return replace(current, means=means, covs=covs), still


def _scaled(label: Array, offset: Array) -> tuple[Array, Array]:
    """label * p_old in units of its largest class, (n, C), and the log of the unit, (n,)."""
    top = np.where(label > 0, offset, -np.inf).max(axis=1)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):  # a class that the label rules out may be far above the unit
        frozen = np.where(label > 0, label * np.exp(offset - top[:, None]), 0.0)
    return frozen, top


def _share(log_part: Array, log_whole: Array) -> Array:
    """exp(part - whole) in place of the part; nothing of nothing is nothing."""
    possible = log_whole > -np.inf
    np.subtract(log_part, log_whole, out=log_part, where=possible)
    np.exp(log_part, out=log_part)
    if not possible.all():
        log_part[~possible] = 0.0
    return log_part


def _ratio(top: Array, bottom: Array) -> Array:
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


# --- from a mixture to candidates beside it, and back ----------------------------------------------------------------


def candidate_family(family: ProductFamily, n_components: int, free: bool = False) -> ProductFamily:
    """That many components in one group (`free`: of no structure), each under the prior of the first of `family`."""
    gaussian = family.gaussian
    if gaussian is not None:
        prior = gaussian.prior and gaussian.prior.take(np.zeros(n_components, dtype=int))
        name = gaussian.groups[0].structure
        if free:
            name = "VVI" if gaussian.axis_aligned else "VVV"
        gaussian = replace(gaussian, groups=(Group(name, 0, n_components),), prior=prior, noise=None)
    return ProductFamily(gaussian, family.categorical)


def frozen_group(components: Components) -> Covariances | None:
    """The covariances new components must agree with."""
    gaussian = components.gaussian
    return None if gaussian is None else Covariances(gaussian.covs, gaussian.axes[0])


def join(params: MixtureParams, found: PartialParams, p: int) -> MixtureParams:
    """The mixture with candidate p as its last component (5): exactly the density partial EM has raised."""
    alpha = found.alpha[p]
    weights = [params.weights * (1 - alpha)[:, None], params.weights.sum(axis=1) * alpha]
    return MixtureParams(np.column_stack(weights), _append(params.components, found.components, p))


def double(params: MixtureParams) -> MixtureParams:
    """The mixture with its heaviest component twice, at half the weight: the same density."""
    k = int(params.weights.sum(axis=0).argmax())
    weights = np.column_stack([params.weights, params.weights[:, k]])
    weights[:, [k, -1]] /= 2
    return MixtureParams(weights, _append(params.components, params.components, k))


def _append(first: Components, other: Components, k: int) -> Components:
    gaussian, categorical = first.gaussian, first.categorical
    if gaussian is not None and other.gaussian is not None:
        means = np.concatenate([gaussian.means, other.gaussian.means[[k]]])
        gaussian = replace(gaussian, means=means, covs=np.concatenate([gaussian.covs, other.gaussian.covs[[k]]]))
    if categorical is not None and other.categorical is not None:
        categorical = Categoricals(np.concatenate([categorical.log_probs, other.categorical.log_probs[[k]]]))
    return Components(gaussian, categorical)
