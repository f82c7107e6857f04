"""Bin edges of a continuous column: of equal width, of equal weight, or where the class frequencies change; knots."""

from __future__ import annotations

import numpy as np

from mixent.core.arrays import Array


def bin_edges(x: Array, weight: Array, n_bins: int, strategy: str) -> Array:
    """Inner edges of bins of equal width ("uniform") or of equal total weight ("quantile")."""
    used = ~np.isnan(x) & (weight > 0)
    x, weight = x[used], weight[used]
    if strategy == "uniform":
        return np.unique(np.linspace(x.min(), x.max(), n_bins + 1)[1:-1])
    order = np.argsort(x, kind="stable")
    cumulative = np.cumsum(weight[order]) / weight.sum()
    index = np.searchsorted(cumulative, np.arange(1, n_bins) / n_bins)
    edges = np.unique(x[order][np.minimum(index, len(x) - 1)])
    return edges[edges > x.min()]  # the first bin is not empty


def knots_of(x: Array, weight: Array, n_knots: int) -> Array:
    """The distinct values of a column, if there are at most `n_knots`; otherwise quantiles of its weight.

    Where most rows have the same value, quantiles of the distinct values.
    """
    used = ~np.isnan(x) & (weight > 0)
    x, weight = x[used], weight[used]
    distinct = np.unique(x)
    if len(distinct) <= n_knots:
        return distinct
    shares = (np.arange(n_knots) + 0.5) / n_knots
    order = np.argsort(x, kind="stable")
    cumulative = np.cumsum(weight[order]) / weight.sum()
    knots = np.unique(x[order][np.minimum(np.searchsorted(cumulative, shares), len(x) - 1)])
    return knots if len(knots) > 2 else distinct[(shares * len(distinct)).astype(int)]


def entropy_bin_edges(x: Array, target: Array, max_bins: int) -> Array:
    """Inner edges of bins that separate the classes, by recursive splits (Fayyad and Irani 1993).

    An interval is split where the class entropy falls most, as long as this reduces the description length. `target`
    (n, C) is the class distribution of each row times its weight.
    """
    used = ~np.isnan(x) & (target.sum(axis=1) > 0)
    order = np.argsort(x[used], kind="stable")
    values, counts = x[used][order], target[used][order].cumsum(axis=0)
    edges: list[float] = []
    queue = [(0, len(values))]
    while queue and len(edges) < max_bins - 1:
        start, stop = queue.pop(0)
        split = _best_split(values, counts, start, stop)
        if split is not None:
            edges.append(0.5 * (values[split - 1] + values[split]))
            queue += [(start, split), (split, stop)]
    return np.sort(np.array(edges))


def _best_split(values: Array, counts: Array, start: int, stop: int) -> int | None:
    """The best position to split rows start..stop; None if no split reduces the description length."""
    before = counts[start - 1] if start else np.zeros(counts.shape[1])
    cumulative = counts[start:stop] - before
    splits = np.flatnonzero(np.diff(values[start:stop]) > 0) + 1
    if not len(splits):
        return None
    total, left = cumulative[-1], cumulative[splits - 1]
    right = total - left
    n, n_left, n_right = total.sum(), left.sum(axis=1), right.sum(axis=1)
    cost = n_left * _entropy(left) + n_right * _entropy(right)
    best = int(cost.argmin())
    gain = _entropy(total[None])[0] - cost[best] / n
    k, k1, k2 = (np.count_nonzero(c) for c in (total, left[best], right[best]))
    penalty = np.log(3.0**k - 2) - (
        k * _entropy(total[None])[0] - k1 * _entropy(left[best][None])[0] - k2 * _entropy(right[best][None])[0]
    )
    return start + int(splits[best]) if gain > (np.log(max(n - 1, 1.0)) + penalty) / n else None


def _entropy(counts: Array) -> Array:
    """(m,) entropies, in nats, of the rows of counts (m, C)."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    return -np.where(shares > 0, shares * np.log(np.maximum(shares, 1e-300)), 0.0).sum(axis=1)
