"""Logarithmic pools with one trust weight for each source, chosen without labels.

    q_i(k) ~ p_k prod_j r_ij(k)^t_j,   t_j >= 0,

where r_ij(k) is the likelihood ratio of the answer of source j, and p the priors by composite likelihood. The weights t
minimize the same divergence R (4.13) as "min-divergence", but over J numbers instead of one for every item and class.
With independent sources they are close to one, as in naive Bayes; copies share the weight of one source; and J numbers
cannot overfit a small batch. R is not convex in t: the best of several starts is used.

R reflects dependence only through the confusion matrices, which are counted on few rows. Pairs of sources are direct
evidence of it: `discounted` starts from their correlations (see `discounts`) and minimizes R close to these weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mixent.core.arrays import Array, log_sum_exp
from mixent.fusion.discounts import MAX_TRUST, Pairs, discounts
from mixent.fusion.problem import MinDivergence
from mixent.fusion.rules import posterior_of
from mixent.maxent.blocks import Rows

Objective = Callable[[Array], tuple[float, Array]]  # weights -> value and gradient
STARTS = (1.0, 0.5, 0.0)  # common initial weight: 0 is 1 / J, 1 is one
PRIOR_STD = 0.4  # prior standard deviation of a weight around its discount; chosen by simulation


@dataclass(frozen=True)
class Pool:
    """Trust weights, and the posteriors of the batch."""

    trust: Array  # (J,)
    prior: Array  # (K,)
    posterior: Array  # (n, K)
    divergence: float  # R


def pooled(evidence: Array, trust: Array, prior: Array) -> Array:
    """(n, K) log p_k + sum_j t_j log r_ij(k), from evidence (J, n, K)."""
    return np.einsum("j,jnk->nk", trust, evidence) + np.log(np.maximum(prior, 1e-300))


def value_and_gradient(
    problem: MinDivergence, rows: Rows, evidence: Array, trust: Array, prior: Array
) -> tuple[float, Array]:
    """R of these weights, and its gradient (J,):  dR/dt_j = sum_i w_i sum_k g_ik q_ik (log r_ij(k) - mean of it).

    Labelled items keep their class in R, and add -log q_i of that class under the pool.
    """
    joint = pooled(evidence, trust, prior)
    q = np.exp(joint - log_sum_exp(joint, axis=1)[:, None])  # (n, K)
    mass = (q * rows.weight[:, None]).T.copy()
    labelled = rows.target.any(axis=0)
    if labelled.any():
        mass[:, labelled] = rows.target[:, labelled]
    counts = problem.cells.expected(mass, rows)
    g = problem.cells.logits(problem.log_ratio(counts), rows).T  # (4.14), times n
    gradient = rows.weight[:, None] * q * (g - (q * g).sum(axis=1, keepdims=True))
    value = problem.divergence(counts)
    if labelled.any():
        target = rows.target.T[labelled]
        value -= float((target * np.log(np.maximum(q[labelled], 1e-300))).sum())
        gradient[labelled] = q[labelled] * rows.weight[labelled, None] - target
    return value, np.einsum("nk,jnk->j", gradient, evidence)


def fit_pool(
    problem: MinDivergence,
    rows: Rows,
    evidence: Array,
    prior: Array,
    share: Array | None = None,
    root: np.ndarray | None = None,
) -> Pool:
    """Weights that minimize R, the best of several starts; copies (with the same `root`) share a common weight."""
    groups = _Groups.of(len(evidence), share, root)
    least = 1.0 / groups.n
    best = None
    for start in STARTS:
        initial = np.full(groups.n, least + start * (1.0 - least))
        result = groups.minimize(lambda t: value_and_gradient(problem, rows, evidence, t, prior), initial)
        if best is None or result[1] < best[1]:
            best = result
    assert best is not None
    return _pool(evidence, best[0], prior, best[1])


def discounted(
    problem: MinDivergence,
    rows: Rows,
    evidence: Array,
    prior: Array,
    pairs: Pairs,
    share: Array,
    root: np.ndarray,
    excess: float,
) -> Pool:
    """Weights close to the discounts:  minimizes  R / (1 + excess) + sum ((t - discount) / PRIOR_STD)^2 / 2.

    The confusion matrices in R were counted on few rows, so that R of the true posteriors is not zero: `excess` is its
    expectation, in nats per source.
    """
    groups = _Groups.of(len(evidence), share, root)
    initial = discounts(pairs.part(groups.first))
    scale = 1.0 / (1.0 + excess)

    def value(t: Array) -> tuple[float, Array]:
        R, gradient = value_and_gradient(problem, rows, evidence, t, prior)
        return scale * R, scale * gradient

    trust, _ = groups.minimize(value, initial, prior_std=PRIOR_STD)
    return _pool(evidence, trust, prior, value_and_gradient(problem, rows, evidence, trust, prior)[0])


def _pool(evidence: Array, trust: Array, prior: Array, divergence: float) -> Pool:
    return Pool(trust, prior, posterior_of(pooled(evidence, trust, prior)), float(divergence))


@dataclass(frozen=True)
class _Groups:
    """Groups of copies: one weight for each group, times the share of each member."""

    group: np.ndarray  # (J,) of each source
    share: Array  # (J,) of each source in the vote of its group
    first: np.ndarray  # (G,) the first source of each group

    @staticmethod
    def of(J: int, share: Array | None, root: np.ndarray | None) -> _Groups:
        _, first, group = np.unique(np.arange(J) if root is None else root, return_index=True, return_inverse=True)
        return _Groups(group, np.ones(J) if share is None else share, first)

    @property
    def n(self) -> int:
        return len(self.first)

    def minimize(self, value: Objective, initial: Array, prior_std: float | None = None) -> tuple[Array, float]:
        """Weights (J,) that minimize the objective, and the minimum; with a normal prior around the initial weights."""
        from scipy.optimize import minimize

        def of_groups(t: Array) -> tuple[float, Array]:
            total, gradient = value(t[self.group] * self.share)
            gradient = np.bincount(self.group, gradient * self.share, minlength=self.n).astype(float)
            if prior_std is not None:
                total += 0.5 * float((((t - initial) / prior_std) ** 2).sum())
                gradient += (t - initial) / prior_std**2
            return total, gradient

        result = minimize(of_groups, initial, jac=True, method="L-BFGS-B", bounds=[(0.0, MAX_TRUST)] * self.n)
        return result.x[self.group] * self.share, float(result.fun)
