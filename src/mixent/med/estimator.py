"""What every classifier by maximum entropy discrimination does around its discriminant functions."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import YES, able, yes
from mixent.base.classifier import ProbabilisticClassifier
from mixent.base.convergence import FittedByRun
from mixent.base.executors import choose_executor
from mixent.base.folds import label_folds
from mixent.base.params import check_calibration, check_count, check_folds, check_number, check_positive
from mixent.base.progress import progress_bar
from mixent.core.arrays import Array, weighted_quantile
from mixent.core.driver import Event, Run
from mixent.data import Labels, Table, read_features, read_labels, read_weights
from mixent.med.calibration import Calibration, fit_calibration, log_loss
from mixent.med.constraints import PairConstraints, pairs
from mixent.med.margins import MARGINS, MarginPrior
from mixent.med.options import DISTRIBUTIONS, Margin
from mixent.med.solving import Discriminant, Search, Solution
from mixent.med.training_sets import Subset, TrainingSet
from mixent.med.uncertain_labels import LabelSolution, solve_uncertain_labels

FEATURES = 20  # of a row, about: what decides whether threads pay
Folds = list[tuple[np.ndarray, np.ndarray]]
CALIBRATIONS = ("temperature", "affine")
REPEATED = 400  # labelled rows up to which folds are drawn again, so often that as many are held out in all; at most
REPEATS = 5
DOUBTFUL = 3.0  # most of C="auto" where labels are in doubt: with more, the first guess of a label is the last
WIDE, VISIBLE = 1e3, 1e-6  # gap worth a word: times the one asked for, and per row at least


class Trained:
    """A solution with all it was found from."""

    def __init__(
        self, subset: Subset, discriminant: Discriminant, margin: MarginPrior, found: Solution, labels: Run | None
    ):
        self.subset, self.discriminant, self.margin, self.solution, self.labels = (
            subset,
            discriminant,
            margin,
            found,
            labels,
        )
        self.q = subset.prior if labels is None else labels.params.q
        self.constraints = PairConstraints.of(self.q, subset.weight, subset.prior)


class MEDBase(FittedByRun, ProbabilisticClassifier, ABC):
    """Fit, choice of `C`, calibration: a subclass gives a `Space` and the margins before discrimination."""

    C: Any
    margin: Any
    bias: Any
    calibration: Any
    relaxation: float
    cv: Any
    tol: float
    max_iter: int
    random_state: Any
    categorical: Any
    n_jobs: int | None
    progress: Any
    calibration_: Calibration
    margin_: MarginPrior
    _groups = {"margin": Margin.read}
    _patience = 3  # values of C in succession that are no better, after which no more are tried
    _distributions: tuple[str, ...] = DISTRIBUTIONS  # of the margins
    _quantile = 0.1  # of the margins before discrimination, that is required (default)
    _prior_from_rows = True  # whether the prior of the discriminant functions, too, is fitted to the rows
    _bounds: tuple[float, float] = (-np.inf, np.inf)  # of a margin that is found from the quantile

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : table of n rows
            Array or DataFrame; NaN, None or null are missing, text columns are categories. With kernel="precomputed"
            the (n, n) kernel matrix.
        y : (n,) labels or (n, C) label probabilities
            None, NaN or "" for an unlabelled row: it is still used (section 5), and its label is inferred
            (`label_posterior_`).
        sample_weight : (n,) array, optional
            At a given `C`, a weight of 2 is equivalent to repeating the row.

        Returns
        -------
        self
        """
        self._check()
        table = read_features(self, X, reset=True, categorical=self.categorical)
        labels = read_labels(y, table.n_rows)
        subset = read_subset(labels, read_weights(sample_weight, table.n_rows))
        self.schema_, self.n_rows_, self.classes_ = table.schema, table.n_rows, labels.classes
        workers = choose_executor(self.n_jobs, table.n_rows, FEATURES)
        with progress_bar(self.progress, "discrimination") as show, workers as executor:
            training_set = self._training_set(X, y, table, subset, executor)
            search = Search(float(self.tol), int(self.max_iter), executor)
            self._keep_function(training_set, self._fit_training_set(training_set, subset, search, show))
        return self

    @abstractmethod
    def _check(self) -> None:
        """Refuse bad options."""

    @abstractmethod
    def _training_set(self, X: Any, y: Any, table: Table, subset: Subset, executor: Any) -> TrainingSet:
        """The rows as the discriminant sees them; `encoder_` and the like are set."""

    @abstractmethod
    def _keep_function(self, training_set: TrainingSet, trained: Trained) -> None:
        """Keep all that predictions need."""

    def _check_common(self) -> None:
        if not (isinstance(self.C, str) and self.C == "auto"):
            check_positive("C", self.C)
        margin = self._group("margin")
        margin.check(self._distributions)
        if margin.fixed and not isinstance(self.C, str):
            raise ValueError(f"C={self.C!r} is not used with margin='fixed', which has no bound; leave C out")
        check_calibration(self.calibration, self._calibrations())
        check_folds("cv", self.cv)
        check_positive("tol", self.tol)
        check_count("max_iter", self.max_iter)
        check_random_state(self.random_state)  # a bad one is told even where nothing is drawn
        if not check_number(self.relaxation) or not 0 < self.relaxation <= 1:
            raise ValueError(
                f"relaxation must be the share of a label update to apply, above 0 and at most 1; "
                f"got {self.relaxation!r}"
            )
        flat = isinstance(self.bias, str) and self.bias == "flat"
        if not flat and not (check_number(self.bias) and 0 < self.bias < np.inf):
            raise ValueError(f"bias must be 'flat', or the variance > 0 of its Gaussian prior; got {self.bias!r}")

    def _calibrations(self) -> tuple[str, ...]:
        return CALIBRATIONS

    def _bias_variance(self) -> float:
        return np.inf if isinstance(self.bias, str) else float(self.bias)

    def _margin(self, c: float | None, discriminant: Discriminant, constraints: PairConstraints) -> MarginPrior:
        """The margin prior at this `C`."""
        margin = self._group("margin")
        target = margin.target
        if target is None:
            quantile = self._quantile if margin.quantile is None else float(margin.quantile)
            usual = margin_quantile(self._prior_margins(discriminant, constraints), constraints, quantile)
            target = min(max(usual, self._bounds[0]), self._bounds[1])
        return margin.prior(c, float(target))

    def _quantile_in_use(self) -> float | None:
        """The quantile of the margins before discrimination that the target is; None: it is given, or a bound."""
        margin = self._group("margin")
        if margin.target is not None or self.margin_.target in self._bounds:
            return None
        return self._quantile if margin.quantile is None else float(margin.quantile)

    def _prior_margins(self, discriminant: Any, constraints: PairConstraints) -> Array:
        """(n, pairs) before discrimination."""
        return discriminant.prior_margins(constraints)

    def _needs_c(self) -> bool:
        return isinstance(self.C, str) and self._group("margin").distribution in MARGINS and self._asks()

    def _asks(self) -> bool:
        """Is a margin asked of rows at all? If not, those without a label have nothing to say."""
        return True

    @abstractmethod
    def _grid(self) -> tuple[float, ...]:
        """Values of `C` to try, rising."""

    # --- one fit ------------------------------------------------------------------------------------------------

    def _train(
        self, training_set: TrainingSet, subset: Subset, c: float | None, search: Search, start: Any = None
    ) -> Trained:
        discriminant = training_set.discriminant(subset, self._bias_variance())
        constraints = PairConstraints.of(subset.prior, subset.weight)
        margin = self._margin(c, discriminant, constraints)
        if not subset.uncertain or not self._asks():
            return Trained(subset, discriminant, margin, discriminant.solve(constraints, margin, search, start), None)
        found = solve_uncertain_labels(
            discriminant,
            margin,
            subset.prior,
            subset.weight,
            search,
            relaxation=float(self.relaxation),
            tol=10.0 * float(self.tol),
            max_rounds=self.max_iter,
        )
        beliefs: LabelSolution = found.params
        return Trained(subset, discriminant, margin, beliefs.solution, replace(found, last=None))

    def _fit_training_set(
        self, training_set: TrainingSet, subset: Subset, search: Search, show: Any, rounds: list[Folds] | None = None
    ) -> Trained:
        """Choose `C`, train on all rows, calibrate; set the attributes all such classifiers have."""
        rounds = self._folds(subset) if rounds is None else rounds
        c, self.C_tried_, held = self._choose(training_set, subset, rounds, search, show)
        self.C_ = c
        trained = self._train(training_set, subset, c, _watched(search, show))
        known = subset.labelled & (subset.weight > 0)
        shares = (subset.prior[known] * subset.weight[known, None]).sum(axis=0)
        self.class_prior_ = shares / shares.sum()
        self.calibration_ = self._calibrate(training_set, subset, rounds, c, held, search, show)
        self._keep(trained)
        return trained

    def _folds(self, subset: Subset) -> list[Folds]:
        """Folds, drawn more than once where rows are few; each time every labelled row is held out once."""
        if not self._needs_c() and self.calibration not in CALIBRATIONS:
            return []
        codes = np.where(subset.labelled, subset.prior.argmax(axis=1), -1)
        counted = np.where(subset.weight > 0, codes, -1)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=REPEATS)
        often = min(REPEATS, max(1, round(REPEATED / max((counted >= 0).sum(), 1)))) if self._draws() else 1
        drawn = [label_folds(codes, counted >= 0, int(seed), self.cv) for seed in seeds[:often]]
        sound = [[fold for fold in folds if _sound(counted, fold, subset.n_classes)] for folds in drawn]
        if not self._draws() and len(sound[0]) < len(drawn[0]):
            raise ValueError(
                "cv must train on rows of every class and hold out rows with a label and a weight; "
                f"{len(drawn[0]) - len(sound[0])} of its {len(drawn[0])} splits do not"
            )
        return [folds for one in sound for folds in _apart(one)]

    def _draws(self) -> bool:
        """Are folds drawn at random, or the user's?"""
        return isinstance(self.cv, (int, np.integer))

    def _choose(
        self, training_set: TrainingSet, subset: Subset, rounds: list[Folds], search: Search, show: Any
    ) -> tuple[float | None, list[dict], list[Array] | None]:
        """`C`, what was tried, and the held-out scores at it (None: none of use)."""
        if not self._needs_c():
            return (None if isinstance(self.C, str) else float(self.C)), [], None
        grid = self._grid()
        if subset.uncertain:
            grid = tuple(c for c in grid if c <= DOUBTFUL)
        if not rounds:
            return grid[len(grid) // 2], [], None
        rough = training_set.for_folds(search)
        states: dict = {}
        tried: list[dict] = []
        best: tuple[float, float, list[Array] | None] = (np.inf, grid[0], None)
        for i, c in enumerate(grid):
            if show is not None:
                show(i, len(grid), f"C = {c:g}")
            held = self._held_scores(training_set, subset, rounds, c, rough, states, labelled_only=True)
            loss = self._stacked_loss(held, subset)
            tried.append({"C": c, "log_loss": loss})
            if loss < best[0]:
                best = (loss, c, held)
            elif i - grid.index(best[1]) >= self._patience:
                break
        return best[1], tried, None if subset.uncertain else best[2]

    def _stacked_loss(self, held: list[Array], subset: Subset) -> float:
        """Of all rounds."""
        scores, target, weight = _stacked(held, subset)
        return self._held_loss(scores, target, weight / len(held))

    def _held_loss(self, scores: Array, target: Array, weight: Array) -> float:
        """Log-loss of the probabilities that would be delivered; "affine" is judged as "temperature"."""
        if self.calibration is None or self.calibration in CALIBRATIONS:
            return log_loss(fit_calibration(scores, target, weight, affine=False)(scores), target, weight)
        return log_loss(log_softmax(scores, axis=1), target, weight)

    def _held_scores(
        self,
        training_set: TrainingSet,
        subset: Subset,
        rounds: list[Folds],
        c: float | None,
        search: Search,
        states: dict | None = None,
        *,
        labelled_only: bool = False,
    ) -> list[Array]:
        """(n, C) for each round: scores of each row by a model not trained on it; NaN for rows never held out.

        `states` are those of an earlier `C`, to start from; they are brought up to date.
        """
        out = []
        states = {} if states is None else states
        for r, folds in enumerate(rounds):
            scores = np.full(subset.prior.shape, np.nan)
            for f, (train, held) in enumerate(folds):
                if labelled_only:
                    train = train[subset.labelled[train]]
                sub = take_subset(subset, train)
                trained = self._train(training_set, sub, c, search, states.get((r, f)))
                states[r, f] = trained.solution.state
                fitted = trained.discriminant, trained.solution, trained.constraints
                scores[held] = training_set.scores(sub, *fitted, subset.rows[held])
            out.append(scores)
        return out

    def _calibrate(
        self,
        training_set: TrainingSet,
        subset: Subset,
        rounds: list[Folds],
        c: float | None,
        held: list[Array] | None,
        search: Search,
        show: Any,
    ) -> Calibration:
        if self.calibration not in CALIBRATIONS or not rounds:
            return Calibration(1.0, np.zeros(subset.n_classes))
        if show is not None:
            show(0, 1, "calibration")
        if held is None:
            held = self._held_scores(training_set, subset, rounds[:1], c, training_set.for_folds(search))
        scores, target, weight = _stacked(held, subset)
        return fit_calibration(scores, target, weight / len(held), affine=self.calibration == "affine")

    def _keep(self, trained: Trained) -> None:
        """What the solution says of the training rows."""
        solution, subset, n = trained.solution, trained.subset, self.n_rows_
        self.run_ = replace(solution.run, last=None) if trained.labels is None else trained.labels
        self.run_ = replace(self.run_, params=None)
        self.objective_, self.gap_ = solution.dual, solution.gap
        self.margin_ = trained.margin
        lam = np.zeros((n, solution.multipliers.shape[1]))
        lam[subset.rows] = solution.multipliers
        self.support_ = np.flatnonzero(lam.any(axis=1))
        self.multipliers_ = lam[:, 0] if lam.shape[1] == 1 else lam
        used = subset.weight > 0
        known = used & subset.labelled  # a row without a label cannot be wrong
        self.loo_estimate_ = float(np.average(solution.multipliers[known].any(axis=1), weights=subset.weight[known]))
        a, b = pairs(subset.n_classes)
        self.pairs_ = [(self.classes_[i], self.classes_[j]) for i, j in zip(a, b)]
        self.label_posterior_ = np.full((n, subset.n_classes), np.nan)
        self.label_posterior_[subset.rows[used]] = trained.q[used]
        self._tell(float(subset.weight.sum()))

    def _tell(self, weight: float) -> None:
        if self.run_.status.ok and self.gap_ is not None and self.gap_ > max(WIDE * self.tol, VISIBLE) * weight:
            warnings.warn(
                f"{type(self).__name__} stopped at a duality gap of {self.gap_ / weight:.2g} per row, where no step "
                f"improves the objective; set a smaller C, or scale the columns",
                ConvergenceWarning,
                stacklevel=5,
            )
        if not self.run_.status.ok:
            warnings.warn(
                f"{type(self).__name__} did not converge: {self.run_.message}", ConvergenceWarning, stacklevel=5
            )

    # --- predictions --------------------------------------------------------------------------------------------

    @abstractmethod
    def _scores(self, X: Any) -> Array:
        """(n, C) expected discriminant functions."""

    def decision_function(self, X: Any) -> Array:
        """The expected discriminant functions (equation 8).

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n,) array, positive for the second of two classes; with more, (n, C), and the largest is predicted.
        """
        check_is_fitted(self)
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def _log_joint(self, X: Any) -> Array:
        return self.calibration_(self._scores(X))

    def _set_class_prior(self, prior: Array) -> None:
        prior = np.maximum(prior, 1e-12)  # a class the batch seems to lack stays possible
        prior = prior / prior.sum()
        moved = np.log(prior) - np.log(np.maximum(self.class_prior_, 1e-12))
        before = 0.0 if self.calibration_.moved is None else self.calibration_.moved
        self.calibration_ = replace(self.calibration_, moved=before + moved)
        self.class_prior_ = prior

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return able(
            tags,
            reads_tables=True,
            weights=YES,
            soft_labels=yes("priors of the labels, which training may revise (`label_posterior_`)"),
            absent_labels=yes("used; their labels are inferred (`label_posterior_`)"),
            mixed=YES,
        )


def _sound(codes: np.ndarray, fold: tuple[np.ndarray, np.ndarray], n_classes: int) -> bool:
    """Does every class have a row to train on, and is some row held out?"""
    train, held = (codes[rows] for rows in fold)
    return len(np.unique(train[train >= 0])) == n_classes and bool((held >= 0).any())


def _apart(folds: Folds) -> list[Folds]:
    """Folds in rounds, such that none holds out a row twice."""
    rounds: list[Folds] = []
    seen: list[set] = []
    for fold in folds:
        held = set(fold[1].tolist())
        at = next((i for i, rows in enumerate(seen) if not rows & held), None)
        if at is None:
            rounds.append([])
            seen.append(set())
            at = len(rounds) - 1
        rounds[at].append(fold)
        seen[at] |= held
    return rounds


def _stacked(rounds: list[Array], subset: Subset) -> tuple[Array, Array, Array]:
    """Held-out scores of all rounds, with their labels and weights."""
    at = [np.flatnonzero(~np.isnan(scores[:, 0]) & (subset.weight > 0)) for scores in rounds]
    every = np.concatenate(at)
    return np.concatenate([s[rows] for s, rows in zip(rounds, at)]), subset.prior[every], subset.weight[every]


def margin_quantile(kept: Array, constraints: PairConstraints, share: float) -> float:
    """The margin that this share of the labelled rows does not reach; kept (n, pairs)."""
    live = constraints.imposed & (np.abs(constraints.signs) > 0)
    weight = np.broadcast_to(constraints.weight[:, None], kept.shape)
    return weighted_quantile(kept[live], weight[live], share)


def take_subset(subset: Subset, at: np.ndarray) -> Subset:
    """Some of the rows of a part."""
    prior, weight = subset.prior[at], subset.weight[at]
    return Subset(subset.rows[at], prior, subset.labelled[at], weight, bool(in_doubt(prior[weight > 0]).any()))


def in_doubt(prior: Array) -> np.ndarray:
    """(n,) bool: rows whose label could be more than one."""
    return (prior > 0).sum(axis=1) > 1


def read_subset(labels: Labels, weight: Array | None) -> Subset:
    """All rows, their label distributions; even ones for a row without a label."""
    likelihood = labels.likelihood
    absent = likelihood.min(axis=1) == 1.0
    prior = likelihood / likelihood.sum(axis=1, keepdims=True)
    weight = np.ones(len(prior)) if weight is None else weight
    labelled = ~absent & (np.ptp(prior, axis=1) > 0)
    counted = labelled & (weight > 0)
    likeliest = np.unique(prior[counted].argmax(axis=1))
    missing = [c for i, c in enumerate(labels.classes.tolist()) if i not in likeliest]
    if missing:
        raise ValueError(
            f"no row with a weight has the label {missing[0]!r}, certain or most probable; label some rows of "
            f"each class"
        )
    return Subset(np.arange(len(prior)), prior, labelled, weight, bool(in_doubt(prior[weight > 0]).any()))


def _watched(search: Search, show: Any) -> Search:
    """The search with a progress bar."""
    if show is None:
        return search

    def watch(event: Event) -> None:
        show(event.n_pass, search.max_iter, f"pass {event.n_pass}, objective {event.objective:.6g}")

    return replace(search, observers=(*search.observers, watch))
