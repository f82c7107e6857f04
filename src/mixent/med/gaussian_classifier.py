"""Maximum entropy discrimination with Gaussian class densities (001, section 3.1.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import able
from mixent.base.kernels import CUT, RBF, Kernel, KernelFunction, Nystrom, Polynomial, read_kernel
from mixent.base.options import reads
from mixent.base.params import RandomState, check_count, warn_unused
from mixent.core.arrays import Array
from mixent.core.executors import Executor
from mixent.data import Categorical, Table, TableLike, check_spread, read_features
from mixent.med.cross_validation import CALIBRATIONS
from mixent.med.encoding import FILLED, Encoder
from mixent.med.estimator import MEDBase
from mixent.med.exponential_family import JointDistribution
from mixent.med.gaussian_training import GaussianTrainingSet, gaussian_scores, predictive_scores
from mixent.med.margins import MARGINS
from mixent.med.model_training_sets import ModelDiscriminant
from mixent.med.options import GaussianPrior, LabelUpdates, Margin
from mixent.med.training_sets import Subset, TrainedDiscriminant

GRID = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
LANDMARKS = 500
MIN_INDICATOR_VARIANCE = 0.02  # within classes, of a one-hot column


@reads(Polynomial, RBF)
def read_component_kernel(name: str, value: Any) -> Kernel | None:
    """Read a kernel; None is returned unchanged."""
    if hasattr(value, "transform"):
        raise ValueError(
            f"{name}={type(value).__name__}(...) is a transformer; put it before this classifier in a pipeline"
        )
    return None if value is None else read_kernel(name, value, (Polynomial, RBF, KernelFunction), also="None")


class MEDGaussianClassifier(MEDBase):
    """Maximum entropy discrimination with Gaussian class densities, whose log-ratios have quadratic boundaries.

    The parameters of the Gaussian of every class have a Normal-Wishart distribution. The prior is the posterior given
    the rows of the class and pseudo-rows with a given mean and covariance (`prior`). Of all distributions
    under which every training row attains its required margin in expectation, the solution is the one closest to this
    prior (least relative entropy; [1]_, section 3.1.1).  Maximizes the dual

        J(λ) = sum_k w_k u(λ_k) - sum_s log Z_s(λ) / Z_s(0)                          (equations 16 to 18, corrected)

    over multipliers λ >= 0 (λ < C for the Laplace and exponential margin priors), where row t has weight
    w_t^s = [y_t = s](1 + sum_y λ_ty) - [y_t != s] λ_ts in class s. Newton's method minimizes the primal objective: its
    negative never decreases, and the difference between primal and dual is the duality gap.

    Parameters
    ----------
    C : "auto" or float
        Upper bound on each row's multiplier. "auto" chooses it by cross-validated log-loss, with dozens of fits. Any
        C > 0 is allowed: where all multipliers are 0, the Gaussians are those of the prior. With margin="gaussian"
        there is no bound; 1 / C is the standard deviation of the prior.
    margin : "laplace", "exponential", "gaussian" or Margin
        Prior of the margins. Its mode is the 0.1 quantile of the labelled rows' margins under the prior (l_alpha in
        [1]_), unless a `Margin` sets another. Unlabelled rows are only used if that margin is positive; with such rows
        set a larger quantile, such as ``Margin("laplace", quantile=0.5)``.
    prior : "auto", float or GaussianPrior
        Number of pseudo-rows of the prior. "auto": 1, or as many as the number of columns requires. A
        `GaussianPrior` also holds their mean and covariance, and the structure of the covariances.
    kernel : "rbf", "poly", RBF, Polynomial, KernelFunction, callable or None
        Kernel function. None: Gaussians of the columns. Otherwise Gaussians of the leading kernel principal components,
        computed from 500 Nyström features (default).
    n_kernel_components : int
        Number of kernel principal components.
    bias : "flat" or float
        Prior of the log-ratio of the class priors: flat, or Gaussian with this variance about the log-ratio of the
        training shares. With a flat prior the multipliers of the classes balance.
    relaxation : float or LabelUpdates
        Step size of the label updates with uncertain labels, above 0 and at most 1; a `LabelUpdates` also has the
        number of rounds and the class shares of the unlabelled rows.
    calibration : "affine", "temperature", "predictive" or None
        Calibration of the probabilities; for "affine" and "temperature" see MEDClassifier. "predictive": Bayes' rule
        with the predictive density of each class, a Student t, and the training shares, whatever the bias.
    cv : int, splitter or list of (train, test)
        Cross-validation folds for C="auto" and for the calibration. A list holds positions among the labelled rows.
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
        Seed for cross-validation and kernel components.
    n_jobs : int or None
        Number of threads; None uses all cores.
    progress : bool or callable
        True shows a progress bar; a callable is called with (done, total, text).

    Attributes
    ----------
    classes_ : (C,) array
        Class labels.
    training_prior_ : (C,) array
        Class shares of the labelled training rows.
    gaussians_ : list of Wishart, or of one TiedWishart
        Distribution over the Gaussian of each class, or over those of all classes if they share their covariance; in
        encoded (standardized) columns.
    prior_gaussians_ : list of Wishart, or of one TiedWishart
        The same before discrimination: the posterior given the rows of each class.
    means_, covariances_ : lists of arrays
        Expected mean of each class, and the covariance at the center of its distribution, in encoded columns.
    distribution_ : JointDistribution
        The distributions in `gaussians_`, and the bias.
    loo_estimate_ : float
        Share of support rows: the leave-one-out estimate of the error of Lemma 1 [1]_. A crude estimate; the prior is
        also fitted to all rows, so that removing any row changes the model slightly.
    C_tried_ : list of dict
        Values of `C` tried, with their cross-validated log-loss.
    gap_ : float or None
        Duality gap: an upper bound on the distance of `objective_` from its optimum.
    encoder_ : Encoder
        Encoding of the columns.
    components_ : KernelComponents or None
        Kernel principal components; None with kernel=None.
    n_encoded_features_ : int
        Number of encoded columns or kernel components.
    background_ : Background
        The training rows, at most 50, with which `explain` compares a row.
    class_prior_, support_, multipliers_, pairs_, C_, objective_, label_posterior_ : see MEDClassifier
    unlabelled_gain_, cv_error_, margin_, calibration_, run_, n_rows_, schema_, n_features_in_ : see MEDClassifier
    feature_names_in_, notes_ : see MEDClassifier

    See Also
    --------
    MEDClassifier : Linear and kernel discriminant functions.
    MEDTreeClassifier : Log-ratios of tree-structured distributions, mainly for categories.
    MixtureClassifier : Bayes classifier with mixture densities, by maximum likelihood.
    sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis : Gaussian class densities by maximum likelihood.

    References
    ----------
    .. [1] Jaakkola, T., Meila, M. and Jebara, T. (1999). Maximum entropy discrimination. MIT AI Laboratory. Sections
       3.1.1 and 3.1.2 (document 001).

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
    _grid_values = GRID
    _calibrations = (*CALIBRATIONS, "predictive")

    def __init__(
        self,
        *,
        C: str | float = "auto",
        margin: str | Margin = "laplace",
        prior: Any = "auto",
        kernel: Any = None,
        n_kernel_components: int = 10,
        bias: str | float = 1.0,
        relaxation: float | LabelUpdates = 0.5,
        calibration: str | None = "affine",
        cv: Any = 5,
        tol: float = 1e-6,
        max_iter: int = 1000,
        class_weight: Any = None,
        categorical: Categorical = "auto",
        random_state: RandomState = None,
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
        self.class_weight = class_weight
        self.categorical = categorical
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def __sklearn_tags__(self):
        return able(super().__sklearn_tags__(), missing=FILLED)

    def _training_set(
        self, X: TableLike, y: ArrayLike | None, table: Table, subset: Subset, executor: Executor
    ) -> GaussianTrainingSet:
        check_spread(table)
        Z = self._encode(table, subset)
        prior, predictive = self._group("prior"), self.calibration == "predictive"
        mean_and_cov = self._encoded_prior(prior, Z.shape[1])
        return GaussianTrainingSet(
            Z, prior.n_rows, *mean_and_cov, self.classes_, self._floor(), predictive, prior.covariances
        )

    def _check(self) -> None:
        self._check_common()
        kernel, prior = self._group("kernel"), self._group("prior")
        prior.check()
        check_count("n_kernel_components", self.n_kernel_components)
        if kernel is not None:
            kernel.check()
            for name in prior.given:
                warn_unused(f"{name} of the prior", f"kernel=None; got kernel={self.kernel!r}")
        elif self.n_kernel_components != 10:
            warn_unused(f"n_kernel_components={self.n_kernel_components!r}", "a kernel")

    def _floor(self) -> Array:
        """(d,) minimum variance within classes: positive for one-hot columns, which may be constant in a class."""
        floor = np.zeros(self.n_encoded_features_)
        if self.components_ is None:
            floor[len(self.encoder_.center) :] = MIN_INDICATOR_VARIANCE
        return floor

    # --- columns ------------------------------------------------------------------------------------------------

    def _encode(self, table: Table, subset: Subset) -> Array:
        weight = subset.labelled_weight
        self.encoder_ = Encoder.of(table, weight, True, subset.weight)
        Z = self.encoder_(table)
        self.components_ = None
        kernel = self._group("kernel")
        if kernel is not None:
            resolved = kernel.resolved(Z, weight)
            self.components_ = KernelComponents.of(resolved, Z, weight, self.n_kernel_components, self.random_state)
            Z = self.components_(Z)
        self.n_encoded_features_ = Z.shape[1]
        return Z

    def _encoded_prior(self, prior: GaussianPrior, d: int) -> tuple[Array | None, Array | None]:
        """Mean and covariance of the prior in encoded columns; None where they are not given."""
        encoder = self.encoder_
        mean = cov = None
        if self.components_ is not None or prior.n_rows == 0:
            return mean, cov
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

    def _store_function(self, trained: TrainedDiscriminant) -> None:
        self.distribution_: JointDistribution = trained.solution.state
        self.training_prior_ = self.class_prior_.copy()
        assert isinstance(trained.discriminant, ModelDiscriminant)
        self.prior_gaussians_ = list(trained.discriminant.prior.parts)

    # --- attributes and predictions -----------------------------------------------------------------------------

    @property
    def gaussians_(self) -> list[Any]:
        """Distribution over the Gaussian of each class, or one over all Gaussians."""
        check_is_fitted(self)
        return list(self.distribution_.parts)

    @property
    def means_(self) -> list[Array]:
        """Expected mean of each class, in encoded columns."""
        return [mean for part in self.gaussians_ for mean, _ in part.gaussians]

    @property
    def covariances_(self) -> list[Array]:
        """Covariance of each class, in encoded columns."""
        return [cov for part in self.gaussians_ for _, cov in part.gaussians]

    def _encoded(self, X: TableLike) -> Array:
        check_is_fitted(self)
        Z = self.encoder_(read_features(self, X, reset=False))
        return Z if self.components_ is None else self.components_(Z)

    def _scores(self, X: TableLike) -> Array:
        return gaussian_scores(self.distribution_, self._encoded(X))

    def _predictive_scores(self, X: TableLike) -> Array:
        return predictive_scores(self.distribution_, self._encoded(X), self.training_prior_)


@dataclass(frozen=True)
class KernelComponents:
    """Leading kernel principal components, each with variance 1 over the training rows.

    If the kernel does not distinguish the rows, there is one component, which is zero.
    """

    nystrom: Nystrom
    center: Array  # (r,)
    axes: Array  # (r, m)

    @classmethod
    def of(cls, kernel: Kernel, Z: Array, weight: Array, n: int, random_state: RandomState) -> KernelComponents:
        used = np.flatnonzero(weight > 0)
        n_landmarks = kernel.count_landmarks(len(used), LANDMARKS)
        chosen = np.sort(check_random_state(random_state).permutation(used)[:n_landmarks])
        nystrom = Nystrom.of(kernel, Z[chosen])
        features = nystrom(Z[used])
        share = weight[used] / weight.sum()
        center = share @ features
        centered = features - center
        power = float(share @ (features**2).sum(axis=1))
        if not (centered**2).sum(axis=1).max() > CUT * power:
            return cls(nystrom, center, np.zeros((features.shape[1], 1)))
        values, vectors = eigh((centered * share[:, None]).T @ centered)
        keep = np.argsort(values)[::-1][:n]
        keep = keep[values[keep] > 1e4 * CUT * values.max()]
        axes = vectors[:, keep] / np.sqrt(values[keep])
        strongest = np.take_along_axis(axes, np.abs(axes).argmax(axis=0)[None], axis=0)
        return cls(nystrom, center, axes * np.sign(strongest))  # the sign is arbitrary: make the largest entry positive

    def __call__(self, Z: Array) -> Array:
        """(n, m) components of encoded rows."""
        return (self.nystrom(Z) - self.center) @ self.axes


def _numbers(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    try:
        out = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        out = np.empty(0)
    if out.shape != shape or not np.isfinite(out).all():
        raise ValueError(f"{name} must be finite numbers of shape {shape}, for the encoded columns; got {value!r}")
    return out
