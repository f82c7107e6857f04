"""Rules that combine sources through their likelihood ratios (document 004, section 4.2 and appendix B, corrected).

Source j says of item i something of likelihood ratio  r_ij(k) = P[what it says | class k] / const:  for a symbol the
column of its confusion matrix, for probabilities P_j(k | x_i) / P_j(k). A source that is silent has r = 1. Evidence is
kept as log r, an array (J, n, K).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixent.base.priors import shifted_priors
from mixent.core.arrays import Array, log_sum_exp
from mixent.core.driver import Problem, Run, Stop, run
from mixent.core.executors import Serial
from mixent.core.stats import Stats
from mixent.maxent.cells import Cells
from mixent.maxent.rows import RowBlocks, Rows

TOL, PASSES = 1e-9, 5000


@dataclass(frozen=True)
class Fused:
    """Posteriors of the items, the priors of the batch they go with, and how they were found (None: by one formula)."""

    posterior: Array  # (n, K)
    prior: Array  # (K,)
    run: Run | None = None


def _posterior(log_joint: Array) -> Array:
    """(n, K) of log p(k, item)."""
    post = np.exp(log_joint - log_sum_exp(log_joint, axis=1)[:, None])
    return post / post.sum(axis=1, keepdims=True)


def fixed_product(evidence: Array, prior: Array) -> Fused:
    """q_i(k) ~ prior_k prod_j r_ij(k): naive Bayes with the priors given."""
    return Fused(_posterior(evidence.sum(axis=0) + np.log(prior)), prior)


def fixed_sum(evidence: Array, prior: Array) -> Fused:
    """q_i = mean over the sources that answer of their posteriors under the priors given."""
    return Fused(_mean_posterior(evidence, prior), prior)


def _mean_posterior(evidence: Array, prior: Array) -> Array:
    each = np.stack([_posterior(one + np.log(prior)) for one in evidence])  # (J, n, K)
    spoke = _spoke(evidence)
    total = spoke.sum(axis=0)
    mean = np.einsum("jn,jnk->nk", spoke, each) / np.maximum(total, 1)[:, None]
    return np.where(total[:, None] > 0, mean, prior)


def _spoke(evidence: Array) -> Array:
    """(J, n) ones where a source answered."""
    return (np.ptp(evidence, axis=2) > 0).astype(float)


def majority(decisions: Array) -> Fused:
    """Shares of the votes; `decisions` (J, n, K) are one-hot, or pmfs, or zero where a source is silent."""
    votes = decisions.sum(axis=0)
    total = votes.sum(axis=1, keepdims=True)
    K = votes.shape[1]
    post = np.divide(votes, total, out=np.full(votes.shape, 1 / K), where=total > 0)
    return Fused(post, post.mean(axis=0))


def trimmed_mean(evidence: Array, prior: Array, share: float = 0.2) -> Fused:
    """Mean of the posteriors without the lowest and the highest `share` of the sources, class by class."""
    each = np.stack([_posterior(one + np.log(prior)) for one in evidence])
    cut = int(share * len(each))
    kept = np.sort(each, axis=0)[cut : len(each) - cut]
    post = kept.mean(axis=0)
    return Fused(post / post.sum(axis=1, keepdims=True), prior)


def ml_product(evidence: Array, weight: Array, start: Array, *, tol: float = TOL, max_iter: int = PASSES) -> Fused:
    """Priors that make the batch most probable if sources are independent given the class (4.2, 4.3).

    Maximises  sum_i w_i log sum_k p_k prod_j r_ij(k):  concave, and each step of EM raises it.
    """
    return _shifted(evidence.sum(axis=0), weight, start, tol, max_iter)


def ml_sum(evidence: Array, weight: Array, start: Array, *, tol: float = TOL, max_iter: int = PASSES) -> Fused:
    """As (4.4) and (4.5) print it, with the mean of the ratios in place of their product.

    The densities of the sources do not cancel in it, so that the ratios of different sources are added as if they were
    on one scale: `composite` is the sound rule.
    """
    spoke = _spoke(evidence)[:, :, None]
    total = np.maximum(spoke.sum(axis=0), 1)
    ratio = np.where(spoke.sum(axis=0) > 0, (spoke * np.exp(evidence)).sum(axis=0) / total, 1.0)
    return _shifted(np.log(np.maximum(ratio, 1e-300)), weight, start, tol, max_iter)


def _shifted(log_ratio: Array, weight: Array, start: Array, tol: float, max_iter: int) -> Fused:
    found = shifted_priors(log_ratio, start, weight=weight, tol=tol, max_iter=max_iter)
    with np.errstate(divide="ignore"):
        return Fused(_posterior(log_ratio + np.log(found.params)), found.params, found)


def composite(evidence: Array, weight: Array, start: Array, *, tol: float = TOL, max_iter: int = PASSES) -> Fused:
    """Priors by composite likelihood: each source with each item is a row of its own.

    Maximises  sum_ij w_i log sum_k p_k r_ij(k):  concave, each step of EM raises it, and it needs no word on how
    sources depend on each other. The fused posterior is the mean of the sources' own under these priors.
    """
    spoke = _spoke(evidence) > 0
    rows = [one[there] for one, there in zip(evidence, spoke)]
    weights = [weight[there] for there in spoke]
    if not spoke.any():
        return Fused(np.tile(start, (evidence.shape[1], 1)), start)
    found = shifted_priors(np.concatenate(rows), start, weight=np.concatenate(weights), tol=tol, max_iter=max_iter)
    return Fused(_mean_posterior(evidence, np.maximum(found.params, 1e-300)), found.params, found)


@dataclass(frozen=True)
class Panel:
    """Parameters of Dawid and Skene's model: priors of the classes, and every source's confusion matrix."""

    prior: Array  # (K,)
    confusion: Array  # (S, K) of all sources' symbols, one below the other


@dataclass(frozen=True)
class PanelStats(Stats):
    counts: Array  # (S, K) expected rows of each symbol with each class
    classes: Array  # (K,)
    log_lik: float


@dataclass(frozen=True)
class DawidSkene(Problem):
    """Dawid and Skene (1979): confusion matrices learned from the batch itself, independent given the class.

    Maximises  sum_i w_i log sum_k p_k prod_j A_j(v_ij | k) + sum_jvk c_j(v, k) log A_j(v | k):  the counts c of the
    calibration, with the pseudo-counts of their smoothing, are a Dirichlet prior. Each update maximises a lower bound
    that touches it.
    """

    cells: Cells
    prior_counts: Array  # (S, K), positive
    group: np.ndarray  # (S,) source of each symbol

    def prepare(self, params: Panel) -> tuple[Array, Array]:
        with np.errstate(divide="ignore"):
            return self.cells.table(np.log(params.confusion)), np.log(params.prior)[:, None]

    def stats(self, ready: tuple[Array, Array], block: Rows) -> PanelStats:  # type: ignore[override]
        joint = self.cells.looked_up(ready[0], block) + ready[1]
        norm = log_sum_exp(joint, axis=0)
        post = np.exp(joint - norm) * block.weight
        return PanelStats(self.cells.expected(post, block), post.sum(axis=1), float(norm @ block.weight))

    def objective(self, params: Panel, total: PanelStats) -> float:
        return total.log_lik + float((self.prior_counts * np.log(params.confusion)).sum())

    def update(self, params: Panel, total: PanelStats, step: float) -> Panel:
        counts = total.counts + self.prior_counts
        mass = np.zeros((self.group.max() + 1, counts.shape[1]))
        np.add.at(mass, self.group, counts)
        return Panel(total.classes / total.classes.sum(), counts / mass[self.group])


def dawid_skene(problem: DawidSkene, rows: Rows, start: Panel, *, tol: float = TOL, max_iter: int = PASSES) -> Fused:
    """Fit, and the posteriors of the items."""
    found = run(problem, RowBlocks(rows), start, stop=Stop(tol, max_iter), executor=Serial())
    table, prior = problem.prepare(found.params)
    joint = (problem.cells.looked_up(table, rows) + prior).T
    return Fused(_posterior(joint), found.params.prior, found)
