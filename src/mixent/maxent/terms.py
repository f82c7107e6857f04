"""Features of a maximum entropy model: each turns columns of a table into cells.

The cells of a row sum to one (moments apart), or to nothing where the columns are missing. A term is fitted once and
then reads any table of the same columns. Discrete terms give codes, the others dense cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.mixtures import GaussianMixture, MixtureClassifier
from mixent.tables import Table


@dataclass(frozen=True)
class Coded:
    """A categorical column as it is."""

    name: str
    place: int  # among Table.codes
    values: tuple

    def codes(self, table: Table) -> np.ndarray:
        assert table.codes is not None
        return table.codes[:, self.place]


@dataclass(frozen=True)
class Binned:
    """A continuous column in bins: the baseline of section 2.6."""

    name: str
    place: int  # among Table.X
    edges: Array  # (B - 1,) inner borders, rising

    @property
    def values(self) -> tuple:
        borders = [f"{edge:.4g}" for edge in self.edges]
        if not borders:
            return ("any",)
        between = [f"{a} to {b}" for a, b in pairwise(borders)]
        return (f"< {borders[0]}", *between, f">= {borders[-1]}")

    def codes(self, table: Table) -> np.ndarray:
        x = table.X[:, self.place]
        return np.where(np.isnan(x), -1, np.searchsorted(self.edges, x, side="right")).astype(np.int32)


@dataclass(frozen=True)
class Given:
    """A probabilistic instance: columns that hold a pmf over the feature's values."""

    name: str
    places: tuple[int, ...]  # among Table.X
    values: tuple

    n_features = 1

    def cells(self, table: Table) -> Array:
        return np.nan_to_num(table.X[:, list(self.places)], nan=0.0).T


@dataclass(frozen=True)
class Latent:
    """The hidden component of a mixture of some continuous columns, P[M = j | a], as a probabilistic instance.

    kind "pooled": one mixture of all rows. "union": a mixture per class, responsibilities over all classes' components
    together. "class": responsibilities within each class's own mixture; a cell then speaks only for its class.
    """

    name: str
    places: tuple[int, ...]  # among Table.X
    kind: str
    mixture: Any  # GaussianMixture or MixtureClassifier of these columns

    n_features = 1

    @property
    def values(self) -> tuple:
        means = self.mixture.means_
        owner = self.owner
        classes = getattr(self.mixture, "classes_", None)
        about = [", ".join(f"{m:.4g}" for m in mean) for mean in means]
        if owner is None or classes is None:
            return tuple(f"about {a}" for a in about)
        return tuple(f"about {a} (of {classes[c]})" for a, c in zip(about, owner))

    @property
    def owner(self) -> np.ndarray | None:
        """(K,) the class each component was learned from."""
        return None if self.kind == "pooled" else self.mixture.component_class_

    def cells(self, table: Table) -> Array:
        X = table.X[:, list(self.places)]
        seen = ~np.isnan(X).all(axis=1)
        out = np.zeros((len(self.mixture.means_), len(X)))
        if seen.any():
            out[:, seen] = self._resp(X[seen]).T
        return out

    def _resp(self, X: Array) -> Array:
        """(n, K)."""
        table = self.mixture._read(X)
        if self.kind != "class":
            return self.mixture._responsibilities(table)
        log_f = self.mixture._log_components(X).T
        weights, owner = self.mixture.weights_, self.mixture.component_class_
        log_f += np.log(weights[owner, np.arange(len(owner))])
        out = np.empty_like(log_f)
        for c in np.unique(owner):
            mine = owner == c
            part = log_f[:, mine]
            part = np.exp(part - part.max(axis=1, keepdims=True))
            out[:, mine] = part / part.sum(axis=1, keepdims=True)
        return out


@dataclass(frozen=True)
class Moments:
    """Class-conditional mean and second moment of a column: the weak constraints of section 2.4."""

    name: str
    place: int
    centre: float
    scale: float

    n_features = 2
    values = ("mean", "second moment")

    def cells(self, table: Table) -> Array:
        z = (table.X[:, self.place] - self.centre) / self.scale
        z = np.nan_to_num(z, nan=0.0)
        return np.stack([z, z * z])


Discrete = Coded | Binned
Dense = Given | Latent | Moments
Term = Discrete | Dense


def fit_latent(
    name: str, places: tuple[int, ...], X: Array, y: Array | None, weight: Array | None, kind: str, **options: Any
) -> Latent:
    """The mixture of some columns, its order by BIC; rows without any of them are left out."""
    part = X[:, list(places)]
    seen = ~np.isnan(part).all(axis=1)
    covariance = "VVV"
    if kind == "pooled" or y is None:
        mixture: Any = GaussianMixture("auto", covariance, selection="bic", **options)
        mixture.fit(part[seen], sample_weight=None if weight is None else weight[seen])
        return Latent(name, places, "pooled", mixture)
    mixture = MixtureClassifier("auto", covariance, selection="bic", per_class=True, **options)
    mixture.fit(part[seen], y[seen], None if weight is None else weight[seen])
    return Latent(name, places, kind, mixture)


def bins_of(x: Array, weight: Array, n_bins: int, how: str) -> Array:
    """Inner borders of bins: of equal width, or holding equally many rows."""
    seen = ~np.isnan(x) & (weight > 0)
    x, weight = x[seen], weight[seen]
    if how == "uniform":
        return np.unique(np.linspace(x.min(), x.max(), n_bins + 1)[1:-1])
    order = np.argsort(x, kind="stable")
    cumulative = np.cumsum(weight[order]) / weight.sum()
    at = np.searchsorted(cumulative, np.arange(1, n_bins) / n_bins)
    return np.unique(x[order][np.minimum(at, len(x) - 1)])


def entropy_bins(x: Array, target: Array, most: int) -> Array:
    """Inner borders that tell the classes apart best, added greedily while description length falls (Fayyad and Irani).

    `target` (n, C) is each row's class distribution times its weight.
    """
    seen = ~np.isnan(x) & (target.sum(axis=1) > 0)
    order = np.argsort(x[seen], kind="stable")
    values, counts = x[seen][order], target[seen][order].cumsum(axis=0)
    borders: list[float] = []
    waiting = [(0, len(values))]
    while waiting and len(borders) < most - 1:
        start, stop = waiting.pop(0)
        cut = _best_cut(values, counts, start, stop)
        if cut is not None:
            borders.append(0.5 * (values[cut - 1] + values[cut]))
            waiting += [(start, cut), (cut, stop)]
    return np.sort(np.array(borders))


def _best_cut(values: Array, counts: Array, start: int, stop: int) -> int | None:
    """Where to cut rows start..stop, or None where no cut pays for its description."""
    before = counts[start - 1] if start else np.zeros(counts.shape[1])
    here = counts[start:stop] - before
    cuts = np.flatnonzero(np.diff(values[start:stop]) > 0) + 1
    if not len(cuts):
        return None
    total, left = here[-1], here[cuts - 1]
    right = total - left
    n, n_left, n_right = total.sum(), left.sum(axis=1), right.sum(axis=1)
    cost = n_left * _entropy(left) + n_right * _entropy(right)
    best = int(cost.argmin())
    gain = _entropy(total[None])[0] - cost[best] / n
    k, k1, k2 = (np.count_nonzero(c) for c in (total, left[best], right[best]))
    spent = np.log(3.0**k - 2) - (
        k * _entropy(total[None])[0] - k1 * _entropy(left[best][None])[0] - k2 * _entropy(right[best][None])[0]
    )
    return start + int(cuts[best]) if gain > (np.log(max(n - 1, 1.0)) + spent) / n else None


def _entropy(counts: Array) -> Array:
    """(m,) entropies in nats of rows of counts (m, C)."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    return -np.where(shares > 0, shares * np.log(np.maximum(shares, 1e-300)), 0.0).sum(axis=1)
