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
from mixent.base.params import check_count, check_flag
from mixent.core.arrays import Array
from mixent.data import Table, check_spread, read_features
from mixent.med.contests import Contests, contrasts
from mixent.med.encoding import FILLED, Encoder
from mixent.med.estimator import MEDBase, Trained
from mixent.med.kernels import Called, Kernel, Linear, Nystrom, check_kernel_matrix, check_shape, read_kernel
from mixent.med.margins import Margin, check_speaks, read_margin
from mixent.med.newton import Plane
from mixent.med.solving import Discriminant, row_pulls
from mixent.med.training_sets import FeatureSpace, KernelSpace, Part, Space, in_parts

GRIDS = {  # of c, for c="auto"; the exponential prior near 1 asks for hardly any margin, which regularises as a small c
    "exponential": (1.1, 1.3, 1.8, 4.0, 12.0, 40.0, 150.0, 500.0),
    "laplace": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0),
    "gaussian": (0.1, 0.2, 0.5, 1.0, 3.0, 10.0, 30.0),
}
NAMES = ("linear", "poly", "rbf", "precomputed")
MATRIX = "a kernel matrix has neither gaps nor text"
MOST_PAIRS, MOST_JOINT = 10_000, 2_000  # rows from which a kernel goes through features: two classes, more
LANDMARKS = 1_000


class MEDClassifier(MEDBase):
    """Maximum entropy discrimination with a linear discriminant function, or one in a kernel's space.

    Of all distributions over discriminant functions F_y and margins g that keep, on average, the margin of every
    training label against every other class (001, equation 5), takes that of least relative entropy to the prior:
    theta ~ N(0, I) for two classes (Theorem 2), a bias b, and a margin prior.  Maximises the dual

        J(l) = sum_k w_k u(l_k) - log Z(l),   for two classes  sum_t w_t u(l_t) - 1/2 |sum_t w_t l_t y_t x_t|^2,

    over multipliers 0 <= l < c, one for each row and other class, all classes jointly; u(l) = l + log(1 - (l/c)^2) for
    the Laplace prior of the margins, l + log(1 - l/c) for the exponential one of Theorem 2. Coordinate ascent raises
    J, Newton's method lowers the bound of which J is the dual: what is driven never falls, and the difference of both
    is the gap. The solution is sparse: rows with l = 0 play no part.

    Probabilities are those of a softmax of `a` times the discriminant functions, `a` fitted to the scores of rows held
    out by `cv` (calibration="temperature"), a share of 1 / (n + 2) spread over all classes: they rank rows of two
    classes as `decision_function` does (far out they tie), and `predict` agrees with it.

    Parameters
    ----------
    kernel : "linear", "poly", "rbf", "precomputed", callable, or transformer
        A callable takes two matrices of encoded rows. A transformer (`FisherKernel`, or any with `transform`) maps rows
        to features whose inner product is the kernel. With "precomputed", X is the kernel matrix.
    c : "auto" or float
        Bound of the multipliers: how much a row may say, as C of a support vector machine. "auto" chooses it by
        cross-validated log-loss of the labelled rows (at most 3 where labels are in doubt). The exponential margin
        needs c > 1: with less no row asks for anything.
    margin : "laplace", "exponential", "gaussian", "fixed", or an object of `mixent.med.margins`
        Prior of the margins, about 1. "fixed" is the hard margin: rows that cannot keep it are an error.
    degree, gamma, coef0
        Of (gamma x x' + coef0)^degree and exp(-gamma |x - x'|^2); gamma="scale" is 1 / (columns x their variance).
    bias : "flat" or float
        Prior of b: flat (the default: the multipliers of each class balance), or Gaussian with this variance.
    relaxation : float
        Where labels are in doubt: the share of each label update that is taken.
    calibration : "temperature", "affine" or None
        How scores become probabilities. "affine" moves the threshold between classes too; `predict` follows the
        probabilities then. None: a softmax of the scores as they are, no fit beyond the one.
    n_features : "auto", int or None
        Nyström features that stand in for a kernel; "auto": 1000 beyond 10 000 rows (2000 with more than two classes or
        labels in doubt);
        None: never, the whole kernel matrix.
    standardize : bool
        Bring every continuous column to mean 0 and variance 1 first.
    cv : int, splitter or list of (train, test)
        Folds of c="auto" and of the calibration; a list counts labelled rows only.
    tol : float
        Stop when the gap per row is smaller, in nats.
    max_iter : int
        Most passes.
    categorical : "auto" or list
        Columns to treat as categories whatever their type; each category becomes a bit.
    random_state : int, RandomState or None
        For folds and landmarks.
    n_jobs : int or None
        Threads; None takes all cores.
    progress : bool or callable
        True shows a bar; a callable is told (done, total, text).

    Attributes
    ----------
    classes_, class_prior_
        Class labels and their shares among the labelled rows.
    support_ : (m,) array
        Rows whose multipliers are not all zero.
    multipliers_ : (n,) or (n, pairs) array
        l of every training row; for more than two classes one of each pair of classes in `pairs_`.
    loo_estimate_ : float
        Share of rows with a non-zero multiplier: the leave-one-out estimate of the error of Lemma 1. Leaving out any
        other row changes nothing. An estimate, and a crude one; not a bound for this training set.
    c_, c_tried_
        `c` in use, and the cross-validated log-loss of those tried.
    coef_, intercept_
        Of the linear discriminant, in the encoded columns `feature_names_`; (d,) and a number for two classes, else
        (C, d) and (C,).
    objective_, gap_ : float
        J at the solution in nats (all rows together), and by how much it may miss the optimum; with labels in doubt
        both are of the labels as they were believed at the end.
    run_ : Run
        How solving went.
    label_posterior_ : (n, C) array
        P(y) of every training row: what its label most probably is, where it was in doubt; NaN for rows of weight 0.
        It leaves the prior as far as `c` lets it: for the class of a row ask `predict_proba`.
    margin_, calibration_
        The margin prior and the map to probabilities in use.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mixent import MEDClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = MEDClassifier(c=5, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.98), len(model.support_) < 100
    (True, True)
    """

    def __init__(
        self,
        kernel: Any = "linear",
        *,
        c: str | float = "auto",
        margin: Any = "laplace",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 1.0,
        bias: str | float = "flat",
        relaxation: float = 0.5,
        calibration: str | None = "temperature",
        n_features: str | int | None = "auto",
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
        self.c = c
        self.margin = margin
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.bias = bias
        self.relaxation = relaxation
        self.calibration = calibration
        self.n_features = n_features
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
        self._check_kernel()
        if self.n_features is not None and not (isinstance(self.n_features, str) and self.n_features == "auto"):
            check_count("n_features", self.n_features, "'auto' or None")
        check_flag("standardize", self.standardize)
        if not self.standardize and (self.kernel == "precomputed" or hasattr(self.kernel, "transform")):
            raise ValueError(f"standardize=False has no effect with kernel={self.kernel!r}, which sees no columns")
        if not self._needs_c():
            check_speaks(read_margin(self.margin, None if isinstance(self.c, str) else self.c))
        certain = isinstance(self.margin, Margin) or (isinstance(self.margin, str) and self.margin == "fixed")
        if certain and not isinstance(self.c, str):
            raise ValueError(f"c={self.c!r} has no effect with margin={self.margin!r}, which needs none; leave it")

    def _check_kernel(self) -> None:
        named = isinstance(self.kernel, str) and self.kernel in NAMES
        able = not isinstance(self.kernel, str) and (callable(self.kernel) or hasattr(self.kernel, "transform"))
        if not named and not able:
            raise ValueError(
                f"kernel must be one of {', '.join(map(repr, NAMES))}, a function of two matrices, or a transformer; "
                f"got {self.kernel!r}"
            )
        check_shape(self)
        if isinstance(self.n_features, (int, np.integer)) and not self._has_kernel():
            raise ValueError(f"n_features={self.n_features!r} has no effect with kernel={self.kernel!r}")

    def _needs_c(self) -> bool:
        return isinstance(self.c, str) and isinstance(self.margin, str) and self.margin in GRIDS

    def _margin(self, c: float | None, discriminant: Discriminant, contests: Contests) -> Margin:
        margin = read_margin(self.margin, c)
        check_speaks(margin)
        return margin

    def _grid(self) -> tuple[float, ...]:
        return GRIDS[self.margin]

    def _has_kernel(self) -> bool:
        """A kernel proper, of encoded rows."""
        return self.kernel in ("poly", "rbf") or (callable(self.kernel) and not hasattr(self.kernel, "transform"))

    # --- spaces -------------------------------------------------------------------------------------------------

    def _space(self, X: Any, y: Any, table: Table, part: Part, executor: Any) -> Space:
        self.encoder_: Encoder | None = None
        self.kernel_: Kernel | None = None
        self.map_: Any = None
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            return KernelSpace(_square_matrix(table))
        check_spread(table)
        if hasattr(self.kernel, "transform"):
            self.map_ = _fitted_map(self.kernel, table, y, part.weight)
            return FeatureSpace(_mapped(self.map_, table))
        weight = part.weight
        self.encoder_ = Encoder.of(table, weight, bool(self.standardize))
        Z = self.encoder_(table)
        self.kernel_ = read_kernel(self.kernel, self.degree, self.gamma, self.coef0, Z, weight)
        if isinstance(self.kernel_, Linear):
            return FeatureSpace(Z)
        n_landmarks = self._n_landmarks(part)
        if n_landmarks is not None:
            rng = check_random_state(self.random_state)
            chosen = np.sort(rng.permutation(part.rows[part.weight > 0])[:n_landmarks])
            self.map_ = Nystrom.of(self.kernel_, Z[chosen])
            return FeatureSpace(self.map_(Z))
        K = self.kernel_.square(Z, executor)
        if isinstance(self.kernel_, Called):
            check_kernel_matrix(K, "the matrix of the kernel function")
        return KernelSpace(K, Z)

    def _n_landmarks(self, part: Part) -> int | None:
        if self.n_features is None:
            return None
        if not isinstance(self.n_features, str):
            return min(int(self.n_features), len(part.rows))
        many = part.n_classes > 2 or part.uncertain
        return LANDMARKS if len(part.rows) > (MOST_JOINT if many else MOST_PAIRS) else None

    def _keep_function(self, space: Space, trained: Trained) -> None:
        """All that predictions need: a plane, or the rows that support the function."""
        contests, solution = trained.contests, trained.solution
        contrast = contrasts(contests.n_classes)
        if isinstance(space, FeatureSpace):
            plane: Plane = trained.discriminant.plane(solution, contests)  # type: ignore[attr-defined]
            self.function_ = Function(plane.coef.T @ contrast.T, contrast @ plane.bias)
            return
        pulls = row_pulls(solution, contests, contrast)
        used = np.flatnonzero(pulls.any(axis=1))
        rows = trained.part.rows[used]
        assert isinstance(space, KernelSpace)
        vectors = None if space.encoded is None else space.encoded[rows]
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
        out = in_parts(table, self._planes)
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
            raise AttributeError(f"kernel={self.kernel!r} has no coefficients; they are those of kernel='linear'")
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
        given = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.input_tags.pairwise = given
        tags.input_tags.allow_nan = not given
        if given:
            return able(tags, missing=MATRIX, mixed=no(MATRIX))
        return able(tags, missing=FILLED, explanations=no('`coef_` of kernel="linear" says what columns weigh'))


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


def _complete(X: Array) -> Array:
    if np.isnan(X).any():
        t, s = np.argwhere(np.isnan(X))[0]
        raise ValueError(f"a kernel matrix cannot have gaps; entry [{t}, {s}] is missing")
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
