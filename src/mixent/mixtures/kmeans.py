"""k-means for the initialization of mixtures and hidden Markov models; EM only needs a rough partition."""

from __future__ import annotations

import numpy as np

from mixent.core.arrays import Array

ROUNDS = 10


def kmeans(points: Array, n_clusters: int, weight: Array | None, rng: np.random.Generator) -> np.ndarray:
    """Return the label of each point, (n,), from k-means++ centers."""
    from sklearn.cluster import kmeans_plusplus  # takes long to import

    seed = int(rng.integers(2**31 - 1))
    centers, _ = kmeans_plusplus(points, n_clusters, random_state=seed, sample_weight=weight)
    return lloyd(points, centers, weight)


def lloyd(points: Array, centers: Array, weight: Array | None) -> np.ndarray:
    """Return the label of each point, (n,), after a few iterations from given centers; empty clusters do not move."""
    weight = np.ones(len(points)) if weight is None else weight
    label = nearest(points, centers)
    for _ in range(ROUNDS):
        means = cluster_means(points, weight, label, len(centers))
        centers = np.where(np.isfinite(means), means, centers)
        new = nearest(points, centers)
        if (new == label).all():
            break
        label = new
    return label


def nearest(points: Array, centers: Array) -> np.ndarray:
    """Return the index of the nearest center, (n,)."""
    return (0.5 * (centers**2).sum(axis=1) - points @ centers.T).argmin(axis=1)


def cluster_means(points: Array, weight: Array, label: np.ndarray, n_clusters: int) -> Array:
    """Return the weighted means of the clusters, (K, p), NaN for an empty one."""
    inside = np.equal(label[:, None], np.arange(n_clusters)) * weight[:, None]
    mass = inside.sum(axis=0)[:, None]
    return np.divide(inside.T @ points, mass, out=np.full((n_clusters, points.shape[1]), np.nan), where=mass > 0)
