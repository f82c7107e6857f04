"""The methods by name: each fits a batch and leaves a rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import norm

from mixent.base.priors import floored, shifted_priors
from mixent.core.arrays import Array, log_sum_exp
from mixent.core.driver import Run, Stop, run
from mixent.core.executors import Serial, Threads
from mixent.fusion.batch import Batch
from mixent.fusion.diagnostics import Dependence, Marginals
from mixent.fusion.discounts import Pairs
from mixent.fusion.frozen import FrozenRule, LogLinear, Mean, MeanRatio, Vote, Weighted
from mixent.fusion.pool import discounted, fit_pool
from mixent.fusion.problem import Agreement, Rule
from mixent.fusion.rules import (
    TOL,
    DawidSkene,
    Panel,
    composite,
    dawid_skene,
    ml_sum,
    only_known,
    shifted,
)
from mixent.maxent.rows import RowBlocks

SERIAL = 20_000  # patterns below which threads cost more than they save
POOLED = 20_000  # items that a handful of trust weights are learned from
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


def _ml_product(task: Task) -> Fit:
    batch = task.batch
    found = shifted(batch.ratio, batch.weight, task.settings.prior, batch.known, TOL, task.settings.max_iter)
    return _fit(task, "ml-product", Weighted(task.share, floored(found.prior), task.confusion), found.run)


def _ml_sum(task: Task) -> Fit:
    batch = task.batch
    found = ml_sum(
        batch.evidence(),
        batch.weight,
        task.settings.prior,
        task.share,
        known=batch.known,
        max_iter=task.settings.max_iter,
    )
    return _fit(task, "ml-sum", MeanRatio(floored(found.prior), task.share, task.confusion), found.run)


def _composite(task: Task, trim: float = 0.0, name: str = "composite") -> Fit:
    batch = task.batch
    found = composite(
        batch.evidence(),
        batch.weight,
        task.settings.prior,
        task.share,
        known=batch.known,
        max_iter=task.settings.max_iter,
    )
    return _fit(task, name, Mean(floored(found.prior), task.share, batch.layout.root, task.confusion, trim), found.run)


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
    fit = _fit(task, "it", rule, found, gap=None if gap is None else gap / n, objective=objective)
    return replace(fit, rule=replace(rule, prior=floored(_shares(task, fit.posterior))))


def balanced(batch: Batch, weights: Array) -> tuple[Array, Array]:
    """The same rule with every source's weights on the scale of likelihood ratios, and the rest in the classes' own.

    A constant of a class may stand in the weights of any source that answered every item. There it would be lost where
    the source is silent: sum_v pooled(v) exp(weight(v, k)) = 1, as for ratios, keeps it with the classes.
    """
    layout = batch.layout
    out, offset = weights - weights.mean(axis=1, keepdims=True), np.zeros(layout.n_classes)
    for j, here in enumerate(layout.slices):
        if batch.answered[j].all() and not layout.calibrations[j].context:
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
    found = fit_pool(some.agreement(), some.rows, some.evidence(), prior, batch.layout.share, batch.layout.root)
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
        some.agreement(), some.rows, some.evidence(), start, pairs, layout.share, layout.root, _excess(some)
    )
    prior = steadied_prior(task, pool.trust)
    return _fit(
        task, "discounted", Weighted(pool.trust, prior, task.confusion), objective=-pool.divergence / some.weight.sum()
    )


def _excess(batch: Batch) -> float:
    """R that rates counted on n_k rows of a class cost the truth: n (V - 1) / 2 n_k for a source of V symbols."""
    layout = batch.layout
    each = [(size - 1) / (2 * one.n_rows[one.seen].mean()) for size, one in zip(layout.sizes, layout.calibrations)]
    return float(batch.weight.sum() * np.average(each, weights=layout.share))


def steadied_prior(task: Task, trust: Array) -> Array:
    """Priors by EM with the trust given, held by the composite estimate with the weight its own error gives it.

    The first is sharper, but trusts the trust; the second is valid whatever the sources have in common.
    """
    batch, rough = task.batch, task.marginals.prior
    K = len(rough)
    ratio = np.einsum("j,jnk->nk", trust, batch.evidence())
    marginals, correlation = task.marginals, task.dependence().correlation
    variance = np.trace(marginals.batch_covariance + marginals.calibration_covariance(correlation))
    worth = float((rough * (1 - rough)).sum() / max(variance, 1e-12))  # items that would tell as much
    held = np.where(np.eye(K) > 0, 0.0, -np.inf)
    rows = np.concatenate([only_known(ratio, batch.known), held])
    weight = np.concatenate([batch.weight, worth * rough])
    return floored(shifted_priors(rows, np.full(K, 1 / K), weight=weight).params)


def sampled(batch: Batch) -> Batch:
    """The batch, or items of it at even distances: enough for a handful of numbers."""
    if batch.n_patterns <= POOLED:
        return batch
    rows = np.unique(np.linspace(0, batch.n_patterns - 1, POOLED).astype(np.intp))
    rows = np.union1d(rows, np.flatnonzero(batch.known >= 0))
    return Batch(batch.layout, batch.answers.part(rows), batch.weight[rows], batch.known[rows])


def _dawid_skene(task: Task) -> Fit:
    batch, layout = task.batch, task.batch.layout
    order = batch.order
    problem = DawidSkene(batch.cells, layout.counts[order], layout.group[order], layout.share[layout.source_of][order])
    start = Panel(floored(task.marginals.prior), layout.confusion[order])
    found = dawid_skene(problem, batch.rows, start, max_iter=task.settings.max_iter)
    confusion = np.empty_like(layout.confusion)
    assert found.run is not None
    confusion[order] = found.run.params.confusion
    weights = layout.share[layout.source_of][:, None] * np.log(confusion)
    prior = floored(found.prior)
    return _fit(task, "dawid-skene", LogLinear(weights, np.log(prior), prior), found.run, confusion=confusion)


def _auto(task: Task) -> Fit:
    """The product rule where sources seem independent given the class, and discounts where they do not."""
    layout = task.batch.layout
    originals = np.unique(layout.root)
    if np.median([layout.calibrations[j].n_rows[layout.calibrations[j].seen].min() for j in originals]) < THIN:
        return _dawid_skene(task)  # guesses: what the sources are worth is learned from the batch
    return _discounted(task) if dependent(task.dependence(), originals) else _ml_product(task)


def dependent(found: Dependence, originals: np.ndarray) -> bool:
    """Do all pairs together, or one of them, agree more than independence given the class would have it?"""
    z = found.z[np.ix_(originals, originals)][np.triu_indices(len(originals), 1)]
    z = z[np.isfinite(z)]
    return found.overall > DEPENDENT or bool(len(z) and z.max() > norm.isf(ALARM / len(z)))


METHODS: dict[str, Callable[[Task], Fit]] = {
    "auto": _auto,
    "majority": _majority,
    "sum": _sum,
    "product": _product,
    "ml-product": _ml_product,
    "ml-sum": _ml_sum,
    "composite": _composite,
    "trimmed-mean": _trimmed,
    "it": _it,
    "pool": _pool,
    "discounted": _discounted,
    "dawid-skene": _dawid_skene,
}
