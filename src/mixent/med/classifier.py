"""Maximum entropy discrimination with linear discriminants and kernels."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from mixent.base.capabilities import able, no
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
from mixent.base.params import check_flag
from mixent.core.arrays import Array
from mixent.data import Table, check_spread, read_features
from mixent.med.constraints import PairConstraints, contrasts
from mixent.med.encoding import FILLED, Encoder
from mixent.med.estimator import MEDBase, Trained
from mixent.med.margins import MarginPrior, check_some_margin
from mixent.med.problem import Plane
from mixent.med.solving import Discriminant, dual_coefficients
from mixent.med.training_sets import FeatureTrainingSet, KernelTrainingSet, Subset, TrainingSet, in_batches

GRIDS = {  # of C, for C="auto"; the exponential prior near 1 expects hardly any margin, which regularizes as a small C
    "exponential": (1.1, 1.3, 1.8, 4.0, 12.0, 40.0, 150.0, 500.0),
    "laplace": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0),
    "gaussian": (0.1, 0.2, 0.5, 1.0, 3.0, 10.0, 30.0),
}
KERNELS = (Linear, Polynomial, RBF, Precomputed, KernelFunction)
MATRIX = "a kernel matrix has neither missing values nor text"
MOST_PAIRS, MOST_JOINT = 10_000, 2_000  # rows from which a kernel goes through features: two classes, more
LANDMARKS = 1_000


@reads(Linear, Polynomial, RBF)
def read_classifier_kernel(name: str, value: Any) -> Any:
    """A kernel, or the user's transformer as it is."""
    return value if hasattr(value, "transform") else read_kernel(name, value, KERNELS, also="a transformer")


class MEDClassifier(MEDBase):
    """Maximum entropy discrimination with a linear discriminant function, or one in a kernel's space.

    The distribution over discriminant functions F_y and margins g that keeps the margin of every training label against
    every other class on average (001, equation 5), with the least relative entropy to the prior: theta ~ N(0, I) for
    two classes (Theorem 2), a bias b, and a margin prior.  Maximizes the dual

        J(l) = sum_k w_k u(l_k) - log Z(l),   for two classes  sum_t w_t u(l_t) - 1/2 |sum_t w_t l_t y_t x_t|^2,

    over multipliers 0 <= l < C, one for each row and other class, all classes jointly; u(l) = l + log(1 - (l/C)^2) for
    the Laplace prior of the margins, l + log(1 - l/C) for the exponential one of Theorem 2. Coordinate ascent raises
    J, Newton's method lowers the primal objective; the optimizer's objective never falls, and the difference of both is
    the duality gap. The solution is sparse: removing a row with l = 0 changes nothing.

    Probabilities are a softmax of `a` times the discriminant functions, `a` fitted to the scores of rows held out by
    `cv` (calibration="temperature"), mixed with a share 1 / (n + 2) of the uniform distribution. They rank rows of two
    classes as `decision_function` does (with ties far out), and `predict` agrees with it.

    Parameters
    ----------
    kernel : "linear", "poly", "rbf", "precomputed", Polynomial, RBF, KernelFunction, callable, or transformer
        "poly" and "rbf" stand for `Polynomial()` and `RBF()`, which hold degree, gamma, coef0 and the number of Nyström
        features. A callable takes two matrices of encoded rows. A transformer (`FisherKernel`, or any with `transform`)
        maps rows to features whose inner product is the kernel. With "precomputed", X is the kernel matrix. Beyond
        10 000 rows (2000 with more than two classes or uncertain labels) 1000 Nyström features replace a kernel matrix.
    C : "auto" or float
        Upper bound on each row's multiplier, like C of a support vector machine. "auto" chooses it by cross-validated
        log-loss of the labelled rows (at most 3 with uncertain labels). The exponential margin needs C > 1.
    margin : "laplace", "exponential", "gaussian", "fixed" or Margin
        Prior of the margins, about 1 or the `target` of a `Margin`. "fixed" is the hard margin: rows that cannot keep
        it are an error.
    bias : "flat" or float
        Prior of b: flat (default; the multipliers of the classes balance), or Gaussian with this variance.
    relaxation : float
        With uncertain labels, the share of each label update that is applied.
    calibration : "temperature", "affine" or None
        How scores become probabilities. "affine" also moves the threshold between classes, and `predict` then follows
        the probabilities. None: a softmax of the scores, without further fits.
    standardize : bool
        Scale continuous columns to mean 0 and variance 1.
    cv : int, splitter or list of (train, test)
        Folds for C="auto" and for the calibration; a list holds positions among the labelled rows.
    tol : float
        Stop when the gap per row is smaller, in nats.
    max_iter : int
        Maximum number of passes.
    categorical : "auto" or list
        Columns to treat as categories whatever their type; each category becomes a bit.
    random_state : int, RandomState or None
        For folds and landmarks.
    n_jobs : int or None
        Threads; None takes all cores.
    progress : bool or callable
        True shows a bar; a callable is called with (done, total, text).

    Attributes
    ----------
    classes_, class_prior_
        Class labels and their shares among the labelled rows.
    support_ : (m,) array
        Rows whose multipliers are not all zero.
    multipliers_ : (n,) or (n, pairs) array
        l of every training row; for more than two classes one of each pair of classes in `pairs_`.
    loo_estimate_ : float
        Share of rows with a non-zero multiplier: the leave-one-out estimate of the error of Lemma 1. Removing any
        other row changes nothing. A crude estimate, not a bound for this training set.
    C_, C_tried_
        `C` in use, and the cross-validated log-loss of those tried.
    coef_, intercept_
        Of the linear discriminant, in the encoded columns `feature_names_`; (d,) and a number for two classes, else
        (C, d) and (C,).
    objective_, gap_ : float
        J at the solution in nats (all rows together), and an upper bound on its distance from the optimum; with
        uncertain labels both are for the labels inferred at the end.
    run_ : Run
        How the optimization ended.
    label_posterior_ : (n, C) array
        P(y) of every training row, inferred where its label was uncertain; NaN for rows of weight 0. `C` bounds how far
        it can move from the prior; for predictions use `predict_proba`.
    margin_, calibration_
        The margin prior and the map to probabilities in use.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mixent import MEDClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = MEDClassifier(C=5, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.98), len(model.support_) < 100
    (True, True)
    """

    _groups = {"kernel": read_classifier_kernel, **MEDBase._groups}
    _prior_from_rows = False

    def __init__(
        self,
        kernel: Any = "linear",
        *,
        C: str | float = "auto",
        margin: Any = "laplace",
        bias: str | float = "flat",
        relaxation: float = 0.5,
        calibration: str | None = "temperature",
        standardize: bool = True,
        cv: Any = 5,
        tol: float = 1e-6,
        max_iter: int = 1000,
        categorical: Any = "auto",
        random_state: Any = None,
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
            raise ValueError(f"standardize=False is not used with kernel={self.kernel!r}, which takes no columns")
        if margin.quantile is not None:
            raise ValueError(
                f"quantile of the margin is only used where classes have probability models; MEDClassifier takes a "
                f"target, got quantile={margin.quantile!r}"
            )
        if not self._needs_c() and not isinstance(self.C, str):
            check_some_margin(margin.prior(self.C, self._target()))

    def _target(self) -> float:
        target = self._group("margin").target
        return 1.0 if target is None else float(target)

    def _margin(self, c: float | None, discriminant: Discriminant, constraints: PairConstraints) -> MarginPrior:
        return self._group("margin").prior(c, self._target())

    def _quantile_in_use(self) -> None:
        return None

    def _grid(self) -> tuple[float, ...]:
        return tuple(c / self._target() for c in GRIDS[self._group("margin").distribution])

    # --- spaces -------------------------------------------------------------------------------------------------

    def _training_set(self, X: Any, y: Any, table: Table, subset: Subset, executor: Any) -> TrainingSet:
        self.encoder_: Encoder | None = None
        self.kernel_: Kernel | None = None
        self.map_: Any = None
        kernel = self._group("kernel")
        if isinstance(kernel, Precomputed):
            return KernelTrainingSet(_square_matrix(table))
        check_spread(table)
        if not isinstance(kernel, Kernel):
            self.map_ = _fitted_map(kernel, table, y, subset.weight)
            return FeatureTrainingSet(_mapped(self.map_, table))
        self.encoder_ = Encoder.of(table, subset.weight, bool(self.standardize))
        Z = self.encoder_(table)
        self.kernel_ = kernel.resolved(Z, subset.weight)
        if isinstance(self.kernel_, Linear):
            return FeatureTrainingSet(Z)
        n_landmarks = self.kernel_.count_landmarks(len(subset.rows), _usual_landmarks(subset))
        if n_landmarks is not None:
            rng = check_random_state(self.random_state)
            chosen = np.sort(rng.permutation(subset.rows[subset.weight > 0])[:n_landmarks])
            self.map_ = Nystrom.of(self.kernel_, Z[chosen])
            return FeatureTrainingSet(self.map_(Z))
        K = self.kernel_.square(Z, executor)
        if isinstance(self.kernel_, KernelFunction):
            check_kernel_matrix(K, "the matrix of the kernel function")
        return KernelTrainingSet(K, Z)

    def _keep_function(self, training_set: TrainingSet, trained: Trained) -> None:
        """All that predictions need: a plane, or the rows that support the function."""
        constraints, solution = trained.constraints, trained.solution
        contrast = contrasts(constraints.n_classes)
        if isinstance(training_set, FeatureTrainingSet):
            plane: Plane = trained.discriminant.plane(solution, constraints)  # type: ignore[attr-defined]
            self.function_ = Function(plane.coef.T @ contrast.T, contrast @ plane.bias)
            return
        pulls = dual_coefficients(solution, constraints, contrast)
        used = np.flatnonzero(pulls.any(axis=1))
        rows = trained.subset.rows[used]
        assert isinstance(training_set, KernelTrainingSet)
        vectors = None if training_set.encoded is None else training_set.encoded[rows]
        self.function_ = Function(pulls[used] @ contrast.T, contrast @ solution.state.bias, rows, vectors)

    # --- predictions --------------------------------------------------------------------------------------------

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        table = read_features(self, X, reset=False)
        function = self.function_
        if self.encoder_ is None and self.map_ is not None:
            return function.plane(_mapped(self.map_, table))
        if self.encoder_ is None:
            return function.plane(_complete(table.X)[:, function.rows])
        out = in_batches(table, self._planes)
        lost = ~np.isfinite(out).all(axis=1)
        if lost.any():
            raise ValueError(f"row {int(lost.argmax())} is so far from the training rows that its kernel overflows")
        return out

    def _planes(self, rows: Table) -> Array:
        """(n, C) of encoded rows."""
        assert self.encoder_ is not None
        Z = self.encoder_(rows)
        if self.map_ is not None:
            Z = self.map_(Z)
        elif self.function_.vectors is not None:
            assert self.kernel_ is not None
            Z = self.kernel_.gram(Z, self.function_.vectors)
        return self.function_.plane(Z)

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        check_is_fitted(self)
        if self.encoder_ is None:
            raise AttributeError(f"kernel={self.kernel!r} has no encoded columns")
        return self.encoder_.names

    @property
    def coef_(self) -> Array:
        """Coefficients of the linear discriminant."""
        check_is_fitted(self)
        if self.function_.rows is not None or isinstance(self.map_, Nystrom):
            raise AttributeError(f"kernel={self.kernel!r} has no coefficients; only kernel='linear' does")
        weights = self.function_.weights.T
        return weights[1] - weights[0] if len(weights) == 2 else weights

    @property
    def intercept_(self) -> Any:
        """Mean of the bias."""
        check_is_fitted(self)
        bias = self.function_.bias
        return float(bias[1] - bias[0]) if len(bias) == 2 else bias

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        given = isinstance(self.kernel, Precomputed) or (isinstance(self.kernel, str) and self.kernel == "precomputed")
        tags.input_tags.pairwise = given
        tags.input_tags.allow_nan = not given
        if given:
            return able(tags, missing=MATRIX, mixed=no(MATRIX))
        return able(tags, missing=FILLED, explanations=no('see `coef_` of kernel="linear"'))


@dataclass(frozen=True)
class Function:
    """Expected discriminant functions: weights of features, or of the kernel with some rows."""

    weights: Array  # (r, C)
    bias: Array  # (C,)
    rows: np.ndarray | None = None  # training rows the kernel is taken with
    vectors: Array | None = None  # (r, d) those rows, encoded

    def plane(self, Z: Array) -> Array:
        """(n, C)."""
        return Z @ self.weights + self.bias


def _encodes(kernel: Any) -> bool:
    """Whether the kernel is a function of encoded columns."""
    return isinstance(kernel, Kernel) and not isinstance(kernel, Precomputed)


def _usual_landmarks(subset: Subset) -> int | None:
    """Nyström features where the user leaves their number to us."""
    many = subset.n_classes > 2 or subset.uncertain
    return LANDMARKS if len(subset.rows) > (MOST_JOINT if many else MOST_PAIRS) else None


def _complete(X: Array) -> Array:
    if np.isnan(X).any():
        t, s = np.argwhere(np.isnan(X))[0]
        raise ValueError(f"a kernel matrix cannot have missing values; entry [{t}, {s}] is missing")
    return X


def _square_matrix(table: Table) -> Array:
    """The user's kernel matrix, checked."""
    if table.schema.categorical:
        raise ValueError("kernel='precomputed' takes a matrix of numbers; X has categorical columns")
    K = _complete(table.X)
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"kernel='precomputed' takes the square kernel matrix of the training rows; got shape {K.shape}"
        )
    check_kernel_matrix(K, "the precomputed kernel")
    return K


def _fitted_map(given: Any, table: Table, y: Any, weight: Array) -> Any:
    """The user's transformer, fitted if it is not; the user's own stays as it is."""
    try:
        check_is_fitted(given)
        return copy.deepcopy(given)
    except NotFittedError:
        weighted = {"sample_weight": weight} if has_fit_parameter(given, "sample_weight") else {}
        return clone(given).fit(features_for(given, table), y, **weighted)


def _mapped(transformer: Any, table: Table) -> Array:
    Z = np.asarray(transformer.transform(features_for(transformer, table)), dtype=float)
    if Z.ndim != 2 or not np.isfinite(Z).all():
        raise ValueError(
            f"the kernel's transform must give a matrix of finite features; {type(transformer).__name__} gave "
            f"shape {Z.shape}" + ("" if np.isfinite(Z).all() else " with values that are not finite")
        )
    return Z
