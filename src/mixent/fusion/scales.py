"""Conversion of scores to likelihood ratios, fitted to labelled rows: bins, monotone ratios, or logistic regression."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from mixent.core.arrays import Array
from mixent.data import read_labels


def fitted_line(scores: Array, codes: np.ndarray) -> tuple[float, float]:
    """Slope and offset of the log-likelihood ratio, by logistic regression on Platt's targets.

    The target of a class with n rows is (n + 1) / (n + 2), so that the slope stays finite for separable scores. Both
    classes have the same total weight, so that the odds are likelihood ratios whatever the class priors of these rows.
    """
    from sklearn.linear_model import LogisticRegression

    n = np.bincount(codes, minlength=2)
    target = (n[codes] + 1.0) / (n[codes] + 2.0)
    mean, std = scores.mean(), max(scores.std(), 1e-12)
    twice = np.concatenate([scores, scores])[:, None]  # each row once as either class, weighted by its target
    weight = np.concatenate([target, 1.0 - target]) / np.concatenate([n[codes], n[codes]]) * n.min()
    model = LogisticRegression(C=1e6, max_iter=1000)
    model.fit((twice - mean) / std, np.concatenate([codes, 1 - codes]), sample_weight=weight)
    slope = float(model.coef_[0, 0]) / std
    return slope, float(model.intercept_[0]) - slope * mean


def equal_mass_edges(y_true: ArrayLike, scores: Array, finite: np.ndarray, bins: int) -> Array:
    """Edges of bins of equal mass, with all classes weighted equally, so that bins are narrow around a rare class."""
    labels = read_labels(y_true, len(scores))
    if labels.codes is None:
        raise ValueError("y_true must be labels; got probabilities")
    used = np.flatnonzero(finite & (labels.codes >= 0))
    if not len(used):
        raise ValueError("at least one finite score must have a label; got none")
    mass = 1.0 / np.bincount(labels.codes[used], minlength=len(labels.classes))[labels.codes[used]]
    order = np.argsort(scores[used], kind="stable")
    below = np.cumsum(mass[order]) - mass[order] / 2
    quantiles = np.linspace(0, 1, bins + 1)[1:-1] * mass.sum()
    return np.unique(np.interp(quantiles, below, scores[used][order]))


def midpoints(values: Array) -> Array:
    """Edges half-way between adjacent values, so that every value has a bin of its own."""
    return (values[1:] + values[:-1]) / 2


def monotone_counts(counts: Array) -> Array:
    """(K, V) counts whose likelihood ratios are monotone in the symbols, which are in increasing order.

    The classes are ordered by their mean symbol. With n_v = sum_k n_kv, the share of the classes above k among the rows
    with symbol v is

        G_k(v) = isotonic regression of  sum_{l > k} n_lv / n_v  on v, with weights n_v,

    by pool-adjacent-violators, and the result is  n_v (G_{k-1}(v) - G_k(v)),  with G_0 = 1 and G_K = 0. It has the row
    and column sums of the counts. For two classes it maximizes sum_kv n_kv log A(v | k) over all rates with a monotone
    ratio A(v | 2) / A(v | 1) (Dykstra, Kochar and Robertson 1995). For several classes it is the isotonic
    distributional regression of the class (Henzi, Ziegel and Gneiting 2021): a higher symbol makes higher classes
    stochastically more probable.
    """
    from sklearn.isotonic import isotonic_regression

    used, total = counts.sum(axis=0) > 0, counts.sum(axis=0)
    rows = counts.sum(axis=1)
    order = np.argsort(counts @ np.arange(counts.shape[1]) / np.where(rows > 0, rows, 1.0), kind="stable")
    above = np.cumsum(counts[order][::-1], axis=0)[::-1][1:, used] / total[used]  # (K - 1, V)
    above = [isotonic_regression(share, sample_weight=total[used], y_min=0.0, y_max=1.0) for share in above]
    ends = np.ones(int(used.sum()))
    out = np.zeros(counts.shape)
    out[np.ix_(order, used)] = -np.diff(np.stack([ends, *above, 0 * ends]), axis=0) * total[used]
    return np.maximum(out, 0.0)  # differences of equal shares may be -1e-17


def bin_names(edges: Array) -> tuple[str, ...]:
    """Names of the bins between increasing edges."""
    texts = [f"{edge:.6g}" for edge in edges]
    if len(set(texts)) < len(texts):
        texts = [repr(float(edge)) for edge in edges]
    if not texts:
        return ("any",)
    return (f"< {texts[0]}", *(f"{a} to {b}" for a, b in pairwise(texts)), f">= {texts[-1]}")


def line_pmf(scores: Array, line: tuple[float, float], prior: Array) -> Array:
    """(n, 2) posteriors of scores whose log-likelihood ratio is linear, at the given class priors."""
    ratio = line[0] * scores + line[1]
    high = 1.0 / (1.0 + np.exp(-np.clip(ratio + np.log(prior[1]) - np.log(prior[0]), -700, 700)))
    return np.column_stack([1.0 - high, high])
