"""Novelty detection by the level set of typical rows (001, section 4), the Bayesian fit that initializes it, and the
scores of held-out rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixent.core.arrays import Array, weighted_quantile
from mixent.core.blocks import NumberedRows, Whole
from mixent.core.driver import Problem, Run, Stop, run
from mixent.core.executors import Serial
from mixent.core.observers import Progress
from mixent.core.stats import Stats
from mixent.data import Table
from mixent.med.constraints import Constraints
from mixent.med.exponential_family import ExponentialFamilyProblem, JointDistribution
from mixent.med.exponential_family_solving import solve
from mixent.med.families import Distribution
from mixent.med.latent import LatentProblem, alternate_steps
from mixent.med.margins import MarginPrior
from mixent.med.novelty_models import Evaluation, NoveltyModel
from mixent.med.solving import Search, Solution

FOLD_GAP, FOLD_ITER = 1e-4, 30  # fits without some rows: duality gap in nats per row, and most iterations


@dataclass(frozen=True)
class PosteriorStats(Stats):
    """Weighted sums over rows."""

    bound: float  # of the lower bounds on the log-probabilities
    features: Array  # (M,) of the features


@dataclass(frozen=True)
class PosteriorProblem(Problem[Distribution, Evaluation, PosteriorStats]):
    """The posterior distribution of the parameters, or its variational approximation with hidden variables.

    Maximizes  sum_t w_t (lower bound on log p(x_t)) - D(P || P0),  a lower bound on the log evidence. The update is the
    optimal P for given distributions of the hidden variables, and the next evaluation of the rows computes the optimal
    distributions of the hidden variables for P, so the objective never falls.
    """

    model: NoveltyModel
    data: Any
    weight: Array

    def prepare(self, params: Distribution) -> Evaluation:
        return self.model.evaluate(params, self.data)

    def stats(self, ready: Evaluation, block: NumberedRows) -> PosteriorStats:  # type: ignore[override]
        return PosteriorStats(float(self.weight @ ready.bound), ready.features.weighted_sum(self.weight))

    def objective(self, params: Distribution, total: PosteriorStats) -> float:
        return total.bound - params.divergence(self.model.prior)

    def update(self, params: Distribution, total: PosteriorStats, step: float) -> Distribution:
        return params.with_natural_parameters(self.model.prior.T + total.features)


def fit_posterior(
    model: NoveltyModel, data: Any, weight: Array, search: Search, start: Distribution | None = None
) -> Run:
    """Fit the posterior, or with hidden variables the variational posterior (default start: that of the model)."""
    problem = PosteriorProblem(model, data, weight)
    start = model.start(data, weight) if start is None else start
    stop = Stop(max(1e-8, 1e-2 * search.gap), search.max_iter)
    return run(problem, Whole(weight), start, stop=stop, executor=Serial())


def level_set(
    model: NoveltyModel,
    data: Any,
    weight: Array,
    margin: MarginPrior,
    search: Search,
    start: Distribution,
    offset: Array,
) -> tuple[Solution, Run]:
    """The distribution of minimum relative entropy to the prior under which every log-probability reaches its margin.

    `offset` (n,) is added to the log-probabilities of the rows.
    """

    def solve_given(evaluation: Evaluation, previous: Solution | None) -> Solution:
        prior = JointDistribution((model.prior,), np.zeros(0))
        problem = ExponentialFamilyProblem(
            (evaluation.features,),
            (0,),
            Constraints.single_output(weight, offset),
            margin,
            prior,
            np.zeros((1, 0)),
            np.inf,
        )
        return solve(problem, search, JointDistribution((start,), np.zeros(0)) if previous is None else previous.state)

    def infer(solution: Solution) -> Evaluation:
        return model.evaluate(solution.state.parts[0], data)

    first = model.evaluate(start, data)
    if not model.has_hidden(data):
        solution = solve_given(first, None)
        return solution, solution.run
    run = alternate_steps(LatentProblem(solve_given, infer), first, weight, search, 10.0 * search.gap)
    return run.params.solution, run


# --- both, and held-out rows ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NoveltyFit:
    """The Bayesian fit and the level set of some rows."""

    bayes: Distribution
    bayes_scores: Array  # (n,) of all rows
    level: float
    margin: MarginPrior | None  # None: no level set
    distribution: Distribution
    multipliers: Array  # (n,)
    minimum: float  # relative entropy, plus the cost of the margins
    dual: float | None
    run: Run
    last_run: Run  # of the last level set, if hidden values were inferred


@dataclass(frozen=True)
class NoveltyProblem:
    """What is fitted: a model, and how its level set is found."""

    model: NoveltyModel
    quantile: float
    margin: Callable[[float], MarginPrior] | None  # the margin prior of a level
    search: Search

    def fit(self, data: Any, weight: Array, start: tuple[Distribution, Distribution] | None = None) -> NoveltyFit:
        """Fit rows with these weights; `start` are distributions near the Bayesian fit and the level set."""
        model = self.model
        posterior = fit_posterior(model, data, weight, self.search, None if start is None else start[0])
        bayes: Distribution = posterior.params
        evaluation = model.evaluate(bayes, data)
        bayes_scores = evaluation.bound - evaluation.missing_gain
        level = weighted_quantile(bayes_scores, weight, self.quantile)
        if self.margin is None:
            once, divergence = np.where(weight > 0, 1.0, 0.0), bayes.divergence(model.prior)
            return NoveltyFit(bayes, bayes_scores, level, None, bayes, once, divergence, None, posterior, posterior)
        margin, first = self.margin(level), bayes if start is None else start[1]
        solution, run = level_set(model, data, weight, margin, self.search, first, -evaluation.missing_gain)
        return NoveltyFit(
            bayes,
            bayes_scores,
            level,
            margin,
            solution.state.parts[0],
            solution.multipliers[:, 0],
            solution.minimum,
            solution.dual,
            run,
            solution.run,
        )

    def held_out_scores(
        self, data: Any, weight: Array, held_out: Array, whole: NoveltyFit, show: Progress | None = None
    ) -> Array:
        """(n,) scores of the rows under fits without them; `held_out` (K, n) are the shares of their weights by fold.

        Each fit starts from that of all rows, without what the held-out rows contribute to it. Rows of weight 0 have
        no influence, and keep their score.
        """
        model, prior = self.model, self.model.prior
        search = Search(max(self.search.gap, FOLD_GAP), min(self.search.max_iter, FOLD_ITER))
        once, often = (model.evaluate(P, data).features for P in (whole.bayes, whole.distribution))
        scores = np.where(held_out.any(axis=0), 0.0, row_scores(model, whole.bayes, whole.distribution, data))
        for k, share in enumerate(held_out):
            if show is not None:
                show(k, len(held_out), "scores of held-out rows")
            rest = weight * (1.0 - share)
            counts = once.weighted_sum(rest), often.weighted_sum(rest * whole.multipliers)
            bayes, level = (prior.with_natural_parameters(prior.T + count) for count in counts)
            fit = replace(self, search=search).fit(data, rest, (bayes, level))
            scores += share * row_scores(model, fit.bayes, fit.distribution, data)
        return scores


def row_scores(model: NoveltyModel, bayes: Distribution, distribution: Distribution, data: Any) -> Array:
    """(n,) bounds of the log-probabilities, minus the gain of missing values under the Bayesian fit."""
    missing_gain = model.evaluate(bayes, data).missing_gain if model.has_hidden(data) else 0.0
    return model.evaluate(distribution, data).bound - missing_gain


def deal_weights(table: Table, weight: Array, n_folds: int) -> Array:
    """(K, n) share of the weight of each row that a fold holds out; K is `n_folds`, or less with fewer rows.

    A row of weight w is floor(w) equal rows (at least one), which are dealt to the folds in turn. So neither the order
    of the rows matters, nor whether a row is repeated or has twice the weight.
    """
    columns = [np.where(np.isnan(table.X), np.inf, table.X)]
    values = np.column_stack(columns if table.codes is None else [*columns, table.codes])
    order = np.lexsort(values.T[::-1])
    changes = (values[order[1:]] != values[order[:-1]]).any(axis=1)
    group = np.empty(len(order), dtype=np.intp)  # equal rows are a group
    group[order] = np.append(0, np.cumsum(changes))
    mass = np.bincount(group, weight)
    used = np.random.default_rng(0).permutation(np.flatnonzero(mass > 0))
    n_parts = np.clip(np.floor(mass[used] * (1 + 1e-12)), 1, n_folds).astype(np.intp)
    first = np.cumsum(n_parts) - n_parts
    share = np.zeros((min(n_folds, int(n_parts.sum())), len(mass)))
    for part in range(len(share)):
        some = n_parts > part
        share[(first[some] + part) % len(share), used[some]] = 1.0 / n_parts[some]
    return share[:, group]
