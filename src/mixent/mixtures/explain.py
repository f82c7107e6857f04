"""Parts of the log-odds of a mixture classifier, one for each component; and typical rows of components."""

from __future__ import annotations

import numpy as np

from mixent.core.arrays import Array, safe_log, softmax_columns


def share_log_ratio(ours: Array, theirs: Array) -> Array:
    """Split log(A / B), A = sum_k a_k, B = sum_k b_k, into a part for each k: (a_k - b_k) / M(A, B).

    M(A, B) = (A - B) / (log A - log B) is the logarithmic mean, so the parts add up exactly; a component has a positive
    part when it gives more to A than to B.

    Parameters
    ----------
    ours, theirs : (K, n) arrays
        log a_k and log b_k.

    Returns
    -------
    (n, K) array.
    """
    ours, theirs = np.array(ours), np.array(theirs)
    log_a, log_b = softmax_columns(ours), softmax_columns(theirs)  # and of each the shares: far out they keep digits
    top = np.maximum(log_a, log_b)
    lost = np.isneginf(top)  # neither has any density: no parts
    top, log_a, log_b = (np.where(lost, 0.0, values) for values in (top, log_a, log_b))
    apart = np.abs(log_a - log_b)
    mean = np.divide(-np.expm1(-apart), apart, out=np.ones_like(apart), where=apart > 0)  # M(A, B) / max(A, B)
    more = ours * np.exp(log_a - top) - theirs * np.exp(log_b - top)
    with np.errstate(divide="ignore"):  # a rival without any density: infinite odds
        return np.divide(more, mean, out=np.zeros_like(more), where=more != 0).T


def explain_rows(
    log_components: Array, weights: Array, prior: Array, temperature: float, label: np.ndarray, rival: np.ndarray
) -> tuple[Array, Array]:
    """(prior part (n,), component parts (n, K)) of log p(label | x) / p(rival | x).

    Parameters
    ----------
    log_components : (K, n) array
        log f_k(x_n).
    weights : (C, K) array
        Joint weights.
    prior : (C,) array
    temperature : float
        Of the class densities.
    label, rival : (n,) arrays of int
    """
    within = safe_log(weights / weights.sum(axis=1, keepdims=True)).T  # (K, C)
    # overflow: predictions fall back on the priors, and so do the parts
    log_components = np.where(np.isnan(log_components).any(axis=0), -np.inf, log_components)
    parts = share_log_ratio(log_components + within[:, label], log_components + within[:, rival])
    log_prior = np.log(prior)
    return log_prior[label] - log_prior[rival], temperature * parts


def typical(resp: Array, log_components: Array, n_rows: int) -> list[np.ndarray]:
    """For each component the rows that are most at home in it: among those it claims, the densest.

    Parameters
    ----------
    resp : (n, K) array
        Responsibilities.
    log_components : (K, n) array
    n_rows : int
        How many of each.
    """
    owner = resp.argmax(axis=1)
    out = []
    for k, density in enumerate(log_components):
        mine = np.flatnonzero(owner == k)
        out.append(mine[np.argsort(-density[mine], kind="stable")[:n_rows]])
    return out
