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
from mixent.base.kernels import CUT, RBF, Kernel, KernelFunction, Nystrom, Polynomial, read_kernel
from mixent.base.options import reads
from mixent.base.params import check_count
from mixent.core.arrays import Array
from mixent.data import Table, check_spread, read_features
from mixent.med.constraints import PairConstraints, contrasts
from mixent.med.encoding import FILLED, Encoder
from mixent.med.estimator import CALIBRATIONS, MEDBase, Trained
from mixent.med.gaussians import ClassNormalWisharts
from mixent.med.margins import MARGINS
from mixent.med.options import GaussianPrior
from mixent.med.solving import GaussianDiscriminant
from mixent.med.training_sets import GaussianTrainingSet, Subset, TrainingSet, predictive_scores

GRID = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
LANDMARKS = 500
WIDE = 20  # encoded columns from which every second C is tried
BIT = 0.02  # least variance of a bit within classes
MOST_COLUMNS = 60  # a Newton step has (d + 1)(d + 2) / 2 unknowns per class


@reads(Polynomial, RBF)
def read_component_kernel(name: str, value: Any) -> Kernel | None:
    """A kernel proper; None: no kernel."""
    if hasattr(value, "transform"):
        raise ValueError(
            f"{name}={type(value).__name__}(...) is a transformer; put it before this classifier in a pipeline"
        )
    return None if value is None else read_kernel(name, value, (Polynomial, RBF, KernelFunction), also="None")


class MEDGaussianClassifier(MEDBase):
    """Maximum entropy discrimination with the log-ratio of Gaussians: discriminative quadratic boundaries.

    The parameters of every class's Gaussian have a Normal-Wishart distribution; the prior is the posterior of the
    class's own rows and of further rows with a given mean and covariance (`prior`). The fit is the distribution that
    keeps the margins of the training labels on average, with the least relative entropy to the prior.  Maximizes the
    dual

        J(l) = sum_k w_k u(l_k) - sum_s log Z_s(l) / Z_s(0),     0 <= l < C          (001, equations 16 to 18, mended)

    where row t weighs w_t^s = [y_t = s](1 + sum_y l_ty) - [y_t != s] l_ts in class s. Newton's method minimizes the
    primal objective: its negative never falls, and the difference of both is the duality gap.

    Parameters
    ----------
    C : "auto" or float
        Upper bound on each row's multiplier (any C > 0: where all multipliers are 0 the Gaussians are those of the
        prior). "auto" chooses it by cross-validated log-loss: dozens of fits, each of some seconds from about 20
        encoded columns on.
    margin : "laplace", "exponential", "gaussian" or Margin
        Prior of the margins, about the quantile 0.1 of the labelled rows' margins under the prior (l_alpha of the
        document), or as a `Margin` has it. Unlabelled rows are only used if that margin is positive: with such rows set
        a larger quantile, such as ``Margin("laplace", quantile=0.5)``.
    prior : "auto", float or GaussianPrior
        Number of rows the prior counts for ("auto": 1, or as many as the number of columns requires); or a
        `GaussianPrior` with their mean and covariance.
    kernel : "rbf", "poly", RBF, Polynomial, KernelFunction, callable or None
        None: Gaussians of the columns. Otherwise of the leading kernel principal components, found from 500 Nyström
        features (default).
    n_kernel_components : int
        Number of those components.
    bias : "flat" or float
        Prior of the log-ratio of the class priors: flat (default; the multipliers of the classes balance), or Gaussian
        with this variance about that of the training rows.
    relaxation : float
        With uncertain labels, the share of each label update that is applied.
    calibration : "temperature", "affine", "predictive" or None
        How scores become probabilities; "temperature" and "affine" (better with few classes of unequal size) as for
        MEDClassifier. "predictive": Bayes' rule with each class's predictive density, a Student t, and the training
        shares, whatever the bias. `predict` follows the probabilities; with "temperature" and None these agree with
        `decision_function`.
    cv : int, splitter or list of (train, test)
        Folds for C="auto" and for the calibration; a list holds positions among the labelled rows.
    tol : float
        Stop when the gap per row is smaller, in nats.
    max_iter : int
        Maximum number of passes.
    categorical : "auto" or list
        Columns to treat as categories whatever their type; each category becomes a bit.
    random_state : int, RandomState or None
        For folds and kernel components.
    n_jobs : int or None
        Threads; None takes all cores.
    progress : bool or callable
        True shows a bar; a callable is called with (done, total, text).

    Attributes
    ----------
    classes_, class_prior_
        Class labels and their shares among the labelled rows.
    gaussians_ : list of NormalWishart
        The distribution over each class's Gaussian, in encoded (standardized) columns.
    prior_gaussians_ : list of NormalWishart
        The same before discrimination: the posterior of each class's own rows.
    means_, covariances_ : lists of arrays
        Expected mean of each class, and its covariance about which the distribution is centered, in encoded columns.
    support_, multipliers_, pairs_, loo_estimate_, C_, C_tried_, objective_, gap_, run_, label_posterior_, margin_
        As for MEDClassifier; but the prior, too, is fitted to all rows, and removing one changes it a little.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixent import MEDGaussianClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MEDGaussianClassifier(C=3, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.96)
    True
    """

    _groups = {"prior": GaussianPrior.read, "kernel": read_component_kernel, **MEDBase._groups}
    _distributions = tuple(MARGINS)

    def __init__(
        self,
        *,
        C: str | float = "auto",
        margin: Any = "laplace",
        prior: Any = "auto",
        kernel: Any = None,
        n_kernel_components: int = 10,
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
        self.C = C
        self.margin = margin
        self.prior = prior
        self.kernel = kernel
        self.n_kernel_components = n_kernel_components
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

    def _training_set(self, X: Any, y: Any, table: Table, subset: Subset, executor: Any) -> GaussianTrainingSet:
        check_spread(table)
        Z = self._encode(table, subset)
        prior, predictive = self._group("prior"), self.calibration == "predictive"
        mean_and_cov = self._encoded_prior(prior, Z.shape[1])
        return GaussianTrainingSet(Z, prior.n_rows, *mean_and_cov, self.classes_, self._floor(), predictive)

    def _check(self) -> None:
        self._check_common()
        kernel, prior = self._group("kernel"), self._group("prior")
        prior.check()
        check_count("n_kernel_components", self.n_kernel_components)
        if kernel is not None:
            kernel.check()
            for name in prior.given:
                raise ValueError(
                    f"{name} of the prior is in the units of the columns, and is only used with kernel=None; got "
                    f"kernel={self.kernel!r}"
                )
        elif self.n_kernel_components != 10:
            raise ValueError(f"n_kernel_components={self.n_kernel_components!r} is only used with a kernel")

    def _calibrations(self) -> tuple[str, ...]:
        return (*CALIBRATIONS, "predictive")

    def _grid(self) -> tuple[float, ...]:
        return GRID if self.width_ <= WIDE else GRID[1::2]

    def _floor(self) -> Array:
        """(width,) least variance within classes: bits that are rare, or absent where a fold has none, stay bits."""
        floor = np.zeros(self.width_)
        if self.components_ is None:
            floor[len(self.encoder_.center) :] = BIT
        return floor

    def _prior_margins(self, discriminant: Any, constraints: PairConstraints) -> Array:
        problem = discriminant.problem(constraints, MARGINS["laplace"](1.0, 1.0))  # scores do not depend on the margin
        return constraints.signs * (problem.scores(discriminant.prior, discriminant.X) @ constraints.differences.T)

    # --- columns ------------------------------------------------------------------------------------------------

    def _encode(self, table: Table, subset: Subset) -> Array:
        weight = subset.weight
        self.encoder_ = Encoder.of(table, weight, True)
        Z = self.encoder_(table)
        self.components_ = None
        kernel = self._group("kernel")
        if kernel is not None:
            resolved = kernel.resolved(Z, weight)
            self.components_ = KernelComponents.of(resolved, Z, weight, self.n_kernel_components, self.random_state)
            Z = self.components_(Z)
        if Z.shape[1] > MOST_COLUMNS:
            raise ValueError(
                f"Gaussians of {Z.shape[1]} encoded columns have {(Z.shape[1] + 1) * (Z.shape[1] + 2) // 2} numbers "
                f"each; the most are {MOST_COLUMNS} columns. Choose columns, or set kernel='rbf'"
            )
        self.width_ = Z.shape[1]
        return Z

    def _encoded_prior(self, prior: GaussianPrior, d: int) -> tuple[Array | None, Array | None]:
        """The prior's mean and covariance, in encoded columns."""
        encoder = self.encoder_
        mean = cov = None
        if prior.mean is not None:
            mean = _numbers("mean of the prior", prior.mean, (d,))
            n = len(encoder.center)
            mean = np.concatenate([(mean[:n] - encoder.center) / encoder.scale, mean[n:]])
        if prior.cov is not None:
            cov = _numbers("cov of the prior", prior.cov, (d, d))
            scale = np.concatenate([encoder.scale, np.ones(d - len(encoder.scale))])
            cov = cov / np.outer(scale, scale)
            if not np.allclose(cov, cov.T) or eigh(cov, eigvals_only=True)[0] <= 0:
                raise ValueError("cov of the prior must be symmetric and positive definite")
        return mean, cov

    def _keep_function(self, training_set: TrainingSet, trained: Trained) -> None:
        self.distribution_: ClassNormalWisharts = trained.solution.state
        self.shares_ = self.class_prior_.copy()  # of the training rows
        assert isinstance(trained.discriminant, GaussianDiscriminant)
        self.prior_gaussians_ = list(trained.discriminant.prior.classes)

    # --- what was found -----------------------------------------------------------------------------------------

    @property
    def gaussians_(self) -> list:
        """The distribution over each class's Gaussian."""
        check_is_fitted(self)
        return list(self.distribution_.classes)

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
        return contrasts(len(self.classes_)) @ self.distribution_.bias

    def _scores(self, X: Any) -> Array:
        Z = self._read(X)
        return np.column_stack([one.expected_log_prob(Z) for one in self.gaussians_]) + self._bias()

    def _log_joint(self, X: Any) -> Array:
        if self.calibration != "predictive":
            return super()._log_joint(X)
        return self.calibration_(predictive_scores(self.distribution_.classes, self._read(X), self.shares_[None]))


@dataclass(frozen=True)
class KernelComponents:
    """Leading principal components in a kernel's space, each with variance 1 over the training rows."""

    nystrom: Nystrom
    center: Array  # (r,)
    axes: Array  # (r, m)

    @classmethod
    def of(cls, kernel: Kernel, Z: Array, weight: Array, n: int, random_state: Any) -> KernelComponents:
        used = np.flatnonzero(weight > 0)
        n_landmarks = kernel.count_landmarks(len(used), LANDMARKS)
        chosen = np.sort(check_random_state(random_state).permutation(used)[:n_landmarks])
        nystrom = Nystrom.of(kernel, Z[chosen])
        features = nystrom(Z[used])
        share = weight[used] / weight.sum()
        center = share @ features
        left = features - center
        values, vectors = eigh((left * share[:, None]).T @ left)
        keep = np.argsort(values)[::-1][:n]
        keep = keep[values[keep] > 1e4 * CUT * values.max()]
        axes = vectors[:, keep] / np.sqrt(values[keep])
        strongest = np.take_along_axis(axes, np.abs(axes).argmax(axis=0)[None], axis=0)
        return cls(nystrom, center, axes * np.sign(strongest))  # a sign is free: the strongest entry is positive

    def __call__(self, Z: Array) -> Array:
        """(n, m)."""
        return (self.nystrom(Z) - self.center) @ self.axes


def _numbers(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    try:
        out = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        out = np.empty(0)
    if out.shape != shape or not np.isfinite(out).all():
        raise ValueError(f"{name} must be finite numbers of shape {shape}, one for each encoded column; got {value!r}")
    return out
