"""Merging of the components of a mixture into clusters (Baudry, Raftery, Celeux, Lo and Gottardo 2010).

With t_nj the probability that row n belongs to cluster j, and weights w_n, the entropy of a clustering is

    E = -sum_n w_n sum_j t_nj log t_nj.

Merging clusters i and j replaces t_ni and t_nj by their sum, which decreases E; the pair with the largest decrease is
merged first, from the K components to one cluster. The entropy against the number of clusters is nearly a line while
components of one cluster are merged, and flatter afterwards; the suggested number of clusters is where two lines, one
on each side of it, fit best by least squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mixent.base.document import Content, Number, Paragraph, Table
from mixent.base.params import check_count
from mixent.base.result import Records, Result
from mixent.base.text import count, readable
from mixent.core.arrays import Array
from mixent.data import row_weights
from mixent.mixtures.outliers import check_gaussian
from mixent.mixtures.predict import entropy_of

if TYPE_CHECKING:
    from mixent.mixtures.clustering import GaussianMixture

SEPARATED = 0.01  # share of the largest possible entropy, log K for each row, below which nothing needs to be merged


class Elbow(NamedTuple):
    """Two lines that share the point `at` of their segments."""

    at: int  # index of the shared point
    first: tuple[float, float]  # slope and intercept of the points up to `at`
    second: tuple[float, float]  # of the points from `at` on
    squares: float  # sum of the squared residuals


@dataclass(frozen=True, repr=False)
class ComponentMerging(Result):
    """Clusters of merged components, for every number of clusters from the K components to one."""

    _title = "Merged components"
    _shown = ("n_components", "n_clusters", "entropy")

    model: GaussianMixture = field(repr=False)
    n_clusters: int  # suggested
    entropy: Array  # (K,) nats, of 1, ..., K clusters
    merged_rows: Array  # (K - 1,) weight of the rows in the two clusters that are merged into 1, ..., K - 1 clusters
    partitions: tuple[tuple[tuple[int, ...], ...], ...] = field(repr=False)  # components of 1, ..., K clusters

    @property
    def n_components(self) -> int:
        """Number of components."""
        return len(self.entropy)

    @property
    def tree(self) -> Records:
        """The merges in order: n_clusters after the merge, the components of the two clusters, entropy, merged rows."""
        records = []
        for k in range(self.n_components - 1, 0, -1):
            before, after = self.partitions[k], self.partitions[k - 1]
            first, second = (cluster for cluster in before if cluster not in after)
            entry = {
                "n_clusters": k,
                "first": list(first),
                "second": list(second),
                "entropy": float(self.entropy[k - 1]),
            }
            records.append(entry | {"merged_rows": float(self.merged_rows[k - 1])})
        return Records(records)

    def components(self, n_clusters: int | None = None) -> list[list[int]]:
        """Return the components of each cluster.

        Parameters
        ----------
        n_clusters : int, optional
            Number of clusters (default: the suggested number).
        """
        return [list(cluster) for cluster in self._partition(n_clusters)]

    def predict_proba(self, X: Any, n_clusters: int | None = None) -> Array:
        """Return the probabilities of the clusters: the sums of the responsibilities of their components.

        Parameters
        ----------
        X : table of n rows
        n_clusters : int, optional
            Number of clusters (default: the suggested number).

        Returns
        -------
        (n, n_clusters) array, rows sum to 1.
        """
        return merged(self.model.predict_proba(X), self._partition(n_clusters))

    def predict(self, X: Any, n_clusters: int | None = None) -> np.ndarray:
        """Return the most probable cluster of each row.

        Parameters
        ----------
        X : table of n rows
        n_clusters : int, optional
            Number of clusters (default: the suggested number).

        Returns
        -------
        (n,) array of int.
        """
        return self.predict_proba(X, n_clusters).argmax(axis=1)

    def _partition(self, n_clusters: int | None) -> tuple[tuple[int, ...], ...]:
        k = self.n_clusters if n_clusters is None else check_count("n_clusters", n_clusters)
        if k > self.n_components:
            raise ValueError(f"n_clusters must be at most {self.n_components}, the number of components; got {k}")
        return self.partitions[k - 1]

    def _content(self) -> Sequence[Content]:
        K = self.n_components
        lead = f"{count(K, 'component')}; suggested: {count(self.n_clusters, 'cluster')}."
        rows: list[list[Any]] = [
            [k, Number(readable(float(self.entropy[k - 1]))), ", ".join(map(_text, self.partitions[k - 1]))]
            for k in range(K, 0, -1)
        ]
        return [Paragraph(lead), Table("", ["clusters", "entropy (nats)", "components of the clusters"], rows)]


def _text(cluster: tuple[int, ...]) -> str:
    return "+".join(map(str, cluster))


def merge_components(model: GaussianMixture, X: Any, sample_weight: Any = None) -> ComponentMerging:
    """Return the merged components of a fitted mixture; see `GaussianMixture.merge_components`."""
    check_gaussian(model, "merge_components")
    resp = model.predict_proba(X)
    weight = row_weights(sample_weight, len(resp))
    partitions, entropy, rows = merge(resp, weight)
    return ComponentMerging(model, suggested(entropy, float(weight.sum())), entropy, rows, partitions)


def merge(resp: Array, weight: Array) -> tuple[tuple[tuple[tuple[int, ...], ...], ...], Array, Array]:
    """Merge the columns of responsibilities (n, K) pair by pair, by the largest decrease of the entropy.

    Returns
    -------
    (partitions, entropy, merged_rows)
        The clusters of 1, ..., K clusters, their entropies (K,), and the weight of the rows in the two clusters that
        are merged into 1, ..., K - 1 clusters, (K - 1,).
    """
    K = resp.shape[1]
    clusters: list[tuple[int, ...]] = [(k,) for k in range(K)]
    partitions, entropies, merged_rows = [tuple(clusters)], [_entropy(resp, weight)], []
    parts = [resp[:, k] for k in range(K)]
    own = [_entropy(part[:, None], weight) for part in parts]
    # decreases by pair of clusters, kept for pairs that a merge leaves unchanged
    gains = {(i, j): own[i] + own[j] - _pair(parts[i], parts[j], weight) for j in range(K) for i in range(j)}
    while len(clusters) > 1:
        i, j = max(gains, key=lambda pair: (gains[pair], -pair[1], -pair[0]))
        nearest = np.stack(parts, axis=1).argmax(axis=1)
        merged_rows.append(float(weight[(nearest == i) | (nearest == j)].sum()))
        parts[i] = parts[i] + parts.pop(j)
        clusters[i] = tuple(sorted(clusters[i] + clusters.pop(j)))
        own.pop(j)
        own[i] = _entropy(parts[i][:, None], weight)
        kept = {(a - (a > j), b - (b > j)): gain for (a, b), gain in gains.items() if not {i, j} & {a, b}}
        pairs = [(min(i, k), max(i, k)) for k in range(len(parts)) if k != i]
        gains = kept | {(a, b): own[a] + own[b] - _pair(parts[a], parts[b], weight) for a, b in pairs}
        partitions.append(tuple(clusters))
        entropies.append(sum(own))
    entropies[-1] = 0.0  # of one cluster, but for rounding errors
    return tuple(partitions[::-1]), np.array(entropies[::-1]), np.array(merged_rows[::-1])


def _entropy(resp: Array, weight: Array) -> float:
    return float(weight @ entropy_of(resp))


def _pair(first: Array, second: Array, weight: Array) -> float:
    return _entropy((first + second)[:, None], weight)


def merged(resp: Array, partition: Sequence[Sequence[int]]) -> Array:
    """Return the probabilities of clusters, (n, number of clusters), from responsibilities (n, K)."""
    return np.stack([resp[:, list(cluster)].sum(axis=1) for cluster in partition], axis=1)


def suggested(entropy: Array, total_weight: float) -> int:
    """Return the suggested number of clusters: where the entropy begins to rise faster.

    All components are kept if there are fewer than three, if they are separated, or if the entropy never rises faster.
    """
    K = len(entropy)
    if K < 3 or entropy[-1] < SEPARATED * total_weight * np.log(K):
        return K
    elbow = two_lines(np.arange(1.0, K + 1), entropy)
    return elbow.at + 1 if elbow.second[0] > elbow.first[0] else K


def two_lines(x: Array, y: Array) -> Elbow:
    """Fit two lines by least squares, one to the points up to an inner point and one from it on.

    Parameters
    ----------
    x, y : (m,) arrays, m >= 3
    """
    fits = []
    for at in range(1, len(x) - 1):
        first, second = _line(x[: at + 1], y[: at + 1]), _line(x[at:], y[at:])
        fits.append(Elbow(at, first[0], second[0], first[1] + second[1]))
    return min(fits, key=lambda fit: fit.squares)


def _line(x: Array, y: Array) -> tuple[tuple[float, float], float]:
    """Return slope and intercept of the least-squares line, and the sum of its squared residuals."""
    centered = x - x.mean()
    squares = float(centered @ centered)
    slope = float(centered @ y) / squares if squares > 0 else 0.0
    intercept = float(y.mean() - slope * x.mean())
    residuals = y - slope * x - intercept
    return (slope, intercept), float(residuals @ residuals)
