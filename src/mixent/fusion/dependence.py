"""Dependence of pairs of sources within a class, without labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixent.base.result import Result
from mixent.core.arrays import Array
from mixent.fusion.batch import Batch
from mixent.fusion.batch_priors import MIN_ITEMS, Marginals, covariance_factor, item_covariance
from mixent.fusion.discounts import Pairs, effective_number
from mixent.fusion.sources import Layout

MIN_VARIANCE = 1e-12  # of the answers of a source within a class
MAX_PAIRS = 2000  # pairs of sources that are tested individually


@dataclass(frozen=True, repr=False)
class Dependence(Result):
    """Dependence of pairs of sources within a class."""

    _title = "Dependence of the sources"
    _shown = ("n_effective", "overall_z", "largest")

    z: Array  # (J, J) agreement in excess of the confusion matrices, in standard errors; NaN: not tested
    correlation: Array  # (J, J) of their answers within a class
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

    For each pair, the mean of  t = sum_c f_i(c) f_j(c)  is compared with its expectation under independence given the
    class, where f(v, c) = 1 - 1/K if symbol v is a vote for class c and -1/K otherwise. The standard error includes
    the sampling errors of the batch, the priors and the rates. Scores log A would be estimated from the same counts as
    their means, and would be biased with many symbols and few rows.
    """
    scores = _PairScores.of(marginals)
    layout, std = marginals.layout, scores.std
    J = layout.n_sources
    z, cov = np.full((J, J), np.nan), np.where(layout.root[:, None] == layout.root, np.outer(std, std), 0.0)
    overall = _Excess.zero(marginals.batch.n_patterns, layout.confusion.shape)
    tested, untested = pairs_to_test(layout)
    for i, j in tested:
        pair = scores.pair(i, j)
        if pair is None:
            continue
        cov[i, j] = cov[j, i] = pair.value
        z[i, j] = z[j, i] = pair.z(marginals)
        overall = overall.plus(pair, layout.share[i] * layout.share[j] / (std[i] * std[j]))
    if untested:
        scores.fill(z, cov, untested)
    pairs = Pairs(_correlation(cov, std), z, std)
    originals = np.unique(layout.root[layout.share > 0])
    evidence_std = _evidence_std(layout, marginals.prior)
    n_effective = effective_number(pairs.part(originals))
    return Dependence(z, pairs.correlation, n_effective, overall.z(marginals), evidence_std)


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
        variances = [_pair_excess(marginals, scores, means, marginals.prior, j, j)[0] for j in range(layout.n_sources)]
        return _PairScores(marginals, f, scores, means, np.sqrt(np.maximum(variances, MIN_VARIANCE)))

    def pair(self, i: int, j: int) -> _Excess | None:
        """Excess agreement of two sources; None where too few items have answers from both."""
        excess, influence, n_items = _pair_excess(self.marginals, self.scores, self.means, self.marginals.prior, i, j)
        if n_items < MIN_ITEMS:
            return None
        return _Excess(excess, influence, _rate_derivative(self.marginals, self.f, self.means, i, j))

    def fill(self, z: Array, cov: Array, untested: list[tuple[int, int]]) -> None:
        """Fill in pairs without a test: their excess, and z by the median standard error of the tested pairs."""
        batch = self.marginals.batch
        tested = np.isfinite(z) & (z != 0)
        scale = (
            np.median((np.abs(cov[tested] / z[tested])) / np.outer(self.std, self.std)[tested])
            if tested.any()
            else np.inf
        )
        weight = batch.answered * batch.weight
        both = weight @ batch.answered.T
        total = sum((weight * part) @ part.T for part in np.stack(self.scores).transpose(2, 0, 1))
        expected = np.einsum("k,ikc,jkc->ij", self.marginals.prior, np.stack(self.means), np.stack(self.means))
        rows, columns = np.array(untested).T
        enough = both[rows, columns] >= MIN_ITEMS
        rows, columns = rows[enough], columns[enough]
        excess = total[rows, columns] / both[rows, columns] - expected[rows, columns]
        for a, b in ((rows, columns), (columns, rows)):
            cov[a, b] = excess
            z[a, b] = excess / (scale * self.std[a] * self.std[b])


def _votes(layout: Layout) -> Array:
    """(S, K) f: a symbol is a vote for the class with its largest rate, or equally for several."""
    A = layout.confusion
    votes = (A.max(axis=1, keepdims=True) * (1 - 1e-12) <= A).astype(float)
    return votes / votes.sum(axis=1, keepdims=True) - 1.0 / layout.n_classes


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
        variance = float(item_covariance(self.influence[:, None], marginals.batch.weight)[0, 0])
        layout = marginals.layout
        factor = covariance_factor(layout, self.derivative)
        for j, r in enumerate(layout.root.tolist()):
            if r != j and layout.set_of[r] == layout.set_of[j]:  # the same counts have identical errors
                factor[layout.slices[r]] += factor[layout.slices[j]]
                factor[layout.slices[j]] = 0.0
        squares = factor**2
        stds = np.sqrt(np.add.reduceat(squares, [here.start for here in layout.slices]))  # (J, K)
        sets = np.zeros((len(layout.calibration_sets), layout.n_classes))
        np.add.at(sets, layout.set_of, stds)  # upper bound: the errors of a set may be identical
        variance += float((sets**2).sum())
        return self.value / np.sqrt(variance) if variance > 0 else 0.0


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
    t = np.einsum("pk,pk->p", scores[i], scores[j])
    expected = (means[i] * means[j]).sum(axis=1)  # (K,)
    mean = float(both @ t) / total
    influence = np.where(both > 0, t - mean, 0.0) / total - marginals.influence @ expected
    return mean - float(p @ expected), influence, total


def _rate_derivative(marginals: Marginals, f: Array, means: list[Array], i: int, j: int) -> Array:
    """(S, K) derivative of the expectation of a pair with respect to each rate."""
    layout, p = marginals.layout, marginals.prior
    expected = (means[i] * means[j]).sum(axis=1)
    derivative = np.tensordot(expected, marginals.rate_derivative, axes=1)
    for a, b in ((i, j), (j, i)):
        derivative[layout.slices[a]] += p * (f[layout.slices[a]] @ means[b].T)
    return derivative


def _correlation(cov: Array, std: Array) -> Array:
    correlation = np.clip(cov / np.outer(std, std), -1.0, 1.0)
    np.fill_diagonal(correlation, 1.0)
    return correlation


def untested(marginals: Marginals) -> Dependence:
    """Sources without a test of any pair, treated as independent except for declared copies."""
    layout = marginals.layout
    copies = (layout.root[:, None] == layout.root).astype(float)
    n_effective = float(len(np.unique(layout.root[layout.share > 0])))
    return Dependence(np.full(copies.shape, np.nan), copies, n_effective, 0.0, _evidence_std(layout, marginals.prior))
