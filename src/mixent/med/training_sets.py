"""The rows of a fit as a discriminant sees them: any part of them can be trained on, and any other scored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mixent.core.arrays import Array
from mixent.core.driver import OutsideDomainError
from mixent.data import Table
from mixent.med.constraints import PairConstraints, contrasts
from mixent.med.gaussians import ClassNormalWisharts, NormalWishart, class_posterior
from mixent.med.solving import (
    Discriminant,
    GaussianDiscriminant,
    KernelDiscriminant,
    LinearDiscriminant,
    Search,
    Solution,
    dual_coefficients,
)

ROUGH, SHARP = 1e-5, 1e-9  # gap per row in folds: pairs of multipliers take their time, Newton takes a step more
BATCH_ROWS = 4096  # rows scored together


def in_batches(table: Table, scores: Callable[[Table], Array]) -> Array:
    """Scores of all rows, so many at once that what they take stays small."""
    return np.concatenate([scores(table.take(slice(a, a + BATCH_ROWS))) for a in range(0, table.n_rows, BATCH_ROWS)])


@dataclass(frozen=True)
class Subset:
    """Some rows to train on."""

    rows: np.ndarray  # positions
    prior: Array  # (m, C) label distributions before training
    labelled: np.ndarray  # (m,) bool: the label is more than a guess
    weight: Array  # (m,)
    uncertain: bool  # is some label in doubt?

    @property
    def n_classes(self) -> int:
        return self.prior.shape[1]


class TrainingSet(ABC):
    """All rows."""

    @abstractmethod
    def discriminant(self, subset: Subset, bias_variance: float) -> Discriminant:
        """The family of functions on these rows."""

    @abstractmethod
    def scores(
        self, subset: Subset, fitted: Discriminant, solution: Solution, constraints: PairConstraints, rows: np.ndarray
    ) -> Array:
        """(m, C) of other rows."""

    def for_folds(self, search: Search) -> Search:
        """How to search where held-out scores choose and calibrate: Newton's method takes a step more."""
        return replace(search, gap=min(search.gap, SHARP))


@dataclass(frozen=True)
class FeatureTrainingSet(TrainingSet):
    """Rows as features: linear discriminants."""

    features: Array  # (n, r)

    def discriminant(self, subset: Subset, bias_variance: float) -> LinearDiscriminant:
        return LinearDiscriminant(self.features[subset.rows], subset.n_classes, bias_variance)

    def scores(self, subset, fitted, solution, constraints, rows):
        plane = fitted.plane(solution, constraints)
        return (self.features[rows] @ plane.coef.T + plane.bias) @ contrasts(subset.n_classes).T


@dataclass(frozen=True)
class KernelTrainingSet(TrainingSet):
    """Rows as a kernel matrix."""

    K: Array  # (n, n)
    encoded: Array | None = None  # (n, d) the rows themselves, where the kernel is taken with some of them later

    def discriminant(self, subset: Subset, bias_variance: float) -> KernelDiscriminant:
        everything = len(subset.rows) == len(self.K) and (np.diff(subset.rows) == 1).all()
        K = self.K if everything else self.K[np.ix_(subset.rows, subset.rows)]
        return KernelDiscriminant(K, subset.n_classes, bias_variance)

    def for_folds(self, search: Search) -> Search:
        return replace(search, gap=max(search.gap, ROUGH))

    def scores(self, subset, fitted, solution, constraints, rows):
        pulls = dual_coefficients(solution, constraints, contrasts(subset.n_classes))
        f = self.K[np.ix_(rows, subset.rows)] @ pulls + solution.state.bias
        return f @ contrasts(subset.n_classes).T


@dataclass(frozen=True)
class GaussianTrainingSet(TrainingSet):
    """Rows as numbers: Gaussians of every class, with a prior of `k` rows."""

    X: Array  # (n, d)
    k: float | None  # None: 1, or as many as the columns take
    mean: Array | None  # (d,); None: the mean of the rows
    cov: Array | None  # (d, d); None: the covariance within classes
    classes: np.ndarray
    floor: Array | float = 0.0  # (d,) least variance of a column within classes, where that is taken
    predictive: bool = False  # scores are those of Bayes' rule with predictive densities

    def discriminant(self, subset: Subset, bias_variance: float) -> GaussianDiscriminant:
        X = self.X[subset.rows]
        member = subset.prior * (subset.labelled * subset.weight)[:, None]  # a row without a label is of no class yet
        return GaussianDiscriminant(X, self._prior(X, member, subset.weight), bias_variance)

    def _prior(self, X: Array, member: Array, weight: Array) -> ClassNormalWisharts:
        mean = np.average(X, axis=0, weights=weight) if self.mean is None else self.mean
        spread = np.average((X - np.average(X, axis=0, weights=weight)) ** 2, axis=0, weights=weight)
        k = max(1.0, X.shape[1] + 2.0 - float(member.sum(axis=0).min())) if self.k is None else self.k
        # k rows bring it about, so they need as much more of it as there are rows for one of them
        floor = self.floor * (member.sum() / member.shape[1]) / max(k, 1e-300)
        cov = _within(X, member, spread, floor) if self.cov is None else self.cov
        gaussians = tuple(self._class_prior(X, member, s, k, mean, cov, spread) for s in range(member.shape[1]))
        log_share = np.log(np.maximum(member.sum(axis=0), 1e-300))
        contrast = contrasts(member.shape[1])
        # the contrasts' columns are orthogonal, of squared length 1/2
        return ClassNormalWisharts(gaussians, 2.0 * contrast.T @ log_share)

    def _class_prior(
        self, X: Array, member: Array, s: int, k: float, mean: Array, cov: Array, spread: Array
    ) -> NormalWishart:
        try:
            return class_posterior(X, member[:, s], k, mean, cov, spread)
        except OutsideDomainError as error:
            raise ValueError(
                f"class {self.classes[s]} {error}: its Gaussian has no distribution; "
                f"set a larger prior (now {k:g}), give more rows, or drop such columns"
            ) from error

    def scores(self, subset, fitted, solution, constraints, rows):
        X, found = self.X[rows], solution.state
        if self.predictive:
            return predictive_scores(found.classes, X, subset.prior * (subset.labelled * subset.weight)[:, None])
        log_prob = np.column_stack([one.expected_log_prob(X) for one in found.classes])
        return log_prob + contrasts(subset.n_classes) @ found.bias


def predictive_scores(classes: tuple[NormalWishart, ...], X: Array, member: Array) -> Array:
    """(n, C) log p(class) + log E p(x | class); classes as frequent as among the members."""
    log_share = np.log(member.sum(axis=0) / member.sum())
    return np.column_stack([one.predictive_log_prob(X) for one in classes]) + log_share


def _within(X: Array, member: Array, overall: Array, floor: Array | float) -> Array:
    """Covariance within the classes, a touch of the columns' own variance added: it must be positive definite."""
    out = np.zeros((X.shape[1], X.shape[1]))
    for own in member.T:
        if own.sum() > 0:
            left = X - np.average(X, axis=0, weights=own)
            out += (left * own[:, None]).T @ left
    out /= member.sum()
    spread = np.diagonal(out)
    least = np.where(spread > 0, spread, np.where(overall > 0, overall, 1.0))  # a constant column: encoded units
    return out + np.diag(np.maximum(1e-3 * least, floor))
