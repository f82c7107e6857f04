"""Choice of the prior variance of the joint model, by the pseudo-likelihood of held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mixent.core.arrays import Array
from mixent.core.driver import Stop
from mixent.core.executors import Executor
from mixent.maxent.joint_problem import Pairwise, RowBlocks, Rows, conditionals, pose, solve, spans_of

VARIANCES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
FOLDS = 3
ENOUGH = 500  # held-out rows; more folds would hardly change the choice
MAX_ROWS = 1500  # distinct rows that are used
STOP = Stop(1e-4, 300)


def choose_variance(rows: Rows, sizes: tuple[int, ...], seed: int, executor: Executor, show: Callable | None) -> float:
    """The variance with the highest pseudo-likelihood of held-out rows; 1 if there are too few rows for the folds.

    The variances are tried in increasing order, each fit starting from the previous one, until the held-out
    pseudo-likelihood falls.
    """
    sample, fold_weights = _folds(rows, seed)
    if (fold_weights.sum(axis=1) <= 0).any():
        return 1.0
    folds = []
    for f in range(FOLDS):
        train_weight = fold_weights.sum(axis=0) - fold_weights[f]
        train, test = (replace(sample, weight=weight).part(weight > 0) for weight in (train_weight, fold_weights[f]))
        folds.append((RowBlocks(train), test))
        if sum(test.weight.sum() for _, test in folds) >= ENOUGH:
            break
    init: list[Pairwise | None] = [None] * len(folds)
    best, chosen = -np.inf, 1.0
    for i, variance in enumerate(VARIANCES):
        score = 0.0
        for k, (blocks, test) in enumerate(folds):
            problem = pose(blocks, sizes, variance, executor)
            init[k] = params = solve(problem, blocks, "lbfgs", STOP, executor, init[k]).params
            score += pseudo_log_likelihood(params, sizes, test)
        if show is not None:
            show(i + 1, len(VARIANCES), f"prior variance {variance:g}")
        if score <= best:
            break
        best, chosen = score, variance
    return chosen


def pseudo_log_likelihood(params: Pairwise, sizes: tuple[int, ...], rows: Rows) -> float:
    """The weighted pseudo-log-likelihood of rows."""
    log_lik = conditionals(params, spans_of(sizes), rows.phi)[1]
    return float((log_lik * rows.present).sum(axis=0) @ rows.weight)


def _folds(rows: Rows, seed: int) -> tuple[Rows, Array]:
    """A random sample of at most `MAX_ROWS` distinct rows, and (folds, n) the weight of each row in each fold.

    A row of weight w is treated as w rows that are assigned to the folds in turn, so a frequent row is used for
    training as well as for testing.
    """
    sample = rows.part(np.random.default_rng((seed, 5)).permutation(rows.n_rows)[:MAX_ROWS])
    turn = (np.arange(FOLDS)[:, None] - np.arange(sample.n_rows)) % FOLDS  # position of each fold in the cycle
    rounds = np.floor(sample.weight / FOLDS)
    return sample, rounds + np.clip(sample.weight - FOLDS * rounds - turn, 0.0, 1.0)
