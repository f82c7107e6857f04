"""Search for pairs of columns whose joint values are constrained with the class: in batches, by cross-validation.

The pairs are ranked once, by their gains at the main effects (see `interactions`). Each batch adds the next pairs to
the model of every fold, which is fitted again from the solution before, with a prior variance of its own for the
multipliers of pairs. The ranking of a fold leaves out the residuals of its held-out rows, so that their log-loss is
that of the whole procedure: pairs, their number and their prior. (The main effects that give the residuals of other
rows were fitted to these rows too.)

First come the pairs with a clear gain, then others with a positive one: many weak interactions can be worth more than
a few strong ones. A batch is kept if it lowers the log-loss by more than `STEP` standard errors of the paired
differences (`CLEAR` if there are no pairs yet and none has a clear gain), and there are no pairs at all if all batches
together lower it by less than `CLEAR`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.core.executors import Executor
from mixent.maxent.blocks import Rows
from mixent.maxent.interactions import Factors, Gains, pair_gains
from mixent.maxent.layout import Layout, cell_variances, extend_multipliers
from mixent.maxent.prior import STOP, FoldModel, VarianceChoice
from mixent.maxent.problem import Multipliers
from mixent.maxent.solvers import Sums, approximate
from mixent.maxent.terms import SEPARATOR, Term, crossed

Pair = tuple[int, int]
LEAST_ROWS = 100  # labelled rows required
FIRST = 4  # pairs in the first batch; each batch is twice as large as the one before
VARIANCES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # of the multipliers of pairs
USUAL = 0.1  # the variance with which pairs are ranked at first
MOST_PAIRS = 128
MOST_CELLS = 3000  # most cells of a model with pairs
MOST_NUMBERS = 1e8  # most cells of all rows together
WIDER = 16  # pairs in the first batch with pairs whose gain is not clear
CLEAR = 2.0  # standard errors by which the log-loss with pairs must be lower than without
STEP = 1.0  # and with a batch than with the batches before


@dataclass(frozen=True)
class PairChoice:
    """The pairs of a model, and the prior variance of their multipliers."""

    terms: tuple[Term, ...]
    variance: float
    tried: list[dict]  # number of pairs, prior variance of their multipliers and cross-validated log-loss


@dataclass(frozen=True)
class _Stage:
    """The models of all folds with some number of pairs."""

    pairs: tuple[tuple[Pair, ...], ...]  # of each fold, and of all rows
    variance: float  # of the multipliers of pairs
    folds: Sequence[FoldModel]

    def losses(self) -> Array:
        """Loss of each held-out row, fold by fold."""
        return np.concatenate([fold.losses() for fold in self.folds])


def find_pairs(
    choice: VarianceChoice, terms: Sequence[Term], n_rows: int, executor: Executor, show: Any = None
) -> PairChoice:
    """The pairs with which the cross-validated log-loss is clearly lower than without, if there are any.

    Parameters
    ----------
    choice : VarianceChoice
        The models of the folds without pairs.
    terms : sequence of Term
        The features of the model of all rows.
    n_rows : int
        Number of rows of that model.
    """
    factors = Factors.of(terms, choice.rows)
    weight = sum(float((f.held_out.weights * f.held_out.target.any(axis=1)).sum()) for f in choice.folds)
    if len(factors.terms) < 2 or weight < LEAST_ROWS or _overlap(choice.folds):
        return PairChoice((), choice.variance, [])
    search = _Search(choice, factors, terms, n_rows, executor, show)
    stages = list(search.stages(_Stage(((),) * (len(choice.folds) + 1), USUAL, choice.folds)))
    tried = [
        {"pairs": len(s.pairs[-1]), "prior_variance": s.variance, "log_loss": float(s.losses().sum()) / weight}
        for s in stages
    ]
    best = search.best if _clear(stages[0].losses() - search.best.losses(), CLEAR) else stages[0]
    return PairChoice(tuple(search.term(pair) for pair in best.pairs[-1]), best.variance, tried)


def _overlap(folds: Sequence[FoldModel]) -> bool:
    """Whether a row is held out in several folds: no ranking would be independent of the held-out rows."""
    places = np.concatenate([fold.place for fold in folds])
    return len(np.unique(places)) < len(places)


def _clear(gains: Array, errors: float) -> bool:
    """Whether the sum of the gains of the rows is positive by more than some standard errors."""
    return float(gains.sum()) > errors * float(np.sqrt(((gains - gains.mean()) ** 2).sum()))


class _Search:
    def __init__(
        self,
        choice: VarianceChoice,
        factors: Factors,
        terms: Sequence[Term],
        n_rows: int,
        executor: Executor,
        show: Any,
    ) -> None:
        self.choice, self.factors, self.executor, self.show = choice, factors, executor, show
        names = {term.name for term in terms}
        n = len(factors.terms) if any(SEPARATOR in name for name in names) else 0
        self.taken = {pair for pair in combinations(range(n), 2) if self.term(pair).name in names}
        n_cells = max(Layout.of(terms).cells.n_cells, *(fold.layout.cells.n_cells for fold in choice.folds))
        self.budget = min(MOST_CELLS - n_cells, MOST_NUMBERS / max(n_rows, 1))  # cells of pairs
        self.gains = self._gains()

    def term(self, pair: Pair) -> Term:
        return crossed(*(self.factors.terms[i] for i in pair))

    def stages(self, stage: _Stage) -> Iterator[_Stage]:
        """Models with more and more pairs, as long as the log-loss is clearly lower than before; `best` is the last."""
        self.best, size, clear = stage, FIRST, True
        yield stage
        while True:
            pairs = self._more(self.best, size, clear)
            better = False
            if pairs is not None:
                stage = self._fitted(self.best, pairs)
                yield stage
                errors = STEP if clear or self.best.pairs[-1] else CLEAR
                better = _clear(self.best.losses() - stage.losses(), errors)
            if better:
                self.best, size = stage, 2 * size
            elif clear:
                clear, size = False, max(size, WIDER)
            else:
                return

    def _gains(self) -> list[Gains]:
        """Gains of all pairs without the held-out rows of each fold, and on all rows."""
        rows = self.choice.rows
        post = np.zeros((len(rows.classes), rows.table.n_rows))
        for fold in self.choice.folds:
            post[:, fold.place] = np.exp(fold.log_post)
        held_out = post.any(axis=0)  # a row that is alone in its class is not
        weight = rows.weights * rows.target.any(axis=1) * held_out
        target = (rows.target * weight[:, None]).T
        places = [fold.place for fold in self.choice.folds]
        axes, starts = self.factors.axes(rows)
        return pair_gains(axes, starts, target, post, weight, places, USUAL)

    def _more(self, stage: _Stage, size: int, clear: bool) -> tuple[tuple[Pair, ...], ...] | None:
        """The pairs of each fold and of all rows with the next batch; None if no pairs are left."""
        added = [gain.best(size, self.taken.union(pairs), clear) for gain, pairs in zip(self.gains, stage.pairs)]
        pairs = tuple(self._within((*old, *new)) for old, new in zip(stage.pairs, added))
        return pairs if len(pairs[-1]) > len(stage.pairs[-1]) else None

    def _within(self, pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
        """The first pairs, as many as are allowed, whose cells are within the budget."""
        sizes = [len(term.values) for term in self.factors.terms]
        total = np.cumsum([sizes[a] * sizes[b] for a, b in pairs])
        return pairs[: min(int((total <= self.budget).sum()), MOST_PAIRS)]

    def _fitted(self, stage: _Stage, pairs: tuple[tuple[Pair, ...], ...]) -> _Stage:
        """The models with these pairs, with the prior variance that has the lowest log-loss."""
        prepared = [self._prepared(fold, of_fold) for fold, of_fold in zip(stage.folds, pairs)]
        place = VARIANCES.index(stage.variance)
        best: _Stage | None = None
        for variance in VARIANCES if not stage.pairs[-1] else VARIANCES[place::-1]:
            if self.show is not None:
                self.show(len(stage.pairs[-1]), len(pairs[-1]), f"{len(pairs[-1])} pairs of columns")
            folds = [fold.solved(self.choice.variance, variance, self.executor) for fold in prepared]
            tried = _Stage(pairs, variance, folds)
            if best is not None and tried.losses().sum() >= best.losses().sum():
                break
            best = tried
        assert best is not None
        return best

    def _prepared(self, fold: FoldModel, pairs: tuple[Pair, ...]) -> _Prepared:
        old = {term.name for term in fold.layout.terms}
        new = [term for pair in pairs if (term := self.term(pair)).name not in old]
        return _Prepared.of(fold, Layout.of([*fold.layout.terms, *new]), self.executor)


@dataclass
class _Prepared:
    """The rows of a fold with pairs, and the latest solution."""

    fold: FoldModel
    layout: Layout
    rows: Rows
    test: Rows
    sums: Sums
    params: Multipliers

    @staticmethod
    def of(fold: FoldModel, layout: Layout, executor: Executor) -> _Prepared:
        rows, test = (layout.rows(part.table, part.target, part.weight) for part in (fold.train, fold.held_out))
        params = extend_multipliers(fold.layout, fold.params, layout)
        return _Prepared(fold, layout, rows, test, Sums.of(layout.cells, rows, executor), params)

    def solved(self, variance: float, pair_variance: float, executor: Executor) -> FoldModel:
        """The model with these variances of single features and of pairs."""
        variances = cell_variances(self.layout, self.rows, variance, pair_variance)
        mask = self.layout.mask(len(self.fold.train.classes))
        problem, self.params = approximate(
            self.layout.cells, self.sums, variances, STOP, executor, mask, init=self.params
        )
        log_post = problem.log_posterior(self.params, self.test)
        return replace(self.fold, layout=self.layout, params=self.params, log_post=log_post)
