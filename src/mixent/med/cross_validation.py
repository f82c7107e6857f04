"""Cross-validation within a fit: the choice of C, whether unlabelled rows are used, and the calibration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax, stdtrit
from sklearn.utils import check_random_state

from mixent.base.bounded_loss import log_with_uniform
from mixent.base.folds import label_folds
from mixent.core.arrays import Array
from mixent.core.observers import Progress
from mixent.med.calibration import Calibration, fit_calibration, log_loss
from mixent.med.solving import Search
from mixent.med.training_sets import Subset, TrainedDiscriminant, TrainingSet

Folds = list[tuple[np.ndarray, np.ndarray]]
CALIBRATIONS = ("temperature", "affine")
MIN_HELD_OUT = 400  # cross-validation is repeated until about this many rows were held out, at most MAX_REPEATS times
MAX_REPEATS = 5
MAX_C_UNCERTAIN = 3.0  # largest C="auto" with uncertain labels: with a larger C they keep their initial values
MIN_SHARE_ATTAINED = 0.1  # share of the margins that must be attained before the search for C can end
UNLABELLED_ROUNDS = 2  # rounds that choose C with unlabelled rows, which take long; the others follow if the loss falls
MIN_EFFECTIVE_ROWS = 5.0  # labelled rows without which no gain by unlabelled rows is shown
LEVEL = 0.05  # of the test whether unlabelled rows improve the predictions of labelled ones
ALL = slice(None)


@dataclass(frozen=True)
class Choice:
    """A value of C, and what cross-validation found about it."""

    C: float | None
    tried: list[dict] = field(default_factory=list)  # values tried, with their loss
    held_out: list[Array] | None = None  # held-out scores with this C; None: not computed
    models: dict[tuple[int, int], TrainedDiscriminant] = field(default_factory=dict)  # of the folds, by (round, fold)

    @property
    def log_loss(self) -> float:
        """The lowest loss of the values tried; infinite if there are none."""
        return min((entry["log_loss"] for entry in self.tried), default=np.inf)


@dataclass(frozen=True)
class CrossValidation:
    """Models of the folds of one training set, with the loss of their scores on held-out rows.

    Parameters
    ----------
    train : (training_set, subset, C, search, start, label_prior) -> TrainedDiscriminant
    training_set : rows in the form that the discriminants need
    subset : rows, labels and weights
    rounds : rounds of folds, each of which holds out a row at most once
    search : stopping rule of a fit to all rows
    calibration : calibration of the scores, before their loss is computed
    show : progress bar
    """

    train: Callable[..., TrainedDiscriminant]
    training_set: TrainingSet
    subset: Subset
    rounds: list[Folds]
    search: Search
    calibration: str | None
    show: Progress | None = None

    @cached_property
    def fold_search(self) -> Search:
        """The search for the models of folds."""
        return self.training_set.for_folds(self.search)

    @property
    def _fits_calibration(self) -> bool:
        return self.calibration in CALIBRATIONS

    # --- held-out rows ------------------------------------------------------------------------------------------

    def scores(
        self,
        C: float | None,
        rounds: slice = ALL,
        states: dict[tuple[int, int], TrainedDiscriminant] | None = None,
        fold_prior: Callable[[tuple[int, int], Subset], Array] | None = None,
    ) -> list[Array]:
        """Held-out scores (n, C) of each of these rounds; NaN for rows that are never held out.

        `states` holds what was trained for an earlier `C`, as initial values; it is updated in place. `fold_prior`
        gives the label priors of the training rows of a fold; if None, only labelled rows are trained on.
        """
        subset, out = self.subset, []
        states = {} if states is None else states
        for r, folds in list(enumerate(self.rounds))[rounds]:
            scores = np.full(subset.prior.shape, np.nan)
            for f, (train, test) in enumerate(folds):
                train = train[subset.labelled[train]] if fold_prior is None else train
                part = subset.take(train)
                label_prior = None if fold_prior is None else fold_prior((r, f), part)
                start = states[r, f].solution.state if (r, f) in states else None
                trained = self.train(self.training_set, part, C, self.fold_search, start, label_prior)
                states[r, f] = trained
                scores[test] = trained.scores(subset.rows[test])
            out.append(scores)
        return out

    def loss(self, held_out: list[Array]) -> float:
        """Log-loss of the held-out rows of all rounds; without calibration, that of the best slope."""
        return log_loss(*self._log_prob(held_out))

    def _log_prob(self, held_out: list[Array]) -> tuple[Array, Array, Array]:
        """Log-probabilities of the held-out rows of all rounds, their label likelihoods and weights."""
        scores, likelihood, weight = _stack_rounds(held_out, self.subset)
        if self.calibration is None or self._fits_calibration:
            log_prob = fit_calibration(scores, likelihood, weight, affine=self.calibration == "affine")(scores)
        else:
            log_prob = log_with_uniform(log_softmax(scores, axis=1))
        return log_prob, likelihood, weight

    def gain(self, before: list[Array], after: list[Array]) -> tuple[float, float]:
        """Reduction of the held-out loss from one list of scores to another, and its lower confidence bound.

        The bound is that of a one-sided t-test over the rows, at the nominal level of 5 %: C was chosen on some of
        these rounds. It is not positive where the weights are those of fewer than five rows.
        """
        log_probs = [self._log_prob(held_out) for held_out in (before, after)]
        losses = [-np.log((likelihood * np.exp(log_prob)).sum(axis=1)) for log_prob, likelihood, _ in log_probs]
        n_rows = len(self.subset.rows)
        rows = np.concatenate([_held_out_rows(scores, self.subset) for scores in before])
        count = np.bincount(rows, minlength=n_rows)
        gains = np.bincount(rows, losses[0] - losses[1], n_rows)[count > 0] / count[count > 0]
        weight = self.subset.weight[count > 0]
        mean = float(np.average(gains, weights=weight))
        freedom = effective_rows(weight) - 1.0
        if freedom + 1.0 < MIN_EFFECTIVE_ROWS:
            return mean, min(mean, 0.0)
        std_error = np.sqrt(np.average((gains - mean) ** 2, weights=weight) / freedom)
        return mean, mean - float(stdtrit(freedom, 1.0 - LEVEL) * std_error)

    # --- choices ------------------------------------------------------------------------------------------------

    def choose_C(self, grid: tuple[float, ...], patience: int) -> Choice:
        """`C` for the labelled rows alone.

        Larger values are tried until `patience` of them in a row do not improve the loss, until it rises twice in a
        row, or until the margins of all training rows are attained. While hardly any margin is attained, the functions
        for all values are nearly proportional to C, and the losses, which hardly differ, do not end the search.
        """
        if self.subset.take(np.flatnonzero(self.subset.labelled)).uncertain:
            grid = _small_values(grid)
        if not self.rounds:
            return Choice(grid[len(grid) // 2])
        states: dict[tuple[int, int], TrainedDiscriminant] = {}
        tried: list[dict] = []
        best, lowest, best_index = Choice(grid[0], tried), np.inf, 0
        losses: list[float] = []  # once some margins are attained
        for i, C in enumerate(grid):
            if self.show is not None:
                self.show(i, len(grid), f"C = {C:g}")
            held_out = self.scores(C, states=states)
            loss = self.loss(held_out)
            tried.append({"C": C, "log_loss": loss})
            if losses or np.mean([trained.share_attained for trained in states.values()]) >= MIN_SHARE_ATTAINED:
                losses.append(loss)
            if loss < lowest:
                best, lowest, best_index = Choice(C, tried, held_out, dict(states)), loss, i
            elif min(i - best_index, len(losses)) >= patience or _rises(losses):
                break
            if all(trained.attains_margins for trained in states.values()):
                break
        return best

    def try_unlabelled(self, alone: Choice, grid: tuple[float, ...]) -> tuple[Choice, Array, float]:
        """The choice with or without the unlabelled rows, label priors (n, C), and the bound of `gain`.

        The prior of an unlabelled row is its predicted probability by the fit to the labelled rows alone; in a fold, to
        its labelled training rows. Where the bound is not positive, the choice is that of the labelled rows alone.
        `grid` holds the values of C to choose from; it is empty if C is given.
        """
        if not self.rounds:
            return alone, self._label_prior(self.subset, alone.C, None), 0.0
        first, others = slice(UNLABELLED_ROUNDS), slice(UNLABELLED_ROUNDS, None)
        models = dict(alone.models)
        held_out = alone.held_out or self.scores(alone.C, first, models)
        calibration = fit_calibration(*_stack_rounds(held_out, self.subset), affine=True)
        if effective_rows(self.subset.weight[self.subset.labelled]) < MIN_EFFECTIVE_ROWS:
            return alone, self._label_prior(self.subset, alone.C, calibration), 0.0
        priors: dict = {}

        def fold_prior(fold: tuple[int, int], part: Subset) -> Array:
            if fold not in priors:
                priors[fold] = self._label_prior(part, alone.C, calibration, models[fold])
            return priors[fold]

        tried: dict[float | None, tuple[float, list[Array]]] = {}

        def loss(C: float | None) -> float:
            if C not in tried:
                if self.show is not None:
                    self.show(len(tried), len(values), f"unlabelled rows, C = {C}")
                with_these = self.scores(C, first, fold_prior=fold_prior)
                tried[C] = self.loss(with_these), with_these
            return tried[C][0]

        small = _small_values(grid)
        values: list[float | None] = [*small] or [alone.C]
        C = lowest_nearby(loss, values, max(sum((alone.C or 0.0) >= C for C in small) - 1, 0))
        with_these = tried[C][1]
        gain, bound = self.gain(held_out[first], with_these)
        if gain > 0 and self.rounds[others]:
            held_out = alone.held_out or held_out + self.scores(alone.C, others, models)
            with_these = with_these + self.scores(C, others, fold_prior=fold_prior)
            gain, bound = self.gain(held_out, with_these)
        choice = alone
        if bound > 0:
            choice = Choice(C, [{"C": C, "log_loss": tried[C][0]} for C in small if C in tried], with_these)
        return choice, self._label_prior(self.subset, alone.C, calibration), bound

    def _label_prior(
        self,
        subset: Subset,
        C: float | None,
        calibration: Calibration | None,
        trained: TrainedDiscriminant | None = None,
    ) -> Array:
        """(m, C) prior of the labels; for unlabelled rows, the probabilities predicted by the fit to the others."""
        if trained is None:
            labelled = subset.take(np.flatnonzero(subset.labelled))
            trained = self.train(self.training_set, labelled, C, self.search)
        scores = trained.scores(subset.rows[~subset.labelled])
        prior = subset.prior.copy()
        prior[~subset.labelled] = softmax(scores if calibration is None else calibration(scores), axis=1)
        return prior

    def calibrate(self, choice: Choice) -> tuple[Calibration, float | None]:
        """The calibration, and the error of held-out rows with it; None if no rows were held out."""
        calibration, held_out = Calibration(1.0, np.zeros(self.subset.n_classes)), choice.held_out
        fitted = self._fits_calibration and bool(self.rounds)
        if fitted and held_out is None:
            if self.show is not None:
                self.show(0, 1, "calibration")
            held_out = self.scores(choice.C, slice(1))
        if held_out is None:
            return calibration, None
        scores, likelihood, weight = _stack_rounds(held_out, self.subset)
        if fitted:
            calibration = fit_calibration(scores, likelihood, weight, affine=self.calibration == "affine")
        wrong = calibration.decision(scores).argmax(axis=1) != likelihood.argmax(axis=1)
        return calibration, float(np.average(wrong, weights=weight))


def effective_rows(weight: Array) -> float:
    """The number of rows with equal weights whose mean has the variance of the weighted mean."""
    return float(weight.sum() ** 2 / (weight**2).sum())


def cv_rounds(subset: Subset, cv: Any, random_state: Any) -> list[Folds]:
    """Rounds of cross-validation, each holding out a row at most once; several if labelled rows are few."""
    codes = np.where(subset.labelled, subset.prior.argmax(axis=1), -1)
    codes_used = np.where(subset.weight > 0, codes, -1)
    used = codes_used >= 0
    seeds = check_random_state(random_state).randint(2**31 - 1, size=MAX_REPEATS)
    random = isinstance(cv, (int, np.integer))
    n_repeats = min(MAX_REPEATS, max(1, round(MIN_HELD_OUT / max(used.sum(), 1)))) if random else 1
    repeats = [label_folds(codes, used, int(seed), cv) for seed in seeds[:n_repeats]]
    usable = [[fold for fold in folds if _is_usable(codes_used, fold, subset.n_classes)] for folds in repeats]
    if not random and len(usable[0]) < len(repeats[0]):
        raise ValueError(
            "cv must train on rows of every class and hold out rows with a label and a weight; "
            f"{len(repeats[0]) - len(usable[0])} of its {len(repeats[0])} splits do not"
        )
    return [one_round for folds in usable for one_round in _disjoint_rounds(folds)]


def _rises(losses: list[float]) -> bool:
    """Whether the last two losses are each larger than the one before."""
    return len(losses) > 2 and losses[-3] < losses[-2] < losses[-1]


def _is_usable(codes: np.ndarray, fold: tuple[np.ndarray, np.ndarray], n_classes: int) -> bool:
    """Whether every class has a training row, and some labelled row is held out."""
    train, test = (codes[rows] for rows in fold)
    return len(np.unique(train[train >= 0])) == n_classes and bool((test >= 0).any())


def _disjoint_rounds(folds: Folds) -> list[Folds]:
    """Distribute the folds over rounds, none of which holds out a row twice."""
    rounds: list[Folds] = []
    held_out: list[set] = []  # rows held out in each round
    for fold in folds:
        test = set(fold[1].tolist())
        index = next((i for i, rows in enumerate(held_out) if not rows & test), None)
        if index is None:
            rounds.append([])
            held_out.append(set())
            index = len(rounds) - 1
        rounds[index].append(fold)
        held_out[index] |= test
    return rounds


def _held_out_rows(scores: Array, subset: Subset) -> np.ndarray:
    return np.flatnonzero(~np.isnan(scores[:, 0]) & (subset.weight > 0))


def _stack_rounds(rounds: list[Array], subset: Subset) -> tuple[Array, Array, Array]:
    """Held-out scores of all rounds, the label likelihoods of the rows, and their weights divided by the rounds."""
    held_out = [_held_out_rows(scores, subset) for scores in rounds]
    all_rows = np.concatenate(held_out)
    scores = np.concatenate([scores[rows] for scores, rows in zip(rounds, held_out)])
    return scores, subset.prior[all_rows], subset.weight[all_rows] / len(rounds)


def _small_values(grid: tuple[float, ...]) -> tuple[float, ...]:
    """The values of a grid of C for uncertain labels."""
    return tuple(C for C in grid if C <= MAX_C_UNCERTAIN) or grid[:1]


def lowest_nearby(loss: Callable[[Any], float], grid: Sequence[Any], start: int) -> Any:
    """The value of a grid with the lowest loss, downhill from a position: to smaller values, then to larger ones."""
    best = start
    for step in (-1, 1):
        while 0 <= best + step < len(grid) and loss(grid[best + step]) < loss(grid[best]):
            best += step
    loss(grid[best])
    return grid[best]
