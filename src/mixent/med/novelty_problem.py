"""The level set of typical rows (001, section 4), and the Bayesian fit it starts from."""

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
    bound: float  # sum of weighted bounds
    sums: Array  # (M,) sum of weighted statistics


@dataclass(frozen=True)
class PosteriorProblem(Problem[Distribution, Evaluation, PosteriorStats]):
    """Every row counts as what it weighs: the posterior, or its variational approximation where something is hidden.

    Maximizes  sum_t w_t (bound of log p(x_t)) - D(P || P0),  a lower bound of the log evidence; each update is the
    best P for the hidden parts, and looking at rows again the best hidden parts for P, so it never falls.
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
        return params.with_natural_parameters(self.model.prior.T + total.sums)


def fit_posterior(model: NoveltyModel, data: Any, weight: Array, search: Search) -> Run:
    """The posterior, or the variational one next to the model's start."""
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
    given: Array,
) -> tuple[JointSolution, Run]:
    """The distribution of least relative entropy to the prior under which every row is as probable as its margin.

    `given` (n,) is added to every row's log-probability.
    """

    def step(hidden: Evaluation, before: JointSolution | None) -> JointSolution:
        prior = JointDistribution((model.prior,), np.zeros(0))
        problem = ExponentialFamilyProblem(
            (hidden.features,), (0,), Constraints.single_output(weight, given), margin, prior, np.zeros((1, 0)), np.inf
        )
        return solve(problem, search, JointDistribution((start,), np.zeros(0)) if before is None else before.joint)

    def reveal(found: JointSolution) -> Evaluation:
        return model.evaluate(found.joint.parts[0], data)

    first = model.evaluate(start, data)
    if not model.has_hidden(data):
        found = step(first, None)
        return found, found.run
    whole = alternate_steps(LatentProblem(step, reveal), first, weight, search, 10.0 * search.gap)
    return whole.params.found, whole
