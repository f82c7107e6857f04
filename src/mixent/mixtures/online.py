"""Online learning (document 000, section IV-C): the statistics of earlier rows as pseudo-rows of the prior.

For a mixture of exponential families, the expected sufficient statistics of earlier rows have the form of a conjugate
prior: a number of rows of each class in each component, with their mean and scatter. EM on the next batch with this
prior maximizes exactly

    log-likelihood of the batch + expected complete log-likelihood of the earlier rows + log prior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixent.core.arrays import Array
from mixent.families.gaussian.prior import Prior
from mixent.mixtures.problem import MixtureParams, MixtureProblem, MixtureStats
from mixent.show import Short


@dataclass(frozen=True, repr=False)
class PastStatistics(Short):
    """Expected sufficient statistics of all rows so far."""

    counts: Array  # (C, K) rows of each class in each component
    gaussian: Prior | None  # number of rows, mean and covariance of each component
    categories: Array | None  # (K, sum of sizes) counts of categories

    def plus(self, other: PastStatistics) -> PastStatistics:
        gaussian = None if self.gaussian is None or other.gaussian is None else self.gaussian.plus(other.gaussian)
        if self.categories is None or other.categories is None:
            return PastStatistics(self.counts + other.counts, gaussian, None)
        return PastStatistics(self.counts + other.counts, gaussian, self.categories + other.categories)

    def with_priors(self, prior: Array) -> PastStatistics:
        """Return the same number of rows with these class priors (C,)."""
        rows = self.counts.sum(axis=1, keepdims=True)
        counts = self.counts / np.maximum(rows, 1e-300) * prior[:, None] * rows.sum()
        return PastStatistics(counts, self.gaussian, self.categories)

    def take(self, index: np.ndarray, n_components: int) -> PastStatistics:
        """Return some components, in this order; those from `n_components` on have counts only."""
        trained = index[index < n_components]
        gaussian = None if self.gaussian is None else self.gaussian.take(trained)
        categories = None if self.categories is None else self.categories[trained]
        return PastStatistics(self.counts[:, index], gaussian, categories)

    def times(self, factor: float) -> PastStatistics:
        """Return the statistics with all counts multiplied by `factor`."""
        gaussian = None if self.gaussian is None else self.gaussian.times(factor)
        categories = None if self.categories is None else factor * self.categories
        return PastStatistics(factor * self.counts, gaussian, categories)


def past_statistics(problem: MixtureProblem, params: MixtureParams, total: MixtureStats) -> PastStatistics:
    """Return the statistics of a pass in a form that does not depend on the parameters of the pass."""
    gaussian = categories = None
    family, stats = problem.family, total.components
    if family.gaussian is not None and stats.gaussian is not None and params.components.gaussian is not None:
        without_prior = replace(family.gaussian, prior=None)  # with the noise of the training
        mass, scatter, means = without_prior.sufficient(params.components.gaussian, stats.gaussian)
        shape = (-1, *[1] * (scatter.ndim - 1))
        gaussian = Prior(mass, scatter / np.maximum(mass, 1e-300).reshape(shape), means, mass)
    if stats.categorical is not None:
        categories = stats.categorical.counts
    return PastStatistics(total.counts, gaussian, categories)


def with_past(problem: MixtureProblem, past: PastStatistics) -> MixtureProblem:
    """Return the problem of the next batch."""
    gaussian, categorical = problem.family.gaussian, problem.family.categorical
    if gaussian is not None and past.gaussian is not None:
        prior = past.gaussian if gaussian.prior is None else gaussian.prior.plus(past.gaussian)
        gaussian = replace(gaussian, prior=prior)
    if categorical is not None and past.categories is not None:
        categorical = replace(categorical, rows=categorical.rows + past.categories)
    family = replace(problem.family, gaussian=gaussian, categorical=categorical)
    return replace(problem, family=family, weight_rows=past.counts)
