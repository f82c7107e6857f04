"""Fitted rules: posteriors of any items, at any priors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np

from mixent.base.priors import floored
from mixent.core.arrays import Array
from mixent.fusion.batch import Batch
from mixent.fusion.rules import majority, mean_posterior, mean_ratio, posterior_of, trimmed_mean
from mixent.show import Short


class FrozenRule(Protocol):
    """A fitted rule, which assigns posteriors to any items."""

    @property
    def prior(self) -> Array:
        """(K,) class priors."""

    def posterior(self, batch: Batch) -> Array:
        """(P, K) posteriors of the patterns."""

    def with_prior(self, prior: Array) -> Self:
        """The same rule with other class priors."""

    def contributions(self, batch: Batch) -> Array | None:
        """(J, P, K) contribution of each source to log q; None where posteriors are not products."""

    @property
    def prior_contribution(self) -> Array:
        """(K,) contribution of the class priors to log q."""


@dataclass(frozen=True, repr=False)
class Weighted(Short):
    """log q_i(k) = const + log p_k + sum_j t_j log r_ij(k), for product rules (t_j a share of a vote) and pools."""

    trust: Array  # (J,)
    prior: Array
    confusion: Array  # (S, K)

    def posterior(self, batch: Batch) -> Array:
        return posterior_of(batch.product(self.trust, self.confusion) + np.log(np.maximum(self.prior, 1e-300)))

    def with_prior(self, prior: Array) -> Self:
        return replace(self, prior=floored(prior))

    def contributions(self, batch: Batch) -> Array:
        return self.trust[:, None, None] * batch.product_evidence(self.confusion)

    @property
    def prior_contribution(self) -> Array:
        return np.log(np.maximum(self.prior, 1e-300))


@dataclass(frozen=True, repr=False)
class LogLinear(Short):
    """log q_i(k) = const + offset_k + sum of the weights of the answers, for "min-divergence" and "dawid-skene"."""

    weights: Array  # (S, K)
    offset: Array  # (K,)
    prior: Array

    def posterior(self, batch: Batch) -> Array:
        out = posterior_of(batch.logits(self.weights).T + self.offset)
        out[~batch.answered.any(axis=0)] = self.prior / self.prior.sum()  # items without an answer
        return out

    def with_prior(self, prior: Array) -> Self:
        prior = floored(prior)
        return replace(self, offset=self.offset + np.log(prior) - np.log(floored(self.prior)), prior=prior)

    def contributions(self, batch: Batch) -> Array:
        out = np.zeros((batch.layout.n_sources, batch.n_patterns, len(self.offset)))
        for j, responses in enumerate(batch.answers.responses):
            weights = self.weights[batch.layout.slices[j]]
            out[j] = (
                responses @ weights
                if responses.ndim == 2
                else np.where((responses >= 0)[:, None], weights[responses], 0.0)
            )
        return out

    @property
    def prior_contribution(self) -> Array:
        return self.offset


@dataclass(frozen=True, repr=False)
class Tempered(Short):
    """q_i(k) ~ (p_k exp(sum of the weights of the answers))^power, for crowds, whose errors are dependent."""

    weights: Array  # (S, K)
    prior: Array
    power: float

    @property
    def _linear(self) -> LogLinear:
        return LogLinear(self.power * self.weights, self.prior_contribution, self.prior)

    def posterior(self, batch: Batch) -> Array:
        return self._linear.posterior(batch)

    def with_prior(self, prior: Array) -> Self:
        return replace(self, prior=floored(prior))

    def contributions(self, batch: Batch) -> Array:
        return self._linear.contributions(batch)

    @property
    def prior_contribution(self) -> Array:
        return self.power * np.log(floored(self.prior))


@dataclass(frozen=True, repr=False)
class _Averaged(Short):
    """Base of the rules whose posteriors are averages, without additive contributions of the sources."""

    prior: Array  # (K,)

    def with_prior(self, prior: Array) -> Self:
        return replace(self, prior=floored(prior))

    def contributions(self, batch: Batch) -> None:
        return None

    @property
    def prior_contribution(self) -> Array:
        return np.log(floored(self.prior))


@dataclass(frozen=True)
class Mean(_Averaged):
    """q_i = mean of the sources' posteriors, a trimmed mean if `trim` > 0."""

    share: Array  # (J,)
    root: np.ndarray  # (J,) original of each source: copies are averaged before trimming
    confusion: Array
    trim: float = 0.0

    def posterior(self, batch: Batch) -> Array:
        evidence = batch.evidence(self.confusion)
        if not self.trim:
            return mean_posterior(evidence, self.prior, self.share[:, None] * batch.answered)
        return trimmed_mean(
            merged(evidence, self.share, self.root),
            self.prior,
            self.trim,
            merged(batch.answered[:, :, None].astype(float), self.share, self.root)[:, :, 0],
        ).posterior


@dataclass(frozen=True)
class MeanRatio(_Averaged):
    """q_i(k) ~ p_k mean_j r_ij(k), as printed in (4.5)."""

    share: Array
    confusion: Array

    def posterior(self, batch: Batch) -> Array:
        ratio = mean_ratio(batch.evidence(self.confusion), self.share[:, None] * batch.answered)
        return posterior_of(ratio + np.log(floored(self.prior)))


@dataclass(frozen=True)
class Vote(_Averaged):
    """q_i = shares of the votes, without class priors."""

    share: Array

    def posterior(self, batch: Batch) -> Array:
        return majority(batch.vote_totals(self.share)[None]).posterior

    def with_prior(self, prior: Array) -> Self:
        return self


def merged(evidence: Array, share: Array, root: np.ndarray) -> Array:
    """(G, n, K) evidence of the groups of copies: the mean over the copies."""
    groups = np.unique(root)
    return np.stack([np.einsum("j,jnk->nk", share[root == g], evidence[root == g]) for g in groups])
