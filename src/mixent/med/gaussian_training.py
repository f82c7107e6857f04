"""Log-ratios of Gaussians with Normal-Wishart distributions, trained on any subset of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.core.driver import OutsideDomainError
from mixent.med.constraints import Constraints, PairConstraints, contrasts
from mixent.med.exponential_family import JointDistribution
from mixent.med.exponential_family_solving import maximize, solve
from mixent.med.families import Distribution
from mixent.med.local_kernel import LocalMinimumProblem
from mixent.med.margins import MarginPrior
from mixent.med.model_training_sets import CachedTrainingSet, ModelDiscriminant, members, prior_bias
from mixent.med.solving import Search, Solution
from mixent.med.tied_wishart import TiedWishart
from mixent.med.training_sets import Subset
from mixent.med.wishart import Wishart, moments

DIRECT_STEPS = 25  # steps after which smaller C are tried first, in the ratio C_RATIO and with the gap ROUGH
C_RATIO, ROUGH = 3.0, 1e-4


class GaussianDiscriminant(ModelDiscriminant):
    """Log-ratios of Gaussians with Normal-Wishart distributions; `problem` is equation 18."""

    problem_type = LocalMinimumProblem

    def __init__(self, X: Array, prior: JointDistribution, bias_variance: float) -> None:
        self.X, self.prior, self.bias_variance = X, prior, bias_variance
        features = [part.features(X) for part in prior.parts]  # type: ignore[attr-defined]
        self.features = tuple(phi for of_part in features for phi in of_part)
        self.family_of = tuple(f for f, of_part in enumerate(features) for _ in of_part)
        self.contrast = contrasts(len(self.features))

    @cached_property
    def prior_scores(self) -> Array:
        return gaussian_scores(self.prior, self.X)

    def solve(self, constraints: PairConstraints, margin: MarginPrior, search: Search, start: Any = None) -> Solution:
        """The solution; if it takes many steps, it is approached through those for smaller C."""
        on_outputs = Constraints.between_classes(constraints)
        problem = self.problem(on_outputs, margin)
        few = replace(search, max_iter=min(DIRECT_STEPS, search.max_iter))
        solution = solve(problem, few, start)
        if not solution.run.status.ok and search.max_iter > DIRECT_STEPS:
            state = solution.state if start is not None else self._approach(on_outputs, margin, few) or solution.state
            solution = solve(problem, search, state)
        return solution

    def _approach(self, constraints: Constraints, margin: MarginPrior, search: Search) -> JointDistribution | None:
        """A rough solution for a smaller C, reached through still smaller ones; None if C is small."""
        shortfall = np.maximum(margin.target - constraints.margins(self.prior_scores), 0.0)[constraints.effective]
        first, state = 1.0 / np.sqrt(max(float(np.median(shortfall)), 1.0)), None
        for easier in margin.increasing(first, C_RATIO)[:-1]:
            state = maximize(self.problem(constraints, easier), replace(search, gap=ROUGH), state or self.prior).params
        return state


def gaussian_scores(distribution: JointDistribution, X: Array) -> Array:
    """(n, C) expected log-densities and bias."""
    parts: Any = distribution.parts
    log_prob = np.column_stack([part.expected_log_prob(X) for part in parts])
    return log_prob + contrasts(log_prob.shape[1]) @ distribution.bias


def predictive_scores(distribution: JointDistribution, X: Array, shares: Array) -> Array:
    """(n, C) log p(class) + log E p(x | class), with these class frequencies (C,)."""
    parts: Any = distribution.parts
    return np.column_stack([part.predictive_log_prob(X) for part in parts]) + np.log(shares)


@dataclass(frozen=True)
class GaussianTrainingSet(CachedTrainingSet):
    """Rows as numeric columns, for a Gaussian of each class with a prior of `k` rows."""

    X: Array  # (n, d)
    k: float | None  # None: 1, or as many as the number of columns requires
    mean: Array | None  # (d,); None: the mean of the rows
    cov: Array | None  # (d, d); None: the covariance within classes
    classes: np.ndarray
    floor: Array | float = 0.0  # (d,) smallest variance of a column in the default `cov`
    predictive: bool = False  # whether the scores follow from Bayes' rule with predictive densities
    structure: str = "full"

    def build(self, subset: Subset, bias_variance: float) -> GaussianDiscriminant:
        X, member = self.X[subset.rows], members(subset)
        return GaussianDiscriminant(X, self._prior(X, member, subset.weight), bias_variance)

    def _prior(self, X: Array, member: Array, weight: Array) -> JointDistribution:
        mean = np.average(X, axis=0, weights=weight) if self.mean is None else self.mean
        spread = np.average((X - np.average(X, axis=0, weights=weight)) ** 2, axis=0, weights=weight)
        mass, d = member.sum(axis=0), X.shape[1]
        n_classes = len(mass)
        required = {"full": d + 2.0 - mass.min(), "diagonal": 1.0, "tied": (d + 2.0 - mass.sum()) / n_classes}
        k = max(1.0, float(required[self.structure])) if self.k is None else self.k
        # only the k rows of the prior have this variance, and a class has about n / C rows: scale it accordingly
        floor = self.floor * (mass.sum() / n_classes) / max(k, 1e-300)
        cov = _within(X, member, spread, floor) if self.cov is None else self.cov
        each = [moments(X, weight, k, mean, cov) for weight in member.T]
        return JointDistribution(self._parts(each, spread, k), prior_bias(member))

    def _parts(self, each: list[tuple[float, Array, Array]], spread: Array, k: float) -> tuple[Distribution, ...]:
        """The distributions of the Gaussians, from the number, mean and scatter of each class."""
        if self.structure == "tied":
            rows, means, scatters = (np.array(values) for values in zip(*each))
            of_all = partial(TiedWishart.of_moments, rows, means, scatters.sum(axis=0), spread)
            return (_existing(of_all, "the table", k),)
        diagonal = self.structure == "diagonal"
        of_each = [partial(Wishart.of_moments, *of_class, spread, diagonal) for of_class in each]
        return tuple(_existing(build, f"class {label}", k) for build, label in zip(of_each, self.classes))

    def scores(self, subset, fitted, solution, constraints, rows):
        if not self.predictive:
            return gaussian_scores(solution.state, self.X[rows])
        mass = members(subset).sum(axis=0)
        return predictive_scores(solution.state, self.X[rows], mass / mass.sum())


def _existing(build: Callable[[], Distribution], name: str, k: float) -> Distribution:
    try:
        return build()
    except OutsideDomainError as error:
        raise ValueError(
            f"{name} {error}, so the distribution of its Gaussian does not exist; "
            f"set a larger prior (now {k:g}), provide more rows, or drop columns"
        ) from error


def _within(X: Array, member: Array, overall: Array, floor: Array | float) -> Array:
    """Covariance within the classes, made positive definite by a small share of the variance of each column."""
    out = np.zeros((X.shape[1], X.shape[1]))
    for weight in member.T:
        if weight.sum() > 0:
            centered = X - np.average(X, axis=0, weights=weight)
            out += (centered * weight[:, None]).T @ centered
    out /= member.sum()
    spread = np.diagonal(out)
    positive = np.where(spread > 0, spread, np.where(overall > 0, overall, 1.0))  # 1 for a constant column
    return out + np.diag(np.maximum(1e-3 * positive, floor))
