"""The rows of a fit in the form that a discriminant needs, to train on any subset and to score any other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from mixent.base.kernels import Kernel
from mixent.base.params import class_weights
from mixent.core.arrays import Array
from mixent.core.driver import Run
from mixent.core.executors import Executor, Serial
from mixent.data import Labels, Table
from mixent.med.constraints import PairConstraints, contrasts
from mixent.med.functions import FunctionDiscriminant, KernelDiscriminant, LinearDiscriminant, dual_coefficients
from mixent.med.grams import KernelGram
from mixent.med.margins import MarginPrior
from mixent.med.solving import Discriminant, Search, Solution

FOLD_GAP = 1e-6  # duality gap per row of models of cross-validation; a larger one saves no time
FOLD_ITER = 20  # most passes of such a model; the data sets of the benchmarks need fewer than 20
FOLD_ROUNDS = 5  # most rounds of label updates of such a model: later rounds change its labels slowly
BATCH_ROWS = 4096  # rows scored at once
ATTAINED = 0.15  # largest shortfall, relative to the target, of margins that a larger C hardly changes


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

    @property
    def has_unlabelled(self) -> bool:
        return bool((~self.labelled & (self.weight > 0)).any())

    @property
    def labelled_weight(self) -> Array:
        """(m,) weights that are zero for unlabelled rows: those that are not used shall have no influence."""
        return np.where(self.labelled, self.weight, 0.0)

    def has_every_row(self, n: int) -> bool:
        """Whether these are all of n rows, in their order."""
        return len(self.rows) == n and bool((np.diff(self.rows) == 1).all())

    def take(self, index: np.ndarray) -> Subset:
        """Some of the rows."""
        prior, weight = self.prior[index], self.weight[index]
        return Subset(
            self.rows[index], prior, self.labelled[index], weight, bool(is_uncertain(prior[weight > 0]).any())
        )


def is_uncertain(prior: Array) -> np.ndarray:
    """(n,) bool: whether more than one label is possible."""
    return (prior > 0).sum(axis=1) > 1


def read_subset(labels: Labels, weight: Array | None, class_weight: Any = None) -> Subset:
    """All rows with their label distributions, which are uniform for unlabelled rows.

    The weight of a labelled row is multiplied by the expected weight of its class.
    """
    likelihood = np.asfortranarray(labels.likelihood)  # sums and extremes of a row are faster by column
    unlabelled = likelihood.min(axis=1) == 1.0
    prior = likelihood / likelihood.sum(axis=1, keepdims=True)
    weight = np.ones(len(prior)) if weight is None else weight
    labelled = ~unlabelled & (np.ptp(prior, axis=1) > 0)
    present = np.unique(prior[labelled & (weight > 0)].argmax(axis=1))
    missing = [c for i, c in enumerate(labels.classes.tolist()) if i not in present]
    if missing:
        raise ValueError(
            f"class {missing[0]!r} is not the most probable label of any row with a positive weight; label some rows "
            f"of each class"
        )
    by_class = class_weights(class_weight, labels.classes, (labelled * weight) @ prior)
    weight = weight * np.where(labelled, prior @ by_class, 1.0)
    return Subset(np.arange(len(prior)), prior, labelled, weight, bool(is_uncertain(prior[weight > 0]).any()))


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

    fold_gap: ClassVar[float] = FOLD_GAP

    def for_folds(self, search: Search) -> Search:
        """The search for models of cross-validation."""
        gap, max_iter = max(search.gap, self.fold_gap), min(search.max_iter, FOLD_ITER)
        return replace(search, gap=gap, max_iter=max_iter, label_rounds=FOLD_ROUNDS)


@dataclass(frozen=True)
class TrainedDiscriminant:
    """The solution for a subset of the rows, with the problem it solves."""

    training_set: TrainingSet  # all rows of the fit
    subset: Subset
    discriminant: Discriminant
    margin: MarginPrior
    solution: Solution
    label_run: Run | None  # of the alternating optimization; None where all labels are certain

    @property
    def label_posterior(self) -> Array:
        """(m, C) the label distributions of the solution."""
        return self.subset.prior if self.label_run is None else self.label_run.params.q

    @cached_property
    def constraints(self) -> PairConstraints:
        """The constraints of these labels."""
        return PairConstraints.of(self.label_posterior, self.subset.weight, self.subset.prior)

    def scores(self, rows: np.ndarray) -> Array:
        """(m, C) scores of other rows of the training set."""
        return self.training_set.scores(self.subset, self.discriminant, self.solution, self.constraints, rows)

    @property
    def share_attained(self) -> float:
        """Share of the margins that are attained with a multiplier of zero."""
        weight = self.constraints.weight[:, None] * self.constraints.imposed
        return float(weight[self.solution.multipliers == 0].sum() / max(weight.sum(), 1e-300))

    @property
    def attains_margins(self) -> bool:
        """Whether the margins of all rows are nearly the target or larger: the solution for any larger C is similar."""
        shortfall = self.margin.target - self.margin.mean(self.solution.multipliers.max(initial=0.0))
        return bool(shortfall <= ATTAINED * self.margin.target)


@dataclass(frozen=True)
class FeatureTrainingSet(TrainingSet):
    """Rows as vectors of features, for linear discriminants."""

    features: Array  # (n, r)
    kernel: Kernel | None = None  # whose inner products those of the features are, or approximate
    feature_map: Any = None  # from encoded rows (Nyström features), or a transformer of the columns
    encoded: Array | None = None  # (n, d) the encoded rows of Nyström features
    executor: Executor = field(default_factory=Serial)

    def discriminant(self, subset: Subset, bias_variance: float) -> LinearDiscriminant:
        features = self.features if subset.has_every_row(len(self.features)) else self.features[subset.rows]
        return LinearDiscriminant(features, subset.n_classes, bias_variance)

    def scores(self, subset, fitted, solution, constraints, rows):
        plane = fitted.plane(solution)
        return (self.features[rows] @ plane.coef.T + plane.bias) @ contrasts(subset.n_classes).T


@dataclass(frozen=True)
class KernelTrainingSet(TrainingSet):
    """Rows as a kernel matrix, or as a kernel whose matrix would be too large to store."""

    K: Array | None  # (n, n); None: it would be too large to store
    kernel: Kernel | None = None  # None: the matrix was given
    encoded: Array | None = None  # (n, d) the encoded rows, of which predictions need the support vectors
    executor: Executor = field(default_factory=Serial)
    feature_map: ClassVar[None] = None

    def discriminant(self, subset: Subset, bias_variance: float) -> FunctionDiscriminant:
        if self.K is None:
            gram = KernelGram(self.kernel, self.encoded[subset.rows], self.executor)  # type: ignore[arg-type, index]
            return FunctionDiscriminant(gram, subset.n_classes, bias_variance)
        rows = None if subset.has_every_row(len(self.K)) else subset.rows
        return KernelDiscriminant(self.K, subset.n_classes, bias_variance, rows)

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
