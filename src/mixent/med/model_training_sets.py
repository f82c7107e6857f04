"""The common part of discriminants that are log-ratios of models, such as trees and Bayes nets."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.data import Table
from mixent.med.constraints import Constraints, PairConstraints, contrasts
from mixent.med.exponential_family import LOOSE, MANY, ExponentialFamilyProblem, JointDistribution
from mixent.med.exponential_family_solving import solve
from mixent.med.features import RowFeatures
from mixent.med.margins import MarginPrior
from mixent.med.solving import Discriminant, Search, Solution
from mixent.med.training_sets import Subset, TrainingSet

DISTANCE = 2.0  # nats above the target up to which margins are near it
SEVERAL = 200  # rows from which models of cross-validation are computed with less precision
FEW = 0.7  # share of the rows up to which those near the target are few
FOLD_GAP = 1e-5  # duality gap per row of models of cross-validation: far below the error of their log-loss
FIRST_C, GROWTH, ROUGH_GAP = 10.0, 4.0, 1e-3  # values of C on the way to a larger one, and their gap per row


class ModelDiscriminant(Discriminant):
    """Log-ratios of class models with prior distributions, on some rows."""

    features: tuple[RowFeatures, ...]  # of each output
    family_of: tuple[int, ...]  # position of the family of each output
    contrast: Array  # (S, C - 1) coefficients of the bias in each output
    prior: JointDistribution
    bias_variance: float
    convex = True  # whether every initial value leads to the same solution
    problem_type = ExponentialFamilyProblem

    def problem(self, constraints: Constraints, margin: MarginPrior) -> ExponentialFamilyProblem:
        """The optimization problem for these constraints."""
        return self.problem_type(
            self.features, self.family_of, constraints, margin, self.prior, self.contrast, self.bias_variance
        )

    @property
    @abstractmethod
    def prior_scores(self) -> Array:
        """(n, C) scores before discrimination."""

    def prior_margins(self, constraints: PairConstraints) -> Array:
        """(n, pairs) margins before discrimination."""
        return constraints.signs * (self.prior_scores @ constraints.differences.T)

    def divergence(self, solution: Solution) -> float:
        return solution.state.divergence(self.prior, self.bias_variance)

    def at_multipliers(self, constraints: PairConstraints, margin: MarginPrior, lam: Array, bias: Array) -> Any:
        """The distributions with these multipliers (n, pairs), halved until the distributions exist, and this bias."""
        problem = self.problem(Constraints.between_classes(constraints), margin)
        alpha = problem.constraints.output_weights(constraints.weight[:, None] * lam)
        steps = problem.weighted_features(alpha, problem.features)
        return replace(problem.step(self.prior, steps, np.zeros_like(bias)), bias=bias)


@dataclass(frozen=True)
class CachedTrainingSet(TrainingSet):
    """The discriminants of subsets are cached, since they do not depend on C."""

    cache: dict = field(default_factory=dict, kw_only=True)  # discriminants by subset
    fold_gap = FOLD_GAP

    @abstractmethod
    def build(self, subset: Subset, bias_variance: float) -> ModelDiscriminant:
        """The discriminant on a subset."""

    def discriminant(self, subset: Subset, bias_variance: float) -> Any:
        key = _key(subset)
        if key not in self.cache:
            self.cache[key] = self.build(subset, bias_variance)
        return self.cache[key]


@dataclass(frozen=True)
class ModelTrainingSet(CachedTrainingSet):
    """Rows as a table."""

    table: Table
    whole: Subset | None = field(default=None, kw_only=True)  # all rows, from whose solution folds start
    solutions: dict = field(default_factory=dict, kw_only=True)  # by subset: {C: (multipliers, state)}

    def solved(self, subset: Subset) -> dict[Any, tuple[Array, JointDistribution]]:
        """The multipliers and distributions of the subset for each C so far."""
        return self.solutions.setdefault(_key(subset), {})

    def fold_start(self, subset: Subset, C: float | None) -> tuple[Array, Array]:
        """Multipliers and bias of all rows for this C, plus what a fold differed by for the last C."""
        assert self.whole is not None
        whole, fold = self.solved(self.whole), self.solved(subset)
        rows = np.searchsorted(self.whole.rows, subset.rows)
        lam, bias = whole[C][0][rows], whole[C][1].bias
        known = [earlier for earlier in fold if earlier in whole]
        if known:
            (fold_lam, fold_state), (whole_lam, whole_state) = fold[known[-1]], whole[known[-1]]
            lam = np.maximum(lam + fold_lam - whole_lam[rows], 0.0)
            bias = bias + fold_state.bias - whole_state.bias
        return lam, bias


def solve_near(problem: ExponentialFamilyProblem, search: Search, start: JointDistribution | None) -> Solution:
    """The solution for all rows, computed from those whose margins are not far above the target.

    The loss and the multiplier of a row are zero above the target, so that rows which end there change nothing. Rows
    that were left out and end below it are added, and the solution is continued.
    """
    target, constraints = problem.margin.target, problem.constraints
    # with few rows all of them are used, and to the last digits
    rough = constraints.n_rows >= MANY or (search.gap >= FOLD_GAP and constraints.n_rows >= SEVERAL)
    if rough:
        problem = replace(problem, precision=LOOSE)
    if start is None:
        start = problem.prior
        for margin in problem.margin.increasing(FIRST_C, GROWTH)[:-1]:  # few steps for each, where one C takes many
            on_the_way = replace(search, gap=max(search.gap, ROUGH_GAP), observers=())
            start = solve(replace(problem, margin=margin), on_the_way, start).state
    near, n_passes = np.zeros(constraints.n_rows, dtype=bool), 0
    margins = problem.margins(start)
    while True:
        near |= (constraints.imposed & (margins < target + DISTANCE)).any(axis=1)
        if not (rough and 0 < constraints.weight[near].sum() <= FEW * constraints.weight.sum()):
            near[:] = True
        part, rows = problem, np.flatnonzero(near)
        if not near.all():
            features = tuple(phi.take(rows).for_products() for phi in problem.features)
            part = replace(problem, features=features, constraints=constraints.part(rows))
        share = float(part.constraints.weight.sum()) / float(constraints.weight.sum())
        solution = solve(part, replace(search, gap=search.gap / share if share > 0 else search.gap), start)
        n_passes, start = n_passes + solution.run.n_passes, solution.state
        outputs = problem.training_scores(start)
        margins = constraints.margins(outputs) + constraints.offset
        if not (constraints.effective & (margins < target))[~near].any():
            lam = np.zeros(margins.shape)
            lam[rows] = solution.multipliers
            run = replace(solution.run, n_passes=n_passes)
            return replace(solution, run=run, multipliers=lam, scores=outputs)


def _key(subset: Subset) -> tuple[bytes, bytes]:
    return subset.rows.tobytes(), subset.weight.tobytes()


def members(subset: Subset) -> Array:
    """(n, C) the weight of each row in each class; an unlabelled row belongs to no class yet."""
    return subset.prior * (subset.labelled * subset.weight)[:, None]


def prior_bias(member: Array) -> Array:
    """(C - 1,) log class frequencies as coefficients of the contrasts, whose columns have squared norm 1/2."""
    return 2.0 * contrasts(member.shape[1]).T @ np.log(np.maximum(member.sum(axis=0), 1e-300))
