"""Fusion of sources without calibrations, such as workers of a crowd: the model is chosen by predictive fit.

Candidates are workers of equal accuracy, the one-coin model, hierarchical confusion matrices (see `workers`), and the
model of Dawid and Skene with an assumed accuracy. A fifth of the answers is held out and predicted from the other
answers to the same items, by  P[v_ij | others] = sum_k q_i(k) A_j(v_ij | k),  where q and A are estimated without the
answers held out, and so on for each fifth. The candidate with the highest mean log-probability is chosen.

Errors of workers on difficult items are dependent, so that q is overconfident. The posteriors are raised to a power t,
at first the one with the best predictions of held-out answers. Held-out answers show how sure the consensus of the
workers is, but not that it may be wrong, so that t is multiplied by `CONSENSUS`, a constant chosen on simulated crowds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array

from mixent.core.arrays import Array, softmax_columns
from mixent.core.blocks import Whole
from mixent.core.driver import Run, Stop, run
from mixent.core.executors import Serial
from mixent.core.proposals import Delayed, Squarem
from mixent.fusion.rules import DawidSkene, DawidSkeneParams, ItemAnswers, dawid_skene
from mixent.fusion.sources import Layout
from mixent.fusion.workers import Events, Hierarchical, WorkerParams, assumed_rates, common_kinds

FOLDS = 5  # of the answers
ENOUGH_ANSWERS = 20_000  # held-out answers; with as many in the first folds, the others are not needed
MIN_POWER = 0.02
MIN_Z = 3.0  # of the gain of a candidate over the one before it
CONSENSUS = 0.7
MIN_ROWS = 5.0  # calibration rows of a class; with fewer the confusion matrix counts as an assumption
TOL, FOLD_TOL = 1e-7, 1e-5  # gain in nats per item at which a fit stops; in the folds less precision is needed
PLAIN_STEPS = 10  # before steps are extrapolated
MIN_PROBABILITY = 1e-12


@dataclass(frozen=True)
class Model:
    """Estimates of a candidate."""

    weights: Array  # (S, K) of the answers in the log posteriors
    rates: Array  # (S, K) of an answer not seen before
    prior: Array  # (K,)
    run: Run


@dataclass(frozen=True)
class Crowd:
    """Answers of the sources, and what is known of them beforehand."""

    layout: Layout
    answers: ItemAnswers
    counts: Array  # (S, K) of the calibrations or of the assumed accuracy
    prior: Array  # (K,) initial class priors
    max_iter: int
    tol: float = TOL

    @property
    def share(self) -> Array:
        """(S,) u of the source of each symbol."""
        return self.layout.share[self.layout.source_of]

    @cached_property
    def rows(self) -> Array:
        """(S, K) rows of each class that the counts of the source are equivalent to."""
        return self.layout.group_sums(self.counts)

    @property
    def given(self) -> Array:
        """(S, K) calibration counts, without assumptions."""
        return np.where(self.rows.min(axis=1, keepdims=True) >= MIN_ROWS, self.counts, 0.0)


def dawid_skene_model(crowd: Crowd) -> Model:
    """Confusion matrices with the counts of the calibrations, or of the assumed accuracy, as Dirichlet priors."""
    problem = DawidSkene(crowd.answers, crowd.counts, crowd.layout.group, crowd.share)
    start = DawidSkeneParams(crowd.prior, crowd.layout.confusion)
    fit = dawid_skene(problem, start, tol=crowd.tol, max_iter=crowd.max_iter).run
    assert fit is not None
    weights, _ = problem.prepare(fit.params)
    return Model(weights, fit.params.confusion, fit.params.prior, fit)


def _worker_model(crowd: Crowd, events: Events, strength: float | None = None) -> Model:
    problem = Hierarchical(
        crowd.answers, events, crowd.given, assumed_rates(events, crowd.counts / crowd.rows), crowd.share, strength
    )
    fit: Run[WorkerParams] = run(
        problem,
        Whole(crowd.answers.weight),
        problem.start(crowd.prior),
        stop=Stop(crowd.tol, crowd.max_iter),
        executor=Serial(),
        propose=None if strength == np.inf else Delayed(Squarem(), PLAIN_STEPS),
    )
    weights, _ = problem.prepare(fit.params)
    return Model(weights, problem.rates(fit.params), fit.params.prior, fit)


def hierarchical_model(crowd: Crowd) -> Model:
    """Confusion matrices shrunk to common ones, by an estimated strength."""
    return _worker_model(crowd, Events.full(crowd.layout))


def one_coin_model(crowd: Crowd) -> Model:
    """An accuracy of each worker, shrunk to a common one."""
    return _worker_model(crowd, Events.one_coin(crowd.layout))


def equal_model(crowd: Crowd) -> Model:
    """The same accuracy of all workers, so that the votes are counted."""
    return _worker_model(crowd, Events.one_coin(crowd.layout), np.inf)


MODELS: dict[str, Callable[[Crowd], Model]] = {
    "dawid-skene": dawid_skene_model,
    "equal": equal_model,
    "one-coin": one_coin_model,
    "hierarchical": hierarchical_model,
}


COINS = ("equal", "one-coin")


def candidates(layout: Layout) -> list[str]:
    """Models that apply: events of one coin need sources whose symbols are the classes."""
    classes = set(layout.classes.tolist())
    same = bool((common_kinds(layout) == 0).all()) and layout.n_groups[0] == 1 and layout.calibrations[0].cells is None
    return [name for name in MODELS if (same and set(layout.calibrations[0].symbols) == classes) or name not in COINS]


@dataclass(frozen=True)
class HeldOut:
    """Predictions of held-out answers by one candidate."""

    log_joint: Array  # (K, m) log p(k, other answers to the item)
    rates: Array  # (K, m) of the answer in each class
    weight: Array  # (m,)
    item: np.ndarray  # (m,)

    def log_prob(self, power: float) -> Array:
        """(m,) log-probabilities of the answers, with the posteriors raised to this power."""
        post = power * self.log_joint
        softmax_columns(post)
        return np.log(np.maximum((post * self.rates).sum(axis=0), MIN_PROBABILITY))

    def best_power(self) -> float:
        """The power of at most one with the best predictions."""
        found = minimize_scalar(lambda x: -self.weight @ self.log_prob(np.exp(x)), bounds=(np.log(MIN_POWER), 0.0))
        return float(np.exp(found.x))

    def mean(self, values: Array) -> float:
        return float(self.weight @ values / self.weight.sum())

    def standard_error(self, values: Array) -> float:
        """Standard error of the mean over independent items, whose answers are dependent."""
        total = np.bincount(self.item, self.weight * (values - self.mean(values)))
        return float(np.sqrt((total**2).sum()) / self.weight.sum())


@dataclass(frozen=True)
class Choice:
    """The chosen model, and the evidence."""

    name: str
    model: Model
    power: float  # of the posteriors
    evidence: Mapping[str, float]  # mean log-probability of a held-out answer by each candidate, in nats


def choose(crowd: Crowd, names: list[str]) -> Choice:
    """The candidate with the best predictions of held-out answers.

    Each candidate replaces the one before it if its predictions are significantly better. The order is that in which
    the classes can be exchanged by mistake: the common rates of the last one are only weakly tied to the classes.
    """
    folds = Folds.of(crowd)
    if not folds.usable:
        return Choice(names[0], MODELS[names[0]](crowd), CONSENSUS, dict.fromkeys(names, np.nan))
    held_out = {name: folds.held_out(MODELS[name]) for name in names}
    power = {name: predictions.best_power() for name, predictions in held_out.items()}
    log_prob = {name: predictions.log_prob(power[name]) for name, predictions in held_out.items()}
    evidence = {name: held_out[name].mean(values) for name, values in log_prob.items()}
    best = names[0]
    for name in names[1:]:
        gain = log_prob[name] - log_prob[best]
        if held_out[name].mean(gain) > MIN_Z * held_out[name].standard_error(gain):
            best = name
    return Choice(best, MODELS[best](crowd), CONSENSUS * power[best], evidence)


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

    def held_out(self, model: Callable[[Crowd], Model]) -> HeldOut:
        """Predictions of the answers and labels of all folds; a label is an answer without errors."""
        answers, log_joint, rates, rows, weights = self.crowd.answers, [], [], [], []
        for train, test, labelled in self.tested:
            fitted = model(replace(self.crowd, answers=train))
            rows += [self.row[test], labelled]
            log_joint.append(train.log_joint(fitted.weights, np.log(fitted.prior))[:, np.concatenate(rows[-2:])])
            rates += [fitted.rates[self.column[test]].T, np.eye(len(fitted.prior))[:, answers.labels[labelled]]]
            weights += [self.value[test], np.ones(len(labelled))]
        row = np.concatenate(rows)
        weight = answers.weight[row] * np.concatenate(weights)
        return HeldOut(np.concatenate(log_joint, axis=1), np.concatenate(rates, axis=1), weight, row)


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
