"""Rules that combine sources through their likelihood ratios (document 004, section 4.2 and appendix B, corrected).

The answer of source j to item i has the likelihood ratio  r_ij(k) = P[answer | class k] / const:  for a symbol the
column of its confusion matrix, for probabilities P_j(k | x_i) / P_j(k). Without an answer r = 1. Evidence is log r, an
array (J, n, K).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixent.base.priors import shifted_priors
from mixent.core.arrays import Array, log_sum_exp, softmax_columns
from mixent.core.driver import Problem, Run, Stop, run
from mixent.core.executors import Serial
from mixent.core.stats import Stats
from mixent.maxent.blocks import RowBlocks, Rows
from mixent.maxent.cells import Cells

TOL, PASSES = 1e-9, 5000


@dataclass(frozen=True)
class Fused:
    """Posteriors of the items, the class priors used in them, and the run of the optimizer (None: closed form)."""

    posterior: Array  # (n, K)
    prior: Array  # (K,)
    run: Run | None = None


def posterior_of(log_joint: Array) -> Array:
    """(n, K) of log p(k, item)."""
    post = np.array(log_joint.T, order="C")  # sums over a few classes are slow within rows
    softmax_columns(post)
    return post.T


def _shares(evidence: Array, share: Array | None) -> Array:
    """(J, n) weight of each source on each item: its share of a vote, zero without an answer.

    Given for every item, it is zero without an answer; otherwise constant evidence is taken for no answer.
    """
    if share is not None and share.ndim == 2:
        return share
    answered = (np.ptp(evidence, axis=2) > 0).astype(float)
    return answered if share is None else answered * share[:, None]


def added(evidence: Array, share: Array | None = None) -> Array:
    """(n, K) sum over the sources."""
    return evidence.sum(axis=0) if share is None else np.einsum("j,jnk->nk", share, evidence)


def mean_posterior(evidence: Array, prior: Array, share: Array | None = None) -> Array:
    """(n, K); the prior where no source answers."""
    weight = _shares(evidence, share)
    total = weight.sum(axis=0)[:, None]
    mean = np.zeros(evidence.shape[1:])
    with np.errstate(divide="ignore"):
        log_prior = np.log(prior)
    for one, u in zip(evidence, weight):
        mean += u[:, None] * posterior_of(one + log_prior)
    return np.where(total > 0, mean / np.where(total > 0, total, 1.0), prior)


def majority(decisions: Array, share: Array | None = None) -> Fused:
    """Shares of the votes; `decisions` (J, n, K) are one-hot, or distributions, or zero without an answer."""
    votes = added(decisions, share)
    total = votes.sum(axis=1, keepdims=True)
    K = votes.shape[1]
    post = np.divide(votes, total, out=np.full(votes.shape, 1 / K), where=total > 0)
    return Fused(post, post.mean(axis=0))


def trimmed_mean(evidence: Array, prior: Array, trim: float = 0.2, share: Array | None = None) -> Fused:
    """Mean of the posteriors without the lowest and the highest `trim` of the sources that answer, class by class."""
    answered = _shares(evidence, share) > 0
    with np.errstate(divide="ignore"):
        log_prior = np.log(prior)
    each = np.stack([posterior_of(one + log_prior) for one in evidence])
    each[~answered] = np.nan
    each.sort(axis=0)  # sources without an answer come last
    n_answered = answered.sum(axis=0)
    cut = (trim * n_answered).astype(int)
    rank = np.arange(len(each))[:, None]
    kept = (rank >= cut) & (rank < n_answered - cut)
    total = np.where(kept[:, :, None], each, 0.0).sum(axis=0)
    post = np.where((n_answered > 0)[:, None], total, prior)
    return Fused(post / post.sum(axis=1, keepdims=True), prior)


def ml_product(
    log_ratio: Array,
    weight: Array,
    start: Array,
    *,
    known: np.ndarray | None = None,
    pseudo_items: Array | None = None,
    tol: float = TOL,
    max_iter: int = PASSES,
) -> Fused:
    """Maximum likelihood priors for sources that are independent given the class (4.2, 4.3).

    Maximizes  sum_i w_i log sum_k p_k prod_j r_ij(k):  concave, and each step of EM increases it. `log_ratio` (n, K) is
    the sum over sources; `pseudo_items` (K,) of known class are added to the batch.
    """
    log_ratio = only_known(log_ratio, known)
    rows, weights = log_ratio, weight
    if pseudo_items is not None and pseudo_items.any():
        rows = np.concatenate([rows, np.where(np.eye(len(pseudo_items)) > 0, 0.0, -np.inf)])
        weights = np.concatenate([weight, pseudo_items])
    found = shifted_priors(rows, start, weight=weights, tol=tol, max_iter=max_iter)
    with np.errstate(divide="ignore"):
        return Fused(posterior_of(log_ratio + np.log(found.params)), found.params, found)


def ml_sum(
    evidence: Array,
    weight: Array,
    start: Array,
    share: Array | None = None,
    *,
    known: np.ndarray | None = None,
    max_iter: int = PASSES,
) -> Fused:
    """The rule as printed in (4.4) and (4.5), with the mean of the ratios in place of their product.

    The densities of the sources do not cancel, so that ratios on different scales are added; prefer `composite`.
    """
    return ml_product(mean_ratio(evidence, share), weight, start, known=known, max_iter=max_iter)


def mean_ratio(evidence: Array, share: Array | None = None) -> Array:
    """(n, K) log of the mean of the sources' ratios; zero where no source answers."""
    weight = _shares(evidence, share)
    total = weight.sum(axis=0)[:, None]
    ratio = np.einsum("jn,jnk->nk", weight, np.exp(evidence)) / np.where(total > 0, total, 1.0)
    return np.log(np.where(total > 0, np.maximum(ratio, 1e-300), 1.0))


def only_known(log_ratio: Array, known: np.ndarray | None) -> Array:
    """Rows of known class with likelihood ratio zero for all other classes."""
    if known is None or not (known >= 0).any():
        return log_ratio
    rows = np.flatnonzero(known >= 0)
    out = log_ratio.copy()
    out[rows] = -np.inf
    out[rows, known[rows]] = 0.0
    return out


def composite(
    evidence: Array,
    weight: Array,
    start: Array,
    share: Array | None = None,
    *,
    known: np.ndarray | None = None,
    tol: float = TOL,
    max_iter: int = PASSES,
) -> Fused:
    """Priors by composite likelihood: each source with each item is a row of its own.

    Maximizes  sum_ij u_j w_i log sum_k p_k r_ij(k):  concave, each step of EM increases it, and it is valid however the
    sources depend on each other. The fused posterior is the mean of the sources' posteriors under these priors.
    """
    shares = _shares(evidence, share) * weight
    there = shares > 0
    if not there.any():
        return Fused(np.tile(start, (evidence.shape[1], 1)), start)
    rows = [only_known(one, known)[here] for one, here in zip(evidence, there)]
    found = shifted_priors(np.concatenate(rows), start, weight=shares[there], tol=tol, max_iter=max_iter)
    post = mean_posterior(evidence, np.maximum(found.params, 1e-300), share)
    if known is not None:
        post[known >= 0] = np.eye(len(start))[known[known >= 0]]
    return Fused(post, found.params, found)


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

    Maximizes  sum_i w_i log sum_k p_k prod_j A_j(v_ij | k) + sum_jvk c_j(v, k) log A_j(v | k):  the counts c of the
    calibration, with the pseudo-counts of their smoothing, are a Dirichlet prior. Each update maximizes a lower bound
    that touches it. A source with share u < 1, one of several copies, has its terms of both sums times u.
    """

    cells: Cells
    prior_counts: Array  # (S, K), positive
    group: np.ndarray  # (S,) source of each symbol
    share: Array | None = None  # (S,) u of its source; None: one

    def prepare(self, params: Panel) -> tuple[Array, Array]:
        with np.errstate(divide="ignore"):
            return self.cells.table(self._shared(np.log(params.confusion))), np.log(params.prior)[:, None]

    def _shared(self, values: Array) -> Array:
        return values if self.share is None else self.share[:, None] * values

    def stats(self, ready: tuple[Array, Array], block: Rows) -> PanelStats:  # type: ignore[override]
        joint = self.cells.looked_up(ready[0], block) + ready[1]
        known = block.target.any(axis=0)
        if known.any():
            joint = np.where(known & (block.target == 0), -np.inf, joint)
        norm = log_sum_exp(joint, axis=0)
        post = np.exp(joint - norm) * block.weight
        return PanelStats(self.cells.expected(post, block), post.sum(axis=1), float(norm @ block.weight))

    def objective(self, params: Panel, total: PanelStats) -> float:
        return total.log_lik + float((self.prior_counts * self._shared(np.log(params.confusion))).sum())

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
    return Fused(posterior_of(joint), found.params.prior, found)
