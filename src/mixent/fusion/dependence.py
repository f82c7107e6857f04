"""Dependence of pairs of sources within a class, without labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixent.base.result import Result
from mixent.core.arrays import Array
from mixent.fusion.batch import Batch
from mixent.fusion.batch_priors import MIN_ITEMS, Marginals
from mixent.fusion.discounts import Pairs, effective_number
from mixent.fusion.sampling import covariance_factor, item_covariance
from mixent.fusion.shrinkage import OUTLIERS, shrunk
from mixent.fusion.sources import Layout

MIN_VARIANCE = 1e-4  # of the answers of a source within a class
MAX_PAIRS = 2000  # pairs of sources that are tested individually


@dataclass(frozen=True, repr=False)
class Dependence(Result):
    """Dependence of pairs of sources within a class."""

    _title = "Dependence of the sources"
    _shown = ("n_effective", "overall_z", "largest")

    z: Array  # (J, J) agreement in excess of the confusion matrices, in standard errors; NaN: not tested
    correlation: Array  # (J, J) of their answers within a class, shrunk towards the mean of all pairs
    n_effective: float  # effective number of independent sources
    overall_z: float  # of all pairs combined, to detect weak dependence of many pairs
    std: Array  # (J,) standard deviation of each source's evidence within a class, in nats

    @property
    def largest(self) -> float:
        """The largest z of any pair, except declared copies; zero where none was tested."""
        return float(np.nanmax(np.append(self.z[np.triu_indices(len(self.z), 1)], 0.0)))

    def __str__(self) -> str:
        return (
            f"{len(self.std)} sources are equivalent to {self.n_effective:.2f} independent ones. Excess agreement: the "
            f"largest z of a pair is {self.largest:.1f}, that of all pairs {self.overall_z:.1f}."
        )


def dependence(marginals: Marginals) -> Dependence:
    """Tests of the joint distributions of pairs of answers against sum_k p_k A_i(. | k) A_j(. | k).

    For each pair, the covariance  sum_c cov(f_i(c), f_j(c))  over the items is compared with its expectation under
    independence given the class, that of the class means, where f(v, c) = 1 - 1/K if symbol v is a vote for class c and
    -1/K otherwise. The standard error includes the sampling errors of the batch, the priors and the rates. Scores log A
    would be estimated from the same counts as their means, and would be biased with many symbols and few rows.
    Covariances, instead of second moments, depend less on the priors and on the rates of frequent classes.

    Divided by the standard deviations within a class, the excess is the correlation, which is shrunk (see `shrinkage`).
    """
    layout, copies = marginals.layout, _copies(marginals)
    pairs = _pairs(_PairScores.of(marginals), copies)
    originals = np.unique(layout.root[layout.share > 0])
    correlation = pairs.shrunk(copies, layout)
    evidence_std = _evidence_std(layout, marginals.prior)
    n_effective = effective_number(Pairs(correlation, evidence_std).part(originals))
    return Dependence(pairs.z, correlation, n_effective, pairs.overall_z, evidence_std)


def _pairs(scores: _PairScores, copies: Array) -> _Estimates:
    """Estimated correlations of all pairs, with standard errors."""
    marginals, std = scores.marginals, scores.std
    layout = marginals.layout
    J = layout.n_sources
    cov, error = np.full((J, J), np.nan), np.full((J, J), np.nan)
    usual = of_copies = _Excess.zero(marginals.batch.n_patterns, layout.confusion.shape)
    weight = 1e-300  # of usual pairs
    tested, untested = pairs_to_test(layout)
    for i, j in tested:
        pair = scores.pair(i, j)
        if pair is None:
            continue
        cov[i, j] = cov[j, i] = pair.value
        error[i, j] = error[j, i] = pair.std(marginals)
        u = layout.share[i] * layout.share[j]
        if copies[i, j] > 0.5:
            of_copies = of_copies.plus(pair, u / (std[i] * std[j]))
        else:
            usual, weight = usual.plus(pair, u / (std[i] * std[j])), weight + u
    if untested:
        scores.fill(cov, error, untested)
    scale = np.outer(std, std)
    overall_z = usual.plus(of_copies, 1.0).z(marginals)
    return _Estimates(cov / scale, error / scale, usual.value / weight, usual.std(marginals) / weight, overall_z)


@dataclass(frozen=True)
class _Estimates:
    """Estimated correlations of pairs; NaN where a pair was not tested."""

    r: Array  # (J, J)
    std: Array  # (J, J) standard errors
    mean: float  # of pairs that are not copies
    mean_std: float
    overall_z: float

    @property
    def z(self) -> Array:
        """(J, J) correlations in standard errors."""
        exact = self.std == 0
        return np.where(exact, 0.0, self.r / np.where(exact, 1.0, self.std))

    def shrunk(self, copies: Array, layout: Layout) -> Array:
        """(J, J) correlations, shrunk towards the mean of all pairs but copies; one for copies.

        Zero for sources of which no pair was tested.
        """
        J = len(self.r)
        i, j = np.triu_indices(J, 1)
        usual = (self.std[i, j] > 0) & (copies[i, j] <= 0.5)
        i, j = i[usual], j[usual]
        out = np.zeros((J, J))
        if self.mean_std > 0:
            weight = layout.share[i] * layout.share[j]
            values, typical = shrunk(self.r[i, j], self.std[i, j], weight, self.mean, self.mean_std)
            tested = np.isfinite(self.r).any(axis=1)
            out[np.ix_(tested, tested)] = typical
            out[i, j] = out[j, i] = values
        out = copies + (1.0 - copies) * out
        out[layout.root[:, None] == layout.root] = 1.0
        return out


def _copies(marginals: Marginals) -> Array:
    """(J, J) probability that one source is a copy of the other, from identical answers to all items.

    Identical labels may be a coincidence if there are few items or hardly any errors: then with the probability
    exp(-n d / 2), where d is the share of items that independent sources would disagree on.
    """
    layout, batch = marginals.layout, marginals.batch
    keys = [(c.symbols, r.tobytes()) for c, r in zip(layout.calibrations, batch.answers.responses)]
    out = np.zeros((layout.n_sources,) * 2)
    first: dict[object, list[int]] = {}
    for j, key in enumerate(keys):
        for i in first.setdefault(key, []):
            rates = [layout.confusion[layout.slices[m]] / layout.n_groups[m] for m in (i, j)]
            n = float(batch.weight @ batch.answered[j]) * (np.inf if j in batch.soft else 1.0)
            differ = 1.0 - float(marginals.prior @ (rates[0] * rates[1]).sum(axis=0))
            chance = np.exp(-n * differ / 2) if n > 0 else 1.0
            out[i, j] = out[j, i] = OUTLIERS / (OUTLIERS + (1 - OUTLIERS) * chance)
        first[key].append(j)
    return out


def pairs_to_test(layout: Layout) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Pairs that are tested individually, and the other pairs; without copies, sources with
    a context, and sources that are left out.
    """
    plain = [j for j, n in enumerate(layout.n_groups) if n == 1 and layout.share[j] > 0]
    pairs = [(i, j) for t, i in enumerate(plain) for j in plain[:t] if layout.root[i] != layout.root[j]]
    if len(pairs) <= MAX_PAIRS:
        return pairs, []
    step = len(pairs) / MAX_PAIRS
    chosen = {int(step * t) for t in range(MAX_PAIRS)}
    return [pairs[t] for t in sorted(chosen)], [pair for t, pair in enumerate(pairs) if t not in chosen]


@dataclass(frozen=True)
class _PairScores:
    """Scores f of the answers, by which pairs are compared."""

    marginals: Marginals
    f: Array  # (S, K)
    scores: list[Array]  # of each source (P, K)
    means: list[Array]  # of each source (K classes, K): mean of f in each class
    std: Array  # (J,) of the scores, within a class

    @staticmethod
    def of(marginals: Marginals) -> _PairScores:
        layout = marginals.layout
        f = _votes(layout)
        scores = [_scores(marginals.batch, f, j) for j in range(layout.n_sources)]
        means = [layout.rates[s].T @ f[s] / n for s, n in zip(layout.slices, layout.n_groups)]
        smooth = [layout.confusion[s].T @ f[s] / n for s, n in zip(layout.slices, layout.n_groups)]
        variances = [_pair_excess(marginals, scores, smooth, marginals.prior, j, j)[0] for j in range(layout.n_sources)]
        return _PairScores(marginals, f, scores, means, np.sqrt(np.maximum(variances, MIN_VARIANCE)))

    def pair(self, i: int, j: int) -> _Excess | None:
        """Excess agreement of two sources; None where too few items have answers from both."""
        excess, influence, n_items = _pair_excess(self.marginals, self.scores, self.means, self.marginals.prior, i, j)
        if n_items < MIN_ITEMS:
            return None
        return _Excess(excess, influence, _rate_derivative(self.marginals, self.f, self.means, i, j))

    def fill(self, cov: Array, error: Array, untested: list[tuple[int, int]]) -> None:
        """Fill in pairs without a test: their excess, with the median standard error of the tested pairs."""
        batch, scale = self.marginals.batch, np.outer(self.std, self.std)
        typical = float(np.nanmedian(error / scale)) if np.isfinite(error).any() else np.nan
        weight = batch.answered * batch.weight
        both = weight @ batch.answered.T
        p, means = self.marginals.prior, np.stack(self.means)
        means = means - np.einsum("k,ikc->ic", p, means)[:, None]
        parts = np.stack(self.scores).transpose(2, 0, 1)  # (K, J, P)
        sums = np.stack([weight @ part.T for part in parts])  # (K, J, J) of the second over the answers of the first
        total = sum((weight * part) @ part.T for part in parts)
        total = total - (sums * sums.swapaxes(1, 2)).sum(axis=0) / np.maximum(both, 1e-300)
        expected = np.einsum("k,ikc,jkc->ij", p, means, means)
        rows, columns = np.array(untested).T
        enough = both[rows, columns] >= MIN_ITEMS
        rows, columns = rows[enough], columns[enough]
        excess = total[rows, columns] / both[rows, columns] - expected[rows, columns]
        for a, b in ((rows, columns), (columns, rows)):
            cov[a, b] = excess
            error[a, b] = typical * scale[a, b]


def _votes(layout: Layout) -> Array:
    """(S, K) f: a symbol is a vote for the class with its largest rate, or equally for several.

    With two classes, an ordered symbol has a score instead, its place: the votes of many bins would be estimated from
    the same few counts as their means, and lose a part of the correlation.
    """
    A = layout.confusion
    votes = (A.max(axis=1, keepdims=True) * (1 - 1e-12) <= A).astype(float)
    f = votes / votes.sum(axis=1, keepdims=True) - 1.0 / layout.n_classes
    for here, calibration in zip(layout.slices, layout.calibrations):
        if layout.n_classes == 2 and (calibration.edges is not None or calibration.ordinal) and not calibration.cells:
            place = np.linspace(-0.5, 0.5, here.stop - here.start)
            sign = 1.0 if place @ (A[here, 1] - A[here, 0]) >= 0 else -1.0
            f[here] = sign * np.stack([-place, place], axis=1)
    return f


def _evidence_std(layout: Layout, prior: Array) -> Array:
    """(J,) standard deviation within a class of each source's evidence in nats, log A minus its mean over classes."""
    A = layout.confusion
    f = np.log(A) - np.log(A).mean(axis=1, keepdims=True)
    out = np.empty(layout.n_sources)
    for j, here in enumerate(layout.slices):
        rates = A[here].T / layout.n_groups[j]  # all cells of a context with equal weight
        squares, means = rates @ (f[here] ** 2).sum(axis=1), rates @ f[here]
        out[j] = prior @ (squares - (means**2).sum(axis=1))
    return np.sqrt(np.maximum(out, MIN_VARIANCE))


@dataclass(frozen=True)
class _Excess:
    """Excess agreement of one pair or of several."""

    value: float
    influence: Array  # (P,) influence function
    derivative: Array  # (S, K) with respect to the rates

    @staticmethod
    def zero(n_patterns: int, shape: tuple[int, ...]) -> _Excess:
        return _Excess(0.0, np.zeros(n_patterns), np.zeros(shape))

    def plus(self, other: _Excess, weight: float) -> _Excess:
        return _Excess(
            self.value + weight * other.value,
            self.influence + weight * other.influence,
            self.derivative + weight * other.derivative,
        )

    def z(self, marginals: Marginals) -> float:
        """The excess in standard errors."""
        std = self.std(marginals)
        return self.value / std if std > 0 else 0.0

    def std(self, marginals: Marginals) -> float:
        """Standard error of the excess."""
        variance = float(item_covariance(self.influence[:, None], marginals.batch.weight)[0, 0])
        layout = marginals.layout
        factor = covariance_factor(marginals.batch, self.derivative)
        for j, r in enumerate(layout.root.tolist()):
            if r != j and layout.set_of[r] == layout.set_of[j]:  # the same counts have identical errors
                factor[layout.slices[r]] += factor[layout.slices[j]]
                factor[layout.slices[j]] = 0.0
        squares = factor**2
        stds = np.sqrt(np.add.reduceat(squares, [here.start for here in layout.slices]))  # (J, K)
        sets = np.zeros((len(layout.calibration_sets), layout.n_classes))
        np.add.at(sets, layout.set_of, stds)  # upper bound: the errors of a set may be identical
        variance += float((sets**2).sum())
        return float(np.sqrt(variance))


def _scores(batch: Batch, f: Array, j: int) -> Array:
    responses, here = batch.answers.responses[j], batch.layout.slices[j]
    if responses.ndim == 2:
        return responses @ f[here]
    return np.where((responses >= 0)[:, None], f[here][responses], 0.0)


def _pair_excess(
    marginals: Marginals, scores: list[Array], means: list[Array], p: Array, i: int, j: int
) -> tuple[float, Array, float]:
    """Excess of t over independence, its influence function (P,), and the number of items with both answers."""
    batch = marginals.batch
    both = batch.weight * (batch.answered[i] & batch.answered[j])
    total = float(both.sum())
    if total <= 0:
        return 0.0, np.zeros(batch.n_patterns), 0.0
    centered = [scores[m] - both @ scores[m] / total for m in (i, j)]
    t = np.einsum("pk,pk->p", *centered)
    expected = ((means[i] - p @ means[i]) * (means[j] - p @ means[j])).sum(axis=1)  # (K,)
    mean = float(both @ t) / total
    influence = np.where(both > 0, t - mean, 0.0) / total - marginals.influence @ expected
    return mean - float(p @ expected), influence, total


def _rate_derivative(marginals: Marginals, f: Array, means: list[Array], i: int, j: int) -> Array:
    """(S, K) derivative of the expectation of a pair with respect to each rate."""
    layout, p = marginals.layout, marginals.prior
    centered = {m: means[m] - p @ means[m] for m in (i, j)}
    expected = (centered[i] * centered[j]).sum(axis=1)
    derivative = np.tensordot(expected, marginals.rate_derivative, axes=1)
    for a, b in ((i, j), (j, i)):
        derivative[layout.slices[a]] += p * (f[layout.slices[a]] @ centered[b].T)
    return derivative


def without_tests(marginals: Marginals) -> Dependence:
    """Sources without a test of any pair, treated as independent except for declared copies."""
    layout = marginals.layout
    copies = (layout.root[:, None] == layout.root).astype(float)
    n_effective = float(len(np.unique(layout.root[layout.share > 0])))
    return Dependence(np.full(copies.shape, np.nan), copies, n_effective, 0.0, _evidence_std(layout, marginals.prior))
