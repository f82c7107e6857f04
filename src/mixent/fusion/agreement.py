"""Agreement: tests of the sources' answers against the posteriors of the other sources.

With f the vote scores of an answer of source j (see `vote_scores`), m_k their mean in class k by its calibration, and q
the posteriors of an item by the other sources (leave one out), the agreement of source j is the mean over the items of

    (f - sum_k q_k m_k) . x,   x = q - mean of q.

Its expectation is zero if the source answers as in its calibration, independently of the others given the class.
Sources that are dependent given the class agree more often, not less, so that the test is one-sided. The posteriors of
sources that are dependent among themselves would be overconfident, and predict more agreement than there is: they are
those of a product rule with the discounts of `discounts.discounts` as trust weights, times `reliability`, at class
priors by EM that are stabilized by the histograms (see `shares`).

The standard error is that of the delta method. With y_k = m_k . x and c_k = q_k (y_k - sum_l q_l y_l), the derivative
of the agreement with respect to the log evidence of an item is -c; that with respect to x multiplies residuals whose
expectation is zero, and is neglected. The sampling errors of the batch, of the calibrations and of the class priors are
included, and the difference between the class priors by EM and by the histograms, as far as it exceeds its own error.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import t as student

from mixent.base.result import Result
from mixent.core.arrays import Array
from mixent.fusion.batch import Batch
from mixent.fusion.batch_priors import MIN_ITEMS, Marginals
from mixent.fusion.dependence import Dependence
from mixent.fusion.discounts import Pairs, discounts
from mixent.fusion.drift import NO_TEST
from mixent.fusion.sampling import cautious_rates, degrees_of_freedom, item_covariance
from mixent.fusion.shares import RuleShares, stabilized_shares
from mixent.fusion.sources import Layout


@dataclass(frozen=True, repr=False)
class Agreement(Result):
    """Test of the agreement of a source with the posteriors of the others against its calibration."""

    _title = "Agreement of a source with the others"
    _shown = ("z", "p_value")

    excess: float  # over the agreement of sources that are independent given the class
    z: float  # the excess in standard errors; a source that is positively dependent on others has a large one
    p_value: float  # one-sided: of a smaller agreement; NaN without a test

    def __str__(self) -> str:
        if np.isnan(self.p_value):
            return NO_TEST
        return f"Agreement with the other sources: z = {self.z:.2f}, one-sided p = {self.p_value:.2g}."


NOT_TESTED = Agreement(np.nan, np.nan, np.nan)


@dataclass(frozen=True)
class Agreements:
    """The vote scores and the weighted evidence of all sources, by which each is tested against the others."""

    marginals: Marginals
    dependence: Dependence

    @property
    def batch(self) -> Batch:
        return self.marginals.batch

    @cached_property
    def f(self) -> Array:
        return vote_scores(self.batch)

    @cached_property
    def trust(self) -> Array:
        """(J,) discounts of the sources in use, times their reliability; copies share the weight of one."""
        layout = self.batch.layout
        used = np.flatnonzero(self.marginals.used & (layout.share > 0))
        _, first, group = np.unique(layout.root[used], return_index=True, return_inverse=True)
        pairs = Pairs(self.dependence.correlation, self.dependence.std)
        out = np.zeros(layout.n_sources)
        out[used] = discounts(pairs.part(used[first]))[group] * layout.share[used]
        return out * reliability(self.batch)

    @cached_property
    def ratio(self) -> Array:
        """(P, K) weighted evidence of all sources in use."""
        return self.batch.product(self.trust)

    def others(self, j: int) -> RuleShares | None:
        """The class priors and posteriors by all others but copies; None where these cannot identify the priors."""
        marginals, root = self.marginals.without(j), self.batch.layout.root
        if not marginals.used.any() or marginals.unidentified.any():
            return None
        own = np.where(root == root[j], self.trust, 0.0)
        ratio = self.ratio - self.batch.product(own)
        return stabilized_shares(marginals, self.trust - own, ratio, self.dependence.correlation)

    def test(self, j: int) -> Agreement:
        """Excess agreement of source j with the others, in standard errors."""
        others, layout = self.others(j), self.batch.layout
        if others is None or layout.n_groups[j] > 1:
            return NOT_TESTED
        answered = self.batch.answered
        compared = answered[j] & answered[others.trust > 0].any(axis=0)
        weight = self.batch.weight * compared
        if (total := float(weight.sum())) < MIN_ITEMS:
            return NOT_TESTED
        return self._test(j, others, compared / total)

    def _test(self, j: int, others: RuleShares, share: Array) -> Agreement:
        """`share` (P,): of each item of a pattern; zero where it is not compared."""
        batch, layout = self.batch, self.batch.layout
        weight = share * batch.weight
        f, here = self.f[layout.slices[j]], layout.slices[j]
        means = layout.rates[here].T @ f  # (K classes, K)
        q = others.posterior
        x = q - weight @ q
        t = np.einsum("pc,pc->p", self._scores(j) - q @ means, x)
        y = x @ means.T
        c = weight[:, None] * q * (y - (q * y).sum(axis=1, keepdims=True))
        excess, of_priors = float(weight @ t), -c.sum(axis=0) / others.p
        influence = share * (t - excess) + others.influence @ of_priors
        derivative = np.tensordot(of_priors, others.rate_derivative, axes=1) - others.of_evidence(c)
        derivative[here] -= f @ (weight[:, None] * x).T @ q
        of_items = float(item_covariance(influence[:, None], batch.weight)[0, 0])
        of_model = float(of_priors @ others.discrepancy(self.dependence.correlation)) ** 2
        of_rates = rate_variances(layout, derivative, batch.dispersion)
        return _tested(batch, excess, np.array([of_items + of_model, *of_rates.ravel()]))

    def _scores(self, j: int) -> Array:
        """(P, K) f of the answers of source j; zero without an answer."""
        responses, f = self.batch.answers.responses[j], self.f[self.batch.layout.slices[j]]
        return responses @ f if responses.ndim == 2 else np.where((responses >= 0)[:, None], f[responses], 0.0)


def _tested(batch: Batch, excess: float, parts: Array) -> Agreement:
    """The test of an excess with these parts of its variance: of the items, and of each calibration set and class."""
    layout, variance = batch.layout, float(parts.sum())
    if not variance > 0:
        return NOT_TESTED
    rows = [layout.n_rows[members].max(axis=0) for members in layout.calibration_sets]
    df = degrees_of_freedom(parts / variance, np.array([batch.weight.sum(), *np.ravel(rows)]))
    z = excess / np.sqrt(variance)
    return Agreement(excess, z, float(student.cdf(z, df)))


def reliability(batch: Batch) -> Array:
    """(J,) factors of the evidence of the sources: max(0, 1 - df / X^2), with X^2 of the test of independence.

    The evidence of a source near chance is mostly the sampling error of its calibration, so that it is overconfident or
    has the wrong sign; the factor is that of James and Stein.
    """
    layout, out = batch.layout, np.ones(batch.layout.n_sources)
    for j, here in enumerate(layout.slices):
        n = layout.n_rows[j]
        share = layout.rates[here] @ n / n.sum()
        seen = share > 0
        statistic = float((((layout.rates[here] - share[:, None]) ** 2 @ n)[seen] / share[seen]).sum())
        df = (seen.sum() - 1) * ((n > 0).sum() - 1) * batch.dispersion[j].mean()
        out[j] = max(0.0, 1.0 - df / statistic) if statistic > 0 else 0.0
    return out


def vote_scores(batch: Batch) -> Array:
    """(S, K) f: 1 - 1/K for the class that a symbol is a vote for, -1/K for the others; zero for a symbol without one.

    Bins of a score for two classes have equally spaced scores instead, in the direction of the calibration: the vote
    of each bin would be estimated from the same few counts as its mean.
    """
    layout = batch.layout
    K = layout.n_classes
    f = np.zeros((layout.n_symbols, K))
    for j, here in enumerate(layout.slices):
        n, ordered = layout.sizes[j], layout.calibrations[j].edges is not None
        if ordered and K == 2 and layout.calibrations[j].cells is None:
            place = np.linspace(-0.5, 0.5, n)
            sign = 1.0 if place @ (layout.confusion[here, 1] - layout.confusion[here, 0]) >= 0 else -1.0
            f[here] = sign * np.stack([-place, place], axis=1)
            continue
        class_of = batch.class_of_symbol(j)
        voted = class_of >= 0
        f[here][voted] = np.eye(K)[class_of[voted]] - 1.0 / K
    return f


def rate_variances(layout: Layout, derivative: Array, dispersion: Array) -> Array:
    """(sets, K) variance of  sum derivative * dA  by calibration set and class, with dA the errors of the rates.

    The errors of sources of one calibration set may be identical: this is an upper bound.
    """
    A = cautious_rates(layout)
    squares = (derivative - layout.group_sums(derivative * A)) ** 2 * A / (layout.concentration + 1.0)  # (S, K)
    stds = np.sqrt(np.add.reduceat(squares, [here.start for here in layout.slices]) * dispersion)  # (J, K)
    sets = np.zeros((len(layout.calibration_sets), layout.n_classes))
    np.add.at(sets, layout.set_of, stds)
    return sets**2
