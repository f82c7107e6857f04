"""Choice of the prior variance of the multipliers by cross-validated log-loss."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from mixent.base.bounded_loss import log_with_uniform
from mixent.base.folds import Fold, label_folds
from mixent.base.params import check_number
from mixent.core.driver import Stop
from mixent.core.executors import Executor
from mixent.maxent.features import Training
from mixent.maxent.layout import Layout
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


def choose_variance(plan: Features, rows: Training, cv: Any, executor: Executor, show: Any) -> tuple[float, list[dict]]:
    """The variance with the lowest cross-validated log-loss, and the log-losses of the variances tried.

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
        return DEFAULT_VARIANCE, []
    folds = label_folds(codes, labelled, plan.seed, cv)
    if len(folds) < 2 and isinstance(cv, (int, np.integer)):
        return DEFAULT_VARIANCE, []
    _check(folds, codes, weights, rows.classes)
    loss = np.full((len(folds), len(VARIANCES)), np.inf)
    test_weight = np.array([weights[test].sum() for _, test in folds])
    for f, (train, test) in enumerate(folds):
        if show is not None:
            show(f, len(folds), f"prior variance, fold {f + 1} of {len(folds)}")
        loss[f] = _losses(plan.layout(rows.take(train)), rows.take(train), rows.take(test), executor)
    mean = test_weight @ loss / test_weight.sum()
    table = [{"prior_variance": v, "log_loss": float(m)} for v, m in zip(VARIANCES, mean) if np.isfinite(m)]
    return VARIANCES[int(np.argmin(mean))], table


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


def _losses(layout: Layout, train: Training, held_out: Training, executor: Executor) -> np.ndarray:
    """(variances,) log-loss of the held-out rows; infinite for the variances that were not tried."""
    rows = layout.rows(train.table, train.target, train.weight)
    test = layout.rows(held_out.table, held_out.target, held_out.weight)
    sums = Sums.of(layout.cells, rows, executor, gram=True)
    mask, width = layout.mask(rows.target.shape[0]), layout.widths(rows)
    out = np.full(len(VARIANCES), np.inf)
    params, worse = None, 0
    for i, variance in enumerate(VARIANCES):
        problem, params = approximate(layout.cells, sums, variance / width**2, STOP, executor, mask, init=params)
        log_proba = log_with_uniform(problem.log_posterior(params, test), axis=0)  # (C, n)
        out[i] = -float((test.target * log_proba).sum() / test.weight.sum())
        worse = worse + 1 if out[i] > out.min() else 0
        if worse >= WORSE:
            break
    return out
