"""Base class of the classifiers by maximum entropy discrimination: fit, choice of C, calibration, predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mixent.base.background import ExplainedByColumn
from mixent.base.capabilities import YES, able, yes
from mixent.base.classifier import ProbabilisticClassifier
from mixent.base.convergence import FittedByRun
from mixent.base.executors import choose_executor
from mixent.base.params import (
    RandomState,
    check_calibration,
    check_class_weight,
    check_count,
    check_folds,
    check_number,
    check_positive,
    warn_unused,
)
from mixent.base.progress import progress_bar
from mixent.base.result import RecordsAttribute
from mixent.core.arrays import Array, weighted_quantile
from mixent.core.driver import Status
from mixent.core.executors import Executor
from mixent.core.observers import Progress
from mixent.data import Table, TableLike, keep_notes, read_features, read_labels, read_weights
from mixent.med.calibration import Calibration
from mixent.med.constraints import PairConstraints, pairs
from mixent.med.cross_validation import CALIBRATIONS, Choice, CrossValidation, Folds, cv_rounds
from mixent.med.label_step import ClassShares
from mixent.med.margins import MarginPrior
from mixent.med.options import DISTRIBUTIONS, LabelUpdates, Margin
from mixent.med.solving import Discriminant, Search
from mixent.med.training_sets import Subset, TrainedDiscriminant, TrainingSet, read_subset
from mixent.med.uncertain_labels import LabelSolution, solve_uncertain_labels
from mixent.warn import warn

TYPICAL_WIDTH = 20  # columns assumed when deciding whether threads are worthwhile
LABEL_TOL = 100.0  # label updates stop when the relative entropy per row falls by less than this multiple of tol
FIXED_SHARES = 100.0  # pseudo-rows per unlabelled row with which given class shares are imposed
IMPROBABLE = 1e-3  # warn if all unlabelled rows are in one class, and the labelled shares give that this probability
GAP_FACTOR, MIN_GAP = 1e3, 1e-6  # warn of a duality gap per row above this multiple of tol, and above this value


class MEDBase(ExplainedByColumn, FittedByRun, ProbabilisticClassifier, ABC):
    """Base class: a subclass defines a `TrainingSet` and how its discriminant function is stored."""

    C_tried_ = RecordsAttribute()

    C: Any
    margin: str | Margin
    bias: Any
    calibration: Any
    class_weight: Any
    relaxation: float | LabelUpdates
    cv: Any
    tol: float
    max_iter: int
    random_state: RandomState
    categorical: Any
    n_jobs: int | None
    progress: Any
    calibration_: Calibration
    margin_: MarginPrior
    cv_error_: float | None = None  # in files of earlier versions
    unlabelled_gain_: float | None = None  # in files of earlier versions
    _groups = {"margin": Margin.read, "relaxation": LabelUpdates.read}
    _calibrations: tuple[str, ...] = CALIBRATIONS  # allowed calibrations
    _grid_values: tuple[float, ...]  # to try, in increasing order
    _patience = 3  # C="auto" stops after this many values without improvement
    _distributions: tuple[str, ...] = DISTRIBUTIONS  # allowed margin priors
    _quantile = 0.1  # default target of the margins: this quantile of the margins before discrimination
    _prior_from_rows = True  # whether the prior of the discriminant functions is fitted to the rows
    _bounds: tuple[float, float] = (-np.inf, np.inf)  # of a target that is a quantile

    def fit(self, X: TableLike, y: ArrayLike | None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : table of n rows
            Array or DataFrame; NaN, None or null are missing, text columns are categories. With kernel="precomputed",
            the (n, n) kernel matrix.
        y : (n,) labels or (n, C) label probabilities
            Labels of rows without one (None, NaN or "") are inferred (`label_posterior_`), and these rows are used if
            held-out labelled rows gain by it (`unlabelled_gain_`).
        sample_weight : (n,) array, optional
            For a given `C`, a weight of 2 is equivalent to repeating the row.

        Returns
        -------
        self
        """
        self._check()
        table = read_features(self, X, reset=True, categorical=self.categorical)
        labels = read_labels(y, table.n_rows)
        keep_notes(self, table, labels, quiet=isinstance(X, Table))
        subset = read_subset(labels, read_weights(sample_weight, table.n_rows), self.class_weight)
        if subset.uncertain and self._trains_margins() and self._group("margin").fixed:
            raise ValueError(
                "margin='fixed' requires that all labels are known, but some are uncertain or missing; provide every "
                "label, or set margin='laplace'"
            )
        self.schema_, self.n_rows_, self.classes_ = table.schema, table.n_rows, labels.classes
        self._group("relaxation").shares(self.classes_)  # an invalid value is an error even if no label is missing
        self._keep_background(table.take(subset.rows), subset.weight)
        workers = choose_executor(self.n_jobs, table.n_rows, TYPICAL_WIDTH)
        with progress_bar(self.progress, "discrimination") as show, workers as executor:
            training_set = self._training_set(X, y, table, subset, executor)
            search = Search(float(self.tol), int(self.max_iter), executor)
            self._store_function(self._fit_training_set(training_set, subset, search, show))
        return self

    @abstractmethod
    def _check(self) -> None:
        """Raise an error for invalid parameters."""

    @abstractmethod
    def _training_set(
        self, X: TableLike, y: ArrayLike | None, table: Table, subset: Subset, executor: Executor
    ) -> TrainingSet:
        """Return the encoded rows, and set the attributes of the encoding, such as `encoder_`."""

    @abstractmethod
    def _store_function(self, trained: TrainedDiscriminant) -> None:
        """Set the attributes that predictions need."""

    def _check_common(self) -> None:
        if not (isinstance(self.C, str) and self.C == "auto"):
            check_positive("C", self.C, also="'auto'")
        margin = self._group("margin")
        margin.check(self._distributions)
        if margin.fixed and not isinstance(self.C, str):
            warn_unused(f"C={self.C!r}", "a margin other than 'fixed'")
        check_calibration(self.calibration, self._calibrations)
        check_class_weight(self.class_weight)
        check_folds("cv", self.cv)
        check_positive("tol", self.tol)
        check_count("max_iter", self.max_iter)
        check_random_state(self.random_state)  # an invalid value is an error even if nothing is drawn
        self._group("relaxation").check()
        flat = isinstance(self.bias, str) and self.bias == "flat"
        if not flat and not (check_number(self.bias) and 0 < self.bias < np.inf):
            raise ValueError(f"bias must be 'flat', or the variance of its Gaussian prior, > 0; got {self.bias!r}")

    def _bias_variance(self) -> float:
        return np.inf if isinstance(self.bias, str) else float(self.bias)

    def _margin(self, C: float | None, discriminant: Discriminant, constraints: PairConstraints) -> MarginPrior:
        """The margin prior for this `C`."""
        margin = self._group("margin")
        target = margin.target
        if target is None:
            quantile = self._quantile if margin.quantile is None else float(margin.quantile)
            target = margin_quantile(self._prior_margins(discriminant, constraints), constraints, quantile)
            target = min(max(target, self._bounds[0]), self._bounds[1])
        return margin.prior(C, float(target))

    def _quantile_in_use(self) -> float | None:
        """The quantile that is the target of the margins; None if the target was given, or is one of the bounds."""
        margin = self._group("margin")
        if margin.target is not None or self.margin_.target in self._bounds:
            return None
        return self._quantile if margin.quantile is None else float(margin.quantile)

    def _prior_margins(self, discriminant: Any, constraints: PairConstraints) -> Array:
        """(n, pairs) margins before discrimination."""
        return discriminant.prior_margins(constraints)

    def _chooses_C(self) -> bool:
        """Whether `C` is chosen by cross-validation."""
        return isinstance(self.C, str) and self._uses_C()

    def _given_C(self) -> float | None:
        """`C` as a number; None if it is not given, or not used."""
        return float(self.C) if self._uses_C() and not isinstance(self.C, str) else None

    def _uses_C(self) -> bool:
        return self._trains_margins() and not self._group("margin").fixed

    def _trains_margins(self) -> bool:
        """Whether margin constraints are imposed; if not, unlabelled rows have no influence."""
        return True

    def _grid(self) -> tuple[float, ...]:
        """Values of `C` to try, in increasing order."""
        return self._grid_values

    # --- one fit ------------------------------------------------------------------------------------------------

    def _train(
        self,
        training_set: TrainingSet,
        subset: Subset,
        C: float | None,
        search: Search,
        start: Any = None,
        label_prior: Array | None = None,
    ) -> TrainedDiscriminant:
        """The solution for a subset; `label_prior` (m, C) has priors for the labels of its unlabelled rows."""
        discriminant = training_set.discriminant(subset, self._bias_variance())
        constraints = PairConstraints.of(subset.prior, subset.weight)
        margin = self._margin(C, discriminant, constraints)
        if not subset.uncertain or not self._trains_margins():
            solution = discriminant.solve(constraints, margin, search, start)
            return TrainedDiscriminant(training_set, subset, discriminant, margin, solution, None)
        updates = self._group("relaxation")
        run = solve_uncertain_labels(
            discriminant,
            margin,
            subset.prior if label_prior is None else label_prior,
            subset.weight,
            search,
            shares=class_shares(subset, updates.shares(self.classes_)),
            relaxation=float(updates.relaxation),
            tol=LABEL_TOL * float(self.tol),
            max_rounds=updates.max_rounds,
        )
        final: LabelSolution = run.params
        return TrainedDiscriminant(training_set, subset, discriminant, margin, final.solution, replace(run, last=None))

    def _fit_training_set(
        self, training_set: TrainingSet, subset: Subset, search: Search, show: Progress | None
    ) -> TrainedDiscriminant:
        """Choose `C`, train on all rows, calibrate, and set the attributes that all these classifiers share."""
        rounds = self._cv_rounds(training_set, subset)
        folds = CrossValidation(self._train, training_set, subset, rounds, search, self.calibration, show)
        folds, choice = self._choose(folds)
        grid = self._grid_in_use()
        self.unlabelled_gain_ = None
        used, label_prior = subset, None
        if subset.has_unlabelled and self._trains_margins():
            choice, label_prior, gain = folds.try_unlabelled(choice, grid)
            used = subset if gain > 0 else subset.take(np.flatnonzero(subset.labelled))
            self.unlabelled_gain_ = gain
        self.C_, self.C_tried_ = choice.C, choice.tried
        inferred = label_prior if used is subset else None
        trained = self._train(folds.training_set, used, self.C_, search.with_progress(show), None, inferred)
        labelled = subset.labelled & (subset.weight > 0)
        mass = (subset.prior[labelled] * subset.weight[labelled, None]).sum(axis=0)
        self.class_prior_ = mass / mass.sum()
        self.calibration_, self.cv_error_ = folds.calibrate(choice)
        self._set_training_attributes(trained)
        if used is not subset:
            assert label_prior is not None
            unlabelled = np.flatnonzero(~subset.labelled & (subset.weight > 0))
            self.label_posterior_[unlabelled] = label_prior[unlabelled]
        if label_prior is not None:
            self._warn_if_one_class(subset)
        return trained

    def _choose(self, folds: CrossValidation) -> tuple[CrossValidation, Choice]:
        """Choose `C`; a subclass may also choose the form of the rows, and return their cross-validation."""
        grid = self._grid_in_use()
        return folds, folds.choose_C(grid, self._patience) if grid else Choice(self._given_C())

    def _grid_in_use(self) -> tuple[float, ...]:
        """Values of `C` to choose from; none if it is given or not used."""
        return self._grid() if self._chooses_C() else ()

    def _cv_rounds(self, training_set: TrainingSet, subset: Subset) -> list[Folds]:
        """Rounds of cross-validation; none if nothing is chosen by it."""
        if not (self._chooses_C() or self.calibration in CALIBRATIONS or subset.has_unlabelled):
            return []
        return cv_rounds(subset, self.cv, self.random_state)

    def _set_training_attributes(self, trained: TrainedDiscriminant) -> None:
        """Set the attributes that describe the solution and the training rows, and warn if it did not converge."""
        solution, subset, n = trained.solution, trained.subset, self.n_rows_
        self.run_ = replace(solution.run, last=None) if trained.label_run is None else trained.label_run
        self.run_ = replace(self.run_, params=None)
        self.objective_, self.gap_ = solution.dual, solution.gap
        self.margin_ = trained.margin
        lam = np.zeros((n, solution.multipliers.shape[1]))
        lam[subset.rows] = solution.multipliers
        self.support_ = np.flatnonzero(lam.any(axis=1))
        self.multipliers_ = lam[:, 0] if lam.shape[1] == 1 else lam
        used = subset.weight > 0
        labelled = used & subset.labelled
        is_support = solution.multipliers[labelled].any(axis=1)
        self.loo_estimate_ = float(np.average(is_support, weights=subset.weight[labelled]))
        a, b = pairs(subset.n_classes)
        self.pairs_ = [(self.classes_[i], self.classes_[j]) for i, j in zip(a, b)]
        self.label_posterior_ = np.full((n, subset.n_classes), np.nan)
        self.label_posterior_[subset.rows[used]] = trained.label_posterior[used]
        self._check_convergence(float(subset.weight.sum()))

    def _warn_if_one_class(self, subset: Subset) -> None:
        """Warn if all unlabelled rows are in one class, which the labelled shares make improbable."""
        unlabelled = ~subset.labelled & (subset.weight > 0)
        inferred = np.unique(self.label_posterior_[unlabelled].argmax(axis=1))
        if len(inferred) == 1 and self.class_prior_[inferred[0]] ** unlabelled.sum() < IMPROBABLE:
            warn(
                f"the labels of all {unlabelled.sum()} unlabelled rows are inferred to be "
                f"{self.classes_.tolist()[inferred[0]]!r}; if that is wrong, set another C, or give their class shares "
                f"by relaxation=LabelUpdates(class_prior=...)",
                UserWarning,
            )

    def _check_convergence(self, weight: float) -> None:
        """Warn if the run did not converge, or ended far from the optimum because rounding errors prevent any step."""
        gap = self.gap_
        if (
            self.run_.status is Status.CONVERGED
            and gap is not None
            and gap > weight * max(GAP_FACTOR * self.tol, MIN_GAP)
        ):
            message = (
                f"no step improves the objective at a duality gap of {gap / weight:.2g} nats per row; set a smaller C"
            )
            self.run_ = replace(self.run_, status=Status.STOPPED, message=message)
            warn(f"{type(self).__name__} stopped: {message}", ConvergenceWarning)
        elif not self.run_.status.ok:
            warn(f"{type(self).__name__} did not converge: {self.run_.message}", ConvergenceWarning)

    # --- predictions --------------------------------------------------------------------------------------------

    @abstractmethod
    def _scores(self, X: TableLike) -> Array:
        """(n, C) expected discriminant functions."""

    def _predictive_scores(self, X: TableLike) -> Array:
        """(n, C) log p(class) + log p(x | class) with calibration="predictive"."""
        raise NotImplementedError

    def _calibrated_scores(self, X: TableLike) -> Array:
        """(n, C) scores that `calibration_` maps to probabilities."""
        return self._predictive_scores(X) if self.calibration == "predictive" else self._scores(X)

    def _has_plain_scores(self) -> bool:
        """Whether `decision_function` is the expected discriminant function plus constants."""
        return self.calibration != "predictive" and self.calibration_.prior_shift is None

    def decision_function(self, X: TableLike) -> Array:
        """Expected discriminant functions (Jaakkola, Meila and Jebara 1999, equation 8) with the calibration's offsets.

        `predict` and the order of the probabilities follow from these values. With calibration="predictive" and after
        `adjust_priors` they are log-probabilities, divided by the slope of the calibration.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n,) or (n, C) array
            For two classes, (n,) values that are positive for the second class. Otherwise one column per class.
        """
        check_is_fitted(self)
        scores = self.calibration_.decision(self._calibrated_scores(X))
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def _log_joint(self, X: TableLike) -> Array:
        return self.calibration_(self._calibrated_scores(X))

    def _explained_log_proba(self, X: TableLike) -> Array:
        return self.calibration_.without_lapses(self._calibrated_scores(X))

    def _set_class_prior(self, prior: Array) -> None:
        prior = np.maximum(prior, 1e-12)  # a class with an estimated prior of zero remains possible
        prior = prior / prior.sum()
        shift = np.log(prior) - np.log(np.maximum(self.class_prior_, 1e-12))
        earlier = 0.0 if self.calibration_.prior_shift is None else self.calibration_.prior_shift
        self.calibration_ = replace(self.calibration_, prior_shift=earlier + shift)
        self.class_prior_ = prior

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return able(
            tags,
            reads_tables=True,
            weights=YES,
            soft_labels=yes("prior probabilities of the labels, updated in training (`label_posterior_`)"),
            absent_labels=yes("used if held-out rows gain by it; labels are inferred (`label_posterior_`)"),
            mixed=YES,
        )


def margin_quantile(margins: Array, constraints: PairConstraints, quantile: float) -> float:
    """Weighted quantile of the margins (n, pairs) of the labelled rows."""
    labelled = constraints.imposed & (np.abs(constraints.signs) > 0)
    weight = np.broadcast_to(constraints.weight[:, None], margins.shape)
    return weighted_quantile(margins[labelled], weight[labelled], quantile)


def class_shares(subset: Subset, given: Array | None) -> ClassShares | None:
    """The constraint on the class shares of the unlabelled rows; None without such rows."""
    weight = np.where(subset.labelled, 0.0, subset.weight)
    if not weight.any():
        return None
    counts = (subset.labelled * subset.weight) @ subset.prior
    return ClassShares(weight, counts if given is None else FIXED_SHARES * weight.sum() * given)
