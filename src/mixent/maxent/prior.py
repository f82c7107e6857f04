"""Choice of the prior variance of the multipliers by cross-validated log-loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mixent.base.bounded_loss import log_with_uniform
from mixent.base.folds import Fold, label_folds
from mixent.base.params import check_number
from mixent.core.arrays import Array
from mixent.core.driver import Stop
from mixent.core.executors import Executor
from mixent.maxent.features import Training
from mixent.maxent.layout import Layout
from mixent.maxent.problem import Multipliers
from mixent.maxent.solvers import Sums, approximate

VARIANCES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
DEFAULT_VARIANCE = 0.3  # with too few labelled rows for cross-validation
MIN_ROWS, MIN_SECOND = 30, 5  # labelled rows required in total and in the second largest class
MAX_ROWS = 20_000  # rows used: the best variance hardly depends on the number of rows
STOP = Stop(1e-5, 300)  # smaller differences of the log-loss are ignored
WORSE = 2  # consecutive variances worse than the best before the search stops


def read_variance(prior_variance: Any) -> float | str | None:
    """Check the parameter `prior_variance`: "auto", None, or a positive number."""
    if prior_variance is None or (isinstance(prior_variance, str) and prior_variance == "auto"):
        return prior_variance
    if check_number(prior_variance) and np.isfinite(prior_variance) and prior_variance > 0:
        return float(prior_variance)
    raise ValueError(f"prior_variance must be 'auto', None (no prior) or a positive number; got {prior_variance!r}")


class Features(Protocol):
    """Computes the features of rows."""

    @property
    def seed(self) -> int: ...
    def layout(self, rows: Training) -> Layout: ...


@dataclass(frozen=True)
class FoldModel:
    """The model of the training rows of a fold, and its predictions of the held-out rows."""

    train: Training
    held_out: Training
    place: np.ndarray  # (m,) the held-out rows among all rows
    layout: Layout
    params: Multipliers
    log_post: Array  # (C, m)

    def losses(self) -> Array:
        """(m,) bounded log-loss of each held-out row, times its weight."""
        target = self.held_out.target * (self.held_out.weights * self.held_out.target.any(axis=1))[:, None]
        return -np.einsum("nc,cn->n", target, log_with_uniform(self.log_post, axis=0))


@dataclass(frozen=True)
class VarianceChoice:
    """The variance with the lowest cross-validated log-loss, and the models of the folds with this variance."""

    variance: float
    tried: list[dict]  # the log-losses of the variances tried
    rows: Training  # those of the folds
    folds: Sequence[FoldModel]


def choose_variance(plan: Features, rows: Training, cv: Any, executor: Executor, show: Any) -> VarianceChoice:
    """Choose the variance with the lowest cross-validated log-loss.

    The features are fitted again to the training rows of each fold, because mixtures and bins depend on the labels.
    (Those of a stacking model are fixed: they were computed out of fold; see `StackingFeatures`.)
    """
    labelled = rows.target.any(axis=1) & (rows.weights > 0)
    if isinstance(cv, (int, np.integer)) and labelled.sum() > MAX_ROWS:
        keep = np.flatnonzero(labelled)[np.random.default_rng((plan.seed, 7)).permutation(labelled.sum())[:MAX_ROWS]]
        rows, labelled = rows.take(np.sort(keep)), np.ones(MAX_ROWS, dtype=bool)
    weights = np.where(labelled, rows.weights, 0.0)
    codes = np.where(rows.target.any(axis=1), rows.target.argmax(axis=1), -1)
    counts = np.bincount(codes[labelled], weights[labelled], minlength=2)
    if counts.sum() < MIN_ROWS or np.sort(counts)[-2] < MIN_SECOND:
        return VarianceChoice(DEFAULT_VARIANCE, [], rows, ())
    folds = label_folds(codes, labelled, plan.seed, cv)
    if len(folds) < 2 and isinstance(cv, (int, np.integer)):
        return VarianceChoice(DEFAULT_VARIANCE, [], rows, ())
    _check(folds, codes, weights, rows.classes)
    test_weight = np.array([weights[test].sum() for _, test in folds])
    paths = []
    for f, fold in enumerate(folds):
        if show is not None:
            show(f, len(folds), f"prior variance, fold {f + 1} of {len(folds)}")
        paths.append(_Path.of(plan, rows, fold, executor))
    mean = test_weight @ np.array([path.losses for path in paths]) / test_weight.sum()
    table = [{"prior_variance": v, "log_loss": float(m)} for v, m in zip(VARIANCES, mean) if np.isfinite(m)]
    best = int(np.argmin(mean))
    return VarianceChoice(VARIANCES[best], table, rows, [path.models[best] for path in paths])


def _check(folds: list[Fold], codes: np.ndarray, weights: np.ndarray, classes: tuple) -> None:
    """Check that every training fold has all classes, and that every test fold has rows with positive weight."""
    for train, test in folds:
        counts = np.bincount(codes[train][weights[train] > 0], minlength=len(classes))
        absent = np.flatnonzero((counts == 0) & (np.bincount(codes[codes >= 0], minlength=len(classes)) > 0))
        if len(absent):
            raise ValueError(
                f"cv: a training fold has no row of class {classes[absent[0]]!r}; use stratified folds, or fewer folds"
            )
        if not weights[test].any():
            raise ValueError("cv: all rows of a test fold have sample_weight 0; use other folds")


@dataclass(frozen=True)
class _Path:
    """The models of a fold for increasing variances, until the log-loss of the held-out rows rises."""

    losses: Array  # (variances,) infinite for those that were not tried
    models: list[FoldModel]

    @staticmethod
    def of(plan: Features, rows: Training, fold: Fold, executor: Executor) -> _Path:
        train, held_out = rows.take(fold[0]), rows.take(fold[1])
        layout = plan.layout(train)
        train_rows = layout.rows(train.table, train.target, train.weight)
        test = layout.rows(held_out.table, held_out.target, held_out.weight)
        sums = Sums.of(layout.cells, train_rows, executor, gram=True)
        mask, width = layout.mask(len(rows.classes)), layout.widths(train_rows)
        losses = np.full(len(VARIANCES), np.inf)
        models: list[FoldModel] = []
        params, worse = None, 0
        for i, variance in enumerate(VARIANCES):
            problem, params = approximate(layout.cells, sums, variance / width**2, STOP, executor, mask, init=params)
            log_post = problem.log_posterior(params, test)
            models.append(FoldModel(train, held_out, fold[1], layout, params, log_post))
            losses[i] = models[-1].losses().sum() / test.weight.sum()
            worse = worse + 1 if losses[i] > losses.min() else 0
            if worse >= WORSE:
                break
        return _Path(losses, models)
