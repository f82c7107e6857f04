"""Rules that combine sources through their likelihood ratios (document 004, section 4.2 and appendix B, corrected).

The answer of source j to item i has the likelihood ratio  r_ij(k) = P[answer | class k] / const:  a column of its
confusion matrix for a symbol, P_j(k | x_i) / P_j(k) for probabilities, and 1 without an answer. The evidence is log r,
an array (J, n, K).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mixent.base.priors import shifted_priors
from mixent.core.arrays import Array, softmax_columns, weighted_total
from mixent.core.blocks import NumberedRows, Whole
from mixent.core.driver import Problem, Run, Stop, run
from mixent.core.executors import Serial
from mixent.core.stats import Stats

TOL, PASSES = 1e-9, 5000


@dataclass(frozen=True)
class Fused:
    """Posteriors of the items, the class priors used in them, and the run of the optimizer (None: closed form)."""

    posterior: Array  # (n, K)
    prior: Array  # (K,)
    run: Run | None = None


def posterior_of(log_joint: Array) -> Array:
    """(n, K) posteriors, from log p(k, item) up to a constant."""
    post = np.array(log_joint.T, order="C")  # sums over a few classes are slow within rows
    softmax_columns(post)
    return post.T


def _shares(evidence: Array, share: Array | None) -> Array:
    """(J, n) weight of each source for each item: its share of a vote, zero without an answer.

    A `share` (J, n) is returned as it is. With a `share` (J,) or None, evidence that is equal for all classes is
    treated as no answer.
    """
    if share is not None and share.ndim == 2:
        return share
    answered = (np.ptp(evidence, axis=2) > 0).astype(float)
    return answered if share is None else answered * share[:, None]


def weighted_sum(evidence: Array, share: Array | None = None) -> Array:
    """(n, K) sum over the sources, weighted by their shares."""
    return evidence.sum(axis=0) if share is None else np.einsum("j,jnk->nk", share, evidence)


def mean_posterior(evidence: Array, prior: Array, share: Array | None = None) -> Array:
    """(n, K) weighted mean of the sources' posteriors; the prior where no source answers."""
    weight = _shares(evidence, share)
    total = weight.sum(axis=0)[:, None]
    mean = np.zeros(evidence.shape[1:])
    with np.errstate(divide="ignore"):
        log_prior = np.log(prior)
    for log_ratio, u in zip(evidence, weight):
        mean += u[:, None] * posterior_of(log_ratio + log_prior)
    return np.where(total > 0, mean / np.where(total > 0, total, 1.0), prior)


def majority(decisions: Array, share: Array | None = None) -> Fused:
    """Shares of the votes; `decisions` (J, n, K) are one-hot, distributions, or zero without an answer."""
    votes = weighted_sum(decisions, share)
    total = votes.sum(axis=1, keepdims=True)
    K = votes.shape[1]
    post = np.divide(votes, total, out=np.full(votes.shape, 1 / K), where=total > 0)
    return Fused(post, post.mean(axis=0))


def trimmed_mean(evidence: Array, prior: Array, trim: float = 0.2, share: Array | None = None) -> Fused:
    """Trimmed mean of the posteriors: for each class, without the lowest and highest share `trim` of the sources."""
    answered = _shares(evidence, share) > 0
    with np.errstate(divide="ignore"):
        log_prior = np.log(prior)
    posteriors = np.stack([posterior_of(log_ratio + log_prior) for log_ratio in evidence])
    posteriors[~answered] = np.nan
    posteriors.sort(axis=0)  # NaN, sources without an answer, come last
    n_answered = answered.sum(axis=0)
    n_trimmed = (trim * n_answered).astype(int)
    rank = np.arange(len(posteriors))[:, None]
    used = (rank >= n_trimmed) & (rank < n_answered - n_trimmed)
    total = np.where(used[:, :, None], posteriors, 0.0).sum(axis=0)
    post = np.where((n_answered > 0)[:, None], total, prior)
    return Fused(post / post.sum(axis=1, keepdims=True), prior)


def ml_product(
    log_ratio: Array,
    weight: Array,
    start: Array,
    *,
    labels: np.ndarray | None = None,
    pseudo_items: Array | None = None,
    tol: float = TOL,
    max_iter: int = PASSES,
) -> Fused:
    """Maximum likelihood priors for sources that are independent given the class (4.2, 4.3).

    Maximizes  sum_i w_i log sum_k p_k prod_j r_ij(k),  which is concave and never decreases in a step of EM.
    `log_ratio` (n, K) is the sum over the sources. `labels` (n,) are indices of classes, -1 for unlabelled items.
    `pseudo_items` (K,) is a number of labelled items of each class that are added to the batch.
    """
    log_ratio = with_labels_fixed(log_ratio, labels)
    rows, weights = log_ratio, weight
    if pseudo_items is not None and pseudo_items.any():
        rows = np.concatenate([rows, np.where(np.eye(len(pseudo_items)) > 0, 0.0, -np.inf)])
        weights = np.concatenate([weight, pseudo_items])
    fit = shifted_priors(rows, start, weight=weights, tol=tol, max_iter=max_iter)
    with np.errstate(divide="ignore"):
        return Fused(posterior_of(log_ratio + np.log(fit.params)), fit.params, fit)


def ml_sum(
    evidence: Array,
    weight: Array,
    start: Array,
    share: Array | None = None,
    *,
    labels: np.ndarray | None = None,
    max_iter: int = PASSES,
) -> Fused:
    """The sum rule as printed in (4.4) and (4.5), with the mean of the ratios instead of their product.

    The densities of the sources do not cancel, so that ratios on different scales are added; prefer `composite`.
    """
    return ml_product(mean_ratio(evidence, share), weight, start, labels=labels, max_iter=max_iter)


def mean_ratio(evidence: Array, share: Array | None = None) -> Array:
    """(n, K) log of the mean of the sources' ratios; zero where no source answers."""
    weight = _shares(evidence, share)
    total = weight.sum(axis=0)[:, None]
    ratio = np.einsum("jn,jnk->nk", weight, np.exp(evidence)) / np.where(total > 0, total, 1.0)
    return np.log(np.where(total > 0, np.maximum(ratio, 1e-300), 1.0))


def with_labels_fixed(log_ratio: Array, labels: np.ndarray | None) -> Array:
    """Log-likelihood ratios in which labelled items exclude all other classes."""
    if labels is None or not (labels >= 0).any():
        return log_ratio
    rows = np.flatnonzero(labels >= 0)
    out = log_ratio.copy()
    out[rows] = -np.inf
    out[rows, labels[rows]] = 0.0
    return out


def composite(
    evidence: Array,
    weight: Array,
    start: Array,
    share: Array | None = None,
    *,
    labels: np.ndarray | None = None,
    tol: float = TOL,
    max_iter: int = PASSES,
) -> Fused:
    """Priors by composite likelihood, in which each pair of a source and an item is a separate observation.

    Maximizes  sum_ij u_j w_i log sum_k p_k r_ij(k),  which is concave and never decreases in a step of EM. The priors
    are valid whatever the dependence between the sources. The fused posterior is the mean of the sources' posteriors at
    these priors.
    """
    shares = _shares(evidence, share) * weight
    answered = shares > 0
    if not answered.any():
        return Fused(np.tile(start, (evidence.shape[1], 1)), start)
    rows = [with_labels_fixed(log_ratio, labels)[items] for log_ratio, items in zip(evidence, answered)]
    fit = shifted_priors(np.concatenate(rows), start, weight=shares[answered], tol=tol, max_iter=max_iter)
    post = mean_posterior(evidence, np.maximum(fit.params, 1e-300), share)
    if labels is not None:
        post[labels >= 0] = np.eye(len(start))[labels[labels >= 0]]
    return Fused(post, fit.params, fit)


@dataclass(frozen=True)
class LatentClassStats(Stats):
    """Expected counts, and the log-likelihood."""

    counts: Array  # (S, K) expected number of items with each symbol in each class
    classes: Array  # (K,) expected number of items in each class
    log_lik: float


@dataclass(frozen=True)
class ItemAnswers:
    """The answers of all sources to the items as a sparse matrix, for models with a latent class of each item."""

    matrix: Any  # (n, S) sparse
    weight: Array  # (n,)
    labels: np.ndarray  # (n,) index of the class, -1 for unlabelled items
    evidence: Array | None = None  # (n, K) fixed log-likelihood ratios of further answers

    @cached_property
    def transposed(self) -> Any:
        return self.matrix.T.tocsr()

    def log_joint(self, table: Array, log_prior: Array) -> Array:
        """(K, n) log p(k, answers), from weights (S, K) of the answers; labelled items exclude all other classes."""
        joint = np.ascontiguousarray((self.matrix @ table).T) + log_prior[:, None]
        if self.evidence is not None:
            joint += self.evidence.T
        labelled = np.flatnonzero(self.labels >= 0)
        if len(labelled):
            own = joint[self.labels[labelled], labelled]
            joint[:, labelled] = -np.inf
            joint[self.labels[labelled], labelled] = own
        return joint

    def stats(self, table: Array, log_prior: Array) -> LatentClassStats:
        joint = self.log_joint(table, log_prior)
        log_lik = softmax_columns(joint)  # joint: the posteriors
        joint *= self.weight
        counts = self.transposed @ np.ascontiguousarray(joint.T)
        return LatentClassStats(counts, joint.sum(axis=1), weighted_total(log_lik, self.weight))


@dataclass(frozen=True)
class DawidSkeneParams:
    """Class priors, and the confusion matrix of every source."""

    prior: Array  # (K,)
    confusion: Array  # (S, K) symbols of all sources in one list


@dataclass(frozen=True)
class DawidSkene(Problem):
    """Dawid and Skene (1979): confusion matrices estimated from the batch, for sources independent given the class.

    Maximizes  sum_i w_i log sum_k p_k prod_j A_j(v_ij | k) + sum_jvk c_j(v, k) log A_j(v | k),  where the counts c of
    the calibration, with their pseudo-counts, define a Dirichlet prior. Each update maximizes a tight lower bound. The
    terms of a source with share u < 1, one of several copies, are multiplied by u in both sums.
    """

    answers: ItemAnswers
    prior_counts: Array  # (S, K), positive
    group: np.ndarray  # (S,) source of each symbol
    share: Array | None = None  # (S,) u of its source; None: one

    def prepare(self, params: DawidSkeneParams) -> tuple[Array, Array]:
        with np.errstate(divide="ignore"):
            return self._times_share(np.log(params.confusion)), np.log(params.prior)

    def _times_share(self, values: Array) -> Array:
        return values if self.share is None else self.share[:, None] * values

    def stats(self, ready: tuple[Array, Array], block: NumberedRows) -> LatentClassStats:  # type: ignore[override]
        return self.answers.stats(*ready)

    def objective(self, params: DawidSkeneParams, total: LatentClassStats) -> float:
        return total.log_lik + float((self.prior_counts * self._times_share(np.log(params.confusion))).sum())

    def update(self, params: DawidSkeneParams, total: LatentClassStats, step: float) -> DawidSkeneParams:
        counts = total.counts + self.prior_counts
        mass = np.zeros((self.group.max() + 1, counts.shape[1]))
        np.add.at(mass, self.group, counts)
        return DawidSkeneParams(total.classes / total.classes.sum(), counts / mass[self.group])


def dawid_skene(problem: DawidSkene, start: DawidSkeneParams, *, tol: float = TOL, max_iter: int = PASSES) -> Fused:
    """Fit of the model, with the posteriors of the items."""
    fit = run(problem, Whole(problem.answers.weight), start, stop=Stop(tol, max_iter), executor=Serial())
    return Fused(posterior_of(problem.answers.log_joint(*problem.prepare(fit.params)).T), fit.params.prior, fit)
