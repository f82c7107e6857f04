"""Criteria of a fitted mixture as the density of its class, from the training rows.

All are -2 times the printed criteria (document 002, equations 3 and 4, as corrected), so that lower is better. With
L_ij = sum of log p(x | class i) over the rows of class j, N_j their weight, M classes, K_i free parameters of class i:

    bic         L_ii - K_i/2 log N_i
    icl         bic - entropy of the responsibilities
    dic         L_ii - beta/(M-1) sum_j L_ij + K_i/(2(M-1)) sum_j [beta log N_j - log N_i]      (j != i)
    dic_robust  L_ii - beta/(M-1) sum_j L'_ij - K_i/2 log N_i,  L' with log p floored
    cbic        sum_n log p(class_n | x_n) - K/2 log N                                           (all classes together)

DIC has no penalty of its own for classes of equal size, and a class that gives no density to the others' rows raises it
without bound: it is here for comparison. "dic_robust" counts a row of another class as no less likely than the 1 %
quantile of the class's own rows: what lies outside a class cannot lie further outside. (A quantile of the other
classes' rows would run away with them: on iris it changes DIC by one part in a thousand.)
"""

from __future__ import annotations

import numpy as np

from mixent.core.arrays import Array, log_sum_exp, safe_log

FLOOR = 0.01  # quantile of the class's own rows


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
    """Criteria of a density model of some classes: of one, or of all that share components.

    Parameters
    ----------
    density : (n, m) array
        log p(x | class) of the m classes the model is of, for all labelled rows.
    classes : m of the class numbers
    codes, weight : (n,) arrays
        Class and weight of each row.
    n_free : int
        Free parameters of the model.
    entropy : float
        Of the responsibilities of the model's own rows, summed.
    beta : float
        Weight of other classes' rows in DIC.
    n_classes : int
        Classes in all.
    """
    rows = np.bincount(codes, weight, n_classes).astype(float)
    own = sum(float(density[codes == c, i] @ weight[codes == c]) for i, c in enumerate(classes))
    if len(classes) > 1:  # one model of rows and labels, class priors among its parameters
        own += sum(float(rows[c] * np.log(rows[c] / rows.sum())) for c in classes if rows[c] > 0)
    bic = own - 0.5 * n_free * np.log(rows[list(classes)].sum())
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
    """DIC of one class, in the printed sign."""
    mine = codes == c
    others = [j for j in range(len(rows)) if j != c and rows[j] > 0]
    if rows[c] == 0:
        return 0.0  # a class without rows counts nothing
    if not others:
        return float(density[mine] @ weight[mine]) - 0.5 * n_free * float(np.log(rows[c]))
    anti = density
    if robust:
        anti = np.maximum(density, _quantile(density[mine], weight[mine], FLOOR))
    against = sum(float(anti[codes == j] @ weight[codes == j]) for j in others)
    value = float(density[mine] @ weight[mine]) - beta * against / len(others)
    if robust:
        return value - 0.5 * n_free * float(np.log(rows[c]))
    return value + 0.5 * n_free * float(np.mean([beta * np.log(rows[j]) - np.log(rows[c]) for j in others]))


def _quantile(values: Array, weight: Array, share: float) -> float:
    """The smallest value that at least this share of the weight does not exceed."""
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weight[order])
    return float(values[order[np.searchsorted(cumulative, share * cumulative[-1])]])


def conditional_bic(density: Array, codes: np.ndarray, weight: Array, n_free: int) -> float:
    """-2 sum log p(class | x) + K log N, from log p(x | class) (n, C) and the shares of the classes."""
    rows = np.bincount(codes, weight, density.shape[1])
    joint = density + safe_log(rows / rows.sum())
    log_post = joint[np.arange(len(codes)), codes] - log_sum_exp(joint, axis=1)
    return float(-2 * (log_post @ weight) + n_free * np.log(weight.sum()))
