"""What discriminants by log-ratios of models share: trees and Bayes nets alike."""

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

MANY = 1000  # rows from which a step more is dear


class ModelDiscriminant(Discriminant):
    """Models whose distributions have a prior, on some rows."""

    prior: JointDistribution
    bias_variance: float

    @abstractmethod
    def prior_scores(self) -> Array:
        """(n, C) before discrimination."""

    def prior_margins(self, constraints: PairConstraints) -> Array:
        """(n, pairs) before discrimination."""
        return constraints.signs * (self.prior_scores() @ constraints.differences.T)

    def divergence(self, solution: Solution) -> float:
        return solution.state.divergence(self.prior, self.bias_variance)


@dataclass(frozen=True)
class ModelTrainingSet(TrainingSet):
    """Rows as a table; what is made of some of them is kept, for it serves every c."""

    table: Table
    known: dict = field(default_factory=dict, kw_only=True)  # discriminants of the parts seen so far

    @abstractmethod
    def made(self, subset: Subset, bias_variance: float) -> ModelDiscriminant:
        """The discriminant of some rows."""

    def discriminant(self, subset: Subset, bias_variance: float) -> Any:
        key = subset.rows.tobytes(), subset.weight.tobytes()
        if key not in self.known:
            self.known[key] = self.made(subset, bias_variance)
        return self.known[key]

    def for_folds(self, search: Search) -> Search:
        """With many rows no digit of a probability that is printed hangs on a step more."""
        return search if self.table.n_rows >= MANY else super().for_folds(search)


def members(subset: Subset) -> Array:
    """(n, C) each row's weight in each class: a row without a label is of no class yet."""
    return subset.prior * (subset.labelled * subset.weight)[:, None]


def prior_bias(member: Array) -> Array:
    """(C - 1,) logarithms of the classes' shares, in contrasts, whose columns have squared length 1/2."""
    return 2.0 * contrasts(member.shape[1]).T @ np.log(np.maximum(member.sum(axis=0), 1e-300))
