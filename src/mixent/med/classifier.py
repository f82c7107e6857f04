"""Maximum entropy discrimination with linear and kernel discriminant functions."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from mixent.base.capabilities import able, no, yes
from mixent.base.delegation import features_for
from mixent.base.kernels import (
    RBF,
    Kernel,
    KernelFunction,
    Linear,
    Nystrom,
    Polynomial,
    Precomputed,
    check_kernel_matrix,
    read_kernel,
)
from mixent.base.options import reads
from mixent.base.params import RandomState, check_flag, warn_unused
from mixent.base.result import RecordsAttribute
from mixent.core.arrays import Array
from mixent.core.executors import Executor
from mixent.data import Categorical, Table, TableLike, check_spread, read_features
from mixent.med.constraints import PairConstraints, contrasts
from mixent.med.cross_validation import Choice, CrossValidation, Folds, cv_rounds
from mixent.med.encoding import FILLED, Encoder
from mixent.med.estimator import MEDBase
from mixent.med.functions import dual_coefficients
from mixent.med.grams import KernelGram
from mixent.med.margins import MarginPrior, check_some_margin
from mixent.med.options import LabelUpdates, Margin
from mixent.med.solving import Discriminant
from mixent.med.training_sets import (
    FeatureTrainingSet,
    KernelTrainingSet,
    Subset,
    TrainedDiscriminant,
    TrainingSet,
    in_batches,
)
from mixent.show import Short

# Values of C for C="auto". With the exponential prior a C near 1 requires almost no margin, like a small C elsewhere.
GRIDS = {
    "exponential": (1.1, 1.3, 1.8, 4.0, 12.0, 40.0, 150.0, 500.0),
    "laplace": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0),
    "gaussian": (0.1, 0.2, 0.5, 1.0, 3.0, 10.0, 30.0),
}
KERNELS = (Linear, Polynomial, RBF, Precomputed, KernelFunction)
MATRIX = "a kernel matrix has neither missing values nor categories"
MOST_ROWS = 10_000  # with more rows Nyström features replace the kernel, unless n_landmarks is None
LANDMARKS = 1_000
STORED_ROWS = 16_000  # with more rows and n_landmarks=None, the kernel matrix (2 GB) is not stored
SAMPLED_ROWS = 5_000  # of these, as many are drawn for the choice of C and the calibration
GAMMA_FACTORS = (1.0, 0.1)  # multiples of "scale" from which gamma="auto" is chosen
GAMMA_ROWS = 1_000  # with more labelled rows, as many are drawn for that choice
CLASS_ROWS = 10  # of which at least so many are of each class


@reads(Linear, Polynomial, RBF)
def read_classifier_kernel(name: str, value: Any) -> Any:
    """Read a kernel; a transformer is returned unchanged."""
    return value if hasattr(value, "transform") else read_kernel(name, value, KERNELS, also="a transformer")


class MEDClassifier(MEDBase):
    """Maximum entropy discrimination with a linear or kernel discriminant function.

    Of all distributions over discriminant functions F_y and margins γ under which every training row attains its
    required margin over every other class in expectation, the solution is the one closest to the prior (least relative
    entropy; [1]_, equation 5).
    The prior is θ ~ N(0, I) for two classes (Theorem 2), with a bias b and a margin prior.  Maximizes the dual

        J(λ) = sum_k w_k u(λ_k) - log Z(λ),   for two classes  sum_t w_t u(λ_t) - 1/2 |sum_t w_t λ_t y_t x_t|^2,

    over multipliers λ >= 0, one for each row and other class, jointly for all classes; λ < C for the Laplace prior of
    the margins, u(λ) = λ + log(1 - (λ/C)^2), and for the exponential prior of Theorem 2, u(λ) = λ + log(1 - λ/C).
    Without the logarithm this is a support vector machine [2]_. Newton's method minimizes the primal objective: its
    negative never decreases; the difference between primal and dual is the duality gap. The solution is sparse:
    removing a row with λ = 0 changes nothing.

    Class probabilities are a softmax of the discriminant functions times a constant plus an offset for each class, both
    fitted to the scores of held-out rows (calibration="affine"), mixed with a share 1 / (n + 2) of the uniform
    distribution. `decision_function` includes the offsets, so that for two classes the probabilities rank rows as it
    does (with ties at extreme scores), and `predict` agrees with both.

    Parameters
    ----------
    kernel : "linear", "poly", "rbf", "precomputed", Polynomial, RBF, KernelFunction, callable, or transformer
        Kernel function. "poly" and "rbf" stand for `Polynomial()` and `RBF()`, which hold degree, gamma, coef0 and the
        number of Nyström features. A callable takes two matrices of encoded rows. A transformer (`FisherKernel`, or any
        object with `transform`) maps rows to features whose inner product is the kernel. With "precomputed", X is the
        kernel matrix. With more than 10 000 rows, 1000 Nyström features replace the kernel matrix. With
        `n_landmarks=None` the kernel is exact; with more than 16 000 rows its matrix is computed in parts (of the
        support rows up to 6 GB are stored), and `C` and the calibration are chosen on 5000 rows drawn at random.
    C : "auto" or float
        Upper bound on each row's multiplier, like C of a support vector machine. "auto" chooses it by cross-validated
        log-loss of the labelled rows (at most 3 with uncertain labels or unlabelled rows). The exponential margin prior
        needs C > 1. With margin="gaussian" there is no bound; 1 / C is the standard deviation of the prior.
    margin : "laplace", "exponential", "gaussian", "fixed" or Margin
        Prior of the margins, with its mode at 1, or at the `target` of a `Margin`. "fixed" is the hard margin: `fit`
        raises an error if the classes cannot be separated.
    bias : "flat" or float
        Prior of the bias: flat, or Gaussian with this variance. With a flat prior the multipliers of the classes
        balance.
    relaxation : float or LabelUpdates
        Step size of the label updates with uncertain labels, above 0 and at most 1; a `LabelUpdates` also has the
        number of rounds and the class shares of the unlabelled rows.
    calibration : "affine", "temperature" or None
        Calibration of the probabilities. "temperature" fits a factor of the scores; "affine" also an offset for each
        class, which is added to `decision_function`. None: softmax of the scores.
    standardize : bool
        Scale continuous columns to mean 0 and variance 1.
    cv : int, splitter or list of (train, test)
        Cross-validation folds for C="auto", gamma="auto" and the calibration. A list holds positions among the labelled
        rows; no rows are drawn at random then.
    tol : float
        Tolerance: stop when the duality gap per row is below it, in nats.
    max_iter : int
        Maximum number of iterations.
    class_weight : None, "balanced" or dict
        Weights of the classes, which multiply `sample_weight`, also in the calibration: the probabilities are those for
        classes with these weighted shares (`class_prior_`). "balanced" gives all classes the same total weight; classes
        that a dict leaves out have weight 1. For a row with label probabilities, the expected weight of its class.
    categorical : "auto" or list
        Columns to treat as categorical whatever their type; they are one-hot encoded.
    random_state : int, RandomState or None
        Seed for cross-validation, rows drawn at random and landmarks.
    n_jobs : int or None
        Number of threads; None uses all cores.
    progress : bool or callable
        True shows a progress bar; a callable is called with (done, total, text).

    Attributes
    ----------
    classes_ : (C,) array
        Class labels.
    class_prior_ : (C,) array
        Class priors: the shares of the labelled rows, or those set by `adjust_priors`.
    support_ : (m,) array
        Support rows: rows with a non-zero multiplier.
    support_vectors_ : (m, d) array
        The support rows in the encoded columns `feature_names_`, standardized if `standardize`. Not for a precomputed
        kernel, a transformer and Nyström features.
    multipliers_ : (n,) or (n, pairs) array
        Multipliers λ of the training rows; for more than two classes, one for each pair of classes in `pairs_`.
    pairs_ : list of tuple
        Pairs of classes, in the order of the columns of `multipliers_`.
    loo_estimate_ : float
        Share of support rows: the leave-one-out estimate of the error of Lemma 1 [1]_. Removing any other row changes
        nothing, so that with certain labels, and with settings and scaling held fixed, this is an upper bound on the
        leave-one-out error; it is a crude estimate of the error on new rows.
    C_ : float or None
        `C` in use; None without an upper bound.
    C_tried_ : list of dict
        Values of `C` tried, with their cross-validated log-loss, for the kernel in use.
    gamma_tried_ : list of dict
        Values from which gamma="auto" was chosen, with the lowest cross-validated log-loss over `C`; empty if it was
        not chosen.
    objective_ : float
        Dual objective J at the solution, in nats; with uncertain labels, for the labels inferred at the end.
    gap_ : float or None
        Duality gap: an upper bound on the distance of `objective_` from its optimum. With Nyström features it is that
        of the kernel itself, so it contains the error of the features.
    label_posterior_ : (n, C) array
        Label probabilities of the training rows, inferred for uncertain labels; NaN for rows of weight 0. `C` bounds
        how far they can move from the prior; for predictions use `predict_proba`.
    unlabelled_gain_ : float or None
        Lower confidence bound (95 %, one-sided) of the reduction of the held-out log-loss of labelled rows by the
        unlabelled ones, in nats. Unlabelled rows are used only if it is positive. None without such rows.
    cv_error_ : float or None
        Share of the labelled rows that are misclassified when they are held out in the cross-validation for `C` and the
        calibration; slightly optimistic, since it chose both. None without cross-validation.
    margin_ : MarginPrior
        Margin prior in use.
    calibration_ : Calibration
        Map from scores to probabilities.
    run_ : Run
        Status and trace of the optimization.
    coef_ : (1, d) or (C, d) array
        Coefficients of the columns `feature_names_` (numbers in their own units, missing ones replaced by
        `encoder_.center`; indicators of missing values; one-hot categories), or of the features of a transformer, so
        that `decision_function` is Z @ coef_.T + intercept_; one row for two classes. Only with a linear kernel or a
        transformer.
    intercept_ : (1,) or (C,) array
        Constants of `decision_function`, with the offsets of the calibration; for other kernels the mean of the bias
        and the offsets. One number for two classes.
    function_ : DiscriminantFunction
        Expected discriminant functions.
    feature_names_ : tuple of str
        Names of the encoded columns.
    encoder_ : Encoder or None
        Encoding of the columns; None for a precomputed kernel and a transformer.
    kernel_ : Kernel or None
        Kernel with its parameters in use; None for a precomputed kernel and a transformer.
    feature_map_ : Nystrom, transformer or None
        Map to the features whose inner product is the kernel; None if the kernel is used directly.
    n_rows_ : int
        Number of training rows.
    schema_ : Schema
        Names and types of the columns.
    background_ : Background or None
        The training rows, at most 50, with which `explain` compares a row; None with kernel="precomputed".
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Names of the columns, if X had any.
    notes_ : list of str
        What was unusual in the training table, and what was done about it; see the guide to data.

    See Also
    --------
    MEDGaussianClassifier : The same with log-ratios of Gaussians, which have quadratic boundaries.
    MEDTreeClassifier : The same with log-ratios of tree-structured distributions, mainly for categories.
    FisherKernel : Kernel from a mixture or hidden Markov model.
    sklearn.svm.SVC : Support vector classification.

    References
    ----------
    .. [1] Jaakkola, T., Meila, M. and Jebara, T. (1999). Maximum entropy discrimination. MIT AI Laboratory. Sections 2,
       3.1 and 5, Theorem 2 (document 001).
    .. [2] Cortes, C. and Vapnik, V. (1995). Support-vector networks. Machine Learning 20(3), 273-297.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mixent import MEDClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = MEDClassifier(C=5, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.98), len(model.support_) < 100
    (True, True)
    """

    gamma_tried_ = RecordsAttribute(absent=())
    _groups = {"kernel": read_classifier_kernel, **MEDBase._groups}
    _prior_from_rows = False
    _support_vectors: Array | None = None  # of a linear kernel; None also in files of earlier versions

    def __init__(
        self,
        kernel: Any = "linear",
        *,
        C: str | float = "auto",
        margin: str | Margin = "laplace",
        bias: str | float = "flat",
        relaxation: float | LabelUpdates = 0.5,
        calibration: str | None = "affine",
        standardize: bool = True,
        cv: Any = 5,
        tol: float = 1e-6,
        max_iter: int = 1000,
        class_weight: Any = None,
        categorical: Categorical = "auto",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        progress: bool | Callable[[int, int, str], None] = False,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.margin = margin
        self.bias = bias
        self.relaxation = relaxation
        self.calibration = calibration
        self.standardize = standardize
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.categorical = categorical
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    # --- options ------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        self._check_common()
        kernel, margin = self._group("kernel"), self._group("margin")
        if isinstance(kernel, Kernel):
            kernel.check()
        check_flag("standardize", self.standardize)
        if not self.standardize and not _encodes(kernel):
            warn_unused("standardize=False", f"kernels of encoded columns; got kernel={self.kernel!r}")
        if margin.quantile is not None:
            warn_unused(f"quantile={margin.quantile!r} of the margin", "classifiers by probability models; set target")
        if self._given_C() is not None:
            check_some_margin(margin.prior(self._given_C(), self._target()))

    def _target(self) -> float:
        target = self._group("margin").target
        return 1.0 if target is None else float(target)

    def _margin(self, C: float | None, discriminant: Discriminant, constraints: PairConstraints) -> MarginPrior:
        return self._group("margin").prior(C, self._target())

    def _quantile_in_use(self) -> None:
        return None

    def _grid(self) -> tuple[float, ...]:
        return tuple(C / self._target() for C in GRIDS[self._group("margin").distribution])

    def _cv_rounds(self, training_set: TrainingSet, subset: Subset) -> list[Folds]:
        if not isinstance(training_set, KernelTrainingSet) or training_set.K is not None:
            return super()._cv_rounds(training_set, subset)
        drawn = self._sample_rows(subset, SAMPLED_ROWS)
        rounds = super()._cv_rounds(training_set, subset.take(drawn))
        return [[(drawn[train], drawn[test]) for train, test in folds] for folds in rounds]

    def _sample_rows(self, subset: Subset, n_max: int) -> np.ndarray:
        """Positions of at most `n_max` rows drawn at random, labelled ones and a few of each class first.

        All rows, if `cv` is a list of positions.
        """
        n = len(subset.rows)
        if n <= n_max or isinstance(self.cv, Iterable):
            return np.arange(n)
        order = check_random_state(self.random_state).permutation(n)
        labelled = subset.labelled[order] & (subset.weight[order] > 0)
        label, later = subset.prior[order].argmax(axis=1), np.ones(n, dtype=bool)
        for c in range(subset.n_classes):
            later[np.flatnonzero(labelled & (label == c))[:CLASS_ROWS]] = False
        return np.sort(order[np.lexsort((later, ~labelled))[:n_max]])

    def _choose(self, folds: CrossValidation) -> tuple[CrossValidation, Choice]:
        """Also choose gamma="auto": together with `C`, or on fewer rows and before it."""
        kernel, training_set = self._group("kernel"), folds.training_set
        self.gamma_tried_ = []
        Z = getattr(training_set, "encoded", None)
        if Z is None or getattr(kernel, "gamma", None) != "auto" or not (folds.rounds and self._chooses_C()):
            return super()._choose(folds)
        n_labelled = np.count_nonzero(folds.subset.labelled & (folds.subset.weight > 0))
        drawn = self._sample_rows(folds.subset, GAMMA_ROWS) if n_labelled > GAMMA_ROWS else np.arange(len(Z))
        search_folds = folds
        if len(drawn) < len(Z):
            part = replace(folds.subset.take(drawn), rows=np.arange(len(drawn)))
            rounds = cv_rounds(part, self.cv, self.random_state)
            search_folds = replace(folds, subset=part, rounds=rounds)

        def with_kernel(some: CrossValidation, kernel: Any, Z: Array) -> CrossValidation:
            if some is folds and kernel.gamma == training_set.kernel.gamma:  # type: ignore[attr-defined]
                return folds
            rows = self._kernel_training_set(kernel, Z, some.subset, folds.search.executor)
            return replace(some, training_set=rows)

        best: tuple[CrossValidation, Choice] | None = None
        records = []
        for candidate in kernel.candidates(Z, folds.subset.labelled_weight, GAMMA_FACTORS):
            tried = super()._choose(with_kernel(search_folds, candidate, Z[drawn]))
            records.append({"gamma": float(candidate.gamma), "log_loss": tried[1].log_loss})
            if best is None or tried[1].log_loss < best[1].log_loss:
                best = tried
        self.gamma_tried_ = records
        assert best is not None
        if search_folds is folds:
            return best
        chosen: Any = best[0].training_set
        return super()._choose(with_kernel(folds, chosen.kernel, Z))

    # --- training -----------------------------------------------------------------------------------------------

    def _training_set(
        self, X: TableLike, y: ArrayLike | None, table: Table, subset: Subset, executor: Executor
    ) -> TrainingSet:
        self.encoder_: Encoder | None = None
        kernel = self._group("kernel")
        if isinstance(kernel, Precomputed):
            return KernelTrainingSet(_square_matrix(table))
        check_spread(table)
        if not isinstance(kernel, Kernel):
            transformer = _fitted_transformer(kernel, table, y, subset.weight)
            return FeatureTrainingSet(_transformed(transformer, table), feature_map=transformer)
        self.encoder_ = Encoder.of(table, subset.labelled_weight, bool(self.standardize), subset.weight)
        Z = self.encoder_(table)
        return self._kernel_training_set(kernel.resolved(Z, subset.labelled_weight), Z, subset, executor)

    def _kernel_training_set(
        self, kernel: Kernel, Z: Array, subset: Subset, executor: Executor
    ) -> FeatureTrainingSet | KernelTrainingSet:
        """All rows (n, d) in the form that discriminants with this kernel need; landmarks are drawn from the subset."""
        if isinstance(kernel, Linear):
            return FeatureTrainingSet(Z, kernel)
        n_landmarks = kernel.count_landmarks(len(Z), LANDMARKS if len(Z) > MOST_ROWS else None)
        if n_landmarks is not None:
            rng = check_random_state(self.random_state)
            chosen = np.sort(rng.permutation(subset.rows[subset.weight > 0])[:n_landmarks])
            nystrom = Nystrom.of(kernel, Z[chosen])
            return FeatureTrainingSet(nystrom(Z), kernel, nystrom, Z, executor)
        if len(Z) > STORED_ROWS:
            return KernelTrainingSet(None, kernel, Z, executor)
        K = kernel.square(Z, executor)
        if isinstance(kernel, KernelFunction):
            check_kernel_matrix(K, "the matrix of the kernel function")
        return KernelTrainingSet(K, kernel, Z)

    def _store_function(self, trained: TrainedDiscriminant) -> None:
        constraints, solution = trained.constraints, trained.solution
        training_set: Any = trained.training_set
        self.kernel_: Kernel | None = training_set.kernel
        self.feature_map_: Any = training_set.feature_map
        contrast = contrasts(constraints.n_classes)
        self._support_vectors = None
        if isinstance(training_set, FeatureTrainingSet):
            if isinstance(self.kernel_, Linear):
                self._support_vectors = training_set.features[self.support_]
            plane = trained.discriminant.plane(solution)  # type: ignore[attr-defined]
            if isinstance(self.feature_map_, Nystrom):
                self._certify(trained)
            self.function_ = DiscriminantFunction(plane.coef.T @ contrast.T, contrast @ plane.bias)
            return
        coefficients = dual_coefficients(solution, constraints, contrast)
        support = np.flatnonzero(coefficients.any(axis=1))
        rows = trained.subset.rows[support]
        vectors = None if training_set.encoded is None else training_set.encoded[rows]
        weights, bias = coefficients[support] @ contrast.T, contrast @ solution.state.bias
        self.function_ = DiscriminantFunction(weights, bias, rows, vectors)

    def _certify(self, trained: TrainedDiscriminant) -> None:
        """Set the value of the dual, and the gap, to those of the kernel that the Nyström features approximate.

        The functions of the features are also functions of the kernel, with the same norm, so that the primal value is
        one of both; the dual differs in the norm of the function with the coefficients of the multipliers.
        """
        solution, subset = trained.solution, trained.subset
        alpha = dual_coefficients(solution, trained.constraints, contrasts(subset.n_classes))
        used = np.flatnonzero(alpha.any(axis=1))
        training_set, rows = trained.training_set, subset.rows[used]
        assert isinstance(training_set, FeatureTrainingSet) and training_set.encoded is not None
        gram = KernelGram(training_set.feature_map.kernel, training_set.encoded[rows], training_set.executor)
        approximate = 0.5 * float(((training_set.features[rows].T @ alpha[used]) ** 2).sum())
        exact = 0.5 * float(np.vdot(alpha[used], gram.product(alpha[used])))
        if solution.dual is not None:
            self.objective_ = solution.dual + approximate - exact
            self.gap_ = solution.minimum - self.objective_

    # --- predictions --------------------------------------------------------------------------------------------

    def _scores(self, X: TableLike) -> Array:
        check_is_fitted(self)
        table = read_features(self, X, reset=False)
        function = self.function_
        if self.encoder_ is None and self.feature_map_ is not None:
            return function(_transformed(self.feature_map_, table))
        if self.encoder_ is None:
            return function(_complete(table.X)[:, function.rows])
        scores = in_batches(table, self._batch_scores)
        overflowed = ~np.isfinite(scores).all(axis=1)
        if overflowed.any():
            raise ValueError(
                f"row {int(overflowed.argmax())} is so far from the training rows that its kernel overflows; correct "
                "or remove it"
            )
        return scores

    def _batch_scores(self, rows: Table) -> Array:
        """(n, C) scores of rows that are encoded here."""
        assert self.encoder_ is not None
        Z = self.encoder_(rows)
        if self.feature_map_ is not None:
            Z = self.feature_map_(Z)
        elif self.function_.vectors is not None:
            assert self.kernel_ is not None
            Z = self.kernel_.gram(Z, self.function_.vectors)
        return self.function_(Z)

    def _column_terms(self, table: Table) -> Array | None:
        if not self._is_linear or self.encoder_ is None:
            return None
        terms = self.calibration_.slope * self.encoder_(table)[:, :, None] * self.function_.weights
        owners = self.encoder_.owners(table.schema)
        return np.stack([terms[:, owners == j].sum(axis=1) for j in range(len(table.schema.used))], axis=1)

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        check_is_fitted(self)
        if self.encoder_ is None:
            raise AttributeError(f"kernel={self.kernel!r} does not encode columns")
        return self.encoder_.names

    @property
    def support_vectors_(self) -> Array:
        """(m, d) the support rows, in encoded columns."""
        check_is_fitted(self)
        vectors = self._support_vectors if self.function_.rows is None else self.function_.vectors
        if vectors is None:
            raise AttributeError(
                f"kernel={self.kernel!r} has no support rows in encoded columns; take the rows support_ of X instead"
            )
        return vectors

    @property
    def coef_(self) -> Array:
        """Coefficients of the linear discriminant functions, in the units of the columns."""
        check_is_fitted(self)
        if not self._is_linear:
            raise AttributeError(f"kernel={self.kernel!r} has no coefficients; only kernel='linear' does")
        coefficients = _one_row_for_two(self.function_.weights.T).copy()
        if self.encoder_ is not None:
            coefficients[:, : len(self.encoder_.scale)] /= self.encoder_.scale
        return coefficients

    @property
    def intercept_(self) -> Array:
        """Constants of `decision_function`: bias and offset, and if linear the part of the centers of the columns."""
        check_is_fitted(self)
        bias = _one_row_for_two(self.function_.bias + self.calibration_.score_offset)
        if not self._is_linear or self.encoder_ is None:
            return bias
        return bias - self.coef_[:, : len(self.encoder_.center)] @ self.encoder_.center

    @property
    def _is_linear(self) -> bool:
        """Whether the discriminant functions are linear in encoded columns, or in the features of a transformer."""
        return self.function_.rows is None and not isinstance(self.feature_map_, Nystrom)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        by_name = isinstance(self.kernel, str) and self.kernel == "precomputed"
        precomputed = by_name or isinstance(self.kernel, Precomputed)
        tags.input_tags.pairwise = precomputed
        tags.input_tags.allow_nan = not precomputed
        tags.input_tags.sparse = True
        if precomputed:
            return able(tags, missing=MATRIX, mixed=no(MATRIX), explanations=no(MATRIX))
        if isinstance(self.kernel, Linear) or (isinstance(self.kernel, str) and self.kernel == "linear"):
            tags = able(tags, explanations=yes("by column", exact=True))
        return able(tags, missing=FILLED)


@dataclass(frozen=True, repr=False)
class DiscriminantFunction(Short):
    """Expected discriminant functions: linear in features, or in the kernel with the support rows."""

    weights: Array  # (r, C)
    bias: Array  # (C,)
    rows: np.ndarray | None = None  # (r,) support rows; None: linear in features
    vectors: Array | None = None  # (r, d) the encoded support rows

    def __call__(self, Z: Array) -> Array:
        """(n, C) scores from features, or from the kernel with the support rows."""
        return Z @ self.weights + self.bias


def _one_row_for_two(by_class: Array) -> Array:
    """Values of the classes as rows; of two classes the difference, whose sign decides."""
    return by_class[1:] - by_class[:1] if len(by_class) == 2 else by_class


def _encodes(kernel: Any) -> bool:
    """Whether the kernel takes encoded columns."""
    return isinstance(kernel, Kernel) and not isinstance(kernel, Precomputed)


def _complete(X: Array) -> Array:
    if np.isnan(X).any():
        t, s = np.argwhere(np.isnan(X))[0]
        raise ValueError(f"a kernel matrix cannot have missing values; entry [{t}, {s}] is missing")
    return X


def _square_matrix(table: Table) -> Array:
    """Check and return a precomputed kernel matrix."""
    if table.schema.categorical:
        raise ValueError("kernel='precomputed' takes a matrix of numbers; X has categorical columns")
    K = _complete(table.X)
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"kernel='precomputed' takes the square kernel matrix of the training rows; got shape {K.shape}"
        )
    check_kernel_matrix(K, "the precomputed kernel")
    return K


def _fitted_transformer(transformer: Any, table: Table, y: ArrayLike | None, weight: Array) -> Any:
    """A copy of the transformer, fitted unless it is already."""
    try:
        check_is_fitted(transformer)
        return copy.deepcopy(transformer)
    except NotFittedError:
        weights = {"sample_weight": weight} if has_fit_parameter(transformer, "sample_weight") else {}
        return clone(transformer).fit(features_for(transformer, table), y, **weights)


def _transformed(transformer: Any, table: Table) -> Array:
    Z = np.asarray(transformer.transform(features_for(transformer, table)), dtype=float)
    if Z.ndim != 2 or not np.isfinite(Z).all():
        raise ValueError(
            f"transform of the kernel must return a matrix of finite features; {type(transformer).__name__} returned "
            f"shape {Z.shape}" + ("" if np.isfinite(Z).all() else " with values that are not finite")
        )
    return Z
