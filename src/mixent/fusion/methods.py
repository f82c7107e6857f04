"""The methods by name: each fits a batch and leaves a rule."""

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
from mixent.fusion.diagnostics import Dependence, Marginals
from mixent.fusion.discounts import Pairs
from mixent.fusion.frozen import FrozenRule, LogLinear, Mean, MeanRatio, Vote, Weighted
from mixent.fusion.pool import discounted, fit_pool
from mixent.fusion.problem import Agreement, Rule
from mixent.fusion.rules import DawidSkene, Fused, Panel, composite, dawid_skene, ml_product, ml_sum
from mixent.maxent.blocks import RowBlocks

SERIAL = 20_000  # patterns below which threads cost more than they save
POOLED = 20_000  # items that a handful of trust weights are learned from
HELD = 2.0  # items at the old priors that `auto` adds: a few items do not make a class certain
THIN = 5.0  # calibration rows of a class below which a confusion matrix is a guess
DEPENDENT = 1.64  # standard errors by which all pairs together agree too much: one false alarm in twenty
ALARM = 0.01  # false alarms of single pairs, all of them together


@dataclass(frozen=True)
class Settings:
    """Options of a fit, checked."""

    prior: Array  # (K,) of the fixed rules, and the start of the others
    safe: bool = True
    trim: float = 0.2
    tol: float = 1e-4
    max_iter: int = 1000
    held: float = 0.0  # items at these priors that are added to the batch


@dataclass(frozen=True)
class Fit:
    """What a method made of a batch."""

    rule: FrozenRule
    posterior: Array  # (P, K)
    method: str
    objective: float | None = None
    gap: float | None = None
    run: Run | None = None
    confusion: Array | None = None  # (S, K) where it was learned anew


@dataclass(frozen=True)
class Task:
    """A batch with what is known before any method begins."""

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
    """The rule's posteriors; items of known class keep it."""
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


def _ml_product(task: Task, held: float = 0.0) -> Fit:
    found = _learned(task, task.batch.ratio, held * task.settings.prior)
    return _fit(task, "ml-product", Weighted(task.share, floored(found.prior), task.confusion), found.run)


def _learned(task: Task, ratio: Array, held: Array) -> Fused:
    batch, settings = task.batch, task.settings
    return ml_product(ratio, batch.weight, settings.prior, known=batch.known, held=held, max_iter=settings.max_iter)


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


def _it(task: Task) -> Fit:
    batch, settings = task.batch, task.settings
    problem = batch.agreement(settings.safe)
    rows = RowBlocks(batch.rows)
    # the gap says when to stop; R~ has none, and goes on as long as it falls
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
    """The same rule with every source's weights on the scale of likelihood ratios, and the rest in the classes' own.

    A constant of a class may stand in the weights of any source that answered every item. There it would be lost where
    the source is silent: sum_v pooled(v) exp(weight(v, k)) = 1, as for ratios, keeps it with the classes.
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
    """R less the bound from below that its own slope gives."""
    with executor(batch) as workers:
        ready = problem.prepare(params)
        total = workers.total(lambda block: problem.stats(ready, block), rows)
        here = Rule(params.weights, problem.log_ratio(total.counts), max(params.floor, total.floor))
        ready = problem.prepare(here)
        return problem.gap(here, workers.total(lambda block: problem.stats(ready, block), rows))


def executor(batch: Batch) -> Any:
    return Serial() if batch.n_patterns < SERIAL else Threads()


def _pool(task: Task) -> Fit:
    batch = task.batch
    prior = floored(task.marginals.prior)
    some = sampled(batch)
    found = fit_pool(some.agreement(), some.rows, some.voiced(), prior, batch.layout.share, batch.layout.root)
    return _fit(
        task, "pool", Weighted(found.trust, prior, task.confusion), objective=-found.divergence / some.weight.sum()
    )


def _discounted(task: Task) -> Fit:
    batch, layout = task.batch, task.batch.layout
    some = sampled(batch)
    found = task.dependence()
    pairs = Pairs(found.correlation, found.z, found.spread)
    start = floored(task.marginals.prior)
    pool = discounted(
        some.agreement(), some.rows, some.voiced(), start, pairs, layout.share, layout.root, _excess(some)
    )
    prior = steadied_prior(task, pool.trust)
    return _fit(
        task, "discounted", Weighted(pool.trust, prior, task.confusion), objective=-pool.divergence / some.weight.sum()
    )


def _excess(batch: Batch) -> float:
    """R that rates counted on n_k rows of a class cost the truth: n (V - 1) / 2 n_k for a source of V symbols."""
    layout = batch.layout
    free = [size - n for size, n in zip(layout.sizes, layout.n_groups)]
    each = [n / (2 * one.n_rows[one.seen].mean()) for n, one in zip(free, layout.calibrations)]
    return float(batch.weight.sum() * np.average(each, weights=layout.share))


def steadied_prior(task: Task, trust: Array) -> Array:
    """Priors by EM with the trust given, held by the composite estimate with the weight its own error gives it.

    The first is sharper, but trusts the trust; the second is valid whatever the sources have in common.
    """
    marginals, correlation = task.marginals, task.dependence().correlation
    rough = marginals.prior
    variance = np.trace(marginals.batch_covariance + marginals.calibration_covariance(correlation))
    worth = float((rough * (1 - rough)).sum() / max(variance, 1e-12))  # items that would tell as much
    held = worth * rough + HELD * task.settings.prior
    return floored(_learned(task, task.batch.product(trust), held).prior)


def sampled(batch: Batch) -> Batch:
    """The batch, or some of its items, which stand for all: enough for a handful of numbers.

    They lie at even distances in an order of what is said of them, so that the order they came in is no matter.
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
    """Class priors of another batch for a rule that stands, by what its method learns them by."""
    if isinstance(rule, Vote):
        return rule.prior
    if method in ("pool", "discounted"):
        assert isinstance(rule, Weighted)
        return task.marginals.prior if method == "pool" else steadied_prior(task, rule.trust)
    if isinstance(rule, (Mean, MeanRatio)):
        return _with_means(task, composite if isinstance(rule, Mean) else ml_sum).prior
    posterior = rule.posterior(task.batch)
    ratio = np.log(np.maximum(posterior, 1e-300)) - np.log(floored(rule.prior))
    if isinstance(rule, Weighted):
        ratio = task.batch.product(rule.trust, rule.confusion)
    return _learned(task, ratio, task.settings.held * task.settings.prior).prior


def _dawid_skene(task: Task) -> Fit:
    batch, layout = task.batch, task.batch.layout
    order = batch.order
    share = layout.share[layout.source_of]
    problem = DawidSkene(batch.cells, task.counts[order], layout.group[order], share[order])
    start = Panel(task.marginals.near, layout.confusion[order])
    found = dawid_skene(problem, batch.rows, start, max_iter=task.settings.max_iter)
    confusion = np.empty_like(layout.confusion)
    assert found.run is not None
    confusion[order] = found.run.params.confusion
    weights = share[:, None] * np.log(confusion)
    prior = floored(found.prior)
    return _fit(task, "dawid-skene", LogLinear(weights, np.log(prior), prior), found.run, confusion=confusion)


def _auto(task: Task) -> Fit:
    """The product rule where sources seem independent given the class, and discounts where they do not."""
    layout = task.batch.layout
    originals = np.unique(layout.root)
    if np.median([layout.calibrations[j].n_rows[layout.calibrations[j].seen].min() for j in originals]) < THIN:
        return _dawid_skene(task)  # guesses: what the sources are worth is learned from the batch
    return _discounted(task) if dependent(task.dependence(), originals) else _ml_product(task, HELD)


def dependent(found: Dependence, originals: np.ndarray) -> bool:
    """Do all pairs together, or one of them, agree more than independence given the class would have it?"""
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
    "min-divergence": _it,
    "pool": _pool,
    "discounted": _discounted,
    "dawid-skene": _dawid_skene,
}
