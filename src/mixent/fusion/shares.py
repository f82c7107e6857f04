"""Class shares of a batch by EM with the rule's trust weights, with the sampling errors of items and calibrations.

With L_i(k) = sum_j t_j log r_ij(k) the evidence of an item, a the pseudo-items, h the histogram estimate and n_k its
information on class k in items (see `batch_priors`), the priors p maximize

    sum_i w_i log sum_k p_k exp L_i(k) + sum_k (a_k log p_k + n_k (h_k log p_k + (1 - h_k) log (1 - p_k))).

The influence of an item and the derivatives with respect to the rates are those of the delta method; for h they are
those of the histogram estimate. Items are independent, so that the variance is valid for any dependence of the sources.
The estimate itself depends on the trust weights, whereas h does not: the square of the difference d of the two, as far
as it exceeds its own variance D, is a third part of the variance,  max(0, 1 - (K - 1) / d^T D^-1 d) d d^T.

The re-estimated rates of "discounted" are treated as those of the calibrations, with the sampling errors of these.
"discounted" fits its trust weights at h, and p follows h in part: between the variance at fixed trust weights and that
of h, the mean of the two is used. "ml-product" is biased if the sources are dependent: its mean squared error is then
that of h plus  d d^T.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mixent.base.priors import floored
from mixent.core.arrays import Array
from mixent.fusion.batch_priors import Marginals, PriorEstimate
from mixent.fusion.frozen import FrozenRule, Weighted
from mixent.fusion.methods import PSEUDO_ITEMS, Task, dependent
from mixent.fusion.rules import ml_product, posterior_of
from mixent.fusion.sampling import calibration_covariance, item_covariance

SMALLEST = 1e-6  # a share in a denominator


def estimated_shares(task: Task, method: str, rule: FrozenRule, confidence: float) -> PriorEstimate:
    """Intervals of the class priors of a rule; for rules that do not estimate them by EM, of the histogram estimate."""
    dependence, marginals = task.dependence(), task.marginals
    if not isinstance(rule, Weighted) or method not in ("discounted", "ml-product"):
        return marginals.estimate(dependence.correlation, confidence)
    if method == "discounted":
        pseudo_items = PSEUDO_ITEMS * task.settings.prior
        n_histogram = marginals.n_equivalent(task.histogram_covariance)
        shares = RuleShares(marginals, rule.trust, rule.prior, rule.confusion, pseudo_items, n_histogram)
        return shares.estimate(dependence.correlation, confidence, of_histogram=0.5)
    shares = RuleShares(marginals, rule.trust, rule.prior, rule.confusion, np.zeros_like(rule.prior))
    biased = dependent(dependence, np.unique(task.batch.layout.root))
    return shares.estimate(dependence.correlation, confidence, of_histogram=float(biased))


def stabilized_shares(marginals: Marginals, trust: Array, ratio: Array, correlation: Array) -> RuleShares:
    """Class priors by EM from weighted evidence (P, K), stabilized by the histogram estimate."""
    batch, covariance = marginals.batch, marginals.covariance(correlation)
    items, weight = marginals.pseudo_items(covariance)
    prior = ml_product(
        np.concatenate([ratio, items]),
        np.concatenate([batch.weight, weight]),
        floored(marginals.interior_prior),
        labels=np.concatenate([batch.labels, np.full(len(weight), -1)]),
    ).prior
    n, none = marginals.n_equivalent(covariance), np.zeros_like(prior)
    return RuleShares(marginals, trust, floored(prior), marginals.layout.confusion, none, n, ratio)


@dataclass(frozen=True)
class RuleShares:
    """The class priors of a weighted product rule, and their derivatives."""

    marginals: Marginals
    trust: Array  # (J,)
    prior: Array  # (K,)
    rates: Array  # (S, K) of the rule
    pseudo_items: Array  # (K,) a
    n_histogram: Array | float = 0.0  # (K,) n
    ratio: Array | None = None  # (P, K) weighted evidence; None: not computed yet

    @cached_property
    def p(self) -> Array:
        return np.maximum(self.prior, SMALLEST)

    @cached_property
    def posterior(self) -> Array:
        """(P, K) q; one for the class of a labelled item."""
        batch = self.marginals.batch
        ratio = batch.product(self.trust, self.rates) if self.ratio is None else self.ratio
        q = posterior_of(ratio + np.log(self.p))
        labelled = np.flatnonzero(batch.labels >= 0)
        q[labelled] = np.eye(len(self.p))[batch.labels[labelled]]
        return q

    @cached_property
    def histogram_weight(self) -> Array:
        """(K,) derivative of the gradient with respect to h."""
        return self.n_histogram / (self.p * np.maximum(1 - self.p, SMALLEST))

    @cached_property
    def inverse(self) -> Array:
        """(K, K) inverse of minus the Hessian on the simplex."""
        g = self.posterior / self.p
        H = (g * self.marginals.batch.weight[:, None]).T @ g
        h, n = self.marginals.prior, self.n_histogram
        H += np.diag((self.pseudo_items + n * h) / self.p**2 + n * (1 - h) / np.maximum(1 - self.p, SMALLEST) ** 2)
        Z = self.marginals.tangent
        return Z @ np.linalg.pinv(Z.T @ H @ Z, rcond=1e-8, hermitian=True) @ Z.T

    @cached_property
    def influence(self) -> Array:
        """(P, K) influence of an item."""
        return (self.posterior / self.p + self.histogram_weight * self.marginals.influence) @ self.inverse

    @cached_property
    def rate_derivative(self) -> Array:
        """(K, S, K) derivative with respect to each rate A(v | k)."""
        batch, layout = self.marginals.batch, self.marginals.batch.layout
        K = layout.n_classes
        q, w = self.posterior, batch.weight * (batch.labels < 0)
        spread = -q[:, :, None] * q[:, None, :]  # dq_k' / dL_k
        spread[:, np.arange(K), np.arange(K)] += q
        change = (w[:, None, None] * spread).reshape(-1, K * K)  # of each class k and k'
        gradient = np.stack([self.of_evidence(change[:, k::K]) for k in range(K)], axis=2) / self.p
        histogram = np.moveaxis(self.marginals.rate_derivative, 0, 2) * self.histogram_weight
        return np.moveaxis((gradient + histogram) @ self.inverse, 2, 0)

    def of_evidence(self, change: Array) -> Array:
        """(S, K) derivative with respect to each rate, from that with respect to the log evidence of each item (P, K).

        Zero for sources whose probabilities are used as they are.
        """
        batch, layout = self.marginals.batch, self.marginals.layout
        out = batch.expected(np.ascontiguousarray(change.T)) * self.trust[layout.source_of, None] / self.rates
        for j in batch.soft:
            here, s = layout.slices[j], batch.answers.responses[j]
            if batch.class_probabilities(j) is not None:
                out[here] = 0.0
                continue
            ratio = self.rates[here] / layout.pooled[here, None]  # the evidence is log(s ratio)
            density = np.where(batch.answered[j][:, None], s @ ratio, 1.0)
            out[here] = self.trust[j] * (s.T @ (change / density)) / layout.pooled[here, None]
        return out

    def discrepancy(self, correlation: Array) -> Array:
        """(K,) difference from the histogram estimate, as far as its square exceeds its variance."""
        difference = self.prior - self.marginals.prior
        return np.sqrt(self._excess(difference, correlation)) * difference

    def estimate(self, correlation: Array, confidence: float, of_histogram: float) -> PriorEstimate:
        """The priors with intervals, where `of_histogram` is the share of the histogram estimate in the variance."""
        marginals, own = self.marginals, 1.0 - of_histogram
        batch = own * item_covariance(self.influence, marginals.batch.weight)
        calibration = own * self._calibration_covariance(self.rate_derivative, correlation)
        batch += of_histogram * marginals.batch_covariance
        calibration += of_histogram * marginals.calibration_covariance(correlation)
        difference = self.prior - marginals.prior
        excess = 1.0 if of_histogram == 1 else self._excess(difference, correlation)
        model = excess * np.outer(difference, difference)
        return marginals.with_interval(self.prior, batch, calibration, model, confidence)

    def _excess(self, difference: Array, correlation: Array) -> float:
        """Share of the square of the difference from the histogram estimate that exceeds its variance."""
        marginals = self.marginals
        variance = item_covariance(self.influence - marginals.influence, marginals.batch.weight)
        variance += self._calibration_covariance(self.rate_derivative - marginals.rate_derivative, correlation)
        statistic = float(difference @ np.linalg.pinv(variance, rcond=1e-8, hermitian=True) @ difference)
        return max(0.0, 1.0 - (len(difference) - 1) / statistic) if statistic > 0 else 0.0

    def _calibration_covariance(self, derivative: Array, correlation: Array) -> Array:
        everything = np.ones(self.marginals.layout.n_sources, dtype=bool)
        return calibration_covariance(self.marginals.batch, derivative, everything, correlation)
