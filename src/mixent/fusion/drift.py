"""Drift: tests of the sources' answers against their calibrations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from mixent.core.arrays import Array
from mixent.fusion.batch_priors import FEWEST, Marginals


@dataclass(frozen=True)
class Drift:
    """Test of a source's histogram against its calibration, at the priors estimated from the other sources."""

    observed: Array  # (S_j,) shares of its symbols in the batch
    expected: Array  # (S_j,)
    statistic: float
    p_value: float  # NaN where it cannot be tested: no other source, or a source with a context


def drift(marginals: Marginals, j: int, correlation: Array) -> Drift:
    """Chi-squared test of its histogram against A_j^T p, p from the other sources, with all sampling errors."""
    layout, batch = marginals.layout, marginals.batch
    here = layout.slices[j]
    answered = batch.weight * batch.answered[j]
    total = answered.sum()
    others = marginals.without(j)
    if total < FEWEST or not others.used.any() or others.unknown.any() or layout.n_groups[j] > 1:
        share = np.full(layout.sizes[j], np.nan)
        return Drift(share, share, np.nan, np.nan)
    A = layout.confusion[here]  # (S_j, K)
    observed = batch.totals[here] / total
    expected = A @ others.prior
    covariance = _drift_covariance(others, here, observed, total)
    covariance += A @ others.calibration_covariance(correlation) @ A.T
    conc = layout.concentration[here]
    for k, share in enumerate(others.prior):
        covariance += share**2 * (np.diag(A[:, k]) - np.outer(A[:, k], A[:, k])) / (conc[0, k] + 1.0)
    d = observed - expected
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-9 * max(values.max(), 1e-300)
    kept[0] = False  # shares sum to one
    statistic = float((((d @ vectors)[kept]) ** 2 / values[kept]).sum())
    return Drift(observed, expected, statistic, float(chi2.sf(statistic, max(int(kept.sum()), 1))))


def _drift_covariance(others: Marginals, here: slice, observed: Array, total: float) -> Array:
    """(S_j, S_j) covariance of  observed - A p  due to the batch.

    The influence of an item is  L x,  L (S_j, S) and x its answers, so that the second moments of the items are enough;
    an item of known class enters p by its class instead.
    """
    batch, A = others.batch, others.layout.confusion[here]
    own = (np.eye(len(observed)) - observed[:, None]) / total
    moments = batch.moments
    whole = -A @ others.inverse @ others.symbol_gradient.T
    whole[:, here] += own
    covariance = whole @ moments[1:, 1:] @ whole.T
    mean = whole @ moments[0, 1:]
    known = np.flatnonzero(batch.known >= 0)
    if len(known):
        labelled = batch.part(known)
        each = labelled.cells.dense(labelled.rows)[np.argsort(labelled.order)][here].T
        influence = each @ own.T - others.influence[known] @ A.T
        covariance += (influence * labelled.weight[:, None]).T @ influence
        mean += labelled.weight @ influence
    return covariance - np.outer(mean, mean) / batch.weight.sum()
