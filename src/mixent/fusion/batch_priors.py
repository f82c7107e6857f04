"""Class priors of an unlabelled batch, with standard errors, and a test whether they have shifted.

The priors are estimated from the sources' histograms alone, by composite likelihood: with N_v = sum_i w_i s_i(v) the
total weight of symbol v, A(v | k) its rate in class k and D_v = sum_k p_k A(v | k), they maximize

    sum_v u_v N_v log D_v,

u the share of a source among its copies. This is concave, and valid however the sources depend on each other. All
standard errors linearize this estimate. With H the curvature and M its inverse on the simplex, the influence of item i
is  phi_i = M g_i,  g_i(k) = sum_v u_v s_i(v) A(v | k) / D_v:  items are independent, so that the sum of w phi phi^T is
the variance due to the batch, however sources depend. The derivative with respect to a rate A(v | k) is T = M dg/dA,
and a rate has the variance of a Dirichlet distribution with the calibration's counts; the errors of sources calibrated
on the same rows are correlated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import chi2, norm

from mixent.base.priors import floored, shifted_priors
from mixent.core.arrays import Array
from mixent.fusion.batch import Batch
from mixent.fusion.sources import Layout

TOL, PASSES = 1e-10, 2000
FEWEST = 20  # items below which nothing is tested: their variance is not known


@dataclass(frozen=True)
class PriorEstimate:
    """Class priors of the batch by composite likelihood, with intervals for both errors."""

    prior: Array  # (K,)
    low: Array  # (K,)
    high: Array  # (K,)
    covariance: Array  # (K, K)
    batch_std: Array  # (K,) sampling error of the items
    calibration_std: Array  # (K,) sampling error of the confusion matrices
    confidence: float


@dataclass(frozen=True)
class Marginals:
    """The composite estimate and its derivatives, of all sources or of some."""

    batch: Batch
    used: np.ndarray  # (J,) bool
    start: Array | None = None  # (K,) of the search; None: uniform

    @property
    def layout(self) -> Layout:
        return self.batch.layout

    @cached_property
    def share(self) -> Array:
        """(S,) u, zero for sources left out."""
        return (self.layout.share * self.used)[self.layout.source_of]

    @cached_property
    def totals(self) -> Array:
        """(S,) N of the items without a known class."""
        return self.batch.unlabelled_totals

    @cached_property
    def labelled(self) -> Array:
        """(K,) items of known class, each weighted by the votes of all sources."""
        known = self.batch.known >= 0
        counts = np.bincount(self.batch.known[known], self.batch.weight[known], self.layout.n_classes)
        return counts * (self.layout.share * self.used).sum()

    @cached_property
    def prior(self) -> Array:
        """(K,)"""
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
        found = shifted_priors(np.concatenate(rows), start, weight=np.concatenate(weights), tol=TOL, max_iter=PASSES)
        return found.params

    @property
    def interior_prior(self) -> Array:
        """(K,) initial priors for EM, which never leaves a class without mass."""
        return 0.9 * self.prior + 0.1 / len(self.prior)

    @cached_property
    def density(self) -> Array:
        """(S,) D."""
        return self.layout.confusion @ self.prior

    @cached_property
    def symbol_gradient(self) -> Array:
        """(S, K) u A / D: the contribution of a symbol to g."""
        return self.share[:, None] * self.layout.confusion / self.density[:, None]

    @cached_property
    def inverse(self) -> Array:
        """(K, K) M; zero in directions where the likelihood is flat, see `unknown`."""
        Z = self._tangent
        return Z @ np.linalg.pinv(Z.T @ self._curvature @ Z, rcond=1e-8, hermitian=True) @ Z.T

    @property
    def _least_variance(self) -> Array:
        """(K,) variance of the shares if the classes of all items were known, at smoothed shares."""
        n = float(self.batch.weight.sum())
        share = (n * self.prior + 1.0) / (n + len(self.prior))
        return share * (1.0 - share) / (n + len(self.prior))

    @cached_property
    def unknown(self) -> np.ndarray:
        """(K,) classes whose priors are not identified by the sources."""
        return np.asarray((self._flat_directions**2).sum(axis=1) > 1e-6)

    @cached_property
    def _flat_directions(self) -> Array:
        """(K, m) directions of the simplex in which the likelihood is flat."""
        values, vectors = np.linalg.eigh(self._tangent.T @ self._curvature @ self._tangent)
        return self._tangent @ vectors[:, values <= 1e-8 * max(values.max(), 1e-300)]

    @property
    def _tangent(self) -> Array:
        """(K, K - 1) directions that keep the sum."""
        return np.linalg.svd(np.ones((1, self.layout.n_classes)))[2][1:].T

    @cached_property
    def _curvature(self) -> Array:
        ratio = self.layout.confusion / self.density[:, None]
        H = (ratio * (self.share * self.totals)[:, None]).T @ ratio
        return H + np.diag(self.labelled / np.maximum(self.prior, 1e-6) ** 2)

    @cached_property
    def influence(self) -> Array:
        """(P, K) phi."""
        g = self.batch.logits(self.symbol_gradient).T
        known = self.batch.known >= 0
        if known.any():
            g[known] = 0.0
            places = self.batch.known[known]
            u = (self.layout.share * self.used).sum()
            g[np.flatnonzero(known), places] = u / np.maximum(self.prior, 1e-6)[places]
        return g @ self.inverse

    @cached_property
    def slope(self) -> Array:
        """(K, S, K): derivative of the estimate with respect to each rate A(v | k)."""
        A, D, p = self.layout.confusion, self.density, self.prior
        weight = self.share * self.totals / D
        M = self.inverse
        first = M[:, None, :]  # (K, 1, K)
        second = (M @ A.T)[:, :, None] * p / D[:, None]
        return weight[:, None] * (first - second)

    @property
    def batch_covariance(self) -> Array:
        return item_covariance(self.influence, self.batch.weight)

    def calibration_covariance(self, correlation: Array) -> Array:
        """(K, K); errors of sources of one calibration set are correlated as their answers (J, J) within a class."""
        layout, spread = self.layout, rate_spread(self.layout, self.slope)
        total = np.zeros((layout.n_classes,) * 2)
        alone = np.zeros(layout.n_sources, dtype=bool)
        for members in layout.calibration_sets:
            members = [j for j in members if self.used[j]]
            if len(members) == 1:
                alone[members] = True
            elif members:
                total += set_covariance(layout, spread, members, correlation)
        flat = spread[:, alone[layout.source_of]].reshape(len(total), -1)
        return total + flat @ flat.T

    def estimate(self, correlation: Array, confidence: float) -> PriorEstimate:
        batch, calibration = self.batch_covariance, self.calibration_covariance(correlation)
        covariance = batch + calibration
        covariance[np.diag_indices_from(covariance)] += np.maximum(self._least_variance - np.diag(covariance), 0.0)
        std = np.sqrt(np.diag(covariance))
        reach = norm.ppf(0.5 + confidence / 2) * std
        low, high = np.maximum(self.prior - reach, 0.0), np.minimum(self.prior + reach, 1.0)
        low, high = np.where(self.unknown, 0.0, low), np.where(self.unknown, 1.0, high)
        batch_std, calibration_std = np.sqrt(np.diag(batch)), np.sqrt(np.diag(calibration))
        return PriorEstimate(floored(self.prior), low, high, covariance, batch_std, calibration_std, confidence)

    def without(self, j: int) -> Marginals:
        """The same without one source and its copies."""
        return Marginals(self.batch, self.used & (self.layout.root != self.layout.root[j]), self.interior_prior)


def all_marginals(batch: Batch) -> Marginals:
    """Of all sources but those with a context, whose histograms depend on the cells as much as on the classes."""
    used = np.array([n == 1 for n in batch.layout.n_groups])
    return Marginals(batch, used if used.any() else ~used)


def item_covariance(influence: Array, weight: Array) -> Array:
    """Covariance of sum_i w_i influence_i (P, D) over independent items."""
    centered = influence - (weight @ influence) / weight.sum()
    return (centered * weight[:, None]).T @ centered


def rate_spread(layout: Layout, slope: Array) -> Array:
    """(D, S, K): the covariance of sum slope dA, dA the error of all rates, is its product with itself."""
    return (slope - layout.within(slope * layout.confusion)) * layout.rate_std


def set_covariance(layout: Layout, spread: Array, members: list[int], correlation: Array) -> Array:
    """(D, D): covariance of a quantity with this `rate_spread` (D, S, K), for sources with the same calibration rows.

    The errors of two of them are taken to be correlated as their answers within a class: square root of the one's
    variance times that of the other's times the correlation, which is exact for two classes and two symbols.
    """
    parts = [spread[:, layout.slices[j]] for j in members]
    roots = _roots(np.stack([np.einsum("dvk,evk->kde", one, one) for one in parts]))  # (m, K, D, D)
    together = np.clip(correlation[np.ix_(members, members)], 0.0, 1.0)
    np.fill_diagonal(together, 1.0)
    return np.einsum("ikde,ikef->df", np.tensordot(together, roots, axes=1), roots)


def _roots(matrices: Array) -> Array:
    """Symmetric square roots of covariance matrices (..., D, D)."""
    values, vectors = np.linalg.eigh(matrices)
    return (vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]) @ vectors.swapaxes(-1, -2)


@dataclass(frozen=True)
class PriorShiftTest:
    """Test whether the class priors of the batch differ from `Fuser.class_prior`."""

    statistic: float  # 2 (log L at the batch's priors - log L at the reference), by the product rule
    p_value: float  # of Saerens, Latinne and Decaestecker's test: exact rates, independent sources
    robust_p_value: (
        float  # by the composite estimate and its covariance: any dependence, rates as counted; NaN: few items
    )
    significant: bool  # robust_p_value below 1 - confidence


def prior_shift_test(
    estimate: PriorEstimate, old: Array, n_rows: float, n_items: float, gain: float, confidence: float
) -> PriorShiftTest:
    """Reference priors counted on `n_rows` (infinite where they are given) against those of a batch of `n_items`.

    `gain` is the increase of the log-likelihood of the product rule from the reference to the batch's priors.
    """
    df = len(old) - 1
    if n_items < FEWEST or ((estimate.low <= 0) & (estimate.high >= 1)).any():
        return PriorShiftTest(2 * gain, float(chi2.sf(2 * gain, df)), np.nan, False)
    d = estimate.prior - old
    covariance = estimate.covariance + (np.diag(old) - np.outer(old, old)) / n_rows
    wald = float(d @ np.linalg.pinv(covariance, rcond=1e-8) @ d)
    robust = float(chi2.sf(wald, df))
    return PriorShiftTest(2 * gain, float(chi2.sf(2 * gain, df)), robust, robust < 1 - confidence)
