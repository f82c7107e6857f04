"""Data that keep arriving (document 000, section IV-C): what earlier rows left behind, as pseudo-rows.

The expected statistics of rows seen before are, for a mixture in the exponential family, nothing but more pseudo-rows
of its prior: so many rows of each class in each component, with this mean and this scatter. EM on the next batch with
these in the prior maximizes exactly

    log-likelihood of the batch + expected complete log-likelihood of the statistics kept + log prior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixent.core.arrays import Array
from mixent.families.gaussian.prior import Prior
from mixent.families.product import ProductFamily
from mixent.mixtures.problem import MixtureParams, MixtureProblem, MixtureStats


@dataclass(frozen=True)
class Kept:
    """Expected statistics of all rows so far."""

    cells: Array  # (C, K) rows of each class in each component
    gaussian: Prior | None  # rows, mean and covariance of each component
    categories: Array | None  # (K, sum of sizes) counts

    def plus(self, other: Kept) -> Kept:
        gaussian = None if self.gaussian is None or other.gaussian is None else self.gaussian.plus(other.gaussian)
        counts = None if self.categories is None or other.categories is None else self.categories + other.categories
        return Kept(self.cells + other.cells, gaussian, counts)

    def with_priors(self, prior: Array) -> Kept:
        """As many rows in all, in these shares of the classes (C,)."""
        rows = self.cells.sum(axis=1, keepdims=True)
        cells = self.cells / np.maximum(rows, 1e-300) * prior[:, None] * rows.sum()
        return Kept(cells, self.gaussian, self.categories)

    def take(self, index: np.ndarray) -> Kept:
        """Some components, in this order."""
        gaussian = None if self.gaussian is None else self.gaussian.take(index)
        return Kept(self.cells[:, index], gaussian, None if self.categories is None else self.categories[index])

    def times(self, factor: float) -> Kept:
        """Forget a share of every row."""
        gaussian = None if self.gaussian is None else self.gaussian.times(factor)
        return Kept(factor * self.cells, gaussian, None if self.categories is None else factor * self.categories)


def keep(problem: MixtureProblem, params: MixtureParams, total: MixtureStats) -> Kept:
    """The statistics of a pass, in a form that later passes with other parameters can go on from."""
    gaussian = counts = None
    family, stats = problem.family, total.components
    if family.gaussian is not None and stats.gaussian is not None and params.components.gaussian is not None:
        bare = replace(family.gaussian, prior=None)  # rows are kept as blurred as they were learned
        mass, scatter, means = bare.sufficient(params.components.gaussian, stats.gaussian)
        shape = (-1, *[1] * (scatter.ndim - 1))
        gaussian = Prior(mass, scatter / np.maximum(mass, 1e-300).reshape(shape), means, mass)
    if stats.categorical is not None:
        counts = stats.categorical.counts
    return Kept(total.counts, gaussian, counts)


def with_kept(problem: MixtureProblem, kept: Kept) -> MixtureProblem:
    """The problem of the next batch."""
    gaussian, categorical = problem.family.gaussian, problem.family.categorical
    if gaussian is not None and kept.gaussian is not None:
        prior = kept.gaussian if gaussian.prior is None else gaussian.prior.plus(kept.gaussian)
        gaussian = replace(gaussian, prior=prior)
    if categorical is not None and kept.categories is not None:
        categorical = replace(categorical, rows=categorical.rows + kept.categories)
    return replace(problem, family=ProductFamily(gaussian, categorical), weight_rows=kept.cells)
