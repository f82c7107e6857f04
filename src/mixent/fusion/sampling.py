"""Sampling errors of items and of calibrated rates, and intervals of shares."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from mixent.core.arrays import Array
from mixent.fusion.batch import Batch
from mixent.fusion.sources import Layout

PLUS_ROWS = 4.0  # of Agresti and Coull


def item_covariance(influence: Array, weight: Array) -> Array:
    """Covariance of sum_i w_i influence_i (P, D) over independent items."""
    centered = influence - (weight @ influence) / weight.sum()
    return (centered * weight[:, None]).T @ centered


def covariance_factor(batch: Batch, derivative: Array) -> Array:
    """(D, S, K) F such that F F^T is the covariance of sum derivative * dA, with dA the errors of all rates."""
    layout = batch.layout
    std = layout.rate_std * np.sqrt(batch.dispersion)[layout.source_of]
    return (derivative - layout.group_sums(derivative * layout.confusion)) * std


def calibration_covariance(batch: Batch, derivative: Array, used: np.ndarray, correlation: Array) -> Array:
    """(D, D) covariance of  sum derivative * dA  (D, S, K), with dA the errors of the rates of the sources in `used`.

    The errors of sources with the same calibration set have the correlation of their answers (J, J) within a class.
    """
    layout, factor = batch.layout, covariance_factor(batch, derivative)
    total = np.zeros((len(factor),) * 2)
    independent = np.zeros(layout.n_sources, dtype=bool)
    for members in layout.calibration_sets:
        members = [j for j in members if used[j]]
        if len(members) == 1:
            independent[members] = True
        elif members:
            total += set_covariance(layout, factor, members, correlation)
    flat = factor[:, independent[layout.source_of]].reshape(len(total), -1)
    return total + flat @ flat.T


def set_covariance(layout: Layout, factor: Array, members: list[int], correlation: Array) -> Array:
    """(D, D) covariance of a quantity with this `covariance_factor` (D, S, K), for sources of one calibration set.

    The errors of two sources are assumed to have the correlation of their answers within a class: their covariance is
    the product of the square roots of their variances and of the correlation. This is exact for two classes and two
    symbols.
    """
    parts = [factor[:, layout.slices[j]] for j in members]
    roots = _roots(np.stack([np.einsum("dvk,evk->kde", part, part) for part in parts]))  # (m, K, D, D)
    correlation = np.clip(correlation[np.ix_(members, members)], 0.0, 1.0)
    np.fill_diagonal(correlation, 1.0)
    return np.einsum("ikde,ikef->df", np.tensordot(correlation, roots, axes=1), roots)


def _roots(matrices: Array) -> Array:
    """Symmetric square roots of covariance matrices (..., D, D)."""
    values, vectors = np.linalg.eigh(matrices)
    return (vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]) @ vectors.swapaxes(-1, -2)


def cautious_rates(layout: Layout) -> Array:
    """(S, K) rates for their own variance: with four more rows of each class, divided equally among the symbols.

    The variance A (1 - A) / n is underestimated if all of a few rows have the same answer (Agresti and Coull, 1998).
    """
    mass, n_symbols = layout.concentration, layout.group_sums(np.ones_like(layout.concentration))
    return (layout.confusion * mass + PLUS_ROWS / n_symbols) / (mass + PLUS_ROWS)


def degrees_of_freedom(shares: Array, rows: Array) -> float:
    """Satterthwaite's degrees of freedom of a variance with these shares of its parts, each estimated on `rows`."""
    return float(1.0 / (shares**2 / np.maximum(rows - 1.0, 1.0)).sum())


def share_interval(share: Array, covariance: Array, n: float, confidence: float) -> tuple[Array, Array]:
    """Intervals (K,) of shares with this covariance (K, K), estimated from n items: the hull of two.

    The normal interval is too short near zero and one, because the variance is too small there. The other one inverts
    the score test, with the variance of labelled items at the hypothetical share x:

        (share - x)^2 <= z^2 (variance + (x (1 - x) - share (1 - share)) / n),

    which is Wilson's interval if all items are labelled.
    """
    z = norm.ppf(0.5 + confidence / 2)
    of_labels = share * (1 - share) / n
    variance = np.maximum(np.diag(covariance), of_labels)
    half = z * np.sqrt(variance)
    a, b = 1 + z**2 / n, share + z**2 / (2 * n)
    root = np.sqrt(np.maximum(b**2 - a * (share**2 - z**2 * (variance - of_labels)), 0.0))
    low, high = np.minimum(share - half, (b - root) / a), np.maximum(share + half, (b + root) / a)
    return np.maximum(low, 0.0), np.minimum(high, 1.0)
