"""Drift: tests of the sources' answers against their calibrations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import f as fisher

from mixent.base.result import Result
from mixent.core.arrays import Array
from mixent.fusion.batch_priors import MIN_ITEMS, Marginals
from mixent.fusion.sampling import cautious_rates, degrees_of_freedom

NO_TEST = (
    "Not tested: there is no other source, there are too few items, the source has a context, or its calibration does "
    "not describe its answers."
)


@dataclass(frozen=True, repr=False)
class Drift(Result):
    """Test of a source's histogram against its calibration, at the priors estimated from the other sources."""

    _title = "Drift of a source"
    _shown = ("statistic", "p_value")

    observed: Array  # (S_j,) shares of its symbols in the batch
    expected: Array  # (S_j,)
    statistic: float
    p_value: float  # NaN without a test

    def __str__(self) -> str:
        if np.isnan(self.p_value):
            return NO_TEST
        return f"Wald test of the answers against the calibration: {self.statistic:.2f}, p = {self.p_value:.2g}."


def drift(marginals: Marginals, j: int, correlation: Array) -> Drift:
    """Wald test of the histogram of source j against A_j^T p, where p is estimated from the other sources.

    The covariance includes the sampling errors of the batch, of the calibration of j, and of the other calibrations.
    It is estimated from as few rows as the calibrations have, so that the statistic is compared with an F distribution.
    """
    layout, batch = marginals.layout, marginals.batch
    here = layout.slices[j]
    answered = batch.weight * batch.answered[j]
    total = answered.sum()
    others = marginals.without(j)
    if total < MIN_ITEMS or not others.used.any() or others.unidentified.any() or layout.n_groups[j] > 1:
        share = np.full(layout.sizes[j], np.nan)
        return Drift(share, share, np.nan, np.nan)
    A = layout.confusion[here]  # (S_j, K)
    observed = batch.totals[here] / total
    expected = A @ others.prior
    conc = layout.concentration[here]
    cautious = cautious_rates(layout)[here]
    own = [
        scale * share**2 * (np.diag(cautious[:, k]) - np.outer(cautious[:, k], cautious[:, k])) / (conc[0, k] + 1.0)
        for k, (share, scale) in enumerate(zip(others.prior, batch.dispersion[j]))
    ]
    of_others = A @ others.calibration_covariance(correlation) @ A.T
    parts = np.stack([_drift_covariance(others, here, observed, total), of_others, *own])
    values, vectors = np.linalg.eigh(parts.sum(axis=0))
    used = values > 1e-9 * max(values.max(), 1e-300)
    used[0] = False  # shares sum to one
    d = ((observed - expected) @ vectors)[used]
    statistic = float((d**2 / values[used]).sum())
    q = max(int(used.sum()), 1)
    shares = np.einsum("vq,cvw,wq->cq", vectors[:, used], parts, vectors[:, used]) / values[used]
    rows = np.array(
        [total, sum(layout.n_rows[members].max(axis=0).sum() for members in layout.calibration_sets), *layout.n_rows[j]]
    )
    df = max(degrees_of_freedom(shares.mean(axis=1), rows) - q + 1, 1.0)
    return Drift(observed, expected, statistic, float(fisher.sf(statistic * df / (q * (df + q - 1)), q, df)))


def _drift_covariance(others: Marginals, here: slice, observed: Array, total: float) -> Array:
    """(S_j, S_j) covariance of  observed - A p  due to the sampling of the batch.

    The influence of an item is  L x  with L (S_j, S) and x its answers, so that the second moments of the items are
    sufficient; a labelled item contributes to p through its class instead.
    """
    batch, A = others.batch, others.layout.confusion[here]
    of_observed = (np.eye(len(observed)) - observed[:, None]) / total  # influence on the observed shares
    moments = batch.moments
    L = -A @ others.inverse @ others.symbol_gradient.T
    L[:, here] += of_observed
    covariance = L @ moments[1:, 1:] @ L.T
    mean = L @ moments[0, 1:]
    labelled_rows = np.flatnonzero(batch.labels >= 0)
    if len(labelled_rows):
        labelled = batch.part(labelled_rows)
        answers = labelled.cells.dense(labelled.rows)[np.argsort(labelled.order)][here].T
        influence = answers @ of_observed.T - others.influence[labelled_rows] @ A.T
        covariance += (influence * labelled.weight[:, None]).T @ influence
        mean += labelled.weight @ influence
    return covariance - np.outer(mean, mean) / batch.weight.sum()
