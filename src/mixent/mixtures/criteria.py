"""Selection criteria of the density of a class, computed from the training rows.

All are -2 times the criteria of the literature (document 002, equations 3 and 4, corrected), so that lower is better.
With L_ij = sum of log p(x | class i) over the rows of class j, N_j their weight, M classes, K_i free parameters of
class i:

    bic         L_ii - K_i/2 log N_i
    icl         bic - entropy of the responsibilities
    dic         L_ii - beta/(M-1) sum_j L_ij + K_i/(2(M-1)) sum_j [beta log N_j - log N_i]      (j != i)
    dic_robust  L_ii - beta/(M-1) sum_j L'_ij - K_i/2 log N_i,  L' with log p floored
    cbic        sum_n log p(class_n | x_n) - K/2 log N                                           (all classes together)

For classes of equal size DIC has no penalty, and it is unbounded when the density of a class at the rows of other
classes tends to zero; it is included for comparison. "dic_robust" bounds the log density of rows of other classes from
below by the 1 % quantile of the rows of the class: rows outside a class all count alike. (A quantile of the rows of
other classes is no effective bound: on iris it changes DIC by one part in a thousand.)
"""

from __future__ import annotations

import numpy as np

from mixent.core.arrays import Array, log_sum_exp, safe_log

FLOOR = 0.01  # quantile of the rows of the class


def class_criteria(
    density: Array,
    classes: tuple[int, ...],
    codes: np.ndarray,
    weight: Array,
    n_free: int,
    entropy: float,
    beta: float,
    n_classes: int,
) -> dict[str, float]:
    """Return the criteria of a density model of one class, or of all classes that share components.

    Parameters
    ----------
    density : (n, m) array
        log p(x | class) of the m classes of the model, for all labelled rows.
    classes : the m class numbers
    codes, weight : (n,) arrays
        Class and weight of each row.
    n_free : int
        Number of free parameters of the model.
    entropy : float
        Sum of the entropies of the responsibilities over the rows of these classes.
    beta : float
        Weight of the rows of other classes in DIC.
    n_classes : int
        Total number of classes.
    """
    rows = np.bincount(codes, weight, n_classes).astype(float)
    log_lik = sum(float(density[codes == c, i] @ weight[codes == c]) for i, c in enumerate(classes))
    if len(classes) > 1:  # a joint model of rows and labels, with class priors as parameters
        log_lik += sum(float(rows[c] * np.log(rows[c] / rows.sum())) for c in classes if rows[c] > 0)
    bic = log_lik - 0.5 * n_free * np.log(rows[list(classes)].sum())
    share = n_free / len(classes)
    parts = [
        _discriminative(density[:, i], c, codes, weight, rows, share, beta, robust)
        for robust in (False, True)
        for i, c in enumerate(classes)
    ]
    dic, dic_robust = sum(parts[: len(classes)]), sum(parts[len(classes) :])
    return {"bic": -2 * bic, "icl": -2 * (bic - entropy), "dic": -2 * dic, "dic_robust": -2 * dic_robust}


def _discriminative(
    density: Array,
    c: int,
    codes: np.ndarray,
    weight: Array,
    rows: Array,
    n_free: float,
    beta: float,
    robust: bool,
) -> float:
    """Return DIC of one class, with the sign of the literature (higher is better)."""
    inside = codes == c
    others = [j for j in range(len(rows)) if j != c and rows[j] > 0]
    if rows[c] == 0:
        return 0.0  # a class without rows does not contribute
    if not others:
        return float(density[inside] @ weight[inside]) - 0.5 * n_free * float(np.log(rows[c]))
    bounded = density
    if robust:
        bounded = np.maximum(density, _quantile(density[inside], weight[inside], FLOOR))
    outside = sum(float(bounded[codes == j] @ weight[codes == j]) for j in others)
    value = float(density[inside] @ weight[inside]) - beta * outside / len(others)
    if robust:
        return value - 0.5 * n_free * float(np.log(rows[c]))
    return value + 0.5 * n_free * float(np.mean([beta * np.log(rows[j]) - np.log(rows[c]) for j in others]))


def _quantile(values: Array, weight: Array, share: float) -> float:
    """Return the smallest value with at least this share of the weight at or below it."""
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weight[order])
    return float(values[order[np.searchsorted(cumulative, share * cumulative[-1])]])


def conditional_bic(density: Array, codes: np.ndarray, weight: Array, n_free: int) -> float:
    """Return -2 sum log p(class | x) + K log N, from log p(x | class) (n, C) and the class frequencies."""
    rows = np.bincount(codes, weight, density.shape[1])
    joint = density + safe_log(rows / rows.sum())
    log_post = joint[np.arange(len(codes)), codes] - log_sum_exp(joint, axis=1)
    return float(-2 * (log_post @ weight) + n_free * np.log(weight.sum()))
