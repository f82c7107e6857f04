"""Class priors of an unlabelled batch by EM (Saerens, Latinne and Decaestecker 2002).

    maximize  sum_n log sum_c p_c P(c | x_n) / P0(c)

over the batch's priors p. Concave; every step of p <- mean posterior raises it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.core.arrays import Array, softmax_columns, weighted_total
from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.driver import Problem, Run, Stop, run
from mixent.core.executors import Serial
from mixent.core.proposals import Squarem
from mixent.core.stats import Stats
from mixent.data import listed

LEAST = 1e-12  # prior of a class


@dataclass(frozen=True)
class PriorStats(Stats):
    counts: Array  # (C,)
    log_lik: float


class PriorShift(Problem):
    """The likelihood ratios stand in `Block.X`, in the log domain."""

    def prepare(self, params: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(params)[:, None]

    def stats(self, ready: Array, block: Block) -> PriorStats:
        resp = block.X.T + ready
        log_lik = softmax_columns(resp)
        return PriorStats(resp @ block.row_weights, weighted_total(log_lik, block.weight))

    def objective(self, params: Array, total: PriorStats) -> float:
        return total.log_lik

    def update(self, params: Array, total: PriorStats, step: float = 1.0) -> Array:
        return total.counts / total.counts.sum()

    def pack(self, params: Array) -> Array:
        return params

    def unpack(self, vector: Array, like: Array) -> Array | None:
        """A class that a plain step has not emptied is not to be emptied by a bold one."""
        return None if (vector <= 0).any() else vector / vector.sum()


def shifted_priors(
    log_ratio: Array, start: Array, *, weight: Array | None = None, tol: float = 1e-9, max_iter: int = 5000
) -> Run:
    """Priors of the batch from log P(c | x) / P0(c), (n, C); `weight` (n,) counts its rows."""
    rows = ArrayBlocks(Block(log_ratio, weight=weight))
    return run(PriorShift(), rows, start, stop=Stop(tol, max_iter), executor=Serial(), propose=Squarem())


def floored(prior: Array) -> Array:
    """Shares in which a class that a batch seems to lack stays possible."""
    prior = np.maximum(prior, LEAST)
    return prior / prior.sum()


def read_class_prior(class_prior: Any, classes: np.ndarray, words: Sequence[str] = ("empirical",)) -> Array | None:
    """The user's class priors as shares; None where they are to be learned.

    Parameters
    ----------
    class_prior : one of `words`, (C,) array, or mapping of label -> probability
        Labels that are not a class of the rows are left out.
    classes : (C,) array
        The labels in the order of the result.
    words : sequence of str
        What may be given in place of numbers.
    """
    if isinstance(class_prior, str) and class_prior in words:
        return None
    given = class_prior
    if isinstance(given, Mapping):
        absent = [label for label in classes.tolist() if label not in given]
        if absent:
            raise ValueError(
                f"class_prior has no probability for the class {absent[0]!r}; give one for each of "
                f"{listed(classes.tolist())}"
            )
        given = [given[label] for label in classes.tolist()]
    try:
        prior = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        prior = np.empty(0)
    if prior.shape != (len(classes),) or not np.isfinite(prior).all() or (prior <= 0).any():
        raise ValueError(
            f"class_prior must be {', '.join(map(repr, words))} or {len(classes)} positive numbers, one per class; "
            f"got {class_prior!r}"
        )
    return prior / prior.sum()
