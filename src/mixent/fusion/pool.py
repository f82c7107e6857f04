"""A logarithmic pool with one trust weight for each source, chosen without labels.

    q_i(k) ~ p_k prod_j r_ij(k)^t_j,   t_j >= 0,

r_ij(k) the likelihood ratio of what source j says, and p the priors by composite likelihood. The weights t minimise the
same divergence R (4.13) that the free posteriors of "it" minimise, over a family of J numbers instead of one for every
item and class: with independent sources they come near one, that of naive Bayes; copies share what one of them
deserves; and a small batch cannot be fitted to the last item. R is not convex in t: several starts, the lowest kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.core.arrays import Array, log_sum_exp
from mixent.fusion.problem import Agreement
from mixent.maxent.rows import Rows

MOST = 3.0  # trust in a source; more than one where another says part of the same and is believed less
STARTS = (1.0, 0.5, 0.0)  # of all weights, between 1 / J and one


@dataclass(frozen=True)
class Pool:
    """The weights, and what they say of the batch."""

    trust: Array  # (J,)
    prior: Array  # (K,)
    posterior: Array  # (n, K)
    divergence: float  # R


def pooled(evidence: Array, trust: Array, prior: Array) -> Array:
    """(n, K) log p_k + sum_j t_j log r_ij(k), from evidence (J, n, K)."""
    return np.einsum("j,jnk->nk", trust, evidence) + np.log(np.maximum(prior, 1e-300))


def value_and_slope(problem: Agreement, rows: Rows, evidence: Array, trust: Array, prior: Array) -> tuple[float, Array]:
    """R of these weights, and its gradient (J,):  dR/dt_j = sum_i w_i sum_k g_ik q_ik (log r_ij(k) - mean of it).

    Items of known class keep it in R, and add -log q_i of that class, as the pool would have it.
    """
    joint = pooled(evidence, trust, prior)
    q = np.exp(joint - log_sum_exp(joint, axis=1)[:, None])  # (n, K)
    mass = (q * rows.weight[:, None]).T.copy()
    known = rows.target.any(axis=0)
    if known.any():
        mass[:, known] = rows.target[:, known]
    counts = problem.cells.expected(mass, rows)
    g = problem.cells.logits(problem.log_ratio(counts), rows).T  # (4.14), times n
    pull = rows.weight[:, None] * q * (g - (q * g).sum(axis=1, keepdims=True))
    value = problem.divergence(counts)
    if known.any():
        target = rows.target.T[known]
        value -= float((target * np.log(np.maximum(q[known], 1e-300))).sum())
        pull[known] = q[known] * rows.weight[known, None] - target
    return value, np.einsum("nk,jnk->j", pull, evidence)


def fit_pool(
    problem: Agreement, rows: Rows, evidence: Array, prior: Array, share: Array | None = None, root: Any = None
) -> Pool:
    """The weights of least R from several starts; copies (of the same `root`) have one weight, times their share."""
    from scipy.optimize import minimize

    J = len(evidence)
    owner = np.arange(J) if root is None else np.unique(root, return_inverse=True)[1]
    votes = np.ones(J) if share is None else share
    G = int(owner.max()) + 1

    def of_groups(t: Array) -> tuple[float, Array]:
        value, slope = value_and_slope(problem, rows, evidence, t[owner] * votes, prior)
        return value, np.bincount(owner, slope * votes, minlength=G).astype(float)

    least = 1.0 / G
    best = None
    for start in STARTS:
        first = np.full(G, least + start * (1.0 - least))
        found = minimize(of_groups, first, jac=True, method="L-BFGS-B", bounds=[(0.0, MOST)] * G)
        if best is None or found.fun < best.fun:
            best = found
    assert best is not None
    trust = best.x[owner] * votes
    joint = pooled(evidence, trust, prior)
    posterior = np.exp(joint - log_sum_exp(joint, axis=1)[:, None])
    return Pool(trust, prior, posterior / posterior.sum(axis=1, keepdims=True), float(best.fun))
