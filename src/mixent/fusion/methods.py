"""The methods by name: each fits a batch and returns a rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import norm

from mixent.base.priors import floored
from mixent.core.arrays import Array, log_sum_exp
from mixent.core.driver import Run, Stop, run
from mixent.core.executors import Serial, Threads
from mixent.fusion.batch import Batch
from mixent.fusion.batch_priors import Marginals
from mixent.fusion.dependence import Dependence
from mixent.fusion.discounts import Pairs
from mixent.fusion.frozen import FrozenRule, LogLinear, Mean, MeanRatio, Vote, Weighted
from mixent.fusion.pool import discounted, fit_pool
from mixent.fusion.problem import Agreement, Rule
from mixent.fusion.rules import DawidSkene, Fused, Panel, composite, dawid_skene, ml_product, ml_sum
from mixent.maxent.blocks import RowBlocks

SERIAL = 20_000  # patterns below which threads cost more than they save
POOLED = 20_000  # items that trust weights are learned from
PSEUDO_ITEMS = 2.0  # items at the reference priors that `auto` adds, against extreme priors of small batches
THIN = 5.0  # calibration rows of a class below which a confusion matrix is a guess
DEPENDENT = 1.64  # z of all pairs together: false positive rate 5 %
ALARM = 0.01  # false positive rate of single pairs, over all of them


@dataclass(frozen=True)
class Settings:
    """Options of a fit, checked."""

    prior: Array  # (K,) of the fixed rules, and the start of the others
    safe: bool = True
    trim: float = 0.2
    tol: float = 1e-4
    max_iter: int = 1000
    pseudo_items: float = 0.0  # items at these priors that are added to the batch


@dataclass(frozen=True)
class Fit:
    """The result of a method on a batch."""

    rule: FrozenRule
    posterior: Array  # (P, K)
    method: str
    objective: float | None = None
    gap: float | None = None
    run: Run | None = None
    confusion: Array | None = None  # (S, K) where it was learned anew


@dataclass(frozen=True)
class Task:
    """A batch, and what is known of it before a method is run."""

    batch: Batch
    marginals: Marginals
    settings: Settings
    dependence: Callable[[], Dependence]
    counts: Array  # (S, K) of the calibrations, without the labels that are among the items

    @property
    def share(self) -> Array:
        return self.batch.layout.share

    @property
    def confusion(self) -> Array:
        return self.batch.layout.confusion


def _fit(task: Task, method: str, rule: FrozenRule, found: Run | None = None, **more: Any) -> Fit:
    """The posteriors of a rule; items of known class keep it."""
    posterior = rule.posterior(task.batch)
    known = np.flatnonzero(task.batch.known >= 0)
    posterior[known] = np.eye(posterior.shape[1])[task.batch.known[known]]
    objective = None if found is None else found.objective / float(task.batch.weight.sum())
    return Fit(rule, posterior, method, **{"objective": objective, "run": found, **more})


def _majority(task: Task) -> Fit:
    K = task.batch.layout.n_classes
    fit = _fit(task, "majority", Vote(np.full(K, 1 / K), task.share))
    return replace(fit, rule=replace(fit.rule, prior=_shares(task, fit.posterior)))  # type: ignore[type-var]


def _shares(task: Task, posterior: Array) -> Array:
    return task.batch.weight @ posterior / task.batch.weight.sum()


def _sum(task: Task) -> Fit:
    layout = task.batch.layout
    return _fit(task, "sum", Mean(task.settings.prior, task.share, layout.root, task.confusion))


def _product(task: Task) -> Fit:
    return _fit(task, "product", Weighted(task.share, task.settings.prior, task.confusion))


def _ml_product(task: Task, pseudo_items: float = 0.0) -> Fit:
    found = _learned(task, task.batch.ratio, pseudo_items * task.settings.prior)
    return _fit(task, "ml-product", Weighted(task.share, floored(found.prior), task.confusion), found.run)


def _learned(task: Task, ratio: Array, pseudo_items: Array) -> Fused:
    batch, settings = task.batch, task.settings
    return ml_product(
        ratio, batch.weight, settings.prior, known=batch.known, pseudo_items=pseudo_items, max_iter=settings.max_iter
    )


def _with_means(task: Task, rule: Callable[..., Fused]) -> Fused:
    batch = task.batch
    return rule(
        batch.evidence(),
        batch.weight,
        task.settings.prior,
        batch.shares,
        known=batch.known,
        max_iter=task.settings.max_iter,
    )


def _ml_sum(task: Task) -> Fit:
    found = _with_means(task, ml_sum)
    return _fit(task, "ml-sum", MeanRatio(floored(found.prior), task.share, task.confusion), found.run)


def _composite(task: Task, trim: float = 0.0, name: str = "composite") -> Fit:
    found = _with_means(task, composite)
    root = task.batch.layout.root
    return _fit(task, name, Mean(floored(found.prior), task.share, root, task.confusion, trim), found.run)


def _trimmed(task: Task) -> Fit:
    return _composite(task, task.settings.trim, "trimmed-mean")


def _min_divergence(task: Task) -> Fit:
    batch, settings = task.batch, task.settings
    problem = batch.agreement(settings.safe)
    rows = RowBlocks(batch.rows)
    # stopped by the gap; R~ has none, and is run until it no longer decreases
    stop = Stop(1e-12, settings.max_iter, gap=settings.tol) if settings.safe else Stop(1e-6, settings.max_iter)
    start = Rule.uniform(batch.layout.n_symbols, batch.layout.n_classes)
    found = run(problem, rows, start, stop=stop, executor=executor(batch))
    gap = _certificate(problem, rows, found.params, batch) if settings.safe else None
    rule = LogLinear(*balanced(batch, batch.rule(found.params)), np.ones(batch.layout.n_classes))
    n = float(batch.weight.sum())
    # R~ is a sum over classes, not over items
    objective = found.objective / n if settings.safe else found.objective
    fit = _fit(task, "min-divergence", rule, found, gap=None if gap is None else gap / n, objective=objective)
    answered = batch.weight * batch.answered.any(axis=0)
    share = answered @ fit.posterior / answered.sum() if answered.any() else settings.prior
    return _fit(task, "min-divergence", replace(rule, prior=floored(share)), found, gap=fit.gap, objective=objective)


def balanced(batch: Batch, weights: Array) -> tuple[Array, Array]:
    """The same rule with the weights of every source on the scale of likelihood ratios, and the rest in the offsets.

    A constant of a class may be part of the weights of any source that answered every item, and would be lost for new
    items without its answer: sum_v pooled(v) exp(weight(v, k)) = 1, as for ratios, keeps it in the offsets.
    """
    layout = batch.layout
    out, offset = weights - weights.mean(axis=1, keepdims=True), np.zeros(layout.n_classes)
    for j, here in enumerate(layout.slices):
        if batch.answered[j].all() and layout.n_groups[j] == 1:
            constant = log_sum_exp(out[here] + np.log(layout.pooled[here])[:, None], axis=0)
            out[here] -= constant
            offset += constant
    return out, offset


def _certificate(problem: Agreement, rows: RowBlocks, params: Rule, batch: Batch) -> float:
    """R minus the lower bound given by its gradient."""
    with executor(batch) as workers:
        ready = problem.prepare(params)
        total = workers.total(lambda block: problem.stats(ready, block), rows)
        here = Rule(params.weights, problem.log_ratio(total.counts), max(params.floor, total.floor))
        ready = problem.prepare(here)
        return problem.gap(here, workers.total(lambda block: problem.stats(ready, block), rows))


def executor(batch: Batch) -> Any:  # an executor, of blocks of any kind
    return Serial() if batch.n_patterns < SERIAL else Threads()


def _pool(task: Task) -> Fit:
    batch = task.batch
    prior = floored(task.marginals.prior)
    some = sampled(batch)
    found = fit_pool(some.agreement(), some.rows, some.product_evidence(), prior, batch.layout.share, batch.layout.root)
    return _fit(
        task, "pool", Weighted(found.trust, prior, task.confusion), objective=-found.divergence / some.weight.sum()
    )


def _discounted(task: Task) -> Fit:
    batch, layout = task.batch, task.batch.layout
    some = sampled(batch)
    found = task.dependence()
    pairs = Pairs(found.correlation, found.z, found.std)
    start = floored(task.marginals.prior)
    pool = discounted(
        some.agreement(), some.rows, some.product_evidence(), start, pairs, layout.share, layout.root, _excess(some)
    )
    prior = stabilized_prior(task, pool.trust)
    return _fit(
        task, "discounted", Weighted(pool.trust, prior, task.confusion), objective=-pool.divergence / some.weight.sum()
    )


def _excess(batch: Batch) -> float:
    """Expected R of the true posteriors, with rates counted on n_k rows: n (V - 1) / 2 n_k for V symbols."""
    layout = batch.layout
    free = [size - n for size, n in zip(layout.sizes, layout.n_groups)]
    each = [n / (2 * one.n_rows[one.seen].mean()) for n, one in zip(free, layout.calibrations)]
    return float(batch.weight.sum() * np.average(each, weights=layout.share))


def stabilized_prior(task: Task, trust: Array) -> Array:
    """Priors by EM with these trust weights, with the composite estimate as prior, weighted by its standard error.

    The first is more precise, but relies on the weights; the second is valid however the sources depend.
    """
    marginals, correlation = task.marginals, task.dependence().correlation
    rough = marginals.prior
    variance = np.trace(marginals.batch_covariance + marginals.calibration_covariance(correlation))
    n_equivalent = float((rough * (1 - rough)).sum() / max(variance, 1e-12))  # labelled items with the same variance
    pseudo_items = n_equivalent * rough + PSEUDO_ITEMS * task.settings.prior
    return floored(_learned(task, task.batch.product(trust), pseudo_items).prior)


def sampled(batch: Batch) -> Batch:
    """The batch, or a systematic sample of its items.

    They are evenly spaced in an order of their answers, so that the order of the rows does not matter.
    """
    if batch.n_patterns <= POOLED:
        return batch
    open_, known = np.flatnonzero(batch.known < 0), np.flatnonzero(batch.known >= 0)
    one_way = np.random.default_rng(0).normal(size=(batch.layout.n_symbols, 1))
    order = open_[np.argsort(batch.logits(one_way)[0][open_], kind="stable")]
    chosen = order[np.unique(np.linspace(0, len(order) - 1, POOLED).astype(np.intp))]
    rows = np.concatenate([chosen, known])
    weight = batch.weight[rows]
    weight[: len(chosen)] *= batch.weight[open_].sum() / weight[: len(chosen)].sum()
    return Batch(batch.layout, batch.answers.part(rows), weight, batch.known[rows])


def window_prior(task: Task, method: str, rule: FrozenRule) -> Array:
    """Class priors of another batch for a fitted rule, estimated as its method does."""
    if isinstance(rule, Vote):
        return rule.prior
    if method in ("pool", "discounted"):
        assert isinstance(rule, Weighted)
        return task.marginals.prior if method == "pool" else stabilized_prior(task, rule.trust)
    if isinstance(rule, (Mean, MeanRatio)):
        return _with_means(task, composite if isinstance(rule, Mean) else ml_sum).prior
    posterior = rule.posterior(task.batch)
    ratio = np.log(np.maximum(posterior, 1e-300)) - np.log(floored(rule.prior))
    if isinstance(rule, Weighted):
        ratio = task.batch.product(rule.trust, rule.confusion)
    return _learned(task, ratio, task.settings.pseudo_items * task.settings.prior).prior


def _dawid_skene(task: Task) -> Fit:
    batch, layout = task.batch, task.batch.layout
    order = batch.order
    share = layout.share[layout.source_of]
    problem = DawidSkene(batch.cells, task.counts[order], layout.group[order], share[order])
    start = Panel(task.marginals.interior_prior, layout.confusion[order])
    found = dawid_skene(problem, batch.rows, start, max_iter=task.settings.max_iter)
    confusion = np.empty_like(layout.confusion)
    assert found.run is not None
    confusion[order] = found.run.params.confusion
    weights = share[:, None] * np.log(confusion)
    prior = floored(found.prior)
    return _fit(task, "dawid-skene", LogLinear(weights, np.log(prior), prior), found.run, confusion=confusion)


def _auto(task: Task) -> Fit:
    """The product rule where sources appear independent given the class, and discounts where they do not."""
    layout = task.batch.layout
    originals = np.unique(layout.root)
    if np.median([layout.calibrations[j].n_rows[layout.calibrations[j].seen].min() for j in originals]) < THIN:
        return _dawid_skene(task)  # assumed calibrations: the confusion matrices are estimated from the batch
    return _discounted(task) if dependent(task.dependence(), originals) else _ml_product(task, PSEUDO_ITEMS)


def dependent(found: Dependence, originals: np.ndarray) -> bool:
    """Whether all pairs together, or one of them, agree significantly more than under independence given the class."""
    z = found.z[np.ix_(originals, originals)][np.triu_indices(len(originals), 1)]
    z = z[np.isfinite(z)]
    return found.overall_z > DEPENDENT or bool(len(z) and z.max() > norm.isf(ALARM / len(z)))


METHODS: dict[str, Callable[[Task], Fit]] = {
    "auto": _auto,
    "majority": _majority,
    "sum": _sum,
    "product": _product,
    "ml-product": _ml_product,
    "ml-sum": _ml_sum,
    "composite": _composite,
    "trimmed-mean": _trimmed,
    "min-divergence": _min_divergence,
    "pool": _pool,
    "discounted": _discounted,
    "dawid-skene": _dawid_skene,
}
