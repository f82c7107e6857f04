"""Contributions of the components to the log-odds of a mixture classifier; typical rows of components."""

from __future__ import annotations

import numpy as np

from mixent.core.arrays import Array, safe_log, softmax_columns


def share_log_ratio(ours: Array, theirs: Array) -> Array:
    """Divide log(A / B), A = sum_k a_k, B = sum_k b_k, into contributions of each k: (a_k - b_k) / M(A, B).

    M(A, B) = (A - B) / (log A - log B) is the logarithmic mean, so the contributions add up exactly; that of k is
    positive if a_k > b_k.

    Parameters
    ----------
    ours, theirs : (K, n) arrays
        log a_k and log b_k.

    Returns
    -------
    (n, K) array.
    """
    ours, theirs = np.array(ours), np.array(theirs)
    log_a, log_b = softmax_columns(ours), softmax_columns(theirs)  # ours, theirs become shares, accurate far out
    top = np.maximum(log_a, log_b)
    underflow = np.isneginf(top)  # both densities are zero: no contributions
    top, log_a, log_b = (np.where(underflow, 0.0, values) for values in (top, log_a, log_b))
    distance = np.abs(log_a - log_b)
    mean = np.divide(-np.expm1(-distance), distance, out=np.ones_like(distance), where=distance > 0)  # M / max(A, B)
    difference = ours * np.exp(log_a - top) - theirs * np.exp(log_b - top)
    with np.errstate(divide="ignore"):  # a rival of density zero: infinite odds
        return np.divide(difference, mean, out=np.zeros_like(difference), where=difference != 0).T


def explain_rows(
    log_components: Array, weights: Array, prior: Array, temperature: float, label: np.ndarray, rival: np.ndarray
) -> tuple[Array, Array]:
    """Return the contributions of the class priors, (n,), and components, (n, K), to log p(label | x) / p(rival | x).

    Parameters
    ----------
    log_components : (K, n) array
        log f_k(x_n).
    weights : (C, K) array
        Joint weights.
    prior : (C,) array
    temperature : float
        Temperature of the class densities.
    label, rival : (n,) arrays of int
    """
    within = safe_log(weights / weights.sum(axis=1, keepdims=True)).T  # (K, C)
    # in case of overflow, predictions and contributions are those of the priors
    log_components = np.where(np.isnan(log_components).any(axis=0), -np.inf, log_components)
    parts = share_log_ratio(log_components + within[:, label], log_components + within[:, rival])
    log_prior = np.log(prior)
    return log_prior[label] - log_prior[rival], temperature * parts


def typical(resp: Array, log_components: Array, n_rows: int) -> list[np.ndarray]:
    """Return for each component its rows of highest density, among the rows for which it is most probable.

    Parameters
    ----------
    resp : (n, K) array
        Responsibilities.
    log_components : (K, n) array
    n_rows : int
        Number of rows of each component.
    """
    owner = resp.argmax(axis=1)
    out = []
    for k, density in enumerate(log_components):
        rows = np.flatnonzero(owner == k)
        out.append(rows[np.argsort(-density[rows], kind="stable")[:n_rows]])
    return out
