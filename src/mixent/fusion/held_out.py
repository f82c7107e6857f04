"""Predictions of held-out answers, by which models of a crowd are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array

from mixent.core.arrays import Array, softmax_columns
from mixent.fusion.crowd_models import Crowd, Model
from mixent.fusion.rules import ItemAnswers
from mixent.fusion.sources import Layout

FOLDS = 5  # of the answers
ENOUGH_ANSWERS = 20_000  # held-out answers; with as many in the first folds, the others are not needed
MIN_POWER = 0.02
FOLD_TOL = 1e-5  # gain in nats per item at which a fit stops; less precise than that of all answers
MIN_PROBABILITY = 1e-12


@dataclass(frozen=True)
class HeldOut:
    """Predictions of held-out answers by one candidate."""

    log_joint: Array  # (K, m) log p(k, other answers to the item)
    rates: Array  # (K, m) of the answer in each class
    weight: Array  # (m,)
    item: np.ndarray  # (m,)
    is_label: np.ndarray  # (m,) whether it is the label of an item

    @property
    def of_labels(self) -> HeldOut:
        """The predictions of labels alone."""
        use = self.is_label
        return HeldOut(self.log_joint[:, use], self.rates[:, use], self.weight[use], self.item[use], use[use])

    def log_prob(self, power: float) -> Array:
        """(m,) log-probabilities of the answers, with the posteriors raised to this power."""
        post = power * self.log_joint
        softmax_columns(post)
        return np.log(np.maximum((post * self.rates).sum(axis=0), MIN_PROBABILITY))

    def best_power(self) -> float:
        """The power of at most one with the best predictions."""
        best = minimize_scalar(lambda x: -self.weight @ self.log_prob(np.exp(x)), bounds=(np.log(MIN_POWER), 0.0))
        return float(np.exp(best.x))

    def mean(self, values: Array) -> float:
        return float(self.weight @ values / self.weight.sum())

    def standard_error(self, values: Array) -> float:
        """Standard error of the mean over independent items, whose answers are dependent."""
        total = np.bincount(self.item, self.weight * (values - self.mean(values)))
        return float(np.sqrt((total**2).sum()) / self.weight.sum())


@dataclass(frozen=True)
class Folds:
    """The answers in folds. The folds of the answers to an item differ as much as possible."""

    crowd: Crowd  # items that occur several times are separate rows, as far as they have different folds
    row: np.ndarray  # (m,) of each stored answer
    column: np.ndarray  # (m,)
    value: Array  # (m,)
    fold: np.ndarray  # (m,)
    label_fold: np.ndarray  # (n,) of the label of each item, -1 without a label

    @staticmethod
    def of(crowd: Crowd) -> Folds:
        """Folds that depend on the answers to an item and on the names of the sources, but not on any order."""
        weight = crowd.answers.weight
        parts = np.clip(weight.astype(int), 1, FOLDS)
        pattern = np.repeat(np.arange(len(weight)), parts)
        part = np.arange(len(pattern)) - np.repeat(np.cumsum(parts) - parts, parts)
        answers = ItemAnswers(crowd.answers.matrix[pattern], (weight / parts)[pattern], crowd.answers.labels[pattern])
        entries = answers.matrix.tocoo()
        row, column, value = entries.row, entries.col, entries.data
        root = crowd.layout.root[crowd.layout.source_of[column]]  # copies are in the same fold
        rank = np.argsort(np.argsort(np.array(crowd.layout.names)))[root]
        order = np.lexsort((column, rank, row))
        row, column, value, rank = row[order], column[order], value[order], rank[order]
        position, offset = _positions(row, rank), _hashes(crowd.layout, len(pattern), row, column, rank)
        fold = (position + offset[row] + part[row]) % FOLDS
        label_fold = np.where(answers.labels >= 0, (offset + part) % FOLDS, -1)
        return Folds(replace(crowd, answers=answers, tol=FOLD_TOL), row, column, value, fold.astype(int), label_fold)

    @cached_property
    def tested(self) -> list[tuple[ItemAnswers, np.ndarray, np.ndarray]]:
        """For each fold, the other answers and labels, the stored answers that are held out, and the items whose labels
        are; of items with other answers.
        """
        answers, out, n_tested = self.crowd.answers, [], 0
        for fold in range(FOLDS):
            kept = self.fold != fold
            entries = (self.value[kept], (self.row[kept], self.column[kept]))
            matrix = csr_array(entries, shape=answers.matrix.shape)
            others = np.diff(matrix.indptr) > 0
            test = np.flatnonzero(~kept & others[self.row])
            hidden = self.label_fold == fold
            if len(test) and n_tested < ENOUGH_ANSWERS:
                train = replace(answers, matrix=matrix, labels=np.where(hidden, -1, answers.labels))
                out.append((train, test, np.flatnonzero(hidden & others)))
                n_tested += len(test)
        return out

    @property
    def usable(self) -> bool:
        """Whether any items have several answers."""
        return bool(self.tested)

    def held_out(self, model: Callable[[Crowd], Model], labels: bool = True) -> HeldOut:
        """Predictions of the answers and labels of all folds; a label is an answer without errors.

        Where `labels` is False, the labels that are not held out are not used.
        """
        answers, log_joint, rates, rows, weights = self.crowd.answers, [], [], [], []
        for train, test, labelled in self.tested:
            if not labels:
                train = replace(train, labels=np.full_like(train.labels, -1))
            fitted = model(replace(self.crowd, answers=train))
            rows += [self.row[test], labelled]
            log_joint.append(train.log_joint(fitted.weights, np.log(fitted.prior))[:, np.concatenate(rows[-2:])])
            rates += [fitted.rates[self.column[test]].T, np.eye(len(fitted.prior))[:, answers.labels[labelled]]]
            weights += [self.value[test], np.ones(len(labelled))]
        row = np.concatenate(rows)
        weight = answers.weight[row] * np.concatenate(weights)
        is_label = np.repeat(np.arange(len(rows)) % 2 == 1, [len(part) for part in rows])
        return HeldOut(np.concatenate(log_joint, axis=1), np.concatenate(rates, axis=1), weight, row, is_label)


def _positions(row: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Position of the source of each entry among those of its row; entries are sorted by row and rank."""
    if not len(row):
        return row
    new_row = np.r_[True, row[1:] != row[:-1]]
    new_answer = new_row | np.r_[True, rank[1:] != rank[:-1]]
    count = np.cumsum(new_answer) - 1
    return count - count[new_row][np.cumsum(new_row) - 1]


def _hashes(layout: Layout, n_rows: int, row: np.ndarray, column: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """(n,) pseudo-random numbers from the sources of each row and from which of their answers are equal."""
    out = np.zeros(n_rows, dtype=np.int64)
    if not len(row):
        return out
    symbol = column - np.array([s.start for s in layout.slices])[layout.source_of[column]]
    starts = np.flatnonzero(np.r_[True, row[1:] != row[:-1]])
    first = np.repeat(symbol[starts], np.diff(np.r_[starts, len(row)]))
    key = (2 * rank + (symbol == first)).astype(np.uint64) + np.uint64(1)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # splitmix64
        key = (key ^ (key >> np.uint64(shift))) * np.uint64(factor)
    out[row[starts]] = (np.add.reduceat(key ^ (key >> np.uint64(31)), starts) >> np.uint64(40)).astype(np.int64)
    return out
