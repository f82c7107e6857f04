"""Sizes, targets, data and the common start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Case:
    """A table of Gaussian clusters, and how many times faster than scikit-learn a pass over it is to be."""

    rows: int
    columns: int
    components: int
    target: float | None = None

    @property
    def name(self) -> str:
        return f"{self.rows}x{self.columns} K={self.components}"

    @property
    def work(self) -> float:
        """Multiplications of a pass, roughly."""
        return 2.0 * self.rows * self.components * self.columns**2


CASES = (
    Case(10_000, 5, 5, 6.0),
    Case(100_000, 10, 16, 12.0),
    Case(1_000_000, 10, 8, 12.0),
    Case(200_000, 50, 16, 3.5),
    Case(50_000, 200, 8, 1.7),
)
QUICK = (Case(2_000, 3, 3), Case(5_000, 10, 4))
MISSING = Case(20_000, 10, 8)
MEMORY = Case(1_000_000, 10, 8)


@dataclass(frozen=True)
class Start:
    """Parameters everyone begins with: the M-step of a blurred partition."""

    weights: np.ndarray  # (K,)
    means: np.ndarray  # (K, d)
    covs: np.ndarray  # (K, d, d)
    label: np.ndarray  # (n,) the partition


def make(case: Case, seed: int = 0) -> tuple[np.ndarray, Start]:
    """Overlapping clusters, and a partition in which every third row is wrong."""
    rng = np.random.default_rng(seed)
    K, d = case.components, case.columns
    label = rng.integers(K, size=case.rows)
    X = rng.standard_normal((case.rows, d))
    X += (rng.standard_normal((K, d)) * 6 / np.sqrt(d))[label]
    return X, start_from(X, np.where(rng.random(case.rows) < 2 / 3, label, rng.integers(K, size=case.rows)), K)


def start_from(X: np.ndarray, label: np.ndarray, n_components: int) -> Start:
    parts = [X[label == k] for k in range(n_components)]
    weights = np.array([len(p) for p in parts]) / len(X)
    means = np.array([p.mean(axis=0) for p in parts])
    covs = np.array([np.cov(p, rowvar=False, bias=True).reshape(X.shape[1], -1) for p in parts])
    return Start(weights, means, covs, label)
