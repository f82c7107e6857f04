"""Logarithmic pools with one trust weight for each source, chosen without labels.

    q_i(k) ~ p_k prod_j r_ij(k)^t_j,   t_j >= 0,

r_ij(k) the likelihood ratio of the answer of source j, and p the priors by composite likelihood. The weights t minimize
the same divergence R (4.13) that the free posteriors of "min-divergence" minimize, over a family of J numbers instead
of one for every item and class: with independent sources they are close to one, as in naive Bayes; copies share the
weight of one source; and a small batch cannot be fitted exactly. R is not convex in t: several starts, the lowest kept.

R reflects dependence only through the confusion matrices, which are counted on few rows. Pairs of sources show it
directly: `discounted` starts from their correlations (see `discounts`) and minimizes R close to these weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mixent.core.arrays import Array, log_sum_exp
from mixent.fusion.discounts import MOST, Pairs, discounts
from mixent.fusion.problem import Agreement
from mixent.fusion.rules import posterior_of
from mixent.maxent.blocks import Rows

Objective = Callable[[Array], tuple[float, Array]]  # weights -> value and gradient
STARTS = (1.0, 0.5, 0.0)  # of all weights, between 1 / J and one
REACH = 0.4  # prior standard deviation of a weight about its discount; chosen by simulation


@dataclass(frozen=True)
class Pool:
    """The weights, and the posteriors of the batch."""

    trust: Array  # (J,)
    prior: Array  # (K,)
    posterior: Array  # (n, K)
    divergence: float  # R


def pooled(evidence: Array, trust: Array, prior: Array) -> Array:
    """(n, K) log p_k + sum_j t_j log r_ij(k), from evidence (J, n, K)."""
    return np.einsum("j,jnk->nk", trust, evidence) + np.log(np.maximum(prior, 1e-300))


def value_and_slope(problem: Agreement, rows: Rows, evidence: Array, trust: Array, prior: Array) -> tuple[float, Array]:
    """R of these weights, and its gradient (J,):  dR/dt_j = sum_i w_i sum_k g_ik q_ik (log r_ij(k) - mean of it).

    Items of known class keep it in R, and add -log q_i of that class under the pool.
    """
    joint = pooled(evidence, trust, prior)
    q = np.exp(joint - log_sum_exp(joint, axis=1)[:, None])  # (n, K)
    mass = (q * rows.weight[:, None]).T.copy()
    known = rows.target.any(axis=0)
    if known.any():
        mass[:, known] = rows.target[:, known]
    counts = problem.cells.expected(mass, rows)
    g = problem.cells.logits(problem.log_ratio(counts), rows).T  # (4.14), times n
    gradient = rows.weight[:, None] * q * (g - (q * g).sum(axis=1, keepdims=True))
    value = problem.divergence(counts)
    if known.any():
        target = rows.target.T[known]
        value -= float((target * np.log(np.maximum(q[known], 1e-300))).sum())
        gradient[known] = q[known] * rows.weight[known, None] - target
    return value, np.einsum("nk,jnk->j", gradient, evidence)


def fit_pool(
    problem: Agreement,
    rows: Rows,
    evidence: Array,
    prior: Array,
    share: Array | None = None,
    root: np.ndarray | None = None,
) -> Pool:
    """The weights of least R from several starts; copies (of one `root`) have a common weight, times their share."""
    groups = _Groups.of(len(evidence), share, root)
    least = 1.0 / groups.n
    best = None
    for start in STARTS:
        first = np.full(groups.n, least + start * (1.0 - least))
        found = groups.minimize(lambda t: value_and_slope(problem, rows, evidence, t, prior), first)
        if best is None or found[1] < best[1]:
            best = found
    assert best is not None
    return _pool(evidence, best[0], prior, best[1])


def discounted(
    problem: Agreement,
    rows: Rows,
    evidence: Array,
    prior: Array,
    pairs: Pairs,
    share: Array,
    root: np.ndarray,
    excess: float,
) -> Pool:
    """The discounts, corrected by R:  minimizes  R / (1 + excess) + sum ((t - discount) / REACH)^2 / 2.

    R is a sum over the items, but its confusion matrices were counted on few rows: `excess` is the expected R of the
    true posteriors for that reason, in nats for a source.
    """
    groups = _Groups.of(len(evidence), share, root)
    first = discounts(pairs.part(groups.first))
    scale = 1.0 / (1.0 + excess)

    def value(t: Array) -> tuple[float, Array]:
        R, slope = value_and_slope(problem, rows, evidence, t, prior)
        return scale * R, scale * slope

    trust, _ = groups.minimize(value, first, prior_std=REACH)
    return _pool(evidence, trust, prior, value_and_slope(problem, rows, evidence, trust, prior)[0])


def _pool(evidence: Array, trust: Array, prior: Array, divergence: float) -> Pool:
    return Pool(trust, prior, posterior_of(pooled(evidence, trust, prior)), float(divergence))


@dataclass(frozen=True)
class _Groups:
    """Groups of copies: a weight for each group, times the share of each member."""

    owner: np.ndarray  # (J,)
    votes: Array  # (J,)
    first: np.ndarray  # (G,) the first source of each

    @staticmethod
    def of(J: int, share: Array | None, root: np.ndarray | None) -> _Groups:
        _, first, owner = np.unique(np.arange(J) if root is None else root, return_index=True, return_inverse=True)
        return _Groups(owner, np.ones(J) if share is None else share, first)

    @property
    def n(self) -> int:
        return len(self.first)

    def minimize(self, value: Objective, first: Array, prior_std: float | None = None) -> tuple[Array, float]:
        """Weights (J,) that minimize the value from this start, with a normal prior about it, and the minimum."""
        from scipy.optimize import minimize

        def of_groups(t: Array) -> tuple[float, Array]:
            total, slope = value(t[self.owner] * self.votes)
            slope = np.bincount(self.owner, slope * self.votes, minlength=self.n).astype(float)
            if prior_std is not None:
                total += 0.5 * float((((t - first) / prior_std) ** 2).sum())
                slope += (t - first) / prior_std**2
            return total, slope

        found = minimize(of_groups, first, jac=True, method="L-BFGS-B", bounds=[(0.0, MOST)] * self.n)
        return found.x[self.owner] * self.votes, float(found.fun)
