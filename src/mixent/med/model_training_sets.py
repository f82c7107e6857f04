"""The common part of discriminants that are log-ratios of models, such as trees and Bayes nets."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.data import Table
from mixent.med.constraints import PairConstraints, contrasts
from mixent.med.exponential_family import JointDistribution
from mixent.med.solving import Discriminant, Search, Solution
from mixent.med.training_sets import Subset, TrainingSet

MANY = 1000  # rows from which one more step is expensive


class ModelDiscriminant(Discriminant):
    """Log-ratios of class models with prior distributions, on some rows."""

    prior: JointDistribution
    bias_variance: float

    @abstractmethod
    def prior_scores(self) -> Array:
        """(n, C) scores before discrimination."""

    def prior_margins(self, constraints: PairConstraints) -> Array:
        """(n, pairs) margins before discrimination."""
        return constraints.signs * (self.prior_scores() @ constraints.differences.T)

    def divergence(self, solution: Solution) -> float:
        return solution.state.divergence(self.prior, self.bias_variance)


@dataclass(frozen=True)
class CachedTrainingSet(TrainingSet):
    """The discriminants of subsets are cached, since they do not depend on C."""

    cache: dict = field(default_factory=dict, kw_only=True)  # discriminants by subset

    @abstractmethod
    def build(self, subset: Subset, bias_variance: float) -> ModelDiscriminant:
        """The discriminant on a subset."""

    def discriminant(self, subset: Subset, bias_variance: float) -> Any:
        key = subset.rows.tobytes(), subset.weight.tobytes()
        if key not in self.cache:
            self.cache[key] = self.build(subset, bias_variance)
        return self.cache[key]


@dataclass(frozen=True)
class ModelTrainingSet(CachedTrainingSet):
    """Rows as a table."""

    table: Table

    def for_folds(self, search: Search) -> Search:
        """With many rows the same search: one more step would change no printed digit of a probability."""
        return search if self.table.n_rows >= MANY else super().for_folds(search)


def members(subset: Subset) -> Array:
    """(n, C) the weight of each row in each class; an unlabelled row belongs to no class yet."""
    return subset.prior * (subset.labelled * subset.weight)[:, None]


def prior_bias(member: Array) -> Array:
    """(C - 1,) log class frequencies as coefficients of the contrasts, whose columns have squared norm 1/2."""
    return 2.0 * contrasts(member.shape[1]).T @ np.log(np.maximum(member.sum(axis=0), 1e-300))
