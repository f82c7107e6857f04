"""Novelty detection by the level set of typical rows (001, section 4), and the Bayesian fit that initializes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import NumberedRows, Whole
from mixent.core.driver import Problem, Run, Stop, run
from mixent.core.executors import Serial
from mixent.core.stats import Stats
from mixent.med.constraints import Constraints
from mixent.med.exponential_family import ExponentialFamilyProblem, JointDistribution
from mixent.med.exponential_family_solving import JointSolution, solve
from mixent.med.families import Distribution
from mixent.med.latent import LatentProblem, alternate_steps
from mixent.med.margins import MarginPrior
from mixent.med.novelty_models import Evaluation, NoveltyModel
from mixent.med.solving import Search


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


def fit_posterior(model: NoveltyModel, data: Any, weight: Array, search: Search) -> Run:
    """Fit the posterior, or the variational posterior from the initialization of the model."""
    problem = PosteriorProblem(model, data, weight)
    start = model.start(data, weight)
    return run(problem, Whole(weight), start, stop=Stop(1e-8, search.max_iter), executor=Serial())


def level_set(
    model: NoveltyModel,
    data: Any,
    weight: Array,
    margin: MarginPrior,
    search: Search,
    start: Distribution,
    offset: Array,
) -> tuple[JointSolution, Run]:
    """The distribution of minimum relative entropy to the prior under which every log-probability reaches its margin.

    `offset` (n,) is added to the log-probabilities of the rows.
    """

    def solve_given(evaluation: Evaluation, previous: JointSolution | None) -> JointSolution:
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
        return solve(problem, search, JointDistribution((start,), np.zeros(0)) if previous is None else previous.joint)

    def infer(solution: JointSolution) -> Evaluation:
        return model.evaluate(solution.joint.parts[0], data)

    first = model.evaluate(start, data)
    if not model.has_hidden(data):
        solution = solve_given(first, None)
        return solution, solution.run
    run = alternate_steps(LatentProblem(solve_given, infer), first, weight, search, 10.0 * search.gap)
    return run.params.solution, run
