"""Confusion matrices of calibrated sources, re-estimated from the batch.

A calibration with few rows is imprecise, and the batch has many items. With the trust weights t of the sources fixed,
the class priors p and the rates A of sources that give labels maximize

    sum_i w_i log sum_k p_k exp(sum_j t_j log A_j(v_ij | k))
        + sum_j t_j sum_vk c_j(v, k) log A_j(v | k) + sum_m a_m log sum_k p_k r_m(k),

where c are the weighted counts of the calibrations, and a the weights of pseudo-items with the likelihood ratios r,
which stabilize the class priors. This is the model of Dawid and Skene with trust weights. Each update maximizes a bound
that touches the objective. Errors in common are taken for correct answers, so that an item counts much less than a row
of a calibration, and all items together at most as much as all rows. At least three sources are needed: two do not
identify their rates.

The likelihood ratios of probabilities that are used as they are remain fixed.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from mixent.core.arrays import Array
from mixent.fusion.batch import Batch
from mixent.fusion.rules import DawidSkene, DawidSkeneParams, ItemAnswers, dawid_skene

CALIBRATION_WEIGHT = 20.0  # least weight of a row of a calibration, in items; chosen by simulation
MIN_SOURCES = 3
TOL = 1e-6  # gain in nats per item at which the fit stops


def learned_rates(batch: Batch, trust: Array, prior: Array, pseudo_items: tuple[Array, Array], max_iter: int) -> Array:
    """(S, K) rates, from the initial class priors; those of sources that give probabilities are those of `batch`.

    `pseudo_items` are log-likelihood ratios (m, K) and weights (m,) of items without answers.
    """
    layout, (ratio, weight) = batch.layout, pseudo_items
    learned = _gives_labels(batch)
    if not learned.any() or len(np.unique(layout.root[trust > 0])) < MIN_SOURCES:
        return layout.confusion
    entries = batch.matrix.tocoo()
    source = layout.source_of[entries.col]
    # labelled items are already among the counts
    used = learned[source] & (batch.labels[entries.row] < 0)
    row, column, source, value = entries.row[used], entries.col[used], source[used], entries.data[used]
    if batch.copy_scale is not None:
        value = value * batch.copy_scale[source, row]
    evidence = batch.product(np.where(learned, 0.0, trust))
    items = ItemAnswers(
        csr_array((value, (row, column)), shape=(batch.n_patterns + len(weight), layout.n_symbols)),
        np.concatenate([batch.weight, weight]),
        np.concatenate([batch.labels, np.full(len(weight), -1)]),
        np.concatenate([evidence, ratio]),
    )
    n_rows = np.maximum(layout.n_rows.sum(axis=1), 1.0)
    row_weight = np.maximum(CALIBRATION_WEIGHT, batch.answered @ batch.weight / n_rows)
    counts = row_weight[layout.source_of, None] * layout.counts
    problem = DawidSkene(items, counts, layout.group, trust[layout.source_of])
    fit = dawid_skene(problem, DawidSkeneParams(prior, layout.confusion), tol=TOL, max_iter=max_iter).run
    assert fit is not None
    return np.where(learned[layout.source_of, None], fit.params.confusion, layout.confusion)


def _gives_labels(batch: Batch) -> np.ndarray:
    """(J,) sources with one symbol for each item, also as probabilities of zero and one that are read as symbols."""
    out = np.ones(batch.layout.n_sources, dtype=bool)
    for j in batch.soft:
        responses = batch.answers.responses[j]
        out[j] = batch.class_probabilities(j) is None and bool(((responses == 0) | (responses == 1)).all())
    return out
