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
from mixent.med.exponential_family import ExponentialFamilyProblem, Joint
from mixent.med.exponential_family_solving import Found, solve
from mixent.med.families import Distribution
from mixent.med.latent import LatentProblem, two_steps
from mixent.med.margins import MarginPrior
from mixent.med.novelty_models import Look, NoveltyModel
from mixent.med.solving import Search


@dataclass(frozen=True)
class Seen(Stats):
    bound: float  # sum of weighted bounds
    sums: Array  # (M,) sum of weighted statistics


@dataclass(frozen=True)
class BayesProblem(Problem[Distribution, Look, Seen]):
    """Every row counts as what it weighs: the posterior, or its variational approximation where something is hidden.

    Maximizes  sum_t w_t (bound of log p(x_t)) - D(P || P0),  a lower bound of the log evidence; each update is the
    best P for the hidden parts, and looking at rows again the best hidden parts for P, so it never falls.
    """

    model: NoveltyModel
    data: Any
    weight: Array

    def prepare(self, params: Distribution) -> Look:
        return self.model.look(params, self.data)

    def stats(self, ready: Look, block: NumberedRows) -> Seen:  # type: ignore[override]
        return Seen(float(self.weight @ ready.bound), ready.view.gather(self.weight))

    def objective(self, params: Distribution, total: Seen) -> float:
        return total.bound - params.divergence(self.model.prior)

    def update(self, params: Distribution, total: Seen, step: float) -> Distribution:
        return params.at(self.model.prior.T + total.sums)


def bayes(model: NoveltyModel, data: Any, weight: Array, search: Search) -> Run:
    """The posterior, or the variational one next to the model's start."""
    problem = BayesProblem(model, data, weight)
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
) -> tuple[Found, Run]:
    """The distribution of least relative entropy to the prior under which every row is as probable as its margin.

    `given` (n,) is added to every row's log-probability.
    """

    def step(hidden: Look, before: Found | None) -> Found:
        prior = Joint((model.prior,), np.zeros(0))
        problem = ExponentialFamilyProblem(
            (hidden.view,), (0,), Constraints.alone(weight, given), margin, prior, np.zeros((1, 0)), np.inf
        )
        return solve(problem, search, Joint((start,), np.zeros(0)) if before is None else before.joint)

    def reveal(found: Found) -> Look:
        return model.look(found.joint.parts[0], data)

    first = model.look(start, data)
    if not model.hides(data):
        found = step(first, None)
        return found, found.run
    whole = two_steps(LatentProblem(step, reveal), first, weight, search, 10.0 * search.gap)
    return whole.params.found, whole
