"""The rows of a fit in the form that a discriminant needs, to train on any subset and to score any other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mixent.base.kernels import Kernel
from mixent.core.arrays import Array
from mixent.core.driver import OutsideDomainError
from mixent.core.executors import Executor, Serial
from mixent.data import Table
from mixent.med.constraints import PairConstraints, contrasts
from mixent.med.functions import (
    FunctionDiscriminant,
    KernelDiscriminant,
    KernelGram,
    LinearDiscriminant,
    dual_coefficients,
)
from mixent.med.gaussians import ClassNormalWisharts, NormalWishart, class_posterior
from mixent.med.solving import Discriminant, GaussianDiscriminant, Search, Solution

FOLD_GAP = 1e-5  # duality gap per row of models of cross-validation: far below the error of their log-loss
BATCH_ROWS = 4096  # rows scored at once


def in_batches(table: Table, scores: Callable[[Table], Array]) -> Array:
    """The scores of all rows, computed in batches to save memory."""
    return np.concatenate([scores(table.take(slice(a, a + BATCH_ROWS))) for a in range(0, table.n_rows, BATCH_ROWS)])


@dataclass(frozen=True)
class Subset:
    """A subset of the rows to train on."""

    rows: np.ndarray  # positions
    prior: Array  # (m, C) prior label distributions
    labelled: np.ndarray  # (m,) bool: whether the prior is informative
    weight: Array  # (m,)
    uncertain: bool  # whether any label is uncertain

    @property
    def n_classes(self) -> int:
        return self.prior.shape[1]


class TrainingSet(ABC):
    """All rows of a fit."""

    @abstractmethod
    def discriminant(self, subset: Subset, bias_variance: float) -> Discriminant:
        """The family of discriminant functions on a subset."""

    @abstractmethod
    def scores(
        self, subset: Subset, fitted: Discriminant, solution: Solution, constraints: PairConstraints, rows: np.ndarray
    ) -> Array:
        """(m, C) scores of other rows."""

    def for_folds(self, search: Search) -> Search:
        """The search for models of cross-validation."""
        return replace(search, gap=max(search.gap, FOLD_GAP))


@dataclass(frozen=True)
class FeatureTrainingSet(TrainingSet):
    """Rows as vectors of features, for linear discriminants."""

    features: Array  # (n, r)
    encoded: Array | None = None  # (n, d) the encoded rows of Nyström features
    executor: Executor | None = None

    def discriminant(self, subset: Subset, bias_variance: float) -> LinearDiscriminant:
        return LinearDiscriminant(self.features[subset.rows], subset.n_classes, bias_variance)

    def scores(self, subset, fitted, solution, constraints, rows):
        plane = fitted.plane(solution)
        return (self.features[rows] @ plane.coef.T + plane.bias) @ contrasts(subset.n_classes).T


@dataclass(frozen=True)
class KernelTrainingSet(TrainingSet):
    """Rows as a kernel matrix, or as a kernel whose matrix would be too large to store."""

    K: Array | None  # (n, n)
    encoded: Array | None = None  # (n, d) the encoded rows, of which predictions need the support vectors
    kernel: Kernel | None = None  # in place of K
    executor: Executor | None = None

    def discriminant(self, subset: Subset, bias_variance: float) -> FunctionDiscriminant:
        if self.K is None:
            gram = KernelGram(self.kernel, self.encoded[subset.rows], self.executor or Serial())  # type: ignore[arg-type, index]
            return FunctionDiscriminant(gram, subset.n_classes, bias_variance)
        all_rows = len(subset.rows) == len(self.K) and (np.diff(subset.rows) == 1).all()
        return KernelDiscriminant(self.K, subset.n_classes, bias_variance, None if all_rows else subset.rows)

    def scores(self, subset, fitted, solution, constraints, rows):
        coefficients = dual_coefficients(solution, constraints, contrasts(subset.n_classes))
        if self.K is None:
            used = np.flatnonzero(coefficients.any(axis=1))
            f = fitted.gram.between(self.encoded[rows], used, coefficients)
        else:
            alpha = np.zeros((len(self.K), subset.n_classes - 1))
            alpha[subset.rows] = coefficients
            f = self.K[rows] @ alpha
        return (f + solution.state.bias) @ contrasts(subset.n_classes).T


@dataclass(frozen=True)
class GaussianTrainingSet(TrainingSet):
    """Rows as numeric columns, for a Gaussian of each class with a prior of `k` rows."""

    X: Array  # (n, d)
    k: float | None  # None: 1, or as many as the number of columns requires
    mean: Array | None  # (d,); None: the mean of the rows
    cov: Array | None  # (d, d); None: the covariance within classes
    classes: np.ndarray
    floor: Array | float = 0.0  # (d,) smallest variance of a column in the default `cov`
    predictive: bool = False  # whether the scores follow from Bayes' rule with predictive densities

    def discriminant(self, subset: Subset, bias_variance: float) -> GaussianDiscriminant:
        X = self.X[subset.rows]
        member = subset.prior * (subset.labelled * subset.weight)[:, None]  # an unlabelled row belongs to no class yet
        return GaussianDiscriminant(X, self._prior(X, member, subset.weight), bias_variance)

    def _prior(self, X: Array, member: Array, weight: Array) -> ClassNormalWisharts:
        mean = np.average(X, axis=0, weights=weight) if self.mean is None else self.mean
        spread = np.average((X - np.average(X, axis=0, weights=weight)) ** 2, axis=0, weights=weight)
        k = max(1.0, X.shape[1] + 2.0 - float(member.sum(axis=0).min())) if self.k is None else self.k
        # only the k rows of the prior have this variance, and a class has about n / C rows: scale it accordingly
        floor = self.floor * (member.sum() / member.shape[1]) / max(k, 1e-300)
        cov = _within(X, member, spread, floor) if self.cov is None else self.cov
        gaussians = tuple(self._class_prior(X, member, s, k, mean, cov, spread) for s in range(member.shape[1]))
        log_share = np.log(np.maximum(member.sum(axis=0), 1e-300))
        contrast = contrasts(member.shape[1])
        # the columns of the contrasts are orthogonal, with squared norm 1/2
        return ClassNormalWisharts(gaussians, 2.0 * contrast.T @ log_share)

    def _class_prior(
        self, X: Array, member: Array, s: int, k: float, mean: Array, cov: Array, spread: Array
    ) -> NormalWishart:
        try:
            return class_posterior(X, member[:, s], k, mean, cov, spread)
        except OutsideDomainError as error:
            raise ValueError(
                f"class {self.classes[s]} {error}, so the distribution of its Gaussian does not exist; "
                f"set a larger prior (now {k:g}), provide more rows, or drop columns"
            ) from error

    def scores(self, subset, fitted, solution, constraints, rows):
        X, posterior = self.X[rows], solution.state
        if self.predictive:
            return predictive_scores(posterior.classes, X, subset.prior * (subset.labelled * subset.weight)[:, None])
        log_prob = np.column_stack([gaussian.expected_log_prob(X) for gaussian in posterior.classes])
        return log_prob + contrasts(subset.n_classes) @ posterior.bias


def predictive_scores(classes: tuple[NormalWishart, ...], X: Array, member: Array) -> Array:
    """(n, C) log p(class) + log E p(x | class), with the class frequencies of the members (n, C)."""
    log_share = np.log(member.sum(axis=0) / member.sum())
    return np.column_stack([gaussian.predictive_log_prob(X) for gaussian in classes]) + log_share


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
