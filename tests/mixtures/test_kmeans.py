"""The k-means that starts mixtures: its centers are means, and no round raises the sum of squares."""

import numpy as np

from mixent.mixtures import kmeans as module
from mixent.mixtures.kmeans import cluster_means, kmeans, lloyd, nearest


def squares(points, weight, label, n_clusters):
    centers = cluster_means(points, weight, label, n_clusters)
    return float(weight @ ((points - centers[label]) ** 2).sum(axis=1))


def test_separate_groups_are_found_and_weights_count_rows():
    rng = np.random.default_rng(0)
    group = np.arange(90) % 3
    points = rng.normal(size=(90, 2)) + 20 * np.c_[group, -group]
    label = kmeans(points, 3, None, np.random.default_rng(1))
    assert [len(np.unique(label[group == g])) for g in range(3)] == [1, 1, 1] and len(np.unique(label)) == 3
    weight = rng.integers(0, 3, size=90).astype(float)
    centers = points[:3] + 1.0
    twice = np.repeat(points, weight.astype(int), axis=0)
    np.testing.assert_array_equal(
        lloyd(points, centers, weight)[np.repeat(np.arange(90), weight.astype(int))], lloyd(twice, centers, None)
    )


def test_no_round_raises_the_sum_of_squares(monkeypatch):
    rng = np.random.default_rng(2)
    points, weight = rng.normal(size=(200, 3)), rng.exponential(size=200)
    values = []
    for rounds in range(1, 9):
        monkeypatch.setattr(module, "ROUNDS", rounds)
        values.append(squares(points, weight, lloyd(points, points[:5], weight), 5))
    assert (np.diff(values) <= 1e-9).all() and values[-1] < values[0]


def test_an_empty_cluster_keeps_its_center():
    points = np.array([[0.0], [1.0], [10.0]])
    assert lloyd(points, np.array([[0.0], [10.0], [1e6]]), None).tolist() == [0, 0, 1]
    assert nearest(points, np.array([[0.4], [9.0]])).tolist() == [0, 0, 1]
    means = cluster_means(points, np.ones(3), np.array([0, 0, 1]), 3)
    np.testing.assert_array_equal(means, [[0.5], [10.0], [np.nan]])
