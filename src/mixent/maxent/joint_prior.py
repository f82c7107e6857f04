"""How wide the prior on pairs should be: what predicts rows held out best."""

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
ENOUGH = 500  # rows held out: further folds would hardly change the choice
MOST = 1500  # distinct rows to choose on
ROUGH = Stop(1e-4, 300)


def choose_variance(rows: Rows, sizes: tuple[int, ...], seed: int, executor: Executor, show: Callable | None) -> float:
    """The variance under which rows held out have the highest pseudo-likelihood; 1 where there is nothing to try on.

    Variances rise and each fit starts from the one before, until the held-out rows lose.
    """
    some, dealt = _folds(rows, seed)
    if (dealt.sum(axis=1) <= 0).any():
        return 1.0
    parts = []
    for f in range(FOLDS):
        kept = dealt.sum(axis=0) - dealt[f]
        both = [replace(some, weight=weight).part(weight > 0) for weight in (kept, dealt[f])]
        parts.append((RowBlocks(both[0]), both[1]))
        if sum(rows.weight.sum() for _, rows in parts) >= ENOUGH:
            break
    first: list[Pairwise | None] = [None] * len(parts)
    best, chosen = -np.inf, 1.0
    for i, variance in enumerate(VARIANCES):
        score = 0.0
        for k, (train, held) in enumerate(parts):
            problem = pose(train, sizes, variance, executor)
            first[k] = params = solve(problem, train, "lbfgs", ROUGH, executor, first[k]).params
            score += held_out(params, sizes, held)
        if show is not None:
            show(i + 1, len(VARIANCES), f"prior variance {variance:g}")
        if score <= best:
            break
        best, chosen = score, variance
    return chosen


def held_out(params: Pairwise, sizes: tuple[int, ...], rows: Rows) -> float:
    """The pseudo-log-likelihood of rows."""
    log_lik = conditionals(params, spans_of(sizes), rows.phi)[1]
    return float((log_lik * rows.present).sum(axis=0) @ rows.weight)


def _folds(rows: Rows, seed: int) -> tuple[Rows, Array]:
    """`MOST` rows at most, distinct ones in a random order, and of the weight of each what every fold holds out.

    A row of weight w is dealt as w rows would be, one to a fold in turn: a row that is frequent is learned from as well
    as held out.
    """
    some = rows.part(np.random.default_rng((seed, 5)).permutation(rows.n_rows)[:MOST])
    turn = (np.arange(FOLDS)[:, None] - np.arange(some.n_rows)) % FOLDS  # when each fold's turn comes
    rounds = np.floor(some.weight / FOLDS)
    return some, rounds + np.clip(some.weight - FOLDS * rounds - turn, 0.0, 1.0)
