"""Scores and probabilities as likelihood ratios: bins, a line, a scale, each learned from labelled rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from mixent.core.arrays import Array, log_sum_exp
from mixent.data import read_labels


def fitted_scale(values: Array, codes: np.ndarray) -> tuple[float, ...]:
    """Power and offsets b of log p_k, by which the classes of these rows are most probable.

    Maximises  sum_t log softmax_k(log share_k + power log p_tk + b_k)  less half the squares of power - 1 and of b
    about what they are where probabilities are honest: rows that the source always gets right do not make it infinite.
    """
    from scipy.optimize import minimize

    K = values.shape[1]
    logs = np.log(np.maximum(values, 1e-6))
    share = np.bincount(codes, minlength=K) / len(codes)
    base = np.log(np.maximum(share, 1e-9))
    truth = np.eye(K)[codes]

    def loss(x: Array) -> tuple[float, Array]:
        joint = base + x[0] * logs + x[1:]
        norm = log_sum_exp(joint, axis=1)
        rest = np.exp(joint - norm[:, None]) - truth
        away = x - np.concatenate([[1.0], -base])
        slope = np.concatenate([[(rest * logs).sum()], rest.sum(axis=0)])
        return float(norm.sum() - (joint * truth).sum() + 0.5 * away @ away), slope + away

    found = minimize(loss, np.concatenate([[1.0], -base]), jac=True, method="L-BFGS-B").x
    return tuple(found.tolist())


def fitted_line(scores: Array, codes: np.ndarray) -> tuple[float, float]:
    """Slope and offset of the log-likelihood ratio, by logistic regression on Platt's targets.

    A row of a class of n is held to be of it to (n + 1) / (n + 2): scores that part the classes do not make it
    infinite. Classes have the same mass, so that the odds of the line are ratios whatever the priors of these rows.
    """
    from sklearn.linear_model import LogisticRegression

    n = np.bincount(codes, minlength=2)
    sure = (n[codes] + 1.0) / (n[codes] + 2.0)
    mean, std = scores.mean(), max(scores.std(), 1e-12)
    twice = np.concatenate([scores, scores])[:, None]
    weight = np.concatenate([sure, 1.0 - sure]) / np.concatenate([n[codes], n[codes]]) * n.min()
    model = LogisticRegression(C=1e6, max_iter=1000)
    model.fit((twice - mean) / std, np.concatenate([codes, 1 - codes]), sample_weight=weight)
    slope = float(model.coef_[0, 0]) / std
    return slope, float(model.intercept_[0]) - slope * mean


def even_edges(truth: Any, scores: Array, seen: np.ndarray, bins: int) -> Array:
    """Borders of bins of equal mass, each class with the same mass: where a rare one lies is where it is told."""
    labels = read_labels(truth, len(scores))
    if labels.codes is None:
        raise ValueError("truth must be labels; it holds probabilities")
    used = np.flatnonzero(seen & (labels.codes >= 0))
    if not len(used):
        raise ValueError("no score has a label")
    mass = 1.0 / np.bincount(labels.codes[used], minlength=len(labels.classes))[labels.codes[used]]
    order = np.argsort(scores[used], kind="stable")
    below = np.cumsum(mass[order]) - mass[order] / 2
    wanted = np.linspace(0, 1, bins + 1)[1:-1] * mass.sum()
    return np.unique(np.interp(wanted, below, scores[used][order]))


def bin_names(edges: Array) -> tuple[str, ...]:
    """Names of the bins between rising borders."""
    told = [f"{e:.6g}" for e in edges]
    if len(set(told)) < len(told):
        told = [repr(float(e)) for e in edges]
    if not told:
        return ("any",)
    return (f"< {told[0]}", *(f"{a} to {b}" for a, b in pairwise(told)), f">= {told[-1]}")


def line_pmf(scores: Array, line: tuple[float, float], prior: Array) -> Array:
    """(n, 2) posteriors under `prior` of scores whose log-likelihood ratio is a line."""
    ratio = line[0] * scores + line[1]
    high = 1.0 / (1.0 + np.exp(-np.clip(ratio + np.log(prior[1]) - np.log(prior[0]), -700, 700)))
    return np.column_stack([1.0 - high, high])
