"""What an unlabelled batch tells of its priors and of its sources, and how surely.

The priors are estimated from the sources' histograms alone, by composite likelihood: with N_v = sum_i w_i s_i(v) how
often symbol v was said, A(v | k) its rate in class k and D_v = sum_k p_k A(v | k), they maximise

    sum_v u_v N_v log D_v,

u the share of a source among its copies. This is concave, and asks for no word on how sources depend on each other.
All standard errors here linearise this estimate. With H the curvature and M its inverse on the simplex, item i moves it
by  phi_i = M g_i,  g_i(k) = sum_v u_v s_i(v) A(v | k) / D_v:  items are independent, so that the sum of w phi phi^T is
the variance of the batch, however sources depend. A rate A(v | k) moves it by T = M dg/dA, and has the variance of a
Dirichlet distribution of the calibration's counts; sources calibrated on the same rows err together.
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
SILENT = 1e-12  # variance of what a source says within a class, where it says nothing
MOST_PAIRS = 2000  # of sources, to be tested for dependence one by one
FEWEST = 20  # items below which nothing is tested: their spread is not known


@dataclass(frozen=True)
class PriorEstimate:
    """Class priors of the batch by composite likelihood, with an interval that carries both errors."""

    prior: Array  # (K,)
    low: Array  # (K,)
    high: Array  # (K,)
    covariance: Array  # (K, K)
    batch_std: Array  # (K,) from the items being a sample
    calibration_std: Array  # (K,) from confusion matrices counted on few rows
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
    def said(self) -> Array:
        """(S,) N of the items whose class is not known."""
        return self.batch.said

    @cached_property
    def labelled(self) -> Array:
        """(K,) items of known class, each with the votes of all sources together."""
        known = self.batch.known >= 0
        counts = np.bincount(self.batch.known[known], self.batch.weight[known], self.layout.n_classes)
        return counts * (self.layout.share * self.used).sum()

    @cached_property
    def prior(self) -> Array:
        """(K,)"""
        K = self.layout.n_classes
        weight = self.share * self.said
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
    def near(self) -> Array:
        """(K,) priors to start a search from: EM never leaves a class without mass."""
        return 0.9 * self.prior + 0.1 / len(self.prior)

    @cached_property
    def density(self) -> Array:
        """(S,) D."""
        return self.layout.confusion @ self.prior

    @cached_property
    def pull(self) -> Array:
        """(S, K) u A / D: what a symbol adds to g."""
        return self.share[:, None] * self.layout.confusion / self.density[:, None]

    @cached_property
    def inverse(self) -> Array:
        """(K, K) M; nothing where the likelihood is flat, see `unknown`."""
        Z = self._tangent
        return Z @ np.linalg.pinv(Z.T @ self._curvature @ Z, rcond=1e-8, hermitian=True) @ Z.T

    @property
    def _least_variance(self) -> Array:
        """(K,) of shares among so few items, were all of them known; at shares that are neither none nor all."""
        n = float(self.batch.weight.sum())
        share = (n * self.prior + 1.0) / (n + len(self.prior))
        return share * (1.0 - share) / (n + len(self.prior))

    @cached_property
    def unknown(self) -> np.ndarray:
        """(K,) classes whose shares could be others without any source saying anything else."""
        return np.asarray((self._blind**2).sum(axis=1) > 1e-6)

    @cached_property
    def _blind(self) -> Array:
        """(K, m) directions of the simplex in which the likelihood is flat."""
        values, vectors = np.linalg.eigh(self._tangent.T @ self._curvature @ self._tangent)
        return self._tangent @ vectors[:, values <= 1e-8 * max(values.max(), 1e-300)]

    @property
    def _tangent(self) -> Array:
        """(K, K - 1) directions in which the sum stays."""
        return np.linalg.svd(np.ones((1, self.layout.n_classes)))[2][1:].T

    @cached_property
    def _curvature(self) -> Array:
        ratio = self.layout.confusion / self.density[:, None]
        H = (ratio * (self.share * self.said)[:, None]).T @ ratio
        return H + np.diag(self.labelled / np.maximum(self.prior, 1e-6) ** 2)

    @cached_property
    def influence(self) -> Array:
        """(P, K) phi."""
        g = self.batch.logits(self.pull).T
        known = self.batch.known >= 0
        if known.any():
            g[known] = 0.0
            places = self.batch.known[known]
            u = (self.layout.share * self.used).sum()
            g[np.flatnonzero(known), places] = u / np.maximum(self.prior, 1e-6)[places]
        return g @ self.inverse

    @cached_property
    def slope(self) -> Array:
        """(K, S, K): how the estimate moves with each rate A(v | k)."""
        A, D, p = self.layout.confusion, self.density, self.prior
        weight = self.share * self.said / D
        M = self.inverse
        first = M[:, None, :]  # (K, 1, K)
        second = (M @ A.T)[:, :, None] * p / D[:, None]
        return weight[:, None] * (first - second)

    @property
    def batch_covariance(self) -> Array:
        return item_covariance(self.influence, self.batch.weight)

    def calibration_covariance(self, correlation: Array) -> Array:
        """(K, K); sources of one calibration set err together as far as they are correlated (J, J) within a class."""
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
        """The same of all sources but one and its copies."""
        return Marginals(self.batch, self.used & (self.layout.root != self.layout.root[j]), self.near)


def all_marginals(batch: Batch) -> Marginals:
    """Of all sources but those counted within a context: their histograms tell of the cells as much as of classes."""
    used = np.array([n == 1 for n in batch.layout.n_groups])
    return Marginals(batch, used if used.any() else ~used)


def item_covariance(moved: Array, weight: Array) -> Array:
    """Variance of sum_i w_i moved_i (P, D) over independent items."""
    about = moved - (weight @ moved) / weight.sum()
    return (about * weight[:, None]).T @ about


def rate_spread(layout: Layout, slope: Array) -> Array:
    """(D, S, K): sum slope dA (D, S, K) by the error of all rates has the variance of its product with itself."""
    return (slope - layout.within(slope * layout.confusion)) * layout.rate_std


def set_covariance(layout: Layout, spread: Array, members: list[int], correlation: Array) -> Array:
    """(D, D): variance of what has this spread (D, S, K) by the rates of sources counted on the same rows.

    Two of them err together as they are correlated within a class: about root of the one's variance times root of the
    other's times the correlation, which for two classes and two symbols is exact.
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
    """Have the class priors moved from those of the sources' training?"""

    statistic: float  # 2 (log L at the batch's priors - log L at the old ones), by the product of the sources
    p_value: float  # of Saerens, Latinne and Decaestecker's test: exact rates, independent sources
    robust_p_value: (
        float  # by the composite estimate and its covariance: any dependence, rates as counted; NaN: few items
    )
    significant: bool  # robust_p_value below 1 - confidence


def prior_shift_test(
    estimate: PriorEstimate, old: Array, n_rows: float, n_items: float, gain: float, confidence: float
) -> PriorShiftTest:
    """Old priors counted on `n_rows` (infinite where they are given) against those of a batch of `n_items`.

    `gain` is the rise of the log-likelihood of the product rule from the old priors to the batch's.
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
    """Pairs of sources: do they err together?"""

    z: Array  # (J, J) how many standard errors the pairs agree more than the confusion matrices say; NaN: not known
    correlation: Array  # (J, J) of what they say within a class
    n_effective: float  # how many independent sources would say as much
    overall_z: float  # of all pairs together: detects dependence that is spread thinly over many of them
    spread: Array  # (J,) standard deviation within a class of what each says, in nats

    @property
    def largest(self) -> float:
        """The largest z of a pair that are no declared copies; zero where none is known."""
        return float(np.nanmax(np.append(self.z[np.triu_indices(len(self.z), 1)], 0.0)))


def dependence(marginals: Marginals) -> Dependence:
    """Observed pairs against sum_k p_k A_i(. | k) A_j(. | k).

    For the pair it compares the mean of  t = sum_c f_i(c) f_j(c),  f(v, c) = 1 - 1/K where symbol v names class c and
    -1/K elsewhere,  with what independence given the class would make of it; the standard error carries the batch, the
    priors and the rates. A score of log A would be reckoned from the same counts as its mean, and look better than it
    is where there are many symbols and few rows.
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
    spread = _spread(layout, marginals.prior)
    return Dependence(z, pairs.correlation, effective_number(pairs.part(originals)), together.z(marginals), spread)


def pairs_to_test(layout: Layout) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Pairs to be tested one by one, and those left: copies apart, and sources that are counted within a context."""
    able = [j for j, n in enumerate(layout.n_groups) if n == 1]
    found = [(i, j) for place, i in enumerate(able) for j in able[:place] if layout.root[i] != layout.root[j]]
    if len(found) <= MOST_PAIRS:
        return found, []
    step = len(found) / MOST_PAIRS
    chosen = {int(step * t) for t in range(MOST_PAIRS)}
    return [found[t] for t in sorted(chosen)], [pair for t, pair in enumerate(found) if t not in chosen]


@dataclass(frozen=True)
class _Compared:
    """What pairs are compared by."""

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
        return _Compared(marginals, f, scores, means, np.sqrt(np.maximum(own, SILENT)))

    def pair(self, i: int, j: int) -> _Sum | None:
        """None where too few items have answers of both."""
        found = _pair_excess(self.marginals, self.scores, self.means, self.marginals.prior, i, j)
        if found[2] < FEWEST:
            return None
        return _Sum(found[0], found[1], _rates_slope(self.marginals, self.f, self.means, i, j))

    def fill(self, z: Array, cov: Array, left: list[tuple[int, int]]) -> None:
        """Pairs that were not tested: their excess, and z by the standard errors of those that were."""
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
    """(S, K) f: a symbol names the class it speaks for most; what a source worse than chance says is turned."""
    A = layout.confusion
    named = (A.max(axis=1, keepdims=True) * (1 - 1e-12) <= A).astype(float)
    return named / named.sum(axis=1, keepdims=True) - 1.0 / layout.n_classes


def _spread(layout: Layout, prior: Array) -> Array:
    """(J,) standard deviation within a class of what each source says in nats, log A less its mean over the classes."""
    A = layout.confusion
    f = np.log(A) - np.log(A).mean(axis=1, keepdims=True)
    out = np.empty(layout.n_sources)
    for j, here in enumerate(layout.slices):
        rates = A[here].T / layout.n_groups[j]  # cells of a context alike
        squares, means = rates @ (f[here] ** 2).sum(axis=1), rates @ f[here]
        out[j] = prior @ (squares - (means**2).sum(axis=1))
    return np.sqrt(np.maximum(out, SILENT))


@dataclass(frozen=True)
class _Sum:
    """Excess of pairs, with what moves it: the items (P,), and the rates (S, K)."""

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
            if r != j and layout.set_of[r] == layout.set_of[j]:  # the same counts: their errors are one, sign and all
                spread[layout.slices[r]] += spread[layout.slices[j]]
                spread[layout.slices[j]] = 0.0
        squares = spread**2
        stds = np.sqrt(np.add.reduceat(squares, [here.start for here in layout.slices]))  # (J, K)
        sets = np.zeros((len(layout.calibration_sets), layout.n_classes))
        np.add.at(sets, layout.set_of, stds)  # at most: the errors of a set may be one
        variance += float((sets**2).sum())
        return self.excess / np.sqrt(variance) if variance > 0 else 0.0


def _scores(batch: Batch, f: Array, j: int) -> Array:
    said, here = batch.answers.said[j], batch.layout.slices[j]
    if said.ndim == 2:
        return said @ f[here]
    return np.where((said >= 0)[:, None], f[here][said], 0.0)


def _pair_excess(
    marginals: Marginals, scores: list[Array], means: list[Array], p: Array, i: int, j: int
) -> tuple[float, Array, float]:
    """Excess of t over independence, its influence function (P,), and how many items both answered."""
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
    """(S, K) how what is expected of the pair moves with each rate."""
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
    """Does a source still say what its confusion matrix promises, at the priors the others tell?"""

    observed: Array  # (S_j,) shares of its symbols in the batch
    expected: Array  # (S_j,)
    statistic: float
    p_value: float  # NaN where it cannot be tested: no other source, or counted within a context


def drift(marginals: Marginals, j: int, correlation: Array) -> Drift:
    """Its histogram against A_j^T p, p from the other sources; chi-squared, with the errors of all of them."""
    layout, batch = marginals.layout, marginals.batch
    here = layout.slices[j]
    answered = batch.weight * batch.answered[j]
    total = answered.sum()
    others = marginals.without(j)
    if total < FEWEST or not others.used.any() or others.unknown.any() or layout.n_groups[j] > 1:
        share = np.full(layout.sizes[j], np.nan)
        return Drift(share, share, np.nan, np.nan)
    A = layout.confusion[here]  # (S_j, K)
    said = batch.totals[here] / total
    expected = A @ others.prior
    covariance = _drift_covariance(others, here, said, total)
    covariance += A @ others.calibration_covariance(correlation) @ A.T
    conc = layout.concentration[here]
    for k, share in enumerate(others.prior):
        covariance += share**2 * (np.diag(A[:, k]) - np.outer(A[:, k], A[:, k])) / (conc[0, k] + 1.0)
    d = said - expected
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-9 * max(values.max(), 1e-300)
    kept[0] = False  # shares sum to one
    statistic = float((((d @ vectors)[kept]) ** 2 / values[kept]).sum())
    return Drift(said, expected, statistic, float(chi2.sf(statistic, max(int(kept.sum()), 1))))


def _drift_covariance(others: Marginals, here: slice, said: Array, total: float) -> Array:
    """(S_j, S_j) of the batch's items in  said - A p.

    An item moves it by  L x, L (S_j, S) and x all that is said of it, so that the items' second moments are enough; one
    of known class moves p by its class instead.
    """
    batch, A = others.batch, others.layout.confusion[here]
    own = (np.eye(len(said)) - said[:, None]) / total
    moments = batch.moments
    whole = -A @ others.inverse @ others.pull.T
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
