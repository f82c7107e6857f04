"""Bins of a continuous column: of equal width, of equal mass, or where the classes change."""

from __future__ import annotations

import numpy as np

from mixent.core.arrays import Array


def bins_of(x: Array, weight: Array, n_bins: int, how: str) -> Array:
    """Inner borders of bins: of equal width, or holding equally many rows."""
    seen = ~np.isnan(x) & (weight > 0)
    x, weight = x[seen], weight[seen]
    if how == "uniform":
        return np.unique(np.linspace(x.min(), x.max(), n_bins + 1)[1:-1])
    order = np.argsort(x, kind="stable")
    cumulative = np.cumsum(weight[order]) / weight.sum()
    at = np.searchsorted(cumulative, np.arange(1, n_bins) / n_bins)
    borders = np.unique(x[order][np.minimum(at, len(x) - 1)])
    return borders[borders > x.min()]  # the first bin holds some row


def entropy_bins(x: Array, target: Array, most: int) -> Array:
    """Inner borders that separate the classes best, added greedily while description length falls (Fayyad and Irani).

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
