"""Maximum entropy discrimination with Gaussians (001, section 3.1.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import able
from mixent.base.params import check_count, check_number, check_positive
from mixent.core.arrays import Array
from mixent.data import Table, check_spread, read_features
from mixent.med.contests import Contests, contrasts
from mixent.med.encoding import FILLED, Encoder
from mixent.med.estimator import CALIBRATIONS, MEDBase, Trained, usual_margin
from mixent.med.gaussians import Ensemble
from mixent.med.kernels import CUT, Kernel, Nystrom, check_shape, read_kernel
from mixent.med.margins import MARGINS, Margin, read_margin
from mixent.med.solving import Discriminant, GaussianDiscriminant
from mixent.med.training_sets import GaussianSpace, Part, Space, predictive_scores

GRID = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
LANDMARKS = 500
WIDE = 20  # encoded columns from which every second c is tried
BIT = 0.02  # least variance of a bit within classes
MOST_COLUMNS = 60  # a Newton step has (d + 1)(d + 2) / 2 unknowns per class


class MEDGaussianClassifier(MEDBase):
    """Maximum entropy discrimination with the log-ratio of Gaussians: discriminative quadratic boundaries.

    The parameters of every class's Gaussian have a Normal-Wishart distribution; the prior is the posterior of the
    class's own rows and of `k` rows with mean `prior_mean` and covariance `prior_cov`. Of all distributions that keep
    the margins of the training labels, on average, takes that of least relative entropy to it.  Maximises the dual

        J(l) = sum_k w_k u(l_k) - sum_s log Z_s(l) / Z_s(0),     0 <= l < c          (001, equations 16 to 18, mended)

    where row t weighs w_t^s = [y_t = s](1 + sum_y l_ty) - [y_t != s] l_ts in class s. Newton's method lowers the bound
    of which J is the dual; minus it never falls, and the difference of both is the gap.

    Parameters
    ----------
    c : "auto" or float
        How much a row may say (any c > 0: with none saying anything the Gaussians are those of the prior). "auto"
        chooses it by cross-validated log-loss: dozens of fits, each of some seconds from about 20 encoded columns on.
    margin : "laplace", "exponential" or "gaussian"
        Prior of the margins, about the margin `alpha` stands for.
    alpha : float
        Which quantile of the labelled rows' margins under the prior is asked of every row (l_alpha of the document).
        Rows without a label speak only if that margin is positive: give them a larger alpha, 0.5 say.
    k : "auto" or float
        Rows the prior counts for; "auto": 1, or as many as the number of columns takes. 0 is the document's.
    prior_mean, prior_cov : arrays or None
        Of those rows, in the units of the columns; None: the mean of all rows, the covariance within classes.
    kernel : "rbf", "poly", callable or None
        None: Gaussians of the columns. Else of the leading kernel principal components.
    n_features : int
        Number of those components.
    degree, gamma, coef0
        Of the kernel; see MEDClassifier.
    bias : "flat" or float
        Prior of the log-ratio of the class priors: flat (default: the multipliers of each class balance), or Gaussian
        with this variance about the training rows' own.
    relaxation : float
        Where labels are in doubt: the share of each label update that is taken.
    calibration : "temperature", "affine", "predictive" or None
        How scores become probabilities; "temperature" and "affine" (better where classes are few and unequal) as for
        MEDClassifier. "predictive": Bayes' rule with each class's predictive density, a Student t, and the training
        shares, whatever the bias. `predict` follows the probabilities; with "temperature" and None these agree with
        `decision_function`.
    cv : int, splitter or list of (train, test)
        Folds of c="auto" and of the calibration; a list counts labelled rows only.
    tol : float
        Stop when the gap per row is smaller, in nats.
    max_iter : int
        Most passes.
    categorical : "auto" or list
        Columns to treat as categories whatever their type; each category becomes a bit.
    random_state : int, RandomState or None
        For folds and kernel components.
    n_jobs : int or None
        Threads; None takes all cores.
    progress : bool or callable
        True shows a bar; a callable is told (done, total, text).

    Attributes
    ----------
    classes_, class_prior_
        Class labels and their shares among the labelled rows.
    gaussians_ : list of NormalWishart
        The distribution over each class's Gaussian, in encoded (standardised) columns.
    prior_gaussians_ : list of NormalWishart
        The same before discrimination: what maximum likelihood with a prior gives.
    means_, covariances_ : lists of arrays
        Expected mean of each class, and its covariance about which the distribution is centred, in encoded columns.
    support_, multipliers_, pairs_, loo_estimate_, c_, c_tried_, objective_, gap_, run_, label_posterior_, margin_
        As for MEDClassifier; but the prior is made of all rows, and leaving one out moves it a little.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixent import MEDGaussianClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MEDGaussianClassifier(c=3, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.96)
    True
    """

    def __init__(
        self,
        *,
        c: str | float = "auto",
        margin: str = "laplace",
        alpha: float = 0.1,
        k: str | float = "auto",
        prior_mean: Any = None,
        prior_cov: Any = None,
        kernel: Any = None,
        n_features: int = 10,
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 1.0,
        bias: str | float = "flat",
        relaxation: float = 0.5,
        calibration: str | None = "temperature",
        cv: Any = 5,
        tol: float = 1e-6,
        max_iter: int = 1000,
        categorical: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | Callable[[int, int, str], None] = False,
    ) -> None:
        self.c = c
        self.margin = margin
        self.alpha = alpha
        self.k = k
        self.prior_mean = prior_mean
        self.prior_cov = prior_cov
        self.kernel = kernel
        self.n_features = n_features
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.bias = bias
        self.relaxation = relaxation
        self.calibration = calibration
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.categorical = categorical
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def __sklearn_tags__(self):
        return able(super().__sklearn_tags__(), missing=FILLED)

    def _space(self, X: Any, y: Any, table: Table, part: Part, executor: Any) -> GaussianSpace:
        check_spread(table)
        Z = self._encode(table, part)
        k = None if isinstance(self.k, str) else float(self.k)
        predictive = self.calibration == "predictive"
        return GaussianSpace(Z, k, *self._read_prior(Z.shape[1]), self.classes_, self._floor(), predictive)

    def _check(self) -> None:
        self._check_common()
        if not (isinstance(self.margin, str) and self.margin in MARGINS):
            raise ValueError(f"margin must be one of {', '.join(map(repr, MARGINS))}; got {self.margin!r}")
        if not check_number(self.alpha) or not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha must be a quantile, from 0 to 1; got {self.alpha!r}")
        if not (isinstance(self.k, str) and self.k == "auto"):
            check_positive("k", self.k, zero=True)
        check_count("n_features", self.n_features)
        if hasattr(self.kernel, "transform"):
            raise ValueError(
                f"kernel={type(self.kernel).__name__}(...) is a transformer; put it before this classifier in a "
                f"pipeline"
            )
        if not (self.kernel is None or self.kernel in ("rbf", "poly") or callable(self.kernel)):
            raise ValueError(f"kernel must be None, 'rbf', 'poly' or a function of two matrices; got {self.kernel!r}")
        self._check_idle()

    def _check_idle(self) -> None:
        check_shape(self)
        if self.n_features != 10 and self.kernel is None:
            raise ValueError(f"n_features={self.n_features!r} has no effect with kernel=None")
        for name in ("prior_mean", "prior_cov"):
            if getattr(self, name) is not None and self.kernel is not None:
                raise ValueError(f"{name} is in the units of the columns, and kernel={self.kernel!r} has others")
            if getattr(self, name) is not None and self.k == 0:
                raise ValueError(f"{name} has no effect with k=0; give the rows it counts for")

    def _calibrations(self) -> tuple[str, ...]:
        return (*CALIBRATIONS, "predictive")

    def _grid(self) -> tuple[float, ...]:
        return GRID if self.width_ <= WIDE else GRID[1::2]

    def _floor(self) -> Array:
        """(width,) least variance within classes: bits that are rare, or absent where a fold has none, stay bits."""
        floor = np.zeros(self.width_)
        if self.components_ is None:
            floor[len(self.encoder_.centre) :] = BIT
        return floor

    def _margin(self, c: float | None, discriminant: Discriminant, contests: Contests) -> Margin:
        """The margin prior about l_alpha: a quantile of the margins before discrimination."""
        assert isinstance(discriminant, GaussianDiscriminant)
        problem = discriminant.problem(contests, MARGINS[self.margin](1.0, 1.0))
        kept = contests.signs * (problem.scores(discriminant.prior, discriminant.X) @ contests.differences.T)
        return read_margin(self.margin, c, usual_margin(kept, contests, float(self.alpha)))

    # --- columns ------------------------------------------------------------------------------------------------

    def _encode(self, table: Table, part: Part) -> Array:
        weight = part.weight
        self.encoder_ = Encoder.of(table, weight, True)
        Z = self.encoder_(table)
        self.components_ = None
        if self.kernel is not None:
            kernel = read_kernel(self.kernel, self.degree, self.gamma, self.coef0, Z, weight)
            self.components_ = KernelComponents.of(kernel, Z, weight, self.n_features, self.random_state)
            Z = self.components_(Z)
        if Z.shape[1] > MOST_COLUMNS:
            raise ValueError(
                f"Gaussians of {Z.shape[1]} encoded columns have {(Z.shape[1] + 1) * (Z.shape[1] + 2) // 2} numbers "
                f"each, and {MOST_COLUMNS} columns are the most; choose columns, or take kernel='rbf' and n_features"
            )
        self.width_ = Z.shape[1]
        return Z

    def _read_prior(self, d: int) -> tuple[Array | None, Array | None]:
        """The user's mean and covariance, in encoded columns."""
        encoder = self.encoder_
        mean = cov = None
        if self.prior_mean is not None:
            mean = _numbers("prior_mean", self.prior_mean, (d,))
            n = len(encoder.centre)
            mean = np.concatenate([(mean[:n] - encoder.centre) / encoder.scale, mean[n:]])
        if self.prior_cov is not None:
            cov = _numbers("prior_cov", self.prior_cov, (d, d))
            scale = np.concatenate([encoder.scale, np.ones(d - len(encoder.scale))])
            cov = cov / np.outer(scale, scale)
            if not np.allclose(cov, cov.T) or eigh(cov, eigvals_only=True)[0] <= 0:
                raise ValueError("prior_cov must be symmetric and positive definite")
        return mean, cov

    def _keep_function(self, space: Space, trained: Trained) -> None:
        self.ensemble_: Ensemble = trained.solution.state
        self.shares_ = self.class_prior_.copy()  # of the training rows
        assert isinstance(trained.discriminant, GaussianDiscriminant)
        self.prior_gaussians_ = list(trained.discriminant.prior.classes)

    # --- what was found -----------------------------------------------------------------------------------------

    @property
    def gaussians_(self) -> list:
        """The distribution over each class's Gaussian."""
        check_is_fitted(self)
        return list(self.ensemble_.classes)

    @property
    def means_(self) -> list[Array]:
        """Expected mean of each class, encoded columns."""
        return [one.mean for one in self.gaussians_]

    @property
    def covariances_(self) -> list[Array]:
        """S / N of each class, encoded columns."""
        return [one.root @ one.root.T / one.rows for one in self.gaussians_]

    def _read(self, X: Any) -> Array:
        check_is_fitted(self)
        Z = self.encoder_(read_features(self, X, reset=False))
        return Z if self.components_ is None else self.components_(Z)

    def _bias(self) -> Array:
        return contrasts(len(self.classes_)) @ self.ensemble_.bias

    def _scores(self, X: Any) -> Array:
        Z = self._read(X)
        return np.column_stack([one.expected_log_prob(Z) for one in self.gaussians_]) + self._bias()

    def _log_joint(self, X: Any) -> Array:
        if self.calibration != "predictive":
            return super()._log_joint(X)
        return self.calibration_(predictive_scores(self.ensemble_.classes, self._read(X), self.shares_[None]))


@dataclass(frozen=True)
class KernelComponents:
    """Leading principal components in a kernel's space, each with variance 1 over the training rows."""

    nystrom: Nystrom
    centre: Array  # (r,)
    axes: Array  # (r, m)

    @classmethod
    def of(cls, kernel: Kernel, Z: Array, weight: Array, n: int, random_state: Any) -> KernelComponents:
        used = np.flatnonzero(weight > 0)
        chosen = np.sort(check_random_state(random_state).permutation(used)[:LANDMARKS])
        nystrom = Nystrom.of(kernel, Z[chosen])
        features = nystrom(Z[used])
        share = weight[used] / weight.sum()
        centre = share @ features
        left = features - centre
        values, vectors = eigh((left * share[:, None]).T @ left)
        keep = np.argsort(values)[::-1][:n]
        keep = keep[values[keep] > 1e4 * CUT * values.max()]
        axes = vectors[:, keep] / np.sqrt(values[keep])
        strongest = np.take_along_axis(axes, np.abs(axes).argmax(axis=0)[None], axis=0)
        return cls(nystrom, centre, axes * np.sign(strongest))  # a sign is free: the strongest entry is positive

    def __call__(self, Z: Array) -> Array:
        """(n, m)."""
        return (self.nystrom(Z) - self.centre) @ self.axes


def _numbers(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    try:
        out = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        out = np.empty(0)
    if out.shape != shape or not np.isfinite(out).all():
        raise ValueError(f"{name} must be finite numbers of shape {shape}, one for each encoded column; got {value!r}")
    return out
