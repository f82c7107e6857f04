"""Log-ratios of Gaussians with Normal-Wishart distributions, trained on any subset of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.core.driver import OutsideDomainError
from mixent.med.constraints import Constraints, PairConstraints, contrasts
from mixent.med.exponential_family import JointDistribution
from mixent.med.exponential_family_solving import solve
from mixent.med.local_kernel import LocalMinimumProblem
from mixent.med.margins import MarginPrior
from mixent.med.model_training_sets import CachedTrainingSet, ModelDiscriminant, members, prior_bias
from mixent.med.solving import Search, Solution
from mixent.med.training_sets import Subset
from mixent.med.wishart import QuadraticFeatures, Wishart


class GaussianDiscriminant(ModelDiscriminant):
    """Log-ratios of Gaussians with Normal-Wishart distributions."""

    def __init__(self, X: Array, prior: JointDistribution, bias_variance: float) -> None:
        self.X, self.prior, self.bias_variance = X, prior, bias_variance
        self.features = tuple(QuadraticFeatures.of(X, part) for part in prior.parts)

    def prior_scores(self) -> Array:
        return gaussian_scores(self.prior, self.X)

    def problem(self, constraints: PairConstraints, margin: MarginPrior) -> LocalMinimumProblem:
        """Equation 18 for these constraints."""
        C = constraints.n_classes
        on_outputs = Constraints.between_classes(constraints)
        return LocalMinimumProblem(
            self.features, tuple(range(C)), on_outputs, margin, self.prior, contrasts(C), self.bias_variance
        )

    def solve(self, constraints: PairConstraints, margin: MarginPrior, search: Search, start: Any = None) -> Solution:
        problem = self.problem(constraints, margin)
        solution = solve(problem, search, start)
        scores = problem.training_scores(solution.joint)
        return Solution(scores, solution.multipliers, solution.minimum, solution.dual, solution.run, solution.joint)


def gaussian_scores(distribution: JointDistribution, X: Array) -> Array:
    """(n, C) expected log-densities and bias."""
    log_prob = np.column_stack([part.expected_log_prob(X) for part in distribution.parts])
    return log_prob + contrasts(log_prob.shape[1]) @ distribution.bias


def predictive_scores(distribution: JointDistribution, X: Array, shares: Array) -> Array:
    """(n, C) log p(class) + log E p(x | class), with these class frequencies (C,)."""
    return np.column_stack([part.predictive_log_prob(X) for part in distribution.parts]) + np.log(shares)


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
        required = 1.0 if self.structure == "diagonal" else X.shape[1] + 2.0 - float(member.sum(axis=0).min())
        k = max(1.0, required) if self.k is None else self.k
        # only the k rows of the prior have this variance, and a class has about n / C rows: scale it accordingly
        floor = self.floor * (member.sum() / member.shape[1]) / max(k, 1e-300)
        cov = _within(X, member, spread, floor) if self.cov is None else self.cov
        gaussians = tuple(self._class_prior(X, member, s, k, mean, cov, spread) for s in range(member.shape[1]))
        return JointDistribution(gaussians, prior_bias(member))

    def _class_prior(
        self, X: Array, member: Array, s: int, k: float, mean: Array, cov: Array, spread: Array
    ) -> Wishart:
        try:
            return Wishart.of_rows(X, member[:, s], k, mean, cov, spread, self.structure == "diagonal")
        except OutsideDomainError as error:
            raise ValueError(
                f"class {self.classes[s]} {error}, so the distribution of its Gaussian does not exist; "
                f"set a larger prior (now {k:g}), provide more rows, or drop columns"
            ) from error

    def scores(self, subset, fitted, solution, constraints, rows):
        if not self.predictive:
            return gaussian_scores(solution.state, self.X[rows])
        mass = members(subset).sum(axis=0)
        return predictive_scores(solution.state, self.X[rows], mass / mass.sum())


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
