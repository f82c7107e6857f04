"""Racing: a method that is clearly behind after two folds is not run in the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mixent.evaluate.runner import Runner
from mixent.evaluate.scores import ROW_LOSSES, losses_of
from mixent.evaluate.text import beside

FOLDS = 2  # after which methods are compared
ERRORS = 4.0  # standard errors
MARGIN = 0.05  # of the loss of the best, beside the standard errors


def clearly_behind(losses: np.ndarray, folds: np.ndarray, weight: np.ndarray, ratio: float) -> np.ndarray:
    """Whether each method is clearly worse than the best of them.

    With d_n the loss of a method in row n less that of the best method, and D its weighted mean, it is when D is
    positive in every fold and

        D > 4 se(D) + 0.05 * loss of the best,   se(D)^2 = (1 + J n_test / n_train) sum_n v_n^2 (d_n - D)^2,

    where v_n are the weights that sum to 1 and J is the number of folds. The factor is that of Nadeau and Bengio (2003)
    for training sets that share rows; the margin allows for the variation between training sets, which the rows of two
    folds do not show.

    Parameters
    ----------
    losses : (m, n) array
        Loss of each method in each row.
    folds : (n,) array of int
    weight : (n,) array
    ratio : float
        Test rows per training row.

    Returns
    -------
    (m,) array of bool
    """
    share = weight / weight.sum()
    best = losses @ share
    lead = int(best.argmin())
    difference = losses - losses[lead]
    mean = difference @ share
    factor = 1 + len(np.unique(folds)) * ratio
    error = np.sqrt(factor * (difference - mean[:, None]) ** 2 @ share**2)
    everywhere = np.all([difference[:, folds == f] @ share[folds == f] > 0 for f in np.unique(folds)], axis=0)
    return everywhere & (mean > ERRORS * error + MARGIN * best[lead])


@dataclass(frozen=True)
class Race:
    """A policy: two folds of every method, cheap methods first, then the other folds of those not clearly behind.

    Parameters
    ----------
    codes : (n,) positions of the true classes
    weight : (n,) weights
    metric : str
        The loss; with one that is no mean over rows, nothing is stopped.
    """

    codes: np.ndarray
    weight: np.ndarray
    metric: str

    def __call__(self, runner: Runner) -> None:
        """Run."""
        names = sorted(runner.methods, key=lambda name: runner.methods[name].cost)
        everything = range(len(runner.splits))
        runner.planned |= {(name, split) for name in names for split in everything}
        runner.perform((name, split) for split in everything[:FOLDS] for name in names)
        if len(everything) > FOLDS:
            self.stop(runner, list(everything[:FOLDS]))
        rest = [(name, split) for split in everything[FOLDS:] for name in runner.racing]
        runner.perform(sorted(rest, key=lambda job: -runner.seconds(job[0])))  # so that no process waits at the end

    def stop(self, runner: Runner, splits: Sequence[int]) -> None:
        """Stop the methods that are clearly behind on these splits."""
        probas = {n: proba for n in runner.racing if (proba := _probabilities(runner, n, splits)) is not None}
        names = list(probas)
        if self.metric not in ROW_LOSSES or len(names) < 2:
            return
        rows = np.concatenate([runner.splits[s].test for s in splits])
        folds = np.concatenate([np.full(len(runner.splits[s].test), s) for s in splits])
        proba = np.stack(list(probas.values()))
        losses, weight = losses_of(self.codes[rows], proba, self.weight[rows], self.metric)
        ratio = float(np.mean([len(runner.splits[s].test) / len(runner.splits[s].train) for s in splits]))
        means = losses @ weight / weight.sum()
        lead = int(means.argmin())
        behind = clearly_behind(losses, folds, weight, ratio)
        for i in np.flatnonzero(behind & [not runner.methods[name].always for name in names]):
            scores = beside(means[i], means[lead], names[lead], self.metric, "folds")
            runner.drop(names[i], "clearly behind", scores)


def _probabilities(runner: Runner, name: str, splits: Sequence[int]) -> np.ndarray | None:
    """Probabilities of the test rows of some splits; None where a method has not finished one of them."""
    done = [runner.outcomes[name][s].proba for s in splits if s in runner.outcomes[name]]
    known = [proba for proba in done if proba is not None]
    return np.concatenate(known) if len(known) == len(splits) else None
