"""The prior of the multipliers by cross-validated log-loss."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from mixent.base.folds import Fold, label_folds
from mixent.base.params import check_number
from mixent.core.driver import Stop
from mixent.core.executors import Executor
from mixent.maxent.features import Training
from mixent.maxent.layout import Layout
from mixent.maxent.solvers import Sums, approach

VARIANCES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
USUAL = 0.3  # where too few rows are labelled to choose
ENOUGH, SECOND = 30, 5  # labelled rows in all, and of the second largest class, from which folds can tell
MOST = 20_000  # rows to choose on: how long multipliers are is no matter of how many rows there are
STOP = Stop(1e-5, 300)  # log-losses that differ by less are alike
WORSE = 2  # variances in a row that may be worse than the best before the rest are left out


def read_variance(prior_variance: Any) -> float | str | None:
    """The parameter `prior_variance`, checked: "auto", None, or a positive number."""
    if prior_variance is None or (isinstance(prior_variance, str) and prior_variance == "auto"):
        return prior_variance
    if check_number(prior_variance) and np.isfinite(prior_variance) and prior_variance > 0:
        return float(prior_variance)
    raise ValueError(
        "prior_variance must be 'auto', None (no prior) or a positive variance of the multipliers; "
        f"got {prior_variance!r}"
    )


class Features(Protocol):
    """What makes features of rows."""

    @property
    def seed(self) -> int: ...
    def layout(self, rows: Training) -> Layout: ...


def choose_variance(plan: Features, rows: Training, cv: Any, executor: Executor, show: Any) -> tuple[float, list[dict]]:
    """The variance with the least held-out log-loss, and the table of those tried.

    The features are learned anew from the training rows of each fold: hidden components and bins have seen the labels.
    (Those of a combination are known beforehand, each row's out of fold; see `ensemble.stacking.StackingFeatures`.)
    """
    labelled = rows.target.any(axis=1) & (rows.weights > 0)
    if isinstance(cv, (int, np.integer)) and labelled.sum() > MOST:
        keep = np.flatnonzero(labelled)[np.random.default_rng((plan.seed, 7)).permutation(labelled.sum())[:MOST]]
        rows, labelled = rows.take(np.sort(keep)), np.ones(MOST, dtype=bool)
    weights = np.where(labelled, rows.weights, 0.0)
    codes = np.where(rows.target.any(axis=1), rows.target.argmax(axis=1), -1)
    counts = np.bincount(codes[labelled], weights[labelled], minlength=2)
    if counts.sum() < ENOUGH or np.sort(counts)[-2] < SECOND:
        return USUAL, []
    folds = label_folds(codes, labelled, plan.seed, cv)
    if len(folds) < 2 and isinstance(cv, (int, np.integer)):
        return USUAL, []
    _check(folds, codes, weights, rows.classes)
    loss = np.full((len(folds), len(VARIANCES)), np.inf)
    held_weight = np.array([weights[held].sum() for _, held in folds])
    for f, (train, held) in enumerate(folds):
        if show is not None:
            show(f, len(folds), f"prior variance, fold {f + 1} of {len(folds)}")
        loss[f] = _losses(plan.layout(rows.take(train)), rows.take(train), rows.take(held), executor)
    mean = held_weight @ loss / held_weight.sum()
    table = [{"prior_variance": v, "log_loss": float(m)} for v, m in zip(VARIANCES, mean) if np.isfinite(m)]
    return VARIANCES[int(np.argmin(mean))], table


def _check(folds: list[Fold], codes: np.ndarray, weights: np.ndarray, classes: tuple) -> None:
    """Each fold must have something to learn every class from, and something to score by."""
    for train, held in folds:
        learned = np.bincount(codes[train][weights[train] > 0], minlength=len(classes))
        absent = np.flatnonzero((learned == 0) & (np.bincount(codes[codes >= 0], minlength=len(classes)) > 0))
        if len(absent):
            raise ValueError(
                f"cv has a training part without class {classes[absent[0]]!r}; spread the classes over folds"
            )
        if not weights[held].any():
            raise ValueError("cv has a test part in which no row has a weight; give each test part some")


def _losses(layout: Layout, train: Training, held: Training, executor: Executor) -> np.ndarray:
    """(variances,) log-loss of the held-out rows; infinite where it had clearly begun to rise."""
    rows = layout.rows(train.table, train.target, train.weight)
    test = layout.rows(held.table, held.target, held.weight)
    sums = Sums.of(layout.cells, rows, executor, gram=True)
    mask, width = layout.mask(rows.target.shape[0]), layout.widths(rows)
    out = np.full(len(VARIANCES), np.inf)
    params, worse = None, 0
    for i, variance in enumerate(VARIANCES):
        problem, params = approach(layout.cells, sums, variance / width**2, STOP, executor, mask, first=params)
        out[i] = -float((test.target * problem.log_posterior(params, test)).sum() / test.weight.sum())
        worse = worse + 1 if out[i] > out.min() else 0
        if worse >= WORSE:
            break
    return out
