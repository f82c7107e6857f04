"""Class priors of an unlabelled batch, with standard errors, and a test whether they have shifted.

The priors are estimated from the sources' histograms alone, by composite likelihood. With N_v = sum_i w_i s_i(v) the
total weight of symbol v, A(v | k) its rate in class k and D_v = sum_k p_k A(v | k), they maximize

    sum_v u_v N_v log D_v,

where u is the share of a source among its copies. This objective is concave, and the estimate is valid whatever
the dependence between the sources.

The standard errors use the delta method. With H the Hessian and M its inverse on the simplex, the influence of item i
is  phi_i = M g_i,  g_i(k) = sum_v u_v s_i(v) A(v | k) / D_v.  Items are independent, so that the variance due to the
batch is the sum of w phi phi^T, whatever the dependence between the sources. The derivative with respect to a rate
A(v | k) is T = M dg/dA. A rate has the variance of a Dirichlet distribution with the counts of the calibration as
parameters; the errors of sources calibrated on the same rows are correlated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import chi2

from mixent.base.document import Cell, Content, Number, Table
from mixent.base.priors import floored, shifted_priors
from mixent.base.result import Result
from mixent.core.arrays import Array
from mixent.fusion.batch import Batch
from mixent.fusion.sampling import calibration_covariance, item_covariance, share_interval
from mixent.fusion.sources import Layout

TOL, PASSES = 1e-10, 2000
CONTRADICTED = 0.05  # level of the test of other estimates of the priors
MIN_ITEMS = 20  # of a test: with fewer the variance is not estimated well enough


@dataclass(frozen=True, repr=False)
class PriorEstimate(Result):
    """Class priors of the batch, with intervals for both sampling errors."""

    _title = "Class priors of the batch"
    _shown = ("prior", "low", "high")

    prior: Array  # (K,)
    low: Array  # (K,)
    high: Array  # (K,)
    covariance: Array  # (K, K)
    batch_std: Array  # (K,) sampling error of the items
    calibration_std: Array  # (K,) sampling error of the confusion matrices
    confidence: float

    def _content(self) -> list[Content]:
        columns = np.column_stack([self.prior, self.low, self.high, self.batch_std, self.calibration_std])
        rows: list[list[Cell]] = [[str(k), *(Number(f"{x:.3f}") for x in row)] for k, row in enumerate(columns)]
        header = ["class", "prior", "low", "high", "std. error (items)", "std. error (calibrations)"]
        return [Table(f"Estimates with {100 * self.confidence:g} % intervals, classes in sorted order", header, rows)]


@dataclass(frozen=True)
class Marginals:
    """The composite-likelihood estimate and its derivatives, from all sources or from some of them."""

    batch: Batch
    used: np.ndarray  # (J,) bool
    start: Array | None = None  # (K,) initial priors; None: uniform

    @property
    def layout(self) -> Layout:
        return self.batch.layout

    @cached_property
    def share(self) -> Array:
        """(S,) u, zero for sources that are not used."""
        return (self.layout.share * self.used)[self.layout.source_of]

    @cached_property
    def totals(self) -> Array:
        """(S,) N of the unlabelled items."""
        return self.batch.unlabelled_totals

    @cached_property
    def labelled(self) -> Array:
        """(K,) labelled items of each class, weighted by the votes of all sources."""
        labels = self.batch.labels
        counts = np.bincount(labels[labels >= 0], self.batch.weight[labels >= 0], self.layout.n_classes)
        return counts * (self.layout.share * self.used).sum()

    @cached_property
    def prior(self) -> Array:
        """(K,) estimated class priors."""
        K = self.layout.n_classes
        weight = self.share * self.totals
        rows = [np.log(self.layout.confusion)[weight > 0]]
        weights = [weight[weight > 0]]
        if self.labelled.any():
            with np.errstate(divide="ignore"):
                rows.append(np.log(np.eye(K)))
            weights.append(self.labelled)
        if not len(weights[0]) and not self.labelled.any():
            return self.layout.training_prior
        start = np.full(K, 1 / K) if self.start is None else self.start
        return shifted_priors(
            np.concatenate(rows), start, weight=np.concatenate(weights), tol=TOL, max_iter=PASSES
        ).params

    @property
    def interior_prior(self) -> Array:
        """(K,) initial priors for EM: positive, because EM never changes a prior of zero."""
        return 0.9 * self.prior + 0.1 / len(self.prior)

    @cached_property
    def density(self) -> Array:
        """(S,) D, the expected share of each symbol."""
        return self.layout.confusion @ self.prior

    @cached_property
    def symbol_gradient(self) -> Array:
        """(S, K) u A / D, the contribution of a symbol to g."""
        return self.share[:, None] * self.layout.confusion / self.density[:, None]

    @cached_property
    def inverse(self) -> Array:
        """(K, K) M; zero in directions where the likelihood is flat, see `unidentified`."""
        Z = self.tangent
        return Z @ np.linalg.pinv(Z.T @ self._hessian @ Z, rcond=1e-8, hermitian=True) @ Z.T

    @cached_property
    def unidentified(self) -> np.ndarray:
        """(K,) classes whose priors are not identified by the sources."""
        return np.asarray((self._flat_directions**2).sum(axis=1) > 1e-6)

    @cached_property
    def _flat_directions(self) -> Array:
        """(K, m) directions of the simplex in which the likelihood is flat."""
        values, vectors = np.linalg.eigh(self.tangent.T @ self._hessian @ self.tangent)
        return self.tangent @ vectors[:, values <= 1e-8 * max(values.max(), 1e-300)]

    @property
    def tangent(self) -> Array:
        """(K, K - 1) basis of the directions that leave the sum unchanged."""
        return np.linalg.svd(np.ones((1, self.layout.n_classes)))[2][1:].T

    @cached_property
    def _hessian(self) -> Array:
        """(K, K) H, of minus the objective."""
        ratio = self.layout.confusion / self.density[:, None]
        H = (ratio * (self.share * self.totals)[:, None]).T @ ratio
        return H + np.diag(self.labelled / np.maximum(self.prior, 1e-6) ** 2)

    @cached_property
    def influence(self) -> Array:
        """(P, K) phi."""
        g = self.batch.logits(self.symbol_gradient).T
        labelled = self.batch.labels >= 0
        if labelled.any():
            g[labelled] = 0.0
            classes = self.batch.labels[labelled]
            u = (self.layout.share * self.used).sum()
            g[np.flatnonzero(labelled), classes] = u / np.maximum(self.prior, 1e-6)[classes]
        return g @ self.inverse

    @cached_property
    def rate_derivative(self) -> Array:
        """(K, S, K) T, the derivative of the estimate with respect to each rate A(v | k)."""
        A, D, p = self.layout.confusion, self.density, self.prior
        weight = self.share * self.totals / D
        M = self.inverse
        first = M[:, None, :]  # (K, 1, K)
        second = (M @ A.T)[:, :, None] * p / D[:, None]
        return weight[:, None] * (first - second)

    @property
    def batch_covariance(self) -> Array:
        """(K, K) covariance due to the sampling of the items."""
        return item_covariance(self.influence, self.batch.weight)

    def calibration_covariance(self, correlation: Array) -> Array:
        """(K, K) covariance due to the calibrations, see `sampling.calibration_covariance`."""
        return calibration_covariance(self.batch, self.rate_derivative, self.used, correlation)

    def covariance(self, correlation: Array) -> Array:
        """(K, K) covariance of the estimate, due to the items and to the calibrations."""
        return self.batch_covariance + self.calibration_covariance(correlation)

    def n_equivalent(self, covariance: Array) -> Array:
        """(K,) items n_k with the information of the estimate on each class prior p_k.

        They follow from the variance p_k (1 - p_k) / n_k of a share, times (K - 1) / K because the priors sum to one.
        """
        variance = np.maximum(np.diag(covariance), 1e-12)
        return (1 - 1 / len(self.prior)) * self.prior * (1 - self.prior) / variance

    def pseudo_items(self, covariance: Array) -> tuple[Array, Array]:
        """The information of the estimate as items: log-likelihood ratios (2 K, K) and weights (2 K,).

        For each class there are n_k p_k items of the class and n_k (1 - p_k) items that are not of the class.
        """
        is_class, n = np.eye(len(self.prior)), self.n_equivalent(covariance)
        ratio = np.log(np.maximum(np.concatenate([is_class, 1 - is_class]), 1e-300))
        return ratio, np.concatenate([n * self.prior, n * (1 - self.prior)])

    def prefers(self, reference: Array, prior: Array, covariance: Array) -> bool:
        """Whether `prior` differs significantly from the estimate, and `reference` less (Wald tests)."""
        information = np.linalg.pinv(covariance, rcond=1e-8, hermitian=True)
        wald = [float((p - self.prior) @ information @ (p - self.prior)) for p in (reference, prior)]
        return wald[1] > max(wald[0], chi2.isf(CONTRADICTED, len(prior) - 1))

    def estimate(self, correlation: Array, confidence: float) -> PriorEstimate:
        """Priors with intervals."""
        batch, calibration = self.batch_covariance, self.calibration_covariance(correlation)
        return self.with_interval(self.prior, batch, calibration, np.zeros_like(batch), confidence)

    def with_interval(
        self, prior: Array, batch: Array, calibration: Array, model: Array, confidence: float
    ) -> PriorEstimate:
        """Intervals of priors with these three parts of their covariance; 0 to 1 where a prior is not identified."""
        covariance = batch + calibration + model
        n = float(self.batch.weight.sum())
        missing = prior * (1.0 - prior) / n - np.diag(covariance)  # at least the variance of labelled items
        covariance[np.diag_indices_from(covariance)] += np.maximum(missing, 0.0)
        low, high = share_interval(prior, covariance, n, confidence)
        low, high = np.where(self.unidentified, 0.0, low), np.where(self.unidentified, 1.0, high)
        batch_std, calibration_std = np.sqrt(np.diag(batch)), np.sqrt(np.diag(calibration))
        return PriorEstimate(floored(prior), low, high, covariance, batch_std, calibration_std, confidence)

    def without(self, j: int) -> Marginals:
        """The estimate without source j and its copies."""
        return Marginals(self.batch, self.used & (self.layout.root != self.layout.root[j]), self.interior_prior)


def all_marginals(batch: Batch) -> Marginals:
    """The estimate from all sources except those with a context, whose histograms also depend on the cells."""
    used = np.array([n == 1 for n in batch.layout.n_groups])
    return Marginals(batch, used if used.any() else ~used)


@dataclass(frozen=True, repr=False)
class PriorShiftTest(Result):
    """Test whether the class priors of the batch differ from `Fuser.class_prior`."""

    _title = "Test of a prior shift"
    _shown = ("p_value", "robust_p_value", "significant")

    statistic: float  # 2 (log L at the batch's priors - log L at the reference), by the product rule
    p_value: float  # likelihood-ratio test of Saerens, Latinne and Decaestecker: exact rates, independent sources
    robust_p_value: float  # Wald test for dependent sources and estimated rates; NaN with few items
    significant: bool  # robust_p_value below 1 - confidence

    def __str__(self) -> str:
        differ = "differ" if self.significant else "do not differ"
        robust = "not tested" if np.isnan(self.robust_p_value) else f"robust p = {self.robust_p_value:.2g}"
        return (
            f"The class priors {differ} significantly from the reference ({robust}; likelihood ratio "
            f"{self.statistic:.2f}, p = {self.p_value:.2g})."
        )


def prior_shift_test(
    estimate: PriorEstimate, reference: Array, n_rows: float, n_items: float, gain: float, confidence: float
) -> PriorShiftTest:
    """Test of the priors of a batch of `n_items` against reference priors.

    The reference priors were counted on `n_rows` rows (infinite where they are given). `gain` is the increase of the
    log-likelihood of the product rule from the reference priors to those of the batch.
    """
    df = len(reference) - 1
    if n_items < MIN_ITEMS or ((estimate.low <= 0) & (estimate.high >= 1)).any():
        return PriorShiftTest(2 * gain, float(chi2.sf(2 * gain, df)), np.nan, False)
    d = estimate.prior - reference
    covariance = estimate.covariance + (np.diag(reference) - np.outer(reference, reference)) / n_rows
    wald = float(d @ np.linalg.pinv(covariance, rcond=1e-8) @ d)
    robust = float(chi2.sf(wald, df))
    return PriorShiftTest(2 * gain, float(chi2.sf(2 * gain, df)), robust, robust < 1 - confidence)
