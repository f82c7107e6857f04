"""Is speed paid for with digits? Covariances against sums in extended precision, where EM is hard to get right."""

from __future__ import annotations

import numpy as np

from benchmarks.speed.cases import start_from
from benchmarks.speed.peers import mixent, scikit_learn
from benchmarks.speed.records import Record

TARGET = 1e-8


def accuracy(n_rows: int = 20_000) -> list[Record]:
    """Clusters so far apart that responsibilities are 0 or 1: the covariances of the labelled rows are the truth."""
    records = []
    for name, offset, distance in (("offset 1e8", 1e8, 20.0), ("separation 1e4 sigma", 0.0, 1e4)):
        X, label, truth = _clusters(n_rows, offset, distance)
        start = start_from(X - X[0], label, 3)
        start = type(start)(start.weights, start.means + X[0], start.covs * 1.5, label)
        for method, fit in (("mixent", mixent), ("scikit-learn", _scikit_learn)):
            covs = fit(X, start, 5).covs
            error = max(np.abs(c - t).max() / np.abs(t).max() for c, t in zip(covs, truth))
            wanted = (TARGET, "issue 2") if method == "mixent" else (None, None)
            records.append(Record(name, method, "covariances, relative error", error, None, 1, *wanted))
    return records


def _scikit_learn(X, start, n_passes):
    return scikit_learn(X, start, n_passes, 1)


def _clusters(n_rows: int, offset: float, distance: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    label = rng.integers(3, size=n_rows)
    Z = rng.standard_normal((n_rows, 4)) @ rng.standard_normal((4, 4)) + distance * np.eye(3, 4)[label]
    Z = np.round(Z * 2.0**20) / 2.0**20  # so that the shift is exact in float64
    wide = Z.astype(np.longdouble)
    truth = []
    for k in range(3):
        z = wide[label == k]
        z = z - z.mean(axis=0)
        truth.append((z.T @ z / len(z)).astype(float))
    return Z + offset, label, np.array(truth)
