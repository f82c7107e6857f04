"""Class priors of an unlabelled batch, dependence and drift of its sources, with standard errors.

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
from mixent.fusion.discounts import Pairs, effective_number
from mixent.fusion.sources import Layout

TOL, PASSES = 1e-10, 2000
LEAST_VARIANCE = 1e-12  # of the answers of a source within a class
MOST_PAIRS = 2000  # of sources, to be tested for dependence one by one
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


@dataclass(frozen=True)
class Dependence:
    """Dependence of pairs of sources within a class."""

    z: Array  # (J, J) excess agreement over the confusion matrices, in standard errors; NaN: not tested
    correlation: Array  # (J, J) of their answers within a class
    n_effective: float  # effective number of independent sources
    overall_z: float  # of all pairs together: detects dependence that is spread thinly over many of them
    std: Array  # (J,) standard deviation of each source's evidence within a class, in nats

    @property
    def largest(self) -> float:
        """The largest z of a pair that are not declared copies; zero where none was tested."""
        return float(np.nanmax(np.append(self.z[np.triu_indices(len(self.z), 1)], 0.0)))


def dependence(marginals: Marginals) -> Dependence:
    """Observed pairs against sum_k p_k A_i(. | k) A_j(. | k).

    For each pair it compares the mean of  t = sum_c f_i(c) f_j(c),  f(v, c) = 1 - 1/K where symbol v names class c and
    -1/K elsewhere,  with its expectation under independence given the class; the standard error includes the batch, the
    priors and the rates. Scores log A would be estimated from the same counts as their means, and be biased with many
    symbols and few rows.
    """
    compared = _Compared.of(marginals)
    layout, std = marginals.layout, compared.std
    J = layout.n_sources
    z, cov = np.full((J, J), np.nan), np.where(layout.root[:, None] == layout.root, np.outer(std, std), 0.0)
    together = _Sum.zero(marginals.batch.n_patterns, layout.confusion.shape)
    tested, left = pairs_to_test(layout)
    for i, j in tested:
        pair = compared.pair(i, j)
        if pair is None:
            continue
        cov[i, j] = cov[j, i] = pair.excess
        z[i, j] = z[j, i] = pair.z(marginals)
        together = together.plus(pair, layout.share[i] * layout.share[j] / (std[i] * std[j]))
    if left:
        compared.fill(z, cov, left)
    pairs = Pairs(_correlation(cov, std), z, std)
    originals = np.unique(layout.root)
    evidence_std = _evidence_std(layout, marginals.prior)
    n_effective = effective_number(pairs.part(originals))
    return Dependence(z, pairs.correlation, n_effective, together.z(marginals), evidence_std)


def pairs_to_test(layout: Layout) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Pairs to be tested one by one, and the remaining ones; without copies and without sources with a context."""
    able = [j for j, n in enumerate(layout.n_groups) if n == 1]
    found = [(i, j) for place, i in enumerate(able) for j in able[:place] if layout.root[i] != layout.root[j]]
    if len(found) <= MOST_PAIRS:
        return found, []
    step = len(found) / MOST_PAIRS
    chosen = {int(step * t) for t in range(MOST_PAIRS)}
    return [found[t] for t in sorted(chosen)], [pair for t, pair in enumerate(found) if t not in chosen]


@dataclass(frozen=True)
class _Compared:
    """Scores by which pairs are compared."""

    marginals: Marginals
    f: Array  # (S, K)
    scores: list[Array]  # of each source (P, K)
    means: list[Array]  # of each source (K classes, K): mean of f in each class
    std: Array  # (J,) of the scores, within a class

    @staticmethod
    def of(marginals: Marginals) -> _Compared:
        layout = marginals.layout
        f = _votes(layout)
        scores = [_scores(marginals.batch, f, j) for j in range(layout.n_sources)]
        means = [layout.rates[s].T @ f[s] / n for s, n in zip(layout.slices, layout.n_groups)]
        own = [_pair_excess(marginals, scores, means, marginals.prior, j, j)[0] for j in range(layout.n_sources)]
        return _Compared(marginals, f, scores, means, np.sqrt(np.maximum(own, LEAST_VARIANCE)))

    def pair(self, i: int, j: int) -> _Sum | None:
        """None where too few items have answers of both."""
        found = _pair_excess(self.marginals, self.scores, self.means, self.marginals.prior, i, j)
        if found[2] < FEWEST:
            return None
        return _Sum(found[0], found[1], _rates_slope(self.marginals, self.f, self.means, i, j))

    def fill(self, z: Array, cov: Array, left: list[tuple[int, int]]) -> None:
        """Pairs that were not tested: their excess, and z by the median standard error of those that were."""
        batch = self.marginals.batch
        known = np.isfinite(z) & (z != 0)
        scale = (
            np.median((np.abs(cov[known] / z[known])) / np.outer(self.std, self.std)[known]) if known.any() else np.inf
        )
        weight = batch.answered * batch.weight
        both = weight @ batch.answered.T
        total = sum((weight * part) @ part.T for part in np.stack(self.scores).transpose(2, 0, 1))
        expected = np.einsum("k,ikc,jkc->ij", self.marginals.prior, np.stack(self.means), np.stack(self.means))
        rows, columns = np.array(left).T
        enough = both[rows, columns] >= FEWEST
        rows, columns = rows[enough], columns[enough]
        excess = total[rows, columns] / both[rows, columns] - expected[rows, columns]
        for a, b in ((rows, columns), (columns, rows)):
            cov[a, b] = excess
            z[a, b] = excess / (scale * self.std[a] * self.std[b])


def _votes(layout: Layout) -> Array:
    """(S, K) f: a symbol names the class with its largest rate."""
    A = layout.confusion
    named = (A.max(axis=1, keepdims=True) * (1 - 1e-12) <= A).astype(float)
    return named / named.sum(axis=1, keepdims=True) - 1.0 / layout.n_classes


def _evidence_std(layout: Layout, prior: Array) -> Array:
    """(J,) standard deviation within a class of each source's evidence in nats, log A minus its mean over classes."""
    A = layout.confusion
    f = np.log(A) - np.log(A).mean(axis=1, keepdims=True)
    out = np.empty(layout.n_sources)
    for j, here in enumerate(layout.slices):
        rates = A[here].T / layout.n_groups[j]  # cells of a context alike
        squares, means = rates @ (f[here] ** 2).sum(axis=1), rates @ f[here]
        out[j] = prior @ (squares - (means**2).sum(axis=1))
    return np.sqrt(np.maximum(out, LEAST_VARIANCE))


@dataclass(frozen=True)
class _Sum:
    """Excess of pairs, with its influence function (P,) and its derivative by the rates (S, K)."""

    excess: float
    influence: Array
    slope: Array

    @staticmethod
    def zero(n_patterns: int, shape: tuple[int, ...]) -> _Sum:
        return _Sum(0.0, np.zeros(n_patterns), np.zeros(shape))

    def plus(self, other: _Sum, weight: float) -> _Sum:
        return _Sum(
            self.excess + weight * other.excess,
            self.influence + weight * other.influence,
            self.slope + weight * other.slope,
        )

    def z(self, marginals: Marginals) -> float:
        variance = float(item_covariance(self.influence[:, None], marginals.batch.weight)[0, 0])
        layout = marginals.layout
        spread = rate_spread(layout, self.slope)
        for j, r in enumerate(layout.root.tolist()):
            if r != j and layout.set_of[r] == layout.set_of[j]:  # the same counts: identical errors
                spread[layout.slices[r]] += spread[layout.slices[j]]
                spread[layout.slices[j]] = 0.0
        squares = spread**2
        stds = np.sqrt(np.add.reduceat(squares, [here.start for here in layout.slices]))  # (J, K)
        sets = np.zeros((len(layout.calibration_sets), layout.n_classes))
        np.add.at(sets, layout.set_of, stds)  # upper bound: the errors of a set may be identical
        variance += float((sets**2).sum())
        return self.excess / np.sqrt(variance) if variance > 0 else 0.0


def _scores(batch: Batch, f: Array, j: int) -> Array:
    responses, here = batch.answers.responses[j], batch.layout.slices[j]
    if responses.ndim == 2:
        return responses @ f[here]
    return np.where((responses >= 0)[:, None], f[here][responses], 0.0)


def _pair_excess(
    marginals: Marginals, scores: list[Array], means: list[Array], p: Array, i: int, j: int
) -> tuple[float, Array, float]:
    """Excess of t over independence, its influence function (P,), and the number of items both answered."""
    batch = marginals.batch
    both = batch.weight * (batch.answered[i] & batch.answered[j])
    total = float(both.sum())
    if total <= 0:
        return 0.0, np.zeros(batch.n_patterns), 0.0
    t = np.einsum("pk,pk->p", scores[i], scores[j])
    expected = (means[i] * means[j]).sum(axis=1)  # (K,)
    there = both > 0
    mean = float(both @ t) / total
    influence = np.where(there, t - mean, 0.0) / total - marginals.influence @ expected
    return mean - float(p @ expected), influence, total


def _rates_slope(marginals: Marginals, f: Array, means: list[Array], i: int, j: int) -> Array:
    """(S, K) derivative of the pair's expectation by each rate."""
    layout, p = marginals.layout, marginals.prior
    expected = (means[i] * means[j]).sum(axis=1)
    slope = np.tensordot(expected, marginals.slope, axes=1)
    for a, b in ((i, j), (j, i)):
        slope[layout.slices[a]] += p * (f[layout.slices[a]] @ means[b].T)
    return slope


def _correlation(cov: Array, std: Array) -> Array:
    correlation = np.clip(cov / np.outer(std, std), -1.0, 1.0)
    np.fill_diagonal(correlation, 1.0)
    return correlation


@dataclass(frozen=True)
class Drift:
    """Test of a source's histogram against its calibration, at the priors estimated from the other sources."""

    observed: Array  # (S_j,) shares of its symbols in the batch
    expected: Array  # (S_j,)
    statistic: float
    p_value: float  # NaN where it cannot be tested: no other source, or a source with a context


def drift(marginals: Marginals, j: int, correlation: Array) -> Drift:
    """Chi-squared test of its histogram against A_j^T p, p from the other sources, with all sampling errors."""
    layout, batch = marginals.layout, marginals.batch
    here = layout.slices[j]
    answered = batch.weight * batch.answered[j]
    total = answered.sum()
    others = marginals.without(j)
    if total < FEWEST or not others.used.any() or others.unknown.any() or layout.n_groups[j] > 1:
        share = np.full(layout.sizes[j], np.nan)
        return Drift(share, share, np.nan, np.nan)
    A = layout.confusion[here]  # (S_j, K)
    observed = batch.totals[here] / total
    expected = A @ others.prior
    covariance = _drift_covariance(others, here, observed, total)
    covariance += A @ others.calibration_covariance(correlation) @ A.T
    conc = layout.concentration[here]
    for k, share in enumerate(others.prior):
        covariance += share**2 * (np.diag(A[:, k]) - np.outer(A[:, k], A[:, k])) / (conc[0, k] + 1.0)
    d = observed - expected
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-9 * max(values.max(), 1e-300)
    kept[0] = False  # shares sum to one
    statistic = float((((d @ vectors)[kept]) ** 2 / values[kept]).sum())
    return Drift(observed, expected, statistic, float(chi2.sf(statistic, max(int(kept.sum()), 1))))


def _drift_covariance(others: Marginals, here: slice, observed: Array, total: float) -> Array:
    """(S_j, S_j) covariance of  observed - A p  due to the batch.

    The influence of an item is  L x,  L (S_j, S) and x its answers, so that the second moments of the items are enough;
    an item of known class enters p by its class instead.
    """
    batch, A = others.batch, others.layout.confusion[here]
    own = (np.eye(len(observed)) - observed[:, None]) / total
    moments = batch.moments
    whole = -A @ others.inverse @ others.symbol_gradient.T
    whole[:, here] += own
    covariance = whole @ moments[1:, 1:] @ whole.T
    mean = whole @ moments[0, 1:]
    known = np.flatnonzero(batch.known >= 0)
    if len(known):
        labelled = batch.part(known)
        each = labelled.cells.dense(labelled.rows)[np.argsort(labelled.order)][here].T
        influence = each @ own.T - others.influence[known] @ A.T
        covariance += (influence * labelled.weight[:, None]).T @ influence
        mean += labelled.weight @ influence
    return covariance - np.outer(mean, mean) / batch.weight.sum()
