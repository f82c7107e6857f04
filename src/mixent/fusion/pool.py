"""Logarithmic pools with one trust weight for each source, chosen without labels.

    q_i(k) ~ p_k prod_j r_ij(k)^t_j,   t_j >= 0,

r_ij(k) the likelihood ratio of what source j says, and p the priors by composite likelihood. The weights t minimise the
same divergence R (4.13) that the free posteriors of "min-divergence" minimize, over a family of J numbers instead of
one for every item and class: with independent sources they are close to one, as in naive Bayes; copies share the weight
of one source; and a small batch cannot be fitted exactly. R is not convex in t: several starts, the lowest kept.

R knows of dependence only through the constraints it breaks, and these are counted on few rows. Pairs of sources tell
of it directly: `discounted` starts from what they tell (see `discounts`) and lets R move the weights as far as the rows
behind it bear.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.core.arrays import Array, log_sum_exp
from mixent.fusion.discounts import MOST, Pairs, discounts
from mixent.fusion.problem import Agreement
from mixent.fusion.rules import posterior_of
from mixent.maxent.blocks import Rows

STARTS = (1.0, 0.5, 0.0)  # of all weights, between 1 / J and one
REACH = 0.4  # how far R may move a discount; by simulation, between copies (less is better) and thin dependence (more)


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
    groups = _Groups.of(len(evidence), share, root)
    least = 1.0 / groups.n
    best = None
    for start in STARTS:
        first = np.full(groups.n, least + start * (1.0 - least))
        found = groups.minimised(lambda t: value_and_slope(problem, rows, evidence, t, prior), first)
        if best is None or found[1] < best[1]:
            best = found
    assert best is not None
    return _pool(evidence, best[0], prior, best[1])


def discounted(
    problem: Agreement, rows: Rows, evidence: Array, prior: Array, pairs: Pairs, share: Array, root: Any, excess: float
) -> Pool:
    """The discounts, moved by R:  minimises  R / (1 + excess) + sum ((t - discount) / REACH)^2 / 2.

    R is a sum over the items, but its constraints were counted on few rows: `excess` is what the true posteriors have
    of it for that reason alone, in nats for a source, and what R says to less than that is noise.
    """
    groups = _Groups.of(len(evidence), share, root)
    first = discounts(pairs.part(groups.first))
    scale = 1.0 / (1.0 + excess)

    def value(t: Array) -> tuple[float, Array]:
        R, slope = value_and_slope(problem, rows, evidence, t, prior)
        return scale * R, scale * slope

    trust, _ = groups.minimised(value, first, held=REACH)
    return _pool(evidence, trust, prior, value_and_slope(problem, rows, evidence, trust, prior)[0])


def _pool(evidence: Array, trust: Array, prior: Array, divergence: float) -> Pool:
    return Pool(trust, prior, posterior_of(pooled(evidence, trust, prior)), float(divergence))


@dataclass(frozen=True)
class _Groups:
    """Copies as one: a weight for each group, times the share of each member."""

    owner: np.ndarray  # (J,)
    votes: Array  # (J,)
    first: np.ndarray  # (G,) the source that stands for each

    @staticmethod
    def of(J: int, share: Array | None, root: Any) -> _Groups:
        _, first, owner = np.unique(np.arange(J) if root is None else root, return_index=True, return_inverse=True)
        return _Groups(owner, np.ones(J) if share is None else share, first)

    @property
    def n(self) -> int:
        return len(self.first)

    def minimised(self, value: Any, first: Array, held: float | None = None) -> tuple[Array, float]:
        """Weights (J,) of the least value from this start, held to it with a standard deviation, and the value."""
        from scipy.optimize import minimize

        def of_groups(t: Array) -> tuple[float, Array]:
            total, slope = value(t[self.owner] * self.votes)
            slope = np.bincount(self.owner, slope * self.votes, minlength=self.n).astype(float)
            if held is not None:
                total += 0.5 * float((((t - first) / held) ** 2).sum())
                slope += (t - first) / held**2
            return total, slope

        found = minimize(of_groups, first, jac=True, method="L-BFGS-B", bounds=[(0.0, MOST)] * self.n)
        return found.x[self.owner] * self.votes, float(found.fun)
