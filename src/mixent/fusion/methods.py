"""The methods of `Fuser` by name; each fits a rule to a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import norm

from mixent.base.priors import floored
from mixent.core.arrays import Array, log_sum_exp
from mixent.core.driver import Run, Stop, run
from mixent.core.executors import Serial, Threads
from mixent.fusion.batch import Batch
from mixent.fusion.batch_priors import Marginals, all_marginals
from mixent.fusion.crowd_models import MIN_ROWS, Crowd, candidates, dawid_skene_model
from mixent.fusion.crowds import choose, choose_with_labels
from mixent.fusion.dependence import Dependence
from mixent.fusion.discounts import Pairs
from mixent.fusion.frozen import FrozenRule, LogLinear, Mean, MeanRatio, Tempered, Vote, Weighted
from mixent.fusion.newton import second_order
from mixent.fusion.pool import discounted, fit_pool
from mixent.fusion.problem import MinDivergence, Rule
from mixent.fusion.rates import learned_rates
from mixent.fusion.rules import TOL, Fused, ItemAnswers, composite, ml_product, ml_sum
from mixent.fusion.sources import Layout
from mixent.fusion.stacking import stack
from mixent.maxent.blocks import RowBlocks

MIN_PATTERNS_FOR_THREADS = 20_000  # with fewer patterns, threads cost more time than they save
MAX_SAMPLE = 20_000  # items that trust weights are estimated from
PSEUDO_ITEMS = 2.0  # items at the reference priors that are added, to avoid extreme priors of small batches
OVERALL_Z = 1.64  # critical value of all pairs combined, for a false positive rate of 5 %
COPY = 0.99  # correlation of the answers of copies
PAIR_LEVEL = 0.01  # false positive rate of the tests of single pairs, over all of them


@dataclass(frozen=True)
class Settings:
    """Validated parameters of a fit."""

    prior: Array  # (K,) class priors of the fixed rules, initial values of the others
    safe: bool = True
    trim: float = 0.2
    tol: float = 1e-8
    max_iter: int = 1000
    pseudo_items: float = 0.0  # number of items at these priors that are added to the batch


@dataclass(frozen=True)
class Fit:
    """The result of fitting a method to a batch."""

    rule: FrozenRule
    posterior: Array  # (P, K)
    method: str
    objective: float | None = None
    gap: float | None = None
    run: Run | None = None
    confusion: Array | None = None  # (S, K) if estimated from the batch
    evidence: float | None = None  # mean log-probability of held-out answers, in nats


@dataclass(frozen=True)
class Task:
    """A batch with the parameters and estimates that the methods use."""

    batch: Batch
    marginals: Marginals
    settings: Settings
    dependence: Callable[[], Dependence]
    calibrated: Layout  # without the labelled items of the batch

    @property
    def share(self) -> Array:
        return self.batch.layout.share

    @property
    def confusion(self) -> Array:
        return self.batch.layout.confusion

    @cached_property
    def histogram_covariance(self) -> Array:
        """(K, K) covariance of the composite-likelihood estimate of the class priors."""
        return self.marginals.covariance(self.dependence().correlation)


def _fit(task: Task, method: str, rule: FrozenRule, result: Run | None = None, **more: Any) -> Fit:
    """The posteriors of a rule; labelled items keep their class."""
    posterior = rule.posterior(task.batch)
    labelled = np.flatnonzero(task.batch.labels >= 0)
    posterior[labelled] = np.eye(posterior.shape[1])[task.batch.labels[labelled]]
    objective = None if result is None else result.objective / float(task.batch.weight.sum())
    return Fit(rule, posterior, method, **{"objective": objective, "run": result, **more})


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
    fused = _ml_priors(task, task.batch.ratio, np.zeros(task.batch.layout.n_classes))
    return _fit(task, "ml-product", Weighted(task.share, floored(fused.prior), task.confusion), fused.run)


def _ml_priors(task: Task, ratio: Array, pseudo_items: Array) -> Fused:
    """Maximum likelihood priors from log-likelihood ratios (P, K)."""
    batch, settings = task.batch, task.settings
    return ml_product(
        ratio, batch.weight, settings.prior, labels=batch.labels, pseudo_items=pseudo_items, max_iter=settings.max_iter
    )


def _with_means(task: Task, rule: Callable[..., Fused]) -> Fused:
    batch = task.batch
    return rule(
        batch.evidence(),
        batch.weight,
        task.settings.prior,
        batch.shares,
        labels=batch.labels,
        max_iter=task.settings.max_iter,
    )


def _ml_sum(task: Task) -> Fit:
    fused = _with_means(task, ml_sum)
    return _fit(task, "ml-sum", MeanRatio(floored(fused.prior), task.share, task.confusion), fused.run)


def _composite(task: Task, trim: float = 0.0, name: str = "composite") -> Fit:
    fused = _with_means(task, composite)
    root = task.batch.layout.root
    return _fit(task, name, Mean(floored(fused.prior), task.share, root, task.confusion, trim), fused.run)


def _trimmed(task: Task) -> Fit:
    return _composite(task, task.settings.trim, "trimmed-mean")


def _min_divergence(task: Task) -> Fit:
    batch, settings = task.batch, task.settings
    problem, rows = batch.divergence_problem(settings.safe), RowBlocks(batch.rows)
    # R stops by its gap alone; R~ has no gap, and stops when it no longer decreases
    stop = Stop(-np.inf, settings.max_iter, gap=settings.tol) if settings.safe else Stop(1e-6, settings.max_iter)
    start = Rule.uniform(batch.layout.n_symbols, batch.layout.n_classes)
    solver = second_order(problem, batch.n_patterns) if settings.safe else problem
    result = run(solver, rows, start, stop=stop, executor=executor(batch))
    rule = LogLinear(*normalized(batch, batch.rule(result.params)), np.ones(batch.layout.n_classes))
    n = float(batch.weight.sum())
    if settings.safe:
        divergence, gap = _certificate(problem, rows, result.params, batch)
        more = {"objective": -divergence / n, "gap": gap / n}
    else:
        more = {"objective": result.objective}  # R~ is a sum over classes, not over items
    fit = _fit(task, "min-divergence", rule, result, **more)
    answered = batch.weight * batch.answered.any(axis=0)
    share = answered @ fit.posterior / answered.sum() if answered.any() else settings.prior
    return _fit(task, "min-divergence", replace(rule, prior=floored(share)), result, **more)


def normalized(batch: Batch, weights: Array) -> tuple[Array, Array]:
    """The same rule with the weights of every source scaled as log-likelihood ratios, and class offsets.

    If a source answered every item, a constant of a class can be part of its weights instead of the offsets, and would
    be lost for new items without its answer. The normalization sum_v pooled(v) exp(weight(v, k)) = 1, which holds for
    likelihood ratios, moves it into the offsets.
    """
    layout = batch.layout
    out, offset = weights - weights.mean(axis=1, keepdims=True), np.zeros(layout.n_classes)
    for j, here in enumerate(layout.slices):
        if batch.answered[j].all() and layout.n_groups[j] == 1:
            constant = log_sum_exp(out[here] + np.log(layout.pooled[here])[:, None], axis=0)
            out[here] -= constant
            offset += constant
    return out, offset


def _certificate(problem: MinDivergence, rows: RowBlocks, params: Rule, batch: Batch) -> tuple[float, float]:
    """R, and R minus the lower bound that its gradient implies."""
    with executor(batch) as workers:
        ready = problem.prepare(params)
        total = workers.total(lambda block: problem.stats(ready, block), rows)
        bound = max(params.lower_bound, total.lower_bound)
        current = replace(params, gradient=problem.log_ratio(total.counts), lower_bound=bound)
        ready = problem.prepare(current)
        final = workers.total(lambda block: problem.stats(ready, block), rows)
        return problem.divergence(final.counts), problem.gap(current, final)


def executor(batch: Batch) -> Any:
    """Threads for large batches."""
    return Serial() if batch.n_patterns < MIN_PATTERNS_FOR_THREADS else Threads()


def _pool(task: Task) -> Fit:
    batch = task.batch
    prior = floored(task.marginals.prior)
    sample = sampled(batch)
    problem = sample.divergence_problem()
    pool = fit_pool(problem, sample.rows, sample.product_evidence(), prior, batch.layout.share, batch.layout.root)
    return _fit(
        task, "pool", Weighted(pool.trust, prior, task.confusion), objective=-pool.divergence / sample.weight.sum()
    )


def _discounted(task: Task) -> Fit:
    batch, layout = task.batch, task.batch.layout
    sample = sampled(batch)
    dependence = task.dependence()
    pairs = Pairs(dependence.correlation, dependence.std)
    pool = discounted(
        sample.divergence_problem(),
        sample.rows,
        sample.product_evidence(),
        floored(task.marginals.prior),
        pairs,
        layout.share,
        layout.root,
        _excess(sample),
    )
    prior = stabilized_prior(task, pool.trust, task.confusion)
    items, weight = _pseudo_items(task)
    weight = weight * float(sample.weight.sum() / batch.weight.sum())
    rates = learned_rates(sample, pool.trust, prior, (items, weight), task.settings.max_iter)
    if rates is not task.confusion:
        prior = stabilized_prior(task, pool.trust, rates)
    rule = Weighted(pool.trust, prior, rates)
    objective = -pool.divergence / float(sample.weight.sum())
    return _fit(task, "discounted", rule, objective=objective, confusion=rates)


def _stacking(task: Task) -> Fit:
    """Label-free stacking, around the discounts and at their class priors."""
    rule = _discounted(task).rule
    assert isinstance(rule, Weighted)
    stacked = stack(sampled(task.batch), rule.trust, rule.prior)
    rule = replace(rule, trust=stacked.trust, confusion=task.confusion)
    return _fit(task, "stacking", rule, objective=stacked.objective)


def _excess(batch: Batch) -> float:
    """Expected R of the true posteriors, with rates counted on n_k rows: n (V - 1) / (2 n_k) for V symbols."""
    layout = batch.layout
    n_free = [size - n for size, n in zip(layout.sizes, layout.n_groups)]  # free parameters of the rates of a class
    excess = [n / (2 * c.n_rows[c.seen].mean()) for n, c in zip(n_free, layout.calibrations)]
    return float(batch.weight.sum() * np.average(excess, weights=layout.share))


def stabilized_prior(task: Task, trust: Array, rates: Array) -> Array:
    """Class priors by EM with these trust weights and rates, stabilized by the composite-likelihood estimate.

    The estimate by EM is more precise, but valid only if the weighted evidence consists of likelihood ratios; the
    composite estimate depends on neither the trust weights nor the dependence between the sources, and enters as
    pseudo-items. Where it contradicts that of EM, which then may have starved a class, and the reference priors less,
    the reference priors are returned.
    """
    batch, reference = task.batch, task.settings.prior
    ratio = batch.product(trust, rates)
    of_rule = _ml_priors(task, ratio, PSEUDO_ITEMS * reference).prior
    if task.marginals.prefers(reference, of_rule, task.histogram_covariance):
        return floored(reference)
    items, weight = _pseudo_items(task)
    fused = ml_product(
        np.concatenate([ratio, items]),
        np.concatenate([batch.weight, weight]),
        reference,
        labels=np.concatenate([batch.labels, np.full(len(weight), -1)]),
        max_iter=task.settings.max_iter,
    )
    return floored(fused.prior)


def _pseudo_items(task: Task) -> tuple[Array, Array]:
    """Items with the information of the composite-likelihood estimate, and two at the reference priors.

    Log-likelihood ratios (3 K, K) and weights (3 K,).
    """
    ratio, weight = task.marginals.pseudo_items(task.histogram_covariance)
    reference = task.settings.prior
    certain = ratio[: len(reference)]
    return np.concatenate([ratio, certain]), np.concatenate([weight, PSEUDO_ITEMS * reference])


def sampled(batch: Batch) -> Batch:
    """The batch, or a systematic sample of a large one.

    The items are sorted by a random projection of their answers and sampled at equal distances, so that the order of
    the rows does not matter. All labelled items are kept.
    """
    if batch.n_patterns <= MAX_SAMPLE:
        return batch
    unlabelled, labelled = np.flatnonzero(batch.labels < 0), np.flatnonzero(batch.labels >= 0)
    projection = np.random.default_rng(0).normal(size=(batch.layout.n_symbols, 1))
    order = unlabelled[np.argsort(batch.logits(projection)[0][unlabelled], kind="stable")]
    chosen = order[np.unique(np.linspace(0, len(order) - 1, MAX_SAMPLE).astype(np.intp))]
    rows = np.concatenate([chosen, labelled])
    weight = batch.weight[rows]
    weight[: len(chosen)] *= batch.weight[unlabelled].sum() / weight[: len(chosen)].sum()
    return Batch(batch.layout, batch.answers.part(rows), weight, batch.labels[rows])


def window_prior(task: Task, method: str, rule: FrozenRule) -> Array:
    """Class priors of another batch for a fitted rule, estimated in the same way as in its fit."""
    if isinstance(rule, Vote):
        return rule.prior
    if method in ("pool", "discounted"):
        assert isinstance(rule, Weighted)
        return task.marginals.prior if method == "pool" else stabilized_prior(task, rule.trust, rule.confusion)
    if isinstance(rule, (Mean, MeanRatio)):
        return _with_means(task, composite if isinstance(rule, Mean) else ml_sum).prior
    if isinstance(rule, Tempered):
        ratio = task.batch.logits(rule.weights).T
        return _ml_priors(task, ratio, task.settings.pseudo_items * task.settings.prior).prior
    posterior = rule.posterior(task.batch)
    ratio = np.log(np.maximum(posterior, 1e-300)) - np.log(floored(rule.prior))
    if isinstance(rule, Weighted):
        ratio = task.batch.product(rule.trust, rule.confusion)
    return _ml_priors(task, ratio, task.settings.pseudo_items * task.settings.prior).prior


def _dawid_skene(task: Task) -> Fit:
    model = dawid_skene_model(replace(_crowd(task), tol=TOL))
    prior = floored(model.prior)
    rule = LogLinear(model.weights, np.log(prior), prior)
    return _fit(task, "dawid-skene", rule, model.run, confusion=model.rates)


def crowd(task: Task) -> Fit:
    """Sources without calibrations: the model with the best predictions of held-out answers, and of held-out labels.

    A single source is returned as it is, with the assumed accuracy.
    """
    layout = task.batch.layout
    if len(np.unique(layout.root[task.batch.answered.any(axis=1)])) == 1:
        even = np.full(layout.n_classes, 1 / layout.n_classes)
        return _product(replace(task, settings=replace(task.settings, prior=even)))
    labels = task.batch.labels
    batch = replace(task.batch, layout=task.calibrated, labels=np.full_like(labels, -1))
    without = replace(task, batch=batch, marginals=all_marginals(batch))
    choice = choose(_crowd(without), candidates(layout))
    if (labels >= 0).any():
        choice = choose_with_labels(_crowd(task), choice)
    model = choice.model
    rule = Tempered(model.weights, floored(model.prior), choice.power)
    return _fit(task, choice.name, rule, model.run, confusion=model.rates, evidence=choice.evidence[choice.name])


def _crowd(task: Task) -> Crowd:
    answers = ItemAnswers(task.batch.matrix, task.batch.weight, task.batch.labels)
    return Crowd(
        task.batch.layout, answers, task.calibrated.counts, task.marginals.interior_prior, task.settings.max_iter
    )


def _auto(task: Task) -> Fit:
    """A model of a crowd if the calibrations are assumptions, otherwise discounts.

    The labelled items of the batch are not counted, so that they do not change the kind of the model.
    """
    layout = task.calibrated
    n_rows = [calibration.n_rows[calibration.seen].mean() for calibration in layout.calibrations]
    return crowd(task) if np.median(np.array(n_rows)[np.unique(layout.root)]) < MIN_ROWS else _discounted(task)


def dependent(dependence: Dependence, originals: np.ndarray) -> bool:
    """Whether all pairs combined, or a single pair, agree significantly more than under conditional independence.

    A source with the same answers as another counts as dependent, however few they are.
    """
    upper = np.triu_indices(len(originals), 1)
    z = dependence.z[np.ix_(originals, originals)][upper]
    z = z[np.isfinite(z)]
    copies = dependence.correlation[np.ix_(originals, originals)][upper] > COPY
    significant = dependence.overall_z > OVERALL_Z or bool(len(z) and z.max() > norm.isf(PAIR_LEVEL / len(z)))
    return significant or bool(copies.any())


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
    "stacking": _stacking,
    "dawid-skene": _dawid_skene,
}
